/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A copy of an attached program for the harness: the same instructions, configuration and rules, but a virtual clock
 * and tables of its own. The copy shares the maps that the program only reads. The maps that it writes begin empty, and
 * the caller fills them. So a caller can find out what the program would do by running the program itself, without
 * changing anything that is attached.
 */
#ifndef WEIR_PROGRAM_COPY_H
#define WEIR_PROGRAM_COPY_H

#include "program/object.h"

/*
 * In the copy each table of rows has one chunk, whatever its size in the original: the lowest bits of a set's number
 * are its index in that chunk. Shared sets have the same numbers in both. For each flow the program looks at the rows
 * of all CPUs.
 *
 * The program compares only the match fields in `fields`: an unknown field of a packet does not distinguish resources.
 * *ret_fields gets the fields that the original compares.
 *
 * -EPROTO if the attached program belongs to another version or another build.
 */
int weir_object_copy(__u32 program_id, __u32 fields, struct weir_object **ret_copy, __u32 *ret_fields,
		     struct weir_diag *diag);

/* The tables and configuration of an object for the harness. The tables may be written; the program sees the change
 * with the next packet.
 */
struct weir_generation *weir_object_generation(const struct weir_object *object);
const struct weir_config *weir_object_config(const struct weir_object *object);

#endif
