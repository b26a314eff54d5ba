// SPDX-License-Identifier: GPL-2.0-only
#include "state/flow_keys.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/top_drops.h"
#include "tables/flow_hash.h"
#include "tables/rule_kind.h"

struct scan {
	const struct weir_instance *instance;
	struct weir_flow_keys keys;
	size_t room;
};

/* ---- places ---- */

uint32_t weir_canonical_set(enum weir_flow_place place, uint32_t set, uint32_t tag)
{
	uint32_t other;

	if (place >= WEIR_FLOW_OF_KIND) /* a flow in shared tables has only one set */
		return set;
	other = WEIR_OTHER_SET(set, tag, weir_row_formats[place].page_sets);
	return set < other ? set : other;
}

static bool is_window_of(const struct weir_rule_info *shadow, const struct weir_rule_info *rule)
{
	return shadow->state == WEIR_SLOT_USED && shadow->is_shadow && !weir_has_connections(shadow) &&
	       !strcmp(shadow->resource_name, rule->ref_resource_name) &&
	       shadow->identity.interval_ns == rule->identity.interval_ns &&
	       shadow->identity.samples == rule->identity.samples && shadow->identity.window == rule->identity.window &&
	       shadow->identity.counts_bytes == rule->identity.counts_bytes;
}

/* A rule that observes may have a window of its own, which then has the rule's name (core/compile/shadows.c). */
const struct weir_rule_info *weir_shadow_of(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	const struct weir_rule_info *shared = NULL;

	if (!weir_reads_shadow(rule))
		return NULL;
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++) {
		const struct weir_rule_info *shadow = &instance->rules[slot];

		if (!is_window_of(shadow, rule))
			continue;
		if (!strcmp(shadow->name, rule->name))
			return shadow;
		if (strchr(shadow->name, ';'))
			shared = shadow;
	}
	return shared;
}

static const enum weir_table_id tables_of_kinds[] = {
#define SHARED_KIND(identifier, name, lone, flows, ...) [WEIR_KIND_##identifier] = WEIR_TABLE_##flows,
#define KIND(identifier, ...) [WEIR_KIND_##identifier] = WEIR_TABLE_NONE,
#include "weir_kinds.def"
};

/* The table for this type of place. */
static enum weir_table_id table_of(enum weir_flow_place place)
{
	static const enum weir_table_id rows[] = {
		[WEIR_FLOW_NARROW] = WEIR_TABLE_NARROW_FLOWS,
		[WEIR_FLOW_MEDIUM] = WEIR_TABLE_MEDIUM_FLOWS,
		[WEIR_FLOW_WIDE] = WEIR_TABLE_WIDE_FLOWS,
	};

	return place < WEIR_FLOW_OF_KIND ? rows[place] : tables_of_kinds[place - WEIR_FLOW_OF_KIND];
}

/* The type of place where flows of the rule are, or were, kept. Returns false for rules that are not handled here. */
static bool find_place(const struct weir_rule_info *rule, enum weir_flow_place *ret_place)
{
	const enum weir_kind_id kind = weir_kind_id_of_info(rule);

	if (tables_of_kinds[kind] != WEIR_TABLE_NONE)
		*ret_place = WEIR_FLOW_OF_KIND + kind;
	else if (rule->storage == WEIR_STORAGE_NARROW)
		*ret_place = WEIR_FLOW_NARROW;
	else if (rule->storage == WEIR_STORAGE_MEDIUM)
		*ret_place = WEIR_FLOW_MEDIUM;
	else if (rule->storage == WEIR_STORAGE_WIDE)
		*ret_place = WEIR_FLOW_WIDE;
	else
		return false;
	return true;
}

/* ---- names ---- */

static int compare_known(const void *left, const void *right)
{
	const struct weir_named_flow *a = left, *b = right;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	return a->set < b->set ? -1 : a->set > b->set;
}

static void add_known(struct scan *scan, enum weir_flow_place place, uint32_t set, uint32_t tag, uint32_t rule_slot,
		      const struct weir_flow_key *key)
{
	if (scan->keys.count < scan->room)
		scan->keys.flow[scan->keys.count++] = (struct weir_named_flow){
			.place = place,
			.tag = tag,
			.set = weir_canonical_set(place, set, tag),
			.rule_slot = rule_slot,
			.key = *key,
		};
}

static int collect_key_samples(uint32_t key, const void *values, int cpus, void *data)
{
	const struct weir_key_sample_chunk *chunks = values;
	struct scan *scan = data;
	enum weir_flow_place place;

	for (int cpu = 0; cpu < cpus; cpu++)
		for (uint32_t i = 0; i < WEIR_KEY_SAMPLES_PER_CHUNK; i++) {
			const struct weir_key_sample *sample = &chunks[cpu].sample[i];

			if (sample->tag && sample->rule_slot < scan->instance->info.rule_slots &&
			    find_place(&scan->instance->rules[sample->rule_slot], &place))
				add_known(scan, place, sample->set, sample->tag, sample->rule_slot, &sample->key);
		}
	return 0;
}

/* Add the hash, tag and set by which a flow is found, computed as by weir_flow_id() in bpf/packet/flow.h and in
 * bpf/kinds/flow_set.h.
 */
static void add_hash(struct scan *scan, const struct weir_rule_info *rule, enum weir_flow_place place, uint64_t hash,
		     uint32_t rule_slot, const struct weir_flow_key *key)
{
	const uint32_t sets = scan->instance->info.tables[table_of(place)].size;
	uint32_t tag = weir_shared_tag(hash);

	if (place == WEIR_FLOW_NARROW || place == WEIR_FLOW_MEDIUM) {
		tag = hash >> 32 & ~(WEIR_SPECS_NARROW - 1u);
		tag = (tag ? tag : WEIR_SPECS_NARROW) | (rule->spec & (WEIR_SPECS_NARROW - 1u));
	}
	if (sets)
		add_known(scan, place, weir_shared_set(hash, sets), tag, rule_slot, key);
}

/* The keys of dropped flows are always known, even if other flows have been sampled since. An associated rule reads the
 * window of another rule, under whose slot the same key has another hash.
 */
static void collect_dropped(const struct weir_dropped_flow *dropped, void *data)
{
	struct scan *scan = data;
	const struct weir_instance *instance = scan->instance;
	const struct weir_rule_info *rule = &instance->rules[dropped->rule_slot], *shadow;
	enum weir_flow_place place;
	uint64_t hash;

	if (dropped->rule_slot >= instance->info.rule_slots || rule->state != WEIR_SLOT_USED ||
	    !rule->identity.key_fields)
		return;
	shadow = weir_shadow_of(instance, rule);
	if (shadow && shadow->storage == WEIR_STORAGE_WIDE) {
		hash = weir_hash_flow(instance->info.seed, shadow - instance->rules, shadow->spec, &dropped->key);
		add_hash(scan, shadow, WEIR_FLOW_WIDE, hash, dropped->rule_slot, &dropped->key);
	} else if (!shadow && find_place(rule, &place)) {
		add_hash(scan, rule, place, dropped->hash, dropped->rule_slot, &dropped->key);
	}
}

static void read_top_drops(struct scan *scan, int cpus)
{
	const struct weir_instance *instance = scan->instance;
	struct weir_top_drops top_drops;

	const struct weir_top_drops_maps maps = weir_top_drops_of(instance);

	if (instance->is_incompatible[WEIR_TABLE_TOP_DROPS] ||
	    weir_top_drops_map(&top_drops, &maps, cpus * WEIR_TOP_DROPS_SETS, false))
		return;
	weir_top_drops_visit(&top_drops, weir_host_now_ns(), collect_dropped, scan);
	weir_top_drops_unmap(&top_drops);
}

int weir_flow_keys_read(const struct weir_instance *instance, int cpus, struct weir_flow_keys *ret_keys)
{
	struct scan scan = {.instance = instance};
	int err;

	scan.room = ((size_t)WEIR_KEY_SAMPLE_CHUNKS * WEIR_KEY_SAMPLES_PER_CHUNK +
		     (size_t)WEIR_TOP_DROPS_SETS * WEIR_TOP_DROPS_WAYS) *
		    cpus;
	scan.keys.flow = calloc(scan.room, sizeof(*scan.keys.flow));
	if (!scan.keys.flow)
		return -ENOMEM;
	err = weir_instance_scan(instance, WEIR_TABLE_KEY_SAMPLES, collect_key_samples, &scan);
	if (err) {
		weir_flow_keys_free(&scan.keys);
		return err;
	}
	read_top_drops(&scan, cpus);
	qsort(scan.keys.flow, scan.keys.count, sizeof(*scan.keys.flow), compare_known);
	*ret_keys = scan.keys;
	return 0;
}

void weir_flow_keys_free(struct weir_flow_keys *keys)
{
	free(keys->flow);
	*keys = (struct weir_flow_keys){};
}

const struct weir_named_flow *weir_flow_keys_find(const struct weir_flow_keys *keys, enum weir_flow_place place,
						  uint32_t set, uint32_t tag)
{
	const struct weir_named_flow wanted = {
		.place = place,
		.tag = tag,
		.set = weir_canonical_set(place, set, tag),
	};

	if (!tag || !keys->count)
		return NULL;
	return bsearch(&wanted, keys->flow, keys->count, sizeof(*keys->flow), compare_known);
}
