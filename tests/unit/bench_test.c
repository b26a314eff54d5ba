// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bench's own machinery: its arithmetic, its evaluation, and that nothing it promises is left out of the page. What
 * it measures is not tested: that is what it is for.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../bench/compare.h"
#include "../bench/picture.h"
#include "../bench/report.h"
#include "../bench/trace.h"
#include "../bench/traffic.h"
#include "../bench/trial.h"
#include "base/util.h"

static const struct report_column columns[] = {{"what", REPORT_WORDS}, {"ns", 1}};

static struct report_row *add_value(struct report *report, const char *name, struct report_bounds must,
				    struct report_bounds aim, double value)
{
	struct report_row *row = report_add(report, name, must, aim, "a claim");

	row->value = value;
	row->is_ratio = true;
	return row;
}

CLAIM(a_median_is_the_middle_value_or_the_mean_of_two)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};

	assert_true(report_median(odd, 3) == 2);
	assert_true(report_median(even, 4) == 2.5);
	assert_true(report_median(one, 1) == 7);
}

/* The median of ratios is not the ratio of medians: here 2 against 1. */
CLAIM(a_ratio_is_taken_within_its_round)
{
	struct trial_result result = {.ns = {{10, 100, 30}, {20, 50, 15}}, .rounds = 3};

	assert_true(trial_ns(&result, 0) == 30);
	assert_true(trial_ns(&result, 1) == 20);
	assert_true(trial_ratio(&result, 0, 1) == 2);
	assert_true(trial_ratio(&result, 1, 0) == 0.5);
}

CLAIM(growth_is_what_each_further_one_adds_to_the_first)
{
	struct trial_result result = {.ns = {{10, 20, 40}, {45, 90, 180}}, .rounds = 3};

	/* 35 more for 7 further ones, of 10. */
	assert_true(trial_growth(&result, 0, 1, 7) == 0.5);
}

CLAIM(a_bound_belongs_to_what_it_allows)
{
	struct report report = {};

	assert_string_equal(report_evaluate(add_value(&report, "S1", AT_MOST(1), AT_MOST(0.4), 1)), "ok");
	assert_string_equal(report_evaluate(add_value(&report, "S1", AT_MOST(1), AT_MOST(0.4), 0.4)), "ok, aim");
	assert_string_equal(report_evaluate(add_value(&report, "S1", AT_MOST(1), AT_MOST(0.4), 1.001)), "MISSED");
	assert_string_equal(report_evaluate(add_value(&report, "A4", EXACTLY(1000), EXACTLY(1000), 999)), "MISSED");
	assert_string_equal(report_evaluate(add_value(&report, "A3", BETWEEN(0.9, 1), BETWEEN(0.9, 1), 0.9)),
			    "ok, aim");
}

CLAIM(a_figure_that_is_no_number_meets_nothing)
{
	struct report report = {};

	assert_string_equal(report_evaluate(add_value(&report, "S1", AT_MOST(1), AT_MOST(1), NAN)), "MISSED");
}

CLAIM(what_was_not_measured_is_never_met)
{
	struct report report = {};
	struct report_row *row = add_value(&report, "S7", AT_MOST(1), AT_MOST(1), 0);

	snprintf(row->skipped, sizeof(row->skipped), "nft is not installed");
	assert_string_equal(report_evaluate(row), "SKIPPED");
}

CLAIM(every_row_that_is_promised_is_in_a_complete_report)
{
	static struct report report;
	size_t found = 0;
	char name[4];

	add_value(&report, "A3", AT_MOST(1), AT_MOST(1), 1);
	add_value(&report, "S2", AT_MOST(1), AT_MOST(1), 1);
	report_complete(&report);
	for (int i = 1; i <= 14; i++) {
		if (i == 6) /* connections: tests/budgets counts them */
			continue;
		snprintf(name, sizeof(name), "S%d", i);
		assert_string_equal(report.rows[found++].row, name);
		if (i == 10) {
			assert_string_equal(report.rows[found++].row, "S10e");
			assert_string_equal(report.rows[found++].row, "S10c");
		}
	}
	for (int i = 1; i <= 8; i++) {
		snprintf(name, sizeof(name), "A%d", i);
		assert_string_equal(report.rows[found++].row, name);
	}
	assert_int_equal(report.count, found);
	assert_string_equal(report_evaluate(&report.rows[0]), "SKIPPED");
	assert_string_equal(report_evaluate(&report.rows[1]), "ok, aim");
}

CLAIM(rows_of_one_name_stay_in_the_order_of_measurement)
{
	static struct report report;

	add_value(&report, "S2", AT_MOST(9), AT_MOST(9), 1);
	add_value(&report, "S1", AT_MOST(9), AT_MOST(9), 2);
	add_value(&report, "S2", AT_MOST(9), AT_MOST(9), 3);
	report_complete(&report);
	assert_true(report.rows[0].value == 2);
	assert_true(report.rows[1].value == 1);
	assert_true(report.rows[2].value == 3);
}

/* ---- what is written ---- */

static void make_report(struct report *report)
{
	struct report_table *table = report_table(report, "blocks", "Building blocks", NULL, columns, 2);

	add_value(report, "S1", AT_MOST(1), AT_MOST(0.4), 1.25);
	report_line(table, json_pack("[s,f]", "clock", 30.04));
	report_line(table, json_pack("[s,o]", "nothing", report_number(NAN)));
	report_complete(report);
}

static char *temporary(char *path)
{
	int fd;

	strcpy(path, "/tmp/weir-bench-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return path;
}

CLAIM(json_has_targets_and_tables_as_numbers)
{
	static struct report report;
	json_t *machine = json_pack("{ss}", "CPU", "a test"), *root, *line;
	char path[64];

	make_report(&report);
	assert_int_equal(report_write_json(&report, machine, temporary(path)), 0);
	root = json_load_file(path, 0, NULL);
	unlink(path);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(json_object_get(root, "machine"), "CPU")), "a test");
	assert_int_equal(json_array_size(json_object_get(root, "targets")), 23);
	line = json_array_get(json_object_get(root, "targets"), 0);
	assert_true(json_real_value(json_object_get(line, "value")) == 1.25);
	assert_string_equal(json_string_value(json_object_get(line, "result")), "MISSED");
	line = json_object_get(json_array_get(json_object_get(root, "tables"), 0), "lines");
	assert_true(fabs(json_real_value(json_array_get(json_array_get(line, 0), 1)) - 30.04) < 1e-9);
	assert_true(json_is_null(json_array_get(json_array_get(line, 1), 1)));
	json_decref(root);
	json_decref(machine);
	report_free(&report);
}

static char *read_file(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *stream = fopen(path, "re");

	assert_non_null(text);
	assert_non_null(stream);
	assert_true(fread(text, 1, 65535, stream) > 0);
	fclose(stream);
	return text;
}

CLAIM(the_page_shows_what_was_missed_and_what_was_not_measured)
{
	static struct report report;
	json_t *machine = json_pack("{ss}", "CPU", "a test");
	char path[64], *text;

	make_report(&report);
	assert_int_equal(report_write_page(&report, machine, temporary(path)), 0);
	text = read_file(path);
	unlink(path);
	assert_non_null(strstr(text, "| CPU | a test |"));
	assert_non_null(strstr(text, "| S1 | a claim | 1.250 | <= 1 | <= 0.4 | **MISSED** |"));
	assert_non_null(
		strstr(text, "| S8 | each further rule on the same packet |  |  |  | SKIPPED | not measured |"));
	assert_non_null(strstr(text, "| clock | 30.0 |\n| nothing | - |"));
	free(text);
	json_decref(machine);
	report_free(&report);
}

/* ---- the picture ---- */

CLAIM(the_picture_has_a_bar_for_each_limiter_and_none_for_plain_ends)
{
	static const struct report_column six[6] = {{"sources", REPORT_WORDS}, {"limiter", REPORT_WORDS}};
	static struct report report;
	struct report_table *table = report_table(&report, "wire", "End to end", NULL, six, 6);
	char path[64], *text;

	report_line(table, json_pack("[s,s,n,n,f,f]", "1", "plain end: XDP_DROP", 140.0, 7.0));
	report_line(table, json_pack("[s,s,f,f,f,f]", "1", "**weir**", 0.1, 15.0, 155.0, 6.5));
	report_line(table, json_pack("[s,s,f,f,f,f]", "1", "nft <`limit`> & more", 1.0, 120.0, 260.0, 3.8));
	assert_int_equal(picture_write(&report, temporary(path)), 0);
	text = read_file(path);
	unlink(path);
	assert_non_null(strstr(text, ">weir</text>"));
	assert_non_null(strstr(text, ">120</text>"));
	assert_non_null(strstr(text, ">nft limit  more</text>"));
	assert_null(strstr(text, "XDP_DROP"));
	assert_null(strstr(text, "SYN flood"));
	free(text);
	report_free(&report);
}

CLAIM(a_run_without_what_it_shows_has_no_picture)
{
	static struct report report;

	assert_int_equal(picture_write(&report, "/nonexistent/picture.svg"), -ENOENT);
}

/* ---- two programs in turns ---- */

#define TURNS 20

/* Of turns whose ratios are these. */
static struct comparison compare_ratios(const double ratios[TURNS], bool is_rate)
{
	double old[TURNS], new[TURNS];

	for (int i = 0; i < TURNS; i++) {
		old[i] = 10 + i;
		new[i] = old[i] * ratios[i];
	}
	return compare_turns(old, new, TURNS, is_rate);
}

/* `outliers` turns with one ratio, the others with another. */
static bool is_worse(int outliers, double outlier, double others, bool is_rate)
{
	struct report_row row = {.is_ratio = true};
	struct comparison found;
	double ratios[TURNS];

	for (int i = 0; i < TURNS; i++)
		ratios[i] = i < outliers ? outlier : others;
	found = compare_ratios(ratios, is_rate);
	row.value = found.ratio;
	row.must = found.must;
	row.aim = found.must;
	return !strcmp(report_evaluate(&row), "MISSED");
}

CLAIM(turns_have_the_median_of_their_ratios_and_not_the_ratio_of_medians)
{
	const double old[] = {1, 10, 100}, new[] = {40, 20, 50};
	struct comparison found = compare_turns(old, new, 3, false);

	assert_true(found.ratio == 2);
	assert_true(found.old_median == 10 && found.new_median == 40);
	assert_true(found.low == 0.5 && found.high == 40);
}

CLAIM(the_spread_leaves_out_the_tenth_of_the_turns_at_either_end)
{
	double ratios[TURNS];
	struct comparison found;

	for (int i = 0; i < TURNS; i++)
		ratios[i] = 1 << (TURNS - 1 - i);
	found = compare_ratios(ratios, false);
	assert_true(fabs(found.low - 4) < 1e-9);
	assert_true(fabs(found.high - (1 << (TURNS - 3))) < 1e-6);
}

CLAIM(a_row_is_worse_only_when_all_of_its_spread_is)
{
	assert_true(is_worse(0, 0, 1.01, false));
	assert_true(is_worse(2, 0.5, 1.01, false));
	assert_true(is_worse(10, 1.1, 2, false));
	assert_false(is_worse(3, 0.5, 1.01, false));
	assert_false(is_worse(0, 0, 1, false));
	assert_false(is_worse(0, 0, 0.9, false));
}

CLAIM(a_rate_is_worse_when_it_is_lower)
{
	assert_true(is_worse(0, 0, 0.99, true));
	assert_true(is_worse(2, 1.5, 0.99, true));
	assert_true(is_worse(10, 0.9, 0.5, true));
	assert_false(is_worse(3, 1.5, 0.99, true));
	assert_false(is_worse(0, 0, 1, true));
	assert_false(is_worse(0, 0, 1.1, true));
}

CLAIM(what_took_less_than_nothing_is_neither_better_nor_worse_than_nothing)
{
	const double below[] = {-3, -5, -4}, little[] = {-2, 0, -1}, some[] = {2, 2, 2};

	assert_true(compare_turns(below, little, 3, false).ratio == 1);
	assert_true(compare_turns(below, some, 3, false).ratio == 20);
}

/* ---- what an interval holds, when each time is only known to lie between two ---- */

#define MS_NS (TRACE_INTERVAL_NS / 1000)

static uint64_t sent_ms[] = {100, 500, 900, 1099, 1101}, heard_ms[] = {101, 501, 950, 1100, 1102};

static struct trace trace_of(const uint64_t *times_ms, size_t count)
{
	struct trace trace = {};

	for (size_t i = 0; i < count; i++)
		trace_add(&trace, times_ms[i] * MS_NS);
	return trace;
}

/* rig.c, to which trace.c reports its failures, is not linked. */
void rig_fail(int err, const char *format, ...)
{
	fail_msg("%s", format);
	abort();
}

CLAIM(an_interval_holds_only_what_was_surely_in_it)
{
	struct trace sent = trace_of(sent_ms, 4), heard = trace_of(heard_ms, 4);

	/* 100 and 1099 lie within a second, but the last was heard of a second after the first was sent. */
	assert_int_equal(trace_fullest_interval(&sent), 4);
	assert_int_equal(trace_certain_interval(&sent, &heard), 3);
	assert_int_equal(trace_certain_interval(&sent, &sent), 4);
	trace_free(&sent);
	trace_free(&heard);
}

CLAIM(a_certain_interval_begins_with_any_of_its_packets)
{
	struct trace sent = trace_of(sent_ms, 5), heard = trace_of(heard_ms, 5);

	assert_int_equal(trace_certain_interval(&sent, &heard), 4);
	trace_free(&sent);
	trace_free(&heard);
}

CLAIM(a_packet_evaluated_around_a_buckets_edge_is_in_neither_window)
{
	const uint64_t around_sent_ms[] = {50, 199, 950}, around_heard_ms[] = {51, 201, 951};
	struct trace sent = trace_of(around_sent_ms, 3), heard = trace_of(around_heard_ms, 3);

	assert_int_equal(trace_certain_window(&sent, &heard, 1), 1);
	assert_int_equal(trace_certain_window(&sent, &heard, 2), 1);
	assert_int_equal(trace_certain_window(&sent, &heard, 3), 2);
	assert_int_equal(trace_certain_window(&sent, &heard, 10), 3);
	trace_free(&sent);
	trace_free(&heard);
}

/* ---- traffic ---- */

static uint64_t due_ms(enum traffic_pattern pattern, uint32_t limit, uint32_t flows, uint64_t ms)
{
	const struct traffic traffic = {.pattern = pattern, .limit = limit, .flows = flows};

	return traffic_due(&traffic, ms * MS_NS);
}

CLAIM(steady_traffic_is_twice_the_limit_of_every_flow)
{
	assert_int_equal(due_ms(TRAFFIC_STEADY, 1000, 5, 1000), 10000);
	assert_int_equal(due_ms(TRAFFIC_STEADY, 1000, 5, 1), 10);
	assert_int_equal(due_ms(TRAFFIC_STEADY, 100000, 1, 1000), 130000);
}

CLAIM(the_edges_of_a_second_get_the_limit_on_both_sides)
{
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 994), 0);
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 996), 10);
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 1002), 20);
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 1900), 20);
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 1902), 30);
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 3990), 30);
	assert_int_equal(due_ms(TRAFFIC_EDGES, 10, 1, 4002), 50);
}

CLAIM(traffic_due_never_shrinks)
{
	for (enum traffic_pattern pattern = 0; pattern < TRAFFIC_PATTERNS; pattern++)
		for (uint64_t ms = 1; ms < 6000; ms++)
			assert_true(due_ms(pattern, 1000, 3, ms) >= due_ms(pattern, 1000, 3, ms - 1));
}

CLAIM(every_pattern_exceeds_the_limit_somewhere)
{
	for (enum traffic_pattern pattern = 0; pattern < TRAFFIC_PATTERNS; pattern++) {
		uint64_t most = 0;

		for (uint64_t ms = 1000; ms < 4000; ms++) {
			uint64_t due = due_ms(pattern, 10, 1, ms) - due_ms(pattern, 10, 1, ms - 1000);

			most = due > most ? due : most;
		}
		assert_true(most > 10);
	}
}

RUN_CLAIMS(NULL, NULL)
