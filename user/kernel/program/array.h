/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries of maps, one by one; and whole BPF arrays at once, in batches: a system call for each entry would make large
 * rule sets slow. Returns 0 or -errno; says nothing.
 */
#ifndef WEIR_PROGRAM_ARRAY_H
#define WEIR_PROGRAM_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a key, in a map of any kind: one for each possible CPU where CPUs have their own. */
int weir_map_look_up(int map_fd, const void *key, void *value);
int weir_map_write(int map_fd, const void *key, const void *value);
/* How many bytes these copy: where CPUs have their own values, those of all. */
int weir_map_value_bytes(int map_fd, int cpus, size_t *ret_bytes);

/* Entries 0 to count - 1 of an array map. */
int weir_array_read(int map_fd, void *values, uint32_t count, size_t value_bytes);
int weir_array_write(int map_fd, const void *values, uint32_t count, size_t value_bytes);

/*
 * Show each of the first `count` entries of a per-CPU array to `visit`: `values` holds one value for each
 * possible CPU, value_bytes apart (which is a multiple of eight for every struct of weir_abi.h). Stops
 * at the first visit that does not return 0, and returns that.
 */
typedef int weir_percpu_visit(uint32_t key, const void *values, int cpus, void *data);
int weir_percpu_scan(int map_fd, uint32_t count, size_t value_bytes, weir_percpu_visit *visit, void *data);
/* The same of an array that all CPUs share: `cpus` is 1. */
int weir_array_scan(int map_fd, uint32_t count, size_t value_bytes, weir_percpu_visit *visit, void *data);

/*
 * Entries `first` to first + count - 1 of a per-CPU array, all CPUs' values of one entry after the other: entry_bytes
 * is the size of a value times the number of possible CPUs.
 */
int weir_percpu_read(int map_fd, uint32_t first, uint32_t count, size_t entry_bytes, void *values);

/*
 * The entries of an array that can be mapped, as the program reads and writes them meanwhile; to be written only when
 * that is asked for. NULL, with errno, when they cannot be had. Unmapping NULL is fine.
 */
void *weir_array_map(int map_fd, uint32_t count, size_t value_bytes, bool writes);
void weir_array_unmap(void *values, uint32_t count, size_t value_bytes);

/* Write `count` entries of an array, those of `keys`. */
int weir_array_write_some(int map_fd, const uint32_t *keys, const void *values, uint32_t count, size_t value_bytes);

#endif
