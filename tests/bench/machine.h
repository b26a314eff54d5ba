/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kind of machine this is, as far as figures depend on it. No names of hosts, users or paths.
 */
#ifndef WEIR_BENCH_MACHINE_H
#define WEIR_BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

struct json_t;

/* An object of strings, for report_write_json() and report_write_page(). `busy`: what it did beside the bench. */
struct json_t *machine_describe(const char *busy);

/* ---- what else it did ---- */

/* Since it was started; ticks of all CPUs together. */
struct machine_meter {
	uint64_t begin_ns, ticks, steal, used, own;
};

/* Per cent of the CPUs' time: taken by the host, and used by others than this process and its children. */
struct machine_load {
	double seconds, steal, others;
};

void machine_meter_start(struct machine_meter *ret_meter);
struct machine_load machine_meter_read(const struct machine_meter *meter);

/* So much that figures may have suffered. */
bool machine_is_busy(const struct machine_load *load);

#endif
