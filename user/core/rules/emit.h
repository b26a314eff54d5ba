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

/* The whole rule set; without its `allow` and `deny` unless `with_lists`. */
void weir_ruleset_emit(const struct weir_ruleset *ruleset, enum weir_form form, bool with_lists, FILE *stream);

/* Parts of the rule set, each as lines of YAML without indentation. */
void weir_emit_settings(const struct weir_settings *settings, FILE *stream);
void weir_emit_resource(const struct weir_ruleset_resource *resource, FILE *stream);
void weir_emit_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule, FILE *stream);

/* Write the fields of a match into the map that is open. */
void weir_write_match(struct weir_writer *writer, const struct weir_match *match);

/* The output of weir_ruleset_emit as a string that the caller frees. NULL: out of memory. */
char *weir_ruleset_text(const struct weir_ruleset *ruleset, bool with_lists);

#endif
