// SPDX-License-Identifier: GPL-2.0-only
#include "explain/flow_state.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "program/array.h"
#include "program/sums.h"
#include "program/copy.h"
#include "state/observe.h"
#include "tables/connection_counts.h"
#include "tables/entry_state.h"
#include "tables/flow_hash.h"
#include "tables/rule_kind.h"

static const struct weir_rule *rule_of(const struct weir_sandbox *sandbox, const struct weir_harness_flow *flow)
{
	return &weir_object_generation(sandbox->object)->rules[flow->place % WEIR_RULES_MAX];
}

static const void *find_set(const struct weir_sandbox *sandbox, enum weir_table_id map, uint64_t hash)
{
	const uint32_t sets = weir_object_config(sandbox->object)->sizes[map];

	return sets ? weir_sandbox_find(sandbox, map, weir_shared_set(hash, sets)) : NULL;
}

/* The way with this tag, or -1. */
static int find_way(const uint32_t *tags, int ways, uint32_t tag)
{
	for (int way = 0; way < ways; way++)
		if (tags[way] == tag)
			return way;
	return -1;
}

/* Where one flow of a rule is in tables that all CPUs share: the copied element of a resource without a flow key, or
 * the flow's way of its set. NULL: nowhere. *ret_tag gets the flow's tag, 0 for a resource.
 */
static const void *find_shared(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			       const struct weir_flow_tables *tables, uint32_t *ret_tag)
{
	const struct weir_rule *rule = rule_of(reader->sandbox, flow);
	const void *set;
	int way;

	*ret_tag = 0;
	if (!rule->key_fields)
		return weir_sandbox_find(reader->sandbox, tables->lone, rule->slot);
	*ret_tag = weir_shared_tag(flow->hash);
	set = find_set(reader->sandbox, tables->flows, flow->hash);
	way = set ? find_way(((const struct weir_flow_set *)set)->tag, WEIR_FLOW_WAYS, *ret_tag) : -1;
	return way < 0 ? NULL : weir_flow_element(tables, set, way);
}

/* ---- windows ---- */

int weir_find_cpu_of_flow(const struct weir_sandbox *sandbox, const struct weir_harness_flow *flow)
{
	uint64_t newest = 0, hash;
	const struct weir_rule *counted = weir_sandbox_counted(sandbox, flow, &hash);
	int found = -1;

	if (!counted)
		return -1;
	for (int cpu = 0; cpu < sandbox->cpus; cpu++) {
		struct weir_row row = {};

		if (!weir_sandbox_row(sandbox, counted, hash, flow->tag, cpu, &row) || !row.newest)
			continue;
		if (found < 0 || row.newest > newest) {
			found = cpu;
			newest = row.newest;
		}
	}
	return found;
}

static void look_at_window(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			   const struct weir_override_units *override, struct weir_explained_rule *explained)
{
	uint64_t hash;
	const struct weir_rule *counted = weir_sandbox_counted(reader->sandbox, flow, &hash);
	const struct weir_window_spec spec = {
		.bucket_ns = counted->bucket_ns,
		.base_bucket = counted->base_bucket,
		.window_cells = counted->window_cells,
		.window = counted->window,
	};
	struct weir_row_sum sum = {};
	uint64_t present, first;

	if (!spec.bucket_ns || !spec.window_cells || spec.window_cells > WEIR_RING_CELLS)
		return;
	present = weir_row_bucket(&spec, reader->now_ns);
	first = present + 1 > spec.window_cells ? present + 1 - spec.window_cells : 0;
	explained->has_window = true;
	explained->bucket_count = present + 1 - first;
	for (uint32_t i = 0; i < explained->bucket_count; i++)
		explained->buckets[i].begins_ns =
			(int64_t)((spec.base_bucket + first + i) * spec.bucket_ns - reader->now_ns);
	for (int cpu = 0; cpu < reader->sandbox->cpus; cpu++) {
		struct weir_row row;

		if (!weir_sandbox_row(reader->sandbox, counted, hash, flow->tag, cpu, &row))
			continue;
		weir_row_add(&spec, reader->now_ns, &row, &sum);
		for (uint32_t age = 0; age < WEIR_RING_CELLS && age <= row.newest; age++) {
			const uint64_t bucket = row.newest - age;

			if (bucket >= first && bucket - first < explained->bucket_count)
				explained->buckets[bucket - first].units += weir_row_spent(&row, age);
		}
		if (row.newest + spec.window_cells > present)
			explained->leased += row.lease;
	}
	explained->units = weir_row_units(&spec, reader->now_ns, &sum);
}

/* The packet's child and its parent. */
static void look_at_shares(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			   struct weir_explained_rule *explained)
{
	const uint32_t sets = weir_object_config(reader->sandbox->object)->sizes[WEIR_TABLE_FAIR_SHARES];
	const uint32_t set = sets ? weir_shared_set(flow->other, sets) : 0;
	const struct weir_fair_chunk *children, *parents;
	int way;

	explained->has_shares = true;
	if (!sets)
		return;
	children = weir_sandbox_find(reader->sandbox, WEIR_TABLE_FAIR_SHARES, set / WEIR_FAIR_SETS_PER_CHUNK);
	parents = weir_sandbox_find(reader->sandbox, WEIR_TABLE_FAIR_SHARES,
				    WEIR_FAIR_FIRST_PARENTS(sets) + weir_shared_set(flow->hash, WEIR_FAIR_PARENT_SETS));
	way = parents ? find_way(parents->parents.tag, WEIR_FAIR_PARENT_WAYS, weir_shared_tag(flow->hash)) : -1;
	if (way >= 0)
		explained->is_contended = weir_fair_look(explained->info, &parents->parents.parent[way], reader->now_ns,
							 &explained->shares);
	if (children) {
		const struct weir_fair_set *of = &children->children[set % WEIR_FAIR_SETS_PER_CHUNK];

		way = find_way(of->flows.tag, WEIR_FLOW_WAYS, weir_shared_tag(flow->other));
		if (way >= 0)
			weir_fair_look_at_child(explained->info, &of->child[way], reader->now_ns, &explained->child);
	}
}

static void look_at_occupy(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			   const struct weir_override_units *override, struct weir_explained_rule *explained)
{
	const uint64_t samples = explained->info->identity.samples;
	const uint64_t bucket_ns = samples ? explained->info->identity.interval_ns / samples : 0;
	const struct weir_occupy_window *window;
	uint32_t tag;
	uint64_t present;

	window = find_shared(reader, flow, &WEIR_OCCUPY_TABLES, &tag);
	explained->has_window = bucket_ns;
	if (!bucket_ns || !window || samples > WEIR_SAMPLES_MAX)
		return;
	present = reader->now_ns / bucket_ns + 2 * samples; /* one ring later, so none is negative */
	explained->bucket_count = 2 * samples;
	for (uint64_t i = 0; i < 2 * samples; i++) {
		const uint64_t bucket = present + 1 - samples + i;
		struct weir_explained_bucket *at = &explained->buckets[i];

		at->begins_ns = (int64_t)((bucket - 2 * samples) * bucket_ns - reader->now_ns);
		at->units = weir_occupy_units(window, tag, explained->info, bucket);
		*(i < samples ? &explained->units : &explained->occupied) += at->units;
	}
}

/* ---- TATs, tokens ---- */

static void look_at_tat(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			const struct weir_override_units *override, struct weir_explained_rule *explained)
{
	uint32_t tag;
	const uint64_t *word = find_shared(reader, flow, &WEIR_TAT_TABLES, &tag);

	explained->has_plan = true;
	/* TATs and penalties have the same word layout. Past times do not matter. */
	explained->tat_ns = word ? (int64_t)weir_penalty_left_ns(*word, tag, reader->now_ns) : 0;
}

/* An override's tokens replace the rule's. */
static struct weir_tokens tokens_in_force(const struct weir_rule *rule, const struct weir_override_units *override)
{
	struct weir_tokens tokens = rule->tokens;

	if (!override)
		return tokens;
	tokens.clock = (struct weir_token_clock){.rate = override->tokens.rate};
	tokens.capacity = override->tokens.capacity;
	tokens.mark = override->tokens.mark;
	return tokens;
}

static void look_at_tokens(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			   const struct weir_override_units *override, struct weir_explained_rule *explained)
{
	const struct weir_rule *rule = rule_of(reader->sandbox, flow);
	const struct weir_tokens tokens = tokens_in_force(rule, override);
	const struct weir_token_bucket *bucket;
	uint32_t tag;
	uint64_t lacks;

	bucket = find_shared(reader, flow, &WEIR_TOKEN_TABLES, &tag);
	if (!tokens.unit)
		return;
	lacks = bucket ? weir_bucket_lacks(bucket, &tokens, tag, reader->now_ns) : 0;
	explained->has_tokens = true;
	explained->tokens = lacks < tokens.capacity ? (double)(tokens.capacity - lacks) / tokens.unit : 0;
}

/* ---- connections, breakers, penalties ---- */

/* A resource without a flow key is one flow, so the rule's figures are the flow's. */
static void look_at_lone_connections(const struct weir_flow_reader *reader, const struct weir_rule *rule,
				     const struct weir_connection_clock *clock, struct weir_explained_rule *explained)
{
	const struct weir_instance *instance = reader->sandbox->instance;
	struct weir_connection_figures figures;
	struct weir_tables tables;

	if (!instance)
		return;
	tables = weir_instance_tables(instance);
	if (weir_connections_read_rule(&tables, rule->slot, rule->flows_slot, clock, &figures))
		return; /* shown as none, ignoring */
	explained->connections = figures.now;
	explained->learned = figures.learned;
}

static void look_at_connections(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
				const struct weir_override_units *override, struct weir_explained_rule *explained)
{
	const struct weir_config *config = weir_object_config(reader->sandbox->object);
	const struct weir_connection_clock clock = weir_connection_clock(config->connection_step_ns, reader->now_ns);
	const struct weir_rule *rule = rule_of(reader->sandbox, flow);
	const struct weir_connection_flow_set *set;
	struct weir_connection_figures figures;
	uint32_t tag = weir_shared_tag(flow->hash);
	int way;

	explained->has_connections = true;
	if (!rule->key_fields) {
		look_at_lone_connections(reader, rule, &clock, explained);
		return;
	}
	if (!(tag & ~WEIR_CONNECTION_CHECK)) /* as in weir_get_connection_flow() */
		tag |= WEIR_CONNECTION_CHECK + 1;
	set = find_set(reader->sandbox, WEIR_TABLE_CONNECTION_FLOWS, flow->hash);
	way = set ? find_way(set->flows.tag, WEIR_FLOW_WAYS, tag) : -1;
	if (way < 0)
		return;
	weir_connection_figures(&set->flow[way], set->flow[way].owner >> 32, &clock, &figures);
	explained->connections = figures.now;
	explained->learned = figures.learned;
}

static void look_at_breaker(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			    const struct weir_override_units *override, struct weir_explained_rule *explained)
{
	uint32_t tag;
	const struct weir_breaker *breaker = find_shared(reader, flow, &WEIR_BREAKER_TABLES, &tag);

	explained->has_breaker = true;
	if (breaker)
		weir_breaker_view(breaker, &explained->info->breaker, reader->now_ns, &explained->breaker);
}

/* The word of a rule's penalty begins its element. */
static void look_at_penalty(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			    struct weir_explained_rule *explained)
{
	const uint64_t *until;
	uint32_t tag;

	if (!rule_of(reader->sandbox, flow)->penalty_ms)
		return;
	until = find_shared(reader, flow, &WEIR_PENALTY_TABLES, &tag);
	explained->penalty_left_ns = until ? weir_penalty_left_ns(*until, tag, reader->now_ns) : 0;
}

/* ---- the threshold in force, and why ---- */

static bool overrides_labels(const struct weir_rule *rule)
{
	return rule->key_fields &
	       (rule->overrides_destination ? WEIR_KEY_LABEL(WEIR_KEY_DESTINATION) : WEIR_KEY_LABEL(WEIR_KEY_SOURCE));
}

/* Find the override of the flow. The trie returns it; the length of its prefix is found by looking up fewer and fewer
 * bits of the address.
 */
static bool find_override(const struct weir_sandbox *sandbox, const struct weir_rule *rule,
			  const struct weir_flow_key *key, struct weir_override_units *ret_units, uint8_t *ret_bits)
{
	const int fd = weir_object_own_map_fd(sandbox->object, "overrides");
	struct weir_override_key wanted = {.place = rule->place, .family = key->family};
	uint8_t bits = key->family == 6 ? 128 : 32;
	struct weir_override_units shorter;

	memcpy(wanted.address, rule->overrides_destination ? key->destination : key->source, sizeof(wanted.address));
	if (overrides_labels(rule)) {
		wanted.family = 0;
		wanted.prefix_bits = WEIR_OVERRIDE_LABEL_BITS;
		*ret_bits = 0;
		return !weir_map_look_up(fd, &wanted, ret_units);
	}
	wanted.prefix_bits = WEIR_OVERRIDE_FIXED_BITS + bits;
	if (weir_map_look_up(fd, &wanted, ret_units))
		return false;
	for (; bits; bits--) {
		wanted.prefix_bits = WEIR_OVERRIDE_FIXED_BITS + bits - 1;
		if (weir_map_look_up(fd, &wanted, &shorter) || shorter.units != ret_units->units)
			break;
	}
	*ret_bits = bits;
	return true;
}

/* WarmUp of a whole resource, whose state the controller keeps. */
static int look_at_stored(const struct weir_flow_reader *reader, struct weir_explained_rule *explained, uint32_t slot)
{
	struct weir_warm_state state;

	if (weir_map_look_up(reader->sandbox->instance->map_fd[WEIR_TABLE_WARM_STATES], &slot, &state))
		return -errno;
	explained->reason = WEIR_THRESHOLD_WARMING;
	explained->has_stored = true;
	explained->stored = state.stored;
	return 0;
}

static int look_at_moving(const struct weir_flow_reader *reader, const struct weir_rule *rule,
			  struct weir_explained_rule *explained)
{
	const struct weir_controller_report *controller = reader->controller;

	if (!controller) {
		explained->reason = WEIR_THRESHOLD_UNKNOWN;
		return 0;
	}
	explained->threshold = controller->thresholds[rule->place];
	explained->reason = WEIR_THRESHOLD_SAFE;
	if (controller->state != WEIR_CONTROLLER_RUNNING)
		return 0;
	if (explained->info->strategy == WEIR_STRATEGY_WARM_UP)
		return look_at_stored(reader, explained, rule->slot);
	explained->reason = controller->memory_err ? WEIR_THRESHOLD_NO_READING : WEIR_THRESHOLD_BY_MEMORY;
	return 0;
}

/* What the flow has used, by its rule's kind. */
static void (*const look_at[WEIR_KIND_COUNT])(const struct weir_flow_reader *reader,
					      const struct weir_harness_flow *flow,
					      const struct weir_override_units *override,
					      struct weir_explained_rule *explained) = {
	[WEIR_KIND_WINDOW] = look_at_window,	       [WEIR_KIND_ASSOCIATED] = look_at_window,
	[WEIR_KIND_OCCUPY] = look_at_occupy,	       [WEIR_KIND_THROTTLE] = look_at_tat,
	[WEIR_KIND_TOKENS] = look_at_tokens,	       [WEIR_KIND_BREAKER] = look_at_breaker,
	[WEIR_KIND_CONNECTIONS] = look_at_connections,
};

int weir_read_flow_state(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
			 struct weir_explained_rule *explained)
{
	const struct weir_rule *rule = rule_of(reader->sandbox, flow);
	struct weir_override_units units;
	bool is_override = false;
	int err = 0;

	explained->reason = WEIR_THRESHOLD_AS_WRITTEN;
	explained->threshold = rule->threshold & WEIR_THRESHOLD_MASK;
	if (explained->info->strategy == WEIR_STRATEGY_WARM_UP) {
		explained->stored_max = explained->info->warm_up.max;
		explained->stored_warning = explained->info->warm_up.warning;
	}
	if (explained->info->cluster && reader->controller) {
		explained->threshold = reader->controller->thresholds[rule->place];
		explained->reason = WEIR_THRESHOLD_SHARED;
	} else if (explained->info->moves) {
		err = look_at_moving(reader, rule, explained);
	} else if (rule->has_overrides &&
		   find_override(reader->sandbox, rule, &flow->key, &units, &explained->override_bits)) {
		is_override = true;
		explained->reason = WEIR_THRESHOLD_OVERRIDE;
		explained->threshold = units.units;
		explained->is_override_by_label = overrides_labels(rule);
	}
	look_at_penalty(reader, flow, explained);
	if (rule->bar == WEIR_BAR_LEVEL)
		look_at_shares(reader, flow, explained);
	if (look_at[rule->kind % WEIR_KIND_COUNT])
		look_at[rule->kind % WEIR_KIND_COUNT](reader, flow, is_override ? &units : NULL, explained);
	return err;
}

int weir_read_warm_up(const struct weir_flow_reader *reader, const struct weir_harness_flow *flow,
		      struct weir_explained_rule *explained)
{
	const struct weir_rule *rule = rule_of(reader->sandbox, flow);
	const uint32_t sets = weir_object_config(reader->sandbox->object)->sizes[WEIR_TABLE_WARMING_FLOWS];
	uint32_t index = sets ? (uint32_t)flow->hash & (sets - 1) : 0;
	struct weir_warming_set set;
	int way;

	if (!rule->warms_flows || !sets)
		return 0;
	if (weir_map_look_up(weir_object_map_fd(reader->sandbox->object, WEIR_TABLE_WARMING_FLOWS), &index, &set))
		return -errno;
	way = find_way(set.flows.tag, WEIR_FLOW_WAYS, weir_shared_tag(flow->hash));
	if (way < 0)
		return 0;
	explained->reason = WEIR_THRESHOLD_WARMING;
	explained->threshold = set.flow[way].units & WEIR_THRESHOLD_MASK;
	explained->has_stored = true;
	explained->stored = set.flow[way].stored;
	return 0;
}
