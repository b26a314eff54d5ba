// SPDX-License-Identifier: GPL-2.0-only
#include "peers.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "wire.h"

const char *const peer_names[PEER_COUNT] = {"nftables", "hashlimit"};

#define LIMITS_MAX 8
static struct peers_limit present[PEER_COUNT][LIMITS_MAX];
static size_t present_count[PEER_COUNT];

static bool has_command(const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", name);
	return system(command) == 0;
}

const char *peers_missing(void)
{
	if (!has_command("nft"))
		return "nft is not installed";
	if (!has_command("iptables"))
		return "iptables is not installed";
	return NULL;
}

static void describe(json_t *machine, const char *name, const char *command)
{
	FILE *stream = popen(command, "re");
	char line[128] = "";

	if (!stream)
		return;
	if (fgets(line, sizeof(line), stream)) {
		line[strcspn(line, "\n")] = 0;
		json_object_set_new(machine, name, json_string(line));
	}
	pclose(stream);
}

void peers_describe(json_t *machine)
{
	if (peers_missing())
		return;
	describe(machine, "nftables", "nft --version");
	describe(machine, "hashlimit", "iptables --version");
}

/* ---- nftables ---- */

static void nft_load(void)
{
	wire_command("nft 'add table netdev bench; delete table netdev bench; add table netdev bench'");
	for (size_t i = 0; i < present_count[PEER_NFT]; i++)
		wire_command("nft 'add set netdev bench sources%zu { type ipv4_addr; size %u; "
			     "flags dynamic,timeout; timeout 1h; }'",
			     i, PEERS_FLOWS);
}

static void nft_connect(void)
{
	static const char chain[] =
		"add chain netdev bench in { type filter hook ingress device in priority 0; policy accept; }";
	char rules[2048] = "";

	for (size_t i = 0; i < present_count[PEER_NFT]; i++) {
		const struct peers_limit *limit = &present[PEER_NFT][i];
		size_t length = strlen(rules);

		length += snprintf(rules + length, sizeof(rules) - length,
				   "; add rule netdev bench in udp dport %u add @sources%zu { ip saddr limit rate "
				   "over %s",
				   limit->port, i, limit->rate);
		if (limit->burst)
			length += snprintf(rules + length, sizeof(rules) - length, " burst %u packets", limit->burst);
		snprintf(rules + length, sizeof(rules) - length, " } drop");
	}
	wire_command("nft '%s%s'", chain, rules);
}

/* ---- hashlimit ---- */

static void hashlimit_load(void)
{
	wire_command("iptables -t raw -D PREROUTING -j LIMIT 2>/dev/null; iptables -t raw -F LIMIT 2>/dev/null; "
		     "iptables -t raw -X LIMIT 2>/dev/null; iptables -t raw -N LIMIT");
	for (size_t i = 0; i < present_count[PEER_HASHLIMIT]; i++) {
		const struct peers_limit *limit = &present[PEER_HASHLIMIT][i];
		char burst[64] = "";

		if (limit->burst)
			snprintf(burst, sizeof(burst), "--hashlimit-burst %u", limit->burst);
		wire_command("iptables -t raw -A LIMIT -p udp --dport %u -m hashlimit --hashlimit-name bench%zu "
			     "--hashlimit-mode srcip --hashlimit-above %s %s --hashlimit-htable-size %u "
			     "--hashlimit-htable-max %u --hashlimit-htable-expire 3600000 -j DROP",
			     limit->port, i, limit->rate, burst, PEERS_FLOWS / 4, PEERS_FLOWS);
	}
}

/* ---- both ---- */

void peers_load(enum peer peer, const struct peers_limit *limits, size_t count)
{
	if (count > LIMITS_MAX)
		rig_fail(0, "more limits than expected");
	memcpy(present[peer], limits, count * sizeof(*limits));
	present_count[peer] = count;
	if (peer == PEER_NFT)
		nft_load();
	else
		hashlimit_load();
}

void peers_connect(enum peer peer)
{
	if (peer == PEER_NFT)
		nft_connect();
	else
		wire_command("iptables -t raw -I PREROUTING -j LIMIT");
}

void peers_disconnect(enum peer peer)
{
	if (peer == PEER_NFT)
		wire_command("nft 'delete chain netdev bench in'");
	else
		wire_command("iptables -t raw -D PREROUTING -j LIMIT");
}

void peers_connect_drop(enum peer peer)
{
	if (peer == PEER_NFT)
		wire_command("nft 'add chain netdev bench in { type filter hook ingress device in priority 0; }; "
			     "add rule netdev bench in udp dport 1 drop'");
	else
		wire_command("iptables -t raw -I PREROUTING -p udp --dport 1 -j DROP");
}

void peers_disconnect_drop(enum peer peer)
{
	if (peer == PEER_NFT)
		wire_command("nft 'delete chain netdev bench in'");
	else
		wire_command("iptables -t raw -D PREROUTING -p udp --dport 1 -j DROP");
}

void peers_count_behind(const char *const *prefixes, size_t count)
{
	wire_command("iptables -t raw -N COUNT");
	for (size_t i = 0; i < count; i++)
		wire_command("iptables -t raw -A COUNT -s %s -j DROP", prefixes[i]);
	wire_command("iptables -t raw -A COUNT -j DROP; iptables -t raw -A PREROUTING -i in -j COUNT");
}

uint64_t peers_counted(size_t i)
{
	FILE *stream = popen("iptables -t raw -nvxL COUNT", "re");
	unsigned long long packets = 0;
	char line[512];

	if (!stream)
		rig_fail(0, "cannot run iptables");
	/* Two lines of heading. */
	for (size_t number = 0; fgets(line, sizeof(line), stream); number++)
		if (number == i + 2 && sscanf(line, " %llu", &packets) != 1)
			rig_fail(0, "cannot read what iptables has counted");
	pclose(stream);
	return packets;
}

void peers_stop_counting(void)
{
	wire_command("iptables -t raw -D PREROUTING -i in -j COUNT && iptables -t raw -F COUNT && "
		     "iptables -t raw -X COUNT");
}
