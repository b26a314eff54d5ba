// SPDX-License-Identifier: GPL-2.0-only
#include "state/examine.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "host/memory.h"
#include "instance/instance.h"
#include "kind/kind.h"
#include "network/device.h"
#include "pace/pace.h"
#include "state/counters.h"
#include "state/examine_interface.h"
#include "state/ghosts.h"
#include "state/set_sizes.h"
#include "state/system_signals.h"
#include "tables/entry_state.h"
#include "timed/timed.h"
#include "tables/rule_kind.h"

/* Between two readings of the CPUs' usage: some twenty of its ticks of 10 ms. Chosen, not derived. */
#define LOAD_PAUSE_NS 200000000

/* ---- the host ---- */

static void examine_kernel(struct weir_findings *findings)
{
	struct utsname kernel;

	if (uname(&kernel))
		return;
	if (weir_host_kernel_is_at_least(6, 1))
		weir_find(findings, WEIR_FINDING_OK, "kernel", NULL, "Linux %s", kernel.release);
	else
		weir_find(findings, WEIR_FINDING_PROBLEM, "kernel", "boot Linux 6.1 or later",
			  "Linux %s is older than weir needs", kernel.release);
	if (weir_host_is_realtime())
		weir_find(findings, WEIR_FINDING_PROBLEM, "realtime", "boot a kernel without PREEMPT_RT",
			  "PREEMPT_RT: packets can interleave on one CPU, so limits would not be exact");
	if (weir_host_cpus_have_gaps())
		weir_find(findings, WEIR_FINDING_PROBLEM, "cpus", "boot with possible CPUs numbered from 0 on",
			  "possible CPUs are not numbered without gaps, so limits would not be exact");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		weir_find(findings, WEIR_FINDING_PROBLEM, "btf",
			  "boot a kernel with CONFIG_DEBUG_INFO_BTF, as those of distributions are",
			  "no BTF of the kernel (/sys/kernel/btf/vmlinux): weir cannot be loaded");
}

static void examine_privilege(struct weir_findings *findings)
{
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	if (weir_host_check_privilege(&diag))
		weir_find(findings, WEIR_FINDING_PROBLEM, "privilege", "run weir as root", "%s",
			  diag.count ? diag.entries[0].message : "not enough");
	else
		weir_find(findings, WEIR_FINDING_OK, "privilege", NULL, "enough to load BPF programs");
}

static void examine_switches(struct weir_findings *findings)
{
	char text[64];

	if (!weir_host_read_text("/proc/sys/net/core/bpf_jit_enable", text, sizeof(text))) {
		if (text[0] == '0')
			weir_find(findings, WEIR_FINDING_NOTE, "jit", "sysctl -w net.core.bpf_jit_enable=1",
				  "BPF programs are interpreted, which is many times slower");
		else
			weir_find(findings, WEIR_FINDING_OK, "jit", NULL, "BPF programs are compiled");
	}
	if (!weir_host_read_text("/proc/sys/kernel/bpf_stats_enabled", text, sizeof(text)) && text[0] != '0')
		weir_find(findings, WEIR_FINDING_NOTE, "bpfStats", "sysctl -w kernel.bpf_stats_enabled=0",
			  "run-time statistics of BPF programs are on, which costs about 45 ns a packet");
}

static void examine_clock(struct weir_findings *findings)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
	char source[64];
	bool is_slow = false;

	if (weir_host_read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
				sizeof(source)))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
		is_slow |= !strcmp(source, slow[i]);
	if (is_slow)
		weir_find(findings, WEIR_FINDING_NOTE, "clock",
			  "look in 'dmesg' why the kernel gave up its better clock",
			  "clock source %s is slow to read, or coarse", source);
	else
		weir_find(findings, WEIR_FINDING_OK, "clock", NULL, "clock source %s, a tick is %.1f ms; %s", source,
			  weir_host_tick_ns() / 1e6,
			  weir_host_kernel_is_at_least(6, 2)
				  ? "rarely read for 'leap' windows"
				  : "read for each admitted packet (rarely from Linux 6.2 on)");
}

static void examine_memory(struct weir_findings *findings)
{
	uint64_t available_bytes = weir_host_memory_available_bytes();

	if (available_bytes)
		weir_find(findings, WEIR_FINDING_OK, "memory", NULL,
			  "%.0f MB available, %d possible CPUs: 'weir check' shows what a rule file takes",
			  available_bytes / 1e6, weir_host_cpus());
}

/* For MemoryAdaptive rules, which without pressure information rely only on the readings, twenty a second. */
static void examine_pressure(struct weir_findings *findings)
{
	switch (weir_memory_pressure()) {
	case WEIR_MEMORY_PRESSURE_AT_ONCE:
		weir_find(findings, WEIR_FINDING_OK, "pressure", NULL,
			  "memory pressure is reported within half a second: MemoryAdaptive rules react between "
			  "readings");
		return;
	case WEIR_MEMORY_PRESSURE_LATE:
		weir_find(findings, WEIR_FINDING_NOTE, "pressure",
			  geteuid() ? "run it as root, or with CAP_SYS_RESOURCE"
				    : "this needs CAP_SYS_RESOURCE, which root lacks here",
			  "memory pressure is reported only every two seconds: MemoryAdaptive rules rely on readings");
		return;
	case WEIR_MEMORY_PRESSURE_NEVER:
		weir_find(findings, WEIR_FINDING_NOTE, "pressure",
			  geteuid() ? "boot with psi=1 on a kernel that has it; as root"
				    : "boot with psi=1, on a kernel that has it",
			  "memory pressure is not reported: MemoryAdaptive rules rely on readings, twenty a second");
		return;
	}
}

/* Sample load as the controller would for system rules. */
static void examine_load(struct weir_findings *findings)
{
	const struct timespec pause = {.tv_nsec = LOAD_PAUSE_NS};
	struct weir_cpu_times times = {};
	uint64_t load1_micro, cpu_micro;

	if (weir_load_read(&load1_micro))
		return;
	if (weir_cpu_usage_read(&times, &cpu_micro) == -EAGAIN)
		nanosleep(&pause, NULL);
	if (weir_cpu_usage_read(&times, &cpu_micro))
		weir_find(findings, WEIR_FINDING_OK, "load", NULL, "load1 %.2f; the CPU usage cannot be read",
			  load1_micro / 1e6);
	else
		weir_find(findings, WEIR_FINDING_OK, "load", NULL, "load1 %.2f, CPU usage %.2f", load1_micro / 1e6,
			  cpu_micro / 1e6);
}

static void examine_bpffs(struct weir_findings *findings)
{
	const char *where = weir_bpffs_root();

	if (!weir_bpffs_is_mounted())
		weir_find(findings, WEIR_FINDING_OK, "bpffs", NULL, "not mounted yet at %s: attach mounts it", where);
	else if (weir_bpffs_is_elsewhere())
		weir_find(findings, WEIR_FINDING_OK, "bpffs", NULL,
			  "hidden in this mount namespace ('ip netns exec' does that): weir reaches it all the same");
	else
		weir_find(findings, WEIR_FINDING_OK, "bpffs", NULL, "mounted at %s", where);
}

/* A note rather than a problem: only `throttling: pace` needs it. */
static void examine_pace(struct weir_findings *findings)
{
	struct weir_pace_ability ability;

	weir_pace_probe(&ability);
	weir_find(findings, ability.answer == WEIR_PACE_YES ? WEIR_FINDING_OK : WEIR_FINDING_NOTE, "pace",
		  ability.advice, "%s", ability.text);
}

/* ---- the interface ---- */

/* Its limits hold, but they are not those of the files. */
static void examine_last_good(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */

	if (!weir_instance_open(name, &instance, &ignored) && instance->info.policies & WEIR_IS_LAST_GOOD)
		weir_find(findings, WEIR_FINDING_PROBLEM, "rules",
			  "correct them ('weir check' says what is wrong), then reload",
			  "the rule files of instance '%s' were wrong when it started: the last good rule set is in "
			  "force instead",
			  name);
}

static void examine_span(const char *name, const char *advice, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	char buffer[WEIR_NARROW_WORDS_BYTES];
	const char *words;
	uint64_t left_ns;

	if (weir_instance_open(name, &instance, &ignored))
		return;
	left_ns = weir_instance_left_ns(instance);
	words = weir_narrow_words(left_ns, buffer);
	if (words)
		weir_find(findings, left_ns ? WEIR_FINDING_NOTE : WEIR_FINDING_PROBLEM, "age", advice,
			  "instance '%s' was %s", name, words);
}

/* Evictions, by what happens to a flow that loses its place in a full table. */
struct evictions {
	uint64_t remembered;	    /* flows that leave ghosts: windows, tokens, Throttling, penalties */
	uint64_t connections;	    /* connections and breakers */
	const char *of_connections; /* the first such rule that lost a flow */
};

static void sum_evictions(const struct weir_instance *instance, const struct weir_counters *counters,
			  struct evictions *sum)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];
		const uint64_t evicted = counters->rules[instance->rule_order[i]].evicted;

		if (rule->system)
			continue; /* a single flow, which is never evicted */
		if (weir_has_connections(rule) || weir_is_breaker(rule)) {
			sum->connections += evicted;
			sum->of_connections = sum->of_connections ?: evicted ? rule->name : NULL;
		} else {
			sum->remembered += evicted;
		}
	}
}

/* Flows of windows, token buckets, TATs and penalties are remembered after eviction until there is no space for that
 * either: then they start over, and may exceed their limit. Flows of other kinds start over at once.
 */
static void examine_evictions(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_counters_free) struct weir_counters counters = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir stats` */
	char option[WEIR_INSTANCE_OPTIONS_BYTES], advice[WEIR_INSTANCE_HINT_BYTES];
	struct weir_ghosts ghosts;
	struct evictions evictions = {};

	if (weir_instance_open(name, &instance, &ignored) || weir_counters_read(instance, &counters, &ignored) ||
	    weir_ghosts_look(instance, &ghosts, &ignored))
		return;
	weir_instance_options(name, option);
	snprintf(advice, sizeof(advice), "raise settings.flowsPerCpu, run 'weir detach%s', and attach again", option);
	for (size_t i = 0; i < WEIR_GHOST_TABLES; i++)
		if (weir_ghosts_are_nearly_full(&ghosts.of[i]))
			weir_find(findings, WEIR_FINDING_PROBLEM, "flows", advice,
				  "instance '%s' keeps counts of %llu evicted flows (%s), of at most %llu: others lose "
				  "theirs and may exceed their limits, or share one ('whenFull: aggregate')",
				  name, (unsigned long long)ghosts.of[i].used, weir_ghost_table_words(i),
				  (unsigned long long)ghosts.of[i].slots);
	sum_evictions(instance, &counters, &evictions);
	if (evictions.remembered)
		weir_find(findings, WEIR_FINDING_NOTE, "flows", advice,
			  "%llu flows of instance '%s' lost their slots to others: more than its %u per CPU are active",
			  (unsigned long long)evictions.remembered, name, instance->info.flows_per_cpu);
	snprintf(advice, sizeof(advice),
		 "raise settings.flowsPerCpu, run 'weir detach%s', and attach again; a rule on the whole resource "
		 "bounds all of them together",
		 option);
	for (size_t i = 0; i < WEIR_GHOST_TABLES; i++)
		if (ghosts.of[i].displaced)
			weir_find(findings, WEIR_FINDING_PROBLEM, "flows", advice,
				  "%llu flows of instance '%s' (%s) lost their slots and their history: they may have "
				  "exceeded their limits",
				  (unsigned long long)ghosts.of[i].displaced, name, weir_ghost_table_words(i));
	snprintf(advice, sizeof(advice),
		 "raise settings.connections and settings.connectionFlows, run 'weir detach%s', and attach again",
		 option);
	if (evictions.connections)
		weir_find(findings, WEIR_FINDING_PROBLEM, "flows", advice,
			  "%llu connections, requests or flows of rule '%.40s' and similar ones lost their slots: some "
			  "may not count when they return",
			  (unsigned long long)evictions.connections, evictions.of_connections);
}

/* Places for addresses of `weir block` and `weir allow`: a program whose part is full bans nobody. */
static void examine_timed(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	struct weir_timed_counts timed;

	if (weir_instance_open(name, &instance, &ignored) || !weir_timed_is_readable(instance) ||
	    weir_timed_count(instance, &timed, &ignored))
		return;
	for (size_t i = 0; i < timed.share_count; i++) {
		const struct weir_timed_share *share = &timed.shares[i];

		if (weir_timed_is_nearly_full(share->used, share->room))
			weir_find(findings, WEIR_FINDING_PROBLEM, "blocks",
				  share->by ? "raise its part in settings.timedParts and reload"
					    : "raise settings.timedEntries and reload",
				  "instance '%s' blocks or allows %zu addresses for a while by %s, of at most %zu",
				  name, share->used,
				  share->by		  ? share->by
				  : timed.share_count > 1 ? "programs without a part"
							  : "all programs",
				  share->room);
	}
	if (timed.refused)
		weir_find(findings, WEIR_FINDING_NOTE, "blocks", "'weir status' says whose room is full",
			  "%llu orders to block or allow found no room in instance '%s'",
			  (unsigned long long)timed.refused, name);
}

/* Sets whose files have changed, and are not in force. */
static void examine_sets(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	_cleanup_(weir_sets_view_free) struct weir_sets_view sets = {};
	char words[WEIR_SETS_NOTE_WORDS];
	uint64_t prefixes = 0, age_ns;

	if (weir_instance_open(name, &instance, &ignored) || weir_sets_read(instance, &sets, &ignored) || !sets.count)
		return;
	for (size_t i = 0; i < sets.count; i++) {
		prefixes += sets.sets[i].prefixes;
		if (sets.sets[i].file && !weir_set_file_age(&sets.sets[i], &age_ns, NULL))
			weir_find(findings, WEIR_FINDING_NOTE, "sets", "put it back: a reload would fail",
				  "the file of set '%s' is gone: %s", sets.sets[i].name, sets.sets[i].file);
	}
	if (sets.note.refused_ns)
		weir_find(findings, WEIR_FINDING_PROBLEM, "sets", "correct it: the next change is taken over",
			  "instance '%s' keeps the sets that it had, since a change was refused: %s", name,
			  weir_sets_note_words(&sets.note, words));
	else
		weir_find(findings, WEIR_FINDING_OK, "sets", NULL, "%zu set%s with %llu prefix%s in instance '%s'",
			  sets.count, sets.count == 1 ? "" : "s", (unsigned long long)prefixes,
			  prefixes == 1 ? "" : "es", name);
}

/* What its answers need. `device` is as examined, with strips_vlan only at XDP. */
static void examine_its_answers(const char *interface, uint32_t ifindex, const struct weir_device *device,
				const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	const struct weir_link *link;
	uint32_t answers;

	if (weir_instance_open(name, &instance, &ignored))
		return;
	answers = weir_answers_of(instance->rules, instance->info.rule_slots, instance->info.observes);
	link = weir_instance_link_on(instance, ifindex, false);
	weir_examine_cookies(answers, findings);
	weir_examine_answers(interface, ifindex, device, answers,
			     link && link->hook == WEIR_HOOK_XDP && link->is_native, findings);
}

/* The signals that its system rules use. */
static void examine_signals(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	struct weir_host_signals signals;

	if (weir_instance_open(name, &instance, &ignored) || weir_signals_look(instance, &signals, &ignored))
		return;
	if (signals.has_samples && !signals.has_load1 && !signals.has_cpu)
		weir_find(findings, WEIR_FINDING_NOTE, "system", "run 'weir control' (or 'weir run')",
			  "no process samples load and CPU usage for the system rules of instance '%s'", name);
	if (signals.has_connections)
		weir_find(findings, WEIR_FINDING_OK, "system", NULL,
			  "connections open: %llu; AvgRT %.3f ms, maxComplete %llu a second, minRt %.3f ms",
			  (unsigned long long)signals.open, signals.mean_us / 1e3,
			  (unsigned long long)signals.complete_max, signals.shortest_us / 1e3);
}

static void examine_weir(const char *interface, uint32_t ifindex, const struct weir_device *device, uint32_t program_id,
			 struct weir_findings *findings)
{
	char name[WEIR_INSTANCE_NAME_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES], advice[WEIR_INSTANCE_HINT_BYTES];
	struct weir_instance_info head;

	if (!weir_instance_of_program(program_id, name)) {
		weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "weir is attached (program %u)", program_id);
		return;
	}
	weir_instance_options(name, option);
	if (weir_instance_is_incompatible(name, &head)) {
		snprintf(advice, sizeof(advice), "'weir reload%s --fresh FILE...' moves it to this version", option);
		weir_find(findings, WEIR_FINDING_NOTE, "programs", advice,
			  "another version of weir is attached: instance '%s'", name);
		return;
	}
	snprintf(advice, sizeof(advice), "run 'weir detach%s', and attach again", option);
	weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "weir is attached: instance '%s' (program %u)", name,
		  program_id);
	examine_last_good(name, findings);
	examine_span(name, advice, findings);
	examine_signals(name, findings);
	examine_evictions(name, findings);
	examine_timed(name, findings);
	examine_sets(name, findings);
	examine_its_answers(interface, ifindex, device, name, findings);
}

static void examine_programs(const char *interface, uint32_t ifindex, const struct weir_device *device,
			     struct weir_findings *findings)
{
	uint32_t program_id = weir_device_program(device);
	char name[16], advice[WEIR_REMOVAL_BYTES], owner[WEIR_INSTANCE_NAME_BYTES];
	struct weir_link link = {};

	if (weir_instance_on(ifindex, owner, &link))
		examine_weir(interface, ifindex, device, link.program_id, findings);
	else if (!program_id)
		weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "no XDP program on it");
	if (!program_id || program_id == link.program_id)
		return;
	weir_program_name(program_id, name);
	if (!strcmp(name, "weir_ingress")) {
		examine_weir(interface, ifindex, device, program_id, findings);
		return;
	}
	if (link.program_id) {
		weir_find(findings, WEIR_FINDING_NOTE, "programs", NULL,
			  "an XDP program runs before weir's at tc: '%s' (id %u); packets that it redirects or answers "
			  "are not limited",
			  name, program_id);
		return;
	}
	weir_device_removal(interface, ifindex, device, advice);
	weir_find(findings, WEIR_FINDING_PROBLEM, "programs", advice,
		  "another XDP program is on it: '%s' (id %u); there can be only one", name, program_id);
}

int weir_examine(const char *interface, struct weir_findings *ret_findings, struct weir_diag *diag)
{
	int ifindex = weir_host_ifindex(interface, diag);
	struct weir_findings findings = {};
	struct weir_device device = {};
	bool is_for_tc;
	int err;

	if (ifindex < 0)
		return ifindex;
	err = weir_device_read(interface, ifindex, &device);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot look at '%s'", interface);

	is_for_tc = weir_examine_is_for_tc(interface, ifindex, &device);
	if (is_for_tc)
		device.strips_vlan = false; /* the tag is then in the packet's metadata */
	weir_examine_type(interface, &device, &findings);
	weir_examine_driver(interface, &device, &findings);
	weir_examine_mode(interface, ifindex, &device, false, &findings);
	weir_examine_mtu(interface, &device, &findings);
	weir_examine_offloads(interface, &device, &findings);
	weir_examine_merging(interface, ifindex, &device, is_for_tc, &findings);
	weir_examine_super_frames(interface, ifindex, &device, is_for_tc, &findings);
	weir_examine_stack(interface, ifindex, &device, &findings);
	weir_examine_queues(interface, &device, &findings);
	weir_examine_interrupts(interface, &device, &findings);
	weir_examine_rings(interface, &device, &findings);
	examine_programs(interface, ifindex, &device, &findings);
	weir_examine_tc(interface, ifindex, &findings);
	examine_kernel(&findings);
	examine_privilege(&findings);
	examine_switches(&findings);
	examine_clock(&findings);
	examine_memory(&findings);
	examine_pressure(&findings);
	examine_load(&findings);
	examine_bpffs(&findings);
	examine_pace(&findings);
	*ret_findings = findings;
	return 0;
}
