// SPDX-License-Identifier: GPL-2.0-only
#include "replay/system_csv.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

#define MICRO 1000000ull

/* Decimal digits and nothing else, up to one of `ends`; *text is moved there. */
static bool parse_digits(const char **text, const char *ends, uint64_t *ret_value)
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

/* "2", "0.75", as millionths, up to a comma or the end. */
static bool parse_decimal(const char **text, uint64_t *ret_micro)
{
	uint64_t whole, unit = MICRO, micro = 0;
	bool rounds_up = false;

	if (!parse_digits(text, ".,", &whole) || whole > UINT32_MAX)
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

static bool parse_sample(const char *line, struct weir_system_sample *ret_sample)
{
	if (!parse_digits(&line, ",", &ret_sample->time_ns) || *line++ != ',' ||
	    !parse_decimal(&line, &ret_sample->load1_micro) || *line++ != ',')
		return false;
	return parse_decimal(&line, &ret_sample->cpu_micro) && !*line;
}

int weir_system_csv_read(const char *path, struct weir_system_sample **ret_samples, size_t *ret_count,
			 struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_system_sample *samples = NULL;
	_cleanup_(weir_fclosep) FILE *stream = fopen(path, "re");
	_cleanup_(weir_freep) char *line = NULL;
	struct weir_place place = {.file = path, .column = 1};
	size_t count = 0, line_bytes = 0, mistakes = diag->errors;
	int failed;

	if (!stream) {
		weir_diag_fail(diag, errno, NULL, "cannot open system samples '%s'", path);
		return -EINVAL;
	}
	while (errno = 0, getline(&line, &line_bytes, stream) >= 0) {
		struct weir_system_sample sample, *added;

		line[strcspn(line, "\r\n")] = '\0';
		if ((++place.line == 1 && strcmp(line, "time_ns,load1,cpu_usage") == 0) || !*line)
			continue;
		if (!parse_sample(line, &sample)) {
			weir_diag_error(diag, &place, line, "write three numbers, as in 1700000000000000000,0.75,0.31",
					"not a sample 'time_ns,load1,cpu_usage'");
			continue;
		}
		if (sample.cpu_micro > MICRO)
			weir_diag_error(diag, &place, line, "write the busy share of all CPUs, 0 to 1",
					"a cpu_usage above 1");
		if (count > 0 && sample.time_ns < samples[count - 1].time_ns)
			weir_diag_error(diag, &place, line, "sort the samples by time",
					"sample is earlier than the one before");
		added = weir_array_add((void **)&samples, count, sizeof(*samples));
		if (!added)
			return weir_diag_fail(diag, ENOMEM, NULL, "cannot read '%s'", path);
		*added = sample;
		count++;
	}
	failed = errno ? errno : EIO;
	if (ferror(stream)) {
		weir_diag_fail(diag, failed, NULL, "cannot read system samples '%s'", path);
		return -EINVAL;
	}
	if (diag->errors != mistakes)
		return -EINVAL;
	*ret_samples = TAKE_PTR(samples);
	*ret_count = count;
	return 0;
}
