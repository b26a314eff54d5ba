/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single map entries, and whole BPF arrays in batches: one system call per entry would make large rule sets slow.
 * Returns 0 or -errno, with no message.
 */
#ifndef WEIR_PROGRAM_ARRAY_H
#define WEIR_PROGRAM_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a key, in a map of any kind. For a per-CPU map, one value for each possible CPU. */
int weir_map_look_up(int map_fd, const void *key, void *value);
int weir_map_write(int map_fd, const void *key, const void *value);
/* How many bytes these two copy. For a per-CPU map, the values of all CPUs. */
int weir_map_value_bytes(int map_fd, int cpus, size_t *ret_bytes);

/* Entries 0 to count - 1 of an array map. */
int weir_array_read(int map_fd, void *values, uint32_t count, size_t value_bytes);
int weir_array_write(int map_fd, const void *values, uint32_t count, size_t value_bytes);

/*
 * Call `visit` for each of the first `count` entries of a per-CPU array: `values` holds one value for each possible
 * CPU, value_bytes apart (a multiple of eight for every struct of weir_abi.h). Stops at the first visit that does not
 * return 0, and returns its result.
 */
typedef int weir_percpu_visit(uint32_t key, const void *values, int cpus, void *data);
int weir_percpu_scan(int map_fd, uint32_t count, size_t value_bytes, weir_percpu_visit *visit, void *data);
/* The same for an array that all CPUs share: `cpus` is 1. */
int weir_array_scan(int map_fd, uint32_t count, size_t value_bytes, weir_percpu_visit *visit, void *data);

/*
 * Entries `first` to first + count - 1 of an array. In a per-CPU array all CPUs' values of an entry are contiguous:
 * entry_bytes is the size of a value times the number of possible CPUs.
 */
int weir_entries_read(int map_fd, uint32_t first, uint32_t count, size_t entry_bytes, void *values);

/*
 * Map the entries of an array into memory, as the program reads and writes them. They may be written only if `writes`
 * is set. NULL, with errno, if they cannot be mapped. Unmapping NULL is fine.
 */
void *weir_array_map(int map_fd, uint32_t count, size_t value_bytes, bool writes);
void weir_array_unmap(void *values, uint32_t count, size_t value_bytes);

/* Write `count` entries of an array, those with these `keys`. */
int weir_array_write_some(int map_fd, const uint32_t *keys, const void *values, uint32_t count, size_t value_bytes);

/* Bytes that no program reads, in a new map, from which commands take them as long as it is pinned: an array of pages,
 * which are mapped as one region. Returns a descriptor or -errno.
 */
int weir_bytes_write(const char *map_name, const void *bytes, size_t count);
/* Map such bytes, to be read: in whole pages, so *ret_count may be more than was written. munmap() them. Returns 0 or
 * -errno; -EPROTO: it is another kind of map.
 */
int weir_bytes_map(int map_fd, void **ret_bytes, size_t *ret_count);

#endif
