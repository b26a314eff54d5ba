// SPDX-License-Identifier: GPL-2.0-only
/*
 * Row S7: end to end. One core sends, receives and limits; every source is over its limit, or is new. Beside weir
 * stand an LRU_HASH with a fixed window, nftables and hashlimit, in the same rounds, each above what the same packets
 * cost when they are plainly dropped at the same place: by XDP_DROP, by nft, in the raw table. Where sources are new
 * they pass, and are dropped behind all limiters, in the raw table: the plain end is then one that lets them pass.
 *
 * What is over its limit stays so: one packet an hour. A flow over its limit is evaluated again when a bucket is over,
 * and between a flow's packets other candidates have had their turn: buckets of six minutes keep that out of it.
 * Spoofed sources are measured while the tables fill, and when they are full. Then all tables have as many places;
 * known sources have twice as many of weir's, as for S2: a table of sets cannot be filled to the last row.
 */
#include "parts.h"

#include <bpf/libbpf.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "peers.h"
#include "tests/bench/blocks.skel.h"
#include "tests/bench/wire.skel.h"
#include "wire.h"

#define ROUNDS 5
#define TRIES 10
#define PACKETS 150000u		/* of a measurement */
#define LOST_MAX (PACKETS / 50) /* frames that may get lost on the wire, as when a CPU is busy elsewhere */
#define SPOOFED_FIRST (1u << 26)

enum contender { XDP_DROPS, XDP_PASSES, WEIR, LRU, NFT_DROPS, NFT, RAW_DROPS, HASHLIMIT, RAW_PASSES, CONTENDERS };
enum load { ONE, SOME, MANY, FILLING, FULL, LOADS };

static const char *const load_names[LOADS] = {"1", "10k", "1M", "spoofed, filling", "spoofed, full"};
static const uint32_t load_flows[LOADS] = {1, 10000, 1000000, 1u << 30, 1u << 30};

struct arena {
	struct wire wire;
	struct weir_object *weir;
	struct bench_blocks *blocks;
	uint32_t next_spoofed;
	double ns[LOADS][CONTENDERS][ROUNDS];
};

static void connect_contender(struct arena *arena, enum contender who)
{
	const struct bench_wire *bpf = arena->wire.bpf;

	switch (who) {
	case XDP_DROPS:
		wire_attach(&arena->wire, bpf_program__fd(bpf->progs.bench_drop));
		break;
	case XDP_PASSES:
		wire_attach(&arena->wire, bpf_program__fd(bpf->progs.bench_pass));
		break;
	case WEIR:
		wire_attach(&arena->wire, weir_object_program_fd(arena->weir));
		break;
	case LRU:
		wire_attach(&arena->wire, bpf_program__fd(arena->blocks->progs.bench_window));
		break;
	case NFT_DROPS:
		peers_connect_drop(PEER_NFT);
		break;
	case NFT:
		peers_connect(PEER_NFT);
		break;
	case RAW_DROPS:
		peers_connect_drop(PEER_HASHLIMIT);
		break;
	case HASHLIMIT:
		peers_connect(PEER_HASHLIMIT);
		break;
	case RAW_PASSES:
	case CONTENDERS:
		break;
	}
}

static void disconnect_contender(struct arena *arena, enum contender who)
{
	wire_attach(&arena->wire, -1);
	if (who == NFT_DROPS || who == RAW_DROPS)
		peers_disconnect_drop(who == NFT_DROPS ? PEER_NFT : PEER_HASHLIMIT);
	if (who == NFT || who == HASHLIMIT)
		peers_disconnect(who == NFT ? PEER_NFT : PEER_HASHLIMIT);
}

/* Who drops what it is given, and so has no place where all sources are new; and who only lets pass. */
static bool is_of_load(enum contender who, enum load load)
{
	bool is_spoofed = load >= FILLING;

	if (who == XDP_DROPS || who == NFT_DROPS || who == RAW_DROPS)
		return !is_spoofed;
	if (who == XDP_PASSES || who == RAW_PASSES)
		return is_spoofed;
	return true;
}

static void schedule_load(struct arena *arena, enum load load)
{
	struct wire_item item = {.flows = load_flows[load], .packets = UINT32_MAX, .port = 1};

	if (load >= FILLING) {
		item.first = SPOOFED_FIRST;
		item.next = arena->next_spoofed;
	}
	wire_schedule(&arena->wire, 0, &item, 1);
}

/* Every limiter has seen its own share of new sources, as many as the others. */
static double send_load(struct arena *arena, enum contender who, enum load load, uint32_t packets)
{
	uint64_t before = wire_arrived(), arrived;
	double ns;

	connect_contender(arena, who);
	schedule_load(arena, load);
	ns = wire_send(&arena->wire, packets);
	disconnect_contender(arena, who);
	arrived = wire_arrived() - before;
	/* What got lost cost less than what arrived: such a figure would flatter. */
	return arrived + LOST_MAX < packets ? NAN : ns * packets / (arrived ? arrived : 1);
}

static double measure(struct arena *arena, enum contender who, enum load load)
{
	for (int i = 0; i < TRIES; i++) {
		double ns = send_load(arena, who, load, PACKETS);

		if (!isnan(ns))
			return ns;
	}
	rig_fail(0, "frames get lost on the wire: the machine is too busy");
}

static void measure_load(struct arena *arena, enum load load)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (enum contender who = 0; who < CONTENDERS; who++)
			if (is_of_load(who, load))
				arena->ns[load][who][round] = measure(arena, who, load);
		arena->next_spoofed += PACKETS;
	}
}

/* Every source is known and over its limit; spoofed ones fill the tables. */
static void prepare_load(struct arena *arena, enum load load)
{
	static const enum contender limiters[] = {WEIR, LRU, NFT, HASHLIMIT};
	uint32_t packets = load == FULL ? PEERS_FLOWS : 2 * load_flows[load];

	if (load == FILLING)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(limiters); i++)
		send_load(arena, limiters[i], load, packets);
	if (load == FULL)
		arena->next_spoofed += packets;
}

static void load_limiters(struct arena *arena, uint32_t per_second, uint32_t rows)
{
	struct peers_limit limit = {.port = 1, .rate = per_second ? "1000/second" : "1/hour"};
	char text[512];

	limit.burst = per_second ? 0 : 1;
	peers_load(PEER_NFT, &limit, 1);
	peers_load(PEER_HASHLIMIT, &limit, 1);
	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: %u}\n"
		 "resources: [{name: all, match: {protocol: udp}, flow: [source]}]\n"
		 "rules: [{resource: all, threshold: %u, statIntervalInMs: %u}]\n",
		 rows, per_second ? per_second : 1, per_second ? 1000u : 3600000u);
	weir_object_free(arena->weir);
	arena->weir = rig_load_text(text);
	bench_blocks__destroy(arena->blocks);
	arena->blocks = bench_blocks__open_and_load();
	if (!arena->blocks)
		rig_fail(errno, "cannot load the building blocks");
	arena->blocks->bss->window_ns = per_second ? SECOND : 3600 * SECOND;
	arena->blocks->bss->window_packets = per_second ? per_second : 1;
}

/* ---- figures ---- */

static enum contender plain_end(enum contender who, enum load load)
{
	if (who == WEIR || who == LRU)
		return load < FILLING ? XDP_DROPS : XDP_PASSES;
	if (load >= FILLING)
		return RAW_PASSES;
	return who == NFT ? NFT_DROPS : RAW_DROPS;
}

static double median_of(const double *values)
{
	double copy[ROUNDS];

	memcpy(copy, values, sizeof(copy));
	return report_median(copy, ROUNDS);
}

static double alone_ns(const struct arena *arena, enum contender who, enum load load, int round)
{
	return arena->ns[load][who][round] - arena->ns[load][plain_end(who, load)][round];
}

static double median_alone_ns(const struct arena *arena, enum contender who, enum load load)
{
	double ns[ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		ns[round] = alone_ns(arena, who, load, round);
	return report_median(ns, ROUNDS);
}

static void report_ratio(struct report *report, const struct arena *arena, enum load load, double must, double aim)
{
	double nft_ns = median_alone_ns(arena, NFT, load), hashlimit_ns = median_alone_ns(arena, HASHLIMIT, load);
	enum contender best = nft_ns < hashlimit_ns ? NFT : HASHLIMIT;
	double ratio[ROUNDS];
	struct report_row *row = report_add(report, "S7", AT_MOST(must), AT_MOST(aim),
					    "end to end, limiter alone, sources: %s", load_names[load]);

	for (int round = 0; round < ROUNDS; round++)
		ratio[round] = alone_ns(arena, WEIR, load, round) / alone_ns(arena, best, load, round);
	row->is_ratio = true;
	row->value = report_median(ratio, ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, nftables %.0f, hashlimit %.0f",
		 median_alone_ns(arena, WEIR, load), nft_ns, hashlimit_ns);
}

static const struct report_column columns[] = {
	{"sources", REPORT_WORDS},
	{"limiter", REPORT_WORDS},
	{"alone ÷ best of nftables, hashlimit", 2},
	{"alone, ns", 0},
	{"all, ns", 0},
	{"packets a second on one core, millions", 2},
};

static void tabulate(struct report_table *table, const struct arena *arena, enum load load)
{
	static const char *const names[CONTENDERS] = {
		[XDP_DROPS] = "plain end: XDP_DROP",
		[XDP_PASSES] = "plain end: XDP_PASS",
		[WEIR] = "**weir**",
		[LRU] = "minimal fixed window in LRU_HASH",
		[NFT_DROPS] = "plain end: nft drop",
		[NFT] = "nftables",
		[RAW_DROPS] = "plain end: raw drop",
		[HASHLIMIT] = "hashlimit",
		[RAW_PASSES] = "plain end: nothing",
	};
	double nft_ns = median_alone_ns(arena, NFT, load), hashlimit_ns = median_alone_ns(arena, HASHLIMIT, load);
	double best_ns = nft_ns < hashlimit_ns ? nft_ns : hashlimit_ns;

	for (enum contender who = 0; who < CONTENDERS; who++) {
		double all_ns, ns = NAN;

		if (!is_of_load(who, load))
			continue;
		if (strncmp(names[who], "plain", 5))
			ns = median_alone_ns(arena, who, load);
		all_ns = median_of(arena->ns[load][who]);
		report_line(table, json_pack("[s,s,o,o,f,f]", load_names[load], names[who], report_number(ns / best_ns),
					     report_number(ns), all_ns, 1e3 / all_ns));
	}
}

/* ---- what survives ---- */

#define KNOWN "10.224.0.0/16"
#define NEWCOMERS "10.225.0.0/16"
#define CUSTOMERS 100u
#define KNOWN_FIRST 0xe00000u
#define NEWCOMERS_FIRST 0xe10000u
#define FLOOD_BATCH 62u /* of the flood, to one of a known customer and one of a newcomer */
#define FLOOD_PACKETS (PEERS_FLOWS + PEERS_FLOWS / 2)

static const struct report_column survival_columns[] = {
	{"limiter", REPORT_WORDS},	   {"known customers' packets kept, %", 1},
	{"newcomers' packets kept, %", 1}, {"flood let through, %", 1},
	{"all, ns a packet", 0},
};

static void measure_survival(struct arena *arena, struct report_table *table, const char *name, enum contender who)
{
	const uint32_t batches = 8000, packets = batches * (FLOOD_BATCH + 2);
	struct wire_item known = {.first = KNOWN_FIRST, .flows = CUSTOMERS, .packets = UINT32_MAX, .port = 1};
	struct wire_item flood = {.first = SPOOFED_FIRST, .flows = 1u << 30, .packets = UINT32_MAX, .port = 1};
	struct wire_item mixed[] = {flood, known, known};
	uint64_t before[3];
	double ns;

	connect_contender(arena, who);
	wire_schedule(&arena->wire, 0, &known, 1);
	wire_send(&arena->wire, 4 * CUSTOMERS);
	wire_schedule(&arena->wire, 0, &flood, 1);
	wire_send(&arena->wire, FLOOD_PACKETS);
	mixed[0].next = FLOOD_PACKETS;
	mixed[0].packets = FLOOD_BATCH;
	mixed[2].first = NEWCOMERS_FIRST;
	mixed[1].packets = mixed[2].packets = 1;
	wire_schedule(&arena->wire, 0, mixed, ARRAY_SIZE(mixed));
	for (size_t i = 0; i < 3; i++)
		before[i] = peers_counted(i);
	ns = wire_send(&arena->wire, packets);
	report_line(table, json_pack("[s,f,f,f,f]", name, 100.0 * (peers_counted(0) - before[0]) / batches,
				     100.0 * (peers_counted(1) - before[1]) / batches,
				     100.0 * (peers_counted(2) - before[2]) / batches / FLOOD_BATCH, ns));
	disconnect_contender(arena, who);
}

void bench_wire(struct rig *rig, struct report *report)
{
	static const char *const prefixes[] = {KNOWN, NEWCOMERS};
	struct report_table *table, *survival;
	struct arena *arena;

	if (peers_missing()) {
		struct report_row *row = report_add(report, "S7", AT_MOST(0.4), AT_MOST(0.25), "end to end");

		snprintf(row->skipped, sizeof(row->skipped), "%s", peers_missing());
		return;
	}
	arena = calloc(1, sizeof(*arena));
	if (!arena)
		rig_fail(ENOMEM, "cannot measure");
	wire_open(&arena->wire, rig);
	peers_count_behind(prefixes, ARRAY_SIZE(prefixes));
	for (enum load load = ONE; load < LOADS; load++) {
		rig_say("  sources: %s", load_names[load]);
		if (load != FULL)
			load_limiters(arena, 0, load < FILLING ? 2 * PEERS_FLOWS : PEERS_FLOWS);
		prepare_load(arena, load);
		measure_load(arena, load);
	}
	report_ratio(report, arena, ONE, 0.2, 0.1);
	report_ratio(report, arena, MANY, 0.4, 0.25);
	report_ratio(report, arena, FILLING, 0.55, 0.3);
	table = report_table(report, "wire", "End to end, one core",
			     "\"All\" is the work of one core for a packet that is sent, received and limited, with "
			     "one packet an hour allowed from each\n"
			     "source. \"Alone\" is the limiter itself: less the cost of the same packets when they are "
			     "plainly dropped or passed in its\n"
			     "place.",
			     columns, ARRAY_SIZE(columns));
	for (enum load load = ONE; load < LOADS; load++)
		tabulate(table, arena, load);

	survival = report_table(report, "survival", "What survives a flood",
				"1,000 packets a second from each source; tables of 2^20 sources; 1.5 million spoofed "
				"sources so far, and new ones with every\n"
				"packet. Customers send far less than their limit: 100 customers were known before the "
				"flood, and 100 arrive during it.",
				survival_columns, ARRAY_SIZE(survival_columns));
	load_limiters(arena, 1000, PEERS_FLOWS);
	rig_say("  what survives a flood");
	measure_survival(arena, survival, "**weir**", WEIR);
	measure_survival(arena, survival, "minimal fixed window in LRU_HASH", LRU);
	measure_survival(arena, survival, "nftables", NFT);
	measure_survival(arena, survival, "hashlimit", HASHLIMIT);

	peers_stop_counting();
	wire_close(&arena->wire);
	bench_blocks__destroy(arena->blocks);
	weir_object_free(arena->weir);
	free(arena);
}
