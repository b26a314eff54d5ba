/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room compile: from struct weir_ruleset to struct weir_image. Other rooms need this header alone. build_steps.h has
 * the steps, build.c takes them one after the other, and each has a file of its own.
 *
 * The compiler: turns a validated rule set into the *image* that a load is made of, which is the
 * content of every map in include/weir_abi.h, byte for byte. Pure: no libbpf, no clock, no /proc; what
 * it must know of the machine and of what already runs is handed in.
 */
#ifndef WEIR_COMPILE_H
#define WEIR_COMPILE_H

#include "base/diag.h"
#include "rules/ruleset.h"
#include "weir_abi.h"
#include "weir_prefixes.h"
#include "weir_timed.h"

/* What already runs, as read from the instance's maps; all zero for a first load. */
struct weir_previous {
	struct weir_rule_info *rules;	      /* rule_slots entries */
	struct weir_resource_info *resources; /* resource_slots entries */
	struct weir_window_spec *specs;	      /* spec_count entries */
	uint32_t rule_slots, resource_slots, spec_count;
	uint32_t sizes[WEIR_TABLE_COUNT]; /* of its tables; 0: whatever the image asks for */
	uint32_t sharers_shift;
	uint64_t connection_timeout_ms[WEIR_CONNECTION_CLASSES];
};

/*
 * As if the latest load had not been: `rules` and `resources` are what was described before it, by slot. What was in
 * use then is so again; what only that load brought starts cooling; what both have stays as it is now.
 */
void weir_previous_take_back(struct weir_previous *previous, const struct weir_rule_info *rules,
			     const struct weir_resource_info *resources, uint64_t now_ns);

/* Fill in what *identity has of the key, as the program has it, of a resource's flows. */
void weir_identify_key(const struct weir_flow *flow, uint8_t directions, struct weir_rule_identity *identity);

/* What becomes of windows that a rule with the same name and identity cannot continue with. */
enum weir_emptied {
	WEIR_EMPTIED_TOLD,	    /* they start empty, with a warning */
	WEIR_EMPTIED_TO_BE_REFUSED, /* the same, and the warning says that a reload is refused */
	WEIR_EMPTIED_REFUSED,	    /* a mistake */
};

struct weir_compile_options {
	uint32_t cpus;		/* possible CPUs */
	uint64_t now_ns;	/* the data plane's clock now (replay: the first packet's time or earlier) */
	uint64_t span_ns;	/* how far after now_ns rows must distinguish times; narrow and medium rows are used
					 * only when this many ns fit into 2^32 buckets. 0: six years */
	bool is_at_tc;		/* what comes in is evaluated at tc, too, where a packet may be a super-frame */
	bool forgets_top_drops; /* drops are not counted by flow: to measure what that costs */
	const struct weir_previous *previous; /* NULL: first load */
	enum weir_emptied emptied;
	/* Interface number for a name of match.interface, or 0 when there is none now (such a resource
	 * then matches nothing, with a warning). NULL: no interface matches. Patterns are asked about names, by
	 * weir_image_add_interface().
	 */
	uint32_t (*ifindex)(const char *name, void *data);
	void *ifindex_data;
};

/* What a set of the tables of connections, and of their flows, is made for. It holds more,
 * WEIR_FLOW_WAYS, so that few sets are full when the table is as full as the settings say.
 */
#define WEIR_CONNECTIONS_PER_SET 2
#define WEIR_CONNECTION_FLOWS_PER_SET 4
#define WEIR_REQUESTS_PER_SET 4
#define WEIR_BREAKERS_PER_SET 4

struct weir_image_prefix {
	struct weir_prefix prefix;
	uint32_t vector; /* of what it covers, and no longer one does */
};

struct weir_image_override {
	struct weir_override_key key;
	struct weir_override_units units;
};

struct weir_image_interface {
	uint32_t ifindex;
	uint32_t vector;
};

/* Allow and deny lists, as the list maps hold them (weir_lists.h). All zero when nothing is listed. */
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
	/* seed, tick_ns, tick_origin_ns, shortcuts, is_virtual, is_weakly_ordered left zero: the loader's. A table that
	 * holds flows of a running rule keeps its size. One that has another size than the instance's was not
	 * used, and the loader has to recreate it; so it has all tables of connections when the timeouts change.
	 */
	struct weir_config config;
	uint64_t connection_timeout_ms[WEIR_CONNECTION_CLASSES]; /* in force: those of the instance, or the settings' */
	struct weir_classes *classes;
	uint16_t *place, *bit; /* place of the resource of a bit, bit of the resource at a place */
	struct weir_vector *vectors;
	uint32_t vector_count;	    /* at least 1 */
	struct weir_rule *rules;    /* rule_count rules of the user's, then shadow_count shadow windows */
	struct weir_pushed *pushed; /* one a rule: what holds until a controller pushes */
	uint32_t rule_count, shadow_count;
	struct weir_image_override *overrides;
	uint32_t override_count;
	struct weir_resource *resources;
	uint32_t resource_count;
	struct weir_prefix_node *prefix_nodes;
	uint32_t prefix_node_count;
	struct weir_image_interface *interfaces;
	uint32_t interface_count;
	struct weir_interface_case
		*cases; /* for interfaces that come; without a head, and none where none is asked for */
	uint32_t case_count;
	struct weir_image_lists lists; /* allow and deny */
	/* the instance's descriptions, whole, as they shall be after this load */
	struct weir_rule_info *rule_info;
	uint32_t rule_slots;
	struct weir_resource_info *resource_info;
	uint32_t resource_slots;
	struct weir_window_spec *specs;
	uint32_t spec_count;
	/* slots given out by this load, one entry a slot: the loader clears their counters, lone rows, seconds, states
	 * of warm-up, and TATs of whole resources, and penalties
	 */
	bool *fresh_rule_slots;
	bool *fresh_resource_slots;
	uint32_t flows_per_cpu; /* rounded up to a power of two */
	/* what prefix_nodes was made of: sorted; and the vectors of addresses in no prefix */
	struct weir_image_prefix *source_prefixes, *destination_prefixes;
	uint32_t source_prefix_count, destination_prefix_count;
	uint32_t source_outside, destination_outside;
	/* for people */
	uint32_t packet_rules_max;	  /* most rules that can meet on one packet; the limit itself when only */
	uint32_t packet_resources_max;	  /* that could be proved within the compiler's patience */
	uint32_t allow_count, deny_count; /* prefixes in lists */
	uint32_t kept_rules;		  /* rules that keep their windows across this load */
	const char **why_anew;		  /* by place: why one that was there does not; else NULL */
};

/* Bytes that the maps of an image take on a machine with `cpus` possible CPUs. */
struct weir_image_memory {
	/* all CPUs together, and what the kernel notes of per-CPU memory */
	uint64_t narrow_table, medium_table, wide_table;
	uint64_t shared;	      /* TATs, warm-up: what all CPUs share */
	uint64_t connections;	      /* shared by all CPUs: they, and their counts */
	uint64_t breakers;	      /* likewise, and their requests */
	uint64_t sharers;	      /* shared by all CPUs */
	uint64_t row_ghosts;	      /* likewise: what rows leave behind, and what finds no place there */
	uint64_t lone_rows, counters; /* likewise */
	uint64_t top_drops;	      /* drops by flow, of each CPU */
	uint64_t events;	      /* the latest events, and the journal */
	uint64_t matching;	      /* classes, vectors, prefixes, rules */
	uint64_t lists;		      /* allow and deny */
	uint64_t total;
};

/*
 * Compile. Fails (-EINVAL, reasons in *diag) when more rules or resources could meet on one packet
 * than WEIR_PACKET_RULES_MAX / _RESOURCES_MAX, when a capacity of weir_abi.h is exceeded, or (with
 * options->previous) when the instance's maps have too few slots for what is new, or options->emptied says so.
 *
 * Slots: a rule whose name, resource and identity are those of a used slot keeps it, with its window spec
 * and its threshold's version (another one when what it allows to a flow may differ); a resource keeps the slot
 * of its name. Others take a free slot, or a cooling one whose free_after_ns is past and of whose flows the
 * tables that all CPUs share can remember nothing that would still matter. Slots no longer used start cooling:
 * free_after_ns = now_ns + interval + one bucket (resources: 61 s; rules that count connections: when the last of
 * them is over).
 *
 * Windows of resources that associated rules refer to are kept by shadow windows, hidden rules with slots of their own.
 */
int weir_image_build(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		     struct weir_image **ret_image, struct weir_diag *diag);

/*
 * The vector of an interface of this name; false: it has interface_default. By image->cases, as they were when the
 * image was made.
 */
bool weir_interface_cases_find(const struct weir_interface_case *cases, uint32_t count, const char *name,
			       uint32_t *ret_vector);

/* Adds an interface to image->interfaces, if words mean it and it is not there. Returns 0 or -ENOMEM. */
int weir_image_add_interface(struct weir_image *image, const char *name, uint32_t ifindex);

/* Entries of map `interfaces`: those of the load, and room for those that come, where a resource asks. An entry takes
 * memory when it is there, and two words before. Chosen, not derived.
 */
#define WEIR_INTERFACES_ROOM 16384
static inline uint32_t weir_image_interface_entries(const struct weir_image *image)
{
	return image->case_count ? image->interface_count + WEIR_INTERFACES_ROOM : 0;
}

/* Sets of bpf/window/notes.h, of all CPUs. A map of more than 4 GB cannot be: such a load takes no notes. */
#define WEIR_NOTE_SETS_MAX (UINT32_MAX / WEIR_NOTES_BYTES)
static inline uint32_t weir_image_note_sets(const struct weir_image *image)
{
	uint64_t sets = (uint64_t)image->config.cpus * image->config.sizes[WEIR_TABLE_NARROW_FLOWS];

	return sets <= WEIR_NOTE_SETS_MAX ? sets : 0;
}

/* Entries of a table's map: at least one, where the load does not use the table. */
uint32_t weir_table_entries(enum weir_table_id table, uint32_t size);

/* What these entries take, and add it to its part of *memory. */
uint64_t weir_table_memory(const struct weir_image *image, enum weir_table_id table, uint32_t cpus,
			   struct weir_image_memory *memory);

void weir_image_memory(const struct weir_image *image, uint32_t cpus, struct weir_image_memory *ret_memory);

/* Of these, the bytes of the list maps. */
uint64_t weir_lists_memory(const struct weir_image_lists *lists);

void weir_image_free(struct weir_image *image);

static inline void weir_image_freep(struct weir_image **image)
{
	weir_image_free(*image);
}

#endif
