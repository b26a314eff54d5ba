// SPDX-License-Identifier: GPL-2.0-only
#include "state/row_ghosts.h"

#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"

/* The latest bucket of a window spec that is no longer in its window. */
static uint64_t expired_bucket(const struct weir_window_spec *spec, uint64_t now_ns)
{
	return spec->bucket_ns ? now_ns / spec->bucket_ns - spec->base_bucket - spec->window_cells : 0;
}

/* Does this ghost still count? The words of the last window specs do not identify their bucket length, so their ghosts
 * count until they are replaced.
 */
static bool counts(const struct weir_instance *instance, uint64_t word, uint64_t now_ns)
{
	const uint32_t spec = word >> WEIR_ROW_GHOST_NAME_SHIFT & 15;

	if (!word)
		return false;
	return spec >= WEIR_ROW_GHOST_SPECS || spec >= instance->info.spec_count ||
	       weir_row_ghost_counts(word, expired_bucket(&instance->specs[spec], now_ns));
}

/* Can ghosts in the page that contains this set still count? */
static bool page_counts(const struct weir_row_ghost_set *table, uint32_t sets, uint32_t set, uint64_t now_ns)
{
	const uint32_t page = set / WEIR_ROW_GHOST_PAGE_SETS;
	const struct weir_row_ghost_set *pages = &table[WEIR_ROW_GHOST_PAGES_SET(sets) + page / WEIR_ROW_GHOST_WAYS];

	return __atomic_load_n(&pages->until_ns[page % WEIR_ROW_GHOST_WAYS], __ATOMIC_RELAXED) > now_ns;
}

/* Can any ghost still count? Returns 1, 0 or a negative error code. */
static int any_counts(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns)
{
	struct weir_row_ghost_set pages;

	for (uint32_t key = WEIR_ROW_GHOST_PAGES_SET(sets); key < WEIR_ROW_GHOST_ALL_SETS(sets); key++) {
		int err = weir_map_look_up(instance->map_fd[WEIR_TABLE_ROW_GHOSTS], &key, &pages);

		if (err)
			return err;
		for (int i = 0; i < WEIR_ROW_GHOST_WAYS; i++)
			if (pages.until_ns[i] > now_ns)
				return 1;
	}
	return 0;
}

/* The table is large, so it is mapped only while a ghost may count. */
static int count_used(const struct weir_instance *instance, uint32_t sets, uint64_t now_ns, uint64_t *ret_used)
{
	const uint32_t all_sets = WEIR_ROW_GHOST_ALL_SETS(sets);
	const struct weir_row_ghost_set *table =
		weir_array_map(instance->map_fd[WEIR_TABLE_ROW_GHOSTS], all_sets, sizeof(*table), false);

	if (!table)
		return -errno;
	for (uint32_t set = 0; set < sets; set++)
		for (int way = 0; way < WEIR_ROW_GHOST_WAYS && page_counts(table, sets, set, now_ns); way++)
			*ret_used += counts(instance, __atomic_load_n(&table[set].word[way], __ATOMIC_RELAXED), now_ns);
	weir_array_unmap((void *)(uintptr_t)table, all_sets, sizeof(*table));
	return 0;
}

static int add_heads(const struct weir_instance *instance, uint32_t sets, struct weir_row_ghosts_sum *sum)
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

static int add_ghosts(const struct weir_instance *instance, struct weir_row_ghosts_sum *sum)
{
	const uint32_t ghosts = instance->info.tables[WEIR_TABLE_GHOSTS].size, last = WEIR_GHOST_HEAD(ghosts);
	struct weir_ghost_set head;

	if (!ghosts || instance->is_incompatible[WEIR_TABLE_GHOSTS])
		return 0;
	if (weir_map_look_up(instance->map_fd[WEIR_TABLE_GHOSTS], &last, &head))
		return -errno;
	sum->ghosts_displaced = head.displaced;
	sum->displaced += head.displaced;
	sum->joined += head.joined;
	return 0;
}

int weir_row_ghosts_look(const struct weir_instance *instance, struct weir_row_ghosts_sum *ret_sum,
			 struct weir_diag *diag)
{
	const uint32_t sets = instance->info.tables[WEIR_TABLE_ROW_GHOSTS].size;
	const uint64_t now_ns = weir_host_now_ns();
	struct weir_row_ghosts_sum sum = {};
	int err;

	*ret_sum = sum;
	if (!sets || instance->is_incompatible[WEIR_TABLE_ROW_GHOSTS])
		return 0;
	err = add_heads(instance, sets, &sum);
	if (!err)
		err = add_ghosts(instance, &sum);
	if (!err)
		err = any_counts(instance, sets, now_ns);
	if (err > 0)
		err = count_used(instance, sets, now_ns, &sum.used);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the ghosts of evicted flows");
	sum.places = (uint64_t)sets * WEIR_ROW_GHOST_WAYS;
	*ret_sum = sum;
	return 0;
}
