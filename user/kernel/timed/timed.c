// SPDX-License-Identifier: GPL-2.0-only
#include "timed/timed.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/timed_tables.h"

struct giving {
	const struct weir_instance *instance;
	bool denies;
	uint64_t now_ns;
	int addresses_fd, prefixes_fd;
	bool was_empty; /* the table had no addresses before, so no lookups are needed */
	/* Addresses to write with the next batch. */
	struct weir_timed_address keys[WEIR_TIMED_BATCH];
	struct weir_timed values[WEIR_TIMED_BATCH];
	__u32 count;
	size_t changed;
	struct full {
		size_t count; /* number of orders that did not fit */
		struct weir_prefix first;
	} no_address, no_prefix;
	bool has_swept_addresses, has_swept_prefixes;
	struct weir_diag *diag;
};

static bool is_address(const struct weir_prefix *prefix)
{
	return prefix->bits == (prefix->family == 6 ? 128 : 32);
}

static struct weir_timed_address address_key(const struct weir_prefix *prefix)
{
	struct weir_timed_address key = {.family = prefix->family};

	memcpy(key.address, prefix->address, sizeof(key.address));
	return key;
}

static struct weir_timed_prefix prefix_key(const struct weir_prefix *prefix)
{
	struct weir_timed_prefix key = {
		.key_bits = WEIR_TIMED_FIXED_BITS + prefix->bits,
		.family = prefix->family,
	};

	memcpy(key.address, prefix->address, sizeof(key.address));
	return key;
}

static __u64 *time_of(struct weir_timed *timed, bool denies)
{
	return denies ? &timed->deny_until_ns : &timed->allow_until_ns;
}

/* ---- the state, which the program reads first ---- */

static void raise_to(__u64 *word, uint64_t until_ns)
{
	__u64 old = __atomic_load_n(word, __ATOMIC_RELAXED), found;

	for (; old < until_ns; old = found) {
		found = __sync_val_compare_and_swap(word, old, until_ns);
		if (found == old)
			break;
	}
}

/* Called before any entry is written, because the program does not look for entries after these times. */
static int raise_state(const struct giving *giving, const struct weir_timed_order *orders, size_t count)
{
	uint64_t addresses_ns = 0, prefixes_ns = 0, *latest_ns;
	size_t page_bytes = sysconf(_SC_PAGESIZE);
	struct weir_timed_state *state;

	for (size_t i = 0; i < count; i++) {
		latest_ns = is_address(&orders[i].prefix) ? &addresses_ns : &prefixes_ns;
		if (orders[i].lasts_ns && giving->now_ns + orders[i].lasts_ns > *latest_ns)
			*latest_ns = giving->now_ns + orders[i].lasts_ns;
	}
	state = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		     giving->instance->map_fd[WEIR_TABLE_TIMED_STATE], 0);
	if (state == MAP_FAILED || !state)
		return -errno;
	raise_to(&state->addresses_until_ns, addresses_ns);
	raise_to(&state->prefixes_until_ns, prefixes_ns);
	munmap(state, page_bytes);
	return 0;
}

/* ---- removing expired entries to make room ---- */

struct keys {
	struct weir_timed_address *keys;
	size_t count;
	uint64_t now_ns;
};

static int collect_over(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	struct keys *over = data;

	for (__u32 i = 0; i < count; i++) {
		struct weir_timed_address *key;

		if (!weir_timed_is_over(&values[i], over->now_ns))
			continue;
		key = weir_array_add((void **)&over->keys, over->count, sizeof(*key));
		if (!key)
			return -ENOMEM;
		*key = keys[i];
		over->count++;
	}
	return 0;
}

static int remove_over(const struct giving *giving)
{
	struct keys over = {.now_ns = giving->now_ns};
	int err = weir_timed_addresses_scan(giving->addresses_fd, collect_over, &over);

	for (size_t i = 0; !err && i < over.count; i++)
		if (bpf_map_delete_elem(giving->addresses_fd, &over.keys[i]) && errno != ENOENT)
			err = -errno;
	free(over.keys);
	return err;
}

/* ---- addresses ---- */

static void leave_out(struct giving *giving, struct full *full, const struct weir_prefix *prefix)
{
	if (!full->count++)
		full->first = *prefix;
	giving->changed--;
}

static struct weir_prefix address_of(const struct weir_timed_address *key)
{
	struct weir_prefix prefix = {.family = key->family, .bits = key->family == 6 ? 128 : 32};

	memcpy(prefix.address, key->address, sizeof(prefix.address));
	return prefix;
}

/* An entry that does not fit is left out. The ones after it may already be in the table, and only need to be renewed.
 */
static int write_batch(struct giving *giving)
{
	struct weir_prefix prefix;
	__u32 done = 0, count;
	int err;

	while (done < giving->count) {
		count = giving->count - done;
		err = bpf_map_update_batch(giving->addresses_fd, &giving->keys[done], &giving->values[done], &count,
					   NULL);
		done += count;
		if (!err)
			continue;
		if (err != -E2BIG)
			return err;
		if (giving->has_swept_addresses) {
			prefix = address_of(&giving->keys[done++]);
			leave_out(giving, &giving->no_address, &prefix);
			continue;
		}
		err = remove_over(giving);
		if (err)
			return err;
		giving->has_swept_addresses = true;
	}
	giving->count = 0;
	return 0;
}

/* Merge an order into the address's entry. False: there is nothing to change. */
static bool merge(const struct giving *giving, const struct weir_timed_order *order, struct weir_timed *timed)
{
	__u64 *until_ns = time_of(timed, giving->denies);

	if (!order->lasts_ns && *until_ns <= giving->now_ns)
		return false;
	if (giving->denies && *until_ns <= giving->now_ns) {
		timed->hits = order->hits;
		memset(timed->reason, 0, sizeof(timed->reason));
	}
	if (giving->denies && order->reason[0])
		memcpy(timed->reason, order->reason, sizeof(timed->reason));
	*until_ns = order->lasts_ns ? giving->now_ns + order->lasts_ns : 0;
	timed->bits = order->prefix.bits;
	return true;
}

static int give_address(struct giving *giving, const struct weir_timed_order *order)
{
	struct weir_timed_address key = address_key(&order->prefix);
	struct weir_timed timed = {};

	if (!giving->was_empty && bpf_map_lookup_elem(giving->addresses_fd, &key, &timed) && errno != ENOENT)
		return -errno;
	if (!merge(giving, order, &timed))
		return 0;
	giving->changed++;
	if (weir_timed_is_over(&timed, giving->now_ns)) {
		if (bpf_map_delete_elem(giving->addresses_fd, &key) && errno != ENOENT)
			return -errno;
		return 0;
	}
	giving->keys[giving->count] = key;
	giving->values[giving->count++] = timed;
	return giving->count == WEIR_TIMED_BATCH ? write_batch(giving) : 0;
}

/* ---- prefixes, of which there are few ---- */

struct prefixes_over {
	struct weir_timed_prefix keys[WEIR_TIMED_PREFIXES_MAX];
	size_t count;
	uint64_t now_ns;
};

static int collect_prefix_over(const struct weir_timed_prefix *key, struct weir_timed *timed, void *data)
{
	struct prefixes_over *over = data;

	if (weir_timed_is_over(timed, over->now_ns) && over->count < ARRAY_SIZE(over->keys))
		over->keys[over->count++] = *key;
	return 0;
}

static int remove_prefixes_over(const struct giving *giving)
{
	_cleanup_(weir_freep) struct prefixes_over *over = calloc(1, sizeof(*over));
	int err;

	if (!over)
		return -ENOMEM;
	over->now_ns = giving->now_ns;
	err = weir_timed_prefixes_scan(giving->prefixes_fd, collect_prefix_over, over);
	for (size_t i = 0; !err && i < over->count; i++)
		if (bpf_map_delete_elem(giving->prefixes_fd, &over->keys[i]) && errno != ENOENT)
			err = -errno;
	return err;
}

/* A trie lookup returns the longest prefix that matches, so the entry found may belong to a shorter one. */
static int give_prefix(struct giving *giving, const struct weir_timed_order *order)
{
	struct weir_timed_prefix key = prefix_key(&order->prefix);
	struct weir_timed timed = {};
	int err;

	if (bpf_map_lookup_elem(giving->prefixes_fd, &key, &timed) || timed.bits != order->prefix.bits)
		timed = (struct weir_timed){};
	if (!merge(giving, order, &timed))
		return 0;
	giving->changed++;
	if (weir_timed_is_over(&timed, giving->now_ns))
		return bpf_map_delete_elem(giving->prefixes_fd, &key) && errno != ENOENT ? -errno : 0;
	if (!bpf_map_update_elem(giving->prefixes_fd, &key, &timed, BPF_ANY))
		return 0;
	if (errno == ENOSPC && !giving->has_swept_prefixes) {
		err = remove_prefixes_over(giving);
		if (err)
			return err;
		giving->has_swept_prefixes = true;
		if (!bpf_map_update_elem(giving->prefixes_fd, &key, &timed, BPF_ANY))
			return 0;
	}
	if (errno != ENOSPC)
		return -errno;
	leave_out(giving, &giving->no_prefix, &order->prefix);
	return 0;
}

/* ---- the contract ---- */

#define TIMED_TABLES                                                                                                   \
	(WEIR_TABLE_BIT(WEIR_TABLE_TIMED_STATE) | WEIR_TABLE_BIT(WEIR_TABLE_TIMED_ADDRESSES) |                         \
	 WEIR_TABLE_BIT(WEIR_TABLE_TIMED_PREFIXES))

bool weir_timed_is_readable(const struct weir_instance *instance)
{
	return !instance->is_incompatible[WEIR_TABLE_TIMED_STATE] &&
	       !instance->is_incompatible[WEIR_TABLE_TIMED_ADDRESSES] &&
	       !instance->is_incompatible[WEIR_TABLE_TIMED_PREFIXES];
}

static int expect_room(const struct weir_instance *instance, struct weir_diag *diag)
{
	int err = weir_instance_expect_tables(instance, TIMED_TABLES, "the timed entries", diag);

	if (!err && !instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size)
		err = weir_diag_error(
			diag, NULL, NULL, "remove settings.timedEntries from its rules and reload them",
			"instance '%s' was loaded without room for addresses to block or allow for a while",
			instance->name);
	return err;
}

static bool is_empty(int fd)
{
	struct weir_timed_address key;

	return bpf_map_get_next_key(fd, NULL, &key) && errno == ENOENT;
}

static int give(struct giving *giving, const struct weir_timed_order *orders, size_t count)
{
	int err = raise_state(giving, orders, count);

	giving->was_empty = is_empty(giving->addresses_fd);
	for (size_t i = 0; !err && i < count; i++)
		err = is_address(&orders[i].prefix) ? give_address(giving, &orders[i])
						    : give_prefix(giving, &orders[i]);
	if (!err)
		err = write_batch(giving);
	return err;
}

static int warn_if_full(const struct giving *giving, const struct full *full, const char *what, uint32_t places,
			const char *hint)
{
	char first[WEIR_PREFIX_TEXT_BYTES], how_many[64] = "";

	if (!full->count)
		return 0;
	if (full->count > 1)
		snprintf(how_many, sizeof(how_many), "%zu %s, the first of them ", full->count, what);
	weir_diag_error(giving->diag, NULL, NULL, hint, "no room for %s%s: only %u %s fit", how_many,
			weir_format_prefix(&full->first, first), places, what);
	return -ENOSPC;
}

static int warn_of_left_out(const struct giving *giving)
{
	int addresses = warn_if_full(giving, &giving->no_address, "addresses",
				     giving->instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size,
				     "raise settings.timedEntries and reload");
	int prefixes = warn_if_full(giving, &giving->no_prefix, "prefixes", WEIR_TIMED_PREFIXES_MAX,
				    "put a long list of prefixes in 'allow' or 'deny' of a rule file");

	return addresses ?: prefixes;
}

int weir_timed_give(const struct weir_instance *instance, bool denies, const struct weir_timed_order *orders,
		    size_t count, size_t *ret_changed, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct giving *giving = calloc(1, sizeof(*giving));
	int err = expect_room(instance, diag);

	*ret_changed = 0;
	if (err)
		return err;
	if (!giving)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write to instance '%s'", instance->name);
	giving->instance = instance;
	giving->denies = denies;
	giving->now_ns = weir_host_now_ns();
	giving->addresses_fd = instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES];
	giving->prefixes_fd = instance->map_fd[WEIR_TABLE_TIMED_PREFIXES];
	giving->diag = diag;
	err = give(giving, orders, count);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot write to instance '%s'", instance->name);
	*ret_changed = giving->changed;
	return warn_of_left_out(giving);
}

struct reading {
	struct weir_timed_order *orders;
	size_t count;
	bool denies;
	uint64_t now_ns;
};

static int add_order(struct reading *reading, uint8_t family, const uint8_t address[16], struct weir_timed *timed)
{
	uint64_t until_ns = *time_of(timed, reading->denies);
	struct weir_timed_order *order;

	if (until_ns <= reading->now_ns)
		return 0;
	order = weir_array_add((void **)&reading->orders, reading->count, sizeof(*order));
	if (!order)
		return -ENOMEM;
	*order = (struct weir_timed_order){.lasts_ns = until_ns - reading->now_ns};
	if (reading->denies) {
		order->hits = timed->hits;
		memcpy(order->reason, timed->reason, sizeof(order->reason) - 1);
	}
	order->prefix.family = family;
	order->prefix.bits = timed->bits;
	memcpy(order->prefix.address, address, sizeof(order->prefix.address));
	reading->count++;
	return 0;
}

static int add_addresses(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	int err = 0;

	for (__u32 i = 0; !err && i < count; i++)
		err = add_order(data, keys[i].family, keys[i].address, &values[i]);
	return err;
}

static int add_prefix(const struct weir_timed_prefix *key, struct weir_timed *timed, void *data)
{
	return add_order(data, key->family, key->address, timed);
}

int weir_timed_read(const struct weir_instance *instance, bool denies, struct weir_timed_order **ret_orders,
		    size_t *ret_count, struct weir_diag *diag)
{
	struct reading reading = {.denies = denies, .now_ns = weir_host_now_ns()};
	int err = expect_room(instance, diag);

	if (err)
		return err;
	err = weir_timed_addresses_scan(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES], add_addresses, &reading);
	if (!err)
		err = weir_timed_prefixes_scan(instance->map_fd[WEIR_TABLE_TIMED_PREFIXES], add_prefix, &reading);
	if (err) {
		free(reading.orders);
		return weir_diag_fail(diag, -err, NULL, "cannot read instance '%s'", instance->name);
	}
	if (reading.count)
		qsort(reading.orders, reading.count, sizeof(*reading.orders), weir_order_compare);
	*ret_orders = reading.orders;
	*ret_count = reading.count;
	return 0;
}

int weir_timed_end_all(const struct weir_instance *instance, bool denies, size_t *ret_ended, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	size_t count = 0;
	int err = weir_timed_read(instance, denies, &orders, &count, diag);

	*ret_ended = 0;
	if (err || !orders)
		return err;
	for (size_t i = 0; i < count; i++)
		orders[i].lasts_ns = 0;
	return weir_timed_give(instance, denies, orders, count, ret_ended, diag);
}

/* ---- counting ---- */

struct counting {
	struct weir_timed_counts counts;
	uint64_t now_ns;
};

static void count_one(struct counting *counting, const struct weir_timed *timed)
{
	counting->counts.blocked += timed->deny_until_ns > counting->now_ns;
	counting->counts.allowed += timed->allow_until_ns > counting->now_ns;
}

static int count_addresses(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	for (__u32 i = 0; i < count; i++)
		count_one(data, &values[i]);
	return 0;
}

static int count_prefix(const struct weir_timed_prefix *key, struct weir_timed *timed, void *data)
{
	count_one(data, timed);
	return 0;
}

/* If the state says that no entry is in force, a million expired entries need not be read. */
static int count_all(const struct weir_instance *instance, struct counting *counting)
{
	struct weir_timed_state state;
	int err = weir_array_read(instance->map_fd[WEIR_TABLE_TIMED_STATE], &state, 1, sizeof(state));

	if (!err && state.addresses_until_ns > counting->now_ns)
		err = weir_timed_addresses_scan(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES], count_addresses,
						counting);
	if (!err && state.prefixes_until_ns > counting->now_ns)
		err = weir_timed_prefixes_scan(instance->map_fd[WEIR_TABLE_TIMED_PREFIXES], count_prefix, counting);
	return err;
}

int weir_timed_count(const struct weir_instance *instance, struct weir_timed_counts *ret_counts, struct weir_diag *diag)
{
	struct counting counting = {.now_ns = weir_host_now_ns()};
	int err = instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size ? count_all(instance, &counting) : 0;

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the timed entries of instance '%s'",
				      instance->name);
	*ret_counts = counting.counts;
	return 0;
}
