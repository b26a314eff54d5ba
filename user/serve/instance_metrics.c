// SPDX-License-Identifier: GPL-2.0-only
/* Metrics of the instance: its description, the inputs of its rules, and limits that hosts share. */
#include <stddef.h>
#include <stdio.h>

#include "base/util.h"
#include "serve/metrics_book.h"

/* ---- the instance ---- */

void weir_metrics_write_build(struct book *book)
{
	static const struct weir_metric_family metric = {
		"weir_build", WEIR_METRIC_INFO, NULL,
		"Version of the weir that serves this, and the version of its table description."};
	char version[16];
	struct weir_labels labels;

	snprintf(version, sizeof(version), "%u", WEIR_ABI_VERSION);
	labels = weir_metrics_label("abi", version);
	weir_exposition_begin(book->out, &metric);
	weir_exposition_count(book->out, &labels, 1);
}

void weir_metrics_write_instance(struct book *book)
{
	static const struct weir_metric_family metric = {
		"weir_instance", WEIR_METRIC_INFO, NULL,
		"The instance, and whether it drops packets or only observes."};
	struct weir_labels labels = weir_metrics_label("name", book->instance->name);

	weir_labels_add(&labels, "mode", book->instance->info.observes ? "observe" : "enforce");
	weir_exposition_begin(book->out, &metric);
	weir_exposition_count(book->out, &labels, 1);
}

void weir_metrics_write_times(struct book *book)
{
	static const struct weir_metric_family attached = {"weir_attach_timestamp_seconds", WEIR_METRIC_GAUGE,
							   "seconds",
							   "Time at which the instance was attached, since the epoch."};
	static const struct weir_metric_family loaded = {
		"weir_reload_last_success_timestamp_seconds", WEIR_METRIC_GAUGE, "seconds",
		"Time at which the rules in force were loaded, since the epoch."};
	static const struct weir_metric_family hold = {"weir_reattach_due_seconds", WEIR_METRIC_GAUGE, "seconds",
						       "Time until the instance must be detached and attached again, "
						       "because bucket numbers run out."};
	static const struct weir_metric_family returns = {
		"weir_rules_return_seconds", WEIR_METRIC_GAUGE, "seconds",
		"Time until unconfirmed rules give way to the previous ones; 0: the rules stay."};
	const struct weir_unconfirmed *unconfirmed = &book->instance->unconfirmed;
	const uint64_t left_ns = weir_instance_left_ns(book->instance);

	weir_exposition_begin(book->out, &attached);
	weir_exposition_count(book->out, NULL, weir_metrics_unix_seconds(book->instance->info.attached_ns));
	weir_exposition_begin(book->out, &loaded);
	weir_exposition_count(book->out, NULL, weir_metrics_unix_seconds(book->instance->info.loaded_ns));
	weir_exposition_begin(book->out, &hold);
	if (left_ns != UINT64_MAX)
		weir_exposition_value(book->out, NULL, left_ns / 1e9);
	weir_exposition_begin(book->out, &returns);
	weir_exposition_count(book->out, NULL, unconfirmed->is_so ? weir_unconfirmed_left_s(unconfirmed) : 0);
}

void weir_metrics_write_reloads(struct book *book)
{
	static const struct weir_metric_family reloads = {
		"weir_reloads", WEIR_METRIC_COUNTER, NULL,
		"Reloads: successes of any command since the attach, failures of this run since it started."};
	static const struct weir_metric_family last = {
		"weir_reload_last_successful", WEIR_METRIC_GAUGE, NULL,
		"0: the last reload that this run tried failed; the old rules stay in force."};
	static const struct weir_metric_family last_good = {
		"weir_rules_are_last_good", WEIR_METRIC_GAUGE, NULL,
		"1: the rule files were wrong at the start, and the last good rule set is in force instead."};
	const struct weir_serve_notes *notes = book->source->notes;
	const struct weir_labels success = weir_metrics_label("result", "success"),
				 failure = weir_metrics_label("result", "failure");

	weir_exposition_begin(book->out, &reloads);
	weir_exposition_count(book->out, &success, book->instance->info.generation - 1);
	weir_exposition_count(book->out, &failure, __atomic_load_n(&notes->reloads_failed, __ATOMIC_RELAXED));
	weir_exposition_begin(book->out, &last);
	weir_exposition_count(book->out, NULL, !__atomic_load_n(&notes->last_failed, __ATOMIC_RELAXED));
	weir_exposition_begin(book->out, &last_good);
	weir_exposition_count(book->out, NULL, (book->instance->info.policies & WEIR_IS_LAST_GOOD) != 0);
}

void weir_metrics_write_controller(struct book *book)
{
	static const struct weir_metric_family state = {"weir_controller_state", WEIR_METRIC_GAUGE, NULL,
							"1 for the controller's current state, 0 for the others."};
	static const struct weir_metric_family stale = {
		"weir_controller_stale_seconds", WEIR_METRIC_GAUGE, "seconds",
		"How long the controller has been silent; 0 unless it is stale."};
	static const struct weir_metric_family rules = {"weir_controller_rules", WEIR_METRIC_GAUGE, NULL,
							"Rules that need a controller."};
	const struct weir_controller_report *report = &book->reading->status.controller;

	weir_exposition_begin(book->out, &state);
	for (int each = WEIR_CONTROLLER_RUNNING; each <= WEIR_CONTROLLER_NOT_NEEDED; each++) {
		const struct weir_labels labels = weir_metrics_label("state", weir_controller_state_names[each]);

		weir_exposition_count(book->out, &labels, (int)report->state == each);
	}
	weir_exposition_begin(book->out, &stale);
	weir_exposition_value(book->out, NULL, report->state == WEIR_CONTROLLER_STALE ? report->stale_ns / 1e9 : 0);
	weir_exposition_begin(book->out, &rules);
	weir_exposition_count(book->out, NULL, report->rule_count);
}

void weir_metrics_write_interfaces(struct book *book)
{
	static const struct weir_metric_family attached = {
		"weir_interface_attached", WEIR_METRIC_GAUGE, NULL,
		"1: packets of this interface are evaluated; 0: the interface is gone."};

	weir_exposition_begin(book->out, &attached);
	for (size_t i = 0; i < book->instance->link_count; i++) {
		const struct weir_link *link = &book->instance->links[i];
		struct weir_labels labels = weir_metrics_label("interface", link->interface);

		weir_labels_add(&labels, "mode", weir_link_mode_name(link));
		weir_labels_add(&labels, "direction", weir_link_direction_name(link));
		weir_exposition_count(book->out, &labels, link->ifindex != 0);
	}
}

/* Parts of the room for addresses: an empty label, which is none, means those that programs without a part share. */
static void write_timed_programs(struct book *book, const struct weir_timed_counts *timed)
{
	static const struct weir_metric_family used = {
		"weir_timed_part_addresses", WEIR_METRIC_GAUGE, NULL,
		"Addresses that a program blocks or allows; without the label: programs without a part."};
	static const struct weir_metric_family room = {
		"weir_timed_part_limit", WEIR_METRIC_GAUGE, NULL,
		"Addresses that settings.timedParts gives the program; without the label: what is left."};
	static const struct weir_metric_family programs = {"weir_timed_program_sources", WEIR_METRIC_GAUGE, NULL,
							   "Sources that a program blocks or allows now."};
	static const struct weir_metric_family refused = {"weir_timed_refused", WEIR_METRIC_COUNTER, NULL,
							  "Orders to block or allow that found no room."};
	static const struct weir_metric_family evicted = {"weir_timed_evicted", WEIR_METRIC_COUNTER, NULL,
							  "Blocks that ended early, to make room."};
	const struct weir_metric_family *const families[] = {&used, &room};

	for (size_t family = 0; family < ARRAY_SIZE(families); family++) {
		weir_exposition_begin(book->out, families[family]);
		for (size_t i = 0; i < timed->share_count; i++) {
			const struct weir_timed_share *share = &timed->shares[i];
			const struct weir_labels by = weir_metrics_label("by", share->by ?: "");

			weir_exposition_count(book->out, share->by ? &by : NULL, family ? share->room : share->used);
		}
	}
	weir_exposition_begin(book->out, &programs);
	for (size_t i = 0; i < timed->source_count; i++) {
		const struct weir_labels by = weir_metrics_label("by", timed->sources[i].by);

		weir_exposition_count(book->out, &by, timed->sources[i].blocked + timed->sources[i].allowed);
	}
	weir_exposition_begin(book->out, &refused);
	weir_exposition_count(book->out, NULL, timed->refused);
	weir_exposition_begin(book->out, &evicted);
	weir_exposition_count(book->out, NULL, timed->evicted);
}

void weir_metrics_write_lists(struct book *book)
{
	static const struct weir_metric_family prefixes = {"weir_list_prefixes", WEIR_METRIC_GAUGE, NULL,
							   "Prefixes in the lists of the rule files."};
	static const struct weir_metric_family sources = {"weir_timed_sources", WEIR_METRIC_GAUGE, NULL,
							  "Sources that weir block or weir allow lists now."};
	static const struct weir_metric_family room = {"weir_timed_sources_limit", WEIR_METRIC_GAUGE, NULL,
						       "Addresses that weir block and weir allow have room for."};
	const struct weir_labels allow = weir_metrics_label("list", "allow"), deny = weir_metrics_label("list", "deny");
	const struct weir_labels block = weir_metrics_label("list", "block");
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
	if (status->has_timed)
		write_timed_programs(book, &status->timed);
}

void weir_metrics_write_sets(struct book *book)
{
	static const struct weir_metric_family prefixes = {"weir_set_prefixes", WEIR_METRIC_GAUGE, NULL,
							   "Prefixes of a named set."};
	static const struct weir_metric_family changed = {
		"weir_set_file_changed_timestamp_seconds", WEIR_METRIC_GAUGE, "seconds",
		"Time at which the file of a named set was changed, since the epoch."};
	static const struct weir_metric_family changes = {
		"weir_set_changes", WEIR_METRIC_COUNTER, NULL,
		"Changed files of named sets that were taken over, or refused, since the attach."};
	static const struct weir_metric_family refused = {
		"weir_set_refused_line", WEIR_METRIC_GAUGE, NULL,
		"Line for which a changed file is refused now (0: not known); absent: none is."};
	const struct weir_labels taken = weir_metrics_label("result", "taken"),
				 failed = weir_metrics_label("result", "refused");
	const struct weir_sets_view *sets = book->reading->status.sets;
	struct weir_labels labels;
	uint64_t ago_ns, changed_s;

	weir_exposition_begin(book->out, &prefixes);
	for (size_t i = 0; sets && i < sets->count; i++) {
		labels = weir_metrics_label("set", sets->sets[i].name);
		weir_exposition_count(book->out, &labels, sets->sets[i].prefixes);
	}
	weir_exposition_begin(book->out, &changed);
	for (size_t i = 0; sets && i < sets->count; i++) {
		labels = weir_metrics_label("set", sets->sets[i].name);
		if (weir_set_file_age(&sets->sets[i], &ago_ns, &changed_s))
			weir_exposition_count(book->out, &labels, changed_s);
	}
	weir_exposition_begin(book->out, &changes);
	if (sets && sets->count) {
		weir_exposition_count(book->out, &taken, sets->note.taken);
		weir_exposition_count(book->out, &failed, sets->note.refused);
	}
	weir_exposition_begin(book->out, &refused);
	if (sets && sets->note.refused_ns) {
		labels = weir_metrics_label("set", sets->note.set);
		weir_labels_add(&labels, "file", sets->note.file);
		weir_exposition_count(book->out, &labels, sets->note.line);
	}
}

void weir_metrics_write_ghosts(struct book *book)
{
	static const struct {
		struct weir_metric_family family;
		size_t figure;
	} figures[] = {
		{{"weir_ghosts", WEIR_METRIC_GAUGE, NULL,
		  "Flows evicted from full tables whose counts are kept as ghosts."},
		 offsetof(struct weir_ghosts_sum, used)},
		{{"weir_ghosts_limit", WEIR_METRIC_GAUGE, NULL, "Ghosts that fit."},
		 offsetof(struct weir_ghosts_sum, slots)},
		{{"weir_ghosts_displaced", WEIR_METRIC_COUNTER, NULL,
		  "Ghosts that were lost while they still counted."},
		 offsetof(struct weir_ghosts_sum, displaced)},
		{{"weir_ghosts_aggregated", WEIR_METRIC_COUNTER, NULL,
		  "Evicted flows without a slot, counted together with others (whenFull: aggregate)."},
		 offsetof(struct weir_ghosts_sum, joined)},
	};
	const struct weir_ghosts *ghosts = &book->reading->status.ghosts;

	for (size_t i = 0; i < ARRAY_SIZE(figures) && weir_ghosts_add(ghosts).slots; i++) {
		weir_exposition_begin(book->out, &figures[i].family);
		for (size_t table = 0; table < WEIR_GHOST_TABLES; table++) {
			const struct weir_ghosts_sum *sum = &ghosts->of[table];
			const struct weir_labels labels = weir_metrics_label("table", weir_ghost_table_name(table));

			if (sum->slots)
				weir_exposition_count(book->out, &labels,
						      *(const uint64_t *)((const char *)sum + figures[i].figure));
		}
	}
}

/* ---- inputs of rules ---- */

void weir_metrics_write_memory(struct book *book)
{
	static const struct weir_metric_family used = {"weir_memory_used_bytes", WEIR_METRIC_GAUGE, "bytes",
						       "Memory in use, as MemoryAdaptive rules see it."};
	const struct weir_controller_report *report = &book->reading->status.controller;

	weir_exposition_begin(book->out, &used);
	if (report->needs_memory && !report->memory_err)
		weir_exposition_count(book->out, NULL, report->used_bytes);
}

void weir_metrics_write_signals(struct book *book)
{
	static const struct weir_metric_family load = {"weir_system_load1", WEIR_METRIC_GAUGE, NULL,
						       "Load average, as system rules last sampled it."};
	static const struct weir_metric_family cpu = {"weir_system_cpu_usage_ratio", WEIR_METRIC_GAUGE, "ratio",
						      "CPU usage, as system rules last sampled it."};
	static const struct weir_metric_family open = {"weir_system_connections", WEIR_METRIC_GAUGE, NULL,
						       "Open connections, as system rules count them."};
	static const struct weir_metric_family mean = {"weir_system_handshake_mean_seconds", WEIR_METRIC_GAUGE,
						       "seconds", "Mean handshake time of the last second."};
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

void weir_metrics_write_cluster(struct book *book)
{
	static const struct weir_metric_family info = {
		"weir_cluster", WEIR_METRIC_INFO, NULL,
		"The cluster whose hosts share rules, and this host's name in it."};
	static const struct weir_metric_family hosts = {"weir_cluster_hosts", WEIR_METRIC_GAUGE, NULL,
							"Hosts of the cluster, including this one, by state."};
	static const struct weir_metric_family up = {"weir_cluster_store_up", WEIR_METRIC_GAUGE, NULL,
						     "1: the store answers; 0: it has not answered for a second."};
	static const struct weir_metric_family latency = {"weir_cluster_store_latency_seconds", WEIR_METRIC_GAUGE,
							  "seconds", "Latency of the store's latest answer."};
	const struct weir_labels live = weir_metrics_label("state", "live"),
				 silent = weir_metrics_label("state", "silent");
	const struct weir_cluster_view *cluster = &book->reading->status.cluster;
	/* Without a controller this is unknown. */
	const bool is_known = cluster->rule_count && book->reading->status.controller.state == WEIR_CONTROLLER_RUNNING;
	struct weir_labels labels = weir_metrics_label("name", book->instance->info.cluster.name);

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
	  "This host's current share of a shared threshold, in units per interval."},
	 share_of},
	{{"weir_rule_share_wanted", WEIR_METRIC_GAUGE, NULL,
	  "The share this host last asked for, in units per interval."},
	 wanted_of},
	{{"weir_rule_share_fallback", WEIR_METRIC_GAUGE, NULL,
	  "The share this host finally keeps without the store, in units per interval."},
	 fallback_of},
	{{"weir_rule_hosts", WEIR_METRIC_GAUGE, NULL, "Hosts in the rule's ledger, including silent ones."}, hosts_of},
	{{"weir_rule_reserved_ratio", WEIR_METRIC_GAUGE, NULL,
	  "The part of the threshold that is reserved for silent hosts, from 0 to 1."},
	 reserved_of},
	{{"weir_rule_share_lease_seconds", WEIR_METRIC_GAUGE, "seconds",
	  "Time until the share's lease ends; 0: no lease."},
	 lease_left},
	{{"weir_rule_alone_seconds", WEIR_METRIC_GAUGE, "seconds",
	  "How long this host has had no lease; 0: it has one, or has never asked."},
	 alone_for},
};

void weir_metrics_write_shares(struct book *book)
{
	const struct weir_cluster_view *cluster = &book->reading->status.cluster;

	for (size_t each = 0; each < ARRAY_SIZE(share_metrics); each++) {
		weir_exposition_begin(book->out, &share_metrics[each].metric);
		for (size_t i = 0; i < cluster->rule_count; i++) {
			const struct weir_rule_info *rule = cluster->rules[i].rule;
			struct weir_labels labels = weir_metrics_label("rule", rule->name);

			weir_labels_add(&labels, "resource", rule->resource_name);
			weir_exposition_value(book->out, &labels,
					      share_metrics[each].figure(cluster, &cluster->rules[i]));
		}
	}
}
