// SPDX-License-Identifier: GPL-2.0-only
#include "network/merging.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/util.h"
#include "network/netlink.h"

/* VLANs on a bond on a bridge are four; the kernel allows eight. */
#define LEVELS_MAX 8

/* ---- one interface ---- */

/* `command` starts with its number, as every ethtool struct does. */
static bool ask_ethtool(int fd, const char *name, void *command)
{
	struct ifreq ifr = {.ifr_data = command};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	return !ioctl(fd, SIOCETHTOOL, &ifr);
}

/* How many features there are, and the number of the one with this name; false: there is none. */
static bool find_feature(int fd, const char *name, const char *feature, uint32_t *ret_count, uint32_t *ret_number)
{
	_cleanup_(weir_freep) struct ethtool_sset_info *sizes = calloc(1, sizeof(*sizes) + sizeof(sizes->data[0]));
	_cleanup_(weir_freep) struct ethtool_gstrings *strings = NULL;
	uint32_t count;

	if (!sizes)
		return false;
	sizes->cmd = ETHTOOL_GSSET_INFO;
	sizes->sset_mask = 1ull << ETH_SS_FEATURES;
	if (!ask_ethtool(fd, name, sizes) || !sizes->sset_mask)
		return false;
	count = sizes->data[0];
	strings = calloc(1, sizeof(*strings) + (size_t)count * ETH_GSTRING_LEN);
	if (!strings)
		return false;
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_FEATURES;
	strings->len = count;
	if (!ask_ethtool(fd, name, strings))
		return false;
	for (uint32_t i = 0; i < strings->len && i < count; i++) {
		if (strncmp((const char *)strings->data + (size_t)i * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN))
			continue;
		*ret_count = count;
		*ret_number = i;
		return true;
	}
	return false;
}

static bool feature_is_on(int fd, const char *name, const char *feature)
{
	_cleanup_(weir_freep) struct ethtool_gfeatures *features = NULL;
	uint32_t count, number;

	if (!find_feature(fd, name, feature, &count, &number))
		return false;
	features = calloc(1, sizeof(*features) + (count + 31) / 32 * sizeof(features->features[0]));
	if (!features)
		return false;
	features->cmd = ETHTOOL_GFEATURES;
	features->size = (count + 31) / 32;
	return ask_ethtool(fd, name, features) && number / 32 < features->size &&
	       features->features[number / 32].active >> number % 32 & 1;
}

static const char *offload_of(int fd, const char *name)
{
	struct ethtool_value gro = {.cmd = ETHTOOL_GGRO}, flags = {.cmd = ETHTOOL_GFLAGS};

	if (ask_ethtool(fd, name, &flags) && flags.data & ETH_FLAG_LRO)
		return "lro";
	if (feature_is_on(fd, name, "rx-gro-hw"))
		return "rx-gro-hw";
	return ask_ethtool(fd, name, &gro) && gro.data ? "gro" : NULL;
}

/* ---- what stands on what ---- */

struct link {
	uint32_t ifindex, master, parent; /* 0: none */
	char name[IF_NAMESIZE];
	bool is_loopback;
};

struct links {
	struct link *all;
	size_t count;
};

static uint32_t read_u32(const struct nlattr *attr)
{
	return attr && mnl_attr_get_payload_len(attr) >= sizeof(uint32_t) ? mnl_attr_get_u32(attr) : 0;
}

/* The two ends of a veth pair call each other their link, and neither stands on the other. */
static bool is_veth(const struct nlattr *info)
{
	const struct nlattr *attr;

	if (info)
		mnl_attr_for_each_nested(attr, info)
			if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
				return !strcmp(mnl_attr_get_str(attr), "veth");
	return false;
}

static void add_link(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *about = mnl_nlmsg_get_payload(message);
	const struct nlattr *name = weir_netlink_find(message, sizeof(*about), IFLA_IFNAME);
	const struct nlattr *info = weir_netlink_find(message, sizeof(*about), IFLA_LINKINFO);
	struct links *links = data;
	struct link *link;

	if (message->nlmsg_type != RTM_NEWLINK || !name)
		return;
	link = weir_array_add((void **)&links->all, links->count, sizeof(*link));
	if (!link)
		return;
	links->count++;
	*link = (struct link){
		.ifindex = about->ifi_index,
		.master = read_u32(weir_netlink_find(message, sizeof(*about), IFLA_MASTER)),
		.is_loopback = about->ifi_flags & IFF_LOOPBACK,
	};
	snprintf(link->name, sizeof(link->name), "%s", mnl_attr_get_str(name));
	/* A parent in another network namespace has a number of that one. */
	if (!is_veth(info) && !weir_netlink_find(message, sizeof(*about), IFLA_LINK_NETNSID))
		link->parent = read_u32(weir_netlink_find(message, sizeof(*about), IFLA_LINK));
}

static void read_links(struct links *links)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	const struct ifinfomsg about = {};

	if (weir_netlink_open(&netlink, NETLINK_ROUTE))
		return;
	weir_netlink_begin(&netlink, RTM_GETLINK, NLM_F_DUMP, &about, sizeof(about));
	weir_netlink_ask(&netlink, add_link, links); /* an interface that comes meanwhile is missed, ignoring */
}

static const struct link *find_link(const struct links *links, uint32_t ifindex)
{
	for (size_t i = 0; i < links->count; i++)
		if (links->all[i].ifindex == ifindex)
			return &links->all[i];
	return NULL;
}

static bool stands_on(const struct link *upper, const struct link *lower)
{
	return lower->ifindex != upper->ifindex && (lower->master == upper->ifindex || upper->parent == lower->ifindex);
}

/* Of the interfaces at the bottom, where packets come in. Nothing is merged on the way through the host itself. */
static bool search(int fd, const struct links *links, const struct link *link, int level,
		   struct weir_merging *ret_merging)
{
	bool is_bottom = true;

	for (size_t i = 0; level < LEVELS_MAX && i < links->count; i++) {
		if (!stands_on(link, &links->all[i]))
			continue;
		is_bottom = false;
		if (search(fd, links, &links->all[i], level + 1, ret_merging))
			return true;
	}
	if (!is_bottom || link->is_loopback)
		return false;
	ret_merging->offload = offload_of(fd, link->name);
	memcpy(ret_merging->interface, link->name, sizeof(ret_merging->interface));
	return ret_merging->offload != NULL;
}

static void free_links(struct links *links)
{
	free(links->all);
}

bool weir_merging_find(const char *name, uint32_t ifindex, struct weir_merging *ret_merging)
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	_cleanup_(free_links) struct links links = {};
	struct link alone = {.ifindex = ifindex};
	const struct link *found;

	if (fd < 0)
		return false;
	snprintf(alone.name, sizeof(alone.name), "%s", name);
	read_links(&links);
	found = find_link(&links, ifindex);
	return search(fd, &links, found ?: &alone, 0, ret_merging);
}
