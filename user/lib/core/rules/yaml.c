// SPDX-License-Identifier: GPL-2.0-only
#include "rules/yaml.h"

#include <errno.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"
#include "rules/scalars.h"
#include "rules/yaml_builder.h"

/* ---- the tree ---- */

static struct weir_node *add_node(struct builder *builder, enum weir_node_kind kind, struct weir_place place)
{
	struct weir_document *document = builder->document;
	struct weir_node **slot, *node;

	slot = weir_array_add((void **)&document->nodes, document->node_count, sizeof(*slot));
	node = calloc(1, sizeof(*node));
	if (!slot || !node) {
		free(node);
		return NULL;
	}
	*node = (struct weir_node){.kind = kind, .document = document, .place = place};
	*slot = node;
	document->node_count++;
	return node;
}

/* Add a node, or the target of an alias, at this place. */
static int attach(struct builder *builder, struct weir_node *node, const struct weir_place *place)
{
	struct weir_node *parent, **slot;

	if (!builder->depth) {
		builder->document->root = node;
		return 0;
	}
	parent = builder->open[builder->depth - 1];
	/* The outermost list or map finally has the weight of everything; it is checked at each step, lest it overflow.
	 */
	parent->weight += node->weight;
	if (!builder->is_own &&
	    (parent->weight > WEIR_YAML_NODES_MAX || builder->document->node_count > WEIR_YAML_NODES_MAX))
		return weir_yaml_mistake(
			builder, place,
			"split it, as rule files are merged; or put addresses in a list file, \"@FILE\"",
			"the file has more than 600000 values");
	slot = weir_array_add((void **)&parent->items, parent->count, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = node;
	parent->count++;
	return 0;
}

static char *token_text(struct fy_token *token)
{
	size_t bytes;
	const char *text = fy_token_get_text(token, &bytes);

	return text ? strndup(text, bytes) : NULL;
}

static int remember_anchor(struct builder *builder, struct fy_token *token, struct weir_node *node)
{
	struct anchor *anchor;

	if (!token)
		return 0;
	if (builder->anchor_count == WEIR_YAML_ANCHORS_MAX)
		return weir_yaml_mistake(builder, &node->place, "repeat the values instead",
					 "the file has more than 1000 anchors");
	anchor = weir_array_add((void **)&builder->anchors, builder->anchor_count, sizeof(*anchor));
	if (!anchor)
		return -ENOMEM;
	anchor->name = token_text(token);
	if (!anchor->name)
		return -ENOMEM;
	anchor->node = node;
	builder->anchor_count++;
	return 0;
}

/* Quoting helps for fields that accept a '!': interfaces and TCP flags, where lists contain alternatives. */
static void advise_tag(const struct weir_document *document, const struct fy_mark *start, const struct fy_mark *end,
		       char *hint, size_t hint_bytes)
{
	struct weir_tcp_flags flags;
	struct weir_refusal ignored;
	char word[40] = "!ack";

	if (start && end && end->input_pos > start->input_pos && end->input_pos <= document->bytes &&
	    end->input_pos - start->input_pos < sizeof(word))
		snprintf(word, sizeof(word), "%.*s", (int)(end->input_pos - start->input_pos),
			 document->text + start->input_pos);
	if (word[1] == '!')
		snprintf(hint, hint_bytes, "leave it out");
	else if (!word[1 + strspn(word + 1, "0123456789abcdefABCDEF.:/,-")] && strpbrk(word, "0123456789:"))
		snprintf(hint, hint_bytes, "%s", WEIR_NO_ALL_BUT);
	else if (!weir_parse_tcp_flags(word, &flags, &ignored))
		snprintf(hint, hint_bytes,
			 "in YAML, a word that begins with '!' is a type; put it in quotes: \"%s\", with other flags "
			 "\"syn,%s\"",
			 word, word);
	else
		snprintf(hint, hint_bytes, "in YAML, a word that begins with '!' is a type; put it in quotes: \"%s\"",
			 word);
}

static int refuse_tag(struct builder *builder, struct fy_token *tag, const struct weir_place *place)
{
	const struct fy_mark *start = tag ? fy_token_start_mark(tag) : NULL, *end = tag ? fy_token_end_mark(tag) : NULL;
	struct weir_place tag_place = *place;
	char hint[256];

	if (!tag)
		return 0;
	if (start && end)
		tag_place = weir_yaml_place_of(builder, start->input_pos, end->input_pos);
	advise_tag(builder->document, start, end, hint, sizeof(hint));
	return weir_yaml_mistake(builder, &tag_place, hint, "rule files have no YAML tags");
}

static int add_word(struct builder *builder, struct fy_event *event)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
	struct fy_token *token = event->scalar.value;
	struct weir_place place = weir_yaml_event_place(builder, event);
	struct weir_node *node = add_node(builder, WEIR_NODE_WORD, place);
	size_t bytes = 0;
	int err;

	if (!node)
		return -ENOMEM;
	node->weight = 1;
	node->text = token ? token_text(token) : strdup("");
	if (!node->text)
		return -ENOMEM;
	if (token)
		fy_token_get_text(token, &bytes);
	if (bytes != strlen(node->text))
		return weir_yaml_mistake(builder, &place, NULL, "a zero byte cannot be part of a value");
	node->is_quoted = token && fy_token_scalar_style(token) != FYSS_PLAIN;
	if (!node->is_quoted)
		for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
			if (!strcmp(node->text, nulls[i]))
				node->kind = WEIR_NODE_NULL;
	err = refuse_tag(builder, event->scalar.tag, &place);
	if (!err)
		err = remember_anchor(builder, event->scalar.anchor, node);
	return err ?: attach(builder, node, &place);
}

static int open_node(struct builder *builder, enum weir_node_kind kind, struct fy_event *event, struct fy_token *tag,
		     struct fy_token *anchor)
{
	struct weir_place place = weir_yaml_event_place(builder, event);
	struct weir_node *node = add_node(builder, kind, place);
	int err;

	if (!node)
		return -ENOMEM;
	if (builder->depth == WEIR_YAML_DEPTH_MAX)
		return weir_yaml_mistake(builder, &place, "rule files need no more than five levels",
					 "lists or maps are nested too deeply");
	err = refuse_tag(builder, tag, &place);
	if (!err)
		err = remember_anchor(builder, anchor, node);
	if (!err)
		builder->open[builder->depth++] = node;
	return err;
}

static int add_alias(struct builder *builder, struct fy_event *event)
{
	struct weir_place place = weir_yaml_event_place(builder, event);
	_cleanup_(weir_freep) char *name = token_text(event->alias.anchor);

	if (!name)
		return -ENOMEM;
	/* The latest anchor of that name: YAML lets a name be reused (1.2, section 7.1). */
	for (size_t i = builder->anchor_count; i-- > 0;) {
		struct weir_node *node = builder->anchors[i].node;

		if (strcmp(builder->anchors[i].name, name))
			continue;
		for (size_t level = 0; level < builder->depth; level++)
			if (builder->open[level] == node)
				return weir_yaml_mistake(builder, &place, NULL, "the alias is inside its own anchor");
		return attach(builder, node, &place);
	}
	return weir_yaml_mistake(builder, &place, "an anchor (&name) must come before its aliases (*name)",
				 "the alias has no anchor");
}

static int start_document(struct builder *builder, struct fy_event *event)
{
	struct weir_place place = weir_yaml_event_place(builder, event);

	if (builder->has_document)
		return weir_yaml_mistake(builder, &place, "put it in a file of its own",
					 "a second document begins here");
	builder->has_document = true;
	return 0;
}

/* Check that libfyaml has read to the end: if it stopped early without an error, rules would silently be lost. */
static int end_stream(struct builder *builder, struct fy_event *event)
{
	const struct fy_mark *mark = fy_event_start_mark(event);
	struct weir_place place;

	if (!mark || mark->input_pos >= builder->document->bytes)
		return 0;
	place = weir_yaml_place_of(builder, mark->input_pos, mark->input_pos + 1);
	return weir_yaml_mistake(builder, &place, NULL, "the YAML parser stopped here, before the end of the file");
}

static int take_event(struct builder *builder, struct fy_event *event)
{
	struct weir_node *node;

	switch (event->type) {
	case FYET_DOCUMENT_START:
		return start_document(builder, event);
	case FYET_SCALAR:
		return add_word(builder, event);
	case FYET_ALIAS:
		return add_alias(builder, event);
	case FYET_SEQUENCE_START:
		return open_node(builder, WEIR_NODE_LIST, event, event->sequence_start.tag,
				 event->sequence_start.anchor);
	case FYET_MAPPING_START:
		return open_node(builder, WEIR_NODE_MAP, event, event->mapping_start.tag, event->mapping_start.anchor);
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		node = builder->open[--builder->depth];
		node->weight++;
		return attach(builder, node, &node->place);
	case FYET_STREAM_END:
		return end_stream(builder, event);
	default:
		return 0;
	}
}

/* ---- text ---- */

static bool is_control(uint32_t code)
{
	return code < ' ' || (code >= 0x7f && code <= 0x9f);
}

/* The position of the first byte that is not UTF-8 (*ret_is_utf8 is false), or of a character that YAML does not allow
 * (*ret_code); `bytes` if there is none.
 */
static size_t find_unprintable(const char *text, size_t bytes, bool *ret_is_utf8, uint32_t *ret_code)
{
	size_t offset = 0, length;

	for (; offset < bytes; offset += length) {
		length = weir_utf8_character(text + offset, bytes - offset, ret_code);
		*ret_is_utf8 = length;
		if (!length || (is_control(*ret_code) && !(*ret_code && strchr("\t\r\n", (int)*ret_code))) ||
		    *ret_code == 0xfffe || *ret_code == 0xffff)
			break;
	}
	return offset;
}

/* Zero bytes usually mean that the text has another encoding. */
static int check_text(struct builder *builder)
{
	static const char resave[] = "save the file as plain UTF-8 text";
	const struct weir_document *document = builder->document;
	bool is_utf8 = true;
	uint32_t code = 0;
	size_t offset = find_unprintable(document->text, document->bytes, &is_utf8, &code);
	struct weir_place place;

	if (offset == document->bytes)
		return 0;
	place = weir_yaml_place_of(builder, offset, offset + 1);
	if (!is_utf8)
		return weir_diag_error(builder->diag, &place, NULL, resave, "byte 0x%02x is not UTF-8 text",
				       (unsigned char)document->text[offset]);
	return weir_diag_error(builder->diag, &place, NULL, code ? "remove it" : resave,
			       "%scharacter U+%04X is not text", is_control(code) ? "control " : "", code);
}

static int skip_comments(struct builder *builder)
{
	const struct weir_document *document = builder->document;
	struct weir_place place;
	bool is_strange;
	size_t open;

	builder->text = strndup(document->text, document->bytes);
	if (!builder->text)
		return -ENOMEM;
	open = weir_blank_comments(builder->text, document->bytes, &is_strange);
	if (open == document->bytes)
		return 0;
	place = weir_yaml_place_of(builder, open, open + 2);
	if (is_strange)
		return weir_yaml_mistake(builder, &place, "remove it, or begin it with '#': this file is read as YAML",
					 "JSON has no comments");
	return weir_yaml_mistake(builder, &place, "write '*/' where it ends",
				 "the comment that begins here is not closed");
}

/* libfyaml reads a bracketed list or map to its end before it reports its start, at some 400 bytes per bracket: eight
 * megabytes of '[' would take three gigabytes. So open brackets are counted first. Brackets in comments and quotes
 * count as well, which matters only if there are hundreds of them and none is closed.
 */
#define OPEN_BRACKETS_MAX 1000

static int check_brackets(struct builder *builder)
{
	const struct weir_document *document = builder->document;
	struct weir_place place;
	unsigned int open = 0;

	for (size_t at = 0; at < document->bytes; at++) {
		const char c = builder->text[at];

		if (c == '[' || c == '{')
			open++;
		else if ((c == ']' || c == '}') && open)
			open--;
		if (open <= OPEN_BRACKETS_MAX)
			continue;
		place = weir_yaml_place_of(builder, at, at + 1);
		return weir_yaml_mistake(builder, &place, "rule files need no more than five levels",
					 "lists or maps are nested too deeply: more than 1000 brackets are open");
	}
	return 0;
}

/* Refuse lines that would keep libfyaml busy for long, to no avail. */
static int check_lines(struct builder *builder)
{
	const struct weir_document *document = builder->document;
	unsigned int directives = 0;
	struct weir_place place;
	size_t next;

	for (size_t start = 0; start < document->bytes; start = next) {
		const char *end = memchr(document->text + start, '\n', document->bytes - start);

		next = end ? (size_t)(end - document->text) + 1 : document->bytes;
		directives += document->text[start] == '%';
		if (next - start <= WEIR_YAML_LINE_BYTES_MAX && directives <= WEIR_YAML_DIRECTIVES_MAX)
			continue;
		place = weir_yaml_place_of(builder, start, start + 1);
		if (directives > WEIR_YAML_DIRECTIVES_MAX)
			return weir_yaml_mistake(builder, &place, "remove them: they have no meaning in rule files",
						 "the file has more than 100 lines that begin with '%'");
		return weir_yaml_mistake(builder, &place,
					 "break the line between values ('jq .' does so for JSON), or put addresses in "
					 "a list file, \"@FILE\"",
					 "the line is longer than 256 KB");
	}
	return 0;
}

/* Report the errors that libfyaml collected. */
static int report_syntax_errors(struct builder *builder, struct fy_diag *syntax)
{
	struct fy_diag_error *error;
	void *iterator = NULL;
	bool was_reported = false;

	while ((error = fy_diag_errors_iterate(syntax, &iterator))) {
		struct weir_syntax_error explained = {.line = error->line, .column = error->column};
		struct weir_place place = {.file = builder->document->file, .width = 1};

		snprintf(explained.message, sizeof(explained.message), "%s", error->msg);
		weir_explain_syntax(builder->text, builder->document->bytes, &explained);
		place.line = explained.line;
		place.column = explained.column;
		weir_diag_error(builder->diag, &place, weir_document_line(builder->document, place.line),
				explained.hint[0] ? explained.hint : NULL, "not valid YAML: %s", explained.message);
		was_reported = true;
	}
	if (!was_reported)
		weir_diag_error(builder->diag, &(struct weir_place){builder->document->file, 1, 1, 1}, NULL, NULL,
				"not valid YAML");
	return -EINVAL;
}

static int build(struct builder *builder, struct fy_parser *parser, struct fy_diag *syntax)
{
	struct fy_event *event;
	int err = fy_parser_set_string(parser, builder->text, builder->document->bytes) ? -ENOMEM : 0;

	while (!err && (event = fy_parser_parse(parser))) {
		err = take_event(builder, event);
		fy_parser_event_free(parser, event);
	}
	if (!err && fy_parser_get_stream_error(parser))
		err = report_syntax_errors(builder, syntax);
	return err;
}

static void discard_output(struct fy_diag *diag, void *user, const char *text, size_t bytes)
{
}

static void parser_destroyp(struct fy_parser **parser)
{
	fy_parser_destroy(*parser);
}

static void fy_diag_destroyp(struct fy_diag **diag)
{
	fy_diag_destroy(*diag);
}

static int parse_text(struct builder *builder)
{
	struct fy_diag_cfg diag_config;
	struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE};
	/* Variables are destroyed in reverse order: the parser releases the diag first. */
	_cleanup_(fy_diag_destroyp) struct fy_diag *syntax = NULL;
	_cleanup_(parser_destroyp) struct fy_parser *parser = NULL;

	fy_diag_cfg_default(&diag_config);
	diag_config.fp = NULL;
	diag_config.output_fn = discard_output;
	diag_config.colorize = false;
	syntax = fy_diag_create(&diag_config);
	if (!syntax)
		return -ENOMEM;
	fy_diag_set_collect_errors(syntax, true);
	config.diag = syntax;
	parser = fy_parser_create(&config);
	if (!parser)
		return -ENOMEM;
	return build(builder, parser, syntax);
}

int weir_document_parse(const char *file, char *text, size_t bytes, bool is_own, struct weir_document **ret_document,
			struct weir_diag *diag)
{
	_cleanup_(weir_document_freep) struct weir_document *document = calloc(1, sizeof(*document));
	struct builder builder = {
		.document = document, .diag = diag, .position = {.line = 1, .column = 1}, .is_own = is_own};
	int err;

	if (!document) {
		free(text);
		return -ENOMEM;
	}
	*document = (struct weir_document){.file = file, .text = text, .bytes = bytes};
	/* A byte order mark is not part of the text, and does not count as a column. */
	if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		document->bytes -= 3;
		memmove(text, text + 3, document->bytes + 1);
	}
	err = check_text(&builder);
	if (!err)
		err = check_lines(&builder);
	if (!err)
		err = skip_comments(&builder);
	if (!err)
		err = check_brackets(&builder);
	if (!err)
		err = parse_text(&builder);
	for (size_t i = 0; i < builder.anchor_count; i++)
		free(builder.anchors[i].name);
	free(builder.anchors);
	free(builder.text);
	if (!err)
		*ret_document = TAKE_PTR(document);
	return err;
}

void weir_document_free(struct weir_document *document)
{
	if (!document)
		return;
	for (size_t i = 0; i < document->node_count; i++) {
		free(document->nodes[i]->text);
		free(document->nodes[i]->items);
		free(document->nodes[i]);
	}
	free(document->nodes);
	free(document->text);
	free(document);
}
