/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reverse of parsing: from struct weir_ruleset to a rule file that reads as the same rule set. The file is
 * canonical: a single file, in the order in which rules are evaluated, with all names and without default values,
 * whatever files and Sentinel lists the rules came from. So two rule sets mean the same if their texts are the same.
 */
#ifndef WEIR_RULES_EMIT_H
#define WEIR_RULES_EMIT_H

#include <stdbool.h>
#include <stdio.h>

#include "rules/ruleset.h"
#include "rules/writer.h"

/* The whole rule set; without its `allow` and `deny`, and the prefixes of sets, unless `with_lists`. */
void weir_ruleset_emit(const struct weir_ruleset *ruleset, enum weir_form form, bool with_lists, FILE *stream);

/* A part of the rule set, as lines of YAML without indentation. */
enum weir_part { WEIR_PART_SETTINGS, WEIR_PART_RESOURCE, WEIR_PART_RULE };
void weir_emit_part(const struct weir_ruleset *ruleset, enum weir_part part, size_t place, FILE *stream);

/* Write the fields of a match into the map that is open. */
void weir_write_match(struct weir_writer *writer, const struct weir_match *match);

/* The output of weir_ruleset_emit as a string that the caller frees. NULL: out of memory. */
char *weir_ruleset_text(const struct weir_ruleset *ruleset, bool with_lists);

/* ---- a rule as it is shown ----
 *
 * Field by field: in a rule file, in the document of `weir check`, and when it is loaded. The
 * text of each field is produced in one place for all three; a document type determines which fields it has, and in
 * which order.
 */

/* Borrows everything it points to. */
struct weir_shown_rule {
	struct weir_ruleset_rule rule;
	const char *resource, *ref_resource; /* NULL: there is none */
	uint64_t wait_ms;		     /* the longest wait, for a kind that delays or is occupied */
	uint64_t bucket_micro;		     /* the capacity of a token bucket; for JSON */
	const char *storage;		     /* where its state is kept; for `weir check` */
};

/* Show a rule as it was read. wait_ms is the value in the file; the caller fills in bucket_micro and storage. */
struct weir_shown_rule weir_shown_rule_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* Show a loaded rule, with everything that its description says: only the number of overrides and key fields, for
 * example.
 */
struct weir_shown_rule weir_shown_rule_of_info(const struct weir_rule_info *info);

enum weir_rule_document {
	WEIR_RULE_FILE,	   /* default values are left out */
	WEIR_RULE_CHECKED, /* only the fields that the rule uses */
	WEIR_RULE_LOADED,  /* likewise, with the resource, but without overrides and warm-up */
};

/* Write the rule into the map that is open. */
void weir_write_rule(struct weir_writer *writer, const struct weir_shown_rule *shown, enum weir_rule_document document);

/* Write a flow key in the words of a rule file. */
void weir_write_key(struct weir_writer *writer, const char *field, const struct weir_flow *flow);

#endif
