/* SPDX-License-Identifier: GPL-2.0-only */
/* Which resources and rules packets can meet: the fields and the search, for meet.c and meet_bound.c. */
#ifndef WEIR_COMPILE_MEET_H
#define WEIR_COMPILE_MEET_H

#include "compile/build_steps.h"

#define WEIGHT_BITS 8 /* bits of a resource's weight: its number of rules, or what they cost */

struct child {
	uint32_t class;	 /* place in field->classes */
	uint32_t weight; /* of the resources that this class admits, beyond those that all classes admit */
};

/* One field in one context: the classes that a packet's value can belong to. */
struct field {
	uint32_t *classes;   /* vector numbers, all different */
	uint64_t *summaries; /* words in which the class admits resources that not all classes admit */
	uint32_t count;
	struct weir_vector common; /* resources that all classes admit */
	struct weir_vector any;	   /* resources that at least one class admits */
	struct child *children;	   /* room for every class; enough, since a path branches on a field only once */
};

/* Each address family has prefixes of its own. Ports, flags and type are fields only for packets that have them. */
#define FIELD_NUMBER(constant, name, member, highest, none, who) constant,

enum field_number {
	SOURCE4,
	SOURCE6,
	DESTINATION4,
	DESTINATION6,
	TCP_FLAGS,
	INTERFACE,
	WEIR_RANGE_FIELDS(FIELD_NUMBER) FIELD_COUNT
};

struct context {
	uint32_t fields;  /* bits of enum field_number: the fields to branch on */
	uint32_t kind;	  /* vector number */
	uint32_t missing; /* fields for which the packet has no value */
	uint32_t weight;  /* of all resources that some packet of the context meets */
};

struct search {
	const struct weir_image *image;
	struct field fields[FIELD_COUNT];
	struct context *contexts;
	uint32_t context_count;
	/* Weights of resources, one bit plane per bit, so that a word's weight is computed by counting its bits in each
	 * plane.
	 */
	uint64_t plane[WEIGHT_BITS][WEIR_VECTOR_WORDS];
	unsigned int planes;	     /* in use */
	struct weir_vector weighing; /* resources with a weight above 0 */
	/* By bit: the resources that never share a packet with this one, since one excepts the other; NULL: none do. */
	struct weir_vector *apart;
	uint32_t limit;
	uint32_t floor;		     /* only heavier sets matter */
	struct weir_vector heaviest; /* the set of weight `floor` that was found; empty if none was */
	uint64_t work, patience;     /* steps done, and the most that may be done */
	bool is_over;		     /* a set is above the limit, or the search is out of patience */
};

/* ---- meet_bound.c ---- */

uint32_t weir_meet_weigh(struct search *search, const struct weir_vector *set);

/* Find the heaviest subset of `set` that one packet can meet, given the fields that are still undecided. */
void weir_meet_explore(struct search *search, const struct weir_vector *set, uint32_t fields);

#endif
