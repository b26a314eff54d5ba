/* SPDX-License-Identifier: GPL-2.0-only */
/* Fair shares: parents whose children want more than there is, and the level of each (include/weir_fair.h). */
#ifndef WEIR_STATE_FAIR_SHARES_H
#define WEIR_STATE_FAIR_SHARES_H

#include "instance/instance.h"

struct weir_fair_use {
	uint32_t rule_slot;
	struct weir_flow_key key; /* of the parent; zero if the rule has no key */
	/* Of the rule's intervals: */
	double level;	/* units that each child may have, times its weight; 0: not worked out yet */
	uint64_t limit; /* units that all may have together; 0: not known yet */
	/* In the last whole interval: */
	uint64_t offered; /* units */
	uint64_t children, newcomers;
	uint64_t above; /* children that want more than the level, without new ones; each as many as its weight */
};

/* What a child does. */
struct weir_fair_child_use {
	uint64_t offered; /* units of an interval: in the last whole one, or, if it began later, so far */
	uint32_t weight;
	bool is_new; /* it offered nothing in the two intervals before */
};

struct weir_fair_uses {
	struct weir_fair_use *uses; /* the lowest levels of a rule first */
	size_t count;
};

/* Of one rule. */
struct weir_fair_sum {
	uint64_t contended; /* parents; the rest is about these */
	double level;	    /* the lowest; 0: none is known */
	uint64_t children, newcomers, above;
};
struct weir_fair_sum weir_fair_sum_of(const struct weir_fair_uses *uses, uint32_t rule_slot);

/* Parents that are contended now. None if no rule has fairBy. The caller frees *ret_uses. */
int weir_fair_read(const struct weir_instance *instance, struct weir_fair_uses *ret_uses, struct weir_diag *diag);
void weir_fair_uses_free(struct weir_fair_uses *uses);

/* The children that want most, of contended parents of one rule or of WEIR_ANY_RULE. */
struct weir_fair_flow {
	uint32_t rule_slot;	/* of the rule with fairBy */
	uint32_t children_slot; /* of the hidden rule, whose key `key` has */
	bool has_key;		/* it is known by samples of packets above the level */
	struct weir_flow_key key;
	struct weir_fair_child_use use;
	double due; /* units of the rule's interval: the level, times its weight; 0: not known, or the child is new */
};
struct weir_fair_flows {
	struct weir_fair_flow *most;
	size_t count;
	uint64_t active; /* children of contended parents */
};
int weir_fair_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			 struct weir_fair_flows *ret_flows, struct weir_diag *diag);
void weir_fair_flows_free(struct weir_fair_flows *flows);

/* A parent as it is now, for a rule with fairBy. Returns whether it is contended. */
bool weir_fair_look(const struct weir_rule_info *rule, const struct weir_fair_parent *parent, uint64_t now_ns,
		    struct weir_fair_use *ret_use);

/* A child of such a rule. Returns whether it has offered anything in the last interval or this one. */
bool weir_fair_look_at_child(const struct weir_rule_info *rule, const struct weir_fair_child *child, uint64_t now_ns,
			     struct weir_fair_child_use *ret_use);

/* The hidden rule that describes the children of a rule; NULL: it has no fairBy. */
const struct weir_rule_info *weir_children_of(const struct weir_instance *instance, const struct weir_rule_info *rule);

#endif
