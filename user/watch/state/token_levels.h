/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Token buckets, as they are now: which of them lack tokens, and how many. For flows.c, which knows whose they are.
 * Read while packets go on.
 */
#ifndef WEIR_STATE_TOKEN_LEVELS_H
#define WEIR_STATE_TOKEN_LEVELS_H

#include "instance/instance.h"

struct weir_tokens_use {
	uint32_t slot;	   /* of the rule */
	uint32_t tag, set; /* of the flow; 0 of a whole resource */
	uint64_t lacks;	   /* tokens of being full, a part of one as one */
	uint64_t burst;	   /* tokens of a full bucket */
};

/* Some rule has tokens. */
bool weir_tokens_are_used(const struct weir_instance *instance);

/* Show each bucket that is not full to `add`; those under an override have a burst of their own. Returns 0 or -errno.
 */
typedef void weir_tokens_add(const struct weir_tokens_use *use, void *data);
int weir_tokens_scan(const struct weir_instance *instance, weir_tokens_add *add, void *data);

#endif
