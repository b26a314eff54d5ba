/* SPDX-License-Identifier: GPL-2.0-only */
/* What a reload would do, for `weir diff` and `weir reload --dry-run`. */
#ifndef WEIR_PRINT_DIFF_H
#define WEIR_PRINT_DIFF_H

#include <stdbool.h>

#include "instance/instance.h"

/* To standard output, as text or as JSON. */
int weir_print_forecast(const char *instance, bool wants_json, const struct weir_reload_forecast *forecast,
			struct weir_diag *diag);

#endif
