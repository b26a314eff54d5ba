// SPDX-License-Identifier: GPL-2.0-only
#include "ruleset_bench.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const file_names[] = {"a.yaml", "b.yaml", "c.yaml"};
/* What lists and sets are read from. */
static const char *const list_names[] = {"good.txt", "bad.txt", "lists/good.txt", "lists/a.yaml",
					 "s",	     "s.csv",	"two.csv",	  "weights.csv"};

int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	if (!bench)
		return -1;
	weir_use_foreign_reader(&weir_sentinel_reader);
	strcpy(bench->directory, "/tmp/weir-rules-XXXXXX");
	bench->home = getcwd(NULL, 0);
	*state = bench;
	return !bench->home || !mkdtemp(bench->directory) || chdir(bench->directory);
}

void forget(struct bench *bench)
{
	weir_diag_free(&bench->diag);
	weir_ruleset_free(bench->ruleset);
	bench->ruleset = NULL;
}

int tear_down(void **state)
{
	_cleanup_(weir_freep) struct bench *bench = *state;
	int err;

	forget(bench);
	for (size_t i = 0; i < ARRAY_SIZE(file_names); i++)
		unlink(file_names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(list_names); i++)
		unlink(list_names[i]);
	rmdir("lists");
	err = chdir(bench->home) || rmdir(bench->directory);
	free(bench->home);
	return err;
}

void write_file(const char *name, const char *text, size_t bytes)
{
	FILE *stream = fopen(name, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(text, 1, bytes, stream), bytes);
	assert_int_equal(fclose(stream), 0);
}

int read_texts(struct bench *bench, const char *a, const char *b, const char *c)
{
	const char *texts[] = {a, b, c};
	size_t count = 0;

	forget(bench);
	for (; count < ARRAY_SIZE(texts) && texts[count]; count++)
		write_file(file_names[count], texts[count], strlen(texts[count]));
	return weir_ruleset_read(file_names, count, &bench->ruleset, &bench->diag);
}

char *messages(const struct bench *bench)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	weir_diag_print(&bench->diag, stream);
	fclose(stream);
	return text;
}

void assert_reads(struct bench *bench, const char *text)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_texts(bench, text, NULL, NULL);

	words = messages(bench);
	if (err || bench->diag.count)
		fail_msg("%d: %s\n%s", err, text, words);
}

void assert_messages(struct bench *bench, const char *expected)
{
	_cleanup_(weir_freep) char *words = messages(bench);

	assert_string_equal(words, expected);
}

void assert_message(struct bench *bench, const struct sample *sample, bool is_warning)
{
	int err = read_texts(bench, sample->text, NULL, NULL);
	_cleanup_(weir_freep) char *words = messages(bench);
	const struct weir_diag_entry *entry = bench->diag.entries;

	if (err != (is_warning ? 0 : -EINVAL) || (is_warning ? bench->diag.count : bench->diag.errors) != 1 ||
	    entry->is_warning != is_warning || entry->line != sample->line || entry->column != sample->column ||
	    !strstr(entry->message, sample->message) ||
	    (sample->hint && (!entry->hint || !strstr(entry->hint, sample->hint))))
		fail_msg("expected %d:%d: %s (%s), got %d:\n%s\nfor:\n%s", sample->line, sample->column,
			 sample->message, sample->hint ?: "", err, words, sample->text);
}

void assert_messages_of(struct bench *bench, const struct sample *samples, size_t count, bool is_warning)
{
	for (size_t i = 0; i < count; i++)
		assert_message(bench, &samples[i], is_warning);
}

/* ---- time ---- */

double cpu_seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (now.tv_sec - start->tv_sec) + (now.tv_nsec - start->tv_nsec) / 1e9;
}
