/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A laboratory: one rule set, loaded with the shipped BPF object and given to the reference model (model.h), and both
 * evaluate every packet under the virtual clock. The controller runs in step with it.
 *
 * Tests that have one run only those whose name is like WEIR_CLAIMS: WEIR_CLAIMS='agrees*'.
 */
#ifndef WEIR_TEST_LAB_H
#define WEIR_TEST_LAB_H

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
int lab_stay_on_one_cpu(void **state);

struct lab {
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
	uint64_t latest_ns;	    /* of any packet */
	struct model_decision last; /* of lab_send */
	uint8_t frame[PACKET_BYTES_MAX];
};

/* 0, or -ENOTSUP when the compiler refuses the rule set (its reasons are printed). */
int lab_open(struct lab *lab, const struct weir_ruleset *ruleset, uint64_t earliest_ns, uint64_t latest_ns);

/* Memory in use, for both; the array must outlive the lab. */
void lab_readings(struct lab *lab, const struct random_reading *readings, size_t count);

/* Load and CPU usage, likewise. */
void lab_samples(struct lab *lab, const struct random_sample *samples, size_t count);

void lab_close(struct lab *lab);

/* Evaluate by both. Returns whether they agree; *ret_decision is the model's. */
bool lab_evaluate(struct lab *lab, const struct packet_spec *spec, struct model_decision *ret_decision);

/* Do the counters say what happened? */
bool lab_agrees(struct lab *lab);

#endif
