// SPDX-License-Identifier: GPL-2.0-only
#include "host/load_average.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/host.h"

int weir_load_read(uint64_t *ret_load1_micro)
{
	unsigned int whole, hundredths;
	char text[128];
	int err = weir_host_read_text("/proc/loadavg", text, sizeof(text));

	if (err)
		return err;
	/* "0.42 0.30 0.25 1/234 5678": always with two decimals (fs/proc/loadavg.c) */
	if (sscanf(text, "%u.%2u", &whole, &hundredths) != 2)
		return -EINVAL;
	*ret_load1_micro = whole * 1000000ull + hundredths * 10000ull;
	return 0;
}

static int read_times(struct weir_cpu_times *ret_times)
{
	uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
	char text[512];
	int err = weir_host_read_text("/proc/stat", text, sizeof(text));

	if (err)
		return err;
	/* The first line is the sum over all CPUs. `user` and `nice` already include the time of guests (proc(5)). */
	if (sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal) != 8)
		return -EINVAL;
	ret_times->busy = user + nice + system + irq + softirq + steal;
	ret_times->total = ret_times->busy + idle + iowait;
	return 0;
}

int weir_cpu_usage_read(struct weir_cpu_times *times, uint64_t *ret_micro)
{
	const struct weir_cpu_times before = *times;
	uint64_t busy, total;
	int err = read_times(times);

	if (err)
		return err;
	/* The kernel's sums of idle time can decrease a little (proc(5)). */
	if (!before.total || times->total <= before.total)
		return -EAGAIN;
	total = times->total - before.total;
	busy = times->busy > before.busy ? times->busy - before.busy : 0;
	*ret_micro = busy < total ? (uint64_t)((unsigned __int128)busy * 1000000 / total) : 1000000;
	return 0;
}
