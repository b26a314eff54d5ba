// SPDX-License-Identifier: GPL-2.0-only
#include "rules/history.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/emit.h"
#include "rules/parse.h"

void weir_kept_set_free(struct weir_kept_set *set)
{
	if (!set)
		return;
	free(set->files);
	free(set->text);
	free(set->listed);
	free(set);
}

void weir_history_free(struct weir_history *history)
{
	for (size_t i = 0; i < WEIR_HISTORY_SETS; i++)
		weir_kept_set_free(history->sets[i]);
	*history = (struct weir_history){};
}

struct cursor {
	const uint8_t *at, *end;
};

/* What a kept set has beside its text. */
struct contents {
	const struct weir_kept_set *of;
	struct cursor sets;
};

/* ---- lists: a byte with the length in bits, a byte with the family and the list, and the address ---- */

#define LISTED_IPV6 1
#define LISTED_DENIES 2
#define LISTED_HEAD_BYTES 2

static size_t address_bytes(bool is_ipv6)
{
	return is_ipv6 ? 16 : 4;
}

static int pack_listed(const struct weir_ruleset *ruleset, struct weir_kept_set *set)
{
	uint8_t *out = calloc(ruleset->listed_count + 1, LISTED_HEAD_BYTES + address_bytes(true));

	if (!out)
		return -ENOMEM;
	set->listed = out;
	for (size_t i = 0; i < ruleset->listed_count; i++) {
		const struct weir_listed *listed = &ruleset->listed[i];
		const bool is_ipv6 = listed->prefix.family == 6;

		if (listed->is_of_set && !listed->hides_allow)
			continue; /* the text names the set */
		*out++ = listed->prefix.bits;
		*out++ = (is_ipv6 ? LISTED_IPV6 : 0) | (listed->denies && !listed->is_of_set ? LISTED_DENIES : 0);
		memcpy(out, listed->prefix.address, address_bytes(is_ipv6));
		out += address_bytes(is_ipv6);
	}
	set->listed_bytes = out - set->listed;
	return 0;
}

/* Add them to those that sets bring. */
static bool take_lists(struct weir_kept_content *content, struct weir_ruleset *ruleset)
{
	const struct contents *contents = content->data;
	const struct weir_kept_set *set = contents->of;
	const uint8_t *at = set->listed, *end = at + set->listed_bytes - set->sets_bytes;

	while (end - at >= LISTED_HEAD_BYTES) {
		const bool is_ipv6 = at[1] & LISTED_IPV6;
		struct weir_listed *entry;

		if (end - at < (ptrdiff_t)(LISTED_HEAD_BYTES + address_bytes(is_ipv6)) || at[0] > (is_ipv6 ? 128 : 32))
			return false;
		entry = weir_array_add((void **)&ruleset->listed, ruleset->listed_count, sizeof(*entry));
		if (!entry)
			return false;
		*entry = (struct weir_listed){.denies = at[1] & LISTED_DENIES};
		entry->prefix.family = is_ipv6 ? 6 : 4;
		entry->prefix.bits = at[0];
		memcpy(entry->prefix.address, at + LISTED_HEAD_BYTES, address_bytes(is_ipv6));
		at += LISTED_HEAD_BYTES + address_bytes(is_ipv6);
		ruleset->listed_count++;
	}
	return true;
}

/*
 * ---- sets, after the lists ----
 *
 * In the order of the text: the number of labels; each label's length, weight and text; the number of prefixes; and
 * each prefix as in a list, followed by the number of its label if the set has labels.
 */

static void pack_set(const struct weir_set *set, FILE *stream)
{
	const uint32_t counts[] = {set->label_count, set->entry_count};

	fwrite(&counts[0], sizeof(counts[0]), 1, stream);
	for (size_t i = 0; i < set->label_count; i++) {
		const uint32_t head[] = {strlen(set->labels[i].text), set->labels[i].weight};

		fwrite(head, sizeof(head), 1, stream);
		fwrite(set->labels[i].text, 1, head[0], stream);
	}
	fwrite(&counts[1], sizeof(counts[1]), 1, stream);
	for (size_t i = 0; i < set->entry_count; i++) {
		const struct weir_set_entry *entry = &set->entries[i];
		const bool is_ipv6 = entry->prefix.family == 6;
		const uint8_t head[LISTED_HEAD_BYTES] = {entry->prefix.bits, is_ipv6 ? LISTED_IPV6 : 0};

		fwrite(head, sizeof(head), 1, stream);
		fwrite(entry->prefix.address, 1, address_bytes(is_ipv6), stream);
		if (set->has_labels)
			fwrite(&entry->label, sizeof(entry->label), 1, stream);
	}
}

static int pack_sets(const struct weir_ruleset *ruleset, struct weir_kept_set *set)
{
	char *bytes = NULL;
	uint8_t *joined;
	size_t count = 0;
	FILE *stream = ruleset->set_count ? open_memstream(&bytes, &count) : NULL;

	if (!stream)
		return ruleset->set_count ? -ENOMEM : 0;
	for (size_t i = 0; i < ruleset->set_count; i++)
		pack_set(&ruleset->sets[i], stream);
	joined = fclose(stream) || count > UINT32_MAX ? NULL : realloc(set->listed, set->listed_bytes + count + 1);
	if (joined) {
		memcpy(joined + set->listed_bytes, bytes, count);
		set->listed = joined;
		set->listed_bytes += count;
		set->sets_bytes = count;
	}
	free(bytes);
	return joined ? 0 : -ENOMEM;
}

/* Returns NULL if fewer than `bytes` bytes are left. */
static const uint8_t *take(struct cursor *cursor, uint64_t bytes)
{
	const uint8_t *taken = cursor->at;

	if ((uint64_t)(cursor->end - cursor->at) < bytes)
		return NULL;
	cursor->at += bytes;
	return taken;
}

static bool take_number(struct cursor *cursor, uint32_t *ret_number)
{
	const uint8_t *bytes = take(cursor, sizeof(*ret_number));

	if (bytes)
		memcpy(ret_number, bytes, sizeof(*ret_number));
	return bytes;
}

static bool unpack_label(struct cursor *cursor, struct weir_set_label *label)
{
	const uint8_t *text;
	uint32_t bytes;

	if (!take_number(cursor, &bytes) || !take_number(cursor, &label->weight) || bytes >= WEIR_LABEL_BYTES)
		return false;
	text = take(cursor, bytes);
	label->text = text ? strndup((const char *)text, bytes) : NULL;
	return label->text;
}

static bool unpack_entry(struct cursor *cursor, const struct weir_set *set, struct weir_set_entry *entry)
{
	const uint8_t *head = take(cursor, LISTED_HEAD_BYTES), *address;
	const bool is_ipv6 = head && head[1] & LISTED_IPV6;

	address = head && head[0] <= (is_ipv6 ? 128 : 32) ? take(cursor, address_bytes(is_ipv6)) : NULL;
	if (!address)
		return false;
	entry->prefix.family = is_ipv6 ? 6 : 4;
	entry->prefix.bits = head[0];
	memcpy(entry->prefix.address, address, address_bytes(is_ipv6));
	entry->label = WEIR_NO_LABEL;
	return !set->has_labels || (take_number(cursor, &entry->label) && entry->label < set->label_count);
}

static bool take_set(struct weir_kept_content *content, struct weir_set *set)
{
	struct contents *contents = content->data;
	struct cursor *cursor = &contents->sets;
	uint32_t labels, entries;

	if (!take_number(cursor, &labels) || labels > WEIR_SET_LABELS_MAX)
		return false;
	set->labels = calloc(labels + 1, sizeof(*set->labels));
	while (set->labels && set->label_count < labels) {
		if (!unpack_label(cursor, &set->labels[set->label_count]))
			return false;
		set->label_count++;
	}
	if (!set->labels || !take_number(cursor, &entries) || entries > WEIR_SET_ENTRIES_MAX)
		return false;
	set->entries = calloc(entries + 1, sizeof(*set->entries));
	for (; set->entries && set->entry_count < entries; set->entry_count++)
		if (!unpack_entry(cursor, set, &set->entries[set->entry_count]))
			return false;
	return set->entries;
}

/* ---- one set ---- */

static char *names_of(const struct weir_ruleset *ruleset)
{
	char *names = NULL;
	size_t bytes;
	FILE *stream = ruleset->origin ? NULL : open_memstream(&names, &bytes);

	if (!stream)
		return ruleset->origin ? strdup(ruleset->origin) : NULL;
	for (size_t i = 0; i < ruleset->file_count; i++)
		fprintf(stream, "%s\n", ruleset->file_names[i]);
	if (fclose(stream)) {
		free(names);
		return NULL;
	}
	return names;
}

static uint64_t digest_of(const struct weir_kept_set *set)
{
	const uint64_t of_text = weir_digest(WEIR_DIGEST_BASIS, set->text, strlen(set->text));

	return weir_digest(of_text, set->listed, set->listed_bytes);
}

bool weir_kept_set_is_whole(const struct weir_kept_set *set)
{
	return set->digest == digest_of(set);
}

#define STORED "the stored set"

int weir_kept_set_make(const struct weir_ruleset *ruleset, struct weir_kept_set **ret_set)
{
	_cleanup_(weir_kept_set_freep) struct weir_kept_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->files = names_of(ruleset);
	set->text = weir_ruleset_text(ruleset, false);
	if (!set->files || !set->text || pack_listed(ruleset, set) || pack_sets(ruleset, set))
		return -ENOMEM;
	set->digest = digest_of(set);
	set->transition = ruleset->is_last_good ? WEIR_TRANSITION_LAST_GOOD : WEIR_TRANSITION_LOADED;
	*ret_set = TAKE_PTR(set);
	return 0;
}

static int parse(const struct weir_kept_set *set, const char *name, bool reads_files, struct weir_ruleset **ret_ruleset,
		 struct weir_diag *diag)
{
	struct contents contents = {
		set, {set->listed + set->listed_bytes - set->sets_bytes, set->listed + set->listed_bytes}};
	struct weir_kept_content content = {
		.take_set = take_set, .take_lists = take_lists, .data = &contents, .reads_files = reads_files};

	return weir_ruleset_parse_own(name, set->text, strlen(set->text), &content, ret_ruleset, diag);
}

static int explain(int err, struct weir_diag *messages, struct weir_diag *diag)
{
	if (err)
		weir_diag_error(diag, NULL, NULL, "reload its files", "the stored rule set cannot be read: %s",
				messages->count ? messages->entries[0].message : strerrorname_np(-err));
	weir_diag_free(messages);
	return err;
}

int weir_kept_set_read_text(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	struct weir_diag messages = {};

	return explain(weir_ruleset_parse_own(STORED, set->text, strlen(set->text), NULL, ret_ruleset, &messages),
		       &messages, diag);
}

int weir_kept_set_read_as(const struct weir_kept_set *set, const char *name, struct weir_ruleset **ret_ruleset,
			  struct weir_diag *diag)
{
	struct weir_diag messages = {};
	int err = explain(parse(set, name, false, ret_ruleset, &messages), &messages, diag);

	if (!err)
		(*ret_ruleset)->is_last_good = set->transition == WEIR_TRANSITION_LAST_GOOD;
	return err;
}

int weir_kept_set_read_files(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	int err = parse(set, "the rules in force", true, &ruleset, diag);

	if (err)
		return err;
	ruleset->origin = strdup(set->files);
	if (!ruleset->origin)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the files of sets");
	ruleset->is_last_good = set->transition == WEIR_TRANSITION_LAST_GOOD;
	*ret_ruleset = TAKE_PTR(ruleset);
	return 0;
}

int weir_kept_set_read(const struct weir_kept_set *set, struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	return weir_kept_set_read_as(set, STORED, ret_ruleset, diag);
}

/* ---- steps ---- */

static void drop(struct weir_history *history, size_t place)
{
	weir_kept_set_free(history->sets[place]);
	for (; place + 1 < WEIR_HISTORY_SETS; place++)
		history->sets[place] = history->sets[place + 1];
	history->sets[place] = NULL;
}

void weir_history_push(struct weir_history *history, struct weir_kept_set *set, bool is_unconfirmed)
{
	const struct weir_kept_set *latest = history->sets[0];

	if (!is_unconfirmed && latest && latest->digest == set->digest) {
		weir_kept_set_free(history->sets[0]);
		history->sets[0] = set;
		return;
	}
	weir_kept_set_free(history->sets[WEIR_HISTORY_SETS - 1]);
	for (size_t place = WEIR_HISTORY_SETS - 1; place; place--)
		history->sets[place] = history->sets[place - 1];
	history->sets[0] = set;
	if (!is_unconfirmed)
		weir_history_confirm(history);
}

void weir_history_swap(struct weir_history *history)
{
	struct weir_kept_set *latest = history->sets[0];

	history->sets[0] = history->sets[1];
	history->sets[1] = latest;
}

void weir_history_return(struct weir_history *history)
{
	drop(history, 0);
}

void weir_history_confirm(struct weir_history *history)
{
	if (history->sets[0] && history->sets[1] && history->sets[0]->digest == history->sets[1]->digest)
		drop(history, 1); /* the new set equals the one before it, and is not a step */
	for (size_t place = 2; place < WEIR_HISTORY_SETS; place++) {
		weir_kept_set_free(history->sets[place]);
		history->sets[place] = NULL;
	}
}

/* ---- bytes: a header, then for each set its header and its parts in sequence ---- */

#define MAGIC 0x7473696872696577ull /* "weirhist", little endian */
#define VERSION 1

struct head {
	uint64_t magic;
	uint32_t version, sets;
};

struct set_head {
	uint64_t generation, digest;
	uint64_t files_bytes, text_bytes, listed_bytes; /* lengths; the texts have no terminating zero */
	uint32_t transition;
	uint32_t sets_bytes; /* the last of listed_bytes; 0 in the sets of a weir that had none */
};

int weir_history_pack(const struct weir_history *history, uint8_t **ret_bytes, size_t *ret_count)
{
	struct head head = {.magic = MAGIC, .version = VERSION};
	char *bytes = NULL;
	size_t count = 0;
	FILE *stream = open_memstream(&bytes, &count);

	if (!stream)
		return -ENOMEM;
	while (head.sets < WEIR_HISTORY_SETS && history->sets[head.sets])
		head.sets++;
	fwrite(&head, sizeof(head), 1, stream);
	for (uint32_t i = 0; i < head.sets; i++) {
		const struct weir_kept_set *set = history->sets[i];
		const struct set_head set_head = {
			.generation = set->generation,
			.digest = set->digest,
			.files_bytes = strlen(set->files),
			.text_bytes = strlen(set->text),
			.listed_bytes = set->listed_bytes,
			.transition = set->transition,
			.sets_bytes = set->sets_bytes,
		};

		fwrite(&set_head, sizeof(set_head), 1, stream);
		fwrite(set->files, 1, set_head.files_bytes, stream);
		fwrite(set->text, 1, set_head.text_bytes, stream);
		fwrite(set->listed, 1, set_head.listed_bytes, stream);
	}
	if (fclose(stream)) {
		free(bytes);
		return -ENOMEM;
	}
	*ret_bytes = (uint8_t *)bytes;
	*ret_count = count;
	return 0;
}

static char *take_text(struct cursor *cursor, uint64_t bytes)
{
	const uint8_t *text = take(cursor, bytes);

	return text ? strndup((const char *)text, bytes) : NULL;
}

static struct weir_kept_set *unpack_set(struct cursor *cursor)
{
	_cleanup_(weir_kept_set_freep) struct weir_kept_set *set = calloc(1, sizeof(*set));
	const uint8_t *bytes = take(cursor, sizeof(struct set_head));
	struct set_head head;

	if (!set || !bytes)
		return NULL;
	memcpy(&head, bytes, sizeof(head));
	set->generation = head.generation;
	set->digest = head.digest;
	set->transition = head.transition < WEIR_TRANSITION_COUNT ? head.transition : WEIR_TRANSITION_LOADED;
	set->files = take_text(cursor, head.files_bytes);
	set->text = set->files ? take_text(cursor, head.text_bytes) : NULL;
	bytes = set->text ? take(cursor, head.listed_bytes) : NULL;
	if (!bytes || head.sets_bytes > head.listed_bytes)
		return NULL;
	set->listed = malloc(head.listed_bytes + 1);
	if (!set->listed)
		return NULL;
	memcpy(set->listed, bytes, head.listed_bytes);
	set->listed_bytes = head.listed_bytes;
	set->sets_bytes = head.sets_bytes;
	return TAKE_PTR(set);
}

int weir_history_unpack(const uint8_t *bytes, size_t count, struct weir_history *ret_history)
{
	struct cursor cursor = {.at = bytes, .end = bytes + count};
	const uint8_t *head_bytes = take(&cursor, sizeof(struct head));
	_cleanup_(weir_history_free) struct weir_history history = {};
	struct head head = {};

	if (head_bytes)
		memcpy(&head, head_bytes, sizeof(head));
	if (head.magic != MAGIC || head.version != VERSION || head.sets > WEIR_HISTORY_SETS)
		return -EPROTO;
	for (uint32_t i = 0; i < head.sets; i++) {
		history.sets[i] = unpack_set(&cursor);
		if (!history.sets[i])
			return -EPROTO;
	}
	*ret_history = history;
	history = (struct weir_history){};
	return 0;
}

bool weir_history_has_sets(const uint8_t *bytes, size_t count)
{
	struct set_head latest;
	struct head head;

	if (count < sizeof(head) + sizeof(latest))
		return false;
	memcpy(&head, bytes, sizeof(head));
	memcpy(&latest, bytes + sizeof(head), sizeof(latest));
	return head.magic == MAGIC && head.version == VERSION && head.sets && latest.sets_bytes;
}
