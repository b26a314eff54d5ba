// SPDX-License-Identifier: GPL-2.0-only
/*
 * What answers to blocked packets need of the host: its own addresses, to which none may go; for cookies, the kernel's
 * consent; and an interface by which they can leave.
 */
#include "instance/instance_internal.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "network/device.h"
#include "network/netlink.h"
#include "network/netns.h"

/* ---- this host's addresses ---- */

struct own {
	struct weir_own_address address;
	__u8 what;
};

struct owns {
	struct own *list;
	size_t count;
	bool is_out_of_memory;
};

static void free_owns(struct owns *owns)
{
	free(owns->list);
}

static void add_own(struct owns *owns, uint8_t family, const void *address, __u8 what)
{
	struct own *slot = weir_array_add((void **)&owns->list, owns->count, sizeof(*slot));

	if (!slot) {
		owns->is_out_of_memory = true;
		return;
	}
	*slot = (struct own){.address.is_ipv6 = family == AF_INET6, .what = what};
	memcpy(slot->address.address, address, family == AF_INET6 ? 16 : 4);
	owns->count++;
}

static const void *find_address(const struct nlmsghdr *message, size_t about_bytes, uint16_t type, size_t bytes)
{
	const struct nlattr *attr = weir_netlink_find(message, about_bytes, type);

	return attr && mnl_attr_get_payload_len(attr) == bytes ? mnl_attr_get_payload(attr) : NULL;
}

/* IFA_LOCAL is the address where IFA_ADDRESS is the peer's, and absent for most of IPv6. */
static void read_address(const struct nlmsghdr *message, void *data)
{
	const struct ifaddrmsg *about = mnl_nlmsg_get_payload(message);
	const size_t bytes = about->ifa_family == AF_INET6 ? 16 : 4;
	const void *local = find_address(message, sizeof(*about), IFA_LOCAL, bytes)
				    ?: find_address(message, sizeof(*about), IFA_ADDRESS, bytes);
	const void *broadcast = find_address(message, sizeof(*about), IFA_BROADCAST, bytes);
	__be32 address;

	if ((about->ifa_family != AF_INET && about->ifa_family != AF_INET6) || !local)
		return;
	add_own(data, about->ifa_family, local, WEIR_OWN_ADDRESS);
	if (about->ifa_family == AF_INET6)
		return;
	if (broadcast)
		add_own(data, AF_INET, broadcast, WEIR_OWN_BROADCAST);
	/* The kernel takes the computed one, too. A net of one or two addresses has none (RFC 3021). */
	if (about->ifa_prefixlen > 30 || !about->ifa_prefixlen)
		return;
	memcpy(&address, local, sizeof(address));
	address |= htonl(~0u >> about->ifa_prefixlen);
	add_own(data, AF_INET, &address, WEIR_OWN_BROADCAST);
}

/* A route of the table `local` to a single address is one, too ('ip route add local'). One to a net is left out: it may
 * be all the world's, for a transparent proxy.
 */
static void read_route(const struct nlmsghdr *message, void *data)
{
	const struct rtmsg *about = mnl_nlmsg_get_payload(message);
	const size_t bytes = about->rtm_family == AF_INET6 ? 16 : 4;
	const void *to = find_address(message, sizeof(*about), RTA_DST, bytes);

	if (to && about->rtm_table == RT_TABLE_LOCAL && about->rtm_type == RTN_LOCAL && about->rtm_dst_len == bytes * 8)
		add_own(data, about->rtm_family, to, WEIR_OWN_ADDRESS);
}

static int list_addresses(struct owns *owns)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	const struct ifaddrmsg address = {};
	int err = weir_netlink_open(&netlink, NETLINK_ROUTE), on = 1;

	if (err)
		return err;
	/* Else the kernel lists the routes of all tables, which may be those of the Internet. */
	mnl_socket_setsockopt(netlink.socket, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	err = -EINTR;
	for (int i = 0; err == -EINTR && i < WEIR_DUMPS_MAX; i++) {
		owns->count = 0;
		weir_netlink_begin(&netlink, RTM_GETADDR, NLM_F_DUMP, &address, sizeof(address));
		err = weir_netlink_ask(&netlink, read_address, owns);
		for (int is_ipv6 = 0; !err && is_ipv6 < 2; is_ipv6++) {
			const struct rtmsg route = {
				.rtm_family = is_ipv6 ? AF_INET6 : AF_INET,
				.rtm_table = RT_TABLE_LOCAL,
				.rtm_type = RTN_LOCAL,
			};

			weir_netlink_begin(&netlink, RTM_GETROUTE, NLM_F_DUMP, &route, sizeof(route));
			err = weir_netlink_ask(&netlink, read_route, owns);
			/* No such family, or none of its tables yet. */
			err = err == -ENOENT || err == -EAFNOSUPPORT || err == -EOPNOTSUPP ? 0 : err;
		}
	}
	return owns->is_out_of_memory ? -ENOMEM : err;
}

static int compare_addresses(const void *left, const void *right)
{
	const struct own *a = left, *b = right;

	return memcmp(&a->address, &b->address, sizeof(a->address));
}

/* Of those that are listed twice, one stays; of an address and a broadcast address, the address. */
static int compare_owns(const void *left, const void *right)
{
	return compare_addresses(left, right) ?: ((const struct own *)left)->what - ((const struct own *)right)->what;
}

static void sort(struct owns *owns)
{
	size_t kept = 0;

	qsort(owns->list, owns->count, sizeof(*owns->list), compare_owns);
	for (size_t i = 0; i < owns->count; i++)
		if (!kept || compare_addresses(&owns->list[kept - 1], &owns->list[i]))
			owns->list[kept++] = owns->list[i];
	owns->count = kept;
}

/* First what is gone, because the map may be full. */
static void remove_others(int map_fd, const struct owns *owns)
{
	struct own own = {};
	struct weir_own_address next;
	bool is_more = !bpf_map_get_next_key(map_fd, NULL, &next);

	while (is_more) {
		own.address = next;
		is_more = !bpf_map_get_next_key(map_fd, &own.address, &next);
		if (!owns->count || !bsearch(&own, owns->list, owns->count, sizeof(own), compare_addresses))
			bpf_map_delete_elem(map_fd, &own.address);
	}
}

int weir_own_addresses_write(int map_fd)
{
	_cleanup_(free_owns) struct owns owns = {};
	int err = list_addresses(&owns);

	if (err)
		return err;
	if (owns.count)
		sort(&owns);
	remove_others(map_fd, &owns);
	for (size_t i = 0; i < owns.count; i++)
		if (bpf_map_update_elem(map_fd, &owns.list[i].address, &owns.list[i].what, BPF_ANY))
			return -errno;
	return 0;
}

int weir_instance_write_addresses(uint64_t netns, const struct weir_image *image, const struct weir_object *object,
				  struct weir_diag *diag)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	int err;

	if (!image->config.answers)
		return 0;
	err = netns ? weir_netns_enter(netns, &back_fd) : 0;
	if (!err)
		err = weir_own_addresses_write(weir_object_map_fd(object, WEIR_TABLE_OWN_ADDRESSES));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot list this host's addresses, which must not be answered")
		   : 0;
}

bool weir_instance_answers(const struct weir_instance *instance)
{
	return instance->info.tables[WEIR_TABLE_OWN_ADDRESSES].size;
}

/* ---- cookies ---- */

bool weir_cookies_are_given(void)
{
	_cleanup_(weir_fclosep) FILE *file = fopen("/proc/sys/net/ipv4/tcp_syncookies", "re");

	return !file || fgetc(file) == '2';
}

int weir_instance_check_cookies(uint64_t netns, const struct weir_image *image, struct weir_diag *diag)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;

	if (!(image->config.answers >> WEIR_ON_BLOCK_COOKIE & 1) || (netns && weir_netns_enter(netns, &back_fd)) ||
	    weir_cookies_are_given())
		return 0;
	weir_diag_error(
		diag, NULL, NULL, "sysctl -w net.ipv4.tcp_syncookies=2",
		"'onBlock: cookie' needs the kernel's SYN cookies, and net.ipv4.tcp_syncookies is not 2: it would "
		"not give any, nor accept those of blocked connections");
	return -EOPNOTSUPP;
}

/* ---- the way out ---- */

void weir_instance_warn_of_answers(const struct weir_link *link, struct weir_diag *diag)
{
	struct weir_veth_loss loss;

	if (link->hook == WEIR_HOOK_XDP && link->is_native &&
	    weir_veth_loses_answers(link->attached_as, link->ifindex, &loss))
		weir_diag_warning(diag, NULL, NULL, loss.advice, "%s", loss.words);
}
