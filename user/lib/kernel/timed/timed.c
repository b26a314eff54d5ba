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
#include "timed/places.h"
/* A block that may end to make room. */
struct candidate {
	struct weir_timed_address key;
	uint64_t until_ns; /* 0: it has been tried */
	char by[WEIR_BY_BYTES];
};

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
	struct weir_timed_given given;
	struct full {
		size_t count; /* number of orders that did not fit */
		struct weir_prefix first;
	} no_address[WEIR_TIMED_PARTS_MAX + 1] /* as the shares */, no_prefix;
	bool is_divided; /* places are counted: there are parts, or entries are evicted */
	struct weir_timed_places places;
	struct candidate *candidates; /* the one that ends first comes first */
	size_t candidate_count;
	size_t own_at, shared_at; /* candidates before these have been tried: of own_by, and of those that share */
	char own_by[WEIR_BY_BYTES];
	struct weir_timed_state *state;
	bool has_swept_addresses, has_swept_prefixes;
	struct weir_diag *diag;
};

static bool is_address(const struct weir_prefix *prefix)
{
	return prefix->bits == (prefix->family == 6 ? 128 : 32);
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
static void raise_state(const struct giving *giving, const struct weir_timed_order *orders, size_t count)
{
	uint64_t addresses_ns = 0, prefixes_ns = 0, *latest_ns;

	for (size_t i = 0; i < count; i++) {
		latest_ns = is_address(&orders[i].prefix) ? &addresses_ns : &prefixes_ns;
		if (orders[i].lasts_ns && giving->now_ns + orders[i].lasts_ns > *latest_ns)
			*latest_ns = giving->now_ns + orders[i].lasts_ns;
	}
	raise_to(&giving->state->addresses_until_ns, addresses_ns);
	raise_to(&giving->state->prefixes_until_ns, prefixes_ns);
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
	giving->given.changed--;
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
			prefix = address_of(&giving->keys[done]);
			leave_out(giving,
				  &giving->no_address[weir_timed_share_of(&giving->places, &giving->values[done++])],
				  &prefix);
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
	__u64 *until_ns = weir_timed_time_of(timed, giving->denies);
	struct weir_timed_texts texts = weir_timed_read_texts(timed);

	if (!order->lasts_ns && *until_ns <= giving->now_ns)
		return false;
	if (timed->deny_until_ns <= giving->now_ns)
		texts.denying = (struct weir_timed_order){};
	if (timed->allow_until_ns <= giving->now_ns)
		memset(texts.allowed_by, 0, sizeof(texts.allowed_by));
	if (giving->denies && *until_ns <= giving->now_ns)
		timed->hits = order->hits;
	if (giving->denies && order->by[0])
		weir_order_set_by(&texts.denying, order->by);
	if (giving->denies && order->reason[0])
		weir_order_set_reason(&texts.denying, order->reason);
	if (!giving->denies && order->by[0])
		memcpy(texts.allowed_by, order->by, sizeof(texts.allowed_by));
	weir_timed_write_texts(&texts, timed);
	*until_ns = order->lasts_ns ? giving->now_ns + order->lasts_ns : 0;
	timed->bits = order->prefix.bits;
	return true;
}

/* ---- making room among addresses ---- */

/* "For good" is ten years (contrib/fail2ban): a block with more than this left counts as one without an end. */
#define FOR_GOOD_NS (5ull * 365 * 24 * 3600 * WEIR_NSEC_PER_SEC)

static int count_place(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	struct giving *giving = data;

	for (__u32 i = 0; i < count; i++) {
		struct candidate *candidate;

		if (weir_timed_is_over(&values[i], giving->now_ns))
			continue;
		giving->places.shares[weir_timed_share_of(&giving->places, &values[i])].used++;
		if (!giving->instance->info.timed_evicts || values[i].allow_until_ns > giving->now_ns ||
		    values[i].deny_until_ns > giving->now_ns + FOR_GOOD_NS)
			continue;
		candidate = weir_array_add((void **)&giving->candidates, giving->candidate_count, sizeof(*candidate));
		if (!candidate)
			return -ENOMEM;
		candidate->key = keys[i];
		candidate->until_ns = values[i].deny_until_ns;
		weir_timed_find_owner(&values[i], giving->now_ns, candidate->by);
		giving->candidate_count++;
	}
	return 0;
}

static int compare_ends(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	return (a->until_ns > b->until_ns) - (a->until_ns < b->until_ns);
}

/* End the candidate, unless somebody has changed its block since it was read. */
static bool evict(struct giving *giving, struct candidate *candidate)
{
	const uint64_t until_ns = candidate->until_ns;
	struct weir_timed timed;

	candidate->until_ns = 0;
	if (bpf_map_lookup_elem(giving->addresses_fd, &candidate->key, &timed) || timed.deny_until_ns != until_ns ||
	    bpf_map_delete_elem(giving->addresses_fd, &candidate->key))
		return false;
	giving->places.shares[weir_timed_find_share(&giving->places, candidate->by)].used--;
	if (!giving->given.evicted++) {
		giving->given.first_evicted = weir_timed_read_texts(&timed).denying;
		giving->given.first_evicted.prefix = address_of(&candidate->key);
	}
	return true;
}

/* Of the same program first. Orders of this command are no candidates: they do not displace each other. */
static bool make_room(struct giving *giving, size_t share, const char *by)
{
	struct candidate *candidate;

	if (strcmp(giving->own_by, by) != 0) {
		memcpy(giving->own_by, by, sizeof(giving->own_by));
		giving->own_at = 0;
	}
	while (giving->own_at < giving->candidate_count) {
		candidate = &giving->candidates[giving->own_at++];
		if (candidate->until_ns && !strcmp(candidate->by, by) && evict(giving, candidate))
			return true;
	}
	while (share == giving->instance->info.timed_part_count && giving->shared_at < giving->candidate_count) {
		candidate = &giving->candidates[giving->shared_at++];
		if (candidate->until_ns && weir_timed_find_share(&giving->places, candidate->by) == share &&
		    evict(giving, candidate))
			return true;
	}
	return false;
}

/* Take a place for an address whose entry was `before` and is to be `timed`. 0: none is left; otherwise 1 or -errno. */
static int take_place(struct giving *giving, const struct weir_timed *before, const struct weir_timed *timed)
{
	const bool had_one = !weir_timed_is_over(before, giving->now_ns);
	struct weir_timed_share *shares = giving->places.shares;
	char by[WEIR_BY_BYTES];
	size_t share;
	int err;

	if (weir_timed_is_over(timed, giving->now_ns)) {
		shares[weir_timed_share_of(&giving->places, before)].used -= had_one;
		return 1;
	}
	weir_timed_find_owner(timed, giving->now_ns, by);
	share = weir_timed_find_share(&giving->places, by);
	if (had_one && weir_timed_share_of(&giving->places, before) == share)
		return 1;
	if (shares[share].used >= shares[share].room) {
		/* What waits to be written may be a candidate that is being renewed. */
		err = write_batch(giving);
		if (err)
			return err;
		if (!make_room(giving, share, by))
			return 0;
	}
	if (had_one)
		shares[weir_timed_share_of(&giving->places, before)].used--;
	shares[share].used++;
	return 1;
}

static int give_address(struct giving *giving, const struct weir_timed_order *order)
{
	struct weir_timed_address key = {.family = order->prefix.family};
	struct weir_timed timed = {}, before;
	int taken = 1;

	memcpy(key.address, order->prefix.address, sizeof(key.address));
	if (!giving->was_empty && bpf_map_lookup_elem(giving->addresses_fd, &key, &timed) && errno != ENOENT)
		return -errno;
	before = timed;
	if (!merge(giving, order, &timed))
		return 0;
	giving->given.changed++;
	if (giving->is_divided)
		taken = take_place(giving, &before, &timed);
	if (taken < 0)
		return taken;
	if (!taken) {
		leave_out(giving, &giving->no_address[weir_timed_share_of(&giving->places, &timed)], &order->prefix);
		return 0;
	}
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
	giving->given.changed++;
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

static bool is_empty(int fd)
{
	struct weir_timed_address key;

	return bpf_map_get_next_key(fd, NULL, &key) && errno == ENOENT;
}

static int give(struct giving *giving, const struct weir_timed_order *orders, size_t count)
{
	int err = giving->is_divided ? weir_timed_addresses_scan(giving->addresses_fd, count_place, giving) : 0;

	if (!err && giving->candidate_count)
		qsort(giving->candidates, giving->candidate_count, sizeof(*giving->candidates), compare_ends);
	raise_state(giving, orders, count);
	giving->was_empty = is_empty(giving->addresses_fd);
	for (size_t i = 0; !err && i < count; i++)
		err = is_address(&orders[i].prefix) ? give_address(giving, &orders[i])
						    : give_prefix(giving, &orders[i]);
	if (!err)
		err = write_batch(giving);
	return err;
}

static int warn_if_full(const struct giving *giving, const struct full *full, const char *what, const char *why,
			const char *hint)
{
	char first[WEIR_PREFIX_TEXT_BYTES], how_many[64] = "";

	if (!full->count)
		return 0;
	if (full->count > 1)
		snprintf(how_many, sizeof(how_many), "%zu %s, the first of them ", full->count, what);
	weir_diag_error(giving->diag, NULL, NULL, hint, "no room for %s%s: %s", how_many,
			weir_format_prefix(&full->first, first), why);
	__sync_fetch_and_add(&giving->state->refused, full->count);
	return -ENOSPC;
}

static int warn_of_left_out(const struct giving *giving)
{
	const size_t parts = giving->instance->info.timed_part_count;
	char why[128], hint[160];
	int err = 0;

	for (size_t i = 0; i <= parts; i++) {
		const struct weir_timed_share *share = &giving->places.shares[i];

		snprintf(hint, sizeof(hint), "raise settings.timedEntries and reload");
		if (!parts)
			snprintf(why, sizeof(why), "only %zu addresses fit", share->room);
		else
			snprintf(why, sizeof(why), "the part of %s%s%s is full: %zu of %zu addresses",
				 share->by ? "'" : "programs without one", share->by ?: "", share->by ? "'" : "",
				 share->used, share->room);
		if (share->by)
			snprintf(hint, sizeof(hint),
				 "raise it in settings.timedParts and reload, or end some: see 'weir block --list "
				 "--by %s'",
				 share->by);
		if (warn_if_full(giving, &giving->no_address[i], "addresses", why, hint))
			err = -ENOSPC;
	}
	snprintf(why, sizeof(why), "only %d prefixes fit, of all programs together", WEIR_TIMED_PREFIXES_MAX);
	return warn_if_full(
		       giving, &giving->no_prefix, "prefixes", why,
		       "end some (see 'weir block --list'), or put a long list of prefixes in 'allow' or 'deny' of a "
		       "rule file")
		       ?: err;
}

int weir_timed_give(const struct weir_instance *instance, bool denies, const struct weir_timed_order *orders,
		    size_t count, struct weir_timed_given *ret_given, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct giving *giving = calloc(1, sizeof(*giving));
	const size_t page_bytes = sysconf(_SC_PAGESIZE);
	int err = weir_timed_expect_room(instance, diag);

	*ret_given = (struct weir_timed_given){};
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
	giving->is_divided = instance->info.timed_part_count || instance->info.timed_evicts;
	weir_timed_divide(&instance->info, giving->now_ns, &giving->places);
	giving->state =
		mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, instance->map_fd[WEIR_TABLE_TIMED_STATE], 0);
	if (giving->state == MAP_FAILED || !giving->state)
		return weir_diag_fail(diag, errno, NULL, "cannot write to instance '%s'", instance->name);
	err = give(giving, orders, count);
	free(giving->candidates);
	__sync_fetch_and_add(&giving->state->evicted, giving->given.evicted);
	*ret_given = giving->given;
	err = err ? weir_diag_fail(diag, -err, NULL, "cannot write to instance '%s'", instance->name)
		  : warn_of_left_out(giving);
	munmap(giving->state, page_bytes);
	return err;
}

int weir_timed_end_all(const struct weir_instance *instance, bool denies, struct weir_timed_given *ret_given,
		       struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	size_t count = 0;
	int err = weir_timed_read(instance, denies, &orders, &count, diag);

	*ret_given = (struct weir_timed_given){};
	if (err || !orders)
		return err;
	for (size_t i = 0; i < count; i++)
		orders[i].lasts_ns = 0;
	return weir_timed_give(instance, denies, orders, count, ret_given, diag);
}
