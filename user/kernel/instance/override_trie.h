/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The overrides in force, as the attached program finds them: in a trie of its own, which is not pinned and is found
 * through the program. For display only; makes no decisions.
 */
#ifndef WEIR_INSTANCE_OVERRIDE_TRIE_H
#define WEIR_INSTANCE_OVERRIDE_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "instance/instance.h"

/* A descriptor of the trie; -ENOENT if nothing is attached any more, or another -errno. */
int weir_overrides_open(const struct weir_instance *instance);

/* The threshold of the flow with this key, under a rule with overrides: that of the longest matching prefix, or the
 * rule's own.
 */
int weir_overrides_find(int fd, const struct weir_rule_info *rule, const struct weir_flow_key *key,
			uint64_t *ret_units);

/* Call `visit` for the overrides of all rules. Returns 0 or -errno. */
typedef int weir_override_visit(const struct weir_override_key *key, const struct weir_override_units *units,
				void *data);
int weir_overrides_scan(int fd, weir_override_visit *visit, void *data);

#endif
