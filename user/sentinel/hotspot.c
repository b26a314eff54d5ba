// SPDX-License-Identifier: GPL-2.0-only
/* Hotspot and param-flow rules, translated into weir's words. */
#include "sentinel/sentinel.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* ---- values with their own thresholds ---- */

/* The nodes of the overrides made from the items: a list of {source: VALUE, threshold: THRESHOLD}. */
struct overrides {
	struct weir_node list;
	struct override {
		struct weir_node map, names[2];
		struct weir_node *fields[4];
	} * entries;
};

static struct weir_node word_at(const struct weir_node *at, const char *text)
{
	return (struct weir_node){
		.kind = WEIR_NODE_WORD, .text = (char *)text, .document = at->document, .place = at->place};
}

static void fill_override(struct override *override, const struct weir_node *item, const char *address,
			  const struct weir_hotspot_item *parts)
{
	override->names[0] = word_at(parts->value, address);
	override->names[1] = word_at(parts->threshold, "threshold");
	override->fields[0] = &override->names[0];
	override->fields[1] = (struct weir_node *)parts->value;
	override->fields[2] = &override->names[1];
	override->fields[3] = (struct weir_node *)parts->threshold;
	override->map = (struct weir_node){
		.kind = WEIR_NODE_MAP,
		.items = override->fields,
		.count = ARRAY_SIZE(override->fields),
		.document = item->document,
		.place = item->place,
	};
}

/* Check a value, which is one flow. A prefix longer than the key's is reported with the overrides. */
static bool is_value(struct weir_reader *reader, const struct weir_ruleset_resource *resource,
		     const struct weir_node *value)
{
	const bool is_source = resource->flow.fields == WEIR_KEY_SOURCE;
	const uint8_t *bits = is_source ? resource->flow.source_bits : resource->flow.destination_bits;
	struct weir_refusal refusal;
	struct weir_prefix prefix;

	if (value->kind != WEIR_NODE_WORD || weir_parse_prefix(value->text, &prefix, &refusal) ||
	    prefix.bits >= bits[prefix.family == 6])
		return true;
	weir_complain(reader, value, "for all flows of a prefix, write 'overrides' in a rule in weir's own format",
		      "'%.*s' is more than one flow: the flow key of '%.*s' has /%u", WEIR_SHOWN(value->text),
		      WEIR_SHOWN(resource->name), bits[prefix.family == 6]);
	return false;
}

static bool read_items(struct weir_reader *reader, const struct weir_hotspot *hotspot,
		       const struct weir_ruleset_resource *resource, weir_hotspot_item_reader read_item,
		       struct overrides *overrides)
{
	const char *address = resource->flow.fields == WEIR_KEY_SOURCE ? "source" : "destination";
	const struct weir_node *items = hotspot->items;
	const bool is_map = items->kind == WEIR_NODE_MAP; /* VALUE: THRESHOLD */
	const size_t count = is_map ? items->count / 2 : items->count;
	const uint64_t units_max = WEIR_HOTSPOT_UNITS_MAX - hotspot->burst; /* the burst must fit beside it */
	uint64_t ignored;

	overrides->entries = calloc(count, sizeof(*overrides->entries));
	overrides->list = *items;
	overrides->list.kind = WEIR_NODE_LIST;
	overrides->list.items = calloc(count, sizeof(*overrides->list.items));
	overrides->list.count = 0;
	if (!overrides->entries || !overrides->list.items) {
		reader->is_out_of_memory = true;
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		const struct weir_node *item = items->items[is_map ? 2 * i : i];
		struct weir_hotspot_item parts = {item, is_map ? items->items[2 * i + 1] : NULL};

		if (!is_map && !read_item(reader, item, &parts))
			continue;
		if (!parts.threshold ||
		    !weir_sentinel_read_number(reader, parts.threshold, "threshold", 0, units_max, 0, &ignored) ||
		    !is_value(reader, resource, parts.value))
			continue;
		fill_override(&overrides->entries[i], item, address, &parts);
		overrides->list.items[overrides->list.count++] = &overrides->entries[i].map;
	}
	return overrides->list.count;
}

/* Overrides refer to one address, so the key must be exactly that address. */
static void say_items(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot,
		      const struct weir_ruleset_resource *resource, weir_hotspot_item_reader read_item,
		      struct overrides *overrides)
{
	const bool is_map = hotspot->items->kind == WEIR_NODE_MAP && hotspot->may_map_items;

	if (hotspot->items->kind != WEIR_NODE_LIST && !is_map)
		weir_complain(reader, hotspot->items, "docs/sentinel.md has an example",
			      "the values with their own thresholds must be a list");
	else if (resource->flow.fields != WEIR_KEY_SOURCE && resource->flow.fields != WEIR_KEY_DESTINATION)
		weir_complain(reader, hotspot->items,
			      "only the flow keys 'source' and 'destination', each alone, can have such values",
			      "the flow key of '%.*s' has no such values", WEIR_SHOWN(resource->name));
	else if (hotspot->items->count && read_items(reader, hotspot, resource, read_item, overrides))
		rule->draft.value[RULE_OVERRIDES] = &overrides->list;
}

/* ---- the rule ---- */

static const struct weir_ruleset_resource *find_resource(struct weir_reader *reader,
							 const struct weir_sentinel_rule *rule)
{
	const struct weir_node *node = rule->draft.value[RULE_RESOURCE];
	size_t index;

	if (!node || node->kind != WEIR_NODE_WORD || !weir_find_resource(reader, node->text, &index))
		return NULL;
	return &reader->ruleset->resources[index];
}

static const struct weir_node *at_of(const struct weir_sentinel_rule *rule, const struct weir_node *node)
{
	return node ?: rule->node;
}

/* Per duration N tokens are added, and a new value starts with N + burst. A value with its own threshold also has its
 * own burst.
 */
static void say_tokens(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot)
{
	weir_sentinel_say(rule, RULE_WINDOW, at_of(rule, hotspot->metric), "tokens");
	if (hotspot->threshold > WEIR_HOTSPOT_UNITS_MAX - hotspot->burst)
		weir_complain(reader, at_of(rule, hotspot->burst_at), "lower one of them",
			      "the threshold and the burstCount are more than %llu together", WEIR_HOTSPOT_UNITS_MAX);
	else if (hotspot->items)
		weir_sentinel_say_number(rule, RULE_BURST_COUNT, at_of(rule, hotspot->burst_at), hotspot->burst);
	else if (hotspot->threshold && hotspot->burst)
		weir_sentinel_say_number(rule, RULE_BURST, at_of(rule, hotspot->burst_at),
					 hotspot->threshold + hotspot->burst);
}

static void say_choices(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot)
{
	if (hotspot->counts_open) {
		weir_sentinel_say(rule, RULE_METRIC, at_of(rule, hotspot->metric), "Concurrency");
		return;
	}
	weir_sentinel_say_number(rule, RULE_INTERVAL, at_of(rule, hotspot->duration), hotspot->duration_s * 1000);
	if (hotspot->throttles)
		weir_sentinel_say(rule, RULE_BEHAVIOR, at_of(rule, hotspot->behavior), "Throttling");
	else
		say_tokens(reader, rule, hotspot);
}

void weir_read_hotspot(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_hotspot *hotspot,
		       weir_hotspot_item_reader read_item)
{
	const struct weir_ruleset_resource *resource = find_resource(reader, rule);
	struct overrides overrides = {};

	if (resource && !resource->flow.fields)
		weir_complain(reader, rule->draft.value[RULE_RESOURCE],
			      "give the resource a 'flow', such as 'flow: source': it stands for the parameter",
			      "'%.*s' has no flow key, so there are no values to limit separately",
			      WEIR_SHOWN(resource->name));
	else if (resource && hotspot->items)
		say_items(reader, rule, hotspot, resource, read_item, &overrides);
	say_choices(reader, rule, hotspot);
	weir_read_draft(reader, &rule->draft);
	free(overrides.entries);
	free(overrides.list.items);
}
