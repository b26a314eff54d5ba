/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What system rules go by, as an instance knows it now: samples of load and CPU usage, connections of all resources
 * together, and the handshakes of the last seconds.
 */
#ifndef WEIR_STATE_SYSTEM_SIGNALS_H
#define WEIR_STATE_SYSTEM_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "instance/instance.h"

struct weir_host_signals {
	bool has_samples;	 /* a rule goes by them */
	bool has_load1, has_cpu; /* they are known */
	uint64_t load1_micro, cpu_micro, sample_age_ns;
	bool has_connections; /* a rule goes by these */
	uint64_t open;
	uint64_t handshakes, mean_us;	    /* of the last second; without any, 0 */
	uint64_t complete_max, shortest_us; /* of the last five: most a second, shortest; without any, 0 */
};

/* Signals that no rule goes by are not there. Returns 0, or -errno with a word in *diag. */
int weir_signals_look(const struct weir_instance *instance, struct weir_host_signals *ret_signals,
		      struct weir_diag *diag);

#endif
