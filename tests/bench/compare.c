// SPDX-License-Identifier: GPL-2.0-only
#include "compare.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/util.h"

#define LINE "%-4s %-58s %9s %9s %9s  %-6s %s\n"

static const char *words_of(json_t *object, const char *name)
{
	const char *words = json_string_value(json_object_get(object, name));

	return words ? words : "";
}

bool compare_is_same_kind(json_t *old_machine, json_t *new_machine)
{
	static const char *const names[] = {"CPU", "cores", "mitigations"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(words_of(old_machine, names[i]), words_of(new_machine, names[i])))
			return false;
	return true;
}

/* NAN: it was not measured. */
static double value_of(json_t *row)
{
	json_t *value = json_object_get(row, "value");

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static bool has_bound(json_t *row, size_t end)
{
	return json_is_number(json_array_get(json_object_get(row, "must"), end));
}

static bool is_missed(json_t *row)
{
	return !strcmp(words_of(row, "result"), "MISSED");
}

static bool is_worse(json_t *old_row, json_t *new_row)
{
	double old_value = value_of(old_row), new_value = value_of(new_row);
	double allowed = fabs(old_value) * COMPARE_WORSE;
	bool has_low = has_bound(new_row, 0), has_high = has_bound(new_row, 1);

	if (has_low && has_high)
		return is_missed(new_row) && !is_missed(old_row);
	if (has_high)
		return new_value > old_value + allowed;
	return has_low && new_value < old_value - allowed;
}

/* Rows may share name and words: then the first of the old ones stands for all. */
static json_t *find_row(json_t *rows, json_t *wanted)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (!strcmp(words_of(row, "row"), words_of(wanted, "row")) &&
		    !strcmp(words_of(row, "what"), words_of(wanted, "what")))
			return row;
	}
	return NULL;
}

static void print_row(FILE *stream, json_t *old_row, json_t *new_row, const char *mark, const char *note)
{
	double old_value = value_of(old_row), new_value = value_of(new_row);
	char old_words[24] = "-", new_words[24] = "-", change[24] = "";

	if (!isnan(old_value))
		snprintf(old_words, sizeof(old_words), "%.4g", old_value);
	if (!isnan(new_value))
		snprintf(new_words, sizeof(new_words), "%.4g", new_value);
	if (old_value != 0 && !isnan(old_value) && !isnan(new_value))
		snprintf(change, sizeof(change), "%+.1f %%", 100 * (new_value - old_value) / fabs(old_value));
	fprintf(stream, LINE, words_of(new_row, "row"), words_of(new_row, "what"), old_words, new_words, change, mark,
		note);
}

static bool compare_row(FILE *stream, json_t *old_rows, json_t *new_row, bool is_same_kind)
{
	json_t *old_row = find_row(old_rows, new_row);
	bool has_both = old_row && !isnan(value_of(old_row)) && !isnan(value_of(new_row));
	char note[256] = "";

	if (isnan(value_of(new_row)) && !has_both && !old_row)
		return false;
	if (!has_both) {
		print_row(stream, old_row, new_row, old_row ? "" : "new", words_of(new_row, "measured"));
		return false;
	}
	if (json_is_true(json_object_get(new_row, "isTime")) && !is_same_kind) {
		print_row(stream, old_row, new_row, "", "not compared: a time, of another kind of machine");
		return false;
	}
	if (is_same_kind)
		snprintf(note, sizeof(note), "%s; was %s", words_of(new_row, "measured"),
			 words_of(old_row, "measured"));
	print_row(stream, old_row, new_row, is_worse(old_row, new_row) ? "WORSE" : "", note);
	return is_worse(old_row, new_row);
}

int compare_runs(json_t *old_run, json_t *new_run, FILE *stream)
{
	json_t *old_machine = json_object_get(old_run, "machine"), *new_machine = json_object_get(new_run, "machine");
	json_t *old_rows = json_object_get(old_run, "targets"), *new_rows = json_object_get(new_run, "targets"), *row;
	bool is_same_kind = compare_is_same_kind(old_machine, new_machine);
	int worse = 0;
	size_t i;

	if (!json_is_array(old_rows) || !json_is_array(new_rows))
		return -EINVAL;
	fprintf(stream, "old: %s, %s, %s\nnew: %s, %s, %s\n", words_of(old_machine, "CPU"),
		words_of(old_machine, "kernel"), words_of(old_machine, "date"), words_of(new_machine, "CPU"),
		words_of(new_machine, "kernel"), words_of(new_machine, "date"));
	fprintf(stream,
		is_same_kind
			? "one kind of machine\n\n"
			: "different kinds of machine: only ratios and counts are compared, and those move, too\n\n");
	fprintf(stream, LINE, "row", "what", "old", "new", "change", "", is_same_kind ? "measured" : "");
	json_array_foreach(new_rows, i, row) worse += compare_row(stream, old_rows, row, is_same_kind);
	fprintf(stream, "\n%d row%s more than %.0f %% worse\n", worse, worse == 1 ? "" : "s", 100 * COMPARE_WORSE);
	return worse;
}
