// SPDX-License-Identifier: GPL-2.0-only
/* Messages about wrong words: what is wrong, what to write instead, and which word was probably meant. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/util.h"
#include "rules/scalar_internal.h"
#include "rules/scalars.h"

/* ---- refusals ---- */

int weir_refuse(struct weir_refusal *refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(refusal->message, sizeof(refusal->message), format, args);
	va_end(args);
	refusal->hint[0] = '\0';
	return -EINVAL;
}

int weir_advise(struct weir_refusal *refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(refusal->hint, sizeof(refusal->hint), format, args);
	va_end(args);
	return -EINVAL;
}

int weir_shown_bytes(const char *text)
{
	size_t bytes = strnlen(text, 60);

	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}

const char *weir_our_word(const char *word, size_t bytes)
{
	static const struct {
		const char *ours, *theirs[11];
	} words[] = {
		{"source",
		 {"src", "saddr", "srcip", "sourceip", "srcaddr", "sourceaddress", "sip", "client", "clientip"}},
		{"destination", {"dst", "dest", "daddr", "dstip", "destip", "destinationip", "dstaddr", "dip"}},
		{"sourcePort", {"sport", "srcport"}},
		{"destinationPort", {"dport", "dstport", "destport"}},
		{"protocol", {"proto"}},
		{"interface", {"iface", "iif", "iifname", "ifname"}},
		{"blockDuration", {"bantime"}},
	};
	char plain[16] = "";
	size_t kept = 0;

	for (size_t i = 0; i < bytes && kept < sizeof(plain) - 1; i++)
		if (!strchr("_-.", word[i]))
			plain[kept++] = word[i];
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t j = 0; words[i].theirs[j]; j++)
			if (!strcasecmp(plain, words[i].theirs[j]))
				return words[i].ours;
	return NULL;
}

bool weir_value_advise_list(const char *text, const char *marks, bool (*is_known)(const char *, size_t),
			    struct weir_refusal *refusal)
{
	char list[128] = "";
	size_t used = 0, words = 0;

	for (const char *at = text + strspn(text, marks); *at; at += strspn(at, marks)) {
		const size_t bytes = strcspn(at, marks);

		if (!is_known(at, bytes) || used + bytes + 3 > sizeof(list))
			return false;
		used += snprintf(list + used, sizeof(list) - used, "%s%.*s", words++ ? ", " : "", (int)bytes, at);
		at += bytes;
	}
	if (words > 1)
		weir_advise(refusal, "write a list: [%s]", list);
	return words > 1;
}

/* ---- names ---- */

int weir_parse_by(const char *text, char ret_by[WEIR_BY_BYTES], struct weir_refusal *reterr_refusal)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const size_t bytes = strlen(text);

	if (!bytes || bytes >= WEIR_BY_BYTES || strspn(text, letters) != bytes) {
		weir_refuse(reterr_refusal, "'%.*s' is not the name of a program", WEIR_SHOWN(text));
		return weir_advise(reterr_refusal, "write 1 to %d letters, digits, '-', '_' or '.'", WEIR_BY_BYTES - 1);
	}
	memset(ret_by, 0, WEIR_BY_BYTES);
	memcpy(ret_by, text, bytes);
	return 0;
}

int weir_check_name(const char *text, struct weir_refusal *reterr_refusal)
{
	size_t bytes = strlen(text), length;
	uint32_t code;

	if (!bytes) {
		weir_refuse(reterr_refusal, "the name is empty");
		return weir_advise(reterr_refusal, "write a name of 1 to %d bytes", WEIR_NAME_BYTES - 1);
	}
	if (bytes >= WEIR_NAME_BYTES) {
		weir_refuse(reterr_refusal, "name '%.*s...' is %zu bytes long", WEIR_SHOWN(text), bytes);
		return weir_advise(reterr_refusal, "write a name of 1 to %d bytes", WEIR_NAME_BYTES - 1);
	}
	for (const char *at = text; *at; at += length) {
		length = weir_utf8_character(at, strlen(at), &code);
		if (!length)
			return weir_refuse(reterr_refusal, "name '%.*s' is not UTF-8", WEIR_SHOWN(text));
		if (code == ';') {
			weir_refuse(reterr_refusal, "name '%.*s' contains ';'", WEIR_SHOWN(text));
			return weir_advise(reterr_refusal, "leave it out: ';' separates names in printed lists");
		}
		if (weir_is_control(code))
			return weir_refuse(reterr_refusal, "name '%.*s' contains a control character",
					   WEIR_SHOWN(text));
	}
	return 0;
}

/*
 * The number of steps from one word to another; a step changes, adds or removes one letter, or swaps two neighbours
 * (optimal string alignment). Case is ignored. Words longer than 63 bytes are infinitely far from all others.
 */
#define DISTANCE_BYTES_MAX 63

static size_t distance(const char *left, const char *right)
{
	size_t rows[3][DISTANCE_BYTES_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2], *oldest;
	size_t left_bytes = strlen(left), right_bytes = strlen(right);

	if (left_bytes > DISTANCE_BYTES_MAX || right_bytes > DISTANCE_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= right_bytes; j++)
		row[j] = j;
	for (size_t i = 1; i <= left_bytes; i++) {
		oldest = before, before = above, above = row, row = oldest;
		row[0] = i;
		for (size_t j = 1; j <= right_bytes; j++) {
			int a = tolower((unsigned char)left[i - 1]), b = tolower((unsigned char)right[j - 1]);
			size_t least = above[j - 1] + (a != b);

			least = above[j] + 1 < least ? above[j] + 1 : least;
			least = row[j - 1] + 1 < least ? row[j - 1] + 1 : least;
			if (i > 1 && j > 1 && a == tolower((unsigned char)right[j - 2]) &&
			    b == tolower((unsigned char)left[i - 2]) && before[j - 2] + 1 < least)
				least = before[j - 2] + 1;
			row[j] = least;
		}
	}
	return row[right_bytes];
}

const char *weir_nearest(const char *word, const void *entries, size_t count, size_t entry_bytes)
{
	/* A third of the letters may be wrong; chosen by trying typical mistakes. */
	size_t word_bytes = strlen(word), nearest_steps = 1 + word_bytes / 3;
	const char *nearest = NULL, *containing = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *name = *(const char *const *)((const char *)entries + i * entry_bytes);
		size_t bytes = strlen(name), gap = bytes > word_bytes ? bytes - word_bytes : word_bytes - bytes;
		size_t steps = bytes && word_bytes && gap <= nearest_steps ? distance(word, name) : SIZE_MAX;

		if (steps < nearest_steps || (steps == nearest_steps && !nearest)) {
			nearest = name;
			nearest_steps = steps;
		}
		/* for example `interval` for statIntervalInMs */
		if (!containing && word_bytes >= 4 && strcasestr(name, word))
			containing = name;
	}
	return nearest ? nearest : containing;
}
