// SPDX-License-Identifier: GPL-2.0-only
#include "rules/yaml.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/printable.h"
#include "base/util.h"

__attribute__((format(printf, 2, 3))) static void advise(struct weir_syntax_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->hint, sizeof(error->hint), format, args);
	va_end(args);
}

/* ---- brackets ---- */

#define DEPTH_MAX 64

/* The positions of open '[' and '{', outermost first. Those in quotes and comments are ignored, as in YAML. */
struct brackets {
	size_t open[DEPTH_MAX];
	size_t depth;
};

size_t weir_skip_quoted(const char *text, size_t at, size_t end)
{
	const char quote = text[at];
	size_t start = at;

	for (at++; at < end && text[at] != quote; at++)
		at += quote == '"' && text[at] == '\\';
	if (at < end)
		return at;
	return start + strcspn(text + start, "\n");
}

bool weir_begins_token(const char *text, size_t at, size_t depth)
{
	while (at && (text[at - 1] == ' ' || text[at - 1] == '\t'))
		at--;
	return !at || strchr("\r\n:-[]{},", text[at - 1]) || (depth && strchr("'\"", text[at - 1]));
}

static void scan_brackets(const char *text, size_t end, struct brackets *brackets)
{
	brackets->depth = 0;
	for (size_t at = 0; at < end; at++) {
		const char c = text[at];

		if (c == '#' && (!at || strchr(" \t\r\n", text[at - 1])))
			at += strcspn(text + at, "\n");
		else if ((c == '"' || c == '\'') && weir_begins_token(text, at, brackets->depth))
			at = weir_skip_quoted(text, at, end);
		else if ((c == '[' || c == '{') && brackets->depth < DEPTH_MAX &&
			 (brackets->depth || weir_begins_token(text, at, 0)))
			brackets->open[brackets->depth++] = at;
		else if ((c == ']' || c == '}') && brackets->depth)
			brackets->depth--;
	}
}

/* ---- places ---- */

static size_t line_start(const char *text, int line)
{
	return (weir_text_line(text, line) ?: text + strlen(text)) - text;
}

static void point_at(const char *text, size_t offset, struct weir_syntax_error *error)
{
	error->line = error->column = 1;
	for (size_t at = 0; at < offset; at++) {
		error->column += !weir_utf8_continues(text[at]);
		if (text[at] == '\n') {
			error->line++;
			error->column = 1;
		}
	}
}

static size_t offset_of(const char *text, const struct weir_syntax_error *error)
{
	size_t at = line_start(text, error->line);

	for (int column = 1; column < error->column && text[at] && text[at] != '\n'; column++)
		for (at++; weir_utf8_continues(text[at]);)
			at++;
	return at;
}

/* ---- one function per type of mistake: returns true if it applied ---- */

/* The longest word that an advice repeats in full. Chosen, not derived. */
#define WORD_BYTES_MAX 100

/* An open bracket swallows lines, and the parser's error is where they no longer make sense to it. */
static bool explain_open_bracket(const char *text, size_t bytes, struct weir_syntax_error *error)
{
	const int stumbled_line = error->line;
	struct brackets whole, before;
	size_t open;

	scan_brackets(text, bytes, &whole);
	scan_brackets(text, offset_of(text, error), &before);
	if (!whole.depth || !before.depth)
		return false;
	open = before.open[before.depth - 1];
	point_at(text, open, error);
	snprintf(error->message, sizeof(error->message), "'%c' is not closed", text[open]);
	if (stumbled_line > error->line + 1 || (stumbled_line > error->line && text[line_start(text, stumbled_line)]))
		advise(error, "write the closing '%c': without it, line %d is read as part of it",
		       text[open] == '[' ? ']' : '}', error->line + 1);
	else
		advise(error, "write the closing '%c'", text[open] == '[' ? ']' : '}');
	return true;
}

static bool explain_mismatch(const char *text, struct weir_syntax_error *error)
{
	struct brackets before;

	scan_brackets(text, offset_of(text, error), &before);
	if (!before.depth)
		return false;
	advise(error, "first close the earlier '%c' with '%c'", text[before.open[before.depth - 1]],
	       text[before.open[before.depth - 1]] == '[' ? ']' : '}');
	return true;
}

/* An open quote swallows lines, too; point at its start. */
static void explain_open_quote(const char *text, struct weir_syntax_error *error)
{
	size_t at = offset_of(text, error);

	if (at && text[at] != '"' && text[at] != '\'' && (text[at - 1] == '"' || text[at - 1] == '\''))
		error->column--;
	snprintf(error->message, sizeof(error->message), "the quote that begins here is not closed on this line");
	advise(error, "write the same quote at the end of the value");
}

/* "name dns", or a line that is indented too far below "name: dns". */
static void explain_plain_key(const char *text, struct weir_syntax_error *error)
{
	size_t at = offset_of(text, error), start = line_start(text, error->line), next;
	const char *colon = memchr(text + start, ':', at - start);

	if (text[at] == '/' && (text[at + 1] == '/' || text[at + 1] == '*')) {
		snprintf(error->message, sizeof(error->message), "this is not a comment");
		advise(error, "in YAML, a comment begins with '#'");
		return;
	}
	if (colon) {
		for (next = at + strcspn(text + at, "\n"); text[next] == '\n';)
			next += 1 + strspn(text + next + 1, " ");
		point_at(text, next, error);
		snprintf(error->message, sizeof(error->message), "this line is indented too far");
		advise(error, "begin it in the same column as the line above, which already has a value");
		return;
	}
	snprintf(error->message, sizeof(error->message), "there is no ':' after the name of a field");
	advise(error, "write 'name: value', with a space after the ':'");
}

/* "rate:20/s": YAML reads this as one word rather than a name and a value. */
static bool explain_unspaced(const char *text, struct weir_syntax_error *error)
{
	size_t at = line_start(text, error->line), bytes, name;

	if (!strstr(error->message, "multiline plain key") && !strstr(error->message, "could not find expected ':'") &&
	    !strstr(error->message, "invalid value after mapping"))
		return false;
	at += strspn(text + at, " -");
	bytes = strcspn(text + at, " \r\n");
	name = strcspn(text + at, ":");
	if (!isalpha((unsigned char)text[at]) || name + 1 >= bytes || bytes > WORD_BYTES_MAX)
		return false;
	point_at(text, at, error);
	snprintf(error->message, sizeof(error->message), "there is no space after the ':'");
	advise(error, "write '%.*s: %.*s'", (int)name, text + at, (int)(bytes - name - 1), text + at + name + 1);
	return true;
}

/* If a line is indented in a way that makes no sense, is it a part of the file that should begin in the first column?
 */
static void explain_indented_part(const char *text, struct weir_syntax_error *error)
{
	static const char *const parts[] = {
		"settings:", "resources:", "rules:", "circuitBreakers:", "allow:", "deny:", "sets:"};
	const size_t start = line_start(text, error->line), indent = strspn(text + start, " ");

	for (size_t i = 0; indent && i < ARRAY_SIZE(parts); i++) {
		if (strncmp(text + start + indent, parts[i], strlen(parts[i])) != 0)
			continue;
		point_at(text, start + indent, error);
		snprintf(error->message, sizeof(error->message), "'%s' is indented", parts[i]);
		advise(error, "%s", WEIR_AT_THE_TOP);
	}
}

/* "[syn, !ack]": YAML takes a '!' at the start of a word for a tag, and the word for its name. */
static bool explain_tag(const char *text, struct weir_syntax_error *error)
{
	const size_t end = offset_of(text, error);
	struct brackets before;
	size_t tag = SIZE_MAX, bytes;

	scan_brackets(text, end, &before);
	for (size_t at = line_start(text, error->line); at < end; at++) {
		if ((text[at] == '"' || text[at] == '\'') && weir_begins_token(text, at, before.depth))
			at = weir_skip_quoted(text, at, end);
		else if (text[at] == '!' && weir_begins_token(text, at, before.depth))
			tag = at;
	}
	if (tag == SIZE_MAX)
		return false;
	bytes = strcspn(text + tag, " ,]}\r\n");
	if (bytes < 2 || bytes > WORD_BYTES_MAX)
		return false;
	point_at(text, tag, error);
	snprintf(error->message, sizeof(error->message), "a word that begins with '!' is a tag in YAML");
	advise(error, "put it in quotes: \"%.*s\"", (int)bytes, text + tag);
	return true;
}

/* ---- texts ---- */

/* Parts of libfyaml's messages, and advice for each. */
static const struct {
	const char *said, *message, *hint;
} remedies[] = {
	{"may not be used as indentation", NULL, "indent YAML with spaces, not tabs"},
	{"tab used as indentation", NULL, "indent YAML with spaces, not tabs"},
	{"cannot start with '@'", NULL, "YAML reserves '@': put the name in quotes, \"@FILE\""},
	{"cannot start with", NULL, "YAML reserves this character: put the word in quotes"},
	{"invalid alias", NULL, "in YAML, a word that begins with '*' is an alias; put it in quotes: \"*\""},
	{"expected '-' indicator", "this line is indented differently from the fields above",
	 "begin all fields of one item in the same column"},
	{"indentation in mapping", "this line is indented differently from the fields above",
	 "begin all fields of one item in the same column"},
	{"at the end of block sequence", "this line is indented differently from the fields above",
	 "begin all fields of one item in the same column"},
	{"in sequence while in mapping", "this '-' is indented differently from those above",
	 "begin all items of one list in the same column"},
	{"wrongly indented sequence item", "this '-' is indented differently from those above",
	 "begin all items of one list in the same column"},
	{"invalid value after mapping", "there is no ':' after the name of a field",
	 "write 'name: value', with a space after the ':'"},
	{"could not find expected ':'", "there is no ':' after the name of a field",
	 "write 'name: value', with a space after the ':'"},
	{"missing comma", "a ',' is missing before this", "put a ',' between entries: [a, b], {name: x, flow: source}"},
	{"extra closing", "this bracket closes nothing", "remove it, or add the opening bracket"},
	{"nested block mapping on the same line", "there is a second ': ' on this line",
	 "put a value that contains ':' in quotes, or begin a new line, indented further"},
	{"block sequence on the same line", "a list cannot begin on the line of its name",
	 "put the '-' on its own line, or write the list in brackets: [a, b]"},
	{"trailing content after", "there is text after the closing quote",
	 "put the whole value in quotes, or none of it"},
	{"escape", NULL, "in double quotes, '\\' is special: use single quotes"},
	{"invalid mapping in plain multiline", "this line is indented differently from the fields above",
	 "begin the top-level fields in the first column"},
	{"missing document start", "no field of a rule file begins here",
	 "begin a rule file with 'resources:' or 'rules:'"},
};

static void explain_by_table(struct weir_syntax_error *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++) {
		if (!strstr(error->message, remedies[i].said))
			continue;
		advise(error, "%s", remedies[i].hint);
		if (remedies[i].message)
			snprintf(error->message, sizeof(error->message), "%s", remedies[i].message);
		return;
	}
}

/* The message is about the quote itself, not about what follows it. */
static bool is_of_open_quote(const char *message)
{
	return strstr(message, "quoted scalar") && !strstr(message, "trailing content") && !strstr(message, "escape");
}

/* Is the mistake inside brackets that were opened before? */
static bool explain_brackets(const char *text, size_t bytes, struct weir_syntax_error *error)
{
	if (strstr(error->message, "mismatched") && explain_mismatch(text, error))
		return true;
	return !strstr(error->message, "extra closing") && explain_open_bracket(text, bytes, error);
}

void weir_explain_syntax(const char *text, size_t bytes, struct weir_syntax_error *error)
{
	const size_t start = line_start(text, error->line), indent = strspn(text + start, " \t");

	error->hint[0] = '\0';
	if (memchr(text + start, '\t', indent))
		advise(error, "indent YAML with spaces, not tabs");
	else if (is_of_open_quote(error->message))
		explain_open_quote(text, error);
	else if (explain_tag(text, error) || explain_brackets(text, bytes, error) || explain_unspaced(text, error))
		return;
	else if (strstr(error->message, "multiline plain key"))
		explain_plain_key(text, error);
	else
		explain_by_table(error);
	if (!strncmp(error->message, "this line is indented", strlen("this line is indented")))
		explain_indented_part(text, error);
}
