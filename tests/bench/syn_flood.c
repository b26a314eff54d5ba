// SPDX-License-Identifier: GPL-2.0-only
/*
 * Row S10e: a SYN flood end to end. Every packet is a SYN of a new source; each is admitted, and forwarded to a device
 * that drops it, as by a gateway before its servers: so who tracks connections keeps each of them. "Alone" is less what
 * the same packets cost when nothing limits them. Beside weir's limit of connections stand nft's and iptables', which
 * are above what tracking costs, as if it were there anyway; and who else is put before a SYN flood: hashlimit, and
 * SYNPROXY, which answers each SYN itself and forwards none.
 *
 * Each sees some SYNs before it is measured. Peers that need connection tracking begin with empty tables each time, as
 * tracking would continue for all others; the kernel's limit of 262,144 connections is never reached. weir's tables are
 * full, of older SYNs.
 */
#include "parts.h"

#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <jansson.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "tests/bench/wire.skel.h"
#include "wire.h"

#define ROUNDS 5
#define TRIES 10
#define BEFORE 50000u /* packets */
#define MEASURED 60000u
#define FIRST_SOURCE (1u << 26)
#define SYN 0x02
#define SERVER "203.0.113.1"

/* weir's stand by their rules, peers by commands. */
enum { XDP_DROPS, XDP_PASSES, NOTHING, TRACKING, WEIR, CT_COUNT = 7 };
struct contender {
	const char *name;
	int above; /* what it is measured above; nothing of a plain end */
	const char *rules;
	const char *connect, *disconnect;
	bool is_plain;
};

#define OPENING "match: {protocol: tcp, tcpFlags: 'syn,!ack'}"
#define PER_SOURCE "{name: each, " OPENING ", flow: [source]}"
#define TABLES "settings: {connections: 1048576, connectionFlows: 1048576, flowsPerCpu: 1048576}\n"
#define DELETE_NFT "nft delete table ip bench"

static const struct contender contenders[] = {
	[XDP_DROPS] = {.name = "plain end: XDP_DROP", .is_plain = true},
	[XDP_PASSES] = {.name = "plain end: XDP_PASS", .is_plain = true},
	[NOTHING] = {.name = "plain end: nothing", .is_plain = true},
	[TRACKING] =
		{"connection tracking alone", NOTHING,
		 .connect =
			 "nft 'table ip bench { chain in { type filter hook prerouting priority -150; ct state invalid "
			 "drop; }; }'",
		 .disconnect = DELETE_NFT},
	[WEIR] = {"**weir**, Concurrency", XDP_PASSES,
		  .rules = TABLES "resources: [{name: web, match: {protocol: tcp}, flow: [source]}]\n"
				  "rules: [{resource: web, metricType: Concurrency, threshold: 100}]\n"},
	{"**weir**, Concurrency and a rate for all", XDP_DROPS,
	 .rules = TABLES "resources: [{name: all, " OPENING "}, {name: web, match: {protocol: tcp}, flow: [source]}]\n"
			 "rules: [{resource: all, threshold: 1000}, "
			 "{resource: web, metricType: Concurrency, threshold: 100}]\n"},
	{"**weir**, a rate for each source", XDP_PASSES,
	 .rules = TABLES "resources: [" PER_SOURCE "]\nrules: [{resource: each, threshold: 100}]\n"},
	[CT_COUNT] = {"nftables, `ct count`", TRACKING,
		      .connect = "nft 'table ip bench { set open { type ipv4_addr; size 1048576; flags dynamic; }; "
				 "chain in { type filter hook prerouting priority -150; "
				 "tcp flags & (syn | ack) == syn ct state new add @open { ip saddr ct count over 100 } "
				 "drop; }; }'",
		      .disconnect = DELETE_NFT},
	{"iptables, connlimit", TRACKING,
	 .connect = "iptables -t mangle -A PREROUTING -p tcp --syn -m connlimit --connlimit-above 100 -j DROP",
	 .disconnect = "iptables -t mangle -F PREROUTING"},
	{"iptables, hashlimit", NOTHING,
	 .connect =
		 "iptables -t raw -A PREROUTING -p tcp --syn -m hashlimit --hashlimit-name syns --hashlimit-mode srcip "
		 "--hashlimit-above 100/second --hashlimit-htable-size 262144 --hashlimit-htable-max 1048576 -j DROP",
	 .disconnect = "iptables -t raw -F PREROUTING"},
	{"iptables, SYNPROXY", NOTHING,
	 .connect =
		 "iptables -t raw -A PREROUTING -p tcp --syn -j CT --notrack && iptables -A FORWARD -i in -p tcp "
		 "-m conntrack --ctstate INVALID,UNTRACKED -j SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460",
	 .disconnect = "iptables -t raw -F PREROUTING; iptables -F FORWARD"},
};
#define CONTENDERS ARRAY_SIZE(contenders)

struct siege {
	struct wire wire;
	struct weir_object *weir[CONTENDERS];
	bool is_missing[CONTENDERS];
	uint32_t next_source;
	double ns[CONTENDERS][ROUNDS];
};

/* ---- the way behind the limiters ---- */

/* Half of a pair whose other half is down takes packets, and drops them. */
static void open_way(void)
{
	wire_command("ip link add sink type veth peer name drain && ip link set sink up && "
		     "ip addr add 192.0.2.254/24 dev sink && "
		     "ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:03 dev sink nud permanent && "
		     "ip route add " SERVER " via 192.0.2.1 dev sink && ip route add default via 192.0.2.1 dev sink");
	wire_command("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.in.forwarding=1");
}

static void close_way(void)
{
	wire_command("ip link del sink && sysctl -qw net.ipv4.ip_forward=0");
}

/* Forget all tracked connections of our network namespace. */
static void forget_connections(void)
{
	struct {
		struct nlmsghdr header;
		struct nfgenmsg family;
	} request = {.header = {.nlmsg_len = sizeof(request),
				.nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK}};
	_cleanup_(weir_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer = {};

	if (fd < 0 || send(fd, &request, sizeof(request), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		rig_fail(errno, "cannot forget tracked connections");
	if (answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error)
		rig_fail(answer.error.error, "cannot forget tracked connections");
}

/* ---- contenders ---- */

static void connect_contender(struct siege *siege, size_t who)
{
	const struct bench_wire *bpf = siege->wire.bpf;

	if (siege->weir[who])
		wire_attach(&siege->wire, weir_object_program_fd(siege->weir[who]));
	else if (contenders[who].connect)
		wire_command("%s", contenders[who].connect);
	else if (who != NOTHING)
		wire_attach(&siege->wire,
			    bpf_program__fd(who == XDP_DROPS ? bpf->progs.bench_drop : bpf->progs.bench_pass));
}

static void disconnect_contender(struct siege *siege, size_t who)
{
	wire_attach(&siege->wire, -1);
	if (!contenders[who].connect)
		return;
	wire_command("%s", contenders[who].disconnect);
	forget_connections();
}

static double measure(struct siege *siege, size_t who)
{
	struct wire_item item = {.first = FIRST_SOURCE, .flows = 1u << 30, .packets = UINT32_MAX, .port = 443};
	double ns = NAN;

	for (int i = 0; i < TRIES && isnan(ns); i++) {
		connect_contender(siege, who);
		item.next = siege->next_source;
		wire_measure(&siege->wire, &item, BEFORE);
		item.next += BEFORE;
		ns = wire_measure(&siege->wire, &item, MEASURED);
		disconnect_contender(siege, who);
	}
	if (isnan(ns))
		rig_fail(0, "frames get lost on the wire: the machine is too busy");
	return ns;
}

static void load_contender(struct siege *siege, size_t who)
{
	const struct wire_item item = {.flows = 1u << 30, .packets = UINT32_MAX, .port = 443};

	if (contenders[who].rules) {
		siege->weir[who] = rig_load_text(contenders[who].rules);
		connect_contender(siege, who);
		wire_measure(&siege->wire, &item, BENCH_LRU_ENTRIES + BENCH_LRU_ENTRIES / 16);
		disconnect_contender(siege, who);
	} else if (contenders[who].connect) {
		siege->is_missing[who] = !wire_try(contenders[who].connect);
		wire_try(contenders[who].disconnect);
	}
}

/* ---- figures ---- */

static double alone_ns(const struct siege *siege, size_t who, int round)
{
	return siege->ns[who][round] - siege->ns[contenders[who].above][round];
}

static double median_of(const struct siege *siege, size_t who, bool is_alone)
{
	double ns[ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		ns[round] = is_alone ? alone_ns(siege, who, round) : siege->ns[who][round];
	return report_median(ns, ROUNDS);
}

static void report_ratio(struct report_row *row, const struct siege *siege)
{
	double ratio[ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		ratio[round] = alone_ns(siege, WEIR, round) / alone_ns(siege, CT_COUNT, round);
	row->is_ratio = true;
	row->value = report_median(ratio, ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, nft ct count %.0f", median_of(siege, WEIR, true),
		 median_of(siege, CT_COUNT, true));
}

static const struct report_column columns[] = {
	{"limiter", REPORT_WORDS},
	{"alone ÷ nft `ct count`", 2},
	{"alone, ns", 0},
	{"all, ns", 0},
	{"packets a second on one core, millions", 2},
};

static void tabulate(struct report_table *table, const struct siege *siege)
{
	double peer_ns = siege->is_missing[CT_COUNT] ? NAN : median_of(siege, CT_COUNT, true);

	for (size_t who = 0; who < CONTENDERS; who++) {
		double all_ns = median_of(siege, who, false);
		double ns = contenders[who].is_plain ? NAN : median_of(siege, who, true);
		char missing[80];

		snprintf(missing, sizeof(missing), "%s: missing here", contenders[who].name);
		if (siege->is_missing[who])
			report_line(table, json_pack("[s,n,n,n,n]", missing));
		else
			report_line(table, json_pack("[s,o,o,f,f]", contenders[who].name, report_number(ns / peer_ns),
						     report_number(ns), all_ns, 1e3 / all_ns));
	}
}

void bench_syn_flood(struct rig *rig, struct report *report)
{
	struct report_row *row = report_add(report, "S10e", AT_MOST(0.5), AT_MOST(0.25),
					    "SYN flood end to end, limiter alone, Concurrency");
	struct report_table *table = report_table(report, "synFlood", "A SYN flood, end to end, one core",
						  "Every packet is a SYN of a new source, which is admitted and "
						  "forwarded: \"all\" is the work of one core for it. \"Alone\" is\n"
						  "less the cost of the same packets without a limit; for a rate on "
						  "the whole, which drops nearly all, less their cost when they\n"
						  "are plainly dropped; for peers that need connection tracking, less "
						  "their cost with tracking alone, as if it were there\n"
						  "anyway.",
						  columns, ARRAY_SIZE(columns));
	struct siege *siege = calloc(1, sizeof(*siege));

	if (!siege)
		rig_fail(ENOMEM, "cannot measure");
	wire_open(&siege->wire, rig);
	wire_use_tcp(&siege->wire, SYN, inet_addr(SERVER));
	open_way();
	for (size_t who = 0; who < CONTENDERS; who++)
		load_contender(siege, who);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t who = 0; who < CONTENDERS; who++)
			if (!siege->is_missing[who])
				siege->ns[who][round] = measure(siege, who);
		siege->next_source += BEFORE + MEASURED;
	}
	if (siege->is_missing[CT_COUNT])
		snprintf(row->skipped, sizeof(row->skipped), "no nft, or no ct count in this kernel");
	else
		report_ratio(row, siege);
	tabulate(table, siege);
	close_way();
	wire_close(&siege->wire);
	for (size_t who = 0; who < CONTENDERS; who++)
		weir_object_free(siege->weir[who]);
	free(siege);
}
