/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room compile: from struct weir_ruleset to struct weir_image. Other rooms need only this header. build_steps.h
 * declares the steps, build.c runs them in order, and each step has a file of its own.
 *
 * The compiler turns a validated rule set into the *image* that a load is made of: the content of every map in
 * include/weir_abi.h, byte for byte. Pure: no libbpf, no clock, no /proc. The caller passes in the facts about the
 * machine and about what already runs.
 */
#ifndef WEIR_COMPILE_H
#define WEIR_COMPILE_H

#include "base/diag.h"
#include "rules/ruleset.h"
#include "tables/labels.h"
#include "weir_abi.h"
#include "weir_prefixes.h"
#include "weir_timed.h"

/* What already runs, as read from the instance's maps; all zero for a first load. */
struct weir_previous {
	struct weir_rule_info *rules;	      /* rule_slots entries */
	struct weir_resource_info *resources; /* resource_slots entries */
	struct weir_window_spec *specs;	      /* spec_count entries */
	uint32_t rule_slots, resource_slots, spec_count;
	uint32_t sizes[WEIR_TABLE_COUNT]; /* of its tables; 0: the size that the image asks for */
	uint32_t sharers_shift;
	uint64_t connection_timeout_ms[WEIR_CONNECTION_CLASSES];
};

/*
 * Make *previous as if the latest load had not happened. `rules` and `resources` are the descriptions before that load,
 * by slot. What was in use then is in use again; what only that load added starts cooling; what both have stays as it
 * is now.
 */
void weir_previous_take_back(struct weir_previous *previous, const struct weir_rule_info *rules,
			     const struct weir_resource_info *resources, uint64_t now_ns);

/* Fill in the key of a resource's flows in *identity, in the form that the program uses. `labels` has the numbers of
 * the image's sets; NULL: there are none.
 */
void weir_identify_key(const struct weir_flow *flow, uint8_t directions, const struct weir_key_labels *labels,
		       struct weir_rule_identity *identity);

/* What happens to windows that a rule with the same name and identity cannot keep. */
enum weir_emptied {
	WEIR_EMPTIED_WARNED,	    /* they start empty, with a warning */
	WEIR_EMPTIED_TO_BE_REFUSED, /* the same, and the warning says that a reload would be refused */
	WEIR_EMPTIED_REFUSED,	    /* an error */
};

struct weir_compile_options {
	uint32_t cpus;	 /* possible CPUs */
	uint64_t now_ns; /* the data plane's clock now (replay: the first packet's time or earlier) */
	/* How far after now_ns rows must distinguish times. Narrow and medium rows are used only if this many ns fit
	 * into 2^32 buckets. 0: six years.
	 */
	uint64_t span_ns;
	bool is_at_tc;			      /* ingress is evaluated at tc too, where a packet may be a super-frame */
	const struct weir_previous *previous; /* NULL: first load */
	enum weir_emptied emptied;
	/* The ifindex of an interface named in match.interface, or 0 if there is none now (such a resource then matches
	 * nothing, with a warning). NULL: no interface matches. Patterns are matched against names by
	 * weir_image_add_interface().
	 */
	uint32_t (*ifindex)(const char *name, void *data);
	void *ifindex_data;
};

/* The planned number of entries in a set of the tables of connections and of their flows. A set has room for more
 * (WEIR_FLOW_WAYS), so that few sets are full when the table is as full as the settings allow.
 */
#define WEIR_CONNECTIONS_PER_SET 2
#define WEIR_CONNECTION_FLOWS_PER_SET 4
#define WEIR_REQUESTS_PER_SET 4
#define WEIR_BREAKERS_PER_SET 4

struct weir_image_prefix {
	struct weir_prefix prefix;
	uint32_t vector; /* for addresses that it covers and no longer prefix covers */
};

struct weir_image_override {
	struct weir_override_key key;
	struct weir_override_units units;
	/* By label: its number, or 0: no prefix has it now. The loader, which has the secret, writes its hash. */
	uint32_t label;
};

struct weir_image_interface {
	uint32_t ifindex;
	uint32_t vector;
};

/* Allow and deny lists in the form of the list maps (weir_lists.h). All zero if nothing is listed. */
struct weir_image_lists {
	uint64_t *roots;   /* WEIR_LIST_ROOT_WORDS */
	uint64_t *buckets; /* bucket_count, a power of two */
	uint64_t *words;   /* word_count */
	uint32_t root_count, bucket_count, word_count;
	struct weir_listed_prefix *prefixes; /* prefix_count: for timed entries (weir_timed.h) */
	uint32_t prefix_count;
};

struct weir_image {
	/* the generation's maps */
	/* seed, tick_ns, tick_origin_ns, shortcuts, is_virtual and is_weakly_ordered are left zero for the loader to
	 * fill in. A table that holds flows of a running rule keeps its size. If a table's size differs from the
	 * instance's, the table was not in use, and the loader has to recreate it. The same holds for all tables of
	 * connections if the timeouts change.
	 */
	struct weir_config config;
	uint8_t hooks; /* the directions for which the rules need a hook: weir_ruleset_hooks() */
	uint64_t connection_timeout_ms[WEIR_CONNECTION_CLASSES]; /* in force: the instance's, or else the settings' */
	struct weir_classes *classes;
	uint16_t *except;      /* by place: as weir_generation.except; NULL: no resource is without others */
	uint16_t *place, *bit; /* the place of the resource that has a bit, and the bit of the resource at a place */
	struct weir_vector *vectors;
	uint32_t vector_count;	    /* at least 1 */
	struct weir_rule *rules;    /* the user's rules (rule_count), then the shadow windows (shadow_count) */
	struct weir_pushed *pushed; /* one per rule: values in force until a controller pushes */
	uint32_t rule_count, shadow_count;
	struct weir_image_override *overrides;
	uint32_t override_count;
	struct weir_resource *resources;
	uint32_t resource_count;
	struct weir_prefix_node *prefix_nodes; /* and, from config.label_first on, struct weir_label_node */
	uint32_t prefix_node_count;
	struct weir_key_labels *labels; /* by their numbers minus 1, without hashes; NULL: no flow key has a set */
	uint32_t label_root[WEIR_KEY_SETS_MAX + 1][2]; /* as in struct weir_generation */
	struct weir_image_interface *interfaces;
	uint32_t interface_count;
	struct weir_interface_case
		*cases; /* for interfaces that appear later; no list head; empty if no resource names one */
	uint32_t case_count;
	struct weir_image_lists lists; /* allow and deny */
	/* the complete descriptions of the instance after this load */
	struct weir_rule_info *rule_info;
	uint32_t rule_slots;
	struct weir_resource_info *resource_info;
	uint32_t resource_slots;
	struct weir_window_spec *specs;
	uint32_t spec_count;
	/* One entry per slot: true if this load allocated it. For such a slot the loader clears the counters, lone
	 * rows, seconds, warm-up states, TATs of whole resources, and penalties.
	 */
	bool *fresh_rule_slots;
	bool *fresh_resource_slots;
	uint32_t flows_per_cpu; /* rounded up to a power of two */
	/* the sorted prefixes from which prefix_nodes was made, and the vectors of addresses in no prefix */
	struct weir_image_prefix *source_prefixes, *destination_prefixes;
	uint32_t source_prefix_count, destination_prefix_count;
	uint32_t source_outside, destination_outside;
	/* for people */
	uint32_t packet_rules_max;	  /* most rules that can meet on one packet; the limit itself if the search */
	uint32_t packet_resources_max;	  /* ran out of patience before it found the exact number */
	uint32_t allow_count, deny_count; /* prefixes in lists */
	uint32_t kept_rules;		  /* rules that keep their windows across this load */
	const char **why_empty;		  /* by place: why a rule that existed before lost its windows; else NULL */
};

/* Bytes of memory that the maps of an image take on a machine with `cpus` possible CPUs. */
struct weir_image_memory {
	/* sums over all CPUs, including the kernel's overhead for per-CPU memory */
	uint64_t narrow_table, medium_table, wide_table;
	uint64_t shared;	      /* state that all CPUs share: TATs, warm-up */
	uint64_t connections;	      /* shared by all CPUs: connections and their counts */
	uint64_t breakers;	      /* likewise: breakers and their requests */
	uint64_t sharers;	      /* shared by all CPUs */
	uint64_t row_ghosts;	      /* likewise: ghosts of evicted rows, and overflow windows */
	uint64_t lone_rows, counters; /* likewise */
	uint64_t top_drops;	      /* drops by flow, per CPU */
	uint64_t events;	      /* the latest events, and the journal */
	uint64_t matching;	      /* classes, vectors, prefixes, rules */
	uint64_t lists;		      /* allow and deny */
	uint64_t total;
};

/*
 * Compile. Fails (-EINVAL, reasons in *diag) if more rules or resources could meet on one packet than
 * WEIR_PACKET_RULES_MAX / _RESOURCES_MAX, or if a capacity of weir_abi.h is exceeded. With options->previous, it also
 * fails if the instance's maps have too few slots for the new rules, or if options->emptied refuses the load.
 *
 * Slots: a rule keeps a used slot that has its name, resource and identity. With the slot it keeps the window spec and
 * the version of the threshold (a new version if the rule's limit for a flow may differ). A resource keeps the slot
 * with its name. Others take a free slot, or a cooling one: its free_after_ns must have passed, and the tables shared
 * by all CPUs must hold nothing about its flows that would still matter. Slots that are no longer used start cooling:
 * free_after_ns = now_ns + interval + one bucket (resources: 61 s; rules that count connections: when the last
 * connection is over).
 *
 * Windows of resources that associated rules refer to are kept by shadow windows: hidden rules with their own slots.
 */
int weir_image_build(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		     struct weir_image **ret_image, struct weir_diag *diag);

/*
 * Look up the vector of an interface by name in image->cases, as they were when the image was made. Returns false if
 * the interface gets interface_default.
 */
bool weir_interface_cases_find(const struct weir_interface_case *cases, uint32_t count, const char *name,
			       uint32_t *ret_vector);

/* Add an interface to image->interfaces, unless it is there or no interface word matches it. Returns 0 or -ENOMEM. */
int weir_image_add_interface(struct weir_image *image, const char *name, uint32_t ifindex);

/* Room in map `interfaces`, beyond the entries of the load, for interfaces that appear later, if a resource asks for
 * them. An entry takes memory only when it is used; unused, it takes two words. Chosen, not derived.
 */
#define WEIR_INTERFACES_ROOM 16384
static inline uint32_t weir_image_interface_entries(const struct weir_image *image)
{
	return image->case_count ? image->interface_count + WEIR_INTERFACES_ROOM : 0;
}

/* Sets of bpf/window/notes.h, for all CPUs together. A map cannot be larger than 4 GB: a load that would need more
 * takes no notes.
 */
#define WEIR_NOTE_SETS_MAX (UINT32_MAX / WEIR_NOTES_BYTES)
static inline uint32_t weir_image_note_sets(const struct weir_image *image)
{
	uint64_t sets = (uint64_t)image->config.cpus * image->config.sizes[WEIR_TABLE_NARROW_FLOWS];

	return sets <= WEIR_NOTE_SETS_MAX ? sets : 0;
}

/* Entries of a table's map: at least one, even if the load does not use the table. */
uint32_t weir_table_entries(enum weir_table_id table, uint32_t size);

/* Memory that these entries take; it is also added to the table's part of *memory. */
uint64_t weir_table_memory(const struct weir_image *image, enum weir_table_id table, uint32_t cpus,
			   struct weir_image_memory *memory);

void weir_image_memory(const struct weir_image *image, uint32_t cpus, struct weir_image_memory *ret_memory);

/* The bytes of the list maps, which are part of these. */
uint64_t weir_lists_memory(const struct weir_image_lists *lists);

void weir_image_free(struct weir_image *image);

static inline void weir_image_freep(struct weir_image **image)
{
	weir_image_free(*image);
}

#endif
