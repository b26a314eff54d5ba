/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rule as it is shown, field by field: in a rule file, in the document of `weir check`, and of a rule that is loaded.
 * What a field says is in one place for all of them; a document is the fields that it has, in its order.
 */
#ifndef WEIR_RULES_SHOWN_RULE_H
#define WEIR_RULES_SHOWN_RULE_H

#include "rules/ruleset.h"
#include "rules/writer.h"

/* Borrows all that it points to. */
struct weir_shown_rule {
	struct weir_ruleset_rule rule;
	const char *resource, *ref_resource; /* NULL: it has none */
	uint64_t wait_ms;		     /* the longest, of a kind that delays or is occupied */
	uint64_t bucket_micro;		     /* what a bucket of tokens holds; for JSON */
	const char *storage;		     /* where its state is; for `weir check` */
};

/* A rule as it was read. wait_ms is what the file says; bucket_micro and storage are the caller's to fill in. */
struct weir_shown_rule weir_shown_rule_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* One that is loaded, with all that is known of it: of overrides and of its key that is no more than their number. */
struct weir_shown_rule weir_shown_rule_of_info(const struct weir_rule_info *info);

enum weir_rule_document {
	WEIR_RULE_FILE,	   /* what is so by default is left out */
	WEIR_RULE_CHECKED, /* what the rule uses, and nothing else */
	WEIR_RULE_LOADED,  /* likewise, with its resource, without overrides and warm-up */
};

/* Into the map that is open. */
void weir_write_rule(struct weir_writer *writer, const struct weir_shown_rule *shown, enum weir_rule_document document);

/* A flow key as words of a rule file. */
void weir_write_key(struct weir_writer *writer, const char *field, const struct weir_flow *flow);

#endif
