// SPDX-License-Identifier: GPL-2.0-only
/* Metrics of rules: their packets, connections and circuit breakers. */
#include <stddef.h>

#include "base/util.h"
#include "kind/kind.h"
#include "serve/metrics_book.h"
#include "state/directions.h"
#include "tables/rule_kind.h"

/* ---- rules ---- */

const struct weir_rule_info *weir_metrics_rule_at(const struct book *book, uint32_t place)
{
	return &book->instance->rules[book->instance->rule_order[place]];
}

static bool is_any(const struct weir_rule_info *rule)
{
	return true;
}

static bool has_interval(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->has_interval;
}

static bool may_delay(const struct weir_rule_info *rule)
{
	return weir_throttles(rule);
}

void weir_metrics_write_rule_info(struct book *book)
{
	static const struct weir_metric_family metric = {"weir_rule", WEIR_METRIC_INFO, NULL,
							 "The rules in force: whether they drop, and what they count."};

	weir_exposition_begin(book->out, &metric);
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_rule_info *rule = weir_metrics_rule_at(book, i);
		const char *noun = weir_kind_of_info(rule)->noun;
		struct weir_labels *labels = &book->rule_labels[i];
		const size_t bytes = labels->bytes;

		weir_labels_add(labels, "mode", rule->observes ? "observe" : "enforce");
		weir_labels_add(labels, "direction", weir_direction_name(weir_rule_directions(book->instance, rule)));
		weir_metrics_write_with(book->out, labels, "unit",
					noun
						?: rule->identity.counts_bytes ? "byte"
									       : "packet",
					1);
		labels->bytes = bytes;
	}
}

static double configured_threshold(const struct weir_rule_info *rule)
{
	return rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? (double)rule->memory.low_units
							       : rule->threshold_micro / 1e6;
}

void weir_metrics_write_thresholds(struct book *book)
{
	static const struct weir_metric_family configured = {"weir_rule_threshold", WEIR_METRIC_GAUGE, NULL,
							     "The threshold in the rule file, in units per interval."};
	static const struct weir_metric_family in_force = {"weir_rule_threshold_in_force", WEIR_METRIC_GAUGE, NULL,
							   "The threshold in force now, in units per interval."};
	static const struct weir_metric_family interval = {"weir_rule_interval_seconds", WEIR_METRIC_GAUGE, "seconds",
							   "The interval of the threshold."};
	const struct weir_controller_report *report = &book->reading->status.controller;

	weir_exposition_begin(book->out, &configured);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		weir_exposition_value(book->out, &book->rule_labels[i],
				      configured_threshold(weir_metrics_rule_at(book, i)));
	weir_exposition_begin(book->out, &in_force);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_has_one_threshold(weir_metrics_rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i], report->thresholds[i]);
	weir_exposition_begin(book->out, &interval);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (has_interval(weir_metrics_rule_at(book, i)))
			weir_exposition_value(book->out, &book->rule_labels[i],
					      weir_metrics_rule_at(book, i)->identity.interval_ns / 1e9);
}

#define COUNTER(member) offsetof(struct weir_rule_counters, member)

static const struct {
	struct weir_metric_family metric;
	bool (*has)(const struct weir_rule_info *rule);
	size_t offset; /* in struct weir_rule_counters */
} rule_counters[] = {
	{{"weir_rule_dropped_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that the rule dropped, as the first rule to block them."},
	 is_any,
	 COUNTER(blocked.packets)},
	{{"weir_rule_dropped_bytes", WEIR_METRIC_COUNTER, "bytes", "Bytes of packets that the rule dropped."},
	 is_any,
	 COUNTER(blocked.bytes)},
	{{"weir_rule_would_drop_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that the rule would have dropped if it did not observe."},
	 is_any,
	 COUNTER(would_drop.packets)},
	{{"weir_rule_would_drop_bytes", WEIR_METRIC_COUNTER, "bytes", "Bytes of such packets."},
	 is_any,
	 COUNTER(would_drop.bytes)},
	{{"weir_rule_evicted_flows", WEIR_METRIC_COUNTER, NULL,
	  "Flows evicted from a full table while they still counted."},
	 has_interval,
	 COUNTER(evicted)},
	{{"weir_rule_stalled_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets dropped because a CPU stalled while it evaluated them."},
	 has_interval,
	 COUNTER(stalled)},
	{{"weir_rule_leases", WEIR_METRIC_COUNTER, NULL, "Times that a CPU summed what the other CPUs had admitted."},
	 has_interval,
	 COUNTER(leases)},
	{{"weir_rule_delayed_packets", WEIR_METRIC_COUNTER, NULL, "Packets that a Throttling rule delayed."},
	 may_delay,
	 COUNTER(delayed)},
	{{"weir_rule_borrowed_packets", WEIR_METRIC_COUNTER, NULL, "Packets that passed by occupying a later bucket."},
	 weir_occupies,
	 COUNTER(delayed)},
	{{"weir_rule_penalties", WEIR_METRIC_COUNTER, NULL, "Penalties that began."}, weir_penalises, COUNTER(changes)},
};

void weir_metrics_write_rule_counters(struct book *book)
{
	const struct weir_rule_counters *counters = book->reading->stats.counters.rules;

	for (size_t each = 0; each < ARRAY_SIZE(rule_counters); each++) {
		weir_exposition_begin(book->out, &rule_counters[each].metric);
		for (uint32_t i = 0; i < book->instance->rule_count; i++)
			if (rule_counters[each].has(weir_metrics_rule_at(book, i)))
				weir_exposition_count(book->out, &book->rule_labels[i],
						      weir_metrics_count_at(&counters[book->instance->rule_order[i]],
									    rule_counters[each].offset));
	}
}

void weir_metrics_write_delays(struct book *book)
{
	static const struct weir_metric_family delay = {"weir_rule_delay_seconds", WEIR_METRIC_COUNTER, "seconds",
							"Sum of the delays that the rule caused."};
	const struct weir_rule_counters *counters = book->reading->stats.counters.rules;

	weir_exposition_begin(book->out, &delay);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (may_delay(weir_metrics_rule_at(book, i)))
			weir_exposition_value(book->out, &book->rule_labels[i],
					      counters[book->instance->rule_order[i]].delay_ns / 1e9);
}

void weir_metrics_write_penalties(struct book *book)
{
	static const struct weir_metric_family active = {"weir_rule_penalised_flows", WEIR_METRIC_GAUGE, NULL,
							 "Flows that are penalised now."};
	const struct weir_penalised_flows *penalties = &book->reading->stats.penalties;

	weir_exposition_begin(book->out, &active);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_penalises(weir_metrics_rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i],
					      penalties->by_rule[book->instance->rule_order[i]]);
}

/* Long enough that one scrape a minute misses no limited flow. */
#define LIMITED_NS (60 * WEIR_NSEC_PER_SEC)

void weir_metrics_write_limited(struct book *book)
{
	static const struct weir_metric_family limited = {
		"weir_rule_limited_flows", WEIR_METRIC_GAUGE, NULL,
		"Flows that lost packets to the rule in the minute before the flows were counted."};
	const struct weir_drops *drops = &book->source->drops;
	_cleanup_(weir_freep) uint64_t *by_rule = calloc(book->instance->info.rule_slots + 1ul, sizeof(*by_rule));

	book->out->is_cut |= !by_rule;
	for (size_t i = 0; by_rule && i < drops->count; i++)
		if (!drops->worst[i].is_observed && drops->worst[i].last_ns + LIMITED_NS > drops->now_ns)
			by_rule[drops->worst[i].rule_slot]++;
	weir_exposition_begin(book->out, &limited);
	for (uint32_t i = 0; by_rule && i < book->instance->rule_count; i++)
		weir_exposition_count(book->out, &book->rule_labels[i], by_rule[book->instance->rule_order[i]]);
}

/* ---- connections ---- */

#define FIGURE(member) offsetof(struct weir_connection_figures, member)

static const struct {
	struct weir_metric_family metric;
	size_t offset; /* in struct weir_connection_figures */
} connection_metrics[] = {
	{{"weir_rule_connections", WEIR_METRIC_GAUGE, NULL, "Connections that are open now."}, FIGURE(now)},
	{{"weir_rule_opened_connections", WEIR_METRIC_COUNTER, NULL, "Connections that were opened and admitted."},
	 FIGURE(opened)},
	{{"weir_rule_learned_connections", WEIR_METRIC_COUNTER, NULL,
	  "Connections whose opening was not seen; they do not count."},
	 FIGURE(learned)},
	{{"weir_rule_returned_connections", WEIR_METRIC_COUNTER, NULL,
	  "Connections that count again: they sent packets after an eviction or a timeout."},
	 FIGURE(returned)},
	{{"weir_rule_refused_connections", WEIR_METRIC_COUNTER, NULL, "Openings refused because of the threshold."},
	 FIGURE(refused)},
};

static const struct {
	const char *reason;
	size_t offset;
} connection_ends[] = {
	{"fin", FIGURE(closed_by_fin)}, {"reset", FIGURE(closed_by_reset)}, {"idle", FIGURE(closed_by_idle)},
	{"reused", FIGURE(reused)},	{"evicted", FIGURE(evicted)},
};

/* NULL: the rule counts no connections. */
static const struct weir_connection_figures *connections_at(const struct book *book, uint32_t place)
{
	return weir_has_connections(weir_metrics_rule_at(book, place))
		       ? &book->reading->stats.connections[book->instance->rule_order[place]]
		       : NULL;
}

static void write_connection_ends(struct book *book)
{
	static const struct weir_metric_family closed = {"weir_rule_closed_connections", WEIR_METRIC_COUNTER, NULL,
							 "Connections that ended, by how they ended."};

	weir_exposition_begin(book->out, &closed);
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_connection_figures *figures = connections_at(book, i);

		for (size_t end = 0; figures && end < ARRAY_SIZE(connection_ends); end++)
			weir_metrics_write_with(book->out, &book->rule_labels[i], "reason", connection_ends[end].reason,
						weir_metrics_count_at(figures, connection_ends[end].offset));
	}
}

static void write_handshakes(struct book *book)
{
	static const struct weir_metric_family handshakes = {
		"weir_rule_handshake_seconds", WEIR_METRIC_HISTOGRAM, "seconds",
		"TCP handshake times, from the SYN to the ACK that completes it."};

	weir_exposition_begin(book->out, &handshakes);
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_connection_figures *figures = connections_at(book, i);

		if (figures)
			weir_exposition_powers(book->out, &book->rule_labels[i], figures->handshake_step,
					       WEIR_HANDSHAKE_STEPS, figures->handshake_us);
	}
}

void weir_metrics_write_connections(struct book *book)
{
	for (size_t each = 0; each < ARRAY_SIZE(connection_metrics); each++) {
		weir_exposition_begin(book->out, &connection_metrics[each].metric);
		for (uint32_t i = 0; i < book->instance->rule_count; i++) {
			const struct weir_connection_figures *figures = connections_at(book, i);

			if (figures)
				weir_exposition_count(book->out, &book->rule_labels[i],
						      weir_metrics_count_at(figures, connection_metrics[each].offset));
		}
	}
	write_connection_ends(book);
	write_handshakes(book);
}

/* ---- circuit breakers ---- */

/* The number of the rule's breakers in each state: those of its flows, or its only one. */
static void write_breaker_states(struct book *book, uint32_t place)
{
	const struct weir_rule_info *rule = weir_metrics_rule_at(book, place);
	const struct weir_breaker_sum *sum = &book->reading->stats.breakers[book->instance->rule_order[place]];

	for (int kind = 0; kind <= WEIR_BREAKER_HALF_OPEN; kind++)
		weir_metrics_write_with(book->out, &book->rule_labels[place], "state", weir_breaker_kind_names[kind],
					rule->identity.key_fields ? sum->count[kind] : (int)sum->lone.kind == kind);
}

void weir_metrics_write_breakers(struct book *book)
{
	static const struct weir_metric_family breakers = {"weir_rule_breakers", WEIR_METRIC_GAUGE, NULL,
							   "Circuit breakers by state."};
	static const struct weir_metric_family changes = {"weir_rule_breaker_changes", WEIR_METRIC_COUNTER, NULL,
							  "State changes of circuit breakers."};
	const struct weir_breaker_sum *sums = book->reading->stats.breakers;

	weir_exposition_begin(book->out, &breakers);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_is_breaker(weir_metrics_rule_at(book, i)))
			write_breaker_states(book, i);
	weir_exposition_begin(book->out, &changes);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_is_breaker(weir_metrics_rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i],
					      sums[book->instance->rule_order[i]].changes);
}
