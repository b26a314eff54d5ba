/* SPDX-License-Identifier: GPL-2.0-only */
/* What is asked of weir block and weir allow. */
#ifndef WEIR_CMD_BLOCK_REQUEST_H
#define WEIR_CMD_BLOCK_REQUEST_H

#include "cmd.h"
#include "options.h"
#include "orders/orders.h"

#define INPUT_BYTES_MAX (64ull << 20) /* a million long lines. Chosen, not derived */
#define MISTAKES_MAX 20		      /* that are reported */
#define STANDARD_INPUT "standard input"
#define LINE_FORM "write a source, optionally a time and a comment: 192.0.2.7 10m # scans"

struct request {
	const struct weir_options *options;
	const char *input; /* name of what lines are read from */
	struct weir_timed_order *orders;
	size_t count;
	uint64_t lasts_ns;		   /* of --for; 0: it was not given, or orders end */
	size_t mistakes;		   /* in arguments and lines */
	size_t bad_lines;		   /* of these, in lines */
	bool has_lines;			   /* that name sources, still or no longer in force */
	size_t left_alone;		   /* orders that leave_out() took out */
	struct weir_order_changes changes; /* of --sync */
	struct weir_diag *diag;
};

/* ---- block_request.c ---- */

void weir_block_free_request(struct request *request);
int weir_block_read_sources(struct request *request);
int weir_block_check_options(const struct weir_command *command, struct request *request);

#endif
