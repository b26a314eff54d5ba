// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interfaces that an instance is to limit, and on which it has no program: somebody removed the program or the pin of
 * its link, or the interface came, or came back, while no controller was there.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/netns.h"
#include "network/tcx.h"

bool weir_instance_lacks_link(const struct weir_instance *instance, uint32_t ifindex, bool is_out)
{
	if (weir_instance_link_on(instance, ifindex, is_out))
		return false;
	return !is_out || weir_pin_is_there(instance->name, weir_pin_of_program(WEIR_HOOK_TC_OUT)) ||
	       weir_pin_is_there(instance->name, weir_pin_of_guard(WEIR_HOOK_TC_OUT));
}

/* A pattern may also match interfaces that the instance was never on. */
static bool was_on(const struct weir_instance *instance, const struct weir_target *target, bool is_out_alone)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (!strcmp(instance->links[i].attached_as, target->name))
			return true;
	return target->is_named || is_out_alone;
}

#define NETNS_OPTION_BYTES (NAME_MAX + 16)
_Static_assert(NETNS_OPTION_BYTES >= WEIR_NETNS_WORDS_BYTES, "both ways to write it have room");

/* " --netns NAME", or nothing: it has neither a name nor was it entered by a path. */
static void netns_option(uint64_t netns, char words[NETNS_OPTION_BYTES])
{
	char name[NAME_MAX + 1];

	words[0] = '\0';
	if (weir_netns_name(netns, name))
		snprintf(words, NETNS_OPTION_BYTES, " --netns %s", name);
	else if (netns == weir_host_netns())
		weir_host_netns_option(words);
}

static void describe(const struct weir_instance *instance, const struct weir_target *target, bool lacks_in,
		     bool lacks_out, const char *netns, struct weir_loss *loss)
{
	const bool is_at_tc = instance->info.attach_mode == WEIR_MODE_TC;
	const bool had_it = was_on(instance, target, !lacks_in);
	const char *in = is_at_tc ? "at tc ingress" : "by XDP";
	char option[WEIR_INSTANCE_OPTION_BYTES];

	memcpy(loss->interface, target->name, sizeof(loss->interface));
	snprintf(loss->words, sizeof(loss->words), "instance '%s' is to limit '%s' %s%s%s, but %s", instance->name,
		 target->name, lacks_in ? in : "", lacks_in && lacks_out ? " and " : "",
		 lacks_out ? "at tc egress" : "", had_it ? "its program there is gone" : "has no program there");
	snprintf(loss->cure, sizeof(loss->cure), "'weir attach%s%s -i %s' puts it %s%s", netns,
		 weir_instance_option(instance->name, option), target->name, had_it ? "back" : "there",
		 (lacks_out || is_at_tc) && weir_tcx_is_there() ? "; repeat '--before' or '--after' if it had one"
								: "");
}

size_t weir_instance_losses_now(const struct weir_instance *instance, struct weir_loss **ret_losses)
{
	_cleanup_(weir_targets_free) struct weir_targets targets = {};
	_cleanup_(weir_netns_leave) int back_fd = -1;
	char netns[NETNS_OPTION_BYTES];
	size_t count = 0;

	*ret_losses = NULL;
	netns_option(instance->info.netns, netns);
	if (weir_netns_enter(instance->info.netns, &back_fd) ||
	    weir_targets_find(instance->info.wanted, instance->info.attach_mode, &targets))
		return 0;
	for (size_t i = 0; i < targets.count; i++) {
		const struct weir_target *target = &targets.targets[i];
		const bool lacks_in = weir_instance_lacks_link(instance, target->ifindex, false);
		const bool lacks_out = weir_instance_lacks_link(instance, target->ifindex, true);
		struct weir_loss *loss = NULL;

		if (lacks_in || lacks_out)
			loss = weir_array_add((void **)ret_losses, count, sizeof(*loss));
		if (!loss)
			continue; /* without memory it is not reported, ignoring */
		describe(instance, target, lacks_in, lacks_out, netns, loss);
		count++;
	}
	return count;
}

size_t weir_instance_find_losses(struct weir_instance *instance, struct weir_loss **ret_losses)
{
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* it is being detached */
	_cleanup_(weir_closep) int lock_fd = -1;
	size_t count = weir_instance_losses_now(instance, ret_losses);

	if (!count)
		return 0;
	free(*ret_losses);
	*ret_losses = NULL;
	/* A command that is at work may be about to put it there, or to take it off. */
	if (weir_bpffs_try_lock(&lock_fd) == -EBUSY || weir_instance_read_links(instance, &ignored))
		return 0;
	return weir_instance_losses_now(instance, ret_losses);
}

void weir_instance_warn_of_losses(struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_loss *losses = NULL;
	const size_t count = weir_instance_find_losses(instance, &losses);
	char others[48] = "";

	if (!count)
		return;
	if (count > 1)
		snprintf(others, sizeof(others), "; nor does it limit %zu more", count - 1);
	weir_diag_warning(diag, NULL, NULL, losses[0].cure, "%s%s", losses[0].words, others);
}
