// SPDX-License-Identifier: GPL-2.0-only
/* The sets in flow keys: for each a trie that finds the label of an address, beside the tries of `match`. */
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "rules/scalars.h"
#include "tables/labels.h"

struct key_sets {
	const struct weir_set *sets[WEIR_KEY_SETS_MAX]; /* by number minus 1 */
	uint32_t count;
	uint64_t labels;
};

static int add_sets(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule, struct key_sets *keys,
		    struct weir_diag *diag)
{
	const struct weir_flow *flow = weir_flow_of(ruleset, rule);

	for (int place = WEIR_KEY_PLACE_SOURCE; place <= WEIR_KEY_PLACE_DESTINATION; place++) {
		const char *name = weir_flow_set(flow, place);
		const struct weir_set *set = name ? weir_find_set(ruleset, name, strlen(name)) : NULL;
		uint32_t i = 0;

		if (!set)
			continue;
		while (i < keys->count && keys->sets[i] != set)
			i++;
		if (i == WEIR_KEY_SETS_MAX)
			return weir_diag_error(diag, &rule->place, NULL, "join sets into one, with labels of both",
					       "flow keys have more than %d sets", WEIR_KEY_SETS_MAX);
		if (i < keys->count)
			continue;
		keys->sets[keys->count++] = set;
		keys->labels += set->label_count;
	}
	return 0;
}

/* The trie returns the longest prefix's label, and one with the label of the prefix that encloses it only makes the
 * trie deeper. In sorted order the enclosing prefixes form a stack.
 */
static int add_trie(struct weir_image *image, const struct weir_set *set, uint32_t first_label, uint32_t ret_roots[2])
{
	_cleanup_(weir_freep) struct weir_image_prefix *entries = calloc(set->entry_count + 1, sizeof(*entries));
	const struct weir_set_entry *stack[130]; /* prefixes of 0 to 128 bits */
	size_t depth = 0;
	uint32_t count = 0;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < set->entry_count; i++) {
		const struct weir_set_entry *entry = &set->entries[i];

		while (depth && !weir_prefix_encloses(&stack[depth - 1]->prefix, &entry->prefix))
			depth--;
		if (!depth || stack[depth - 1]->label != entry->label)
			entries[count++] = (struct weir_image_prefix){entry->prefix, first_label + entry->label};
		stack[depth++] = entry;
	}
	return weir_compile_prefixes(image, entries, count, 0, ret_roots);
}

/* Room for the labels' hashes, which the loader knows, and their weights. Number 0 is that of addresses without a
 * label. No load has them in element 0, because label_first is 0 where there are none.
 */
static int add_room(struct weir_image *image, const struct key_sets *keys)
{
	const uint32_t first = image->prefix_node_count ?: 1;
	const uint32_t count = first + image->labels->count / WEIR_LABELS_PER_NODE + 1;
	struct weir_label_node *nodes;
	uint64_t number = 1;

	for (; image->prefix_node_count < count; image->prefix_node_count++)
		if (!weir_array_add((void **)&image->prefix_nodes, image->prefix_node_count,
				    sizeof(*image->prefix_nodes)))
			return -ENOMEM;
	image->config.label_first = first;
	nodes = (struct weir_label_node *)&image->prefix_nodes[first];
	for (uint32_t i = 0; i < keys->count; i++)
		for (size_t k = 0; k < keys->sets[i]->label_count; k++, number++)
			nodes[number / WEIR_LABELS_PER_NODE].weight[number % WEIR_LABELS_PER_NODE] =
				keys->sets[i]->labels[k].weight;
	return 0;
}

int weir_compile_labels(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag)
{
	struct key_sets keys = {};
	struct weir_key_labels *labels;
	int err = 0;

	for (size_t i = 0; !err && i < ruleset->rule_count; i++)
		err = add_sets(ruleset, &ruleset->rules[i], &keys, diag);
	if (err || !keys.count)
		return err;
	image->labels = labels = calloc(1, weir_labels_bytes(keys.labels));
	if (!labels)
		return weir_compile_no_memory(diag);
	labels->version = WEIR_LABELS_VERSION;
	labels->set_count = keys.count;
	for (uint32_t i = 0; !err && i < keys.count; i++) {
		const struct weir_set *set = keys.sets[i];

		strncpy(labels->sets[i], set->name, sizeof(labels->sets[i]) - 1);
		err = add_trie(image, set, labels->count + 1, image->label_root[i + 1]);
		for (size_t k = 0; k < set->label_count; k++, labels->count++)
			memcpy(labels->label[labels->count].text, set->labels[k].text, strlen(set->labels[k].text));
	}
	return err || add_room(image, &keys) ? weir_compile_no_memory(diag) : 0;
}

uint32_t weir_number_key_sets(const struct weir_key_labels *labels, const struct weir_flow *flow)
{
	uint32_t numbers = 0;

	for (int place = WEIR_KEY_PLACE_SOURCE; place <= WEIR_KEY_PLACE_DESTINATION; place++) {
		const char *name = weir_flow_set(flow, place);

		for (uint32_t i = 0; name && labels && i < labels->set_count; i++)
			if (!strcmp(labels->sets[i], name))
				numbers |= WEIR_KEY_SET(place, i + 1);
	}
	return numbers;
}
