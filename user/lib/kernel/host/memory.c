// SPDX-License-Identifier: GPL-2.0-only
#include "host/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"

/* Triggers if some task was delayed for 5 ms within half a second, the shortest window that the kernel accepts
 * (Documentation/accounting/psi.rst). Chosen, not derived: it reacts early, and wakes us at most twice a second.
 */
#define PRESSURE_TRIGGER "some 5000 500000"
/* Without CAP_SYS_RESOURCE, only windows that are multiples of two seconds are allowed (from Linux 6.4; none at all
 * before). This trigger is the same fraction of such a window.
 */
#define PRESSURE_TRIGGER_UNPRIVILEGED "some 20000 2000000"

struct weir_memory {
	char *cgroup; /* NULL: the system's memory */
	int fd;	      /* of the file with the usage; negative: the file does not exist, or no longer exists */
	int pressure_fd;
	bool watches; /* the object will be read repeatedly */
};

/* ---- locating a cgroup ---- */

/* The path of this file in a cgroup's directory; false if there is none. */
static bool find_cgroup(const char *cgroup, const char *file, char path[PATH_MAX])
{
	/* The mount points of version 2 alone, and of version 1 with or without it. A mount namespace such as the one
	 * made by `ip netns exec` hides them, but process 1 sees them.
	 */
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", ""};
	static const char *const views[] = {"", "/proc/1/root"};
	struct stat status;

	for (size_t view = 0; view < ARRAY_SIZE(views) && (view == 0 || weir_bpffs_is_elsewhere()); view++)
		for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
			int bytes = snprintf(path, PATH_MAX, "%s%s/%s/%s", views[view], roots[i], cgroup, file);

			if (bytes > 0 && bytes < PATH_MAX && !stat(path, &status) && S_ISREG(status.st_mode))
				return true;
		}
	return false;
}

/* Returns a descriptor or -errno. */
static int open_figure(const char *cgroup)
{
	char path[PATH_MAX] = "/proc/meminfo";
	int fd;

	if (cgroup && !find_cgroup(cgroup, "memory.current", path) &&
	    !find_cgroup(cgroup, "memory.usage_in_bytes", path))
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

/* A descriptor that becomes ready when the trigger fires. A missing file, or a lack of permission, is not a failure. */
static int open_pressure(const char *cgroup, enum weir_memory_pressure *ret_pressure)
{
	_cleanup_(weir_closep) int fd = -1;
	char path[PATH_MAX] = "/proc/pressure/memory";

	*ret_pressure = WEIR_MEMORY_PRESSURE_NEVER;
	if (cgroup && !find_cgroup(cgroup, "memory.pressure", path))
		return -1;
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (write(fd, PRESSURE_TRIGGER, sizeof(PRESSURE_TRIGGER)) >= 0)
		*ret_pressure = WEIR_MEMORY_PRESSURE_AT_ONCE;
	else if (write(fd, PRESSURE_TRIGGER_UNPRIVILEGED, sizeof(PRESSURE_TRIGGER_UNPRIVILEGED)) >= 0)
		*ret_pressure = WEIR_MEMORY_PRESSURE_LATE;
	else
		return -1;
	return TAKE_FD(fd);
}

/* Open both for the same cgroup: after a removal, another cgroup of that name may exist now. */
static void open_both(struct weir_memory *memory)
{
	enum weir_memory_pressure unused;

	memory->fd = open_figure(memory->cgroup);
	if (memory->pressure_fd < 0)
		memory->pressure_fd = open_pressure(memory->cgroup, &unused);
}

static struct weir_memory *new_memory(const char *cgroup)
{
	_cleanup_(weir_memory_freep) struct weir_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return NULL;
	memory->fd = memory->pressure_fd = -1;
	if (cgroup && *cgroup) {
		memory->cgroup = strdup(cgroup);
		if (!memory->cgroup)
			return NULL;
	}
	return TAKE_PTR(memory);
}

struct weir_memory *weir_memory_open(const char *cgroup)
{
	struct weir_memory *memory = new_memory(cgroup);

	if (!memory)
		return NULL;
	open_both(memory);
	memory->watches = true;
	return memory;
}

void weir_memory_free(struct weir_memory *memory)
{
	if (!memory)
		return;
	weir_closep(&memory->fd);
	weir_closep(&memory->pressure_fd);
	free(memory->cgroup);
	free(memory);
}

bool weir_memory_is_of(const struct weir_memory *memory, const char *cgroup)
{
	return !strcmp(memory->cgroup ? memory->cgroup : "", cgroup ? cgroup : "");
}

/* ---- readings ---- */

/* The number after `label` at the start of a line, in KiB. */
static bool find_kib(const char *text, const char *label, uint64_t *ret_kib)
{
	const char *found = strstr(text, label);
	char *end;

	if (!found || (found != text && found[-1] != '\n'))
		return false;
	found += strlen(label);
	*ret_kib = strtoull(found, &end, 10);
	return end != found;
}

static int parse_system(const char *text, uint64_t *ret_used_bytes)
{
	uint64_t total_kib, available_kib;

	if (!find_kib(text, "MemTotal:", &total_kib) || !find_kib(text, "MemAvailable:", &available_kib))
		return -EPROTO;
	*ret_used_bytes = total_kib > available_kib ? (total_kib - available_kib) * 1024 : 0;
	return 0;
}

static int parse_cgroup(const char *text, uint64_t *ret_bytes)
{
	char *end;

	*ret_bytes = strtoull(text, &end, 10);
	return end == text ? -EPROTO : 0;
}

int weir_memory_read(struct weir_memory *memory, uint64_t *ret_used_bytes)
{
	char text[512]; /* both values of /proc/meminfo are in its first three lines */
	ssize_t bytes;

	if (memory->fd < 0 && memory->watches)
		open_both(memory);
	else if (memory->fd < 0)
		memory->fd = open_figure(memory->cgroup);
	if (memory->fd < 0)
		return memory->fd;
	bytes = pread(memory->fd, text, sizeof(text) - 1, 0);
	if (bytes <= 0) {
		/* The cgroup was removed. Another of the same name may appear. */
		int err = bytes ? -errno : -EPROTO;

		weir_closep(&memory->fd);
		memory->fd = -1;
		weir_memory_forget_pressure(memory);
		return err;
	}
	text[bytes] = '\0';
	return memory->cgroup ? parse_cgroup(text, ret_used_bytes) : parse_system(text, ret_used_bytes);
}

int weir_memory_read_once(const char *cgroup, uint64_t *ret_used_bytes)
{
	_cleanup_(weir_memory_freep) struct weir_memory *memory = new_memory(cgroup);

	return memory ? weir_memory_read(memory, ret_used_bytes) : -ENOMEM;
}

const char *weir_memory_explain(const char *cgroup, int err)
{
	if (err == -ENOENT && cgroup && *cgroup)
		return "there is no such cgroup, or its memory is not accounted";
	return err == -EPROTO ? "the file does not contain it" : strerror(-err);
}

int weir_memory_pressure_fd(const struct weir_memory *memory)
{
	return memory->pressure_fd;
}

void weir_memory_forget_pressure(struct weir_memory *memory)
{
	weir_closep(&memory->pressure_fd);
	memory->pressure_fd = -1;
}

enum weir_memory_pressure weir_memory_pressure(void)
{
	enum weir_memory_pressure pressure;
	int fd = open_pressure(NULL, &pressure);

	weir_closep(&fd);
	return pressure;
}

/* Without a limit, version 2 says "max", and version 1 a number larger than any memory. */
static uint64_t cgroup_limit_bytes(const char *cgroup)
{
	char path[PATH_MAX], text[64];
	uint64_t bytes;

	if (!find_cgroup(cgroup, "memory.max", path) && !find_cgroup(cgroup, "memory.limit_in_bytes", path))
		return UINT64_MAX;
	return weir_host_read_text(path, text, sizeof(text)) || parse_cgroup(text, &bytes) ? UINT64_MAX : bytes;
}

uint64_t weir_memory_total_bytes(const char *cgroup)
{
	uint64_t total_bytes = 0, limit_bytes, kib;
	char text[512];

	if (!weir_host_read_text("/proc/meminfo", text, sizeof(text)) && find_kib(text, "MemTotal:", &kib))
		total_bytes = kib * 1024;
	if (!cgroup || !*cgroup)
		return total_bytes;
	limit_bytes = cgroup_limit_bytes(cgroup);
	return limit_bytes < total_bytes ? limit_bytes : total_bytes;
}
