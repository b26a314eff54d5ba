// SPDX-License-Identifier: GPL-2.0-only
#include "pins/links.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>

#include "base/util.h"
#include "network/netns.h"
#include "network/tcx.h"
#include "pins/filter_link.h"
#include "pins/info.h"

/* ---- reading ---- */

int weir_link_read(const char *instance, const char *pin, struct weir_link *link)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pin);
	struct bpf_link_info info = {};
	__u32 info_bytes = sizeof(info);

	if (fd < 0)
		return fd;
	if (!weir_link_pin_parse(pin, link))
		return -EINVAL;
	strcpy(link->interface, link->attached_as);
	if (link->is_filter)
		return weir_filter_link_read(instance, fd, link);
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	/* The headers that we build with do not have tcx, but its ifindex is in the same place (struct
	 * bpf_link_info.tcx).
	 */
	link->ifindex = info.xdp.ifindex;
	link->program_id = info.prog_id;
	return 0;
}

/* Whether the interface with that index in this namespace has the link's program; -EPERM: we may not look. */
static int holds(const struct weir_link *link)
{
	uint32_t program_id;

	if (link->hook != WEIR_HOOK_XDP)
		return weir_tcx_has(link->program_id, link->ifindex, weir_hook_is_out(link->hook));
	if (bpf_xdp_query_id(link->ifindex, link->is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE, &program_id))
		return 0;
	return program_id == link->program_id;
}

/*
 * Whether the interface with this index in this namespace is the one that has the link. A link stays with its interface
 * when that moves to another network namespace, and then the index may belong to another interface here. A reload may
 * replace the program between two looks, so look twice. A filter does not move with its interface, and was found in
 * this namespace.
 */
static bool is_on(const char *instance, const struct weir_link *link, const char *name)
{
	struct weir_link now = *link;
	char pin[WEIR_LINK_PIN_BYTES];

	if (link->is_filter)
		return true;
	weir_link_pin(link, pin);
	for (int look = 0; look < 2; look++) {
		int answer = holds(&now);

		if (answer == -EPERM)
			return !strcmp(name, link->attached_as);
		if (answer > 0)
			return true;
		if (weir_link_read(instance, pin, &now))
			return false;
	}
	return false;
}

static void find_name(const char *instance, struct weir_link *link)
{
	char name[IF_NAMESIZE];

	if (!link->ifindex || !if_indextoname(link->ifindex, name) || !is_on(instance, link, name))
		return;
	strcpy(link->interface, name);
	link->is_name_current = true;
}

/* Read the links without their present names. */
static int read_all(const char *instance, struct weir_link **ret_links, size_t *ret_count)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	_cleanup_(weir_freep) struct weir_link *links = NULL;
	size_t count = 0;
	int err = weir_pins_read(instance, &pins);

	if (err)
		return err;
	links = calloc(pins.count + 1, sizeof(*links));
	if (!links)
		return -ENOMEM;
	for (size_t i = 0; i < pins.count; i++) {
		struct weir_link *link = &links[count];

		if (!weir_is_link_pin(pins.names[i]))
			continue;
		err = weir_link_read(instance, pins.names[i], link);
		if (err)
			return err;
		count++;
	}
	*ret_links = TAKE_PTR(links);
	*ret_count = count;
	return 0;
}

void weir_links_name_here(const char *instance, struct weir_link *links, size_t count)
{
	for (size_t i = 0; i < count; i++)
		find_name(instance, &links[i]);
}

/* *ret_is_taken: an interface in that namespace has the name `name`. NULL: not needed. */
static void name_there(const char *instance, struct weir_link *links, size_t count, const char *name,
		       bool *ret_is_taken)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;

	if (!count || weir_netns_enter(weir_info_netns(instance), &back_fd))
		return;
	weir_links_name_here(instance, links, count);
	if (name)
		*ret_is_taken = if_nametoindex(name);
}

int weir_links_read(const char *instance, struct weir_link **ret_links, size_t *ret_count)
{
	int err = read_all(instance, ret_links, ret_count);

	if (!err)
		name_there(instance, *ret_links, *ret_count, NULL, NULL);
	return err;
}

/* A dead link can be selected only by its former name. */
static bool is_meant(const struct weir_link *link, const char *interface, bool by_name_of_now, bool is_taken)
{
	if (by_name_of_now)
		return link->is_name_current && !strcmp(link->interface, interface);
	return !strcmp(link->attached_as, interface) && (!link->ifindex || !is_taken);
}

int weir_link_find(const char *instance, const char *interface, char ret_attached_as[IF_NAMESIZE])
{
	static const bool by_name_of_now[] = {true, false};
	_cleanup_(weir_freep) struct weir_link *links = NULL;
	bool is_taken = false;
	size_t count;
	int err = read_all(instance, &links, &count);

	if (err)
		return err;
	name_there(instance, links, count, interface, &is_taken);
	for (size_t turn = 0; turn < ARRAY_SIZE(by_name_of_now); turn++)
		for (size_t i = 0; i < count; i++) {
			if (!is_meant(&links[i], interface, by_name_of_now[turn], is_taken))
				continue;
			strcpy(ret_attached_as, links[i].attached_as);
			return 0;
		}
	return -ENOENT;
}

/* ---- changing ---- */

int weir_link_update(const char *instance, const struct weir_link *link, int program_fd)
{
	_cleanup_(weir_closep) int fd = -1;
	char pin[WEIR_LINK_PIN_BYTES];

	if (link->is_filter)
		return weir_filter_link_update(instance, link, program_fd);
	weir_link_pin(link, pin);
	fd = weir_pin_open(instance, pin);
	if (fd < 0)
		return fd;
	return bpf_link_update(fd, program_fd, NULL) ? -errno : 0;
}

int weir_link_remove(const char *instance, const char *pin)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pin);
	struct weir_link link;
	int err;

	if (weir_link_pin_parse(pin, &link) && link.is_filter)
		return weir_filter_link_remove(instance, pin, fd, &link);
	/* The pin goes first: to a controller, a link with a pin but no interface is one whose interface has gone. */
	err = weir_unpin(instance, pin);
	/* Detach at once instead of when the kernel drops the last reference. Fails if the interface is gone, ignoring.
	 */
	if (fd >= 0)
		bpf_link_detach(fd);
	return err;
}
