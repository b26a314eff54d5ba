// SPDX-License-Identifier: GPL-2.0-only
#include "pins/links.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "network/netns.h"
#include "network/tc.h"
#include "pins/pins.h"

/* ---- pins ---- */

/* No map or program has such a name, and no prefix begins with another one. */
static const struct {
	const char *prefix;
	enum weir_hook hook;
	bool is_native, is_filter;
} kinds[] = {
	{"native-", WEIR_HOOK_XDP, true, false},
	{"skb-", WEIR_HOOK_XDP, false, false},
	{"tcx-in-", WEIR_HOOK_TC_IN, false, false},
	{"tcx-out-", WEIR_HOOK_TC_OUT, false, false},
	{"tcx-bare-in-", WEIR_HOOK_TC_BARE_IN, false, false},
	{"tcx-bare-out-", WEIR_HOOK_TC_BARE_OUT, false, false},
	{"filter-in-", WEIR_HOOK_TC_IN, false, true},
	{"filter-out-", WEIR_HOOK_TC_OUT, false, true},
	{"filter-bare-in-", WEIR_HOOK_TC_BARE_IN, false, true},
	{"filter-bare-out-", WEIR_HOOK_TC_BARE_OUT, false, true},
};

/* '.' and '%', the escape character itself, are escaped as in URLs (RFC 3986, 2.1). */
void weir_link_pin(const struct weir_link *link, char pin[WEIR_LINK_PIN_BYTES])
{
	size_t i = 0;
	char *out;

	while (i < ARRAY_SIZE(kinds) - 1 && (kinds[i].hook != link->hook || kinds[i].is_native != link->is_native ||
					     kinds[i].is_filter != link->is_filter))
		i++;
	out = stpcpy(pin, kinds[i].prefix);
	for (const char *at = link->attached_as; *at; at++) {
		if (*at == '.')
			out = stpcpy(out, "%2E");
		else if (*at == '%')
			out = stpcpy(out, "%25");
		else
			*out++ = *at;
	}
	*out = '\0';
}

static void parse_interface(const char *text, char ret_interface[IF_NAMESIZE])
{
	size_t bytes = 0;

	while (*text && bytes < IF_NAMESIZE - 1) {
		bool is_dot = !strncmp(text, "%2E", 3), is_percent = !strncmp(text, "%25", 3);

		ret_interface[bytes++] = is_dot ? '.' : *text;
		text += is_dot || is_percent ? 3 : 1;
	}
	ret_interface[bytes] = '\0';
}

bool weir_link_pin_parse(const char *pin, struct weir_link *ret_link)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const size_t bytes = strlen(kinds[i].prefix);

		if (strncmp(pin, kinds[i].prefix, bytes) != 0)
			continue;
		*ret_link = (struct weir_link){
			.hook = kinds[i].hook, .is_native = kinds[i].is_native, .is_filter = kinds[i].is_filter};
		parse_interface(pin + bytes, ret_link->attached_as);
		return true;
	}
	return false;
}

const char *weir_link_mode_name(const struct weir_link *link)
{
	if (link->hook != WEIR_HOOK_XDP)
		return "tc";
	return link->is_native ? "native" : "skb";
}

/* ---- filters ---- */

/* ---- the qdisc ---- */

#define CLSACT_PIN "clsact-"

static const char *clsact_pin(uint32_t ifindex, char buffer[32])
{
	snprintf(buffer, 32, CLSACT_PIN "%u", ifindex);
	return buffer;
}

uint32_t weir_clsact_of_pin(const char *pin)
{
	return strncmp(pin, CLSACT_PIN, strlen(CLSACT_PIN)) ? 0 : strtoul(pin + strlen(CLSACT_PIN), NULL, 10);
}

/* A map that contains only a number, to have something that can be pinned. */
static int pin_number(const char *instance, const char *pin, uint32_t number)
{
	_cleanup_(weir_closep) int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_number", sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	const uint32_t zero = 0;

	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &zero, &number, BPF_ANY))
		return -errno;
	return weir_pin(instance, pin, fd, &ignored);
}

/* The note comes first, so that a command killed in between leaves no qdisc that nobody knows about. */
int weir_clsact_take(struct weir_netlink *netlink, const char *instance, uint32_t ifindex)
{
	char buffer[32];
	const char *pin = clsact_pin(ifindex, buffer);
	const bool is_noted = weir_pin_is_there(instance, pin);
	int err = is_noted ? 0 : pin_number(instance, pin, ifindex);

	if (err)
		return err;
	err = weir_tc_add_clsact(netlink, ifindex);
	if (err && !is_noted)
		weir_unpin(instance, pin);
	return err == -EEXIST ? 0 : err;
}

/* It is not a failure if the qdisc, the filter or the interface has gone in the meantime. */
static int unless_gone(int err)
{
	return err == -ENOENT || err == -EINVAL || err == -ENODEV ? 0 : err;
}

int weir_clsact_give_back(struct weir_netlink *netlink, const char *instance, uint32_t ifindex)
{
	struct weir_tc_filters filters = {};
	char buffer[32];
	const char *pin = clsact_pin(ifindex, buffer);
	int err;

	if (!weir_pin_is_there(instance, pin))
		return 0;
	err = unless_gone(weir_tc_read_filters(netlink, ifindex, &filters));
	if (err || filters.has_weir || filters.limiters) /* the qdisc is removed with the last of these */
		return err;
	err = filters.others ? 0 : unless_gone(weir_tc_delete_clsact(netlink, ifindex));
	return err ? err : weir_unpin(instance, pin);
}

/* ---- the filter ---- */

static struct weir_tc_limiter limiter_of(const char *instance, const struct weir_link *link,
					 char name[WEIR_TC_NAME_BYTES])
{
	snprintf(name, WEIR_TC_NAME_BYTES, "weir:%s", instance);
	return (struct weir_tc_limiter){
		.ifindex = link->ifindex,
		.is_egress = weir_hook_is_out(link->hook),
		/* Never 0, because for 0 the kernel chooses a handle itself. */
		.handle = (uint32_t)weir_digest(WEIR_DIGEST_BASIS, instance, strlen(instance)) | 1,
		.name = name,
	};
}

int weir_filter_link_create(const char *instance, const struct weir_link *link, int program_fd)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	char name[WEIR_TC_NAME_BYTES], pin[WEIR_LINK_PIN_BYTES];
	const struct weir_tc_limiter limiter = limiter_of(instance, link, name);
	int err = weir_netlink_open(&netlink, NETLINK_ROUTE);

	weir_link_pin(link, pin);
	if (!err)
		err = pin_number(instance, pin, link->ifindex);
	if (err)
		return err;
	err = weir_clsact_take(&netlink, instance, link->ifindex);
	if (!err)
		err = weir_tc_put_limiter(&netlink, &limiter, program_fd);
	if (err) {
		weir_clsact_give_back(&netlink, instance, link->ifindex);
		weir_unpin(instance, pin);
	}
	return err;
}

static int read_number(int map_fd, uint32_t *ret_number)
{
	const uint32_t zero = 0;

	return bpf_map_lookup_elem(map_fd, &zero, ret_number) ? -errno : 0;
}

/* Enter the network namespace of the instance's interfaces. */
static int go_there(const char *instance, struct weir_netlink *netlink, int *ret_back_fd)
{
	int err = weir_netns_enter(weir_info_netns(instance), ret_back_fd);

	return err ? err : weir_netlink_open(netlink, NETLINK_ROUTE);
}

/* Read the filter by the map of its pin. ifindex 0: the filter is gone, with its interface or alone. Returns 0 or
 * -errno.
 */
static int filter_link_read(const char *instance, int map_fd, struct weir_link *link)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	char name[WEIR_TC_NAME_BYTES];
	struct weir_tc_limiter limiter;
	int err = read_number(map_fd, &link->ifindex);

	limiter = limiter_of(instance, link, name);
	if (!err)
		err = go_there(instance, &netlink, &back_fd);
	if (!err)
		err = weir_tc_read_limiter(&netlink, &limiter, &link->program_id);
	/* -ENOENT also covers a network namespace that no longer exists: its interfaces have gone with it. */
	if (err == -ENOENT)
		link->ifindex = 0;
	return err == -ENOENT ? 0 : err;
}

static int filter_link_update(const char *instance, const struct weir_link *link, int program_fd)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	char name[WEIR_TC_NAME_BYTES];
	const struct weir_tc_limiter limiter = limiter_of(instance, link, name);
	int err = go_there(instance, &netlink, &back_fd);

	return err ? err : weir_tc_put_limiter(&netlink, &limiter, program_fd);
}

/* Remove the filter if its interface still exists. */
static int remove_filter(const char *instance, const struct weir_link *link)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	char name[WEIR_TC_NAME_BYTES];
	const struct weir_tc_limiter limiter = limiter_of(instance, link, name);
	uint32_t program_id;
	int err = go_there(instance, &netlink, &back_fd);

	if (err)
		return err == -ENOENT ? 0 : err; /* its network namespace no longer exists */
	err = weir_tc_read_limiter(&netlink, &limiter, &program_id);
	if (!err)
		err = weir_tc_delete_limiter(&netlink, &limiter);
	err = unless_gone(err);
	return err ? err : weir_clsact_give_back(&netlink, instance, link->ifindex);
}

/* ---- links of an instance ---- */

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
		return filter_link_read(instance, fd, link);
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

bool weir_link_stands(const struct weir_link *links, size_t count, size_t place)
{
	if (!weir_hook_is_out(links[place].hook))
		return true;
	for (size_t i = 0; i < count; i++)
		if (!weir_hook_is_out(links[i].hook) && !strcmp(links[i].attached_as, links[place].attached_as))
			return false;
	return true;
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
		return filter_link_update(instance, link, program_fd);
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

	if (weir_link_pin_parse(pin, &link) && link.is_filter) {
		err = fd < 0 ? fd : read_number(fd, &link.ifindex);
		if (!err)
			err = remove_filter(instance, &link);
		/* If this fails, the pin stays, since otherwise nobody could find the filter any more. */
		return err && err != -ENOENT ? err : weir_unpin(instance, pin);
	}
	/* The pin goes first: to a controller, a link with a pin but no interface is one whose interface has gone. */
	err = weir_unpin(instance, pin);
	/* Detach at once instead of when the kernel drops the last reference. Fails if the interface is gone, ignoring.
	 */
	if (fd >= 0)
		bpf_link_detach(fd);
	return err;
}
