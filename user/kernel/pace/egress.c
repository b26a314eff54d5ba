// SPDX-License-Identifier: GPL-2.0-only
/* Can this device delay packets that it is about to send? See pace.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "network/netlink.h"
#include "network/tc.h"
#include "pace/pace.h"
#include "weir_abi.h"

static int refuse(const char *interface, const struct weir_tc_senders *senders, struct weir_diag *diag)
{
	char hint[192];

	if (senders->is_spread)
		snprintf(hint, sizeof(hint),
			 "run 'sysctl -w net.core.default_qdisc=fq' and 'tc qdisc replace dev %s root mq'; or write "
			 "'throttling: police'",
			 interface);
	else
		snprintf(hint, sizeof(hint), "run 'tc qdisc replace dev %s root fq'; or write 'throttling: police'",
			 interface);
	weir_diag_error(diag, NULL, NULL, hint,
			"cannot pace what '%s' sends: its qdisc is %s%s, and only fq sends packets at their time",
			interface, senders->is_spread ? "mq, and not each child is fq" : senders->root,
			senders->root[0] ? "" : "unknown");
	return -EOPNOTSUPP;
}

static void warn_of_drops(const char *interface, const struct weir_tc_senders *senders, uint64_t packets,
			  uint64_t wait_ns, struct weir_diag *diag)
{
	const uint32_t least = senders->flow_limit < senders->limit ? senders->flow_limit : senders->limit;
	char hint[192];

	snprintf(hint, sizeof(hint),
		 "give fq more room: 'tc qdisc replace dev %s root fq limit %llu flow_limit %llu horizon %llus'",
		 interface, (unsigned long long)(packets > senders->limit ? packets : senders->limit),
		 (unsigned long long)(packets > least ? packets : least),
		 (unsigned long long)(wait_ns / WEIR_NSEC_PER_SEC + 1));
	if (packets > least)
		weir_diag_warning(diag, NULL, NULL, hint,
				  "the rules let up to %llu packets wait, and fq of '%s' drops what exceeds %u",
				  (unsigned long long)packets, interface, least);
	else if (wait_ns / 1000 > senders->horizon_us)
		weir_diag_warning(diag, NULL, NULL, hint,
				  "the rules let packets wait for up to %llu s, and fq of '%s' drops what is due in "
				  "more than %u s",
				  (unsigned long long)(wait_ns / WEIR_NSEC_PER_SEC), interface,
				  senders->horizon_us / 1000000);
}

int weir_pace_check_out(const char *interface, uint32_t ifindex, uint64_t packets, uint64_t wait_ns,
			struct weir_diag *diag)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	struct weir_tc_senders senders;

	if (weir_netlink_open(&netlink, NETLINK_ROUTE) || weir_tc_read_senders(&netlink, ifindex, &senders))
		return 0;
	if (!senders.count || senders.fq_count < senders.count)
		return refuse(interface, &senders, diag);
	warn_of_drops(interface, &senders, packets, wait_ns, diag);
	return 0;
}
