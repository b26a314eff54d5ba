// SPDX-License-Identifier: GPL-2.0-only
#include "network/veth.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>

#include "base/util.h"
#include "network/device.h"
#include "network/netns.h"
#include "network/stack.h"

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
