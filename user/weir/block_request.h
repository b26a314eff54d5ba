/* SPDX-License-Identifier: GPL-2.0-only */
/* The request of weir block and weir allow. */
#ifndef WEIR_CMD_BLOCK_REQUEST_H
#define WEIR_CMD_BLOCK_REQUEST_H

#include "cli/command.h"
#include "cli/options.h"
#include "orders/orders.h"

#define INPUT_BYTES_MAX (64ull << 20) /* a million long lines. Chosen, not derived */
#define MISTAKES_MAX 20		      /* most mistakes that are reported */
#define STANDARD_INPUT "standard input"
#define LINE_FORM "write a source, optionally a time and a comment: 192.0.2.7 10m # scans"

struct request {
	const struct weir_options *options;
	const char *input; /* name of the input that lines are read from */
	struct weir_timed_order *orders;
	size_t count;
	uint64_t lasts_ns;		   /* of --for; 0: not given, or orders are ended */
	size_t mistakes;		   /* in arguments and lines together */
	size_t bad_lines;		   /* the part of these that is in lines */
	bool has_lines;			   /* lines that name sources, whether in force or expired */
	size_t left_alone;		   /* orders that leave_out() removed */
	struct weir_order_changes changes; /* changes that --sync makes */
	struct weir_diag *diag;
};

/* ---- block_request.c ---- */

void weir_block_free_request(struct request *request);
int weir_block_read_sources(struct request *request);
int weir_block_check_options(const struct weir_command *command, struct request *request);

#endif
