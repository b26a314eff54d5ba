// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reference model's connections against docs/connections.md, worked out by hand: each cell of its table, each
 * kind of silence to the nanosecond, what is evaluated and what is counted.
 */
#include <string.h>

#include "../lib/claims.h"
#include "../lib/model.h"
#include "../lib/packets.h"
#include "base/util.h"

#define US 1000ull
#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC
#define START (1200 * SECOND) /* an edge of every step below */

#define HOST "192.0.2.1"
#define OTHER_HOST "192.0.2.2"
#define SERVER "192.0.2.80"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/* One resource that takes everything, keyed by source, and its rules. */
struct setup {
	struct weir_ruleset ruleset;
	struct weir_ruleset_resource resource;
	struct weir_ruleset_rule rule[3];
	struct model *model;
	struct model_decision last;
	uint8_t frame[PACKET_BYTES_MAX];
};

static void begin_with(struct setup *setup)
{
	memset(setup, 0, sizeof(*setup));
	setup->resource.name = "all";
	setup->resource.flow = (struct weir_flow){.fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}};
	setup->ruleset.resources = &setup->resource;
	setup->ruleset.resource_count = 1;
	setup->ruleset.rules = setup->rule;
	/* steps of 1 s, 10 s, 2 s and 0.5 s */
	setup->ruleset.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 6000;
	setup->ruleset.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_OPEN] = 60000;
	setup->ruleset.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_OTHER] = 12000;
	setup->ruleset.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_CLOSED] = 3000;
}

static int begin(void **state)
{
	static struct setup setup;

	begin_with(&setup);
	*state = &setup;
	return 0;
}

static int end(void **state)
{
	struct setup *setup = *state;

	model_free(setup->model);
	return 0;
}

#define SETUP_CLAIM(what) CLAIM_ABOUT(what, struct setup *setup, begin, end)

static struct weir_ruleset_rule *add_rule(struct setup *setup, enum weir_metric metric, uint64_t threshold_micro)
{
	static char *const names[] = {"rule-0", "rule-1", "rule-2"};
	struct weir_ruleset_rule *rule = &setup->rule[setup->ruleset.rule_count];

	*rule = (struct weir_ruleset_rule){
		.name = names[setup->ruleset.rule_count++],
		.metric = metric,
		.threshold_micro = threshold_micro,
		.interval_ns = SECOND,
		.samples = 10,
		.ref_resource = WEIR_NO_RESOURCE,
	};
	return rule;
}

static struct weir_ruleset_rule *add_limit(struct setup *setup, uint64_t threshold)
{
	return add_rule(setup, WEIR_METRIC_CONCURRENCY, threshold * WEIR_MICRO);
}

/* Returns whether it passed. */
static bool send_packet(struct setup *setup, const struct packet_spec *spec, uint64_t time_ns)
{
	size_t frame_bytes = packet_build(spec, setup->frame);

	if (!setup->model)
		setup->model = model_new(&setup->ruleset, NULL);
	setup->last = model_evaluate(setup->model, time_ns, setup->frame, frame_bytes, 0);
	return setup->last.verdict == WEIR_VERDICT_PASS;
}

static struct packet_spec tcp_of(const char *source, uint16_t port, uint8_t flags)
{
	struct packet_spec spec = packet_udp(source, port, strchr(source, ':') ? "2001:db8::80" : SERVER, 80, 18);

	spec.protocol = 6;
	spec.tcp_flags = flags;
	return spec;
}

static bool tcp_from(struct setup *setup, const char *source, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	struct packet_spec spec = tcp_of(source, port, flags);

	return send_packet(setup, &spec, time_ns);
}

static bool tcp(struct setup *setup, uint16_t port, uint8_t flags, uint64_t time_ns)
{
	return tcp_from(setup, HOST, port, flags, time_ns);
}

static bool udp(struct setup *setup, uint16_t port, uint64_t time_ns)
{
	struct packet_spec spec = packet_udp(HOST, port, SERVER, 53, 18);

	return send_packet(setup, &spec, time_ns);
}

/* What the first rule counts now; time moves by packets that are not IP. */
static struct model_connection_counts counts_at(struct setup *setup, uint64_t time_ns)
{
	struct packet_spec spec = packet_udp(HOST, 1, SERVER, 53, 18);

	spec.ethertype = ETHERTYPE_ARP;
	send_packet(setup, &spec, time_ns);
	return model_connections(setup->model, 0);
}

static struct model_connection_counts counts_now(struct setup *setup)
{
	return model_connections(setup->model, 0);
}

/* ---- the table ---- */

/*
 * A history, a packet a millisecond: S opens, A talks, F finishes, R resets, U is not TCP. Small letters are packets of
 * a second connection of the same source.
 */
static bool play_packet(struct setup *setup, char packet, uint64_t time_ns)
{
	uint16_t port = packet >= 'a' ? 2 : 1;

	switch (packet) {
	case 'S':
	case 's':
		return tcp(setup, port, SYN, time_ns);
	case 'A':
	case 'a':
		return tcp(setup, port, ACK, time_ns);
	case 'F':
	case 'f':
		return tcp(setup, port, FIN | ACK, time_ns);
	case 'R':
	case 'r':
		return tcp(setup, port, RST, time_ns);
	}
	assert_true(packet == 'U' || packet == 'u');
	return udp(setup, port, time_ns);
}

/*
 * A history, under a limit of `threshold`; its last packet is the one that a cell of the table is about. What is left
 * out is 0 or false.
 */
struct cell {
	const char *packets;
	const char *state; /* after it, of the first connection */
	bool observes, drops;
	unsigned int threshold;
	/* of both connections */
	unsigned int opened, learned, refused, by_fin, by_reset, reused, handshakes;
};

/* "sSrS" under an observing limit: the second is refused while the other is open, and evaluated again when it is gone.
 */
static const struct cell cells[] = {
	/* an opening */
	{.packets = "S", .state = "half-open", .threshold = 1, .opened = 1},
	{.packets = "S", .state = "none", .drops = true, .refused = 1},
	{.packets = "S", .state = "refused", .observes = true, .refused = 1},
	{.packets = "SS", .state = "half-open", .threshold = 1, .opened = 1},
	{.packets = "AS", .state = "half-open", .threshold = 1, .opened = 1, .learned = 1},
	{.packets = "AS", .state = "learned", .drops = true, .learned = 1, .refused = 1},
	{.packets = "AS", .state = "refused", .observes = true, .learned = 1, .refused = 1},
	{.packets = "aAAS", .state = "half-open", .threshold = 1, .opened = 1, .learned = 2},
	{.packets = "SAS", .state = "half-open", .threshold = 1, .opened = 2, .reused = 1, .handshakes = 1},
	{.packets = "FS", .state = "half-open", .threshold = 1, .opened = 1},
	{.packets = "FS", .state = "closed", .drops = true, .refused = 1},
	{.packets = "FS", .state = "refused", .observes = true, .refused = 1},
	{.packets = "sSrS",
	 .state = "half-open",
	 .observes = true,
	 .threshold = 1,
	 .opened = 2,
	 .refused = 1,
	 .by_reset = 1},
	{.packets = "SS", .state = "refused", .observes = true, .refused = 2},
	/* one that talks */
	{.packets = "A", .state = "learned", .learned = 1},
	{.packets = "SA", .state = "open", .threshold = 1, .opened = 1, .handshakes = 1},
	{.packets = "AA", .state = "learned", .learned = 1},
	{.packets = "AAA", .state = "learned", .learned = 1},
	{.packets = "SAA", .state = "open", .threshold = 1, .opened = 1, .handshakes = 1},
	{.packets = "FA", .state = "closed"},
	{.packets = "SA", .state = "refused", .observes = true, .refused = 1},
	/* one that finishes */
	{.packets = "F", .state = "closed"},
	{.packets = "SF", .state = "closed", .threshold = 1, .opened = 1, .by_fin = 1},
	{.packets = "AF", .state = "closed", .learned = 1},
	{.packets = "SAF", .state = "closed", .threshold = 1, .opened = 1, .by_fin = 1, .handshakes = 1},
	{.packets = "FF", .state = "closed"},
	{.packets = "SF", .state = "closed", .observes = true, .refused = 1},
	/* one that resets */
	{.packets = "R", .state = "none"},
	{.packets = "SR", .state = "closed", .threshold = 1, .opened = 1, .by_reset = 1},
	{.packets = "AR", .state = "closed", .learned = 1},
	{.packets = "SAR", .state = "closed", .threshold = 1, .opened = 1, .by_reset = 1, .handshakes = 1},
	{.packets = "FR", .state = "closed"},
	{.packets = "SR", .state = "closed", .observes = true, .refused = 1},
	/* not TCP */
	{.packets = "U", .state = "other", .threshold = 1, .opened = 1},
	{.packets = "U", .state = "none", .drops = true, .refused = 1},
	{.packets = "U", .state = "none", .observes = true, .refused = 1},
	{.packets = "UU", .state = "other", .threshold = 1, .opened = 1},
	{.packets = "UU", .state = "none", .observes = true, .refused = 2},
};

/* Plays it in a setup of its own. Returns when the last packet came, and whether it passed. */
static uint64_t play(struct setup *setup, const struct cell *cell, bool *ret_passed)
{
	uint64_t time_ns = START;
	const char *packet;

	begin_with(setup);
	add_limit(setup, cell->threshold)->observes = cell->observes;
	for (packet = cell->packets; *packet; packet++) {
		time_ns += MS;
		*ret_passed = play_packet(setup, *packet, time_ns);
	}
	return time_ns;
}

static struct model_connection_counts counts_after(const struct cell *cell)
{
	static struct setup setup;
	struct model_connection_counts counts;
	bool passed = false;

	play(&setup, cell, &passed);
	counts = counts_now(&setup);
	model_free(setup.model);
	return counts;
}

static bool passes(const struct cell *cell)
{
	static struct setup setup;
	bool passed = false;

	play(&setup, cell, &passed);
	model_free(setup.model);
	return passed;
}

/* How many are learned, or handshakes timed, when the connection talks so long after its history. */
static struct model_connection_counts talks_after(const struct cell *cell, uint64_t silence_ns)
{
	static struct setup setup;
	struct model_connection_counts counts;
	bool passed;
	uint64_t time_ns = play(&setup, cell, &passed);

	assert_true(play_packet(&setup, 'A', time_ns + silence_ns));
	counts = counts_now(&setup);
	model_free(setup.model);
	return counts;
}

static uint64_t now_after(const struct cell *cell, uint64_t silence_ns)
{
	static struct setup setup;
	struct model_connection_counts counts;
	bool passed;
	uint64_t time_ns = play(&setup, cell, &passed);

	counts = counts_at(&setup, time_ns + silence_ns);
	model_free(setup.model);
	return counts.now;
}

/* Seen from outside, by what would come next; for a history that leaves the other connection none. */
static const char *state_after(const struct cell *cell)
{
	struct model_connection_counts counts = counts_after(cell);

	if (counts.now)
		return now_after(cell, 20 * SECOND) ? "open" : now_after(cell, 8 * SECOND) ? "other" : "half-open";
	if (talks_after(cell, MS).learned > counts.learned)
		return "none";
	if (talks_after(cell, 4 * SECOND).learned > counts.learned)
		return "closed";
	return talks_after(cell, 8 * SECOND).learned > counts.learned ? "refused" : "learned";
}

SETUP_CLAIM(every_cell_of_the_table_does_what_it_says)
{
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		const struct cell *cell = &cells[i];
		struct model_connection_counts counts = counts_after(cell);

		if (strcmp(state_after(cell), cell->state) == 0 && passes(cell) == !cell->drops &&
		    counts.opened == cell->opened && counts.learned == cell->learned &&
		    counts.refused == cell->refused && counts.closed_by_fin == cell->by_fin &&
		    counts.closed_by_reset == cell->by_reset && counts.reused == cell->reused &&
		    counts.handshakes == cell->handshakes)
			continue;
		fail_msg("%s, threshold %u: %s, %u opened, %u learned, %u refused, %u by FIN, %u by RST, %u reused",
			 cell->packets, cell->threshold, state_after(cell), (unsigned int)counts.opened,
			 (unsigned int)counts.learned, (unsigned int)counts.refused, (unsigned int)counts.closed_by_fin,
			 (unsigned int)counts.closed_by_reset, (unsigned int)counts.reused);
	}
}

/* Which event a TCP packet is: RST before FIN before the rest; urgent, push and congestion bits say nothing. */
SETUP_CLAIM(flags_are_read_in_the_order_of_the_text)
{
	static const struct {
		uint8_t flags;
		const char *state;
	} claims[] = {
		{SYN, "half-open"},
		{SYN | 0xc0, "half-open"},
		{SYN | 0x28, "half-open"},
		{SYN | ACK, "learned"},
		{ACK, "learned"},
		{0, "learned"},
		{0x28, "learned"},
		{SYN | FIN, "closed"},
		{FIN, "closed"},
		{FIN | SYN | ACK, "closed"},
		{SYN | RST, "none"},
		{FIN | RST | SYN, "none"},
		{0xff, "none"},
		{RST | ACK, "none"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		struct model_connection_counts counts;
		const char *found;

		begin_with(setup);
		add_limit(setup, 1);
		assert_true(tcp(setup, 1, claims[i].flags, START));
		counts = counts_now(setup);
		assert_true(tcp(setup, 1, ACK, START + MS));
		found = counts.opened		    ? "half-open"
			: counts.learned	    ? "learned"
			: counts_now(setup).learned ? "none"
						    : "closed";
		assert_string_equal(found, claims[i].state);
		model_free(setup->model);
	}
	setup->model = NULL;
}

/* ---- evaluated ---- */

SETUP_CLAIM(a_source_opens_as_many_as_the_threshold_and_others_their_own)
{
	add_limit(setup, 3);
	for (uint16_t port = 1; port <= 5; port++)
		assert_int_equal(tcp(setup, port, SYN, START), port <= 3);
	assert_string_equal(setup->last.rule, "rule-0");
	assert_true(tcp_from(setup, OTHER_HOST, 1, SYN, START));
	/* one goes, one comes */
	assert_true(tcp(setup, 2, FIN | ACK, START));
	assert_true(tcp(setup, 4, SYN, START));
	assert_false(tcp(setup, 5, SYN, START));
	assert_int_equal(counts_now(setup).now, 4);
	assert_int_equal(counts_now(setup).max, 4);
	assert_int_equal(counts_now(setup).refused, 3);
}

SETUP_CLAIM(a_threshold_is_rounded_down)
{
	add_rule(setup, WEIR_METRIC_CONCURRENCY, 2900000);
	assert_true(tcp(setup, 1, SYN, START));
	assert_true(tcp(setup, 2, SYN, START));
	assert_false(tcp(setup, 3, SYN, START));
	setup->rule[0].threshold_micro = 999999;
	assert_false(tcp_from(setup, OTHER_HOST, 1, SYN, START));
}

/* Whoever forges packets of A's address does not shut A out. */
SETUP_CLAIM(connections_without_an_opening_pass_and_take_no_slot)
{
	add_limit(setup, 2);
	for (uint16_t port = 1; port <= 9; port++)
		assert_true(tcp(setup, port, ACK, START) && tcp(setup, port, ACK, START));
	assert_int_equal(counts_now(setup).now, 0);
	assert_int_equal(counts_now(setup).learned, 9);
	assert_true(tcp(setup, 10, SYN, START) && tcp(setup, 11, SYN, START));
	assert_false(tcp(setup, 12, SYN, START));
	/* the client continues in spite of it: learned */
	assert_true(tcp(setup, 12, ACK, START));
	assert_int_equal(counts_now(setup).now, 2);
	assert_int_equal(counts_now(setup).learned, 10);
}

/* Else silence would open the limit: as many again would open, and the first ones talk once more. */
SETUP_CLAIM(what_was_counted_counts_again_when_it_talks_after_its_silence)
{
	const uint64_t later = START + 1000 * SECOND;

	add_limit(setup, 2);
	assert_true(tcp(setup, 1, SYN, START) && tcp(setup, 1, ACK, START));
	assert_true(tcp(setup, 2, SYN, START));
	assert_int_equal(counts_at(setup, later).now, 0);
	for (uint16_t port = 3; port <= 4; port++)
		assert_true(tcp(setup, port, SYN, later));
	assert_true(tcp(setup, 1, RST, later)); /* of a connection that is none: it changes nothing */
	assert_true(tcp(setup, 1, ACK, later) && tcp(setup, 2, ACK, later));
	assert_int_equal(counts_now(setup).now, 4);
	assert_int_equal(counts_now(setup).returned, 2);
	assert_int_equal(counts_now(setup).learned, 0);
	assert_int_equal(counts_now(setup).handshakes, 1);
	/* an opening of one is evaluated, and what has finished is forgotten */
	assert_int_equal(counts_at(setup, 2 * later).now, 0);
	assert_true(tcp(setup, 1, SYN, 2 * later) && tcp(setup, 5, SYN, 2 * later));
	assert_false(tcp(setup, 3, SYN, 2 * later));
	assert_true(tcp(setup, 2, FIN, 2 * later));
	assert_true(tcp(setup, 2, ACK, 3 * later));
	assert_int_equal(counts_now(setup).returned, 2);
	assert_int_equal(counts_now(setup).learned, 1);
}

SETUP_CLAIM(without_a_key_the_whole_resource_shares_one_count)
{
	setup->resource.flow = (struct weir_flow){};
	add_limit(setup, 2);
	assert_true(tcp(setup, 1, SYN, START));
	assert_true(tcp_from(setup, "2001:db8::1", 1, SYN, START));
	assert_false(tcp_from(setup, OTHER_HOST, 1, SYN, START));
}

/* 32.1.13.184 is 2001:db8::'s first four bytes. */
SETUP_CLAIM(connections_of_ipv4_and_ipv6_are_never_the_same)
{
	struct packet_spec spec = tcp_of("2001:db8::", 1, SYN);

	setup->resource.flow = (struct weir_flow){};
	add_limit(setup, 2);
	packet_destination(&spec, "2001:db8::");
	assert_true(send_packet(setup, &spec, START));
	spec = tcp_of("32.1.13.184", 1, SYN);
	packet_destination(&spec, "32.1.13.184");
	assert_true(send_packet(setup, &spec, START));
	assert_int_equal(counts_now(setup).opened, 2);
}

SETUP_CLAIM(every_part_of_the_tuple_separates_connections)
{
	struct packet_spec spec = tcp_of(HOST, 1, SYN);

	add_limit(setup, 9);
	send_packet(setup, &spec, START);
	spec.source_port = 2;
	send_packet(setup, &spec, START);
	spec.destination_port = 81;
	send_packet(setup, &spec, START);
	packet_destination(&spec, "192.0.2.81");
	send_packet(setup, &spec, START);
	spec.protocol = 17;
	send_packet(setup, &spec, START);
	spec.protocol = 132;
	send_packet(setup, &spec, START);
	assert_int_equal(counts_now(setup).opened, 6);
	/* these have no ports, whatever their first bytes */
	spec.protocol = 1;
	send_packet(setup, &spec, START);
	spec.icmp_type = 8;
	send_packet(setup, &spec, START);
	assert_int_equal(counts_now(setup).opened, 7);
	/* nor is the VLAN a part of it, unless the flow key has it */
	spec.tag_count = 1;
	spec.tag[0] = (struct packet_tag){ETHERTYPE_VLAN, 7};
	send_packet(setup, &spec, START);
	assert_int_equal(counts_now(setup).opened, 7);
}

SETUP_CLAIM(a_key_with_the_vlan_separates_connections_by_it)
{
	struct packet_spec spec = tcp_of(HOST, 1, SYN);

	setup->resource.flow = (struct weir_flow){.fields = WEIR_KEY_VLAN};
	add_limit(setup, 1);
	assert_true(send_packet(setup, &spec, START));
	spec.tag_count = 1;
	spec.tag[0] = (struct packet_tag){ETHERTYPE_VLAN, 7};
	assert_true(send_packet(setup, &spec, START));
	assert_int_equal(counts_now(setup).opened, 2);
	/* what ends one leaves the other */
	spec.tcp_flags = RST;
	assert_true(send_packet(setup, &spec, START));
	assert_false(tcp(setup, 2, SYN, START));
	assert_int_equal(counts_now(setup).now, 1);
}

SETUP_CLAIM(a_later_fragment_belongs_to_no_connection)
{
	struct packet_spec spec = packet_udp(HOST, 1, SERVER, 53, 18);

	add_limit(setup, 0);
	spec.fragment_units = 100;
	assert_true(send_packet(setup, &spec, START));
	spec.fragment_units = 0;
	spec.more_fragments = true;
	assert_false(send_packet(setup, &spec, START));
	assert_int_equal(counts_now(setup).refused, 1);
}

SETUP_CLAIM(an_override_is_the_limit_of_its_flows)
{
	struct weir_override overrides[] = {
		{.prefix = {4, 24, {192, 0, 2}}, .threshold_micro = 2 * WEIR_MICRO},
		{.prefix = {4, 32, {192, 0, 2, 2}}, .threshold_micro = 0},
	};
	struct weir_ruleset_rule *rule = add_limit(setup, 1);

	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = overrides;
	rule->override_count = ARRAY_SIZE(overrides);
	assert_true(tcp(setup, 1, SYN, START));
	assert_true(tcp(setup, 2, SYN, START));
	assert_false(tcp(setup, 3, SYN, START));
	assert_false(tcp_from(setup, OTHER_HOST, 1, SYN, START));
	assert_true(tcp_from(setup, "192.0.3.1", 1, SYN, START));
	assert_false(tcp_from(setup, "192.0.3.1", 2, SYN, START));
}

/* ---- with other rules ---- */

SETUP_CLAIM(a_packet_that_another_rule_blocks_does_nothing)
{
	add_limit(setup, 2);
	add_rule(setup, WEIR_METRIC_RATE, 1 * WEIR_MICRO);
	assert_true(tcp(setup, 1, SYN, START));
	assert_false(tcp(setup, 2, SYN, START));
	assert_string_equal(setup->last.rule, "rule-1");
	assert_false(tcp(setup, 1, RST, START));
	assert_int_equal(counts_now(setup).now, 1);
	assert_int_equal(counts_now(setup).opened, 1);
	/* nor does it end the silence: heard at START, over at START + 7 s */
	assert_true(tcp_from(setup, HOST, 1, ACK, START + SECOND));
	assert_false(tcp_from(setup, HOST, 1, ACK, START + 2 * SECOND - 1));
	setup->rule[1].threshold_micro = 0;
	assert_false(tcp_from(setup, HOST, 1, ACK, START + 60 * SECOND));
	assert_int_equal(counts_at(setup, START + 70 * SECOND - 1).now, 1);
	assert_int_equal(counts_at(setup, START + 70 * SECOND).now, 0);
}

SETUP_CLAIM(what_is_refused_is_in_no_window_and_the_first_that_blocks_names_it)
{
	add_rule(setup, WEIR_METRIC_RATE, 2 * WEIR_MICRO);
	add_limit(setup, 1);
	add_limit(setup, 0);
	assert_false(tcp(setup, 1, SYN, START));
	assert_string_equal(setup->last.rule, "rule-2");
	setup->rule[2].threshold_micro = 5 * WEIR_MICRO;
	assert_true(tcp(setup, 1, SYN, START));
	assert_false(tcp(setup, 2, SYN, START));
	assert_string_equal(setup->last.rule, "rule-1");
	assert_true(tcp(setup, 1, ACK, START));
	assert_false(tcp(setup, 2, SYN, START));
	assert_string_equal(setup->last.rule, "rule-0");
	/* each rule has refused what it was asked about, and no more */
	assert_int_equal(model_connections(setup->model, 1).refused, 1);
	assert_int_equal(model_connections(setup->model, 2).refused, 1);
}

SETUP_CLAIM(two_limits_on_a_packet_keep_a_list_each)
{
	add_limit(setup, 9);
	add_limit(setup, 1)->observes = true;
	assert_true(tcp(setup, 1, SYN, START));
	assert_true(tcp(setup, 2, SYN, START));
	assert_int_equal(model_connections(setup->model, 0).now, 2);
	assert_int_equal(model_connections(setup->model, 1).now, 1);
	assert_int_equal(model_would_drop(setup->model, 1), 1);
}

SETUP_CLAIM(an_observed_refusal_that_a_later_rule_blocks_is_counted_and_not_remembered)
{
	add_limit(setup, 0)->observes = true;
	add_rule(setup, WEIR_METRIC_RATE, 0);
	assert_false(tcp(setup, 1, SYN, START));
	assert_int_equal(counts_now(setup).refused, 1);
	setup->rule[1].threshold_micro = WEIR_MICRO;
	assert_true(tcp(setup, 1, ACK, START));
	assert_int_equal(counts_now(setup).learned, 1);
}

/* ---- silence ---- */

/* The last packet of the history at an edge of a step, and at the last nanosecond of one: both end at the same time. */
static void ends_in_the_seventh_step(struct setup *setup, const char *history, uint64_t step_ns)
{
	uint64_t received_ns[] = {START + step_ns, START + 2 * step_ns - 1}, over_ns = START + 8 * step_ns;

	for (size_t i = 0; i < ARRAY_SIZE(received_ns); i++) {
		const char *packet;

		begin_with(setup);
		add_limit(setup, 1);
		for (packet = history; *packet; packet++)
			play_packet(setup, *packet, received_ns[i]);
		assert_int_equal(counts_at(setup, over_ns - 1).now, 1);
		assert_int_equal(counts_at(setup, over_ns).now, 0);
		assert_int_equal(counts_now(setup).closed_by_idle, 1);
		model_free(setup->model);
	}
	setup->model = NULL;
}

SETUP_CLAIM(silence_ends_a_connection_in_the_seventh_step)
{
	ends_in_the_seventh_step(setup, "S", SECOND);
	ends_in_the_seventh_step(setup, "SA", 10 * SECOND);
	ends_in_the_seventh_step(setup, "SAS", SECOND);
	ends_in_the_seventh_step(setup, "U", 2 * SECOND);
	ends_in_the_seventh_step(setup, "UU", 2 * SECOND);
}

/* 10 s are six steps of 1,666,666,667 ns, not of ...666. */
SETUP_CLAIM(a_step_is_rounded_up)
{
	const uint64_t step_ns = 1666666667;

	setup->ruleset.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 10000;
	add_limit(setup, 1);
	assert_true(tcp(setup, 1, SYN, 600 * step_ns));
	assert_int_equal(counts_at(setup, 607 * step_ns - 1).now, 1);
	assert_int_equal(counts_at(setup, 607 * step_ns).now, 0);
}

SETUP_CLAIM(every_packet_ends_the_silence_but_of_a_closed_connection)
{
	add_limit(setup, 1);
	/* half-open: each of these five would have been over without the one before */
	for (int i = 0; i < 5; i++)
		assert_true(tcp(setup, 1, SYN, START + i * 6 * SECOND));
	assert_int_equal(counts_now(setup).opened, 1);
	/* closed at START + 24 s: it talks all the time, and is learned when 3.5 s are over; learned ones last, too */
	assert_true(tcp(setup, 1, FIN, START + 24 * SECOND));
	for (int i = 0; i < 7; i++)
		assert_true(tcp(setup, 1, i == 3 ? FIN : i == 5 ? RST : ACK, START + 24 * SECOND + i * 500 * MS));
	assert_true(tcp(setup, 1, ACK, START + 27 * SECOND + 500 * MS - 1));
	assert_int_equal(counts_now(setup).learned, 0);
	assert_true(tcp(setup, 1, ACK, START + 27 * SECOND + 500 * MS));
	assert_int_equal(counts_now(setup).learned, 1);
	assert_true(tcp(setup, 1, ACK, START + 80 * SECOND) && tcp(setup, 1, ACK, START + 140 * SECOND));
	assert_int_equal(counts_now(setup).learned, 1);
	assert_true(tcp(setup, 1, ACK, START + 210 * SECOND));
	assert_int_equal(counts_now(setup).learned, 2);
}

SETUP_CLAIM(a_refused_connection_is_refused_as_long_as_it_talks)
{
	add_limit(setup, 0)->observes = true;
	for (int i = 0; i < 5; i++)
		assert_true(tcp(setup, 1, i ? ACK : SYN, START + i * 6 * SECOND));
	assert_int_equal(counts_now(setup).learned, 0);
	assert_true(tcp(setup, 1, ACK, START + 31 * SECOND));
	assert_int_equal(counts_now(setup).learned, 1);
}

/* A refused opening of a closed connection changes nothing: it is closed from its FIN on, as before. */
SETUP_CLAIM(what_is_refused_ends_no_silence)
{
	add_limit(setup, 0);
	assert_true(tcp(setup, 1, FIN, START));
	assert_false(tcp(setup, 1, SYN, START + 3 * SECOND));
	assert_true(tcp(setup, 1, ACK, START + 3500 * MS - 1));
	assert_int_equal(counts_now(setup).learned, 0);
	assert_true(tcp(setup, 1, ACK, START + 3500 * MS));
	assert_int_equal(counts_now(setup).learned, 1);
}

SETUP_CLAIM(time_does_not_go_back)
{
	add_limit(setup, 1);
	assert_true(tcp(setup, 1, SYN, START + 10 * SECOND));
	/* comes at START + 10 s: the handshake took no time, and the silence begins there */
	assert_true(tcp(setup, 1, ACK, START));
	assert_int_equal(counts_now(setup).handshake_us, 0);
	assert_int_equal(counts_at(setup, START + 80 * SECOND - 1).now, 1);
	assert_int_equal(counts_at(setup, START + 80 * SECOND).now, 0);
	/* and what is over stays over */
	assert_true(tcp(setup, 2, SYN, START + 20 * SECOND));
	assert_int_equal(counts_now(setup).now, 1);
}

/* ---- what is counted ---- */

SETUP_CLAIM(handshakes_are_timed_in_whole_microseconds_from_the_first_syn)
{
	struct model_connection_counts counts;

	add_limit(setup, 9);
	assert_true(tcp(setup, 1, SYN, START + 1999));
	assert_true(tcp(setup, 1, SYN, START + 5 * US));
	assert_true(tcp(setup, 1, ACK, START + 7000));
	assert_true(tcp(setup, 1, ACK, START + 9000));
	/* 1999 and 2000 ns are a microsecond apart, 2000 and 2999 none */
	assert_true(tcp(setup, 2, SYN, START + 11999));
	assert_true(tcp(setup, 2, ACK, START + 12000));
	assert_true(tcp(setup, 3, SYN, START + 12000));
	assert_true(tcp(setup, 3, ACK, START + 12999));
	counts = counts_now(setup);
	assert_int_equal(counts.handshakes, 3);
	assert_int_equal(counts.handshake_us, 6 + 1 + 0);
	assert_int_equal(counts.handshake_us_min, 0);
	assert_int_equal(counts.handshake_step[0], 2);
	assert_int_equal(counts.handshake_step[2], 1);
}

SETUP_CLAIM(a_reused_connection_is_timed_from_its_start)
{
	add_limit(setup, 9);
	assert_true(tcp(setup, 1, SYN, START));
	assert_true(tcp(setup, 1, ACK, START + 90 * US));
	assert_true(tcp(setup, 1, SYN, START + SECOND));
	assert_true(tcp(setup, 1, ACK, START + SECOND + 50 * US));
	assert_int_equal(counts_now(setup).reused, 1);
	assert_int_equal(counts_now(setup).handshakes, 2);
	assert_int_equal(counts_now(setup).handshake_us_min, 50);
}

SETUP_CLAIM(steps_of_the_histogram_are_powers_of_two)
{
	static const struct {
		uint64_t us;
		unsigned int step;
	} claims[] = {
		{0, 0},	       {1, 0},	       {2, 1}, {3, 1}, {4, 2}, {1023, 9}, {1024, 10}, {(1 << 23) - 1, 22},
		{1 << 23, 23}, {60000000, 23},
	};

	setup->ruleset.settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 3600000;
	setup->resource.flow = (struct weir_flow){};
	add_limit(setup, 99);
	for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
		uint64_t before = setup->model ? counts_now(setup).handshake_step[claims[i].step] : 0;

		assert_true(tcp(setup, i, SYN, START + i * 100 * SECOND));
		assert_true(tcp(setup, i, ACK, START + i * 100 * SECOND + claims[i].us * US));
		assert_int_equal(counts_now(setup).handshake_step[claims[i].step], before + 1);
	}
}

SETUP_CLAIM(the_maximum_is_the_most_ever_open_of_a_flow_and_of_all)
{
	struct model_connection_counts first, second;

	add_limit(setup, 9);
	for (uint16_t port = 1; port <= 3; port++)
		assert_true(tcp(setup, port, SYN, START));
	assert_true(tcp(setup, 1, RST, START));
	assert_true(tcp_from(setup, OTHER_HOST, 1, SYN, START));
	assert_true(tcp_from(setup, OTHER_HOST, 2, SYN, START));
	assert_true(tcp_from(setup, OTHER_HOST, 3, ACK, START));
	assert_true(tcp(setup, 2, RST, START));
	assert_int_equal(model_flows_with_connections(setup->model), 2);
	first = model_flow_connections(setup->model, model_flow_with_connections(setup->model, 0));
	second = model_flow_connections(setup->model, model_flow_with_connections(setup->model, 1));
	assert_int_equal(first.max, 3);
	assert_int_equal(first.now, 1);
	assert_int_equal(second.max, 2);
	assert_int_equal(second.learned, 1);
	assert_int_equal(counts_now(setup).max, 4);
	assert_int_equal(counts_now(setup).now, 3);
}

/* Any traffic: a thousand packets of sixteen ports, with silences up to a minute. */
SETUP_CLAIM(every_new_connection_is_open_or_has_ended)
{
	static const uint8_t flags[] = {SYN, SYN, ACK, ACK, ACK, FIN, RST, SYN | ACK};
	struct model_connection_counts counts;
	uint64_t now_ns = START, noise = 1;

	add_limit(setup, 9);
	for (int i = 0; i < 1000; i++) {
		noise = noise * 6364136223846793005ull + 1442695040888963407ull;
		tcp(setup, noise >> 60, flags[noise >> 40 & 7], now_ns);
		now_ns += (noise >> 30 & 63) ? 100 * MS : (noise >> 20 & 63) * SECOND;
		counts = counts_now(setup);
		assert_int_equal(counts.opened + counts.returned, counts.now + counts.closed_by_fin +
									  counts.closed_by_reset +
									  counts.closed_by_idle + counts.reused);
	}
	assert_true(counts.closed_by_idle > 10 && counts.closed_by_fin > 10 && counts.closed_by_reset > 10);
	assert_true(counts.reused > 10 && counts.refused > 10 && counts.learned > 10 && counts.returned > 10);
}

RUN_CLAIMS(NULL, NULL)
