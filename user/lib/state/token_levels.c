// SPDX-License-Identifier: GPL-2.0-only
#include "state/observe.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "instance/instance.h"
#include "program/array.h"
#include "tables/entry_state.h"
#include "tables/rule_kind.h"

/* The tokens of a rule, or of its flows under an override, with the clock in force. */
struct terms {
	uint32_t slot;
	struct weir_tokens tokens;
};

struct scan {
	const struct weir_instance *instance;
	struct terms *terms; /* those of rules with tokens, then those of their overrides, which are sorted by mark */
	size_t count, rule_count;
	size_t room;
	weir_observed_add *add;
	void *data;
};

static bool has_buckets(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow && weir_has_tokens(rule) && rule->tokens.unit;
}

static int compare_marks(const void *left, const void *right)
{
	const struct terms *a = left, *b = right;

	return a->tokens.mark < b->tokens.mark ? -1 : a->tokens.mark > b->tokens.mark;
}

/* The mark of a bucket identifies its tokens. */
static const struct terms *find_bucket_terms(const struct scan *scan, const struct weir_token_bucket *bucket,
					     uint32_t tag)
{
	const struct terms wanted = {.tokens.mark = (uint32_t)(bucket->touched >> 32) ^ tag};

	for (size_t i = 0; i < scan->rule_count; i++)
		if (weir_bucket_is_of(bucket, &scan->terms[i].tokens, tag))
			return &scan->terms[i];
	if (scan->count == scan->rule_count)
		return NULL;
	return bsearch(&wanted, scan->terms + scan->rule_count, scan->count - scan->rule_count, sizeof(*scan->terms),
		       compare_marks);
}

/* Show each bucket that is not full, by the tokens that it lacks, rounded up. Buckets under an override have a burst of
 * their own.
 */
static void look(const void *element, uint64_t now_ns, struct weir_observed *found, void *data)
{
	const struct weir_token_bucket *bucket = element;
	const struct scan *scan = data;
	const struct terms *terms = found->tag ? find_bucket_terms(scan, bucket, found->tag) : NULL;
	uint64_t lacks;

	for (size_t i = 0; !found->tag && !terms && i < scan->rule_count; i++)
		if (scan->terms[i].slot == found->slot)
			terms = &scan->terms[i];
	lacks = terms ? weir_bucket_lacks(bucket, &terms->tokens, found->tag, now_ns) : 0;
	if (!lacks)
		return;
	found->slot = terms->slot;
	found->is_sure = true;
	found->units = lacks / terms->tokens.unit + (lacks % terms->tokens.unit != 0);
	found->has_threshold = true;
	found->threshold = terms->tokens.capacity / terms->tokens.unit;
	scan->add(found, scan->data);
}

/* An override has its own clock, which started at 0, and the rule's unit (bpf/kinds/tokens.h). */
static int add_override(const struct weir_override_key *key, const struct weir_override_units *units, void *data)
{
	struct scan *scan = data;

	for (size_t i = 0; i < scan->rule_count; i++) {
		const struct terms *of = &scan->terms[i];

		if (scan->instance->rules[of->slot].place != key->place)
			continue;
		if (scan->count == scan->room) /* a reload came in between: show only as many as were described */
			return 0;
		scan->terms[scan->count++] = (struct terms){
			.slot = of->slot,
			.tokens =
				{
					.clock = {.rate = units->tokens.rate},
					.unit = of->tokens.unit,
					.capacity = units->tokens.capacity,
					.batch_max = units->tokens.batch_max,
					.mark = units->tokens.mark,
				},
		};
	}
	return 0;
}

static int find_override_terms(struct scan *scan)
{
	_cleanup_(weir_closep) int fd = -1;
	int err;

	if (scan->room == scan->rule_count)
		return 0;
	fd = weir_overrides_open(scan->instance);
	if (fd < 0) /* nothing is attached any more */
		return fd == -ENOENT ? 0 : fd;
	err = weir_overrides_scan(fd, add_override, scan);
	if (scan->count > scan->rule_count)
		qsort(scan->terms + scan->rule_count, scan->count - scan->rule_count, sizeof(*scan->terms),
		      compare_marks);
	return err;
}

static int find_terms(struct scan *scan)
{
	for (uint32_t i = 0; i < scan->instance->rule_count; i++) {
		const struct weir_rule_info *rule = &scan->instance->rules[scan->instance->rule_order[i]];

		if (has_buckets(rule))
			scan->room += 1 + rule->override_count;
	}
	scan->terms = calloc(scan->room + 1, sizeof(*scan->terms));
	if (!scan->terms)
		return -ENOMEM;
	for (uint32_t i = 0; i < scan->instance->rule_count; i++) {
		const uint32_t slot = scan->instance->rule_order[i];
		const struct weir_rule_info *rule = &scan->instance->rules[slot];
		struct terms *terms = &scan->terms[scan->count];
		int err;

		if (!has_buckets(rule))
			continue;
		*terms = (struct terms){.slot = slot, .tokens = rule->tokens};
		err = weir_instance_read_clock(scan->instance, rule, &terms->tokens.clock);
		if (err)
			return err;
		scan->count++;
	}
	scan->rule_count = scan->count;
	return find_override_terms(scan);
}

int weir_observe_tokens(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			void *data)
{
	struct scan scan = {.instance = instance, .add = add, .data = data};
	int err = find_terms(&scan);

	if (!err && scan.count)
		err = weir_observe_tables(instance, WEIR_KIND_TOKENS, &WEIR_TOKEN_TABLES, look, &scan);
	free(scan.terms);
	return err;
}
