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
 *
 * Row S10c: the same for a socket of this host, where each SYN is answered; and what ACKs cost there that bring made-up
 * cookies back. What the stack and its peers answer leaves by the device that drops it, what XDP answers by "out".
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
#include "instance/instance_internal.h"
#include "tests/bench/wire.skel.h"
#include "wire.h"

#define ROUNDS 5
#define TRIES 10
#define BEFORE 50000u /* packets */
#define MEASURED 60000u
#define FIRST_SOURCE (1u << 26)
#define SYN 0x02
#define ACK 0x10
#define PORT 443
#define SERVER "203.0.113.1"

/* weir's stand by their rules, peers by commands. */
enum { XDP_DROPS, XDP_PASSES, NOTHING, TRACKING, WEIR, CT_COUNT = 7, XDP_ANSWERS = 1, STACK, COOKIE = 5 };
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

#define ANSWERED(what)                                                                                                 \
	"settings: {answers: {rate: 100M/s, cookieRate: 100M/s}}\nresources: [{name: syns, " OPENING "}]\n"            \
	"rules: [{resource: syns, threshold: 0, onBlock: " what "}]\n"

/* To a listening socket of this host. */
static const struct contender answering[] = {
	[XDP_DROPS] = {.name = "plain end: XDP_DROP", .is_plain = true},
	[XDP_ANSWERS] = {.name = "plain end: XDP_TX", .is_plain = true},
	[STACK] = {.name = "the kernel's own SYN cookies", .is_plain = true},
	{"**weir**, onBlock: drop", XDP_DROPS, .rules = ANSWERED("drop")},
	{"**weir**, onBlock: reset", XDP_ANSWERS, .rules = ANSWERED("reset")},
	[COOKIE] = {"**weir**, onBlock: cookie", XDP_ANSWERS, .rules = ANSWERED("cookie")},
	{.name = "nftables, synproxy",
	 .is_plain = true,
	 .connect = "nft 'table ip bench { chain raw { type filter hook prerouting priority raw; tcp flags & (syn | "
		    "ack) == syn notrack; }; chain in { type filter hook input priority filter; ct state invalid,"
		    "untracked synproxy mss 1460 wscale 7 timestamp sack-perm; }; }'",
	 .disconnect = DELETE_NFT},
	{.name = "iptables, SYNPROXY",
	 .is_plain = true,
	 .connect =
		 "iptables -t raw -A PREROUTING -p tcp --syn -j CT --notrack && iptables -A INPUT -i in -p tcp "
		 "-m conntrack --ctstate INVALID,UNTRACKED -j SYNPROXY --sack-perm --timestamp --wscale 7 --mss 1460",
	 .disconnect = "iptables -t raw -F PREROUTING; iptables -F INPUT"},
};

/* There, too, after SYNs that were answered with cookies: else the kernel would not look for any. */
static const struct contender returning[] = {
	[XDP_DROPS] = {.name = "plain end: XDP_DROP", .is_plain = true},
	[XDP_PASSES] = {.name = "plain end: XDP_PASS", .is_plain = true},
	[NOTHING] = {.name = "plain end: nothing: the kernel refuses it with a RST", .is_plain = true},
	{"**weir**, onBlock: cookie", XDP_PASSES, .rules = ANSWERED("cookie")},
	{"**weir**, Concurrency, and onBlock: cookie for a rate of SYNs", XDP_PASSES,
	 .rules = TABLES "resources: [{name: syns, " OPENING "}, {name: web, match: {protocol: tcp}, flow: [source]}]\n"
			 "rules: [{resource: syns, threshold: 1, onBlock: cookie}, "
			 "{resource: web, metricType: Concurrency, threshold: 100}]\n"},
	{"**weir**, a rate of ACKs", XDP_DROPS,
	 .rules = "resources: [{name: acks, match: {protocol: tcp, tcpFlags: 'ack,!syn'}}]\n"
		  "rules: [{resource: acks, threshold: 1000}]\n"},
};

#define CONTENDERS_MAX ARRAY_SIZE(contenders)

/* What is sent, and who meets it. */
enum { FORWARDED, TO_SOCKET, ACKS, FLOODS };
static const struct flood {
	const struct contender *contenders;
	size_t count;
	const char *to;
	uint8_t tcp_flags;
} floods[FLOODS] = {
	[FORWARDED] = {contenders, ARRAY_SIZE(contenders), SERVER, SYN},
	[TO_SOCKET] = {answering, ARRAY_SIZE(answering), WIRE_ADDRESS, SYN},
	[ACKS] = {returning, ARRAY_SIZE(returning), WIRE_ADDRESS, ACK},
};

struct siege {
	struct wire wire;
	const struct flood *flood;
	struct weir_object *weir[CONTENDERS_MAX];
	bool is_missing[CONTENDERS_MAX];
	uint32_t next_source;
	double ns[CONTENDERS_MAX][ROUNDS];
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
	const struct bpf_program *second =
		siege->flood == &floods[TO_SOCKET] ? bpf->progs.bench_turn : bpf->progs.bench_pass;

	_Static_assert((int)STACK == (int)NOTHING && (int)XDP_ANSWERS == (int)XDP_PASSES, "plain ends stand alike");
	if (siege->weir[who])
		wire_attach(&siege->wire, weir_object_program_fd(siege->weir[who]));
	else if (siege->flood->contenders[who].connect)
		wire_command("%s", siege->flood->contenders[who].connect);
	else if (who != NOTHING)
		wire_attach(&siege->wire, bpf_program__fd(who == XDP_DROPS ? bpf->progs.bench_drop : second));
}

static void disconnect_contender(struct siege *siege, size_t who)
{
	wire_attach(&siege->wire, -1);
	if (!siege->flood->contenders[who].connect)
		return;
	wire_command("%s", siege->flood->contenders[who].disconnect);
	forget_connections();
}

static double measure(struct siege *siege, size_t who)
{
	struct wire_item item = {.first = FIRST_SOURCE, .flows = 1u << 30, .packets = UINT32_MAX, .port = PORT};
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
	const struct wire_item item = {.flows = 1u << 30, .packets = UINT32_MAX, .port = PORT};
	const struct contender *contender = &siege->flood->contenders[who];
	int err;

	if (contender->rules) {
		siege->weir[who] = rig_load_text(contender->rules);
		err = weir_own_addresses_write(weir_object_map_fd(siege->weir[who], WEIR_TABLE_OWN_ADDRESSES));
		if (err && err != -E2BIG) /* no room, where nothing is answered */
			rig_fail(err, "cannot write this host's addresses");
		if (siege->flood != &floods[FORWARDED])
			return;
		connect_contender(siege, who);
		wire_measure(&siege->wire, &item, BENCH_LRU_ENTRIES + BENCH_LRU_ENTRIES / 16);
		disconnect_contender(siege, who);
	} else if (contender->connect) {
		siege->is_missing[who] = !wire_try(contender->connect);
		wire_try(contender->disconnect);
	}
}

/* ---- figures ---- */

static double alone_ns(const struct siege *siege, size_t who, int round)
{
	return siege->ns[who][round] - siege->ns[siege->flood->contenders[who].above][round];
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

/* Beside what the same costs without a limiter. */
static void report_cookies(struct report_row *row, const struct siege *siege)
{
	double ratio[ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		ratio[round] = alone_ns(siege, COOKIE, round) / siege->ns[STACK][round];
	row->is_ratio = true;
	row->value = report_median(ratio, ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, the kernel's own %.0f", median_of(siege, COOKIE, true),
		 median_of(siege, STACK, false));
}

static const struct report_column columns[] = {
	{"limiter", REPORT_WORDS},
	{"alone ÷ nft `ct count`", 2},
	{"alone, ns", 0},
	{"all, ns", 0},
	{"packets a second on one core, millions", 2},
};

/* Without the column of ratios for a flood that `ct count` is not asked about. */
static void tabulate(struct report_table *table, const struct siege *siege)
{
	const bool has_ratios = siege->flood == &floods[FORWARDED];
	double peer_ns = has_ratios && !siege->is_missing[CT_COUNT] ? median_of(siege, CT_COUNT, true) : NAN;

	for (size_t who = 0; who < siege->flood->count; who++) {
		const struct contender *contender = &siege->flood->contenders[who];
		double all_ns = median_of(siege, who, false);
		double ns = contender->is_plain ? NAN : median_of(siege, who, true);
		json_t *line;
		char missing[80];

		snprintf(missing, sizeof(missing), "%s: missing here", contender->name);
		if (siege->is_missing[who])
			line = json_pack("[s,n,n,n,n]", missing);
		else
			line = json_pack("[s,o,o,f,f]", contender->name, report_number(ns / peer_ns), report_number(ns),
					 all_ns, 1e3 / all_ns);
		if (!has_ratios)
			json_array_remove(line, 1);
		report_line(table, line);
	}
}

static void besiege(struct siege *siege, const struct flood *flood)
{
	siege->flood = flood;
	memset(siege->weir, 0, sizeof(siege->weir));
	memset(siege->is_missing, 0, sizeof(siege->is_missing));
	wire_use_tcp(&siege->wire, flood->tcp_flags, inet_addr(flood->to));
	for (size_t who = 0; who < flood->count; who++)
		load_contender(siege, who);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t who = 0; who < flood->count; who++)
			if (!siege->is_missing[who])
				siege->ns[who][round] = measure(siege, who);
		siege->next_source += BEFORE + MEASURED;
	}
	for (size_t who = 0; who < flood->count; who++)
		weir_object_free(siege->weir[who]);
}

/* A socket that nobody takes connections from; the kernel gives cookies for all of its SYNs. */
static int listen_with_cookies(void)
{
	const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	wire_command("sysctl -qw net.ipv4.tcp_syncookies=2");
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, 128))
		rig_fail(errno, "cannot listen at port %d", PORT);
	return fd;
}

void bench_syn_flood(struct rig *rig, struct report *report)
{
	struct report_row *row = report_add(report, "S10e", AT_MOST(0.5), AT_MOST(0.25),
					    "SYN flood end to end, limiter alone, Concurrency"),
			  *answered = report_add(report, "S10c", AT_MOST(0.3), AT_MOST(0.2),
						 "SYN flood end to end, limiter alone, cookies");
	struct report_table *table = report_table(report, "synFlood", "A SYN flood, end to end, one core",
						  "Every packet is a SYN of a new source, which is admitted and "
						  "forwarded: \"all\" is the work of one core for it. \"Alone\" is\n"
						  "less the cost of the same packets without a limit; for a rate on "
						  "the whole, which drops nearly all, less their cost when they\n"
						  "are plainly dropped; for peers that need connection tracking, less "
						  "their cost with tracking alone, as if it were there\n"
						  "anyway.",
						  columns, ARRAY_SIZE(columns));
	static const struct report_column others[] = {{"limiter", REPORT_WORDS},
						      {"alone, ns", 0},
						      {"all, ns", 0},
						      {"packets a second on one core, millions", 2}};
	struct siege *siege = calloc(1, sizeof(*siege));
	_cleanup_(weir_closep) int listener = -1;

	if (!siege)
		rig_fail(ENOMEM, "cannot measure");
	wire_open(&siege->wire, rig);
	open_way();
	besiege(siege, &floods[FORWARDED]);
	if (siege->is_missing[CT_COUNT])
		snprintf(row->skipped, sizeof(row->skipped), "no nft, or no ct count in this kernel");
	else
		report_ratio(row, siege);
	tabulate(table, siege);
	listener = listen_with_cookies();
	besiege(siege, &floods[TO_SOCKET]);
	report_cookies(answered, siege);
	tabulate(report_table(
			 report, "synFloodAnswered", "A SYN flood that is answered, one core",
			 "Every packet is a SYN of a new source to a listening socket of this host. \"Alone\" is "
			 "less the cost of the same packets\n"
			 "that are plainly dropped, or for answers, plainly sent back by XDP. What the stack answers, "
			 "it also routes and sends: that is in \"all\".",
			 others, ARRAY_SIZE(others)),
		 siege);
	besiege(siege, &floods[ACKS]);
	tabulate(report_table(
			 report, "ackFlood", "A flood of ACKs with made-up cookies, one core",
			 "To that socket, after the SYNs that were answered with cookies. \"Alone\" is less the cost "
			 "of the same packets that pass\n"
			 "to the kernel; for a rate on the whole, less their cost when they are plainly dropped.",
			 others, ARRAY_SIZE(others)),
		 siege);
	close_way();
	wire_close(&siege->wire);
	free(siege);
}
