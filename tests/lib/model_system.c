// SPDX-License-Identifier: GPL-2.0-only
#include "model_system.h"

#include <assert.h>
#include <stdlib.h>

#include "model_connection.h"
#include "model_tuple.h"
#include "rules/ruleset.h"

#define BUCKET_NS (WEIR_NSEC_PER_SEC / 2)
#define SECOND_BUCKETS 2
#define BBR_BUCKETS 10

/* Something that happened, and how long it took. */
struct event {
	uint64_t time_ns, us;
};

struct events {
	struct event *event;
	size_t count;
};

/* What an InboundQPS rule has let through, and the newest bucket in which it evaluated a packet. */
struct window {
	uint64_t newest;
	struct events events;
};

struct model_system {
	const struct model_system_rule *rules;
	size_t rule_count;
	/* Connections are counted under a rule for each Concurrency rule, in its place, and behind them one for all. */
	struct weir_ruleset ruleset;
	struct model_connections *connections;
	struct window *windows; /* a rule each */
	struct events handshakes;
	bool has_sample;
	uint64_t load1_micro, cpu_micro;
};

struct model_system *model_system_new(const struct model_system_rule *rules, size_t count,
				      const struct weir_settings *settings)
{
	struct model_system *system = calloc(1, sizeof(*system));

	assert(system);
	system->rules = rules;
	system->rule_count = count;
	system->ruleset.rule_count = count + 1;
	system->ruleset.settings = *settings;
	system->windows = calloc(count + 1, sizeof(*system->windows));
	assert(system->windows);
	system->connections = model_connections_new(&system->ruleset);
	return system;
}

void model_system_free(struct model_system *system)
{
	if (!system)
		return;
	model_connections_free(system->connections);
	for (size_t i = 0; i < system->rule_count; i++)
		free(system->windows[i].events.event);
	free(system->windows);
	free(system->handshakes.event);
	free(system);
}

void model_system_sample(struct model_system *system, uint64_t load1_micro, uint64_t cpu_micro)
{
	system->has_sample = true;
	system->load1_micro = load1_micro;
	system->cpu_micro = cpu_micro;
}

void model_system_forget(struct model_system *system)
{
	system->has_sample = false;
}

/* ---- what is counted ---- */

static void add_event(struct events *events, uint64_t time_ns, uint64_t us)
{
	events->event = reallocarray(events->event, events->count + 1, sizeof(*events->event));
	assert(events->event);
	events->event[events->count++] = (struct event){time_ns, us};
}

static uint64_t bucket_of(uint64_t time_ns)
{
	return time_ns / BUCKET_NS;
}

static void last_second(const struct events *events, uint64_t now_ns, uint64_t *ret_count, uint64_t *ret_us)
{
	*ret_count = 0;
	*ret_us = 0;
	for (size_t i = 0; i < events->count; i++) {
		if (bucket_of(now_ns) - bucket_of(events->event[i].time_ns) >= SECOND_BUCKETS)
			continue;
		*ret_count += 1;
		*ret_us += events->event[i].us;
	}
}

/* Handshakes of the fullest bucket, as many as there would be in a second; and the shortest of all. */
static void last_buckets(const struct events *events, uint64_t now_ns, uint64_t *ret_complete_max,
			 uint64_t *ret_shortest_us)
{
	uint64_t in_bucket[BBR_BUCKETS] = {};

	*ret_complete_max = 0;
	*ret_shortest_us = 0;
	for (size_t i = 0; i < events->count; i++) {
		uint64_t age = bucket_of(now_ns) - bucket_of(events->event[i].time_ns), us = events->event[i].us;

		if (age >= BBR_BUCKETS)
			continue;
		if (*ret_complete_max == 0 || us < *ret_shortest_us)
			*ret_shortest_us = us;
		in_bucket[age]++;
		if (2 * in_bucket[age] > *ret_complete_max)
			*ret_complete_max = 2 * in_bucket[age];
	}
}

struct model_system_view model_system_view(struct model_system *system, uint64_t now_ns)
{
	struct model_system_view view = {};

	view.open = model_connections_of_rule(system->connections, system->rule_count, now_ns).now;
	last_second(&system->handshakes, now_ns, &view.handshakes, &view.handshake_us);
	last_buckets(&system->handshakes, now_ns, &view.complete_max, &view.shortest_us);
	return view;
}

/* ---- windows ---- */

/*
 * The bucket in which a packet is evaluated and counted: its own if it is one of the two that the window looks at,
 * else, as the clock went back, the newest known. The window knows it from then on.
 */
static uint64_t standing_of(struct window *window, uint64_t time_ns)
{
	uint64_t bucket = bucket_of(time_ns);

	if (bucket > window->newest)
		window->newest = bucket;
	return window->newest - bucket < SECOND_BUCKETS ? bucket : window->newest;
}

static uint64_t window_sum(const struct window *window)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < window->events.count; i++)
		sum += window->newest - bucket_of(window->events.event[i].time_ns) < SECOND_BUCKETS;
	return sum;
}

/* ---- rules ---- */

static struct model_key connections_of(size_t place)
{
	return (struct model_key){.rule = place};
}

/* No fewer connections than the trigger: as many as the next whole number are let through. */
static bool concurrency_drops(struct model_system *system, size_t place, const struct model_packet *packet,
			      uint64_t latest_ns)
{
	struct model_key key = connections_of(place);
	uint64_t whole = (system->rules[place].trigger_micro + WEIR_MICRO - 1) / WEIR_MICRO;

	return !model_connections_admit(system->connections, &key, whole * WEIR_MICRO, packet, latest_ns);
}

static bool reaches(const struct model_system_rule *rule, uint64_t units)
{
	return (unsigned __int128)units * WEIR_MICRO >= rule->trigger_micro;
}

/* Of several packets at once, the last is asked. More than ever fit are blocked without being evaluated, so the window
 * does not learn of their bucket.
 */
static bool inbound_drops(struct model_system *system, size_t place, uint64_t own_ns, uint64_t more)
{
	struct window *window = &system->windows[place];

	if (reaches(&system->rules[place], more))
		return true;
	standing_of(window, own_ns);
	return reaches(&system->rules[place], window_sum(window) + more);
}

/* The mean handshake, in ms; the mean of none is no number. */
static bool avg_rt_drops(const struct model_system_rule *rule, const struct model_system_view *view)
{
	return view->handshakes > 0 && (unsigned __int128)view->handshake_us * 1000 >=
					       (unsigned __int128)rule->trigger_micro * view->handshakes;
}

/* More connections than handshakes could be under way, were they all as quick as the shortest. */
static bool has_queue(const struct model_system_view *view)
{
	return view->open > 1 &&
	       (unsigned __int128)view->open * 1000000 > (unsigned __int128)view->complete_max * view->shortest_us;
}

static bool sample_drops(const struct model_system *system, const struct model_system_rule *rule, uint64_t value_micro,
			 const struct model_system_view *view)
{
	return system->has_sample && value_micro > rule->trigger_micro && (!rule->is_bbr || has_queue(view));
}

static bool rule_drops(struct model_system *system, size_t place, const struct model_packet *packet,
		       struct model_system_time time)
{
	struct model_system_view view = model_system_view(system, time.latest_ns);
	const struct model_system_rule *rule = &system->rules[place];
	bool is_opening = model_event_of(packet) == MODEL_OPENING;

	switch (rule->metric) {
	case MODEL_SYSTEM_INBOUND_QPS:
		return inbound_drops(system, place, time.own_ns, packet->segments ? packet->segments - 1 : 0);
	case MODEL_SYSTEM_CONCURRENCY:
		return is_opening && concurrency_drops(system, place, packet, time.latest_ns);
	case MODEL_SYSTEM_AVG_RT:
		return is_opening && avg_rt_drops(rule, &view);
	case MODEL_SYSTEM_LOAD:
		return sample_drops(system, rule, system->load1_micro, &view);
	case MODEL_SYSTEM_CPU_USAGE:
		return sample_drops(system, rule, system->cpu_micro, &view);
	}
	assert(false);
	return false;
}

/* A later fragment of TCP says nothing of an opening, and is let through with what it belongs to. */
static bool is_inbound_work(const struct model_packet *packet)
{
	enum model_event event = model_event_of(packet);

	return event == MODEL_NOT_TCP || (event == MODEL_OPENING && packet->fragment != WEIR_FRAGMENT_LATER);
}

size_t model_system_evaluate(struct model_system *system, const struct model_packet *packet, bool *would_drop,
			     struct model_system_time time)
{
	for (size_t i = 0; i < system->rule_count; i++)
		would_drop[i] = false;
	if (!is_inbound_work(packet))
		return system->rule_count;
	for (size_t i = 0; i < system->rule_count; i++) {
		if (!rule_drops(system, i, packet, time))
			continue;
		if (!system->rules[i].observes)
			return i;
		would_drop[i] = true;
	}
	return system->rule_count;
}

/* ---- what passed ---- */

/* Returns the handshakes that are known then, and how long they took together. */
static struct model_connection_counts pass_connection(struct model_system *system, size_t place,
						      const struct model_packet *packet, bool is_refused,
						      uint64_t latest_ns)
{
	struct model_key key = connections_of(place);

	if (model_event_of(packet) != MODEL_NOT_TCP)
		model_connections_pass(system->connections, &key, packet, is_refused, latest_ns);
	return model_connections_of_rule(system->connections, place, latest_ns);
}

void model_system_commit(struct model_system *system, const struct model_packet *packet, const bool *would_drop,
			 struct model_system_time time)
{
	size_t all = system->rule_count;
	struct model_connection_counts before = model_connections_of_rule(system->connections, all, time.latest_ns);
	struct model_connection_counts after = pass_connection(system, all, packet, false, time.latest_ns);

	if (after.handshakes > before.handshakes)
		add_event(&system->handshakes, time.latest_ns, after.handshake_us - before.handshake_us);
	for (size_t i = 0; i < system->rule_count; i++) {
		struct window *window = &system->windows[i];

		if (system->rules[i].metric == MODEL_SYSTEM_CONCURRENCY)
			pass_connection(system, i, packet, would_drop[i], time.latest_ns);
		else if (system->rules[i].metric == MODEL_SYSTEM_INBOUND_QPS && is_inbound_work(packet) &&
			 !would_drop[i])
			for (uint64_t more = 0; more == 0 || more < packet->segments; more++)
				add_event(&window->events, standing_of(window, time.own_ns) * BUCKET_NS, 0);
	}
}
