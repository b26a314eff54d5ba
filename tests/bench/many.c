// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S5, S8 and S9: many rules on a packet, many resources beside it, many rules to load.
 *
 * S5 and S8 are measured as trial.h says. For S5 a packet belongs to one resource, keyed by source, and meets its
 * one rule; all the others ask about the same field and match other packets. The flow is over its limit, so that
 * nothing hides what matching costs. For S8 all rules are on the packet's resource and all of them admit it.
 *
 * S9 is the wall time of the commands that a user gives, from start to exit.
 */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include "base/util.h"
#include "trial.h"

#define ROUNDS 9
#define REPEAT 400000u
#define PORT 1

/* ---- rule files ---- */

struct text {
	FILE *stream;
	char *bytes;
	size_t byte_count;
};

static void text_open(struct text *text)
{
	*text = (struct text){};
	text->stream = open_memstream(&text->bytes, &text->byte_count);
	if (!text->stream)
		rig_fail(errno, "cannot write rules");
}

static void text_print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void text_print(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(text->stream, format, args);
	va_end(args);
}

static const char *text_close(struct text *text)
{
	if (fclose(text->stream))
		rig_fail(ENOMEM, "cannot write rules");
	return text->bytes;
}

enum matched_by { BY_PORT, BY_DESTINATION };

/* So many resources with one rule each; the first of them has the packets of rig_frame(4, 1, PORT). */
static void print_resources(struct text *text, uint32_t count, enum matched_by field)
{
	text_print(text, "resources:\n");
	for (uint32_t i = 0; i < count; i++) {
		text_print(text, "  - {name: r%u, flow: [source], match: {protocol: udp, ", i);
		if (field == BY_PORT)
			text_print(text, "destinationPort: %u}}\n", PORT + i);
		else
			text_print(text, "destination: 198.51.%u.%u}}\n", 100 + (i + 1) / 256, (i + 1) % 256);
	}
}

/* ---- S5 ---- */

static struct weir_object *load_resources(uint32_t count, enum matched_by field)
{
	struct weir_object *object;
	struct text text;

	text_open(&text);
	text_print(&text, "settings: {flowsPerCpu: 65536}\n");
	print_resources(&text, count, field);
	text_print(&text, "rules:\n");
	for (uint32_t i = 0; i < count; i++)
		text_print(&text, "  - {resource: r%u, threshold: 1000}\n", i);
	object = rig_load_text(text_close(&text));
	free(text.bytes);
	return object;
}

static void report_resources(struct report *report, const struct trial_result *result, size_t which, uint32_t count,
			     double must, double aim, const char *field)
{
	struct report_row *row =
		report_add(report, "S5", AT_MOST(must), AT_MOST(aim), "%u resources by %s against one", count, field);

	row->is_ratio = true;
	row->value = trial_ratio(result, which, 0);
	snprintf(row->measured, sizeof(row->measured), "%.1f ns, one %.1f", trial_ns(result, which),
		 trial_ns(result, 0));
}

static void measure_resources(struct rig *rig, struct report *report, enum matched_by field, double must, double aim,
			      const char *name)
{
	_cleanup_(weir_object_freep) struct weir_object *one = load_resources(1, field);
	_cleanup_(weir_object_freep) struct weir_object *some = load_resources(1024, field);
	_cleanup_(weir_object_freep) struct weir_object *many = load_resources(4096, field);
	struct trial trial = {.frame = rig_frame(4, 1, PORT),
			      .sources = BENCH_SOURCES_ONE,
			      .repeat = REPEAT,
			      .rounds = ROUNDS,
			      .program_fd = {weir_object_program_fd(one), weir_object_program_fd(some),
					     weir_object_program_fd(many)},
			      .program_count = 3};
	struct trial_result result;

	trial_run(rig, &trial, &result);
	report_resources(report, &result, 1, 1024, must, aim, name);
	report_resources(report, &result, 2, 4096, must, aim, name);
}

/* ---- S8 ---- */

#define RULES_MAX 8
#define FLOWS 65536u

/* All on one resource; what they allow differs, so that no two are the same rule. */
static struct weir_object *load_rules(uint32_t count, uint64_t threshold)
{
	struct weir_object *object;
	struct text text;

	text_open(&text);
	/* Room for every row of every rule, half full. */
	text_print(&text, "settings: {flowsPerCpu: %u}\n", 2 * FLOWS * RULES_MAX);
	print_resources(&text, 1, BY_PORT);
	text_print(&text, "rules:\n");
	for (uint32_t i = 0; i < count; i++)
		text_print(&text, "  - {resource: r0, threshold: %llu}\n", (unsigned long long)threshold + i);
	object = rig_load_text(text_close(&text));
	free(text.bytes);
	return object;
}

static const struct report_column rules_columns[] = {{"flows", REPORT_WORDS}, {"1 rule, ns", 0},
						     {"2 rules, ns", 0},      {"4 rules, ns", 0},
						     {"8 rules, ns", 0},      {"each further ÷ the first", 2}};

static void measure_rules(struct rig *rig, struct report *report, struct report_table *table, const char *what,
			  enum bench_sources sources, uint64_t threshold, double must)
{
	static const uint32_t counts[] = {1, 2, 4, RULES_MAX};
	struct weir_object *objects[ARRAY_SIZE(counts)];
	struct trial trial = {.frame = rig_frame(4, 1, PORT),
			      .sources = sources,
			      .repeat = REPEAT / 4,
			      .rounds = ROUNDS,
			      .program_count = ARRAY_SIZE(counts)};
	struct report_row *row =
		report_add(report, "S8", AT_MOST(must), AT_MOST(0.3), "each further rule, %s, all admitted", what);
	struct trial_result result;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		objects[i] = load_rules(counts[i], threshold);
		trial.program_fd[i] = weir_object_program_fd(objects[i]);
		rig_send_new(rig, trial.program_fd[i], &trial.frame, 0, FLOWS);
	}
	rig_choose(rig, 0, FLOWS);
	trial_run(rig, &trial, &result);
	rig_choose(rig, 0, BENCH_FLOWS);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		weir_object_free(objects[i]);

	row->is_ratio = true;
	row->value = trial_growth(&result, 0, 3, RULES_MAX - 1);
	snprintf(row->measured, sizeof(row->measured), "1: %.0f ns, 8: %.0f ns", trial_ns(&result, 0),
		 trial_ns(&result, 3));
	report_line(table, json_pack("[s,f,f,f,f,f]", what, trial_ns(&result, 0), trial_ns(&result, 1),
				     trial_ns(&result, 2), trial_ns(&result, 3), row->value));
}

/* ---- S9 ---- */

#define LOADS 5
#define TRIES 10

static char weir_path[4096], instance[64], rules_path[64];
static volatile bool is_attached;

static pid_t start(char *const arguments[])
{
	pid_t child = fork();

	if (child == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
		execv(weir_path, arguments);
		_exit(127);
	}
	return child;
}

/* Only async-signal-safe calls: also used by a signal handler. */
static int finish(pid_t child)
{
	int status = -1;

	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void bench_many_clean_up(void)
{
	char *const detach[] = {weir_path, "detach", "--instance", instance, NULL};

	if (!is_attached)
		return;
	is_attached = false;
	/* A command that has not ended yet might attach after that. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	finish(start(detach));
	unlink(rules_path);
}

/* Seconds that a command takes. Another weir command may be at work for a moment: then it is tried again. */
static double run_command(char *const arguments[])
{
	for (int i = 0; i < TRIES; i++) {
		uint64_t start_ns = rig_now_ns();

		if (!finish(start(arguments)))
			return (rig_now_ns() - start_ns) / 1e9;
		sleep(1);
	}
	rig_fail(0, "'weir %s' failed", arguments[1]);
}

/* Beside us: $(BUILD)/weir, as we are $(BUILD)/tests/bench/bench. */
static void find_weir(void)
{
	ssize_t length = readlink("/proc/self/exe", weir_path, sizeof(weir_path) - 16);

	if (length < 0)
		rig_fail(errno, "cannot tell where we are");
	weir_path[length] = 0;
	for (int i = 0; i < 3; i++)
		*strrchr(weir_path, '/') = 0;
	strcat(weir_path, "/weir");
	if (access(weir_path, X_OK))
		rig_fail(errno, "cannot run '%s'", weir_path);
}

/* 4,096 resources with two rules each. */
static void write_rules(void)
{
	struct text text;
	int fd;

	text_open(&text);
	print_resources(&text, 4096, BY_PORT);
	text_print(&text, "rules:\n");
	for (uint32_t i = 0; i < 4096; i++)
		text_print(&text,
			   "  - {resource: r%u, threshold: %u}\n"
			   "  - {resource: r%u, threshold: %u, statIntervalInMs: 10000}\n",
			   i, 100 + i % 7, i, 500 + i % 7);
	text_close(&text);
	snprintf(rules_path, sizeof(rules_path), "/tmp/weir-bench-XXXXXX");
	fd = mkstemp(rules_path);
	if (fd < 0 || write(fd, text.bytes, text.byte_count) != (ssize_t)text.byte_count)
		rig_fail(errno, "cannot write '%s'", rules_path);
	close(fd);
	free(text.bytes);
}

static void report_seconds(struct report *report, const char *what, double *seconds)
{
	struct report_row *row = report_add(report, "S9", AT_MOST(0.6), AT_MOST(0.2), "%s 8,192 rules, seconds", what);

	row->value = report_median(seconds, LOADS);
	row->is_ratio = true; /* to three decimals */
	row->is_time = true;
	snprintf(row->measured, sizeof(row->measured), "%.3f s, %.3f to %.3f", row->value, seconds[0],
		 seconds[LOADS - 1]);
}

static void measure_loads(struct report *report)
{
	double load_s[LOADS], reload_s[LOADS];
	char *const attach[] = {weir_path, "attach", "-i", "weir", "--instance", instance, rules_path, NULL};
	char *const reload[] = {weir_path, "reload", "--instance", instance, rules_path, NULL};
	char *const detach[] = {weir_path, "detach", "--instance", instance, NULL};

	find_weir();
	snprintf(instance, sizeof(instance), "bench-%d", getpid());
	write_rules();
	for (int i = 0; i < LOADS; i++) {
		is_attached = true;
		load_s[i] = run_command(attach);
		reload_s[i] = run_command(reload);
		run_command(detach);
		is_attached = false;
	}
	unlink(rules_path);
	report_seconds(report, "load", load_s);
	report_seconds(report, "reload", reload_s);
}

void bench_many(struct rig *rig, struct report *report)
{
	struct report_table *table = report_table(
		report, "rules", "Several rules on a packet",
		"All rules are on the packet's resource, each has its own row for the flow, and all admit the packet.",
		rules_columns, ARRAY_SIZE(rules_columns));

	measure_resources(rig, report, BY_PORT, 1.1, 1.0, "port");
	measure_resources(rig, report, BY_DESTINATION, 1.4, 1.1, "destination");
	measure_rules(rig, report, table, "one flow", BENCH_SOURCES_ONE, 1000000000, 0.5);
	measure_rules(rig, report, table, "64k flows", BENCH_SOURCES_MANY, 1000, 0.6);
	measure_loads(report);
}
