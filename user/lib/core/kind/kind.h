/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room kind: what distinguishes the kinds of limit, for all rooms that read, compile, load, watch or print rules. No
 * other code checks which kind a rule has: it asks the kind's entry in the table.
 *
 * A kind is a way to evaluate a rule: by a window, by TATs, by connections. Each has an entry (struct weir_kind) in its
 * own file in kinds/, and kinds/kinds.c has the table of all entries, by enum weir_kind_id. The entries depend on the
 * rooms that use them, so this header names types of those rooms without including them. docs/internals/extending.md
 * walks through adding a kind.
 */
#ifndef WEIR_KIND_H
#define WEIR_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir_abi.h"

/* rules/ */
struct weir_choices;
struct weir_draft;
struct weir_reader;
struct weir_ruleset_rule;
struct weir_settings;
/* compile/ */
struct weir_diag;
struct weir_image;
struct weir_previous;

/* NULL, 0 and false mean that the kind lacks the property, or that there is nothing to do. */
struct weir_kind {
	/* ---- rule files ---- */

	/* Do a rule's metricType, controlBehavior, relationStrategy and window select this kind? If several kinds say
	 * yes, the last one in the table wins; the first kind, a window, accepts every rule.
	 */
	bool (*is_chosen)(const struct weir_choices *choices);
	/* For a kind that has a metricType to itself: its name, and Sentinel-Go's number for it. */
	const char *metric_name, *metric_number;
	enum weir_metric metric;
	/* Check the choices. Complains about mistakes, and replaces them so that reading can continue. */
	void (*check_choices)(struct weir_reader *reader, struct weir_draft *draft);
	/* A bit for each enum weir_rule_field: the fields that this kind uses, and those that only this kind uses. */
	uint32_t fields, own_fields;
	/* "'sampleCount' has no effect: it is for ...". own_condition is used when a rule of another kind has one of
	 * this kind's own fields; others_condition when a rule of this kind has a field that it does not use (NULL: the
	 * field's own text).
	 */
	const char *own_condition, *others_condition;
	const char *threshold_hint; /* how to write the threshold, if it is missing */
	/* Reject a threshold that is valid as a number but not for this kind. Returns whether it complained. */
	bool (*check_threshold)(struct weir_reader *reader, const struct weir_draft *draft);
	const char *below_one, *below_one_hint; /* what happens with a threshold below 1 */
	void (*check)(struct weir_reader *reader, const struct weir_draft *draft); /* any other mistakes */
	void (*warn)(struct weir_reader *reader, const struct weir_draft *draft); /* values that are surely not meant */
	/* Warn if the settings leave too little room for the rule at `place`. Such a kind needs the settings of
	 * connections.
	 */
	void (*warn_of_room)(struct weir_reader *reader, size_t place);

	/* ---- properties of rules of this kind ---- */

	bool keeps_window;	/* it keeps a window, in rows of its own at its slot */
	bool reads_shadow;	/* the window that it evaluates is a shadow window */
	bool has_emission;	/* each unit takes up time of its flow: struct weir_emission */
	bool needs_allowed;	/* the program looks up the threshold in force, even if the threshold is constant */
	bool has_tokens;	/* it takes tokens from buckets: struct weir_tokens */
	uint32_t packet_fields; /* packet fields that it reads, beside match and key: enum weir_match_field, or-ed */

	/* ---- compiling ---- */

	/* Fill in what one rule needs in the program's configuration, beside weir_config.kinds. */
	void (*configure)(const struct weir_ruleset_rule *rule, struct weir_config *config);
	/* The longest wait in ns, for a kind that may ask packets to wait. */
	uint64_t (*longest_wait_ns)(const struct weir_ruleset_rule *rule, const struct weir_settings *settings);
	/* Can this kind distinguish times that are span_ns apart? Returns -EINVAL, with the reason in *diag, if not. */
	int (*check_span)(uint64_t span_ns, struct weir_diag *diag);
	/* Choose the tables that a load needs, and their sizes. Called once per load, even if no rule is of this kind.
	 */
	void (*size_tables)(const struct weir_settings *settings, const struct weir_previous *previous,
			    struct weir_image *image, struct weir_diag *diag);

	/* ---- across reloads ---- */

	/* How long after a flow's latest packet the shared table's state still matters to this rule, in ns. */
	uint64_t (*flow_memory_ns)(const struct weir_ruleset_rule *rule);
	/* How long the tables keep state of a removed rule, in ns; NULL: for the length of its window. */
	uint64_t (*rule_memory_ns)(const struct weir_previous *previous);

	/* ---- words for people ---- */

	const char *manner;	  /* what follows its limit: ", spaced"; NULL: nothing */
	const char *noun;	  /* singular noun for what it counts; NULL: the rule's unit */
	const char *storage_name; /* the name of its storage in JSON; NULL: that of its rows */
};

/* By enum weir_kind_id. */
extern const struct weir_kind *const weir_kinds[WEIR_KIND_COUNT];

/* The kind of a rule as read from a file, and as described in map `rule_info`. A shadow rule is a window. */
enum weir_kind_id weir_kind_id_of(const struct weir_ruleset_rule *rule);
const struct weir_kind *weir_kind_of(const struct weir_ruleset_rule *rule);
enum weir_kind_id weir_kind_id_of_info(const struct weir_rule_info *info);
const struct weir_kind *weir_kind_of_info(const struct weir_rule_info *info);

#endif
