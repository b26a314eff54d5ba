// SPDX-License-Identifier: GPL-2.0-only
#include "pins/filter_link.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/util.h"
#include "network/netns.h"
#include "network/tc.h"
#include "pins/info.h"
#include "pins/pins.h"

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

/* Never 0, because for 0 the kernel chooses a handle itself. */
static uint32_t handle_of(const char *instance)
{
	return (uint32_t)weir_digest(WEIR_DIGEST_BASIS, instance, strlen(instance)) | 1;
}

static struct weir_tc_limiter limiter_of(const char *instance, const struct weir_link *link,
					 char name[WEIR_TC_NAME_BYTES])
{
	snprintf(name, WEIR_TC_NAME_BYTES, "weir:%s", instance);
	return (struct weir_tc_limiter){
		.ifindex = link->ifindex,
		.is_egress = weir_hook_is_out(link->hook),
		.handle = handle_of(instance),
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

int weir_filter_link_read(const char *instance, int map_fd, struct weir_link *link)
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

int weir_filter_link_update(const char *instance, const struct weir_link *link, int program_fd)
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

int weir_filter_link_remove(const char *instance, const char *pin, int map_fd, const struct weir_link *link)
{
	struct weir_link now = *link;
	int err = map_fd < 0 ? map_fd : read_number(map_fd, &now.ifindex);

	if (!err)
		err = remove_filter(instance, &now);
	return err && err != -ENOENT ? err : weir_unpin(instance, pin);
}
