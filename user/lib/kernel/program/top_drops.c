// SPDX-License-Identifier: GPL-2.0-only
#include "program/top_drops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "program/array.h"
#include "program/runs.h"

int weir_top_drops_map(struct weir_top_drops *ret_top_drops, const struct weir_top_drops_maps *maps, uint32_t set_count,
		       bool writes)
{
	struct weir_top_drops top_drops = {.set_count = set_count, .totals_fd = maps->totals_fd};
	int err = 0;

	top_drops.sets = weir_array_map(maps->sets_fd, set_count, sizeof(*top_drops.sets), writes);
	if (top_drops.sets)
		top_drops.whose = weir_array_map(maps->keys_fd, set_count * WEIR_TOP_DROPS_WAYS,
						 sizeof(*top_drops.whose), writes);
	if (!top_drops.whose)
		err = -errno;
	if (err)
		weir_top_drops_unmap(&top_drops);
	else
		*ret_top_drops = top_drops;
	return err;
}

void weir_top_drops_unmap(struct weir_top_drops *top_drops)
{
	weir_array_unmap(top_drops->sets, top_drops->set_count, sizeof(*top_drops->sets));
	weir_array_unmap(top_drops->whose, top_drops->set_count * WEIR_TOP_DROPS_WAYS, sizeof(*top_drops->whose));
	*top_drops = (struct weir_top_drops){};
}

/* The time of a step, which must be recent; it is hardly ever in the future. */
static uint64_t time_of(uint32_t step, uint64_t now_ns)
{
	uint64_t now_step = now_ns >> WEIR_TOP_DROPS_TIME_SHIFT;

	return (now_step - (int32_t)((uint32_t)now_step - step)) << WEIR_TOP_DROPS_TIME_SHIFT;
}

/* Read a slot that a CPU may be assigning to another flow. False: the slot is free, or just being reassigned. */
static bool read_place(const struct weir_top_drops_set *set, const struct weir_top_drop_key *whose, uint32_t way,
		       const struct weir_drop_run *run, uint64_t now_ns, struct weir_dropped_flow *ret_dropped)
{
	uint32_t tag = __atomic_load_n(&set->tag[way], __ATOMIC_ACQUIRE);
	uint64_t packets, bytes;

	if (!tag || __atomic_load_n(&whose->tag, __ATOMIC_ACQUIRE) != tag)
		return false;
	packets = set->sum[way].packets;
	bytes = set->sum[way].bytes;
	if (run && WEIR_DROP_RUN_WAY(run->slot) == way && (uint32_t)run->slot == tag) {
		packets += weir_drop_run_ahead(run->packets, packets);
		bytes += weir_drop_run_ahead(run->bytes, bytes);
	}
	*ret_dropped = (struct weir_dropped_flow){
		.rule_slot = whose->rule_slot,
		.is_observed = whose->observed,
		.is_estimated = bytes & WEIR_TOP_DROPS_ESTIMATED,
		.key = whose->key,
		.hash = whose->hash,
		.packets = packets - whose->missed,
		.bytes = bytes & ~WEIR_TOP_DROPS_ESTIMATED,
		.missed = whose->missed,
		.first_ns = time_of(whose->first, now_ns),
		.last_ns = time_of(set->last[way], now_ns),
	};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&set->tag[way], __ATOMIC_ACQUIRE) == tag &&
	       __atomic_load_n(&whose->tag, __ATOMIC_ACQUIRE) == tag && ret_dropped->packets;
}

void weir_top_drops_visit(const struct weir_top_drops *top_drops, uint64_t now_ns, weir_dropped_flow_visit *visit,
			  void *data)
{
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	struct weir_dropped_flow dropped;

	weir_runs_take(top_drops->totals_fd, &runs); /* without them, as if their packets had yet to come */
	for (uint32_t set = 0; set < top_drops->set_count; set++) {
		const struct weir_drop_run *run = runs ? &runs[set / WEIR_TOP_DROPS_SETS].drops : NULL;

		if (run && WEIR_DROP_RUN_SET(run->slot) != set % WEIR_TOP_DROPS_SETS)
			run = NULL;
		for (uint32_t way = 0; way < WEIR_TOP_DROPS_WAYS; way++)
			if (read_place(&top_drops->sets[set], &top_drops->whose[set * WEIR_TOP_DROPS_WAYS + way], way,
				       run, now_ns, &dropped))
				visit(&dropped, data);
	}
}

/* For one CPU's set: the drops before the flow got its slot there or, if it has no slot, what the set has missed. */
static uint64_t missed_in_set(const struct weir_top_drops *top_drops, uint32_t set,
			      const struct weir_dropped_flow *dropped)
{
	const struct weir_top_drop_key *whose = &top_drops->whose[(size_t)set * WEIR_TOP_DROPS_WAYS];

	for (uint32_t way = 0; way < WEIR_TOP_DROPS_WAYS; way++)
		if (top_drops->sets[set].tag[way] && whose[way].tag == top_drops->sets[set].tag[way] &&
		    whose[way].rule_slot == dropped->rule_slot && whose[way].hash == dropped->hash &&
		    !whose[way].observed == !dropped->is_observed)
			return whose[way].missed;
	return top_drops->sets[set].missed;
}

uint64_t weir_dropped_flow_missed(const struct weir_top_drops *top_drops, const struct weir_dropped_flow *dropped)
{
	uint64_t sum = 0;

	for (uint32_t set = dropped->hash % WEIR_TOP_DROPS_SETS; set < top_drops->set_count; set += WEIR_TOP_DROPS_SETS)
		sum += missed_in_set(top_drops, set, dropped);
	return sum;
}

uint64_t weir_top_drops_missed(const struct weir_top_drops *top_drops)
{
	uint64_t sum = 0;

	for (uint32_t first = 0; first < top_drops->set_count; first += WEIR_TOP_DROPS_SETS) {
		uint64_t most = 0;

		for (uint32_t set = first; set < first + WEIR_TOP_DROPS_SETS && set < top_drops->set_count; set++)
			if (top_drops->sets[set].missed > most)
				most = top_drops->sets[set].missed;
		sum += most;
	}
	return sum;
}

/* No program has a rule in these slots now, so nobody counts there; but a CPU may be reassigning such a slot right now.
 */
void weir_top_drops_forget(const struct weir_top_drops *top_drops, const bool *is_slot_forgotten, uint32_t slots)
{
	for (uint32_t i = 0; i < top_drops->set_count * WEIR_TOP_DROPS_WAYS; i++) {
		__u32 *tag = &top_drops->sets[i / WEIR_TOP_DROPS_WAYS].tag[i % WEIR_TOP_DROPS_WAYS], seen = *tag;
		const struct weir_top_drop_key *whose = &top_drops->whose[i];

		if (seen && whose->tag == seen && whose->rule_slot < slots && is_slot_forgotten[whose->rule_slot])
			__atomic_compare_exchange_n(tag, &seen, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}
