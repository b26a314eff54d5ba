// SPDX-License-Identifier: GPL-2.0-only
/* The CSV files of `weir replay --system` and `--memory`: what is read, and each mistake, where, and what to do. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "replay/series_csv.h"

#define LINE "1,0.5,0.25\n"

struct csv {
	char path[32];
	struct weir_system_sample *samples;
	size_t count;
	struct weir_diag diag;
};

static void forget(struct csv *csv)
{
	free(csv->samples);
	csv->samples = NULL;
	csv->count = 0;
	weir_diag_free(&csv->diag);
	csv->diag = (struct weir_diag){};
}

static int make(void **state)
{
	struct csv *csv = calloc(1, sizeof(*csv));
	int fd;

	assert_non_null(csv);
	strcpy(csv->path, "/tmp/weir-csv-XXXXXX");
	fd = mkstemp(csv->path);
	assert_true(fd >= 0);
	close(fd);
	*state = csv;
	return 0;
}

static int end(void **state)
{
	_cleanup_(weir_freep) struct csv *csv = *state;

	unlink(csv->path);
	forget(csv);
	return 0;
}

static void write_text(const struct csv *csv, const char *text)
{
	FILE *stream = fopen(csv->path, "w");

	assert_non_null(stream);
	assert_true(fputs(text, stream) >= 0);
	assert_int_equal(fclose(stream), 0);
}

static int read_text(struct csv *csv, const char *text)
{
	forget(csv);
	write_text(csv, text);
	return weir_system_csv_read(csv->path, &csv->samples, &csv->count, &csv->diag);
}

CLAIM_WITHIN(samples_are_read_in_millionths_rounded_up, make, end)
{
	struct csv *csv = *state;

	assert_int_equal(read_text(csv, "time_ns,load1,cpu_usage\r\n"
					"1700000000000000000,0.75,0.31\r\n"
					"\n"
					"1700000000000000000,4294967295,1\n"
					"18446744073709551615,12.0000001,0.9999991\n"
					"18446744073709551615,0,0.000000"),
			 0);
	assert_int_equal(csv->diag.count, 0);
	assert_int_equal(csv->count, 4);
	assert_true(csv->samples[0].time_ns == 1700000000000000000);
	assert_int_equal(csv->samples[0].load1_micro, 750000);
	assert_int_equal(csv->samples[0].cpu_micro, 310000);
	assert_true(csv->samples[1].load1_micro == 4294967295000000);
	assert_int_equal(csv->samples[1].cpu_micro, 1000000);
	assert_true(csv->samples[2].time_ns == UINT64_MAX);
	assert_int_equal(csv->samples[2].load1_micro, 12000001);
	assert_int_equal(csv->samples[2].cpu_micro, 1000000);
	assert_int_equal(csv->samples[3].cpu_micro, 0);
}

CLAIM_WITHIN(file_without_samples_has_none, make, end)
{
	struct csv *csv = *state;

	assert_int_equal(read_text(csv, ""), 0);
	assert_int_equal(csv->count, 0);
	assert_int_equal(read_text(csv, "time_ns,load1,cpu_usage\n"), 0);
	assert_int_equal(csv->count, 0);
}

CLAIM_WITHIN(mistake_is_reported_at_its_line_with_what_to_do, make, end)
{
	static const char not_one[] = "not a sample 'time_ns,load1,cpu_usage'";
	static const char three[] = "write three numbers, as in 1700000000000000000,0.75,0.31";
	static const struct {
		const char *text;
		int line;
		const char *message, *hint;
	} mistakes[] = {
		{"load1,cpu_usage\n" LINE, 1, not_one, three},
		{LINE "time_ns,load1,cpu_usage\n", 2, not_one, three}, /* it stands at the top, or nowhere */
		{LINE "2\n", 2, not_one, three},
		{LINE "2,1\n", 2, not_one, three},
		{LINE "2,1,\n", 2, not_one, three},
		{LINE "2,,0.5\n", 2, not_one, three},
		{LINE ",1,0.5\n", 2, not_one, three},
		{LINE "2,1,0.5,\n", 2, not_one, three},
		{LINE "2,1,0.5,7\n", 2, not_one, three},
		{LINE "2;1;0.5\n", 2, not_one, three},
		{LINE " 2,1,0.5\n", 2, not_one, three},
		{LINE "2,1,0.5 \n", 2, not_one, three},
		{LINE "2.5,1,0.5\n", 2, not_one, three},
		{LINE "-2,1,0.5\n", 2, not_one, three},
		{LINE "2,-1,0.5\n", 2, not_one, three},
		{LINE "2,+1,0.5\n", 2, not_one, three},
		{LINE "2,1.,0.5\n", 2, not_one, three},
		{LINE "2,.5,0.5\n", 2, not_one, three},
		{LINE "2,1.2.3,0.5\n", 2, not_one, three},
		{LINE "2,1e2,0.5\n", 2, not_one, three},
		{LINE "2,nan,0.5\n", 2, not_one, three},
		{LINE "2,1,31%\n", 2, not_one, three},
		{LINE "18446744073709551616,1,0.5\n", 2, not_one, three},
		{LINE "2,4294967296,0.5\n", 2, not_one, three},
		{LINE "2,1,1.0000001\n", 2, "a cpu_usage above 1", "write the busy share of all CPUs, 0 to 1"},
		{LINE "2,1,80\n", 2, "a cpu_usage above 1", "write the busy share of all CPUs, 0 to 1"},
		{"5,1,0.5\n\n4,1,0.5\n", 3, "sample is earlier than the one before", "sort the samples by time"},
	};
	struct csv *csv = *state;

	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		const struct weir_diag_entry *entry;

		assert_int_equal(read_text(csv, mistakes[i].text), -EINVAL);
		assert_int_equal(csv->diag.count, 1);
		entry = csv->diag.entries;
		if (entry->line != mistakes[i].line || strcmp(entry->message, mistakes[i].message) ||
		    strcmp(entry->hint, mistakes[i].hint) || strcmp(entry->file, csv->path))
			fail_msg("%s:%d: %s (%s) of:\n%s", entry->file, entry->line, entry->message, entry->hint,
				 mistakes[i].text);
		assert_null(csv->samples);
	}
}

CLAIM_WITHIN(all_mistakes_of_a_file_are_reported, make, end)
{
	struct csv *csv = *state;

	assert_int_equal(read_text(csv, "9,1,0.5\nx\n8,1,2\n"), -EINVAL);
	/* Not a sample; above 1; earlier than the last that could be read. */
	assert_int_equal(csv->diag.count, 3);
	assert_int_equal(csv->diag.entries[0].line, 2);
	assert_int_equal(csv->diag.entries[2].line, 3);
}

CLAIM_WITHIN(lines_that_are_no_text_are_mistakes, make, end)
{
	static const char zero[] = "1,1,0.5\n2,1\0,0.5\n";
	struct csv *csv = *state;
	FILE *stream;

	forget(csv);
	stream = fopen(csv->path, "w");
	assert_non_null(stream);
	assert_int_equal(fwrite(zero, 1, sizeof(zero) - 1, stream), sizeof(zero) - 1);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(weir_system_csv_read(csv->path, &csv->samples, &csv->count, &csv->diag), -EINVAL);
	assert_int_equal(csv->diag.entries[0].line, 2);
	assert_string_equal(csv->diag.entries[0].source_line, "2,1?,0.5");
	/* A byte order mark is no part of the text. */
	assert_int_equal(read_text(csv, "\xef\xbb\xbf" LINE), 0);
	assert_int_equal(csv->count, 1);
}

#define MEGABYTES 16

/* Sixteen megabytes of the same. */
static void fill(const struct csv *csv, const char *unit)
{
	FILE *stream = fopen(csv->path, "w");
	const size_t bytes = strlen(unit);

	assert_non_null(stream);
	for (size_t at = 0; at + bytes <= MEGABYTES << 20; at += bytes)
		assert_int_equal(fwrite(unit, 1, bytes, stream), bytes);
	assert_int_equal(fclose(stream), 0);
}

/* What once took more than a minute and two gigabytes. */
CLAIM_WITHIN(sixteen_megabytes_of_anything_are_answered_in_a_second_and_128_megabytes, make, end)
{
	static const struct {
		const char *unit;
		size_t errors; /* 0: it is read */
		const char *latest;
	} files[] = {
		{"x\n", 1001, "more than 1000 mistakes; the rest of"},
		{"5,1,1\n4,1,2\n", 1001, "more than 1000 mistakes; the rest of"},
		{"1", 1, "not a sample"},
		{"1,1,1\n", 0, NULL},
		{"\n", 0, NULL},
	};
	struct csv *csv = *state;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct timespec from, to;
		struct rusage usage;
		double seconds;
		int err;

		forget(csv);
		fill(csv, files[i].unit);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		err = weir_system_csv_read(csv->path, &csv->samples, &csv->count, &csv->diag);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
		getrusage(RUSAGE_SELF, &usage);
		seconds = to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9;
		print_message("16 MB of '%s': %.2f s of CPU time, %ld MB\n", files[i].unit, seconds,
			      usage.ru_maxrss / 1024);
		assert_int_equal(err, files[i].errors ? -EINVAL : 0);
		assert_int_equal(csv->diag.errors, files[i].errors);
		if (files[i].errors)
			assert_non_null(strstr(csv->diag.entries[csv->diag.count - 1].message, files[i].latest));
		/* Of a machine that others use, too, CPU time is not what it is alone. */
		assert_true(seconds < 4);
		assert_true(usage.ru_maxrss < 128 * 1024);
	}
}

CLAIM_WITHIN(file_without_an_end_is_refused, make, end)
{
	struct csv *csv = *state;

	/* Without a line feed, and without an end: the first line is too long, and then it is too much. */
	assert_int_equal(weir_system_csv_read("/dev/zero", &csv->samples, &csv->count, &csv->diag), -EINVAL);
	assert_int_equal(csv->diag.count, 1);
	assert_string_equal(csv->diag.entries[0].message, "system samples '/dev/zero' are more than 64 MB");
}

CLAIM_WITHIN(pipe_that_nobody_writes_to_is_refused, make, end)
{
	struct csv *csv = *state;

	unlink(csv->path);
	assert_int_equal(mkfifo(csv->path, 0600), 0);
	assert_int_equal(weir_system_csv_read(csv->path, &csv->samples, &csv->count, &csv->diag), -EINVAL);
	assert_non_null(strstr(csv->diag.entries[0].message, "it is a pipe without a writer"));
}

CLAIM_WITHIN(file_that_is_not_there_is_named, make, end)
{
	struct csv *csv = *state;

	assert_int_equal(weir_system_csv_read("/nowhere/cpu.csv", &csv->samples, &csv->count, &csv->diag), -EINVAL);
	assert_non_null(strstr(csv->diag.entries[0].message, "cannot open system samples '/nowhere/cpu.csv'"));
	forget(csv);
	assert_int_equal(weir_system_csv_read("/", &csv->samples, &csv->count, &csv->diag), -EINVAL);
	assert_int_equal(csv->diag.count, 1);
	assert_non_null(csv->diag.entries);
	assert_non_null(strstr(csv->diag.entries[0].message, "Is a directory"));
}

CLAIM_WITHIN(memory_readings_are_read_in_the_same_way, make, end)
{
	_cleanup_(weir_freep) struct weir_memory_reading *readings = NULL;
	struct csv *csv = *state;
	size_t count = 0;

	write_text(csv, "time_ns,used_bytes\n1,18446744073709551615\n");
	assert_int_equal(weir_memory_csv_read(csv->path, &readings, &count, &csv->diag), 0);
	assert_int_equal(count, 1);
	assert_true(readings[0].used_bytes == UINT64_MAX);
	write_text(csv, "2,1\n1,1\n3,1.5\n");
	assert_int_equal(weir_memory_csv_read(csv->path, &readings, &count, &csv->diag), -EINVAL);
	assert_int_equal(csv->diag.count, 2);
	assert_string_equal(csv->diag.entries[0].hint, "sort the readings by time");
	assert_string_equal(csv->diag.entries[1].message, "not a memory reading 'time_ns,used_bytes'");
}

RUN_CLAIMS(NULL, NULL)
