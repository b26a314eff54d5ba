/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room host: the machine, independent of weir: CPUs, clock and privilege (this header), memory in use, and the BPF file
 * system with its lock. This room knows nothing of programs or instances.
 *
 * The properties and resources of the machine: CPUs, clock, memory, privilege and interfaces. They are read from /proc,
 * system calls and ioctls. Nothing here changes anything except the caller's own network namespace.
 */
#ifndef WEIR_HOST_H
#define WEIR_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* ---- lists of names, such as those in a directory ---- */

struct weir_names {
	char **names;
	size_t count;
};

/* The names in a directory, sorted, without hidden files. Returns 0 or -errno. */
int weir_names_read(const char *path, struct weir_names *ret_names);

void weir_names_free(struct weir_names *names);

/* ---- the host ---- */

/* The number of possible CPUs, or -errno. Not only those online: per-CPU maps have a copy for each possible CPU. */
int weir_host_cpus(void);

/* The numbers of possible CPUs have gaps. The program assumes that all numbers below their count are CPUs. */
bool weir_host_cpus_have_gaps(void);

/* The data plane's clock: CLOCK_MONOTONIC. */
uint64_t weir_host_now_ns(void);

/* The CPU time that this process has used. */
uint64_t weir_host_cpu_ns(void);

/* Converts a time of weir_host_now_ns() to wall-clock time as the clock is set now: ns of CLOCK_REALTIME. */
uint64_t weir_host_wall_ns(uint64_t monotonic_ns);

/* CLOCK_BOOTTIME: nobody can set this clock, and it keeps running while the machine sleeps. */
uint64_t weir_host_boot_ns(void);

/* The length of a jiffy, or 0 if it cannot be determined. */
uint64_t weir_host_tick_ns(void);

/* Other CPUs may see this machine's plain stores and loads in another order. */
bool weir_host_is_weakly_ordered(void);

/* A PREEMPT_RT kernel, on which two packets can interleave on one CPU. */
bool weir_host_is_realtime(void);

/* The running kernel has at least this version. */
bool weir_host_kernel_is_at_least(unsigned int major, unsigned int minor);

/* The version of the libbpf that this process runs with, which may differ from the one that it was built with. */
const char *weir_libbpf_version(void);

/* MemAvailable, or 0 if it cannot be determined. */
uint64_t weir_host_memory_available_bytes(void);

/*
 * Whether maps of this size would leave a sixteenth of the available memory free; true if the available memory is
 * unknown. The check is needed because the kernel would invoke the OOM killer rather than refuse the allocation.
 */
bool weir_host_has_memory(uint64_t needed_bytes, uint64_t *ret_available_bytes);

/* 0, or -EPERM and a message saying what is missing. */
int weir_host_check_privilege(struct weir_diag *diag);

/* The index of an interface in the present network namespace (> 0), or -ENODEV and a message that lists the existing
 * interfaces.
 */
int weir_host_ifindex(const char *name, struct weir_diag *diag);

/* As weir_host_ifindex(), for weir_compile_options.ifindex: 0 if there is no such interface. */
uint32_t weir_host_find_ifindex(const char *name, void *unused);

/* The interfaces of the present network namespace, in the kernel's order. Returns 0 or -errno. */
int weir_host_interfaces(struct weir_names *ret_names);

/* Enter a network namespace, given by name (as known to `ip netns`) or path. */
int weir_host_enter_netns(const char *netns, struct weir_diag *diag);

/* For messages: "network namespace 'far'" if one was entered, else "this network namespace". */
#define WEIR_NETNS_WORDS_BYTES 160
const char *weir_host_netns_words(char ret_words[WEIR_NETNS_WORDS_BYTES]);

/* The option with which other commands enter it: " --netns far", or nothing. Returns whether one was entered. */
bool weir_host_netns_option(char ret_words[WEIR_NETNS_WORDS_BYTES]);

/* The inode number of the network namespace in which this process started, and in which the next command is typed. If
 * none was entered, that is the present one.
 */
uint64_t weir_host_first_netns(void);

/* The inode number of the present network namespace, which distinguishes it from others; 0 if it cannot be determined.
 */
uint64_t weir_host_netns(void);

/* Read a small text file and trim the end of its text. Returns 0 or -errno. */
int weir_host_read_text(const char *path, char *text, size_t text_bytes);

/* ---- how busy the host is; the caller may read as often as it likes ---- */

/* The one-minute load average, in millionths. Returns 0 or -errno. */
int weir_load_read(uint64_t *ret_load1_micro);

/* What all CPUs together have spent since boot, in the kernel's ticks. All zero: not read yet. */
struct weir_cpu_times {
	uint64_t busy, total;
};

/*
 * The busy share since *times, in millionths. All time counts as busy except idle time and waiting for I/O; time taken
 * by a hypervisor (steal) is busy. *times becomes the present reading. Returns 0, -EAGAIN if there was no earlier
 * reading or no time has passed, or -errno.
 */
int weir_cpu_usage_read(struct weir_cpu_times *times, uint64_t *ret_micro);

/* ---- a bound on the memory of a long-running process ----
 *
 * It is what it uses once its rules are read, plus a margin. If an attacker
 * finds a fault that makes the process allocate without end, an allocation fails and the machine survives. The bound is
 * RLIMIT_DATA, which counts heap and stacks. RLIMIT_AS would also count the tables of a later reload, which belong to
 * the kernel.
 */

/* Set the bound now, and again after each reload. If the usage cannot be read or the bound cannot be set, nothing
 * changes: this is only a second line of defence.
 */
void weir_bound_memory(void);

/* Lift the bound in a child that does other work, such as reading rules or scanning all flows. */
void weir_unbound_memory(void);

#endif
