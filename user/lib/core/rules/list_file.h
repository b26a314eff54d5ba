/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A line of a file of addresses, as lists and feeds have them: an address, a prefix or a range "a-b", with a comment
 * after '#' or ';'; "prefix,label[,weight]" (RFC 4180); an object in JSON with `cidr`, `prefix` or `network`; or a
 * line of a registry, with bars, or of DShield, with tabs. Pure.
 */
#ifndef WEIR_RULES_LIST_FILE_H
#define WEIR_RULES_LIST_FILE_H

#include "rules/scalars.h"

struct weir_list_entry {
	struct weir_prefix prefixes[WEIR_RANGE_PREFIXES_MAX];
	size_t count;	    /* one, or more for a range */
	bool had_host_bits; /* which were cleared */
	/* Empty: none. One byte more than a label has: what is longer is cut, and found to be too long by sets. */
	char label[WEIR_LABEL_BYTES + 1];
	char weight[16]; /* as written; empty: none */
};

enum weir_list_line {
	WEIR_LIST_NONE, /* empty, a comment, a head line (`is_first`), or a feed's "type": "metadata" */
	WEIR_LIST_READ,
	WEIR_LIST_WRONG,
};

/* Parse a line, which is cut into pieces in place. is_first: nothing but comments came before. */
enum weir_list_line weir_list_entry_parse(char *line, bool is_first, struct weir_list_entry *ret_entry,
					  struct weir_refusal *reterr_refusal);

/* Is it in one of the forms that programs write (JSON, CSV, a range), rather than a word and a comment? */
bool weir_list_line_is_of_feed(const char *line);

#endif
