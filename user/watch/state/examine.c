// SPDX-License-Identifier: GPL-2.0-only
#include "state/examine.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/util.h"
#include "compile/compile.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "host/load.h"
#include "host/memory.h"
#include "instance/instance.h"
#include "kind/kind.h"
#include "network/device.h"
#include "network/merging.h"
#include "network/netns.h"
#include "network/stack.h"
#include "network/super_frames.h"
#include "pace/pace.h"
#include "rules/interface_words.h"
#include "state/counters.h"
#include "state/remnants.h"
#include "state/signals.h"
#include "tables/narrow_span.h"

/* Largest MTU whose frames fit one buffer of a driver that gives each a page of 4,096 bytes: less the
 * headroom of XDP (256), the tail that an skb needs (320), and Ethernet with two VLAN tags (22).
 */
#define ONE_BUFFER_MTU 3498

/* At 10 Gbit/s so many of the smallest frames arrive in 69 us. Chosen, not derived. */
#define RX_RING_MIN 1024

/* Between two readings of what CPUs have spent: some twenty of its ticks of 10 ms. Chosen, not derived. */
#define LOAD_PAUSE_NS 200000000

void weir_find(struct weir_findings *findings, enum weir_finding_level level, const char *topic, const char *advice,
	       const char *format, ...)
{
	struct weir_finding *finding = &findings->finding[findings->count];
	va_list args;

	if (findings->count == WEIR_FINDINGS_MAX)
		return;
	findings->count++;
	finding->level = level;
	finding->topic = topic;
	snprintf(finding->advice, sizeof(finding->advice), "%s", advice ? advice : "");
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	weir_make_printable(finding->text, "");
	weir_make_printable(finding->advice, "");
}

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
			  "PREEMPT_RT: two packets can interleave on one CPU, limits would not be exact");
	if (weir_host_cpus_have_gaps())
		weir_find(findings, WEIR_FINDING_PROBLEM, "cpus", "boot with possible CPUs numbered from 0 on",
			  "numbers are missing among the possible CPUs: limits would not be exact");
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
			  "run time statistics of BPF programs are on: some 45 ns more a packet");
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
			  "find out why the kernel gave up its better clock: 'dmesg'",
			  "clock source %s is slow to read, or coarse", source);
	else
		weir_find(findings, WEIR_FINDING_OK, "clock", NULL, "clock source %s, a tick is %.1f ms; %s", source,
			  weir_host_tick_ns() / 1e6,
			  weir_host_kernel_is_at_least(6, 2) ? "seldom read for 'leap' windows"
							     : "read for each packet admitted (Linux 6.2 seldom does)");
}

static void examine_memory(struct weir_findings *findings)
{
	uint64_t available_bytes = weir_host_memory_available_bytes();

	if (available_bytes)
		weir_find(findings, WEIR_FINDING_OK, "memory", NULL,
			  "%.0f MB available, %d possible CPUs: 'weir check' says what a rule file takes",
			  available_bytes / 1e6, weir_host_cpus());
}

/* For MemoryAdaptive rules, which otherwise follow the readings, twenty a second, alone. */
static void examine_pressure(struct weir_findings *findings)
{
	switch (weir_memory_pressure()) {
	case WEIR_MEMORY_PRESSURE_AT_ONCE:
		weir_find(findings, WEIR_FINDING_OK, "pressure", NULL,
			  "memory pressure is told within half a second: MemoryAdaptive rules hear of it between "
			  "readings");
		return;
	case WEIR_MEMORY_PRESSURE_LATE:
		weir_find(findings, WEIR_FINDING_NOTE, "pressure",
			  geteuid() ? "run it as root, or with CAP_SYS_RESOURCE"
				    : "it takes CAP_SYS_RESOURCE, which root lacks here",
			  "memory pressure is told every two seconds only: MemoryAdaptive rules go by readings");
		return;
	case WEIR_MEMORY_PRESSURE_NEVER:
		weir_find(findings, WEIR_FINDING_NOTE, "pressure",
			  geteuid() ? "boot with psi=1 on a kernel that has it; as root"
				    : "boot with psi=1, on a kernel that has it",
			  "memory pressure is not told: MemoryAdaptive rules go by readings, twenty a second");
		return;
	}
}

/* As the controller would sample them for system rules. */
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
		weir_find(findings, WEIR_FINDING_OK, "bpffs", NULL, "not mounted yet at %s: attach does it", where);
	else if (weir_bpffs_is_elsewhere())
		weir_find(findings, WEIR_FINDING_OK, "bpffs", NULL,
			  "this mount namespace hides it ('ip netns exec' does): weir reaches it all the same");
	else
		weir_find(findings, WEIR_FINDING_OK, "bpffs", NULL, "mounted at %s", where);
}

/* A note, and no problem: only `throttling: pace` needs it. */
static void examine_pace(struct weir_findings *findings)
{
	struct weir_pace_ability ability;

	weir_pace_probe(&ability);
	weir_find(findings, ability.answer == WEIR_PACE_YES ? WEIR_FINDING_OK : WEIR_FINDING_NOTE, "pace",
		  ability.advice, "%s", ability.text);
}

/* ---- the interface ---- */

static void examine_type(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	const char *type = weir_link_type_without_ethernet(device->type, buffer);

	if (type)
		weir_find(findings, WEIR_FINDING_PROBLEM, "type", WEIR_NO_ETHERNET_ADVICE,
			  "packets of '%s' have no Ethernet header (link/%s), and attach refuses it", interface, type);
	else
		weir_find(findings, WEIR_FINDING_OK, "type", NULL, "packets of '%s' have an Ethernet header",
			  interface);
}

static void examine_driver(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	const char *driver = device->driver[0] ? device->driver : "(unknown)";

	if (!device->is_up)
		weir_find(findings, WEIR_FINDING_NOTE, "link", NULL, "'%s' is down: attach works, packets come later",
			  interface);
	if (device->hardware.keeps_merging)
		weir_find(findings, WEIR_FINDING_NOTE, "driver",
			  "of the virtual machine's host: guest_csum, guest_tso4, guest_tso6, guest_ecn, guest_ufo off",
			  "driver %s refuses native XDP: the host merges packets, and lets nobody here turn it off",
			  driver);
	else if (!device->has_xdp_features)
		weir_find(findings, WEIR_FINDING_NOTE, "driver", "'weir attach --mode native' tells: it refuses if not",
			  "driver %s: before Linux 6.3 no one can tell whether it has native XDP", driver);
	else if (device->has_native_xdp)
		weir_find(findings, WEIR_FINDING_OK, "driver", NULL, "driver %s has native XDP", driver);
	else
		weir_find(findings, WEIR_FINDING_NOTE, "driver", "use another interface where speed matters",
			  "driver %s has no native XDP: attach falls back to skb mode, which is slower", driver);
}

static void examine_mtu(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	const bool has_large_frames = device->mtu > ONE_BUFFER_MTU;

	if (!device->mtu)
		weir_find(findings, WEIR_FINDING_NOTE, "mtu", NULL, "the MTU of '%s' cannot be told", interface);
	else if (has_large_frames && !device->has_xdp_features)
		weir_find(findings, WEIR_FINDING_NOTE, "mtu", "lower the MTU, or attach with '--mode skb'",
			  "MTU %u needs several buffers a frame: whether native XDP takes them no one can tell before "
			  "Linux 6.3",
			  device->mtu);
	else if (has_large_frames && device->has_native_xdp && !device->has_native_frags)
		weir_find(findings, WEIR_FINDING_NOTE, "mtu", "lower the MTU, or attach with '--mode skb'",
			  "MTU %u needs several buffers a frame, which this driver's native XDP may refuse",
			  device->mtu);
	else
		weir_find(findings, WEIR_FINDING_OK, "mtu", NULL, "MTU %u", device->mtu);
}

/* What happens to packets before XDP sees them. */
static void examine_offloads(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	if (!device->has_offloads) {
		weir_find(findings, WEIR_FINDING_NOTE, "vlan",
			  "should rules ask for 'vlan': 'ethtool -k' may know more",
			  "the driver does not tell whether VLAN tags stay in the packet, nor of LRO");
	} else if (device->strips_vlan) {
		snprintf(advice, sizeof(advice), "for rules with 'vlan': ethtool -K %s rxvlan off", interface);
		weir_find(findings, WEIR_FINDING_NOTE, "vlan", advice,
			  "VLAN tags can be taken off before XDP sees the packet: it would seem untagged");
	} else {
		weir_find(findings, WEIR_FINDING_OK, "vlan", NULL, "VLAN tags stay in the packet");
	}
}

/* Also of what the interface stands on; native mode comes before GRO, and refuses LRO where it matters. */
static void examine_merging(const char *interface, uint32_t ifindex, const struct weir_device *device,
			    struct weir_findings *findings)
{
	struct weir_merging merging;
	char advice[96];

	if (!weir_merging_find(interface, ifindex, &merging)) {
		weir_find(findings, WEIR_FINDING_OK, "gro", NULL, "no offload merges packets that come in");
		return;
	}
	if (!strcmp(merging.offload, "gro") && device->has_xdp_features && device->has_native_xdp) {
		weir_find(findings, WEIR_FINDING_OK, "gro", NULL, "GRO merges packets behind native XDP only");
		return;
	}
	if (merging.is_fixed)
		snprintf(advice, sizeof(advice),
			 "it cannot be turned off here; '--allow-gro' counts each as one packet");
	else
		snprintf(advice, sizeof(advice), "ethtool -K %s %s off", merging.interface, merging.offload);
	weir_find(findings, WEIR_FINDING_NOTE, strcmp(merging.offload, "lro") ? "gro" : "lro", advice,
		  "%s of '%s' merges packets before skb mode sees them: attach refuses that%s", merging.offload,
		  merging.interface, strcmp(merging.offload, "gro") ? ", and native mode may refuse, too" : "");
}

static void examine_super_frames(const char *interface, uint32_t ifindex, const struct weir_device *device,
				 struct weir_findings *findings)
{
	const bool is_native = device->has_xdp_features && device->has_native_xdp;
	struct weir_super_frames frames;

	if (!weir_super_frames_find(interface, ifindex, &frames))
		weir_find(findings, WEIR_FINDING_OK, "gso", NULL, "no sender on this host has super-frames for it");
	else if (is_native && !frames.evades_native)
		weir_find(findings, WEIR_FINDING_OK, "gso", NULL, "%s: native XDP has them in packets", frames.text);
	else
		weir_find(findings, WEIR_FINDING_NOTE, "gso", frames.advice, "%s: each counts as one packet",
			  frames.text);
}

/* The instance that is on this interface is on one above or below it, too. */
static bool examine_repeats(const char *interface, const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* `weir status` says it */
	_cleanup_(weir_freep) struct weir_repeat *repeats = NULL;
	char advice[128];
	size_t count;

	if (weir_instance_open(name, &instance, &ignored))
		return false;
	count = weir_instance_find_repeats(instance, &repeats);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(repeats[i].upper, interface) != 0 && strcmp(repeats[i].lower, interface) != 0)
			continue;
		snprintf(advice, sizeof(advice), "'weir detach --instance %s -i %s': '%s' sees all that comes in", name,
			 repeats[i].upper, repeats[i].lower);
		weir_find(findings, WEIR_FINDING_NOTE, "stack", advice,
			  "'%s' stands on '%s', and instance '%s' judges packets that come in by both twice: they pass "
			  "by half of their limits",
			  repeats[i].upper, repeats[i].lower, name);
		return true;
	}
	return false;
}

/* A program on an upper interface is in skb mode as a rule, where the ports below could have native mode. */
static void examine_stack(const char *interface, uint32_t ifindex, const struct weir_device *device,
			  struct weir_findings *findings)
{
	const uint32_t program_id = weir_device_program(device);
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	char below[96] = "", options[96] = "", advice[160], name[WEIR_INSTANCE_NAME_BYTES];
	size_t below_bytes = 0, options_bytes = 0;

	if (program_id && weir_instance_of_program(program_id, name) && examine_repeats(interface, name, findings))
		return;
	weir_stack_read(interface, ifindex, &stack);
	if (stack.bottom_count == 1 && stack.bottoms[0].ifindex == ifindex)
		return; /* most do */
	for (size_t i = 0; i < stack.bottom_count && below_bytes < sizeof(below) && options_bytes < sizeof(options);
	     i++) {
		below_bytes += snprintf(below + below_bytes, sizeof(below) - below_bytes, "%s%s", i ? ", " : "",
					stack.bottoms[i].name);
		options_bytes += snprintf(options + options_bytes, sizeof(options) - options_bytes, " -i %s",
					  stack.bottoms[i].name);
	}
	snprintf(advice, sizeof(advice), "'weir attach%s' limits them together, and what is not for '%s' too", options,
		 interface);
	weir_find(findings, WEIR_FINDING_NOTE, "stack", advice,
		  "'%s' stands on %s: what comes in there passes them first", interface, below);
}

static void examine_queues(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	snprintf(advice, sizeof(advice), "ethtool -X %s equal %u", interface, device->rx_queues);
	if (!device->rx_queues)
		weir_find(findings, WEIR_FINDING_OK, "queues", NULL, "the driver does not tell its receive queues");
	else if (device->rx_queues == 1 && weir_host_cpus() > 1)
		weir_find(findings, WEIR_FINDING_NOTE, "queues", "'ethtool -L' can add some, where the driver has more",
			  "one receive queue: one CPU does all the work%s",
			  device->hardware.rps_cpus > 1 ? " in native mode; RPS spreads that of skb mode" : "");
	else if (device->rss_queues && device->rss_queues < device->rx_queues)
		weir_find(findings, WEIR_FINDING_NOTE, "queues", advice,
			  "RSS sends packets to %u of %u receive queues: the CPUs of the others have nothing to do",
			  device->rss_queues, device->rx_queues);
	else
		weir_find(findings, WEIR_FINDING_OK, "queues", NULL, "%u receive queue%s", device->rx_queues,
			  device->rx_queues == 1 ? "" : "s");
}

/* Where interrupts go the program runs, until RPS hands the packet on, which it does before skb mode only. */
static void examine_interrupts(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	const struct weir_hardware *hardware = &device->hardware;
	char spread[64] = "";

	if (!hardware->interrupts)
		return; /* virtual devices have none */
	if (hardware->rps_cpus > 1)
		snprintf(spread, sizeof(spread), "; RPS spreads skb mode over %u", hardware->rps_cpus);
	if (hardware->interrupts > 1 && hardware->interrupt_cpus == 1 && weir_host_cpus() > 1)
		weir_find(findings, WEIR_FINDING_NOTE, "interrupts",
			  "start irqbalance, or write other CPUs to /proc/irq/N/smp_affinity_list",
			  "all %u receive interrupts of '%s' go to CPU %u, which does all the work%s",
			  hardware->interrupts, interface, hardware->last_cpu, spread);
	else
		weir_find(findings, WEIR_FINDING_OK, "interrupts", NULL, "%u receive interrupt%s on %u CPU%s%s",
			  hardware->interrupts, hardware->interrupts == 1 ? "" : "s", hardware->interrupt_cpus,
			  hardware->interrupt_cpus == 1 ? "" : "s", spread);
}

/* What arrives while the CPU is busy waits in the ring; what does not fit is dropped there, before any limit. */
static void examine_rings(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	if (!device->rx_ring)
		return; /* virtual devices have none */
	snprintf(advice, sizeof(advice), "ethtool -G %s rx %u", interface, device->rx_ring_max);
	if (device->rx_ring < RX_RING_MIN && device->rx_ring < device->rx_ring_max)
		weir_find(findings, WEIR_FINDING_NOTE, "rings", advice,
			  "a receive queue holds %u packets of at most %u: a burst is lost before weir sees it",
			  device->rx_ring, device->rx_ring_max);
	else
		weir_find(findings, WEIR_FINDING_OK, "rings", NULL, "a receive queue holds %u packets",
			  device->rx_ring);
}

static void examine_span(const char *name, const char *advice, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* `weir status` says it */
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

/* By what becomes of a flow that loses its place in a full table. */
struct evictions {
	uint64_t remembered;			/* windows: remnants; tokens, Throttling: ghosts */
	uint64_t forgotten;			/* lending: it begins anew */
	uint64_t connections;			/* connections and breakers */
	const char *forgetful, *of_connections; /* the first such rules that lost one */
};

static void sum_evictions(const struct weir_instance *instance, const struct weir_counters *counters,
			  struct evictions *sum)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *rule = &instance->rules[instance->rule_order[i]];
		const uint64_t evicted = counters->rules[instance->rule_order[i]].evicted;
		const struct weir_kind *kind = weir_kind_of_info(rule);

		if (rule->system)
			continue; /* one flow, which stays */
		if (kind->counts_connections || kind->is_breaker) {
			sum->connections += evicted;
			sum->of_connections = sum->of_connections ?: evicted ? rule->name : NULL;
		} else if (kind->lends) {
			sum->forgotten += evicted;
			sum->forgetful = sum->forgetful ?: evicted ? rule->name : NULL;
		} else {
			sum->remembered += evicted;
		}
	}
}

/* Flows of windows, token buckets and planned times that were pushed out are remembered, until there is no room for
 * that either: they begin anew, and may have more than their limit. Those of other kinds begin anew at once.
 */
static void examine_evictions(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_counters_free) struct weir_counters counters = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* `weir stats` says it */
	struct weir_remnants_sum remnants;
	struct evictions evictions = {};

	if (weir_instance_open(name, &instance, &ignored) || weir_counters_read(instance, &counters, &ignored) ||
	    weir_remnants_look(instance, &remnants, &ignored))
		return;
	if (weir_remnants_are_nearly_full(&remnants))
		weir_find(
			findings, WEIR_FINDING_PROBLEM, "flows",
			"raise settings.flowsPerCpu, 'weir detach', and attach again",
			"instance '%s' remembers %llu flows without a row, of %llu that there is room for: others are "
			"forgotten, and may pass more than their limits, or share one ('whenFull: aggregate')",
			name, (unsigned long long)remnants.used, (unsigned long long)remnants.places);
	sum_evictions(instance, &counters, &evictions);
	if (evictions.remembered)
		weir_find(findings, WEIR_FINDING_NOTE, "flows",
			  "raise settings.flowsPerCpu, 'weir detach', and attach again",
			  "%llu flows of instance '%s' lost their place to others: more than its %u a CPU are active",
			  (unsigned long long)evictions.remembered, name, instance->info.flows_per_cpu);
	if (evictions.forgotten)
		weir_find(findings, WEIR_FINDING_PROBLEM, "flows",
			  "raise settings.flowsPerCpu, 'weir detach', and attach again; a rule on the whole resource "
			  "bounds all of them together",
			  "%llu flows of rule '%.40s' and the like (lending) lost their place and "
			  "began anew: they may have passed more than their limits",
			  (unsigned long long)evictions.forgotten, evictions.forgetful);
	if (remnants.ghosts_displaced)
		weir_find(findings, WEIR_FINDING_PROBLEM, "flows",
			  "raise settings.flowsPerCpu, 'weir detach', and attach again; a rule on the whole resource "
			  "bounds all of them together",
			  "%llu flows of instance '%s' (tokens, Throttling) lost their place, were forgotten and began "
			  "anew: they may have passed more than their limits",
			  (unsigned long long)remnants.ghosts_displaced, name);
	if (evictions.connections)
		weir_find(findings, WEIR_FINDING_PROBLEM, "flows",
			  "raise settings.connections and settings.connectionFlows, 'weir detach', and attach again",
			  "%llu connections, requests or flows of rule '%.40s' and the like lost their place: not all "
			  "of them may count when they come again",
			  (unsigned long long)evictions.connections, evictions.of_connections);
}

/* What its system rules go by. */
static void examine_signals(const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* `weir status` says it */
	struct weir_host_signals signals;

	if (weir_instance_open(name, &instance, &ignored) || weir_signals_look(instance, &signals, &ignored))
		return;
	if (signals.has_samples && !signals.has_load1 && !signals.has_cpu)
		weir_find(findings, WEIR_FINDING_NOTE, "system", "'weir run' and 'weir control' do",
			  "nobody samples load and CPU usage for the system rules of instance '%s'", name);
	if (signals.has_connections)
		weir_find(findings, WEIR_FINDING_OK, "system", NULL,
			  "connections open: %llu; AvgRT %.3f ms, maxComplete %llu a second, minRt %.3f ms",
			  (unsigned long long)signals.open, signals.mean_us / 1e3,
			  (unsigned long long)signals.complete_max, signals.shortest_us / 1e3);
}

static void examine_weir(uint32_t program_id, struct weir_findings *findings)
{
	char name[WEIR_INSTANCE_NAME_BYTES], advice[160];
	struct weir_instance_info head;

	if (!weir_instance_of_program(program_id, name)) {
		weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "weir is attached (program %u)", program_id);
		return;
	}
	if (weir_instance_is_foreign(name, &head)) {
		snprintf(advice, sizeof(advice), "'weir reload --instance %s --fresh FILE...' makes it this one's",
			 name);
		weir_find(findings, WEIR_FINDING_NOTE, "programs", advice,
			  "another version of weir is attached: instance '%s'", name);
		return;
	}
	snprintf(advice, sizeof(advice), "'weir detach --instance %s', and attach again", name);
	weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "weir is attached: instance '%s' (program %u)", name,
		  program_id);
	examine_span(name, advice, findings);
	examine_signals(name, findings);
	examine_evictions(name, findings);
}

static void examine_programs(const char *interface, uint32_t ifindex, const struct weir_device *device,
			     struct weir_findings *findings)
{
	uint32_t program_id = weir_device_program(device);
	char name[16], advice[WEIR_REMOVAL_BYTES];

	if (!program_id) {
		weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "no XDP program on it");
		return;
	}
	weir_program_name(program_id, name);
	if (!strcmp(name, "weir_ingress")) {
		examine_weir(program_id, findings);
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
	int err;

	if (ifindex < 0)
		return ifindex;
	err = weir_device_read(interface, ifindex, &device);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot look at '%s'", interface);

	examine_type(interface, &device, &findings);
	examine_driver(interface, &device, &findings);
	examine_mtu(interface, &device, &findings);
	examine_offloads(interface, &device, &findings);
	examine_merging(interface, ifindex, &device, &findings);
	examine_super_frames(interface, ifindex, &device, &findings);
	examine_stack(interface, ifindex, &device, &findings);
	examine_queues(interface, &device, &findings);
	examine_interrupts(interface, &device, &findings);
	examine_rings(interface, &device, &findings);
	examine_programs(interface, ifindex, &device, &findings);
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

/* ---- the rules, here ---- */

static void examine_rules_memory(const struct weir_image *image, struct weir_findings *findings)
{
	const uint64_t available_bytes = weir_host_memory_available_bytes();
	struct weir_image_memory memory;
	enum weir_finding_level level = WEIR_FINDING_OK;

	weir_image_memory(image, image->config.cpus, &memory);
	if (available_bytes && memory.total > available_bytes)
		level = WEIR_FINDING_PROBLEM;
	else if (available_bytes && memory.total > available_bytes / 2)
		level = WEIR_FINDING_NOTE;
	weir_find(findings, level, "rules", level == WEIR_FINDING_OK ? NULL : "lower settings.flowsPerCpu",
		  "the rules take %.1f MB, %.0f MB are available", memory.total / 1e6, available_bytes / 1e6);
}

/* A flow takes a place on each CPU that its packets come to: with RSS one, without it all of them. How many there will
 * be nobody knows; those that the rules name are a beginning.
 */
static void examine_rules_flows(uint64_t overrides, uint32_t flows, struct weir_findings *findings)
{
	if (overrides > flows / 2)
		weir_find(findings, WEIR_FINDING_NOTE, "flows",
			  "raise settings.flowsPerCpu to twice the flows you expect on a CPU",
			  "the rules name %llu flows by overrides, and a CPU has room for %u, half of which fit for "
			  "sure",
			  (unsigned long long)overrides, flows);
	else
		weir_find(findings, WEIR_FINDING_OK, "flows", NULL,
			  "room for %u flows a CPU: enough for %u that are active there within an interval", flows,
			  flows / 2);
}

/* Water marks that this machine can never reach. */
static void examine_rules_marks(const struct weir_ruleset *ruleset, struct weir_findings *findings)
{
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	weir_ruleset_check_memory(ruleset, weir_memory_total_bytes(ruleset->settings.memory_cgroup), &diag);
	for (size_t i = 0; i < diag.count; i++)
		weir_find(findings, WEIR_FINDING_PROBLEM, "marks", diag.entries[i].hint, "%s:%d: %s",
			  diag.entries[i].file ? diag.entries[i].file : "-", diag.entries[i].line,
			  diag.entries[i].message);
}

static void examine_rules_mode(const struct weir_device *device, struct weir_findings *findings)
{
	char buffer[WEIR_LINK_TYPE_BYTES];

	if (weir_link_type_without_ethernet(device->type, buffer))
		return; /* attach refuses it */
	if (!device->has_xdp_features)
		weir_find(findings, WEIR_FINDING_OK, "mode", NULL,
			  "attach would try native mode first, and skb mode then");
	else if (device->has_native_xdp)
		weir_find(findings, WEIR_FINDING_OK, "mode", NULL, "attach would choose native mode");
	else
		weir_find(findings, WEIR_FINDING_NOTE, "mode",
			  "see the lines about offloads: merged packets count as one", "attach would choose skb mode");
}

static void examine_rules_vlan(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	snprintf(advice, sizeof(advice), "ethtool -K %s rxvlan off", interface);
	if (device->has_offloads && device->strips_vlan)
		weir_find(findings, WEIR_FINDING_PROBLEM, "fields", advice,
			  "the rules match 'vlan', and the device may take tags off before they are seen");
	else
		weir_find(findings, WEIR_FINDING_OK, "fields", NULL, "the rules match 'vlan', and nothing hides it");
}

/* What offloads hide of single packets. A device that tells nothing of native XDP gets it, perhaps. */
static void examine_rules_fields(const char *interface, uint32_t ifindex, const struct weir_device *device,
				 uint32_t fields, struct weir_findings *findings)
{
	struct weir_super_frames frames;
	struct weir_merging merging;
	char advice[96];

	if (fields & WEIR_MATCH_VLAN)
		examine_rules_vlan(interface, device, findings);
	if (!(fields & (WEIR_MATCH_LENGTH | WEIR_MATCH_TCP_FLAGS)) ||
	    (device->has_xdp_features && device->has_native_xdp))
		return;
	if (weir_merging_find(interface, ifindex, &merging) || weir_super_frames_find(interface, ifindex, &frames)) {
		snprintf(advice, sizeof(advice), "'weir doctor %s' says how, in its lines 'gro' and 'gso'", interface);
		weir_find(findings, WEIR_FINDING_NOTE, "fields", advice,
			  "the rules match 'length' or 'tcpFlags', of which packets in one frame have one for all");
	}
}

static bool means(const struct weir_match *match, const char *interface)
{
	return !match->interface_count ||
	       weir_words_mean((const char(*)[WEIR_WANTED_BYTES])match->interface, match->interface_count, interface);
}

/* Said once, of the first. */
static void examine_rules_interface(const char *interface, const struct weir_ruleset *ruleset,
				    struct weir_findings *findings)
{
	const char *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < ruleset->resource_count; i++) {
		if (means(&ruleset->resources[i].match, interface))
			continue;
		first = first ?: ruleset->resources[i].name;
		count++;
	}
	if (first)
		weir_find(findings, WEIR_FINDING_NOTE, "interface", NULL,
			  "%zu resource%s of the rules match%s nothing on '%s', by 'interface': the first is '%.64s'",
			  count, count == 1 ? "" : "s", count == 1 ? "es" : "", interface, first);
}

static void examine_rules_pace(const struct weir_image *image, struct weir_findings *findings)
{
	struct weir_pace_ability ability;

	if (!image->config.paces)
		return;
	weir_pace_probe(&ability);
	if (ability.answer == WEIR_PACE_YES)
		return; /* the host's own line says so */
	weir_find(findings, WEIR_FINDING_PROBLEM, "throttling", ability.advice,
		  "the rules throttle by 'pace', which this host cannot: %s", ability.text);
}

/* What was noted of the host, and these rules never meet. A problem stays: it is one for any rules. */
static void leave_out(struct weir_findings *findings, const char *topic)
{
	size_t kept = 0;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->finding[i].level != WEIR_FINDING_NOTE || strcmp(findings->finding[i].topic, topic))
			findings->finding[kept++] = findings->finding[i];
	findings->count = kept;
}

static bool has_memory_rules(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
			return true;
	return false;
}

static void leave_out_what_rules_never_meet(const struct weir_ruleset *ruleset, const struct weir_image *image,
					    struct weir_findings *findings)
{
	if (!(image->config.match_fields & WEIR_MATCH_VLAN))
		leave_out(findings, "vlan");
	if (!image->config.paces)
		leave_out(findings, "pace");
	if (!has_memory_rules(ruleset))
		leave_out(findings, "pressure");
}

int weir_examine_rules(const char *interface, const struct weir_ruleset *ruleset, struct weir_findings *findings,
		       struct weir_diag *diag)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	const struct weir_compile_options options = {
		.cpus = weir_host_cpus(),
		.now_ns = weir_host_now_ns(),
		.ifindex = weir_host_find_ifindex,
	};
	struct weir_device device = {};
	int ifindex = weir_host_ifindex(interface, diag);
	int err = ifindex < 0 ? ifindex : weir_image_build(ruleset, &options, &image, diag);

	if (err)
		return err;
	err = weir_device_read(interface, ifindex, &device);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot look at '%s'", interface);
	leave_out_what_rules_never_meet(ruleset, image, findings);
	examine_rules_mode(&device, findings);
	examine_rules_memory(image, findings);
	examine_rules_flows(image->override_count, image->flows_per_cpu, findings);
	examine_rules_marks(ruleset, findings);
	examine_rules_fields(interface, ifindex, &device, image->config.match_fields, findings);
	examine_rules_interface(interface, ruleset, findings);
	examine_rules_pace(image, findings);
	return 0;
}

/* ---- the rules, where they are in force ---- */

/* Of those that are looked at here. */
static uint32_t fields_of(const struct weir_ruleset *ruleset)
{
	uint32_t fields = 0;

	for (size_t i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		fields |= (match->vlan_count ? WEIR_MATCH_VLAN : 0) | (match->length_count ? WEIR_MATCH_LENGTH : 0) |
			  (match->tcp_flags_count ? WEIR_MATCH_TCP_FLAGS : 0);
	}
	return fields;
}

/* What is found on one interface and on a hundred is told once, of the first. */
struct told {
	struct weir_findings findings;
	char first[WEIR_FINDINGS_MAX][IF_NAMESIZE];
	size_t others[WEIR_FINDINGS_MAX];
};

static void collect(const char *interface, const struct weir_findings *findings, struct told *told)
{
	struct weir_findings *all = &told->findings;

	for (size_t i = 0; i < findings->count; i++) {
		const struct weir_finding *finding = &findings->finding[i];
		size_t place = 0;

		if (finding->level == WEIR_FINDING_OK)
			continue;
		while (place < all->count && strcmp(all->finding[place].text, finding->text) != 0)
			place++;
		if (place < all->count) {
			told->others[place]++;
		} else if (all->count < WEIR_FINDINGS_MAX) {
			all->finding[all->count++] = *finding;
			snprintf(told->first[place], IF_NAMESIZE, "%s", interface);
		}
	}
}

static void warn_of_told(const struct told *told, struct weir_diag *diag)
{
	for (size_t i = 0; i < told->findings.count; i++) {
		const struct weir_finding *finding = &told->findings.finding[i];
		char others[32] = "";

		if (told->others[i])
			snprintf(others, sizeof(others), " and %zu more", told->others[i]);
		weir_diag_warning(diag, NULL, NULL, finding->advice, "on '%s'%s: %s", told->first[i], others,
				  finding->text);
	}
}

/* As it was kept, to go back to; NULL where it was not. */
static struct weir_ruleset *read_rules(const struct weir_instance *instance)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* they are in force, whatever this version says */
	struct weir_ruleset *ruleset = NULL;

	weir_instance_history(instance, &history);
	if (history.sets[0] && weir_kept_set_read(history.sets[0], &ruleset, &ignored))
		return NULL;
	return ruleset;
}

/* Names that are not there the compiler has warned of. */
static void warn_of_pattern(const struct weir_instance *instance, const struct weir_ruleset_resource *resource,
			    const char (*word)[WEIR_WANTED_BYTES], struct weir_diag *diag)
{
	if (!weir_word_is_pattern(*word) || (*word)[0] == WEIR_WORD_EXCEPTS)
		return;
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex && weir_words_mean(word, 1, instance->links[i].interface))
			return;
	weir_diag_warning(diag, &resource->place, NULL, "should one come, and be limited, it matches there",
			  "resource '%s' matches nothing by '%s' now: no interface that is limited has such a name",
			  resource->name, *word);
}

static void warn_of_patterns(const struct weir_instance *instance, const struct weir_ruleset *ruleset,
			     struct weir_diag *diag)
{
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		for (size_t word = 0; word < match->interface_count; word++)
			warn_of_pattern(instance, &ruleset->resources[i],
					(const char(*)[WEIR_WANTED_BYTES])match->interface + word, diag);
	}
}

void weir_examine_attached(const char *instance_name, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *kept = NULL;
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* what was attached or reloaded can be read */
	struct told told = {};
	uint64_t overrides = 0;
	uint32_t fields;

	if (weir_instance_open_now(instance_name, &instance, &ignored) ||
	    weir_netns_enter(instance->info.netns, &back_fd))
		return;
	if (!ruleset)
		ruleset = kept = read_rules(instance);
	if (!ruleset)
		return;
	fields = fields_of(ruleset);
	for (size_t i = 0; i < ruleset->rule_count; i++)
		overrides += ruleset->rules[i].override_count;
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		struct weir_findings findings = {};
		struct weir_device device;

		if (!link->ifindex || weir_device_read(link->interface, link->ifindex, &device))
			continue;
		/* It is known by now. */
		device.has_xdp_features = true;
		device.has_native_xdp = link->is_native;
		examine_rules_flows(overrides, instance->info.flows_per_cpu, &findings);
		examine_rules_fields(link->interface, link->ifindex, &device, fields, &findings);
		collect(link->interface, &findings, &told);
	}
	warn_of_told(&told, diag);
	warn_of_patterns(instance, ruleset, diag);
}
