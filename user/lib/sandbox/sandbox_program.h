/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program of a sandbox for rules that are not in force anywhere: compiled for this host, and loaded with the
 * smallest possible tables.
 */
#ifndef WEIR_SANDBOX_SANDBOX_PROGRAM_H
#define WEIR_SANDBOX_SANDBOX_PROGRAM_H

#include <sched.h>

#include "compile/compile.h"
#include "program/object.h"

struct weir_sandbox_program {
	struct weir_image *image;
	struct weir_object *object;
	uint32_t asked_fields; /* enum weir_match_field, or-ed: the fields that the resources compare */
	uint64_t now_ns;       /* its clock starts at this time */
	cpu_set_t before;
};

/* Only the match fields in `fields` are compared (program/copy.h). Close what was opened; a struct that is all zero is
 * fine.
 */
int weir_sandbox_program_open(const struct weir_ruleset *ruleset, uint32_t fields,
			      struct weir_sandbox_program *ret_program, struct weir_diag *diag);
void weir_sandbox_program_close(struct weir_sandbox_program *program);

/* Stay on this CPU, whose rows the program fills, and undo that. Returns 0 or -errno. */
int weir_sandbox_program_stay(struct weir_sandbox_program *program);
void weir_sandbox_program_leave(const struct weir_sandbox_program *program);

#endif
