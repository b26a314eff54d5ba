// SPDX-License-Identifier: GPL-2.0-only
/* Figures that are declared once, and the documents and lines made of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words/state_words.h"
#include "../lib/claims.h"
#include "words/figures.h"
#include "words/json.h"

struct record {
	uint64_t count, rare;
	bool is_known;
	char text[8];
	struct weir_tally tally;
};

static bool has_packets(const struct weir_rule_info *rule)
{
	return !rule->identity.counts_bytes;
}

static const struct weir_column counters[] = {
	{"sum.count", ">count", offsetof(struct record, count), {}, NULL, false},
	{"sum.rare", NULL, offsetof(struct record, rare), {}, has_packets, true},
	{},
};

static void describe(struct weir_figures *line, const void *context, const void *record)
{
	const struct record *of = record;

	weir_line_counters(line, counters, context, of);
	WEIR_TEXT(line, "text", "text", of->text);
	WEIR_KNOWN(line, "threshold", ">threshold", of->is_known, of->count, "?");
	WEIR_PERCENT(line, "share", ">share", of->is_known, 0.5, "-");
	WEIR_FIGURE(line, "state", "state", json_string("halfOpen"), "%s", "half-open");
	WEIR_TALLY(line, "passed", ">packets", NULL, &of->tally);
	WEIR_FIELD(line, "field", json_true());
	WEIR_CELL(line, "cell", "%d", 7);
}

static const struct weir_rule_info of_packets, of_bytes = {.identity.counts_bytes = true};
static const struct record known = {
	.count = 5000000000, .rare = 2, .is_known = true, .text = "a", .tally = {.packets = 3, .bytes = 4}};

CLAIM(a_record_becomes_an_object_with_its_paths)
{
	json_t *document = weir_figures_describe(describe, &of_packets, &known);
	char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15));

	assert_string_equal(text, "{\"sum\":{\"count\":5000000000,\"rare\":2},\"text\":\"a\",\"threshold\":5000000000,"
				  "\"share\":0.5,\"state\":\"halfOpen\",\"passed\":{\"packets\":3,\"bytes\":4},"
				  "\"field\":true}");
	free(text);
	json_decref(document);
}

/* What is not known is null; what a rule cannot have is not there. */
CLAIM(unknown_is_null_and_absent_is_left_out)
{
	const struct record unknown = {.text = "\xff"};
	json_t *document = weir_figures_describe(describe, &of_bytes, &unknown);

	assert_true(json_is_null(json_object_get(document, "threshold")));
	assert_true(json_is_null(json_object_get(document, "share")));
	assert_null(json_object_get(json_object_get(document, "sum"), "rare"));
	assert_null(json_object_get(document, "cell"));
	assert_string_equal(json_string_value(json_object_get(document, "text")), "\xef\xbf\xbd");
	json_decref(document);
}

static void put(void *table, const char *text)
{
	strcat(strcat(table, text), "|");
}

/* As many cells as headings, whatever is known of the record. */
CLAIM(a_line_has_a_cell_for_each_heading)
{
	const struct record unknown = {.text = "b"};
	char headings[128] = "", cells[128] = "", unknown_cells[128] = "";
	struct weir_figures line = {.is_heading = true, .put = put, .table = headings};

	describe(&line, &of_bytes, &unknown);
	line = (struct weir_figures){.put = put, .table = cells};
	describe(&line, &of_packets, &known);
	line.table = unknown_cells;
	describe(&line, &of_bytes, &unknown);
	assert_string_equal(headings, ">count|text|>threshold|>share|state|>packets|cell|");
	assert_string_equal(cells, "5000000000|a|5000000000|50 %|half-open|3|7|");
	assert_string_equal(unknown_cells, "0|b|?|-|half-open|0|7|");
}

CLAIM(a_list_has_each_record)
{
	const struct record records[] = {{.count = 1}, {.count = 2}, {.count = 3}};
	json_t *list = weir_figures_list(describe, &of_bytes, records, 3, sizeof(*records));

	assert_int_equal(json_array_size(list), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			json_integer_value(json_object_get(json_object_get(json_array_get(list, i), "sum"), "count")),
			i + 1);
	json_decref(list);
}

/* If memory ran out for an object, it stays so: a document never lacks only a part. */
CLAIM(nothing_is_added_to_nothing)
{
	json_t *fields = NULL;

	weir_figures_add(describe, &of_packets, &known, &fields);
	assert_null(fields);
}

CLAIM(times_of_handshakes_are_null_without_any)
{
	struct weir_connection_figures figures = {.handshakes = 2, .handshake_us = 3000, .shortest_us = 1000};
	json_t *some = weir_json_connections(&figures), *none;

	assert_true(json_real_value(json_object_get(json_object_get(some, "handshake"), "meanUs")) == 1500);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(some, "handshake"), "minimumUs")), 1000);
	assert_null(json_object_get(some, "refused"));
	figures.handshakes = 0;
	figures.has_refused = true;
	none = weir_json_connections(&figures);
	assert_true(json_is_null(json_object_get(json_object_get(none, "handshake"), "meanUs")));
	assert_true(json_is_null(json_object_get(json_object_get(none, "handshake"), "minimumUs")));
	assert_true(json_is_integer(json_object_get(none, "refused")));
	json_decref(some);
	json_decref(none);
}

CLAIM(a_breaker_without_requests_has_no_value)
{
	struct weir_breaker_view view = {.strategy = WEIR_BREAKER_ERROR_RATIO};
	json_t *none = weir_figures_describe(weir_describe_breaker, NULL, &view), *half;

	view.requests = 4;
	view.bad = 2;
	half = weir_figures_describe(weir_describe_breaker, NULL, &view);
	assert_true(json_is_null(json_object_get(none, "value")));
	assert_true(json_real_value(json_object_get(half, "value")) == 0.5);
	json_decref(none);
	json_decref(half);
}

RUN_CLAIMS(NULL, NULL)
