/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A harness: one rule set, loaded with the shipped BPF object and given to the reference model (model.h), and both
 * evaluate every packet under the virtual clock. The controller runs in step with it.
 *
 * Tests that have one run only those whose name is like WEIR_CLAIMS: WEIR_CLAIMS='agrees*'.
 */
#ifndef WEIR_TEST_HARNESS_H
#define WEIR_TEST_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "compile/compile.h"
#include "model.h"
#include "packets.h"
#include "program/object.h"
#include "program/signals.h"
#include "program/thresholds.h"
#include "random.h"
#include "random_system.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC

/* Of a group of tests: rows are per CPU, and the model knows one. */
int harness_stay_on_one_cpu(void **state);

struct harness {
	const struct weir_ruleset *ruleset;
	struct model *model;
	struct weir_image *image;
	struct weir_object *object;
	struct weir_thresholds *thresholds;
	const struct random_reading *readings; /* of memory, in order of time */
	size_t reading_count, past_readings;
	struct weir_signals_map *signals;
	const struct random_sample *samples; /* of load and CPU usage, likewise */
	size_t sample_count;
	uint64_t packets;
	bool is_at_tc;	    /* what comes in is evaluated there, too */
	uint64_t latest_ns; /* of any packet */
	struct model_decision last;
	uint8_t frame[PACKET_BYTES_MAX];
};

/* 0, or -ENOTSUP when the compiler refuses the rule set (its reasons are printed). */
int harness_open(struct harness *harness, const struct weir_ruleset *ruleset, uint64_t earliest_ns, uint64_t latest_ns);

/* The same with what comes in evaluated at tc. */
int harness_open_at_tc(struct harness *harness, const struct weir_ruleset *ruleset, uint64_t earliest_ns,
		       uint64_t latest_ns);

/* Memory in use, for both; the array must outlive the harness. */
void harness_readings(struct harness *harness, const struct random_reading *readings, size_t count);

/* Load and CPU usage, likewise. */
void harness_samples(struct harness *harness, const struct random_sample *samples, size_t count);

void harness_close(struct harness *harness);

/* Evaluate by both. Returns whether they agree; harness->last is the model's decision. */
bool harness_evaluate(struct harness *harness, const struct packet_spec *spec);

/* Do the counters say what happened? */
bool harness_agrees(struct harness *harness);

#endif
