// SPDX-License-Identifier: GPL-2.0-only
/*
 * The search of meet.c for the heaviest packet: upper bounds for a subset of all packets, and the choice of the subset
 * to search next.
 */
#include <stdlib.h>

#include "compile/build_steps.h"
#include "compile/meet.h"

/* ---- weighing ---- */

/* The weight of the intersection of `set` and `other`, over the given words. */
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

uint32_t weir_meet_weigh(struct search *search, const struct weir_vector *set)
{
	return weigh_both(search, set, set, set->summary);
}

static const struct weir_vector *class_vector(const struct search *search, const struct field *field, uint32_t class)
{
	return &search->image->vectors[field->classes[class]];
}

/* The largest part of `set` that one class admits, by weight. */
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

/* How the undecided fields divide a set of resources. */
struct survey {
	uint32_t weight;	       /* of the set */
	uint32_t fields;	       /* the fields that divide it */
	uint32_t divided[FIELD_COUNT]; /* weight of the resources that not all classes of the field admit */
	uint32_t crowd[FIELD_COUNT];   /* the largest part of those that one class admits */
};

/* If one class of a field admits the whole set, the field is decided: no other choice is better. */
static void survey(struct search *search, const struct weir_vector *set, uint32_t fields, struct survey *survey)
{
	struct weir_vector divided;
	unsigned int f;

	survey->weight = weir_meet_weigh(search, set);
	survey->fields = 0;
	if (survey->weight <= search->floor)
		return;
	for (uint64_t bits = fields; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		divided = *set;
		weir_vector_subtract(&divided, &search->fields[f].common);
		survey->divided[f] = weir_meet_weigh(search, &divided);
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
 * An upper bound for how much of the set can meet. Each resource is charged to one field, and for each field the
 * heaviest class of its share counts: whatever a packet chooses, it cannot meet more. The fields that divide their
 * resources best are charged first, so that thousands of resources with a port each, next to thousands with an address
 * each, weigh two.
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
	return most + weir_meet_weigh(search, &left);
}

/* The field in which even the best class loses the most weight: the earlier a bound applies, the smaller the tree. */
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

/* List the classes that are worth trying, heaviest first. `divided` has the resources that not all classes admit;
 * `rest` is the weight of the others.
 */
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
		next = *set;
		weir_vector_and(&next, class_vector(search, field, field->children[i].class));
		weir_meet_explore(search, &next, survey->fields & ~(1u << f));
	}
}

/* Is there a resource in the set that excepts another one in it, or is excepted? */
static bool find_apart(const struct search *search, const struct weir_vector *set, unsigned int *ret_bit)
{
	for (uint64_t words = search->apart ? set->summary : 0; words; words &= words - 1) {
		const unsigned int i = weir_lowest_bit(words);

		for (uint64_t bits = set->word[i]; bits; bits &= bits - 1) {
			struct weir_vector both = search->apart[i * 64 + weir_lowest_bit(bits)];

			weir_vector_and(&both, set);
			*ret_bit = i * 64 + weir_lowest_bit(bits);
			if (both.summary)
				return true;
		}
	}
	return false;
}

/*
 * The fields of a packet admit all of this set. Find the heaviest part in which no resource excepts another: either a
 * resource is in it, and all that are apart from it are not, or it is not. More parts than packets can meet (a packet
 * cannot choose not to belong to an excepted resource), so the result may be too high, never too low; and a smaller
 * set never has a heavier part, which is what the bounds above rely on.
 */
static void settle(struct search *search, struct weir_vector set)
{
	struct weir_vector with;
	uint32_t weight;
	unsigned int bit;

	while (!search->is_over && (weight = weir_meet_weigh(search, &set)) > search->floor) {
		search->is_over = search->work > search->patience;
		if (!find_apart(search, &set, &bit)) {
			search->floor = weight;
			search->heaviest = set;
			search->is_over |= weight > search->limit;
			return;
		}
		with = set;
		weir_vector_subtract(&with, &search->apart[bit]);
		settle(search, with);
		weir_vector_remove(&set, bit);
	}
}

void weir_meet_explore(struct search *search, const struct weir_vector *set, uint32_t fields)
{
	struct survey seen;
	uint32_t most;

	survey(search, set, fields, &seen);
	if (search->work > search->patience)
		search->is_over = true;
	if (search->is_over || seen.weight <= search->floor)
		return;
	if (!seen.fields) {
		settle(search, *set);
		return;
	}
	most = most_possible(search, set, &seen);
	if (most > search->floor)
		branch(search, set, &seen, most);
}
