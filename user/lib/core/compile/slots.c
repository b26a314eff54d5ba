// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots: where a rule's counters and windows are kept, and what a rule keeps across a reload. A slot survives loads; a
 * rule's place in the files may change.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/slotting.h"
#include "thresholds/token_rates.h"
#include "weir_occupy.h"

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

/* When nothing refers any more to a rule that is unused from now on. */
static uint64_t free_after_ns(const struct weir_rule_info *rule, const struct weir_previous *previous, uint64_t now_ns)
{
	const struct weir_kind *kind = weir_kind_of_info(rule);

	return now_ns +
	       (kind->rule_memory_ns ? kind->rule_memory_ns(previous) : weir_slot_window_memory_ns(&rule->identity));
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
		else if (is_used && weir_has_connections(&rules[i]))
			previous->rules[i].flows_slot_and_one = rules[i].flows_slot_and_one;
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

/* A removed rule's slot stays taken while other rules count connections there. */
static void cool_shared(struct slotting *slotting, uint32_t slot)
{
	struct weir_rule_info *rules = slotting->image->rule_info;
	uint32_t shared;

	if (rules[slot].state != WEIR_SLOT_USED || !weir_has_connections(&rules[slot]))
		return;
	shared = weir_connections_slot(&rules[slot], slot);
	if (shared < slotting->image->rule_slots && rules[shared].state == WEIR_SLOT_COOLING)
		cool(&rules[shared], slotting->previous, slotting->now_ns);
}

/* Let everything that was in use cool; kept slots become used again when they are described. */
static void cool_all(struct slotting *slotting)
{
	struct weir_image *image = slotting->image;
	uint32_t i;

	for (i = 0; i < image->rule_slots; i++)
		cool_shared(slotting, i);
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
			       "try again when the windows of the removed rules have ended, or detach and attach again",
			       "no room for %s '%s': the instance was attached with %u slots, all of them taken", what,
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
	info->directions = weir_match_directions(&resource->match);
	slotting->image->resources[place].slot = slot;
	slotting->image->resources[place].is_prioritized = resource->is_prioritized;
	slotting->image->resources[place].is_both = weir_match_directions(&resource->match) == WEIR_MATCHES_BOTH;
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

/* Describe the rule's strategy, behaviour and relation, for the controller, status and the next load. */
static void describe_terms(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint64_t since_ns,
			   struct weir_rule_info *info)
{
	const struct weir_terms *terms = weir_slot_terms_of(slotting, rule);

	info->is_shadow = terms->is_shadow;
	info->moves = terms->moves;
	info->override_count = rule->override_count;
	info->overrides_destination = weir_slot_overrides_local(slotting, rule);
	info->overrides_digest = weir_slot_digest_of_overrides(rule);
	info->families = weir_slot_resource_of(slotting, rule)->match.families;
	info->counts_whole =
		weir_slot_has_flows(slotting, rule) && !weir_counted_flow_of(slotting->ruleset, rule)->fields;
	info->queueing_ns_max = weir_slot_queueing_ns_max(slotting, rule);
	if (rule->metric == WEIR_METRIC_REQUESTS)
		info->breaker = breaker_terms(rule, since_ns);
	else
		info->warm_up = terms->warm_up;
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		strncpy(info->ref_resource_name, slotting->ruleset->resources[rule->ref_resource].name,
			sizeof(info->ref_resource_name) - 1);
}

/* A mark that distinguishes this rule's buckets from those of an earlier rule at its slot. */
static uint32_t mark_of(const struct slotting *slotting, uint32_t slot)
{
	uint64_t digest = weir_digest(WEIR_DIGEST_BASIS, &slotting->now_ns, sizeof(slotting->now_ns));

	digest = weir_digest(digest, &slot, sizeof(slot));
	return (uint32_t)(digest ^ digest >> 32) | 1;
}

static void describe_rule(struct slotting *slotting, size_t place, uint32_t slot)
{
	const struct weir_ruleset_rule *rule = &slotting->ruleset->rules[place];
	struct weir_rule_info *info = &slotting->image->rule_info[slot];
	uint64_t flows_until_ns = info->flows_until_ns, since_ns = slotting->now_ns;
	struct plan *plan = &slotting->plans[place];
	bool is_kept = plan->slot != NONE;

	/* A rule that keeps its slot also keeps its breakers. */
	if (plan->slot != NONE && weir_is_breaker(info))
		since_ns = info->breaker.since_ns;

	plan->slot = slot;
	if (weir_kind_of(rule)->has_tokens) {
		/* Buckets keep their fill levels if possible. */
		plan->tokens = weir_slot_terms_of(slotting, rule)->tokens;
		if (!is_kept || !weir_tokens_continue(rule, &slotting->previous->rules[slot].tokens, slotting->now_ns,
						      &plan->tokens))
			plan->tokens.mark = mark_of(slotting, slot);
	}
	memset(info, 0, sizeof(*info));
	strncpy(info->name, rule->name, sizeof(info->name) - 1);
	strncpy(info->resource_name, weir_slot_resource_of(slotting, rule)->name, sizeof(info->resource_name) - 1);
	info->identity = weir_slot_identity_of(slotting, rule);
#define FIELD(member) info->member = rule->member
	WEIR_DESCRIBED_FIELDS(FIELD);
#undef FIELD
	info->threshold_word = WEIR_THRESHOLD_WORD(weir_slot_terms_of(slotting, rule)->units, plan->version);
	info->versions_since_ns = plan->versions_since_ns;
	info->flows_until_ns = flows_until_ns;
	info->state = WEIR_SLOT_USED;
	info->place = place;
	info->resource_slot =
		rule->resource == WEIR_NO_RESOURCE ? NONE : slotting->image->resources[rule->resource].slot;
	info->storage = plan->storage;
	info->spec = plan->spec;
	info->tokens = plan->tokens;
	if (weir_kind_of(rule)->has_tokens)
		info->burst_micro = weir_tokens_burst_micro(rule, rule->threshold_micro);
	describe_terms(slotting, rule, since_ns, info);
}

/* The first slot from `slot` on that this rule may use, or the number of slots. */
static uint32_t find_slot(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t slot)
{
	const struct weir_image *image = slotting->image;
	const struct weir_rule_info *info;

	for (; slot < image->rule_slots; slot++) {
		info = &image->rule_info[slot];
		if (is_free(info->state, info->free_after_ns, slotting->now_ns) &&
		    weir_slot_is_forgotten(slotting, rule, info))
			break;
	}
	return slot;
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
		if (slot == image->rule_slots) {
			const bool is_shadow = slotting->terms[i].is_shadow;

			return too_few_slots(slotting, &ruleset->rules[i].place,
					     is_shadow ? "a count of resource" : "rule",
					     is_shadow ? weir_slot_resource_of(slotting, &ruleset->rules[i])->name
						       : ruleset->rules[i].name,
					     image->rule_slots);
		}
		image->fresh_rule_slots[slot] = true;
		describe_rule(slotting, i, slot);
	}
	return 0;
}

/* ---- the program's view ---- */

/* The mask of a prefix, in network order, over `words` 32-bit words. */
static void fill_mask(__be32 *mask, unsigned int words, unsigned int bits)
{
	unsigned int i;

	for (i = 0; i < words; i++, bits -= bits < 32 ? bits : 32)
		mask[i] = bits >= 32 ? 0xffffffffu : htonl(~(0xffffffffu >> bits));
}

/* The packets that a system rule evaluates. Connections are tracked by all their packets. */
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

/* Levels are worked out at most and at least this often. */
#define FAIR_STEP_NS_MIN (WEIR_NSEC_PER_SEC / 50)
#define FAIR_STEP_NS_MAX (WEIR_NSEC_PER_SEC / 10)

/* Does the set whose labels are children give any of them a weight? */
static bool has_weights(const struct slotting *slotting, const struct weir_flow *fair_by, int place)
{
	const char *name = weir_flow_set(fair_by, place);
	const struct weir_set *set = name ? weir_find_set(slotting->ruleset, name, strlen(name)) : NULL;

	for (size_t i = 0; set && i < set->label_count; i++)
		if (set->labels[i].weight > 1)
			return true;
	return false;
}

/* How the children of this rule share its threshold. A strict window counts one bucket more than an interval has. */
static struct weir_fair_terms fair_terms(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const uint64_t bucket_ns = weir_slot_bucket_ns(rule);
	struct weir_fair_terms fair = {
		.scale = weir_fair_scale(rule->interval_ns),
		.step_ns = bucket_ns < FAIR_STEP_NS_MIN	  ? FAIR_STEP_NS_MIN
			   : bucket_ns > FAIR_STEP_NS_MAX ? FAIR_STEP_NS_MAX
							  : bucket_ns,
		.aim_num = rule->samples,
		.aim_den = rule->samples + (rule->window == WEIR_WINDOW_STRICT),
	};

	fair.interval_ns = rule->interval_ns * fair.scale;
	if (has_weights(slotting, &rule->fair_by, WEIR_KEY_PLACE_SOURCE))
		fair.weighs |= 1;
	if (has_weights(slotting, &rule->fair_by, WEIR_KEY_PLACE_DESTINATION))
		fair.weighs |= 2;
	while (weir_slot_terms_of(slotting, rule)->units_max * fair.scale >> (fair.shift + WEIR_FAIR_ORDINAL_BITS))
		fair.shift++;
	return fair;
}

static void write_terms(const struct slotting *slotting, const struct weir_ruleset_rule *rule, const struct plan *plan,
			struct weir_rule *written)
{
	const struct weir_terms *terms = weir_slot_terms_of(slotting, rule);

	written->threshold = WEIR_THRESHOLD_WORD(terms->units, plan->version);
	written->kind = terms->kind;
	written->needs_allowed =
		weir_kinds[terms->kind]->needs_allowed || terms->moves || terms->warms_flows || rule->cluster;
	if (weir_kinds[terms->kind]->has_tokens)
		written->needs_allowed = false; /* the clock moves instead */
	written->threshold_moves = rule->cluster ? WEIR_MOVES_SHARED : terms->moves ? WEIR_MOVES_ALONE : WEIR_MOVES_NOT;
	written->warms_flows = terms->warms_flows;
	written->has_overrides = rule->override_count > 0;
	written->overrides_destination = weir_slot_overrides_local(slotting, rule);
	written->evaluates = work_of(rule->system);
	if (rule->metric == WEIR_METRIC_SIGNAL)
		written->signal = rule->system | (rule->is_bbr ? WEIR_SIGNAL_BBR : 0);
	written->shadow = terms->shadow;
	written->queueing_ns_max = weir_slot_queueing_ns_max(slotting, rule);
	written->penalty_ms = rule->penalty_ms;
	written->penalty_ms_max = rule->penalty_ms_max;
	if (terms->kind == WEIR_KIND_OCCUPY)
		written->unit_bits = weir_occupy_unit_bits(rule->interval_ns);
	written->bar = rule->fair_by.fields ? WEIR_BAR_LEVEL : rule->penalty_ms ? WEIR_BAR_PENALTY : WEIR_BAR_NONE;
	if (terms->kind == WEIR_KIND_FAIR)
		written->fair = fair_terms(slotting, &slotting->ruleset->rules[terms->shadow]);
	written->emission = terms->emission;
	if (terms->warms_flows)
		written->warm_up = terms->warm_up;
	if (weir_kinds[terms->kind]->has_tokens)
		written->tokens = plan->tokens;
	if (terms->kind == WEIR_KIND_BREAKER)
		written->breaker = slotting->image->rule_info[plan->slot].breaker;
}

/* weir_rule.drops_mark */
static uint8_t drops_mark_of(const struct slotting *slotting, size_t place)
{
	const struct weir_ruleset *ruleset = slotting->ruleset;
	uint8_t number = 0;

	for (size_t i = slotting->plans[place].shares_with; i < place; i++)
		number += slotting->plans[i].shares_with == slotting->plans[place].shares_with;
	return (ruleset->settings.observes || ruleset->rules[place].observes) | number << 1;
}

/* weir_rule.is_plain */
static bool is_plain(const struct weir_rule *rule)
{
	return rule->kind == WEIR_KIND_WINDOW && rule->window == WEIR_WINDOW_LEAP && rule->goes_by_ticks &&
	       !rule->counts_bytes && !rule->observes && !rule->bar && !rule->needs_allowed && !rule->has_overrides;
}

/* weir_rule.is_fixed */
static bool is_fixed(const struct weir_rule *rule)
{
	return rule->kind == WEIR_KIND_WINDOW && rule->key_fields == WEIR_KEY_SOURCE && !rule->bar &&
	       !rule->needs_allowed && !rule->has_overrides &&
	       (rule->storage == WEIR_STORAGE_MEDIUM || rule->storage == WEIR_STORAGE_WIDE);
}

static void write_rule(const struct slotting *slotting, size_t place)
{
	const struct weir_ruleset_rule *rule = &slotting->ruleset->rules[place];
	const struct plan *plan = &slotting->plans[place], *first = &slotting->plans[plan->shares_with];
	struct weir_rule_identity identity = weir_slot_identity_of(slotting, rule);
	struct weir_rule *written = &slotting->image->rules[place];

	if (weir_slot_has_spec(rule)) {
		const struct weir_window_spec *spec = &slotting->image->specs[plan->spec];

		written->bucket_ns = spec->bucket_ns;
		written->base_bucket = spec->base_bucket;
		written->window = spec->window;
		written->goes_by_ticks = spec->goes_by_ticks;
		written->window_cells = spec->window_cells;
	}
	written->place = place;
	written->slot = plan->slot;
	written->spec = plan->spec;
	written->resource = rule->resource;
	written->storage = plan->storage;
	written->shares_with = plan->shares_with;
	written->drops_mark = drops_mark_of(slotting, place);
	written->flows_slot = first->flows_slot == NONE ? first->slot : first->flows_slot;
	if (rule->metric == WEIR_METRIC_CONCURRENCY)
		slotting->image->rule_info[plan->slot].flows_slot_and_one = written->flows_slot + 1;
	written->counts_bytes = rule->counts_bytes;
	written->on_block = rule->observes ? WEIR_ON_BLOCK_DROP : rule->on_block;
	written->observes = rule->observes;
	/* An end by label is no address to the program: it has neither a mask nor a family. */
	written->key_fields = identity.key_fields & ~WEIR_KEY_LABEL_ENDS(identity.key_fields);
	written->label_set[0] = WEIR_KEY_SET_OF(identity.key_fields, WEIR_KEY_PLACE_SOURCE);
	written->label_set[1] = WEIR_KEY_SET_OF(identity.key_fields, WEIR_KEY_PLACE_DESTINATION);
	fill_mask(&written->source_mask4, 1, identity.source_bits[0]);
	fill_mask(written->source_mask6, 4, identity.source_bits[1]);
	fill_mask(&written->destination_mask4, 1, identity.destination_bits[0]);
	fill_mask(written->destination_mask6, 4, identity.destination_bits[1]);
	write_terms(slotting, rule, plan, written);
	written->is_plain = is_plain(written);
	written->is_fixed = is_fixed(written);
}

static int write_rules(struct slotting *slotting)
{
	const size_t count = slotting->ruleset->rule_count;
	struct weir_image *image = slotting->image;
	size_t i;

	image->rules = calloc(count + 1, sizeof(*image->rules));
	image->pushed = calloc(count + 1, sizeof(*image->pushed));
	image->why_empty = calloc(count + 1, sizeof(*image->why_empty));
	if (!image->rules || !image->pushed || !image->why_empty)
		return weir_compile_no_memory(slotting->diag);
	for (i = 0; i < count; i++) {
		image->why_empty[i] = slotting->plans[i].why_empty;
		write_rule(slotting, i);
		/* The values in force until a controller pushes better ones. */
		image->pushed[i].word = image->rules[i].threshold;
		if (weir_kinds[image->rules[i].kind]->has_tokens)
			image->pushed[i].clock[0] = image->pushed[i].clock[1] = image->rules[i].tokens.clock;
		else
			image->pushed[i].emission[0] = image->pushed[i].emission[1] = image->rules[i].emission;
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
		.is_at_tc = options->is_at_tc,
		.plans = plans,
		.resource_slots = resource_slots,
	};
	int err;

	if (!plans || !resource_slots)
		return weir_compile_no_memory(diag);
	err = make_room(&slotting);
	if (!err)
		err = weir_slot_keep_resources(&slotting);
	if (!err)
		err = weir_slot_keep_rules(&slotting);
	if (!err)
		weir_slot_share_connections(&slotting);
	if (!err)
		err = weir_slot_number_specs(&slotting);
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
