// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matching: each value of each field has the set of resources that accept it. Values with the same set share one
 * vector, whatever their field; the program ANDs one vector per field.
 */
#include <fnmatch.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/matching.h"
#include "rules/scalars.h"

/* ---- interfaces ---- */

/* Most combinations of patterns that one interface may match; each takes a vector. Chosen, not derived. */
#define COMBINATIONS_MAX 1024

struct name_use {
	const char *name;
	uint32_t bit;
};

/* Resources with the same interface words, some of which are patterns. */
struct interface_group {
	const struct weir_match *match; /* of the first resource */
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
		return weir_diag_error(matching->diag, NULL, NULL, "give more resources the same list",
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
		const struct weir_match *match = &weir_match_resource_of(matching, bit)->match;
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

/* Two names may belong to one interface: its own, and an alternative name that the kernel knows. */
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
	return weir_match_number_vector(matching, &both, &image->interfaces[i].vector);
}

/* The names among the words, whether the interfaces exist now or appear later. */
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
		err = weir_match_number_vector(matching, &accepting, &added->vector);
		if (!err && ifindex)
			err = add_interface(matching, ifindex, &accepting);
		for (size_t n = i; !err && !ifindex && n < next; n++) /* a warning for each resource that names it */
			weir_diag_warning(matching->diag, &weir_match_resource_of(matching, uses->names[n].bit)->place,
					  NULL, NULL,
					  "resource '%s' matches nothing on interface '%s': it does not exist now",
					  weir_match_resource_of(matching, uses->names[n].bit)->name, name);
	}
	return err;
}

static bool may_begin_alike(const char *a, const char *b)
{
	size_t plain_a = strcspn(a, "*?[\\"), plain_b = strcspn(b, "*?[\\");

	return !strncmp(a, b, plain_a < plain_b ? plain_a : plain_b);
}

/* False if no name can match patterns of both. */
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
 * Add all combinations of `groups` with later groups that one interface may match. So the vector of every later
 * interface exists, and no packet can match more than weir_compile_meet has proved.
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
					       "the patterns of 'interface' can match in more than %d combinations",
					       COMBINATIONS_MAX);
		added = add_case(matching->image, WEIR_CASE_GROUPS);
		if (!added)
			return weir_compile_no_memory(matching->diag);
		memcpy(added->groups, groups, sizeof(added->groups));
		added->groups[g / 64] |= 1ull << g % 64;
		weir_vector_or(&joined, &uses->groups[g].resources);
		err = weir_match_number_vector(matching, &joined, &added->vector);
		if (!err) {
			const struct weir_interface_case here = *added; /* copied, since adding others moves it */

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
		err = weir_match_number_vector(matching, &uses.indifferent, &image->config.interface_default);
	if (err)
		return err;
	/* In use even if none of the named interfaces exists: the default vector keeps their resources out. */
	if (image->config.interface_default)
		image->config.match_fields |= WEIR_MATCH_INTERFACE;
	err = match_names(matching, &uses, options);
	return err ? err : match_patterns(matching, &uses);
}

/* Vector 0 has all resources. Classes of unused fields stay 0, and so accept everything. */
static int start_from_all(struct matching *matching)
{
	struct weir_vector all = {};
	uint32_t number;
	size_t bit;

	for (bit = 0; bit < matching->ruleset->resource_count; bit++)
		weir_vector_add(&all, bit);
	return weir_match_number_vector(matching, &all, &number);
}

/* Vectors of places, unlike all others. */
static int match_excepts(struct matching *matching)
{
	const struct weir_ruleset *ruleset = matching->ruleset;
	struct weir_image *image = matching->image;
	int err = 0;

	for (size_t i = 0; i < ruleset->resource_count; i++)
		image->config.has_excepts |= ruleset->resources[i].match.except_count > 0;
	if (!image->config.has_excepts)
		return 0;
	image->except = calloc(ruleset->resource_count, sizeof(*image->except));
	if (!image->except)
		return weir_compile_no_memory(matching->diag);
	for (size_t i = 0; !err && i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;
		struct weir_vector excepted = {};
		uint32_t number = 0;

		for (size_t k = 0; k < match->except_count; k++)
			weir_vector_add(&excepted, match->except[k].resource);
		if (match->except_count)
			err = weir_match_number_vector(matching, &excepted, &number);
		image->except[i] = number;
	}
	return err;
}

int weir_compile_match(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		       struct weir_image *image, struct weir_diag *diag)
{
	struct matching matching = {.ruleset = ruleset, .image = image, .diag = diag};
	_cleanup_(weir_freep) uint32_t *table = calloc(TABLE_SIZE, sizeof(*table));
	int err;

	image->classes = calloc(1, sizeof(*image->classes));
	if (!table || !image->classes || weir_compile_order(ruleset, image))
		return weir_compile_no_memory(diag);
	matching.table = table;
	image->config.vector_words = (ruleset->resource_count + 63) / 64;
	err = start_from_all(&matching);
	if (!err)
		err = weir_match_kind(&matching);
	if (!err)
		err = weir_match_addresses(&matching);
	if (!err)
		err = weir_match_ranges(&matching);
	if (!err)
		err = weir_match_tcp_flags(&matching);
	if (!err)
		err = match_interfaces(&matching, options);
	return err ? err : match_excepts(&matching);
}

/* ---- interfaces that appear later ---- */

struct meaning {
	uint64_t meant[WEIR_INTERFACE_GROUPS_MAX / 64], excepted[WEIR_INTERFACE_GROUPS_MAX / 64];
};

bool weir_interface_cases_find(const struct weir_interface_case *cases, uint32_t count, const char *name,
			       uint32_t *ret_vector)
{
	struct meaning meaning = {};

	for (uint32_t i = 0; i < count; i++) {
		if (cases[i].kind == WEIR_CASE_NAME && !strcmp(cases[i].word, name)) {
			*ret_vector = cases[i].vector;
			return true;
		}
		if (cases[i].kind == WEIR_CASE_PATTERN) {
			const bool excepts = cases[i].word[0] == WEIR_WORD_EXCEPTS;
			uint64_t *groups = excepts ? meaning.excepted : meaning.meant;

			if (cases[i].group < WEIR_INTERFACE_GROUPS_MAX && !fnmatch(cases[i].word + excepts, name, 0))
				groups[cases[i].group / 64] |= 1ull << cases[i].group % 64;
		}
	}
	if (!strcmp(name, "lo")) /* as weir_words_mean() */
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(meaning.meant); i++)
		meaning.meant[i] &= ~meaning.excepted[i];
	for (uint32_t i = 0; i < count; i++) {
		if (cases[i].kind != WEIR_CASE_GROUPS || memcmp(cases[i].groups, meaning.meant, sizeof(meaning.meant)))
			continue;
		*ret_vector = cases[i].vector;
		return true;
	}
	return false;
}

int weir_image_add_interface(struct weir_image *image, const char *name, uint32_t ifindex)
{
	uint32_t vector;

	if (!weir_interface_cases_find(image->cases, image->case_count, name, &vector))
		return 0;
	for (uint32_t i = 0; i < image->interface_count; i++)
		if (image->interfaces[i].ifindex == ifindex)
			return 0;
	if (!weir_array_add((void **)&image->interfaces, image->interface_count, sizeof(*image->interfaces)))
		return -ENOMEM;
	image->interfaces[image->interface_count++] = (struct weir_image_interface){ifindex, vector};
	return 0;
}
