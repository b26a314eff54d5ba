// SPDX-License-Identifier: GPL-2.0-only
#include "trial.h"

#include <bpf/libbpf.h>

#include "tests/bench/driver.skel.h"

static double run(struct rig *rig, const struct trial *trial, int program_fd)
{
	rig_aim(rig, program_fd, trial->sources);
	return rig_run(rig->driver_fd, &trial->frame, trial->repeat);
}

void trial_run(struct rig *rig, const struct trial *trial, struct trial_result *ret_result)
{
	int empty_fd = bpf_program__fd(rig->driver->progs.bench_empty);

	ret_result->rounds = trial->rounds;
	for (uint32_t round = 0; round < trial->rounds; round++) {
		double empty_ns = run(rig, trial, empty_fd);

		for (size_t i = 0; i < trial->program_count; i++)
			ret_result->ns[i][round] = run(rig, trial, trial->program_fd[i]) - empty_ns;
	}
}
