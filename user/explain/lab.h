/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rule set in the lab, in force nowhere: compiled for this host, and loaded with the smallest tables there are.
 */
#ifndef WEIR_EXPLAIN_LAB_H
#define WEIR_EXPLAIN_LAB_H

#include <sched.h>

#include "compile/compile.h"
#include "program/object.h"

struct weir_lab_program {
	struct weir_image *image;
	struct weir_object *object;
	uint32_t asked_fields; /* enum weir_match_field, or-ed: what the resources ask about */
	uint64_t now_ns;       /* its clock begins there */
	cpu_set_t before;
};

/* Only the match fields in `fields` are asked about (program/copy.h). Close what was opened; all zero is fine. */
int weir_lab_open(const struct weir_ruleset *ruleset, uint32_t fields, struct weir_lab_program *ret_lab,
		  struct weir_diag *diag);
void weir_lab_close(struct weir_lab_program *lab);

/* Stay on this CPU, whose rows the program fills; and leave it again. Returns 0 or -errno. */
int weir_lab_stay(struct weir_lab_program *lab);
void weir_lab_leave(const struct weir_lab_program *lab);

#endif
