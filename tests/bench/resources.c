// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to find the resource that a packet belongs to, of many: resources alike but for one value, services of
 * customers, and kinds that ask about different fields. Each has a rule of its own, keyed by source; the packet
 * belongs to one of them, whose flow is over its limit. Last, packets that belong to another resource each time.
 * Measured as trial.h says.
 */
#include "parts.h"

#include <errno.h>
#include <jansson.h>

#include "base/util.h"
#include "trial.h"

#define ROUNDS 9
#define REPEAT 300000u
#define PORT 1

static const uint32_t counts[] = {1, 64, 1024, 4096};
_Static_assert(ARRAY_SIZE(counts) <= TRIAL_PROGRAMS_MAX, "all counts run in turns");

static const struct report_column columns[] = {
	{"resources", REPORT_WORDS}, {"1", 1}, {"64", 1}, {"1,024", 1}, {"4,096", 1}};

/* ---- what resource `i` asks for; number 0 has the packets of rig_frame(4, 1, PORT) ---- */

static void match_port(FILE *rules, uint32_t i)
{
	fprintf(rules, "protocol: udp, destinationPort: %u", PORT + i);
}

static void match_source(FILE *rules, uint32_t i)
{
	if (i)
		fprintf(rules, "protocol: udp, source: 10.%u.%u.0/24", i / 256, i % 256);
	else
		fprintf(rules, "protocol: udp, source: 192.0.2.0/24");
}

/* One of four services of a customer, who has a prefix. */
static void match_service(FILE *rules, uint32_t i)
{
	static const char *const services[] = {
		"protocol: udp, destinationPort: 1",
		"protocol: tcp, destinationPort: [80, 443]",
		"protocol: tcp, destinationPort: 22, tcpFlags: 'syn,!ack'",
		"protocol: udp, sourcePort: 123",
	};
	uint32_t customer = i / ARRAY_SIZE(services);

	fprintf(rules, "%s, ", services[i % ARRAY_SIZE(services)]);
	if (customer)
		fprintf(rules, "destination: 10.%u.%u.0/24", customer / 256, customer % 256);
	else
		fprintf(rules, "destination: 198.51.100.0/24");
}

/* Five kinds in turns, of which four are of other packets. */
static void match_mixed(FILE *rules, uint32_t i)
{
	uint32_t kind = i % 5, number = i / 5;

	if (kind == 0)
		match_source(rules, number);
	else if (kind == 1)
		fprintf(rules, "protocol: tcp, destinationPort: %u-%u", 8 * number + 1, 8 * number + 8);
	else if (kind == 2)
		fprintf(rules, "vlan: %u", 1 + number);
	else if (kind == 3)
		fprintf(rules, "protocol: icmp, icmpType: %u, length: %u-%u", number % 256, number / 256 * 100 + 64,
			number / 256 * 100 + 163);
	else
		fprintf(rules, "destination: 10.%u.%u.0/24, tcpFlags: 'syn,!ack'", number / 256, number % 256);
}

/* The flow `i` of the driver's. */
static void match_flow(FILE *rules, uint32_t i)
{
	uint32_t source = bench_scatter(i);
	const uint8_t *bytes = (const uint8_t *)&source;

	fprintf(rules, "protocol: udp, source: %u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
}

static struct weir_object *load(void (*print_match)(FILE *rules, uint32_t i), uint32_t count)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t byte_count;
	FILE *rules = open_memstream(&text, &byte_count);

	if (!rules)
		rig_fail(errno, "cannot write rules");
	fprintf(rules, "settings: {flowsPerCpu: 65536}\nresources:\n");
	for (uint32_t i = 0; i < count; i++) {
		fprintf(rules, "  - {name: r%u, flow: [source], match: {", i);
		print_match(rules, i);
		fprintf(rules, "}}\n");
	}
	fprintf(rules, "rules:\n");
	for (uint32_t i = 0; i < count; i++)
		fprintf(rules, "  - {resource: r%u, threshold: 10}\n", i);
	if (fclose(rules))
		rig_fail(ENOMEM, "cannot write rules");
	return rig_load_text(text);
}

static void measure_kind(struct rig *rig, struct report_table *table, const char *name,
			 void (*print_match)(FILE *rules, uint32_t i))
{
	struct weir_object *objects[ARRAY_SIZE(counts)];
	struct trial trial = {.frame = rig_frame(4, 1, PORT),
			      .sources = BENCH_SOURCES_ONE,
			      .repeat = REPEAT,
			      .rounds = ROUNDS,
			      .program_count = ARRAY_SIZE(counts)};
	json_t *cells = json_pack("[s]", name);
	struct trial_result result;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		objects[i] = load(print_match, counts[i]);
		trial.program_fd[i] = weir_object_program_fd(objects[i]);
	}
	trial_run(rig, &trial, &result);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		json_array_append_new(cells, report_number(trial_ns(&result, i)));
		weir_object_free(objects[i]);
	}
	report_line(table, cells);
}

/* As many flows as resources, at random. */
static void measure_another_each_time(struct rig *rig, struct report_table *table)
{
	json_t *cells = json_pack("[s]", "a source each, and packets of all of them at random");

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		_cleanup_(weir_object_freep) struct weir_object *object = load(match_flow, counts[i]);
		struct trial trial = {.frame = rig_frame(4, 1, PORT),
				      .sources = BENCH_SOURCES_MANY,
				      .repeat = REPEAT,
				      .rounds = ROUNDS,
				      .program_fd = {weir_object_program_fd(object)},
				      .program_count = 1};
		struct trial_result result;

		rig_choose(rig, 0, counts[i]);
		trial_run(rig, &trial, &result);
		json_array_append_new(cells, report_number(trial_ns(&result, 0)));
	}
	rig_choose(rig, 0, BENCH_FLOWS);
	report_line(table, cells);
}

void bench_resources(struct rig *rig, struct report *report)
{
	struct report_table *table = report_table(report, "resources", "Many resources",
						  "A packet belongs to one of them, and its flow is over the limit.",
						  columns, ARRAY_SIZE(columns));

	measure_kind(rig, table, "a port each", match_port);
	measure_kind(rig, table, "a source prefix each", match_source);
	measure_kind(rig, table, "four services of each customer: destination prefix, protocol, ports, flags",
		     match_service);
	measure_kind(rig, table, "five kinds mixed: addresses, ports, VLANs, lengths, flags, ICMP types", match_mixed);
	measure_another_each_time(rig, table);
}
