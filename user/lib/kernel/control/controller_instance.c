// SPDX-License-Identifier: GPL-2.0-only
/* What a controller controls: becoming its only controller, and reopening it after each reload. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/util.h"
#include "control/controller_internal.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "host/memory.h"
#include "program/array.h"
#include "program/signals.h"
#include "program/thresholds.h"

size_t weir_controller_control_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* ---- becoming the controller ---- */

pid_t weir_controller_find_holder(const char *name)
{
	_cleanup_(weir_fclosep) FILE *locks = fopen("/proc/locks", "re");
	char path[PATH_MAX], line[256], wanted[64], place[64];
	struct stat status;
	int pid;

	weir_pin_path(name, NULL, path);
	if (!locks || stat(path, &status))
		return 0;
	snprintf(wanted, sizeof(wanted), "%02x:%02x:%lu", major(status.st_dev), minor(status.st_dev), status.st_ino);
	/* "1: FLOCK  ADVISORY  WRITE 4711 00:1f:12345 0 EOF"; a waiter's line has "->" before FLOCK */
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*s FLOCK %*s %*s %d %63s", &pid, place) == 2 && !strcmp(place, wanted))
			return pid > 0 ? pid : 0;
	return 0;
}

static int fail_locked(const char *name, struct weir_diag *diag)
{
	pid_t pid = weir_controller_find_holder(name);
	char hint[160] = "another 'weir run' or 'weir control' is it; one is enough";

	if (pid)
		snprintf(
			hint, sizeof(hint),
			"it is process %d; one is enough. If you end it and it is a 'weir run', the limits end with it",
			pid);
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' has a controller already", name);
	return -EBUSY;
}

int weir_controller_lock(struct weir_controller *controller, struct weir_diag *diag)
{
	char path[PATH_MAX];

	weir_pin_path(controller->name, NULL, path);
	controller->lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (controller->lock_fd < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot open '%s'", path);
	if (!flock(controller->lock_fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK)
		return weir_diag_fail(diag, errno, NULL, "cannot lock '%s'", path);
	return fail_locked(controller->name, diag);
}

bool weir_controller_is_gone(const struct weir_controller *controller)
{
	struct stat status;

	return !fstat(controller->lock_fd, &status) && status.st_nlink == 0;
}

/* ---- what is attached ---- */

int weir_controller_read_generation(const struct weir_controller *controller, uint64_t *ret_generation)
{
	struct weir_instance_info info;
	int err = weir_array_read(controller->instance->map_fd[WEIR_TABLE_INSTANCE], &info, 1, sizeof(info));

	if (!err)
		*ret_generation = info.generation;
	return err;
}

static int open_settled(struct weir_controller *controller, struct weir_diag *diag)
{
	const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_NS};
	uint64_t generation;

	for (int attempt = 0; attempt < SETTLE_ATTEMPTS; attempt++) {
		int err;

		weir_instance_free(TAKE_PTR(controller->instance));
		err = weir_instance_open_now(controller->name, &controller->instance, diag);
		if (err)
			return err;
		if (controller->instance->is_settled && !weir_controller_read_generation(controller, &generation) &&
		    generation == controller->instance->info.generation)
			return 0;
		nanosleep(&pause, NULL);
	}
	/* A reload that has not finished: its command died, or is still running. */
	if (!weir_bpffs_is_locked())
		return weir_instance_fail_unsettled(controller->name, diag);
	weir_diag_error(diag, NULL, NULL, NULL, "a reload of instance '%s' is still running", controller->name);
	return -EAGAIN;
}

static int map_control(struct weir_controller *controller, struct weir_diag *diag)
{
	int fd = controller->instance->map_fd[WEIR_TABLE_CONTROL];
	void *control = mmap(NULL, weir_controller_control_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	/* A reload may have replaced the map. */
	if (controller->control)
		munmap(controller->control, weir_controller_control_bytes());
	controller->control = NULL;
	if (control == MAP_FAILED)
		return weir_diag_fail(diag, errno, NULL, "cannot map the heartbeat of instance '%s'", controller->name);
	controller->control = control;
	return 0;
}

uint64_t weir_controller_validity_ns(const struct weir_instance *instance)
{
	return instance->info.controller_timeout_ms * 1000000ull;
}

static int open_thresholds(struct weir_controller *controller, struct weir_diag *diag)
{
	const struct weir_instance *instance = controller->instance;
	const struct weir_thresholds_maps maps = {
		.rules = instance->rules,
		.rule_slots = instance->info.rule_slots,
		.rule_count = instance->rule_count,
		.fds.thresholds = instance->thresholds_fd,
		.fds.rule_seconds = instance->map_fd[WEIR_TABLE_RULE_SECONDS],
		.fds.warm_states = instance->map_fd[WEIR_TABLE_WARM_STATES],
		.saves_states = true,
	};
	int err = weir_thresholds_open(&maps, &controller->thresholds, diag);

	if (err || !weir_thresholds_need_memory(controller->thresholds)) {
		weir_memory_free(TAKE_PTR(controller->memory));
		return err;
	}
	/* A confined process may get a slower memory pressure trigger than before, so keep the one that is open. */
	if (controller->memory && weir_memory_is_of(controller->memory, instance->info.memory_cgroup))
		return 0;
	weir_memory_free(TAKE_PTR(controller->memory));
	controller->memory = weir_memory_open(instance->info.memory_cgroup);
	if (!controller->memory)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot watch the memory");
	controller->memory_use = (struct weir_memory_use){}; /* may be that of another cgroup */
	controller->misses_memory = false;
	return 0;
}

/* Old samples must not look like present ones. */
static int open_signals(struct weir_controller *controller, struct weir_diag *diag)
{
	const struct weir_instance *instance = controller->instance;
	static const struct weir_signals unknown;
	int err = weir_signals_open(instance->map_fd[WEIR_TABLE_SIGNALS], &controller->signals, diag);

	if (err)
		return err;
	controller->sampled_ns = 0;
	controller->sampled_rules = 0;
	for (uint32_t i = 0; i < instance->rule_count; i++)
		controller->sampled_rules += weir_needs_samples(&instance->rules[instance->rule_order[i]]);
	if (!controller->sampled_rules)
		controller->cpu_times = (struct weir_cpu_times){};
	weir_signals_publish(controller->signals, &unknown);
	return 0;
}

int weir_controller_open_all(struct weir_controller *controller, struct weir_diag *diag)
{
	int err;

	weir_thresholds_free(TAKE_PTR(controller->thresholds));
	weir_signals_close(TAKE_PTR(controller->signals));
	err = open_settled(controller, diag);
	if (!err)
		err = weir_instance_expect_tables(controller->instance, CONTROLLER_TABLES, "the thresholds", diag);
	if (!err)
		err = map_control(controller, diag);
	if (!err)
		err = open_thresholds(controller, diag);
	if (!err)
		err = open_signals(controller, diag);
	for (size_t i = 0; !err && weir_calculators()[i]; i++)
		err = weir_calculators()[i]->follow(&controller->calculated[i], controller->instance, diag);
	weir_bound_memory();
	return err;
}
