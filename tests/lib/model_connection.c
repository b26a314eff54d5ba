// SPDX-License-Identifier: GPL-2.0-only
#include "model_connection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model_tuple.h"

/* ---- the list ---- */

enum state { NONE, HALF_OPEN, LEARNED, OPEN, OTHER, CLOSED, REFUSED, GHOST, STATES };

struct connection {
	struct model_key flow; /* it is counted in; names the rule, too */
	struct model_tuple tuple;
	enum state state;
	uint64_t received_ns;
	uint64_t opened_ns; /* the SYN of a half-open one */
};

/* What has happened, of a flow and of its rule. */
struct tally {
	struct model_key flow;
	struct model_connection_counts counts;
};

struct model_connections {
	const struct weir_ruleset *ruleset;
	struct connection *connection; /* none of them over, when last looked */
	size_t count;
	struct tally *flow;
	size_t flow_count;
	struct model_connection_counts *rule;
};

struct model_connections *model_connections_new(const struct weir_ruleset *ruleset)
{
	struct model_connections *connections = calloc(1, sizeof(*connections));

	assert(connections);
	connections->ruleset = ruleset;
	connections->rule = calloc(ruleset->rule_count + 1, sizeof(*connections->rule));
	assert(connections->rule);
	for (size_t i = 0; i < ruleset->rule_count; i++)
		connections->rule[i].handshake_us_min = UINT64_MAX;
	return connections;
}

void model_connections_free(struct model_connections *connections)
{
	if (!connections)
		return;
	free(connections->connection);
	free(connections->flow);
	free(connections->rule);
	free(connections);
}

static struct model_connection_counts *counts_of_flow(struct model_connections *connections,
						      const struct model_key *flow)
{
	struct tally *tally;

	for (size_t i = 0; i < connections->flow_count; i++)
		if (memcmp(&connections->flow[i].flow, flow, sizeof(*flow)) == 0)
			return &connections->flow[i].counts;
	connections->flow = reallocarray(connections->flow, connections->flow_count + 1, sizeof(*connections->flow));
	assert(connections->flow);
	tally = &connections->flow[connections->flow_count++];
	*tally = (struct tally){.flow = *flow, .counts = {.handshake_us_min = UINT64_MAX}};
	return &tally->counts;
}

/* ---- states and silence ---- */

static bool counts(enum state state)
{
	return state == HALF_OPEN || state == OPEN || state == OTHER;
}

static uint64_t timeout_ms(const struct weir_settings *settings, enum state state)
{
	switch (state) {
	case HALF_OPEN:
	case REFUSED:
		return settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF];
	case OPEN:
	case LEARNED:
		return settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_OPEN];
	case OTHER:
		return settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_OTHER];
	case CLOSED:
		return settings->connection_timeout_ms[WEIR_CONNECTION_CLASS_CLOSED];
	case GHOST:
	case NONE:
	case STATES:
		break;
	}
	assert(false);
	return 0;
}

static bool is_over(const struct model_connections *connections, const struct connection *connection, uint64_t now_ns)
{
	uint64_t timeout_ns, step_ns;

	if (connection->state == GHOST)
		return false;
	timeout_ns = timeout_ms(&connections->ruleset->settings, connection->state) * 1000000;
	step_ns = (timeout_ns + 5) / 6;
	assert(step_ns > 0 && connection->received_ns <= now_ns);
	return now_ns / step_ns - connection->received_ns / step_ns > 6;
}

/* What is over now is over for good, since time does not go back; of TCP that counted a ghost stays. */
static void sweep(struct model_connections *connections, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < connections->count; i++) {
		struct connection *connection = &connections->connection[i];
		bool is_gone = is_over(connections, connection, now_ns);

		if (is_gone && counts(connection->state)) {
			counts_of_flow(connections, &connection->flow)->closed_by_idle++;
			connections->rule[connection->flow.rule].closed_by_idle++;
			is_gone = connection->state == OTHER;
			connection->state = GHOST;
		}
		if (!is_gone)
			connections->connection[kept++] = *connection;
	}
	connections->count = kept;
}

static uint64_t open_in_flow(const struct model_connections *connections, const struct model_key *flow)
{
	uint64_t open = 0;

	for (size_t i = 0; i < connections->count; i++)
		open += counts(connections->connection[i].state) &&
			memcmp(&connections->connection[i].flow, flow, sizeof(*flow)) == 0;
	return open;
}

static uint64_t open_in_rule(const struct model_connections *connections, uint32_t rule)
{
	uint64_t open = 0;

	for (size_t i = 0; i < connections->count; i++)
		open += counts(connections->connection[i].state) && connections->connection[i].flow.rule == rule;
	return open;
}

/* ---- what a packet does ---- */

enum deed {
	NEVER, /* such a connection has no such packets */
	NOTHING,
	EVALUATE,
	REUSED,
	IS_LEARNED,
	RETURNS,
	TIMED, /* the handshake */
	CLOSED_BY_FIN,
	CLOSED_BY_RESET,
};

struct cell {
	enum deed deed;
	enum state next;
};

/* The table of the text, a column a line. */
static const struct cell cells[STATES][MODEL_EVENTS] = {
	[NONE] = {{EVALUATE, HALF_OPEN},
		  {IS_LEARNED, LEARNED},
		  {NOTHING, CLOSED},
		  {NOTHING, NONE},
		  {EVALUATE, OTHER},
		  {IS_LEARNED, LEARNED}},
	[HALF_OPEN] = {{NOTHING, HALF_OPEN},
		       {TIMED, OPEN},
		       {CLOSED_BY_FIN, CLOSED},
		       {CLOSED_BY_RESET, CLOSED},
		       [MODEL_ANSWERS] = {NOTHING, HALF_OPEN}},
	[LEARNED] = {{EVALUATE, HALF_OPEN},
		     {NOTHING, LEARNED},
		     {NOTHING, CLOSED},
		     {NOTHING, CLOSED},
		     [MODEL_ANSWERS] = {NOTHING, LEARNED}},
	[OPEN] = {{REUSED, HALF_OPEN},
		  {NOTHING, OPEN},
		  {CLOSED_BY_FIN, CLOSED},
		  {CLOSED_BY_RESET, CLOSED},
		  [MODEL_ANSWERS] = {NOTHING, OPEN}},
	[OTHER] = {[MODEL_NOT_TCP] = {NOTHING, OTHER}},
	[CLOSED] = {{EVALUATE, HALF_OPEN},
		    {NOTHING, CLOSED},
		    {NOTHING, CLOSED},
		    {NOTHING, CLOSED},
		    [MODEL_ANSWERS] = {NOTHING, CLOSED}},
	[REFUSED] = {{EVALUATE, HALF_OPEN},
		     {NOTHING, REFUSED},
		     {NOTHING, CLOSED},
		     {NOTHING, CLOSED},
		     [MODEL_ANSWERS] = {NOTHING, REFUSED}},
	[GHOST] = {{EVALUATE, HALF_OPEN},
		   {RETURNS, OPEN},
		   {NOTHING, CLOSED},
		   {NOTHING, GHOST},
		   [MODEL_ANSWERS] = {IS_LEARNED, LEARNED}},
};

static bool is_in_flow(const struct connection *connection, const struct model_key *flow)
{
	return memcmp(&connection->flow, flow, sizeof(*flow)) == 0;
}

/* A connection is one, whichever way its packets go and whichever flow they name then: by its addresses, ports and
 * protocol, and by what else the key has.
 */
static bool is_of_connection(const struct connection *connection, const struct model_key *flow,
			     const struct model_tuple *tuple)
{
	return memcmp(&connection->tuple, tuple, sizeof(*tuple)) == 0 && connection->flow.rule == flow->rule &&
	       connection->flow.flow.vlan == flow->flow.vlan && connection->flow.flow.ifindex == flow->flow.ifindex &&
	       connection->flow.flow.dscp == flow->flow.dscp && connection->flow.flow.ttl == flow->flow.ttl;
}

static struct connection *find(const struct model_connections *connections, const struct model_key *flow,
			       const struct model_packet *packet)
{
	struct model_tuple tuple = model_tuple_of(packet);

	for (size_t i = 0; i < connections->count; i++) {
		struct connection *connection = &connections->connection[i];

		if (is_of_connection(connection, flow, &tuple))
			return connection;
	}
	return NULL;
}

static struct cell cell_of(const struct connection *connection, const struct model_packet *packet)
{
	struct cell cell = cells[connection ? connection->state : NONE][model_event_of(packet)];

	assert(cell.deed != NEVER);
	return cell;
}

bool model_connections_admit(struct model_connections *connections, const struct model_key *flow,
			     uint64_t threshold_micro, const struct model_packet *packet, uint64_t now_ns)
{
	const struct connection *connection;
	enum deed deed;
	uint64_t others;

	if (packet->fragment == WEIR_FRAGMENT_LATER)
		return true;
	sweep(connections, now_ns);
	connection = find(connections, flow, packet);
	deed = cell_of(connection, packet).deed;
	if (deed != EVALUATE && deed != REUSED)
		return true;
	others = open_in_flow(connections, flow) -
		 (connection && counts(connection->state) && is_in_flow(connection, flow));
	if (others + 1 <= threshold_micro / WEIR_MICRO)
		return true;
	counts_of_flow(connections, flow)->refused++;
	connections->rule[flow->rule].refused++;
	return false;
}

static struct connection *add(struct model_connections *connections, const struct model_key *flow,
			      const struct model_packet *packet)
{
	struct connection *connection;

	connections->connection =
		reallocarray(connections->connection, connections->count + 1, sizeof(*connections->connection));
	assert(connections->connection);
	connection = &connections->connection[connections->count++];
	*connection = (struct connection){.flow = *flow, .tuple = model_tuple_of(packet)};
	return connection;
}

static void count_handshake(struct model_connection_counts *counts, uint64_t us)
{
	size_t step = 0;

	while (step < MODEL_HANDSHAKE_STEPS - 1 && us >= 2ull << step)
		step++;
	counts->handshakes++;
	counts->handshake_us += us;
	counts->handshake_step[step]++;
	if (us < counts->handshake_us_min)
		counts->handshake_us_min = us;
}

static void count_deed(struct model_connection_counts *counts, enum deed deed, uint64_t handshake_us)
{
	counts->opened += deed == EVALUATE || deed == REUSED;
	counts->reused += deed == REUSED;
	counts->learned += deed == IS_LEARNED;
	counts->returned += deed == RETURNS;
	counts->closed_by_fin += deed == CLOSED_BY_FIN;
	counts->closed_by_reset += deed == CLOSED_BY_RESET;
	if (deed == TIMED)
		count_handshake(counts, handshake_us);
}

static void count_max(struct model_connections *connections, const struct model_key *flow)
{
	struct model_connection_counts *of_flow = counts_of_flow(connections, flow);
	struct model_connection_counts *of_rule = &connections->rule[flow->rule];
	uint64_t in_flow = open_in_flow(connections, flow), in_rule = open_in_rule(connections, flow->rule);

	if (in_flow > of_flow->max)
		of_flow->max = in_flow;
	if (in_rule > of_rule->max)
		of_rule->max = in_rule;
}

void model_connections_pass(struct model_connections *connections, const struct model_key *flow,
			    const struct model_packet *packet, bool is_refused, uint64_t now_ns)
{
	struct connection *connection;
	uint64_t handshake_us = 0;
	struct cell cell;

	if (packet->fragment == WEIR_FRAGMENT_LATER || packet->closes_nothing)
		return;
	sweep(connections, now_ns);
	connection = find(connections, flow, packet);
	cell = cell_of(connection, packet);
	if (is_refused && connection && counts(connection->state))
		return;
	if (is_refused)
		cell = (struct cell){NOTHING, cell.next == OTHER ? NONE : REFUSED};
	if (!connection && cell.next == NONE)
		return;
	if (!connection)
		connection = add(connections, flow, packet);
	/* In another flow it is a new one, and the figures take the old one for silent. */
	if (cell.deed == REUSED && !is_in_flow(connection, flow)) {
		counts_of_flow(connections, &connection->flow)->closed_by_idle++;
		connections->rule[flow->rule].closed_by_idle++;
		cell.deed = EVALUATE;
	}
	if (cell.deed == TIMED)
		handshake_us = now_ns / 1000 - connection->opened_ns / 1000;
	if (cell.deed == EVALUATE || cell.deed == REUSED)
		connection->opened_ns = now_ns;
	/* Of the flow whose packet opened it, or found it again. */
	if (cell.deed == EVALUATE || cell.deed == REUSED || cell.deed == RETURNS)
		connection->flow = *flow;
	if (connection->state != CLOSED || cell.next != CLOSED)
		connection->received_ns = now_ns;
	connection->state = cell.next;
	count_deed(counts_of_flow(connections, flow), cell.deed, handshake_us);
	count_deed(&connections->rule[flow->rule], cell.deed, handshake_us);
	count_max(connections, flow);
}

/* ---- what is counted ---- */

struct model_connection_counts model_connections_of_flow(struct model_connections *connections,
							 const struct model_key *flow, uint64_t now_ns)
{
	struct model_connection_counts counts;

	sweep(connections, now_ns);
	counts = *counts_of_flow(connections, flow);
	counts.now = open_in_flow(connections, flow);
	return counts;
}

struct model_connection_counts model_connections_of_rule(struct model_connections *connections, uint32_t rule,
							 uint64_t now_ns)
{
	struct model_connection_counts counts;

	sweep(connections, now_ns);
	counts = connections->rule[rule];
	counts.now = open_in_rule(connections, rule);
	return counts;
}

size_t model_connections_flows(const struct model_connections *connections)
{
	return connections->flow_count;
}

const struct model_key *model_connections_flow(const struct model_connections *connections, size_t place)
{
	return &connections->flow[place].flow;
}
