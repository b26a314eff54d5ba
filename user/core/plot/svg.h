/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts that all pictures share: the start of a document, and text in it. */
#ifndef WEIR_PLOT_SVG_H
#define WEIR_PLOT_SVG_H

#include <stddef.h>
#include <stdio.h>

#define WEIR_SVG_WIDTH 860 /* pixels; chosen, not derived: it fits a README */

void weir_svg_begin(FILE *stream, size_t height, const char *title, const char *style);

/* Write text with the characters that are special in XML as numeric references. */
void weir_svg_write_escaped(FILE *stream, const char *text);

#endif
