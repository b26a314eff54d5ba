/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lets a host leave properly if there is no controller any more to do so: the command that detaches informs the
 * ledgers, in the name of the process that they know.
 */
#ifndef WEIR_STORE_FAREWELL_H
#define WEIR_STORE_FAREWELL_H

#include "instance/instance.h"

/* Prepare the message while the instance still exists. NULL: there is nothing to say, or no memory. */
void *weir_farewell_prepare(const struct weir_instance *instance);

/* The program no longer limits anything: inform the ledgers, for half a second at most. */
void weir_farewell_say(const void *farewell);
void weir_farewell_free(void *farewell);

#endif
