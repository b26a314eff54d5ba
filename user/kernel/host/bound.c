// SPDX-License-Identifier: GPL-2.0-only
#include "host/bound.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/util.h"
#include "host/host.h"

/* Room for what a later reload may need in addition: descriptions twice, and counters of up to 8,192 rules on each CPU.
 * Chosen, not derived: well above all of that, and well below what would harm a machine.
 */
#define MORE_BYTES (256ull << 20)
#define MORE_BYTES_A_CPU (1ull << 20)

static bool read_data_bytes(uint64_t *ret_bytes)
{
	_cleanup_(weir_fclosep) FILE *status = fopen("/proc/self/status", "re");
	unsigned long long kib;
	char line[128];

	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmData: %llu kB", &kib) == 1) {
			*ret_bytes = kib * 1024;
			return true;
		}
	}
	return false;
}

static void set_limit(rlim_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit))
		return;
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	(void)setrlimit(RLIMIT_DATA, &limit);
}

void weir_bound_memory(void)
{
	int cpus = weir_host_cpus();
	uint64_t bytes;

	if (read_data_bytes(&bytes))
		set_limit(bytes + MORE_BYTES + (uint64_t)(cpus > 0 ? cpus : 1) * MORE_BYTES_A_CPU);
}

void weir_unbound_memory(void)
{
	set_limit(RLIM_INFINITY);
}
