// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interfaces that an instance is to limit, and on which it has no program: somebody removed the program or the pin of
 * its link, or the interface came, or came back, while no controller was there.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/netns.h"
#include "network/tc.h"

static bool has_program(const struct weir_instance *instance, bool is_out)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		if (weir_hook_is_out(hook) == is_out && (weir_pin_is_there(instance->name, weir_pin_of_program(hook)) ||
							 weir_pin_is_there(instance->name, weir_pin_of_guard(hook))))
			return true;
	return false;
}

/* If somebody has removed all pins of programs, at least incoming packets were evaluated, in most instances. */
bool weir_instance_evaluates(const struct weir_instance *instance, bool is_out)
{
	return !instance || has_program(instance, is_out) || (!is_out && !has_program(instance, true));
}

bool weir_instance_lacks_link(const struct weir_instance *instance, uint32_t ifindex, bool is_out)
{
	return !weir_instance_link_on(instance, ifindex, is_out) && weir_instance_evaluates(instance, is_out);
}

/* A pattern may also match interfaces that the instance was never on. */
static bool was_on(const struct weir_instance *instance, const struct weir_target *target, bool is_on)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (!strcmp(instance->links[i].attached_as, target->name))
			return true;
	return target->is_named || is_on;
}

static void describe(const struct weir_instance *instance, const struct weir_target *target, bool lacks_in,
		     bool lacks_out, const char *options, struct weir_loss *loss)
{
	const bool is_at_tc = instance->info.attach_mode == WEIR_MODE_TC;
	const bool is_on = weir_instance_link_on(instance, target->ifindex, false) ||
			   weir_instance_link_on(instance, target->ifindex, true);
	const bool had_it = was_on(instance, target, is_on);
	const char *in = is_at_tc ? "at tc ingress" : "by XDP";

	memcpy(loss->interface, target->name, sizeof(loss->interface));
	snprintf(loss->words, sizeof(loss->words), "instance '%s' is to limit '%s' %s%s%s, but %s", instance->name,
		 target->name, lacks_in ? in : "", lacks_in && lacks_out ? " and " : "",
		 lacks_out ? "at tc egress" : "", had_it ? "its program there is gone" : "has no program there");
	snprintf(loss->cure, sizeof(loss->cure), "'weir attach%s -i %s' puts it %s%s", options, target->name,
		 had_it ? "back" : "there",
		 (lacks_out || is_at_tc) && weir_tcx_is_there() ? "; repeat '--before' or '--after' if it had one"
								: "");
}

size_t weir_instance_losses_now(const struct weir_instance *instance, struct weir_loss **ret_losses)
{
	_cleanup_(weir_targets_free) struct weir_targets targets = {};
	_cleanup_(weir_netns_leave) int back_fd = -1;
	char options[WEIR_INSTANCE_OPTIONS_BYTES];
	size_t count = 0;

	*ret_losses = NULL;
	weir_instance_options(instance->name, options); /* by the namespace that this is called in */
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
		describe(instance, target, lacks_in, lacks_out, options, loss);
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

const char *weir_instance_gone_interface(const struct weir_instance *instance)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	const bool can_look = !weir_netns_enter(instance->info.netns, &back_fd);
	const char *gone = NULL;
	bool has_any = false;

	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		/* A link whose program was taken off has no interface, though that is there. */
		bool is_back = link->ifindex || (can_look && if_nametoindex(link->attached_as)), is_named = false;

		has_any |= is_back;
		for (size_t j = 0; j < instance->link_count; j++)
			is_back |= instance->links[j].ifindex &&
				   !strcmp(instance->links[j].attached_as, link->attached_as);
		for (size_t j = 0; j < WEIR_WANTED_MAX; j++)
			is_named |= !strcmp(instance->info.wanted[j].word, link->attached_as);
		if (!is_back && is_named)
			return link->attached_as;
		gone = link->attached_as;
	}
	return has_any ? NULL : gone;
}

void weir_instance_warn_of_losses(struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_loss *losses = NULL;
	const size_t count = weir_instance_find_losses(instance, &losses);
	const char *gone = weir_instance_gone_interface(instance);
	char others[48] = "", option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_options(instance->name, option);
	if (gone)
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "'%s' is gone: the figures of instance '%s' are those until then; once it is back, "
				  "'weir attach%s -i %s' limits it again",
				  gone, instance->name, option, gone);
	if (!count)
		return;
	if (count > 1)
		snprintf(others, sizeof(others), "; nor does it limit %zu more", count - 1);
	weir_diag_warning(diag, NULL, NULL, losses[0].cure, "%s%s", losses[0].words, others);
}
