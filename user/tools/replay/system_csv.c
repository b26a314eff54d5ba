// SPDX-License-Identifier: GPL-2.0-only
#include "replay/system_csv.h"

#include "replay/series_csv.h"

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
