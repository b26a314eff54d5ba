// SPDX-License-Identifier: GPL-2.0-only
/*
 * Row S18: SYN and RST of connections that nobody has seen before, half each, under as many rules as a packet may
 * meet: the dearest packets that a sender can make. Measured as trial.h says.
 */
#include "parts.h"

#include <math.h>

#include "base/util.h"
#include "patterns.h"
#include "trial.h"

#define PORT 443
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

#define DEAREST_RULES 16
#define DEAREST_PAIRS 50000 /* of a round: all from sources that no program has seen */

/* What `repeat` packets of new sources cost, each the SYN of a connection and the RST that closes it: ns a packet. */
static double cost_of_pairs(struct rig *rig, int program_fd, uint64_t first)
{
	const struct rig_frame opening = rig_frame_tcp(PORT, SYN), closing = rig_frame_tcp(PORT, RST);
	double opening_ns, closing_ns;

	rig_aim(rig, program_fd, BENCH_SOURCES_NEW);
	rig_rewind(rig, first);
	opening_ns = rig_run(rig->driver_fd, &opening, DEAREST_PAIRS);
	rig_rewind(rig, first);
	closing_ns = rig_run(rig->driver_fd, &closing, DEAREST_PAIRS);
	return (opening_ns + closing_ns) / 2;
}

/* Connections and tokens by source, by turns: all keep state that CPUs share, and every packet is of a new flow. The
 * tables have their usual sizes, so a flood also evicts.
 */
static struct weir_object *load_dearest(void)
{
	char text[4096];
	int used = snprintf(text, sizeof(text),
			    "resources: [{name: web, match: {protocol: tcp}, flow: [source]}]\nrules:\n");

	for (int i = 0; i < DEAREST_RULES; i++)
		used += snprintf(text + used, sizeof(text) - used, "  - {resource: web, %s}\n",
				 i % 2 ? "rate: 1000/s, window: tokens" : "metricType: Concurrency, threshold: 100");
	return rig_load_text(text);
}

void bench_dearest(struct rig *rig, struct report *report)
{
	_cleanup_(weir_object_freep) struct weir_object
		*dearest = load_dearest(),
		*common = rig_load_text("settings: {flowsPerCpu: 2097152}\n"
					"resources: [{name: web, match: {protocol: tcp}, flow: [source]}]\n"
					"rules: [{resource: web, threshold: 1000000000}]\n");
	const struct rig_frame talking = rig_frame_tcp(PORT, ACK);
	struct trial_result result = {.rounds = PATTERN_ROUNDS};
	struct report_row *row;

	rig_send_new(rig, weir_object_program_fd(common), &talking, 0, BENCH_FLOWS);
	for (uint32_t round = 0; round < result.rounds; round++, rig->next_fresh += DEAREST_PAIRS) {
		result.ns[0][round] = cost_of_pairs(rig, weir_object_program_fd(dearest), rig->next_fresh);
		rig_aim(rig, weir_object_program_fd(common), BENCH_SOURCES_MANY);
		result.ns[1][round] = rig_run(rig->driver_fd, &talking, patterns[PATTERN_1M].repeat);
	}
	row = report_add(report, "S18", AT_MOST(60), AT_MOST(30), "SYN and RST of new connections under 16 rules");
	row->is_ratio = true;
	row->value = trial_ratio(&result, 0, 1);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, of 1M flows under one limit %.0f",
		 trial_ns(&result, 0), trial_ns(&result, 1));
}
