// SPDX-License-Identifier: GPL-2.0-only
/*
 * The links of an instance: one or two for each interface that it is on. The name of a link's pin gives interface and
 * hook. The kernel knows which program the link has, and whether the interface still exists. Nothing is changed here.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pins/pins.h"

bool weir_instance_is_controlled(const char *name)
{
	_cleanup_(weir_closep) int fd = -1;
	char path[PATH_MAX];

	weir_pin_path(name, NULL, path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

int weir_instance_read_links(struct weir_instance *instance, struct weir_diag *diag)
{
	int err;

	free(instance->links);
	instance->links = NULL;
	instance->link_count = 0;
	err = weir_links_read(instance->name, &instance->links, &instance->link_count);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot read the links of instance '%s'", instance->name) : 0;
}

const char *weir_instance_interface(const struct weir_instance *instance, uint32_t ifindex)
{
	for (size_t i = 0; ifindex && i < instance->link_count; i++)
		if (instance->links[i].ifindex == ifindex)
			return instance->links[i].interface;
	return NULL;
}

const struct weir_link *weir_instance_link_on(const struct weir_instance *instance, uint32_t ifindex, bool is_out)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex == ifindex && weir_hook_is_out(instance->links[i].hook) == is_out)
			return &instance->links[i];
	return NULL;
}

size_t weir_instance_count_links(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	size_t links = 0;

	if (weir_pins_read(instance, &pins))
		return 0;
	for (size_t i = 0; i < pins.count; i++)
		links += weir_is_link_pin(pins.names[i]);
	return links;
}

size_t weir_instance_count_live_links(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	size_t links = 0;

	if (weir_pins_read(instance, &pins))
		return 0;
	for (size_t i = 0; i < pins.count; i++) {
		struct weir_link link = {};

		/* A link that cannot be read may be alive. */
		links += weir_is_link_pin(pins.names[i]) &&
			 (weir_link_read(instance, pins.names[i], &link) || link.ifindex);
	}
	return links;
}

int weir_instance_find_link(const char *name, const char *interface, char ret_attached_as[IF_NAMESIZE],
			    struct weir_diag *diag)
{
	int err = weir_link_find(name, interface, ret_attached_as);

	if (err == -ENOENT)
		weir_diag_error(diag, NULL, NULL, "'weir status' shows where it is",
				"instance '%s' is not attached to '%s'", name, interface);
	else if (err)
		weir_diag_fail(diag, -err, NULL, "cannot read the links of instance '%s'", name);
	return err;
}

int weir_instance_expect_wanted(const struct weir_instance *instance, const char *pattern, struct weir_diag *diag)
{
	if (weir_wanted_names(instance->info.wanted, pattern))
		return 0;
	weir_diag_error(diag, NULL, NULL, "'weir status' shows where it is", "instance '%s' does not watch for '%s'",
			instance->name, pattern);
	return -ENOENT;
}

/* In the instance's own namespace the controller notices when interfaces appear. */
static const char *gone_hint(const struct weir_instance *instance, char hint[WEIR_INSTANCE_HINT_BYTES])
{
	char option[WEIR_INSTANCE_OPTIONS_BYTES];

	if (instance->info.netns == weir_host_netns())
		return "if it comes back, it is limited again";
	snprintf(hint, WEIR_INSTANCE_HINT_BYTES,
		 "if it comes back, it is not limited: 'weir control%s' watches for that, in the network namespace of "
		 "its interfaces",
		 weir_instance_options(instance->name, option));
	return hint;
}

/* A detach removes a filter before its pin, so a missing filter alone does not mean that the interface is gone. */
static bool is_gone(const struct weir_instance *instance, const struct weir_link *link)
{
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_link now = {};
	char pin[WEIR_LINK_PIN_BYTES];

	weir_link_pin(link, pin);
	/* A link that cannot be read is being detached. */
	if (weir_link_read(instance->name, pin, &now) || now.ifindex)
		return false;
	return !link->is_filter || (!weir_bpffs_try_lock(&lock_fd) && weir_pin_is_there(instance->name, pin));
}

/* The link is gone: with its interface, or somebody removed it (`bpftool link detach`, `tc filter del`). */
static void report_gone(const struct weir_instance *instance, const struct weir_link *link, bool is_there,
			struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES];

	if (!is_there) {
		weir_diag_warning(diag, NULL, NULL, gone_hint(instance, hint),
				  "interface '%s' is gone, and its limits with it", link->interface);
		weir_instance_note(instance->name, WEIR_JOURNAL_INTERFACE, "'%s' is gone, and its limits with it",
				   link->interface);
		return;
	}
	weir_diag_warning(diag, NULL, NULL, NULL, "somebody removed weir's program from '%s'", link->interface);
	weir_instance_note(instance->name, WEIR_JOURNAL_INTERFACE, "somebody removed weir's program from '%s'",
			   link->interface);
}

bool weir_instance_watch_links(struct weir_instance *instance, struct weir_diag *diag)
{
	const bool is_here = instance->info.netns == weir_host_netns();
	bool lost_one = false;

	/* Links in another namespace keep the names of the last reload: entering it each time may mean searching all
	 * processes.
	 */
	if (is_here)
		weir_links_name_here(instance->name, instance->links, instance->link_count);
	for (size_t i = 0; i < instance->link_count; i++) {
		struct weir_link *link = &instance->links[i];
		bool is_there;

		if (!link->ifindex || !is_gone(instance, link))
			continue;
		is_there = is_here && if_nametoindex(link->interface) == link->ifindex;
		link->ifindex = 0;
		lost_one = true;
		/* Of an interface that is gone the other link reports it. */
		if (is_there || weir_link_stands(instance->links, instance->link_count, i))
			report_gone(instance, link, is_there, diag);
	}
	return lost_one;
}

/* ---- whose link or interface it is ---- */

/* Whether a link of the instance matches. The first one that does becomes *ret_link. */
typedef bool (*link_test)(const struct weir_link *link, uint32_t wanted);

static bool find_link_of(const char *instance, link_test is_wanted, uint32_t wanted, struct weir_link *ret_link)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};

	if (weir_pins_read(instance, &pins))
		return false;
	for (size_t i = 0; i < pins.count; i++)
		if (weir_is_link_pin(pins.names[i]) && !weir_link_read(instance, pins.names[i], ret_link) &&
		    is_wanted(ret_link, wanted))
			return true;
	return false;
}

static bool find_instance(link_test is_wanted, uint32_t wanted, uint64_t netns, struct weir_link *ret_link,
			  char ret_name[WEIR_INSTANCE_NAME_BYTES])
{
	_cleanup_(weir_names_free) struct weir_names names = {};

	if (weir_names_read(weir_bpffs_base(), &names))
		return false;
	for (size_t i = 0; i < names.count; i++) {
		if (netns && weir_info_netns(names.names[i]) != netns)
			continue;
		if (!find_link_of(names.names[i], is_wanted, wanted, ret_link))
			continue;
		snprintf(ret_name, WEIR_INSTANCE_NAME_BYTES, "%s", names.names[i]);
		return true;
	}
	return false;
}

static bool has_program(const struct weir_link *link, uint32_t program_id)
{
	return link->program_id == program_id;
}

static bool is_in_on(const struct weir_link *link, uint32_t ifindex)
{
	return link->ifindex == ifindex && !weir_hook_is_out(link->hook);
}

static bool is_out_on(const struct weir_link *link, uint32_t ifindex)
{
	return link->ifindex == ifindex && weir_hook_is_out(link->hook);
}

bool weir_instance_of_program(uint32_t program_id, char ret_name[WEIR_INSTANCE_NAME_BYTES])
{
	struct weir_link link;

	return find_instance(has_program, program_id, 0, &link, ret_name);
}

bool weir_instance_on(uint32_t ifindex, char ret_name[WEIR_INSTANCE_NAME_BYTES], struct weir_link *ret_link)
{
	struct weir_link link;

	if (!find_instance(is_in_on, ifindex, weir_host_netns(), &link, ret_name) &&
	    !find_instance(is_out_on, ifindex, weir_host_netns(), &link, ret_name))
		return false;
	*ret_link = link;
	return true;
}
