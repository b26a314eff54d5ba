// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replay of what goes out, and of what comes in at tc: captures of both directions against verdicts that are written
 * down, and random ones through one hook and through the other.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/harness_rounds.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/random_breakers.h"
#include "base/util.h"
#include "frames/pcapng.h"
#include "kind/kind.h"
#include "files/capture.h"
#include "replay/replay.h"

#define PATH_BYTES 32
#define MS 1000000ull

#define CLIENT "203.0.113.7"
#define OTHER "203.0.113.8"
#define SERVER "192.0.2.1"

struct files {
	char capture[PATH_BYTES], verdicts[PATH_BYTES], others[PATH_BYTES];
};

static void make_file(char path[PATH_BYTES])
{
	int fd;

	strcpy(path, "/tmp/weir-directions-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static int make_files(void **state)
{
	struct files *files = calloc(1, sizeof(*files));

	assert_non_null(files);
	make_file(files->capture);
	make_file(files->verdicts);
	make_file(files->others);
	*state = files;
	return 0;
}

static int remove_files(void **state)
{
	_cleanup_(weir_freep) struct files *files = *state;

	unlink(files->capture);
	unlink(files->verdicts);
	unlink(files->others);
	return 0;
}

static FILE *create(const char *path)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	return stream;
}

static char *read_file(const char *path)
{
	FILE *stream = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(stream);
	assert_true(getdelim(&text, &size, '\0', stream) >= 0);
	fclose(stream);
	return text;
}

/* ---- captures ---- */

static uint8_t bytes[PACKET_BYTES_MAX];

static struct weir_frame build(const struct packet_spec *spec, enum weir_course course)
{
	struct weir_frame frame = {.time_ns = spec->time_ns, .bytes = bytes, .course = course};

	frame.captured_bytes = frame.wire_bytes = packet_build(spec, bytes);
	return frame;
}

/* Of Ethernet, with the flags of each packet. */
static void write_pcapng(const char *path, const struct packet_spec *specs, const enum weir_course *courses,
			 size_t count)
{
	FILE *stream = create(path);

	weir_pcapng_begin(stream, "a test");
	weir_pcapng_interface(stream, "eth0", PACKET_BYTES_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct weir_frame frame = build(&specs[i], courses[i]);

		weir_pcapng_packet(stream, 0, &frame, i % 3 ? "a comment" : "");
	}
	assert_int_equal(fclose(stream), 0);
}

/* As a capture of 'any' has them: packet type 4 of what goes out, 0 to 3 of all else. */
static void write_cooked(const char *path, enum weir_link_type link_type, const struct packet_spec *specs,
			 const enum weir_course *courses, size_t count)
{
	const size_t skipped = link_type == WEIR_LINK_TYPE_SLL ? 16 : 20;
	struct weir_capture_writer *writer = NULL;
	uint8_t cooked[2048] = {};
	struct weir_diag diag = {};
	FILE *stream = create(path);

	assert_int_equal(weir_capture_writer_new(stream, link_type, &writer, &diag), 0);
	for (size_t i = 0; i < count; i++) {
		struct weir_frame frame = build(&specs[i], courses[i]);
		const uint8_t type = courses[i] == WEIR_COURSE_OUT ? 4 : i % 4;

		cooked[link_type == WEIR_LINK_TYPE_SLL ? 1 : 10] = type;
		memcpy(cooked + (link_type == WEIR_LINK_TYPE_SLL ? 14 : 0), bytes + 12, 2);
		memcpy(cooked + skipped, bytes + 14, frame.wire_bytes - 14);
		frame.bytes = cooked;
		frame.captured_bytes = frame.wire_bytes = frame.wire_bytes - 14 + skipped;
		weir_capture_write(writer, &frame);
	}
	weir_capture_writer_free(writer);
	assert_int_equal(fclose(stream), 0);
}

/* ---- verdicts ---- */

static struct weir_ruleset *parse(const char *text)
{
	struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	if (weir_ruleset_parse("rules", text, strlen(text), &ruleset, &diag))
		weir_diag_print(&diag, stderr);
	assert_non_null(ruleset);
	return ruleset;
}

static int try_replay(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
		      struct weir_replay_report *ret_report)
{
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	int err = weir_replay(ruleset, options, ret_report, &diag);

	if (err)
		weir_diag_print(&diag, stderr);
	return err;
}

/* The column of each line: "pass drop pass"; empty: '-', not there: '?'. */
static void column_of(const char *text, size_t column, char *ret_words)
{
	char *copy = strdup(text), *rest = copy, *line;

	assert_non_null(copy);
	ret_words[0] = '\0';
	strsep(&rest, "\n"); /* the names */
	while ((line = strsep(&rest, "\r\n")) && (*line || (rest && *rest))) {
		char *fields = line, *field = NULL;

		if (!*line)
			continue;
		for (size_t i = 0; i <= column; i++)
			field = strsep(&fields, ",");
		strcat(strcat(ret_words, *ret_words ? " " : ""), !field ? "?" : *field ? field : "-");
	}
	free(copy);
}

static void expect_column(const char *path, size_t column, const char *expected)
{
	char *text = read_file(path), words[1024];

	column_of(text, column, words);
	assert_string_equal(words, expected);
	free(text);
}

#define VERDICT_COLUMN 2
#define RESOURCES_COLUMN 4
#define RULE_COLUMN 5
#define DIRECTION_COLUMN 6

/* ---- both directions of a few hosts ---- */

struct step {
	enum weir_course course;
	const char *remote;
	uint16_t remote_port;
};

/* What the step's host sends to port 53 of the server, or is answered. */
static struct packet_spec packet_of(const struct step *step, size_t number)
{
	struct packet_spec spec = step->course == WEIR_COURSE_OUT
					  ? packet_udp(SERVER, 53, step->remote, step->remote_port, 18)
					  : packet_udp(step->remote, step->remote_port, SERVER, 53, 18);

	spec.time_ns = 1700000000ull * WEIR_NSEC_PER_SEC + number * MS;
	return spec;
}

#define STEPS_MAX 16

struct story {
	struct packet_spec specs[STEPS_MAX];
	enum weir_course courses[STEPS_MAX];
	size_t count;
};

static struct story replay_story(const struct step *steps, size_t count)
{
	struct story story = {.count = count};

	for (size_t i = 0; i < count; i++) {
		story.specs[i] = packet_of(&steps[i], i);
		story.courses[i] = steps[i].course;
	}
	return story;
}

static const struct step dialogue[] = {
	{WEIR_COURSE_IN, CLIENT, 1000},	 {WEIR_COURSE_OUT, CLIENT, 1000}, {WEIR_COURSE_IN, CLIENT, 1001},
	{WEIR_COURSE_OUT, CLIENT, 1001}, {WEIR_COURSE_OUT, OTHER, 1000},  {WEIR_COURSE_IN, OTHER, 1000},
	{WEIR_COURSE_OUT, CLIENT, 1000}, {WEIR_COURSE_IN, CLIENT, 1000},
};

#define RULES(direction, key, limit)                                                                                   \
	"resources: [{name: r, match: {direction: " direction "}, flow: [" key "]}]\n"                                 \
	"rules: [{name: l, resource: r, threshold: " limit "}]\n"

/* Keys of each end, by their names in rule files; a limit of two packets a flow. */
CLAIM(each_direction_meets_its_own_resources_and_keys)
{
	static const struct {
		const char *rules, *verdicts;
	} cases[] = {
		{RULES("in", "source", "2"), "pass pass pass pass pass pass pass drop"},
		{RULES("in", "remote", "2"), "pass pass pass pass pass pass pass drop"},
		{RULES("in", "local", "2"), "pass pass pass pass pass drop pass drop"},
		{RULES("out", "destination", "2"), "pass pass pass pass pass pass drop pass"},
		{RULES("out", "remote", "2"), "pass pass pass pass pass pass drop pass"},
		{RULES("out", "source", "2"), "pass pass pass pass drop pass drop pass"},
		{RULES("out", "local", "2"), "pass pass pass pass drop pass drop pass"},
		{RULES("out", "destinationPort", "1"), "pass pass pass pass drop pass drop pass"},
		{RULES("out", "remotePort", "1"), "pass pass pass pass drop pass drop pass"},
		{RULES("both", "remote", "2"), "pass pass drop drop pass pass drop drop"},
		{RULES("both", "local", "2"), "pass pass drop drop drop drop drop drop"},
		/* clients in, and the server out */
		{RULES("both", "source", "2"), "pass pass pass pass drop pass drop drop"},
		{RULES("both", "destination", "2"), "pass pass pass pass pass drop drop drop"},
		{RULES("both", "\"remote\", \"remotePort\"", "1"), "pass drop pass drop pass drop drop drop"},
		{RULES("both", "\"source\", \"remotePort\"", "1"), "pass pass pass pass drop pass drop drop"},
	};
	const struct files *files = *state;
	const struct story story = replay_story(dialogue, ARRAY_SIZE(dialogue));
	const struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};

	write_pcapng(files->capture, story.specs, story.courses, story.count);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(cases[i].rules);
		_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};

		assert_int_equal(try_replay(ruleset, &options, &report), 0);
		expect_column(files->verdicts, VERDICT_COLUMN, cases[i].verdicts);
		assert_int_equal(report.out.packets, 4);
		assert_int_equal(report.totals.seen.packets, story.count);
	}
}

/* pcapng's flags, and both headers of 'any', say the same. */
CLAIM(any_capture_that_says_the_direction_is_believed)
{
	const struct files *files = *state;
	const struct story story = replay_story(dialogue, ARRAY_SIZE(dialogue));
	const struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(RULES("both", "remote", "2"));

	for (int i = 0; i < 3; i++) {
		_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};

		if (i == 0)
			write_pcapng(files->capture, story.specs, story.courses, story.count);
		else
			write_cooked(files->capture, i == 1 ? WEIR_LINK_TYPE_SLL : WEIR_LINK_TYPE_SLL2, story.specs,
				     story.courses, story.count);
		assert_int_equal(try_replay(ruleset, &options, &report), 0);
		expect_column(files->verdicts, VERDICT_COLUMN, "pass pass drop drop pass pass drop drop");
		expect_column(files->verdicts, RESOURCES_COLUMN, "r r r r r r r r");
		expect_column(files->verdicts, RULE_COLUMN, "- - l l - - l l");
		expect_column(files->verdicts, DIRECTION_COLUMN, "in out in out out in out in");
	}
}

/* A capture that says nothing is of the direction that the options say. */
CLAIM(direction_of_the_options_is_for_packets_that_say_none)
{
	static const enum weir_course courses[] = {WEIR_COURSE_UNKNOWN, WEIR_COURSE_IN, WEIR_COURSE_OUT,
						   WEIR_COURSE_UNKNOWN};
	const struct files *files = *state;
	const struct story story = replay_story(dialogue, ARRAY_SIZE(courses));
	struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(RULES("out", "local", "1"));
	struct weir_replay_report report = {};

	write_pcapng(files->capture, story.specs, courses, story.count);
	assert_int_equal(try_replay(ruleset, &options, &report), 0);
	expect_column(files->verdicts, DIRECTION_COLUMN, "in in out in");
	assert_int_equal(report.out.packets, 1);
	weir_replay_report_free(&report);
	options.run.direction = WEIR_DIRECTION_OUT;
	assert_int_equal(try_replay(ruleset, &options, &report), 0);
	expect_column(files->verdicts, DIRECTION_COLUMN, "out in out out");
	assert_int_equal(report.out.packets, 3);
	weir_replay_report_free(&report);
}

/* ---- where no rule is about what goes out ---- */

#define STRICT_RULES                                                                                                   \
	"settings: {unmatched: drop, malformed: drop, nonIp: drop}\n"                                                  \
	"deny: [" CLIENT ", " SERVER "]\n"                                                                             \
	"resources: [{name: r, match: {destinationPort: 54}, flow: [source]}]\n"                                       \
	"rules: [{name: l, resource: r, threshold: 1}]\n"

/* It passes, unmatched, and there is no column for it. */
CLAIM(rules_of_what_comes_in_let_out_whatever_goes_out)
{
	const struct files *files = *state;
	const struct story story = replay_story(dialogue, ARRAY_SIZE(dialogue));
	struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(STRICT_RULES);
	struct weir_replay_report report = {};

	write_pcapng(files->capture, story.specs, story.courses, story.count);
	assert_int_equal(try_replay(ruleset, &options, &report), 0);
	expect_column(files->verdicts, VERDICT_COLUMN, "drop pass drop pass pass drop pass drop");
	expect_column(files->verdicts, RULE_COLUMN, "deny - deny - - unmatched - deny");
	expect_column(files->verdicts, DIRECTION_COLUMN, "? ? ? ? ? ? ? ?");
	assert_int_equal(report.out.packets, 4);
	assert_int_equal(report.out.bytes, 4 * 60);
	assert_int_equal(report.totals.verdict[WEIR_VERDICT_UNMATCHED_PASS].packets, 4);
	assert_int_equal(report.totals.seen.packets, 8);
	assert_false(report.shows_direction);
	weir_replay_report_free(&report);
	options.run.shows_direction = true;
	assert_int_equal(try_replay(ruleset, &options, &report), 0);
	expect_column(files->verdicts, DIRECTION_COLUMN, "in out in out out in out in");
	weir_replay_report_free(&report);
}

/* A port that is 0 is one; a later fragment has none, nor has ICMP. */
CLAIM(ports_are_written_where_the_packet_has_them)
{
	static const char rules[] =
		"resources: [{name: r, match: {direction: both}}]\nrules: [{resource: r, threshold: 9}]\n";
	const struct files *files = *state;
	struct story story = replay_story(dialogue, 4);
	const struct weir_replay_options options = {
		.run.capture = files->capture, .verdicts = files->verdicts, .verdicts_are_wide = true};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(rules);
	_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};

	story.specs[0].source_port = story.specs[0].destination_port = 0;
	story.specs[1].source_port = story.specs[1].destination_port = 0;
	story.specs[2].fragment_units = 3;
	story.specs[3].protocol = IPPROTO_ICMP;
	write_pcapng(files->capture, story.specs, story.courses, story.count);
	assert_int_equal(try_replay(ruleset, &options, &report), 0);
	expect_column(files->verdicts, 9, "0 0 - -");
	expect_column(files->verdicts, 10, "0 0 - -");
}

#define SYN 0x02
#define RST 0x04
#define ACK 0x10
#define FIN 0x01

/* An opening, whatever answers it, and another opening 3 s later: is that dropped? */
CLAIM(only_syn_ack_and_rst_of_the_other_end_are_an_outcome)
{
	static const char *const rules[] = {
		"resources: [{name: r, match: {direction: both, protocol: tcp}, flow: local}]\n"
		"circuitBreakers: [{resource: r, strategy: ErrorCount, threshold: 1, statIntervalMs: 10000, "
		"retryTimeoutMs: 60000}]\n",
		"resources: [{name: r, match: {direction: both, protocol: tcp}, flow: local}]\n"
		"circuitBreakers: [{resource: r, strategy: SlowRequestRatio, maxAllowedRtMs: 1000, threshold: 1, "
		"statIntervalMs: 10000, retryTimeoutMs: 60000}]\n",
	};
	static const struct {
		uint8_t flags;
		bool is_of_client;
		const char *fails[2]; /* by an error, and by a slow handshake */
	} cases[] = {
		{SYN | ACK, false, {"pass", "pass"}}, {RST | ACK, false, {"drop", "drop"}},
		{RST, false, {"drop", "drop"}},	      {ACK, false, {"pass", "drop"}},
		{FIN | ACK, false, {"pass", "drop"}}, {FIN, false, {"pass", "drop"}},
		{SYN, false, {"pass", "drop"}},	      {0, false, {"pass", "drop"}},
		{ACK, true, {"pass", "pass"}},	      {FIN | ACK, true, {"drop", "drop"}},
		{RST, true, {"drop", "drop"}},
	};
	const struct files *files = *state;
	const struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};

	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(rules) * 2; i++) {
		const bool opens_out = i % 2;
		const size_t rule = i / 2 % 2, which = i / 4;
		const enum weir_course opening = opens_out ? WEIR_COURSE_OUT : WEIR_COURSE_IN;
		const enum weir_course other = opens_out ? WEIR_COURSE_IN : WEIR_COURSE_OUT;
		const struct step steps[] = {{opening, CLIENT, 1000},
					     {cases[which].is_of_client ? opening : other, CLIENT, 1000},
					     {opening, CLIENT, 1001}};
		struct story story = replay_story(steps, ARRAY_SIZE(steps));
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(rules[rule]);
		_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};
		char verdicts[32];

		for (size_t at = 0; at < story.count; at++) {
			story.specs[at].protocol = IPPROTO_TCP;
			story.specs[at].tcp_flags = at == 1 ? cases[which].flags : SYN;
		}
		story.specs[2].time_ns += 3 * WEIR_NSEC_PER_SEC;
		write_pcapng(files->capture, story.specs, story.courses, story.count);
		assert_int_equal(try_replay(ruleset, &options, &report), 0);
		snprintf(verdicts, sizeof(verdicts), "pass pass %s", cases[which].fails[rule]);
		expect_column(files->verdicts, VERDICT_COLUMN, verdicts);
	}
}

/* Settings are about what comes in: what goes out passes, malformed, of no IP, cut short before its link header. */
CLAIM(settings_are_not_for_what_goes_out)
{
	static const char rules[] = "settings: {unmatched: drop, malformed: drop, nonIp: drop}\n"
				    "resources: [{name: r, match: {direction: out, destinationPort: 7}}]\n"
				    "rules: [{name: l, resource: r, threshold: 1}]\n";
	const struct files *files = *state;
	struct story story = replay_story(dialogue, 4);
	const struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(rules);

	for (int is_out = 0; is_out < 2; is_out++) {
		_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};

		for (size_t i = 0; i < story.count; i++)
			story.courses[i] = is_out ? WEIR_COURSE_OUT : WEIR_COURSE_IN;
		story.specs[1].ethertype = ETHERTYPE_ARP;
		story.specs[2].cut_bytes = 20;
		story.specs[3].cut_bytes = 13;
		write_pcapng(files->capture, story.specs, story.courses, story.count);
		assert_int_equal(try_replay(ruleset, &options, &report), 0);
		expect_column(files->verdicts, RULE_COLUMN, is_out ? "- - - -" : "unmatched nonIp malformed malformed");
		assert_int_equal(report.out.packets, is_out ? 4 : 0);
		assert_int_equal(report.totals.verdict[WEIR_VERDICT_MALFORMED_PASS].packets, is_out ? 2 : 0);
		assert_int_equal(report.totals.verdict[WEIR_VERDICT_NON_IP_PASS].packets, is_out ? 1 : 0);
		assert_int_equal(report.totals.verdict[WEIR_VERDICT_UNMATCHED_PASS].packets, is_out ? 1 : 0);
		assert_int_equal(report.totals.seen.packets, 4);
	}
}

/* Lists ask for the remote end. */
CLAIM(lists_can_match_the_receiver)
{
	static const char rules[] = "deny: [" CLIENT "]\n"
				    "resources: [{name: r, match: {direction: both}}]\n"
				    "rules: [{name: l, resource: r, threshold: 100}]\n";
	const struct files *files = *state;
	const struct story story = replay_story(dialogue, ARRAY_SIZE(dialogue));
	const struct weir_replay_options options = {.run.capture = files->capture, .verdicts = files->verdicts};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = parse(rules);
	_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};

	write_pcapng(files->capture, story.specs, story.courses, story.count);
	assert_int_equal(try_replay(ruleset, &options, &report), 0);
	expect_column(files->verdicts, VERDICT_COLUMN, "drop drop drop drop pass pass drop drop");
}

/* ---- random rules and traffic ---- */

#define PACKETS 1500
#define ROUNDS 3 /* WEIR_ROUNDS: more */

static uint64_t environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

struct round {
	struct random random;
	struct weir_ruleset *ruleset;
	struct packet_spec *specs;
	enum weir_course courses[PACKETS];
	struct weir_replay_options options;
};

static void begin_round(struct round *round, const struct files *files, uint64_t seed, bool has_breakers)
{
	struct random *random = &round->random;

	*round = (struct round){.random = {seed}};
	round->ruleset = has_breakers ? random_breaker_ruleset(random) : random_ruleset(random);
	round->specs = has_breakers ? random_breaker_packets(random, round->ruleset, PACKETS)
				    : random_packets(random, round->ruleset, PACKETS);
	round->options = (struct weir_replay_options){
		.run.capture = files->capture,
		.verdicts = files->verdicts,
		.verdicts_are_wide = true,
		.run.interface = RANDOM_INTERFACE,
		.run.shows_direction = true,
	};
}

static void end_round(struct round *round)
{
	free(round->specs);
	weir_ruleset_free(round->ruleset);
}

/* Of each line: the direction. */
static void cut_last_column(char *text)
{
	char *to = text, *comma = text;

	for (; *text; text++) {
		if (*text == '\r')
			to = comma;
		if (*text == ',')
			comma = to;
		*to++ = *text;
	}
	*to = '\0';
}

/* The same verdicts by two replays. */
static bool are_equal(const struct files *files, const struct round *round, uint64_t seed)
{
	char *verdicts = read_file(files->verdicts), *others = read_file(files->others);
	bool equal;
	size_t i = 0;

	cut_last_column(verdicts);
	cut_last_column(others);
	equal = !strcmp(verdicts, others);

	if (!equal) {
		while (verdicts[i] == others[i])
			i++;
		while (i && verdicts[i - 1] != '\n')
			i--;
		fprintf(stderr, "%.*s\n%.*s\n", (int)strcspn(verdicts + i, "\r"), verdicts + i,
			(int)strcspn(others + i, "\r"), others + i);
		ruleset_write_yaml(round->ruleset, stderr);
		fprintf(stderr, "repeat it: WEIR_SEED=%" PRIu64 " WEIR_ROUNDS=1\n", seed);
	}
	free(verdicts);
	free(others);
	return equal;
}

static void replay_to(const struct round *round, const struct weir_replay_options *options)
{
	_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};

	assert_int_equal(try_replay(round->ruleset, options, &report), 0);
}

/* Rules of all directions, captures of both. */
CLAIM(tc_gives_the_verdicts_that_xdp_gives)
{
	const uint64_t seed = environment("WEIR_SEED", 20260701), rounds = environment("WEIR_ROUNDS", ROUNDS);
	const struct files *files = *state;
	static struct round round;

	for (uint64_t i = 0; i < rounds; i++) {
		begin_round(&round, files, seed + i, (seed + i) % 4 == 0);
		for (size_t n = 0; n < round.ruleset->resource_count; n++)
			round.ruleset->resources[n].match.directions = random_below(&round.random, 4);
		for (size_t n = 0; n < PACKETS; n++)
			round.courses[n] = random_below(&round.random, 3);
		write_pcapng(files->capture, round.specs, round.courses, PACKETS);
		replay_to(&round, &round.options);
		round.options.run.is_at_tc = true;
		round.options.verdicts = files->others;
		replay_to(&round, &round.options);
		assert_true(are_equal(files, &round, seed + i));
		end_round(&round);
	}
}

/* A SYN,ACK that goes out opens nothing, and is an outcome of what came in. */
static bool goes_by_direction(const struct weir_ruleset *ruleset)
{
	bool goes = false;

	for (size_t i = 0; i < ruleset->rule_count; i++)
		goes |= ruleset->rules[i].metric == WEIR_METRIC_CONCURRENCY ||
			ruleset->rules[i].metric == WEIR_METRIC_REQUESTS;
	return goes;
}

/* Turn all of it round: the same packets, which go out, under resources of what goes out. */
CLAIM(outgoing_packets_meet_the_limits_that_incoming_ones_would)
{
	const uint64_t seed = environment("WEIR_SEED", 20260801), rounds = environment("WEIR_ROUNDS", 2 * ROUNDS);
	const struct files *files = *state;
	static struct round round;

	for (uint64_t i = 0; i < rounds; i++) {
		begin_round(&round, files, seed + i, false);
		if (goes_by_direction(round.ruleset)) {
			end_round(&round);
			continue;
		}
		round.ruleset->settings.drop_malformed = round.ruleset->settings.drop_unsupported = false;
		round.ruleset->settings.drop_non_ip = round.ruleset->settings.drop_unmatched = false;
		round.ruleset->settings.non_ip_except_count = 0;
		round.ruleset->listed_count = 0;
		write_pcapng(files->capture, round.specs, round.courses, PACKETS);
		replay_to(&round, &round.options);
		for (size_t n = 0; n < round.ruleset->resource_count; n++)
			round.ruleset->resources[n].match.directions = WEIR_MATCHES_OUT;
		round.options.run.direction = WEIR_DIRECTION_OUT;
		round.options.verdicts = files->others;
		replay_to(&round, &round.options);
		assert_true(are_equal(files, &round, seed + i));
		end_round(&round);
	}
}

RUN_CLAIMS(make_files, remove_files)
