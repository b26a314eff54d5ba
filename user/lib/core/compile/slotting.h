/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of slot allocation (slots.c). */
#ifndef WEIR_COMPILE_SLOTTING_H
#define WEIR_COMPILE_SLOTTING_H

#include "compile/build_steps.h"

/* The smallest number of slots in an instance, so that reloads can add rules to a small file. Chosen, not derived. */
#define SLOTS_MIN 1024u

/* Used if span_ns is 0: six years. */
#define SPAN_NS_DEFAULT (6ull * 365 * 86400 * WEIR_NSEC_PER_SEC)

/* The counters of a resource cover the last 60 seconds and the current second. */
#define RESOURCE_COOLING_NS (61 * WEIR_NSEC_PER_SEC)

/* Longest time from the compilation of a load until no CPU runs the previous program. Chosen, not derived. */
#define REPLACED_NS (60 * WEIR_NSEC_PER_SEC)
#define NONE 0xffffffffu

/* The decisions about one rule. */
struct plan {
	uint32_t slot;	 /* NONE: not numbered yet */
	uint32_t spec;	 /* NONE: not yet numbered */
	uint8_t storage; /* enum weir_storage */
	uint8_t version; /* of its threshold */
	uint64_t versions_since_ns;
	struct weir_tokens tokens; /* if the rule has them */
	const char *why_empty;	   /* a matching rule existed, but its slot is not kept: the reason; else NULL */
	size_t shares_with;	   /* the place of the first rule that counts the same connections; or its own */
	uint32_t flows_slot;	   /* of such a first rule: where they were counted before; NONE: at its own slot */
};

struct slotting {
	const struct weir_ruleset *ruleset;   /* with the shadow windows */
	const struct weir_terms *terms;	      /* one per rule */
	const struct weir_previous *previous; /* never NULL */
	struct weir_image *image;
	struct weir_diag *diag;
	uint64_t now_ns, span_ns;
	bool is_at_tc;
	enum weir_emptied emptied;
	struct plan *plans;	  /* one per rule */
	uint32_t *resource_slots; /* one per resource */
};

/* ---- slots_kept.c: properties of a rule, and the slots that rules keep ---- */

const struct weir_terms *weir_slot_terms_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule);

/* A rule without an interval has no window spec. Its spec number is 0 and is never read. */
bool weir_slot_has_spec(const struct weir_ruleset_rule *rule);
uint64_t weir_slot_bucket_ns(const struct weir_ruleset_rule *rule);
uint64_t weir_slot_queueing_ns_max(const struct slotting *slotting, const struct weir_ruleset_rule *rule);
const struct weir_ruleset_resource *weir_slot_resource_of(const struct slotting *slotting,
							  const struct weir_ruleset_rule *rule);
bool weir_slot_has_flows(const struct slotting *slotting, const struct weir_ruleset_rule *rule);
/* The rule's overrides are matched against the local end's address. */
bool weir_slot_overrides_local(const struct slotting *slotting, const struct weir_ruleset_rule *rule);
struct weir_rule_identity weir_slot_identity_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule);

/* Can a packet that this rule evaluates be a super-frame, which counts as several packets? */
bool weir_slot_may_be_several(const struct slotting *slotting, const struct weir_ruleset_rule *rule);

/* Strict and smooth windows look one bucket further back than their interval. */
uint64_t weir_slot_window_memory_ns(const struct weir_rule_identity *identity);

/* Can a row of this storage (narrow or medium) hold this rule's window, if its tag can name the window spec? A shadow
 * window has no threshold, so its counts have no bound.
 */
bool weir_slot_fits(const struct slotting *slotting, const struct weir_ruleset_rule *rule, enum weir_storage storage);

/*
 * Tables that all CPUs share are searched by slot and key, and keep a flow until its entry is needed for another.
 * Returns whether whatever they still hold for this slot no longer matters to the rule: TATs are so old that no packet
 * waits for them, and warm-up states so old that the flow is fully cold again.
 */
bool weir_slot_is_forgotten(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			    const struct weir_rule_info *info);

/* A digest of a rule's overrides that does not depend on their order: the sum of the hashes of the overrides. */
uint64_t weir_slot_digest_of_overrides(const struct weir_ruleset_rule *rule);
int weir_slot_keep_rules(struct slotting *slotting);
int weir_slot_keep_resources(struct slotting *slotting);

/* ---- shared_connections.c ---- */

/* Choose where rules that count connections do so. Needs to know which rules keep their slots. */
void weir_slot_share_connections(struct slotting *slotting);

/* ---- window_specs.c ---- */

int weir_slot_number_specs(struct slotting *slotting);

#endif
