// SPDX-License-Identifier: GPL-2.0-only
#include "network/link_watch.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "base/util.h"

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

void weir_link_watch_drain(int fd)
{
	char piece[PIECE_BYTES];

	/* ENOBUFS means that events were lost. Like any event, this is a reason to look at the interfaces. */
	for (int i = 0; i < PIECES_MAX; i++)
		if (recv(fd, piece, sizeof(piece), 0) < 0 && errno != ENOBUFS && errno != EINTR)
			return;
}
