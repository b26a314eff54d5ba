// SPDX-License-Identifier: GPL-2.0-only
/* What answers to blocked packets (onBlock) need of the host, and of the interface by which they leave. */
#include "base/util.h"
#include "host/host.h"
#include "instance/instance.h"
#include "network/device.h"
#include "network/port_takers.h"
#include "state/examine_interface.h"

/* Does this host forward packets of either family? */
static bool forwards(void)
{
	static const char *const settings[] = {"/proc/sys/net/ipv4/ip_forward",
					       "/proc/sys/net/ipv6/conf/all/forwarding"};
	char text[8];

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (!weir_host_read_text(settings[i], text, sizeof(text)) && text[0] == '1')
			return true;
	return false;
}

void weir_examine_cookies(uint32_t answers, struct weir_findings *findings)
{
	char takers[WEIR_PORT_TAKERS_BYTES];

	if (!(answers >> WEIR_ON_BLOCK_COOKIE & 1))
		return;
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
	if (forwards())
		weir_find(findings, WEIR_FINDING_NOTE, "cookies", "for sockets behind it, use nft's synproxy",
			  "this host forwards packets, and 'onBlock: cookie' answers for its own sockets only");
}

void weir_examine_answers(const char *interface, uint32_t ifindex, const struct weir_device *device, uint32_t answers,
			  bool is_native, struct weir_findings *findings)
{
	struct weir_veth_loss loss;
	char advice[64];

	if (!answers || !is_native)
		return;
	if (weir_veth_loses_answers(interface, ifindex, &loss))
		weir_find(findings, loss.is_known ? WEIR_FINDING_PROBLEM : WEIR_FINDING_NOTE, "answers", loss.advice,
			  "%s", loss.words);
	snprintf(advice, sizeof(advice), "ethtool -K %s rxvlan off", interface);
	if (device->has_offloads && device->strips_vlan)
		weir_find(findings, WEIR_FINDING_NOTE, "answers", advice,
			  "if packets come with VLAN tags, their answers (onBlock) leave without: '%s' removes tags "
			  "before weir sees them",
			  interface);
}
