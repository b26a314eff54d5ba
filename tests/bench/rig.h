/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The test rig: a network namespace of our own with two devices that nobody sends to, two CPUs, the
 * driver, and the shipped object loaded with limits made here. Any failure ends the process with words:
 * half a measurement is none.
 */
#ifndef WEIR_BENCH_RIG_H
#define WEIR_BENCH_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "bench.h"
#include "compile/compile.h"
#include "program/object.h"

#define SECOND WEIR_NSEC_PER_SEC
#define MS (SECOND / 1000)

struct bench_driver;

struct rig {
	struct bench_driver *driver;
	int cpu[BENCH_CPUS];
	int cpu_count; /* usable here: 1 or 2 */
	int device_fd[2];
	uint32_t ifindex[2]; /* [0] holds the driver; [1] is for rig_attach */
	int driver_link;
	int driver_fd;	     /* enters at the driver */
	uint64_t next_fresh; /* of new sources: of these nobody has had any */
};

/* Moves the process to a namespace of its own and pins it to rig->cpu[0]. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/* Print what went wrong and exit(1). */
void rig_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Progress, on stderr. */
void rig_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- frames ---- */

struct rig_frame {
	uint8_t bytes[128];
	uint32_t byte_count;
};

/* UDP with 18 bytes of payload (64 bytes on the wire over IPv4) to `port` from 192.0.2.`host`, or 2001:db8::`host`. */
struct rig_frame rig_frame(int family, uint8_t host, uint16_t port);

/* The same over IPv4, in a VLAN, or with a TCP header. */
struct rig_frame rig_frame_vlan(uint16_t port);
struct rig_frame rig_frame_tcp(uint16_t port, uint8_t flags);

/* ---- the shipped object ---- */

/* A limit per second in ten buckets, on UDP to one port. */
struct rig_limit {
	uint64_t threshold;
	enum weir_window_kind window;
	bool is_keyed; /* by source; else all of it is one flow */
	uint16_t port; /* 0: every UDP packet */
};

/* Resource i of the object belongs to limits[i]. now_ns: with is_virtual, where the clock will begin. */
struct weir_object *rig_load(const struct rig_limit *limits, size_t limit_count, uint32_t flows_per_cpu,
			     bool is_virtual, uint64_t now_ns);

/* The same of a rule file's text, under the real clock. Moving thresholds hold as they were loaded, as if a controller
 * were there.
 */
struct weir_object *rig_load_text(const char *text);
/* ... without these shortcuts (enum weir_shortcut, or-ed). */
struct weir_object *rig_load_text_without(const char *text, uint32_t without_shortcuts);

/* Attach a program to the second device, without which two runs of it take turns. Close it to detach. */
int rig_attach(const struct rig *rig, int program_fd);

/* Sum over the CPUs of one rule's counters. */
struct weir_rule_counters rig_rule_counters(const struct weir_object *object, uint32_t slot);

/* Rows count their buckets from this one; of an object whose limits are all of one window. */
uint64_t rig_base_bucket(const struct weir_object *object);

/* ---- runs ---- */

/* What the driver calls from now on, and how it chooses sources. */
void rig_aim(struct rig *rig, int program_fd, enum bench_sources sources);

/* Sources "at random" are now these flows; after rig_open the BENCH_FLOWS first. */
void rig_choose(struct rig *rig, uint32_t first, uint32_t count);

/* Let the next "new" source be the one of this number, on every CPU. */
void rig_rewind(struct rig *rig, uint64_t next);

/* Let the next "new" sources, as many as a trial may need, be ones that no program has ever seen. */
void rig_skip_to_fresh(struct rig *rig);

/* Let a program see the "new" sources numbered first and up, each once. */
void rig_send_new(struct rig *rig, int program_fd, const struct rig_frame *frame, uint64_t first, uint32_t count);

/* One BPF_PROG_TEST_RUN on the CPU we are pinned to; returns the mean time of it that we had the CPU, ns a packet. */
double rig_run(int entry_fd, const struct rig_frame *frame, uint32_t repeat);

/* The same while the other CPU has empty packets: as busy as when both are measured, and nothing shared. */
double rig_run_alone(struct rig *rig, int entry_fd, const struct rig_frame *frame, uint32_t repeat);

/* The same on both CPUs at once: the mean of the two. */
double rig_run_both(const struct rig *rig, int entry_fd, const struct rig_frame *frame, uint32_t repeat);

/* Make sure that two runs which enter at the driver do not take turns. */
void rig_check_side_by_side(struct rig *rig);

/* Call work(data, i) on both CPUs at once, i = 0 and 1; returns when both have. */
void rig_on_both(const struct rig *rig, void (*work)(void *data, int i), void *data);

void rig_pin(int cpu);
uint64_t rig_now_ns(void);

#endif
