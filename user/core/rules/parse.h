/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the rule-file reader share: files.c (which files), parse.c (merging, order), fields.c (fields,
 * lists, words), field_names.c, settings.c, match.c (match and flow key), listed.c (allow and deny), rule.c with
 * rule_checks.c, overrides.c and cluster.c, circuit_breakers.c, and sentinel.c (lists of Sentinel's).
 *
 * Nothing here stops at the first mistake: a function that meets one complains, leaves the target as it
 * is and continues, so that all mistakes of all files are reported in one go. Whether there were any is asked
 * once, at the end.
 */
#ifndef WEIR_RULES_PARSE_H
#define WEIR_RULES_PARSE_H

#include <stdbool.h>

#include "rules/comments.h"
#include "rules/ruleset.h"
#include "rules/scalars.h"
#include "rules/yaml.h"

/* A name and the place of its bearer; sorted by name, then by place. */
struct weir_named {
	const char *name;
	size_t index;
};

struct weir_reader {
	struct weir_diag *diag;
	struct weir_ruleset *ruleset;
	struct weir_document **documents; /* one a file; NULL: it could not be read */
	size_t document_count;
	struct weir_named *resource_names;	 /* sorted, once all resources are read */
	const struct weir_node **resource_nodes; /* what to point at, by resource */
	const struct weir_node **rule_nodes;	 /* ... by rule */
	size_t *resource_rules;			 /* how many rules each resource has had so far */
	struct weir_node **timed;		 /* values of fields whose names leave out the unit of time */
	size_t timed_count;
	const char *unknown[32]; /* names that no Sentinel knows, in the list that is read: the first so many */
	size_t unknown_count;
	bool takes_quoted_numbers; /* this list is Sentinel Java's, whose parser does */
	bool is_incomplete;	   /* a file could not be read: what others name may be in it */
	bool is_out_of_memory;
	bool has_too_many_listed;
	uint32_t meant;	 /* by weir_read_fields: the fields that unknown ones stood for, a bit each by their place */
	size_t mistakes; /* reported or not: the same twice, or one too many */
	size_t complaints, warnings;
};

/* ---- complaints: a mistake or a warning at a node. `hint` may be NULL. ---- */

void weir_complain(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void weir_warn(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A mistake in a text that is no YAML: `line` is the one that `place` names. */
void weir_complain_of_line(struct weir_reader *reader, const struct weir_place *place, const char *line,
			   const char *hint, const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- maps ---- */

/*
 * Sort the fields of a map: values[i] becomes the value of the field fields[i], or NULL. A field whose name ends in a
 * unit of time (InMs, Ms, Sec) may be written without it; its value is a duration then (quantity.h). Complains of
 * unknown fields (and says which was meant), of fields given twice or without a value, and when the
 * node is no map. `what` is what the map describes: "rule". With `may_be_empty` a field without
 * a value is as good as absent (a heading under which everything is commented out). weir_reader.meant says which of the
 * fields that are absent were meant by unknown ones: these mistakes have been reported.
 */
void weir_read_fields(struct weir_reader *reader, const struct weir_node *node, const char *what,
		      const char *const *fields, size_t count, bool may_be_empty, const struct weir_node **values);

/* Complains of a field that is none of `fields`, and says which may have been meant. */
void weir_complain_unknown_field(struct weir_reader *reader, const struct weir_node *key, const char *what,
				 const char *const *fields, size_t count);

/* Complains of a node that is no map; `fields` are some that it could have. */
void weir_complain_no_map(struct weir_reader *reader, const struct weir_node *node, const char *what,
			  const char *const *fields, size_t count);

/* Is `word` one of these, to the letter? */
bool weir_is_one_of(const char *word, const char *const *names, size_t count);

/* ---- words: each returns false, having complained, when the node is not what it must be ---- */

bool weir_read_word(struct weir_reader *reader, const struct weir_node *node, const char *field, const char **ret_word);
/* Plain digits; where the field's name left out its unit of time, a duration in that unit. */
bool weir_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
		      uint64_t high, uint64_t *ret_number);
/* The same where what to write is not all that is read: "write 10 to 20, or 0 for the default". */
bool weir_read_number_of(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
			 uint64_t high, const char *advice, uint64_t *ret_number);
/* A quantity, of bytes with `counts_bytes`: "20k", "256Ki", "8GiB". `advice` may be NULL. */
bool weir_read_count(struct weir_reader *reader, const struct weir_node *node, const char *field, bool counts_bytes,
		     uint64_t low, uint64_t high, const char *advice, uint64_t *ret_number);
/* What the value of a field is called in messages: the field's name as it was written. */
const char *weir_written_name(const struct weir_node *node, const char *field);
/* Do two values of a field come to the same, however they are written? */
bool weir_is_same_value(const struct weir_node *left, const struct weir_node *right, const char *field);
/* For readers to whom a number in quotes is a text; with takes_quoted_numbers it is warned of. True for all else. */
bool weir_check_unquoted(struct weir_reader *reader, const struct weir_node *node);
/* One of `names`; with `has_numbers` also its index in digits, as Sentinel writes enums. */
bool weir_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      const char *const *names, size_t count, bool has_numbers, unsigned int *ret_choice);

/* ---- lists ---- */

/* Reads one word into a zeroed item; as in scalars.h, with `context` handed through. */
typedef int (*weir_item_parser)(const char *text, void *item, const void *context, struct weir_refusal *reterr_refusal);

/* A word, or a list of words that is not empty: the items are appended to the array at *items. */
void weir_read_items(struct weir_reader *reader, const struct weir_node *node, const char *field,
		     weir_item_parser parse, const void *context, size_t item_bytes, void **items, size_t *count);

/* ---- the parts of a file ---- */

/* In the order of docs/rules.md. */
enum weir_setting {
	SETTING_FLOWS_PER_CPU,
	SETTING_MALFORMED,
	SETTING_UNSUPPORTED,
	SETTING_NON_IP,
	SETTING_NON_IP_EXCEPT,
	SETTING_UNMATCHED,
	SETTING_MODE,
	SETTING_MEMORY,
	SETTING_THROTTLING,
	SETTING_CONTROLLER_TIMEOUT,
	SETTING_OCCUPY_TIMEOUT,
	SETTING_TIMED_ENTRIES,
	SETTING_CLUSTER,
	SETTING_CONNECTIONS,
	SETTING_CONNECTION_FLOWS,
	SETTING_CONNECTION_TIMEOUTS, /* as many as WEIR_CONNECTION_CLASSES, in their order */
	WEIR_SETTING_COUNT = SETTING_CONNECTION_TIMEOUTS + WEIR_CONNECTION_CLASSES
};
extern const char *const weir_setting_names[WEIR_SETTING_COUNT];

/* Where no file says otherwise. */
extern const struct weir_settings weir_default_settings;

/* Merge one file's settings; first[] remembers which node set each field, over all files. */
void weir_read_settings(struct weir_reader *reader, const struct weir_node *node,
			const struct weir_node *first[WEIR_SETTING_COUNT]);

/* What is left to say once all settings and rules are read: defaults that go by others, and warnings. */
void weir_finish_settings(struct weir_reader *reader, const struct weir_node *const first[WEIR_SETTING_COUNT]);

/* settings.cluster of one file (NULL: it has none); and once all are read: rules that hosts share need it. */
void weir_read_cluster_settings(struct weir_reader *reader, const struct weir_node *node);
void weir_finish_cluster(struct weir_reader *reader, const struct weir_node *node);

/* The fields of settings.cluster, by enum weir_cluster_field. */
extern const char *const weir_cluster_field_names[WEIR_CLUSTER_FIELDS];

extern const char *const weir_match_field_names[];
extern const size_t weir_match_field_count;
void weir_read_match(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match);
void weir_read_flow(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		    struct weir_flow *flow);
/* The key that a rule has of its own: as a resource's `flow`, or `all`. */
void weir_read_per(struct weir_reader *reader, const struct weir_node *node, const struct weir_match *match,
		   struct weir_flow *flow);

/* Append a rule to the rule set, named or with the default name. */
void weir_read_rule(struct weir_reader *reader, const struct weir_node *node);

/* A system rule while it is read: its values, NULL where the file has none. Whose fields they are, and how these are
 * spelt, is the caller's to know.
 */
struct weir_system_draft {
	const struct weir_node *node; /* the rule */
	const struct weir_node *name, *mode, *metric, *trigger, *strategy;
	enum weir_system_metric is_metric; /* other than NONE: in place of a word at `metric` */
};

/* Append a system rule. They come before all other rules once weir_put_system_rules_first has been called. */
void weir_read_system_rule(struct weir_reader *reader, const struct weir_system_draft *draft);
void weir_put_system_rules_first(struct weir_reader *reader);

/* Complains of a document that has lists of Sentinel's rules further down; false: it is none. */
bool weir_complain_of_envelope(struct weir_reader *reader, const struct weir_document *document);

/* The list under one of WEIR_SENTINEL_NAMES, or, with `name` NULL, one that is a whole file. */
void weir_read_sentinel_list(struct weir_reader *reader, const struct weir_node *list, const char *name);

/* A circuit breaker: a rule, which stands behind all others, so these come last. */
void weir_read_breaker(struct weir_reader *reader, const struct weir_node *node);

/* One file's `allow` or `deny`: appended as they come, and put in order once all files are read. */
void weir_read_listed(struct weir_reader *reader, const struct weir_node *node, bool denies);
/* One prefix more, of a list that stands at `at`; there may be too many. */
void weir_add_listed(struct weir_reader *reader, const struct weir_node *at, const struct weir_prefix *prefix,
		     bool denies);
void weir_sort_listed(struct weir_reader *reader);

/* ---- complaints.c ---- */

const char *weir_kind_name(const struct weir_node *node);

#endif
