// SPDX-License-Identifier: GPL-2.0-only
#include "state/ghosts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "host/host.h"
#include "program/array.h"
#include "tables/rule_kind.h"

/* The latest bucket of a window spec that is no longer in its window. */
static uint64_t expired_bucket(const struct weir_window_spec *spec, uint64_t now_ns)
{
	return spec->bucket_ns ? now_ns / spec->bucket_ns - spec->base_bucket - spec->window_cells : 0;
}

/* ---- of windows ---- */

/* Can ghosts in the page that contains this set still count? */
static bool page_counts(const struct weir_row_ghost_set *table, uint32_t sets, uint32_t set, uint64_t now_ns)
{
	const uint32_t page = set / WEIR_ROW_GHOST_PAGE_SETS;
	const struct weir_row_ghost_set *pages = &table[WEIR_ROW_GHOST_PAGES_SET(sets) + page / WEIR_ROW_GHOST_WAYS];

	return __atomic_load_n(&pages->until_ns[page % WEIR_ROW_GHOST_WAYS], __ATOMIC_RELAXED) > now_ns;
}

/* Can any ghost still count? Returns 1, 0 or a negative error code. */
static int any_row_ghost_counts(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns)
{
	const uint32_t first = WEIR_ROW_GHOST_PAGES_SET(sets), count = WEIR_ROW_GHOST_ALL_SETS(sets) - first;
	_cleanup_(weir_freep) struct weir_row_ghost_set *pages = calloc(count, sizeof(*pages));
	int err =
		pages ? weir_entries_read(instance->map_fd[WEIR_TABLE_ROW_GHOSTS], first, count, sizeof(*pages), pages)
		      : -ENOMEM;

	for (uint32_t set = 0; !err && set < count; set++)
		for (int i = 0; i < WEIR_ROW_GHOST_WAYS; i++)
			if (pages[set].until_ns[i] > now_ns)
				return 1;
	return err;
}

/* The table is large, so it is mapped only while a ghost may count. */
static int count_row_ghosts(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns, uint64_t *ret_used)
{
	const uint32_t all_sets = WEIR_ROW_GHOST_ALL_SETS(sets);
	const struct weir_row_ghost_set *table =
		weir_array_map(instance->map_fd[WEIR_TABLE_ROW_GHOSTS], all_sets, sizeof(*table), false);

	if (!table)
		return -errno;
	for (uint32_t set = 0; set < sets; set++) {
		for (int way = 0; way < WEIR_ROW_GHOST_WAYS && page_counts(table, sets, set, now_ns); way++) {
			const uint64_t word = __atomic_load_n(&table[set].word[way], __ATOMIC_RELAXED);
			const uint32_t spec = word >> WEIR_ROW_GHOST_NAME_SHIFT & 15;

			/* The words of the last window specs do not identify their bucket length, so their ghosts count
			 * until they are replaced.
			 */
			*ret_used +=
				word && (spec >= WEIR_ROW_GHOST_SPECS || spec >= instance->info.spec_count ||
					 weir_row_ghost_counts(word, expired_bucket(&instance->specs[spec], now_ns)));
		}
	}
	weir_array_unmap((void *)(uintptr_t)table, all_sets, sizeof(*table));
	return 0;
}

static int add_row_heads(const struct weir_instance *instance, uint32_t sets, struct weir_ghosts_sum *sum)
{
	struct weir_row_ghost_set head;

	for (uint32_t key = sets; key < sets + WEIR_ROW_GHOST_HEADS; key++) {
		int err = weir_map_look_up(instance->map_fd[WEIR_TABLE_ROW_GHOSTS], &key, &head);

		if (err)
			return err;
		sum->joined += head.joined;
		sum->displaced += head.displaced;
	}
	return 0;
}

static int look_at_row_ghosts(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns,
			      struct weir_ghosts_sum *sum)
{
	int err = add_row_heads(instance, sets, sum);

	if (!err)
		err = any_row_ghost_counts(instance, sets, now_ns);
	return err > 0 ? count_row_ghosts(instance, sets, now_ns, &sum->used) : err;
}

/* ---- of token buckets, Throttling and penalties ---- */

/* As weir_ghost_left() does (bpf/kinds/ghosts.h): a ghost that is over lies half a round behind, at most. */
static uint64_t count_ghosts(const struct weir_ghost_set *set, uint64_t now_ns)
{
	uint64_t used = 0;

	for (int way = 0; way < WEIR_GHOST_WAYS; way++) {
		const uint64_t word = __atomic_load_n(&set->word[way], __ATOMIC_RELAXED);
		const uint64_t left = (word - (now_ns >> WEIR_GHOST_STEP_BITS)) & WEIR_GHOST_TIME_MASK;

		used += left && !(left >> (WEIR_GHOST_TIME_BITS - 1));
	}
	return used;
}

/* This table is large, too. */
static int look_at_ghosts(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns,
			  struct weir_ghosts_sum *sum)
{
	const uint32_t last = WEIR_GHOST_HEAD(sets);
	const struct weir_ghost_set *table;
	struct weir_ghost_set head;
	int err = weir_map_look_up(instance->map_fd[WEIR_TABLE_GHOSTS], &last, &head);

	if (err)
		return err;
	sum->displaced = head.displaced;
	sum->joined = head.joined;
	if (head.until_ns <= now_ns)
		return 0;
	table = weir_array_map(instance->map_fd[WEIR_TABLE_GHOSTS], last + 1, sizeof(*table), false);
	if (!table)
		return -errno;
	for (uint32_t set = 0; set < sets; set++)
		sum->used += count_ghosts(&table[set], now_ns);
	weir_array_unmap((void *)(uintptr_t)table, last + 1, sizeof(*table));
	return 0;
}

/* ---- all tables ---- */

static const struct {
	const char *name, *words;
	enum weir_table_id table;
	uint32_t ways;
	bool (*leaves)(const struct weir_rule_info *rule);
	int (*look)(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns, struct weir_ghosts_sum *sum);
} tables[WEIR_GHOST_TABLES] = {
	[WEIR_GHOSTS_OF_WINDOWS] = {"windows", "windows", WEIR_TABLE_ROW_GHOSTS, WEIR_ROW_GHOST_WAYS,
				    weir_leaves_row_ghosts, look_at_row_ghosts},
	[WEIR_GHOSTS_OF_OTHERS] = {"others", "tokens, Throttling, penalties", WEIR_TABLE_GHOSTS, WEIR_GHOST_WAYS,
				   weir_leaves_ghosts, look_at_ghosts},
};

const char *weir_ghost_table_name(enum weir_ghost_table table)
{
	return tables[table].name;
}

const char *weir_ghost_table_words(enum weir_ghost_table table)
{
	return tables[table].words;
}

struct weir_ghosts_sum weir_ghosts_add(const struct weir_ghosts *ghosts)
{
	struct weir_ghosts_sum all = {};

	for (size_t i = 0; i < WEIR_GHOST_TABLES; i++) {
		all.slots += ghosts->of[i].slots;
		all.used += ghosts->of[i].used;
		all.displaced += ghosts->of[i].displaced;
		all.joined += ghosts->of[i].joined;
	}
	return all;
}

int weir_ghosts_look(const struct weir_instance *instance, struct weir_ghosts *ret_ghosts, struct weir_diag *diag)
{
	const uint64_t now_ns = weir_host_now_ns();

	*ret_ghosts = (struct weir_ghosts){};
	for (size_t i = 0; i < WEIR_GHOST_TABLES; i++) {
		const uint32_t sets = instance->info.tables[tables[i].table].size;
		struct weir_ghosts_sum sum = {.slots = (uint64_t)sets * tables[i].ways};
		int err;

		if (!sets || instance->is_incompatible[tables[i].table] ||
		    !weir_any_rule(tables[i].leaves, instance->rules, instance->info.rule_slots))
			continue;
		err = tables[i].look(instance, sets, now_ns, &sum);
		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot read the ghosts of evicted flows");
		ret_ghosts->of[i] = sum;
	}
	return 0;
}
