// SPDX-License-Identifier: GPL-2.0-only
#include "store/course.h"

#include "tables/share_schedule.h"

void weir_course_read(uint64_t version, const struct weir_share_stages stages[2], struct weir_share_course *ret_course)
{
	const struct weir_share_stages *in_force = &stages[version & 1];

	*ret_course = (struct weir_share_course){
		.leased = in_force->units[WEIR_SHARE_LEASED],
		.ended = in_force->units[WEIR_SHARE_ENDED],
		.fallen_back = in_force->units[WEIR_SHARE_FALLEN_BACK],
		.ends_ns = in_force->until_ns[WEIR_SHARE_LEASED],
		.rises_ns = in_force->until_ns[WEIR_SHARE_ENDED],
		.stops_ns = in_force->stops_ns,
	};
}

/* NOLINTNEXTLINE(readability-non-const-parameter) ; it is written, atomically */
uint64_t weir_course_push(__u64 *version, struct weir_share_stages stages[2], const struct weir_share *share,
			  uint64_t now_ns)
{
	uint64_t before = weir_share_schedule_units(*version, stages, now_ns);
	struct weir_share_course course;

	weir_share_plan(share, now_ns, &course);
	/* The copy that nobody reads now is overwritten after the word that points to the other is seen. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	stages[(*version + 1) & 1] = (struct weir_share_stages){
		.units = {course.leased, course.ended, course.fallen_back},
		.until_ns = {course.ends_ns, course.rises_ns},
		.stops_ns = course.stops_ns,
	};
	__atomic_store_n(version, *version + 1, __ATOMIC_RELEASE);
	return before;
}
