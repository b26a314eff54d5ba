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

struct model_system {
	const struct model_system_rule *rules;
	size_t rule_count;
	struct weir_ruleset ruleset; /* of the one rule that connections are counted under */
	struct model_connections *connections;
	struct events inbound, handshakes;
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
	system->ruleset.rule_count = 1;
	system->ruleset.settings = *settings;
	system->connections = model_connections_new(&system->ruleset);
	return system;
}

void model_system_free(struct model_system *system)
{
	if (!system)
		return;
	model_connections_free(system->connections);
	free(system->inbound.event);
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
	size_t i;

	*ret_count = 0;
	*ret_us = 0;
	for (i = 0; i < events->count; i++) {
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
	size_t i;

	*ret_complete_max = 0;
	*ret_shortest_us = 0;
	for (i = 0; i < events->count; i++) {
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
	uint64_t unused;

	view.open = model_connections_of_rule(system->connections, 0, now_ns).now;
	last_second(&system->inbound, now_ns, &view.inbound, &unused);
	last_second(&system->handshakes, now_ns, &view.handshakes, &view.handshake_us);
	last_buckets(&system->handshakes, now_ns, &view.complete_max, &view.shortest_us);
	return view;
}

/* ---- rules ---- */

/* More connections than handshakes could be under way, were they all as quick as the shortest. */
static bool has_queue(const struct model_system_view *view)
{
	return view->open > 1 &&
	       (unsigned __int128)view->open * 1000000 > (unsigned __int128)view->complete_max * view->shortest_us;
}

static bool rule_drops(const struct model_system *system, const struct model_system_rule *rule,
		       const struct model_system_view *view, bool is_opening)
{
	switch (rule->metric) {
	case MODEL_SYSTEM_INBOUND_QPS:
		return (unsigned __int128)view->inbound * WEIR_MICRO >= rule->trigger_micro;
	case MODEL_SYSTEM_CONCURRENCY:
		return is_opening && (unsigned __int128)view->open * WEIR_MICRO >= rule->trigger_micro;
	case MODEL_SYSTEM_AVG_RT: /* ms, the mean of none being 0 */
		if (view->handshakes == 0)
			return is_opening && rule->trigger_micro == 0;
		return is_opening && (unsigned __int128)view->handshake_us * 1000 >=
					     (unsigned __int128)rule->trigger_micro * view->handshakes;
	case MODEL_SYSTEM_LOAD:
		return system->has_sample && system->load1_micro > rule->trigger_micro &&
		       (!rule->is_bbr || has_queue(view));
	case MODEL_SYSTEM_CPU_USAGE:
		return system->has_sample && system->cpu_micro > rule->trigger_micro &&
		       (!rule->is_bbr || has_queue(view));
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

size_t model_system_judge(struct model_system *system, const struct model_packet *packet, bool *would_drop,
			  uint64_t now_ns)
{
	struct model_system_view view = model_system_view(system, now_ns);
	size_t i;

	for (i = 0; i < system->rule_count; i++)
		would_drop[i] = false;
	if (!is_inbound_work(packet))
		return system->rule_count;
	for (i = 0; i < system->rule_count; i++) {
		if (!rule_drops(system, &system->rules[i], &view, model_event_of(packet) == MODEL_OPENING))
			continue;
		if (!system->rules[i].observes)
			return i;
		would_drop[i] = true;
	}
	return system->rule_count;
}

void model_system_commit(struct model_system *system, const struct model_packet *packet, uint64_t now_ns)
{
	const struct model_key all = {};
	struct model_connection_counts before = model_connections_of_rule(system->connections, 0, now_ns), after;

	if (is_inbound_work(packet))
		add_event(&system->inbound, now_ns, 0);
	model_connections_pass(system->connections, &all, packet, false, now_ns);
	after = model_connections_of_rule(system->connections, 0, now_ns);
	if (after.handshakes > before.handshakes)
		add_event(&system->handshakes, now_ns, after.handshake_us - before.handshake_us);
}
