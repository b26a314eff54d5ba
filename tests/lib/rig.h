/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rig: rules made in C, compiled, and the shipped BPF object loaded with them, for tests that ask
 * something of the tables or of several CPUs. Asserts (cmocka) that each step works.
 */
#ifndef WEIR_TEST_RIG_H
#define WEIR_TEST_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <sched.h>
#include <stdatomic.h>

#include "compile/compile.h"
#include "program/object.h"

#define MS 1000000ull
#define SECOND WEIR_NSEC_PER_SEC

/* The virtual clock starts here: well after zero, so that windows look back into time that was. */
#define RIG_START_NS (1000 * SECOND)

struct rig {
	struct weir_ruleset *ruleset;
	struct weir_image *image;
	struct weir_object *object;
	uint32_t cpus;	 /* that the program shall believe in; 0: as many as there are */
	uint32_t secret; /* which one: any number */
	uint32_t hooks;	 /* to be loaded beside XDP: bits 1 << enum weir_hook */
	/* A load of the same instance, whose maps and slots this one takes over, as by a reload at now_ns of the
	 * virtual clock; or NULL.
	 */
	const struct rig *reloads;
	uint64_t now_ns;
	bool stays;	    /* on the CPU of rig_load_here */
	cpu_set_t roams_to; /* when it ends */
};

/* Root and `cpus` CPUs to run on; otherwise says what is missing and skips the test (not for use in a setup). */
void rig_require(int cpus);

/* The test is about this shortcut: skips it in a run without (shortcuts.h). */
void rig_require_shortcut(enum weir_shortcut shortcut);

/* Pin this thread to a CPU. */
void rig_pin(int cpu);
/* ... to the one it is on, and let it go where it was allowed to before. */
void rig_stay(cpu_set_t *ret_before);
void rig_roam(const cpu_set_t *before);

/* The same for a group of cmocka tests: its setup and its teardown. */
int rig_stay_group(void **state);
int rig_roam_group(void **state);

/*
 * Wait until all `threads` are here for the `round`th time (from 0); *arrived begins with 0. It spins: a barrier that
 * sleeps lets one thread run before the other has woken up, and they never meet at a packet.
 */
void rig_line_up(atomic_uint *arrived, uint32_t threads, uint32_t round);

/* Begin a rule set; skips the test without root. flows_per_cpu is the size of the flow tables (at least 512). */
void rig_begin(struct rig *rig, uint32_t flows_per_cpu);

/* UDP to this port, with this key (enum weir_key_field, whole addresses). Returns its place. */
size_t rig_resource(struct rig *rig, uint16_t destination_port, uint32_t key_fields);

/* A rule on a resource; may be changed until rig_load. The pointer lives until the next rule is added. */
struct weir_ruleset_rule *rig_rule(struct rig *rig, size_t resource, enum weir_window_kind window, uint64_t threshold,
				   uint64_t interval_ns, uint32_t samples);

void rig_load(struct rig *rig, bool is_virtual);

/* ... under the virtual clock, for packets of one CPU: that of this thread, which stays there until rig_end(). */
void rig_load_here(struct rig *rig);

/* A map of the generation's, by its name. The caller closes it. */
int rig_map_fd(const struct rig *rig, const char *name);

/* Evaluate a frame under the virtual clock: did it pass? */
bool rig_passes(struct rig *rig, uint64_t now_ns, const void *frame, uint32_t frame_bytes);

/* Counters of a rule (its place), all CPUs together. */
struct weir_rule_counters rig_rule_counters(const struct rig *rig, size_t rule);
/* Counters of a resource (its place), all CPUs together. */
struct rig_resource_counters {
	struct weir_tally passed, blocked;
	uint64_t blocked_by_second; /* in the last minute, as far as it was counted by seconds */
};
struct rig_resource_counters rig_resource_counters(const struct rig *rig, size_t resource);

/* Packets that a resource (its place) let pass, all CPUs together. */
uint64_t rig_passed(const struct rig *rig, size_t resource);

/* Packets with this verdict, all CPUs together; WEIR_VERDICT_COUNT: all that were seen. */
struct weir_tally rig_verdicts(const struct rig *rig, enum weir_verdict verdict);

/* The first CPUs that this thread may use. */
void rig_cpus(int cpu[], int count);

/*
 * Attach to the loopback of a network namespace of our own: test runs of a program that is attached nowhere take turns.
 * One rig at a time; rig_end() ends it, and rig_detach(), as a test's teardown, does after a test that failed.
 */
void rig_attach(const struct rig *rig);
int rig_detach(void **state);

void rig_end(struct rig *rig);

#endif
