/* SPDX-License-Identifier: GPL-2.0-only */
/* The course of a share as it stands in a map (tables/share_schedule.h): read whole, and put in force. */
#ifndef WEIR_STORE_COURSE_H
#define WEIR_STORE_COURSE_H

#include "shares/share.h"
#include "weir_abi.h"

/* All that the copy in force says. */
void weir_course_read(uint64_t version, const struct weir_share_stages stages[2], struct weir_share_course *ret_course);

/* Put the share's course in force. Returns what was until now. */
uint64_t weir_course_push(__u64 *version, struct weir_share_stages stages[2], const struct weir_share *share,
			  uint64_t now_ns);

#endif
