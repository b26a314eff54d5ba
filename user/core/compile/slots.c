// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots: where a rule's counters and windows live, and what it keeps over a reload. A slot outlives
 * loads; the place of a rule in the files does not.
 */
#include "compile/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/digest.h"
#include "base/util.h"
#include "thresholds/tokens.h"
#include "weir_borrowing.h"
#include "weir_window.h"

/* The least that an instance is made for, so that small files can grow by reload. Chosen, not derived. */
#define SLOTS_MIN 1024u
/* span_ns 0: six years. */
#define SPAN_NS_DEFAULT (6ull * 365 * 86400 * WEIR_NSEC_PER_SEC)
/* The counters of a resource hold the last 60 seconds, and one begun. */
#define RESOURCE_COOLING_NS (61 * WEIR_NSEC_PER_SEC)

/* From compiling a load until no CPU runs the program before it, at the longest. Chosen, not derived. */
#define REPLACED_NS (60 * WEIR_NSEC_PER_SEC)

#define NSEC_PER_MSEC 1000000ull
#define NONE 0xffffffffu

/* What is decided about one rule. */
struct plan {
	uint32_t slot;	 /* NONE: needs a fresh one */
	uint32_t timing; /* NONE: not yet numbered */
	uint8_t storage; /* enum weir_storage */
	uint8_t version; /* of its threshold */
	uint64_t versions_since_ns;
	struct weir_tokens tokens; /* if it has them */
	const char *why_anew;	   /* there was such a rule, and its slot is not kept; else NULL */
};

struct slotting {
	const struct weir_ruleset *ruleset;   /* with the meters */
	const struct weir_terms *terms;	      /* one a rule */
	const struct weir_previous *previous; /* never NULL */
	struct weir_image *image;
	struct weir_diag *diag;
	uint64_t now_ns, span_ns;
	enum weir_emptied emptied;
	struct plan *plans;	  /* one a rule */
	uint32_t *resource_slots; /* one a resource */
};

static const struct weir_terms *terms_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return &slotting->terms[rule - slotting->ruleset->rules];
}

/* Without an interval there is no timing: number 0 stands there, and nobody looks. */
static bool has_timing(const struct weir_ruleset_rule *rule)
{
	return weir_kind_of(rule)->has_interval;
}

static uint64_t bucket_ns(const struct weir_ruleset_rule *rule)
{
	return rule->interval_ns / rule->samples;
}

static uint64_t queueing_ns_max(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	return kind->longest_wait_ns ? kind->longest_wait_ns(rule, &slotting->ruleset->settings) : 0;
}

static const struct weir_ruleset_resource *resource_of(const struct slotting *slotting,
						       const struct weir_ruleset_rule *rule)
{
	return weir_resource_of(slotting->ruleset, rule);
}

static bool has_flows(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return weir_flow_of(slotting->ruleset, rule)->fields;
}

static struct weir_rule_identity identity_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const struct weir_flow *flow = weir_flow_of(slotting->ruleset, rule);
	struct weir_rule_identity identity;

	/* Compared as memory, so no byte may be left unset. */
	memset(&identity, 0, sizeof(identity));
	identity.metric = rule->metric;
	if (weir_kind_of(rule)->has_interval) {
		identity.interval_ns = rule->interval_ns;
		identity.samples = rule->samples;
		identity.window = rule->window;
		identity.counts_bytes = rule->counts_bytes;
	}
	if (weir_kind_of(rule)->is_breaker) {
		identity.interval_ns = rule->breaker.interval_ns;
		identity.samples = rule->breaker.buckets;
	}
	identity.key_fields = flow->fields;
	if (flow->fields & WEIR_KEY_SOURCE)
		memcpy(identity.source_bits, flow->source_bits, sizeof(identity.source_bits));
	if (flow->fields & WEIR_KEY_DESTINATION)
		memcpy(identity.destination_bits, flow->destination_bits, sizeof(identity.destination_bits));
	return identity;
}

/* Strict and smooth windows look one bucket further back than their interval. */
static uint64_t window_memory_ns(const struct weir_rule_identity *identity)
{
	return identity->interval_ns + (identity->samples ? identity->interval_ns / identity->samples : 0);
}

/* ---- storage ---- */

/* Whether a row of this storage, narrow or medium, can hold this rule's window, given a timing number that its tag can
 * name. A meter has no threshold, so its counts have no bound.
 */
static bool fits(const struct slotting *slotting, const struct weir_ruleset_rule *rule, enum weir_storage storage)
{
	const struct weir_terms *terms = terms_of(slotting, rule);
	uint64_t units_most = WEIR_MEDIUM_THRESHOLD_MAX;

	if (storage == WEIR_STORAGE_NARROW) {
		if (rule->strategy != WEIR_STRATEGY_DIRECT || rule->cluster || rule->counts_bytes)
			return false;
		units_most = WEIR_NARROW_THRESHOLD_MAX;
	}
	return terms->has_window && !terms->is_meter && has_flows(slotting, rule) && terms->units_max <= units_most &&
	       bucket_ns(rule) >= WEIR_NARROW_BUCKET_NS_MIN && slotting->span_ns / bucket_ns(rule) < 1ull << 32;
}

/* ---- what is kept ---- */

/* Names of at most WEIR_NAME_BYTES, perhaps without a zero: maps are not to be trusted. */
struct named_slot {
	const char *name;
	const char *resource_name; /* of a rule; meters of different resources share their name */
	uint32_t slot;
};

static int compare_named_slots(const void *left, const void *right)
{
	const struct named_slot *a = left, *b = right;

	return strncmp(a->name, b->name, WEIR_NAME_BYTES)
		       ?: strncmp(a->resource_name, b->resource_name, WEIR_NAME_BYTES);
}

static uint32_t find_named_slot(const struct named_slot *named, size_t count, const char *name,
				const char *resource_name)
{
	const struct named_slot wanted = {.name = name, .resource_name = resource_name}, *found;

	found = count ? bsearch(&wanted, named, count, sizeof(*named), compare_named_slots) : NULL;
	return found ? found->slot : NONE;
}

/* The slots in use before this load, by the names of their rule and its resource. */
static int name_rule_slots(const struct weir_previous *previous, struct named_slot **ret_named, size_t *ret_count)
{
	struct named_slot *named;
	size_t count = 0;
	uint32_t i;

	named = calloc(previous->rule_slots + 1ul, sizeof(*named));
	if (!named)
		return -ENOMEM;
	for (i = 0; i < previous->rule_slots; i++) {
		if (previous->rules[i].state == WEIR_SLOT_USED)
			named[count++] =
				(struct named_slot){previous->rules[i].name, previous->rules[i].resource_name, i};
	}
	qsort(named, count, sizeof(*named), compare_named_slots);
	*ret_named = named;
	*ret_count = count;
	return 0;
}

static int name_resource_slots(const struct weir_previous *previous, struct named_slot **ret_named, size_t *ret_count)
{
	struct named_slot *named;
	size_t count = 0;
	uint32_t i;

	named = calloc(previous->resource_slots + 1ul, sizeof(*named));
	if (!named)
		return -ENOMEM;
	for (i = 0; i < previous->resource_slots; i++) {
		if (previous->resources[i].state == WEIR_SLOT_USED)
			named[count++] = (struct named_slot){previous->resources[i].name, "", i};
	}
	qsort(named, count, sizeof(*named), compare_named_slots);
	*ret_named = named;
	*ret_count = count;
	return 0;
}

/* The first member in which two identities differ, as rule files call it. */
static const char *name_difference(const struct weir_rule_identity *a, const struct weir_rule_identity *b)
{
	if (a->metric != b->metric)
		return "another metricType";
	if (a->interval_ns != b->interval_ns)
		return "another statIntervalInMs";
	if (a->samples != b->samples)
		return "another sampleCount";
	if (a->window != b->window)
		return "another window";
	return a->counts_bytes != b->counts_bytes ? "another unit" : "another flow key";
}

/* What makes the rule another than the one described; NULL: it is the same. */
static const char *find_difference(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
				   const struct weir_rule_info *info)
{
	struct weir_rule_identity identity = identity_of(slotting, rule);

	/* What a breaker counts depends on these. */
	if (weir_is_breaker(info) && info->breaker.strategy != rule->breaker.strategy)
		return "another strategy";
	if (weir_is_breaker(info) && info->breaker.max_rt_ns != rule->breaker.max_rt_ns)
		return "another maxAllowedRtMs";
	if (memcmp(&info->identity, &identity, sizeof(identity)))
		return name_difference(&info->identity, &identity);
	/* An observer's meter has its name: an earlier load may have had a rule of that name on that resource. */
	if (info->is_meter != terms_of(slotting, rule)->is_meter)
		return "it was no rule of its own";
	if (weir_kind_of_info(info)->has_interval && info->timing >= slotting->previous->timing_count)
		return "its description is damaged";
	return NULL;
}

/*
 * Tables that all CPUs share are searched by slot and key, and remember a flow until its place is wanted. Whether
 * nothing that they may know of the slot's flows would still matter to this rule: planned times so old that no
 * packet waits for them, warm-up so old that the flow is all cold again.
 */
static bool is_forgotten(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			 const struct weir_rule_info *info)
{
	const struct weir_terms *terms = terms_of(slotting, rule);
	const struct weir_kind *kind = weir_kinds[terms->kind];
	uint64_t idle_ns;

	if (!info->flows_until_ns || !has_flows(slotting, rule))
		return true;
	idle_ns = slotting->now_ns > info->flows_until_ns ? slotting->now_ns - info->flows_until_ns : 0;
	if (kind->flow_memory_ns && idle_ns < kind->flow_memory_ns(rule))
		return false;
	if (!terms->warms_flows)
		return true;
	/* From no token at all, by a refill a second; the second begun, and the sync of what had passed. */
	return terms->warm_up.refill_below &&
	       idle_ns / WEIR_NSEC_PER_SEC >= terms->warm_up.max / terms->warm_up.refill + 3;
}

/* What tells one list of overrides from another, whatever their order: a sum of what each of them is hashed to. */
static uint64_t digest_of_overrides(const struct weir_ruleset_rule *rule)
{
	const uint64_t field = rule->override_field;
	uint64_t sum = 0;

	for (size_t i = 0; i < rule->override_count; i++) {
		const struct weir_override *override = &rule->overrides[i];
		uint64_t digest = weir_digest(WEIR_DIGEST_BASIS, &field, sizeof(field));

		digest = weir_digest(digest, &override->prefix.family, sizeof(override->prefix.family));
		digest = weir_digest(digest, &override->prefix.bits, sizeof(override->prefix.bits));
		digest = weir_digest(digest, override->prefix.address, sizeof(override->prefix.address));
		digest = weir_digest(digest, &override->threshold_micro, sizeof(override->threshold_micro));
		sum += digest *
		       (digest >> 32 | 1); /* FNV is nearly linear, and a sum of what is linear hides changes */
	}
	return rule->override_count && !sum ? 1 : sum;
}

/* Whether rows and flows may go on by what they noted under the rule's last load. */
static bool has_same_limits(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			    const struct weir_rule_info *info)
{
	const struct weir_terms *terms = terms_of(slotting, rule);

	return (info->threshold_word & WEIR_THRESHOLD_MASK) == terms->units &&
	       info->overrides_digest == digest_of_overrides(rule) &&
	       !(terms->warms_flows && memcmp(&info->warm_up, &terms->warm_up, sizeof(terms->warm_up)));
}

/* A row notes a version for a window, a flow that warms up for a second. What was noted by the program before, until
 * the links had this load's: REPLACED_NS.
 */
static bool are_versions_forgotten(const struct slotting *slotting, const struct weir_rule_info *info)
{
	return !info->versions_since_ns ||
	       slotting->now_ns > info->versions_since_ns + window_memory_ns(&info->identity) + REPLACED_NS;
}

static void warn_of_no_version(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			       const struct weir_rule_info *info)
{
	uint64_t memory_ns = window_memory_ns(&info->identity) + REPLACED_NS;
	unsigned long long seconds = memory_ns / WEIR_NSEC_PER_SEC + 1;

	weir_diag_warning(slotting->diag, &rule->place, NULL, NULL,
			  "rule '%s' has had %u limits within one window: until it is loaded again in %llu s or later, "
			  "its packets are judged anew one by one, which costs time",
			  rule->name, WEIR_VERSIONS / 2, seconds);
}

/*
 * Version of the threshold: rows that know of another must ask again whether they are full, what they have leased,
 * which override they are under; flows that warm up compute anew. Versions come round, and a row may have slept
 * meanwhile. So there are two halves of them, and the first one of a half is taken only when nothing remembers the
 * half any more: when it was left, the time was noted. Otherwise the threshold goes without a version, and costs a
 * fresh look with every packet, until a later load.
 */
static void plan_version(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			 const struct weir_rule_info *info, struct plan *plan)
{
	uint8_t version = info->threshold_word >> WEIR_THRESHOLD_BITS, next = version % WEIR_VERSIONS + 1;
	bool is_forgotten = are_versions_forgotten(slotting, info);

	plan->version = version;
	plan->versions_since_ns = info->versions_since_ns;
	if (version == WEIR_VERSION_NONE ? !is_forgotten : has_same_limits(slotting, rule, info))
		return;
	plan->version = next;
	if (version > WEIR_VERSIONS || next % (WEIR_VERSIONS / 2) == 1) {
		plan->versions_since_ns = slotting->now_ns;
		if (version > WEIR_VERSIONS || !is_forgotten)
			plan->version = WEIR_VERSION_NONE;
	}
	if (plan->version == WEIR_VERSION_NONE && terms_of(slotting, rule)->has_window)
		warn_of_no_version(slotting, rule, info);
}

/* Why rows of this storage cannot hold the rule's window, which they have held so far. */
static const char *why_no_fit(const struct weir_ruleset_rule *rule, enum weir_storage storage)
{
	if (storage == WEIR_STORAGE_NARROW && (rule->strategy != WEIR_STRATEGY_DIRECT || rule->cluster))
		return "rows of a threshold that moves are larger than those that hold them";
	return "its threshold, or that of an override, outgrew the rows that hold them";
}

static void tell_emptied(const struct slotting *slotting, const struct weir_ruleset_rule *rule, const char *why)
{
	const char *hint =
		"'weir reload --fresh FILE...' does so, without a gap: each of its flows may then have a whole "
		"threshold within its first interval, beside what it has had";

	switch (slotting->emptied) {
	case WEIR_EMPTIED_REFUSED:
		weir_diag_error(slotting->diag, &rule->place, NULL, hint,
				"rule '%s' would start with empty windows: %s", rule->name, why);
		break;
	case WEIR_EMPTIED_TO_BE_REFUSED:
		weir_diag_warning(slotting->diag, &rule->place, NULL, hint,
				  "a reload is refused, as rule '%s' would start with empty windows: %s", rule->name,
				  why);
		break;
	case WEIR_EMPTIED_TOLD:
		weir_diag_warning(slotting->diag, &rule->place, NULL, NULL, "rule '%s' starts with empty windows: %s",
				  rule->name, why);
	}
}

/* Why a rule that is the same begins with empty windows all the same, which is told; NULL: it does not. */
static const char *starts_anew(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			       const struct weir_rule_info *info)
{
	bool shares_flows = weir_shares_flows(info);
	const char *why = NULL;

	/* Cells of these rows could not hold it, and windows cannot move between tables. */
	if (weir_has_window(info) && terms_of(slotting, rule)->has_window &&
	    (info->storage == WEIR_STORAGE_NARROW || info->storage == WEIR_STORAGE_MEDIUM) &&
	    !fits(slotting, rule, info->storage))
		why = why_no_fit(rule, info->storage);
	else if (!shares_flows && !is_forgotten(slotting, rule, info))
		why = "at its place there are still flows of a rule before it";
	if (why)
		tell_emptied(slotting, rule, why);
	return why;
}

static void keep_rule(struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t slot, struct plan *plan)
{
	const struct weir_rule_info *info = &slotting->previous->rules[slot];
	const struct weir_terms *terms = terms_of(slotting, rule);

	plan->why_anew = find_difference(slotting, rule, info) ?: starts_anew(slotting, rule, info);
	if (plan->why_anew)
		return;
	plan->slot = slot;
	plan_version(slotting, rule, info, plan);
	slotting->image->kept_rules += !terms->is_meter;
	/* With no windows to keep, the best rows for them are chosen anew. */
	if (weir_has_window(info) && terms->has_window) {
		plan->storage = info->storage;
		plan->timing = info->timing;
	}
}

static int keep_rules(struct slotting *slotting)
{
	_cleanup_(weir_freep) struct named_slot *named = NULL;
	const struct weir_ruleset_rule *rule;
	size_t count, i, mistakes;
	uint32_t slot;

	if (name_rule_slots(slotting->previous, &named, &count))
		return weir_compile_no_memory(slotting->diag);
	mistakes = slotting->diag->errors;
	for (i = 0; i < slotting->ruleset->rule_count; i++) {
		rule = &slotting->ruleset->rules[i];
		slotting->plans[i] = (struct plan){.slot = NONE, .timing = NONE, .version = 1};
		slot = find_named_slot(named, count, rule->name, resource_of(slotting, rule)->name);
		if (slot != NONE)
			keep_rule(slotting, rule, slot, &slotting->plans[i]);
	}
	return slotting->diag->errors > mistakes ? -EINVAL : 0;
}

static int keep_resources(struct slotting *slotting)
{
	_cleanup_(weir_freep) struct named_slot *named = NULL;
	size_t count, i;

	if (name_resource_slots(slotting->previous, &named, &count))
		return weir_compile_no_memory(slotting->diag);
	for (i = 0; i < slotting->ruleset->resource_count; i++)
		slotting->resource_slots[i] = find_named_slot(named, count, slotting->ruleset->resources[i].name, "");
	return 0;
}

/* ---- timings ---- */

/*
 * Sixteen buckets before now, so that the first row looks back into numbers that exist. A clock younger
 * than that starts at 0, and everything since then counts (docs/semantics.md, 1): the program clamps.
 */
static struct weir_timing timing_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	uint64_t bucket = slotting->now_ns / bucket_ns(rule);
	struct weir_timing timing = {
		.bucket_ns = bucket_ns(rule),
		.base_bucket = bucket > 16 ? bucket - 16 : 0,
		.window_cells = weir_window_cells(rule->window, rule->samples),
		.window = rule->window,
		.goes_by_ticks = weir_goes_by_ticks(rule->window, bucket_ns(rule)),
	};

	_Static_assert(WEIR_RING_CELLS <= 16, "a window must not look back beyond the base");
	return timing;
}

/* The number of this rule's timing, which is added when it is new and below `limit`. NONE: it is not to be had. */
static int number_timing(struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t limit,
			 uint32_t *ret_number)
{
	struct weir_timing wanted = timing_of(slotting, rule), *timing;
	struct weir_image *image = slotting->image;
	uint32_t i;

	for (i = 0; i < image->timing_count; i++) {
		timing = &image->timings[i];
		if (timing->bucket_ns == wanted.bucket_ns && timing->window == wanted.window &&
		    timing->window_cells == wanted.window_cells)
			break;
	}
	*ret_number = i < limit ? i : NONE;
	if (i < image->timing_count || i >= limit)
		return 0;
	timing = weir_array_add((void **)&image->timings, image->timing_count, sizeof(*timing));
	if (!timing)
		return weir_compile_no_memory(slotting->diag);
	*timing = wanted;
	image->timing_count++;
	return 0;
}

/* Rows in the tables are judged by the timings published before: they stay for ever. */
static int keep_timings(struct slotting *slotting)
{
	struct weir_image *image = slotting->image;
	struct weir_timing *timing;
	uint32_t i;

	for (i = 0; i < slotting->previous->timing_count; i++) {
		timing = weir_array_add((void **)&image->timings, i, sizeof(*timing));
		if (!timing)
			return weir_compile_no_memory(slotting->diag);
		*timing = slotting->previous->timings[i];
		image->timing_count = i + 1;
	}
	return 0;
}

/* The few numbers that narrow and medium rows can name go to the rules that could use them, those with the smallest
 * rows first; who gets none is wide.
 */
static int choose_storage(struct slotting *slotting, enum weir_storage storage)
{
	const struct weir_ruleset_rule *rule;
	struct plan *plan;
	size_t i;
	int err;

	for (i = 0; i < slotting->ruleset->rule_count; i++) {
		rule = &slotting->ruleset->rules[i];
		plan = &slotting->plans[i];
		if (plan->timing != NONE)
			continue;
		if (!has_timing(rule)) {
			plan->storage = WEIR_STORAGE_LONE;
			plan->timing = 0;
			continue;
		}
		plan->storage = has_flows(slotting, rule) && !weir_kind_of(rule)->lends
					? WEIR_STORAGE_WIDE
					: WEIR_STORAGE_LONE; /* of what lends no row is looked for */
		if (!fits(slotting, rule, storage))
			continue;
		err = number_timing(slotting, rule, WEIR_TIMINGS_NARROW, &plan->timing);
		if (err)
			return err;
		if (plan->timing != NONE)
			plan->storage = storage;
	}
	return 0;
}

/* Strangers are counted by the windows of the first timings alone. */
static int check_strangers(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t timing)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	if (!rule->aggregates || timing < WEIR_STRANGERS_TIMINGS || !has_flows(slotting, rule) ||
	    !(kind->keeps_window || kind->lends))
		return 0;
	return weir_diag_error(
		slotting->diag, &rule->place, NULL,
		slotting->previous->timing_count
			? "detach and attach again: a reload keeps the old ones"
			: "let more rules share statIntervalInMs, sampleCount and window, or put it first",
		"rule '%s' cannot have 'whenFull: aggregate': the rules before it have the %u kinds of "
		"window that it is for",
		rule->name, WEIR_STRANGERS_TIMINGS);
}

static int number_timings(struct slotting *slotting)
{
	const struct weir_ruleset_rule *rule;
	struct plan *plan;
	size_t i;
	int err;

	err = keep_timings(slotting);
	if (!err)
		err = choose_storage(slotting, WEIR_STORAGE_NARROW);
	if (!err)
		err = choose_storage(slotting, WEIR_STORAGE_MEDIUM);
	for (i = 0; !err && i < slotting->ruleset->rule_count; i++) {
		rule = &slotting->ruleset->rules[i];
		plan = &slotting->plans[i];
		if (plan->timing == NONE)
			err = number_timing(slotting, rule, WEIR_TIMINGS_MAX, &plan->timing);
		if (!err && plan->timing != NONE)
			err = check_strangers(slotting, rule, plan->timing);
		if (!err && plan->timing == NONE)
			err = weir_diag_error(
				slotting->diag, &rule->place, NULL,
				slotting->previous->timing_count
					? "detach and attach again: a reload keeps the old ones"
					: "let more rules share statIntervalInMs, sampleCount and window",
				"rule '%s' needs one more kind of window than the %d an instance can hold", rule->name,
				WEIR_TIMINGS_MAX);
	}
	return err;
}

/* ---- slots ---- */

static uint32_t capacity(uint32_t previous_slots, size_t needed)
{
	uint32_t slots = SLOTS_MIN;

	if (previous_slots)
		return previous_slots;
	while (slots < 2 * needed)
		slots *= 2;
	_Static_assert(!(WEIR_RULE_SLOTS_MAX & (WEIR_RULE_SLOTS_MAX - 1)) && WEIR_RULE_SLOTS_MAX >= 2 * WEIR_RULES_MAX,
		       "the program's hash has room for so many slots of rules");
	return slots;
}

static int make_room(struct slotting *slotting)
{
	const struct weir_previous *previous = slotting->previous;
	struct weir_image *image = slotting->image;

	image->rule_slots = capacity(previous->rule_slots, slotting->ruleset->rule_count);
	image->resource_slots = capacity(previous->resource_slots, slotting->ruleset->resource_count);
	image->rule_info = calloc(image->rule_slots, sizeof(*image->rule_info));
	image->resource_info = calloc(image->resource_slots, sizeof(*image->resource_info));
	image->fresh_rule_slots = calloc(image->rule_slots, sizeof(*image->fresh_rule_slots));
	image->fresh_resource_slots = calloc(image->resource_slots, sizeof(*image->fresh_resource_slots));
	if (!image->rule_info || !image->resource_info || !image->fresh_rule_slots || !image->fresh_resource_slots)
		return weir_compile_no_memory(slotting->diag);
	if (previous->rule_slots)
		memcpy(image->rule_info, previous->rules, previous->rule_slots * sizeof(*image->rule_info));
	if (previous->resource_slots)
		memcpy(image->resource_info, previous->resources,
		       previous->resource_slots * sizeof(*image->resource_info));
	return 0;
}

/* When nothing remembers a rule any more that is not used from now on. */
static uint64_t free_after_ns(const struct weir_rule_info *rule, const struct weir_previous *previous, uint64_t now_ns)
{
	const struct weir_kind *kind = weir_kind_of_info(rule);

	return now_ns + (kind->rule_memory_ns ? kind->rule_memory_ns(previous) : window_memory_ns(&rule->identity));
}

static void cool(struct weir_rule_info *rule, const struct weir_previous *previous, uint64_t now_ns)
{
	if (weir_shares_flows(rule))
		rule->flows_until_ns = now_ns + rule->queueing_ns_max;
	rule->state = WEIR_SLOT_COOLING;
	rule->free_after_ns = free_after_ns(rule, previous, now_ns);
}

static void cool_resource(struct weir_resource_info *resource, uint64_t now_ns)
{
	resource->state = WEIR_SLOT_COOLING;
	resource->free_after_ns = now_ns + RESOURCE_COOLING_NS;
}

void weir_previous_take_back(struct weir_previous *previous, const struct weir_rule_info *rules,
			     const struct weir_resource_info *resources, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < previous->rule_slots; i++) {
		bool was_used = rules[i].state == WEIR_SLOT_USED, is_used = previous->rules[i].state == WEIR_SLOT_USED;

		if (was_used && !is_used)
			previous->rules[i] = rules[i];
		else if (is_used && !was_used)
			cool(&previous->rules[i], previous, now_ns);
	}
	for (i = 0; i < previous->resource_slots; i++) {
		bool was_used = resources[i].state == WEIR_SLOT_USED;
		bool is_used = previous->resources[i].state == WEIR_SLOT_USED;

		if (was_used && !is_used)
			previous->resources[i] = resources[i];
		else if (is_used && !was_used)
			cool_resource(&previous->resources[i], now_ns);
	}
}

/* Everything that was in use starts cooling; describing the kept ones takes them back. */
static void cool_all(struct slotting *slotting)
{
	struct weir_image *image = slotting->image;
	uint32_t i;

	for (i = 0; i < image->rule_slots; i++)
		if (image->rule_info[i].state == WEIR_SLOT_USED)
			cool(&image->rule_info[i], slotting->previous, slotting->now_ns);
	for (i = 0; i < image->resource_slots; i++)
		if (image->resource_info[i].state == WEIR_SLOT_USED)
			cool_resource(&image->resource_info[i], slotting->now_ns);
}

static bool is_free(uint32_t state, uint64_t free_after_ns, uint64_t now_ns)
{
	return state == WEIR_SLOT_FREE || (state == WEIR_SLOT_COOLING && free_after_ns < now_ns);
}

static int too_few_slots(const struct slotting *slotting, const struct weir_place *place, const char *what,
			 const char *name, uint32_t slots)
{
	return weir_diag_error(slotting->diag, place, NULL,
			       "try again when the windows of what was removed are over, or detach and attach again",
			       "no room for %s '%s': the instance was attached with %u places, all of them taken", what,
			       name, slots);
}

static void describe_resource(struct slotting *slotting, size_t place, uint32_t slot)
{
	const struct weir_ruleset_resource *resource = &slotting->ruleset->resources[place];
	struct weir_resource_info *info = &slotting->image->resource_info[slot];

	memset(info, 0, sizeof(*info));
	strncpy(info->name, resource->name, sizeof(info->name) - 1);
	info->state = WEIR_SLOT_USED;
	info->place = place;
	info->rule_count = slotting->image->resources[place].rule_count;
	slotting->image->resources[place].slot = slot;
	slotting->image->resources[place].is_prioritised = resource->is_prioritized;
}

static int place_resources(struct slotting *slotting)
{
	const struct weir_ruleset *ruleset = slotting->ruleset;
	struct weir_image *image = slotting->image;
	uint32_t slot = 0;
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++) {
		if (slotting->resource_slots[i] != NONE)
			describe_resource(slotting, i, slotting->resource_slots[i]);
	}
	for (i = 0; i < ruleset->resource_count; i++) {
		if (slotting->resource_slots[i] != NONE)
			continue;
		while (slot < image->resource_slots &&
		       !is_free(image->resource_info[slot].state, image->resource_info[slot].free_after_ns,
				slotting->now_ns))
			slot++;
		if (slot == image->resource_slots)
			return too_few_slots(slotting, &ruleset->resources[i].place, "resource",
					     ruleset->resources[i].name, image->resource_slots);
		image->fresh_resource_slots[slot] = true;
		describe_resource(slotting, i, slot);
	}
	return 0;
}

static struct weir_breaker_terms breaker_terms(const struct weir_ruleset_rule *rule, uint64_t since_ns)
{
	const struct weir_breaker_fields *fields = &rule->breaker;

	return (struct weir_breaker_terms){
		.bucket_ns = fields->interval_ns / fields->buckets,
		.retry_ns = fields->retry_ns,
		.max_rt_ns = fields->max_rt_ns,
		.threshold_micro = rule->threshold_micro,
		.since_ns = since_ns,
		.min_requests = fields->min_requests,
		.probes = fields->probes,
		.buckets = fields->buckets,
		.strategy = fields->strategy,
	};
}

/* What the controller, status and the next load need to know of its strategy, behaviour and relation. */
static void describe_terms(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint64_t since_ns,
			   struct weir_rule_info *info)
{
	const struct weir_terms *terms = terms_of(slotting, rule);

	info->is_meter = terms->is_meter;
	info->strategy = rule->strategy;
	info->behavior = rule->behavior;
	info->relation = rule->relation;
	info->moves = terms->moves;
	info->cluster = rule->cluster;
	info->falls_back = rule->falls_back;
	info->system = rule->system;
	info->is_bbr = rule->is_bbr;
	info->aggregates = rule->aggregates;
	info->override_count = rule->override_count;
	info->overrides_destination = rule->override_count && rule->override_field == WEIR_KEY_DESTINATION;
	info->overrides_digest = digest_of_overrides(rule);
	info->families = resource_of(slotting, rule)->match.families;
	info->counts_whole = has_flows(slotting, rule) && !weir_counted_flow_of(slotting->ruleset, rule)->fields;
	info->queueing_ns_max = queueing_ns_max(slotting, rule);
	info->penalty_ms = rule->penalty_ms;
	info->penalty_ms_max = rule->penalty_ms_max;
	info->lends = rule->lends;
	if (weir_kind_of(rule)->is_breaker)
		info->breaker = breaker_terms(rule, since_ns);
	else
		info->warm_up = terms->warm_up;
	info->memory = terms->memory;
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		strncpy(info->ref_resource_name, slotting->ruleset->resources[rule->ref_resource].name,
			sizeof(info->ref_resource_name) - 1);
}

/* What tells this rule's buckets from those that another left at its slot. */
static uint32_t mark_of(const struct slotting *slotting, uint32_t slot)
{
	uint64_t digest = weir_digest(WEIR_DIGEST_BASIS, &slotting->now_ns, sizeof(slotting->now_ns));

	digest = weir_digest(digest, &slot, sizeof(slot));
	return (uint32_t)(digest ^ digest >> 32) | 1;
}

/* Buckets go on with what they lack, if they can. */
static void plan_tokens(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t slot,
			bool is_kept, struct plan *plan)
{
	plan->tokens = terms_of(slotting, rule)->tokens;
	if (!is_kept ||
	    !weir_tokens_continue(rule, &slotting->previous->rules[slot].tokens, slotting->now_ns, &plan->tokens))
		plan->tokens.mark = mark_of(slotting, slot);
}

static void describe_rule(struct slotting *slotting, size_t place, uint32_t slot)
{
	const struct weir_ruleset_rule *rule = &slotting->ruleset->rules[place];
	struct weir_rule_info *info = &slotting->image->rule_info[slot];
	uint64_t flows_until_ns = info->flows_until_ns, since_ns = slotting->now_ns;
	struct plan *plan = &slotting->plans[place];
	bool is_kept = plan->slot != NONE;

	/* A rule that keeps its slot keeps its breakers. */
	if (plan->slot != NONE && weir_is_breaker(info))
		since_ns = info->breaker.since_ns;

	plan->slot = slot;
	if (weir_kind_of(rule)->has_tokens)
		plan_tokens(slotting, rule, slot, is_kept, plan);
	memset(info, 0, sizeof(*info));
	strncpy(info->name, rule->name, sizeof(info->name) - 1);
	strncpy(info->resource_name, resource_of(slotting, rule)->name, sizeof(info->resource_name) - 1);
	info->identity = identity_of(slotting, rule);
	info->threshold_micro = rule->threshold_micro;
	info->threshold_word = WEIR_THRESHOLD_WORD(terms_of(slotting, rule)->units, plan->version);
	info->versions_since_ns = plan->versions_since_ns;
	info->flows_until_ns = flows_until_ns;
	info->state = WEIR_SLOT_USED;
	info->place = place;
	info->resource_slot =
		rule->resource == WEIR_NO_RESOURCE ? NONE : slotting->image->resources[rule->resource].slot;
	info->storage = plan->storage;
	info->timing = plan->timing;
	info->observes = rule->observes;
	info->tokens = plan->tokens;
	if (weir_kind_of(rule)->has_tokens)
		info->burst_micro = weir_tokens_burst_micro(rule, rule->threshold_micro);
	describe_terms(slotting, rule, since_ns, info);
}

/* The first slot from `slot` on that this rule may have, or the number of slots. */
static uint32_t find_slot(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t slot)
{
	const struct weir_image *image = slotting->image;
	const struct weir_rule_info *info;

	for (; slot < image->rule_slots; slot++) {
		info = &image->rule_info[slot];
		if (is_free(info->state, info->free_after_ns, slotting->now_ns) && is_forgotten(slotting, rule, info))
			break;
	}
	return slot;
}

static int too_few_rule_slots(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	bool is_meter = terms_of(slotting, rule)->is_meter;

	return too_few_slots(slotting, &rule->place, is_meter ? "a count of resource" : "rule",
			     is_meter ? resource_of(slotting, rule)->name : rule->name, slotting->image->rule_slots);
}

static int place_rules(struct slotting *slotting)
{
	const struct weir_ruleset *ruleset = slotting->ruleset;
	struct weir_image *image = slotting->image;
	uint32_t first = 0, slot;
	size_t i;

	for (i = 0; i < ruleset->rule_count; i++) {
		if (slotting->plans[i].slot != NONE)
			describe_rule(slotting, i, slotting->plans[i].slot);
	}
	for (i = 0; i < ruleset->rule_count; i++) {
		if (slotting->plans[i].slot != NONE)
			continue;
		while (first < image->rule_slots &&
		       !is_free(image->rule_info[first].state, image->rule_info[first].free_after_ns, slotting->now_ns))
			first++;
		slot = find_slot(slotting, &ruleset->rules[i], first);
		if (slot == image->rule_slots)
			return too_few_rule_slots(slotting, &ruleset->rules[i]);
		image->fresh_rule_slots[slot] = true;
		describe_rule(slotting, i, slot);
	}
	return 0;
}

/* ---- the program's own view ---- */

/* The mask of a prefix, in network order, over `words` 32-bit words. */
static void fill_mask(__be32 *mask, unsigned int words, unsigned int bits)
{
	unsigned int i;

	for (i = 0; i < words; i++, bits -= bits < 32 ? bits : 32)
		mask[i] = bits >= 32 ? 0xffffffffu : htonl(~(0xffffffffu >> bits));
}

/* Packets that a system rule is asked about. Connections are told by all their packets. */
static uint8_t work_of(enum weir_system_metric metric)
{
	switch (metric) {
	case WEIR_SYSTEM_CONCURRENCY:
		return WEIR_WORK_OPENING | WEIR_WORK_ESTABLISHED;
	case WEIR_SYSTEM_AVG_RT:
		return WEIR_WORK_OPENING;
	case WEIR_SYSTEM_LOAD:
	case WEIR_SYSTEM_INBOUND_QPS:
	case WEIR_SYSTEM_CPU_USAGE:
		return WEIR_WORK_OPENING | WEIR_WORK_OTHER;
	default:
		return 0;
	}
}

static void write_terms(const struct slotting *slotting, const struct weir_ruleset_rule *rule, const struct plan *plan,
			struct weir_rule *written)
{
	const struct weir_terms *terms = terms_of(slotting, rule);

	written->threshold = WEIR_THRESHOLD_WORD(terms->units, plan->version);
	written->kind = terms->kind;
	written->needs_allowed =
		weir_kinds[terms->kind]->needs_allowed || terms->moves || terms->warms_flows || rule->cluster;
	if (weir_kinds[terms->kind]->has_tokens)
		written->needs_allowed = false; /* what moves is its clock */
	written->threshold_moves = rule->cluster ? WEIR_MOVES_SHARED : terms->moves ? WEIR_MOVES_ALONE : WEIR_MOVES_NOT;
	written->warms_flows = terms->warms_flows;
	written->has_overrides = rule->override_count > 0;
	written->overrides_destination = written->has_overrides && rule->override_field == WEIR_KEY_DESTINATION;
	written->judges = work_of(rule->system);
	if (rule->metric == WEIR_METRIC_SIGNAL)
		written->signal = rule->system | (rule->is_bbr ? WEIR_SIGNAL_BBR : 0);
	written->meter = terms->meter;
	written->queueing_ns_max = queueing_ns_max(slotting, rule);
	written->penalty_ms = rule->penalty_ms;
	written->penalty_ms_max = rule->penalty_ms_max;
	if (weir_kinds[terms->kind]->lends)
		written->unit_bits = weir_borrowing_unit_bits(rule->interval_ns);
	written->cost = terms->cost;
	if (terms->warms_flows)
		written->warm_up = terms->warm_up;
	if (weir_kinds[terms->kind]->has_tokens)
		written->tokens = plan->tokens;
	if (weir_kinds[terms->kind]->is_breaker)
		written->breaker = slotting->image->rule_info[plan->slot].breaker;
}

static void write_timing(const struct weir_timing *timing, struct weir_rule *written)
{
	written->bucket_ns = timing->bucket_ns;
	written->base_bucket = timing->base_bucket;
	written->window = timing->window;
	written->goes_by_ticks = timing->goes_by_ticks;
	written->window_cells = timing->window_cells;
}

static void write_rule(const struct slotting *slotting, size_t place)
{
	const struct weir_ruleset_rule *rule = &slotting->ruleset->rules[place];
	const struct plan *plan = &slotting->plans[place];
	struct weir_rule_identity identity = identity_of(slotting, rule);
	struct weir_rule *written = &slotting->image->rules[place];

	if (has_timing(rule))
		write_timing(&slotting->image->timings[plan->timing], written);
	written->place = place;
	written->slot = plan->slot;
	written->timing = plan->timing;
	written->resource = rule->resource;
	written->storage = plan->storage;
	written->counts_bytes = rule->counts_bytes;
	written->observes = rule->observes;
	written->key_fields = identity.key_fields;
	fill_mask(&written->source_mask4, 1, identity.source_bits[0]);
	fill_mask(written->source_mask6, 4, identity.source_bits[1]);
	fill_mask(&written->destination_mask4, 1, identity.destination_bits[0]);
	fill_mask(written->destination_mask6, 4, identity.destination_bits[1]);
	write_terms(slotting, rule, plan, written);
}

/* What holds until a controller pushes something better. */
static void push_first(const struct weir_rule *rule, struct weir_pushed *pushed)
{
	pushed->word = rule->threshold;
	if (weir_kinds[rule->kind]->has_tokens)
		pushed->clock[0] = pushed->clock[1] = rule->tokens.clock;
	else
		pushed->cost[0] = pushed->cost[1] = rule->cost;
}

static int write_rules(struct slotting *slotting)
{
	const size_t count = slotting->ruleset->rule_count;
	struct weir_image *image = slotting->image;
	size_t i;

	image->rules = calloc(count + 1, sizeof(*image->rules));
	image->pushed = calloc(count + 1, sizeof(*image->pushed));
	image->why_anew = calloc(count + 1, sizeof(*image->why_anew));
	if (!image->rules || !image->pushed || !image->why_anew)
		return weir_compile_no_memory(slotting->diag);
	for (i = 0; i < count; i++) {
		image->why_anew[i] = slotting->plans[i].why_anew;
		write_rule(slotting, i);
		push_first(&image->rules[i], &image->pushed[i]);
	}
	return 0;
}

int weir_compile_slots(const struct weir_rule_list *list, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag)
{
	static const struct weir_previous first_load;
	const struct weir_ruleset *ruleset = &list->ruleset;
	_cleanup_(weir_freep) uint32_t *resource_slots = calloc(ruleset->resource_count + 1, sizeof(*resource_slots));
	_cleanup_(weir_freep) struct plan *plans = calloc(ruleset->rule_count + 1, sizeof(*plans));
	struct slotting slotting = {
		.ruleset = ruleset,
		.terms = list->terms,
		.previous = options->previous ? options->previous : &first_load,
		.image = image,
		.diag = diag,
		.now_ns = options->now_ns,
		.emptied = options->emptied,
		.span_ns = options->span_ns ? options->span_ns : SPAN_NS_DEFAULT,
		.plans = plans,
		.resource_slots = resource_slots,
	};
	int err;

	if (!plans || !resource_slots)
		return weir_compile_no_memory(diag);
	err = make_room(&slotting);
	if (!err)
		err = keep_resources(&slotting);
	if (!err)
		err = keep_rules(&slotting);
	if (!err)
		err = number_timings(&slotting);
	if (err)
		return err;
	cool_all(&slotting);
	err = place_resources(&slotting);
	if (!err)
		err = place_rules(&slotting);
	if (!err)
		err = write_rules(&slotting);
	return err;
}
