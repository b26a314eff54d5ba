/* SPDX-License-Identifier: GPL-2.0-only */
/* Which flows a packet belongs to. The program that would be attached decides this, packet by packet, as in a replay.
 */
#ifndef WEIR_SUGGEST_MATCHER_H
#define WEIR_SUGGEST_MATCHER_H

#include "frames/link_type.h"
#include "suggest/plan.h"
#include "weir_harness.h"

struct weir_suggest_matcher;

/* The plan is borrowed. If it looks for services, the matcher is for packets of this direction only, since the other's
 * resource would cost each packet some 2 us. The thread that creates and uses the matcher must stay on one CPU.
 */
int weir_suggest_matcher_new(const struct weir_suggest_plan *plan, enum weir_direction direction, const char *interface,
			     uint64_t now_ns, struct weir_suggest_matcher **ret_matcher, struct weir_diag *diag);
void weir_suggest_matcher_free(struct weir_suggest_matcher *matcher);

static inline void weir_suggest_matcher_freep(struct weir_suggest_matcher **matcher)
{
	weir_suggest_matcher_free(*matcher);
}

/* The labels of its flow keys, which the caller frees; NULL: there are none. Returns 0 or -ENOMEM. */
int weir_suggest_matcher_labels(const struct weir_suggest_matcher *matcher, struct weir_key_labels **ret_labels);

/* *ret_packet has flow[], flow_count and the packet's ports; it is valid until the next call. */
int weir_suggest_match(struct weir_suggest_matcher *matcher, const struct weir_ethernet *ethernet, uint64_t time_ns,
		       enum weir_direction direction, const volatile struct weir_harness **ret_packet,
		       struct weir_diag *diag);

#endif
