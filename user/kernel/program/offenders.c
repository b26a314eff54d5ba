// SPDX-License-Identifier: GPL-2.0-only
#include "program/offenders.h"

#include <errno.h>

#include "program/array.h"

int weir_offenders_map(struct weir_offenders *ret_offenders, int sets_fd, int keys_fd, uint32_t set_count, bool writes)
{
	struct weir_offenders offenders = {.set_count = set_count};
	int err = 0;

	offenders.sets = weir_array_map(sets_fd, set_count, sizeof(*offenders.sets), writes);
	if (offenders.sets)
		offenders.whose =
			weir_array_map(keys_fd, set_count * WEIR_OFFENDER_WAYS, sizeof(*offenders.whose), writes);
	if (!offenders.whose)
		err = -errno;
	if (err)
		weir_offenders_unmap(&offenders);
	else
		*ret_offenders = offenders;
	return err;
}

void weir_offenders_unmap(struct weir_offenders *offenders)
{
	weir_array_unmap(offenders->sets, offenders->set_count, sizeof(*offenders->sets));
	weir_array_unmap(offenders->whose, offenders->set_count * WEIR_OFFENDER_WAYS, sizeof(*offenders->whose));
	*offenders = (struct weir_offenders){};
}

/* The time of a step, which is not long ago and hardly in the future. */
static uint64_t time_of(uint32_t step, uint64_t now_ns)
{
	uint64_t now_step = now_ns >> WEIR_OFFENDER_TIME_SHIFT;

	return (now_step - (int32_t)((uint32_t)now_step - step)) << WEIR_OFFENDER_TIME_SHIFT;
}

/* Read a place that a CPU may be giving to another flow. False: nobody has it, or it just changes hands. */
static bool read_place(const struct weir_offender_set *set, const struct weir_offender *whose, uint32_t way,
		       uint64_t now_ns, struct weir_offence *ret_offence)
{
	uint32_t tag = __atomic_load_n(&set->tag[way], __ATOMIC_ACQUIRE);
	uint64_t bytes;

	if (!tag || __atomic_load_n(&whose->tag, __ATOMIC_ACQUIRE) != tag)
		return false;
	bytes = set->sum[way].bytes;
	*ret_offence = (struct weir_offence){
		.rule_slot = whose->rule_slot,
		.is_observed = whose->observed,
		.is_estimated = bytes & WEIR_OFFENDER_ESTIMATED,
		.key = whose->key,
		.hash = whose->hash,
		.packets = set->sum[way].packets - whose->missed,
		.bytes = bytes & ~WEIR_OFFENDER_ESTIMATED,
		.missed = whose->missed,
		.first_ns = time_of(whose->first, now_ns),
		.last_ns = time_of(set->last[way], now_ns),
	};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&set->tag[way], __ATOMIC_ACQUIRE) == tag &&
	       __atomic_load_n(&whose->tag, __ATOMIC_ACQUIRE) == tag && ret_offence->packets;
}

void weir_offenders_visit(const struct weir_offenders *offenders, uint64_t now_ns, weir_offence_visit *visit,
			  void *data)
{
	struct weir_offence offence;

	for (uint32_t set = 0; set < offenders->set_count; set++)
		for (uint32_t way = 0; way < WEIR_OFFENDER_WAYS; way++)
			if (read_place(&offenders->sets[set], &offenders->whose[set * WEIR_OFFENDER_WAYS + way], way,
				       now_ns, &offence))
				visit(&offence, data);
}

/* Of one CPU's set: what came before it got its place there; without a place, what the set has missed. */
static uint64_t missed_in_set(const struct weir_offenders *offenders, uint32_t set, const struct weir_offence *offence)
{
	const struct weir_offender *whose = &offenders->whose[(size_t)set * WEIR_OFFENDER_WAYS];

	for (uint32_t way = 0; way < WEIR_OFFENDER_WAYS; way++)
		if (offenders->sets[set].tag[way] && whose[way].tag == offenders->sets[set].tag[way] &&
		    whose[way].hash == offence->hash && !whose[way].observed == !offence->is_observed)
			return whose[way].missed;
	return offenders->sets[set].missed;
}

uint64_t weir_offence_missed(const struct weir_offenders *offenders, const struct weir_offence *offence)
{
	uint64_t sum = 0;

	for (uint32_t set = offence->hash % WEIR_OFFENDER_SETS; set < offenders->set_count; set += WEIR_OFFENDER_SETS)
		sum += missed_in_set(offenders, set, offence);
	return sum;
}

uint64_t weir_offenders_missed(const struct weir_offenders *offenders)
{
	uint64_t sum = 0;

	for (uint32_t first = 0; first < offenders->set_count; first += WEIR_OFFENDER_SETS) {
		uint64_t most = 0;

		for (uint32_t set = first; set < first + WEIR_OFFENDER_SETS && set < offenders->set_count; set++)
			if (offenders->sets[set].missed > most)
				most = offenders->sets[set].missed;
		sum += most;
	}
	return sum;
}

/* No program knows a rule in these slots now, so nobody counts there; but a CPU may just give such a place away. */
void weir_offenders_forget(const struct weir_offenders *offenders, const bool *is_slot_forgotten, uint32_t slots)
{
	for (uint32_t i = 0; i < offenders->set_count * WEIR_OFFENDER_WAYS; i++) {
		__u32 *tag = &offenders->sets[i / WEIR_OFFENDER_WAYS].tag[i % WEIR_OFFENDER_WAYS], seen = *tag;
		const struct weir_offender *whose = &offenders->whose[i];

		if (seen && whose->tag == seen && whose->rule_slot < slots && is_slot_forgotten[whose->rule_slot])
			__atomic_compare_exchange_n(tag, &seen, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}
