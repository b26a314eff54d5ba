/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room host: the machine without weir: CPUs, clock and privilege (this header), memory in use, and the BPF file
 * system with its lock. It knows nothing of programs or instances.
 *
 * What the machine is and has: CPUs, clock, memory, privilege, interfaces. Read from /proc, system
 * calls and ioctls; nothing here changes anything but the caller's own network namespace.
 */
#ifndef WEIR_HOST_H
#define WEIR_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "host/names.h"

/* Possible CPUs (not only those online: per-CPU maps have a copy for each), or -errno. */
int weir_host_cpus(void);

/* Numbers of possible CPUs are left out between others: the program takes all below their count for CPUs. */
bool weir_host_cpus_have_gaps(void);

/* The data plane's clock: CLOCK_MONOTONIC. */
uint64_t weir_host_now_ns(void);

/* CPU time that this process has used. */
uint64_t weir_host_cpu_ns(void);

/* A time by that clock as the clock on the wall shows it now: ns of CLOCK_REALTIME. */
uint64_t weir_host_wall_ns(uint64_t monotonic_ns);

/* CLOCK_BOOTTIME: nobody can set it, and it runs while the machine sleeps. */
uint64_t weir_host_boot_ns(void);

/* Length of a jiffy, or 0 when it cannot be determined. */
uint64_t weir_host_tick_ns(void);

/* The machine may show plain stores and loads to other CPUs in another order. */
bool weir_host_is_weakly_ordered(void);

/* A PREEMPT_RT kernel, on which two packets can interleave on one CPU. */
bool weir_host_is_realtime(void);

/* The running kernel is at least this version. */
bool weir_host_kernel_is_at_least(unsigned int major, unsigned int minor);

/* MemAvailable, or 0 when it cannot be determined. */
uint64_t weir_host_memory_available_bytes(void);

/*
 * Whether maps of so many bytes can be made, and a sixteenth of what is available stays free; yes when that is
 * unknown. The kernel would rather kill somebody than say no.
 */
bool weir_host_has_memory(uint64_t needed_bytes, uint64_t *ret_available_bytes);

/* 0, or -EPERM and what is missing. */
int weir_host_check_privilege(struct weir_diag *diag);

/* Number of an interface in the present network namespace (> 0), or -ENODEV and which ones there are. */
int weir_host_ifindex(const char *name, struct weir_diag *diag);

/* The same for weir_compile_options.ifindex: 0 when there is none. */
uint32_t weir_host_find_ifindex(const char *name, void *unused);

/* Those of the present network namespace, in the kernel's order. Returns 0 or -errno. */
int weir_host_interfaces(struct weir_names *ret_names);

/* Go into a network namespace, given by name (as `ip netns` knows it) or path. */
int weir_host_enter_netns(const char *netns, struct weir_diag *diag);

/* For messages: "network namespace 'far'" once it was entered, else "this network namespace". */
#define WEIR_NETNS_WORDS_BYTES 160
const char *weir_host_netns_words(char ret_words[WEIR_NETNS_WORDS_BYTES]);

/* What distinguishes the present network namespace from others: its inode number; 0 when it cannot be determined. */
uint64_t weir_host_netns(void);

/* Read a small text file; its end is trimmed. Returns 0 or -errno. */
int weir_host_read_text(const char *path, char *text, size_t text_bytes);

#endif
