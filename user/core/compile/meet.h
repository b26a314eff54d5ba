/* SPDX-License-Identifier: GPL-2.0-only */
/* What packets can meet: the fields and the search, for meet.c and meet_bound.c. */
#ifndef WEIR_COMPILE_MEET_H
#define WEIR_COMPILE_MEET_H

#include "compile/build_steps.h"

#define WEIGHT_BITS 5 /* a resource weighs its rules: at most WEIR_PACKET_RULES_MAX */

struct child {
	uint32_t class;	 /* place in field->classes */
	uint32_t weight; /* of what this class takes, beyond what all classes take */
};

/* One field in one context: the classes a packet can choose from. */
struct field {
	uint32_t *classes;   /* numbers of different vectors */
	uint64_t *summaries; /* words in which the class takes what not all classes take */
	uint32_t count;
	struct weir_vector common; /* what all classes take */
	struct weir_vector any;	   /* what some class takes */
	struct child *children;	   /* room for all; a path branches on a field once, so one is enough */
};

/* Families have prefixes of their own; ports, flags and type are fields only of packets that have them. */
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
	uint32_t fields;  /* bits of enum field_number: to branch on */
	uint32_t kind;	  /* vector number */
	uint32_t missing; /* fields of which the packet has no value */
	uint32_t weight;  /* of all resources that some packet of the context meets */
};

struct search {
	const struct weir_image *image;
	struct field fields[FIELD_COUNT];
	struct context *contexts;
	uint32_t context_count;
	/* Weights of resources by bits, so that a word is weighed by counting its bits in each plane. */
	uint64_t plane[WEIGHT_BITS][WEIR_VECTOR_WORDS];
	unsigned int planes;	     /* in use */
	struct weir_vector weighing; /* resources whose weight is not 0 */
	uint32_t limit;
	uint32_t floor;		     /* only what is heavier matters */
	struct weir_vector heaviest; /* the set of weight `floor` that was found; empty when none was */
	uint64_t work, patience;     /* done, and the most that may be done */
	bool is_over;		     /* above the limit, or out of patience */
};

/* ---- meet_bound.c ---- */

uint32_t weir_meet_weigh(struct search *search, const struct weir_vector *set);

/* Find the heaviest part of `set` that the fields left to decide can let through together. */
void weir_meet_explore(struct search *search, const struct weir_vector *set, uint32_t fields);

#endif
