// SPDX-License-Identifier: GPL-2.0-only
#include "network/device.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/util.h"
#include "host/host.h"
#include "network/netlink.h"
#include "network/netns.h"
#include "network/stack.h"
#include "network/super_frames.h"

/* ---- hardware ---- */

#define CPUS_MAX 4096 /* Linux can be built for twice as many; no such machine is known */

struct cpus {
	bool has[CPUS_MAX];
};

static uint32_t count_cpus(const struct cpus *cpus, uint32_t *ret_last)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CPUS_MAX; i++) {
		count += cpus->has[i];
		if (cpus->has[i])
			*ret_last = i;
	}
	return count;
}

/* ---- virtio (Virtual I/O Device 1.2, 5.1.3) ---- */

/* Offloads with which the host merges several packets into one, or leaves out checksums that are still to be computed.
 */
#define GUEST_OFFLOADS                                                                                                 \
	{                                                                                                              \
		1, 7, 8, 9, 10, 54, 55                                                                                 \
	} /* CSUM, TSO4, TSO6, ECN, UFO, USO4, USO6 */
#define CTRL_GUEST_OFFLOADS 2

/* With these offloads on, the driver refuses XDP (virtnet_xdp_set: EOPNOTSUPP), unless it has permission to turn them
 * off: then it does so by itself.
 */
static bool keeps_merging(const char *root, const char *name)
{
	static const int offloads[] = GUEST_OFFLOADS;
	char path[PATH_MAX], bits[256];

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/features", root, name);
	/* '0' or '1' for each feature, starting with number 0. Other buses have no such file. */
	if (weir_host_read_text(path, bits, sizeof(bits)) || strspn(bits, "01") < 64 ||
	    bits[CTRL_GUEST_OFFLOADS] == '1')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(offloads); i++)
		if (bits[offloads[i]] == '1')
			return true;
	return false;
}

/* ---- interrupts ---- */

/* "0-3,8" */
static void add_list(const char *list, struct cpus *cpus)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end == list)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
			cpus->has[cpu] = true;
		list = *end == ',' ? end + 1 : "";
	}
}

/* Recognised by the names that drivers use: "eth0-TxRx-3", "virtio2-input.0", "mlx5_comp4@pci:...". Other interrupts do
 * not matter.
 */
static bool is_receive_interrupt(const char *action)
{
	if (strcasestr(action, "rx"))
		return true;
	return !strcasestr(action, "tx") && !strcasestr(action, "output") && !strcasestr(action, "config") &&
	       !strcasestr(action, "async") && !strcasestr(action, "mgmnt");
}

/* An interrupt in use has an action. The action's directory is among the files that all interrupts have. */
static bool is_for_receiving(const char *root, const char *number)
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/irq/%s", root, number);
	if (weir_names_read(path, &names))
		return false;
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(weir_names_free) struct weir_names inside = {};

		snprintf(path, sizeof(path), "%s/proc/irq/%s/%s", root, number, names.names[i]);
		if (!weir_names_read(path, &inside) && is_receive_interrupt(names.names[i]))
			return true;
	}
	return false;
}

static void read_affinity(const char *root, const char *number, struct cpus *cpus)
{
	static const char *const files[] = {"effective_affinity_list", "smp_affinity_list"};
	char path[PATH_MAX], list[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/proc/irq/%s/%s", root, number, files[i]);
		if (!weir_host_read_text(path, list, sizeof(list)) && list[0] >= '0' && list[0] <= '9') {
			add_list(list, cpus);
			return;
		}
	}
}

/* The interrupts of the device, or of the device that carries it (virtio's PCI function). */
static void read_interrupts(const char *root, const char *name, struct weir_hardware *hardware)
{
	_cleanup_(weir_names_free) struct weir_names numbers = {};
	struct cpus cpus = {};
	char path[PATH_MAX], ignored[256];
	bool is_virtio;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/features", root, name);
	is_virtio = !weir_host_read_text(path, ignored, sizeof(ignored));
	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device%s/msi_irqs", root, name, is_virtio ? "/.." : "");
	if (weir_names_read(path, &numbers))
		return;
	for (size_t i = 0; i < numbers.count; i++) {
		if (!is_for_receiving(root, numbers.names[i]))
			continue;
		hardware->interrupts++;
		read_affinity(root, numbers.names[i], &cpus);
	}
	hardware->interrupt_cpus = count_cpus(&cpus, &hardware->last_cpu);
}

/* ---- RPS ---- */

/* "00000000,0000000c": words of 32 CPUs each, highest first. */
static void add_mask(const char *mask, struct cpus *cpus)
{
	uint32_t cpu = 0;

	for (size_t i = strlen(mask); i--;) {
		char digit[] = {mask[i], '\0'};

		if (!strchr("0123456789abcdef", mask[i]))
			continue;
		for (unsigned long bits = strtoul(digit, NULL, 16), bit = 0; bit < 4; bit++, cpu++)
			if (bits >> bit & 1 && cpu < CPUS_MAX)
				cpus->has[cpu] = true;
	}
}

static void read_rps(const char *root, const char *name, struct weir_hardware *hardware)
{
	_cleanup_(weir_names_free) struct weir_names queues = {};
	struct cpus cpus = {};
	char path[PATH_MAX], mask[1024];
	uint32_t ignored;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/queues", root, name);
	if (weir_names_read(path, &queues))
		return;
	for (size_t i = 0; i < queues.count; i++) {
		snprintf(path, sizeof(path), "%s/sys/class/net/%s/queues/%s/rps_cpus", root, name, queues.names[i]);
		if (!weir_host_read_text(path, mask, sizeof(mask)))
			add_mask(mask, &cpus);
	}
	hardware->rps_cpus = count_cpus(&cpus, &ignored);
}

/* ---- the contract ---- */

/* In another namespace that name may belong to another interface. It is unlikely that two namespaces have the same name
 * with the same index.
 */
static bool is_shown(const char *root, const char *name, uint32_t ifindex)
{
	char path[PATH_MAX], number[16];

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/ifindex", root, name);
	return !weir_host_read_text(path, number, sizeof(number)) && strtoul(number, NULL, 10) == ifindex;
}

void weir_hardware_read(const char *root, const char *name, uint32_t ifindex, struct weir_hardware *ret_hardware)
{
	struct weir_hardware hardware = {.is_known = is_shown(root, name, ifindex)};

	if (hardware.is_known) {
		hardware.keeps_merging = keeps_merging(root, name);
		read_interrupts(root, name, &hardware);
		read_rps(root, name, &hardware);
	}
	*ret_hardware = hardware;
}

/* ---- devices ---- */

/* ---- ioctls ---- */

static bool ask(int fd, const char *name, unsigned long request, struct ifreq *ifr)
{
	strncpy(ifr->ifr_name, name, IF_NAMESIZE - 1);
	return !ioctl(fd, request, ifr);
}

static uint16_t read_type(int fd, const char *name)
{
	struct ifreq ifr = {};

	return ask(fd, name, SIOCGIFHWADDR, &ifr) ? ifr.ifr_hwaddr.sa_family : ARPHRD_ETHER;
}

static void read_driver(int fd, const char *name, char ret_driver[32])
{
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};

	if (weir_ethtool_ask(fd, name, &driver))
		snprintf(ret_driver, sizeof(driver.driver), "%s", driver.driver);
}

#define RSS_TABLE_MAX 4096 /* entries; mlx5 has up to 2,048 */
#define RSS_QUEUES_MAX 1024

/* The number of queues in the table by which the device distributes flows. */
static uint32_t count_rss_queues(int fd, const char *name)
{
	_cleanup_(weir_freep) struct ethtool_rxfh_indir *table =
		calloc(1, sizeof(*table) + RSS_TABLE_MAX * sizeof(table->ring_index[0]));
	bool is_used[RSS_QUEUES_MAX] = {};
	uint32_t queues = 0;

	if (!table)
		return 0;
	table->cmd = ETHTOOL_GRXFHINDIR;
	if (!weir_ethtool_ask(fd, name, table) || table->size > RSS_TABLE_MAX) /* a table of size 0: returns the size */
		return 0;
	table->cmd = ETHTOOL_GRXFHINDIR;
	if (!weir_ethtool_ask(fd, name, table))
		return 0;
	for (uint32_t i = 0; i < table->size && i < RSS_TABLE_MAX; i++) {
		uint32_t queue = table->ring_index[i];

		if (queue >= RSS_QUEUES_MAX || is_used[queue])
			continue;
		is_used[queue] = true;
		queues++;
	}
	return queues;
}

static void read_by_ioctl(int fd, const char *name, struct weir_device *device)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ethtool_ringparam rings = {.cmd = ETHTOOL_GRINGPARAM};
	struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS}, gro = {.cmd = ETHTOOL_GGRO};
	struct ifreq ifr = {};

	device->type = read_type(fd, name);
	if (ask(fd, name, SIOCGIFMTU, &ifr))
		device->mtu = ifr.ifr_mtu;
	if (ask(fd, name, SIOCGIFFLAGS, &ifr))
		device->is_up = ifr.ifr_flags & IFF_UP;
	read_driver(fd, name, device->driver);
	if (weir_ethtool_ask(fd, name, &channels))
		device->rx_queues = channels.rx_count + channels.combined_count;
	device->rss_queues = count_rss_queues(fd, name);
	if (weir_ethtool_ask(fd, name, &rings)) {
		device->rx_ring = rings.rx_pending;
		device->rx_ring_max = rings.rx_max_pending;
	}
	if (weir_ethtool_ask(fd, name, &flags)) {
		device->has_offloads = true;
		device->strips_vlan = flags.data & ETH_FLAG_RXVLAN;
		device->merges_in_hardware = flags.data & ETH_FLAG_LRO;
	}
	device->merges_in_software = weir_ethtool_ask(fd, name, &gro) && gro.data;
}

/* ---- generic netlink: the family "netdev" of Linux 6.3, newer than the headers we build with ---- */

#define NETDEV_FAMILY "netdev"
#define NETDEV_CMD_DEV_GET 1
#define NETDEV_A_DEV_IFINDEX 1
#define NETDEV_A_DEV_XDP_FEATURES 3
#define NETDEV_XDP_ACT_BASIC (1u << 0)
#define NETDEV_XDP_ACT_RX_SG (1u << 5)

static struct nlmsghdr *begin_generic(struct weir_netlink *netlink, uint16_t family, uint8_t command)
{
	const struct genlmsghdr about = {.cmd = command, .version = 1};

	return weir_netlink_begin(netlink, family, 0, &about, sizeof(about));
}

static void read_xdp_features(uint32_t ifindex, struct weir_device *device)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	struct nlmsghdr *request;
	uint64_t features;
	uint16_t family;

	if (weir_netlink_open(&netlink, NETLINK_GENERIC))
		return;
	request = begin_generic(&netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(request, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY);
	if (weir_netlink_ask_value(&netlink, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID, &family, sizeof(family)))
		return;
	request = begin_generic(&netlink, family, NETDEV_CMD_DEV_GET);
	mnl_attr_put_u32(request, NETDEV_A_DEV_IFINDEX, ifindex);
	if (weir_netlink_ask_value(&netlink, GENL_HDRLEN, NETDEV_A_DEV_XDP_FEATURES, &features, sizeof(features)))
		return;
	device->has_xdp_features = true;
	device->has_native_xdp = features & NETDEV_XDP_ACT_BASIC;
	device->has_native_frags = features & NETDEV_XDP_ACT_RX_SG;
}

/* ---- netlink ---- */

#define GSO_IPV4_MAX_SIZE 63 /* IFLA_GSO_IPV4_MAX_SIZE of Linux 6.3, newer than the headers we build with */

/* 0: unknown */
static uint32_t read_number(struct weir_netlink *netlink, uint32_t ifindex, uint16_t type)
{
	const struct ifinfomsg about = {.ifi_index = ifindex};
	uint32_t number;

	weir_netlink_begin(netlink, RTM_GETLINK, 0, &about, sizeof(about));
	return weir_netlink_ask_value(netlink, sizeof(about), type, &number, sizeof(number)) ? 0 : number;
}

/* Of the two sizes the larger one: that of IPv6 and, before Linux 6.3, of both; that of IPv4. */
static void read_gso(uint32_t ifindex, struct weir_device *device)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	uint32_t ipv4_bytes;

	if (weir_netlink_open(&netlink, NETLINK_ROUTE))
		return;
	device->gso_bytes_max = read_number(&netlink, ifindex, IFLA_GSO_MAX_SIZE);
	device->gso_segments_max = read_number(&netlink, ifindex, IFLA_GSO_MAX_SEGS);
	ipv4_bytes = read_number(&netlink, ifindex, GSO_IPV4_MAX_SIZE);
	if (ipv4_bytes > device->gso_bytes_max)
		device->gso_bytes_max = ipv4_bytes;
}

/* ---- the contract ---- */

static void read_programs(uint32_t ifindex, struct weir_device *device)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query(ifindex, 0, &query))
		return;
	device->native_program = query.drv_prog_id;
	device->skb_program = query.skb_prog_id;
	device->offloaded_program = query.hw_prog_id;
}

int weir_device_read(const char *name, uint32_t ifindex, struct weir_device *ret_device)
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct weir_device device = {};

	if (fd < 0)
		return -errno;
	read_by_ioctl(fd, name, &device);
	read_xdp_features(ifindex, &device);
	read_gso(ifindex, &device);
	weir_hardware_read("", name, ifindex, &device.hardware);
	if (device.hardware.keeps_merging)
		device.has_native_xdp = device.has_native_frags = false;
	read_programs(ifindex, &device);
	*ret_device = device;
	return 0;
}

uint16_t weir_device_type(const char *name)
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? ARPHRD_ETHER : read_type(fd, name);
}

bool weir_device_runs_in_ports(const char *name)
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char driver[32] = "";

	if (fd >= 0)
		read_driver(fd, name, driver);
	return !strcmp(driver, "bonding");
}

const char *weir_link_type_without_ethernet(uint16_t type, char buffer[WEIR_LINK_TYPE_BYTES])
{
	static const struct {
		uint16_t type;
		const char *word;
	} words[] = {
		{ARPHRD_NONE, "none"}, {ARPHRD_TUNNEL, "ipip"}, {ARPHRD_TUNNEL6, "tunnel6"},
		{ARPHRD_SIT, "sit"},   {ARPHRD_IPGRE, "gre"},	{ARPHRD_IP6GRE, "gre6"},
		{ARPHRD_PPP, "ppp"},   {ARPHRD_RAWIP, "rawip"}, {ARPHRD_INFINIBAND, "infiniband"},
		{ARPHRD_CAN, "can"},
	};

	if (type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].type == type)
			return words[i].word;
	snprintf(buffer, WEIR_LINK_TYPE_BYTES, "[%u]", type);
	return buffer;
}

uint32_t weir_device_program(const struct weir_device *device)
{
	if (device->native_program)
		return device->native_program;
	return device->skb_program ? device->skb_program : device->offloaded_program;
}

void weir_program_name(uint32_t program_id, char name[16])
{
	_cleanup_(weir_closep) int fd = bpf_prog_get_fd_by_id(program_id);
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &info_bytes) || !info.name[0])
		strcpy(name, "?");
	else
		memcpy(name, info.name, sizeof(info.name));
}

/* ---- how to remove a program ---- */

#define DISPATCHER_PROGRAM "xdp_dispatcher" /* libxdp's dispatcher, which runs other programs one after the other */
#define FILTER_PROGRAMS "xdpfilt_"	    /* xdp-filter's program, if the kernel cannot run it in a dispatcher */

/* The WORD in 'ip link set dev NAME WORD off' that removes the program. */
static const char *ip_word(const struct weir_device *device)
{
	if (device->native_program)
		return "xdpdrv";
	return device->skb_program ? "xdpgeneric" : "xdpoffload";
}

static bool is_held_by(uint32_t link_id, uint32_t ifindex, uint32_t program_id)
{
	_cleanup_(weir_closep) int fd = bpf_link_get_fd_by_id(link_id);
	struct bpf_link_info info = {};
	__u32 info_bytes = sizeof(info);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &info_bytes) && info.type == BPF_LINK_TYPE_XDP &&
	       info.xdp.ifindex == ifindex && info.prog_id == program_id;
}

/* The id of the link that holds the program on the interface; 0: none does, or we may not see it. */
static uint32_t find_link(uint32_t ifindex, uint32_t program_id)
{
	uint32_t id = 0;

	while (!bpf_link_get_next_id(id, &id))
		if (is_held_by(id, ifindex, program_id))
			return id;
	return 0;
}

void weir_device_removal(const char *name, uint32_t ifindex, const struct weir_device *device,
			 char ret_words[WEIR_REMOVAL_BYTES])
{
	const uint32_t program_id = weir_device_program(device), link_id = find_link(ifindex, program_id);
	char program[16];

	weir_program_name(program_id, program);
	if (link_id)
		snprintf(ret_words, WEIR_REMOVAL_BYTES,
			 "stop what attached it, or 'bpftool link detach id %u' (a BPF link holds it)", link_id);
	else if (!strcmp(program, DISPATCHER_PROGRAM))
		snprintf(ret_words, WEIR_REMOVAL_BYTES, "'xdp-loader unload %s --all' (it is libxdp's dispatcher)",
			 name);
	else if (!strncmp(program, FILTER_PROGRAMS, strlen(FILTER_PROGRAMS)))
		snprintf(ret_words, WEIR_REMOVAL_BYTES, "'xdp-filter unload %s'", name);
	else
		snprintf(ret_words, WEIR_REMOVAL_BYTES, "'ip link set dev %s %s off', or the program that attached it",
			 name, ip_word(device));
}

/* ---- a veth's peer ---- */

bool weir_veth_loses_answers(const char *name, uint32_t ifindex, struct weir_veth_loss *ret_loss)
{
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	_cleanup_(weir_netns_leave) int back_fd = -1;
	char netns[NAME_MAX + 1] = "", peer[IF_NAMESIZE] = "";
	struct weir_device device = {};
	const struct weir_stacked *link;
	bool is_known;

	weir_stack_read(name, ifindex, &stack);
	link = stack.bottom_count == 1 ? &stack.bottoms[0] : NULL;
	if (!link || link->kind != WEIR_LINK_VETH || link->ifindex != ifindex)
		return false;
	is_known = (link->peer_netns < 0 || !weir_netns_enter_id(link->peer_netns, netns, &back_fd)) &&
		   if_indextoname(link->peer, peer) && !weir_device_read(peer, link->peer, &device);
	if (is_known && device.native_program)
		return false;
	ret_loss->is_known = is_known;
	snprintf(ret_loss->words, sizeof(ret_loss->words), "answers (onBlock) %s '%s' in native mode%s",
		 is_known ? "cannot leave" : "may be unable to leave", name,
		 is_known ? ": they count as sent, and are lost"
			  : ": its peer cannot be examined from here. If that has no XDP program, they count as sent, "
			    "and are lost");
	snprintf(ret_loss->advice, sizeof(ret_loss->advice),
		 "attach with '--mode skb'; or put an XDP program on its peer%s%s%s%s%.64s", is_known ? ", '" : "",
		 peer, is_known ? "'" : "", netns[0] ? " in " : "", netns);
	return true;
}
