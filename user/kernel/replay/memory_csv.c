// SPDX-License-Identifier: GPL-2.0-only
#include "replay/memory_csv.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

/* Decimal digits and nothing else, up to `end`. */
static bool parse_digits(const char *text, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (text == end)
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return false;
	}
	*ret_value = value;
	return true;
}

static bool parse_reading(const char *line, struct weir_memory_reading *ret_reading)
{
	const char *comma = strchr(line, ',');

	return comma && parse_digits(line, comma, &ret_reading->time_ns) &&
	       parse_digits(comma + 1, line + strlen(line), &ret_reading->used_bytes);
}

int weir_memory_csv_read(const char *path, struct weir_memory_reading **ret_readings, size_t *ret_count,
			 struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_memory_reading *readings = NULL;
	_cleanup_(weir_fclosep) FILE *stream = fopen(path, "re");
	_cleanup_(weir_freep) char *line = NULL;
	struct weir_place place = {.file = path, .column = 1};
	size_t count = 0, line_bytes = 0, mistakes = diag->errors;
	int failed;

	if (!stream) {
		weir_diag_fail(diag, errno, NULL, "cannot open memory readings '%s'", path);
		return -EINVAL;
	}
	while (errno = 0, getline(&line, &line_bytes, stream) >= 0) {
		struct weir_memory_reading reading, *added;

		line[strcspn(line, "\r\n")] = '\0';
		if ((++place.line == 1 && strcmp(line, "time_ns,used_bytes") == 0) || !*line)
			continue;
		if (!parse_reading(line, &reading)) {
			weir_diag_error(diag, &place, line, "write two numbers, as in 1700000000000000000,1048576",
					"not a memory reading 'time_ns,used_bytes'");
			continue;
		}
		if (count > 0 && reading.time_ns < readings[count - 1].time_ns)
			weir_diag_error(diag, &place, line, "sort the readings by time",
					"reading is earlier than the one before");
		added = weir_array_add((void **)&readings, count, sizeof(*readings));
		if (!added)
			return weir_diag_fail(diag, ENOMEM, NULL, "cannot read '%s'", path);
		*added = reading;
		count++;
	}
	failed = errno ? errno : EIO;
	if (ferror(stream)) {
		weir_diag_fail(diag, failed, NULL, "cannot read memory readings '%s'", path);
		return -EINVAL;
	}
	if (diag->errors != mistakes)
		return -EINVAL;
	*ret_readings = TAKE_PTR(readings);
	*ret_count = count;
	return 0;
}
