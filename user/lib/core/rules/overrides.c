// SPDX-License-Identifier: GPL-2.0-only
/* Overrides: separate thresholds for particular flows of a rule. */
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/rule.h"

/* ---- small thresholds ---- */

/* The largest frame on an Ethernet with an MTU of 1500 bytes, without its checksum, which XDP does not see. */
#define FRAME_BYTES_USUAL 1514

void weir_warn_of_small_threshold(struct weir_reader *reader, const struct weir_node *node, uint64_t micro,
				  const struct weir_ruleset_rule *rule)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	/* Any rate above zero adds tokens, and `burst` limits what is admitted at once; by default that is at least a
	 * frame.
	 */
	if (kind->has_tokens ? !micro : micro < WEIR_MICRO)
		weir_warn(reader, node, kind->below_one_hint, "%s", kind->below_one);
	else if (rule->counts_bytes && (!kind->has_tokens || rule->has_burst_beyond) &&
		 micro + rule->burst_beyond_micro < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, node,
			  "a frame larger than the threshold is never admitted; a full one has 1514 bytes",
			  "this threshold is smaller than a frame can be");
}

/* "0.5/s" admits nothing in any second; "1/2s" was probably meant. */
static bool warn_of_small_rate(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	uint64_t micro = rule->threshold_micro, divisor = WEIR_MICRO, rest;
	char hint[96], interval[WEIR_DURATION_TEXT_BYTES];

	if (!draft->has_rate || !micro || micro >= WEIR_MICRO || weir_kind_of(rule)->has_tokens)
		return false;
	/* The greatest common divisor (Euclid). */
	for (uint64_t larger = WEIR_MICRO, smaller = micro; smaller; larger = smaller, smaller = rest) {
		rest = larger % smaller;
		divisor = smaller;
	}
	if (WEIR_MICRO / divisor > (uint64_t)WEIR_INTERVAL_MS_MAX * 1000000 / rule->interval_ns)
		return false;
	snprintf(hint, sizeof(hint), "a packet is admitted whole or not at all: write %llu/%s",
		 (unsigned long long)(micro / divisor),
		 weir_format_duration(rule->interval_ns * (WEIR_MICRO / divisor), interval));
	weir_warn(reader, draft->value[RULE_THRESHOLD], hint, "%s", weir_kind_of(rule)->below_one);
	return true;
}

void weir_warn_of_small_thresholds(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	uint64_t high_micro = rule->memory.high_units * WEIR_MICRO;

	if (draft->has_threshold && !warn_of_small_rate(reader, draft))
		weir_warn_of_small_threshold(reader, draft->value[RULE_THRESHOLD], rule->threshold_micro, rule);
	if (high_micro)
		weir_warn_of_small_threshold(reader, draft->value[RULE_HIGH_USAGE], high_micro, rule);
	/* A frame that is too large for a cold flow never warms it up either. */
	if (draft->has_threshold && rule->counts_bytes && rule->warm_up.cold_factor > 1 &&
	    rule->threshold_micro >= FRAME_BYTES_USUAL * WEIR_MICRO &&
	    rule->threshold_micro / rule->warm_up.cold_factor < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, draft->value[RULE_THRESHOLD],
			  "a frame larger than that is not admitted before smaller ones have warmed it up",
			  "cold, this threshold is smaller than a frame can be: threshold / warmUpColdFactor is below "
			  "1514");
}

/* ---- overrides ---- */

enum override_field {
	OVERRIDE_SOURCE,
	OVERRIDE_DESTINATION,
	OVERRIDE_REMOTE,
	OVERRIDE_LOCAL,
	OVERRIDE_LABEL,
	OVERRIDE_THRESHOLD,
	OVERRIDE_RATE,
	OVERRIDE_FIELD_COUNT
};
#define OVERRIDE_ADDRESSES 5 /* of which the last is a label */

static const char *const override_fields[OVERRIDE_FIELD_COUNT] = {"source", "destination", "remote", "local",
								  "label",  "threshold",   "rate"};

/* The overrides of one rule while they are read. */
struct overrides {
	struct weir_reader *reader;
	const struct weir_ruleset_resource *resource; /* NULL: not known */
	const struct weir_flow *flow;		      /* the rule's; NULL if `resource` is */
	struct weir_ruleset_rule *rule;
	const struct weir_node *first;	/* the first prefix, which determines the kind of all */
	const struct weir_node **nodes; /* the nodes to point at, by override */
};

/* ---- the prefix, or the label ---- */

/* A label belongs to the end of the key that has a set. Whether there is one is reported once. */
static bool take_labels(struct overrides *overrides, const struct weir_node *node)
{
	const struct weir_flow *flow = overrides->flow;
	const uint32_t ends = flow ? WEIR_KEY_LABEL_ENDS(flow->fields) : WEIR_KEY_SOURCE;
	struct weir_ruleset_rule *rule = overrides->rule;

	if (!overrides->first) {
		overrides->first = node;
		rule->override_field = ends == WEIR_KEY_DESTINATION ? WEIR_KEY_DESTINATION : WEIR_KEY_SOURCE;
		rule->overrides_end = flow && flow->fields & WEIR_KEY_RELATIVE(rule->override_field);
		rule->overrides_label = true;
		if (!ends)
			weir_complain(overrides->reader, node, "write 'source: PREFIX', or 'source@NAME' in the key",
				      "the flow key of '%.*s' has no set whose label this could be",
				      WEIR_SHOWN(rule->has_own_key ? rule->name : overrides->resource->name));
		else if (ends == (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION))
			weir_complain(overrides->reader, node, "leave one of the sets out of the key",
				      "the flow key of '%.*s' has two sets, and a label does not say which it is of",
				      WEIR_SHOWN(rule->has_own_key ? rule->name : overrides->resource->name));
	}
	if (rule->overrides_label)
		return true;
	weir_complain(overrides->reader, node, "write another rule for the others",
		      "all overrides of a rule must be of one kind: the first, in line %d, is by %s",
		      overrides->first->place.line, weir_override_name(rule));
	return false;
}

/* All entries must have the kind of the first. Whether the key has such a field is reported once, at the first. */
static bool take_kind(struct overrides *overrides, const struct weir_node *node, enum override_field named)
{
	const enum weir_key_field field = named % 2 ? WEIR_KEY_DESTINATION : WEIR_KEY_SOURCE;
	const bool is_end = named >= OVERRIDE_REMOTE;
	struct weir_ruleset_rule *rule = overrides->rule;

	if (!overrides->first) {
		overrides->first = node;
		rule->override_field = field;
		rule->overrides_end = is_end;
		if (overrides->flow && overrides->flow->fields & WEIR_KEY_LABEL(field))
			weir_complain(overrides->reader, node, "write 'label: LABEL'",
				      "the flow key has the labels of set '%s' there, not addresses",
				      field == WEIR_KEY_SOURCE ? overrides->flow->source_set
							       : overrides->flow->destination_set);
		else if (overrides->flow && (!(overrides->flow->fields & field) ||
					     !(overrides->flow->fields & WEIR_KEY_RELATIVE(field)) == is_end))
			weir_complain(overrides->reader, node,
				      overrides->flow->fields & field
					      ? is_end ? "write the word of the key: 'source' or 'destination'"
						       : "write the word of the key: 'remote' or 'local'"
				      : rule->has_own_key
					      ? "an override applies to flows of the rule's key: see 'per'"
					      : "an override applies to flows of the resource's key: see 'flow'",
				      "%s is not in the flow key of '%.*s'", weir_override_name(overrides->rule),
				      WEIR_SHOWN(rule->has_own_key ? rule->name : overrides->resource->name));
	}
	if (!rule->overrides_label && rule->override_field == field && rule->overrides_end == is_end)
		return true;
	weir_complain(overrides->reader, node, "write another rule for the others",
		      "all overrides of a rule must be of one kind: the first, in line %d, is by %s",
		      overrides->first->place.line, weir_override_name(rule));
	return false;
}

/* A flow is at least as large as the key's prefix: a part of a flow cannot have its own threshold. */
static bool check_length(struct overrides *overrides, const struct weir_node *node, const struct weir_prefix *prefix)
{
	const struct weir_ruleset_resource *resource = overrides->resource;
	char text[WEIR_PREFIX_TEXT_BYTES];
	const uint8_t *key_bits;
	unsigned int longest;

	if (!resource || !(overrides->flow->fields & overrides->rule->override_field) ||
	    overrides->flow->fields & WEIR_KEY_LABEL(overrides->rule->override_field))
		return true;
	key_bits = overrides->rule->override_field == WEIR_KEY_SOURCE ? overrides->flow->source_bits
								      : overrides->flow->destination_bits;
	longest = key_bits[prefix->family == 6];
	if (resource->match.families && !(resource->match.families & (prefix->family == 6 ? 2 : 1)))
		weir_warn(overrides->reader, node, "leave it out", "the override has no effect: '%.*s' matches only %s",
			  WEIR_SHOWN(resource->name), prefix->family == 6 ? "IPv4" : "IPv6");
	if (prefix->bits <= longest)
		return true;
	weir_format_prefix(prefix, text);
	weir_complain(overrides->reader, node, "an override must cover whole flows",
		      "prefix '%.*s' is longer than the flow key's, which is /%u",
		      WEIR_SHOWN(weir_is_set_use(node->text) ? text : node->text), longest);
	return false;
}

/* Read a label at `node`. Whether a prefix has it now is a question for each load of the set. */
static bool read_label(struct overrides *overrides, const struct weir_node *node, char label[WEIR_LABEL_BYTES])
{
	const bool is_of_kind = take_labels(overrides, node);
	struct weir_refusal refusal;
	const char *word;

	if (!weir_read_word(overrides->reader, node, override_fields[OVERRIDE_LABEL], &word))
		return false;
	if (weir_check_label(word, &refusal)) {
		weir_complain(overrides->reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
		return false;
	}
	snprintf(label, WEIR_LABEL_BYTES, "%s", word);
	return is_of_kind;
}

/* Read a prefix or "@NAME" at `node`. Returns false if neither is there. */
static bool read_address(struct overrides *overrides, const struct weir_node *node, enum override_field named,
			 struct weir_prefix *prefix, struct weir_set_use *use)
{
	bool is_of_kind = take_kind(overrides, node, named);
	struct weir_refusal refusal;
	const char *word;
	int err;

	if (!weir_read_word(overrides->reader, node, override_fields[named], &word))
		return false;
	err = word[0] == '@' ? weir_parse_set_use(overrides->reader, word, use, &refusal)
			     : weir_parse_prefix(word, prefix, &refusal);
	if (err) {
		weir_complain(overrides->reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
		return false;
	}
	return is_of_kind && (word[0] == '@' ? use->set != SIZE_MAX : check_length(overrides, node, prefix));
}

/* ---- one entry ---- */

/* Read a rate that must match the rule's unit and interval: only the threshold can be overridden. */
static int take_rate(const struct weir_ruleset_rule *rule, const char *word, uint64_t *micro,
		     struct weir_refusal *refusal)
{
	char interval[WEIR_DURATION_TEXT_BYTES];
	struct weir_rate rate = {};
	int err = weir_parse_rate(word, &rate, refusal);

	if (err)
		return err;
	if (!weir_kind_has(weir_kind_of(rule), RULE_INTERVAL)) {
		weir_refuse(refusal, "the rule of this override has no rate");
		return weir_advise(refusal, "write 'threshold', a number without a time");
	}
	if (rate.counts_bytes != rule->counts_bytes) {
		weir_refuse(refusal, "rate '%.*s' counts %s, and the rule %s", WEIR_SHOWN(word),
			    rate.counts_bytes ? "bytes" : "packets", rule->counts_bytes ? "bytes" : "packets");
		return weir_advise(refusal, "write both in bytes, or both in packets");
	}
	if (rate.interval_ns != rule->interval_ns) {
		weir_refuse(refusal, "rate '%.*s' has another interval than the rule", WEIR_SHOWN(word));
		return weir_advise(refusal, "write how many per %s, the rule's interval",
				   weir_format_duration(rule->interval_ns, interval));
	}
	*micro = rate.micro;
	return 0;
}

static void read_threshold(struct overrides *overrides, const struct weir_node *node, bool is_rate, uint64_t *micro)
{
	struct weir_refusal refusal;
	const char *word;

	if (!weir_read_word(overrides->reader, node, is_rate ? "rate" : "threshold", &word))
		return;
	if (is_rate ? take_rate(overrides->rule, word, micro, &refusal)
		    : weir_parse_threshold(word, overrides->rule->counts_bytes, micro, &refusal))
		weir_complain(overrides->reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
	else if (*micro > WEIR_THRESHOLD_UNITS_MAX * WEIR_MICRO - overrides->rule->burst_beyond_micro)
		weir_complain(overrides->reader, node, "lower one of them",
			      "the threshold and the burstCount are more than %llu together", WEIR_THRESHOLD_UNITS_MAX);
	else if (*micro)
		/* A 0 is not warned about: it is how a flow is blocked. */
		weir_warn_of_small_threshold(overrides->reader, node, *micro, overrides->rule);
}

static void add(struct overrides *overrides, const struct weir_node *node, const struct weir_override *override)
{
	struct weir_ruleset_rule *rule = overrides->rule;
	const struct weir_node **pointed_at;
	struct weir_override *added;

	added = weir_array_add((void **)&rule->overrides, rule->override_count, sizeof(*added));
	pointed_at = weir_array_add((void **)&overrides->nodes, rule->override_count, sizeof(*pointed_at));
	if (!added || !pointed_at) {
		overrides->reader->is_out_of_memory = true;
		return;
	}
	*added = *override;
	*pointed_at = node;
	rule->override_count++;
}

/* Add an override for each prefix of the set; for a label, for those that have it. */
static void add_set(struct overrides *overrides, const struct weir_node *node, const struct weir_set_use *use,
		    struct weir_override override)
{
	struct weir_reader *reader = overrides->reader;
	const struct weir_set *set = &reader->ruleset->sets[use->set];
	const uint32_t label = use->label[0] ? weir_find_used_label(reader, node, use) : WEIR_NO_LABEL;
	struct weir_ruleset_rule *rule = overrides->rule;
	struct weir_override_set *used;
	size_t count = 0;

	used = weir_array_add((void **)&rule->override_sets, rule->override_set_count, sizeof(*used));
	if (!used) {
		reader->is_out_of_memory = true;
		return;
	}
	*used = (struct weir_override_set){
		.use = *use, .threshold_micro = override.threshold_micro, .place = rule->override_count};
	rule->override_set_count++;
	override.is_of_set = true;

	for (size_t i = 0; i < set->entry_count; i++)
		count += !use->label[0] || set->entries[i].label == label;
	if (count > WEIR_SET_OVERRIDES_MAX || rule->override_count + count > WEIR_OVERRIDES_MAX) {
		weir_complain(reader, node,
			      "make it a resource of its own, with 'source' or 'destination' in its match",
			      "'%.*s' has %zu prefixes: overrides have at most %d of a set, and %d of a rule",
			      WEIR_SHOWN(node->text), count, WEIR_SET_OVERRIDES_MAX, WEIR_OVERRIDES_MAX);
		return;
	}
	for (size_t i = 0; i < set->entry_count; i++) {
		override.prefix = set->entries[i].prefix;
		if ((!use->label[0] || set->entries[i].label == label) &&
		    check_length(overrides, node, &override.prefix))
			add(overrides, node, &override);
	}
}

static void read_override(struct overrides *overrides, const struct weir_node *node)
{
	const struct weir_node *values[OVERRIDE_FIELD_COUNT], *address = NULL, *other = NULL;
	enum override_field named = OVERRIDE_ADDRESSES;
	struct weir_override override = {};
	struct weir_set_use use = {};
	bool is_good = false;
	uint32_t meant;

	weir_read_fields(overrides->reader, node, "override", override_fields, OVERRIDE_FIELD_COUNT, false, values);
	meant = overrides->reader->meant;
	if (node->kind != WEIR_NODE_MAP)
		return;
	for (enum override_field field = OVERRIDE_SOURCE; field < OVERRIDE_ADDRESSES; field++) {
		if (values[field] && address)
			other = values[field];
		else if (values[field])
			address = values[field], named = field;
	}
	if (!address && !(meant & ((1u << OVERRIDE_ADDRESSES) - 1)))
		weir_complain(overrides->reader, node, "write whose flows it is for: 'source: 192.0.2.0/24'",
			      "the override has no prefix");
	else if (other)
		weir_complain(overrides->reader, other, "leave one of them out",
			      "an override has one address, source or destination, not both");
	else if (address)
		is_good = named == OVERRIDE_LABEL ? read_label(overrides, address, override.label)
						  : read_address(overrides, address, named, &override.prefix, &use);
	if (values[OVERRIDE_THRESHOLD] && values[OVERRIDE_RATE])
		weir_complain(overrides->reader, values[OVERRIDE_THRESHOLD], "leave one of them out",
			      "'rate' includes it, so 'threshold' must not be given");
	else if (values[OVERRIDE_THRESHOLD] || values[OVERRIDE_RATE])
		read_threshold(overrides, values[OVERRIDE_THRESHOLD] ?: values[OVERRIDE_RATE],
			       !values[OVERRIDE_THRESHOLD], &override.threshold_micro);
	else if (!(meant & (1u << OVERRIDE_THRESHOLD | 1u << OVERRIDE_RATE)))
		weir_complain(overrides->reader, node, "write 'threshold: 5000', or 0 to block",
			      "the override has no threshold");
	if (!is_good)
		return;
	override.place = address->place;
	if (use.name[0])
		add_set(overrides, address, &use, override);
	else
		add(overrides, address, &override);
}

/* ---- all of them ---- */

struct ranked {
	const struct weir_override *override;
	size_t index;
};

static int compare_overrides(const struct weir_override *left, const struct weir_override *right)
{
	return weir_compare_prefixes(&left->prefix, &right->prefix) ?: strcmp(left->label, right->label);
}

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;
	int order = compare_overrides(a->override, b->override);

	return order ?: a->index < b->index ? -1 : a->index > b->index;
}

static void check_unique(struct overrides *overrides)
{
	const struct weir_ruleset_rule *rule = overrides->rule;
	_cleanup_(weir_freep) struct ranked *ranked = calloc(rule->override_count + 1, sizeof(*ranked));
	char text[WEIR_PREFIX_TEXT_BYTES];
	size_t first = 0;

	if (!ranked) {
		overrides->reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < rule->override_count; i++)
		ranked[i] = (struct ranked){&rule->overrides[i], i};
	qsort(ranked, rule->override_count, sizeof(*ranked), compare_ranked);
	for (size_t i = 1; i < rule->override_count; i++) {
		if (compare_overrides(ranked[i].override, ranked[first].override))
			first = i;
		else
			weir_complain(overrides->reader, overrides->nodes[ranked[i].index], "leave one of them out",
				      "%.*s already has an override, in line %d",
				      WEIR_SHOWN(rule->overrides_label
							 ? ranked[first].override->label
							 : weir_format_prefix(&ranked[first].override->prefix, text)),
				      overrides->nodes[ranked[first].index]->place.line);
	}
}

void weir_read_overrides(struct weir_reader *reader, const struct weir_node *node,
			 const struct weir_ruleset_resource *resource, struct weir_ruleset_rule *rule)
{
	struct overrides overrides = {
		.reader = reader,
		.resource = resource,
		.flow = resource ? weir_flow_of(reader->ruleset, rule) : NULL,
		.rule = rule,
	};

	if (node->kind != WEIR_NODE_LIST) {
		weir_complain(reader, node, "begin each item with '- '", "'overrides' must be a list");
		return;
	}
	if (node->count > WEIR_OVERRIDES_MAX) {
		weir_complain(reader, node, "split the resource, or merge neighbouring prefixes into larger ones",
			      "the rule has %zu overrides: more than %d", node->count, WEIR_OVERRIDES_MAX);
		return;
	}
	for (size_t i = 0; i < node->count && !reader->is_out_of_memory; i++)
		read_override(&overrides, node->items[i]);
	if (!reader->is_out_of_memory)
		check_unique(&overrides);
	free(overrides.nodes);
}
