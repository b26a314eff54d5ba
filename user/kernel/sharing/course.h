/* SPDX-License-Identifier: GPL-2.0-only */
/* The course of a share, as it stands in a map for the program: two copies, and a word that names the one in force. */
#ifndef WEIR_SHARING_COURSE_H
#define WEIR_SHARING_COURSE_H

#include "cluster/share.h"
#include "weir_abi.h"

/* What the copy in force says: all of it, and units per interval at a time. */
void weir_course_read(uint64_t version, const struct weir_share_stages stages[2], struct weir_share_course *ret_course);
uint64_t weir_course_units(uint64_t version, const struct weir_share_stages stages[2], uint64_t now_ns);

/* Put the share's course in force. Returns what was until now. */
uint64_t weir_course_push(__u64 *version, struct weir_share_stages stages[2], const struct weir_share *share,
			  uint64_t now_ns);

#endif
