// SPDX-License-Identifier: GPL-2.0-only
#include "program/array.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

int weir_map_look_up(int map_fd, const void *key, void *value)
{
	return bpf_map_lookup_elem(map_fd, key, value);
}

int weir_map_write(int map_fd, const void *key, const void *value)
{
	return bpf_map_update_elem(map_fd, key, value, BPF_ANY);
}

int weir_map_value_bytes(int map_fd, int cpus, size_t *ret_bytes)
{
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(map_fd, &info, &info_bytes))
		return -errno;
	/* The system call transfers values of per-CPU maps in multiples of eight bytes. */
	*ret_bytes = (size_t)(info.value_size + 7) / 8 * 8 * (info.type == BPF_MAP_TYPE_PERCPU_ARRAY ? cpus : 1);
	return 0;
}

/* Both limit how much one call copies, in the kernel and here. Chosen, not derived. */
#define BATCH_ENTRIES_MAX 1024u
#define BATCH_BYTES_MAX (4u << 20)

static uint32_t batch_entries(uint32_t count, size_t entry_bytes)
{
	uint32_t entries = BATCH_BYTES_MAX / entry_bytes;

	if (entries > BATCH_ENTRIES_MAX)
		entries = BATCH_ENTRIES_MAX;
	if (entries > count)
		entries = count;
	return entries ? entries : 1;
}

/*
 * Read one batch of a walk through an array. *position starts as NULL, and is the last key seen afterwards. Returns the
 * number of entries, 0 at the end, or -errno.
 */
static int read_batch(int map_fd, uint32_t **position, uint32_t *place, uint32_t *keys, void *values, uint32_t entries)
{
	int err = bpf_map_lookup_batch(map_fd, *position, place, keys, values, &entries, NULL);

	/* ENOENT: the walk ended with this batch. */
	if (err && err != -ENOENT)
		return err;
	*position = place;
	return entries;
}

/* Read entries of `entry_bytes` bytes each, starting with number `first`. */
static int read_entries(int map_fd, uint32_t first, uint32_t count, size_t entry_bytes, void *values)
{
	uint32_t keys[BATCH_ENTRIES_MAX], place, before = first - 1, *position = first ? &before : NULL;

	for (uint32_t done = 0; done < count;) {
		int entries = read_batch(map_fd, &position, &place, keys, (char *)values + done * entry_bytes,
					 batch_entries(count - done, entry_bytes));

		if (entries <= 0)
			return entries ? entries : -ENOENT;
		done += entries;
	}
	return 0;
}

int weir_array_read(int map_fd, void *values, uint32_t count, size_t value_bytes)
{
	return read_entries(map_fd, 0, count, value_bytes, values);
}

int weir_array_write(int map_fd, const void *values, uint32_t count, size_t value_bytes)
{
	uint32_t keys[BATCH_ENTRIES_MAX];

	for (uint32_t first = 0, entries; first < count; first += entries) {
		int err;

		entries = batch_entries(count - first, value_bytes);
		for (uint32_t i = 0; i < entries; i++)
			keys[i] = first + i;
		err = bpf_map_update_batch(map_fd, keys, (const char *)values + first * value_bytes, &entries, NULL);
		if (err)
			return err;
	}
	return 0;
}

/* An entry consists of `copies` values. */
static int scan(int map_fd, uint32_t count, size_t value_bytes, int copies, weir_percpu_visit *visit, void *data)
{
	uint32_t keys[BATCH_ENTRIES_MAX], place, *position = NULL;
	_cleanup_(weir_freep) char *values = NULL;
	size_t entry_bytes = copies * value_bytes;

	values = malloc(batch_entries(count, entry_bytes) * entry_bytes);
	if (!values)
		return -ENOMEM;
	for (uint32_t first = 0; first < count;) {
		int entries =
			read_batch(map_fd, &position, &place, keys, values, batch_entries(count - first, entry_bytes));

		if (entries <= 0)
			return entries ? entries : -ENOENT;
		for (int i = 0; i < entries; i++) {
			int stop = visit(keys[i], values + i * entry_bytes, copies, data);

			if (stop)
				return stop;
		}
		first += entries;
	}
	return 0;
}

int weir_percpu_scan(int map_fd, uint32_t count, size_t value_bytes, weir_percpu_visit *visit, void *data)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus < 0 ? cpus : scan(map_fd, count, value_bytes, cpus, visit, data);
}

int weir_array_scan(int map_fd, uint32_t count, size_t value_bytes, weir_percpu_visit *visit, void *data)
{
	return scan(map_fd, count, value_bytes, 1, visit, data);
}

int weir_entries_read(int map_fd, uint32_t first, uint32_t count, size_t entry_bytes, void *values)
{
	return read_entries(map_fd, first, count, entry_bytes, values);
}

int weir_array_write_some(int map_fd, const uint32_t *keys, const void *values, uint32_t count, size_t value_bytes)
{
	for (uint32_t done = 0, entries; done < count; done += entries) {
		int err;

		entries = batch_entries(count - done, value_bytes);
		err = bpf_map_update_batch(map_fd, keys + done, (const char *)values + done * value_bytes, &entries,
					   NULL);
		if (err)
			return err;
	}
	return 0;
}

/* An array map stores values in multiples of eight bytes; all structs of weir_abi.h have such a size. */
static size_t mapped_bytes(uint32_t count, size_t value_bytes)
{
	size_t page_bytes = sysconf(_SC_PAGESIZE);

	return (count * value_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

void *weir_array_map(int map_fd, uint32_t count, size_t value_bytes, bool writes)
{
	const int protection = writes ? PROT_READ | PROT_WRITE : PROT_READ;
	void *values = mmap(NULL, mapped_bytes(count, value_bytes), protection, MAP_SHARED, map_fd, 0);

	return values == MAP_FAILED ? NULL : values;
}

void weir_array_unmap(void *values, uint32_t count, size_t value_bytes)
{
	if (values)
		munmap(values, mapped_bytes(count, value_bytes));
}

/* ---- bytes ---- */

#define PAGE_BYTES 4096u

int weir_bytes_write(const char *map_name, const void *bytes, size_t count)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	_cleanup_(weir_closep) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, map_name, sizeof(uint32_t), PAGE_BYTES,
						       (count + PAGE_BYTES - 1) / PAGE_BYTES, &options);
	void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	memcpy(mapped, bytes, count);
	munmap(mapped, count);
	return TAKE_FD(fd);
}

int weir_bytes_map(int map_fd, void **ret_bytes, size_t *ret_count)
{
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);
	size_t count;
	void *mapped;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &info_bytes))
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != PAGE_BYTES)
		return -EPROTO;
	count = (size_t)info.max_entries * PAGE_BYTES;
	mapped = mmap(NULL, count, PROT_READ, MAP_SHARED, map_fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	*ret_bytes = mapped;
	*ret_count = count;
	return 0;
}
