/* SPDX-License-Identifier: GPL-2.0-only */
/* The rule set in force, as `weir show` prints it, for HTTP clients (docs/metrics.md). */
#ifndef WEIR_REPORT_RULE_SET_H
#define WEIR_REPORT_RULE_SET_H

#include <jansson.h>

#include "base/diag.h"
#include "instance/instance.h"

/*
 * The rule set as text, and the same as JSON. The prefixes of `allow` and `deny`, which may be millions, are only
 * counted. -ENOENT, with the reason in *diag: the rule set is not kept. The caller owns *ret_document.
 */
int weir_rule_set_describe(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag);

#endif
