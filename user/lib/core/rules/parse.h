/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the parts of the rule-file reader: files.c (which files), parse.c (merging, order), fields.c
 * (fields, lists, words), field_rows.c, settings.c, match.c (match and flow key), listed.c (allow and deny), sets.c,
 * list_file.c (the files that both name), rule.c with rule_checks.c, overrides.c and cluster.c, circuit_breakers.c.
 * Lists of other programs have a reader outside of lib.
 *
 * No function stops at the first mistake: it complains, leaves the target unchanged and continues, so that all mistakes
 * of all files are reported in one run. Whether there were any is checked once, at the end.
 */
#ifndef WEIR_RULES_PARSE_H
#define WEIR_RULES_PARSE_H

#include <stdbool.h>

#include "rules/field_rows.h"
#include "rules/list_file.h"
#include "rules/ruleset.h"
#include "rules/scalars.h"
#include "rules/yaml.h"

/* A name and the position of the thing it names; sorted by name, then by position. */
struct weir_named {
	const char *name;
	size_t index;
};

struct weir_reader {
	struct weir_diag *diag;
	struct weir_ruleset *ruleset;
	struct weir_document **documents; /* one per file; NULL: it could not be read */
	size_t document_count;
	struct weir_named *resource_names;	 /* sorted, once all resources are read */
	const struct weir_node **resource_nodes; /* the node to point at, by resource */
	const struct weir_node **rule_nodes;	 /* ... by rule */
	const struct weir_node **except_nodes;	 /* the value of match.except, by resource; NULL: none */
	size_t *resource_rules;			 /* number of rules read so far, by resource */
	struct weir_node **timed;		 /* values of fields whose names were written without the time unit */
	size_t timed_count;
	const char *unknown[32]; /* names that neither Sentinel has, in the list being read: the first ones */
	size_t unknown_count;
	bool takes_quoted_numbers;	   /* the list being read is Sentinel Java's, whose parser accepts them */
	bool is_own;			   /* a text that weir wrote: weir_ruleset_parse_own() */
	struct weir_kept_content *content; /* ... and what is kept beside it; NULL: nothing */
	bool is_incomplete;		   /* a file could not be read: it may define names that others use */
	bool is_out_of_memory;
	bool has_too_many_listed;
	size_t set_entries; /* of all sets */
	bool has_too_many_entries;
	/* Set by weir_read_fields: a bit for each field, by its index, that an unknown field probably stands for. */
	uint32_t meant;
	size_t mistakes; /* including unreported ones: duplicates, and those beyond the maximum */
	size_t complaints, warnings;
};

/* ---- complaints: a mistake or a warning at a node. `hint` may be NULL. ---- */

void weir_complain(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void weir_warn(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A mistake in a text that is not YAML: `line` is the text of the line that `place` names. */
void weir_complain_of_line(struct weir_reader *reader, const struct weir_place *place, const char *line,
			   const char *hint, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- maps ---- */

/*
 * Sort the fields of a map: values[i] becomes the value of the field fields[i], or NULL. A field whose name ends in a
 * unit of time (InMs, Ms, Sec) may be written without the unit; its value is then a duration (quantity.h). Complains if
 * the node is not a map, about unknown fields (with a guess which was meant), and about fields given twice or without a
 * value. `what` names what the map describes: "rule". With `may_be_empty`, a field without a value counts as absent (a
 * heading whose content is all commented out). weir_reader.meant records which absent fields were probably meant by
 * unknown ones: those mistakes have been reported.
 */
void weir_read_fields(struct weir_reader *reader, const struct weir_node *node, const char *what,
		      const char *const *fields, size_t count, bool may_be_empty, const struct weir_node **values);

/* Complain about a field that is not one of `fields`, and suggest which may have been meant. */
void weir_complain_unknown_field(struct weir_reader *reader, const struct weir_node *key, const struct weir_node *value,
				 const char *what, const char *const *fields, size_t count);

/* Complain about a node that is not a map; `fields` are some of the fields it could have. */
void weir_complain_no_map(struct weir_reader *reader, const struct weir_node *node, const char *what,
			  const char *const *fields, size_t count);

/* Is `word` exactly one of these? */
bool weir_is_one_of(const char *word, const char *const *names, size_t count);

/* ---- words: each function returns false after a complaint if the node has the wrong form ---- */

bool weir_read_word(struct weir_reader *reader, const struct weir_node *node, const char *field, const char **ret_word);
/* Read plain digits; if the field's name was written without its time unit, a duration in that unit. */
bool weir_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
		      uint64_t high, uint64_t *ret_number);
/* The same, if the advice is more than the range: "write 10 to 20, or 0 for the default". */
bool weir_read_number_of(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
			 uint64_t high, const char *advice, uint64_t *ret_number);
/* Read a quantity: "20k"; with `counts_bytes` also "256Ki" or "8GiB". `advice` may be NULL. */
bool weir_read_count(struct weir_reader *reader, const struct weir_node *node, const char *field, bool counts_bytes,
		     uint64_t low, uint64_t high, const char *advice, uint64_t *ret_number);
/* The name by which messages call a field's value: the name as it was written. */
const char *weir_written_name(const struct weir_node *node, const char *field);
/* Do two values of a field mean the same, even if they are written differently? */
bool weir_is_same_value(const struct weir_node *left, const struct weir_node *right, const char *field);
/* For readers that take a quoted number as a text. With takes_quoted_numbers it only causes a warning. Returns true for
 * everything else.
 */
bool weir_check_unquoted(struct weir_reader *reader, const struct weir_node *node);
/* Read one of `names`; with `has_numbers` also its index in digits, as Sentinel writes enums. */
bool weir_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      const char *const *names, size_t count, bool has_numbers, unsigned int *ret_choice);

/* ---- lists ---- */

/* Reads one word into a zeroed item, like the functions of scalars.h; `context` is passed through. */
typedef int (*weir_item_parser)(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal);

/* Read a word, or a non-empty list of words, and append the items to the array at *items. */
void weir_read_items(struct weir_reader *reader, const struct weir_node *node, const char *field,
		     weir_item_parser parse, const void *context, size_t item_bytes, void **items, size_t *count);

/* ---- the parts of a file ---- */

/* The values for settings that no file gives. */
extern const struct weir_settings weir_default_settings;

/* Merge one file's settings. first[] records which node set each field, across all files. */
void weir_read_settings(struct weir_reader *reader, const struct weir_node *node,
			const struct weir_node *first[WEIR_SETTING_COUNT]);

/* Finish the settings once all settings and rules are read: defaults that depend on other settings, and warnings. */
void weir_finish_settings(struct weir_reader *reader, const struct weir_node *const first[WEIR_SETTING_COUNT]);

/* Read settings.cluster of one file (NULL: it has none). Once all files are read, rules shared by hosts require it. */
void weir_read_cluster_settings(struct weir_reader *reader, const struct weir_node *node);
void weir_finish_cluster(struct weir_reader *reader, const struct weir_node *node);

/* Read settings.answers of one file (NULL: it has none). Once all files are read, warn if it has no effect. */
void weir_read_answer_settings(struct weir_reader *reader, const struct weir_node *node);
void weir_finish_answers(struct weir_reader *reader, const struct weir_node *node);
/* The fields of settings.answers: its buckets (weir_state.h). */
extern const char *const weir_answer_field_names[WEIR_ANSWER_BUCKETS];
/* Check a rule's onBlock at this node (NULL: it has none) against its resource. */
void weir_check_on_block(struct weir_reader *reader, const struct weir_node *node, const struct weir_ruleset_rule *rule,
			 const struct weir_ruleset_resource *resource);

/* The fields of settings.cluster, by enum weir_cluster_field. */
extern const char *const weir_cluster_field_names[WEIR_CLUSTER_FIELDS];

extern const char *const weir_match_field_names[];
extern const size_t weir_match_field_count;
void weir_read_match(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match);
void weir_read_flow(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		    struct weir_flow *flow);
/* Look up what resources except, once all resources are read (except.c). */
void weir_read_excepts(struct weir_reader *reader);
/* Read the flow key of a rule's own: fields as in a resource's `flow`, or `all`. */
void weir_read_per(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		   struct weir_flow *flow);

/* Read fairBy: fields as in a resource's `flow`. */
void weir_read_fair_by(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		       struct weir_flow *flow);

/* Append a rule to the rule set, with its name or the default name. */
void weir_read_rule(struct weir_reader *reader, const struct weir_node *node);

/* System rules (weir_read_system_rule) come first once this has been called. */
void weir_put_system_rules_first(struct weir_reader *reader);

/* Read a circuit breaker. Its rule comes after all other rules, so breakers are read last. */
void weir_read_breaker(struct weir_reader *reader, const struct weir_node *node);

/* Read one file's `allow` or `deny`: prefixes are appended as they come, and sorted once all files are read. */
void weir_read_listed(struct weir_reader *reader, const struct weir_node *node, bool denies);
/* Add one prefix of a list that is at `at`. Complains if there are too many. */
void weir_add_listed(struct weir_reader *reader, const struct weir_node *at, const struct weir_prefix *prefix,
		     bool denies);
void weir_sort_listed(struct weir_reader *reader);

/* ---- list_file.c ---- */

/* Takes a line of a file of addresses. Returns false if no more are to be read. */
typedef bool (*weir_list_taker)(struct weir_reader *reader, void *data, const struct weir_list_entry *entry,
				const struct weir_place *place, const char *line);
/* Read the file of addresses that the word `name` at `node` names. The caller frees its absolute path; NULL: it could
 * not be read.
 */
char *weir_read_list_file(struct weir_reader *reader, const struct weir_node *node, const char *name,
			  weir_list_taker take, void *data);
/* The path of a file that is named at `node`: relative to the rule file, unless it is absolute. The caller frees it. */
char *weir_list_path(const struct weir_node *node, const char *name);

/* ---- sets.c ---- */

/* Read one file's `sets`. They are read before everything that may name them. */
void weir_read_sets(struct weir_reader *reader, const struct weir_node *node);

/* Check that a label has 1 to 64 bytes of UTF-8, and none of control characters. */
int weir_check_label(const char *text, struct weir_refusal *refusal);

/* Does the word begin with '@' or "!@"? */
bool weir_is_set_use(const char *text);
/* Is the name after the '@' that of a set? */
bool weir_names_set(const struct weir_ruleset *ruleset, const char *text);
/* Parse a word that begins with '@' or "!@". If the set may be in a file that could not be read, its index is SIZE_MAX;
 * the files are then refused for that.
 */
int weir_parse_set_use(const struct weir_reader *reader, const char *text, struct weir_set_use *ret_use,
		       struct weir_refusal *reterr_refusal);
/* The number of the label that is used, after a warning if no prefix has it (WEIR_NO_LABEL). */
uint32_t weir_find_used_label(struct weir_reader *reader, const struct weir_node *node, const struct weir_set_use *use);

/* ---- complaints.c ---- */

const char *weir_kind_name(const struct weir_node *node);

/* ---- circuit_breakers.c: for lists other than a rule file's own, too; the caller sorts the fields ---- */

/*
 * Append a breaker with these field values (NULL: absent), after all other rules. The values need not be in the file
 * literally (see weir_read_draft). With is_sentinel, strategy and threshold may be absent, which means 0, and fields
 * that the strategy does not use may have any value.
 */
void weir_read_breaker_of(struct weir_reader *reader, const struct weir_node *node,
			  const struct weir_node *const values[WEIR_BREAKER_FIELD_COUNT], bool is_sentinel);

/* ---- foreign lists ----
 *
 * Lists of rules that another program's users keep, read as they are. The reader of such lists stands outside of lib;
 * user/parts.c hands it down. Without one, a list is a mistake, like any other field that a rule file does not have.
 */

#define WEIR_FOREIGN_NAMES_MAX 16

struct weir_foreign_reader {
	/* The fields of a rule file that may hold such lists; NULL ends them. A list that is a whole file has no name.
	 */
	const char *const *names;
	/* Read such a list; `name` is NULL if it is a whole file. */
	void (*read_list)(struct weir_reader *reader, const struct weir_node *list, const char *name);
	/* Sort the fields of a map inside a rule of such a list (weir_draft.is_sentinel); what it does not know is no
	 * mistake.
	 */
	void (*read_item)(struct weir_reader *reader, const struct weir_node *map, const char *const *names,
			  size_t count, const struct weir_node **values);
	/* Complain about a document that has such lists, or rules, at another level. Returns false if it is not one. */
	bool (*complain_of_envelope)(struct weir_reader *reader, const struct weir_document *document);
};

/* Called once, before any rule file is read. */
void weir_use_foreign_reader(const struct weir_foreign_reader *reader);

/* Never NULL. */
const struct weir_foreign_reader *weir_foreign_reader(void);

#endif
