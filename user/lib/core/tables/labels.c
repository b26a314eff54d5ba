// SPDX-License-Identifier: GPL-2.0-only
#include "tables/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

int weir_labels_copy(const struct weir_key_labels *labels, struct weir_key_labels **ret_copy)
{
	const size_t bytes = labels ? weir_labels_bytes(labels->count) : 0;

	*ret_copy = labels ? malloc(bytes) : NULL;
	if (*ret_copy)
		memcpy(*ret_copy, labels, bytes);
	return labels && !*ret_copy ? -ENOMEM : 0;
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t weir_label_hash(const __u64 *seed, const char *text, size_t bytes)
{
	/* The secret's words are in use for flows. A multiple of each makes keys of their own. */
	const uint64_t key[2] = {seed[0] * 0x9e3779b97f4a7c15ull, seed[1] * 0x9e3779b97f4a7c15ull};
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull, key[0] ^ 0x6c7967656e657261ull,
			 key[1] ^ 0x7465646279746573ull};

	for (size_t at = 0; at <= bytes; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, text + at, bytes - at < sizeof(word) ? bytes - at : sizeof(word));
		if (bytes - at < sizeof(word))
			word |= (uint64_t)bytes << 56;
		v[3] ^= word;
		mix(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3] ?: 1;
}

static int compare(const void *left, const void *right)
{
	const struct weir_label *a = left, *b = right;

	return a->hash < b->hash ? -1 : a->hash > b->hash;
}

void weir_labels_hash(struct weir_key_labels *labels, const __u64 *seed, uint64_t *ret_hashes)
{
	for (uint64_t i = 0; i < labels->count; i++) {
		struct weir_label *label = &labels->label[i];

		label->hash = ret_hashes[i] =
			weir_label_hash(seed, label->text, strnlen(label->text, sizeof(label->text)));
	}
	qsort(labels->label, labels->count, sizeof(*labels->label), compare);
}

const char *weir_label_text(const struct weir_key_labels *labels, uint64_t hash, char text[WEIR_LABEL_BYTES])
{
	const struct weir_label wanted = {.hash = hash}, *found = NULL;

	if (!hash)
		return "-";
	if (labels)
		found = bsearch(&wanted, labels->label, labels->count, sizeof(wanted), compare);
	if (found)
		snprintf(text, WEIR_LABEL_BYTES, "%.*s", (int)sizeof(found->text), found->text);
	else
		snprintf(text, WEIR_LABEL_BYTES, "?%016llx", (unsigned long long)hash);
	return text;
}

const char *weir_key_set_name(const struct weir_key_labels *labels, uint32_t key_fields, int place)
{
	const uint32_t number = WEIR_KEY_SET_OF(key_fields, place);

	return labels && number && number <= labels->set_count ? labels->sets[number - 1] : "?";
}
