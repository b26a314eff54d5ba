/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A copy of an attached program for the harness: the same instructions, configuration and rules, a virtual clock, and
 * tables of its own. What the program only reads it shares with the attached one; what it writes begins empty, and is
 * the caller's to fill in. So whoever asks what the program would do asks the program, and nothing that is attached
 * changes.
 */
#ifndef WEIR_PROGRAM_COPY_H
#define WEIR_PROGRAM_COPY_H

#include "program/object.h"

/*
 * Tables of rows have one chunk each in the copy, whatever their size in the original: of a set's number the lowest
 * bits are its index there. Shared sets have the same numbers in both. All CPUs' rows are asked about each flow.
 *
 * Only the match fields in `fields` are asked about: what is not known of a packet distinguishes no resources.
 * *ret_fields is what the original asks about.
 *
 * -EPROTO when the attached program is another version's, or another build's.
 */
int weir_object_copy(__u32 program_id, __u32 fields, struct weir_object **ret_copy, __u32 *ret_fields,
		     struct weir_diag *diag);

/* Tables and configuration of an object for the harness. The tables can be written: the program sees it with the next
 * packet.
 */
struct weir_generation *weir_object_generation(const struct weir_object *object);
const struct weir_config *weir_object_config(const struct weir_object *object);

#endif
