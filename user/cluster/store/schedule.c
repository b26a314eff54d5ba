// SPDX-License-Identifier: GPL-2.0-only
#include "store/sharing_state.h"

#include "tables/entry_state.h"

void weir_share_schedule_read(uint64_t version, const struct weir_share_stages stages[2],
			      struct weir_share_schedule *ret_schedule)
{
	const struct weir_share_stages *in_force = &stages[version & 1];

	*ret_schedule = (struct weir_share_schedule){
		.leased = in_force->units[WEIR_SHARE_LEASED],
		.ended = in_force->units[WEIR_SHARE_ENDED],
		.fallen_back = in_force->units[WEIR_SHARE_FALLEN_BACK],
		.ends_ns = in_force->until_ns[WEIR_SHARE_LEASED],
		.rises_ns = in_force->until_ns[WEIR_SHARE_ENDED],
		.stops_ns = in_force->stops_ns,
	};
}

/* NOLINTNEXTLINE(readability-non-const-parameter) ; it is written, atomically */
uint64_t weir_share_schedule_push(__u64 *version, struct weir_share_stages stages[2], const struct weir_share *share,
				  uint64_t now_ns)
{
	uint64_t before = weir_share_schedule_units(*version, stages, now_ns);
	struct weir_share_schedule schedule;

	weir_share_plan(share, now_ns, &schedule);
	/* Overwrite the copy that nobody reads now, but only after all CPUs can see the word that points to the other
	 * copy.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	stages[(*version + 1) & 1] = (struct weir_share_stages){
		.units = {schedule.leased, schedule.ended, schedule.fallen_back},
		.until_ns = {schedule.ends_ns, schedule.rises_ns},
		.stops_ns = schedule.stops_ns,
	};
	__atomic_store_n(version, *version + 1, __ATOMIC_RELEASE);
	return before;
}
