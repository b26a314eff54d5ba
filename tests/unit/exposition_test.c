// SPDX-License-Identifier: GPL-2.0-only
/* Metrics as text: both formats byte for byte, labels of any bytes, and which format a header asks for. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "exposition/exposition.h"

static const struct weir_metric_family packets = {"t_packets", WEIR_METRIC_COUNTER, NULL, "Packets."};
static const struct weir_metric_family delay = {"t_delay_seconds", WEIR_METRIC_HISTOGRAM, "seconds", "Delays."};
static const struct weir_metric_family build = {"t_build", WEIR_METRIC_INFO, NULL, "The program."};

static void assert_text(const struct weir_exposition *exposition, const char *expected)
{
	assert_false(exposition->is_cut);
	assert_int_equal(exposition->bytes, strlen(expected));
	assert_memory_equal(exposition->text, expected, exposition->bytes);
}

static void write_both(struct weir_exposition *exposition)
{
	struct weir_labels labels = {};

	weir_labels_add(&labels, "rule", "a");
	weir_labels_add(&labels, "resource", "b");
	weir_exposition_begin(exposition, &packets);
	weir_exposition_count(exposition, &labels, UINT64_MAX);
	weir_exposition_count(exposition, NULL, 0);
	weir_exposition_begin(exposition, &build);
	weir_exposition_value(exposition, NULL, 1);
	weir_exposition_end(exposition);
}

CLAIM(old_format_names_the_samples_in_its_head_lines)
{
	_cleanup_(weir_exposition_free) struct weir_exposition exposition = {};

	write_both(&exposition);
	assert_text(&exposition, "# HELP t_packets_total Packets.\n"
				 "# TYPE t_packets_total counter\n"
				 "t_packets_total{rule=\"a\",resource=\"b\"} 18446744073709551615\n"
				 "t_packets_total 0\n"
				 "# HELP t_build_info The program.\n"
				 "# TYPE t_build_info gauge\n"
				 "t_build_info 1\n");
}

CLAIM(openmetrics_names_the_family_and_ends)
{
	_cleanup_(weir_exposition_free) struct weir_exposition exposition = {.is_openmetrics = true};

	write_both(&exposition);
	assert_text(&exposition, "# HELP t_packets Packets.\n"
				 "# TYPE t_packets counter\n"
				 "t_packets_total{rule=\"a\",resource=\"b\"} 18446744073709551615\n"
				 "t_packets_total 0\n"
				 "# HELP t_build The program.\n"
				 "# TYPE t_build info\n"
				 "t_build_info 1\n"
				 "# EOF\n");
}

/* 3 us and 5 us lie below 4 us and 8 us; what the last step has is above every bound. */
CLAIM(histogram_counts_up_to_each_bound)
{
	static const uint64_t steps[] = {0, 1, 1, 2};
	_cleanup_(weir_exposition_free) struct weir_exposition exposition = {.is_openmetrics = true};

	weir_exposition_begin(&exposition, &delay);
	weir_exposition_powers(&exposition, NULL, steps, 4, 1500008);
	assert_text(&exposition, "# HELP t_delay_seconds Delays.\n"
				 "# TYPE t_delay_seconds histogram\n"
				 "# UNIT t_delay_seconds seconds\n"
				 "t_delay_seconds_bucket{le=\"2e-06\"} 0\n"
				 "t_delay_seconds_bucket{le=\"4e-06\"} 1\n"
				 "t_delay_seconds_bucket{le=\"8e-06\"} 2\n"
				 "t_delay_seconds_bucket{le=\"+Inf\"} 4\n"
				 "t_delay_seconds_count 4\n"
				 "t_delay_seconds_sum 1.500008\n");
}

CLAIM(values_of_labels_are_escaped_and_made_utf8)
{
	struct weir_labels labels = {};

	weir_labels_add(&labels, "a", "\"\\\n");
	weir_labels_add(&labels, "b", "\xff\xc3\xa9{},");
	labels.text[labels.bytes] = '\0';
	assert_string_equal(labels.text, "a=\"\\\"\\\\\\n\",b=\"\xef\xbf\xbd\xc3\xa9{},\"");
}

/* Never half of one, which would be no exposition at all. */
CLAIM(label_that_does_not_fit_is_left_out_whole)
{
	char value[WEIR_LABELS_BYTES] = "";
	struct weir_labels labels = {};
	size_t before;

	weir_labels_add(&labels, "a", "1");
	before = labels.bytes;
	memset(value, 'x', sizeof(value) - before - strlen(",b=\"\""));
	weir_labels_add(&labels, "b", value);
	assert_true(labels.bytes <= WEIR_LABELS_BYTES);
	before = labels.bytes;
	weir_labels_add(&labels, "c", value);
	assert_int_equal(labels.bytes, before);
}

/* ... with its closing quote. */
CLAIM(label_that_just_fits_is_kept_and_one_a_byte_longer_is_not)
{
	const size_t fits = WEIR_LABELS_BYTES - strlen("a=\"\"");
	char value[WEIR_LABELS_BYTES] = "";

	memset(value, 'x', fits);
	for (int more = 0; more < 2; more++) {
		struct weir_labels labels = {};

		weir_labels_add(&labels, "a", value);
		assert_int_equal(labels.bytes, more ? 0 : WEIR_LABELS_BYTES);
		value[fits] = 'x';
	}
}

CLAIM(text_of_megabytes_is_whole)
{
	_cleanup_(weir_exposition_free) struct weir_exposition exposition = {};

	weir_exposition_begin(&exposition, &packets);
	for (uint64_t i = 0; i < 100000; i++)
		weir_exposition_count(&exposition, NULL, 1000000 + i);
	assert_false(exposition.is_cut);
	assert_memory_equal(exposition.text + exposition.bytes - 24, "t_packets_total 1099999\n", 24);
}

CLAIM(format_is_the_one_that_is_asked_for)
{
	static const struct {
		const char *accept;
		bool is_openmetrics;
	} cases[] = {
		/* Prometheus 2.42 */
		{"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 true},
		{"text/plain;version=0.0.4;q=0.5,application/openmetrics-text; version=1.0.0 ; q=0.6", true},
		{"application/openmetrics-text", true},
		/* Of a type that is named twice the larger weight counts, wherever it stands. */
		{"application/openmetrics-text, application/openmetrics-text;q=0.3, text/plain;q=0.5", true},
		{"text/plain;q=0.5, text/plain;q=0.1, application/openmetrics-text;q=0.3", false},
		{"application/openmetrics-text;q=0.5, text/plain", false},
		{"application/openmetrics-text;q=0", false},
		{"application/openmetrics-text;version=0.0.1", false},
		{"text/plain", false},
		{"*/*", false},
		{"", false},
		{";;,,=;q=", false},
		{NULL, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(weir_exposition_is_openmetrics(cases[i].accept), cases[i].is_openmetrics);
}

RUN_CLAIMS(NULL, NULL)
