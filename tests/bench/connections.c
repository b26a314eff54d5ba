// SPDX-License-Identifier: GPL-2.0-only
/*
 * Row S6: what a packet of an established TCP connection costs under a rule that limits connections, beside a plain
 * limit for the same packets (what S2 measures), in the same rounds. Measured as trial.h says. Each source has one
 * connection, opened by a SYN and confirmed by a packet that talks.
 */
#include "parts.h"

#include <jansson.h>
#include <math.h>

#include "base/util.h"
#include "patterns.h"
#include "trial.h"

#define PORT 443
#define SYN 0x02
#define ACK 0x10

static const struct report_column columns[] = {
	{"packets", REPORT_WORDS}, {"÷ plain limit", 2}, {"Concurrency, ns", 0}, {"plain limit, ns", 0}};

enum { PLAIN, CONCURRENCY };

static struct weir_object *load(const char *rule)
{
	char text[512];

	/* Tables of which a million flows, or connections, fill half. */
	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 2097152, connections: 2097152, connectionFlows: 2097152}\n"
		 "resources: [{name: web, match: {protocol: tcp}, flow: [source]}]\n"
		 "rules: [{resource: web, %s}]\n",
		 rule);
	return rig_load_text(text);
}

static void establish(struct rig *rig, int fd)
{
	struct rig_frame opening = rig_frame_tcp(PORT, SYN), talking = rig_frame_tcp(PORT, ACK);

	rig_send_new(rig, fd, &opening, 0, BENCH_FLOWS);
	rig_send_new(rig, fd, &talking, 0, BENCH_FLOWS);
	rig_aim(rig, fd, BENCH_SOURCES_ONE);
	rig_run(rig->driver_fd, &opening, 1);
	rig_run(rig->driver_fd, &talking, 1);
}

static void measure(struct rig *rig, enum pattern pattern, uint8_t flags, int plain_fd, int concurrency_fd,
		    struct trial_result *ret_result)
{
	struct trial trial = {.frame = rig_frame_tcp(PORT, flags),
			      .sources = patterns[pattern].sources,
			      .repeat = patterns[pattern].repeat,
			      .rounds = pattern == PATTERN_1M ? 2 * PATTERN_ROUNDS - 1 : PATTERN_ROUNDS,
			      .program_fd = {[PLAIN] = plain_fd, [CONCURRENCY] = concurrency_fd},
			      .program_count = 2};

	rig_choose(rig, 0, patterns[pattern].flows);
	if (pattern == PATTERN_NEW)
		rig_skip_to_fresh(rig);
	trial_run(rig, &trial, ret_result);
	rig_choose(rig, 0, BENCH_FLOWS);
}

static void report_established(struct report *report, const struct trial_result *result)
{
	struct report_row *row = report_add(report, "S6", AT_MOST(0.8), AT_MOST(0.6),
					    "established TCP under a connections rule, 1M connections");

	row->is_ratio = true;
	row->value = trial_ratio(result, CONCURRENCY, PLAIN);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, plain limit %.0f", trial_ns(result, CONCURRENCY),
		 trial_ns(result, PLAIN));
}

void bench_connections(struct rig *rig, struct report *report)
{
	static const struct {
		const char *what;
		enum pattern pattern;
		uint8_t flags;
	} lines[] = {{"of one connection", PATTERN_ONE, ACK},
		     {"of 10k connections", PATTERN_10K, ACK},
		     {"of 1M connections", PATTERN_1M, ACK},
		     {"all SYNs of new sources", PATTERN_NEW, SYN}};
	struct report_table *table = report_table(report, "connections", "Connections",
						  "A Concurrency rule beside a plain limit (leap), both keyed by "
						  "source, all packets admitted; above an empty program.",
						  columns, ARRAY_SIZE(columns));
	/* One flow needs a limit that it cannot reach; a million of them rows that are narrow, as most limits have. */
	_cleanup_(weir_object_freep) struct weir_object *ample = load("threshold: 1000000000");
	_cleanup_(weir_object_freep) struct weir_object *plain = load("threshold: 1000");
	_cleanup_(weir_object_freep) struct weir_object *concurrency = load("metricType: Concurrency, threshold: 100");
	int ample_fd = weir_object_program_fd(ample), plain_fd = weir_object_program_fd(plain);
	int concurrency_fd = weir_object_program_fd(concurrency);

	establish(rig, plain_fd);
	establish(rig, concurrency_fd);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct trial_result result;

		measure(rig, lines[i].pattern, lines[i].flags, lines[i].pattern == PATTERN_ONE ? ample_fd : plain_fd,
			concurrency_fd, &result);
		if (lines[i].pattern == PATTERN_1M)
			report_established(report, &result);
		report_line(table, json_pack("[s,f,f,f]", lines[i].what, trial_ratio(&result, CONCURRENCY, PLAIN),
					     trial_ns(&result, CONCURRENCY), trial_ns(&result, PLAIN)));
	}
}
