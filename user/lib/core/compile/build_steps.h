/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The steps of the compiler, private to this directory. weir_image_build calls them in this order on a zeroed image.
 * Each fills in its part of the image; weir_image_free frees whatever parts are there.
 */
#ifndef WEIR_COMPILE_BUILD_STEPS_H
#define WEIR_COMPILE_BUILD_STEPS_H

#include <errno.h>

#include "compile/compile.h"
#include "kind/kind.h"
#include "tables/rule_kind.h"

/* Fills in image->place and image->bit. */
int weir_compile_order(const struct weir_ruleset *ruleset, struct weir_image *image);

/* Calls weir_compile_order, then makes the classes, vectors, prefixes and interfaces, and fills in the related fields
 * of the program's configuration.
 */
int weir_compile_match(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag);

/* Add the tries of these sorted prefixes to image->prefix_nodes. An address outside all prefixes has vector `outside`.
 * Returns 0 or -ENOMEM.
 */
int weir_compile_prefixes(struct weir_image *image, const struct weir_image_prefix *prefixes, uint32_t count,
			  uint32_t outside, uint32_t ret_roots[2]);

/* Make the tries of the sets in flow keys, and list their labels. `ruleset` includes the hidden rules. */
int weir_compile_labels(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag);

/* The numbers of the key's sets, as in weir_rule_identity.key_fields. `labels` may be NULL. */
uint32_t weir_number_key_sets(const struct weir_key_labels *labels, const struct weir_flow *flow);

/* Compute packet_rules_max and packet_resources_max, and refuse rule sets that exceed the limits. Needs the match and
 * the rule lists of image->resources.
 */
int weir_compile_meet(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag);

/* The place of the first rule that counts the same connections as the one at `place` (shared_connections.c). It is
 * `place` if there is none before it, or if the rule does not count connections.
 */
size_t weir_shares_with(const struct weir_ruleset *ruleset, size_t place);

/* A rule in the numbers that the program needs (terms.c). */
struct weir_terms {
	enum weir_kind_id kind;
	bool is_shadow;	    /* a hidden rule of shadows.c */
	bool has_window;    /* keeps a window at its slot */
	bool moves;	    /* the controller computes its threshold while it runs */
	bool warms_flows;   /* the program warms up each flow by itself */
	uint8_t directions; /* WEIR_MATCHES_IN, _OUT: directions that are counted elsewhere than evaluated */
	uint32_t shadow;    /* place of the shadow window it reads, if its kind reads one */
	uint64_t units;	    /* threshold; if it moves, the one in force without a controller */
	uint64_t units_max; /* the highest that this threshold, or an override, can be */
	/* If the kind has one: computed from the exact threshold, whose floor is `units`. */
	struct weir_emission emission;
	struct weir_tokens tokens; /* if the kind has them; the clock starts at 0, and there is no mark yet */
	struct weir_warm_up warm_up;
};

/* Fills in all fields but `shadow`. Fails, with the reason in *diag, on numbers too large for the program. */
int weir_terms_make(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule, struct weir_terms *terms,
		    struct weir_diag *diag);

/* The rules of a load: the user's rules, followed by the shadow windows. */
struct weir_rule_list {
	struct weir_ruleset ruleset; /* owns `rules` and the shadow windows' names, and borrows everything else */
	struct weir_terms *terms;    /* one per rule */
	size_t user_rules;
	size_t tracker; /* place of the hidden rule that tracks connections for system rules, if there is one */
};

/* Fills in a zeroed list, and image->resources[].shadow. Needs image->resources. The list must be freed even after a
 * failure.
 */
int weir_compile_shadows(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_rule_list *list,
			 struct weir_diag *diag);
void weir_rule_list_free(struct weir_rule_list *list);

/* Fills in the rules with their storage, window spec, slot and threshold, and the descriptions of the instance. */
int weir_compile_slots(const struct weir_rule_list *list, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag);

int weir_compile_overrides(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag);

/* Compute the sizes of the tables, and what depends on them. Needs the descriptions and flows_per_cpu. */
void weir_compile_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			 struct weir_image *image, struct weir_diag *diag);

/* How one table is sized: who keeps flows in it, and what it holds. */
struct weir_sizing {
	enum weir_table_id table;
	bool (*keeps)(const struct weir_rule_info *rule);
	uint32_t sets, sets_idle;   /* if a rule uses the table, and if none does */
	uint32_t ways;		    /* entries of a set, as the setting counts them */
	const char *keeping, *what; /* for people: "KEEPING (a number) WHAT" */
	const char *setting;
	bool is_reported; /* another table, from which this one's size follows, reports why it keeps its size */
};

/*
 * Set the size of one table. A table that holds flows of a running rule keeps its size, because another size would need
 * another map and lose the flows. A table that no rule uses gets the minimum size of a map.
 */
void weir_size_table(struct weir_image *image, const struct weir_previous *previous, const struct weir_sizing *sizing,
		     struct weir_diag *diag);

static inline uint32_t weir_round_up_power_of_two(uint64_t value)
{
	uint64_t power = 1;

	while (power < value && power < 1u << 31)
		power *= 2;
	return (uint32_t)power;
}

/* The smallest power of two that is at least places / places_of_set. */
uint32_t weir_sets_for(uint32_t places, uint32_t places_of_set);

/* Sets of a table shared by all CPUs, for flows_per_cpu flows. */
uint32_t weir_shared_sets(const struct weir_image *image);

/* Can the words of penalties distinguish times that are span_ns apart? Returns -EINVAL, with the reason in *diag, if
 * not.
 */
int weir_penalties_check_span(uint64_t span_ns, struct weir_diag *diag);

/* Does is_such() hold for any rule in use? */
bool weir_any_rule(bool (*is_such)(const struct weir_rule_info *rule), const struct weir_rule_info *rules,
		   uint32_t count);

/*
 * Turn ruleset->listed into the contents of the list maps, word for word, and fill in the related fields of config.
 * Time and memory are proportional to the number of prefixes, however they nest. Returns -errno with the reason in
 * *diag.
 */
int weir_compile_lists(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
		       struct weir_diag *diag);
/* Does the same, and for timed entries also stores the prefixes themselves. */
int weir_compile_listed(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
			struct weir_diag *diag);
void weir_lists_free(struct weir_image_lists *lists);

static inline int weir_compile_no_memory(struct weir_diag *diag)
{
	return weir_diag_fail(diag, ENOMEM, NULL, "cannot compile the rules");
}

/* ---- sets of resources ---- */

/* The index of the lowest set bit. A loop over a set is `for (bits = set; bits; bits &= bits - 1)`. */
static inline unsigned int weir_lowest_bit(uint64_t bits)
{
	return (unsigned int)__builtin_ctzll(bits);
}

static inline void weir_vector_add(struct weir_vector *set, size_t resource)
{
	set->word[resource / 64] |= 1ull << resource % 64;
	set->summary |= 1ull << resource / 64;
}

static inline void weir_vector_remove(struct weir_vector *set, size_t resource)
{
	set->word[resource / 64] &= ~(1ull << resource % 64);
	if (!set->word[resource / 64])
		set->summary &= ~(1ull << resource / 64);
}

static inline bool weir_vector_has(const struct weir_vector *set, size_t resource)
{
	return set->word[resource / 64] >> resource % 64 & 1;
}

/* Words beyond the summary are set to zero, so that vectors can be compared with memcmp(). */
static inline void weir_vector_and(struct weir_vector *set, const struct weir_vector *other)
{
	unsigned int i;

	for (uint64_t bits = set->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		set->word[i] &= other->word[i];
		if (!set->word[i])
			set->summary &= ~(1ull << i);
	}
}

static inline void weir_vector_or(struct weir_vector *set, const struct weir_vector *other)
{
	unsigned int i;

	for (uint64_t bits = other->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		set->word[i] |= other->word[i];
	}
	set->summary |= other->summary;
}

static inline void weir_vector_subtract(struct weir_vector *set, const struct weir_vector *other)
{
	unsigned int i;

	for (uint64_t bits = set->summary & other->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		set->word[i] &= ~other->word[i];
		if (!set->word[i])
			set->summary &= ~(1ull << i);
	}
}

#endif
