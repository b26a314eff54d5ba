// SPDX-License-Identifier: GPL-2.0-only
/* What answers to blocked packets (onBlock) need of the host, and of the interface by which they leave. */
#include "host/host.h"
#include "instance/instance.h"
#include "network/port_takers.h"
#include "network/veth.h"
#include "state/examine_interface.h"

/* Cookies are a listening socket's: the kernel must take them back, and the connection must reach that socket. */
static void examine_cookies(struct weir_findings *findings)
{
	char takers[WEIR_PORT_TAKERS_BYTES], forwards[8] = "";

	if (!weir_cookies_are_given())
		weir_find(findings, WEIR_FINDING_PROBLEM, "cookies", "sysctl -w net.ipv4.tcp_syncookies=2",
			  "net.ipv4.tcp_syncookies is not 2: the kernel gives no cookies for 'onBlock: cookie', and "
			  "refuses the connections that these open");
	if (weir_port_takers_find(takers))
		weir_find(findings, WEIR_FINDING_NOTE, "cookies",
			  "use 'onBlock: cookie' for ports that none of them takes; nft's synproxy serves the others",
			  "connections may be taken from listening sockets (%s): those that 'onBlock: cookie' opens "
			  "would die there",
			  takers);
	if (!weir_host_read_text("/proc/sys/net/ipv4/ip_forward", forwards, sizeof(forwards)) && forwards[0] == '1')
		weir_find(findings, WEIR_FINDING_NOTE, "cookies", "for sockets behind it, use nft's synproxy",
			  "this host forwards packets, and 'onBlock: cookie' answers for its own sockets only");
}

void weir_examine_answers(const char *interface, uint32_t ifindex, const struct weir_device *device, uint32_t answers,
			  bool is_native, struct weir_findings *findings)
{
	char advice[WEIR_VETH_ADVICE_BYTES];

	if (answers >> WEIR_ON_BLOCK_COOKIE & 1)
		examine_cookies(findings);
	if (!answers || !is_native)
		return;
	if (weir_veth_loses_answers(interface, ifindex, advice))
		weir_find(findings, WEIR_FINDING_PROBLEM, "answers", advice, WEIR_VETH_LOSES_ANSWERS, interface);
	snprintf(advice, sizeof(advice), "ethtool -K %s rxvlan off", interface);
	if (device->has_offloads && device->strips_vlan)
		weir_find(findings, WEIR_FINDING_NOTE, "answers", advice,
			  "if packets come with VLAN tags, their answers (onBlock) leave without: '%s' removes tags "
			  "before weir sees them",
			  interface);
}
