// SPDX-License-Identifier: GPL-2.0-only
#include "network/veth.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>

#include "base/util.h"
#include "network/device.h"
#include "network/netns.h"
#include "network/stack.h"

/* In the present namespace, which is the peer's. */
static bool is_woken(uint32_t peer, char ret_name[IF_NAMESIZE])
{
	struct weir_device device = {};

	return !if_indextoname(peer, ret_name) || weir_device_read(ret_name, peer, &device) || device.native_program;
}

bool weir_veth_loses_answers(const char *name, uint32_t ifindex, char ret_advice[WEIR_VETH_ADVICE_BYTES])
{
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	_cleanup_(weir_netns_leave) int back_fd = -1;
	char netns[NAME_MAX + 1] = "", peer[IF_NAMESIZE] = "PEER";
	const struct weir_stacked *link;

	weir_stack_read(name, ifindex, &stack);
	link = stack.bottom_count == 1 ? &stack.bottoms[0] : NULL;
	if (!link || link->kind != WEIR_LINK_VETH || link->ifindex != ifindex)
		return false;
	if (link->peer_netns < 0 || !weir_netns_enter_id(link->peer_netns, netns, &back_fd))
		if (is_woken(link->peer, peer))
			return false;
	snprintf(ret_advice, WEIR_VETH_ADVICE_BYTES,
		 "attach with '--mode skb'; or put an XDP program on its peer, '%s'%s%.64s", peer,
		 netns[0] ? " in " : "", netns);
	return true;
}
