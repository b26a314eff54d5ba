/* SPDX-License-Identifier: GPL-2.0-only */
/* Which way packets go that an instance limits, as its descriptions say. */
#ifndef WEIR_STATE_DIRECTIONS_H
#define WEIR_STATE_DIRECTIONS_H

#include "instance/instance.h"

/* A resource is of what goes out: its packets are in counters of their own. */
bool weir_limits_out(const struct weir_instance *instance);

/* WEIR_MATCHES_IN and _OUT of a rule: those of its resource. A system rule is of what comes in. */
uint32_t weir_rule_directions(const struct weir_instance *instance, const struct weir_rule_info *rule);

#endif
