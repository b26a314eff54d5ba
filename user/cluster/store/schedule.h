/* SPDX-License-Identifier: GPL-2.0-only */
/* The schedule of a share as stored in a map (tables/entry_state.h): reading the whole schedule, and putting one in
 * force.
 */
#ifndef WEIR_STORE_SCHEDULE_H
#define WEIR_STORE_SCHEDULE_H

#include "shares/share.h"
#include "weir_abi.h"

/* Everything in the copy that is in force. */
void weir_share_schedule_read(uint64_t version, const struct weir_share_stages stages[2],
			      struct weir_share_schedule *ret_schedule);

/* Put the share's schedule in force. Returns the units that were in force until now. */
uint64_t weir_share_schedule_push(__u64 *version, struct weir_share_stages stages[2], const struct weir_share *share,
				  uint64_t now_ns);

#endif
