/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to the kernel's rtnetlink (rtnetlink(7)), as few as pacing needs: built in one buffer, answered before
 * the call returns. Knows nothing of what the attributes mean.
 */
#ifndef WEIR_RTNL_H
#define WEIR_RTNL_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>

#define WEIR_RTNL_BYTES 1024

struct weir_rtnl_request {
	struct nlmsghdr header;
	char body[WEIR_RTNL_BYTES];
};

/* A socket to the present network namespace, which the caller closes; or -errno. */
int weir_rtnl_open(void);

/* Begin a request with the struct that its type wants (ifinfomsg, tcmsg). NLM_F_REQUEST is added. */
void weir_rtnl_begin(struct weir_rtnl_request *request, uint16_t type, uint16_t flags, const void *about,
		     uint16_t about_bytes);

/* Add an attribute. What does not fit in WEIR_RTNL_BYTES is left out: callers put constants and short names. */
void weir_rtnl_put(struct weir_rtnl_request *request, uint16_t type, const void *value, uint16_t value_bytes);
void weir_rtnl_put_u32(struct weir_rtnl_request *request, uint16_t type, uint32_t value);
void weir_rtnl_put_text(struct weir_rtnl_request *request, uint16_t type, const char *text);

/* An attribute with attributes inside; end it with what begin returned. */
struct rtattr *weir_rtnl_begin_nest(struct weir_rtnl_request *request, uint16_t type);
void weir_rtnl_end_nest(struct weir_rtnl_request *request, struct rtattr *nest);

/* Ask, and wait for the answer: 0 or the kernel's -errno. */
int weir_rtnl_ask(int fd, struct weir_rtnl_request *request);

/* The same for a request with an answer: one message (flags with NLM_F_ECHO) or many (NLM_F_DUMP). */
typedef void (*weir_rtnl_reader)(const struct nlmsghdr *message, void *data);
int weir_rtnl_read(int fd, struct weir_rtnl_request *request, weir_rtnl_reader reader, void *data);

/* The attribute of this type among those behind a struct of about_bytes; NULL when there is none. */
const struct rtattr *weir_rtnl_find(const struct nlmsghdr *message, uint16_t about_bytes, uint16_t type);
const struct rtattr *weir_rtnl_find_nested(const struct rtattr *nest, uint16_t type);

#endif
