// SPDX-License-Identifier: GPL-2.0-only
#include "shares/level.h"

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#define NOT_YET UINT64_MAX

/* The host that wants least among those that have been given nothing yet. There must be such a host. */
static size_t next_host(const struct weir_ledger_host *hosts, size_t count, const uint64_t *due)
{
	size_t next = count;

	for (size_t i = 0; i < count; i++)
		if (due[i] == NOT_YET && (next == count || hosts[i].wanted < hosts[next].wanted))
			next = i;
	return next;
}

void weir_level_find(const struct weir_ledger_host *hosts, size_t count, uint64_t threshold, uint64_t owed,
		     struct weir_level *ret_level, uint64_t *ret_due)
{
	struct weir_level level = {.left_alone = owed};
	uint64_t budget;

	for (size_t i = 0; i < count; i++) {
		ret_due[i] = hosts[i].is_live ? NOT_YET : 0;
		level.live += hosts[i].is_live;
		if (hosts[i].is_live)
			level.wanted += (uint64_t)hosts[i].wanted;
		else
			level.left_alone += hosts[i].hold > hosts[i].fallback ? hosts[i].hold : hosts[i].fallback;
	}
	budget = level.budget = threshold - at_most(threshold, level.left_alone);
	for (uint32_t left = level.live; left > 0; left--) {
		size_t i = next_host(hosts, count, ret_due);

		ret_due[i] = at_most((uint64_t)hosts[i].wanted, budget / left);
		budget -= ret_due[i];
		if (ret_due[i] < (uint64_t)hosts[i].wanted)
			level.units = ret_due[i];
	}
	level.is_scarce = level.wanted > level.budget;
	if (level.live && !level.is_scarce)
		level.spare = budget / level.live;
	*ret_level = level;
}
