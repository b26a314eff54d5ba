// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bench's own machinery: its arithmetic, its judgement, and that nothing it promises is left out of the page. What
 * it measures is not tested: that is what it is for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench/report.h"
#include "../bench/trial.h"
#include "util.h"

static const struct report_column columns[] = {{"what", REPORT_WORDS}, {"ns", 1}};

static struct report_row *add_value(struct report *report, const char *name, struct report_bounds must,
				    struct report_bounds aim, double value)
{
	struct report_row *row = report_add(report, name, must, aim, "a claim");

	row->value = value;
	row->is_ratio = true;
	return row;
}

static void a_median_is_the_middle_value_or_the_mean_of_two(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};

	assert_true(report_median(odd, 3) == 2);
	assert_true(report_median(even, 4) == 2.5);
	assert_true(report_median(one, 1) == 7);
}

/* The median of ratios is not the ratio of medians: here 2 against 1. */
static void a_ratio_is_taken_within_its_round(void **state)
{
	struct trial_result result = {.ns = {{10, 100, 30}, {20, 50, 15}}, .rounds = 3};

	assert_true(trial_ns(&result, 0) == 30);
	assert_true(trial_ns(&result, 1) == 20);
	assert_true(trial_ratio(&result, 0, 1) == 2);
	assert_true(trial_ratio(&result, 1, 0) == 0.5);
}

static void growth_is_what_each_further_one_adds_to_the_first(void **state)
{
	struct trial_result result = {.ns = {{10, 20, 40}, {45, 90, 180}}, .rounds = 3};

	/* 35 more for 7 further ones, of 10. */
	assert_true(trial_growth(&result, 0, 1, 7) == 0.5);
}

static void a_bound_belongs_to_what_it_allows(void **state)
{
	struct report report = {};

	assert_string_equal(report_judge(add_value(&report, "S1", AT_MOST(1), AT_MOST(0.4), 1)), "ok");
	assert_string_equal(report_judge(add_value(&report, "S1", AT_MOST(1), AT_MOST(0.4), 0.4)), "ok, aim");
	assert_string_equal(report_judge(add_value(&report, "S1", AT_MOST(1), AT_MOST(0.4), 1.001)), "MISSED");
	assert_string_equal(report_judge(add_value(&report, "A4", EXACTLY(1000), EXACTLY(1000), 999)), "MISSED");
	assert_string_equal(report_judge(add_value(&report, "A3", BETWEEN(0.9, 1), BETWEEN(0.9, 1), 0.9)), "ok, aim");
}

static void a_figure_that_is_no_number_meets_nothing(void **state)
{
	struct report report = {};

	assert_string_equal(report_judge(add_value(&report, "S1", AT_MOST(1), AT_MOST(1), NAN)), "MISSED");
}

static void what_was_not_measured_is_never_met(void **state)
{
	struct report report = {};
	struct report_row *row = add_value(&report, "S7", AT_MOST(1), AT_MOST(1), 0);

	snprintf(row->skipped, sizeof(row->skipped), "nft is not installed");
	assert_string_equal(report_judge(row), "SKIPPED");
}

static void every_row_that_is_promised_is_in_a_complete_report(void **state)
{
	static struct report report;
	size_t found = 0;
	char name[3];

	add_value(&report, "A3", AT_MOST(1), AT_MOST(1), 1);
	add_value(&report, "S2", AT_MOST(1), AT_MOST(1), 1);
	report_complete(&report);
	for (int i = 1; i <= 9; i++) {
		snprintf(name, sizeof(name), "S%d", i);
		assert_string_equal(report.rows[found++].row, name);
	}
	for (int i = 1; i <= 8; i++) {
		snprintf(name, sizeof(name), "A%d", i);
		assert_string_equal(report.rows[found++].row, name);
	}
	assert_int_equal(report.count, found);
	assert_string_equal(report_judge(&report.rows[0]), "SKIPPED");
	assert_string_equal(report_judge(&report.rows[1]), "ok, aim");
}

static void rows_of_one_name_stay_in_the_order_of_measurement(void **state)
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

static void json_has_targets_and_tables_as_numbers(void **state)
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
	assert_int_equal(json_array_size(json_object_get(root, "targets")), 17);
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

static void the_page_shows_what_was_missed_and_what_was_not_measured(void **state)
{
	static struct report report;
	json_t *machine = json_pack("{ss}", "CPU", "a test");
	char path[64], *text;

	make_report(&report);
	assert_int_equal(report_write_page(&report, machine, "/proc/self/comm", temporary(path)), 0);
	text = read_file(path);
	unlink(path);
	assert_non_null(strstr(text, "| CPU | a test |"));
	assert_non_null(strstr(text, "| S1 | a claim | 1.250 | <= 1 | <= 0.4 | **MISSED** |"));
	assert_non_null(
		strstr(text, "| S6 | established TCP under a connections rule |  |  |  | SKIPPED | not measured |"));
	assert_non_null(strstr(text, "| clock | 30.0 |\n| nothing | - |"));
	free(text);
	json_decref(machine);
	report_free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_median_is_the_middle_value_or_the_mean_of_two),
		cmocka_unit_test(a_ratio_is_taken_within_its_round),
		cmocka_unit_test(growth_is_what_each_further_one_adds_to_the_first),
		cmocka_unit_test(a_bound_belongs_to_what_it_allows),
		cmocka_unit_test(a_figure_that_is_no_number_meets_nothing),
		cmocka_unit_test(what_was_not_measured_is_never_met),
		cmocka_unit_test(every_row_that_is_promised_is_in_a_complete_report),
		cmocka_unit_test(rows_of_one_name_stay_in_the_order_of_measurement),
		cmocka_unit_test(json_has_targets_and_tables_as_numbers),
		cmocka_unit_test(the_page_shows_what_was_missed_and_what_was_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
