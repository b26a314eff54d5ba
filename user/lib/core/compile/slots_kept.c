// SPDX-License-Identifier: GPL-2.0-only
/* What a rule keeps across a reload: its earlier slot, if it is still the same rule and its tables still hold its
 * state.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/slotting.h"
#include "rules/field_rows.h"

/* ---- properties of a rule ----
 *
 */

#define NSEC_PER_MSEC 1000000ull

const struct weir_terms *weir_slot_terms_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return &slotting->terms[rule - slotting->ruleset->rules];
}

bool weir_slot_has_spec(const struct weir_ruleset_rule *rule)
{
	return weir_kind_has(weir_kind_of(rule), RULE_INTERVAL);
}

uint64_t weir_slot_bucket_ns(const struct weir_ruleset_rule *rule)
{
	return rule->interval_ns / rule->samples;
}

uint64_t weir_slot_queueing_ns_max(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	return kind->longest_wait_ns ? kind->longest_wait_ns(rule, &slotting->ruleset->settings) : 0;
}

const struct weir_ruleset_resource *weir_slot_resource_of(const struct slotting *slotting,
							  const struct weir_ruleset_rule *rule)
{
	return weir_resource_of(slotting->ruleset, rule);
}

bool weir_slot_has_flows(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return weir_flow_of(slotting->ruleset, rule)->fields;
}

/* The directions of all packets that the rule evaluates or counts. */
static uint8_t directions_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return weir_match_directions(&weir_slot_resource_of(slotting, rule)->match) |
	       weir_slot_terms_of(slotting, rule)->directions;
}

void weir_identify_key(const struct weir_flow *flow, uint8_t directions, const struct weir_key_labels *labels,
		       struct weir_rule_identity *identity)
{
	struct weir_flow key = *flow;

	key = weir_flow_by_ends(&key, directions);
	identity->key_fields = key.fields | weir_number_key_sets(labels, &key);
	if (key.fields & WEIR_KEY_SOURCE)
		memcpy(identity->source_bits, key.source_bits, sizeof(identity->source_bits));
	if (key.fields & WEIR_KEY_DESTINATION)
		memcpy(identity->destination_bits, key.destination_bits, sizeof(identity->destination_bits));
}

struct weir_rule_identity weir_slot_identity_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	struct weir_rule_identity identity;

	/* Compared as memory, so no byte may be left unset. */
	memset(&identity, 0, sizeof(identity));
	identity.metric = rule->metric;
	if (weir_slot_has_spec(rule)) {
		identity.interval_ns = rule->interval_ns;
		identity.samples = rule->samples;
		identity.window = rule->window;
		identity.counts_bytes = rule->counts_bytes;
	}
	if (rule->metric == WEIR_METRIC_REQUESTS) {
		identity.interval_ns = rule->breaker.interval_ns;
		identity.samples = rule->breaker.buckets;
	}
	weir_identify_key(weir_flow_of(slotting->ruleset, rule), directions_of(slotting, rule), slotting->image->labels,
			  &identity);
	return identity;
}

bool weir_slot_overrides_local(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const struct weir_flow *flow = weir_flow_of(slotting->ruleset, rule);
	const bool is_reversed = directions_of(slotting, rule) == WEIR_MATCHES_OUT &&
				 !(flow->fields & WEIR_KEY_RELATIVE(rule->override_field));

	return rule->override_count && (rule->override_field == WEIR_KEY_DESTINATION) != is_reversed;
}

bool weir_slot_may_be_several(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return slotting->is_at_tc || directions_of(slotting, rule) & WEIR_MATCHES_OUT;
}

uint64_t weir_slot_window_memory_ns(const struct weir_rule_identity *identity)
{
	return identity->interval_ns + (identity->samples ? identity->interval_ns / identity->samples : 0);
}

/* ---- slots that are kept ---- */

/* ---- storage ---- */

bool weir_slot_fits(const struct slotting *slotting, const struct weir_ruleset_rule *rule, enum weir_storage storage)
{
	const struct weir_terms *terms = weir_slot_terms_of(slotting, rule);
	uint64_t units_most = WEIR_MEDIUM_THRESHOLD_MAX;

	if (storage == WEIR_STORAGE_NARROW) {
		if (rule->strategy != WEIR_STRATEGY_DIRECT || rule->cluster || rule->counts_bytes ||
		    weir_slot_may_be_several(slotting, rule))
			return false;
		units_most = WEIR_NARROW_THRESHOLD_MAX;
	}
	return terms->has_window && !terms->is_shadow && weir_slot_has_flows(slotting, rule) &&
	       terms->units_max <= units_most && weir_slot_bucket_ns(rule) >= WEIR_NARROW_BUCKET_NS_MIN &&
	       slotting->span_ns / weir_slot_bucket_ns(rule) < 1ull << 32;
}

/* ---- what is kept ---- */

/* A name of at most WEIR_NAME_BYTES, possibly without a terminating zero: the contents of maps are not trusted. */
struct named_slot {
	const char *name;
	const char *resource_name; /* of a rule; shadow windows of different resources share their name */
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

/* Sort the slots in use before this load by the names of their rule and its resource. */
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

/* The first field in which two identities differ, by its name in rule files. */
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

/* Why the rule is not the one in the description; NULL: it is the same. */
static const char *find_difference(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
				   const struct weir_rule_info *info)
{
	struct weir_rule_identity identity = weir_slot_identity_of(slotting, rule), before = info->identity;

	/* The names of the key's fields make no difference. */
	identity.key_fields &= WEIR_KEY_RELATIVE(1) - 1;
	before.key_fields &= WEIR_KEY_RELATIVE(1) - 1;
	/* These determine what a breaker counts. */
	if (weir_is_breaker(info) && info->breaker.strategy != rule->breaker.strategy)
		return "another strategy";
	if (weir_is_breaker(info) && info->breaker.max_rt_ns != rule->breaker.max_rt_ns)
		return "another maxAllowedRtMs";
	if (memcmp(&before, &identity, sizeof(identity)))
		return name_difference(&before, &identity);
	/* An observer's shadow window has the observer's name, and an earlier load may have had a rule of that name
	 * there.
	 */
	if (info->is_shadow != weir_slot_terms_of(slotting, rule)->is_shadow)
		return "it was not a rule of its own";
	if (weir_has_interval(info) && info->spec >= slotting->previous->spec_count)
		return "its description is damaged";
	return NULL;
}

bool weir_slot_is_forgotten(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			    const struct weir_rule_info *info)
{
	const struct weir_terms *terms = weir_slot_terms_of(slotting, rule);
	const struct weir_kind *kind = weir_kinds[terms->kind];
	uint64_t idle_ns;

	if (!info->flows_until_ns || !weir_slot_has_flows(slotting, rule))
		return true;
	idle_ns = slotting->now_ns > info->flows_until_ns ? slotting->now_ns - info->flows_until_ns : 0;
	if (kind->flow_memory_ns && idle_ns < kind->flow_memory_ns(rule))
		return false;
	if (!terms->warms_flows)
		return true;
	/* The time from no tokens to full by one refill per second, plus the current second, and the sync of the past
	 * one.
	 */
	return terms->warm_up.refill_below &&
	       idle_ns / WEIR_NSEC_PER_SEC >= terms->warm_up.max / terms->warm_up.refill + 3;
}

uint64_t weir_slot_digest_of_overrides(const struct weir_ruleset_rule *rule)
{
	const uint64_t field = rule->override_field;
	uint64_t sum = 0;

	for (size_t i = 0; i < rule->override_count; i++) {
		const struct weir_override *override = &rule->overrides[i];
		uint64_t digest = weir_digest(WEIR_DIGEST_BASIS, &field, sizeof(field));

		digest = weir_digest(digest, &override->prefix.family, sizeof(override->prefix.family));
		digest = weir_digest(digest, &override->prefix.bits, sizeof(override->prefix.bits));
		digest = weir_digest(digest, override->prefix.address, sizeof(override->prefix.address));
		digest = weir_digest(digest, override->label, strlen(override->label));
		digest = weir_digest(digest, &override->threshold_micro, sizeof(override->threshold_micro));
		sum += digest *
		       (digest >> 32 | 1); /* FNV is nearly linear, and a sum of linear values would hide changes */
	}
	return rule->override_count && !sum ? 1 : sum;
}

/* Do the limits that rows and flows recorded under the rule's last load still apply? */
static bool has_same_limits(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			    const struct weir_rule_info *info)
{
	const struct weir_terms *terms = weir_slot_terms_of(slotting, rule);

	return (info->threshold_word & WEIR_THRESHOLD_MASK) == terms->units &&
	       info->overrides_digest == weir_slot_digest_of_overrides(rule) &&
	       !(terms->warms_flows && memcmp(&info->warm_up, &terms->warm_up, sizeof(terms->warm_up)));
}

static void warn_of_no_version(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			       const struct weir_rule_info *info)
{
	uint64_t memory_ns = weir_slot_window_memory_ns(&info->identity) + REPLACED_NS;
	unsigned long long seconds = memory_ns / WEIR_NSEC_PER_SEC + 1;

	weir_diag_warning(slotting->diag, &rule->place, NULL, NULL,
			  "rule '%s' changed its limit %u times within one window; its packets take the slow path "
			  "until it is reloaded in %llu s or later",
			  rule->name, WEIR_VERSIONS / 2, seconds);
}

/*
 * Choose the version of the threshold. Rows that recorded another version must find out again whether they are over the
 * limit, what they have leased, and which override applies; flows that warm up recompute. Versions wrap around, and a
 * row may have been idle meanwhile. So they are divided into two halves, and a half is entered only when nothing can
 * remember it any more; for that, the time of leaving a half is recorded. Otherwise the threshold has no version, and
 * every packet finds out everything again, until a later load.
 */
static void plan_version(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			 const struct weir_rule_info *info, struct plan *plan)
{
	uint8_t version = info->threshold_word >> WEIR_THRESHOLD_BITS, next = version % WEIR_VERSIONS + 1;
	/* Rows remember a version for the length of a window, flows that warm up for a second. The previous program may
	 * still record it until the links have switched to this load: REPLACED_NS.
	 */
	const bool is_forgotten =
		!info->versions_since_ns ||
		slotting->now_ns > info->versions_since_ns + weir_slot_window_memory_ns(&info->identity) + REPLACED_NS;

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
	if (plan->version == WEIR_VERSION_NONE && weir_slot_terms_of(slotting, rule)->has_window)
		warn_of_no_version(slotting, rule, info);
}

/* Why rows of this storage can no longer hold the rule's window. */
static const char *why_no_fit(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			      enum weir_storage storage)
{
	if (storage == WEIR_STORAGE_NARROW && weir_slot_may_be_several(slotting, rule))
		return "at tc, where a packet may stand for several, it needs larger rows than it has";
	if (storage == WEIR_STORAGE_NARROW && (rule->strategy != WEIR_STRATEGY_DIRECT || rule->cluster))
		return "a threshold that moves needs larger rows than it has";
	return "its threshold, or that of an override, outgrew its rows";
}

static void report_emptied(const struct slotting *slotting, const struct weir_ruleset_rule *rule, const char *why)
{
	const char *hint = "'weir reload --fresh FILE...' does so, without a gap: in its first interval, each flow may "
			   "then pass a whole threshold on top of what it has had";

	switch (slotting->emptied) {
	case WEIR_EMPTIED_REFUSED:
		weir_diag_error(slotting->diag, &rule->place, NULL, hint,
				"rule '%s' would start with empty windows: %s", rule->name, why);
		break;
	case WEIR_EMPTIED_TO_BE_REFUSED:
		weir_diag_warning(slotting->diag, &rule->place, NULL, hint,
				  "a reload would be refused, as rule '%s' would start with empty windows: %s",
				  rule->name, why);
		break;
	case WEIR_EMPTIED_WARNED:
		weir_diag_warning(slotting->diag, &rule->place, NULL, NULL, "rule '%s' starts with empty windows: %s",
				  rule->name, why);
	}
}

/* Why the windows of an unchanged rule start empty nevertheless, which is reported; NULL: they are kept. */
static const char *why_emptied(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			       const struct weir_rule_info *info)
{
	bool shares_flows = weir_shares_flows(info);
	const char *why = NULL;

	/* Cells of these rows could not hold it, and windows cannot move between tables. */
	if (weir_has_window(info) && weir_slot_terms_of(slotting, rule)->has_window &&
	    (info->storage == WEIR_STORAGE_NARROW || info->storage == WEIR_STORAGE_MEDIUM) &&
	    !weir_slot_fits(slotting, rule, info->storage))
		why = why_no_fit(slotting, rule, info->storage);
	else if (!shares_flows && !weir_slot_is_forgotten(slotting, rule, info))
		why = "its slot still holds flows of a removed rule";
	if (why)
		report_emptied(slotting, rule, why);
	return why;
}

static void keep_rule(struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t slot, struct plan *plan)
{
	const struct weir_rule_info *info = &slotting->previous->rules[slot];
	const struct weir_terms *terms = weir_slot_terms_of(slotting, rule);

	plan->why_empty = find_difference(slotting, rule, info) ?: why_emptied(slotting, rule, info);
	if (plan->why_empty)
		return;
	plan->slot = slot;
	plan_version(slotting, rule, info, plan);
	slotting->image->kept_rules += !terms->is_shadow;
	/* Since there are no windows to keep, choose the best storage again. */
	if (weir_has_window(info) && terms->has_window) {
		plan->storage = info->storage;
		plan->spec = info->spec;
	}
}

int weir_slot_keep_rules(struct slotting *slotting)
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
		slotting->plans[i] = (struct plan){.slot = NONE, .spec = NONE, .version = 1};
		slot = find_named_slot(named, count, rule->name, weir_slot_resource_of(slotting, rule)->name);
		if (slot != NONE)
			keep_rule(slotting, rule, slot, &slotting->plans[i]);
	}
	return slotting->diag->errors > mistakes ? -EINVAL : 0;
}

int weir_slot_keep_resources(struct slotting *slotting)
{
	_cleanup_(weir_freep) struct named_slot *named = NULL;
	size_t count, i;

	if (name_resource_slots(slotting->previous, &named, &count))
		return weir_compile_no_memory(slotting->diag);
	for (i = 0; i < slotting->ruleset->resource_count; i++)
		slotting->resource_slots[i] = find_named_slot(named, count, slotting->ruleset->resources[i].name, "");
	return 0;
}
