/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples of load and CPU usage from a file, for replay: what the controller would have sampled at the times of a
 * capture.
 */
#ifndef WEIR_REPLAY_SYSTEM_CSV_H
#define WEIR_REPLAY_SYSTEM_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* It holds from time_ns on, that time included. In millionths, rounded up: a sample is then above a triggerCount, which
 * has at most six decimals, exactly if what is written is.
 */
struct weir_system_sample {
	uint64_t time_ns;
	uint64_t load1_micro, cpu_micro;
};

/*
 * Read a CSV of time_ns,load1,cpu_usage, with or without that header, its times ascending. All mistakes land in *diag.
 * The caller frees *ret_samples.
 */
int weir_system_csv_read(const char *path, struct weir_system_sample **ret_samples, size_t *ret_count,
			 struct weir_diag *diag);

#endif
