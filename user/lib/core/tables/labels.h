/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sets in flow keys, and their labels. A flow whose key has `source@NAME` is known by a keyed hash of its label, so
 * neither the order of a file nor a label that is added moves it. For commands, names and texts are pinned with the
 * instance, as this struct lies in memory. Pure.
 */
#ifndef WEIR_TABLES_LABELS_H
#define WEIR_TABLES_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "rules/ruleset.h"
#include "weir_abi.h"

struct weir_label {
	uint64_t hash;			 /* never 0, which stands for addresses without a label */
	char text[WEIR_LABEL_BYTES - 1]; /* one of 64 bytes has no terminating zero */
};

#define WEIR_LABELS_VERSION 1
struct weir_key_labels {
	uint32_t version; /* of this layout */
	uint32_t set_count;
	uint64_t count;
	char sets[WEIR_KEY_SETS_MAX][WEIR_NAME_BYTES]; /* by number (WEIR_KEY_SET) minus 1 */
	struct weir_label label[];
};

static inline size_t weir_labels_bytes(uint64_t count)
{
	return sizeof(struct weir_key_labels) + count * sizeof(struct weir_label);
}

/* *ret_copy is the caller's; NULL if `labels` is. Returns 0 or -ENOMEM. */
int weir_labels_copy(const struct weir_key_labels *labels, struct weir_key_labels **ret_copy);

/* SipHash-2-4 of the text (Aumasson and Bernstein, 2012), with a key made of the instance's secret, of 16 words. */
uint64_t weir_label_hash(const __u64 *seed, const char *text, size_t bytes);

/* Hash all labels, and sort them by their hashes. *ret_hashes, of `count` words, gets these in the order before. */
void weir_labels_hash(struct weir_key_labels *labels, const __u64 *seed, uint64_t *ret_hashes);

/* The label with this hash, "-" for 0, or "?" and the hash for one that no set has now. `labels` may be NULL. */
const char *weir_label_text(const struct weir_key_labels *labels, uint64_t hash, char text[WEIR_LABEL_BYTES]);

/* The name of the set by which a key has this end; "?" if that is not known. `labels` may be NULL. */
const char *weir_key_set_name(const struct weir_key_labels *labels, uint32_t key_fields, int place);

#endif
