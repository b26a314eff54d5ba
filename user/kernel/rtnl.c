// SPDX-License-Identifier: GPL-2.0-only
#include "rtnl.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel answers at once; this is for one that does not. Chosen, not derived. */
#define ANSWER_SECONDS 10
/* The largest piece of a dump (netlink(7): NLMSG_GOODSIZE is at most 8 KiB; dumps up to 32). */
#define ANSWER_BYTES 32768

int weir_rtnl_open(void)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

void weir_rtnl_begin(struct weir_rtnl_request *request, uint16_t type, uint16_t flags, const void *about,
		     uint16_t about_bytes)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = NLM_F_REQUEST | flags;
	request->header.nlmsg_len = NLMSG_SPACE(about_bytes);
	memcpy(request->body, about, about_bytes);
}

static struct rtattr *end_of(struct weir_rtnl_request *request)
{
	return (struct rtattr *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
}

void weir_rtnl_put(struct weir_rtnl_request *request, uint16_t type, const void *value, uint16_t value_bytes)
{
	struct rtattr *attr = end_of(request);

	if (NLMSG_ALIGN(request->header.nlmsg_len) + RTA_SPACE(value_bytes) > sizeof(*request))
		return;
	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(value_bytes);
	if (value_bytes)
		memcpy(RTA_DATA(attr), value, value_bytes);
	request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + RTA_SPACE(value_bytes);
}

void weir_rtnl_put_u32(struct weir_rtnl_request *request, uint16_t type, uint32_t value)
{
	weir_rtnl_put(request, type, &value, sizeof(value));
}

void weir_rtnl_put_text(struct weir_rtnl_request *request, uint16_t type, const char *text)
{
	weir_rtnl_put(request, type, text, strlen(text) + 1);
}

struct rtattr *weir_rtnl_begin_nest(struct weir_rtnl_request *request, uint16_t type)
{
	struct rtattr *nest = end_of(request);

	weir_rtnl_put(request, type | NLA_F_NESTED, NULL, 0);
	return nest;
}

void weir_rtnl_end_nest(struct weir_rtnl_request *request, struct rtattr *nest)
{
	nest->rta_len = (char *)end_of(request) - (char *)nest;
}

/* Every message of one piece of the answer. Returns 1 when it was the last piece, 0 or -errno. */
static int read_piece(const char *piece, int bytes, weir_rtnl_reader reader, void *data)
{
	/* The last message's padding may be missing: bytes is below zero behind it. */
	for (const struct nlmsghdr *message = (const void *)piece; bytes > 0 && NLMSG_OK(message, (unsigned int)bytes);
	     message = NLMSG_NEXT(message, bytes)) {
		const struct nlmsgerr *error = NLMSG_DATA(message);

		if (message->nlmsg_type == NLMSG_DONE)
			return 1;
		if (message->nlmsg_type == NLMSG_ERROR)
			return error->error ? error->error : 1;
		if (reader)
			reader(message, data);
	}
	return 0;
}

int weir_rtnl_read(int fd, struct weir_rtnl_request *request, weir_rtnl_reader reader, void *data)
{
	char piece[ANSWER_BYTES];
	int result = 0;

	/* Each of the two bits by itself means something else (NLM_F_REPLACE, NLM_F_EXCL). */
	if ((request->header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		request->header.nlmsg_flags |= NLM_F_ACK;
	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	while (!result) {
		ssize_t bytes = recv(fd, piece, sizeof(piece), 0);

		if (bytes < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (bytes > 0)
			result = read_piece(piece, bytes, reader, data);
	}
	return result < 0 ? result : 0;
}

int weir_rtnl_ask(int fd, struct weir_rtnl_request *request)
{
	return weir_rtnl_read(fd, request, NULL, NULL);
}

static const struct rtattr *find_among(const struct rtattr *attr, int bytes, uint16_t type)
{
	for (; RTA_OK(attr, bytes); attr = RTA_NEXT(attr, bytes))
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			return attr;
	return NULL;
}

const struct rtattr *weir_rtnl_find(const struct nlmsghdr *message, uint16_t about_bytes, uint16_t type)
{
	const char *first = (const char *)NLMSG_DATA(message) + NLMSG_ALIGN(about_bytes);

	return find_among((const struct rtattr *)first, (int)message->nlmsg_len - (int)NLMSG_SPACE(about_bytes), type);
}

const struct rtattr *weir_rtnl_find_nested(const struct rtattr *nest, uint16_t type)
{
	return find_among(RTA_DATA(nest), RTA_PAYLOAD(nest), type);
}
