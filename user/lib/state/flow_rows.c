// SPDX-License-Identifier: GPL-2.0-only
/* Flows in the rows of windows: the rows of all CPUs combined, flow by flow. */
#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "instance/instance.h"
#include "state/flow_keys.h"
#include "state/flow_scan.h"
#include "state/rows.h"
#include "tables/rule_kind.h"

/* ---- rules and their rows ---- */

bool weir_flows_is_in_use(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow;
}

/* Is this a rule of the user's with rows of its own? Other rules use connections, TATs, the rows of a shadow window, or
 * a window that all CPUs share.
 */
static bool has_rows(const struct weir_rule_info *rule)
{
	return weir_flows_is_in_use(rule) && weir_has_window(rule);
}

#define SEVERAL (WEIR_SLOT_UNKNOWN - 1)

static void note_rows(struct scan *scan, uint32_t slot)
{
	const struct weir_rule_info *rule = &scan->instance->rules[slot];
	const uint32_t specs = scan->instance->info.spec_count;

	for (uint32_t place = 0; place < WEIR_ROW_FORMATS; place++) {
		uint32_t *sole = &scan->sole_rules[place * specs + rule->spec];

		if (rule->storage == weir_row_formats[place].storage && rule->spec < specs)
			*sole = *sole == WEIR_SLOT_UNKNOWN ? slot : SEVERAL;
	}
}

int weir_flows_find_sole_rules(struct scan *scan)
{
	const size_t count = (size_t)WEIR_ROW_FORMATS * scan->instance->info.spec_count;

	scan->sole_rules = calloc(count + 1, sizeof(*scan->sole_rules));
	if (!scan->sole_rules)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		scan->sole_rules[i] = WEIR_SLOT_UNKNOWN;
	for (uint32_t slot = 0; slot < scan->instance->info.rule_slots; slot++)
		if (has_rows(&scan->instance->rules[slot]))
			note_rows(scan, slot);
	return 0;
}

/* ---- the busiest flows so far ---- */

double weir_flow_share(const struct weir_flow_use *use)
{
	if (!use->threshold) /* no queue, but a packet would have to wait: the flow is over its limit */
		return use->is_wait && use->has_threshold;
	return (double)use->units / use->threshold;
}

static int compare_uses(const void *left, const void *right)
{
	const struct weir_flow_use *a = left, *b = right;
	const double a_share = weir_flow_share(a), b_share = weir_flow_share(b);

	if (a_share != b_share)
		return a_share > b_share ? -1 : 1;
	return a->units > b->units ? -1 : a->units < b->units;
}

void weir_flows_keep_busiest(struct scan *scan)
{
	scan->use_count = weir_keep_first(scan->uses, scan->use_count, scan->most, sizeof(*scan->uses), compare_uses);
}

void weir_flows_add_use(struct scan *scan, const struct weir_flow_use *use)
{
	if (scan->rule_slot != WEIR_ANY_RULE && scan->rule_slot != use->rule_slot)
		return;
	scan->active++;
	scan->uses[scan->use_count++] = *use;
	if (scan->use_count == 2 * scan->most)
		weir_flows_keep_busiest(scan);
}

static uint64_t threshold_in_force(const struct scan *scan, uint32_t slot)
{
	uint32_t place = scan->instance->rules[slot].place;

	return place < scan->instance->rule_count ? scan->controller.thresholds[place] : 0;
}

/* ---- a flow's own threshold ---- */

/* Was the row evaluated against the rule as it was last loaded? If not, its word is about another threshold. Narrow
 * rows cannot hold an override's threshold.
 */
static bool has_threshold_of_load(const struct weir_rule_info *rule, uint64_t word)
{
	const uint8_t version = word >> WEIR_THRESHOLD_BITS;
	const uint8_t differs = version ^ rule->threshold_word >> WEIR_THRESHOLD_BITS;

	return !(rule->override_count ? differs & ~WEIR_VERSION_PLAIN : differs) &&
	       (rule->storage != WEIR_STORAGE_NARROW || version & WEIR_VERSION_PLAIN);
}

void weir_flows_find_threshold(const struct scan *scan, const struct piece *pieces, size_t count,
			       struct weir_flow_use *use)
{
	const struct weir_rule_info *rule = &scan->instance->rules[use->rule_slot];
	const struct piece *latest = NULL;

	use->has_threshold = true;
	use->threshold = threshold_in_force(scan, use->rule_slot);
	if (!rule->override_count && !weir_warms_flows(rule))
		return;
	if (rule->override_count && use->has_key &&
	    !weir_overrides_find(scan->overrides_fd, rule, &use->key, &use->threshold))
		return;
	for (size_t i = 0; i < count; i++)
		if (has_threshold_of_load(rule, pieces[i].threshold) && (!latest || pieces[i].newest > latest->newest))
			latest = &pieces[i];
	if (!latest) {
		use->has_threshold = false;
		use->threshold = 0;
	} else if (rule->storage != WEIR_STORAGE_NARROW) {
		use->threshold = latest->threshold & WEIR_THRESHOLD_MASK;
	}
}

/* ---- rows ---- */

/*
 * The time at which rows that have just been read are evaluated. It must not be before the time of any row: buckets
 * that began later would count together with those that they replaced, and windows would look fuller than they ever
 * were. If it is later, a window only looks emptier by what has left it meanwhile.
 */
static void read_clock(struct scan *scan)
{
	scan->now_ns = weir_host_now_ns();
}

static void collect_row(struct scan *scan, const struct weir_row *row, uint32_t set)
{
	const struct weir_window_spec *spec = &scan->instance->specs[row->spec];
	struct piece *piece = &scan->pieces[scan->piece_count];

	if (row->spec >= scan->instance->info.spec_count || !spec->bucket_ns)
		return;
	*piece = (struct piece){
		.tag = row->tag,
		.set = set,
		.spec = row->spec,
		.newest = row->newest,
		.threshold = row->threshold,
	};
	weir_row_add(spec, scan->now_ns, row, &piece->sum);
	if (piece->sum.rest || piece->sum.oldest)
		scan->piece_count++;
}

/* ---- shadow windows ---- */

/* Show a window once for each rule that reads it (AssociatedResource). */
static void add_shadowed(struct scan *scan, const struct weir_rule_info *shadow, const struct weir_named_flow *name,
			 uint64_t units)
{
	const struct weir_instance *instance = scan->instance;

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const uint32_t slot = instance->rule_order[i];
		struct weir_flow_use use = {
			.rule_slot = slot, .units = units, .is_whole = !shadow->identity.key_fields};

		if (scan->shadows[i] != shadow)
			continue;
		if (name) {
			use.has_key = true;
			use.key = name->key;
		}
		weir_flows_find_threshold(scan, NULL, 0, &use);
		weir_flows_add_use(scan, &use);
	}
}

/* Rows of shadow windows are never evaluated, so their word has no units. Only the rules that read them have names. */
static bool is_of_shadow(const struct scan *scan, const struct piece *piece, const struct weir_named_flow *name,
			 enum weir_flow_place place)
{
	if (name)
		return weir_reads_shadow(&scan->instance->rules[name->rule_slot]);
	return place == WEIR_FLOW_WIDE && !(piece->threshold & WEIR_THRESHOLD_MASK);
}

/* The shadow window with this window spec: the one that the named rule reads, or the only one with that spec. */
static const struct weir_rule_info *find_shadow(const struct scan *scan, uint32_t spec,
						const struct weir_named_flow *name)
{
	const struct weir_rule_info *found = NULL;

	for (uint32_t i = 0; i < scan->instance->rule_count; i++) {
		const struct weir_rule_info *shadow = scan->shadows[i];

		if (!shadow || shadow->storage != WEIR_STORAGE_WIDE || shadow->spec != spec)
			continue;
		if (name && scan->instance->rule_order[i] == name->rule_slot)
			return shadow;
		if (found && found != shadow && !name)
			return NULL;
		found = shadow;
	}
	return name ? NULL : found;
}

static void add_shadowed_flow(struct scan *scan, uint32_t spec, const struct weir_named_flow *name, uint64_t units)
{
	const struct weir_rule_info *shadow = find_shadow(scan, spec, name);
	const struct weir_flow_use unknown = {.rule_slot = WEIR_SLOT_UNKNOWN, .units = units};

	if (shadow)
		add_shadowed(scan, shadow, name, units);
	else if (scan->has_shadows && !name)
		weir_flows_add_use(scan, &unknown);
}

int weir_flows_find_shadows(struct scan *scan)
{
	const struct weir_instance *instance = scan->instance;

	scan->shadows = calloc(instance->rule_count + 1, sizeof(*scan->shadows));
	if (!scan->shadows)
		return -ENOMEM;
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		scan->shadows[i] = weir_shadow_of(instance, &instance->rules[instance->rule_order[i]]);
		scan->has_shadows |= scan->shadows[i] != NULL;
	}
	return 0;
}

/* ---- from rows to flows ---- */

static int compare_pieces(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;

	if (a->set != b->set)
		return a->set < b->set ? -1 : 1;
	return a->tag < b->tag ? -1 : a->tag > b->tag;
}

void weir_flows_set_name(struct weir_flow_use *use, const struct weir_named_flow *name)
{
	if (!name)
		return;
	use->rule_slot = name->rule_slot;
	use->has_key = true;
	use->key = name->key;
}

static void add_flow(struct scan *scan, const struct piece *pieces, size_t count, enum weir_flow_place place)
{
	const struct weir_named_flow *name = weir_flow_keys_find(&scan->keys, place, pieces->set, pieces->tag);
	struct weir_flow_use use = {};
	struct weir_row_sum sum = {};

	for (size_t i = 0; i < count; i++) {
		sum.rest += pieces[i].sum.rest;
		sum.oldest += pieces[i].sum.oldest;
	}
	use.units = weir_row_units(&scan->instance->specs[pieces->spec], scan->now_ns, &sum);
	if (is_of_shadow(scan, pieces, name, place)) {
		add_shadowed_flow(scan, pieces->spec, name, use.units);
		return;
	}
	/* The only rule whose rows look like this, if there is exactly one. */
	use.rule_slot = scan->sole_rules[place * scan->instance->info.spec_count + pieces->spec];
	if (use.rule_slot == SEVERAL)
		use.rule_slot = WEIR_SLOT_UNKNOWN;
	weir_flows_set_name(&use, name);
	if (use.rule_slot != WEIR_SLOT_UNKNOWN) {
		/* The rule was removed by a reload, and nothing reads its windows any more. */
		if (!has_rows(&scan->instance->rules[use.rule_slot]))
			return;
		weir_flows_find_threshold(scan, pieces, count, &use);
	}
	weir_flows_add_use(scan, &use);
}

/* Both candidate sets of a flow are in the same chunk, so the flows of a chunk are complete. */
static void add_flows_of_chunk(struct scan *scan, enum weir_flow_place place)
{
	size_t first = 0, next;

	qsort(scan->pieces, scan->piece_count, sizeof(*scan->pieces), compare_pieces);
	for (; first < scan->piece_count; first = next) {
		for (next = first + 1; next < scan->piece_count; next++)
			if (compare_pieces(&scan->pieces[first], &scan->pieces[next]))
				break;
		add_flow(scan, &scan->pieces[first], next - first, place);
	}
	scan->piece_count = scan->counted_pieces = 0;
}

int weir_flows_scan_chunk(uint32_t index, const void *values, int cpus, void *data)
{
	struct scan *scan = data;
	const struct weir_row_format *format = &weir_row_formats[scan->place];

	read_clock(scan);
	for (int cpu = 0; cpu < cpus; cpu++) {
		const char *chunk = (const char *)values + (size_t)cpu * WEIR_CHUNK_BYTES;

		for (uint32_t i = 0; i < format->sets_per_chunk * WEIR_WAYS; i++) {
			const void *value = chunk + (size_t)i * format->row_bytes;
			const uint32_t set = index * format->sets_per_chunk + i / WEIR_WAYS;
			struct weir_row row;

			if (!*(const uint32_t *)value) /* its tag */
				continue;
			row = format->read(value);
			collect_row(scan, &row, weir_canonical_set(scan->place, set, row.tag));
		}
		scan->rows_by_cpu[cpu] += scan->piece_count - scan->counted_pieces;
		scan->counted_pieces = scan->piece_count;
	}
	add_flows_of_chunk(scan, scan->place);
	return 0;
}

int weir_flows_scan_lone_rows(uint32_t slot, const void *values, int cpus, void *data)
{
	const struct weir_wide_row *rows = values;
	struct scan *scan = data;
	const struct weir_rule_info *rule = &scan->instance->rules[slot];
	struct weir_flow_use use = {.rule_slot = slot, .is_whole = true};
	const struct weir_window_spec *spec;
	struct weir_row_sum sum = {};

	if (rule->state != WEIR_SLOT_USED || !(rule->is_shadow || has_rows(rule)) ||
	    rule->storage != WEIR_STORAGE_LONE || rule->spec >= scan->instance->info.spec_count)
		return 0;
	spec = &scan->instance->specs[rule->spec];
	read_clock(scan);
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct weir_row row = weir_row_of_wide(&rows[cpu]);

		weir_row_add(spec, scan->now_ns, &row, &sum);
	}
	use.units = weir_row_units(spec, scan->now_ns, &sum);
	use.has_threshold = true;
	use.threshold = threshold_in_force(scan, slot);
	if (use.units && rule->is_shadow)
		add_shadowed(scan, rule, NULL, use.units);
	else if (use.units)
		weir_flows_add_use(scan, &use);
	return 0;
}
