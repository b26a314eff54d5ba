/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory is in use, by the system or by a cgroup (version 2 or 1). The caller may read as often as it likes.
 * If the kernel reports memory pressure (PSI), a descriptor wakes the caller at once. Makes no decisions.
 */
#ifndef WEIR_HOST_MEMORY_H
#define WEIR_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct weir_memory;

/*
 * Watch the memory of a cgroup, or of the system ("" or NULL). A cgroup is named as in /proc/PID/cgroup, by its path
 * below the mount, or by the path of its directory in /sys/fs/cgroup. A cgroup that does not exist yet is looked up
 * again at every reading. Returns NULL only if memory is exhausted.
 */
struct weir_memory *weir_memory_open(const char *cgroup);
void weir_memory_free(struct weir_memory *memory);

static inline void weir_memory_freep(struct weir_memory **memory)
{
	weir_memory_free(*memory);
}

/* Whether this object watches that cgroup (or the system). */
bool weir_memory_is_of(const struct weir_memory *memory, const char *cgroup);

/* MemTotal - MemAvailable, memory.current, or memory.usage_in_bytes. Returns 0 or -errno. */
int weir_memory_read(struct weir_memory *memory, uint64_t *ret_used_bytes);

/* The same for a caller that reads only once. */
int weir_memory_read_once(const char *cgroup, uint64_t *ret_used_bytes);

/* For people: what is wrong when a reading has returned -errno. */
const char *weir_memory_explain(const char *cgroup, int err);

/* A descriptor to poll for POLLPRI: tasks have just been delayed by a lack of memory. -1 if the kernel does not report
 * memory pressure. A reading may change the descriptor, because a cgroup that is removed and recreated gets a new one.
 */
int weir_memory_pressure_fd(const struct weir_memory *memory);

/* The descriptor reports an error: that cgroup is gone. Until a cgroup of that name appears again, there is nothing to
 * poll.
 */
void weir_memory_forget_pressure(struct weir_memory *memory);

/* How soon the kernel reports memory pressure to this process. */
enum weir_memory_pressure {
	WEIR_MEMORY_PRESSURE_AT_ONCE, /* within half a second */
	WEIR_MEMORY_PRESSURE_LATE,    /* every two seconds: CAP_SYS_RESOURCE is missing */
	WEIR_MEMORY_PRESSURE_NEVER,   /* the kernel does not track pressure, or does not report it to this process */
};
enum weir_memory_pressure weir_memory_pressure(void);

/* The most memory that can be in use: MemTotal, or the cgroup's own limit if that is lower; 0 if it cannot be
 * determined.
 */
uint64_t weir_memory_total_bytes(const char *cgroup);

#endif
