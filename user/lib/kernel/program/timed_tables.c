// SPDX-License-Identifier: GPL-2.0-only
#include "program/timed_tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

bool weir_timed_is_over(const struct weir_timed *timed, uint64_t now_ns)
{
	return timed->deny_until_ns <= now_ns && timed->allow_until_ns <= now_ns;
}

int weir_timed_addresses_scan(int map_fd, weir_timed_address_visit *visit, void *data)
{
	_cleanup_(weir_freep) struct weir_timed_address *keys = calloc(WEIR_TIMED_BATCH, sizeof(*keys));
	_cleanup_(weir_freep) struct weir_timed *values = calloc(WEIR_TIMED_BATCH, sizeof(*values));
	__u32 at, next, *from = NULL, count;
	int err = 0, result = 0;

	if (!keys || !values)
		return -ENOMEM;
	while (!err && !result) {
		count = WEIR_TIMED_BATCH;
		err = bpf_map_lookup_batch(map_fd, from, &next, keys, values, &count, NULL);
		if (err && err != -ENOENT)
			return err;
		result = visit(keys, values, count, data);
		at = next;
		from = &at;
	}
	return result;
}

/* A trie lookup returns the longest prefix that matches: if the key has just gone, this is a shorter one. */
int weir_timed_prefixes_scan(int map_fd, weir_timed_prefix_visit *visit, void *data)
{
	struct weir_timed_prefix key, next, *from = NULL;
	struct weir_timed timed;
	int err = 0;

	while (!err && !bpf_map_get_next_key(map_fd, from, &next)) {
		key = next;
		from = &key;
		if (!bpf_map_lookup_elem(map_fd, &key, &timed) && timed.bits + WEIR_TIMED_FIXED_BITS == key.key_bits)
			err = visit(&key, &timed, data);
	}
	return err;
}

/* ---- counting ---- */

struct counting {
	uint64_t now_ns;
	size_t count;
};

static int count_addresses(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	struct counting *counting = data;

	for (__u32 i = 0; i < count; i++)
		counting->count += !weir_timed_is_over(&values[i], counting->now_ns);
	return 0;
}

static int count_prefix(const struct weir_timed_prefix *key, struct weir_timed *timed, void *data)
{
	struct counting *counting = data;

	counting->count += !weir_timed_is_over(timed, counting->now_ns);
	return 0;
}

int weir_timed_addresses_count(int map_fd, uint64_t now_ns, size_t *ret_count)
{
	struct counting counting = {.now_ns = now_ns};
	int err = weir_timed_addresses_scan(map_fd, count_addresses, &counting);

	*ret_count = counting.count;
	return err;
}

int weir_timed_prefixes_count(int map_fd, uint64_t now_ns, size_t *ret_count)
{
	struct counting counting = {.now_ns = now_ns};
	int err = weir_timed_prefixes_scan(map_fd, count_prefix, &counting);

	*ret_count = counting.count;
	return err;
}

/* ---- copying to another map ---- */

struct carrying {
	uint64_t now_ns;
	int to_fd;
};

static int carry_addresses(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	const struct carrying *carrying = data;

	for (__u32 i = 0; i < count; i++)
		if (!weir_timed_is_over(&values[i], carrying->now_ns) &&
		    bpf_map_update_elem(carrying->to_fd, &keys[i], &values[i], BPF_NOEXIST) && errno != EEXIST)
			return -errno;
	return 0;
}

int weir_timed_addresses_carry(int from_fd, int to_fd, uint64_t now_ns)
{
	struct carrying carrying = {.now_ns = now_ns, .to_fd = to_fd};

	return weir_timed_addresses_scan(from_fd, carry_addresses, &carrying);
}
