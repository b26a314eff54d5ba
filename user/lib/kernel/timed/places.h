/* SPDX-License-Identifier: GPL-2.0-only */
/* For files of this room alone: what is in an entry, and whose place it takes. */
#ifndef WEIR_TIMED_PLACES_H
#define WEIR_TIMED_PLACES_H

#include "timed/timed.h"

__u64 *weir_timed_time_of(struct weir_timed *timed, bool denies);

/* The texts of an entry. */
struct weir_timed_texts {
	struct weir_timed_order denying; /* only `reason` and `by` */
	char allowed_by[WEIR_BY_BYTES];	 /* empty: WEIR_BY_HAND */
};

struct weir_timed_texts weir_timed_read_texts(const struct weir_timed *timed);
void weir_timed_write_texts(const struct weir_timed_texts *texts, struct weir_timed *timed);

/* The places for addresses, divided between programs. */
struct weir_timed_places {
	const struct weir_instance_info *info;
	struct weir_timed_share shares[WEIR_TIMED_PARTS_MAX + 1];
	uint64_t now_ns;
};

void weir_timed_divide(const struct weir_instance_info *info, uint64_t now_ns, struct weir_timed_places *ret_places);
/* By place in shares[]. */
size_t weir_timed_find_share(const struct weir_timed_places *places, const char *by);
size_t weir_timed_share_of(const struct weir_timed_places *places, const struct weir_timed *timed);
/* The program that an entry's place is counted for. */
void weir_timed_find_owner(const struct weir_timed *timed, uint64_t now_ns, char ret_by[WEIR_BY_BYTES]);

int weir_timed_expect_room(const struct weir_instance *instance, struct weir_diag *diag);

#endif
