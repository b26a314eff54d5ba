/* SPDX-License-Identifier: GPL-2.0-only */
/* The giving of slots (slots.c), in its parts. */
#ifndef WEIR_COMPILE_SLOTTING_H
#define WEIR_COMPILE_SLOTTING_H

#include "compile/build_steps.h"

/* The least that an instance is made for, so that small files can grow by reload. Chosen, not derived. */
#define SLOTS_MIN 1024u

/* span_ns 0: six years. */
#define SPAN_NS_DEFAULT (6ull * 365 * 86400 * WEIR_NSEC_PER_SEC)

/* The counters of a resource hold the last 60 seconds, and one begun. */
#define RESOURCE_COOLING_NS (61 * WEIR_NSEC_PER_SEC)

/* From compiling a load until no CPU runs the program before it, at the longest. Chosen, not derived. */
#define REPLACED_NS (60 * WEIR_NSEC_PER_SEC)
#define NONE 0xffffffffu

/* What is decided about one rule. */
struct plan {
	uint32_t slot;	 /* NONE: needs a fresh one */
	uint32_t spec;	 /* NONE: not yet numbered */
	uint8_t storage; /* enum weir_storage */
	uint8_t version; /* of its threshold */
	uint64_t versions_since_ns;
	struct weir_tokens tokens; /* if it has them */
	const char *why_anew;	   /* there was such a rule, and its slot is not kept; else NULL */
};

struct slotting {
	const struct weir_ruleset *ruleset;   /* with the shadow windows */
	const struct weir_terms *terms;	      /* one a rule */
	const struct weir_previous *previous; /* never NULL */
	struct weir_image *image;
	struct weir_diag *diag;
	uint64_t now_ns, span_ns;
	bool is_at_tc;
	enum weir_emptied emptied;
	struct plan *plans;	  /* one a rule */
	uint32_t *resource_slots; /* one a resource */
};

/* ---- slot_terms.c ---- */

const struct weir_terms *weir_slot_terms_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule);

/* Without an interval there is no window spec: number 0 stands there, and nobody looks. */
bool weir_slot_has_spec(const struct weir_ruleset_rule *rule);
uint64_t weir_slot_bucket_ns(const struct weir_ruleset_rule *rule);
uint64_t weir_slot_queueing_ns_max(const struct slotting *slotting, const struct weir_ruleset_rule *rule);
const struct weir_ruleset_resource *weir_slot_resource_of(const struct slotting *slotting,
							  const struct weir_ruleset_rule *rule);
bool weir_slot_has_flows(const struct slotting *slotting, const struct weir_ruleset_rule *rule);
/* Its overrides go by the local end's address. */
bool weir_slot_overrides_local(const struct slotting *slotting, const struct weir_ruleset_rule *rule);
struct weir_rule_identity weir_slot_identity_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule);

/* A packet that it evaluates may be a super-frame: several packets at once. */
bool weir_slot_may_be_several(const struct slotting *slotting, const struct weir_ruleset_rule *rule);

/* Strict and smooth windows look one bucket further back than their interval. */
uint64_t weir_slot_window_memory_ns(const struct weir_rule_identity *identity);

/* ---- slots_kept.c ---- */

/* Whether a row of this storage, narrow or medium, can hold this rule's window, given a window spec number that its tag
 * can name. A shadow window has no threshold, so its counts have no bound.
 */
bool weir_slot_fits(const struct slotting *slotting, const struct weir_ruleset_rule *rule, enum weir_storage storage);

/*
 * Tables that all CPUs share are searched by slot and key, and remember a flow until its place is wanted. Whether
 * nothing that they may know of the slot's flows would still matter to this rule: TATs so old that no
 * packet waits for them, warm-up so old that the flow is all cold again.
 */
bool weir_slot_is_forgotten(const struct slotting *slotting, const struct weir_ruleset_rule *rule,
			    const struct weir_rule_info *info);

/* What distinguishes lists of overrides, whatever their order: a sum of what each of them is hashed to. */
uint64_t weir_slot_digest_of_overrides(const struct weir_ruleset_rule *rule);
int weir_slot_keep_rules(struct slotting *slotting);
int weir_slot_keep_resources(struct slotting *slotting);

/* ---- window_specs.c ---- */

int weir_slot_number_specs(struct slotting *slotting);

#endif
