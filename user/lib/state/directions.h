/* SPDX-License-Identifier: GPL-2.0-only */
/* Which directions of traffic an instance limits, from its descriptions. */
#ifndef WEIR_STATE_DIRECTIONS_H
#define WEIR_STATE_DIRECTIONS_H

#include "instance/instance.h"

/* Does any resource match outgoing packets? These have separate counters. */
bool weir_limits_out(const struct weir_instance *instance);

/* The directions of a rule (WEIR_MATCHES_IN and _OUT), which are its resource's. A system rule is for incoming packets.
 */
uint32_t weir_rule_directions(const struct weir_instance *instance, const struct weir_rule_info *rule);

#endif
