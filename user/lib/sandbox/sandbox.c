// SPDX-License-Identifier: GPL-2.0-only
#include "sandbox/sandbox.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "kind/kind.h"
#include "program/array.h"
#include "program/copy.h"
#include "tables/flow_hash.h"
#include "weir_occupy.h"

/* Both candidate sets of a flow are in one chunk, and the sandbox has one chunk of each format. */
#define SANDBOX_CHUNK 0

/* ---- props ---- */

static struct weir_prop *add_prop(struct weir_sandbox *sandbox, enum weir_table_id map, int copied_fd, uint32_t key)
{
	struct weir_prop *prop;
	size_t value_bytes;

	if (copied_fd < 0 || weir_map_value_bytes(copied_fd, sandbox->cpus, &value_bytes))
		return NULL;
	prop = weir_array_add((void **)&sandbox->props, sandbox->prop_count, sizeof(*prop));
	if (!prop)
		return NULL;
	*prop = (struct weir_prop){
		.map = map,
		.fd = copied_fd,
		.key = key,
		.value = calloc(1, value_bytes),
	};
	if (!prop->value)
		return NULL;
	sandbox->prop_count++;
	return prop;
}

static int live_fd(const struct weir_sandbox *sandbox, enum weir_table_id map)
{
	return sandbox->instance ? sandbox->instance->map_fd[map] : -1;
}

/* Copy an element that has the same key in the instance and the sandbox. */
static int add_element(struct weir_sandbox *sandbox, enum weir_table_id map, uint32_t key)
{
	const int fd = live_fd(sandbox, map);
	struct weir_prop *prop;

	if (weir_sandbox_find(sandbox, map, key))
		return 0;
	prop = add_prop(sandbox, map, weir_object_map_fd(sandbox->object, map), key);
	if (!prop)
		return -ENOMEM;
	return fd >= 0 && weir_map_look_up(fd, &key, prop->value) ? -errno : 0;
}

/* Copy the set of a hash, from a table that the program uses. */
static int add_set(struct weir_sandbox *sandbox, enum weir_table_id table, uint64_t hash)
{
	const uint32_t sets = weir_object_config(sandbox->object)->sizes[table];

	return sets ? add_element(sandbox, table, (uint32_t)hash & (sets - 1)) : 0;
}

/* Copy the ghosts that the flow may have left for such a set (bpf/kinds/ghosts.h). */
static int add_ghosts(struct weir_sandbox *sandbox, enum weir_table_id table, uint64_t hash)
{
	const struct weir_config *config = weir_object_config(sandbox->object);
	const uint32_t ghosts = config->sizes[WEIR_TABLE_GHOSTS];
	const uint32_t set = weir_shared_set(hash, config->sizes[table]);
	int err;

	if (!ghosts)
		return 0;
	err = add_element(sandbox, WEIR_TABLE_GHOSTS,
			  weir_ghost_index(set, table == WEIR_TABLE_PENALISED_FLOWS, ghosts));
	if (!err)
		err = add_element(sandbox, WEIR_TABLE_GHOSTS, WEIR_GHOST_OVERFLOW(ghosts, set));
	return err ?: add_element(sandbox, WEIR_TABLE_GHOSTS, WEIR_GHOST_HEAD(ghosts));
}

/* Copy the element of a whole resource, by its rule's slot, or the shared set of a flow with a key. */
static int add_shared(struct weir_sandbox *sandbox, const struct weir_rule *rule, uint64_t hash,
		      enum weir_table_id lone, enum weir_table_id sets)
{
	return rule->key_fields ? add_set(sandbox, sets, hash) : add_element(sandbox, lone, rule->flows_slot);
}

/* ---- rows ---- */

static const struct weir_row_format *format_of(uint8_t storage)
{
	const struct weir_row_format *format = weir_row_formats;

	while (format->storage != storage && format < &weir_row_formats[WEIR_ROWS_WIDE])
		format++;
	return format;
}

/* The row with this tag in a set of a chunk, or a free row (tag 0); NULL. */
static uint8_t *find_row(uint8_t *chunk, const struct weir_row_format *format, uint32_t set, uint32_t tag)
{
	uint8_t *rows = chunk + (size_t)set * WEIR_WAYS * format->row_bytes;

	for (int way = 0; way < WEIR_WAYS; way++) {
		uint8_t *row = rows + (size_t)way * format->row_bytes;
		uint32_t found;

		memcpy(&found, row, sizeof(found));
		if (found == tag)
			return row;
	}
	return NULL;
}

/* The same in either of a flow's two sets. */
static uint8_t *find_row_of_flow(uint8_t *chunk, const struct weir_row_format *format, uint64_t hash, uint32_t tag,
				 uint32_t wanted)
{
	const uint32_t set = (uint32_t)hash & (format->sets_per_chunk - 1);
	uint8_t *row = find_row(chunk, format, set, wanted);

	return row ? row : find_row(chunk, format, WEIR_OTHER_SET(set, tag, format->page_sets), wanted);
}

/* The sandbox's set with this number, of ghosts or of pages' words. */
static struct weir_row_ghost_set *copy_row_ghosts(struct weir_sandbox *sandbox, uint32_t number)
{
	void *value = (void *)(uintptr_t)weir_sandbox_find(sandbox, WEIR_TABLE_ROW_GHOSTS, number);
	struct weir_prop *prop;

	if (value)
		return value; /* copied for another flow, which shares it */
	prop = add_prop(sandbox, WEIR_TABLE_ROW_GHOSTS, weir_object_map_fd(sandbox->object, WEIR_TABLE_ROW_GHOSTS),
			number);
	return prop ? (void *)prop->value : NULL;
}

/* Copy the time until which ghosts of a page may count, from the page of set `live` to the page of set `copied`. */
static int add_page(struct weir_sandbox *sandbox, int fd, uint32_t live, uint32_t copied)
{
	const uint32_t first = WEIR_ROW_GHOST_PAGES_SET(sandbox->instance->info.tables[WEIR_TABLE_ROW_GHOSTS].size);
	const uint32_t live_page = live / WEIR_ROW_GHOST_PAGE_SETS, copied_page = copied / WEIR_ROW_GHOST_PAGE_SETS;
	const uint32_t key = first + live_page / WEIR_ROW_GHOST_WAYS;
	struct weir_row_ghost_set *to = copy_row_ghosts(sandbox, first + copied_page / WEIR_ROW_GHOST_WAYS), from;
	__u64 until_ns, *to_until_ns;

	if (!to)
		return -ENOMEM;
	if (weir_map_look_up(fd, &key, &from))
		return -errno;
	until_ns = from.until_ns[live_page % WEIR_ROW_GHOST_WAYS];
	to_until_ns = &to->until_ns[copied_page % WEIR_ROW_GHOST_WAYS];
	if (*to_until_ns < until_ns)
		*to_until_ns = until_ns;
	return 0;
}

/* Copy the ghosts that the flow left beside these sets of rows, to where the sandbox's program looks for them. */
static int add_row_ghosts(struct weir_sandbox *sandbox, uint32_t live_rows, uint32_t copied_rows, uint32_t tag,
			  uint32_t page_sets)
{
	const uint32_t sets = sandbox->instance->info.tables[WEIR_TABLE_ROW_GHOSTS].size;
	const uint32_t rows[][2] = {{live_rows, copied_rows},
				    {WEIR_OTHER_SET(live_rows, tag, page_sets),
				     WEIR_OTHER_SET(copied_rows, tag, page_sets)}};
	const int fd = live_fd(sandbox, WEIR_TABLE_ROW_GHOSTS);

	for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(rows); i++) {
		const uint32_t live = weir_row_ghost_set_beside(rows[i][0], tag, page_sets, sets);
		const uint32_t copied = weir_row_ghost_set_beside(rows[i][1], tag, page_sets, sets);
		struct weir_row_ghost_set *to = copy_row_ghosts(sandbox, copied);
		int err;

		if (!to)
			return -ENOMEM;
		if (weir_map_look_up(fd, &live, to))
			return -errno;
		err = add_page(sandbox, fd, live, copied);
		if (err)
			return err;
	}
	return 0;
}

/* Copy the overflow window that the flow would use. As above, ghosts and overflow windows have the sandbox's numbers.
 */
static int add_overflow(struct weir_sandbox *sandbox, uint64_t hash, uint32_t tag, uint32_t copied_sets)
{
	const uint32_t sets = sandbox->instance->info.tables[WEIR_TABLE_ROW_GHOSTS].size,
		       groups = sandbox->instance->info.tables[WEIR_TABLE_OVERFLOW_WINDOWS].size;
	const uint32_t live = WEIR_OVERFLOW_GROUP((uint32_t)hash << 1 & (sets - 1), tag);
	const uint32_t copied = WEIR_OVERFLOW_GROUP((uint32_t)(hash & (copied_sets - 1)) << 1 & (sets - 1), tag);
	const int fd = live_fd(sandbox, WEIR_TABLE_OVERFLOW_WINDOWS);
	struct weir_prop *prop;

	if (fd < 0 || live >= groups || weir_sandbox_find(sandbox, WEIR_TABLE_OVERFLOW_WINDOWS, copied))
		return 0;
	prop = add_prop(sandbox, WEIR_TABLE_OVERFLOW_WINDOWS,
			weir_object_map_fd(sandbox->object, WEIR_TABLE_OVERFLOW_WINDOWS), copied);
	if (!prop)
		return -ENOMEM;
	return weir_map_look_up(fd, &live, prop->value) ? -errno : 0;
}

/* Copy this flow's rows from their chunk to the sandbox's. */
static int add_rows(struct weir_sandbox *sandbox, const struct weir_rule *counted, uint64_t hash, uint32_t tag)
{
	const struct weir_row_format *format = format_of(counted->storage);
	_cleanup_(weir_freep) uint8_t *chunks = calloc(sandbox->cpus, WEIR_CHUNK_BYTES);
	uint8_t *copied = (uint8_t *)(uintptr_t)weir_sandbox_find(sandbox, format->table, SANDBOX_CHUNK);
	struct weir_prop *prop;
	uint32_t key, live_sets;

	if (!copied) {
		prop = add_prop(sandbox, format->table, weir_object_map_fd(sandbox->object, format->table),
				SANDBOX_CHUNK);
		copied = prop ? prop->value : NULL;
	}
	if (!copied || !chunks)
		return -ENOMEM;
	live_sets = sandbox->instance ? sandbox->instance->info.tables[format->table].size : 0;
	if (!live_sets)
		return 0;
	/* The sandbox's sets of rows have smaller numbers. */
	if (add_row_ghosts(sandbox, (uint32_t)hash, (uint32_t)hash & (format->sets_per_chunk - 1), tag,
			   format->page_sets) ||
	    add_overflow(sandbox, hash, tag, format->sets_per_chunk))
		return -ENOMEM;
	key = ((uint32_t)hash & (live_sets - 1)) / format->sets_per_chunk;
	if (weir_map_look_up(live_fd(sandbox, format->table), &key, chunks))
		return -errno;
	for (int cpu = 0; cpu < sandbox->cpus; cpu++) {
		const size_t offset = (size_t)cpu * WEIR_CHUNK_BYTES;
		const uint8_t *from = find_row_of_flow(chunks + offset, format, hash, tag, tag);
		uint8_t *to = from ? find_row_of_flow(copied + offset, format, hash, tag, 0) : NULL;

		if (to)
			memcpy(to, from, format->row_bytes);
	}
	return 0;
}

bool weir_sandbox_row(const struct weir_sandbox *sandbox, const struct weir_rule *counted, uint64_t hash, uint32_t tag,
		      int cpu, struct weir_row *ret_row)
{
	const struct weir_row_format *format = format_of(counted->storage);
	const uint8_t *row;
	uint8_t *chunks;

	if (counted->storage == WEIR_STORAGE_LONE) {
		const struct weir_wide_row *rows = weir_sandbox_find(sandbox, WEIR_TABLE_LONE_ROWS, counted->slot);

		if (rows)
			*ret_row = weir_row_of_wide(&rows[cpu]);
		return rows;
	}
	chunks = (uint8_t *)(uintptr_t)weir_sandbox_find(sandbox, format->table, SANDBOX_CHUNK);
	row = chunks ? find_row_of_flow(chunks + (size_t)cpu * WEIR_CHUNK_BYTES, format, hash, tag, tag) : NULL;
	if (!row)
		return false;
	*ret_row = format->read(row);
	return true;
}

const struct weir_rule *weir_sandbox_counted(const struct weir_sandbox *sandbox, const struct weir_harness_flow *flow,
					     uint64_t *ret_hash)
{
	const struct weir_generation *generation = weir_object_generation(sandbox->object);
	const struct weir_rule *rule = &generation->rules[flow->place % WEIR_RULES_MAX];

	*ret_hash = flow->hash;
	if (rule->kind == WEIR_KIND_WINDOW)
		return rule;
	*ret_hash = flow->other;
	return rule->kind == WEIR_KIND_ASSOCIATED ? &generation->rules[rule->shadow % WEIR_RULES_MAX] : NULL;
}

/* Copy the chunks with the packet's child and its parent. */
static int add_fair(struct weir_sandbox *sandbox, const struct weir_harness_flow *flow)
{
	const uint32_t sets = weir_object_config(sandbox->object)->sizes[WEIR_TABLE_FAIR_SHARES];
	int err;

	if (!sets)
		return 0;
	err = add_element(sandbox, WEIR_TABLE_FAIR_SHARES,
			  weir_shared_set(flow->other, sets) / WEIR_FAIR_SETS_PER_CHUNK);
	return err
		       ?: add_element(sandbox, WEIR_TABLE_FAIR_SHARES,
				      WEIR_FAIR_FIRST_PARENTS(sets) +
					      weir_shared_set(flow->hash, WEIR_FAIR_PARENT_SETS));
}

static int add_window(struct weir_sandbox *sandbox, const struct weir_rule *rule, const struct weir_harness_flow *flow)
{
	uint64_t hash;
	const struct weir_rule *counted = weir_sandbox_counted(sandbox, flow, &hash);
	int err = rule->bar == WEIR_BAR_LEVEL ? add_fair(sandbox, flow) : 0;

	if (err)
		return err;
	if (counted->storage == WEIR_STORAGE_LONE)
		return add_element(sandbox, WEIR_TABLE_LONE_ROWS, counted->slot);
	return add_rows(sandbox, counted, hash, flow->tag);
}

/* ---- connections and breakers ---- */

static int add_connections(struct weir_sandbox *sandbox, const struct weir_rule *rule,
			   const struct weir_harness_flow *flow)
{
	int err = add_shared(sandbox, rule, flow->hash, WEIR_TABLE_LONE_CONNECTIONS, WEIR_TABLE_CONNECTION_FLOWS);

	return err ?: add_set(sandbox, WEIR_TABLE_CONNECTIONS, flow->other);
}

/* Copy the requests of a breaker that wait for their time-outs. */
static int add_groups(struct weir_sandbox *sandbox, enum weir_table_id map, uint32_t ring, uint32_t shift)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < 1u << shift; i++)
		err = add_element(sandbox, map, (ring << shift) + i);
	return err;
}

static int add_breaker(struct weir_sandbox *sandbox, const struct weir_rule *rule, const struct weir_harness_flow *flow)
{
	const struct weir_config *config = weir_object_config(sandbox->object);
	const uint32_t sets = config->sizes[WEIR_TABLE_BREAKERS], index = sets ? (uint32_t)flow->hash & (sets - 1) : 0;
	const struct weir_breaker_set *set;
	int err = add_shared(sandbox, rule, flow->hash, WEIR_TABLE_LONE_BREAKERS, WEIR_TABLE_BREAKERS);

	if (!err)
		err = add_set(sandbox, WEIR_TABLE_REQUESTS, flow->other);
	if (err)
		return err;
	if (!rule->key_fields)
		return add_groups(sandbox, WEIR_TABLE_LONE_GROUPS, rule->slot, config->lone_ring_shift);
	set = weir_sandbox_find(sandbox, WEIR_TABLE_BREAKERS, index);
	for (uint32_t way = 0; !err && set && way < WEIR_FLOW_WAYS; way++)
		if (set->flows.tag[way] == flow->hash >> 32)
			err = add_groups(sandbox, WEIR_TABLE_REQUEST_GROUPS, index * 8 + way, config->ring_shift);
	return err;
}

/* Copy an occupy window, and the ghosts that the flow left. */
static int add_occupy(struct weir_sandbox *sandbox, const struct weir_rule *rule, const struct weir_harness_flow *flow)
{
	const uint64_t hash = flow->hash;
	const uint32_t sets = weir_object_config(sandbox->object)->sizes[WEIR_TABLE_OCCUPY_FLOWS];
	const uint32_t tag = weir_shared_tag(hash), rows = WEIR_OCCUPY_ROW_SET(weir_shared_set(hash, sets), tag);
	int err = add_shared(sandbox, rule, hash, WEIR_TABLE_OCCUPY_RESOURCES, WEIR_TABLE_OCCUPY_FLOWS);

	if (err || !rule->key_fields || !sandbox->instance)
		return err;
	return add_row_ghosts(sandbox, rows, rows, tag, WEIR_OCCUPY_PAGE_SETS);
}

/* ---- the contract ---- */

/* Where a kind keeps its flows, and its resources without a flow key. */
static const struct {
	enum weir_table_id lone, flows;
} kind_tables[] = {
#define SHARED_KIND(identifier, name, lone, flows, ...)                                                                \
	[WEIR_KIND_##identifier] = {WEIR_TABLE_##lone, WEIR_TABLE_##flows},
#define KIND(identifier, ...) [WEIR_KIND_##identifier] = {WEIR_TABLE_NONE, WEIR_TABLE_NONE},
#include "weir_kinds.def"
};

/* What else than a flow and its ghost a kind keeps. */
static int (*const add_state[WEIR_KIND_COUNT])(struct weir_sandbox *sandbox, const struct weir_rule *rule,
					       const struct weir_harness_flow *flow) = {
	[WEIR_KIND_WINDOW] = add_window, [WEIR_KIND_ASSOCIATED] = add_window, [WEIR_KIND_CONNECTIONS] = add_connections,
	[WEIR_KIND_OCCUPY] = add_occupy, [WEIR_KIND_BREAKER] = add_breaker,
};

static int add_kind(struct weir_sandbox *sandbox, const struct weir_rule *rule, const struct weir_harness_flow *flow)
{
	const enum weir_kind_id id = rule->kind % WEIR_KIND_COUNT;

	int err;

	if (add_state[id])
		return add_state[id](sandbox, rule, flow);
	if (kind_tables[id].flows == WEIR_TABLE_NONE)
		return 0;
	err = add_shared(sandbox, rule, flow->hash, kind_tables[id].lone, kind_tables[id].flows);
	return err || !rule->key_fields ? err : add_ghosts(sandbox, kind_tables[id].flows, flow->hash);
}

int weir_sandbox_add(struct weir_sandbox *sandbox, const struct weir_harness_flow *flow)
{
	const struct weir_rule *rule = &weir_object_generation(sandbox->object)->rules[flow->place % WEIR_RULES_MAX];
	int err = add_kind(sandbox, rule, flow);

	if (!err && rule->warms_flows)
		err = add_set(sandbox, WEIR_TABLE_WARMING_FLOWS, flow->hash);
	if (!err && rule->penalty_ms)
		err = add_element(sandbox, WEIR_TABLE_PENALISED_RULES, rule->slot);
	if (!err && rule->penalty_ms && rule->key_fields)
		err = add_set(sandbox, WEIR_TABLE_PENALISED_FLOWS, flow->hash);
	if (!err && rule->penalty_ms && rule->key_fields)
		err = add_ghosts(sandbox, WEIR_TABLE_PENALISED_FLOWS, flow->hash);
	return err;
}

int weir_sandbox_begin(struct weir_sandbox *sandbox, const struct weir_object *object,
		       const struct weir_instance *instance)
{
	int err;

	*sandbox = (struct weir_sandbox){.object = object, .instance = instance, .cpus = weir_host_cpus()};
	if (sandbox->cpus < 0)
		return sandbox->cpus;
	/* Emptied before each run: counters of the run, and what the program remembers between packets. */
	err = add_prop(sandbox, WEIR_STATE_TABLE_COUNT, weir_object_map_fd(object, WEIR_TABLE_TOTALS), 0) ? 0 : -ENOMEM;
	if (!err)
		err = add_element(sandbox, WEIR_TABLE_HANDSHAKES, 0);
	return err;
}

int weir_sandbox_set(const struct weir_sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->prop_count; i++)
		if (weir_map_write(sandbox->props[i].fd, &sandbox->props[i].key, sandbox->props[i].value))
			return -errno;
	return 0;
}

const void *weir_sandbox_find(const struct weir_sandbox *sandbox, enum weir_table_id map, uint32_t key)
{
	for (size_t i = 0; i < sandbox->prop_count; i++)
		if (sandbox->props[i].map == map && sandbox->props[i].key == key)
			return sandbox->props[i].value;
	return NULL;
}

void weir_sandbox_free(struct weir_sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->prop_count; i++)
		free(sandbox->props[i].value);
	free(sandbox->props);
	*sandbox = (struct weir_sandbox){};
}
