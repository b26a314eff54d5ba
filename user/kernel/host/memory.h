/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much memory is in use: the system's, or a cgroup's (version 2 or 1). Read as often as the caller likes;
 * where the kernel reports memory pressure (PSI), a descriptor wakes the caller at once. Decides nothing.
 */
#ifndef WEIR_HOST_MEMORY_H
#define WEIR_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct weir_memory;

/*
 * Watch the memory of a cgroup, or of the system ("" or NULL). A cgroup is named as in /proc/PID/cgroup, by its path
 * below the mount, or by the path of its directory in /sys/fs/cgroup. One that is not there yet is looked for at every
 * reading. NULL only when memory is out.
 */
struct weir_memory *weir_memory_open(const char *cgroup);
void weir_memory_free(struct weir_memory *memory);

static inline void weir_memory_freep(struct weir_memory **memory)
{
	weir_memory_free(*memory);
}

/* It watches that cgroup, or the system. */
bool weir_memory_is_of(const struct weir_memory *memory, const char *cgroup);

/* MemTotal - MemAvailable, memory.current, or memory.usage_in_bytes. Returns 0 or -errno. */
int weir_memory_read(struct weir_memory *memory, uint64_t *ret_used_bytes);

/* The same for who reads but once. */
int weir_memory_read_once(const char *cgroup, uint64_t *ret_used_bytes);

/* What is wrong when a reading returned -errno, for people. */
const char *weir_memory_explain(const char *cgroup, int err);

/* To poll for POLLPRI: tasks have just been held up for want of memory. -1 where the kernel does not report it. Reading
 * may change it: a cgroup that went and came back has another.
 */
int weir_memory_pressure_fd(const struct weir_memory *memory);

/* It reports an error: that cgroup is gone. Until another of its name is found there is nothing to poll. */
void weir_memory_forget_pressure(struct weir_memory *memory);

/* How soon the kernel reports memory pressure to this process. */
enum weir_memory_pressure {
	WEIR_MEMORY_PRESSURE_AT_ONCE, /* within half a second */
	WEIR_MEMORY_PRESSURE_LATE,    /* every two seconds: CAP_SYS_RESOURCE is missing */
	WEIR_MEMORY_PRESSURE_NEVER,   /* it keeps none, or not for this process */
};
enum weir_memory_pressure weir_memory_pressure(void);

/* The most there can be in use: MemTotal, or the cgroup's own limit when that is lower; 0 when it cannot be determined.
 */
uint64_t weir_memory_total_bytes(const char *cgroup);

#endif
