// SPDX-License-Identifier: GPL-2.0-only
/* Properties of an interface that would distort a limit: its driver, its offloads, its queues, and other programs that
 * see its packets.
 */
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "instance/instance.h"
#include "kind/kind.h"
#include "network/device.h"
#include "network/stack.h"
#include "network/super_frames.h"
#include "state/examine_interface.h"

/* Largest MTU whose frames fit one buffer of a driver that allocates a page of 4,096 bytes for each: minus the headroom
 * of XDP (256), the tail that an skb needs (320), and Ethernet with two VLAN tags (22).
 */
#define ONE_BUFFER_MTU 3498

/* At 10 Gbit/s, this many of the smallest frames arrive in 69 us. Chosen, not derived. */
#define RX_RING_MIN 1024

/* Attach takes it in tc mode only, whatever its driver can do and whatever merges its packets. */
static bool is_for_tc_only(const struct weir_device *device)
{
	char buffer[WEIR_LINK_TYPE_BYTES];

	return weir_link_type_without_ethernet(device->type, buffer);
}

void weir_examine_type(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	const char *type = weir_link_type_without_ethernet(device->type, buffer);

	if (type)
		weir_find(findings, WEIR_FINDING_NOTE, "type", WEIR_NO_ETHERNET_ADVICE,
			  "packets of '%s' have no Ethernet header (link/%s): XDP cannot read them", interface, type);
	else
		weir_find(findings, WEIR_FINDING_OK, "type", NULL, "packets of '%s' have an Ethernet header",
			  interface);
}

void weir_examine_driver(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	const char *driver = device->driver[0] ? device->driver : "(unknown)";

	if (!device->is_up)
		weir_find(findings, WEIR_FINDING_NOTE, "link", NULL,
			  "'%s' is down: attach works, packets arrive once it is up", interface);
	if (is_for_tc_only(device))
		weir_find(findings, WEIR_FINDING_OK, "driver", NULL, "driver %s", driver);
	else if (device->hardware.keeps_merging)
		weir_find(findings, WEIR_FINDING_NOTE, "driver",
			  "on the virtual machine's host, turn off guest_csum, guest_tso4, guest_tso6, guest_ecn, "
			  "guest_ufo",
			  "driver %s refuses native XDP: the host merges packets, which cannot be turned off here",
			  driver);
	else if (!device->has_xdp_features)
		weir_find(findings, WEIR_FINDING_NOTE, "driver",
			  "try 'weir attach --mode native', which refuses if not",
			  "driver %s: before Linux 6.3, it is unknown whether it has native XDP", driver);
	else if (device->has_native_xdp)
		weir_find(findings, WEIR_FINDING_OK, "driver", NULL, "driver %s has native XDP", driver);
	else
		weir_find(findings, WEIR_FINDING_NOTE, "driver", "use another interface where speed matters",
			  "driver %s has no native XDP: attach falls back to skb mode, unless '--mode tc' is given; "
			  "both are slower",
			  driver);
}

void weir_examine_mtu(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	const bool has_large_frames = device->mtu > ONE_BUFFER_MTU;

	if (!device->mtu)
		weir_find(findings, WEIR_FINDING_NOTE, "mtu", NULL, "the MTU of '%s' is unknown", interface);
	else if (has_large_frames && !device->has_xdp_features)
		weir_find(findings, WEIR_FINDING_NOTE, "mtu", "lower the MTU, or attach with '--mode tc'",
			  "MTU %u needs several buffers per frame: before Linux 6.3, it is unknown whether native XDP "
			  "accepts them",
			  device->mtu);
	else if (has_large_frames && device->has_native_xdp && !device->has_native_frags)
		weir_find(findings, WEIR_FINDING_NOTE, "mtu", "lower the MTU, or attach with '--mode tc'",
			  "MTU %u needs several buffers per frame, which this driver's native XDP may refuse",
			  device->mtu);
	else
		weir_find(findings, WEIR_FINDING_OK, "mtu", NULL, "MTU %u", device->mtu);
}

void weir_examine_offloads(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	if (!device->has_offloads) {
		weir_find(findings, WEIR_FINDING_NOTE, "vlan", "if rules match 'vlan', see 'ethtool -k'",
			  "the driver does not report LRO, nor whether VLAN tags stay in the packet");
	} else if (device->strips_vlan) {
		snprintf(advice, sizeof(advice), "for rules with 'vlan': ethtool -K %s rxvlan off", interface);
		weir_find(findings, WEIR_FINDING_NOTE, "vlan", advice,
			  "VLAN tags may be removed before XDP sees the packet: it then seems untagged");
	} else {
		weir_find(findings, WEIR_FINDING_OK, "vlan", NULL, "nothing hides VLAN tags");
	}
}

/* Was the instance on this device attached with '--allow-gro'? */
static bool accepts_merging(const struct weir_device *device)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	const uint32_t program_id = weir_device_program(device);
	char name[WEIR_INSTANCE_NAME_BYTES];

	return program_id && weir_instance_of_program(program_id, name) &&
	       !weir_instance_open(name, &instance, &ignored) && instance->info.allows_merging;
}

void weir_examine_merging(const char *interface, uint32_t ifindex, const struct weir_device *device, bool is_for_tc,
			  struct weir_findings *findings)
{
	/* A device that does not report its native mode may have one: attach tries it first. */
	const bool may_be_native = !device->has_xdp_features || device->has_native_xdp;
	struct weir_merging merging;
	char advice[WEIR_FINDING_CHARS];

	if (is_for_tc_only(device)) {
		weir_find(findings, WEIR_FINDING_OK, "gro", NULL, "tc mode counts the segments of merged packets");
		return;
	}
	if (!weir_merging_find(interface, ifindex, &merging)) {
		weir_find(findings, WEIR_FINDING_OK, "gro", NULL, "no offload merges arriving packets");
		return;
	}
	if (is_for_tc) {
		weir_find(findings, WEIR_FINDING_OK, strcmp(merging.offload, "lro") ? "gro" : "lro", NULL,
			  "%s of '%s' merges packets: in tc mode, they are counted as their segments", merging.offload,
			  merging.interface);
		return;
	}
	if (!strcmp(merging.offload, "gro") && device->has_xdp_features && device->has_native_xdp) {
		weir_find(findings, WEIR_FINDING_OK, "gro", NULL, "GRO merges packets only after native XDP");
		return;
	}
	if (merging.is_fixed)
		snprintf(advice, sizeof(advice),
			 "it cannot be turned off here; '--mode tc' counts the segments of each merged packet");
	else
		snprintf(advice, sizeof(advice),
			 "attach with '--mode tc', which counts the segments of each merged packet; or run "
			 "'ethtool -K %s %s off'",
			 merging.interface, merging.offload);
	if (accepts_merging(device)) {
		weir_find(findings, WEIR_FINDING_NOTE, "gro", NULL,
			  "%s of '%s' merges packets before skb mode sees them: each merged packet counts as one, as "
			  "'--allow-gro' accepts",
			  merging.offload, merging.interface);
		return;
	}
	weir_find(findings, may_be_native ? WEIR_FINDING_NOTE : WEIR_FINDING_PROBLEM,
		  strcmp(merging.offload, "lro") ? "gro" : "lro", advice,
		  "%s of '%s' merges packets before skb mode sees them: attach refuses that%s", merging.offload,
		  merging.interface,
		  may_be_native && strcmp(merging.offload, "gro") ? ", and native mode may refuse as well" : "");
}

void weir_examine_super_frames(const char *interface, uint32_t ifindex, const struct weir_device *device,
			       bool is_for_tc, struct weir_findings *findings)
{
	const bool is_native = device->has_xdp_features && device->has_native_xdp;
	struct weir_super_frames frames;

	if (!weir_super_frames_find(interface, ifindex, &frames))
		weir_find(findings, WEIR_FINDING_OK, "gso", NULL, "no sender on this host sends it super-frames");
	else if (is_for_tc)
		weir_find(findings, WEIR_FINDING_OK, "gso", NULL, "%s: in tc mode, they are counted as their segments",
			  frames.text);
	else if (is_native && !frames.evades_native)
		weir_find(findings, WEIR_FINDING_OK, "gso", NULL, "%s: native XDP sees them as packets", frames.text);
	else
		weir_find(findings, WEIR_FINDING_NOTE, "gso", frames.advice,
			  "%s: each counts as one packet, but in tc mode as its segments", frames.text);
}

/* Why tc mode is best for the interface; NULL: it is not. In skb mode a program sees the same packets as tc, but not
 * the frames that they were merged from.
 */
static const char *why_tc(const char *interface, uint32_t ifindex, const struct weir_device *device,
			  bool asks_interface)
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	struct weir_super_frames frames = {};
	struct weir_merging merging;

	if (weir_link_type_without_ethernet(device->type, buffer))
		return "its packets have no Ethernet header";
	if (device->has_xdp_features && !device->has_native_xdp)
		return "native mode is refused, and tc counts the segments of merged packets, as skb mode does not";
	if (asks_interface && weir_device_runs_in_ports(interface))
		return "rules have 'interface', which is the port in native mode, so that attach refuses it";
	if (weir_super_frames_find(interface, ifindex, &frames) && frames.evades_native)
		return "super-frames reach native mode whole there, and tc counts their segments";
	if (weir_merging_find(interface, ifindex, &merging) && merging.is_fixed)
		return "packets are merged before native mode sees them, and tc counts their segments";
	return NULL;
}

bool weir_examine_is_for_tc(const char *interface, uint32_t ifindex, const struct weir_device *device)
{
	const uint32_t program_id = weir_device_program(device);
	char name[WEIR_INSTANCE_NAME_BYTES];
	struct weir_link link;

	if (program_id && weir_instance_of_program(program_id, name))
		return false; /* even if another instance is at tc */
	if (weir_instance_on(ifindex, name, &link))
		return link.hook != WEIR_HOOK_XDP;
	return why_tc(interface, ifindex, device, false);
}

/* Do rules that are in force here have `interface`? */
static bool asks_interface_now(uint32_t ifindex)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	char name[WEIR_INSTANCE_NAME_BYTES];
	struct weir_link link;

	return weir_instance_on(ifindex, name, &link) && !weir_instance_open(name, &instance, &ignored) &&
	       instance->info.policies & WEIR_ASKS_INTERFACE;
}

void weir_examine_mode(const char *interface, uint32_t ifindex, const struct weir_device *device, bool asks_interface,
		       struct weir_findings *findings)
{
	const bool has_native = device->has_xdp_features && device->has_native_xdp;
	const char *why = why_tc(interface, ifindex, device, asks_interface || asks_interface_now(ifindex));
	char netns[WEIR_NETNS_WORDS_BYTES], advice[sizeof(netns) + 64];

	weir_host_netns_option(netns);
	snprintf(advice, sizeof(advice), "weir attach%s --mode tc -i %s FILE...", netns, interface);
	if (why)
		weir_find(findings, WEIR_FINDING_NOTE, "mode", advice, "tc mode is best for '%s': %s", interface, why);
	else if (has_native)
		weir_find(findings, WEIR_FINDING_OK, "mode", NULL,
			  "native mode is best for '%s', and attach chooses it: it is the fastest, and sees each "
			  "packet by itself",
			  interface);
	else
		weir_find(findings, WEIR_FINDING_OK, "mode", NULL,
			  "native mode is best for '%s' if the driver has it, and attach tries it first; else "
			  "'--mode tc' is",
			  interface);
}

/* Is the instance on this interface also on one above or below it? */
static bool examine_repeats(const char *interface, const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	_cleanup_(weir_freep) struct weir_repeat *repeats = NULL;
	char option[WEIR_INSTANCE_OPTIONS_BYTES], advice[WEIR_INSTANCE_HINT_BYTES];
	size_t count;

	if (weir_instance_open(name, &instance, &ignored))
		return false;
	count = weir_instance_find_repeats(instance, &repeats);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(repeats[i].upper, interface) != 0 && strcmp(repeats[i].lower, interface) != 0)
			continue;
		snprintf(advice, sizeof(advice), "run 'weir detach%s -i %s': '%s' sees all packets that arrive",
			 weir_instance_options(name, option), repeats[i].upper, repeats[i].lower);
		weir_find(findings, WEIR_FINDING_NOTE, "stack", advice,
			  "'%s' stands on '%s', and instance '%s' counts packets that arrive through both twice: they "
			  "get half of their limits",
			  repeats[i].upper, repeats[i].lower, name);
		return true;
	}
	return false;
}

void weir_examine_stack(const char *interface, uint32_t ifindex, const struct weir_device *device,
			struct weir_findings *findings)
{
	const uint32_t program_id = weir_device_program(device);
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	char below[96] = "", options[96] = "", netns[WEIR_NETNS_WORDS_BYTES], advice[384],
	     name[WEIR_INSTANCE_NAME_BYTES];
	size_t below_bytes = 0, options_bytes = 0;

	if (program_id && weir_instance_of_program(program_id, name) && examine_repeats(interface, name, findings))
		return;
	weir_stack_read(interface, ifindex, &stack);
	if (stack.bottom_count == 1 && stack.bottoms[0].ifindex == ifindex)
		return; /* most interfaces have none below them */
	for (size_t i = 0; i < stack.bottom_count && below_bytes < sizeof(below) && options_bytes < sizeof(options);
	     i++) {
		below_bytes += snprintf(below + below_bytes, sizeof(below) - below_bytes, "%s%s", i ? ", " : "",
					stack.bottoms[i].name);
		options_bytes += snprintf(options + options_bytes, sizeof(options) - options_bytes, " -i %s",
					  stack.bottoms[i].name);
	}
	weir_host_netns_option(netns);
	snprintf(advice, sizeof(advice),
		 "'weir attach%s%s FILE...' limits them together, including packets that are not for '%s'", netns,
		 options, interface);
	weir_find(findings, WEIR_FINDING_NOTE, "stack", advice, "'%s' stands on %s: packets arrive through that first",
		  interface, below);
}

void weir_examine_queues(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	snprintf(advice, sizeof(advice), "ethtool -X %s equal %u", interface, device->rx_queues);
	if (!device->rx_queues)
		weir_find(findings, WEIR_FINDING_OK, "queues", NULL, "the driver does not report its receive queues");
	else if (device->rx_queues == 1 && weir_host_cpus() > 1)
		weir_find(findings, WEIR_FINDING_NOTE, "queues", "'ethtool -L' can add some if the driver has more",
			  "one receive queue: one CPU does all the work%s",
			  device->hardware.rps_cpus > 1 ? " in native mode; RPS spreads that of skb mode" : "");
	else if (device->rss_queues && device->rss_queues < device->rx_queues)
		weir_find(findings, WEIR_FINDING_NOTE, "queues", advice,
			  "RSS sends packets to %u of %u receive queues: the CPUs of the others are idle",
			  device->rss_queues, device->rx_queues);
	else
		weir_find(findings, WEIR_FINDING_OK, "queues", NULL, "%u receive queue%s", device->rx_queues,
			  device->rx_queues == 1 ? "" : "s");
}

void weir_examine_interrupts(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	const struct weir_hardware *hardware = &device->hardware;
	char spread[64] = "";

	if (!hardware->interrupts)
		return; /* virtual devices have no interrupts */
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

void weir_examine_rings(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	if (!device->rx_ring)
		return; /* virtual devices have no rings */
	snprintf(advice, sizeof(advice), "ethtool -G %s rx %u", interface, device->rx_ring_max);
	if (device->rx_ring < RX_RING_MIN && device->rx_ring < device->rx_ring_max)
		weir_find(findings, WEIR_FINDING_NOTE, "rings", advice,
			  "a receive queue holds %u packets of at most %u: bursts may be lost before weir sees them",
			  device->rx_ring, device->rx_ring_max);
	else
		weir_find(findings, WEIR_FINDING_OK, "rings", NULL, "a receive queue holds %u packets",
			  device->rx_ring);
}
