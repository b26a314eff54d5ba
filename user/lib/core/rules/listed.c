// SPDX-License-Identifier: GPL-2.0-only
/* Whose packets pass or drop before any rule: `allow` and `deny`, with the files and sets that they name. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "rules/parse.h"

/* ---- lists ---- */

static void add(struct weir_reader *reader, const struct weir_prefix *prefix, bool denies, bool is_of_set)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	struct weir_listed *listed;

	listed = weir_array_add((void **)&ruleset->listed, ruleset->listed_count, sizeof(*listed));
	if (!listed) {
		reader->is_out_of_memory = true;
		return;
	}
	*listed = (struct weir_listed){.prefix = *prefix, .denies = denies, .is_of_set = is_of_set};
	ruleset->listed_count++;
}

/* If there are too many prefixes, or too many invalid ones, this is reported once and no more are read. */
static bool has_room(struct weir_reader *reader)
{
	return !reader->is_out_of_memory && !reader->has_too_many_listed && reader->complaints <= WEIR_MISTAKES_MAX;
}

#define TOO_MANY "the lists contain more than %d prefixes", WEIR_LISTED_MAX
#define TOO_MANY_HINT "merge neighbouring prefixes into larger ones"

static void add_at(struct weir_reader *reader, const struct weir_node *at, const struct weir_prefix *prefix,
		   bool denies, bool is_of_set)
{
	if (!has_room(reader))
		return;
	if (reader->ruleset->listed_count == WEIR_LISTED_MAX) {
		weir_complain(reader, at, TOO_MANY_HINT, TOO_MANY);
		reader->has_too_many_listed = true;
	} else {
		add(reader, prefix, denies, is_of_set);
	}
}

void weir_add_listed(struct weir_reader *reader, const struct weir_node *at, const struct weir_prefix *prefix,
		     bool denies)
{
	add_at(reader, at, prefix, denies, false);
}

/* ---- a set in a list ---- */

/* Add what is left of `prefix` without these prefixes, which it encloses: it is halved until none is inside. */
static void add_rest(struct weir_reader *reader, const struct weir_node *node, const struct weir_prefix *prefix,
		     const struct weir_set_entry *inner, size_t count, bool denies)
{
	struct weir_prefix half = *prefix;
	const uint8_t bit = 0x80 >> prefix->bits % 8;
	size_t low = 0;

	if (!count) {
		add_at(reader, node, prefix, denies, true);
		return;
	}
	if (inner->prefix.bits == prefix->bits)
		return;
	while (low < count && !(inner[low].prefix.address[prefix->bits / 8] & bit))
		low++;
	half.bits++;
	add_rest(reader, node, &half, inner, low, denies);
	half.address[prefix->bits / 8] |= bit;
	add_rest(reader, node, &half, inner + low, count - low, denies);
}

static void add_set(struct weir_reader *reader, const struct weir_node *node, const struct weir_set_use *use,
		    bool denies)
{
	const struct weir_set *set = &reader->ruleset->sets[use->set];
	const uint32_t label = use->label[0] ? weir_find_used_label(reader, node, use) : WEIR_NO_LABEL;
	struct weir_listed_set *used;

	used = weir_array_add((void **)&reader->ruleset->listed_sets, reader->ruleset->listed_set_count, sizeof(*used));
	if (!used) {
		reader->is_out_of_memory = true;
		return;
	}
	*used = (struct weir_listed_set){.use = *use, .denies = denies};
	reader->ruleset->listed_set_count++;
	for (size_t i = 0; i < set->entry_count; i++) {
		const struct weir_set_entry *entry = &set->entries[i];
		size_t end = i + 1;

		if (!use->label[0]) {
			add_at(reader, node, &entry->prefix, denies, true);
		} else if (entry->label == label) {
			while (end < set->entry_count &&
			       weir_prefix_encloses(&entry->prefix, &set->entries[end].prefix))
				end++;
			add_rest(reader, node, &entry->prefix, entry + 1, end - i - 1, denies);
		}
	}
}

/* ---- the list in the rule file ---- */

static bool take_line(struct weir_reader *reader, void *data, const struct weir_list_entry *entry,
		      const struct weir_place *place, const char *line)
{
	const bool *denies = data;

	for (size_t i = 0; i < entry->count; i++) {
		if (reader->ruleset->listed_count == WEIR_LISTED_MAX) {
			weir_complain_of_line(reader, place, line, TOO_MANY_HINT, TOO_MANY);
			reader->has_too_many_listed = true;
			return false;
		}
		add(reader, &entry->prefixes[i], *denies, false);
	}
	return true;
}

/* "@NAME": a set, if one has this name, and otherwise a file. */
static void read_named(struct weir_reader *reader, const struct weir_node *node, const char *word, bool denies)
{
	struct weir_set_use use;
	struct weir_refusal refusal;
	_cleanup_(weir_freep) char *path = NULL;

	if (!weir_names_set(reader->ruleset, word)) {
		free(weir_read_list_file(reader, node, word + 1, take_line, &denies));
		return;
	}
	path = reader->is_own ? NULL : weir_list_path(node, word + 1);
	if (path && !access(path, F_OK))
		weir_complain(reader, node, "give the set another name, or write the file as '@./NAME'",
			      "'%.*s' is both a set and a file", WEIR_SHOWN(word));
	else if (weir_parse_set_use(reader, word, &use, &refusal))
		weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	else
		add_set(reader, node, &use, denies);
}

static void read_entry(struct weir_reader *reader, const struct weir_node *node, bool denies)
{
	const char *field = denies ? "deny" : "allow", *word;
	struct weir_refusal refusal;
	struct weir_prefix prefix;

	if (!weir_read_word(reader, node, field, &word))
		return;
	if (word[0] == '@' && !word[1]) {
		weir_complain(reader, node, "write \"@FILE\", a file with one prefix a line",
			      "'@' without a file name");
	} else if (word[0] == '@') {
		read_named(reader, node, word, denies);
	} else if (weir_parse_prefix(word, &prefix, &refusal)) {
		weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s: %s", field, refusal.message);
	} else {
		weir_add_listed(reader, node, &prefix, denies);
	}
}

void weir_read_listed(struct weir_reader *reader, const struct weir_node *node, bool denies)
{
	if (node->kind != WEIR_NODE_LIST)
		read_entry(reader, node, denies);
	for (size_t i = 0; node->kind == WEIR_NODE_LIST && i < node->count && has_room(reader); i++)
		read_entry(reader, node->items[i], denies);
}

/* ---- sorting all of them ---- */

static int compare_listed(const void *left, const void *right)
{
	const struct weir_listed *a = left, *b = right;
	int order = weir_compare_prefixes(&a->prefix, &b->prefix);

	/* The deny comes first, and then what is in the list without a set, since the first is kept. */
	return order ?: b->denies - a->denies ?: a->is_of_set - b->is_of_set;
}

static void warn_of_everybody(struct weir_reader *reader, const struct weir_listed *listed)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	if (!listed->prefix.bits)
		weir_diag_warning(reader->diag, NULL, NULL, "name smaller networks, unless you mean all of them",
				  "%s: %s is every IPv%u address: %s", listed->denies ? "deny" : "allow",
				  weir_format_prefix(&listed->prefix, text), listed->prefix.family,
				  listed->denies ? "all of their packets are dropped"
						 : "all of their packets pass and meet no rule");
}

void weir_sort_listed(struct weir_reader *reader)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	struct weir_listed *listed = ruleset->listed, *latest_tie = NULL;
	char text[WEIR_PREFIX_TEXT_BYTES];
	size_t kept = 0, ties = 0;

	if (!ruleset->listed_count)
		return;
	/* Those of a kept rule set are sorted already. */
	for (size_t i = 1; i < ruleset->listed_count; i++) {
		if (compare_listed(&listed[i - 1], &listed[i]) > 0) {
			qsort(listed, ruleset->listed_count, sizeof(*listed), compare_listed);
			break;
		}
	}
	for (size_t i = 1; i < ruleset->listed_count; i++) {
		listed[kept].hides_allow |= listed[kept].is_of_set && listed[kept].denies && !listed[i].denies &&
					    !listed[i].is_of_set &&
					    !weir_compare_prefixes(&listed[i].prefix, &listed[kept].prefix);
		if (weir_compare_prefixes(&listed[i].prefix, &listed[kept].prefix)) {
			listed[++kept] = listed[i];
		} else if (listed[i].denies != listed[kept].denies && latest_tie != &listed[kept]) {
			latest_tie = &listed[kept];
			ties++;
		}
	}
	ruleset->listed_count = kept + 1;
	for (size_t i = 0; i < ruleset->listed_count; i++)
		warn_of_everybody(reader, &listed[i]);
	/* Do not warn if there were mistakes: the list will still change. */
	if (ties && !reader->complaints)
		weir_diag_warning(reader->diag, NULL, NULL, "deny wins: remove them from one of the two",
				  "%zu prefix%s both in 'allow' and in 'deny', such as %s", ties,
				  ties == 1 ? " is" : "es are", weir_format_prefix(&latest_tie->prefix, text));
}
