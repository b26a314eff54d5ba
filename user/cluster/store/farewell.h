/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets a host leave properly if there is no controller any more to do so: the command that detaches informs the
 * ledgers, in the name of the process that they know.
 */
#ifndef WEIR_STORE_FAREWELL_H
#define WEIR_STORE_FAREWELL_H

#include "instance/instance.h"

struct weir_farewell;

/* Prepare the message while the instance still exists. NULL: there is nothing to say, or no memory. */
struct weir_farewell *weir_farewell_prepare(const struct weir_instance *instance);

/* The program no longer limits anything: inform the ledgers, for half a second at most. */
void weir_farewell_say(const struct weir_farewell *farewell);
void weir_farewell_free(struct weir_farewell *farewell);

static inline void weir_farewell_freep(struct weir_farewell **farewell)
{
	weir_farewell_free(*farewell);
}

#endif
