/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples of load and CPU usage from a file, for replay: what the controller would have sampled during the capture.
 */
#ifndef WEIR_REPLAY_SYSTEM_CSV_H
#define WEIR_REPLAY_SYSTEM_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "harness/replay_run.h"

/*
 * Read a CSV file of time_ns,load1,cpu_usage, with or without that header line, with ascending times. All mistakes are
 * added to *diag. The caller frees *ret_samples.
 */
int weir_system_csv_read(const char *path, struct weir_system_sample **ret_samples, size_t *ret_count,
			 struct weir_diag *diag);

#endif
