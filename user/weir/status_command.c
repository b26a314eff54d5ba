// SPDX-License-Identifier: GPL-2.0-only
/* weir status: where instances are attached, and with which rules. */
#include <errno.h>

#include "base/printable.h"
#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "compile/compile.h"
#include "host/host.h"
#include "host/memory.h"
#include "kind/kind.h"
#include "network/netns.h"
#include "network/tc.h"
#include "pins/pins.h"
#include "report/status.h"
#include "rules/scalars.h"
#include "state/counters.h"
#include "state/open_connections.h"
#include "tables/entry_state.h"
#include "tables/rule_kind.h"
#include "weir/weir.h"
#include "words/state_words.h"

static const struct weir_command weir_status_command = {
	.name = "status",
	.options = "ANjWCh",
	.about = "Print what is attached, where, and with which rules: all instances, or the one named; if that one is "
		 "not attached, the command fails.",
	.example = "  weir status --json",
};

/* Names for the timeouts, which say how long silence may last. */
static const char *const timeout_words[WEIR_CONNECTION_CLASSES] = {
	[WEIR_CONNECTION_CLASS_HALF] = "half-open",
	[WEIR_CONNECTION_CLASS_OPEN] = "TCP idle",
	[WEIR_CONNECTION_CLASS_OTHER] = "other idle",
	[WEIR_CONNECTION_CLASS_CLOSED] = "closed",
};

/* ---- for people ---- */

/* The requested interface words, if they are more than the names of the present interfaces. */
static void print_wanted(const struct weir_instance *instance)
{
	const struct weir_wanted *wanted = instance->info.wanted;

	if (!weir_instance_has_patterns(instance))
		return;
	fputs("  wanted on:", stdout);
	for (size_t i = 0; i < WEIR_WANTED_MAX && wanted[i].word[0]; i++) {
		char word[sizeof(wanted[i].word)];

		memcpy(word, wanted[i].word, sizeof(word));
		weir_make_printable(word, "");
		printf(" %s", word);
	}
	putchar('\n');
}

static void print_links(const struct weir_instance *instance)
{
	_cleanup_(weir_table_free) struct weir_table table = {};
	char option[WEIR_INSTANCE_OPTIONS_BYTES];

	print_wanted(instance);
	if (!instance->link_count && weir_instance_has_patterns(instance)) {
		puts("  attached to no interface: none of the interfaces it is meant for exists now");
		return;
	}
	if (!instance->link_count) {
		printf("  attached to no interface: its links were removed, or an attach or a detach was cut short; "
		       "'weir detach%s' cleans up\n",
		       weir_instance_options(instance->name, option));
		return;
	}
	weir_table_list(&table, weir_describe_link, NULL, instance->links, instance->link_count,
			sizeof(*instance->links));
	weir_table_print(&table, stdout);
}

static void print_rules(const struct weir_status_view *view)
{
	const struct weir_instance *instance = view->instance;
	_cleanup_(weir_table_free) struct weir_table table = {};

	weir_table_list(&table, weir_describe_rule_state, view, instance->rule_order, instance->rule_count,
			sizeof(*instance->rule_order));
	if (!weir_limits_out(instance))
		weir_table_leave_out(&table, "direction");
	weir_table_print(&table, stdout);
}

static void print_controller(const char *instance, const struct weir_controller_report *controller)
{
	char words[WEIR_WORDS_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_options(instance, option);

	switch (controller->state) {
	case WEIR_CONTROLLER_RUNNING:
		printf("  controller: running; rules that need it: %u\n", controller->rule_count);
		return;
	case WEIR_CONTROLLER_STALE:
		printf("  controller: stale for %s; rules at safe thresholds: %u; ",
		       weir_format_age(controller->stale_ns, words), controller->rule_count);
		if (controller->pid)
			printf("process %d hangs: 'kill -9 %d', then 'weir control%s'\n", controller->pid,
			       controller->pid, option);
		else
			printf("'weir control%s' starts one\n", option);
		return;
	case WEIR_CONTROLLER_ABSENT:
		printf("  controller: none; rules at safe thresholds: %u; 'weir control%s' starts one\n",
		       controller->rule_count, option);
		return;
	case WEIR_CONTROLLER_NOT_NEEDED:
		printf("  controller: not needed\n");
		return;
	}
}

static void print_memory(const struct weir_status_view *view)
{
	const struct weir_controller_report *controller = &view->controller;
	const char *cgroup = view->instance->info.memory_cgroup;

	if (!controller->needs_memory)
		return;
	printf("  memory: %s%s: ", *cgroup ? "cgroup:" : "system", cgroup);
	if (controller->memory_err)
		printf("cannot be read: %s; MemoryAdaptive rules at highMemUsageThreshold\n",
		       weir_memory_explain(cgroup, controller->memory_err));
	else
		printf("%llu bytes in use\n", (unsigned long long)controller->used_bytes);
}

/* The inputs of system rules. */
static void print_signals(const struct weir_host_signals *signals)
{
	if (signals->has_samples && signals->has_load1)
		printf("  load1 %.2f, sampled %.1f s ago", signals->load1_micro / 1e6, signals->sample_age_ns / 1e9);
	else if (signals->has_samples)
		printf("  load1 unknown");
	if (signals->has_samples && signals->has_cpu)
		printf("; CPUs %.1f %% busy\n", signals->cpu_micro / 1e4);
	else if (signals->has_samples)
		puts("; CPU usage unknown");
	if (!signals->has_connections)
		return;
	printf("  connections open: %llu; handshakes of the last second: %llu", (unsigned long long)signals->open,
	       (unsigned long long)signals->handshakes);
	if (signals->handshakes)
		printf(", mean %.3f ms (AvgRT)", signals->mean_us / 1e3);
	if (signals->complete_max)
		printf("; of the last five: at most %llu a second (maxComplete), shortest %.3f ms (minRt)",
		       (unsigned long long)signals->complete_max, signals->shortest_us / 1e3);
	putchar('\n');
}

static void print_connection_settings(const struct weir_instance *instance)
{
	const struct weir_instance_info *info = &instance->info;

	if (!weir_connections_are_counted(instance))
		return;
	printf("  connections: room for %u, of %u flows; silence that ends one:",
	       info->tables[WEIR_TABLE_CONNECTIONS].size * WEIR_CONNECTIONS_PER_SET,
	       info->tables[WEIR_TABLE_CONNECTION_FLOWS].size * WEIR_CONNECTION_FLOWS_PER_SET);
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		printf("%s %s %g s", class ? "," : "", timeout_words[class], info->connection_timeout_ms[class] / 1e3);
	putchar('\n');
}

static void print_penalties(const struct weir_status_view *view)
{
	if (weir_penalties_are_given(view->instance) && view->penalties.by_rule)
		printf("  penalised now: %llu flow%s ('weir flows' shows them)\n",
		       (unsigned long long)view->penalties.active, weir_plural(view->penalties.active));
}

/* By program, and by part if there are any. */
static void print_timed_places(const struct weir_timed_counts *timed)
{
	printf("  room for addresses: %zu of %zu used", timed->addresses, timed->room);
	for (size_t i = 0; i < timed->share_count && timed->share_count > 1; i++)
		printf("%s%s %zu of %zu", i ? ", " : ": ", timed->shares[i].by ?: "shared", timed->shares[i].used,
		       timed->shares[i].room);
	for (size_t i = 0; i < timed->source_count; i++)
		printf("%s%s %zu", i ? ", " : "; sources by program: ", timed->sources[i].by,
		       timed->sources[i].blocked + timed->sources[i].allowed);
	putchar('\n');
	if (timed->refused || timed->evicted)
		printf("  refused for lack of room: %llu; ended early to make room: %llu\n",
		       (unsigned long long)timed->refused, (unsigned long long)timed->evicted);
	for (size_t i = 0; i < timed->share_count; i++)
		if (weir_timed_is_nearly_full(timed->shares[i].used, timed->shares[i].room))
			printf("  warning: the room of %s is %zu %% full: raise settings.%s and reload\n",
			       timed->shares[i].by	? timed->shares[i].by
			       : timed->share_count > 1 ? "programs without a part"
							: "timed entries",
			       timed->shares[i].used * 100 / timed->shares[i].room,
			       timed->shares[i].by ? "timedParts" : "timedEntries");
}

static void print_timed(const struct weir_status_view *view)
{
	char option[WEIR_INSTANCE_OPTIONS_BYTES];

	if (!view->has_timed || (!view->timed.blocked && !view->timed.allowed && !view->timed.refused))
		return;
	weir_instance_options(view->instance->name, option);
	printf("  timed entries: %zu source%s blocked ('weir block%s --list' shows them), %zu allowed\n",
	       view->timed.blocked, weir_plural(view->timed.blocked), option, view->timed.allowed);
	print_timed_places(&view->timed);
}

#define SETS_SHOWN 4

static void print_sets(const struct weir_sets_view *sets)
{
	char age[WEIR_WORDS_BYTES], words[WEIR_SETS_NOTE_WORDS];
	uint64_t age_ns;

	for (size_t i = 0; i < sets->count && i < SETS_SHOWN; i++) {
		const struct weir_set_size *set = &sets->sets[i];

		printf("%s %s: %llu prefix%s", i ? ";" : "  sets:", set->name, (unsigned long long)set->prefixes,
		       set->prefixes == 1 ? "" : "es");
		if (set->labels)
			printf(", %llu label%s", (unsigned long long)set->labels, weir_plural(set->labels));
		if (weir_set_file_age(set, &age_ns, NULL))
			printf(", %s old", weir_format_age(age_ns, age));
		else if (set->file)
			printf(", its file is gone");
	}
	if (sets->count > SETS_SHOWN)
		printf("; and %zu more ('weir sets')", sets->count - SETS_SHOWN);
	if (sets->count)
		putchar('\n');
	if (!sets->note.refused_ns)
		return;
	weir_sets_note_words(&sets->note, words);
	weir_make_printable(words, "");
	printf("  warning: a changed set was refused %s ago, and the one before stays: %s\n",
	       weir_format_age(weir_host_now_ns() - sets->note.refused_ns, age), words);
}

/* Of tables from which flows have been evicted. */
static void print_ghosts(const struct weir_ghosts *ghosts)
{
	bool is_nearly_full = false;

	for (size_t i = 0; i < WEIR_GHOST_TABLES; i++) {
		const struct weir_ghosts_sum *sum = &ghosts->of[i];

		if (!sum->used && !sum->displaced && !sum->joined)
			continue;
		printf("  evicted from full flow tables (%s), counts kept: %llu flow%s, room for %llu; lost too early: "
		       "%llu\n",
		       weir_ghost_table_words(i), (unsigned long long)sum->used, weir_plural(sum->used),
		       (unsigned long long)sum->slots, (unsigned long long)sum->displaced);
		if (sum->joined)
			printf("  counted together for lack of room (whenFull: aggregate): %llu\n",
			       (unsigned long long)sum->joined);
		is_nearly_full |= weir_ghosts_are_nearly_full(sum);
	}
	if (is_nearly_full)
		puts("  warning: nearly full; flows whose counts are lost may exceed their limits, and with 'whenFull: "
		     "aggregate' flows without a slot share one: raise settings.flowsPerCpu");
}

/* The network namespace of its interfaces, if it is another one. */
static void print_netns(const struct weir_instance *instance)
{
	uint64_t inode = instance->info.netns;
	char name[NAME_MAX + 1];

	if (!inode || inode == weir_host_netns())
		return;
	if (weir_netns_name(inode, name))
		printf("  in network namespace '%s'\n", name);
	else
		printf("  in network namespace %llu, which has no name\n", (unsigned long long)inode);
}

/* Counts that not every instance has. */
static void print_counts(const struct weir_instance *instance)
{
	const struct weir_instance_info *info = &instance->info;
	uint32_t throttling = weir_count_throttling(instance);
	uint64_t overrides = weir_count_overrides(instance);

	if (throttling || overrides || info->allow_count || info->deny_count)
		printf("  rules that throttle: %u; overrides: %llu; allowed prefixes: %u, denied: %u\n", throttling,
		       (unsigned long long)overrides, info->allow_count, info->deny_count);
	if (weir_count_occupy(instance))
		printf("  rules with occupy windows: %u\n", weir_count_occupy(instance));
}

static void print_incompatible_tables(const struct weir_instance *instance)
{
	int count = 0;

	for (int table = 0; table < WEIR_STATE_TABLE_COUNT; table++)
		if (instance->is_incompatible[table])
			printf("%s%s",
			       count++ ? ", " : "  tables of another version of weir, which a reload starts empty: ",
			       weir_table_name(table));
	if (count)
		putchar('\n');
}

static void print_policies(const struct weir_instance *instance)
{
	char text[WEIR_ETHERTYPE_TEXT_BYTES];

	for (size_t bit = 0; bit < ARRAY_SIZE(weir_policy_names); bit++) {
		printf("%s %s %s", bit ? "," : ";", weir_policy_names[bit], weir_policy_word(instance, bit));
		for (uint32_t i = 0; bit == WEIR_POLICY_NON_IP && i < weir_count_except(&instance->info); i++)
			printf("%s %s", i ? "," : " but", weir_format_except(&instance->info, i, text));
	}
	putchar('\n');
}

static void print_text(const struct weir_status_view *view)
{
	const struct weir_instance *instance = view->instance;
	const struct weir_instance_info *info = &instance->info;
	char attached[WEIR_WORDS_BYTES], loaded[WEIR_WORDS_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];
	uint64_t now_ns = weir_host_now_ns();
	char words[WEIR_CLUSTER_WORDS_BYTES], narrow[WEIR_NARROW_WORDS_BYTES];
	const char *narrow_words;

	printf("instance %s: attached %s ago, generation %llu loaded %s ago\n", instance->name,
	       weir_format_age(now_ns - info->attached_ns, attached), (unsigned long long)info->generation,
	       weir_format_age(now_ns - info->loaded_ns, loaded));
	print_netns(instance);
	if (instance->unconfirmed.is_so)
		printf("  unconfirmed: the previous rules return in %llu s; 'weir confirm%s' keeps these\n",
		       (unsigned long long)weir_unconfirmed_left_s(&instance->unconfirmed),
		       weir_instance_options(instance->name, option));
	if (info->policies & WEIR_IS_LAST_GOOD)
		printf("  the rule files were wrong at the start: this is the last good rule set; correct them, then "
		       "'weir reload%s FILE...'\n",
		       weir_instance_options(instance->name, option));
	printf("  %u resource%s, %u rule%s, %u flows per CPU", instance->resource_count,
	       weir_plural(instance->resource_count), instance->rule_count, weir_plural(instance->rule_count),
	       info->flows_per_cpu);
	print_policies(instance);
	if (info->observes)
		puts("  observing: everything is evaluated and counted, nothing is dropped");
	print_incompatible_tables(instance);
	narrow_words = weir_narrow_words(weir_instance_left_ns(instance), narrow);
	if (narrow_words)
		printf("  %s: detach it and attach again\n", narrow_words);
	print_counts(instance);
	print_controller(view->instance->name, &view->controller);
	print_memory(view);
	if (view->cluster.rule_count)
		printf("  cluster %s\n", weir_cluster_words(&view->cluster, words));
	print_signals(&view->signals);
	print_connection_settings(instance);
	print_penalties(view);
	print_timed(view);
	print_sets(view->sets);
	print_ghosts(&view->ghosts);
	putchar('\n');
	print_links(instance);
	for (size_t i = 0; i < view->repeat_count; i++)
		printf("  '%s' stands on '%s': packets that arrive through both are counted twice, so they get half of "
		       "their limits\n",
		       view->repeats[i].upper, view->repeats[i].lower);
	putchar('\n');
	if (instance->rule_count)
		print_rules(view);
	weir_print_fair(instance, &view->fair);
}

/* ---- the command ---- */

/* What has been shown so far. */
struct listing {
	bool is_json;	   /* otherwise for people */
	bool is_of_netns;  /* only instances of the present network namespace, which --netns named */
	json_t *documents; /* owned */
	size_t count;
};

static void free_listing(struct listing *listing)
{
	json_decref(listing->documents);
}

static void add_to(struct listing *listing, json_t *document)
{
	weir_json_append(&listing->documents, document);
}

/* Print a separator before an instance, for people. */
static void separate(const struct listing *listing)
{
	if (listing->count)
		putchar('\n');
}

static int show_instance(struct weir_instance *instance, struct listing *listing, struct weir_diag *diag)
{
	_cleanup_(weir_status_free) struct weir_status_view view = {};
	_cleanup_(weir_sets_view_free) struct weir_sets_view sets = {};
	int err = weir_status_read(instance, &view, diag);

	if (!err)
		err = weir_sets_read(instance, &sets, diag);
	if (err)
		return err;
	view.sets = &sets;
	view.repeat_count = weir_instance_find_repeats(instance, &view.repeats);
	view.has_repeats = true;
	if (listing->is_json) {
		add_to(listing, weir_status_describe(&view));
	} else {
		separate(listing);
		print_text(&view);
	}
	listing->count++;
	weir_instance_warn_of_losses(instance, diag);
	return 0;
}

static int show(const char *name, struct listing *listing, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	int err = weir_instance_open(name, &instance, diag);

	return err ? err : show_instance(instance, listing, diag);
}

/* The rules of an incompatible version cannot be shown. That version's command can show them, and a reload converts the
 * instance to this version.
 */
static void show_incompatible(const char *name, const struct weir_instance_info *head, struct listing *listing)
{
	char remark[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_options(name, option);
	if (head->magic)
		snprintf(remark, sizeof(remark),
			 "attached by another version of weir: 'weir reload%s --fresh FILE...' moves it to this "
			 "version, 'weir detach%s' takes it off",
			 option, option);
	else
		snprintf(remark, sizeof(remark),
			 "attached by another version of weir: run 'weir detach%s', then attach again", option);
	if (listing->is_json) {
		add_to(listing, json_pack("{s:s, s:I, s:s}", "instance", name, "abiVersion",
					  (json_int_t)head->abi_version, "remark", remark));
	} else {
		separate(listing);
		printf("instance %s: %s\n", name, remark);
		if (head->abi_version != WEIR_ABI_VERSION)
			printf("  its description has version %u, and this weir reads %u\n", head->abi_version,
			       WEIR_ABI_VERSION);
		else
			printf("  its tables have other versions than this weir's\n");
	}
	listing->count++;
}

/* An instance of another version is not an error: it limits as well as ours. Nor is one that was detached since it was
 * listed.
 */
static int show_listed(const char *name, struct listing *listing, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_instance_info head;
	uint64_t netns = listing->is_of_netns ? weir_info_netns(name) : 0;
	int err;

	if (netns && netns != weir_host_netns())
		return 0;
	if (weir_instance_is_incompatible(name, &head)) {
		show_incompatible(name, &head, listing);
		return 0;
	}
	err = weir_instance_open_listed(name, &instance, diag);
	return err || !instance ? err : show_instance(instance, listing, diag);
}

/* An instance that cannot be read does not hide the others. */
static int show_all(struct listing *listing, struct weir_diag *diag)
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	char words[WEIR_NETNS_WORDS_BYTES];
	int err = weir_instance_list(&names, diag);

	for (size_t i = 0; i < names.count; i++) {
		int one_err = show_listed(names.names[i], listing, diag);

		if (one_err)
			err = one_err;
	}
	if (!err && !listing->count && !listing->is_json)
		fprintf(stderr, "nothing is attached%s%s\n", listing->is_of_netns ? " in " : "",
			listing->is_of_netns ? weir_host_netns_words(words) : "");
	return err;
}

static int run_command(int argc, char **argv)
{
	_cleanup_(weir_options_free) struct weir_options options = {};
	_cleanup_(free_listing) struct listing listing = {};
	struct weir_diag diag = {};
	int err, exit_code = weir_options_parse(&weir_status_command, argc, argv, &options);

	if (exit_code)
		return exit_code - 1;
	listing.is_json = options.wants_json;
	listing.is_of_netns = options.netns;
	listing.documents = json_array();
	err = weir_options_enter_netns(&weir_status_command, &options, &diag);
	if (!err)
		err = options.has_instance ? show(options.instance, &listing, &diag) : show_all(&listing, &diag);
	/* An empty list would mean that nothing is attached, which is not known if reading failed. */
	if (listing.is_json && (!err || listing.count)) {
		int print_err = weir_json_print(json_pack("{s:o}", "instances", TAKE_PTR(listing.documents)), &diag);

		err = err ? err : print_err;
	} else if (!err) {
		err = weir_flush_results(&diag);
	}
	return weir_exit_code(err, &diag);
}

const struct weir_command_entry weir_status_entry = {&weir_status_command, run_command,
						     "show what is attached, and with which rules"};
