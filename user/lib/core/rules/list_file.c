// SPDX-License-Identifier: GPL-2.0-only
/* Files of addresses, as lists and sets name them and as feeds have them: their lines, and what is wrong with them. */
#include "rules/list_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/text_file.h"
#include "base/util.h"
#include "rules/parse.h"

/* ---- a line of a file of addresses ---- */

static const char blanks[] = " \t\r\n";

/* Two IPv4 addresses, each followed by a tab. */
static bool is_tabbed(const char *text)
{
	static const char *const digits = "0123456789.";
	const char *second = text + strspn(text, digits);
	const size_t bytes = *second == '\t' ? strspn(second + 1, digits) : 0;

	return second > text && memchr(second + 1, '.', bytes) && second[1 + bytes] == '\t';
}

bool weir_list_line_is_of_feed(const char *line)
{
	const char *word = line + strspn(line, blanks);
	const size_t address = strspn(word, "0123456789abcdefABCDEF.:");
	const char *after = word + address + strspn(word + address, " ");

	return *word == '{' || *word == '"' || (address > 1 && *after == '-') || is_tabbed(word) ||
	       memchr(word, ',', strcspn(word, "#; \t")) || memchr(word, '|', strcspn(word, "#; \t")) ||
	       (strchr(word, '\t') && !strpbrk(word, "0123456789:#;")); /* the head line of columns */
}

static int read_address(char *text, struct weir_list_entry *entry, struct weir_refusal *refusal)
{
	struct weir_refusal ignored;
	struct weir_prefix same;
	int err = weir_parse_address_range(text, entry->prefixes, &entry->count, refusal);

	if (err != -ENOENT)
		return err;
	err = weir_parse_network(text, &entry->prefixes[0], refusal);
	entry->count = !err;
	entry->had_host_bits = !err && weir_parse_prefix(text, &same, &ignored);
	return err;
}

static int take_text(char *to, size_t room, const char *text, const char *what, struct weir_refusal *refusal)
{
	if (strlen(text) < room) {
		memcpy(to, text, strlen(text) + 1);
		return 0;
	}
	weir_refuse(refusal, "%s '%.*s...' is longer than %zu bytes", what, WEIR_SHOWN(text), room - 1);
	return weir_advise(refusal, "shorten it");
}

/* ---- JSON ---- */

static enum weir_list_line read_json(const char *line, struct weir_list_entry *entry, struct weir_refusal *refusal)
{
	static const char *const names[] = {"cidr", "prefix", "network"};
	static const char *const labels[] = {"label", "asn", "country", "tenant"};
	json_t *root = json_loads(line, 0, NULL);
	const json_t *weight = json_object_get(root, "weight");
	const char *address = NULL, *type = json_string_value(json_object_get(root, "type"));
	enum weir_list_line result = WEIR_LIST_WRONG;
	char text[WEIR_LABEL_BYTES] = "";

	for (size_t i = 0; i < ARRAY_SIZE(names) && !address; i++)
		address = json_string_value(json_object_get(root, names[i]));
	for (size_t i = 0; i < ARRAY_SIZE(labels) && !entry->label[0]; i++) {
		const json_t *label = json_object_get(root, labels[i]);

		if (json_is_integer(label))
			snprintf(entry->label, sizeof(entry->label), "%lld", (long long)json_integer_value(label));
		else if (json_is_string(label))
			snprintf(entry->label, sizeof(entry->label), "%s", json_string_value(label));
	}
	if (json_is_integer(weight))
		snprintf(entry->weight, sizeof(entry->weight), "%lld", (long long)json_integer_value(weight));
	else if (weight)
		snprintf(entry->weight, sizeof(entry->weight), "%s", json_string_value(weight) ?: "?");
	if (!root) {
		weir_refuse(refusal, "the line is not an object in JSON");
		weir_advise(refusal, "write one object a line: {\"cidr\": \"192.0.2.0/24\"}");
	} else if (!address && type && !strcmp(type, "metadata")) {
		result = WEIR_LIST_NONE;
	} else if (!address) {
		weir_refuse(refusal, "the object has no 'cidr', 'prefix' or 'network'");
		weir_advise(refusal, "write {\"cidr\": \"192.0.2.0/24\"}");
	} else if (!take_text(text, sizeof(text), address, "address", refusal) && !read_address(text, entry, refusal)) {
		result = WEIR_LIST_READ;
	}
	json_decref(root);
	return result;
}

/* ---- CSV ---- */

/* Cut the next field off (RFC 4180, without line ends in it). NULL: there is none, or a quote is not closed. */
static char *next_field(char **rest)
{
	char *from = *rest, *to = from, *field = from;
	const bool is_quoted = from && *from == '"';

	if (!from)
		return NULL;
	from += is_quoted;
	for (; *from && (is_quoted || *from != ','); from++) {
		if (is_quoted && *from == '"' && from[1] != '"')
			break;
		from += is_quoted && *from == '"';
		*to++ = *from;
	}
	if (is_quoted && *from++ != '"')
		return NULL;
	*rest = *from == ',' ? from + 1 : NULL;
	if (*from && *from != ',')
		return NULL;
	*to = '\0';
	return weir_trim(field, blanks);
}

static int read_csv(char *line, struct weir_list_entry *entry, struct weir_refusal *refusal)
{
	char *rest = line, *address = next_field(&rest), *label = next_field(&rest), *weight = next_field(&rest);
	struct weir_refusal ignored;
	struct weir_prefix other;

	if (!address || rest || (!weight && !label))
		return weir_refuse(refusal, "the line is not 'prefix,label' or 'prefix,label,weight'");
	if (read_address(address, entry, refusal))
		return -EINVAL;
	/* A label is mostly not an address, and a refusal takes as long as all the rest. */
	if (!label[strspn(label, "0123456789abcdefABCDEF.:/")] && !weir_parse_network(label, &other, &ignored)) {
		weir_refuse(refusal, "the line has two addresses, '%.*s' and '%.*s'", WEIR_SHOWN(address),
			    WEIR_SHOWN(label));
		return weir_advise(refusal, "separate sources by spaces; in a file, write one a line");
	}
	return take_text(entry->label, WEIR_LABEL_BYTES, label, "label", refusal)
		       ?: take_text(entry->weight, sizeof(entry->weight), weight ?: "", "weight", refusal);
}

/* ---- what the registries (RIPE NCC and others) publish of addresses that they have delegated ---- */

/* "ripencc|FR|ipv4|192.0.2.0|256|20100712|allocated": the country is the label; the number is one of addresses, and for
 * IPv6 the length of the prefix.
 */
static enum weir_list_line read_delegated(char *text, struct weir_list_entry *entry, struct weir_refusal *refusal)
{
	char *fields[7] = {}, *rest = text, range[2 * INET6_ADDRSTRLEN] = "", last[INET_ADDRSTRLEN];
	struct in_addr first;
	uint64_t size;
	size_t count = 0;

	while (count < ARRAY_SIZE(fields) && rest)
		fields[count++] = strsep(&rest, "|");
	/* The head line with its version, sums, numbers of ASes, and what nobody has. */
	if (strspn(fields[0], "0123456789.") == strlen(fields[0]) || (count > 3 && !strcmp(fields[3], "*")) ||
	    (count == ARRAY_SIZE(fields) &&
	     (!strcmp(fields[2], "asn") || !strcmp(fields[6], "available") || !strcmp(fields[6], "reserved"))))
		return WEIR_LIST_NONE;
	if (count == ARRAY_SIZE(fields) && !strcmp(fields[2], "ipv6"))
		snprintf(range, sizeof(range), "%s/%s", fields[3], fields[4]);
	if (count == ARRAY_SIZE(fields) && !strcmp(fields[2], "ipv4") && inet_pton(AF_INET, fields[3], &first) == 1 &&
	    !weir_parse_number(fields[4], 1, (1ull << 32) - ntohl(first.s_addr), &size, refusal)) {
		first.s_addr = htonl(ntohl(first.s_addr) + size - 1);
		snprintf(range, sizeof(range), "%s-%s", fields[3], inet_ntop(AF_INET, &first, last, sizeof(last)));
	}
	if (!range[0]) {
		weir_refuse(refusal, "the line has a '|', and is not one of a registry");
		weir_advise(refusal, "write 'registry|country|ipv4|192.0.2.0|256|date|status'");
		return WEIR_LIST_WRONG;
	}
	snprintf(entry->label, sizeof(entry->label), "%s", fields[1]);
	return read_address(range, entry, refusal) ? WEIR_LIST_WRONG : WEIR_LIST_READ;
}

/* ---- DShield's block list: first and last address, length, attacks, name, country and e-mail, between tabs ---- */

static enum weir_list_line read_tabbed(char *text, struct weir_list_entry *entry, struct weir_refusal *refusal)
{
	char *fields[6] = {}, *rest = text, range[2 * INET_ADDRSTRLEN + 1];

	for (size_t i = 0; i < ARRAY_SIZE(fields) && rest; i++)
		fields[i] = strsep(&rest, "\t");
	snprintf(range, sizeof(range), "%s-%s", fields[0], fields[1]);
	if (fields[5] && take_text(entry->label, WEIR_LABEL_BYTES, weir_trim(fields[5], blanks), "country", refusal))
		return WEIR_LIST_WRONG;
	return read_address(range, entry, refusal) ? WEIR_LIST_WRONG : WEIR_LIST_READ;
}

enum weir_list_line weir_list_entry_parse(char *line, bool is_first, struct weir_list_entry *ret_entry,
					  struct weir_refusal *reterr_refusal)
{
	char *text = line + strspn(line, blanks), *comment;
	bool has_comma;

	ret_entry->count = 0;
	ret_entry->had_host_bits = false;
	ret_entry->label[0] = ret_entry->weight[0] = '\0';
	if (*text == '{')
		return read_json(text, ret_entry, reterr_refusal);
	if (is_tabbed(text)) /* a name in it may have any characters */
		return read_tabbed(text, ret_entry, reterr_refusal);
	comment = strpbrk(text, "#;");
	if (comment)
		*comment = '\0';
	text = weir_trim(text, blanks);
	if (!*text)
		return WEIR_LIST_NONE;
	if (strchr(text, '|'))
		return read_delegated(text, ret_entry, reterr_refusal);
	has_comma = strchr(text, ',') != NULL;
	if (has_comma ? !read_csv(text, ret_entry, reterr_refusal) : !read_address(text, ret_entry, reterr_refusal))
		return WEIR_LIST_READ;
	/* A head line names its columns. */
	return (has_comma || strchr(text, '\t')) && is_first && !strpbrk(text, "0123456789:") ? WEIR_LIST_NONE
											      : WEIR_LIST_WRONG;
}

/* ---- a file ---- */

/* Enough for four million long lines of IPv6, and a limit for endless files (/dev/zero). */
#define LIST_BYTES_MAX (256ull << 20)

struct list_file {
	struct weir_line_reader reader;
	const char *path;
	const struct weir_node *named_by;
	weir_list_taker take;
	void *data;
	bool is_full;	   /* no more is taken */
	bool has_entries;  /* a head line can no longer come */
	size_t widened;	   /* prefixes whose host bits were cleared */
	int first_widened; /* the line of the first */
	struct weir_list_entry entry;
};

static void read_text(struct weir_reader *reader, struct list_file *file)
{
	struct weir_place place = {.file = file->path, .line = file->reader.number};
	const char *line = file->reader.line, *word = line + strspn(line, " \t");
	char text[sizeof(file->reader.line)];
	struct weir_refusal refusal;
	enum weir_list_line kind;

	place.column = word - line + 1;
	place.width = strcspn(word, "#;\r\n");
	while (place.width && strchr(" \t", word[place.width - 1]))
		place.width--;
	memcpy(text, line, strlen(line) + 1);
	kind = weir_list_entry_parse(text, !file->has_entries, &file->entry, &refusal);
	if (kind == WEIR_LIST_WRONG)
		weir_complain_of_line(reader, &place, line, refusal.hint[0] ? refusal.hint : NULL, "%s",
				      refusal.message);
	file->has_entries |= kind != WEIR_LIST_NONE;
	if (kind == WEIR_LIST_READ)
		file->is_full = !file->take(reader, file->data, &file->entry, &place, line);
	if (kind == WEIR_LIST_READ && file->entry.had_host_bits && !file->widened++)
		file->first_widened = place.line;
}

static void complain_of_line(struct weir_reader *reader, const struct list_file *file, const char *why)
{
	const struct weir_place place = {.file = file->path, .line = file->reader.number, .column = 1, .width = 1};

	weir_complain_of_line(reader, &place, file->reader.line, "write one address or prefix a line", "the line %s",
			      why);
}

/* Read the next line. Returns false if there is none, or if no more are read. */
static bool read_line(struct weir_reader *reader, struct list_file *file)
{
	switch (weir_read_line(&file->reader)) {
	case WEIR_LINE_TEXT:
		read_text(reader, file);
		return true;
	case WEIR_LINE_TOO_LONG:
		complain_of_line(reader, file, "is longer than 1000 bytes");
		return true;
	case WEIR_LINE_ZERO_BYTE:
		complain_of_line(reader, file, "contains a zero byte");
		return true;
	case WEIR_LINE_TOO_MUCH:
		weir_complain(reader, file->named_by, NULL, "'%s' is larger than 256 MB", file->path);
		return false;
	case WEIR_LINE_END:
		break;
	}
	if (ferror(file->reader.stream))
		weir_complain(reader, file->named_by, NULL, "cannot read '%s': %s", file->path, strerror(errno));
	return false;
}

/* The path of a list: relative to the rule file that names it, unless it is absolute. */
char *weir_list_path(const struct weir_node *node, const char *name)
{
	const char *rule_file = node->document->file, *slash = strrchr(rule_file, '/');
	int directory_bytes = name[0] != '/' && slash ? (int)(slash + 1 - rule_file) : 0;
	char *path;

	return asprintf(&path, "%.*s%s", directory_bytes, rule_file, name) < 0 ? NULL : path;
}

/* Record a list, for users who want to know which files are read. The rule set takes over the path. */
static bool note_list(struct weir_ruleset *ruleset, char *path)
{
	char **names = reallocarray(ruleset->list_names, ruleset->list_count + 1, sizeof(*names));

	if (!names)
		return false;
	ruleset->list_names = names;
	names[ruleset->list_count++] = path;
	return true;
}

/* Links in its directory's path are resolved, but the file itself may be a link that is changed. NULL: it cannot be. */
static char *absolute_of(const char *path)
{
	const char *name = strrchr(path, '/');
	_cleanup_(weir_freep) char *directory = name ? strndup(path, name - path + 1) : strdup(".");
	_cleanup_(weir_freep) char *resolved = directory ? realpath(directory, NULL) : NULL;
	char *absolute;

	name = name ? name + 1 : path;
	if (!resolved || asprintf(&absolute, "%s/%s", strcmp(resolved, "/") ? resolved : "", name) < 0)
		return NULL;
	return absolute;
}

/* A writer is given this long to close the file. Chosen, not derived. */
#define WRITER_ADVICE "write another file, and move it into its place"
#define WRITER_WAITS 100
#define WRITER_WAIT_NS 10000000

/* Whole or not at all: a file that is still being written is not read. */
static int await_writer(int fd, struct stat *ret_status)
{
	const struct timespec wait = {.tv_nsec = WRITER_WAIT_NS};

	for (int i = 0; weir_file_has_writer(fd); i++) {
		if (i == WRITER_WAITS)
			return -EBUSY;
		nanosleep(&wait, NULL);
	}
	return fstat(fd, ret_status) ? -errno : 0;
}

static bool was_written(int fd, const struct stat *before)
{
	struct stat now;

	return S_ISREG(before->st_mode) &&
	       (fstat(fd, &now) || now.st_size != before->st_size || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
		now.st_mtim.tv_nsec != before->st_mtim.tv_nsec || weir_file_has_writer(fd));
}

char *weir_read_list_file(struct weir_reader *reader, const struct weir_node *node, const char *name,
			  weir_list_taker take, void *data)
{
	_cleanup_(weir_freep) char *path = weir_list_path(node, name);
	_cleanup_(weir_fclosep) FILE *stream = NULL;
	char *absolute;
	_cleanup_(weir_freep) struct list_file *file = calloc(1, sizeof(*file));
	struct stat status;
	int err;

	if (!path || !file) {
		reader->is_out_of_memory = true;
		return NULL;
	}
	err = weir_text_file_open(path, &stream);
	if (err) {
		weir_complain(reader, node, "names are relative to the directory of the rule file",
			      "cannot open '%s': %s", path, weir_text_file_explain(err));
		return NULL;
	}
	if (await_writer(fileno(stream), &status)) {
		weir_complain(reader, node, WRITER_ADVICE, "'%s' is being written", path);
		return NULL;
	}
	absolute = absolute_of(path);
	*file = (struct list_file){.path = path, .named_by = node, .take = take, .data = data};
	file->reader = (struct weir_line_reader){.stream = stream, .bytes_max = LIST_BYTES_MAX};
	while (!reader->is_out_of_memory && !file->is_full && reader->complaints <= WEIR_MISTAKES_MAX &&
	       read_line(reader, file))
		;
	if (was_written(fileno(stream), &status))
		weir_complain(reader, node, WRITER_ADVICE, "'%s' was written to while it was read", path);
	if (file->widened)
		weir_diag_note(reader->diag, "%s: %zu prefix%s had host bits, which were cleared: the first in line %d",
			       path, file->widened, file->widened == 1 ? "" : "es", file->first_widened);
	if (note_list(reader->ruleset, path))
		path = NULL;
	else
		reader->is_out_of_memory = true;
	return absolute;
}
