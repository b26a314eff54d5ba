/* SPDX-License-Identifier: GPL-2.0-only */
/* Fair shares: parents whose children want more than there is, and the level of each (include/weir_fair.h). */
#ifndef WEIR_STATE_FAIR_H
#define WEIR_STATE_FAIR_H

#include "instance/instance.h"

struct weir_fair_use {
	uint32_t rule_slot;
	struct weir_flow_key key; /* of the parent; zero if the rule has no key */
	double level;		  /* units of the rule's interval that each child may have; 0: worked out as yet */
	/* In the last whole interval: */
	uint64_t offered; /* units */
	uint64_t children, newcomers;
};

struct weir_fair_uses {
	struct weir_fair_use *uses; /* the lowest levels of a rule first */
	size_t count;
};

/* Parents that are contended now. None if no rule has fairBy. The caller frees *ret_uses. */
int weir_fair_read(const struct weir_instance *instance, struct weir_fair_uses *ret_uses, struct weir_diag *diag);
void weir_fair_uses_free(struct weir_fair_uses *uses);

/* The hidden rule that describes the children of a rule; NULL: it has no fairBy. */
const struct weir_rule_info *weir_children_of(const struct weir_instance *instance, const struct weir_rule_info *rule);

#endif
