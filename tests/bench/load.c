// SPDX-License-Identifier: GPL-2.0-only
/* What the machine did beside the bench, from /proc/stat. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "machine.h"
#include "rig.h"

/* Chosen, not derived: quiet machines stay below them, figures move visibly above. */
#define STEAL_MAX 2.0
#define OTHERS_MAX 5.0

static uint64_t own_ticks(int who)
{
	struct rusage usage;
	double seconds;

	getrusage(who, &usage);
	seconds =
		usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	return seconds * sysconf(_SC_CLK_TCK);
}

/*
 * Time in interrupts, soft ones too, is the bench's own for the most part: its packets arrive there. So it is left out
 * of what is used. What kernel threads do counts as others', though some of it (freeing maps) is for the bench.
 */
void machine_meter_start(struct machine_meter *ret_meter)
{
	unsigned long long user = 0, nice_user = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0, steal = 0;
	FILE *stream = fopen("/proc/stat", "re");

	if (!stream || fscanf(stream, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice_user, &system, &idle,
			      &waiting, &hard, &soft, &steal) != 8)
		rig_fail(0, "cannot read '/proc/stat'");
	fclose(stream);
	*ret_meter = (struct machine_meter){
		.begin_ns = rig_now_ns(),
		.ticks = user + nice_user + system + idle + waiting + hard + soft + steal,
		.steal = steal,
		.used = user + nice_user + system,
		.own = own_ticks(RUSAGE_SELF) + own_ticks(RUSAGE_CHILDREN),
	};
}

struct machine_load machine_meter_read(const struct machine_meter *meter)
{
	struct machine_load load = {};
	struct machine_meter now;
	double ticks;
	int64_t others;

	machine_meter_start(&now);
	load.seconds = (now.begin_ns - meter->begin_ns) / 1e9;
	ticks = now.ticks - meter->ticks;
	others = (int64_t)(now.used - meter->used) - (int64_t)(now.own - meter->own);
	if (ticks > 0) {
		load.steal = 100 * (now.steal - meter->steal) / ticks;
		load.others = others > 0 ? 100 * others / ticks : 0;
	}
	return load;
}

bool machine_is_busy(const struct machine_load *load)
{
	return load->steal > STEAL_MAX || load->others > OTHERS_MAX;
}
