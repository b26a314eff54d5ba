// SPDX-License-Identifier: GPL-2.0-only
#include "replay/series_csv.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

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

/* Complain of an entry that could be read; `before` is the one before it, or NULL. */
static void check(const struct weir_series *series, const struct weir_place *place, const char *line, const void *entry,
		  const void *before, struct weir_diag *diag)
{
	const char *hint = NULL, *refusal = series->refuse ? series->refuse(entry, &hint) : NULL;
	char sort[64];

	if (refusal)
		weir_diag_error(diag, place, line, hint, "%s", refusal);
	if (!before || time_of(entry) >= time_of(before))
		return;
	snprintf(sort, sizeof(sort), "sort the %ss by time", series->noun);
	weir_diag_error(diag, place, line, sort, "%s is earlier than the one before", series->noun);
}

int weir_series_read(const char *path, const struct weir_series *series, void **ret_entries, size_t *ret_count,
		     struct weir_diag *diag)
{
	_cleanup_(weir_freep) char *entries = NULL;
	_cleanup_(weir_fclosep) FILE *stream = fopen(path, "re");
	_cleanup_(weir_freep) char *line = NULL;
	struct weir_place place = {.file = path, .column = 1};
	size_t count = 0, line_bytes = 0, mistakes = diag->errors;
	int failed;

	if (!stream) {
		weir_diag_fail(diag, errno, NULL, "cannot open %s '%s'", series->plural, path);
		return -EINVAL;
	}
	while (errno = 0, getline(&line, &line_bytes, stream) >= 0) {
		char *added;

		line[strcspn(line, "\r\n")] = '\0';
		if ((++place.line == 1 && strcmp(line, series->header) == 0) || !*line)
			continue;
		added = weir_array_add((void **)&entries, count, series->entry_bytes);
		if (!added)
			return weir_diag_fail(diag, ENOMEM, NULL, "cannot read '%s'", path);
		if (!series->parse(line, added)) {
			weir_diag_error(diag, &place, line, series->how_to_write, "%s", series->not_one);
			continue;
		}
		check(series, &place, line, added, count > 0 ? added - series->entry_bytes : NULL, diag);
		count++;
	}
	failed = errno ? errno : EIO;
	if (ferror(stream)) {
		weir_diag_fail(diag, failed, NULL, "cannot read %s '%s'", series->plural, path);
		return -EINVAL;
	}
	if (diag->errors != mistakes)
		return -EINVAL;
	*ret_entries = TAKE_PTR(entries);
	*ret_count = count;
	return 0;
}
