// SPDX-License-Identifier: GPL-2.0-only
/*
 * sentinel_fields.md, beside this file, against the reader: every line of its tables is tried. A section has the JSON
 * of a rule, the same rule in weir's own format, and a table of fields. Each example is put into that rule. Every field
 * that is read has a line, and a word in docs/sentinel.md.
 */
#include <stdio.h>
#include <string.h>

#include "sentinel/sentinel.h"
#include "ruleset_bench.h"

#define PAGE "tests/unit/sentinel_fields.md"
#define PAGE_OF_PEOPLE "docs/sentinel.md"
#define FIXTURE                                                                                                        \
	"resources: [{name: a, flow: source}, {name: b, flow: source}, {name: whole}, "                                \
	"{name: some, match: {protocol: udp}}]\n"

/* ---- the page ---- */

static char *page, *page_of_people; /* as long as the tests run */

/* Tests run at the top of the tree (tests/run); a bench goes elsewhere. */
static char *read_whole(const char *path)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *copy = open_memstream(&text, &bytes);
	FILE *file = fopen(path, "r");
	int byte;

	assert_non_null(copy);
	if (!file)
		fail_msg("there is no %s", path);
	while ((byte = getc(file)) != EOF)
		putc(byte, copy);
	fclose(file);
	assert_int_equal(fclose(copy), 0);
	return text;
}

static int read_page(void **state)
{
	page = read_whole(PAGE);
	page_of_people = read_whole(PAGE_OF_PEOPLE);
	return 0;
}

static int forget_page(void **state)
{
	free(page);
	free(page_of_people);
	return 0;
}

/* A copy of the text between two others, the first of which is looked for from `from` on. NULL: it is not there. */
static char *between(const char *from, const char *before, const char *after)
{
	const char *begin, *end;

	assert_non_null(from);
	begin = strstr(from, before);
	if (!begin)
		return NULL;
	begin += strlen(before);
	end = strstr(begin, after);
	return end ? strndup(begin, end - begin) : NULL;
}

static char *section_of(const struct weir_sentinel_kind *kind)
{
	char heading[128];
	char *section;

	snprintf(heading, sizeof(heading), "\n## %s %s\n", kind->is_java ? "Sentinel Java's" : "Sentinel-Go's",
		 kind->title);
	/* The last one ends with the page. */
	section = between(page, heading, "\n## ");
	if (!section && strstr(page, heading))
		section = strdup(strstr(page, heading));
	if (!section)
		fail_msg("%s has no section%s", PAGE, heading);
	return section;
}

/* One line of a table. */
struct line {
	char *field, *example, *outcome, *rest;
};

static void free_line(struct line *line)
{
	free(line->field);
	free(line->example);
	free(line->outcome);
	free(line->rest);
}

/* "| `field` | `example` | outcome | rest |". Returns where the line ends; NULL: there is no further one. */
static const char *next_line(const char *text, struct line *ret_line)
{
	_cleanup_(weir_freep) char *line = NULL;
	const char *at, *end;
	char *cells[4], *rest;

	assert_non_null(text);
	at = strstr(text, "\n| `");
	if (!at)
		return NULL;
	end = strchr(at + 1, '\n');
	assert_non_null(end);
	line = strndup(at + 3, end - at - 3);
	assert_non_null(line);
	rest = line;
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		char *bar = strstr(rest, " |");

		if (!bar)
			fail_msg("%s: not a line of a table: %s", PAGE, line);
		*bar = '\0';
		cells[i] = rest + strspn(rest, " ");
		rest = bar + 2;
	}
	*ret_line = (struct line){between(cells[0], "`", "`"), between(cells[1], "`", "`"), strdup(cells[2]),
				  strdup(cells[3])};
	assert_non_null(ret_line->field);
	assert_non_null(ret_line->example);
	assert_non_null(ret_line->outcome);
	assert_non_null(ret_line->rest);
	return end;
}

/* ---- a line tried ---- */

static char *format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	return text;
}

/* The words without those in brackets. */
static char *outermost(const char *words)
{
	char *text = strdup(words), *to = text;
	int depth = 0;

	assert_non_null(text);
	for (const char *from = words; *from; from++) {
		depth += *from == '[' || *from == '{';
		if (!depth)
			*to++ = *from;
		depth -= *from == ']' || *from == '}';
	}
	*to = '\0';
	return text;
}

/* Is a field of that name in "resource: a, threshold: 100"? */
static bool names_field(const char *all_words, const char *name, size_t name_bytes)
{
	_cleanup_(weir_freep) char *words = outermost(all_words);
	_cleanup_(weir_freep) char *plain = format("%.*s:", (int)name_bytes, name);
	_cleanup_(weir_freep) char *quoted = format("\"%.*s\":", (int)name_bytes, name);

	return strstr(words, plain) || strstr(words, quoted);
}

/* The base, without the fields that the words have, and the words: the whole file in weir's language. */
static char *in_weirs_words(const char *base, const char *words)
{
	const char *name = strstr(base, "circuitBreakers: [{") ? "circuitBreakers" : "rules";
	_cleanup_(weir_freep) char *before = format("%s: [{", name);
	_cleanup_(weir_freep) char *copy = between(base, before, "}]");
	_cleanup_(weir_freep) char *kept = strdup("");
	char *rest, *field;

	if (!copy) /* lists, not rules */
		return format("%s%s\n", FIXTURE, words[0] ? words : base);
	rest = copy;
	while ((field = strsep(&rest, ","))) {
		char *longer;

		field += strspn(field, " ");
		if (names_field(words, field, strcspn(field, ":")))
			continue;
		longer = format("%s%s, ", kept, field);
		free(kept);
		kept = longer;
	}
	return format("%s%s: [{%s%s}]\n", FIXTURE, name, kept, words);
}

/* Rules are made of zeroes, so that what is between their members is equal, too. */
static bool has_same_bytes(const void *left, const void *right, size_t bytes)
{
	return !memcmp(left, right, bytes);
}

/* What rules say, without what only their files say. */
static void assert_same_rule(const struct weir_ruleset_rule *left, const struct weir_ruleset_rule *right,
			     const char *text)
{
	struct weir_ruleset_rule a = *left, b = *right;

	if (strcmp(a.name, b.name))
		fail_msg("'%s' is not '%s':\n%s", a.name, b.name, text);
	if (a.override_count != b.override_count)
		fail_msg("%zu overrides, not %zu:\n%s", a.override_count, b.override_count, text);
	for (size_t i = 0; i < a.override_count; i++)
		if (weir_compare_prefixes(&a.overrides[i].prefix, &b.overrides[i].prefix) ||
		    a.overrides[i].threshold_micro != b.overrides[i].threshold_micro)
			fail_msg("another override:\n%s", text);
	a.name = b.name = NULL;
	a.overrides = b.overrides = NULL;
	a.place = b.place = a.high_mark_place = b.high_mark_place = (struct weir_place){};
	if (!has_same_bytes(&a, &b, sizeof(a)))
		fail_msg("another rule than weir's own words:\n%s", text);
}

static void assert_same(const struct weir_ruleset *left, const struct weir_ruleset *right, const char *text)
{
	if (left->rule_count != right->rule_count || left->listed_count != right->listed_count)
		fail_msg("%zu rules and %zu prefixes, not %zu and %zu:\n%s", left->rule_count, left->listed_count,
			 right->rule_count, right->listed_count, text);
	for (size_t i = 0; i < left->rule_count; i++)
		assert_same_rule(&left->rules[i], &right->rules[i], text);
	for (size_t i = 0; i < left->listed_count; i++)
		if (weir_compare_prefixes(&left->listed[i].prefix, &right->listed[i].prefix) ||
		    left->listed[i].denies != right->listed[i].denies)
			fail_msg("another prefix:\n%s", text);
}

/* The list is read with so many warnings, and means what the words do. */
static void assert_means(struct bench *bench, const char *list, size_t warnings, const char *words)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *meant = NULL;
	_cleanup_(weir_freep) char *list_messages = NULL;
	int err = read_texts(bench, words, NULL, NULL);

	if (err)
		fail_msg("weir's own words are refused:\n%s%s", words, messages(bench));
	meant = TAKE_PTR(bench->ruleset);
	err = read_texts(bench, list, FIXTURE, NULL);
	list_messages = messages(bench);
	if (err || bench->diag.count != warnings)
		fail_msg("expected %zu warnings:\n%s%s", warnings, list, list_messages);
	assert_same(bench->ruleset, meant, list);
}

static void assert_refused(struct bench *bench, const char *list, const char *message)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_texts(bench, list, FIXTURE, NULL);

	words = messages(bench);
	if (err != -EINVAL || bench->diag.errors != 1 || !strstr(bench->diag.entries[0].message, message) ||
	    !bench->diag.entries[0].hint)
		fail_msg("expected '%s':\n%s%s", message, list, words);
}

static void try_line(struct bench *bench, const char *json, const char *yaml, const struct line *line)
{
	_cleanup_(weir_freep) char *own = format("\"%s\": ", line->field);
	_cleanup_(weir_freep) char *beginning = between(json, "", "}]");
	_cleanup_(weir_freep) char *list = format("%s, %s%s\n", beginning, line->example, json + strlen(beginning));
	_cleanup_(weir_freep) char *said = between(line->rest, "`", "`");
	_cleanup_(weir_freep) char *words = NULL;
	const char *meant = "";
	bool is_warned_of = !strcmp(line->outcome, "warned of");

	if (strncmp(line->example, own, strlen(own)))
		fail_msg("%s: the example of '%s' does not begin with it", PAGE, line->field);
	if (!strcmp(line->outcome, "refused")) {
		assert_non_null(said);
		assert_refused(bench, list, said);
		return;
	}
	if (!strcmp(line->outcome, "taken"))
		meant = line->example;
	else if (!strcmp(line->outcome, "mapped"))
		meant = said;
	else if (strcmp(line->outcome, "ignored") && !is_warned_of)
		fail_msg("%s: '%s' is no outcome of '%s'", PAGE, line->outcome, line->field);
	if (!meant || !yaml)
		fail_msg("%s: '%s' is %s: to what?", PAGE, line->field, line->outcome);
	words = in_weirs_words(yaml, meant);
	assert_means(bench, list, is_warned_of, words);
}

/* ---- the tests ---- */

BENCH_CLAIM(every_line_of_the_page_is_true)
{
	size_t lines = 0;

	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++) {
		_cleanup_(weir_freep) char *section = section_of(weir_sentinel_kinds[id]);
		_cleanup_(weir_freep) char *json = between(section, "```json\n", "\n```");
		_cleanup_(weir_freep) char *yaml = between(section, "```yaml\n", "\n```");
		const char *at = section;
		struct line line;

		assert_non_null(json);
		if (yaml) {
			_cleanup_(weir_freep) char *words = in_weirs_words(yaml, "");

			assert_means(bench, json, 0, words);
		}
		while ((at = next_line(at, &line))) {
			try_line(bench, json, yaml, &line);
			free_line(&line);
			lines++;
		}
	}
	assert_true(lines > 150);
}

/* Where the next number of an example begins, behind its field's name; NULL: there is no further one. */
static const char *next_number(const char *at)
{
	while ((at = strstr(at, ": "))) {
		at += 2;
		if (*at && strchr("-0123456789", *at))
			return at;
	}
	return NULL;
}

/* Read the same with and without quotes, and warned of. */
static void assert_taken_for_number(struct bench *bench, const char *list, const char *plain, const char *message)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *meant = NULL;
	_cleanup_(weir_freep) char *words = NULL;
	size_t warnings;

	assert_int_equal(read_texts(bench, plain, FIXTURE, NULL), 0);
	warnings = bench->diag.count;
	meant = TAKE_PTR(bench->ruleset);
	if (read_texts(bench, list, FIXTURE, NULL) || bench->diag.count != warnings + 1)
		fail_msg("not read: %s%s", list, messages(bench));
	words = messages(bench);
	assert_non_null(strstr(words, message));
	assert_same(bench->ruleset, meant, list);
}

/* Each number of the line's example, in quotes. Returns how many there are. */
static size_t quote_each(struct bench *bench, const char *json, const struct line *line, bool is_java)
{
	const char *end = strstr(json, "}]");
	size_t count = 0;

	assert_non_null(end);
	for (const char *at = line->example; (at = next_number(at)); count++) {
		const int before = at - line->example, bytes = strspn(at, "-+.eE0123456789");
		_cleanup_(weir_freep) char *list = format("%.*s, %.*s\"%.*s\"%s%s\n", (int)(end - json), json, before,
							  line->example, bytes, at, at + bytes, end);
		_cleanup_(weir_freep) char *plain = format("%.*s, %s%s\n", (int)(end - json), json, line->example, end);
		_cleanup_(weir_freep) char *message =
			format("\"%.*s\" is a string, %s", bytes, at, is_java ? "read as a number" : "not a number");

		if (is_java)
			assert_taken_for_number(bench, list, plain, message);
		else
			assert_refused(bench, list, message);
	}
	return count;
}

/* To Sentinel-Go's decoder it is a text, to Sentinel Java's a number. A list must not mean something here and nothing
 * there.
 */
BENCH_CLAIM(a_number_in_quotes_is_what_sentinels_decoder_takes_it_for_in_every_field)
{
	size_t count = 0;

	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++) {
		_cleanup_(weir_freep) char *section = section_of(weir_sentinel_kinds[id]);
		_cleanup_(weir_freep) char *json = between(section, "```json\n", "\n```");
		const char *at = section;
		struct line line;

		while ((at = next_line(at, &line))) {
			/* `id` may be any text, and what `clusterConfig` and others' fields hold is not read. */
			if (strcmp(line.outcome, "refused") && strcmp(line.outcome, "warned of") &&
			    strcmp(line.field, "id") && strcmp(line.field, "clusterConfig"))
				count += quote_each(bench, json, &line, weir_sentinel_kinds[id]->is_java);
			free_line(&line);
		}
	}
	print_message("%zu numbers\n", count);
	assert_true(count > 70);
}

static bool has_line(const char *section, const struct weir_sentinel_field *field)
{
	struct line line;
	bool is_there = false;

	while (!is_there && (section = next_line(section, &line))) {
		is_there = !strcmp(line.field, field->name) && (!field->instead || strstr(line.rest, field->instead));
		free_line(&line);
	}
	return is_there;
}

CLAIM(every_field_that_is_read_or_refused_has_a_line)
{
	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++) {
		const struct weir_sentinel_kind *kind = weir_sentinel_kinds[id];
		_cleanup_(weir_freep) char *section = section_of(kind);

		for (size_t i = 0; i < kind->field_count; i++)
			if (!has_line(section, &kind->fields[i]))
				fail_msg("%s has no line for '%s' of %s (%s)", PAGE, kind->fields[i].name, kind->title,
					 kind->fields[i].instead ?: "its own");
	}
}

static void assert_people_can_read_of(const char *name)
{
	_cleanup_(weir_freep) char *word = format("`%s`", name);

	if (!strstr(page_of_people, word))
		fail_msg("%s does not name %s", PAGE_OF_PEOPLE, word);
}

CLAIM(page_names_every_field_that_is_read_and_every_name_of_a_list)
{
	static const char *const names[] = {WEIR_SENTINEL_NAMES};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_people_can_read_of(names[i]);
	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++) {
		const struct weir_sentinel_kind *kind = weir_sentinel_kinds[id];

		/* Lists of the others are refused whole. */
		for (size_t i = 0; kind->read && i < kind->field_count; i++)
			if (!kind->fields[i].instead)
				assert_people_can_read_of(kind->fields[i].name);
	}
}

RUN_CLAIMS(read_page, forget_page)
