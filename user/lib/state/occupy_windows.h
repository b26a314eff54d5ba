/* SPDX-License-Identifier: GPL-2.0-only */
/* Occupy windows: what their cells count. observe.h passes on their flows. */
#ifndef WEIR_STATE_OCCUPY_WINDOWS_H
#define WEIR_STATE_OCCUPY_WINDOWS_H

#include "instance/instance.h"

/* Units of one bucket. Buckets are numbered as in the program, which starts one ring before time zero. */
uint64_t weir_occupy_units(const struct weir_occupy_window *flow, uint32_t tag, const struct weir_rule_info *rule,
			   uint64_t bucket);

/* Does any rule have one? */
bool weir_occupy_is_used(const struct weir_instance *instance);

#endif
