// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sentinel Java's authority rules: who may use a resource (strategy 0), or must not (1). Here they become `deny` lists,
 * which apply to the whole host, so such a rule is accepted only on a resource that matches all traffic of the host.
 */
#include <string.h>

#include "base/util.h"
#include "sentinel/sentinel.h"

enum { AUTHORITY_RESOURCE, AUTHORITY_LIMIT_APP, AUTHORITY_STRATEGY, AUTHORITY_REGEX };
enum { STRATEGY_WHITE, STRATEGY_BLACK };

#define OWN RULE_FIELD_COUNT, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead

static const struct weir_sentinel_field authority_fields[] = {
	[AUTHORITY_RESOURCE] = {"resource", OWN},
	[AUTHORITY_LIMIT_APP] = {"limitApp", OWN},
	[AUTHORITY_STRATEGY] = {"strategy", OWN},
	[AUTHORITY_REGEX] = {"regex", OWN},
	{"id", OWN},
};

/* ---- all but some ---- */

struct prefixes {
	struct weir_prefix *entries;
	size_t count;
};

static bool has_bit(const struct weir_prefix *prefix, unsigned int bit)
{
	return prefix->address[bit / 8] >> (7 - bit % 8) & 1;
}

static int compare(const void *left, const void *right)
{
	return weir_compare_prefixes(left, right);
}

/* Deny the part of a prefix that is in none of the allowed prefixes (`may`), which all lie in it and are sorted: the
 * prefix itself, or parts of its halves. Each allowed prefix splits at most 128 prefixes on the way down.
 */
static void deny_others(struct weir_reader *reader, const struct weir_node *at, const struct weir_prefix *may,
			size_t count, const struct weir_prefix *prefix)
{
	struct weir_prefix half = *prefix;
	size_t lower = 0;

	if (!count)
		weir_add_listed(reader, at, prefix, true);
	/* Among equal addresses, the shortest prefix comes first. */
	if (!count || may[0].bits == prefix->bits)
		return;
	while (lower < count && !has_bit(&may[lower], prefix->bits))
		lower++;
	half.bits++;
	deny_others(reader, at, may, lower, &half);
	half.address[prefix->bits / 8] |= 0x80 >> prefix->bits % 8;
	deny_others(reader, at, may + lower, count - lower, &half);
}

static void deny_all_but(struct weir_reader *reader, const struct weir_node *at, const struct prefixes *may)
{
	static const struct weir_prefix every[] = {{.family = 4}, {.family = 6}};
	static const struct weir_prefix link_local = {.family = 6, .bits = 10, .address = {0xfe, 0x80}};
	bool has_link_local = false;
	size_t of_ipv4 = 0;

	qsort(may->entries, may->count, sizeof(*may->entries), compare);
	while (of_ipv4 < may->count && may->entries[of_ipv4].family == 4)
		of_ipv4++;
	deny_others(reader, at, may->entries, of_ipv4, &every[0]);
	deny_others(reader, at, may->entries + of_ipv4, may->count - of_ipv4, &every[1]);
	for (size_t i = of_ipv4; i < may->count; i++)
		has_link_local |= !may->entries[i].bits || !weir_compare_prefixes(&may->entries[i], &link_local);
	if (!has_link_local)
		weir_warn(reader, at, "to keep it, add fe80::/10 to limitApp",
			  "strategy 0 denies all other sources, and IPv6 needs link-local ones to find its neighbours");
}

/* ---- who ---- */

static bool add_caller(struct weir_reader *reader, const struct weir_node *node, const char *word,
		       struct prefixes *callers)
{
	struct weir_refusal refusal;
	struct weir_prefix *prefix;

	prefix = weir_array_add((void **)&callers->entries, callers->count, sizeof(*prefix));
	if (!prefix) {
		reader->is_out_of_memory = true;
		return false;
	}
	if (weir_parse_prefix(word, prefix, &refusal)) {
		weir_complain(reader, node,
			      refusal.hint[0] ? refusal.hint : "packets carry no caller names: write their addresses",
			      "limitApp: %s", refusal.message);
		return false;
	}
	callers->count++;
	return true;
}

/* Parse "192.0.2.1,198.51.100.0/24", with optional blanks around the parts. Returns false after a complaint. */
static bool read_callers(struct weir_reader *reader, const struct weir_node *node, struct prefixes *callers)
{
	_cleanup_(weir_freep) char *copy = NULL;
	char *rest, *word;
	const char *text;
	bool is_good = true;

	if (!weir_read_word(reader, node, "limitApp", &text))
		return false;
	copy = rest = strdup(text);
	if (!copy) {
		reader->is_out_of_memory = true;
		return false;
	}
	while (is_good && (word = strsep(&rest, ","))) {
		word += strspn(word, " ");
		word[strcspn(word, " ")] = '\0';
		is_good = add_caller(reader, node, word, callers);
	}
	return is_good;
}

/* ---- the rule ---- */

/* A match without conditions is all zero, including fields that are added later. */
static bool has_conditions(const struct weir_match *match)
{
	const unsigned char *bytes = (const unsigned char *)match;

	for (size_t i = 0; i < sizeof(*match); i++)
		if (bytes[i])
			return true;
	return false;
}

/* Does the resource match every packet that has a source? */
static bool is_of_host(struct weir_reader *reader, const struct weir_node *node)
{
	const char *name;
	size_t index;

	if (!weir_look_up_resource(reader, node, "resource", &name, &index))
		return false;
	if (!has_conditions(&reader->ruleset->resources[index].match))
		return true;
	weir_complain(reader, node,
		      "name a resource without a match; or block flows of this one with a rule in weir's own format, "
		      "with 'overrides: [{source: 192.0.2.1, threshold: 0}]'",
		      "an authority rule applies to the whole host, and '%.*s' matches only some packets",
		      WEIR_SHOWN(name));
	return false;
}

static void read_authority(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const struct weir_node *const *values = rule->values;
	struct prefixes callers = {};
	uint64_t strategy;

	weir_sentinel_check_regex(reader, values[AUTHORITY_REGEX]);
	weir_sentinel_read_number(reader, values[AUTHORITY_STRATEGY], "strategy", STRATEGY_WHITE, STRATEGY_BLACK,
				  STRATEGY_WHITE, &strategy);
	if (!values[AUTHORITY_RESOURCE])
		weir_complain(reader, rule->node, "name the resource whose callers it is about: 'resource': NAME",
			      "the rule has no resource");
	else if (!values[AUTHORITY_LIMIT_APP])
		weir_complain(reader, rule->node, "write their addresses: 'limitApp': \"192.0.2.1,198.51.100.0/24\"",
			      "a Sentinel Java authority rule needs a limitApp");
	else if (is_of_host(reader, values[AUTHORITY_RESOURCE]) &&
		 read_callers(reader, values[AUTHORITY_LIMIT_APP], &callers)) {
		for (size_t i = 0; i < callers.count && strategy == STRATEGY_BLACK; i++)
			weir_add_listed(reader, values[AUTHORITY_LIMIT_APP], &callers.entries[i], true);
		if (strategy == STRATEGY_WHITE)
			deny_all_but(reader, values[AUTHORITY_LIMIT_APP], &callers);
	}
	free(callers.entries);
}

static const char *const authority_needs[] = {"limitApp", NULL};

const struct weir_sentinel_kind weir_sentinel_authority = {
	.name = "authorityRules",
	.title = "authority rules",
	.is_java = true,
	.fields = authority_fields,
	.field_count = ARRAY_SIZE(authority_fields),
	.needs = authority_needs,
	.read = read_authority,
};
