// SPDX-License-Identifier: GPL-2.0-only
#include "model_breaker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model_tuple.h"

struct model_breaker_rule model_breaker_rule_of(const struct weir_ruleset *ruleset, size_t place)
{
	static const enum model_breaker_strategy strategies[] = {
		[WEIR_BREAKER_SLOW_RATIO] = MODEL_SLOW_REQUEST_RATIO,
		[WEIR_BREAKER_ERROR_RATIO] = MODEL_ERROR_RATIO,
		[WEIR_BREAKER_ERROR_COUNT] = MODEL_ERROR_COUNT,
	};
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];

	return (struct model_breaker_rule){
		.strategy = strategies[rule->breaker.strategy],
		.threshold_micro = rule->threshold_micro,
		.retry_timeout_ns = rule->breaker.retry_ns,
		.min_requests = rule->breaker.min_requests,
		.interval_ns = rule->breaker.interval_ns,
		.buckets = rule->breaker.buckets,
		.max_rt_ns = rule->breaker.max_rt_ns,
		.probes = rule->breaker.probes,
		.half_open_timeout_ns = ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] * 1000000,
	};
}

/* ---- the lists ---- */

enum outcome { PENDING, DONE, FAILED };

/* One opening that passed. */
struct request {
	struct model_tuple tuple;
	uint64_t first_syn_ns;
	uint64_t received_ns; /* its latest packet */
	bool went_out;	      /* its first SYN */
	enum outcome outcome;
	/* in windows: from counted_ns on; place: how many of the breaker's were counted before */
	bool is_counted, is_bad;
	uint64_t counted_ns, place;
};

struct breaker {
	struct model_key flow;
	struct request *request; /* in the order in which they passed */
	size_t request_count;
	size_t counted; /* requests that any window ever counted */
	enum model_breaker_state state;
	size_t emptied; /* requests counted before the window was emptied */
	size_t probe;	/* of a half-open one: the place of the request that made it so */
	uint64_t retry_ns;
	uint64_t changes;
};

struct model_breakers {
	struct breaker *breaker;
	size_t count;
};

struct model_breakers *model_breakers_new(void)
{
	struct model_breakers *breakers = calloc(1, sizeof(*breakers));

	assert(breakers);
	return breakers;
}

void model_breakers_free(struct model_breakers *breakers)
{
	if (!breakers)
		return;
	for (size_t i = 0; i < breakers->count; i++)
		free(breakers->breaker[i].request);
	free(breakers->breaker);
	free(breakers);
}

size_t model_breakers_count(const struct model_breakers *breakers)
{
	return breakers->count;
}

const struct model_key *model_breaker_flow(const struct model_breakers *breakers, size_t place)
{
	return &breakers->breaker[place].flow;
}

static struct breaker *breaker_get(struct model_breakers *breakers, const struct model_key *flow)
{
	struct breaker *breaker;

	for (size_t i = 0; i < breakers->count; i++)
		if (memcmp(&breakers->breaker[i].flow, flow, sizeof(*flow)) == 0)
			return &breakers->breaker[i];
	breakers->breaker = reallocarray(breakers->breaker, breakers->count + 1, sizeof(*breakers->breaker));
	assert(breakers->breaker);
	breaker = &breakers->breaker[breakers->count++];
	*breaker = (struct breaker){.flow = *flow};
	return breaker;
}

/* The request that is still being opened on the packet's connection, slow or not; NULL: there is none. */
static struct request *pending_of(const struct breaker *breaker, const struct model_packet *packet)
{
	struct model_tuple tuple = model_tuple_of(packet);

	for (size_t i = 0; i < breaker->request_count; i++) {
		struct request *request = &breaker->request[i];

		if (request->outcome == PENDING && memcmp(&request->tuple, &tuple, sizeof(tuple)) == 0)
			return request;
	}
	return NULL;
}

/* ---- the window ---- */

static uint64_t buckets_of(const struct model_breaker_rule *rule)
{
	return rule->buckets && rule->interval_ns / 1000000 % rule->buckets == 0 ? rule->buckets : 1;
}

static bool is_in_window(const struct model_breaker_rule *rule, const struct breaker *breaker,
			 const struct request *request, uint64_t now_ns)
{
	uint64_t bucket_ns = rule->interval_ns / buckets_of(rule);

	if (!request->is_counted || request->place < breaker->emptied)
		return false;
	return now_ns / bucket_ns - request->counted_ns / bucket_ns < buckets_of(rule);
}

static void window_sum(const struct model_breaker_rule *rule, const struct breaker *breaker, uint64_t now_ns,
		       uint64_t *ret_total, uint64_t *ret_bad)
{
	*ret_total = 0;
	*ret_bad = 0;
	for (size_t i = 0; i < breaker->request_count; i++) {
		if (!is_in_window(rule, breaker, &breaker->request[i], now_ns))
			continue;
		*ret_total += 1;
		*ret_bad += breaker->request[i].is_bad;
	}
}

/* total >= minRequestAmount and value >= threshold */
static bool is_over_threshold(const struct model_breaker_rule *rule, const struct breaker *breaker, uint64_t now_ns)
{
	uint64_t total, bad, parts;

	window_sum(rule, breaker, now_ns, &total, &bad);
	if (total < (rule->min_requests ? rule->min_requests : 1))
		return false;
	parts = rule->strategy == MODEL_ERROR_COUNT ? 1 : total;
	return (unsigned __int128)bad * WEIR_MICRO >= (unsigned __int128)rule->threshold_micro * parts;
}

/* ---- states ---- */

static void change(struct breaker *breaker, enum model_breaker_state state)
{
	breaker->state = state;
	breaker->changes++;
}

static void open_until(struct breaker *breaker, uint64_t retry_ns)
{
	change(breaker, MODEL_BREAKER_OPEN);
	breaker->retry_ns = retry_ns;
}

/* Of the requests that passed since this breaker was open. */
static uint64_t good_probes(const struct breaker *breaker)
{
	uint64_t good = 0;

	for (size_t i = breaker->probe; i < breaker->request_count; i++)
		good += breaker->request[i].is_counted && !breaker->request[i].is_bad;
	return good;
}

/* What a request was is known from now on; for the second time it is no news. */
static void learn(const struct model_breaker_rule *rule, struct breaker *breaker, struct request *request, bool is_bad,
		  uint64_t now_ns)
{
	bool is_probe = request - breaker->request >= (ptrdiff_t)breaker->probe;

	if (request->is_counted)
		return;
	request->is_counted = true;
	request->is_bad = is_bad;
	request->counted_ns = now_ns;
	request->place = breaker->counted++;
	switch (breaker->state) {
	case MODEL_BREAKER_CLOSED:
		if (is_over_threshold(rule, breaker, now_ns))
			open_until(breaker, now_ns + rule->retry_timeout_ns);
		break;
	case MODEL_BREAKER_OPEN:
		break;
	case MODEL_BREAKER_HALF_OPEN:
		if (is_probe && is_bad) {
			open_until(breaker, now_ns + rule->retry_timeout_ns);
		} else if (is_probe && good_probes(breaker) >= (rule->probes ? rule->probes : 1)) {
			change(breaker, MODEL_BREAKER_CLOSED);
			breaker->emptied = breaker->counted;
		}
		break;
	}
}

/* ---- what happens without a packet ---- */

struct moment {
	struct request *request; /* NULL: nothing happens */
	uint64_t time_ns;
	bool is_timeout; /* else it becomes slow */
};

static void take_earlier(struct moment *earliest, struct request *request, uint64_t time_ns, bool is_timeout)
{
	if (earliest->request && (earliest->time_ns < time_ns || (earliest->time_ns == time_ns && !is_timeout)))
		return;
	*earliest = (struct moment){request, time_ns, is_timeout};
}

/* The earliest of all moments up to now that have not happened yet. */
static struct moment next_moment(const struct model_breaker_rule *rule, const struct breaker *breaker, uint64_t now_ns)
{
	struct moment earliest = {};

	for (size_t i = 0; i < breaker->request_count; i++) {
		struct request *request = &breaker->request[i];
		uint64_t silent_ns = request->received_ns + rule->half_open_timeout_ns;
		uint64_t slow_ns = request->first_syn_ns + rule->max_rt_ns;

		if (request->outcome != PENDING)
			continue;
		if (silent_ns <= now_ns)
			take_earlier(&earliest, request, silent_ns, true);
		if (rule->strategy == MODEL_SLOW_REQUEST_RATIO && !request->is_counted && slow_ns < now_ns)
			take_earlier(&earliest, request, slow_ns, false);
	}
	return earliest;
}

/* All that happens before a packet of now. */
static void catch_up(const struct model_breaker_rule *rule, struct breaker *breaker, uint64_t now_ns)
{
	for (;;) {
		struct moment moment = next_moment(rule, breaker, now_ns);

		if (!moment.request)
			return;
		if (moment.is_timeout)
			moment.request->outcome = FAILED;
		learn(rule, breaker, moment.request, true, moment.time_ns);
	}
}

/* ---- packets ---- */

static bool is_of_interest(const struct model_packet *packet)
{
	return packet->fragment != WEIR_FRAGMENT_LATER && !packet->closes_nothing &&
	       model_event_of(packet) != MODEL_NOT_TCP;
}

/* What a key has beside the ends of a connection distinguishes connections. */
static bool may_share_connections(const struct model_key *a, const struct model_key *b)
{
	return a->rule == b->rule && a->flow.vlan == b->flow.vlan && a->flow.ifindex == b->flow.ifindex &&
	       a->flow.dscp == b->flow.dscp && a->flow.ttl == b->flow.ttl;
}

#define TCP_SYN 0x02u
#define TCP_RST 0x04u
#define TCP_ACK 0x10u

/* What a server says about a request: it accepts the connection, or refuses it. */
static bool is_server_answer(const struct model_packet *packet)
{
	const unsigned int flags = packet->tcp_flags;

	return flags & TCP_RST || (flags & TCP_SYN && flags & TCP_ACK);
}

/* The breaker whose request the packet's connection is opening, up to date; NULL: none. It need not be that of the
 * packet's own flow: a key may name the sender, and answers come from the other end.
 */
static struct breaker *opener_of(struct model_breakers *breakers, const struct model_breaker_rule *rule,
				 const struct model_key *flow, const struct model_packet *packet, uint64_t now_ns)
{
	struct breaker *opener = NULL;

	for (size_t i = 0; i < breakers->count; i++) {
		struct breaker *breaker = &breakers->breaker[i];

		if (!may_share_connections(&breaker->flow, flow))
			continue;
		catch_up(rule, breaker, now_ns);
		if (pending_of(breaker, packet))
			opener = breaker;
	}
	return opener;
}

bool model_breaker_evaluate(struct model_breakers *breakers, const struct model_breaker_rule *rule,
			    const struct model_key *flow, const struct model_packet *packet, uint64_t now_ns)
{
	struct breaker *breaker;

	if (!is_of_interest(packet))
		return true;
	breaker = breaker_get(breakers, flow);
	if (opener_of(breakers, rule, flow, packet, now_ns) || model_event_of(packet) != MODEL_OPENING)
		return true;
	switch (breaker->state) {
	case MODEL_BREAKER_CLOSED:
		return true;
	case MODEL_BREAKER_OPEN:
		return now_ns >= breaker->retry_ns;
	case MODEL_BREAKER_HALF_OPEN:
		return rule->probes > 0;
	}
	assert(false);
	return false;
}

/* A new request; the one that finds the breaker open is the probe. */
static void add_request(struct breaker *breaker, const struct model_packet *packet, uint64_t now_ns)
{
	if (breaker->state == MODEL_BREAKER_OPEN) {
		change(breaker, MODEL_BREAKER_HALF_OPEN);
		breaker->probe = breaker->request_count;
	}
	breaker->request = reallocarray(breaker->request, breaker->request_count + 1, sizeof(*breaker->request));
	assert(breaker->request);
	breaker->request[breaker->request_count++] = (struct request){
		.tuple = model_tuple_of(packet),
		.went_out = packet->is_out,
		.first_syn_ns = now_ns,
		.received_ns = now_ns,
	};
}

/* A packet of a request that is being opened has passed. */
static void go_on(const struct model_breaker_rule *rule, struct breaker *breaker, const struct model_packet *packet,
		  uint64_t now_ns)
{
	struct request *request = pending_of(breaker, packet);

	if (packet->is_out != request->went_out && !is_server_answer(packet))
		return;
	switch (model_event_of(packet)) {
	case MODEL_OPENING: /* said once more */
		request->received_ns = now_ns;
		break;
	case MODEL_TALKS:
	case MODEL_ANSWERS: /* the server, where both directions are counted */
		request->outcome = DONE;
		/* Had it come too late, the request would have been counted as slow before. */
		learn(rule, breaker, request, false, now_ns);
		break;
	case MODEL_FINISHES: /* it is over, and never talked */
	case MODEL_RESETS:
		request->outcome = FAILED;
		learn(rule, breaker, request, true, now_ns);
		break;
	case MODEL_NOT_TCP:
	case MODEL_EVENTS:
		break;
	}
}

void model_breaker_commit(struct model_breakers *breakers, const struct model_breaker_rule *rule,
			  const struct model_key *flow, const struct model_packet *packet, bool would_drop,
			  uint64_t now_ns)
{
	struct breaker *breaker, *opener;

	if (would_drop || !is_of_interest(packet))
		return;
	breaker = breaker_get(breakers, flow);
	opener = opener_of(breakers, rule, flow, packet, now_ns);
	if (opener)
		go_on(rule, opener, packet, now_ns);
	else if (model_event_of(packet) == MODEL_OPENING)
		add_request(breaker, packet, now_ns);
}

void model_breaker_answer(struct model_breakers *breakers, const struct model_breaker_rule *rule,
			  const struct model_key *flow, const struct model_packet *packet, uint64_t now_ns)
{
	struct breaker *opener;

	if (!is_of_interest(packet) || !is_server_answer(packet))
		return;
	opener = opener_of(breakers, rule, flow, packet, now_ns);
	if (opener)
		go_on(rule, opener, packet, now_ns);
}

struct model_breaker_view model_breaker_of_flow(struct model_breakers *breakers, const struct model_breaker_rule *rule,
						const struct model_key *flow, uint64_t now_ns)
{
	struct breaker *breaker = breaker_get(breakers, flow);
	struct model_breaker_view view;

	catch_up(rule, breaker, now_ns);
	view = (struct model_breaker_view){
		.state = breaker->state,
		.retry_ns = breaker->retry_ns,
		.changes = breaker->changes,
	};
	window_sum(rule, breaker, now_ns, &view.total, &view.bad);
	return view;
}
