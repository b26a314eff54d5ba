// SPDX-License-Identifier: GPL-2.0-only
/* Files that nobody means well: garbage, bombs and damage. Reading them ends, with a word, in bounded time. */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "ruleset_bench.h"

/* A control character may be good UTF-8; what is said of it sends nobody to look for another encoding. */
BENCH_CLAIM(bytes_that_are_no_text_are_refused_and_never_end_the_file)
{
	/* libfyaml 0.7.12 takes these for the end of the file: the rules after them would be missing. */
	static const char before[] = "resources: [{name: r}]\n# ", after[] = "\nrules: [{resource: r, threshold: 1}]\n";
	static const struct {
		const char *bytes;
		size_t count;
		const char *message, *hint;
	} bad[] = {
		{"\xff", 1, "byte 0xff is not UTF-8 text", "save the file as plain UTF-8 text"},
		{"\xc0\x80", 2, "byte 0xc0 is not UTF-8 text", "save the file as plain UTF-8 text"},
		{"\xed\xa0\x80", 3, "byte 0xed is not UTF-8 text", "save the file as plain UTF-8 text"},
		{"\0", 1, "control character U+0000 is not text", "save the file as plain UTF-8 text"},
		{"\x1b", 1, "control character U+001B is not text", "remove it"},
		{"\x7f", 1, "control character U+007F is not text", "remove it"},
		{"\xc2\x85", 2, "control character U+0085 is not text", "remove it"},
		{"\xef\xbf\xbe", 3, "character U+FFFE is not text", "remove it"},
	};
	static const char *const paths[] = {"a.yaml"};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t used = strlen(before);

		forget(bench);
		memcpy(text, before, used);
		memcpy(text + used, bad[i].bytes, bad[i].count);
		strcpy(text + used + bad[i].count, after);
		write_file("a.yaml", text, used + bad[i].count + strlen(after));
		assert_int_equal(weir_ruleset_read(paths, 1, &bench->ruleset, &bench->diag), -EINVAL);
		assert_int_equal(bench->diag.entries[0].line, 2);
		assert_int_equal(bench->diag.entries[0].column, 3);
		assert_string_equal(bench->diag.entries[0].message, bad[i].message);
		assert_string_equal(bench->diag.entries[0].hint, bad[i].hint);
	}
}

BENCH_CLAIM(aliases_cannot_blow_up_a_small_file)
{
	char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";

	for (int i = 1; i < 9; i++) {
		sprintf(text + strlen(text), "a%d: &a%d [", i, i);
		for (int j = 0; j < 10; j++)
			sprintf(text + strlen(text), "*a%d%s", i - 1, j < 9 ? ", " : "]\n");
	}
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_non_null(strstr(bench->diag.entries[0].message, "more than 600000 values"));
}

BENCH_CLAIM(nesting_is_bounded)
{
	char text[1024] = "a: ";

	memset(text + 3, '[', 500);
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
}

/* As many lists as there is room to remember, and one more, which is pointed at. */
BENCH_CLAIM(lists_are_nested_32_deep_and_no_deeper)
{
	char text[128];

	for (int depth = 32; depth <= 33; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		text[2 * depth] = '\0';
		assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
		assert_int_equal(!strstr(bench->diag.entries[0].message, "nested too deeply"), depth == 32);
		assert_true(depth == 32 || bench->diag.entries[0].column == 33);
	}
}

/* Before libfyaml sees it, which would take 400 bytes a bracket. */
BENCH_CLAIM(brackets_that_stay_open_are_refused_where_there_are_too_many)
{
	static char text[4096];

	for (int i = 0; i < 2; i++) {
		memset(text, "[{"[i], sizeof(text) - 1);
		assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
		assert_int_equal(bench->diag.entries[0].column, 1001);
		assert_non_null(strstr(bench->diag.entries[0].message, "more than 1000 brackets are open"));
	}
	/* Those that are closed do not count. */
	strcpy(text, "rules: [");
	for (int i = 0; i < 1200; i++)
		strcat(text, "7,");
	strcat(text, "{}]\n# ");
	for (int i = 0; i < 500; i++)
		strcat(text, "[]");
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_null(strstr(bench->diag.entries[0].message, "nested"));
}

BENCH_CLAIM(file_beyond_8_megabytes_is_refused)
{
	static const char *const paths[] = {"a.yaml"};
	size_t bytes = (8u << 20) + 1;
	_cleanup_(weir_freep) char *text = malloc(bytes);

	assert_non_null(text);
	memset(text, '\n', bytes);
	write_file("a.yaml", text, bytes);
	assert_int_equal(weir_ruleset_read(paths, 1, &bench->ruleset, &bench->diag), -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "'a.yaml' is larger than 8 MB");
}

/* Eight megabytes of the same, between a head and a tail. */
static char *fill(const char *head, const char *unit, const char *tail)
{
	const size_t most = (8u << 20) - strlen(tail), bytes = strlen(unit);
	char *text = malloc((8u << 20) + 1), *at;

	assert_non_null(text);
	at = stpcpy(text, head);
	while (at + bytes <= text + most)
		at = mempcpy(at, unit, bytes);
	strcpy(at, tail);
	return text;
}

/* What once took 40 seconds and two gigabytes. Memory is the child's alone. */
BENCH_CLAIM(whatever_fills_a_file_is_answered_in_a_second_and_128_megabytes)
{
	static const struct {
		const char *head, *unit, *tail, *message;
	} files[] = {
		{"", "%x y\n", "", "more than 100 lines that begin with '%'"},
		{"{", "\"a\": 1,", "}\n", "the line is longer than 256 KB"},
		{"- [", "a,", "a]\n", "the line is longer than 256 KB"},
		{"x:\n [", "a,", "a]\n", "the line is longer than 256 KB"},
		{"- [\n", " a,\n", " a]\n", "more than 600000 values"},
		{"allow: [\n", " 192.0.2.1,\n", " 192.0.2.1]\n", "more than 600000 values"},
		{"allow:\n", "- 192.0.2.1\n", "", "more than 600000 values"},
		{"", "a: b\n", "", "more than 600000 values"},
		{"a: &a b\nc: [\n", " *a,\n", " b]\n", "more than 600000 values"},
		{"resources: [{name: a}]\nrules:\n", "- {resource: a, threshold: 5}\n", "", "more than 600000 values"},
		{"a: |\n", " x\n", "", "no field 'a'"},
		{"a: \"\n", " \\x41\n", " \"\n", "no field 'a'"},
		{"a:\n", " word\n", "", "no field 'a'"},
		{"", "# x\n", "rules: 7\n", "'rules' must be a list"},
		{"", "\n", "rules: 7\n", "'rules' must be a list"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(weir_freep) char *text = fill(files[i].head, files[i].unit, files[i].tail);
		struct timespec start;
		struct rusage usage;
		double seconds = 4;

		/* Of a machine that others use, too, CPU time is not what it is alone: the least of three counts. */
		for (int attempt = 0; attempt < 3 && seconds >= 4; attempt++) {
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
			assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
			seconds = cpu_seconds_since(&start);
		}
		getrusage(RUSAGE_SELF, &usage);
		print_message("8 MB of '%s': %.2f s of CPU time, %ld MB\n", files[i].unit, seconds,
			      usage.ru_maxrss / 1024);
		assert_non_null(strstr(bench->diag.entries[0].message, files[i].message));
		assert_true(seconds < 4);
		/* The bench's own copies of the text are some 25 of them. */
		assert_true(usage.ru_maxrss < 160 * 1024);
	}
}

BENCH_CLAIM(thousands_of_mistakes_end_in_one_line)
{
	_cleanup_(weir_freep) char *text = malloc(64 * 1024);
	char *at;

	assert_non_null(text);
	at = stpcpy(text, "rules:\n");
	for (int i = 0; i < 3000; i++)
		at = stpcpy(at, "- x\n");
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 1001);
	assert_string_equal(bench->diag.entries[1000].message, "more than 1000 mistakes; the rest is not shown");
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Up to six edits: a byte replaced, some cut out, one doubled. `text` has room for 64 more. */
static void damage(char *text, size_t bytes_max, uint32_t *seed)
{
	static const char spice[] = "\n\t -:,[]{}&*!|>'\"#%@`?\\0~<.\xc3\xa9\xff";

	for (uint32_t edits = 1 + next_random(seed) % 6; edits; edits--) {
		size_t at = next_random(seed) % strlen(text), bytes = 1 + next_random(seed) % 20;

		switch (next_random(seed) % 3) {
		case 0:
			text[at] = spice[next_random(seed) % (sizeof(spice) - 1)];
			break;
		case 1:
			bytes = bytes < strlen(text + at) ? bytes : strlen(text + at);
			memmove(text + at, text + at + bytes, strlen(text + at + bytes) + 1);
			break;
		default:
			if (strlen(text) < bytes_max)
				memmove(text + at + 1, text + at, strlen(text + at) + 1);
		}
	}
}

#define FOR_LISTS "resources: [{name: dns}, {name: web}, {name: a, flow: source}, {name: b}, {name: all}]\n"

/* Whatever comes, the reader answers with 0 or mistakes. */
BENCH_CLAIM(damaged_files_never_crash_the_reader)
{
	static const char *const good[] = {
		"settings: &s {flowsPerCpu: 512, malformed: pass, memory: cgroup:/x}\n"
		"resources:\n- name: \"r\"\n  match:\n    protocol: [tcp, 17]\n    source: [192.0.2.0/24, '::1']\n"
		"    destinationPort: &p [1-2, 80]\n    sourcePort: *p\n    tcpFlags: 'syn,!ack'\n"
		"  flow: [source/24/56, vlan]\nrules:\n- {resource: r, threshold: 1.5, sampleCount: 5}\n"
		"- resource: r\n  threshold: |\n    7\n  window: strict\n",
		"allow: ['@good.txt', 10.0.0.0/8]\ndeny: ['::/8']\nresources: [{name: r, flow: source}, {name: s}]\n"
		"rules:\n- resource: r\n  threshold: 100\n  overrides:\n  - {source: 192.0.2.0/24, threshold: 0}\n"
		"  - {source: '2001:db8::', threshold: 7.5}\n"
		"- {resource: r, threshold: 9, tokenCalculateStrategy: 1, warmUpPeriodSec: 3, controlBehavior: 1,\n"
		"   relationStrategy: 1, refResource: s}\n- {resource: s, " MEMORY "}\n",
		"[{\"resource\": \"a\", \"grade\": 1, \"count\": 7.5, \"controlBehavior\": 3, \"limitApp\": "
		"\"default\",\n"
		"  \"clusterMode\": false}, {\"rule\": {\"resource\": \"b\", \"grade\": 0, \"count\": 1, \"strategy\": "
		"0}}]\n",
		"[{\"resource\": \"a\", \"metricType\": 1, \"controlBehavior\": 1, \"paramIndex\": 0, \"threshold\": "
		"5,\n"
		"  \"durationInSec\": 2, \"specificItems\": [{\"valKind\": 1, \"valStr\": \"10.0.0.1\", \"threshold\": "
		"9},\n"
		"  {\"valStr\": \"::1\", \"threshold\": 0}], \"paramsMaxCapacity\": 7}]\n",
		"[{\"id\": 1, \"rule\": {\"resource\": \"a\", \"grade\": 1, \"paramIdx\": 0, \"controlBehavior\": 2,\n"
		"  \"count\": 5.5, \"paramFlowItemList\": [{\"object\": \"10.0.0.1\", \"classType\": \"x\", \"count\": "
		"9}]}}]\n",
		"[{\"resource\": \"all\", \"limitApp\": \"10.0.0.0/8,192.0.2.1,2001:db8::/32,fe80::/10\", "
		"\"strategy\": 0},\n"
		" {\"resource\": \"all\", \"limitApp\": \"10.1.0.0/16,::1\", \"strategy\": 1}]\n",
		"[{\"resource\": \"dns\", \"threshold\": 1e3, \"tokenCalculateStrategy\": 1, \"warmUpPeriodSec\": 5},\n"
		" {\"Resource\": \"web\", \"threshold\": 0.5, \"regex\": false, \"relationStrategy\": 1, "
		"\"refResource\": "
		"\"dns\"}]\n",
	};
	uint32_t seed = 1;

	write_file("good.txt", "1.2.3.4\n", 8);
	for (int round = 0; round < 6000; round++) {
		const char *sample = good[round % ARRAY_SIZE(good)];
		char text[2048];
		int err;

		strcpy(text, sample);
		damage(text, strlen(sample) + 64, &seed);
		err = read_texts(bench, text, text[0] == '[' ? FOR_LISTS : NULL, NULL);
		free(messages(bench));
		if ((err != 0) != (bench->diag.errors != 0) || (err == 0) != (bench->ruleset != NULL))
			fail_msg("returned %d with %zu mistakes for:\n%s", err, bench->diag.errors, text);
	}
}

RUN_CLAIMS(NULL, NULL)
