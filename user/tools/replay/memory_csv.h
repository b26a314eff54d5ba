/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory readings from a file, for replay: what the controller would have read from the machine during the capture.
 */
#ifndef WEIR_REPLAY_MEMORY_CSV_H
#define WEIR_REPLAY_MEMORY_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "harness/replay_run.h"

/*
 * Read a CSV file of time_ns,used_bytes, with or without that header line, with ascending times. All mistakes are added
 * to *diag. The caller frees *ret_readings.
 */
int weir_memory_csv_read(const char *path, struct weir_memory_reading **ret_readings, size_t *ret_count,
			 struct weir_diag *diag);

#endif
