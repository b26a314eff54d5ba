/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A bench to read rule files on: texts become files, files a rule set, and what is reported of them is compared.
 * Asserts (cmocka) that all of that works.
 */
#ifndef WEIR_TEST_RULESET_BENCH_H
#define WEIR_TEST_RULESET_BENCH_H

#include <time.h>

#include "../lib/claims.h"
#include "base/diag.h"
#include "base/util.h"
#include "rules/ruleset.h"
#include "sentinel/sentinel.h"

/* Files are written into a directory of their own, which is the current one while they are read, so that
 * they are called a.yaml, b.yaml, c.yaml in messages.
 */
struct bench {
	char directory[32];
	char *home;
	struct weir_diag diag;
	struct weir_ruleset *ruleset;
};

int set_up(void **state);
int tear_down(void **state);

/* A claim that has a bench. */
#define BENCH_CLAIM(what) CLAIM_ABOUT(what, struct bench *bench, set_up, tear_down)

/* What was read last, and what was reported of it. */
void forget(struct bench *bench);

void write_file(const char *name, const char *text, size_t bytes);

/* Up to three files, the rest NULL. Returns what weir_ruleset_read does. */
int read_texts(struct bench *bench, const char *a, const char *b, const char *c);

/* All that is reported, as a person would see it; the caller frees it. */
char *messages(const struct bench *bench);

/* Without a word. */
void assert_reads(struct bench *bench, const char *text);

/* All that is reported is this. */
void assert_messages(struct bench *bench, const char *expected);

/* Text with exactly one mistake (or nothing but one warning): where, and words of the message and of the hint. */
struct sample {
	const char *text;
	int line, column;
	const char *message, *hint;
};

void assert_message(struct bench *bench, const struct sample *sample, bool is_warning);

/* The same of each. */
#define ASSERT_MESSAGES_OF(bench, samples, is_warning)                                                                 \
	assert_messages_of(bench, samples, ARRAY_SIZE(samples), is_warning)
void assert_messages_of(struct bench *bench, const struct sample *samples, size_t count, bool is_warning);

/* ---- what many texts have in common ---- */

#define RESOURCES "resources: [{name: dns}, {name: web}]\n"

#define MATCH(condition) "resources:\n- name: r\n  match:\n    " condition "\nrules: [{resource: r, threshold: 1}]\n"
#define RULE(field) RESOURCES "rules:\n- resource: dns\n  threshold: 5\n  " field "\n"

#define WARM_UP ", tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 10"
#define MEMORY                                                                                                         \
	"tokenCalculateStrategy: MemoryAdaptive, lowMemUsageThreshold: 1000, highMemUsageThreshold: 100, "             \
	"memLowWaterMarkBytes: 1024, memHighWaterMarkBytes: 2048"
#define THROTTLING ", controlBehavior: Throttling, maxQueueingTimeMs: 500"
#define ASSOCIATED ", relationStrategy: AssociatedResource, refResource: web"
#define ONE_RULE(fields) RESOURCES "rules:\n- {resource: dns, " fields "}\n"

#define KEYED "resources: [{name: a, flow: [source/24/56, vlan]}, {name: b}, {name: c, flow: [source/24/56, vlan]}]\n"
#define OVERRIDES(list) KEYED "rules:\n- resource: a\n  threshold: 5\n  overrides: " list "\n"

/* ---- time ---- */

/* A start by CLOCK_PROCESS_CPUTIME_ID. */
double cpu_seconds_since(const struct timespec *start);

#endif
