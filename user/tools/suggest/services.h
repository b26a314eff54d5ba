/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The services that matter in the measured traffic: each protocol and port with at least a hundredth of all packets, or
 * of all clients, of a direction. They become a rule set with one resource each.
 */
#ifndef WEIR_SUGGEST_SERVICES_H
#define WEIR_SUGGEST_SERVICES_H

#include "suggest/measure.h"

#define WEIR_SERVICES_MAX 24 /* chosen, not derived */

/* ret_groups has the group of each resource, by index. The caller owns *ret_ruleset. */
int weir_suggest_services(const struct weir_suggest_measured *measured, uint32_t ret_groups[WEIR_SERVICES_MAX],
			  struct weir_ruleset **ret_ruleset, struct weir_diag *diag);

#endif
