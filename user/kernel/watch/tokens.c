// SPDX-License-Identifier: GPL-2.0-only
#include "watch/tokens.h"

#include <errno.h>

#include "base/util.h"
#include "program/array.h"
#include "tables/rule_kind.h"
#include "tables/token_bucket.h"

/* A rule's tokens, with the clock that is in force. */
struct terms {
	uint32_t slot;
	struct weir_tokens tokens;
};

struct scan {
	const struct weir_instance *instance;
	uint64_t now_ns;
	struct terms *terms; /* of the rules that have tokens */
	size_t count;
	weir_tokens_add *add;
	void *data;
};

static bool has_buckets(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_meter && weir_has_tokens(rule) && rule->tokens.unit;
}

bool weir_tokens_are_used(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (has_buckets(&instance->rules[instance->rule_order[i]]))
			return true;
	return false;
}

static void add_bucket(const struct scan *scan, const struct terms *terms, const struct weir_token_bucket *bucket,
		       uint32_t tag, uint32_t set)
{
	const uint64_t lacks = weir_bucket_lacks(bucket, &terms->tokens, tag, scan->now_ns);
	const struct weir_tokens_use use = {
		.slot = terms->slot,
		.tag = tag,
		.set = set,
		.lacks = lacks / terms->tokens.unit + (lacks % terms->tokens.unit != 0),
		.burst = terms->tokens.capacity / terms->tokens.unit,
	};

	if (lacks)
		scan->add(&use, scan->data);
}

/* The mark says of which rule's tokens a bucket is. */
static int add_set(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_token_set *set = values;
	const struct scan *scan = data;

	for (int way = 0; way < WEIR_TOKEN_WAYS; way++)
		for (size_t i = 0; set->tag[way] && i < scan->count; i++)
			if (weir_bucket_is_of(&set->bucket[way], &scan->terms[i].tokens, set->tag[way])) {
				add_bucket(scan, &scan->terms[i], &set->bucket[way], set->tag[way], index);
				break;
			}
	return 0;
}

static int add_resource(uint32_t slot, const void *values, int cpus, void *data)
{
	const struct scan *scan = data;

	for (size_t i = 0; i < scan->count; i++)
		if (scan->terms[i].slot == slot && !scan->instance->rules[slot].identity.key_fields)
			add_bucket(scan, &scan->terms[i], values, 0, 0);
	return 0;
}

static int find_terms(struct scan *scan)
{
	scan->terms = calloc(scan->instance->rule_count + 1, sizeof(*scan->terms));
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
	return 0;
}

static void free_terms(struct scan *scan)
{
	free(scan->terms);
}

int weir_tokens_scan(const struct weir_instance *instance, uint64_t now_ns, weir_tokens_add *add, void *data)
{
	_cleanup_(free_terms) struct scan scan = {.instance = instance, .now_ns = now_ns, .add = add, .data = data};
	int err = find_terms(&scan);

	if (err || !scan.count)
		return err;
	err = weir_array_scan(instance->map_fd[WEIR_MAP_TOKEN_RESOURCES], instance->info.rule_slots,
			      sizeof(struct weir_token_bucket), add_resource, &scan);
	if (!err)
		err = weir_array_scan(instance->map_fd[WEIR_MAP_TOKEN_FLOWS], instance->info.token_sets,
				      sizeof(struct weir_token_set), add_set, &scan);
	return err;
}
