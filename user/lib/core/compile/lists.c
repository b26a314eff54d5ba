// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compilation of allow and deny lists (weir_lists.h has their layout).
 *
 * Prefixes are sorted by address, and prefixes of one address by length. So a prefix follows all that enclose it; in
 * between are only others with the same enclosing prefixes. A walk therefore needs only a stack of the prefixes that
 * are open at an address. One walk per level makes the groups of that level; then all groups are distributed over
 * buckets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "weir_lists.h"

/* The most prefixes that can be open at one address: one of each length, both allowed and denied. */
#define NESTED_MAX (2 * 129)

/* At most this many groups per bucket on average. Halving this number doubles the memory of the buckets, and halves the
 * false positives of a 32-bit filter: 6 % at two.
 */
#define BUCKET_GROUPS 2

#define SALTS 64

struct address {
	uint64_t high, low; /* as in weir_lists.h */
};

struct open_prefix {
	struct address address;
	uint32_t bits;
	uint32_t answer;
};

/* A group that is being made: positions are rests (weir_list_rest); `width` is where the next group begins. */
struct open_step {
	uint64_t end;
	uint32_t answer;
};

/* Groups and boundaries as they are found, before they are distributed. A group's `start` is an index into these
 * boundaries.
 */
struct found {
	struct weir_list_group *groups;
	uint64_t *bounds;
	uint32_t group_count, bound_count;
};

struct walk {
	struct weir_image_lists *lists;
	struct found *found;
	uint32_t level;
	const struct weir_list_cut *cut;
	struct open_prefix outer[NESTED_MAX]; /* prefixes shorter than the cut */
	uint32_t outer_count;
	struct open_step inner[NESTED_MAX]; /* prefixes of the group */
	uint32_t inner_count;
	bool has_group;
	struct address first; /* any address in the group */
	uint64_t width;
	uint32_t around; /* the answer of the prefix that encloses the group */
	uint32_t answer; /* at position 0 */
	uint32_t start;	 /* index of its first boundary */
};

static uint64_t load_word(const uint8_t *bytes)
{
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | bytes[i];
	return word;
}

static struct address prefix_address(const struct weir_prefix *prefix)
{
	struct address address = {.high = load_word(prefix->address)};

	if (prefix->family == 4)
		address.high &= ~0ull << 32;
	else
		address.low = load_word(prefix->address + 8);
	return address;
}

static uint32_t listed_answer(const struct weir_listed *listed)
{
	return listed->denies ? WEIR_LIST_DENIES : WEIR_LIST_ALLOWS;
}

static bool is_enclosed(struct address address, const struct open_prefix *outer)
{
	uint64_t high = address.high ^ outer->address.high, low = address.low ^ outer->address.low;

	if (outer->bits == 0)
		return true;
	if (outer->bits <= 64)
		return high >> (64 - outer->bits) == 0;
	return high == 0 && low >> (128 - outer->bits) == 0;
}

/* ---- roots ---- */

/* Prefixes shorter than a root's 16 bits. Enclosing prefixes come first, and enclosed ones overwrite them. */
static void paint_roots(const struct weir_ruleset *ruleset, struct weir_image_lists *lists)
{
	for (size_t i = 0; i < ruleset->listed_count; i++) {
		const struct weir_listed *listed = &ruleset->listed[i];
		uint64_t first = prefix_address(&listed->prefix).high >> (64 - WEIR_LIST_ROOT_BITS);

		if (listed->prefix.bits >= WEIR_LIST_ROOT_BITS)
			continue;
		for (uint64_t n = 0; n < 1u << (WEIR_LIST_ROOT_BITS - listed->prefix.bits); n++) {
			const uint64_t high = (first + n) << (64 - WEIR_LIST_ROOT_BITS);
			const uint32_t shift = weir_list_root_shift(high);
			uint64_t *word = &lists->roots[weir_list_root_word(high, listed->prefix.family == 6)];

			*word &= ~((uint64_t)WEIR_LIST_ANSWER_MASK << shift);
			*word |= (uint64_t)listed_answer(listed) << shift;
		}
	}
}

/* ---- groups ---- */

/* From `position` on this is the answer, until another one is added. Positions never decrease. */
static void add_bound(struct walk *walk, uint64_t position, uint32_t answer)
{
	struct found *found = walk->found;
	uint32_t before;

	if (position >= walk->width)
		return;
	if (position == 0) {
		walk->answer = answer;
		return;
	}
	/* The last answer for a position is valid: that of an inner prefix, or what remains when several end. */
	if (found->bound_count > walk->start && found->bounds[found->bound_count - 1] >> 8 == position)
		found->bound_count--;
	before = found->bound_count > walk->start ? found->bounds[found->bound_count - 1] & WEIR_LIST_ANSWER_MASK
						  : walk->answer;
	if (before != answer)
		found->bounds[found->bound_count++] = WEIR_LIST_BOUND(position, answer);
}

/* End the innermost open prefix of the group. */
static void end_step(struct walk *walk)
{
	const struct open_step *ended = &walk->inner[--walk->inner_count];

	add_bound(walk, ended->end, walk->inner_count ? walk->inner[walk->inner_count - 1].answer : walk->around);
}

/* A group whose answers all equal the enclosing one is not kept. */
static void end_group(struct walk *walk, struct weir_config *config)
{
	struct found *found = walk->found;
	uint32_t cut = walk->cut->cut;
	uint64_t identity = weir_list_identity(walk->level, cut, walk->first.low);

	while (walk->inner_count)
		end_step(walk);
	if (!walk->has_group)
		return;
	walk->has_group = false;
	if (found->bound_count == walk->start && walk->answer == walk->around)
		return;
	found->groups[found->group_count++] = (struct weir_list_group){
		.key = weir_list_key(cut, walk->first.high),
		.info = walk->answer | identity << WEIR_LIST_IDENTITY_SHIFT |
			(uint64_t)walk->start << WEIR_LIST_START_SHIFT |
			(uint64_t)(found->bound_count - walk->start) << WEIR_LIST_COUNT_SHIFT,
	};
	config->list_levels |= 1u << walk->level;
	walk->lists->roots[weir_list_root_word(walk->first.high, walk->cut->is_ipv6)] |=
		(uint64_t)WEIR_LIST_ROOT_IS_DEEP << weir_list_root_shift(walk->first.high);
}

static void begin_group(struct walk *walk, struct address address)
{
	while (walk->outer_count && !is_enclosed(address, &walk->outer[walk->outer_count - 1]))
		walk->outer_count--;
	walk->has_group = true;
	walk->first = address;
	walk->width = 1ull << (walk->cut->unit - walk->cut->cut);
	walk->around = walk->outer_count ? walk->outer[walk->outer_count - 1].answer : WEIR_LIST_NEITHER;
	walk->answer = walk->around;
	walk->start = walk->found->bound_count;
}

static bool is_of_group(const struct walk *walk, struct address address)
{
	uint32_t cut = walk->cut->cut;

	return walk->has_group && weir_list_key(cut, address.high) == weir_list_key(cut, walk->first.high) &&
	       weir_list_identity(0, cut, address.low) == weir_list_identity(0, cut, walk->first.low);
}

static void walk_prefix(struct walk *walk, const struct weir_listed *listed, struct weir_config *config)
{
	const struct weir_list_cut *cut = walk->cut;
	struct address address = prefix_address(&listed->prefix);
	uint32_t bits = listed->prefix.bits;
	uint64_t position;

	if (bits < cut->cut) {
		while (walk->outer_count && !is_enclosed(address, &walk->outer[walk->outer_count - 1]))
			walk->outer_count--;
		walk->outer[walk->outer_count++] =
			(struct open_prefix){.address = address, .bits = bits, .answer = listed_answer(listed)};
		return;
	}
	if (!is_of_group(walk, address)) {
		end_group(walk, config);
		begin_group(walk, address);
	}
	position = weir_list_rest(cut->cut, address.high, address.low);
	while (walk->inner_count && walk->inner[walk->inner_count - 1].end <= position)
		end_step(walk);
	walk->inner[walk->inner_count++] = (struct open_step){
		.end = position + (1ull << (cut->unit - bits)),
		.answer = listed_answer(listed),
	};
	add_bound(walk, position, listed_answer(listed));
}

static void walk_level(const struct weir_ruleset *ruleset, struct weir_config *config, struct walk *walk)
{
	for (size_t i = 0; i < ruleset->listed_count; i++) {
		const struct weir_prefix *prefix = &ruleset->listed[i].prefix;

		if ((prefix->family == 6) == walk->cut->is_ipv6 && prefix->bits < walk->cut->beyond)
			walk_prefix(walk, &ruleset->listed[i], config);
	}
	end_group(walk, config);
}

/* ---- buckets ---- */

static uint64_t hash_group(const struct weir_list_group *group, uint32_t salt)
{
	return weir_list_hash(group->key, group->info >> WEIR_LIST_IDENTITY_SHIFT & WEIR_LIST_IDENTITY_MASK, salt);
}

static uint32_t bucket_group_count(uint64_t bucket)
{
	return bucket >> WEIR_LIST_BUCKET_COUNT_SHIFT & WEIR_LIST_BUCKET_COUNT_MASK;
}

/* Count the groups of each bucket, and set its filter. Returns false if a bucket has too many. */
static bool count_groups(struct weir_image_lists *lists, const struct found *found, const struct weir_config *config)
{
	memset(lists->buckets, 0, lists->bucket_count * sizeof(*lists->buckets));
	for (uint32_t i = 0; i < found->group_count; i++) {
		uint64_t hash = hash_group(&found->groups[i], config->list_salt);
		uint64_t *bucket = &lists->buckets[weir_list_bucket(hash, config->list_bucket_bits)];

		*bucket += 1u << WEIR_LIST_BUCKET_COUNT_SHIFT;
		*bucket |= 1ull << WEIR_LIST_BUCKET_FILTER_SHIFT
				<< weir_list_filter_bit(hash, config->list_bucket_bits);
		if (bucket_group_count(*bucket) > WEIR_LIST_BUCKET_GROUPS_MAX)
			return false;
	}
	return true;
}

static int make_buckets(struct weir_image_lists *lists, const struct found *found, struct weir_config *config,
			struct weir_diag *diag)
{
	config->list_bucket_bits = 1;
	while (1u << config->list_bucket_bits < found->group_count / BUCKET_GROUPS)
		config->list_bucket_bits++;
	lists->bucket_count = 1u << config->list_bucket_bits;
	lists->buckets = malloc(lists->bucket_count * sizeof(*lists->buckets));
	if (!lists->buckets)
		return weir_compile_no_memory(diag);
	for (config->list_salt = 0; !count_groups(lists, found, config); config->list_salt++)
		if (config->list_salt == SALTS)
			return weir_diag_error(diag, NULL, NULL, "list fewer prefixes, or shorter ones",
					       "the listed prefixes defy %d hash functions", SALTS);
	return 0;
}

/* Sort the groups by bucket; the order within a bucket stays the same. */
static struct weir_list_group *sort_groups(const struct weir_image_lists *lists, const struct found *found,
					   const struct weir_config *config)
{
	struct weir_list_group *sorted = malloc((found->group_count + 1) * sizeof(*sorted));
	_cleanup_(weir_freep) uint32_t *next = malloc(lists->bucket_count * sizeof(*next));
	uint32_t start = 0;

	if (!sorted || !next) {
		free(sorted);
		return NULL;
	}
	for (uint32_t b = 0; b < lists->bucket_count; b++) {
		next[b] = start;
		start += bucket_group_count(lists->buckets[b]);
	}
	for (uint32_t i = 0; i < found->group_count; i++) {
		uint64_t hash = hash_group(&found->groups[i], config->list_salt);

		sorted[next[weir_list_bucket(hash, config->list_bucket_bits)]++] = found->groups[i];
	}
	return sorted;
}

/* Write one bucket's groups and their boundaries. */
static void write_bucket(struct weir_image_lists *lists, uint64_t *bucket, struct weir_list_group *groups,
			 const uint64_t *bounds)
{
	uint32_t count = bucket_group_count(*bucket), at = lists->word_count;
	uint32_t end = at + count * WEIR_LIST_GROUP_WORDS;

	*bucket |= at;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t start = groups[i].info >> WEIR_LIST_START_SHIFT & WEIR_LIST_COUNT_MASK;
		const uint32_t bound_count = groups[i].info >> WEIR_LIST_COUNT_SHIFT & WEIR_LIST_COUNT_MASK;

		groups[i].info &= ~((uint64_t)WEIR_LIST_COUNT_MASK << WEIR_LIST_START_SHIFT);
		groups[i].info |= (uint64_t)end << WEIR_LIST_START_SHIFT;
		memcpy(&lists->words[at], &groups[i], sizeof(groups[i]));
		memcpy(&lists->words[end], &bounds[start], bound_count * sizeof(*bounds));
		at += WEIR_LIST_GROUP_WORDS;
		end += bound_count;
	}
	lists->word_count = end;
}

static int write_words(struct weir_image_lists *lists, const struct found *found, const struct weir_config *config,
		       struct weir_diag *diag)
{
	size_t words = found->group_count * WEIR_LIST_GROUP_WORDS + found->bound_count;
	_cleanup_(weir_freep) struct weir_list_group *sorted = sort_groups(lists, found, config);
	struct weir_list_group *groups = sorted;

	lists->words = malloc((words + 1) * sizeof(*lists->words));
	if (!sorted || !lists->words)
		return weir_compile_no_memory(diag);
	for (uint32_t b = 0; b < lists->bucket_count; b++) {
		write_bucket(lists, &lists->buckets[b], groups, found->bounds);
		groups += bucket_group_count(lists->buckets[b]);
	}
	return 0;
}

/* ---- all of it ---- */

static int find_groups(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
		       struct found *found, struct weir_diag *diag)
{
	size_t count = ruleset->listed_count;

	/* A prefix begins at most one group, and adds at most its two ends to it. */
	found->groups = malloc(count * sizeof(*found->groups));
	found->bounds = malloc(2 * count * sizeof(*found->bounds));
	if (!found->groups || !found->bounds)
		return weir_compile_no_memory(diag);
	for (uint32_t level = 0; level < WEIR_LIST_LEVELS; level++) {
		struct walk walk = {
			.lists = lists,
			.found = found,
			.level = level,
			.cut = &weir_list_cuts[level],
		};

		walk_level(ruleset, config, &walk);
	}
	return 0;
}

int weir_compile_lists(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
		       struct weir_diag *diag)
{
	struct found found = {};
	int err;

	if (!ruleset->listed_count)
		return 0;
	if (ruleset->listed_count > WEIR_LISTED_MAX)
		return weir_diag_error(diag, NULL, NULL, NULL, "%zu listed prefixes are too many: at most %d",
				       ruleset->listed_count, WEIR_LISTED_MAX);
	config->has_lists = 1;
	lists->root_count = WEIR_LIST_ROOT_WORDS;
	lists->roots = calloc(WEIR_LIST_ROOT_WORDS, sizeof(*lists->roots));
	if (!lists->roots)
		return weir_compile_no_memory(diag);
	paint_roots(ruleset, lists);
	err = find_groups(ruleset, config, lists, &found, diag);
	if (!err)
		err = make_buckets(lists, &found, config, diag);
	if (!err)
		err = write_words(lists, &found, config, diag);
	free(found.groups);
	free(found.bounds);
	return err;
}

uint64_t weir_lists_memory(const struct weir_image_lists *lists)
{
	return ((uint64_t)lists->root_count + lists->bucket_count + lists->word_count) * sizeof(uint64_t) +
	       (uint64_t)lists->prefix_count * sizeof(*lists->prefixes);
}

void weir_lists_free(struct weir_image_lists *lists)
{
	free(lists->roots);
	free(lists->buckets);
	free(lists->words);
	free(lists->prefixes);
}

/* ---- single prefixes ----
 *
 * The single prefixes of the allow and deny lists, for map `listed_prefixes` (packet/timed.h). If a timed entry and a
 * list disagree, the program looks up there how long the prefix was that decided.
 */

static bool encloses(const struct weir_listed_prefix *outer, const struct weir_listed_prefix *inner)
{
	if (outer->is_ipv6 != inner->is_ipv6 || outer->bits > inner->bits)
		return false;
	if (outer->bits > 64)
		return outer->high == inner->high && !((outer->low ^ inner->low) >> (128 - outer->bits));
	return !outer->bits || !((outer->high ^ inner->high) >> (64 - outer->bits));
}

/* Prefixes are sorted, so the prefix that encloses one is the one before it, or encloses that one. */
int weir_compile_listed(const struct weir_ruleset *ruleset, struct weir_config *config, struct weir_image_lists *lists,
			struct weir_diag *diag)
{
	uint32_t i, parent;

	if (!config->has_timed || !ruleset->listed_count)
		return 0;
	lists->prefixes = calloc(ruleset->listed_count, sizeof(*lists->prefixes));
	if (!lists->prefixes)
		return weir_compile_no_memory(diag);
	lists->prefix_count = ruleset->listed_count;
	for (i = 0; i < lists->prefix_count; i++) {
		const struct weir_prefix *listed = &ruleset->listed[i].prefix;
		struct weir_listed_prefix *prefix = &lists->prefixes[i];

		prefix->high = load_word(listed->address);
		prefix->low = load_word(listed->address + 8);
		prefix->bits = listed->bits;
		prefix->is_ipv6 = listed->family == 6;
		config->listed_ipv4 += !prefix->is_ipv6;
		config->listed_ipv6 += prefix->is_ipv6;
		for (parent = i; parent && !encloses(&lists->prefixes[parent - 1], prefix);)
			parent = lists->prefixes[parent - 1].parent;
		prefix->parent = parent;
	}
	return 0;
}
