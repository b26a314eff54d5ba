/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The composition root: hands each layer the lists of what the houses above it have. main() calls this first, and so
 * does what stands in its place: the man page's program, and fuzzers.
 */
#ifndef WEIR_PARTS_H
#define WEIR_PARTS_H

void weir_use_parts(void);

#endif
