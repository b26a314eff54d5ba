/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A run against an earlier one, as report_write_json() has written them: what each row was, and is. A row is worse when
 * what is judged is more than 5 % further from what it must be: a larger ratio where it must be at most something, a
 * smaller one where it must be at least something; of what must lie between two, or be exact, when it now misses.
 * Times, as of S9, are compared only when both machines are of one kind. Pure: reads no file.
 */
#ifndef WEIR_BENCH_COMPARE_H
#define WEIR_BENCH_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

struct json_t;

#define COMPARE_WORSE 0.05

/* Prints the table, and says if the kinds of machine differ. Returns how many rows are worse; -EINVAL: it is no run. */
int compare_runs(struct json_t *old_run, struct json_t *new_run, FILE *stream);

/* Whether figures of these machines (the objects "machine" of two runs) can be expected to be alike. */
bool compare_is_same_kind(struct json_t *old_machine, struct json_t *new_machine);

#endif
