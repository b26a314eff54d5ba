// SPDX-License-Identifier: GPL-2.0-only
#include "model.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "model_occupy.h"
#include "model_limit.h"
#include "model_penalty.h"
#include "model_system.h"
#include "model_tokens.h"

/* ---- what is remembered ---- */

/* Units that passed in a bucket of a window, or in a second of a warm-up. */
struct slice {
	uint64_t number;
	uint64_t units;
};

struct slices {
	struct slice *slice; /* in no order */
	size_t count;
};

/* Of one rule and one flow: each rule uses the part it needs. */
struct flow {
	struct model_key key;
	struct flow *next;
	/* the window */
	uint64_t newest; /* newest bucket known: that any packet was evaluated or counted in */
	struct slices buckets;
	/* an occupy window */
	struct model_occupy occupier;
	/* throttling */
	bool has_last;
	uint64_t last_ns; /* the TAT of the latest admitted packet */
	struct model_penalty penalty;
	struct model_bucket bucket;
	/* warm-up */
	bool is_warming;
	uint64_t second; /* the last one synced */
	uint64_t stored; /* tokens */
	struct slices seconds;
};

struct reading {
	uint64_t time_ns, used_bytes;
};

struct sample {
	uint64_t time_ns, load1_micro, cpu_micro;
};

#define MODEL_CHAINS 65536

struct model {
	const struct weir_ruleset *ruleset;
	model_ifindex ifindex;
	struct reading *readings;
	size_t reading_count;
	uint64_t second;    /* the latest that any packet was seen in */
	uint64_t latest_ns; /* the latest time of any packet: that of connections, which does not go back */
	uint64_t *would_drop, *threshold, *occupied;
	bool is_prioritized;	   /* the packet in hand belongs to such a resource */
	struct model_rates *rates; /* of rules with tokens whose rate moves for all flows */
	size_t past_readings;	   /* the latest that any packet has seen */
	struct model_connections *connections;
	/* system rules, which are the first of the rule set */
	struct model_system *system;
	struct model_system_rule *system_rules;
	size_t system_count;
	struct sample *samples;
	size_t sample_count;
	struct model_breakers *breakers;
	struct flow *flows[MODEL_CHAINS];
};

static void add_system_rules(struct model *model)
{
	static const enum model_system_metric metrics[WEIR_SYSTEM_COUNT] = {
		[WEIR_SYSTEM_LOAD] = MODEL_SYSTEM_LOAD,
		[WEIR_SYSTEM_AVG_RT] = MODEL_SYSTEM_AVG_RT,
		[WEIR_SYSTEM_CONCURRENCY] = MODEL_SYSTEM_CONCURRENCY,
		[WEIR_SYSTEM_INBOUND_QPS] = MODEL_SYSTEM_INBOUND_QPS,
		[WEIR_SYSTEM_CPU_USAGE] = MODEL_SYSTEM_CPU_USAGE,
	};
	const struct weir_ruleset *ruleset = model->ruleset;
	size_t i;

	model->system_rules = calloc(ruleset->rule_count + 1, sizeof(*model->system_rules));
	assert(model->system_rules);
	for (i = 0; i < ruleset->rule_count && ruleset->rules[i].system; i++)
		model->system_rules[i] = (struct model_system_rule){
			.metric = metrics[ruleset->rules[i].system],
			.trigger_micro = ruleset->rules[i].threshold_micro,
			.is_bbr = ruleset->rules[i].is_bbr,
			.observes = ruleset->rules[i].observes,
		};
	model->system_count = i;
	model->system = model_system_new(model->system_rules, i, &ruleset->settings);
}

struct model *model_new(const struct weir_ruleset *ruleset, model_ifindex ifindex)
{
	struct model *model = calloc(1, sizeof(*model));

	assert(model);
	model->ruleset = ruleset;
	model->ifindex = ifindex;
	model->would_drop = calloc(ruleset->rule_count + 1, sizeof(*model->would_drop));
	model->threshold = calloc(ruleset->rule_count + 1, sizeof(*model->threshold));
	model->occupied = calloc(ruleset->rule_count + 1, sizeof(*model->occupied));
	model->rates = calloc(ruleset->rule_count + 1, sizeof(*model->rates));
	assert(model->would_drop && model->threshold && model->occupied && model->rates);
	model->connections = model_connections_new(ruleset);
	add_system_rules(model);
	model->breakers = model_breakers_new();
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
			model_rates_turn(&model->rates[i], 0,
					 (struct model_ratio){ruleset->rules[i].memory.high_units, 1});
	return model;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < MODEL_CHAINS; i++) {
		while (model->flows[i]) {
			struct flow *flow = model->flows[i];

			model->flows[i] = flow->next;
			free(flow->buckets.slice);
			free(flow->seconds.slice);
			model_occupy_free(&flow->occupier);
			free(flow);
		}
	}
	model_connections_free(model->connections);
	model_system_free(model->system);
	free(model->system_rules);
	free(model->samples);
	model_breakers_free(model->breakers);
	free(model->readings);
	for (size_t i = 0; i < model->ruleset->rule_count; i++)
		model_rates_free(&model->rates[i]);
	free(model->rates);
	free(model->would_drop);
	free(model->threshold);
	free(model->occupied);
	free(model);
}

void model_memory(struct model *model, uint64_t time_ns, uint64_t used_bytes)
{
	model->readings = reallocarray(model->readings, model->reading_count + 1, sizeof(*model->readings));
	assert(model->readings);
	model->readings[model->reading_count++] = (struct reading){time_ns, used_bytes};
}

void model_sample(struct model *model, uint64_t time_ns, uint64_t load1_micro, uint64_t cpu_micro)
{
	model->samples = reallocarray(model->samples, model->sample_count + 1, sizeof(*model->samples));
	assert(model->samples);
	model->samples[model->sample_count++] = (struct sample){time_ns, load1_micro, cpu_micro};
}

uint64_t model_would_drop(const struct model *model, size_t rule)
{
	return model->would_drop[rule];
}

uint64_t model_occupied(const struct model *model, size_t rule)
{
	return model->occupied[rule];
}

uint64_t model_threshold(const struct model *model, size_t rule)
{
	return model->threshold[rule];
}

struct model_connection_counts model_connections(const struct model *model, size_t rule)
{
	return model_connections_of_rule(model->connections, rule, model->latest_ns);
}

struct model_connection_counts model_flow_connections(const struct model *model, const struct model_key *flow)
{
	return model_connections_of_flow(model->connections, flow, model->latest_ns);
}

size_t model_flows_with_connections(const struct model *model)
{
	return model_connections_flows(model->connections);
}

const struct model_key *model_flow_with_connections(const struct model *model, size_t place)
{
	return model_connections_flow(model->connections, place);
}

static struct flow *flow_get(struct model *model, const struct model_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	struct flow *flow;
	uint32_t hash = 0;

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = hash * 31 + bytes[i];
	for (flow = model->flows[hash % MODEL_CHAINS]; flow; flow = flow->next)
		if (memcmp(&flow->key, key, sizeof(*key)) == 0)
			return flow;
	flow = calloc(1, sizeof(*flow));
	assert(flow);
	flow->key = *key;
	flow->next = model->flows[hash % MODEL_CHAINS];
	model->flows[hash % MODEL_CHAINS] = flow;
	return flow;
}

static void slices_add(struct slices *slices, uint64_t number, uint64_t units)
{
	for (size_t i = 0; i < slices->count; i++) {
		if (slices->slice[i].number == number) {
			slices->slice[i].units += units;
			return;
		}
	}
	slices->slice = reallocarray(slices->slice, slices->count + 1, sizeof(*slices->slice));
	assert(slices->slice);
	slices->slice[slices->count++] = (struct slice){number, units};
}

/* What is older than that number will never be asked for. */
static void slices_forget(struct slices *slices, uint64_t number)
{
	size_t kept = 0;

	for (size_t i = 0; i < slices->count; i++)
		if (slices->slice[i].number >= number)
			slices->slice[kept++] = slices->slice[i];
	slices->count = kept;
}

/* ---- one packet and one rule ---- */

struct evaluating {
	const struct weir_ruleset_rule *rule;
	struct model_rates *rates; /* the rule's */
	uint64_t time_ns;
	uint64_t units;		/* the packet's batch */
	struct flow *own_flow;	/* of the rule's resource */
	struct flow *read_flow; /* whose window or rate is read; the same, unless the rule is associated */
	uint64_t threshold_micro;
	bool is_keyed; /* read_flow is one of many */
};

static bool is_concurrency(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_CONCURRENCY;
}

static bool has_tokens(const struct weir_ruleset_rule *rule)
{
	return rule->window == WEIR_WINDOW_TOKENS && rule->behavior == WEIR_BEHAVIOR_REJECT;
}

static bool is_breaker(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_REQUESTS;
}

static bool is_associated(const struct weir_ruleset_rule *rule)
{
	return rule->relation == WEIR_RELATION_ASSOCIATED;
}

/* By which flows the rule limits. */
static const struct weir_flow *own_key(const struct model *model, const struct weir_ruleset_rule *rule)
{
	return rule->has_own_key ? &rule->own_key : &model->ruleset->resources[rule->resource].flow;
}

/* The resource whose passing packets the rule counts. */
static size_t counted_resource(const struct weir_ruleset_rule *rule)
{
	return is_associated(rule) ? rule->ref_resource : rule->resource;
}

/* ... and by which flows. */
static const struct weir_flow *counted_key(const struct model *model, const struct weir_ruleset_rule *rule)
{
	return is_associated(rule) ? &model->ruleset->resources[rule->ref_resource].flow : own_key(model, rule);
}

/* `threshold`, or that of the longest prefix among the rule's overrides. */
static uint64_t threshold_of(const struct weir_ruleset_rule *rule, const struct model_packet *packet)
{
	const bool is_other_end = packet->is_out && rule->overrides_end;
	const bool is_source = (rule->override_field == WEIR_KEY_SOURCE) != is_other_end;
	const uint8_t *address = is_source ? packet->source : packet->destination;
	uint64_t threshold_micro = rule->threshold_micro;
	int longest = -1;

	for (size_t i = 0; i < rule->override_count; i++) {
		const struct weir_override *override = &rule->overrides[i];

		if (override->prefix.bits <= longest || !model_in_prefix(&override->prefix, packet->family, address))
			continue;
		longest = override->prefix.bits;
		threshold_micro = override->threshold_micro;
	}
	return threshold_micro;
}

static struct evaluating evaluating_of(struct model *model, size_t place, uint64_t time_ns,
				       const struct model_packet *packet)
{
	const struct weir_ruleset_rule *rule = &model->ruleset->rules[place];
	struct model_key own = model_key_of(own_key(model, rule), place, packet);
	struct model_key read = model_key_of(counted_key(model, rule), place, packet);

	return (struct evaluating){
		.rule = rule,
		.rates = &model->rates[place],
		.time_ns = time_ns,
		.units = rule->counts_bytes ? packet->frame_bytes : packet->segments,
		.own_flow = flow_get(model, &own),
		.read_flow = flow_get(model, &read),
		.threshold_micro = threshold_of(rule, packet),
		.is_keyed = counted_key(model, rule)->fields != 0,
	};
}

/* ---- what is allowed now ---- */

static uint64_t passed_in(const struct slices *seconds, uint64_t second)
{
	for (size_t i = 0; i < seconds->count; i++)
		if (seconds->slice[i].number == second)
			return seconds->slice[i].units;
	return 0;
}

/*
 * Sync on every whole second up to the present one. A flow warms up as if since the load: all cold, as it is when
 * first seen, since a second without packets takes no token and never leaves more than max.
 */
static void warm_up(const struct model *model, const struct evaluating *evaluating)
{
	const struct weir_ruleset_rule *rule = evaluating->rule;
	struct flow *flow = evaluating->read_flow;
	uint64_t now = evaluating->is_keyed ? evaluating->time_ns / WEIR_NSEC_PER_SEC : model->second;

	if (!flow->is_warming) {
		flow->is_warming = true;
		flow->second = now;
		flow->stored = model_warm_up_max(rule, evaluating->threshold_micro);
		if (has_tokens(rule))
			model_rates_turn(evaluating->rates, 0,
					 model_warm_up(rule, evaluating->threshold_micro, flow->stored));
	}
	for (; flow->second < now; flow->second++) {
		flow->stored = model_warm_up_sync(rule, evaluating->threshold_micro, flow->stored,
						  passed_in(&flow->seconds, flow->second));
		if (has_tokens(rule))
			model_rates_turn(evaluating->rates, (flow->second + 1) * WEIR_NSEC_PER_SEC,
					 model_warm_up(rule, evaluating->threshold_micro, flow->stored));
	}
	slices_forget(&flow->seconds, flow->second);
}

static struct model_ratio memory_adaptive(const struct model *model, const struct evaluating *evaluating)
{
	const struct weir_memory_adaptive *memory = &evaluating->rule->memory;

	for (size_t i = model->reading_count; i > 0; i--)
		if (model->readings[i - 1].time_ns <= evaluating->time_ns)
			return model_memory_adaptive(memory, model->readings[i - 1].used_bytes);
	return (struct model_ratio){memory->high_units, 1};
}

/* Rates of tokens go by all readings up to the latest packet's time, and never back. */
static void turn_rates_by_memory(struct model *model, uint64_t time_ns)
{
	for (; model->past_readings < model->reading_count; model->past_readings++) {
		const struct reading *reading = &model->readings[model->past_readings];

		if (reading->time_ns > time_ns)
			break;
		for (size_t i = 0; i < model->ruleset->rule_count; i++) {
			const struct weir_ruleset_rule *rule = &model->ruleset->rules[i];

			if (!has_tokens(rule) || rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
				continue;
			model_rates_turn(&model->rates[i], reading->time_ns,
					 model_memory_adaptive(&rule->memory, reading->used_bytes));
		}
	}
}

static struct model_ratio allowed_now(const struct model *model, const struct evaluating *evaluating)
{
	switch (evaluating->rule->strategy) {
	case WEIR_STRATEGY_WARM_UP:
		warm_up(model, evaluating);
		return model_warm_up(evaluating->rule, evaluating->threshold_micro, evaluating->read_flow->stored);
	case WEIR_STRATEGY_MEMORY_ADAPTIVE:
		return memory_adaptive(model, evaluating);
	case WEIR_STRATEGY_DIRECT:
		break;
	}
	return model_direct(evaluating->threshold_micro);
}

/* ---- windows ---- */

static uint64_t ring_of(const struct weir_ruleset_rule *rule)
{
	return rule->window == WEIR_WINDOW_LEAP ? rule->samples : rule->samples + 1;
}

/* ceil(units * part / whole) */
static uint64_t share_of(uint64_t units, uint64_t part, uint64_t whole)
{
	return ((unsigned __int128)units * part + whole - 1) / whole;
}

/* Where a packet stands in a window. */
struct standing {
	uint64_t newest;  /* bucket known */
	uint64_t bucket;  /* in which it is evaluated, and counted if it passes */
	uint64_t into_ns; /* of that bucket */
};

/*
 * A clock that went back: a bucket that the ring of buckets up to the newest known still holds is evaluated
 * against all of that ring; an older time is taken for the start of the newest bucket.
 */
static struct standing standing_of(const struct evaluating *evaluating)
{
	uint64_t bucket_ns = evaluating->rule->interval_ns / evaluating->rule->samples;
	struct standing standing = {
		.newest = evaluating->read_flow->newest,
		.bucket = evaluating->time_ns / bucket_ns,
		.into_ns = evaluating->time_ns % bucket_ns,
	};

	if (standing.bucket > standing.newest)
		standing.newest = standing.bucket;
	if (standing.newest - standing.bucket >= ring_of(evaluating->rule)) {
		standing.bucket = standing.newest;
		standing.into_ns = 0;
	}
	return standing;
}

static uint64_t window_sum(const struct evaluating *evaluating, const struct standing *standing)
{
	uint64_t bucket_ns = evaluating->rule->interval_ns / evaluating->rule->samples, sum = 0;
	const struct slices *buckets = &evaluating->read_flow->buckets;

	for (size_t i = 0; i < buckets->count; i++) {
		uint64_t age = standing->newest - buckets->slice[i].number, units = buckets->slice[i].units;

		if (age >= ring_of(evaluating->rule))
			continue;
		if (evaluating->rule->window == WEIR_WINDOW_SMOOTH && age == evaluating->rule->samples &&
		    standing->bucket == standing->newest)
			units = share_of(units, bucket_ns - standing->into_ns, bucket_ns);
		sum += units;
	}
	return sum;
}

/*
 * Does the window admit the packet? One that is larger than the threshold is never let in and never looked at; all
 * others are evaluated in a bucket, which their own window knows from then on, whatever becomes of the packet. An
 * associated window is only read.
 */
static bool window_admits(const struct evaluating *evaluating, struct model_ratio allowed)
{
	struct standing standing;

	if (model_exceeds(evaluating->units, allowed))
		return false;
	standing = standing_of(evaluating);
	if (!is_associated(evaluating->rule))
		evaluating->read_flow->newest = standing.newest;
	return !model_exceeds(window_sum(evaluating, &standing) + evaluating->units, allowed);
}

static void window_count(const struct evaluating *evaluating)
{
	struct standing standing = standing_of(evaluating);
	struct flow *flow = evaluating->read_flow;

	flow->newest = standing.newest;
	slices_add(&flow->buckets, standing.bucket, evaluating->units);
	/* What has left the ring never comes back, since the newest bucket only grows. */
	if (flow->newest >= ring_of(evaluating->rule))
		slices_forget(&flow->buckets, flow->newest - ring_of(evaluating->rule) + 1);
}

/* ---- throttling ---- */

/* docs/semantics.md, 4, in its order. An admitted packet has its slot, whatever becomes of it later. */
static bool throttle_admits(const struct evaluating *evaluating, struct model_ratio allowed, uint64_t *ret_wait_ns)
{
	struct flow *flow = evaluating->own_flow;
	model_u128 tat_ns, wait_ns;

	*ret_wait_ns = 0;
	if (allowed.numerator == 0 || model_exceeds(evaluating->units, allowed))
		return false;
	tat_ns = flow->last_ns + model_emission_ns(evaluating->units, evaluating->rule->interval_ns, allowed);
	if (!flow->has_last || tat_ns <= evaluating->time_ns) {
		flow->has_last = true;
		flow->last_ns = evaluating->time_ns;
		return true;
	}
	wait_ns = tat_ns - evaluating->time_ns;
	if (wait_ns > (model_u128)evaluating->rule->queueing_ms_max * 1000000)
		return false;
	flow->last_ns = tat_ns;
	*ret_wait_ns = wait_ns;
	return true;
}

/* ---- circuit breakers ---- */

struct model_breaker_view model_flow_breaker(const struct model *model, const struct model_key *flow)
{
	struct model_breaker_rule rule = model_breaker_rule_of(model->ruleset, flow->rule);

	return model_breaker_of_flow(model->breakers, &rule, flow, model->latest_ns);
}

size_t model_flows_with_breakers(const struct model *model)
{
	return model_breakers_count(model->breakers);
}

const struct model_key *model_flow_with_breaker(const struct model *model, size_t place)
{
	return model_breaker_flow(model->breakers, place);
}

/* ---- all rules of a packet ---- */

/* Those that the flow's bucket goes by; a threshold that does not move becomes *constant. */
static struct model_rates rates_of(const struct evaluating *evaluating, struct model_rate *constant)
{
	if (evaluating->rule->strategy != WEIR_STRATEGY_DIRECT)
		return *evaluating->rates;
	*constant = (struct model_rate){.allowed = model_direct(evaluating->threshold_micro)};
	return (struct model_rates){constant, 1};
}

static bool limit_admits(const struct model *model, const struct evaluating *evaluating, struct model_ratio allowed,
			 uint64_t *ret_wait_ns)
{
	struct flow *flow = evaluating->own_flow;
	struct model_rate constant;
	struct model_rates rates = rates_of(evaluating, &constant);

	if (model_occupies(model->ruleset, evaluating->rule))
		return model_occupy_admits(&flow->occupier, model->ruleset, evaluating->rule, allowed,
					   evaluating->time_ns, evaluating->units, model->is_prioritized, ret_wait_ns);
	if (has_tokens(evaluating->rule))
		return model_tokens_admit(&flow->bucket, evaluating->rule, evaluating->threshold_micro, &rates,
					  evaluating->units, evaluating->time_ns);
	return window_admits(evaluating, allowed);
}

static bool rule_admits(struct model *model, size_t place, uint64_t time_ns, const struct model_packet *packet,
			uint64_t *ret_wait_ns)
{
	struct evaluating evaluating = evaluating_of(model, place, time_ns, packet);
	struct model_ratio allowed = allowed_now(model, &evaluating);
	struct model_breaker_rule breaker_rule;

	model->threshold[place] = model_floor(allowed);
	*ret_wait_ns = 0;
	if (is_concurrency(evaluating.rule))
		return model_connections_admit(model->connections, &evaluating.own_flow->key,
					       evaluating.threshold_micro, packet, model->latest_ns);
	if (is_breaker(evaluating.rule)) {
		breaker_rule = model_breaker_rule_of(model->ruleset, place);
		return model_breaker_evaluate(model->breakers, &breaker_rule, &evaluating.own_flow->key, packet,
					      model->latest_ns);
	}
	if (evaluating.rule->behavior == WEIR_BEHAVIOR_THROTTLING)
		return throttle_admits(&evaluating, allowed, ret_wait_ns);
	if (model_penalty_runs(&evaluating.own_flow->penalty, time_ns))
		return false;
	if (limit_admits(model, &evaluating, allowed, ret_wait_ns))
		return true;
	model_penalty_begin(&evaluating.own_flow->penalty, evaluating.rule, time_ns);
	return false;
}

/* The packet passed, and belongs to the resource that the rule counts. would_drop: the rule, if it only observes. */
static void rule_counts(struct model *model, size_t place, uint64_t time_ns, const struct model_packet *packet,
			bool would_drop)
{
	struct evaluating evaluating = evaluating_of(model, place, time_ns, packet);
	struct model_breaker_rule breaker_rule;
	struct model_rate constant;
	struct model_rates rates = rates_of(&evaluating, &constant);

	if (is_breaker(evaluating.rule)) {
		breaker_rule = model_breaker_rule_of(model->ruleset, place);
		model_breaker_commit(model->breakers, &breaker_rule, &evaluating.own_flow->key, packet, would_drop,
				     model->latest_ns);
		return;
	}
	if (is_concurrency(evaluating.rule)) {
		model_connections_pass(model->connections, &evaluating.own_flow->key, packet, would_drop,
				       model->latest_ns);
		return;
	}
	/* What an observing rule would have dropped is not in the figures that it goes by. */
	if (would_drop)
		return;
	if (model_occupies(model->ruleset, evaluating.rule)) {
		if (model_occupy_count(&evaluating.own_flow->occupier, evaluating.rule, evaluating.units))
			model->occupied[place] += evaluating.units;
		return;
	}
	if (evaluating.rule->strategy == WEIR_STRATEGY_WARM_UP) {
		warm_up(model, &evaluating);
		slices_add(&evaluating.read_flow->seconds, time_ns / WEIR_NSEC_PER_SEC, evaluating.units);
	}
	if (has_tokens(evaluating.rule))
		model_tokens_take(&evaluating.own_flow->bucket, evaluating.rule, &rates, evaluating.units, time_ns);
	else if (evaluating.rule->behavior == WEIR_BEHAVIOR_REJECT)
		window_count(&evaluating);
}

/* ---- the verdict ---- */

static struct model_decision class_decision(bool drops, enum weir_verdict pass, enum weir_verdict drop,
					    const char *word)
{
	return (struct model_decision){.verdict = drops ? drop : pass, .rule = drops ? word : ""};
}

/* Without neighbour discovery, and multicast listener discovery (130 to 132 and 143) for the groups that it asks in, a
 * host is soon alone, so `unmatched: drop` spares them.
 */
static bool is_neighbour_discovery(const struct model_packet *packet)
{
	return packet->family == 6 && packet->protocol == 58 && packet->has_icmp_type &&
	       ((packet->icmp_type >= 130 && packet->icmp_type <= 137) || packet->icmp_type == 143);
}

static bool belongs(const struct model_decision *decision, size_t resource)
{
	for (size_t i = 0; i < decision->resource_count; i++)
		if (decision->resource[i] == resource)
			return true;
	return false;
}

/* ---- system rules ---- */

static struct model_system_time system_time(const struct model *model, uint64_t time_ns)
{
	return (struct model_system_time){.own_ns = time_ns, .latest_ns = model->latest_ns};
}

/* What was sampled last, at the packet's own time. */
static void sample_system(struct model *model, uint64_t time_ns)
{
	model_system_forget(model->system);
	for (size_t i = 0; i < model->sample_count && model->samples[i].time_ns <= time_ns; i++)
		model_system_sample(model->system, model->samples[i].load1_micro, model->samples[i].cpu_micro);
}

/* Returns whether all system rules that enforce let the packet pass. */
static bool system_admits(struct model *model, uint64_t time_ns, const struct model_packet *packet,
			  struct model_decision *decision, bool *would_drop)
{
	size_t dropping;

	if (packet->is_out)
		return true;
	sample_system(model, time_ns);
	dropping = model_system_evaluate(model->system, packet, would_drop, system_time(model, time_ns));
	for (size_t i = 0; i < model->system_count; i++)
		model->would_drop[i] += would_drop[i] * packet->segments;
	if (dropping == model->system_count)
		return true;
	decision->verdict = WEIR_VERDICT_BLOCK;
	decision->rule = model->ruleset->rules[dropping].name;
	return false;
}

/*
 * Rules in order, up to the first enforced one that blocks. Fills decision's verdict, rule and wait; its resources are
 * known. would_drop[place] says which observing rules would have dropped it.
 */
static void evaluate_rules(struct model *model, uint64_t time_ns, const struct model_packet *packet,
			   struct model_decision *decision, bool *would_drop)
{
	uint64_t wait_ns;

	decision->verdict = WEIR_VERDICT_PASS;
	decision->rule = "";
	model->is_prioritized = false;
	for (size_t i = 0; i < decision->resource_count; i++)
		model->is_prioritized |= model->ruleset->resources[decision->resource[i]].is_prioritized;
	if (!system_admits(model, time_ns, packet, decision, would_drop))
		return;
	for (size_t i = model->system_count; i < model->ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &model->ruleset->rules[i];

		if (!belongs(decision, rule->resource))
			continue;
		if (rule_admits(model, i, time_ns, packet, &wait_ns)) {
			if (!rule->observes && wait_ns > decision->wait_ns)
				decision->wait_ns = wait_ns;
			continue;
		}
		if (!rule->observes) {
			decision->verdict = WEIR_VERDICT_BLOCK;
			decision->rule = rule->name;
			decision->wait_ns = 0;
			return;
		}
		would_drop[i] = true;
		model->would_drop[i] += packet->segments;
	}
}

static void count_passed(struct model *model, uint64_t time_ns, const struct model_packet *packet,
			 const struct model_decision *decision, const bool *would_drop)
{
	if (!packet->is_out)
		model_system_commit(model->system, packet, would_drop, system_time(model, time_ns));
	for (size_t i = model->system_count; i < model->ruleset->rule_count; i++) {
		if (belongs(decision, counted_resource(&model->ruleset->rules[i])))
			rule_counts(model, i, time_ns, packet, would_drop[i]);
	}
}

/* It passed, and belongs to none of their resources: breakers of what goes out, where it answers that. */
static void count_answer(struct model *model, const struct model_packet *packet)
{
	if (packet->is_out)
		return;
	for (size_t i = model->system_count; i < model->ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &model->ruleset->rules[i];
		struct model_breaker_rule breaker_rule;
		struct model_key key;

		if (!is_breaker(rule) || model->ruleset->resources[rule->resource].match.directions != WEIR_MATCHES_OUT)
			continue;
		breaker_rule = model_breaker_rule_of(model->ruleset, i);
		key = model_key_of(own_key(model, rule), i, packet);
		model_breaker_answer(model->breakers, &breaker_rule, &key, packet, model->latest_ns);
	}
}

/* Between allow and deny the longest prefix wins, deny on a tie. False: the packet's remote end is in no list. */
static bool is_listed(const struct weir_ruleset *ruleset, const struct model_packet *packet, bool *ret_denies)
{
	bool denies = false;
	int longest = -1;

	for (size_t i = 0; i < ruleset->listed_count; i++) {
		const struct weir_listed *listed = &ruleset->listed[i];

		if (!model_in_prefix(&listed->prefix, packet->family, model_remote_of(packet)))
			continue;
		if (listed->prefix.bits > longest) {
			longest = listed->prefix.bits;
			denies = listed->denies;
		} else if (listed->prefix.bits == longest) {
			denies |= listed->denies;
		}
	}
	if (longest < 0)
		return false;
	*ret_denies = denies;
	return true;
}

static bool drops_non_ip(const struct weir_settings *settings, unsigned int ethertype)
{
	bool is_exception = false;

	for (size_t i = 0; i < settings->non_ip_except_count; i++)
		if (settings->non_ip_except[i].low <= ethertype && ethertype <= settings->non_ip_except[i].high)
			is_exception = true;
	return settings->drop_non_ip != is_exception;
}

struct model_decision model_evaluate(struct model *model, uint64_t time_ns, const uint8_t *frame, size_t frame_bytes,
				     uint32_t ifindex)
{
	return model_evaluate_way(model, time_ns, frame, frame_bytes, ifindex, (struct model_way){});
}

/* Of what matches, without what it excepts. */
static bool belongs_to(const struct model *model, size_t resource, const struct model_packet *packet)
{
	const struct weir_match *match = &model->ruleset->resources[resource].match;

	for (size_t i = 0; i < match->except_count; i++)
		if (belongs_to(model, match->except[i].resource, packet))
			return false;
	return model_matches(match, packet, model->ifindex);
}

struct model_decision model_evaluate_way(struct model *model, uint64_t time_ns, const uint8_t *frame,
					 size_t frame_bytes, uint32_t ifindex, struct model_way way)
{
	static const struct weir_settings none = {}; /* what goes out is never dropped but by a rule or a list */
	const struct weir_settings *settings = way.is_out ? &none : &model->ruleset->settings;
	struct model_packet packet = {
		.frame_bytes = frame_bytes,
		.segments = way.segments ? way.segments : 1,
		.is_out = way.is_out,
		.ifindex = ifindex,
	};
	struct model_decision decision = {0};
	bool would_drop[WEIR_RULES_MAX] = {0}, denies;

	if (time_ns / WEIR_NSEC_PER_SEC > model->second)
		model->second = time_ns / WEIR_NSEC_PER_SEC;
	if (time_ns > model->latest_ns)
		model->latest_ns = time_ns;
	turn_rates_by_memory(model, time_ns);
	switch (model_parse(frame, frame_bytes, &packet)) {
	case CLASS_MALFORMED:
		return class_decision(settings->drop_malformed, WEIR_VERDICT_MALFORMED_PASS,
				      WEIR_VERDICT_MALFORMED_DROP, "malformed");
	case CLASS_UNSUPPORTED:
		return class_decision(settings->drop_unsupported, WEIR_VERDICT_UNSUPPORTED_PASS,
				      WEIR_VERDICT_UNSUPPORTED_DROP, "unsupported");
	case CLASS_NON_IP:
		return class_decision(drops_non_ip(settings, packet.ethertype), WEIR_VERDICT_NON_IP_PASS,
				      WEIR_VERDICT_NON_IP_DROP, "nonIp");
	case CLASS_IP:
		break;
	}
	if (is_listed(model->ruleset, &packet, &denies))
		return class_decision(denies, WEIR_VERDICT_ALLOW, WEIR_VERDICT_DENY, "deny");
	for (size_t i = 0; i < model->ruleset->resource_count; i++) {
		if (!belongs_to(model, i, &packet))
			continue;
		assert(decision.resource_count < WEIR_PACKET_RESOURCES_MAX);
		decision.resource[decision.resource_count++] = i;
	}
	if (decision.resource_count == 0)
		decision = class_decision(settings->drop_unmatched && !is_neighbour_discovery(&packet),
					  WEIR_VERDICT_UNMATCHED_PASS, WEIR_VERDICT_UNMATCHED_DROP, "unmatched");
	else
		evaluate_rules(model, time_ns, &packet, &decision, would_drop);
	if (decision.verdict == WEIR_VERDICT_PASS)
		count_passed(model, time_ns, &packet, &decision, would_drop);
	if (decision.verdict == WEIR_VERDICT_PASS || decision.verdict == WEIR_VERDICT_UNMATCHED_PASS)
		count_answer(model, &packet);
	return decision;
}
