// SPDX-License-Identifier: GPL-2.0-only
/*
 * Row S14: what the operator's own traffic pays. One TCP connection (pipe.h) through one rule, and through eight,
 * against XDP_PASS in the same place: how many bytes get through, and how many requests are answered. With GRO and
 * without, by the driver (native) and by the stack (skb). What XDP itself costs there shows beside it, as the same with
 * nothing attached. Candidates run in turns, round after round.
 *
 * Rules are keyed by source, and never reached.
 */
#include "parts.h"

#include <bpf/libbpf.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "pipe.h"
#include "tests/bench/wire.skel.h"

#define ROUNDS 9
#define DURATION_NS (70 * MS)
#define RULES_MAX 8

enum { NOTHING, PASS, ONE_RULE, EIGHT_RULES, CANDIDATES };

static const struct place {
	const char *name;
	bool is_native, has_gro;
} places[] = {
	{"native, GRO", true, true},
	{"native, no GRO", true, false},
	{"skb, GRO", false, true},
	{"skb, no GRO", false, false},
};

static const struct {
	const char *name, *unit;
	double per_unit;
} traffics[PIPE_TRAFFICS] = {
	[PIPE_BULK] = {"bulk", "Gbit/s", 1e9 / 8},
	[PIPE_REQUEST] = {"requests", "k/s", 1e3},
};

/* By place, traffic and candidate. */
struct shares {
	double rate[CANDIDATES];  /* median, in the traffic's unit */
	double share[CANDIDATES]; /* of what XDP_PASS lets through, median over the rounds */
};

static struct weir_object *load(uint32_t rules)
{
	char text[1024];
	int length = snprintf(text, sizeof(text),
			      "resources: [{name: all, match: {protocol: tcp}, flow: [source]}]\nrules:\n");

	for (uint32_t i = 0; i < rules; i++)
		length += snprintf(text + length, sizeof(text) - length, "  - {resource: all, threshold: %u}\n",
				   1000000000 + i);
	return rig_load_text(text);
}

static struct shares measure(struct pipe *pipe, const struct place *place, enum pipe_traffic traffic,
			     const int program_fd[CANDIDATES])
{
	double rate[CANDIDATES][ROUNDS], share[CANDIDATES][ROUNDS];
	struct shares shares;

	pipe_set_gro(place->has_gro);
	for (int round = 0; round < ROUNDS; round++) {
		for (int who = 0; who < CANDIDATES; who++) {
			pipe_attach(pipe, program_fd[who], place->is_native);
			rate[who][round] = pipe_measure(pipe, traffic, DURATION_NS) / traffics[traffic].per_unit;
		}
		for (int who = 0; who < CANDIDATES; who++)
			share[who][round] = rate[who][round] / rate[PASS][round];
	}
	pipe_attach(pipe, -1, true);
	for (int who = 0; who < CANDIDATES; who++) {
		shares.rate[who] = report_median(rate[who], ROUNDS);
		shares.share[who] = report_median(share[who], ROUNDS);
	}
	return shares;
}

/* The row of a candidate: where it loses most. */
static void report_worst(struct report *report, int who, enum pipe_traffic traffic, const char *what,
			 struct shares all[][PIPE_TRAFFICS], double must, double aim)
{
	struct report_row *row = report_add(report, "S14", AT_LEAST(must), AT_LEAST(aim), "legitimate TCP, %s, %s",
					    traffics[traffic].name, what);
	size_t worst = 0;

	for (size_t i = 1; i < ARRAY_SIZE(places); i++)
		if (all[i][traffic].share[who] < all[worst][traffic].share[who])
			worst = i;
	row->is_ratio = true;
	row->value = all[worst][traffic].share[who];
	snprintf(row->measured, sizeof(row->measured), "%s: %.3g of %.3g %s", places[worst].name,
		 all[worst][traffic].rate[who], all[worst][traffic].rate[PASS], traffics[traffic].unit);
}

static const struct report_column columns[] = {
	{"attached", REPORT_WORDS},    {"traffic", REPORT_WORDS},	   {"one rule ÷ XDP_PASS", 3},
	{"eight rules ÷ XDP_PASS", 3}, {"nothing attached ÷ XDP_PASS", 3}, {"XDP_PASS", 2},
	{"unit", REPORT_WORDS},
};

static void tabulate(struct report_table *table, size_t place, enum pipe_traffic traffic, const struct shares *shares)
{
	report_line(table, json_pack("[s,s,f,f,f,f,s]", places[place].name, traffics[traffic].name,
				     shares->share[ONE_RULE], shares->share[EIGHT_RULES], shares->share[NOTHING],
				     shares->rate[PASS], traffics[traffic].unit));
}

void bench_tcp(struct rig *rig, struct report *report)
{
	struct report_table *table = report_table(
		report, "tcp", "What legitimate TCP pays",
		"One connection over veth between two namespaces, through one rule and through eight that admit "
		"everything, against XDP_PASS in\nthe same place: bytes of a bulk transfer, and requests of 64 bytes "
		"that are answered one after the other.",
		columns, ARRAY_SIZE(columns));
	_cleanup_(weir_object_freep) struct weir_object *one = load(1);
	_cleanup_(weir_object_freep) struct weir_object *eight = load(RULES_MAX);
	struct bench_wire *plain = bench_wire__open_and_load();
	struct shares all[ARRAY_SIZE(places)][PIPE_TRAFFICS];
	struct pipe *pipe = pipe_open(rig);
	int program_fd[CANDIDATES];

	if (!plain)
		rig_fail(errno, "cannot load XDP_PASS");
	program_fd[NOTHING] = -1;
	program_fd[PASS] = bpf_program__fd(plain->progs.bench_pass);
	program_fd[ONE_RULE] = weir_object_program_fd(one);
	program_fd[EIGHT_RULES] = weir_object_program_fd(eight);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		for (enum pipe_traffic traffic = 0; traffic < PIPE_TRAFFICS; traffic++) {
			all[i][traffic] = measure(pipe, &places[i], traffic, program_fd);
			tabulate(table, i, traffic, &all[i][traffic]);
			rig_say("  %s, %s: %.3f, %.3f of %.3g %s", places[i].name, traffics[traffic].name,
				all[i][traffic].share[ONE_RULE], all[i][traffic].share[EIGHT_RULES],
				all[i][traffic].rate[PASS], traffics[traffic].unit);
		}
	for (enum pipe_traffic traffic = 0; traffic < PIPE_TRAFFICS; traffic++) {
		report_worst(report, ONE_RULE, traffic, "one rule", all, 0.97, 0.99);
		report_worst(report, EIGHT_RULES, traffic, "eight rules", all, 0.93, 0.97);
	}
	pipe_close(pipe);
	bench_wire__destroy(plain);
}
