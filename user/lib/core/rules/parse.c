// SPDX-License-Identifier: GPL-2.0-only
/* From rule files to a rule set: reading, merging, and checks that concern all files together. */
#include "rules/parse.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "rules/ruleset.h"

enum top_field {
	TOP_SETTINGS,
	TOP_RESOURCES,
	TOP_RULES,
	TOP_BREAKERS,
	TOP_ALLOW,
	TOP_DENY,
	TOP_SETS,
	TOP_LISTS, /* of another program's rules */
	TOP_FIELDS_MAX = TOP_LISTS + WEIR_FOREIGN_NAMES_MAX,
};

static const char *const top_fields[TOP_LISTS] = {"settings", "resources", "rules", "circuitBreakers",
						  "allow",    "deny",	   "sets"};

enum resource_field { RESOURCE_NAME, RESOURCE_MATCH, RESOURCE_FLOW, RESOURCE_PRIORITIZED, RESOURCE_FIELD_COUNT };

static const char *const resource_fields[RESOURCE_FIELD_COUNT] = {"name", "match", "flow", "prioritized"};

/* ---- files ---- */

/* Takes ownership of the text. A document that is not a rule file is treated as one that could not be read. */
static int parse_document(struct weir_reader *reader, char *text, size_t bytes, size_t i)
{
	int err = weir_document_parse(reader->ruleset->file_names[i], text, bytes, reader->is_own,
				      &reader->documents[i], reader->diag);

	if (err || !weir_foreign_reader()->complain_of_envelope(reader, reader->documents[i]))
		return err;
	weir_document_free(reader->documents[i]);
	reader->documents[i] = NULL;
	return -EINVAL;
}

static int read_document(struct weir_reader *reader, const char *path, size_t i)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	char *text = NULL;
	size_t bytes = 0;
	int err;

	ruleset->file_names[i] = strdup(!strcmp(path, "-") ? "stdin" : path);
	if (!ruleset->file_names[i])
		return -ENOMEM;
	ruleset->file_count = i + 1;
	err = weir_read_rule_file(path, ruleset->file_names[i], reader->diag, &text, &bytes);
	if (err)
		return err;
	return parse_document(reader, text, bytes, i);
}

/* Was this file named before, perhaps under another name? Everything in it would be reported as a duplicate. */
static bool is_seen(const char *path, struct stat *seen, size_t i)
{
	if (stat(path, &seen[i]) || !S_ISREG(seen[i].st_mode)) {
		seen[i].st_ino = 0;
		return false;
	}
	for (size_t j = 0; j < i; j++)
		if (seen[j].st_ino == seen[i].st_ino && seen[j].st_dev == seen[i].st_dev)
			return true;
	return false;
}

/* Read as much as possible, so that the mistakes of all files are reported. */
static void read_documents(struct weir_reader *reader, const struct weir_rule_files *files)
{
	_cleanup_(weir_freep) struct stat *seen = calloc(files->count + 1, sizeof(*seen));
	bool has_stdin = false;

	if (!seen) {
		reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < files->count; i++) {
		const bool is_stdin = !strcmp(files->paths[i], "-");
		int err;

		if (!is_stdin && is_seen(files->paths[i], seen, i)) {
			weir_diag_fail(reader->diag, 0, "name it once", "rule file '%s' is named twice",
				       files->paths[i]);
			continue;
		}
		err = has_stdin && is_stdin
			      ? weir_diag_fail(reader->diag, 0, NULL, "standard input can be read only once")
			      : read_document(reader, files->paths[i], i);
		has_stdin |= is_stdin;
		reader->is_incomplete |= err != 0;
		reader->is_out_of_memory |= err == -ENOMEM;
	}
}

/* ---- the parts of one file ---- */

static void check_resource_name(struct weir_reader *reader, const struct weir_node *node, const struct weir_node *value,
				struct weir_ruleset_resource *resource)
{
	const bool is_meant = reader->meant >> RESOURCE_NAME & 1;
	struct weir_refusal refusal;
	const char *word = "";

	/* Rules may refer to the resource by the name that could not be read. */
	reader->is_incomplete |= is_meant;
	if (!value && !is_meant)
		weir_complain(reader, node, "write 'name: NAME': rules refer to it", "the resource has no name");
	else if (value && weir_read_word(reader, value, "name", &word) && weir_check_name(word, &refusal))
		weir_complain(reader, value, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	/* Kept even if it is refused, since rules that use it are not wrong because of that. */
	resource->name = strdup(word);
	if (!resource->name)
		reader->is_out_of_memory = true;
}

static void read_resource(struct weir_reader *reader, const struct weir_node *node)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	const struct weir_node *values[RESOURCE_FIELD_COUNT], **pointed_at, **excepts;
	struct weir_ruleset_resource *resource;
	static const char *const words[] = {"false", "true"};
	unsigned int choice;

	weir_read_fields(reader, node, "resource", resource_fields, RESOURCE_FIELD_COUNT, false, values);
	if (node->kind != WEIR_NODE_MAP)
		return;
	resource = weir_array_add((void **)&ruleset->resources, ruleset->resource_count, sizeof(*resource));
	pointed_at = weir_array_add((void **)&reader->resource_nodes, ruleset->resource_count, sizeof(*pointed_at));
	excepts = weir_array_add((void **)&reader->except_nodes, ruleset->resource_count, sizeof(*excepts));
	if (!resource || !pointed_at || !excepts) {
		reader->is_out_of_memory = true;
		return;
	}
	ruleset->resource_count++;
	*pointed_at = values[RESOURCE_NAME] ?: node;
	resource->place = (*pointed_at)->place;
	check_resource_name(reader, node, values[RESOURCE_NAME], resource);
	if (values[RESOURCE_MATCH])
		weir_read_match(reader, values[RESOURCE_MATCH], &resource->match);
	if (values[RESOURCE_FLOW])
		weir_read_flow(reader, values[RESOURCE_FLOW], &resource->match, &resource->flow);
	if (values[RESOURCE_PRIORITIZED] && weir_read_choice(reader, values[RESOURCE_PRIORITIZED], "prioritized", words,
							     ARRAY_SIZE(words), false, &choice))
		resource->is_prioritized = choice;
}

/* Explain "-name: dns", which is a map with a field "-name". A character that only looks like a blank after the '-'
 * also makes one.
 */
static const char *advice_for_list(const struct weir_node *node)
{
	if (node->kind == WEIR_NODE_MAP && node->count && node->items[0]->kind == WEIR_NODE_WORD &&
	    node->items[0]->text[0] == '-')
		return "write a plain space after the '-': '- name: ...'";
	return "begin each item with '- '";
}

static void read_list(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      void (*read)(struct weir_reader *, const struct weir_node *))
{
	if (!node)
		return;
	if (node->kind != WEIR_NODE_LIST) {
		weir_complain(reader, node, advice_for_list(node), "'%s' must be a list", field);
		return;
	}
	for (size_t i = 0; i < node->count; i++)
		read(reader, node->items[i]);
}

static bool has_content(const struct weir_document *document)
{
	return document && document->root && document->root->kind != WEIR_NODE_NULL;
}

static void read_top(struct weir_reader *reader, const struct weir_document *document,
		     const struct weir_node *values[TOP_FIELDS_MAX])
{
	const char *const *foreign = weir_foreign_reader()->names;
	const char *fields[TOP_FIELDS_MAX];
	size_t count = TOP_LISTS;

	memcpy(fields, top_fields, sizeof(top_fields));
	while (*foreign && count < TOP_FIELDS_MAX)
		fields[count++] = *foreign++;
	memset(values, 0, TOP_FIELDS_MAX * sizeof(*values));
	/* A file whose root is a list holds another program's rules, in the form that its users keep. */
	if (has_content(document) && document->root->kind != WEIR_NODE_LIST)
		weir_read_fields(reader, document->root, "a rule file", fields, count, true, values);
}

/* Is the file empty, without even a word ('{}', 'rules: []') that says so on purpose? */
static bool is_empty(const struct weir_document *document, const struct weir_node *const top[TOP_FIELDS_MAX])
{
	if (!has_content(document))
		return true;
	for (size_t i = 0; i < TOP_FIELDS_MAX; i++)
		if (top[i])
			return false;
	return document->root->kind == WEIR_NODE_MAP && document->root->count;
}

/* Read the parts that depend on the sets of all files at most. */
static void read_own_parts(struct weir_reader *reader, const struct weir_document *document,
			   const struct weir_node *top[TOP_FIELDS_MAX],
			   const struct weir_node *first_settings[WEIR_SETTING_COUNT])
{
	/* An empty file must not remove all limits at a reload: a failed write leaves such a file behind. If it could
	 * not be read, or has other fields, its mistakes have been reported.
	 */
	if (document && is_empty(document, top) && !(has_content(document) && reader->complaints))
		weir_diag_fail(reader->diag, 0, "for no rules, write '{}' or 'rules: []'; 'rules/' has examples",
			       "rule file '%s' is empty", document->file);
	if (top[TOP_SETTINGS])
		weir_read_settings(reader, top[TOP_SETTINGS], first_settings);
	if (top[TOP_ALLOW])
		weir_read_listed(reader, top[TOP_ALLOW], false);
	if (top[TOP_DENY])
		weir_read_listed(reader, top[TOP_DENY], true);
	read_list(reader, top[TOP_RESOURCES], "resources", read_resource);
}

/* Read the rules under one of the file's names. */
static void read_rules_under(struct weir_reader *reader, const char *name, const struct weir_node *value)
{
	if (value->kind == WEIR_NODE_NULL)
		return;
	if (!strcmp(name, top_fields[TOP_RULES]))
		read_list(reader, value, "rules", weir_read_rule);
	if (!strcmp(name, top_fields[TOP_BREAKERS]))
		read_list(reader, value, name, weir_read_breaker);
	for (const char *const *foreign = weir_foreign_reader()->names; *foreign; foreign++)
		if (!strcmp(name, *foreign))
			weir_foreign_reader()->read_list(reader, value, name);
}

/* Rules are evaluated in the order of the file. */
static void read_rules(struct weir_reader *reader, const struct weir_document *document)
{
	const struct weir_node *root = has_content(document) ? document->root : NULL;

	if (root && root->kind == WEIR_NODE_LIST)
		weir_foreign_reader()->read_list(reader, root, NULL);
	if (!root || root->kind != WEIR_NODE_MAP)
		return;
	for (size_t i = 0; i + 1 < root->count; i += 2)
		if (root->items[i]->kind == WEIR_NODE_WORD)
			read_rules_under(reader, root->items[i]->text, root->items[i + 1]);
}

/* ---- checks over all files ---- */

static int compare_names(const void *left, const void *right)
{
	const struct weir_named *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ?: a->index < b->index ? -1 : a->index > b->index;
}

/* Sort names, and complain about duplicates. */
static void check_unique(struct weir_reader *reader, const char *what, struct weir_named *names, size_t count,
			 const struct weir_node *const *nodes)
{
	const struct weir_named *first = names;

	qsort(names, count, sizeof(*names), compare_names);
	for (size_t i = 1; i < count; i++) {
		const struct weir_node *there = nodes[first->index];

		if (strcmp(names[i].name, first->name))
			first = &names[i];
		else if (first->name[0])
			weir_complain(reader, nodes[names[i].index], "give each its own name",
				      "%s '%.*s' is already defined in %s:%d", what, WEIR_SHOWN(first->name),
				      there->place.file, there->place.line);
	}
}

static void index_resources(struct weir_reader *reader)
{
	struct weir_ruleset *ruleset = reader->ruleset;

	reader->resource_names = calloc(ruleset->resource_count + 1, sizeof(*reader->resource_names));
	reader->resource_rules = calloc(ruleset->resource_count + 1, sizeof(*reader->resource_rules));
	if (!reader->resource_names || !reader->resource_rules) {
		reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < ruleset->resource_count; i++)
		reader->resource_names[i] = (struct weir_named){ruleset->resources[i].name, i};
	check_unique(reader, "resource", reader->resource_names, ruleset->resource_count, reader->resource_nodes);
}

/* A default name counts as given: a rule named 'dns#2' conflicts with the second rule of 'dns'. */
static void check_rule_names(struct weir_reader *reader)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	_cleanup_(weir_freep) struct weir_named *names = calloc(ruleset->rule_count + 1, sizeof(*names));

	if (!names) {
		reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < ruleset->rule_count; i++)
		names[i] = (struct weir_named){ruleset->rules[i].name, i};
	check_unique(reader, "rule", names, ruleset->rule_count, reader->rule_nodes);
}

static bool is_breaker(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_REQUESTS;
}

/* Circuit breakers are evaluated after all rules, wherever they are in the files. */
static void put_breakers_last(struct weir_reader *reader)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	size_t count = ruleset->rule_count, to = 0;
	_cleanup_(weir_freep) struct weir_ruleset_rule *rules = calloc(count + 1, sizeof(*rules));
	_cleanup_(weir_freep) const struct weir_node **nodes = calloc(count + 1, sizeof(*nodes));

	if (!rules || !nodes) {
		reader->is_out_of_memory = true;
		return;
	}
	for (int breakers = 0; breakers <= 1; breakers++) {
		for (size_t i = 0; i < count; i++) {
			if (is_breaker(&ruleset->rules[i]) != breakers)
				continue;
			rules[to] = ruleset->rules[i];
			nodes[to++] = reader->rule_nodes[i];
		}
	}
	if (count) {
		memcpy(ruleset->rules, rules, count * sizeof(*rules));
		memcpy(reader->rule_nodes, nodes, count * sizeof(*nodes));
	}
}

/* A user who writes 'prioritized' expects a window that can be occupied. */
static void check_prioritized(struct weir_reader *reader)
{
	const struct weir_ruleset *ruleset = reader->ruleset;

	for (size_t resource = 0; resource < ruleset->resource_count; resource++) {
		size_t rule = 0;

		if (!ruleset->resources[resource].is_prioritized)
			continue;
		while (rule < ruleset->rule_count && !ruleset->rules[rule].occupies)
			rule++;
		if (rule == ruleset->rule_count)
			weir_warn(reader, reader->resource_nodes[resource],
				  "only rules that are Direct, Reject, with window leap, in packets can be occupied",
				  "'prioritized' has no effect: '%.*s' has no rule whose window can be occupied",
				  WEIR_SHOWN(ruleset->resources[resource].name));
	}
}

static void read_parts(struct weir_reader *reader)
{
	const struct weir_node *first_settings[WEIR_SETTING_COUNT] = {};
	_cleanup_(weir_freep) const struct weir_node *(*top)[TOP_FIELDS_MAX] = NULL;

	top = calloc(reader->document_count + 1, sizeof(*top));
	if (!top) {
		reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < reader->document_count; i++) {
		read_top(reader, reader->documents[i], top[i]);
		if (top[i][TOP_SETS])
			weir_read_sets(reader, top[i][TOP_SETS]);
	}
	for (size_t i = 0; i < reader->document_count && !reader->is_out_of_memory; i++)
		read_own_parts(reader, reader->documents[i], top[i], first_settings);
	if (reader->content && !reader->content->take_lists(reader->content, reader->ruleset))
		weir_diag_fail(reader->diag, 0, NULL, "the lists are not whole");
	/* Rules may use resources of any file, so they are read after all resources. */
	if (reader->is_out_of_memory)
		return;
	index_resources(reader);
	if (!reader->is_out_of_memory)
		weir_read_excepts(reader);
	if (reader->is_out_of_memory)
		return;
	for (size_t i = 0; i < reader->document_count; i++)
		read_rules(reader, reader->documents[i]);
	if (!reader->is_out_of_memory)
		weir_put_system_rules_first(reader);
	if (!reader->is_out_of_memory)
		put_breakers_last(reader);
	weir_finish_settings(reader, first_settings);
	if (!reader->is_out_of_memory)
		check_rule_names(reader);
	if (!reader->is_out_of_memory)
		weir_sort_listed(reader);
	/* The rule that could be occupied may be one that is wrong, or in a file that could not be read. */
	if (!reader->is_out_of_memory && !reader->is_incomplete && !reader->complaints)
		check_prioritized(reader);
	if (!reader->is_incomplete && !reader->complaints && !reader->diag->errors && !reader->ruleset->rule_count &&
	    !reader->ruleset->listed_count)
		weir_diag_warning(reader->diag, NULL, NULL, NULL, "there are no rules: nothing will be limited");
}

static void free_reader(struct weir_reader *reader)
{
	for (size_t i = 0; i < reader->document_count; i++)
		weir_document_free(reader->documents[i]);
	weir_ruleset_free(reader->ruleset);
	free(reader->documents);
	free(reader->resource_names);
	free(reader->resource_nodes);
	free(reader->rule_nodes);
	free(reader->except_nodes);
	free(reader->resource_rules);
	for (size_t i = 0; i < reader->timed_count; i++)
		free(reader->timed[i]);
	free(reader->timed);
}

static int begin_reading(struct weir_reader *reader, size_t documents)
{
	reader->ruleset = calloc(1, sizeof(*reader->ruleset));
	reader->documents = calloc(documents + 1, sizeof(*reader->documents));
	if (!reader->ruleset || !reader->documents)
		return weir_diag_fail(reader->diag, ENOMEM, NULL, "cannot read rule files");
	reader->document_count = documents;
	reader->ruleset->settings = weir_default_settings;
	reader->ruleset->file_names = calloc(documents + 1, sizeof(*reader->ruleset->file_names));
	reader->ruleset->file_texts = calloc(documents + 1, sizeof(*reader->ruleset->file_texts));
	if (!reader->ruleset->file_names || !reader->ruleset->file_texts)
		return weir_diag_fail(reader->diag, ENOMEM, NULL, "cannot read rule files");
	return 0;
}

/* The part of reading that follows once there are documents. `errors` is the number of mistakes reported before. */
static int finish_reading(struct weir_reader *reader, size_t errors, struct weir_ruleset **ret_ruleset)
{
	if (!reader->is_out_of_memory)
		read_parts(reader);
	if (reader->is_out_of_memory)
		return weir_diag_fail(reader->diag, ENOMEM, NULL, "cannot read rule files");
	if (reader->diag->errors > errors)
		return -EINVAL;
	/* For messages about mistakes that are found during compilation. */
	for (size_t i = 0; i < reader->document_count; i++)
		if (reader->documents[i])
			reader->ruleset->file_texts[i] = TAKE_PTR(reader->documents[i]->text);
	*ret_ruleset = TAKE_PTR(reader->ruleset);
	return 0;
}

int weir_ruleset_read(const char *const *paths, size_t path_count, struct weir_ruleset **ret_ruleset,
		      struct weir_diag *diag)
{
	_cleanup_(weir_rule_files_free) struct weir_rule_files files = {};
	_cleanup_(free_reader) struct weir_reader reader = {.diag = diag};
	const size_t errors = diag->errors;
	int err;

	weir_find_rule_files(paths, path_count, &files, diag);
	err = begin_reading(&reader, files.count);
	if (err)
		return err;
	assert(reader.ruleset && reader.ruleset->file_names && reader.documents);
	reader.is_incomplete = files.is_incomplete;
	reader.is_out_of_memory = files.is_out_of_memory;
	if (!reader.is_out_of_memory)
		read_documents(&reader, &files);
	return finish_reading(&reader, errors, ret_ruleset);
}

static int parse(const char *name, const char *text, size_t bytes, bool is_own, struct weir_kept_content *content,
		 struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	_cleanup_(free_reader) struct weir_reader reader = {.diag = diag, .is_own = is_own, .content = content};
	const size_t errors = diag->errors;
	int err = begin_reading(&reader, 1);
	char *copy;

	if (err)
		return err;
	assert(reader.ruleset && reader.ruleset->file_names);
	reader.ruleset->file_names[0] = strdup(name);
	reader.ruleset->file_count = 1;
	copy = strndup(text, bytes);
	if (!copy || !reader.ruleset->file_names[0]) {
		free(copy);
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read '%s'", name);
	}
	err = parse_document(&reader, copy, strlen(copy), 0);
	reader.is_incomplete = err != 0;
	reader.is_out_of_memory = err == -ENOMEM;
	return finish_reading(&reader, errors, ret_ruleset);
}

int weir_ruleset_parse(const char *name, const char *text, size_t bytes, struct weir_ruleset **ret_ruleset,
		       struct weir_diag *diag)
{
	return parse(name, text, bytes, false, NULL, ret_ruleset, diag);
}

int weir_ruleset_parse_own(const char *name, const char *text, size_t bytes, struct weir_kept_content *content,
			   struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	return parse(name, text, bytes, true, content, ret_ruleset, diag);
}
