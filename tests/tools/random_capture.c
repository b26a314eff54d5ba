// SPDX-License-Identifier: GPL-2.0-only
/*
 * random_capture SEED PACKETS RULES.yaml CAPTURE.pcap MEMORY.csv VERDICTS.csv
 *
 * A random rule set, a capture of random traffic for it, memory readings for that time, and what the
 * reference model says becomes of each packet, in the words of `weir replay --verdicts`. Some frames are cut
 * short by the capture, and some have no whole Ethernet header.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/model.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "base/util.h"
#include "files/capture.h"

static FILE *create(const char *path)
{
	FILE *stream = fopen(path, "w");

	if (!stream) {
		fprintf(stderr, "random_capture: cannot write '%s': %s\n", path, strerror(errno));
		exit(1);
	}
	return stream;
}

/* RFC 4180: a quote inside quotes is doubled. */
static void write_field(FILE *stream, const char *text)
{
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
}

static bool needs_quotes(const char *text)
{
	return strpbrk(text, ",\"") != NULL;
}

static void write_verdict(FILE *stream, const struct weir_ruleset *ruleset, uint64_t number, uint64_t time_ns,
			  const struct model_decision *decision)
{
	bool quotes = false;

	fprintf(stream, "%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",", number, time_ns, *decision->rule ? "drop" : "pass",
		decision->wait_ns);
	for (size_t i = 0; i < decision->resource_count; i++)
		quotes |= needs_quotes(ruleset->resources[decision->resource[i]].name);
	fputs(quotes ? "\"" : "", stream);
	for (size_t i = 0; i < decision->resource_count; i++) {
		fputs(i ? ";" : "", stream);
		write_field(stream, ruleset->resources[decision->resource[i]].name);
	}
	fputs(quotes ? "\"," : ",", stream);
	quotes = needs_quotes(decision->rule);
	fputs(quotes ? "\"" : "", stream);
	write_field(stream, decision->rule);
	fputs(quotes ? "\"\r\n" : "\r\n", stream);
}

/* What the capture keeps of a frame; what it cut off is zero for whoever evaluates. */
static size_t cut(struct random *random, uint8_t *frame, size_t frame_bytes)
{
	size_t captured = frame_bytes;

	if (random_percent(random, 10))
		captured = random_below(random, frame_bytes < 128 ? frame_bytes + 1 : 128);
	memset(frame + captured, 0, frame_bytes - captured);
	return captured;
}

/* As many as there may be at most: enough for each to hold for some hundred packets. */
#define READINGS_MAX 64

static void write_memory(struct random *random, const struct weir_ruleset *ruleset, const struct packet_spec *specs,
			 size_t count, struct model *model, FILE *stream)
{
	struct random_reading readings[READINGS_MAX];
	size_t reading_count = random_memory(random, ruleset, specs, count, readings, READINGS_MAX);

	fprintf(stream, "time_ns,used_bytes\r\n");
	for (size_t i = 0; i < reading_count; i++) {
		fprintf(stream, "%" PRIu64 ",%" PRIu64 "\r\n", readings[i].time_ns, readings[i].used_bytes);
		model_memory(model, readings[i].time_ns, readings[i].used_bytes);
	}
}

int main(int argc, char **argv)
{
	static uint8_t bytes[PACKET_BYTES_MAX];
	struct weir_capture_writer *writer = NULL;
	struct weir_ruleset *ruleset;
	struct weir_diag diag = {};
	struct packet_spec *specs;
	struct random random;
	struct model *model;
	FILE *rules, *capture, *memory, *verdicts;
	size_t count;

	if (argc != 7) {
		fprintf(stderr, "usage: random_capture SEED PACKETS RULES.yaml CAPTURE.pcap MEMORY.csv VERDICTS.csv\n");
		return 2;
	}
	random.state = strtoull(argv[1], NULL, 0);
	count = strtoull(argv[2], NULL, 0);
	rules = create(argv[3]);
	capture = create(argv[4]);
	memory = create(argv[5]);
	verdicts = create(argv[6]);
	ruleset = random_ruleset(&random);
	specs = random_packets(&random, ruleset, count);
	model = model_new(ruleset, random_ifindex);
	write_memory(&random, ruleset, specs, count, model, memory);
	ruleset_write_yaml(ruleset, rules);
	if (weir_capture_writer_new(capture, WEIR_LINK_TYPE_ETHERNET, &writer, &diag)) {
		weir_diag_print(&diag, stderr);
		return 1;
	}
	fprintf(verdicts, "packet,time_ns,verdict,wait_ns,resources,rule\r\n");
	for (size_t i = 0; i < count; i++) {
		struct model_decision decision;
		struct weir_frame frame = {.time_ns = specs[i].time_ns, .bytes = bytes};

		frame.wire_bytes = packet_build(&specs[i], bytes);
		if (random_percent(&random, 1))
			frame.wire_bytes = random_below(&random, 14);
		frame.captured_bytes = cut(&random, bytes, frame.wire_bytes);
		weir_capture_write(writer, &frame);
		decision = model_evaluate(model, frame.time_ns, bytes, frame.wire_bytes, RANDOM_IFINDEX);
		write_verdict(verdicts, ruleset, i + 1, frame.time_ns, &decision);
	}
	model_free(model);
	free(specs);
	weir_ruleset_free(ruleset);
	weir_capture_writer_free(writer);
	return fclose(rules) || fclose(capture) || fclose(memory) || fclose(verdicts) ? 1 : 0;
}
