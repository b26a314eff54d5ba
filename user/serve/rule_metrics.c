// SPDX-License-Identifier: GPL-2.0-only
/* Metrics of rules: their packets, connections and circuit breakers. */
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "kind/kind.h"
#include "serve/metrics_book.h"
#include "state/counters.h"
#include "tables/rule_kind.h"
#include "words/state_words.h"

/* ---- rules ---- */

const struct weir_rule_info *weir_metrics_rule_at(const struct book *book, uint32_t place)
{
	return &book->instance->rules[book->instance->rule_order[place]];
}

static bool is_any(const struct weir_rule_info *rule)
{
	return true;
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
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_rule_info *rule = weir_metrics_rule_at(book, i);

		weir_exposition_value(book->out, &book->rule_labels[i],
				      rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? (double)rule->memory.low_units
										      : rule->threshold_micro / 1e6);
	}
	weir_exposition_begin(book->out, &in_force);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_has_one_threshold(weir_metrics_rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i], report->thresholds[i]);
	weir_exposition_begin(book->out, &interval);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_has_interval(weir_metrics_rule_at(book, i)))
			weir_exposition_value(book->out, &book->rule_labels[i],
					      weir_metrics_rule_at(book, i)->identity.interval_ns / 1e9);
}

/* The metrics of counters that rules have at `records`, by their slots. */
static void write_counters(struct book *book, const struct weir_column *columns, const void *records,
			   size_t record_bytes, bool (*has)(const struct weir_rule_info *rule))
{
	for (; columns->json; columns++) {
		if (!columns->metric.name)
			continue;
		weir_exposition_begin(book->out, &columns->metric);
		for (uint32_t i = 0; i < book->instance->rule_count; i++) {
			const struct weir_rule_info *rule = weir_metrics_rule_at(book, i);
			const uint64_t count = weir_metrics_count_at(
				(const char *)records + book->instance->rule_order[i] * record_bytes, columns->offset);

			if (!has(rule) || (columns->when && !columns->when(rule)))
				continue;
			if (columns->metric.unit && !strcmp(columns->metric.unit, "seconds"))
				weir_exposition_value(book->out, &book->rule_labels[i], count / 1e9);
			else
				weir_exposition_count(book->out, &book->rule_labels[i], count);
		}
	}
}

void weir_metrics_write_rule_counters(struct book *book)
{
	const struct weir_rule_counters *counters = book->reading->stats.counters.rules;

	write_counters(book, weir_rule_counters, counters, sizeof(*counters), is_any);
	write_counters(book, weir_rule_answers, book->reading->stats.counters.answers, sizeof(struct weir_rule_answers),
		       is_any);
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

/* Of rules with fairBy. */
void weir_metrics_write_fair(struct book *book)
{
	static const struct weir_metric_family families[] = {
		{"weir_rule_contended_flows", WEIR_METRIC_GAUGE, NULL,
		 "Flows whose threshold is shared by children that want more than there is."},
		{"weir_rule_fair_level", WEIR_METRIC_GAUGE, NULL,
		 "What each child of the rule's contended flows may have, in units per interval; the lowest level."},
		{"weir_rule_fair_children", WEIR_METRIC_GAUGE, NULL, "Children of the rule's contended flows."},
		{"weir_rule_fair_children_new", WEIR_METRIC_GAUGE, NULL,
		 "Children of the rule's contended flows that sent nothing in the two intervals before."},
		{"weir_rule_fair_children_above", WEIR_METRIC_GAUGE, NULL,
		 "Children of the rule's contended flows that want more than the level, each as many as its weight."},
	};

	for (size_t family = 0; family < ARRAY_SIZE(families); family++) {
		weir_exposition_begin(book->out, &families[family]);
		for (uint32_t i = 0; i < book->instance->rule_count; i++) {
			const struct weir_fair_sum sum =
				weir_fair_sum_of(&book->reading->status.fair, book->instance->rule_order[i]);
			const double values[] = {sum.contended, sum.level, sum.children, sum.newcomers, sum.above};

			if (weir_children_of(book->instance, weir_metrics_rule_at(book, i)) &&
			    (family != 1 || sum.level))
				weir_exposition_value(book->out, &book->rule_labels[i], values[family]);
		}
	}
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
	write_counters(book, weir_connection_columns, book->reading->stats.connections,
		       sizeof(*book->reading->stats.connections), weir_has_connections);
	write_connection_ends(book);
	write_handshakes(book);
}

/* ---- circuit breakers ---- */

void weir_metrics_write_breakers(struct book *book)
{
	static const struct weir_metric_family breakers = {"weir_rule_breakers", WEIR_METRIC_GAUGE, NULL,
							   "Circuit breakers by state."};
	static const struct weir_metric_family changes = {"weir_rule_breaker_changes", WEIR_METRIC_COUNTER, NULL,
							  "State changes of circuit breakers."};
	const struct weir_breaker_sum *sums = book->reading->stats.breakers;

	weir_exposition_begin(book->out, &breakers);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_is_breaker(weir_metrics_rule_at(book, i))) {
			/* The number of the rule's breakers in each state: those of its flows, or its only one. */
			const struct weir_breaker_sum *sum =
				&book->reading->stats.breakers[book->instance->rule_order[i]];

			for (int kind = 0; kind <= WEIR_BREAKER_HALF_OPEN; kind++)
				weir_metrics_write_with(
					book->out, &book->rule_labels[i], "state", weir_breaker_kind_names[kind],
					sum->has_flows ? sum->count[kind] : (int)sum->lone.kind == kind);
		}
	weir_exposition_begin(book->out, &changes);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_is_breaker(weir_metrics_rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i],
					      sums[book->instance->rule_order[i]].changes);
}

/* Labels and samples, for all tables of metrics. */

uint64_t weir_metrics_count_at(const void *base, size_t offset)
{
	uint64_t count;

	memcpy(&count, (const char *)base + offset, sizeof(count));
	return count;
}

void weir_metrics_write_with(struct weir_exposition *out, struct weir_labels *labels, const char *name,
			     const char *value, uint64_t count)
{
	const size_t bytes = labels->bytes;

	weir_labels_add(labels, name, value);
	weir_exposition_count(out, labels, count);
	labels->bytes = bytes;
}

struct weir_labels weir_metrics_label(const char *name, const char *value)
{
	struct weir_labels labels;

	labels.bytes = 0; /* the text is long, and need not be zeroed */
	weir_labels_add(&labels, name, value);
	return labels;
}

uint64_t weir_metrics_unix_seconds(uint64_t monotonic_ns)
{
	return weir_host_wall_ns(monotonic_ns) / WEIR_NSEC_PER_SEC;
}
