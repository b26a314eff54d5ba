// SPDX-License-Identifier: GPL-2.0-only
#include "network/stack.h"

#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "network/netlink.h"

/* VLANs on a bond on a bridge are four levels; the kernel allows eight. */
#define LEVELS_MAX 8

/* ---- one interface ---- */

static uint32_t read_u32(const struct nlattr *attr)
{
	return attr && mnl_attr_get_payload_len(attr) >= sizeof(uint32_t) ? mnl_attr_get_u32(attr) : 0;
}

static const struct nlattr *find_nested(const struct nlattr *in, uint16_t type)
{
	const struct nlattr *attr;

	if (in)
		mnl_attr_for_each_nested(attr, in)
			if (mnl_attr_get_type(attr) == type)
				return attr;
	return NULL;
}

static enum weir_link_kind kind_of(const struct ifinfomsg *about, const struct nlattr *info)
{
	const struct nlattr *kind = find_nested(info, IFLA_INFO_KIND);

	if (about->ifi_flags & IFF_LOOPBACK)
		return WEIR_LINK_LOOPBACK;
	if (kind && !strcmp(mnl_attr_get_str(kind), "veth"))
		return WEIR_LINK_VETH;
	return kind && !strcmp(mnl_attr_get_str(kind), "tun") ? WEIR_LINK_TUN : WEIR_LINK_OTHER;
}

static bool is_kind(const struct nlattr *info, const char *const *kinds)
{
	const struct nlattr *kind = find_nested(info, IFLA_INFO_KIND);

	for (; kind && *kinds; kinds++)
		if (!strcmp(mnl_attr_get_str(kind), *kinds))
			return true;
	return false;
}

static void read_kind(const struct nlmsghdr *message, struct weir_stacked *link)
{
	const struct ifinfomsg *about = mnl_nlmsg_get_payload(message);
	const struct nlattr *info = weir_netlink_find(message, sizeof(*about), IFLA_LINKINFO);
	const struct nlattr *netns = weir_netlink_find(message, sizeof(*about), IFLA_LINK_NETNSID);
	uint32_t other = read_u32(weir_netlink_find(message, sizeof(*about), IFLA_LINK));
	const struct nlattr *header;
	static const char *const by_ports[] = {"bridge", "bond", "team", NULL};
	static const char *const by_parent[] = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", NULL};

	link->repeats_ports = is_kind(info, by_ports);
	link->repeats_parent = is_kind(info, by_parent);
	link->kind = kind_of(about, info);
	link->peer_netns = -1;
	switch (link->kind) {
	case WEIR_LINK_VETH: /* each end reports the other as its link, and neither is on top of the other */
		link->peer = other;
		if (netns)
			link->peer_netns = read_u32(netns);
		return;
	case WEIR_LINK_TUN:
		header = find_nested(find_nested(info, IFLA_INFO_DATA), IFLA_TUN_VNET_HDR);
		link->has_vnet_header = header && mnl_attr_get_payload_len(header) && mnl_attr_get_u8(header);
		return;
	default:
		if (!netns) /* otherwise the number is an index in another namespace */
			link->parent = other;
	}
}

static void add_link(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *about = mnl_nlmsg_get_payload(message);
	const struct nlattr *name = weir_netlink_find(message, sizeof(*about), IFLA_IFNAME);
	struct weir_stack *stack = data;
	struct weir_stacked *link;

	if (message->nlmsg_type != RTM_NEWLINK || !name)
		return;
	link = weir_array_add((void **)&stack->links, stack->count, sizeof(*link));
	if (!link)
		return;
	stack->count++;
	*link = (struct weir_stacked){
		.ifindex = about->ifi_index,
		.type = about->ifi_type,
		.master = read_u32(weir_netlink_find(message, sizeof(*about), IFLA_MASTER)),
	};
	snprintf(link->name, sizeof(link->name), "%s", mnl_attr_get_str(name));
	read_kind(message, link);
}

/* ---- all of them ---- */

int weir_stack_read_links(struct weir_stack *stack)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	const struct ifinfomsg about = {};
	int err = weir_netlink_open(&netlink, NETLINK_ROUTE);

	if (err)
		return err;
	weir_netlink_begin(&netlink, RTM_GETLINK, NLM_F_DUMP, &about, sizeof(about));
	err = weir_netlink_ask(&netlink, add_link, stack);
	/* The links changed during the dump. A new one may be missing, but an event for it follows. */
	return err == -EINTR ? 0 : err;
}

const struct weir_stacked *weir_stack_find(const struct weir_stack *stack, uint32_t ifindex)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->links[i].ifindex == ifindex)
			return &stack->links[i];
	return NULL;
}

static bool stands_on(const struct weir_stacked *upper, const struct weir_stacked *lower)
{
	return lower->ifindex != upper->ifindex && (lower->master == upper->ifindex || upper->parent == lower->ifindex);
}

static void add_bottoms(struct weir_stack *stack, const struct weir_stacked *link, int level)
{
	struct weir_stacked *bottom;
	bool is_bottom = true;

	for (size_t i = 0; level < LEVELS_MAX && i < stack->count; i++) {
		if (!stands_on(link, &stack->links[i]))
			continue;
		is_bottom = false;
		add_bottoms(stack, &stack->links[i], level + 1);
	}
	if (!is_bottom)
		return;
	bottom = weir_array_add((void **)&stack->bottoms, stack->bottom_count, sizeof(*bottom));
	if (!bottom)
		return;
	stack->bottom_count++;
	*bottom = *link;
}

/* A packet that has arrived on `lower` may arrive on `upper` next. */
static bool comes_again(const struct weir_stacked *upper, const struct weir_stacked *lower)
{
	return lower->ifindex != upper->ifindex && ((upper->repeats_ports && lower->master == upper->ifindex) ||
						    (upper->repeats_parent && upper->parent == lower->ifindex));
}

static bool repeats(const struct weir_stack *stack, const struct weir_stacked *upper, const struct weir_stacked *lower,
		    int level)
{
	if (comes_again(upper, lower))
		return true;
	if (level == LEVELS_MAX || !(upper->repeats_ports || upper->repeats_parent))
		return false;
	for (size_t i = 0; i < stack->count; i++)
		if (comes_again(upper, &stack->links[i]) && repeats(stack, &stack->links[i], lower, level + 1))
			return true;
	return false;
}

bool weir_stack_repeats(const struct weir_stack *stack, const struct weir_stacked *upper,
			const struct weir_stacked *lower)
{
	return repeats(stack, upper, lower, 0);
}

static bool is_covered(const struct weir_stack *stack, const struct weir_stacked *link, weir_is_limited is_limited,
		       const void *data, int level, const struct weir_stacked **first)
{
	bool has_lower = false;

	for (size_t i = 0; level < LEVELS_MAX && i < stack->count; i++) {
		const struct weir_stacked *lower = &stack->links[i];

		if (!comes_again(link, lower))
			continue;
		has_lower = true;
		if (is_limited(lower, data))
			*first = *first ?: lower;
		else if (!is_covered(stack, lower, is_limited, data, level + 1, first))
			return false;
	}
	return has_lower;
}

bool weir_stack_is_covered(const struct weir_stack *stack, const struct weir_stacked *link, weir_is_limited is_limited,
			   const void *data, const struct weir_stacked **ret_first)
{
	*ret_first = NULL;
	return is_covered(stack, link, is_limited, data, 0, ret_first);
}

void weir_stack_read(const char *name, uint32_t ifindex, struct weir_stack *stack)
{
	struct weir_stacked alone = {.ifindex = ifindex, .peer_netns = -1};

	snprintf(alone.name, sizeof(alone.name), "%s", name);
	weir_stack_read_links(stack); /* without the links, the interface is assumed to be alone, ignoring */
	add_bottoms(stack, weir_stack_find(stack, ifindex) ?: &alone, 0);
}

void weir_stack_free(struct weir_stack *stack)
{
	free(stack->links);
	free(stack->bottoms);
}
