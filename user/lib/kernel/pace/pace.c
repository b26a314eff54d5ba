// SPDX-License-Identifier: GPL-2.0-only
#include "pace/pace.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "network/netlink.h"
#include "network/netns.h"
#include "network/tc.h"
#include "pace.skel.h"
#include "pins/links.h"
#include "pins/pins.h"
#include "program/array.h"
#include "program/object.h"
#include "weir_abi.h"

#define DEVICE_PREFIX "weir-"
/* No instance name contains a '+', so a long name never becomes the device name of another, short one. */
#define LONG_DEVICE_PREFIX "weir+"
#define PACED_PIN "paced-"

/* The most that may wait in total: an eighth of the machine's memory, in packets of full size with everything that the
 * kernel stores around them. Chosen, not derived: throttling limits only what each flow may have waiting.
 */
#define MEMORY_SHARE 8
#define WAITING_PACKET_BYTES 4096

#define DRAIN_STEP_NS 5000000

/* ---- names ---- */

void weir_pace_device(const char *instance, char ret_name[IF_NAMESIZE])
{
	uint64_t hash = weir_digest(WEIR_DIGEST_BASIS, instance, strlen(instance));

	if (strlen(DEVICE_PREFIX) + strlen(instance) < IF_NAMESIZE) {
		stpcpy(stpcpy(ret_name, DEVICE_PREFIX), instance);
		return;
	}
	snprintf(ret_name, IF_NAMESIZE, LONG_DEVICE_PREFIX "%010llx", (unsigned long long)hash & 0xffffffffffull);
}

bool weir_pace_is_device(const char *name)
{
	return !strncmp(name, DEVICE_PREFIX, strlen(DEVICE_PREFIX)) ||
	       !strncmp(name, LONG_DEVICE_PREFIX, strlen(LONG_DEVICE_PREFIX));
}

static const char *pin_name(uint32_t ifindex, char buffer[32])
{
	snprintf(buffer, 32, PACED_PIN "%u", ifindex);
	return buffer;
}

/* The interface index in such a pin; 0 if it is the pin of something else. */
static uint32_t paced_ifindex(const char *pin)
{
	return strncmp(pin, PACED_PIN, strlen(PACED_PIN)) ? 0 : strtoul(pin + strlen(PACED_PIN), NULL, 10);
}

/* The instance's network namespace may differ from the caller's. */
static int enter_netns_of(const char *instance, int *ret_back_fd)
{
	return weir_netns_enter(weir_info_netns(instance), ret_back_fd);
}

/* ---- setting it up ---- */

/* Why the last request failed. */
static int explain(const struct weir_netlink *netlink, int err, const char *what, struct weir_diag *diag)
{
	/* These errors mean an unknown kind of interface, qdisc or filter. */
	if (err == -EOPNOTSUPP || err == -ENOENT) {
		int lacking = weir_pace_check(diag);

		if (lacking)
			return lacking;
	}
	return weir_diag_fail(diag, -err,
			      "write 'throttling: police', which makes the same decisions and needs none of it",
			      "cannot pace: no %s%s%s", what, netlink->reason[0] ? ": " : "", netlink->reason);
}

static uint32_t packets_that_may_wait(void)
{
	struct sysinfo memory;
	uint64_t packets;

	if (sysinfo(&memory))
		return UINT16_MAX;
	packets = (uint64_t)memory.totalram * memory.mem_unit / MEMORY_SHARE / WAITING_PACKET_BYTES;
	return packets < INT32_MAX ? packets : INT32_MAX;
}

/* A device of this name was left by a killed attach: an instance has only one, and this one has none yet. */
static int remove_old_device(struct weir_netlink *netlink, const char *name, struct weir_diag *diag)
{
	uint32_t ifindex = if_nametoindex(name);

	if (!ifindex)
		return 0;
	if (weir_tc_is_ifb(netlink, ifindex))
		return weir_tc_delete_link(netlink, ifindex);
	weir_diag_error(diag, NULL, NULL, "rename that interface, or choose another instance name: '--instance NAME'",
			"cannot pace: an interface '%s' exists and is not weir's", name);
	return -EEXIST;
}

static int make_device(struct weir_netlink *netlink, const char *instance, uint32_t *ret_ifindex,
		       struct weir_diag *diag)
{
	uint32_t ifindex = 0;
	char name[IF_NAMESIZE];
	int err;

	weir_pace_device(instance, name);
	err = remove_old_device(netlink, name, diag);
	if (err)
		return err == -EEXIST ? err : explain(netlink, err, "ifb", diag);
	err = weir_tc_add_ifb(netlink, name);
	if (!err)
		ifindex = if_nametoindex(name);
	if (!err && !ifindex)
		err = -ENODEV;
	if (err)
		return explain(netlink, err, "ifb", diag);
	err = weir_tc_add_fq(netlink, ifindex, packets_that_may_wait());
	if (!err)
		err = weir_tc_set_up(netlink, ifindex);
	if (err)
		return explain(netlink, err, "fq", diag);
	*ret_ifindex = ifindex;
	return 0;
}

static void destroy_program(struct pace_bpf **skel)
{
	pace_bpf__destroy(*skel);
}

static int load_program(const char *instance, struct pace_bpf **ret_skel)
{
	_cleanup_(weir_closep) int counters_fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_PACE));
	_cleanup_(destroy_program) struct pace_bpf *skel = NULL;
	int err;

	if (counters_fd < 0)
		return counters_fd;
	skel = pace_bpf__open();
	if (!skel)
		return -errno;
	err = bpf_map__reuse_fd(skel->maps.pace_counters, counters_fd);
	if (!err)
		err = pace_bpf__load(skel);
	if (!err)
		*ret_skel = TAKE_PTR(skel);
	return err;
}

/* The pin comes first, so that whoever removes the filter can find it. */
static int put_filter(struct weir_netlink *netlink, const char *instance, uint32_t ifindex, int program_fd,
		      uint32_t device, struct weir_diag *diag)
{
	struct weir_tc_filters filters = {};
	char buffer[32];
	const char *pin = pin_name(ifindex, buffer);
	int err = weir_clsact_take(netlink, instance, ifindex);

	if (err)
		return explain(netlink, err, "clsact", diag);
	weir_unpin(instance, pin);
	err = weir_pin(instance, pin, program_fd, diag);
	if (err)
		return err;
	weir_tc_read_filters(netlink, ifindex, &filters); /* for a warning only, ignoring */
	if (filters.others_before)
		weir_diag_warning(diag, NULL, NULL, "'tc filter show dev INTERFACE ingress' lists them",
				  "interface number %u has other tc filters at ingress: packets that they finally "
				  "accept or redirect are not paced",
				  ifindex);
	err = weir_tc_set_filter(netlink, ifindex, program_fd, device);
	return err ? explain(netlink, err, "filter", diag) : 0;
}

/* `adds`: an existing device is reused. It exists as long as the instance has a filter somewhere. */
static int set_up(const char *instance, const uint32_t *ifindexes, size_t count, bool adds, struct weir_diag *diag)
{
	_cleanup_(destroy_program) struct pace_bpf *skel = NULL;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	char name[IF_NAMESIZE];
	uint32_t device = 0;
	int err;

	err = weir_netlink_open(&netlink, NETLINK_ROUTE);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot open a netlink socket");
	weir_pace_device(instance, name);
	if (adds && weir_pace_is_attached(instance))
		device = if_nametoindex(name);
	if (!device)
		err = make_device(&netlink, instance, &device, diag);
	if (err)
		return err;
	err = load_program(instance, &skel);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot load the tc program that paces");
	for (size_t i = 0; !err && i < count; i++)
		err = put_filter(&netlink, instance, ifindexes[i], bpf_program__fd(skel->progs.weir_pace), device,
				 diag);
	return err;
}

static int set_up_there(const char *instance, const uint32_t *ifindexes, size_t count, bool adds,
			struct weir_diag *diag)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	int err = enter_netns_of(instance, &back_fd);

	if (err)
		return weir_diag_fail(diag, -err, NULL,
				      "cannot pace: cannot enter the network namespace of instance '%s'", instance);
	return set_up(instance, ifindexes, count, adds, diag);
}

int weir_pace_attach(const char *instance, const uint32_t *ifindexes, size_t count, struct weir_diag *diag)
{
	int err = set_up_there(instance, ifindexes, count, false, diag);

	if (err)
		weir_pace_detach(instance);
	return err;
}

int weir_pace_add(const char *instance, uint32_t ifindex, struct weir_diag *diag)
{
	return set_up_there(instance, &ifindex, 1, true, diag);
}

bool weir_pace_is_attached(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};

	if (weir_pins_read(instance, &pins))
		return false;
	for (size_t i = 0; i < pins.count; i++)
		if (paced_ifindex(pins.names[i]))
			return true;
	return false;
}

/* ---- reading its state ---- */

static int add_counters(uint32_t key, const void *values, int cpus, void *data)
{
	const struct weir_pace_counters *of_cpu = values;
	struct weir_pace_counters *sum = data;

	for (int cpu = 0; cpu < cpus; cpu++) {
		sum->marked += of_cpu[cpu].marked;
		sum->unmarked += of_cpu[cpu].unmarked;
		sum->paced += of_cpu[cpu].paced;
	}
	return 0;
}

static int read_device_queue(const char *instance, struct weir_tc_queue *ret_queue)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	char name[IF_NAMESIZE];
	int err = enter_netns_of(instance, &back_fd);

	if (!err)
		err = weir_netlink_open(&netlink, NETLINK_ROUTE);
	if (err)
		return err;
	weir_pace_device(instance, name);
	return weir_tc_read_queue(&netlink, if_nametoindex(name), ret_queue);
}

int weir_pace_read(const char *instance, struct weir_pace_state *ret_state)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_PACE));
	struct weir_pace_counters sum = {};
	struct weir_tc_queue queue = {};
	int err = fd;

	if (fd >= 0)
		err = weir_percpu_scan(fd, 1, sizeof(sum), add_counters, &sum);
	if (!err)
		err = read_device_queue(instance, &queue);
	if (err)
		return err;
	*ret_state = (struct weir_pace_state){
		.held = sum.paced,
		/* A packet that arrives during the reading may already be counted as held, but not yet as marked. */
		.not_held = sum.unmarked + (sum.marked > sum.paced ? sum.marked - sum.paced : 0),
		.waiting = queue.waiting,
		.dropped = queue.dropped,
	};
	return 0;
}

/* ---- taking it off: whatever fails, as much as possible is removed ---- */

static void remove_filter(struct weir_netlink *netlink, const char *instance, uint32_t ifindex)
{
	struct weir_tc_filters filters = {};
	char buffer[32];
	const char *pin = pin_name(ifindex, buffer);

	if (weir_pin_is_there(instance, pin) && !weir_tc_read_filters(netlink, ifindex, &filters) && filters.has_weir)
		weir_tc_delete_filter(netlink, ifindex);
	weir_unpin(instance, pin);
	weir_clsact_give_back(netlink, instance, ifindex);
}

static bool is_among(uint32_t ifindex, const uint32_t *ifindexes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ifindexes[i] == ifindex)
			return true;
	return false;
}

static void remove_filters_but(struct weir_netlink *netlink, const char *instance, const uint32_t *ifindexes,
			       size_t count)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};

	if (weir_pins_read(instance, &pins))
		return;
	for (size_t i = 0; i < pins.count; i++) {
		uint32_t ifindex = paced_ifindex(pins.names[i]);

		if (!ifindex)
			ifindex = weir_clsact_of_pin(pins.names[i]);
		if (ifindex && !is_among(ifindex, ifindexes, count))
			remove_filter(netlink, instance, ifindex);
	}
}

/* Wait until the queue is empty, and then once more for packets that fq has already given to the ifb. */
static void drain(struct weir_netlink *netlink, uint32_t device)
{
	const struct timespec step = {.tv_nsec = DRAIN_STEP_NS};
	uint64_t end_ns = weir_host_now_ns() + WEIR_PACE_DRAIN_MS * 1000000ull;
	struct weir_tc_queue queue;

	while (!weir_tc_read_queue(netlink, device, &queue) && queue.waiting && weir_host_now_ns() < end_ns)
		nanosleep(&step, NULL);
	nanosleep(&step, NULL);
}

static void remove_device(struct weir_netlink *netlink, const char *instance)
{
	char name[IF_NAMESIZE];
	uint32_t ifindex;

	weir_pace_device(instance, name);
	ifindex = if_nametoindex(name);
	if (!ifindex || !weir_tc_is_ifb(netlink, ifindex))
		return;
	drain(netlink, ifindex);
	weir_tc_delete_link(netlink, ifindex);
}

int weir_pace_detach(const char *instance)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	int err = enter_netns_of(instance, &back_fd);

	if (!err)
		err = weir_netlink_open(&netlink, NETLINK_ROUTE);
	if (err)
		return err;
	remove_filters_but(&netlink, instance, NULL, 0);
	remove_device(&netlink, instance);
	return 0;
}

void weir_pace_trim(const char *instance, const uint32_t *ifindexes, size_t count)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};

	if (!weir_pace_is_attached(instance) || enter_netns_of(instance, &back_fd))
		return;
	if (!weir_netlink_open(&netlink, NETLINK_ROUTE))
		remove_filters_but(&netlink, instance, ifindexes, count);
}

/* ---- the mode of the XDP program ---- */

int weir_pace_refuse_skb(const char *interface, struct weir_diag *diag)
{
	weir_diag_error(diag, NULL, NULL,
			"use an interface with native XDP, or write 'throttling: police': the same decisions, without "
			"the delay",
			"cannot pace on '%s' in skb mode: the kernel would evaluate a packet again after its wait",
			interface);
	return -EOPNOTSUPP;
}

/* ---- egress ---- */

static int refuse(const char *interface, const struct weir_tc_senders *senders, struct weir_diag *diag)
{
	char hint[192];

	if (senders->is_spread)
		snprintf(hint, sizeof(hint),
			 "run 'sysctl -w net.core.default_qdisc=fq' and 'tc qdisc replace dev %s root mq'; or write "
			 "'throttling: police'",
			 interface);
	else
		snprintf(hint, sizeof(hint), "run 'tc qdisc replace dev %s root fq'; or write 'throttling: police'",
			 interface);
	weir_diag_error(diag, NULL, NULL, hint,
			"cannot pace what '%s' sends: its qdisc is %s%s, and only fq sends packets at their time",
			interface, senders->is_spread ? "mq, and not each child is fq" : senders->root,
			senders->root[0] ? "" : "unknown");
	return -EOPNOTSUPP;
}

static void warn_of_drops(const char *interface, const struct weir_tc_senders *senders, uint64_t packets,
			  uint64_t wait_ns, struct weir_diag *diag)
{
	const uint32_t least = senders->flow_limit < senders->limit ? senders->flow_limit : senders->limit;
	char hint[192];

	snprintf(hint, sizeof(hint),
		 "give fq more room: 'tc qdisc replace dev %s root fq limit %llu flow_limit %llu horizon %llus'",
		 interface, (unsigned long long)(packets > senders->limit ? packets : senders->limit),
		 (unsigned long long)(packets > least ? packets : least),
		 (unsigned long long)(wait_ns / WEIR_NSEC_PER_SEC + 1));
	if (packets > least)
		weir_diag_warning(diag, NULL, NULL, hint,
				  "the rules let up to %llu packets wait, and fq of '%s' drops what exceeds %u",
				  (unsigned long long)packets, interface, least);
	else if (wait_ns / 1000 > senders->horizon_us)
		weir_diag_warning(diag, NULL, NULL, hint,
				  "the rules let packets wait for up to %llu s, and fq of '%s' drops what is due in "
				  "more than %u s",
				  (unsigned long long)(wait_ns / WEIR_NSEC_PER_SEC), interface,
				  senders->horizon_us / 1000000);
}

int weir_pace_check_out(const char *interface, uint32_t ifindex, uint64_t packets, uint64_t wait_ns,
			struct weir_diag *diag)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	struct weir_tc_senders senders;

	if (weir_netlink_open(&netlink, NETLINK_ROUTE) || weir_tc_read_senders(&netlink, ifindex, &senders))
		return 0;
	if (!senders.count || senders.fq_count < senders.count)
		return refuse(interface, &senders, diag);
	warn_of_drops(interface, &senders, packets, wait_ns, diag);
	return 0;
}
