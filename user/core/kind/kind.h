/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room kind: what a kind of limit is, for everybody who reads, compiles, loads, watches or prints rules. Nobody else
 * asks of which kind a rule is: they ask its entry in the table.
 *
 * A kind is the way in which a rule comes to its answer: by a window, by TATs, by connections. Each has an
 * entry (struct weir_kind) in a file of its own in kinds/, and kinds/kinds.c has the table of them all, by enum
 * weir_kind_id. The entries stand above the rooms that ask them, so this header names types of those rooms without
 * including them. docs/extending.md walks through adding a kind.
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

/* NULL, 0 and false: the kind has no such thing, and there is nothing to do. */
struct weir_kind {
	/* ---- rule files ---- */

	/* Do a rule's metricType, controlBehavior, relationStrategy and window ask for this kind? The last kind in the
	 * table that says so has the rule; the first, a window, takes every one.
	 */
	bool (*is_chosen)(const struct weir_choices *choices);
	/* If the kind has a metricType to itself: its word, and Sentinel-Go's number for it. */
	const char *metric_name, *metric_number;
	enum weir_metric metric;
	/* What is wrong with the choices. Complains, and makes of them what the rest can be read by. */
	void (*check_choices)(struct weir_reader *reader, struct weir_draft *draft);
	/* A bit for each enum weir_rule_field: those that mean something to it, and to it alone. */
	uint32_t fields, own_fields;
	/* "'sampleCount' has no effect: it is for ...": of its own fields under another kind; and of fields that it
	 * does not use (NULL: as the field says).
	 */
	const char *own_condition, *others_condition;
	void (*keep_numbers)(const struct weir_draft *draft); /* fields that only it has, into the rule */
	const char *threshold_hint;			      /* how to write the threshold that is missing */
	/* A threshold that cannot be, though its number can. Returns whether it complained. */
	bool (*check_threshold)(struct weir_reader *reader, const struct weir_draft *draft);
	const char *below_one, *below_one_hint; /* what becomes of a threshold below 1 */
	void (*check)(struct weir_reader *reader, const struct weir_draft *draft); /* what else cannot be */
	void (*warn)(struct weir_reader *reader, const struct weir_draft *draft);  /* surely not meant */
	/* Is there room for the rule at `place`, by the settings? Such a kind needs those of connections. */
	void (*warn_of_room)(struct weir_reader *reader, size_t place);

	/* ---- what a rule of this kind has ---- */

	bool has_interval;	 /* it counts units over an interval, and so has a window spec; else neither */
	bool keeps_window;	 /* in rows of its own, at its slot */
	bool reads_shadow;	 /* the window that it goes by is a shadow's */
	bool has_emission;	 /* a unit costs a part of its flow's time: struct weir_emission */
	bool delays;		 /* it may ask packets to wait */
	bool occupies;		 /* ... by units of buckets yet to come, of a window that all CPUs share */
	bool needs_allowed;	 /* the program asks what is allowed now, even where the threshold is a constant */
	bool has_tokens;	 /* it takes tokens from buckets: struct weir_tokens */
	bool counts_connections; /* in the tables of connections */
	bool is_breaker;	 /* it goes by the outcome of requests, in the tables of breakers */
	uint32_t packet_fields;	 /* of packets it reads, beside match and key: enum weir_match_field, or-ed */

	/* ---- compiling ---- */

	/* What the program's configuration has to say of one rule, beside weir_config.kinds. */
	void (*configure)(const struct weir_ruleset_rule *rule, struct weir_config *config);
	/* The longest wait, ns, of a kind that delays. */
	uint64_t (*longest_wait_ns)(const struct weir_ruleset_rule *rule, const struct weir_settings *settings);
	/* Can times that lie span_ns apart be distinguished? -EINVAL, with the reason in *diag. */
	int (*check_span)(uint64_t span_ns, struct weir_diag *diag);
	/* Tables: which a load needs, and how large. Called once a load, whether any rule is of this kind or not. */
	void (*size_tables)(const struct weir_settings *settings, const struct weir_previous *previous,
			    struct weir_image *image, struct weir_diag *diag);

	/* ---- across reloads ---- */

	/* What a shared table knows of a flow matters to this rule for so long after its latest packet, ns. */
	uint64_t (*flow_memory_ns)(const struct weir_ruleset_rule *rule);
	/* The tables remember something of a rule that is gone for so long, ns; NULL: for its window. */
	uint64_t (*rule_memory_ns)(const struct weir_previous *previous);

	/* ---- words for people ---- */

	const char *noun;	  /* of what it counts, singular; NULL: the rule's unit */
	const char *storage_name; /* where its state is, in JSON; NULL: as its rows */
};

/* By enum weir_kind_id. */
extern const struct weir_kind *const weir_kinds[WEIR_KIND_COUNT];

/* The kind of a rule as it was read, and as it is described in map `rule_info`. A shadow's is a window. */
enum weir_kind_id weir_kind_id_of(const struct weir_ruleset_rule *rule);
const struct weir_kind *weir_kind_of(const struct weir_ruleset_rule *rule);
enum weir_kind_id weir_kind_id_of_info(const struct weir_rule_info *info);
const struct weir_kind *weir_kind_of_info(const struct weir_rule_info *info);

#endif
