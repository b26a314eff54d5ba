// SPDX-License-Identifier: GPL-2.0-only
#include "network/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/util.h"

/* The kernel answers at once; this is for a kernel that does not. Chosen, not derived. */
#define ANSWER_SECONDS 10
/* The largest part of a dump (netlink(7): NLMSG_GOODSIZE is at most 8 KiB; dumps up to 32). */
#define ANSWER_BYTES 32768

int weir_netlink_open(struct weir_netlink *netlink, int protocol)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	int on = 1;

	netlink->socket = mnl_socket_open2(protocol, SOCK_CLOEXEC);
	if (!netlink->socket)
		return -errno;
	if (mnl_socket_bind(netlink->socket, 0, MNL_SOCKET_AUTOPID) ||
	    setsockopt(mnl_socket_get_fd(netlink->socket), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
		int err = -errno;

		weir_netlink_close(netlink);
		return err;
	}
	/* Ask for the kernel's message, and for no copy of the request before it. A kernel older than 4.12 has no such
	 * messages, ignoring.
	 */
	mnl_socket_setsockopt(netlink->socket, NETLINK_EXT_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(netlink->socket, NETLINK_CAP_ACK, &on, sizeof(on));
	return 0;
}

void weir_netlink_close(struct weir_netlink *netlink)
{
	if (netlink->socket)
		mnl_socket_close(netlink->socket);
	netlink->socket = NULL;
}

struct nlmsghdr *weir_netlink_begin(struct weir_netlink *netlink, uint16_t type, uint16_t flags, const void *about,
				    size_t about_bytes)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(netlink->request);

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | flags;
	/* NLM_F_DUMP consists of two bits, each of which alone means something else (NLM_F_REPLACE, NLM_F_EXCL). */
	if ((flags & NLM_F_DUMP) != NLM_F_DUMP)
		request->nlmsg_flags |= NLM_F_ACK;
	request->nlmsg_seq = ++netlink->sequence;
	memcpy(mnl_nlmsg_put_extra_header(request, about_bytes), about, about_bytes);
	return request;
}

/* ---- the answer ---- */

/* NLMSG_ERROR and NLMSG_DONE both begin with an error code, 0 for success; the kernel's message follows. */
static int read_end(struct weir_netlink *netlink, const struct nlmsghdr *message)
{
	size_t about_bytes = message->nlmsg_type == NLMSG_ERROR ? sizeof(struct nlmsgerr) : sizeof(int);
	const struct nlattr *words = NULL;
	int error;

	if (mnl_nlmsg_get_payload_len(message) < about_bytes)
		return -EBADMSG;
	memcpy(&error, mnl_nlmsg_get_payload(message), sizeof(error));
	if (error && message->nlmsg_flags & NLM_F_ACK_TLVS)
		words = weir_netlink_find(message, about_bytes, NLMSGERR_ATTR_MSG);
	if (words && mnl_attr_validate(words, MNL_TYPE_NUL_STRING) >= 0)
		snprintf(netlink->reason, sizeof(netlink->reason), "%s", mnl_attr_get_str(words));
	return error;
}

#define NOT_THE_END 1

/* Returns NOT_THE_END, or the result of the request: 0 or -errno. */
static int read_piece(struct weir_netlink *netlink, const void *piece, int bytes, weir_netlink_reader reader,
		      void *data, bool *is_interrupted)
{
	for (const struct nlmsghdr *message = piece; mnl_nlmsg_ok(message, bytes);
	     message = mnl_nlmsg_next(message, &bytes)) {
		/* A late message for an earlier request that timed out is not an answer to this one. */
		if (message->nlmsg_seq != netlink->sequence)
			continue;
		if (message->nlmsg_flags & NLM_F_DUMP_INTR)
			*is_interrupted = true;
		if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE)
			return read_end(netlink, message);
		if (reader)
			reader(message, data);
	}
	return NOT_THE_END;
}

int weir_netlink_ask(struct weir_netlink *netlink, weir_netlink_reader reader, void *data)
{
	const struct nlmsghdr *request = (const void *)netlink->request;
	alignas(struct nlmsghdr) char piece[ANSWER_BYTES];
	bool is_interrupted = false;
	int result = NOT_THE_END;

	netlink->reason[0] = '\0';
	if (mnl_socket_sendto(netlink->socket, request, request->nlmsg_len) < 0)
		return -errno;
	/* Read even an interrupted dump to its end: until then the kernel refuses another dump. */
	while (result == NOT_THE_END) {
		ssize_t bytes = mnl_socket_recvfrom(netlink->socket, piece, sizeof(piece));

		if (bytes < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (bytes > 0)
			result = read_piece(netlink, piece, bytes, reader, data, &is_interrupted);
	}
	return !result && is_interrupted ? -EINTR : result;
}

/* ---- attributes ---- */

const struct nlattr *weir_netlink_find(const struct nlmsghdr *message, size_t about_bytes, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, about_bytes)
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

/* What weir_netlink_ask_value() looks for. */
struct value {
	uint16_t about_bytes, type;
	void *value;
	size_t value_bytes;
	int err;
};

static void copy_value(const struct nlmsghdr *message, void *data)
{
	struct value *wanted = data;
	const struct nlattr *attr = weir_netlink_find(message, wanted->about_bytes, wanted->type);

	if (attr && mnl_attr_get_payload_len(attr) >= wanted->value_bytes) {
		memcpy(wanted->value, mnl_attr_get_payload(attr), wanted->value_bytes);
		wanted->err = 0;
	}
}

int weir_netlink_ask_value(struct weir_netlink *netlink, size_t about_bytes, uint16_t type, void *ret_value,
			   size_t value_bytes)
{
	struct value wanted = {about_bytes, type, ret_value, value_bytes, -ENODATA};
	int err = weir_netlink_ask(netlink, copy_value, &wanted);

	return err ? err : wanted.err;
}

/* ---- watching links ---- */

/* Larger than any message about one link without its statistics. A longer message is cut, which does not matter because
 * nobody reads it.
 */
#define PIECE_BYTES 4096
/* If more than this arrives at once, the rest is reported at once again. Chosen, not derived. */
#define PIECES_MAX 4096

int weir_link_watch_open(void)
{
	/* Also the group of qdiscs and filters: somebody may have deleted weir's. */
	const struct sockaddr_nl groups = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_TC};
	_cleanup_(weir_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&groups, sizeof(groups)))
		return -errno;
	return TAKE_FD(fd);
}

int weir_link_watch_addresses(int fd, bool wants)
{
	static const int groups[] = {RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR};

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (setsockopt(fd, SOL_NETLINK, wants ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])))
			return -errno;
	return 0;
}

void weir_link_watch_drain(int fd)
{
	char piece[PIECE_BYTES];

	/* ENOBUFS means that events were lost. Like any event, this is a reason to look at the interfaces. */
	for (int i = 0; i < PIECES_MAX; i++)
		if (recv(fd, piece, sizeof(piece), 0) < 0 && errno != ENOBUFS && errno != EINTR)
			return;
}
