// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that an instance evaluates twice, because it is on a bridge and on one of its ports, or on a VLAN and on its
 * parent. Each such packet counts twice, so that only half of the limit passes. This may be intended, with rules that
 * distinguish interfaces, so it causes a warning and no refusal. Likewise, rules for both directions count twice a
 * packet that comes in on one of the instance's interfaces and leaves through another. At tc, such a packet is marked
 * when it comes in, which XDP cannot do.
 */
#include "instance/instance_internal.h"

#include <string.h>

#include "base/util.h"
#include "network/netns.h"
#include "network/stack.h"

static int add_repeat(const struct weir_stacked *upper, const struct weir_stacked *lower, struct weir_repeat **repeats,
		      size_t *count)
{
	struct weir_repeat *repeat = weir_array_add((void **)repeats, *count, sizeof(*repeat));

	if (!repeat)
		return -ENOMEM;
	memcpy(repeat->upper, upper->name, sizeof(repeat->upper));
	memcpy(repeat->lower, lower->name, sizeof(repeat->lower));
	++*count;
	return 0;
}

/* Considers only the link for incoming packets, which each interface has. */
static const struct weir_stacked *find_in(const struct weir_stack *stack, const struct weir_link *link)
{
	return weir_hook_is_out(link->hook) ? NULL : weir_stack_find(stack, link->ifindex);
}

/* Repeats in the present network namespace. With `only`, those that involve this interface. */
static size_t find(const struct weir_link *links, size_t link_count, uint32_t only, struct weir_repeat **repeats)
{
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	size_t count = 0;

	if (link_count < 2 || weir_stack_read_links(&stack))
		return 0;
	for (size_t i = 0; i < link_count; i++) {
		const struct weir_stacked *upper = find_in(&stack, &links[i]);

		for (size_t j = 0; upper && j < link_count; j++) {
			const struct weir_stacked *lower = find_in(&stack, &links[j]);

			if (!lower || (only && only != upper->ifindex && only != lower->ifindex))
				continue;
			if (weir_stack_repeats(&stack, upper, lower) && add_repeat(upper, lower, repeats, &count))
				return count;
		}
	}
	return count;
}

size_t weir_instance_find_repeats(const struct weir_instance *instance, struct weir_repeat **ret_repeats)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;

	*ret_repeats = NULL;
	if (weir_netns_enter(instance->info.netns, &back_fd))
		return 0;
	return find(instance->links, instance->link_count, 0, ret_repeats);
}

void weir_instance_warn_of_repeats(const char *instance, uint32_t ifindex, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_repeat *repeats = NULL;
	_cleanup_(weir_freep) struct weir_link *links = NULL;
	size_t link_count, count;

	if (weir_links_read(instance, &links, &link_count))
		return;
	count = find(links, link_count, ifindex, &repeats);
	for (size_t i = 0; i < count; i++) {
		char hint[96];

		snprintf(hint, sizeof(hint), "attach to one of them; '%s' sees all packets that arrive",
			 repeats[i].lower);
		weir_diag_warning(diag, NULL, NULL, hint,
				  "'%s' stands on '%s': packets that arrive through both are counted twice, so they "
				  "get half of their limits",
				  repeats[i].upper, repeats[i].lower);
	}
}

void weir_instance_warn_of_forwarding(const char *instance, bool limits_both, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_link *links = NULL;
	size_t link_count, interfaces = 0;
	bool has_xdp = false;

	if (!limits_both || weir_links_read(instance, &links, &link_count))
		return;
	for (size_t i = 0; i < link_count; i++) {
		if (!links[i].ifindex || weir_hook_is_out(links[i].hook))
			continue;
		interfaces++;
		has_xdp |= links[i].hook == WEIR_HOOK_XDP;
	}
	if (has_xdp && interfaces > 1)
		weir_diag_warning(diag, NULL, NULL,
				  "with '--mode tc' they count once; or attach to one of the interfaces",
				  "packets that are forwarded from one of these interfaces to another count twice in "
				  "rules of 'direction: both'");
}
