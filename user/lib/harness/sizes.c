// SPDX-License-Identifier: GPL-2.0-only
#include "harness/sizes.h"

#include <errno.h>

#include "compile/compile.h"
#include "kind/kind.h"

/* Bounds for the flow table, in rows per CPU: chosen, not derived. The larger one takes 128 MB of narrow rows per CPU;
 * the table grows beyond it if a capture keeps more flows alive.
 */
#define REPLAY_ROWS_MIN 4096u
#define REPLAY_ROWS_FIRST_MAX (1u << 22)
#define REPLAY_ROWS_MAX (1u << 28)

/* Bounds for the tables of connections, in the units of the settings: at first up to 256 MB, plus 100 MB for flows. The
 * maximum is 1 GB, and all the flows that a connection can refer to. It exceeds the maximum for a running weir: there a
 * single count could outgrow its word, but only after sets are full, and by then a replay has failed.
 */
#define REPLAY_CONNECTIONS_MIN 4096u
#define REPLAY_CONNECTIONS_FIRST_MAX (1u << 22)
#define REPLAY_CONNECTIONS_MAX (1u << 24)
#define REPLAY_CONNECTION_FLOWS_MIN 256u
#define REPLAY_CONNECTION_FLOWS_FIRST_MAX (1u << 17)
#define REPLAY_CONNECTION_FLOWS_MAX (WEIR_CONNECTION_FLOW_SETS_MAX * WEIR_CONNECTION_FLOWS_PER_SET)

/* Groups of requests that a circuit breaker can distinguish: 24 bytes each, in a ring for every slot of the table. */
#define REPLAY_GROUPS_FIRST 32u
#define REPLAY_GROUPS_MAX (1u << WEIR_RING_SHIFT_MAX)

/* Count the rules that concern connections, or those that do not; with has_key only those with a flow key. */
static size_t count_rules(const struct weir_ruleset *ruleset, bool counts_connections, bool has_key)
{
	size_t i, count = 0;

	for (i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];
		const bool is_about_connections = /* it counts these, or their openings */
			rule->metric == WEIR_METRIC_CONCURRENCY || rule->metric == WEIR_METRIC_REQUESTS;

		if (is_about_connections == counts_connections)
			count += !has_key || weir_flow_of(ruleset, rule)->fields;
	}
	return count;
}

static uint32_t power_within(uint64_t wanted, uint32_t least, uint32_t most)
{
	uint32_t power = least;

	while (power < wanted && power < most)
		power *= 2;
	return power;
}

struct weir_replay_sizes weir_replay_first_sizes(const struct weir_ruleset *ruleset, uint64_t packets)
{
	uint64_t keyed = count_rules(ruleset, true, true);
	uint64_t tracking = count_rules(ruleset, true, false) + weir_tracks_connections(ruleset);

	return (struct weir_replay_sizes){
		.rows = power_within(4 * packets * count_rules(ruleset, false, true), REPLAY_ROWS_MIN,
				     REPLAY_ROWS_FIRST_MAX),
		.connections =
			power_within(4 * packets * tracking, REPLAY_CONNECTIONS_MIN, REPLAY_CONNECTIONS_FIRST_MAX),
		.connection_flows = power_within(4 * packets * keyed, REPLAY_CONNECTION_FLOWS_MIN,
						 REPLAY_CONNECTION_FLOWS_FIRST_MAX),
		.ring_groups = REPLAY_GROUPS_FIRST,
	};
}

static uint32_t times_four(uint32_t size, uint32_t most)
{
	return size < most / 4 ? 4 * size : most;
}

int weir_replay_grow(struct weir_replay_sizes *sizes, const struct weir_replay_evictions *evictions,
		     struct weir_diag *diag)
{
	static const char *const hint = "replay a shorter part of the capture";

	if (evictions->flows && sizes->rows >= REPLAY_ROWS_MAX)
		return weir_diag_fail(diag, ENOMEM, hint,
				      "the capture keeps more flows alive than fit in a table of %u rows", sizes->rows);
	if (evictions->connections && sizes->connections >= REPLAY_CONNECTIONS_MAX &&
	    sizes->connection_flows >= REPLAY_CONNECTION_FLOWS_MAX)
		return weir_diag_fail(diag, ENOMEM, hint,
				      "the capture keeps more connections open than fit in the largest tables, for %u "
				      "connections of %u flows",
				      sizes->connections, sizes->connection_flows);
	if (evictions->shared_groups && sizes->ring_groups >= REPLAY_GROUPS_MAX)
		return weir_diag_fail(diag, ENOMEM, hint,
				      "more requests are pending at once than one circuit breaker can distinguish: %u",
				      sizes->ring_groups / 2);
	if (evictions->shared_groups)
		sizes->ring_groups = times_four(sizes->ring_groups, REPLAY_GROUPS_MAX);
	if (evictions->flows)
		sizes->rows = times_four(sizes->rows, REPLAY_ROWS_MAX);
	if (evictions->connections) {
		sizes->connections = times_four(sizes->connections, REPLAY_CONNECTIONS_MAX);
		sizes->connection_flows = times_four(sizes->connection_flows, REPLAY_CONNECTION_FLOWS_MAX);
	}
	return 0;
}
