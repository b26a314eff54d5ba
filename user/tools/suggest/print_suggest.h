/* SPDX-License-Identifier: GPL-2.0-only */
/* The measurements and suggestions, in words and as a JSON document. */
#ifndef WEIR_CMD_PRINT_SUGGEST_H
#define WEIR_CMD_PRINT_SUGGEST_H

#include "suggest/suggest.h"

void weir_suggest_print_text(const struct weir_suggest_report *report, FILE *stream);
int weir_suggest_print_json(const struct weir_suggest_report *report, struct weir_diag *diag);

#endif
