/* SPDX-License-Identifier: GPL-2.0-only */
/* Which flows a replay limited: the program's counts, by rules of the rule set. For replay_run.c. */
#ifndef WEIR_HARNESS_LIMITED_H
#define WEIR_HARNESS_LIMITED_H

#include "base/diag.h"
#include "compile/compile.h"
#include "program/top_drops.h"
#include "tables/labels.h"

struct weir_object;

/* A flow that lost packets, or would have lost some under a rule that observes. */
struct weir_replay_limited {
	struct weir_dropped_flow dropped;
	struct weir_rule_identity identity; /* of its rule: defines the fields of the key */
	uint32_t rule;			    /* index in the rule set */
};

#define WEIR_REPLAY_LIMITED_MAX 10000u /* most flows that are reported; chosen, not derived */

struct weir_replay_limits {
	struct weir_replay_limited *most; /* those that lost the most packets first */
	size_t count;
	struct weir_key_labels *labels; /* of flow keys; NULL: none has a set */
	uint64_t flows;			/* number of flows that are known */
	uint64_t missed;		/* no flow that is not known lost more packets than this */
};

/* latest_ns is the capture's. Free *ret_limits with weir_replay_limits_free(). */
int weir_replay_read_limited(const struct weir_object *object, const struct weir_image *image, uint64_t latest_ns,
			     struct weir_replay_limits *ret_limits, struct weir_diag *diag);
void weir_replay_limits_free(struct weir_replay_limits *limits);

#endif
