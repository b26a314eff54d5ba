/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the BPF program and userspace: every struct that is in a map, and the numbers that both sides
 * must agree on. Userspace writes configuration; the kernel writes counters and windows. No word is written by both
 * while it is in use. (A load clears the slots that it assigns, which no rule has yet.)
 *
 * There are two kinds of maps. Those of one *generation* (rules, resources, thresholds, vectors, classes, prefix tries,
 * interfaces) are recreated by every load. They never change while a program reads them, except single threshold words.
 * Those of the *instance* (flow tables, counters, descriptions) live from attach to detach. A rule finds its part of
 * them by its *slot*, a number that it keeps as long as it is unchanged.
 *
 *	weir_generation.h	what a load is made of
 *	weir_state.h		the instance: flows
 *	weir_connections.h	the instance: connections
 *	weir_breakers.h		the instance: circuit breakers
 *	weir_counters.h		the instance: verdicts and counters
 *	weir_events.h		the instance: events, and the journal
 *	weir_description.h	the instance: what runs, for commands
 *	weir_tables.def		the instance: the versions of all these tables
 *	weir_kinds.def		the kinds of a limit
 *	weir_harness.h		replay and tests
 *	weir_sizes.h		how large things may be
 *
 * weir_lists.h and weir_prefixes.h lay out the generation's lists and prefixes, with the step that searches them. All
 * integers are in host byte order except addresses and where a type says __be.
 */
#ifndef WEIR_ABI_H
#define WEIR_ABI_H

#include "weir_breakers.h"
#include "weir_connections.h"
#include "weir_counters.h"
#include "weir_description.h"
#include "weir_events.h"
#include "weir_generation.h"
#include "weir_harness.h"
#include "weir_sizes.h"
#include "weir_state.h"
#include "weir_timed.h"

/* One more with every change of struct weir_instance_info. All other tables that survive a reload have versions of
 * their own (weir_tables.def).
 */
#define WEIR_ABI_VERSION 27u
#define WEIR_ABI_MAGIC 0x72696577u /* "weir", little endian */

#endif
