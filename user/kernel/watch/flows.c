// SPDX-License-Identifier: GPL-2.0-only
#include "watch/flows.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "control/controller.h"
#include "host/host.h"
#include "program/array.h"
#include "program/offenders.h"
#include "tables/rule_kind.h"
#include "tables/shared_sets.h"
#include "watch/borrowing.h"
#include "watch/overrides.h"
#include "watch/tokens.h"
#include "watch/rows.h"

/* What one row adds to its flow. */
struct piece {
	uint32_t tag, set; /* set: the lower of the flow's two, which stands for the flow */
	uint32_t timing;
	uint64_t newest, threshold; /* of the row */
	struct weir_row_sum sum;
};

/* In place of enum weir_storage: it has no rows, but a bucket of tokens, in one set. */
#define STORAGE_TOKENS 0x100u

/* A flow whose key was noted; sorted by the three that find it. */
struct noted {
	uint32_t storage, tag, set;
	const struct weir_talker *talker;
};

struct scan {
	int cpus;
	const struct weir_instance *instance;
	uint64_t now_ns;			  /* of the rows at hand */
	struct weir_controller_report controller; /* has the thresholds in force */
	struct weir_talker *talkers;
	struct noted *noted;
	size_t noted_count, talker_count;
	struct piece *pieces;		    /* of the chunk at hand */
	size_t piece_count, counted_pieces; /* counted: in rows_by_cpu */
	/* Twice `most` entries: full, it is sorted and its lesser half forgotten. */
	struct weir_flow_use *uses;
	size_t use_count, most;
	uint64_t active;
	uint64_t *rows_by_cpu; /* of the table at hand: those whose windows are not empty */
	struct weir_table_use narrow, medium, wide;
	int overrides_fd;
};

/* ---- who is who ---- */

/* Both candidate sets of a flow give the same number. */
static uint32_t canonical_set(uint32_t set, uint32_t tag, uint32_t storage)
{
	uint32_t page_sets = storage == WEIR_STORAGE_WIDE     ? WEIR_WIDE_PAGE_SETS
			     : storage == WEIR_STORAGE_MEDIUM ? WEIR_MEDIUM_PAGE_SETS
							      : WEIR_NARROW_PAGE_SETS;
	uint32_t other = WEIR_OTHER_SET(set, tag, page_sets);

	return set < other ? set : other;
}

static int compare_noted(const void *left, const void *right)
{
	const struct noted *a = left, *b = right;

	if (a->storage != b->storage)
		return a->storage < b->storage ? -1 : 1;
	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	return a->set < b->set ? -1 : a->set > b->set;
}

static int collect_talkers(uint32_t key, const void *values, int cpus, void *data)
{
	const struct weir_talker_chunk *chunks = values;
	struct scan *scan = data;

	for (int cpu = 0; cpu < cpus; cpu++)
		for (uint32_t i = 0; i < WEIR_TALKERS_PER_CHUNK; i++) {
			const struct weir_talker *talker = &chunks[cpu].talker[i];

			if (talker->tag && talker->rule_slot < scan->instance->info.rule_slots)
				scan->talkers[scan->talker_count++] = *talker;
		}
	return 0;
}

/* A rule of the user's that keeps rows; others go by connections, by planned times, by the rows of a meter, or by a
 * window that all CPUs share.
 */
static bool has_rows(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_meter && weir_has_window(rule);
}

/* By what a flow with this hash is found in tables of rows: as weir_flow_id() of bpf/flow.h has it. */
static bool find_id(const struct weir_instance_info *info, const struct weir_rule_info *rule, uint64_t hash,
		    struct weir_talker *ret_id)
{
	uint32_t tag = hash >> 32, sets = info->wide_sets;

	if (rule->storage == WEIR_STORAGE_NARROW || rule->storage == WEIR_STORAGE_MEDIUM) {
		tag &= ~(WEIR_TIMINGS_NARROW - 1u);
		if (!tag)
			tag = WEIR_TIMINGS_NARROW;
		tag |= rule->timing & (WEIR_TIMINGS_NARROW - 1u);
		sets = rule->storage == WEIR_STORAGE_MEDIUM ? info->medium_sets : info->narrow_sets;
	} else if (rule->storage != WEIR_STORAGE_WIDE) {
		return false;
	}
	ret_id->tag = tag ? tag : 1;
	ret_id->set = (uint32_t)hash & (sets - 1);
	return sets;
}

static void collect_offender(const struct weir_offence *offence, void *data)
{
	struct scan *scan = data;
	const struct weir_rule_info *rule = &scan->instance->rules[offence->rule_slot];
	struct weir_talker talker = {.rule_slot = offence->rule_slot, .key = offence->key};

	if (offence->rule_slot >= scan->instance->info.rule_slots)
		return;
	if (weir_has_tokens(rule)) {
		talker.tag = weir_shared_tag(offence->hash);
		talker.set = weir_shared_set(offence->hash, scan->instance->info.token_sets);
		scan->talkers[scan->talker_count++] = talker;
	} else if (has_rows(rule) && find_id(&scan->instance->info, rule, offence->hash, &talker)) {
		scan->talkers[scan->talker_count++] = talker;
	}
}

/* Of flows that were dropped the key is known, whoever was noted since. */
static void read_offenders(struct scan *scan)
{
	const struct weir_instance *instance = scan->instance;
	struct weir_offenders offenders;

	if (instance->is_foreign[WEIR_MAP_OFFENDERS] ||
	    weir_offenders_map(&offenders, instance->map_fd[WEIR_MAP_OFFENDERS],
			       instance->map_fd[WEIR_MAP_OFFENDER_KEYS], scan->cpus * WEIR_OFFENDER_SETS))
		return;
	weir_offenders_visit(&offenders, weir_host_now_ns(), collect_offender, scan);
	weir_offenders_unmap(&offenders);
}

static int read_talkers(struct scan *scan)
{
	size_t most = (size_t)WEIR_TALKER_CHUNKS * WEIR_TALKERS_PER_CHUNK * scan->cpus +
		      (size_t)WEIR_OFFENDER_SETS * WEIR_OFFENDER_WAYS * scan->cpus;
	int err;

	scan->talkers = calloc(most, sizeof(*scan->talkers));
	scan->noted = calloc(most, sizeof(*scan->noted));
	if (!scan->talkers || !scan->noted)
		return -ENOMEM;
	err = weir_percpu_scan(scan->instance->map_fd[WEIR_MAP_TALKERS], WEIR_TALKER_CHUNKS,
			       sizeof(struct weir_talker_chunk), collect_talkers, scan);
	if (err)
		return err;
	read_offenders(scan);
	for (size_t i = 0; i < scan->talker_count; i++) {
		const struct weir_talker *talker = &scan->talkers[i];
		const struct weir_rule_info *rule = &scan->instance->rules[talker->rule_slot];
		const bool has_tokens = weir_has_tokens(rule);

		scan->noted[scan->noted_count++] = (struct noted){
			.storage = has_tokens ? STORAGE_TOKENS : rule->storage,
			.tag = talker->tag,
			.set = has_tokens ? talker->set : canonical_set(talker->set, talker->tag, rule->storage),
			.talker = talker,
		};
	}
	qsort(scan->noted, scan->noted_count, sizeof(*scan->noted), compare_noted);
	return 0;
}

/* The only rule whose rows look like this, when there is only one. */
static uint32_t guess_rule(const struct weir_instance *instance, uint32_t storage, uint32_t timing)
{
	uint32_t found = WEIR_SLOT_UNKNOWN;

	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++) {
		const struct weir_rule_info *rule = &instance->rules[slot];

		if (!has_rows(rule) || rule->storage != storage || rule->timing != timing)
			continue;
		if (found != WEIR_SLOT_UNKNOWN)
			return WEIR_SLOT_UNKNOWN;
		found = slot;
	}
	return found;
}

/* ---- the busiest so far ---- */

static int compare_uses(const void *left, const void *right)
{
	const struct weir_flow_use *a = left, *b = right;
	double a_share = a->threshold ? (double)a->units / a->threshold : 0;
	double b_share = b->threshold ? (double)b->units / b->threshold : 0;

	if (a_share != b_share)
		return a_share > b_share ? -1 : 1;
	return a->units > b->units ? -1 : a->units < b->units;
}

static void keep_busiest(struct scan *scan)
{
	qsort(scan->uses, scan->use_count, sizeof(*scan->uses), compare_uses);
	if (scan->use_count > scan->most)
		scan->use_count = scan->most;
}

static void add_use(struct scan *scan, const struct weir_flow_use *use)
{
	scan->active++;
	scan->uses[scan->use_count++] = *use;
	if (scan->use_count == 2 * scan->most)
		keep_busiest(scan);
}

static uint64_t threshold_in_force(const struct scan *scan, uint32_t slot)
{
	uint32_t place = scan->instance->rules[slot].place;

	return place < scan->instance->rule_count ? scan->controller.thresholds[place] : 0;
}

/* ---- a flow's own threshold ---- */

/* The program's note in a version, for rules with overrides: this flow is under none (bpf/threshold.h). */
#define VERSION_PLAIN 0x80u

/* Whether the row was judged by the rule as it was last loaded: else its word is of another threshold. */
static bool is_of_load(const struct weir_rule_info *rule, uint64_t word)
{
	uint8_t differs = (word ^ rule->threshold_word) >> WEIR_THRESHOLD_BITS;

	return !(rule->override_count ? differs & ~VERSION_PLAIN : differs);
}

/* Narrow rows cannot hold what an override says. */
static bool tells_threshold(const struct weir_rule_info *rule, const struct piece *piece)
{
	return is_of_load(rule, piece->threshold) &&
	       (rule->storage != WEIR_STORAGE_NARROW || piece->threshold >> WEIR_THRESHOLD_BITS & VERSION_PLAIN);
}

/* What holds for a flow with these rows. One that warms up goes by the row judged last, and so does one under an
 * override whose key was not noted.
 */
static void find_threshold(const struct scan *scan, const struct piece *pieces, size_t count, struct weir_flow_use *use)
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
		if (tells_threshold(rule, &pieces[i]) && (!latest || pieces[i].newest > latest->newest))
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
 * The time by which rows that have just been read are judged. It must not be before that of any of them: buckets that
 * have begun since would count together with those that they pushed out, and windows look fuller than they ever were.
 * The other way round a window looks emptier by what slid out of it meanwhile.
 */
static void read_clock(struct scan *scan)
{
	scan->now_ns = weir_host_now_ns();
}

static void collect_row(struct scan *scan, const struct weir_row *row, uint32_t set)
{
	const struct weir_timing *timing = &scan->instance->timings[row->timing];
	struct piece *piece = &scan->pieces[scan->piece_count];

	if (row->timing >= scan->instance->info.timing_count || !timing->bucket_ns)
		return;
	*piece = (struct piece){
		.tag = row->tag,
		.set = set,
		.timing = row->timing,
		.newest = row->newest,
		.threshold = row->threshold,
	};
	weir_row_add(timing, scan->now_ns, row, &piece->sum);
	if (piece->sum.rest || piece->sum.oldest)
		scan->piece_count++;
}

static void collect_narrow(struct scan *scan, const struct weir_narrow_row *narrow, uint32_t set)
{
	struct weir_row row = weir_row_of_narrow(narrow);

	collect_row(scan, &row, canonical_set(set, row.tag, WEIR_STORAGE_NARROW));
}

static void collect_medium(struct scan *scan, const struct weir_medium_row *medium, uint32_t set)
{
	struct weir_row row = weir_row_of_medium(medium);

	collect_row(scan, &row, canonical_set(set, row.tag, WEIR_STORAGE_MEDIUM));
}

static void collect_wide(struct scan *scan, const struct weir_wide_row *wide, uint32_t set)
{
	struct weir_row row = weir_row_of_wide(wide);

	collect_row(scan, &row, canonical_set(set, row.tag, WEIR_STORAGE_WIDE));
}

/* ---- from rows to flows ---- */

static int compare_pieces(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;

	if (a->set != b->set)
		return a->set < b->set ? -1 : 1;
	return a->tag < b->tag ? -1 : a->tag > b->tag;
}

/* A meter's rows, which nobody notes, were never judged: their word is of no units. */
static bool is_of_meter(const struct piece *piece, const struct noted *noted, uint32_t storage)
{
	return storage == WEIR_STORAGE_WIDE && !noted && !(piece->threshold & WEIR_THRESHOLD_MASK);
}

static void add_flow(struct scan *scan, const struct piece *pieces, size_t count, uint32_t storage)
{
	const struct noted key = {.storage = storage, .tag = pieces->tag, .set = pieces->set};
	const struct noted *noted = bsearch(&key, scan->noted, scan->noted_count, sizeof(*scan->noted), compare_noted);
	struct weir_flow_use use = {};
	struct weir_row_sum sum = {};

	if (is_of_meter(pieces, noted, storage))
		return;
	for (size_t i = 0; i < count; i++) {
		sum.rest += pieces[i].sum.rest;
		sum.oldest += pieces[i].sum.oldest;
	}
	use.units = weir_row_units(&scan->instance->timings[pieces->timing], scan->now_ns, &sum);
	use.rule_slot = noted ? noted->talker->rule_slot : guess_rule(scan->instance, storage, pieces->timing);
	if (noted) {
		use.has_key = true;
		use.key = noted->talker->key;
	}
	if (use.rule_slot != WEIR_SLOT_UNKNOWN) {
		/* A rule that a reload removed: nobody reads its windows any more. */
		if (!has_rows(&scan->instance->rules[use.rule_slot]))
			return;
		find_threshold(scan, pieces, count, &use);
	}
	add_use(scan, &use);
}

/* Both sets of a flow are in the same chunk, so that a chunk's flows are complete. */
static void add_flows_of_chunk(struct scan *scan, uint32_t storage)
{
	size_t first = 0, next;

	qsort(scan->pieces, scan->piece_count, sizeof(*scan->pieces), compare_pieces);
	for (; first < scan->piece_count; first = next) {
		for (next = first + 1; next < scan->piece_count; next++)
			if (compare_pieces(&scan->pieces[first], &scan->pieces[next]))
				break;
		add_flow(scan, &scan->pieces[first], next - first, storage);
	}
	scan->piece_count = scan->counted_pieces = 0;
}

/* What has been collected of this chunk since the CPU before. */
static void count_rows(struct scan *scan, int cpu)
{
	scan->rows_by_cpu[cpu] += scan->piece_count - scan->counted_pieces;
	scan->counted_pieces = scan->piece_count;
}

static int scan_narrow_chunk(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_narrow_chunk *chunks = values;
	struct scan *scan = data;

	read_clock(scan);
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(chunks->row); i++)
			if (chunks[cpu].row[i].tag)
				collect_narrow(scan, &chunks[cpu].row[i],
					       index * WEIR_NARROW_SETS_PER_CHUNK + i / WEIR_WAYS);
		count_rows(scan, cpu);
	}
	add_flows_of_chunk(scan, WEIR_STORAGE_NARROW);
	return 0;
}

static int scan_medium_chunk(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_medium_chunk *chunks = values;
	struct scan *scan = data;

	read_clock(scan);
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(chunks->row); i++)
			if (chunks[cpu].row[i].tag)
				collect_medium(scan, &chunks[cpu].row[i],
					       index * WEIR_MEDIUM_SETS_PER_CHUNK + i / WEIR_WAYS);
		count_rows(scan, cpu);
	}
	add_flows_of_chunk(scan, WEIR_STORAGE_MEDIUM);
	return 0;
}

static int scan_wide_chunk(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_wide_chunk *chunks = values;
	struct scan *scan = data;

	read_clock(scan);
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(chunks->row); i++)
			if (chunks[cpu].row[i].tag)
				collect_wide(scan, &chunks[cpu].row[i],
					     index * WEIR_WIDE_SETS_PER_CHUNK + i / WEIR_WAYS);
		count_rows(scan, cpu);
	}
	add_flows_of_chunk(scan, WEIR_STORAGE_WIDE);
	return 0;
}

static int scan_lone_rows(uint32_t slot, const void *values, int cpus, void *data)
{
	const struct weir_wide_row *rows = values;
	struct scan *scan = data;
	const struct weir_rule_info *rule = &scan->instance->rules[slot];
	struct weir_flow_use use = {.rule_slot = slot};
	const struct weir_timing *timing;
	struct weir_row_sum sum = {};

	if (!has_rows(rule) || rule->storage != WEIR_STORAGE_LONE || rule->timing >= scan->instance->info.timing_count)
		return 0;
	timing = &scan->instance->timings[rule->timing];
	read_clock(scan);
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct weir_row row = weir_row_of_wide(&rows[cpu]);

		weir_row_add(timing, scan->now_ns, &row, &sum);
	}
	use.units = weir_row_units(timing, scan->now_ns, &sum);
	use.has_threshold = true;
	use.threshold = threshold_in_force(scan, slot);
	if (use.units)
		add_use(scan, &use);
	return 0;
}

/* ---- windows that lend ---- */

static void add_borrowing(const struct weir_borrowing_use *found, void *data)
{
	struct scan *scan = data;
	const struct noted key = {
		.storage = WEIR_STORAGE_LONE,
		.tag = found->tag,
		.set = canonical_set(found->set, found->tag, WEIR_STORAGE_LONE),
	};
	const struct noted *noted = NULL;
	struct weir_flow_use use = {
		.rule_slot = found->is_ambiguous ? WEIR_SLOT_UNKNOWN : found->slot,
		.units = found->units,
		.borrowed = found->borrowed,
	};

	if (found->tag)
		noted = bsearch(&key, scan->noted, scan->noted_count, sizeof(*scan->noted), compare_noted);
	if (noted && weir_lends(&scan->instance->rules[noted->talker->rule_slot])) {
		use.rule_slot = noted->talker->rule_slot;
		use.has_key = true;
		use.key = noted->talker->key;
	}
	if (use.rule_slot != WEIR_SLOT_UNKNOWN)
		find_threshold(scan, NULL, 0, &use);
	add_use(scan, &use);
}

/* ---- buckets of tokens ---- */

static void add_tokens(const struct weir_tokens_use *found, void *data)
{
	struct scan *scan = data;
	const struct noted key = {.storage = STORAGE_TOKENS, .tag = found->tag, .set = found->set};
	const struct noted *noted = NULL;
	struct weir_flow_use use = {
		.rule_slot = found->slot,
		.units = found->lacks,
		.has_threshold = true,
		.threshold = found->burst,
	};

	if (found->tag)
		noted = bsearch(&key, scan->noted, scan->noted_count, sizeof(*scan->noted), compare_noted);
	if (noted && noted->talker->rule_slot == found->slot) {
		use.has_key = true;
		use.key = noted->talker->key;
	}
	add_use(scan, &use);
}

/* ---- the contract ---- */

static int prepare(struct scan *scan)
{
	scan->cpus = weir_host_cpus();
	if (scan->cpus < 0)
		return scan->cpus;
	/* Narrow chunks have the most rows. */
	scan->pieces =
		calloc((size_t)ARRAY_SIZE(((struct weir_narrow_chunk *)0)->row) * scan->cpus, sizeof(*scan->pieces));
	scan->uses = calloc(2 * scan->most, sizeof(*scan->uses));
	scan->rows_by_cpu = calloc(scan->cpus, sizeof(*scan->rows_by_cpu));
	return scan->pieces && scan->uses && scan->rows_by_cpu ? 0 : -ENOMEM;
}

/* A table of rows: `sets` sets in chunks of chunk_sets. */
static int scan_rows(struct scan *scan, enum weir_instance_map map, uint32_t sets, uint32_t chunk_sets,
		     size_t chunk_bytes, weir_percpu_visit *visit, struct weir_table_use *use)
{
	int err;

	memset(scan->rows_by_cpu, 0, scan->cpus * sizeof(*scan->rows_by_cpu));
	err = weir_percpu_scan(scan->instance->map_fd[map], sets / chunk_sets, chunk_bytes, visit, scan);
	use->room = (uint64_t)sets * WEIR_WAYS;
	for (int cpu = 0; cpu < scan->cpus; cpu++)
		if (scan->rows_by_cpu[cpu] > use->rows)
			use->rows = scan->rows_by_cpu[cpu];
	return err;
}

static int scan_tables(struct scan *scan)
{
	const struct weir_instance_info *info = &scan->instance->info;
	int err;

	err = scan_rows(scan, WEIR_MAP_NARROW_FLOWS, info->narrow_sets, WEIR_NARROW_SETS_PER_CHUNK,
			sizeof(struct weir_narrow_chunk), scan_narrow_chunk, &scan->narrow);
	if (!err)
		err = scan_rows(scan, WEIR_MAP_MEDIUM_FLOWS, info->medium_sets, WEIR_MEDIUM_SETS_PER_CHUNK,
				sizeof(struct weir_medium_chunk), scan_medium_chunk, &scan->medium);
	if (!err)
		err = scan_rows(scan, WEIR_MAP_WIDE_FLOWS, info->wide_sets, WEIR_WIDE_SETS_PER_CHUNK,
				sizeof(struct weir_wide_chunk), scan_wide_chunk, &scan->wide);
	if (!err)
		err = weir_percpu_scan(scan->instance->map_fd[WEIR_MAP_LONE_ROWS], info->rule_slots,
				       sizeof(struct weir_wide_row), scan_lone_rows, scan);
	if (!err)
		err = weir_borrowing_scan(scan->instance, scan->now_ns, add_borrowing, scan);
	if (!err)
		err = weir_tokens_scan(scan->instance, weir_host_now_ns(), add_tokens, scan);
	return err;
}

static void free_scan(struct scan *scan)
{
	free(scan->controller.thresholds);
	free(scan->talkers);
	free(scan->noted);
	free(scan->pieces);
	free(scan->uses);
	free(scan->rows_by_cpu);
	weir_closep(&scan->overrides_fd);
}

#define FLOW_TABLES                                                                                                    \
	(WEIR_TABLE_BIT(WEIR_MAP_NARROW_FLOWS) | WEIR_TABLE_BIT(WEIR_MAP_MEDIUM_FLOWS) |                               \
	 WEIR_TABLE_BIT(WEIR_MAP_WIDE_FLOWS) | WEIR_TABLE_BIT(WEIR_MAP_LONE_ROWS) | WEIR_TABLE_BIT(WEIR_MAP_TALKERS))

#define TOKEN_TABLES (WEIR_TABLE_BIT(WEIR_MAP_TOKEN_RESOURCES) | WEIR_TABLE_BIT(WEIR_MAP_TOKEN_FLOWS))
#define BORROWING_TABLES (WEIR_TABLE_BIT(WEIR_MAP_BORROWING_RESOURCES) | WEIR_TABLE_BIT(WEIR_MAP_BORROWING_FLOWS))

int weir_flows_read(const struct weir_instance *instance, size_t most, struct weir_flows *ret_flows,
		    struct weir_diag *diag)
{
	_cleanup_(free_scan) struct scan scan = {
		.instance = instance,
		.most = most ? most : 1,
		.overrides_fd = weir_overrides_open(instance),
	};
	int err;

	err = weir_instance_expect_tables(instance,
					  FLOW_TABLES | (weir_borrowing_is_used(instance) ? BORROWING_TABLES : 0) |
						  (weir_tokens_are_used(instance) ? TOKEN_TABLES : 0),
					  "the flows", diag);
	if (!err)
		err = weir_controller_look(instance, &scan.controller, diag);
	if (err)
		return err;
	err = prepare(&scan);
	if (!err)
		err = read_talkers(&scan);
	if (!err)
		err = scan_tables(&scan);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the flows of instance '%s'", instance->name);
	keep_busiest(&scan);
	*ret_flows = (struct weir_flows){
		.busiest = TAKE_PTR(scan.uses),
		.count = scan.use_count,
		.active = scan.active,
		.narrow = scan.narrow,
		.medium = scan.medium,
		.wide = scan.wide,
	};
	return 0;
}

void weir_flows_free(struct weir_flows *flows)
{
	free(flows->busiest);
	*flows = (struct weir_flows){};
}
