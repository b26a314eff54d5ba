// SPDX-License-Identifier: GPL-2.0-only
#include "rules/writer.h"

#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/util.h"

#define MICRO 1000000u

/* ---- words ---- */

/* Words that YAML would read as something other than a text, or that people might misread. */
static bool is_reserved(const char *text)
{
	static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};

	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		if (!strcasecmp(text, reserved[i]))
			return true;
	return false;
}

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* Digits with a dash or a slash in between, or with more than one dot: a range, an address or a rate, which YAML reads
 * as text. With a slash there may also be letters, since no number has one.
 */
static bool is_range(const char *text)
{
	const char *others = strchr(text, '/') ? LETTERS DIGITS "-./" : DIGITS "-./";
	size_t bytes = strspn(text, DIGITS), dots = 0;

	if (!bytes || strspn(text, others) != strlen(text))
		return false;
	for (const char *at = text; *at; at++)
		dots += *at == '.';
	return dots > 1 || strpbrk(text, "-/");
}

/* A letter, followed by letters, digits and characters without a meaning in YAML inside a word. */
static bool is_plain(const char *text)
{
	const bool begins = strspn(text, LETTERS);

	return is_range(text) || (begins && !text[strspn(text, LETTERS DIGITS "_-./#")] && !is_reserved(text));
}

/* Only escapes that YAML and JSON share (RFC 8259, 7): for control characters, line ends in YAML's sense, and
 * characters that YAML refuses to print.
 */
static void write_quoted(FILE *stream, const char *text)
{
	size_t left = strlen(text);
	uint32_t code;

	fputc('"', stream);
	while (left) {
		size_t bytes = weir_utf8_character(text, left, &code) ?: 1;

		if (*text == '"' || *text == '\\')
			fprintf(stream, "\\%c", *text);
		else if (bytes > 1 ? code < 0xa0 || code == 0x2028 || code == 0x2029 || code == 0xfeff ||
					     (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff
				   : (unsigned char)*text < ' ' || *text == 0x7f)
			fprintf(stream, "\\u%04x", bytes > 1 ? code : (unsigned char)*text);
		else
			fwrite(text, 1, bytes, stream);
		text += bytes;
		left -= bytes;
	}
	fputc('"', stream);
}

/* ---- positions ---- */

static void indent(const struct weir_writer *writer, unsigned int levels)
{
	fprintf(writer->stream, "%*s", 2 * (int)levels, "");
}

static void begin_yaml(struct weir_writer *writer, const struct weir_written_level *level)
{
	/* The first entry of an item is on the line of the item's dash. */
	if (writer->depth > 1 && !level->key && !level->is_list && !level->count)
		return;
	if (level->count || writer->depth > 1)
		fputc('\n', writer->stream);
	indent(writer, writer->depth - 1);
	if (level->is_list)
		fputs("- ", writer->stream);
}

/* ---- trees ---- */

static struct weir_written_level *level_of(struct weir_writer *writer)
{
	return &writer->level[writer->depth - 1];
}

/* Add a node to the level that is open, which takes ownership. Returns false if there is no memory; the node has been
 * freed.
 */
static bool add_node(struct weir_writer *writer, const char *key,
		     json_t *node) // NOLINT(misc-no-recursion): as deep as a file
{
	struct weir_written_level *level = level_of(writer);

	if (!level->is_begun) {
		level->node = level->is_list ? json_array() : json_object();
		level->is_begun = true;
		writer->depth--;
		if (!add_node(writer, level->key, level->node))
			level->node = NULL;
		writer->depth++;
	}
	return !(key ? json_object_set_new(level->node, key, node) : json_array_append_new(level->node, node));
}

/* ---- streams ---- */

static void begin_entry(struct weir_writer *writer, const char *key);

/* The level's own entry must begin first. */
static void begin_level(struct weir_writer *writer) // NOLINT(misc-no-recursion): see begin_entry()
{
	struct weir_written_level *level = level_of(writer);
	const bool is_json = writer->form == WEIR_FORM_JSON;

	writer->depth--;
	begin_entry(writer, level->key);
	writer->depth++;
	level->is_begun = true;
	if (level->is_inline || is_json)
		fprintf(writer->stream, "%s%c", level->key ? " " : "", level->is_list ? '[' : '{');
}

/* Write everything that precedes a value. */
static void begin_entry(struct weir_writer *writer, const char *key) // NOLINT(misc-no-recursion): as deep as a file
{
	struct weir_written_level *level = level_of(writer);

	if (!level->is_begun)
		begin_level(writer);
	if (level->is_inline)
		fputs(level->count ? ", " : "", writer->stream);
	else if (writer->form == WEIR_FORM_YAML)
		begin_yaml(writer, level);
	else {
		fputs(level->count ? ",\n" : "\n", writer->stream);
		indent(writer, writer->depth);
	}
	level->count++;
	if (key)
		fprintf(writer->stream, writer->form == WEIR_FORM_JSON ? "\"%s\":" : "%s:", key);
}

static void begin_value(struct weir_writer *writer, const char *key)
{
	begin_entry(writer, key);
	if (key)
		fputc(' ', writer->stream);
}

static void open_level(struct weir_writer *writer, struct weir_written_level level)
{
	writer->level[writer->depth++] = level;
}

/* ---- the exported functions ---- */

void weir_write_document(struct weir_writer *writer)
{
	if (writer->form == WEIR_FORM_JSON)
		fputc('{', writer->stream);
	open_level(writer, (struct weir_written_level){.is_begun = true});
	if (writer->form == WEIR_FORM_TREE)
		level_of(writer)->node = json_object();
}

void weir_write_document_end(struct weir_writer *writer)
{
	writer->depth--;
	fputs(writer->form == WEIR_FORM_JSON ? "\n}\n" : "\n", writer->stream);
}

json_t *weir_write_tree_end(struct weir_writer *writer)
{
	return writer->level[--writer->depth].node;
}

void weir_write_map(struct weir_writer *writer, const char *key)
{
	open_level(writer, (struct weir_written_level){.key = key});
}

void weir_write_list(struct weir_writer *writer, const char *key)
{
	open_level(writer, (struct weir_written_level){.key = key, .is_list = true});
}

void weir_write_inline_list(struct weir_writer *writer, const char *key)
{
	open_level(writer, (struct weir_written_level){.key = key, .is_list = true, .is_inline = true});
}

void weir_write_end(struct weir_writer *writer)
{
	const struct weir_written_level level = *level_of(writer);

	writer->depth--;
	if (!level.is_begun || writer->form == WEIR_FORM_TREE)
		return;
	if (level.is_inline) {
		fputc(']', writer->stream);
	} else if (writer->form == WEIR_FORM_JSON) {
		fputc('\n', writer->stream);
		indent(writer, writer->depth);
		fputc(level.is_list ? ']' : '}', writer->stream);
	}
}

void weir_write_empty_list(struct weir_writer *writer, const char *key)
{
	if (writer->form == WEIR_FORM_TREE) {
		add_node(writer, key, json_array());
		return;
	}
	begin_value(writer, key);
	fputs("[]", writer->stream);
}

void weir_write_word(struct weir_writer *writer, const char *key, const char *text)
{
	if (writer->form == WEIR_FORM_TREE) {
		add_node(writer, key, text ? json_string(text) : json_null());
		return;
	}
	begin_value(writer, key);
	if (writer->form == WEIR_FORM_YAML && is_plain(text))
		fputs(text, writer->stream);
	else
		write_quoted(writer->stream, text);
}

void weir_write_number(struct weir_writer *writer, const char *key, uint64_t number)
{
	if (writer->form == WEIR_FORM_TREE) {
		add_node(writer, key,
			 level_of(writer)->is_inline ? json_sprintf("%llu", (unsigned long long)number)
						     : json_integer((json_int_t)number));
		return;
	}
	begin_value(writer, key);
	fprintf(writer->stream, "%llu", (unsigned long long)number);
}

void weir_write_micro(struct weir_writer *writer, const char *key, uint64_t micro)
{
	unsigned int fraction = micro % MICRO, places = 6;

	if (writer->form == WEIR_FORM_TREE) {
		add_node(writer, key, weir_json_threshold(micro));
		return;
	}
	weir_write_number(writer, key, micro / MICRO);
	if (!fraction)
		return;
	for (; fraction % 10 == 0; fraction /= 10)
		places--;
	fprintf(writer->stream, ".%0*u", (int)places, fraction);
}

void weir_write_truth(struct weir_writer *writer, const char *key, bool truth)
{
	if (writer->form == WEIR_FORM_TREE)
		add_node(writer, key, json_boolean(truth));
	else
		weir_write_word(writer, key, truth ? "true" : "false");
}

json_t *weir_json_threshold(uint64_t micro)
{
	return micro % MICRO ? json_real((double)micro / MICRO) : json_integer((json_int_t)(micro / MICRO));
}
