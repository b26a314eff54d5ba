// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many rules, and how many resources, can meet on one packet: the program has room for a bounded
 * number, so a file that could exceed it is refused. A packet picks one class of each field; what it
 * meets is the intersection of their vectors. The heaviest intersection is searched by branch and
 * bound, one field after the other, in each context: an IP family with what a transport header may
 * bring (ports, flags, type), within which the fields are independent.
 *
 * Errs on the safe side: classes that no real packet combines (a length of 60 and an IPv6 TCP header)
 * count as if one could.
 */
#include "compile/parts.h"

#include <netinet/in.h>
#include <string.h>

#include "base/util.h"

/* Work is counted in words of vectors looked at. Only files whose conditions overlap in many ways in
 * many fields come near.
 */
#define PATIENCE 20000000ull

#define WEIGHT_BITS 5 /* a resource weighs its rules: at most WEIR_PACKET_RULES_MAX */
_Static_assert(WEIR_PACKET_RULES_MAX < 1 << WEIGHT_BITS, "weights must fit their bit planes");

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

/* The range fields that EVERY packet has, or those with PORTS or a TYPE: bits of enum field_number. */
enum {
	WHO_EVERY,
	WHO_PORTS,
	WHO_TYPE,
};
#define BIT_OF_EVERY(constant, name, member, highest, none, who) | (WHO_##who == WHO_EVERY ? 1u << constant : 0)
#define BIT_OF_PORTS(constant, name, member, highest, none, who) | (WHO_##who == WHO_PORTS ? 1u << constant : 0)
#define BIT_OF_TYPE(constant, name, member, highest, none, who) | (WHO_##who == WHO_TYPE ? 1u << constant : 0)
#define FIELDS_OF_EVERY (0 WEIR_RANGE_FIELDS(BIT_OF_EVERY))
#define FIELDS_WITH_PORTS (0 WEIR_RANGE_FIELDS(BIT_OF_PORTS))
#define FIELDS_WITH_TYPE (0 WEIR_RANGE_FIELDS(BIT_OF_TYPE))

struct context {
	uint32_t fields;  /* bits of enum field_number: to branch on */
	uint32_t kind;	  /* vector number */
	uint32_t missing; /* fields of which the packet has no value */
	uint32_t weight;  /* of all resources that some packet of the context meets */
};

#define CONTEXTS_MAX ((size_t)2 * WEIR_FRAGMENT_KINDS * 256)

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

/* ---- weighing ---- */

/* The weight of set AND other, over the words given. */
static uint32_t weigh_both(struct search *search, const struct weir_vector *set, const struct weir_vector *other,
			   uint64_t words)
{
	unsigned int i, bit;
	uint32_t weight = 0;
	uint64_t both;

	for (uint64_t bits = set->summary & words; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		both = set->word[i] & other->word[i];
		search->work++;
		for (bit = 0; both && bit < search->planes; bit++)
			weight += (uint32_t)__builtin_popcountll(both & search->plane[bit][i]) << bit;
	}
	return weight;
}

static uint32_t weigh(struct search *search, const struct weir_vector *set)
{
	return weigh_both(search, set, set, set->summary);
}

static const struct weir_vector *class_vector(const struct search *search, const struct field *field, uint32_t class)
{
	return &search->image->vectors[field->classes[class]];
}

/* The most of `set` that one class takes. */
static uint32_t heaviest_class(struct search *search, const struct field *field, const struct weir_vector *set)
{
	uint32_t class, weight, most = 0;

	if (!set->summary)
		return 0;
	for (class = 0; class < field->count; class ++) {
		if (!(set->summary & field->summaries[class]))
			continue;
		weight = weigh_both(search, set, class_vector(search, field, class), field->summaries[class]);
		if (weight > most)
			most = weight;
	}
	search->work += field->count;
	return most;
}

/* ---- branch and bound ---- */

/* What a set of resources looks like to the fields not yet decided. */
struct survey {
	uint32_t weight;	       /* of the set */
	uint32_t fields;	       /* those that divide it */
	uint32_t divided[FIELD_COUNT]; /* weight of what the field's classes do not all take */
	uint32_t crowd[FIELD_COUNT];   /* the most of it that one class takes */
};

/* A field of which one class takes the whole set is decided: no other choice is better. */
static void survey(struct search *search, const struct weir_vector *set, uint32_t fields, struct survey *survey)
{
	struct weir_vector divided;
	unsigned int f;

	survey->weight = weigh(search, set);
	survey->fields = 0;
	if (survey->weight <= search->floor)
		return;
	for (uint64_t bits = fields; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		divided = *set;
		weir_vector_subtract(&divided, &search->fields[f].common);
		survey->divided[f] = weigh(search, &divided);
		survey->crowd[f] = heaviest_class(search, &search->fields[f], &divided);
		if (survey->crowd[f] < survey->divided[f])
			survey->fields |= 1u << f;
	}
}

static unsigned int least_crowded(const struct survey *survey, uint32_t fields)
{
	unsigned int f, least = (unsigned int)__builtin_ctz(fields);

	for (uint64_t bits = fields; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		if (survey->crowd[f] < survey->crowd[least])
			least = f;
	}
	return least;
}

/*
 * At most so much of the set can meet. Each resource is charged to one field, and of each field's
 * share the heaviest class counts: whatever a packet chooses, it takes no more. Charged first are the
 * fields that tell their resources apart best, so that thousands of resources with a port of their own
 * next to thousands with an address of their own weigh as two.
 */
static uint32_t most_possible(struct search *search, const struct weir_vector *set, const struct survey *survey)
{
	struct weir_vector left = *set, share;
	uint32_t most = 0, fields = survey->fields;
	unsigned int f;

	while (fields) {
		f = least_crowded(survey, fields);
		fields &= ~(1u << f);
		share = left;
		weir_vector_subtract(&share, &search->fields[f].common);
		most += heaviest_class(search, &search->fields[f], &share);
		weir_vector_and(&left, &search->fields[f].common);
	}
	return most + weigh(search, &left);
}

/* The field whose best class leaves least: the earlier a bound bites, the smaller the tree. */
static unsigned int choose_field(const struct survey *survey)
{
	unsigned int f, best = (unsigned int)__builtin_ctz(survey->fields);

	for (uint64_t bits = survey->fields; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		if (survey->divided[f] - survey->crowd[f] > survey->divided[best] - survey->crowd[best])
			best = f;
	}
	return best;
}

static int compare_children(const void *left, const void *right)
{
	const struct child *a = left, *b = right;

	return (a->weight < b->weight) - (a->weight > b->weight);
}

/* The classes worth a look, heaviest first. `divided` is what not all classes take, `rest` the weight of the rest. */
static uint32_t list_children(struct search *search, struct field *field, const struct weir_vector *divided,
			      uint32_t rest)
{
	uint32_t class, weight, count = 0;

	for (class = 0; class < field->count; class ++) {
		if (!(divided->summary & field->summaries[class]))
			continue;
		weight = weigh_both(search, divided, class_vector(search, field, class), field->summaries[class]);
		if (weight && rest + weight > search->floor)
			field->children[count++] = (struct child){class, weight};
	}
	qsort(field->children, count, sizeof(*field->children), compare_children);
	return count;
}

/* Whether all that `class` takes of `set`, `other` takes too. */
static bool takes_no_more(struct search *search, const struct field *field, const struct weir_vector *set,
			  uint32_t class, uint32_t other)
{
	const struct weir_vector *a = class_vector(search, field, class), *b = class_vector(search, field, other);
	unsigned int i;

	for (uint64_t bits = set->summary & field->summaries[class]; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		search->work++;
		if (set->word[i] & a->word[i] & ~b->word[i])
			return false;
	}
	return true;
}

/* How many earlier classes a class is compared with: identical ones tend to follow each other. */
#define COMPARED_MAX 64

static bool was_visited(struct search *search, const struct field *field, const struct weir_vector *set, uint32_t child)
{
	uint32_t earlier, first = child > COMPARED_MAX ? child - COMPARED_MAX : 0;

	for (earlier = first; earlier < child; earlier++) {
		if (takes_no_more(search, field, set, field->children[child].class, field->children[earlier].class))
			return true;
	}
	return false;
}

static void explore(struct search *search, const struct weir_vector *set, uint32_t fields);

static void branch(struct search *search, const struct weir_vector *set, const struct survey *survey, uint32_t most)
{
	unsigned int f = choose_field(survey);
	struct field *field = &search->fields[f];
	struct weir_vector divided = *set, next;
	uint32_t rest = survey->weight - survey->divided[f];
	uint32_t count, i;

	weir_vector_subtract(&divided, &field->common);
	count = list_children(search, field, &divided, rest);
	for (i = 0; i < count && !search->is_over; i++) {
		if (most <= search->floor || rest + field->children[i].weight <= search->floor)
			break;
		if (was_visited(search, field, &divided, i))
			continue;
		next = *set;
		weir_vector_and(&next, class_vector(search, field, field->children[i].class));
		explore(search, &next, survey->fields & ~(1u << f));
	}
}

/* Find the heaviest part of `set` that the fields left to decide can let through together. */
static void explore(struct search *search, const struct weir_vector *set, uint32_t fields)
{
	struct survey seen;
	uint32_t most;

	survey(search, set, fields, &seen);
	if (search->work > search->patience)
		search->is_over = true;
	if (search->is_over || seen.weight <= search->floor)
		return;
	if (!seen.fields) {
		search->floor = seen.weight;
		search->heaviest = *set;
		search->is_over = seen.weight > search->limit;
		return;
	}
	most = most_possible(search, set, &seen);
	if (most > search->floor)
		branch(search, set, &seen, most);
}

/* ---- fields ---- */

static int add_class(struct field *field, uint32_t number, bool *is_listed)
{
	uint32_t *class;

	if (is_listed[number])
		return 0;
	class = weir_array_add((void **)&field->classes, field->count, sizeof(*class));
	if (!class)
		return -ENOMEM;
	*class = number;
	field->count++;
	is_listed[number] = true;
	return 0;
}

static int add_classes(struct field *field, const uint16_t *numbers, size_t count, bool *is_listed)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (add_class(field, numbers[i], is_listed))
			return -ENOMEM;
	}
	return 0;
}

static int add_prefixes(struct field *field, const struct weir_image_prefix *prefixes, size_t count, uint8_t family,
			uint32_t outside, bool *is_listed)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (prefixes[i].prefix.family == family && add_class(field, prefixes[i].vector, is_listed))
			return -ENOMEM;
	}
	return add_class(field, outside, is_listed);
}

static int add_interfaces(struct field *field, const struct weir_image *image, bool *is_listed)
{
	size_t i;

	for (i = 0; i < image->interface_count; i++) {
		if (add_class(field, image->interfaces[i].vector, is_listed))
			return -ENOMEM;
	}
	/* ... and those that may come */
	for (i = 0; i < image->case_count; i++) {
		if (image->cases[i].kind != WEIR_CASE_PATTERN && add_class(field, image->cases[i].vector, is_listed))
			return -ENOMEM;
	}
	return add_class(field, image->config.interface_default, is_listed);
}

static int list_classes(const struct weir_image *image, enum field_number number, struct field *field, bool *is_listed)
{
	const struct weir_classes *classes = image->classes;

	switch (number) {
	case SOURCE4:
	case SOURCE6:
		return add_prefixes(field, image->source_prefixes, image->source_prefix_count,
				    number == SOURCE4 ? 4 : 6, image->source_outside, is_listed);
	case DESTINATION4:
	case DESTINATION6:
		return add_prefixes(field, image->destination_prefixes, image->destination_prefix_count,
				    number == DESTINATION4 ? 4 : 6, image->destination_outside, is_listed);
	case TCP_FLAGS:
		return add_classes(field, classes->tcp_flags, WEIR_BYTE_NONE, is_listed);
	case INTERFACE:
		return add_interfaces(field, image, is_listed);
/* A field that every packet can have, some lack: then that is one more class. */
#define ADD_CLASSES(constant, name, member, highest, none, who)                                                        \
	case constant:                                                                                                 \
		return add_classes(field, classes->member, (none) + (WHO_##who == WHO_EVERY), is_listed);
		WEIR_RANGE_FIELDS(ADD_CLASSES)
	case FIELD_COUNT:
		break;
	}
	return -EINVAL;
}

static int make_field(const struct weir_image *image, enum field_number number, struct field *field)
{
	_cleanup_(weir_freep) bool *is_listed = calloc(image->vector_count, sizeof(*is_listed));
	struct weir_vector beyond;
	uint32_t i;

	if (!is_listed || list_classes(image, number, field, is_listed))
		return -ENOMEM;
	field->summaries = calloc(field->count, sizeof(*field->summaries));
	field->children = calloc(field->count, sizeof(*field->children));
	if (!field->summaries || !field->children)
		return -ENOMEM;
	field->common = image->vectors[field->classes[0]];
	for (i = 0; i < field->count; i++) {
		weir_vector_and(&field->common, &image->vectors[field->classes[i]]);
		weir_vector_or(&field->any, &image->vectors[field->classes[i]]);
	}
	for (i = 0; i < field->count; i++) {
		beyond = image->vectors[field->classes[i]];
		weir_vector_subtract(&beyond, &field->common);
		field->summaries[i] = beyond.summary;
	}
	return 0;
}

/* ---- contexts ---- */

static bool has_ports(unsigned int protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

static bool has_type(unsigned int protocol)
{
	return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
}

static const uint32_t match_fields[FIELD_COUNT] = {
	[SOURCE4] = WEIR_MATCH_SOURCE,		 [SOURCE6] = WEIR_MATCH_SOURCE,
	[DESTINATION4] = WEIR_MATCH_DESTINATION, [DESTINATION6] = WEIR_MATCH_DESTINATION,
	[TCP_FLAGS] = WEIR_MATCH_TCP_FLAGS,	 [INTERFACE] = WEIR_MATCH_INTERFACE,
#define MATCH_FIELD(constant, name, member, highest, none, who) [constant] = WEIR_MATCH_##constant,
	WEIR_RANGE_FIELDS(MATCH_FIELD)};

static struct context make_context(const struct search *search, unsigned int family, unsigned int fragment,
				   unsigned int protocol)
{
	struct context context = {
		.fields = FIELDS_OF_EVERY | 1u << INTERFACE,
		.kind = search->image->classes->kind[family][fragment][protocol],
	};
	unsigned int f;

	context.fields |= family ? 1u << SOURCE6 | 1u << DESTINATION6 : 1u << SOURCE4 | 1u << DESTINATION4;
	if (fragment != WEIR_FRAGMENT_LATER) {
		if (has_ports(protocol))
			context.fields |= FIELDS_WITH_PORTS;
		if (protocol == IPPROTO_TCP)
			context.fields |= 1u << TCP_FLAGS;
		if (has_type(protocol))
			context.fields |= FIELDS_WITH_TYPE;
	}
	context.missing = (FIELDS_WITH_PORTS | 1u << TCP_FLAGS | FIELDS_WITH_TYPE) & ~context.fields;
	for (uint64_t bits = context.fields | context.missing; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		if (!(search->image->config.match_fields & match_fields[f]))
			context.fields &= ~(1u << f), context.missing &= ~(1u << f);
	}
	return context;
}

/* What a packet of this context can meet at all. */
static struct weir_vector context_set(const struct search *search, const struct context *context)
{
	const struct weir_classes *classes = search->image->classes;
	const struct weir_vector *vectors = search->image->vectors;
	struct weir_vector set = vectors[context->kind];
	unsigned int f;

	if (context->missing & 1u << TCP_FLAGS)
		weir_vector_and(&set, &vectors[classes->tcp_flags[WEIR_BYTE_NONE]]);
#define LACK_FIELD(constant, name, member, highest, none, who)                                                         \
	if (context->missing & 1u << constant)                                                                         \
		weir_vector_and(&set, &vectors[classes->member[none]]);
	WEIR_RANGE_FIELDS(LACK_FIELD)
	for (uint64_t bits = context->fields; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		weir_vector_and(&set, &search->fields[f].any);
	}
	weir_vector_and(&set, &search->weighing);
	return set;
}

static int compare_contexts(const void *left, const void *right)
{
	const struct context *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->fields > b->fields) - (a->fields < b->fields);
}

/* The contexts that differ: two when no resource asks for a kind, or for what only some kinds have. */
static int list_contexts(struct search *search)
{
	unsigned int i, count = 0;
	struct context *contexts;

	contexts = search->contexts = calloc(CONTEXTS_MAX, sizeof(*contexts));
	if (!contexts)
		return -ENOMEM;
	for (i = 0; i < CONTEXTS_MAX; i++)
		contexts[i] =
			make_context(search, i / 256 / WEIR_FRAGMENT_KINDS, i / 256 % WEIR_FRAGMENT_KINDS, i % 256);
	qsort(contexts, CONTEXTS_MAX, sizeof(*contexts), compare_contexts);
	for (i = 0; i < CONTEXTS_MAX; i++) {
		if (!count || compare_contexts(&contexts[count - 1], &contexts[i]))
			contexts[count++] = contexts[i];
	}
	search->context_count = count;
	return 0;
}

/* ---- the search ---- */

static int compare_context_weights(const void *left, const void *right)
{
	const struct context *a = left, *b = right;

	return (a->weight < b->weight) - (a->weight > b->weight);
}

/* Weigh each resource by its rules, or each as one. Those without weight are left out of every set. */
static void set_weights(struct search *search, bool counts_rules, uint32_t limit)
{
	const struct weir_image *image = search->image;
	uint32_t r, weight;
	unsigned int plane;

	memset(search->plane, 0, sizeof(search->plane));
	memset(&search->weighing, 0, sizeof(search->weighing));
	search->limit = limit;
	search->planes = 0;
	for (r = 0; r < image->resource_count; r++) {
		weight = counts_rules ? image->resources[image->place[r]].rule_count : 1;
		if (weight)
			weir_vector_add(&search->weighing, r);
		for (plane = 0; plane < WEIGHT_BITS; plane++) {
			if (!(weight >> plane & 1))
				continue;
			search->plane[plane][r / 64] |= 1ull << r % 64;
			if (search->planes <= plane)
				search->planes = plane + 1;
		}
	}
	for (r = 0; r < search->context_count; r++) {
		struct weir_vector set = context_set(search, &search->contexts[r]);

		search->contexts[r].weight = weigh(search, &set);
	}
	qsort(search->contexts, search->context_count, sizeof(*search->contexts), compare_context_weights);
}

/* Search what is heavier than `floor`. False: patience ran out before that was settled. */
static bool search_above(struct search *search, uint32_t floor, uint64_t patience)
{
	struct weir_vector set;
	uint32_t i;

	search->floor = floor;
	search->heaviest.summary = 0;
	search->work = 0;
	search->patience = patience;
	search->is_over = false;
	for (i = 0; i < search->context_count && !search->is_over; i++) {
		if (search->contexts[i].weight <= search->floor)
			break;
		set = context_set(search, &search->contexts[i]);
		explore(search, &set, search->contexts[i].fields);
	}
	return !search->is_over || search->floor > search->limit;
}

/* The most that meets, at best exactly; else, when only that can be proved, the limit. */
static int find_most(struct search *search, bool counts_rules, uint32_t limit, uint32_t *ret_most)
{
	set_weights(search, counts_rules, limit);
	if (!search_above(search, 0, PATIENCE) && !search_above(search, limit, 5 * PATIENCE))
		return -E2BIG;
	*ret_most = search->floor;
	return 0;
}

/* ---- what is said of it ---- */

#define NAMED_MAX 4 /* enough to find the others by */

struct names {
	char text[NAMED_MAX * (WEIR_NAME_BYTES + 4) + 32];
	size_t length;
	uint32_t count;
};

static void add_name(struct names *names, const char *name)
{
	if (names->count++ < NAMED_MAX)
		names->length += (size_t)snprintf(names->text + names->length, sizeof(names->text) - names->length,
						  "%s'%.*s'", names->length ? ", " : "", WEIR_NAME_BYTES - 1, name);
}

static void end_names(struct names *names)
{
	if (names->count > NAMED_MAX)
		snprintf(names->text + names->length, sizeof(names->text) - names->length, " and %u more",
			 names->count - NAMED_MAX);
}

static int too_many_rules(const struct weir_ruleset *ruleset, const struct search *search, struct weir_diag *diag)
{
	const struct weir_place *place = NULL;
	struct names names = {};
	size_t i;

	for (i = 0; i < ruleset->rule_count; i++) {
		if (!ruleset->rules[i].system &&
		    !weir_vector_has(&search->heaviest, search->image->bit[ruleset->rules[i].resource]))
			continue;
		add_name(&names, ruleset->rules[i].name);
		place = &ruleset->rules[i].place;
	}
	end_names(&names);
	return weir_diag_error(
		diag, place, NULL, "narrow the matches of their resources so that fewer share a packet, or drop rules",
		"%u rules can meet on one packet, at most %d may%s: %s", names.count + weir_tracks_connections(ruleset),
		WEIR_PACKET_RULES_MAX,
		weir_tracks_connections(ruleset) ? " (one of them hidden, which follows connections)" : "", names.text);
}

static int too_many_resources(const struct weir_ruleset *ruleset, const struct search *search, struct weir_diag *diag)
{
	const struct weir_place *place = NULL;
	struct names names = {};
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++) {
		if (!weir_vector_has(&search->heaviest, search->image->bit[i]))
			continue;
		add_name(&names, ruleset->resources[i].name);
		place = &ruleset->resources[i].place;
	}
	end_names(&names);
	return weir_diag_error(diag, place, NULL, "narrow their matches so that fewer share a packet, or join some",
			       "%u resources can match one packet, at most %d may: %s", names.count,
			       WEIR_PACKET_RESOURCES_MAX, names.text);
}

static int too_hard(struct weir_diag *diag, const char *what, uint32_t limit)
{
	return weir_diag_error(
		diag, NULL, NULL, "let the matches of resources overlap in fewer fields",
		"cannot prove that at most %u %s meet on one packet: the matches overlap in too many ways", limit,
		what);
}

static int judge(const struct weir_ruleset *ruleset, struct search *search, struct weir_image *image,
		 struct weir_diag *diag)
{
	const uint32_t everywhere = weir_count_system_rules(ruleset), hidden = weir_tracks_connections(ruleset);
	const uint32_t room =
		everywhere + hidden < WEIR_PACKET_RULES_MAX ? WEIR_PACKET_RULES_MAX - everywhere - hidden : 0;
	int err = 0;

	/* The file is refused, and the other search would take as long again. */
	if (find_most(search, true, room, &image->packet_rules_max))
		return too_hard(diag, "rules", room);
	if (image->packet_rules_max > room || everywhere + hidden > WEIR_PACKET_RULES_MAX)
		err = too_many_rules(ruleset, search, diag);
	image->packet_rules_max += everywhere;
	if (find_most(search, false, WEIR_PACKET_RESOURCES_MAX, &image->packet_resources_max))
		err = too_hard(diag, "resources", WEIR_PACKET_RESOURCES_MAX);
	else if (image->packet_resources_max > WEIR_PACKET_RESOURCES_MAX)
		err = too_many_resources(ruleset, search, diag);
	return err;
}

static void free_search(struct search *search)
{
	unsigned int f;

	if (!search)
		return;
	for (f = 0; f < FIELD_COUNT; f++) {
		free(search->fields[f].classes);
		free(search->fields[f].summaries);
		free(search->fields[f].children);
	}
	free(search->contexts);
	free(search);
}

static void free_searchp(struct search **search)
{
	free_search(*search);
}

int weir_compile_meet(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag)
{
	_cleanup_(free_searchp) struct search *search = calloc(1, sizeof(*search));
	unsigned int f;

	if (!search)
		return weir_compile_no_memory(diag);
	search->image = image;
	for (f = 0; f < FIELD_COUNT; f++) {
		if (make_field(image, f, &search->fields[f]))
			return weir_compile_no_memory(diag);
	}
	if (list_contexts(search))
		return weir_compile_no_memory(diag);
	return judge(ruleset, search, image, diag);
}
