// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind BREAKER: a circuit breaker, evaluated by the outcome of earlier openings (docs/breakers.md). Breakers are not
 * written under `rules:`; rules/circuit_breakers.c reads them.
 */
#include "base/util.h"
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/rule.h"
#include "tables/rule_kind.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->metric == WEIR_METRIC_REQUESTS;
}

/* Retry times hold as many bits of the clock as TATs do, and a retry is at most a day away. */
static int check_span(uint64_t span_ns, struct weir_diag *diag)
{
	if (span_ns < WEIR_BREAKER_TIME_MASK >> 2)
		return 0;
	weir_diag_error(diag, NULL, NULL, "split the capture there, and replay each part by itself",
			"circuit breakers can plan ahead 2.2 years, but these packets are further apart");
	return -EINVAL;
}

/* A full table of requests forgets some, and no threshold is too large for it; but the kind depends on those settings.
 */
static void warn_of_room(struct weir_reader *reader, size_t place)
{
}

/* ---- tables ---- */

static bool has_flows(const struct weir_rule_info *rule)
{
	return weir_is_breaker(rule) && rule->identity.key_fields;
}

static uint32_t ring_shift(const struct weir_settings *settings, uint32_t shift)
{
	return settings->ring_groups ? (uint32_t)__builtin_ctz(settings->ring_groups) : shift;
}

/* A request may count as slow only after the timeout. If its opening is repeated before that, the request is due at
 * another time than those that are repeated, or begin, together with it. Without such rules requests are due in the
 * order in which they begin.
 */
static bool may_be_slow_late(const struct weir_image *image)
{
	for (uint32_t i = 0; i < image->rule_count; i++)
		if (image->rules[i].kind == WEIR_KIND_BREAKER &&
		    image->rules[i].breaker.max_rt_ns >= image->config.request_timeout_ns)
			return true;
	return false;
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing requests = {
		.keeps = weir_is_breaker,
		.sets = weir_sets_for(settings->connections, WEIR_REQUESTS_PER_SET),
		.table = WEIR_TABLE_REQUESTS,
		.ways = WEIR_REQUESTS_PER_SET,
		.keeping = "table of requests keeps its",
		.what = "places",
		.setting = "connections",
	};
	const struct weir_sizing breakers = {
		.keeps = has_flows,
		.sets = weir_sets_for(settings->connection_flows, WEIR_BREAKERS_PER_SET),
		.table = WEIR_TABLE_BREAKERS,
		.ways = WEIR_BREAKERS_PER_SET,
		.keeping = "table of circuit breakers keeps its",
		.what = "places",
		.setting = "connectionFlows",
		.is_reported =
			settings->derives_connection_flows && requests.sets != previous->sizes[WEIR_TABLE_REQUESTS],
	};
	struct weir_config *config = &image->config;

	weir_size_table(image, previous, &requests, diag);
	weir_size_table(image, previous, &breakers, diag);
	config->ring_shift = ring_shift(settings, WEIR_RING_SHIFT);
	config->lone_ring_shift = ring_shift(settings, WEIR_LONE_RING_SHIFT);
	if (config->sizes[WEIR_TABLE_REQUESTS])
		config->sizes[WEIR_TABLE_LONE_BREAKERS] = image->rule_slots;
	config->sizes[WEIR_TABLE_REQUEST_GROUPS] = (config->sizes[WEIR_TABLE_BREAKERS] * 8) << config->ring_shift;
	config->sizes[WEIR_TABLE_LONE_GROUPS] = config->sizes[WEIR_TABLE_LONE_BREAKERS] << config->lone_ring_shift;
	/* Each request has its own due time: the timeout may change with a reload. Requests that begin afterwards may
	 * be due before earlier ones, but are counted after them.
	 */
	config->request_timeout_ns = settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] * 1000000;
	config->rings_are_unordered = may_be_slow_late(image);
}

/* The time for which a request can be opening. A breaker that is found later is recognised by its age
 * (weir_breaker_terms.since_ns).
 */
static uint64_t rule_memory_ns(const struct weir_previous *previous)
{
	return previous->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] * 1000000 + WEIR_NSEC_PER_SEC;
}

const struct weir_kind weir_kind_breaker = {
	.is_chosen = is_chosen,
	.fields = 1u << RULE_NAME | 1u << RULE_RESOURCE | 1u << RULE_METRIC | 1u << RULE_THRESHOLD | 1u << RULE_MODE,
	.threshold_hint = "write what opens it: 'threshold: 0.5'",
	.below_one = "a threshold of 0 opens the breaker with the first outcomes, good or bad",
	.below_one_hint = "write the share of bad requests that opens it, such as 0.5",
	.warn_of_room = warn_of_room,
	.packet_fields = WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION | WEIR_MATCH_SOURCE_PORT |
			 WEIR_MATCH_DESTINATION_PORT | WEIR_MATCH_TCP_FLAGS,
	.check_span = check_span,
	.size_tables = size_tables,
	.rule_memory_ns = rule_memory_ns,
	.noun = "request",
	.storage_name = "breakers",
};
