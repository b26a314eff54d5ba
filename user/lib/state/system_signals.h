/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inputs of system rules, as an instance currently knows them: samples of load and CPU usage, connections of all
 * resources together, and the handshakes of the last seconds.
 */
#ifndef WEIR_STATE_SYSTEM_SIGNALS_H
#define WEIR_STATE_SYSTEM_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "instance/instance.h"

struct weir_host_signals {
	bool has_samples;	 /* a rule uses them */
	bool has_load1, has_cpu; /* whether each value is known */
	uint64_t load1_micro, cpu_micro, sample_age_ns;
	bool has_connections; /* a rule uses these */
	uint64_t open;
	uint64_t handshakes, mean_us; /* in the last second; 0 if there were none */
	/* In the last five seconds: most per second, and the shortest; 0 if there were none. */
	uint64_t complete_max, shortest_us;
};

/* Signals that no rule uses are omitted. Returns 0, or -errno with a message in *diag. */
int weir_signals_look(const struct weir_instance *instance, struct weir_host_signals *ret_signals,
		      struct weir_diag *diag);

#endif
