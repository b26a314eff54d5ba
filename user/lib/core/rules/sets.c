// SPDX-License-Identifier: GPL-2.0-only
/* Named sets of prefixes, with or without labels, and the words that name them: "@NAME" and "@NAME:LABEL". */
#include <errno.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"
#include "rules/list_file.h"
#include "rules/parse.h"

/* Hash table of the labels of the set that is read; at most half of it is used. */
#define LABEL_SLOT_BITS 18
#define LABEL_SLOTS (1u << LABEL_SLOT_BITS)
_Static_assert(LABEL_SLOTS == 2 * WEIR_SET_LABELS_MAX, "a search for a label ends soon");

enum set_field { SET_FILE, SET_PREFIXES, SET_LABELS, SET_FIELD_COUNT };
enum entry_field { ENTRY_PREFIX, ENTRY_LABEL, ENTRY_WEIGHT, ENTRY_FIELD_COUNT };

static const char *const set_fields[SET_FIELD_COUNT] = {"file", "prefixes", "labels"};
static const char *const entry_fields[ENTRY_FIELD_COUNT] = {"prefix", "label", "weight"};

/* A set while it is read. */
struct draft {
	struct weir_reader *reader;
	struct weir_set *set;
	const char *file; /* the name of its file in messages; NULL: the rule file */
	uint32_t *slots;  /* open addressing: a label's number + 1, 0 for an empty slot */
};

/* ---- labels ---- */

int weir_check_label(const char *text, struct weir_refusal *refusal)
{
	uint32_t code;
	size_t length;

	if (!*text) {
		weir_refuse(refusal, "a prefix of a set with labels has no label");
		return weir_advise(refusal, "write 'PREFIX,LABEL', or leave 'labels: true' out");
	}
	if (strlen(text) >= WEIR_LABEL_BYTES) {
		weir_refuse(refusal, "label '%.*s...' is longer than %d bytes", WEIR_SHOWN(text), WEIR_LABEL_BYTES - 1);
		return weir_advise(refusal, "shorten it");
	}
	for (; *text; text += length) {
		length = weir_utf8_character(text, strlen(text), &code);
		if (!length || weir_is_control(code))
			return weir_refuse(refusal, "a label contains %s",
					   length ? "a control character" : "bytes that are not UTF-8");
	}
	return 0;
}

/* Find the label, or add it. */
static int take_label(struct draft *draft, const char *text, uint32_t *ret_label, struct weir_refusal *refusal)
{
	struct weir_set *set = draft->set;
	/* The digest's low bits alone would put labels that differ in a digit side by side. */
	size_t slot =
		weir_digest(WEIR_DIGEST_BASIS, text, strlen(text)) * 0x9e3779b97f4a7c15ull >> (64 - LABEL_SLOT_BITS);
	struct weir_set_label *added;

	for (; draft->slots[slot]; slot = (slot + 1) % LABEL_SLOTS) {
		if (!strcmp(set->labels[draft->slots[slot] - 1].text, text)) {
			*ret_label = draft->slots[slot] - 1;
			return 0;
		}
	}
	if (set->label_count == WEIR_SET_LABELS_MAX)
		return weir_refuse(refusal, "the set has more than %d labels", WEIR_SET_LABELS_MAX);
	added = weir_array_add((void **)&set->labels, set->label_count, sizeof(*added));
	if (added)
		added->text = strdup(text);
	if (!added || !added->text) {
		draft->reader->is_out_of_memory = true;
		return weir_refuse(refusal, "out of memory");
	}
	*ret_label = set->label_count++;
	draft->slots[slot] = set->label_count;
	return 0;
}

static int take_weight(const char *text, struct weir_set_label *label, struct weir_refusal *refusal)
{
	uint64_t weight;

	if (weir_parse_number(text, 1, WEIR_SET_WEIGHT_MAX, &weight, refusal))
		return -EINVAL;
	if (label->weight && label->weight != weight) {
		weir_refuse(refusal, "label '%.*s' has two weights, %u and %u", WEIR_SHOWN(label->text), label->weight,
			    (unsigned int)weight);
		return weir_advise(refusal, "write it once: it holds for all prefixes with the label");
	}
	label->weight = weight;
	return 0;
}

/* ---- entries ---- */

static int take_entry(struct draft *draft, const struct weir_list_entry *entry, uint32_t line,
		      struct weir_refusal *refusal)
{
	struct weir_reader *reader = draft->reader;
	struct weir_set *set = draft->set;
	uint32_t label = WEIR_NO_LABEL;

	if (set->has_labels &&
	    (weir_check_label(entry->label, refusal) || take_label(draft, entry->label, &label, refusal)))
		return -EINVAL;
	if (set->has_labels && entry->weight[0] && take_weight(entry->weight, &set->labels[label], refusal))
		return -EINVAL;
	for (size_t i = 0; i < entry->count; i++) {
		struct weir_set_entry *added;

		if (reader->set_entries == WEIR_SET_ENTRIES_MAX) {
			reader->has_too_many_entries = true;
			weir_refuse(refusal, "the sets contain more than %d prefixes", WEIR_SET_ENTRIES_MAX);
			return weir_advise(refusal, "merge neighbouring prefixes into larger ones");
		}
		added = weir_array_add((void **)&set->entries, set->entry_count, sizeof(*added));
		if (!added) {
			reader->is_out_of_memory = true;
			return weir_refuse(refusal, "out of memory");
		}
		*added = (struct weir_set_entry){.prefix = entry->prefixes[i], .label = label, .line = line};
		set->entry_count++;
		reader->set_entries++;
	}
	return 0;
}

static bool take_line(struct weir_reader *reader, void *data, const struct weir_list_entry *entry,
		      const struct weir_place *place, const char *line)
{
	struct draft *draft = data;
	struct weir_refusal refusal;

	draft->file = place->file; /* the rule set owns it */
	if (take_entry(draft, entry, place->line, &refusal))
		weir_complain_of_line(reader, place, line, refusal.hint[0] ? refusal.hint : NULL, "%s",
				      refusal.message);
	return !reader->has_too_many_entries;
}

/* Copy a word into a field of the entry. One that is too long is cut, and refused because of that. */
static bool copy_word(struct weir_reader *reader, const struct weir_node *node, enum entry_field field, char *to,
		      size_t bytes)
{
	const char *word;

	if (node && !weir_read_word(reader, node, entry_fields[field], &word))
		return false;
	if (node)
		snprintf(to, bytes, "%s", word);
	return true;
}

/* A prefix, or a map of prefix, label and weight. */
static void read_entry(struct draft *draft, const struct weir_node *node)
{
	const struct weir_node *values[ENTRY_FIELD_COUNT] = {node};
	struct weir_list_entry entry = {.count = 1};
	struct weir_reader *reader = draft->reader;
	struct weir_refusal refusal;
	const char *word;

	if (node->kind == WEIR_NODE_MAP)
		weir_read_fields(reader, node, "entry of a set", entry_fields, ENTRY_FIELD_COUNT, false, values);
	if (!values[ENTRY_PREFIX]) {
		weir_complain(reader, node, "write {prefix: 192.0.2.0/24, label: NAME}", "the entry has no prefix");
		return;
	}
	if (!weir_read_word(reader, values[ENTRY_PREFIX], "prefixes", &word) ||
	    !copy_word(reader, values[ENTRY_LABEL], ENTRY_LABEL, entry.label, sizeof(entry.label)) ||
	    !copy_word(reader, values[ENTRY_WEIGHT], ENTRY_WEIGHT, entry.weight, sizeof(entry.weight)))
		return;
	if (weir_parse_prefix(word, &entry.prefixes[0], &refusal)) {
		weir_complain(reader, values[ENTRY_PREFIX], refusal.hint[0] ? refusal.hint : NULL, "%s",
			      refusal.message);
	} else if (!draft->set->has_labels && (values[ENTRY_LABEL] || values[ENTRY_WEIGHT])) {
		weir_complain(reader, node, "write 'labels: true' in the set",
			      "the entry has a label, and set '%.*s' has none", WEIR_SHOWN(draft->set->name));
	} else if (take_entry(draft, &entry, node->place.line, &refusal)) {
		weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	}
}

/* ---- sorting ---- */

struct ranked {
	struct weir_set_label label;
	uint32_t number;
};

static int compare_labels(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	return strcmp(a->label.text, b->label.text);
}

/* Number the labels in the order of their texts, so that the order of a file makes no difference. */
static void sort_labels(struct draft *draft)
{
	struct weir_set *set = draft->set;
	_cleanup_(weir_freep) struct ranked *ranked = calloc(set->label_count + 1, sizeof(*ranked));
	_cleanup_(weir_freep) uint32_t *rank = calloc(set->label_count + 1, sizeof(*rank));

	if (!ranked || !rank) {
		draft->reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < set->label_count; i++)
		ranked[i] = (struct ranked){set->labels[i], i};
	qsort(ranked, set->label_count, sizeof(*ranked), compare_labels);
	for (size_t i = 0; i < set->label_count; i++) {
		set->labels[i] = ranked[i].label;
		rank[ranked[i].number] = i;
	}
	for (size_t i = 0; i < set->entry_count; i++)
		if (set->entries[i].label != WEIR_NO_LABEL)
			set->entries[i].label = rank[set->entries[i].label];
}

static int compare_entries(const void *left, const void *right)
{
	const struct weir_set_entry *a = left, *b = right;
	int order = weir_compare_prefixes(&a->prefix, &b->prefix);

	return order ?: (a->line > b->line) - (a->line < b->line);
}

static void complain_of_two(struct draft *draft, const struct weir_set_entry *first, const struct weir_set_entry *other)
{
	const struct weir_set *set = draft->set;
	const struct weir_place place = {.file = draft->file ?: set->place.file, .line = other->line, .column = 1};
	char prefix[WEIR_PREFIX_TEXT_BYTES];

	weir_complain_of_line(draft->reader, &place, NULL, "leave one of them out",
			      "%s has two labels: '%.*s' in line %u, and '%.*s'",
			      weir_format_prefix(&other->prefix, prefix), WEIR_SHOWN(set->labels[first->label].text),
			      first->line, WEIR_SHOWN(set->labels[other->label].text));
}

static void sort_entries(struct draft *draft)
{
	struct weir_set_entry *entries = draft->set->entries;
	size_t kept = 0;

	if (!draft->set->entry_count)
		return;
	qsort(entries, draft->set->entry_count, sizeof(*entries), compare_entries);
	for (size_t i = 1; i < draft->set->entry_count; i++) {
		if (weir_compare_prefixes(&entries[i].prefix, &entries[kept].prefix))
			entries[++kept] = entries[i];
		else if (entries[i].label != entries[kept].label)
			complain_of_two(draft, &entries[kept], &entries[i]);
	}
	draft->set->entry_count = kept + 1;
}

/* ---- one set ---- */

const struct weir_set *weir_find_set(const struct weir_ruleset *ruleset, const char *name, size_t bytes)
{
	for (size_t i = 0; i < ruleset->set_count; i++)
		if (strlen(ruleset->sets[i].name) == bytes && !memcmp(ruleset->sets[i].name, name, bytes))
			return &ruleset->sets[i];
	return NULL;
}

static void check_name(struct weir_reader *reader, const struct weir_node *key)
{
	const struct weir_set *before = weir_find_set(reader->ruleset, key->text, strlen(key->text));
	struct weir_refusal refusal;

	if (weir_check_name(key->text, &refusal))
		weir_complain(reader, key, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	else if (strpbrk(key->text, "/.:"))
		weir_complain(reader, key, "leave them out: '@NAME' could be a file, and ':' begins a label",
			      "the name of set '%.*s' contains '/', '.' or ':'", WEIR_SHOWN(key->text));
	else if (before)
		weir_complain(reader, key, "give each its own name", "set '%.*s' is already defined in %s:%d",
			      WEIR_SHOWN(key->text), before->place.file, before->place.line);
}

/* In a text that weir wrote they are beside it (history.c). Returns whether they are sorted. */
static bool take_kept(struct draft *draft, const struct weir_node *node, const struct weir_node *file)
{
	struct weir_reader *reader = draft->reader;
	struct weir_set *set = draft->set;
	const char *name;

	if (file && weir_read_word(reader, file, "file", &name) && !(set->file = strdup(name)))
		reader->is_out_of_memory = true;
	if (!reader->content)
		return true;
	if (!reader->content->take_set(reader->content, set))
		weir_complain(reader, node, NULL, "set '%.*s' is not whole", WEIR_SHOWN(set->name));
	if (!set->file || !reader->content->reads_files)
		return true;
	weir_set_empty(set);
	free(weir_read_list_file(reader, file, set->file, take_line, draft));
	return false;
}

/* Where its prefixes are. */
static void read_content(struct draft *draft, const struct weir_node *node, const struct weir_node *const *values)
{
	const struct weir_node *list = values[SET_PREFIXES];
	struct weir_reader *reader = draft->reader;
	struct weir_set *set = draft->set;
	const char *name;

	if (values[SET_FILE] && weir_read_word(reader, values[SET_FILE], "file", &name))
		set->file = weir_read_list_file(reader, values[SET_FILE], name, take_line, draft);
	if (!values[SET_FILE] == !list && !(reader->meant & (1u << SET_FILE | 1u << SET_PREFIXES)))
		weir_complain(reader, node, "write 'file: PATH' or 'prefixes: [...]'", "set '%.*s' has %s",
			      WEIR_SHOWN(set->name), list ? "both a file and prefixes" : "neither a file nor prefixes");
	if (list && list->kind != WEIR_NODE_LIST)
		weir_complain(reader, list, "begin each item with '- '", "'prefixes' must be a list");
	for (size_t i = 0; list && list->kind == WEIR_NODE_LIST && i < list->count && !reader->has_too_many_entries;
	     i++)
		read_entry(draft, list->items[i]);
	if (!set->entry_count && (list || values[SET_FILE]) && !reader->complaints)
		weir_warn(reader, values[SET_FILE] ?: list, NULL, "set '%.*s' is empty: no address is in it",
			  WEIR_SHOWN(set->name));
}

static void read_set(struct weir_reader *reader, const struct weir_node *key, const struct weir_node *node)
{
	static const char *const words[] = {"false", "true"};
	const struct weir_node *values[SET_FIELD_COUNT] = {};
	_cleanup_(weir_freep) uint32_t *slots = NULL;
	struct draft draft = {.reader = reader};
	unsigned int has_labels = false;

	check_name(reader, key);
	draft.set = weir_array_add((void **)&reader->ruleset->sets, reader->ruleset->set_count, sizeof(*draft.set));
	if (!draft.set || !(draft.set->name = strdup(key->text))) {
		reader->is_out_of_memory = true;
		return;
	}
	reader->ruleset->set_count++;
	draft.set->place = key->place;
	weir_read_fields(reader, node, "set", set_fields, SET_FIELD_COUNT, false, values);
	if (node->kind != WEIR_NODE_MAP)
		return;
	if (values[SET_LABELS])
		weir_read_choice(reader, values[SET_LABELS], "labels", words, ARRAY_SIZE(words), false, &has_labels);
	draft.set->has_labels = has_labels;
	draft.slots = slots = has_labels ? calloc(LABEL_SLOTS, sizeof(*slots)) : NULL;
	if (has_labels && !slots) {
		reader->is_out_of_memory = true;
		return;
	}
	if (!reader->is_own)
		read_content(&draft, key, values);
	else if (take_kept(&draft, key, values[SET_FILE]))
		return;
	if (!reader->is_out_of_memory)
		sort_labels(&draft);
	if (!reader->is_out_of_memory)
		sort_entries(&draft);
}

void weir_read_sets(struct weir_reader *reader, const struct weir_node *node)
{
	if (node->kind != WEIR_NODE_MAP) {
		weir_complain(reader, node, "write 'NAME: {file: PATH}'", "'sets' must be a map of names");
		return;
	}
	for (size_t i = 0; i + 1 < node->count && !reader->is_out_of_memory; i += 2) {
		if (node->items[i]->kind == WEIR_NODE_WORD)
			read_set(reader, node->items[i], node->items[i + 1]);
		else
			weir_complain(reader, node->items[i], "write 'NAME: {file: PATH}'",
				      "the name of a set must be a single value, not %s",
				      weir_kind_name(node->items[i]));
	}
}

/* ---- words that name a set ---- */

bool weir_is_set_use(const char *text)
{
	return text[text[0] == '!'] == '@';
}

bool weir_names_set(const struct weir_ruleset *ruleset, const char *text)
{
	return weir_find_set(ruleset, text + 1, strcspn(text + 1, ":"));
}

int weir_parse_set_use(const struct weir_reader *reader, const char *text, struct weir_set_use *ret_use,
		       struct weir_refusal *reterr_refusal)
{
	const struct weir_ruleset *ruleset = reader->ruleset;
	const char *name = text + 1 + (text[0] == '!'), *label = strchrnul(name, ':'), *nearest;
	const struct weir_set *set = weir_find_set(ruleset, name, label - name);
	struct weir_set_use use = {.set = set ? (size_t)(set - ruleset->sets) : SIZE_MAX, .excepts = text[0] == '!'};

	if (label - name >= WEIR_NAME_BYTES || (*label && weir_check_label(label + 1, reterr_refusal)))
		return weir_refuse(reterr_refusal, "'%.*s' is not '@NAME' or '@NAME:LABEL'", WEIR_SHOWN(text));
	snprintf(use.name, sizeof(use.name), "%.*s", (int)(label - name), name);
	snprintf(use.label, sizeof(use.label), "%s", *label ? label + 1 : "");
	/* The set may be in a file that could not be read; that mistake is more important. */
	if (!set && !reader->is_incomplete) {
		nearest = weir_nearest(use.name, ruleset->sets, ruleset->set_count, sizeof(*ruleset->sets));
		weir_refuse(reterr_refusal, "there is no set '%.*s'", WEIR_SHOWN(use.name));
		if (nearest)
			return weir_advise(reterr_refusal, "did you mean '@%.*s'?", WEIR_SHOWN(nearest));
		return weir_advise(reterr_refusal, "define it: 'sets: {%.*s: {file: PATH}}'", WEIR_SHOWN(use.name));
	}
	if (set && use.label[0] && !set->has_labels) {
		weir_refuse(reterr_refusal, "set '%.*s' has no labels", WEIR_SHOWN(use.name));
		return weir_advise(reterr_refusal, "write 'labels: true' in the set");
	}
	*ret_use = use;
	return 0;
}

const char *weir_format_set_use(const struct weir_set_use *use, char ret_text[WEIR_SET_USE_BYTES])
{
	snprintf(ret_text, WEIR_SET_USE_BYTES, "%s@%s%s%s", use->excepts ? "!" : "", use->name,
		 use->label[0] ? ":" : "", use->label);
	return ret_text;
}

uint32_t weir_find_used_label(struct weir_reader *reader, const struct weir_node *node, const struct weir_set_use *use)
{
	const uint32_t label = weir_set_find_label(&reader->ruleset->sets[use->set], use->label);

	if (label == WEIR_NO_LABEL)
		weir_warn(reader, node, NULL, "no prefix of set '%.*s' has the label '%.*s': this means no address",
			  WEIR_SHOWN(use->name), WEIR_SHOWN(use->label));
	return label;
}
