/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way back: from struct weir_ruleset to a rule file that reads as the same. It is canonical: one file, in the order
 * in which rules are evaluated, whatever files and lists of Sentinel's they came from, with all names, and without what
 * is so by default. So two rule sets mean the same when their texts are the same.
 */
#ifndef WEIR_RULES_EMIT_H
#define WEIR_RULES_EMIT_H

#include <stdbool.h>
#include <stdio.h>

#include "rules/ruleset.h"
#include "rules/writer.h"

/* The whole rule set; without its `allow` and `deny` unless `with_lists`. */
void weir_ruleset_emit(const struct weir_ruleset *ruleset, enum weir_form form, bool with_lists, FILE *stream);

/* Parts of it, each as lines of YAML with no indentation. */
void weir_emit_settings(const struct weir_settings *settings, FILE *stream);
void weir_emit_resource(const struct weir_ruleset_resource *resource, FILE *stream);
void weir_emit_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule, FILE *stream);

/* The fields of a match, into the map that is open. */
void weir_write_match(struct weir_writer *writer, const struct weir_match *match);

/* What weir_ruleset_emit writes into a stream of its own: the caller frees it. NULL: out of memory. */
char *weir_ruleset_text(const struct weir_ruleset *ruleset, bool with_lists);

#endif
