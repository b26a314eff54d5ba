// SPDX-License-Identifier: GPL-2.0-only
/* Reading timed entries: orders, whose they are, and how full the table is. */
#include "timed/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/timed_tables.h"

__u64 *weir_timed_time_of(struct weir_timed *timed, bool denies)
{
	return denies ? &timed->deny_until_ns : &timed->allow_until_ns;
}

/* The bytes of the text at `at`, which ends before the array does, whatever wrote it. */
static size_t text_bytes(const struct weir_timed *timed, size_t at, size_t bytes_max)
{
	const size_t left = at < sizeof(timed->reason) ? sizeof(timed->reason) - 1 - at : 0;

	return strnlen(timed->reason + at, left < bytes_max ? left : bytes_max);
}

struct weir_timed_texts weir_timed_read_texts(const struct weir_timed *timed)
{
	struct weir_timed_texts texts = {};
	size_t at = 0, bytes = text_bytes(timed, at, sizeof(timed->reason) - 1);

	memcpy(texts.denying.reason, timed->reason, bytes);
	at += bytes + 1;
	bytes = text_bytes(timed, at, WEIR_BY_BYTES - 1);
	memcpy(texts.denying.by, timed->reason + at, bytes);
	at += bytes + 1;
	bytes = text_bytes(timed, at, WEIR_BY_BYTES - 1);
	memcpy(texts.allowed_by, timed->reason + at, bytes);
	return texts;
}

/* The reason leaves room for `by`; who allows it is kept if there is still room. */
void weir_timed_write_texts(const struct weir_timed_texts *texts, struct weir_timed *timed)
{
	size_t at = strlen(texts->denying.reason) + 1, bytes = strlen(texts->denying.by);

	memset(timed->reason, 0, sizeof(timed->reason));
	memcpy(timed->reason, texts->denying.reason, at);
	memcpy(timed->reason + at, texts->denying.by, bytes);
	at += bytes + 1;
	bytes = strlen(texts->allowed_by);
	if (at + bytes < sizeof(timed->reason))
		memcpy(timed->reason + at, texts->allowed_by, bytes);
}

/* ---- places, by program ---- */

/* The program that an entry's place is counted for. */
void weir_timed_find_owner(const struct weir_timed *timed, uint64_t now_ns, char ret_by[WEIR_BY_BYTES])
{
	const struct weir_timed_texts texts = weir_timed_read_texts(timed);
	const char *by = timed->deny_until_ns > now_ns ? texts.denying.by : texts.allowed_by;

	memset(ret_by, 0, WEIR_BY_BYTES);
	memcpy(ret_by, *by ? by : WEIR_BY_HAND, strlen(*by ? by : WEIR_BY_HAND));
}

void weir_timed_divide(const struct weir_instance_info *info, uint64_t now_ns, struct weir_timed_places *ret_places)
{
	const size_t parts = info->timed_part_count;
	size_t room = info->tables[WEIR_TABLE_TIMED_ADDRESSES].size;

	*ret_places = (struct weir_timed_places){.info = info, .now_ns = now_ns};
	for (size_t i = 0; i < parts; i++) {
		ret_places->shares[i].by = info->timed_parts[i].by;
		ret_places->shares[i].room = info->timed_parts[i].addresses;
		room -= info->timed_parts[i].addresses;
	}
	ret_places->shares[parts].room = room;
}

/* By place in shares[]. */
size_t weir_timed_find_share(const struct weir_timed_places *places, const char *by)
{
	size_t i = 0;

	while (i < places->info->timed_part_count && strcmp(places->info->timed_parts[i].by, by) != 0)
		i++;
	return i;
}

size_t weir_timed_share_of(const struct weir_timed_places *places, const struct weir_timed *timed)
{
	char by[WEIR_BY_BYTES];

	weir_timed_find_owner(timed, places->now_ns, by);
	return weir_timed_find_share(places, by);
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

int weir_timed_expect_room(const struct weir_instance *instance, struct weir_diag *diag)
{
	int err = weir_instance_expect_tables(instance, TIMED_TABLES, "the timed entries", diag);

	if (!err && !instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size)
		err = weir_diag_error(
			diag, NULL, NULL, "remove settings.timedEntries from its rules and reload them",
			"instance '%s' was loaded without room for addresses to block or allow for a while",
			instance->name);
	return err;
}

/* ---- reading ---- */

struct reading {
	struct weir_timed_order *orders;
	size_t count;
	bool denies;
	uint64_t now_ns;
};

static int add_order(struct reading *reading, uint8_t family, const uint8_t address[16], struct weir_timed *timed)
{
	uint64_t until_ns = *weir_timed_time_of(timed, reading->denies);
	struct weir_timed_order *order;

	if (until_ns <= reading->now_ns)
		return 0;
	order = weir_array_add((void **)&reading->orders, reading->count, sizeof(*order));
	if (!order)
		return -ENOMEM;
	if (reading->denies) {
		*order = weir_timed_read_texts(timed).denying;
		order->hits = timed->hits;
	} else {
		*order = (struct weir_timed_order){};
		memcpy(order->by, weir_timed_read_texts(timed).allowed_by, sizeof(order->by));
	}
	order->lasts_ns = until_ns - reading->now_ns;
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
	int err = weir_timed_expect_room(instance, diag);

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

/* ---- counting ---- */

struct counting {
	struct weir_timed_counts counts;
	struct weir_timed_places places;
};

/* NULL: there are too many programs. */
static struct weir_timed_source *find_source(struct weir_timed_counts *counts, const char *by)
{
	size_t i = 0;

	by = *by ? by : WEIR_BY_HAND;
	while (i < counts->source_count && strcmp(counts->sources[i].by, by) != 0)
		i++;
	if (i == WEIR_TIMED_SOURCES_MAX)
		return NULL;
	if (i == counts->source_count)
		memcpy(counts->sources[counts->source_count++].by, by, strlen(by));
	return &counts->sources[i];
}

static void count_one(struct counting *counting, const struct weir_timed *timed)
{
	const bool is_blocked = timed->deny_until_ns > counting->places.now_ns;
	const bool is_allowed = timed->allow_until_ns > counting->places.now_ns;
	struct weir_timed_counts *counts = &counting->counts;
	const struct weir_timed_texts texts = weir_timed_read_texts(timed);
	struct weir_timed_source *source;

	counts->blocked += is_blocked;
	counts->allowed += is_allowed;
	source = is_blocked ? find_source(counts, texts.denying.by) : NULL;
	if (source)
		source->blocked++;
	source = is_allowed ? find_source(counts, texts.allowed_by) : NULL;
	if (source)
		source->allowed++;
}

static int count_addresses(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count, void *data)
{
	struct counting *counting = data;

	for (__u32 i = 0; i < count; i++) {
		count_one(counting, &values[i]);
		if (weir_timed_is_over(&values[i], counting->places.now_ns))
			continue;
		counting->counts.addresses++;
		counting->places.shares[weir_timed_share_of(&counting->places, &values[i])].used++;
	}
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
	struct weir_timed_state state = {};
	int err = weir_array_read(instance->map_fd[WEIR_TABLE_TIMED_STATE], &state, 1, sizeof(state));

	counting->counts.evicted = state.evicted;
	counting->counts.refused = state.refused;
	if (!err && state.addresses_until_ns > counting->places.now_ns)
		err = weir_timed_addresses_scan(instance->map_fd[WEIR_TABLE_TIMED_ADDRESSES], count_addresses,
						counting);
	if (!err && state.prefixes_until_ns > counting->places.now_ns)
		err = weir_timed_prefixes_scan(instance->map_fd[WEIR_TABLE_TIMED_PREFIXES], count_prefix, counting);
	return err;
}

int weir_timed_count(const struct weir_instance *instance, struct weir_timed_counts *ret_counts, struct weir_diag *diag)
{
	const size_t room = instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size;
	struct counting counting = {};
	int err = 0;

	weir_timed_divide(&instance->info, weir_host_now_ns(), &counting.places);
	if (room)
		err = count_all(instance, &counting);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the timed entries of instance '%s'",
				      instance->name);
	*ret_counts = counting.counts;
	ret_counts->room = room;
	ret_counts->share_count = instance->info.timed_part_count + 1;
	memcpy(ret_counts->shares, counting.places.shares, sizeof(ret_counts->shares));
	return 0;
}
