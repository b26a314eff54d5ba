// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matching: each value of each field gets the set of the resources that accept it. Values accepted by
 * the same set share one vector, whatever their field; the program ANDs one vector a field.
 */
#include "compile/parts.h"

#include <string.h>

#include "base/util.h"
#include "rules/interface_words.h"
#include "rules/values.h"

/* At least twice WEIR_VECTORS_MAX, so that a search ends soon. */
#define TABLE_SIZE (1u << 17)

/* The resources' bits follow image->place: `bit` runs over bits below, and names a resource by its bit. */
struct matching {
	const struct weir_ruleset *ruleset;
	struct weir_image *image;
	struct weir_diag *diag;
	uint32_t *table; /* open addressing: a vector's number + 1 at its hash, 0 for none */
};

static const struct weir_ruleset_resource *resource_of(const struct matching *matching, size_t bit)
{
	return &matching->ruleset->resources[matching->image->place[bit]];
}

static size_t hash_vector(const struct weir_vector *vector)
{
	uint64_t hash = vector->summary;
	unsigned int i;

	for (uint64_t bits = vector->summary; bits; bits &= bits - 1) {
		i = weir_lowest_bit(bits);
		hash = (hash ^ vector->word[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash & (TABLE_SIZE - 1);
}

/* The number of this vector, which is added when it is new. */
static int number_vector(struct matching *matching, const struct weir_vector *vector, uint32_t *ret_number)
{
	struct weir_image *image = matching->image;
	size_t at = hash_vector(vector);
	struct weir_vector *added;

	for (; matching->table[at]; at = (at + 1) & (TABLE_SIZE - 1)) {
		if (memcmp(&image->vectors[matching->table[at] - 1], vector, sizeof(*vector)) == 0) {
			*ret_number = matching->table[at] - 1;
			return 0;
		}
	}
	if (image->vector_count == WEIR_VECTORS_MAX)
		return weir_diag_error(matching->diag, NULL, NULL, "use fewer, or less overlapping, conditions",
				       "the resources' conditions make more than %d different sets of resources",
				       WEIR_VECTORS_MAX);
	added = weir_array_add((void **)&image->vectors, image->vector_count, sizeof(*vector));
	if (!added)
		return weir_compile_no_memory(matching->diag);
	*added = *vector;
	*ret_number = image->vector_count++;
	matching->table[at] = image->vector_count;
	return 0;
}

/* ---- fields whose values are numbers: ports, VLAN, ICMP type, length ---- */

struct range_field {
	enum weir_match_field field;
	size_t ranges, count; /* offsets in struct weir_match */
	size_t classes;	      /* offset in struct weir_classes */
	uint32_t values;      /* 0 to values - 1; the class after these is for packets that have none of them */
};

#define RANGE_FIELD(constant, name, member, highest, none, who)                                                        \
	{                                                                                                              \
		.field = WEIR_MATCH_##constant,                                                                        \
		.ranges = offsetof(struct weir_match, member),                                                         \
		.count = offsetof(struct weir_match, member##_count),                                                  \
		.classes = offsetof(struct weir_classes, member),                                                      \
		.values = (none),                                                                                      \
	},
static const struct range_field range_fields[] = {WEIR_RANGE_FIELDS(RANGE_FIELD)};

/* One end of one range: from this value on, one range of the resource more, or less, is open. */
struct edge {
	uint32_t value;
	uint16_t bit;
	int8_t step;
};

struct edges {
	struct edge *items;
	size_t count;
};

static int compare_edges(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	return (a->value > b->value) - (a->value < b->value);
}

static int add_edge(struct edges *edges, uint32_t value, size_t bit, int step)
{
	struct edge *edge = weir_array_add((void **)&edges->items, edges->count, sizeof(*edge));

	if (!edge)
		return -ENOMEM;
	*edge = (struct edge){.value = value, .bit = bit, .step = step};
	edges->count++;
	return 0;
}

/* The edges of all resources, sorted, and the resources that ask nothing of this field. */
static int list_edges(const struct matching *matching, const struct range_field *field, struct edges *edges,
		      struct weir_vector *indifferent)
{
	const struct weir_range *ranges;
	const char *match;
	size_t count, i, bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++) {
		match = (const char *)&resource_of(matching, bit)->match;
		ranges = *(struct weir_range *const *)(match + field->ranges);
		count = *(const size_t *)(match + field->count);
		if (!count)
			weir_vector_add(indifferent, bit);
		for (i = 0; i < count; i++) {
			if (add_edge(edges, ranges[i].low, bit, 1) || add_edge(edges, ranges[i].high + 1, bit, -1))
				return -ENOMEM;
		}
	}
	if (edges->count)
		qsort(edges->items, edges->count, sizeof(*edges->items), compare_edges);
	return 0;
}

/* Walk over the values from edge to edge; between two edges all values have the same vector. */
static int sweep(struct matching *matching, const struct range_field *field, const struct edges *edges,
		 const struct weir_vector *indifferent)
{
	uint16_t *classes = (uint16_t *)((char *)matching->image->classes + field->classes);
	uint32_t open[WEIR_RESOURCES_MAX] = {}; /* ranges of one resource may overlap */
	struct weir_vector accepting = *indifferent;
	uint32_t value = 0, end, number;
	const struct edge *edge = edges->items, *last = edges->items + edges->count;
	int err;

	while (value < field->values) {
		for (; edge < last && edge->value == value; edge++) {
			open[edge->bit] += edge->step;
			if (open[edge->bit])
				weir_vector_add(&accepting, edge->bit);
			else
				weir_vector_remove(&accepting, edge->bit);
		}
		err = number_vector(matching, &accepting, &number);
		if (err)
			return err;
		end = edge < last && edge->value < field->values ? edge->value : field->values;
		while (value < end)
			classes[value++] = number;
	}
	err = number_vector(matching, indifferent, &number);
	if (err)
		return err;
	classes[field->values] = number;
	return 0;
}

static int match_range(struct matching *matching, const struct range_field *field)
{
	_cleanup_(weir_freep) struct edge *owner = NULL;
	struct weir_vector indifferent = {};
	struct edges edges = {};
	int err;

	err = list_edges(matching, field, &edges, &indifferent);
	owner = edges.items;
	if (err)
		return weir_compile_no_memory(matching->diag);
	if (!edges.count)
		return 0;
	matching->image->config.match_fields |= field->field;
	return sweep(matching, field, &edges, &indifferent);
}

/* ---- TCP flags ---- */

static bool accepts_flags(const struct weir_match *match, unsigned int flags)
{
	size_t i;

	for (i = 0; i < match->tcp_flags_count; i++) {
		if ((flags & match->tcp_flags[i].set) == match->tcp_flags[i].set &&
		    !(flags & match->tcp_flags[i].clear))
			return true;
	}
	return !match->tcp_flags_count;
}

static int match_tcp_flags(struct matching *matching)
{
	const struct weir_ruleset *ruleset = matching->ruleset;
	unsigned int flags;
	bool is_used = false;
	uint32_t number;
	size_t bit;
	int err;

	for (bit = 0; bit < ruleset->resource_count; bit++)
		is_used |= ruleset->resources[bit].match.tcp_flags_count > 0;
	if (!is_used)
		return 0;
	matching->image->config.match_fields |= WEIR_MATCH_TCP_FLAGS;
	for (flags = 0; flags <= WEIR_BYTE_NONE; flags++) {
		struct weir_vector accepting = {};

		for (bit = 0; bit < ruleset->resource_count; bit++) {
			const struct weir_match *match = &resource_of(matching, bit)->match;

			if (flags == WEIR_BYTE_NONE ? !match->tcp_flags_count : accepts_flags(match, flags))
				weir_vector_add(&accepting, bit);
		}
		err = number_vector(matching, &accepting, &number);
		if (err)
			return err;
		matching->image->classes->tcp_flags[flags] = number;
	}
	return 0;
}

/* ---- family, fragment and protocol: three small fields in one table ---- */

struct kinds {
	struct weir_vector family[2], fragment[WEIR_FRAGMENT_KINDS], protocol[256];
};

static void list_kinds(const struct matching *matching, struct kinds *kinds)
{
	const struct weir_match *match;
	unsigned int value;
	size_t bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++) {
		match = &resource_of(matching, bit)->match;
		for (value = 0; value < 2; value++) {
			if (!match->families || match->families >> value & 1)
				weir_vector_add(&kinds->family[value], bit);
		}
		for (value = 0; value < WEIR_FRAGMENT_KINDS; value++) {
			if (!match->fragments || match->fragments >> value & 1)
				weir_vector_add(&kinds->fragment[value], bit);
		}
		for (value = 0; value < 256; value++) {
			if (!match->has_protocol || match->protocol[value / 8] >> value % 8 & 1)
				weir_vector_add(&kinds->protocol[value], bit);
		}
	}
}

static bool has_kind_conditions(const struct weir_ruleset *ruleset)
{
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		if (match->families || match->fragments || match->has_protocol)
			return true;
	}
	return false;
}

static int match_kind(struct matching *matching)
{
	_cleanup_(weir_freep) struct kinds *kinds = NULL;
	struct weir_classes *classes = matching->image->classes;
	unsigned int i, family, fragment, protocol;
	struct weir_vector accepting;
	uint32_t number;
	int err;

	if (!has_kind_conditions(matching->ruleset))
		return 0;
	kinds = calloc(1, sizeof(*kinds));
	if (!kinds)
		return weir_compile_no_memory(matching->diag);
	list_kinds(matching, kinds);
	matching->image->config.match_fields |= WEIR_MATCH_KIND;
	for (i = 0; i < 2 * WEIR_FRAGMENT_KINDS * 256; i++) {
		protocol = i % 256, fragment = i / 256 % WEIR_FRAGMENT_KINDS, family = i / 256 / WEIR_FRAGMENT_KINDS;
		accepting = kinds->family[family];
		weir_vector_and(&accepting, &kinds->fragment[fragment]);
		weir_vector_and(&accepting, &kinds->protocol[protocol]);
		err = number_vector(matching, &accepting, &number);
		if (err)
			return err;
		classes->kind[family][fragment][protocol] = number;
	}
	return 0;
}

/* ---- prefixes ---- */

struct prefix_use {
	struct weir_prefix prefix;
	uint32_t bit;
};

struct prefix_field {
	enum weir_match_field field;
	size_t prefixes, count; /* offsets in struct weir_match */
};

static const struct prefix_field source_field = {
	WEIR_MATCH_SOURCE,
	offsetof(struct weir_match, source),
	offsetof(struct weir_match, source_count),
};

static const struct prefix_field destination_field = {
	WEIR_MATCH_DESTINATION,
	offsetof(struct weir_match, destination),
	offsetof(struct weir_match, destination_count),
};

/* By family, then address, then length: a prefix comes right after those that enclose it. */
static int compare_prefix_uses(const void *left, const void *right)
{
	const struct prefix_use *a = left, *b = right;

	return weir_compare_prefixes(&a->prefix, &b->prefix);
}

static bool encloses(const struct weir_prefix *outer, const struct weir_prefix *inner)
{
	unsigned int bytes = outer->bits / 8, bits = outer->bits % 8;

	if (outer->family != inner->family || outer->bits > inner->bits)
		return false;
	if (memcmp(outer->address, inner->address, bytes))
		return false;
	return !bits || (outer->address[bytes] ^ inner->address[bytes]) >> (8 - bits) == 0;
}

static int list_prefixes(const struct matching *matching, const struct prefix_field *field, struct prefix_use **uses,
			 size_t *use_count, struct weir_vector *indifferent)
{
	const struct weir_prefix *prefixes;
	struct prefix_use *use;
	const char *match;
	size_t count, i, bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++) {
		match = (const char *)&resource_of(matching, bit)->match;
		prefixes = *(struct weir_prefix *const *)(match + field->prefixes);
		count = *(const size_t *)(match + field->count);
		if (!count)
			weir_vector_add(indifferent, bit);
		for (i = 0; i < count; i++) {
			use = weir_array_add((void **)uses, *use_count, sizeof(*use));
			if (!use)
				return -ENOMEM;
			*use = (struct prefix_use){prefixes[i], bit};
			(*use_count)++;
		}
	}
	if (*use_count)
		qsort(*uses, *use_count, sizeof(**uses), compare_prefix_uses);
	return 0;
}

struct trie {
	struct weir_image_prefix *entries;
	uint32_t count;
};

static int add_entry(struct matching *matching, struct trie *trie, const struct weir_prefix *prefix, uint32_t vector)
{
	struct weir_image_prefix *entry;

	entry = weir_array_add((void **)&trie->entries, trie->count, sizeof(*entry));
	if (!entry)
		return weir_compile_no_memory(matching->diag);
	*entry = (struct weir_image_prefix){*prefix, vector};
	trie->count++;
	return 0;
}

/*
 * The trie answers with the longest prefix alone, so the vector of each holds the resources of those
 * that enclose it too. In sorted order the enclosing ones are a stack.
 */
static int nest_prefixes(struct matching *matching, const struct prefix_use *uses, size_t use_count, uint32_t outside,
			 struct trie *trie)
{
	struct {
		const struct weir_prefix *prefix;
		uint32_t vector;
	} enclosing[130]; /* lengths 0 to 128 */
	struct weir_vector accepting;
	uint32_t parent, number;
	size_t depth = 0, i = 0;
	int err;

	while (i < use_count) {
		const struct weir_prefix *prefix = &uses[i].prefix;

		while (depth && !encloses(enclosing[depth - 1].prefix, prefix))
			depth--;
		parent = depth ? enclosing[depth - 1].vector : outside;
		accepting = matching->image->vectors[parent];
		for (; i < use_count && !weir_compare_prefixes(&uses[i].prefix, prefix); i++)
			weir_vector_add(&accepting, uses[i].bit);
		err = number_vector(matching, &accepting, &number);
		/* An entry that says what the enclosing one says would only make the trie deeper. */
		if (!err && number != parent)
			err = add_entry(matching, trie, prefix, number);
		if (err)
			return err;
		enclosing[depth].prefix = prefix;
		enclosing[depth++].vector = number;
	}
	return 0;
}

/* On failure *trie may hold entries, which the caller owns all the same. */
static int match_prefixes(struct matching *matching, const struct prefix_field *field, uint32_t *ret_outside,
			  struct trie *trie)
{
	_cleanup_(weir_freep) struct prefix_use *uses = NULL;
	struct weir_vector indifferent = {};
	size_t use_count = 0;
	uint32_t outside;
	int err;

	if (list_prefixes(matching, field, &uses, &use_count, &indifferent))
		return weir_compile_no_memory(matching->diag);
	if (!use_count)
		return 0;
	err = number_vector(matching, &indifferent, &outside);
	if (err)
		return err;
	matching->image->config.match_fields |= field->field;
	*ret_outside = outside;
	return nest_prefixes(matching, uses, use_count, outside, trie);
}

static int match_addresses(struct matching *matching)
{
	struct weir_image *image = matching->image;
	struct trie source = {}, destination = {};
	int err;

	err = match_prefixes(matching, &source_field, &image->source_outside, &source);
	image->source_prefixes = source.entries;
	image->source_prefix_count = source.count;
	if (err)
		return err;
	err = match_prefixes(matching, &destination_field, &image->destination_outside, &destination);
	image->destination_prefixes = destination.entries;
	image->destination_prefix_count = destination.count;
	if (!err && (weir_compile_prefixes(image, source.entries, source.count, image->source_outside,
					   image->config.source_root) ||
		     weir_compile_prefixes(image, destination.entries, destination.count, image->destination_outside,
					   image->config.destination_root)))
		err = weir_compile_no_memory(matching->diag);
	return err;
}

/* ---- interfaces ---- */

/* Combinations of patterns that one interface may match: each takes a vector. Chosen, not derived. */
#define COMBINATIONS_MAX 1024

struct name_use {
	const char *name;
	uint32_t bit;
};

/* Resources with the same words, of which some are patterns. */
struct interface_group {
	const struct weir_match *match; /* of the first */
	struct weir_vector resources;
};

struct interface_uses {
	struct name_use *names;
	size_t name_count;
	struct interface_group *groups;
	size_t group_count;
	struct weir_vector indifferent;
	size_t combinations;
};

static void interface_uses_free(struct interface_uses *uses)
{
	free(uses->names);
	free(uses->groups);
}

static int compare_name_uses(const void *left, const void *right)
{
	const struct name_use *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static bool has_same_words(const struct weir_match *a, const struct weir_match *b)
{
	return a->interface_count == b->interface_count &&
	       !memcmp(a->interface, b->interface, a->interface_count * sizeof(*a->interface));
}

static int add_to_group(struct matching *matching, const struct weir_match *match, size_t bit,
			struct interface_uses *uses)
{
	struct interface_group *group;
	size_t i = 0;

	while (i < uses->group_count && !has_same_words(uses->groups[i].match, match))
		i++;
	if (i == WEIR_INTERFACE_GROUPS_MAX)
		return weir_diag_error(matching->diag, NULL, NULL, "write one list, the same for many resources",
				       "the resources have more than %d different lists of interfaces with patterns",
				       WEIR_INTERFACE_GROUPS_MAX);
	if (i == uses->group_count) {
		group = weir_array_add((void **)&uses->groups, uses->group_count, sizeof(*group));
		if (!group)
			return weir_compile_no_memory(matching->diag);
		*group = (struct interface_group){.match = match};
		uses->group_count++;
	}
	weir_vector_add(&uses->groups[i].resources, bit);
	return 0;
}

static int list_interface_words(struct matching *matching, struct interface_uses *uses)
{
	int err = 0;

	for (size_t bit = 0; !err && bit < matching->ruleset->resource_count; bit++) {
		const struct weir_match *match = &resource_of(matching, bit)->match;
		bool has_pattern = false;

		if (!match->interface_count)
			weir_vector_add(&uses->indifferent, bit);
		for (size_t i = 0; i < match->interface_count; i++) {
			struct name_use *use;

			if (weir_word_is_pattern(match->interface[i])) {
				has_pattern = true;
				continue;
			}
			use = weir_array_add((void **)&uses->names, uses->name_count, sizeof(*use));
			if (!use)
				return weir_compile_no_memory(matching->diag);
			*use = (struct name_use){match->interface[i], bit};
			uses->name_count++;
		}
		if (has_pattern)
			err = add_to_group(matching, match, bit, uses);
	}
	if (uses->name_count)
		qsort(uses->names, uses->name_count, sizeof(*uses->names), compare_name_uses);
	return err;
}

static struct weir_interface_case *add_case(struct weir_image *image, enum weir_interface_case_kind kind)
{
	struct weir_interface_case *added = weir_array_add((void **)&image->cases, image->case_count, sizeof(*added));

	if (!added)
		return NULL;
	*added = (struct weir_interface_case){.kind = kind};
	image->case_count++;
	return added;
}

/* A name of many resources is warned of for each. */
static void warn_of_absent(struct matching *matching, const struct name_use *uses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weir_diag_warning(matching->diag, &resource_of(matching, uses[i].bit)->place, NULL, NULL,
				  "resource '%s' matches nothing on interface '%s': there is none now",
				  resource_of(matching, uses[i].bit)->name, uses[i].name);
}

/* Two names may be of one interface: its own, and another that the kernel knows it by. */
static int add_interface(struct matching *matching, uint32_t ifindex, const struct weir_vector *accepting)
{
	struct weir_image *image = matching->image;
	struct weir_vector both = *accepting;
	uint32_t i = 0;

	while (i < image->interface_count && image->interfaces[i].ifindex != ifindex)
		i++;
	if (i < image->interface_count) {
		weir_vector_or(&both, &image->vectors[image->interfaces[i].vector]);
	} else {
		if (!weir_array_add((void **)&image->interfaces, i, sizeof(*image->interfaces)))
			return weir_compile_no_memory(matching->diag);
		image->interface_count++;
	}
	image->interfaces[i].ifindex = ifindex;
	return number_vector(matching, &both, &image->interfaces[i].vector);
}

/* Those names that the words have, whether they are there now or come later. */
static int match_names(struct matching *matching, const struct interface_uses *uses,
		       const struct weir_compile_options *options)
{
	size_t next;
	int err = 0;

	for (size_t i = 0; !err && i < uses->name_count; i = next) {
		const char *name = uses->names[i].name;
		uint32_t ifindex = options->ifindex ? options->ifindex(name, options->ifindex_data) : 0;
		struct weir_interface_case *added = add_case(matching->image, WEIR_CASE_NAME);
		struct weir_vector accepting = uses->indifferent;

		if (!added)
			return weir_compile_no_memory(matching->diag);
		snprintf(added->word, sizeof(added->word), "%s", name);
		for (next = i; next < uses->name_count && !strcmp(uses->names[next].name, name); next++)
			weir_vector_add(&accepting, uses->names[next].bit);
		for (size_t g = 0; g < uses->group_count; g++)
			if (weir_words_mean((const char(*)[WEIR_WANTED_BYTES])uses->groups[g].match->interface,
					    uses->groups[g].match->interface_count, name))
				weir_vector_or(&accepting, &uses->groups[g].resources);
		err = number_vector(matching, &accepting, &added->vector);
		if (!err && ifindex)
			err = add_interface(matching, ifindex, &accepting);
		else if (!err)
			warn_of_absent(matching, &uses->names[i], next - i);
	}
	return err;
}

static bool may_begin_alike(const char *a, const char *b)
{
	size_t plain_a = strcspn(a, "*?[\\"), plain_b = strcspn(b, "*?[\\");

	return !strncmp(a, b, plain_a < plain_b ? plain_a : plain_b);
}

/* False: no name is meant by a pattern of both. */
static bool may_meet(const struct weir_match *a, const struct weir_match *b)
{
	for (size_t i = 0; i < a->interface_count; i++)
		for (size_t j = 0; j < b->interface_count; j++)
			if (weir_word_is_pattern(a->interface[i]) && a->interface[i][0] != WEIR_WORD_EXCEPTS &&
			    weir_word_is_pattern(b->interface[j]) && b->interface[j][0] != WEIR_WORD_EXCEPTS &&
			    may_begin_alike(a->interface[i], b->interface[j]))
				return true;
	return false;
}

static bool may_join(const struct interface_uses *uses, const __u64 *groups, size_t group)
{
	for (size_t i = 0; i < group; i++)
		if (groups[i / 64] >> i % 64 & 1 && !may_meet(uses->groups[i].match, uses->groups[group].match))
			return false;
	return true;
}

/*
 * All combinations of `groups` with later ones that an interface may match. So whatever comes, its vector is there, and
 * no packet can match more than weir_compile_meet has proved.
 */
static int combine(struct matching *matching, struct interface_uses *uses, const __u64 *groups,
		   const struct weir_vector *accepting, size_t first)
{
	int err = 0;

	for (size_t g = first; !err && g < uses->group_count; g++) {
		struct weir_interface_case *added;
		struct weir_vector joined = *accepting;

		if (!may_join(uses, groups, g))
			continue;
		if (++uses->combinations > COMBINATIONS_MAX)
			return weir_diag_error(matching->diag, NULL, NULL, "write patterns that begin differently",
					       "the patterns of 'interface' can be met in more than %d combinations",
					       COMBINATIONS_MAX);
		added = add_case(matching->image, WEIR_CASE_GROUPS);
		if (!added)
			return weir_compile_no_memory(matching->diag);
		memcpy(added->groups, groups, sizeof(added->groups));
		added->groups[g / 64] |= 1ull << g % 64;
		weir_vector_or(&joined, &uses->groups[g].resources);
		err = number_vector(matching, &joined, &added->vector);
		if (!err) {
			const struct weir_interface_case here = *added; /* which moves as others are added */

			err = combine(matching, uses, here.groups, &joined, g + 1);
		}
	}
	return err;
}

static int match_patterns(struct matching *matching, struct interface_uses *uses)
{
	static const __u64 none[WEIR_INTERFACE_GROUPS_MAX / 64];

	for (size_t g = 0; g < uses->group_count; g++) {
		const struct weir_match *match = uses->groups[g].match;

		for (size_t i = 0; i < match->interface_count; i++) {
			struct weir_interface_case *added;

			if (!weir_word_is_pattern(match->interface[i]))
				continue;
			added = add_case(matching->image, WEIR_CASE_PATTERN);
			if (!added)
				return weir_compile_no_memory(matching->diag);
			memcpy(added->word, match->interface[i], sizeof(added->word));
			added->group = g;
		}
	}
	return combine(matching, uses, none, &uses->indifferent, 0);
}

static int match_interfaces(struct matching *matching, const struct weir_compile_options *options)
{
	_cleanup_(interface_uses_free) struct interface_uses uses = {};
	struct weir_image *image = matching->image;
	int err = list_interface_words(matching, &uses);

	if (!err)
		err = number_vector(matching, &uses.indifferent, &image->config.interface_default);
	if (err)
		return err;
	/* In use also when none of the interfaces named exists: the default keeps their resources out. */
	if (image->config.interface_default)
		image->config.match_fields |= WEIR_MATCH_INTERFACE;
	err = match_names(matching, &uses, options);
	return err ? err : match_patterns(matching, &uses);
}

/* Vector 0: all resources. Classes of fields not in use stay 0, and so accept everything. */
static int start_from_all(struct matching *matching)
{
	struct weir_vector all = {};
	uint32_t number;
	size_t bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++)
		weir_vector_add(&all, bit);
	return number_vector(matching, &all, &number);
}

int weir_compile_match(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag)
{
	struct matching matching = {.ruleset = ruleset, .image = image, .diag = diag};
	_cleanup_(weir_freep) uint32_t *table = calloc(TABLE_SIZE, sizeof(*table));
	size_t i;
	int err;

	image->classes = calloc(1, sizeof(*image->classes));
	if (!table || !image->classes || weir_compile_order(ruleset, image))
		return weir_compile_no_memory(diag);
	matching.table = table;
	image->config.vector_words = (ruleset->resource_count + 63) / 64;
	err = start_from_all(&matching);
	if (!err)
		err = match_kind(&matching);
	if (!err)
		err = match_addresses(&matching);
	for (i = 0; !err && i < ARRAY_SIZE(range_fields); i++)
		err = match_range(&matching, &range_fields[i]);
	if (!err)
		err = match_tcp_flags(&matching);
	if (!err)
		err = match_interfaces(&matching, options);
	return err;
}
