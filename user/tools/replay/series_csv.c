// SPDX-License-Identifier: GPL-2.0-only
#include "replay/series_csv.h"

#include <errno.h>
#include <string.h>

#include "base/text_file.h"
#include "base/util.h"

/* Two million readings with times since 1970; one per second would cover 23 days. Chosen, not derived. */
#define FILE_BYTES_MAX (64ull << 20)

bool weir_series_parse_digits(const char **text, const char *ends, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!**text || strchr(ends, **text))
		return false;
	for (; **text && !strchr(ends, **text); (*text)++) {
		if (**text < '0' || **text > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			return false;
	}
	*ret_value = value;
	return true;
}

static uint64_t time_of(const void *entry)
{
	uint64_t time_ns;

	memcpy(&time_ns, entry, sizeof(time_ns));
	return time_ns;
}

/* A file whose entries are being read. */
struct reading {
	const struct weir_series *series;
	const char *path;
	struct weir_line_reader reader;
	struct weir_diag *diag;
	size_t mistakes; /* reported so far */
	char *entries;
	size_t count;
};

static void complain(struct reading *reading, const char *hint, const char *message)
{
	const struct weir_place place = {.file = reading->path, .line = reading->reader.number, .column = 1};

	weir_diag_error(reading->diag, &place, reading->reader.line, hint, "%s", message);
	reading->mistakes++;
}

/* Complain about an entry that could be parsed; `before` is the previous entry, or NULL. */
static void check(struct reading *reading, const void *entry, const void *before)
{
	const struct weir_series *series = reading->series;
	const char *hint = NULL, *refusal = series->refuse ? series->refuse(entry, &hint) : NULL;
	char message[64], sort[64];

	if (refusal)
		complain(reading, hint, refusal);
	if (!before || time_of(entry) >= time_of(before))
		return;
	snprintf(message, sizeof(message), "%s is earlier than the one before", series->noun);
	snprintf(sort, sizeof(sort), "sort the %ss by time", series->noun);
	complain(reading, sort, message);
}

static int read_text(struct reading *reading)
{
	const struct weir_series *series = reading->series;
	char *line = reading->reader.line, *added;

	line[strcspn(line, "\r")] = '\0';
	if ((reading->reader.number == 1 && strcmp(line, series->header) == 0) || !*line)
		return 0;
	added = weir_array_add((void **)&reading->entries, reading->count, series->entry_bytes);
	if (!added)
		return weir_diag_fail(reading->diag, ENOMEM, NULL, "cannot read '%s'", reading->path);
	if (!series->parse(line, added)) {
		complain(reading, series->how_to_write, series->not_one);
		return 0;
	}
	check(reading, added, reading->count > 0 ? added - series->entry_bytes : NULL);
	reading->count++;
	return 0;
}

/* Returns 1 to continue, 0 at the end, or -errno, which has been reported. */
static int read_line(struct reading *reading)
{
	const struct weir_series *series = reading->series;
	int err;

	if (reading->mistakes >= WEIR_MISTAKES_MAX)
		return weir_diag_fail(reading->diag, 0, NULL, "more than %d mistakes; the rest of '%s' is not read",
				      WEIR_MISTAKES_MAX, reading->path);
	switch (weir_read_line(&reading->reader)) {
	case WEIR_LINE_TEXT:
		err = read_text(reading);
		return err ?: 1;
	case WEIR_LINE_TOO_LONG:
	case WEIR_LINE_ZERO_BYTE:
		complain(reading, series->how_to_write, series->not_one);
		return 1;
	case WEIR_LINE_TOO_MUCH:
		return weir_diag_fail(reading->diag, 0, "remove those that change nothing",
				      "%s '%s' are more than %llu MB", series->plural, reading->path,
				      FILE_BYTES_MAX >> 20);
	case WEIR_LINE_END:
		break;
	}
	if (!ferror(reading->reader.stream))
		return 0;
	weir_diag_fail(reading->diag, errno ?: EIO, NULL, "cannot read %s '%s'", series->plural, reading->path);
	return -EINVAL;
}

int weir_series_read(const char *path, const struct weir_series *series, void **ret_entries, size_t *ret_count,
		     struct weir_diag *diag)
{
	_cleanup_(weir_fclosep) FILE *stream = NULL;
	struct reading reading = {.series = series, .path = path, .diag = diag};
	int err;

	err = weir_text_file_open(path, &stream);
	if (err)
		return weir_diag_fail(diag, 0, NULL, "cannot open %s '%s': %s", series->plural, path,
				      weir_text_file_explain(err));
	reading.reader = (struct weir_line_reader){.stream = stream, .bytes_max = FILE_BYTES_MAX};
	do
		err = read_line(&reading);
	while (err > 0);
	if (err || reading.mistakes) {
		free(reading.entries);
		return err ?: -EINVAL;
	}
	*ret_entries = reading.entries;
	*ret_count = reading.count;
	return 0;
}

/* ---- memory ---- */

static bool parse_reading(const char *line, void *ret_entry)
{
	struct weir_memory_reading *reading = ret_entry;

	return weir_series_parse_digits(&line, ",", &reading->time_ns) && *line++ == ',' &&
	       weir_series_parse_digits(&line, "", &reading->used_bytes);
}

int weir_memory_csv_read(const char *path, struct weir_memory_reading **ret_readings, size_t *ret_count,
			 struct weir_diag *diag)
{
	static const struct weir_series series = {
		.plural = "memory readings",
		.noun = "reading",
		.header = "time_ns,used_bytes",
		.not_one = "not a memory reading 'time_ns,used_bytes'",
		.how_to_write = "write two numbers, as in 1700000000000000000,1048576",
		.entry_bytes = sizeof(struct weir_memory_reading),
		.parse = parse_reading,
	};

	return weir_series_read(path, &series, (void **)ret_readings, ret_count, diag);
}

/* ---- load and CPU usage ---- */

#define MICRO 1000000ull

/* Parse "2" or "0.75" in millionths, up to a comma or the end. */
static bool parse_decimal(const char **text, uint64_t *ret_micro)
{
	uint64_t whole, unit = MICRO, micro = 0;
	bool rounds_up = false;

	if (!weir_series_parse_digits(text, ".,", &whole) || whole > UINT32_MAX)
		return false;
	if (**text == '.') {
		if (!(*text)[1] || (*text)[1] == ',')
			return false;
		for ((*text)++; **text && **text != ','; (*text)++) {
			if (**text < '0' || **text > '9')
				return false;
			unit /= 10;
			micro += unit * (uint64_t)(**text - '0');
			rounds_up |= !unit && **text != '0';
		}
	}
	*ret_micro = whole * MICRO + micro + rounds_up;
	return true;
}

static bool parse_sample(const char *line, void *ret_entry)
{
	struct weir_system_sample *sample = ret_entry;

	if (!weir_series_parse_digits(&line, ",", &sample->time_ns) || *line++ != ',' ||
	    !parse_decimal(&line, &sample->load1_micro) || *line++ != ',')
		return false;
	return parse_decimal(&line, &sample->cpu_micro) && !*line;
}

static const char *refuse_sample(const void *entry, const char **ret_hint)
{
	const struct weir_system_sample *sample = entry;

	*ret_hint = "write the busy share of all CPUs, 0 to 1";
	return sample->cpu_micro > MICRO ? "a cpu_usage above 1" : NULL;
}

int weir_system_csv_read(const char *path, struct weir_system_sample **ret_samples, size_t *ret_count,
			 struct weir_diag *diag)
{
	static const struct weir_series series = {
		.plural = "system samples",
		.noun = "sample",
		.header = "time_ns,load1,cpu_usage",
		.not_one = "not a sample 'time_ns,load1,cpu_usage'",
		.how_to_write = "write three numbers, as in 1700000000000000000,0.75,0.31",
		.entry_bytes = sizeof(struct weir_system_sample),
		.parse = parse_sample,
		.refuse = refuse_sample,
	};

	return weir_series_read(path, &series, (void **)ret_samples, ret_count, diag);
}
