// SPDX-License-Identifier: GPL-2.0-only
#include "serve/metrics.h"

#include <stddef.h>
#include <sys/resource.h>

#include "base/util.h"
#include "serve/metrics_book.h"
#include "state/counters.h"
#include "words/words.h"

/* ---- packets ---- */

/* A tally for each verdict, or only for the verdicts that drop. */
static void write_verdicts(struct book *book, const struct weir_tally *tallies, uint32_t directions, bool drops_only,
			   size_t offset)
{
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		struct weir_labels labels = weir_metrics_label("verdict", weir_verdict_names[verdict]);

		if (!drops_only || weir_verdict_drops(verdict))
			weir_metrics_write_with(book->out, &labels, "direction", weir_direction_name(directions),
						weir_metrics_count_at(&tallies[verdict], offset));
	}
}

/* For both directions; outgoing packets only if rules limit them. */
static void write_directions(struct book *book, const struct weir_metric_family *metric, bool would_drop, size_t offset)
{
	const struct weir_counters *counters = &book->reading->stats.counters;

	weir_exposition_begin(book->out, metric);
	write_verdicts(book, would_drop ? counters->totals.would_drop : counters->totals.verdict, WEIR_MATCHES_IN,
		       would_drop, offset);
	if (weir_limits_out(book->instance))
		write_verdicts(book, would_drop ? counters->out.would_drop : counters->out.verdict, WEIR_MATCHES_OUT,
			       would_drop, offset);
}

static void write_totals(struct book *book)
{
	static const struct weir_metric_family packets = {"weir_packets", WEIR_METRIC_COUNTER, NULL,
							  "Packets by verdict. Each packet has exactly one."};
	static const struct weir_metric_family bytes = {"weir_bytes", WEIR_METRIC_COUNTER, "bytes",
							"Bytes of packets by verdict."};
	static const struct weir_metric_family would_packets = {
		"weir_would_drop_packets", WEIR_METRIC_COUNTER, NULL,
		"Packets that passed only because the instance observes, by the verdict they would have had."};
	static const struct weir_metric_family would_bytes = {"weir_would_drop_bytes", WEIR_METRIC_COUNTER, "bytes",
							      "Bytes of such packets."};

	write_directions(book, &packets, false, offsetof(struct weir_tally, packets));
	write_directions(book, &bytes, false, offsetof(struct weir_tally, bytes));
	write_directions(book, &would_packets, true, offsetof(struct weir_tally, packets));
	write_directions(book, &would_bytes, true, offsetof(struct weir_tally, bytes));
}

static void write_resource_metric(struct book *book, const struct weir_metric_family *metric, size_t offset)
{
	weir_exposition_begin(book->out, metric);
	for (uint32_t i = 0; i < book->instance->resource_count; i++) {
		const uint32_t slot = book->instance->resource_order[i];
		const struct weir_resource_info *resource = &book->instance->resources[slot];
		const struct weir_resource_sum *sum = &book->reading->stats.counters.resources[slot];
		struct weir_labels labels = weir_metrics_label("resource", resource->name);

		weir_labels_add(&labels, "direction", weir_direction_name(weir_resource_directions(resource)));
		weir_metrics_write_with(book->out, &labels, "outcome", "passed",
					weir_metrics_count_at(&sum->passed, offset));
		weir_metrics_write_with(book->out, &labels, "outcome", "blocked",
					weir_metrics_count_at(&sum->blocked, offset));
	}
}

static void write_resources(struct book *book)
{
	static const struct weir_metric_family packets = {"weir_resource_packets", WEIR_METRIC_COUNTER, NULL,
							  "Packets that a resource matched."};
	static const struct weir_metric_family bytes = {"weir_resource_bytes", WEIR_METRIC_COUNTER, "bytes",
							"Bytes of packets that a resource matched."};

	write_resource_metric(book, &packets, offsetof(struct weir_tally, packets));
	write_resource_metric(book, &bytes, offsetof(struct weir_tally, bytes));
}

static void write_pace(struct book *book)
{
	static const struct weir_metric_family packets = {"weir_paced_packets", WEIR_METRIC_COUNTER, NULL,
							  "Packets that had to wait, with throttling: pace."};
	static const struct weir_metric_family waiting = {"weir_pace_waiting_packets", WEIR_METRIC_GAUGE, NULL,
							  "Packets that are waiting now."};
	const struct weir_labels held = weir_metrics_label("outcome", "held"),
				 not_held = weir_metrics_label("outcome", "notHeld");
	const struct weir_labels dropped = weir_metrics_label("outcome", "dropped");
	const struct weir_stats_view *stats = &book->reading->stats;

	weir_exposition_begin(book->out, &packets);
	if (stats->has_pace) {
		weir_exposition_count(book->out, &held, stats->pace.held);
		weir_exposition_count(book->out, &not_held, stats->pace.not_held);
		weir_exposition_count(book->out, &dropped, stats->pace.dropped);
	}
	weir_exposition_begin(book->out, &waiting);
	if (stats->has_pace)
		weir_exposition_count(book->out, NULL, stats->pace.waiting);
}

/* ---- flows ---- */

static void write_table_use(struct book *book, const struct weir_metric_family *metric, size_t offset)
{
	const struct weir_flows *flows = &book->source->flows.flows;
	const struct {
		const char *table;
		const struct weir_table_use *use;
	} tables[] = {{"narrow", &flows->narrow}, {"medium", &flows->medium}, {"wide", &flows->wide}};

	weir_exposition_begin(book->out, metric);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct weir_labels labels = weir_metrics_label("table", tables[i].table);

		weir_exposition_count(book->out, &labels, weir_metrics_count_at(tables[i].use, offset));
	}
}

static void write_flows(struct book *book)
{
	static const struct weir_metric_family active = {"weir_flows_active", WEIR_METRIC_GAUGE, NULL,
							 "Flows whose windows are not empty."};
	static const struct weir_metric_family age = {"weir_flows_age_seconds", WEIR_METRIC_GAUGE, "seconds",
						      "Age of the counts of flows and rows."};
	static const struct weir_metric_family rows = {"weir_flow_table_rows", WEIR_METRIC_GAUGE, NULL,
						       "Rows in use of a flow table, on the CPU with the most."};
	static const struct weir_metric_family room = {"weir_flow_table_rows_limit", WEIR_METRIC_GAUGE, NULL,
						       "Rows of a flow table on each CPU."};

	weir_exposition_begin(book->out, &active);
	weir_exposition_count(book->out, NULL, book->source->flows.flows.active);
	weir_exposition_begin(book->out, &age);
	weir_exposition_value(book->out, NULL, weir_source_flows_age_ns(book->source) / 1e9);
	write_table_use(book, &rows, offsetof(struct weir_table_use, rows));
	write_table_use(book, &room, offsetof(struct weir_table_use, room));
}

/* ---- the server ---- */

static void write_process(struct book *book)
{
	static const struct weir_metric_family cpu = {"process_cpu_seconds", WEIR_METRIC_COUNTER, "seconds",
						      "CPU time of the process that serves."};
	static const struct weir_metric_family memory = {"process_resident_memory_max_bytes", WEIR_METRIC_GAUGE,
							 "bytes", "Peak resident memory of the process that serves."};
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	weir_exposition_begin(book->out, &cpu);
	weir_exposition_value(book->out, NULL,
			      usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
				      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	weir_exposition_begin(book->out, &memory);
	weir_exposition_count(book->out, NULL, usage.ru_maxrss * 1024ull);
}

/* ---- the contract ---- */

static void write_rules(struct book *book)
{
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		book->rule_labels[i].bytes = 0;
		weir_labels_add(&book->rule_labels[i], "rule", weir_metrics_rule_at(book, i)->name);
		weir_labels_add(&book->rule_labels[i], "resource", weir_metrics_rule_at(book, i)->resource_name);
	}
	weir_metrics_write_rule_info(book);
	weir_metrics_write_thresholds(book);
	weir_metrics_write_rule_counters(book);
	weir_metrics_write_penalties(book);
	weir_metrics_write_fair(book);
	weir_metrics_write_limited(book);
	weir_metrics_write_connections(book);
	weir_metrics_write_breakers(book);
	weir_metrics_write_shares(book);
}

void weir_metrics_write(const struct weir_source *source, const struct weir_reading *reading,
			struct weir_exposition *exposition)
{
	struct book book = {
		.source = source,
		.reading = reading,
		.instance = reading->instance,
		/* malloc, because zeroing would touch all the memory; only the parts for existing rules are written */
		.rule_labels = malloc((reading->instance->rule_count + 1ul) * sizeof(*book.rule_labels)),
		.out = exposition,
	};

	exposition->is_cut = !book.rule_labels;
	if (exposition->is_cut)
		return;
	weir_metrics_write_build(&book);
	weir_metrics_write_instance(&book);
	weir_metrics_write_times(&book);
	weir_metrics_write_reloads(&book);
	weir_metrics_write_controller(&book);
	weir_metrics_write_interfaces(&book);
	weir_metrics_write_ghosts(&book);
	weir_metrics_write_lists(&book);
	weir_metrics_write_sets(&book);
	weir_metrics_write_memory(&book);
	weir_metrics_write_signals(&book);
	weir_metrics_write_cluster(&book);
	write_totals(&book);
	write_resources(&book);
	write_pace(&book);
	write_rules(&book);
	write_flows(&book);
	write_process(&book);
	weir_exposition_end(exposition);
	free(book.rule_labels);
}
