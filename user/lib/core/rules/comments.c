// SPDX-License-Identifier: GPL-2.0-only
#include "rules/yaml.h"

#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"

/* The position of the scan in a file. */
struct scan {
	char *text;
	size_t bytes, depth; /* number of open brackets */
	bool is_json;	     /* the whole file is in brackets */
	bool is_whole;	     /* the whole file is one list of Sentinel's, with or without brackets */
	bool is_list;	     /* the current part is such a list */
};

static bool is_blank(char c)
{
	return c && strchr(" \t\r\n", c);
}

static bool ends_token(char c)
{
	return is_blank(c) || strchr(",[]{}:'\"", c);
}

/* Does a number, true, false or null end here? In JSON a comment may follow it without a blank. */
static bool ends_json_word(const char *text, size_t at)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t start = at, digits = 0, points = 0, bytes;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		bytes = strlen(words[i]);
		if (at > bytes && !memcmp(text + at - bytes, words[i], bytes) && ends_token(text[at - bytes - 1]))
			return true;
	}
	for (; start && strchr("0123456789.eE+-", text[start - 1]); start--) {
		digits += text[start - 1] >= '0' && text[start - 1] <= '9';
		points += text[start - 1] == '.';
	}
	return start && digits && points <= 1 && ends_token(text[start - 1]);
}

/* Does a comment begin here? Not inside a word, as in redis://HOST. */
static bool begins_comment(const char *text, size_t at)
{
	if (text[at] != '/' || (text[at + 1] != '/' && text[at + 1] != '*'))
		return false;
	if (at && text[at - 1] == ':')
		return at > 1 && (is_blank(text[at - 2]) || strchr("'\"", text[at - 2]));
	return !at || ends_token(text[at - 1]) || ends_json_word(text, at);
}

/* Overwrite a comment with blanks. Returns the position of its last byte, or `bytes` if it has no end. */
static size_t blank_comment(struct scan *scan, size_t at)
{
	const char *end = scan->text[at + 1] == '*' ? strstr(scan->text + at + 2, "*/")
						    : scan->text + at + strcspn(scan->text + at, "\n");
	size_t past = end ? (size_t)(end - scan->text) : 0;

	if (!end)
		return scan->bytes;
	past += *end == '*' ? 2 : 0;
	for (size_t i = at; i < past; i++)
		if (!strchr("\r\n", scan->text[i]))
			scan->text[i] = ' ';
	return past - 1;
}

/* Is this `NAME:`, with or without quotes? */
static bool is_name(const char *key, const char *name)
{
	const bool is_quoted = *key == '"' || *key == '\'';
	const char *end = key + is_quoted + strlen(name);

	if (strncmp(key + is_quoted, name, strlen(name)) || (is_quoted && *end != *key))
		return false;
	end += is_quoted;
	return end[strspn(end, " \t\r\n")] == ':';
}

static bool is_list_name(const char *key)
{
	for (const char *const *name = weir_foreign_reader()->names; *name; name++)
		if (is_name(key, *name))
			return true;
	return is_name(key, "circuitBreakers");
}

/* The first token determines the type of file: a list is Sentinel's, a map is weir's. */
static void look_at_root(struct scan *scan)
{
	const char *at = scan->text, *end;

	while (is_blank(*at) || *at == '#' || !strncmp(at, "---", 3) || begins_comment(scan->text, at - scan->text)) {
		if (is_blank(*at)) {
			at++;
			continue;
		}
		end = at[0] == '/' && at[1] == '*' ? strstr(at, "*/") : strchr(at, '\n');
		if (!end)
			break;
		at = end + (*end == '*' ? 2 : 1);
	}
	scan->is_json = *at == '[' || *at == '{';
	scan->is_list = scan->is_whole = *at == '[' || (*at == '-' && is_blank(at[1]));
}

/* Does the name of a top-level field begin here? In a map in brackets it follows '{' or ','; otherwise it is in the
 * first column.
 */
static bool is_top_name(const struct scan *scan, size_t at)
{
	size_t before = at;

	if (scan->is_whole || scan->depth != scan->is_json || strchr("-[]{},", scan->text[at]))
		return false;
	if (!scan->is_json)
		return !at || scan->text[at - 1] == '\n';
	while (before && is_blank(scan->text[before - 1]))
		before--;
	return before && strchr("{,", scan->text[before - 1]);
}

/* Skip something that is not a comment of Sentinel's, and return its end: a quoted word, a YAML comment, or a single
 * character.
 */
static size_t pass_over(struct scan *scan, size_t at)
{
	const char c = scan->text[at];

	if (c == '#' && (!at || is_blank(scan->text[at - 1])))
		return at + strcspn(scan->text + at, "\n");
	if (is_top_name(scan, at))
		scan->is_list = is_list_name(scan->text + at);
	if ((c == '"' || c == '\'') && weir_begins_token(scan->text, at, scan->depth))
		return weir_skip_quoted(scan->text, at, scan->bytes);
	if ((c == '[' || c == '{') && (scan->depth || weir_begins_token(scan->text, at, 0)))
		scan->depth++;
	else if ((c == ']' || c == '}') && scan->depth)
		scan->depth--;
	return at;
}

size_t weir_blank_comments(char *text, size_t bytes, bool *ret_is_strange)
{
	struct scan scan = {.text = text, .bytes = bytes};
	size_t end;

	*ret_is_strange = false;
	look_at_root(&scan);
	for (size_t at = 0; at < bytes; at = end + 1) {
		if (is_blank(text[at])) {
			end = at;
		} else if (scan.is_json && !scan.is_list && begins_comment(text, at)) {
			*ret_is_strange = true;
			return at;
		} else if (scan.is_list && (scan.is_json || scan.depth) && begins_comment(text, at)) {
			end = blank_comment(&scan, at);
			if (end == bytes)
				return at;
		} else {
			end = pass_over(&scan, at);
		}
	}
	return bytes;
}
