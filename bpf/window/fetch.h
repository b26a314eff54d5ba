/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is found before a rule with rows is asked about a packet: its flow, the flow's row, and whether what the row
 * remembers belongs to the threshold in force. All lines that this needs are fetched from memory at once.
 */
#ifndef WEIR_FETCH_H
#define WEIR_FETCH_H

#include "window/rate.h"

static __always_inline bool weir_takes(enum weir_shortcut shortcut)
{
	return config.shortcuts & shortcut;
}

/* ---- WEIR_SHORTCUT_FETCH: all lines of a flow are fetched at once ---- */

/* Saves 170 of 500 ns (1M flows, admitted; test run), 197 of 710 (spoofed sources; end to end); with medium rows some
 * 250 of 800 (1M flows, admitted; test run).
 */

static __always_inline void weir_fetch_set(void *rows, const enum weir_width wide)
{
#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way += ROW_BYTES(wide) < 64 ? 64 / ROW_BYTES(wide) : 1)
		(void)ROW_GET(rows + way * ROW_BYTES(wide), wide, tag);
}

/* Fetch the set of ghosts beside one of the flow's sets of rows, and the next one. If the flow evicts a row, that row
 * mostly leaves its ghost in one of the two.
 */
static __always_inline void weir_fetch_row_ghost_set(__u32 row_set, __u32 tag, const enum weir_width wide)
{
	__u32 number =
		weir_row_ghost_set_beside(row_set, tag, WEIR_PAGE_SETS(wide), config.sizes[WEIR_TABLE_ROW_GHOSTS]);
	const struct weir_row_ghost_set *set = weir_row_ghost_set(number & ~1u), *pair = weir_row_ghost_set(number | 1);

	if (set)
		(void)READ_ONCE(set->word[0]);
	if (pair)
		(void)READ_ONCE(pair->word[0]);
}

/* Start to fetch all lines that a flow below its limit needs: both of its sets, its sharers cell and, while rows are
 * being evicted, the sets of ghosts beside both. Otherwise each would be waited for in turn. Rows come first, because
 * their table is the largest. Returns whether the flow may have ghosts.
 */
static __always_inline bool weir_fetch_flow(const struct weir_scratch *s, const struct weir_flow_id *id, void *chunk,
					    const enum weir_width wide)
{
	__u32 *cell;

	if (!chunk)
		return true;
	weir_fetch_set(weir_rows_of(chunk, id->set, wide), wide);
	weir_fetch_set(weir_rows_of(chunk, weir_other_set(id, wide), wide), wide);
	cell = config.cpus > 1 ? weir_sharers_cell(id) : NULL;
	if (cell)
		(void)READ_ONCE(*cell);
	if (!weir_row_ghosts_count(s, id))
		return false;
	weir_fetch_row_ghost_set(id->set, id->tag, wide);
	weir_fetch_row_ghost_set(weir_other_set(id, wide), id->tag, wide);
	return true;
}

/* The same for all of the packet's rules with narrow rows; memory delivers all of them in little more time than one.
 * All ids are computed first, because the processor starts only loads that it sees before the first one that it waits
 * for.
 */
__noinline int weir_fetch_rules(struct weir_scratch *s)
{
	WEIR_GLOBAL(SEVERAL_RULES, s, 0);
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < s->rule_count; i++)
		if (weir_rule(s->rule[i])->storage == WEIR_STORAGE_NARROW)
			s->fetched_flow[i] = weir_flow_id(s, weir_rule(s->rule[i]), WEIR_NARROW);
	s->ghosts_of_rules = 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < s->rule_count; i++)
		if (weir_rule(s->rule[i])->storage == WEIR_STORAGE_NARROW &&
		    weir_fetch_flow(s, &s->fetched_flow[i], weir_chunk_of(s->fetched_flow[i].set, -1, WEIR_NARROW),
				    WEIR_NARROW))
			s->ghosts_of_rules |= 1u << i;
	s->flows_and_one = s->rule_count + 1;
	return 0;
}

/* Are the lines of s->flow, of rule number `nth`, to be fetched? Not if the packet before has done so. */
static __always_inline bool weir_begin_fetch(struct weir_scratch *s, __u32 nth)
{
	__u32 *fetched_tag = &s->fetched_flow[nth & (WEIR_PACKET_RULES_MAX - 1)].tag;

	if (!weir_takes(WEIR_SHORTCUT_FETCH) || s->flow.tag == *fetched_tag)
		return false;
	*fetched_tag = s->flow.tag;
	return true;
}

static __always_inline void weir_enter_flow(struct weir_scratch *s, const struct weir_rule *rule,
					    const enum weir_width wide)
{
	s->flow = weir_flow_id(s, rule, wide);
	s->may_have_ghosts = (config.has_fixed && !s->expects_admission) || !weir_begin_fetch(s, s->nth) ||
			     weir_fetch_flow(s, &s->flow, weir_chunk_of(s->flow.set, -1, wide), wide);
}

/* Find the packet's flow under a rule without narrow rows (s->flow), and the flow's threshold now. */
static __always_inline void weir_enter_other(struct weir_scratch *s, const struct weir_rule *rule)
{
	if (weir_takes(WEIR_SHORTCUT_FETCH) && config.warms_flows && rule->warms_flows)
		weir_fetch_warming(s, rule);
	if (rule->storage == WEIR_STORAGE_MEDIUM)
		weir_enter_flow(s, rule, WEIR_MEDIUM);
	else if (rule->storage == WEIR_STORAGE_WIDE)
		weir_enter_flow(s, rule, WEIR_WIDE);
	if (config.warms_flows && rule->warms_flows)
		weir_enter_warming(s, rule->place);
	if (rule->needs_allowed)
		weir_find_allowed(s, rule->place);
}

/* ---- the flow's row ---- */

/* Do the row's lease and its being over the limit belong to the threshold in force? (A separate bit of the row's
 * version says whether the flow has an override.)
 */
static __always_inline bool weir_is_row_in_force(const struct weir_scratch *s, const struct weir_rule *rule, void *row,
						 const enum weir_width wide)
{
	const bool has_overrides = config.has_overrides && rule->has_overrides;
	__u64 differs = weir_row_word(row, wide) ^ weir_threshold_word(s, rule, wide);

	if (!wide || has_overrides)
		differs >>= WEIR_THRESHOLD_BITS;
	return !(has_overrides ? differs & ~WEIR_VERSION_PLAIN : differs);
}

/* The packet's flow under a rule with narrow rows: s->flow. */
static __always_inline void weir_enter_narrow(struct weir_scratch *s, const struct weir_rule *rule, __u32 nth)
{
	if (WEIR_PART_SEVERAL_RULES && nth + 1 < s->flows_and_one)
		s->flow = s->fetched_flow[nth & (WEIR_PACKET_RULES_MAX - 1)];
	else
		s->flow = weir_flow_id(s, rule, WEIR_NARROW);
}

/* Its row in this chunk. After a blocked packet, the next one is mostly blocked, too, and then the row is enough. */
static __always_inline void *weir_find_narrow_in(struct weir_scratch *s, void *chunk, __u32 nth)
{
	__u32 number;
	void *row;

	if (WEIR_PART_SEVERAL_RULES && s->rule_count > 1)
		s->may_have_ghosts = s->ghosts_of_rules >> (nth & (WEIR_PACKET_RULES_MAX - 1)) & 1;
	else
		s->may_have_ghosts = !s->expects_admission || !weir_begin_fetch(s, nth) ||
				     weir_fetch_flow(s, &s->flow, chunk, WEIR_NARROW);
	row = weir_find_row_in(chunk, &s->flow, &number, WEIR_NARROW);
	s->row_number = number;
	return row;
}

static __always_inline void *weir_find_narrow(struct weir_scratch *s, __u32 nth)
{
	return weir_find_narrow_in(s, weir_chunk_of(s->flow.set, -1, WEIR_NARROW), nth);
}

/* The row of s->flow under a rule with rows of this width, or a lone row. */
static __always_inline void *weir_find_other(struct weir_scratch *s, const struct weir_rule *rule,
					     const enum weir_width wide)
{
	if (wide == WEIR_WIDE && rule->storage == WEIR_STORAGE_LONE) {
		s->flow.tag = s->flow.set = 0;
		s->row_number = rule->slot;
		return weir_lone_row(rule->slot);
	}
	return weir_find_row(&s->flow, -1, &s->row_number, wide);
}

/* The row of a flow, and what shortcuts go by. */
struct weir_found {
	void *chunk; /* of narrow rows: where the flow's set is */
	void *row;   /* NULL: the flow has none */
	bool is_in_force;
};

/* Find s->flow, under the packet's rule number `nth`. */
static __always_inline struct weir_found weir_find(struct weir_scratch *s, const struct weir_rule *rule, __u32 nth,
						   const enum weir_width wide)
{
	struct weir_found found;

	found.chunk = wide ? NULL : weir_chunk_of(s->flow.set, -1, WEIR_NARROW);
	found.row = wide ? weir_find_other(s, rule, wide) : weir_find_narrow_in(s, found.chunk, nth);
	found.is_in_force = found.row && weir_is_row_in_force(s, rule, found.row, wide);
	return found;
}

#endif
