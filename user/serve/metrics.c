// SPDX-License-Identifier: GPL-2.0-only
#include "serve/metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/util.h"
#include "host/host.h"
#include "kind/kind.h"
#include "tables/rule_kind.h"
#include "words/words.h"

/* What a table of metrics is written from. */
struct book {
	const struct weir_source *source;
	const struct weir_reading *reading;
	const struct weir_instance *instance; /* the reading's */
	struct weir_labels *rule_labels;      /* by place: most samples are of rules */
	struct weir_exposition *out;
};

static uint64_t count_at(const void *base, size_t offset)
{
	uint64_t count;

	memcpy(&count, (const char *)base + offset, sizeof(count));
	return count;
}

/* A sample with one more label; `labels` stay as they are. */
static void write_with(struct weir_exposition *out, struct weir_labels *labels, const char *name, const char *value,
		       uint64_t count)
{
	const size_t bytes = labels->bytes;

	weir_labels_add(labels, name, value);
	weir_exposition_count(out, labels, count);
	labels->bytes = bytes;
}

static struct weir_labels label(const char *name, const char *value)
{
	struct weir_labels labels;

	labels.bytes = 0; /* the text is long, and need not be zeroed */
	weir_labels_add(&labels, name, value);
	return labels;
}

/* A time by CLOCK_MONOTONIC in whole seconds since the epoch: what lies below would differ from scrape to scrape. */
static uint64_t unix_seconds(uint64_t monotonic_ns)
{
	return weir_host_wall_ns(monotonic_ns) / WEIR_NSEC_PER_SEC;
}

/* ---- the instance ---- */

static void write_build(struct book *book)
{
	static const struct weir_metric_family metric = {
		"weir_build", WEIR_METRIC_INFO, NULL, "The weir that serves: the version of its tables' description."};
	char version[16];
	struct weir_labels labels;

	snprintf(version, sizeof(version), "%u", WEIR_ABI_VERSION);
	labels = label("abi", version);
	weir_exposition_begin(book->out, &metric);
	weir_exposition_count(book->out, &labels, 1);
}

static void write_instance(struct book *book)
{
	static const struct weir_metric_family metric = {
		"weir_instance", WEIR_METRIC_INFO, NULL,
		"The instance, and whether it drops packets or only observes."};
	struct weir_labels labels = label("name", book->instance->name);

	weir_labels_add(&labels, "mode", book->instance->info.observes ? "observe" : "enforce");
	weir_exposition_begin(book->out, &metric);
	weir_exposition_count(book->out, &labels, 1);
}

static void write_times(struct book *book)
{
	static const struct weir_metric_family attached = {"weir_attach_timestamp_seconds", WEIR_METRIC_GAUGE,
							   "seconds",
							   "When the instance was attached, since the epoch."};
	static const struct weir_metric_family loaded = {"weir_reload_last_success_timestamp_seconds",
							 WEIR_METRIC_GAUGE, "seconds",
							 "When the rules in force were loaded, since the epoch."};
	static const struct weir_metric_family hold = {"weir_limits_hold_seconds", WEIR_METRIC_GAUGE, "seconds",
						       "Time until the bucket numbers of some rule run out."};
	static const struct weir_metric_family returns = {
		"weir_rules_return_seconds", WEIR_METRIC_GAUGE, "seconds",
		"In how long the rules before return, as those in force are not confirmed; 0: they stay."};
	const struct weir_unconfirmed *unconfirmed = &book->instance->unconfirmed;
	const uint64_t left_ns = weir_instance_left_ns(book->instance);

	weir_exposition_begin(book->out, &attached);
	weir_exposition_count(book->out, NULL, unix_seconds(book->instance->info.attached_ns));
	weir_exposition_begin(book->out, &loaded);
	weir_exposition_count(book->out, NULL, unix_seconds(book->instance->info.loaded_ns));
	weir_exposition_begin(book->out, &hold);
	if (left_ns != UINT64_MAX)
		weir_exposition_value(book->out, NULL, left_ns / 1e9);
	weir_exposition_begin(book->out, &returns);
	weir_exposition_count(book->out, NULL, unconfirmed->is_so ? weir_unconfirmed_left_s(unconfirmed) : 0);
}

static void write_reloads(struct book *book)
{
	static const struct weir_metric_family reloads = {
		"weir_reloads", WEIR_METRIC_COUNTER, NULL,
		"Reloads: successes by any command since attach, failures of this run since it began."};
	static const struct weir_metric_family last = {
		"weir_reload_last_successful", WEIR_METRIC_GAUGE, NULL,
		"0: the last reload that this run tried failed, and the old rules go on."};
	const struct weir_serve_notes *notes = book->source->notes;
	const struct weir_labels success = label("result", "success"), failure = label("result", "failure");

	weir_exposition_begin(book->out, &reloads);
	weir_exposition_count(book->out, &success, book->instance->info.generation - 1);
	weir_exposition_count(book->out, &failure, __atomic_load_n(&notes->reloads_failed, __ATOMIC_RELAXED));
	weir_exposition_begin(book->out, &last);
	weir_exposition_count(book->out, NULL, !__atomic_load_n(&notes->last_failed, __ATOMIC_RELAXED));
}

static void write_controller(struct book *book)
{
	static const struct weir_metric_family state = {"weir_controller_state", WEIR_METRIC_GAUGE, NULL,
							"1 for the state that the controller is in, 0 for the others."};
	static const struct weir_metric_family stale = {
		"weir_controller_stale_seconds", WEIR_METRIC_GAUGE, "seconds",
		"For how long the controller has been silent; 0 unless it is stale."};
	static const struct weir_metric_family rules = {"weir_controller_rules", WEIR_METRIC_GAUGE, NULL,
							"Rules that need a controller."};
	const struct weir_controller_report *report = &book->reading->status.controller;

	weir_exposition_begin(book->out, &state);
	for (int each = WEIR_CONTROLLER_RUNNING; each <= WEIR_CONTROLLER_NOT_NEEDED; each++) {
		const struct weir_labels labels = label("state", weir_controller_state_names[each]);

		weir_exposition_count(book->out, &labels, (int)report->state == each);
	}
	weir_exposition_begin(book->out, &stale);
	weir_exposition_value(book->out, NULL, report->state == WEIR_CONTROLLER_STALE ? report->stale_ns / 1e9 : 0);
	weir_exposition_begin(book->out, &rules);
	weir_exposition_count(book->out, NULL, report->rule_count);
}

static void write_interfaces(struct book *book)
{
	static const struct weir_metric_family attached = {"weir_interface_attached", WEIR_METRIC_GAUGE, NULL,
							   "1: packets of this interface are judged; 0: it is gone."};

	weir_exposition_begin(book->out, &attached);
	for (size_t i = 0; i < book->instance->link_count; i++) {
		const struct weir_link *link = &book->instance->links[i];
		struct weir_labels labels = label("interface", link->interface);

		weir_labels_add(&labels, "mode", weir_link_mode_name(link));
		weir_exposition_count(book->out, &labels, link->ifindex != 0);
	}
}

static void write_lists(struct book *book)
{
	static const struct weir_metric_family prefixes = {"weir_list_prefixes", WEIR_METRIC_GAUGE, NULL,
							   "Prefixes in the lists of the rule files."};
	static const struct weir_metric_family sources = {
		"weir_timed_sources", WEIR_METRIC_GAUGE, NULL,
		"Sources that weir block or weir allow has listed for a while."};
	static const struct weir_metric_family room = {"weir_timed_sources_limit", WEIR_METRIC_GAUGE, NULL,
						       "Addresses that may be listed for a while."};
	const struct weir_labels allow = label("list", "allow"), deny = label("list", "deny");
	const struct weir_labels block = label("list", "block");
	const struct weir_status_view *status = &book->reading->status;

	weir_exposition_begin(book->out, &prefixes);
	weir_exposition_count(book->out, &allow, book->instance->info.allow_count);
	weir_exposition_count(book->out, &deny, book->instance->info.deny_count);
	weir_exposition_begin(book->out, &sources);
	if (status->has_timed) {
		weir_exposition_count(book->out, &allow, status->timed.allowed);
		weir_exposition_count(book->out, &block, status->timed.blocked);
	}
	weir_exposition_begin(book->out, &room);
	weir_exposition_count(book->out, NULL, book->instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size);
}

/* What flows left behind that were pushed out of full tables. */
static void write_remnants(struct book *book)
{
	static const struct weir_metric_family used = {
		"weir_remnants", WEIR_METRIC_GAUGE, NULL,
		"Flows that were pushed out of full tables, and are remembered without a row."};
	static const struct weir_metric_family places = {"weir_remnants_limit", WEIR_METRIC_GAUGE, NULL,
							 "Such flows that there is room for."};
	static const struct weir_metric_family displaced = {"weir_remnants_displaced", WEIR_METRIC_COUNTER, NULL,
							    "Such flows that were forgotten while they still counted."};
	static const struct weir_metric_family joined = {
		"weir_remnants_aggregated", WEIR_METRIC_COUNTER, NULL,
		"Such flows that found no room, and are counted together with others (whenFull: aggregate)."};
	const struct weir_remnants_sum *sum = &book->reading->status.remnants;

	if (!sum->places)
		return;
	weir_exposition_begin(book->out, &used);
	weir_exposition_count(book->out, NULL, sum->used);
	weir_exposition_begin(book->out, &places);
	weir_exposition_count(book->out, NULL, sum->places);
	weir_exposition_begin(book->out, &displaced);
	weir_exposition_count(book->out, NULL, sum->displaced);
	weir_exposition_begin(book->out, &joined);
	weir_exposition_count(book->out, NULL, sum->joined);
}

/* ---- what rules go by ---- */

static void write_memory(struct book *book)
{
	static const struct weir_metric_family used = {"weir_memory_used_bytes", WEIR_METRIC_GAUGE, "bytes",
						       "The memory in use that MemoryAdaptive rules go by."};
	const struct weir_controller_report *report = &book->reading->status.controller;

	weir_exposition_begin(book->out, &used);
	if (report->needs_memory && !report->memory_err)
		weir_exposition_count(book->out, NULL, report->used_bytes);
}

static void write_signals(struct book *book)
{
	static const struct weir_metric_family load = {"weir_system_load1", WEIR_METRIC_GAUGE, NULL,
						       "The load that system rules go by, as last sampled."};
	static const struct weir_metric_family cpu = {"weir_system_cpu_usage_ratio", WEIR_METRIC_GAUGE, "ratio",
						      "The CPU usage that system rules go by, as last sampled."};
	static const struct weir_metric_family open = {"weir_system_connections", WEIR_METRIC_GAUGE, NULL,
						       "Open connections that system rules go by."};
	static const struct weir_metric_family mean = {"weir_system_handshake_mean_seconds", WEIR_METRIC_GAUGE,
						       "seconds", "Mean time of the handshakes of the last second."};
	const struct weir_host_signals *signals = &book->reading->status.signals;

	weir_exposition_begin(book->out, &load);
	if (signals->has_samples && signals->has_load1)
		weir_exposition_value(book->out, NULL, signals->load1_micro / 1e6);
	weir_exposition_begin(book->out, &cpu);
	if (signals->has_samples && signals->has_cpu)
		weir_exposition_value(book->out, NULL, signals->cpu_micro / 1e6);
	weir_exposition_begin(book->out, &open);
	if (signals->has_connections)
		weir_exposition_count(book->out, NULL, signals->open);
	weir_exposition_begin(book->out, &mean);
	if (signals->has_connections && signals->handshakes)
		weir_exposition_value(book->out, NULL, signals->mean_us / 1e6);
}

/* ---- limits that hosts share ---- */

static void write_cluster(struct book *book)
{
	static const struct weir_metric_family info = {
		"weir_cluster", WEIR_METRIC_INFO, NULL,
		"The cluster whose hosts share rules, and what this host is called there."};
	static const struct weir_metric_family hosts = {"weir_cluster_hosts", WEIR_METRIC_GAUGE, NULL,
							"Hosts of the cluster, this one among them, by state."};
	static const struct weir_metric_family up = {"weir_cluster_store_up", WEIR_METRIC_GAUGE, NULL,
						     "1: the store answers; 0: it has not for a second."};
	static const struct weir_metric_family latency = {"weir_cluster_store_latency_seconds", WEIR_METRIC_GAUGE,
							  "seconds", "How long the latest answer of the store took."};
	const struct weir_labels live = label("state", "live"), silent = label("state", "silent");
	const struct weir_cluster_view *cluster = &book->reading->status.cluster;
	/* Without a controller nobody knows. */
	const bool is_known = cluster->rule_count && book->reading->status.controller.state == WEIR_CONTROLLER_RUNNING;
	struct weir_labels labels = label("name", book->instance->info.cluster.name);

	weir_labels_add(&labels, "host", cluster->host);
	weir_exposition_begin(book->out, &info);
	if (cluster->rule_count)
		weir_exposition_count(book->out, &labels, 1);
	weir_exposition_begin(book->out, &hosts);
	if (is_known && cluster->live) {
		weir_exposition_count(book->out, &live, cluster->live);
		weir_exposition_count(book->out, &silent, cluster->silent);
	}
	weir_exposition_begin(book->out, &up);
	if (is_known)
		weir_exposition_count(book->out, NULL, cluster->trip_us > 0);
	weir_exposition_begin(book->out, &latency);
	if (is_known && cluster->trip_us)
		weir_exposition_value(book->out, NULL, cluster->trip_us / 1e6);
}

static struct weir_labels labels_of_shared(const struct weir_shared_view *rule)
{
	struct weir_labels labels = label("rule", rule->rule->name);

	weir_labels_add(&labels, "resource", rule->rule->resource_name);
	return labels;
}

static double lease_left(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	const struct weir_share_stages *stages = &rule->shared.stages[rule->shared.version & 1];
	const uint64_t ends_ns = rule->shared.version ? stages->until_ns[WEIR_SHARE_LEASED] : 0;

	return ends_ns > cluster->now_ns ? (double)(ends_ns - cluster->now_ns) / 1e9 : 0;
}

static double alone_for(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	const uint64_t since_ns = weir_share_alone_since(rule, cluster->now_ns);

	return since_ns ? (double)(cluster->now_ns - since_ns) / 1e9 : 0;
}

static double share_of(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	return (double)rule->in_force;
}

static double wanted_of(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	return (double)rule->shared.wanted;
}

static double fallback_of(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	return (double)rule->shared.stages[rule->shared.version & 1].units[WEIR_SHARE_FALLEN_BACK];
}

static double reserved_of(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	if (rule->reserved >= rule->threshold)
		return rule->reserved ? 1 : 0;
	return (double)rule->reserved / (double)rule->threshold;
}

static double hosts_of(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule)
{
	return rule->shared.hosts;
}

static const struct {
	struct weir_metric_family metric;
	double (*figure)(const struct weir_cluster_view *cluster, const struct weir_shared_view *rule);
} share_metrics[] = {
	{{"weir_rule_share", WEIR_METRIC_GAUGE, NULL,
	  "What this host may admit now of a threshold that hosts share, in units per interval."},
	 share_of},
	{{"weir_rule_share_wanted", WEIR_METRIC_GAUGE, NULL, "What it asked for last, in units per interval."},
	 wanted_of},
	{{"weir_rule_share_fallback", WEIR_METRIC_GAUGE, NULL,
	  "What it keeps in the end without the store, in units per interval."},
	 fallback_of},
	{{"weir_rule_hosts", WEIR_METRIC_GAUGE, NULL, "Hosts that the rule's ledger knows, silent ones too."},
	 hosts_of},
	{{"weir_rule_reserved_ratio", WEIR_METRIC_GAUGE, NULL,
	  "The part of the threshold that is reserved for hosts that are silent, from 0 to 1."},
	 reserved_of},
	{{"weir_rule_share_lease_seconds", WEIR_METRIC_GAUGE, "seconds", "How long the share lasts yet; 0: no lease."},
	 lease_left},
	{{"weir_rule_alone_seconds", WEIR_METRIC_GAUGE, "seconds",
	  "For how long the host has had no lease; 0: it has one, or has never asked."},
	 alone_for},
};

static void write_shares(struct book *book)
{
	const struct weir_cluster_view *cluster = &book->reading->status.cluster;

	for (size_t each = 0; each < ARRAY_SIZE(share_metrics); each++) {
		weir_exposition_begin(book->out, &share_metrics[each].metric);
		for (size_t i = 0; i < cluster->rule_count; i++) {
			const struct weir_labels labels = labels_of_shared(&cluster->rules[i]);

			weir_exposition_value(book->out, &labels,
					      share_metrics[each].figure(cluster, &cluster->rules[i]));
		}
	}
}

/* ---- packets ---- */

/* A tally for each verdict, or for those alone that drop. */
static void write_verdicts(struct book *book, const struct weir_metric_family *metric, const struct weir_tally *tallies,
			   size_t offset, bool drops_only)
{
	weir_exposition_begin(book->out, metric);
	for (int verdict = 0; verdict < WEIR_VERDICT_COUNT; verdict++) {
		const struct weir_labels labels = label("verdict", weir_verdict_names[verdict]);

		if (!drops_only || weir_verdict_drops(verdict))
			weir_exposition_count(book->out, &labels, count_at(&tallies[verdict], offset));
	}
}

static void write_totals(struct book *book)
{
	static const struct weir_metric_family packets = {"weir_packets", WEIR_METRIC_COUNTER, NULL,
							  "Packets, by what became of them. Each has one verdict."};
	static const struct weir_metric_family bytes = {"weir_bytes", WEIR_METRIC_COUNTER, "bytes",
							"Bytes of packets, by what became of them."};
	static const struct weir_metric_family would_packets = {
		"weir_would_drop_packets", WEIR_METRIC_COUNTER, NULL,
		"Packets that passed only because the instance observes, by the verdict they would have had."};
	static const struct weir_metric_family would_bytes = {"weir_would_drop_bytes", WEIR_METRIC_COUNTER, "bytes",
							      "Bytes of such packets."};
	const struct weir_totals *totals = &book->reading->stats.counters.totals;

	write_verdicts(book, &packets, totals->verdict, offsetof(struct weir_tally, packets), false);
	write_verdicts(book, &bytes, totals->verdict, offsetof(struct weir_tally, bytes), false);
	write_verdicts(book, &would_packets, totals->would_drop, offsetof(struct weir_tally, packets), true);
	write_verdicts(book, &would_bytes, totals->would_drop, offsetof(struct weir_tally, bytes), true);
}

static void write_resource_metric(struct book *book, const struct weir_metric_family *metric, size_t offset)
{
	weir_exposition_begin(book->out, metric);
	for (uint32_t i = 0; i < book->instance->resource_count; i++) {
		const uint32_t slot = book->instance->resource_order[i];
		const struct weir_resource_sum *sum = &book->reading->stats.counters.resources[slot];
		struct weir_labels labels = label("resource", book->instance->resources[slot].name);

		write_with(book->out, &labels, "outcome", "passed", count_at(&sum->passed, offset));
		write_with(book->out, &labels, "outcome", "blocked", count_at(&sum->blocked, offset));
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
							  "Packets that wait now."};
	const struct weir_labels held = label("outcome", "held"), not_held = label("outcome", "notHeld");
	const struct weir_labels dropped = label("outcome", "dropped");
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

/* ---- rules ---- */

static const struct weir_rule_info *rule_at(const struct book *book, uint32_t place)
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

static void write_rule_info(struct book *book)
{
	static const struct weir_metric_family metric = {"weir_rule", WEIR_METRIC_INFO, NULL,
							 "The rules in force: whether they drop, and what they count."};

	weir_exposition_begin(book->out, &metric);
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_rule_info *rule = rule_at(book, i);
		const char *noun = weir_kind_of_info(rule)->noun;
		struct weir_labels *labels = &book->rule_labels[i];
		const size_t bytes = labels->bytes;

		weir_labels_add(labels, "mode", rule->observes ? "observe" : "enforce");
		write_with(book->out, labels, "unit", noun ?: rule->identity.counts_bytes ? "byte" : "packet", 1);
		labels->bytes = bytes;
	}
}

static double configured_threshold(const struct weir_rule_info *rule)
{
	return rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? (double)rule->memory.low_units
							       : rule->threshold_micro / 1e6;
}

static void write_thresholds(struct book *book)
{
	static const struct weir_metric_family configured = {
		"weir_rule_threshold", WEIR_METRIC_GAUGE, NULL,
		"The threshold as the rule file has it, in units per interval."};
	static const struct weir_metric_family in_force = {"weir_rule_threshold_in_force", WEIR_METRIC_GAUGE, NULL,
							   "The threshold that holds now, in units per interval."};
	static const struct weir_metric_family interval = {"weir_rule_interval_seconds", WEIR_METRIC_GAUGE, "seconds",
							   "The interval that the threshold is for."};
	const struct weir_controller_report *report = &book->reading->status.controller;

	weir_exposition_begin(book->out, &configured);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		weir_exposition_value(book->out, &book->rule_labels[i], configured_threshold(rule_at(book, i)));
	weir_exposition_begin(book->out, &in_force);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_has_one_threshold(rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i], report->thresholds[i]);
	weir_exposition_begin(book->out, &interval);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (has_interval(rule_at(book, i)))
			weir_exposition_value(book->out, &book->rule_labels[i],
					      rule_at(book, i)->identity.interval_ns / 1e9);
}

#define COUNTER(member) offsetof(struct weir_rule_counters, member)
static const struct {
	struct weir_metric_family metric;
	bool (*has)(const struct weir_rule_info *rule);
	size_t offset; /* in struct weir_rule_counters */
} rule_counters[] = {
	{{"weir_rule_dropped_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that the rule dropped, as the first to block."},
	 is_any,
	 COUNTER(blocked.packets)},
	{{"weir_rule_dropped_bytes", WEIR_METRIC_COUNTER, "bytes", "Bytes of packets that the rule dropped."},
	 is_any,
	 COUNTER(blocked.bytes)},
	{{"weir_rule_would_drop_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that the rule would have dropped, if it did not observe."},
	 is_any,
	 COUNTER(would_drop.packets)},
	{{"weir_rule_would_drop_bytes", WEIR_METRIC_COUNTER, "bytes", "Bytes of such packets."},
	 is_any,
	 COUNTER(would_drop.bytes)},
	{{"weir_rule_evicted_flows", WEIR_METRIC_COUNTER, NULL,
	  "Flows that were pushed out of a full table while they still counted."},
	 has_interval,
	 COUNTER(evicted)},
	{{"weir_rule_stalled_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets dropped because a CPU stalled while it judged them."},
	 has_interval,
	 COUNTER(stalled)},
	{{"weir_rule_leases", WEIR_METRIC_COUNTER, NULL, "How often other CPUs were asked what they have admitted."},
	 has_interval,
	 COUNTER(leases)},
	{{"weir_rule_delayed_packets", WEIR_METRIC_COUNTER, NULL, "Packets that a Throttling rule gave a wait."},
	 may_delay,
	 COUNTER(delayed)},
	{{"weir_rule_borrowed_packets", WEIR_METRIC_COUNTER, NULL,
	  "Packets that passed with a unit of a bucket yet to come."},
	 weir_lends,
	 COUNTER(delayed)},
	{{"weir_rule_penalties", WEIR_METRIC_COUNTER, NULL, "Penalties that have begun."},
	 weir_penalises,
	 COUNTER(changes)},
};

static void write_rule_counters(struct book *book)
{
	const struct weir_rule_counters *counters = book->reading->stats.counters.rules;

	for (size_t each = 0; each < ARRAY_SIZE(rule_counters); each++) {
		weir_exposition_begin(book->out, &rule_counters[each].metric);
		for (uint32_t i = 0; i < book->instance->rule_count; i++)
			if (rule_counters[each].has(rule_at(book, i)))
				weir_exposition_count(book->out, &book->rule_labels[i],
						      count_at(&counters[book->instance->rule_order[i]],
							       rule_counters[each].offset));
	}
}

static void write_delays(struct book *book)
{
	static const struct weir_metric_family delay = {"weir_rule_delay_seconds", WEIR_METRIC_COUNTER, "seconds",
							"All waits that a rule gave, together."};
	const struct weir_rule_counters *counters = book->reading->stats.counters.rules;

	weir_exposition_begin(book->out, &delay);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (may_delay(rule_at(book, i)))
			weir_exposition_value(book->out, &book->rule_labels[i],
					      counters[book->instance->rule_order[i]].delay_ns / 1e9);
}

static void write_penalties(struct book *book)
{
	static const struct weir_metric_family active = {"weir_rule_penalised_flows", WEIR_METRIC_GAUGE, NULL,
							 "Flows that are penalised now."};
	const struct weir_penalised_flows *penalties = &book->reading->stats.penalties;

	weir_exposition_begin(book->out, &active);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_penalises(rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i],
					      penalties->by_rule[book->instance->rule_order[i]]);
}

/* A scrape a minute misses none of them. */
#define LIMITED_NS (60 * WEIR_NSEC_PER_SEC)

static void write_limited(struct book *book)
{
	static const struct weir_metric_family limited = {
		"weir_rule_limited_flows", WEIR_METRIC_GAUGE, NULL,
		"Flows that lost packets to the rule in the minute before flows were counted."};
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
	  "Connections that nobody saw open; they count for nothing."},
	 FIGURE(learned)},
	{{"weir_rule_returned_connections", WEIR_METRIC_COUNTER, NULL,
	  "Connections that count again: they talked after they were evicted, or silent for too long."},
	 FIGURE(returned)},
	{{"weir_rule_refused_connections", WEIR_METRIC_COUNTER, NULL, "Openings above the threshold."},
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
	return weir_has_connections(rule_at(book, place))
		       ? &book->reading->stats.connections[book->instance->rule_order[place]]
		       : NULL;
}

static void write_connection_ends(struct book *book)
{
	static const struct weir_metric_family closed = {"weir_rule_closed_connections", WEIR_METRIC_COUNTER, NULL,
							 "Connections that ended, by how."};

	weir_exposition_begin(book->out, &closed);
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_connection_figures *figures = connections_at(book, i);

		for (size_t end = 0; figures && end < ARRAY_SIZE(connection_ends); end++)
			write_with(book->out, &book->rule_labels[i], "reason", connection_ends[end].reason,
				   count_at(figures, connection_ends[end].offset));
	}
}

static void write_handshakes(struct book *book)
{
	static const struct weir_metric_family handshakes = {
		"weir_rule_handshake_seconds", WEIR_METRIC_HISTOGRAM, "seconds",
		"Times of handshakes of TCP, from SYN to the ACK that ends it."};

	weir_exposition_begin(book->out, &handshakes);
	for (uint32_t i = 0; i < book->instance->rule_count; i++) {
		const struct weir_connection_figures *figures = connections_at(book, i);

		if (figures)
			weir_exposition_powers(book->out, &book->rule_labels[i], figures->handshake_step,
					       WEIR_HANDSHAKE_STEPS, figures->handshake_us);
	}
}

static void write_connections(struct book *book)
{
	for (size_t each = 0; each < ARRAY_SIZE(connection_metrics); each++) {
		weir_exposition_begin(book->out, &connection_metrics[each].metric);
		for (uint32_t i = 0; i < book->instance->rule_count; i++) {
			const struct weir_connection_figures *figures = connections_at(book, i);

			if (figures)
				weir_exposition_count(book->out, &book->rule_labels[i],
						      count_at(figures, connection_metrics[each].offset));
		}
	}
	write_connection_ends(book);
	write_handshakes(book);
}

/* ---- circuit breakers ---- */

/* Those of its flows, or its one, by state. */
static void write_breaker_states(struct book *book, uint32_t place)
{
	const struct weir_rule_info *rule = rule_at(book, place);
	const struct weir_breaker_sum *sum = &book->reading->stats.breakers[book->instance->rule_order[place]];

	for (int kind = 0; kind <= WEIR_BREAKER_HALF_OPEN; kind++)
		write_with(book->out, &book->rule_labels[place], "state", weir_breaker_kind_names[kind],
			   rule->identity.key_fields ? sum->count[kind] : (int)sum->lone.kind == kind);
}

static void write_breakers(struct book *book)
{
	static const struct weir_metric_family breakers = {"weir_rule_breakers", WEIR_METRIC_GAUGE, NULL,
							   "Circuit breakers by the state that they are in."};
	static const struct weir_metric_family changes = {"weir_rule_breaker_changes", WEIR_METRIC_COUNTER, NULL,
							  "Changes of state of circuit breakers."};
	const struct weir_breaker_sum *sums = book->reading->stats.breakers;

	weir_exposition_begin(book->out, &breakers);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_is_breaker(rule_at(book, i)))
			write_breaker_states(book, i);
	weir_exposition_begin(book->out, &changes);
	for (uint32_t i = 0; i < book->instance->rule_count; i++)
		if (weir_is_breaker(rule_at(book, i)))
			weir_exposition_count(book->out, &book->rule_labels[i],
					      sums[book->instance->rule_order[i]].changes);
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
		const struct weir_labels labels = label("table", tables[i].table);

		weir_exposition_count(book->out, &labels, count_at(tables[i].use, offset));
	}
}

static void write_flows(struct book *book)
{
	static const struct weir_metric_family active = {"weir_flows_active", WEIR_METRIC_GAUGE, NULL,
							 "Flows that have anything in their windows."};
	static const struct weir_metric_family age = {"weir_flows_age_seconds", WEIR_METRIC_GAUGE, "seconds",
						      "How long ago the flows and rows were counted."};
	static const struct weir_metric_family rows = {
		"weir_flow_table_rows", WEIR_METRIC_GAUGE, NULL,
		"Rows of a flow table that count, on the CPU that has most of them."};
	static const struct weir_metric_family room = {"weir_flow_table_rows_limit", WEIR_METRIC_GAUGE, NULL,
						       "Rows of a flow table that each CPU has."};

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
							 "bytes",
							 "The most memory that the process which serves has had."};
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
		weir_labels_add(&book->rule_labels[i], "rule", rule_at(book, i)->name);
		weir_labels_add(&book->rule_labels[i], "resource", rule_at(book, i)->resource_name);
	}
	write_rule_info(book);
	write_thresholds(book);
	write_rule_counters(book);
	write_delays(book);
	write_penalties(book);
	write_limited(book);
	write_connections(book);
	write_breakers(book);
	write_shares(book);
}

void weir_metrics_write(const struct weir_source *source, const struct weir_reading *reading,
			struct weir_exposition *exposition)
{
	struct book book = {
		.source = source,
		.reading = reading,
		.instance = reading->instance,
		/* written where rules are: what is zeroed is fetched */
		.rule_labels = malloc((reading->instance->rule_count + 1ul) * sizeof(*book.rule_labels)),
		.out = exposition,
	};

	exposition->is_cut = !book.rule_labels;
	if (exposition->is_cut)
		return;
	write_build(&book);
	write_instance(&book);
	write_times(&book);
	write_reloads(&book);
	write_controller(&book);
	write_interfaces(&book);
	write_remnants(&book);
	write_lists(&book);
	write_memory(&book);
	write_signals(&book);
	write_cluster(&book);
	write_totals(&book);
	write_resources(&book);
	write_pace(&book);
	write_rules(&book);
	write_flows(&book);
	write_process(&book);
	weir_exposition_end(exposition);
	free(book.rule_labels);
}
