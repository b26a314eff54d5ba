// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many rules, and how many resources, can meet on one packet. The program has space for a fixed number, so a file
 * that could exceed it is refused. A packet belongs to one class of each field, and meets the intersection of the
 * classes' vectors. The heaviest intersection is searched by branch and bound, one field after the other, separately in
 * each context: an IP family plus the fields of a transport header (ports, flags, type). Within a context the fields
 * are independent.
 *
 * Errs on the safe side: classes that no real packet combines (a length of 60 and an IPv6 TCP header) count as if one
 * could.
 */
#include <netinet/in.h>
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/meet.h"

/* The unit of work is one word of a vector. Only files with many conditions that overlap in many fields come near this
 * limit.
 */
#define PATIENCE 20000000ull

/*
 * What a rule costs the dearest packet, in tenths of a microsecond: the first of a flow whose lines are in no cache,
 * as a flood of forged sources sends them. Rounded from `make bench`, part j (one to nine rules of a kind, SYN and RST
 * of new sources, a virtual machine of two cores): a rule that follows connections 0.7 to 0.9, windows and buckets of
 * flows 0.4 to 0.6; one of a whole resource, and one that shares the connections of an earlier rule, less than 0.1.
 */
#define COST_OF_PACKET 1
#define COST_OF_CONNECTIONS 8
#define COST_OF_FLOW 5
#define COST_OF_RESOURCE 1
#define COST_MAX 50 /* 5 us: a core for 200,000 packets a second. Chosen, not derived */
_Static_assert(WEIR_PACKET_RULES_MAX *COST_OF_CONNECTIONS < 1 << WEIGHT_BITS, "weights must fit their bit planes");

enum weight { COUNT_RESOURCES, COUNT_RULES, ADD_COSTS };

/* Range fields that EVERY packet has, or only packets with PORTS or a TYPE: bits of enum field_number. */
enum {
	WHO_EVERY,
	WHO_PORTS,
	WHO_TYPE,
};

#define BIT_OF_EVERY(constant, name, member, highest, none, who) | (WHO_##who == WHO_EVERY ? 1u << constant : 0)
#define BIT_OF_PORTS(constant, name, member, highest, none, who) | (WHO_##who == WHO_PORTS ? 1u << constant : 0)
#define BIT_OF_TYPE(constant, name, member, highest, none, who) | (WHO_##who == WHO_TYPE ? 1u << constant : 0)
#define FIELDS_OF_EVERY (0 WEIR_RANGE_FIELDS(BIT_OF_EVERY))
#define FIELDS_WITH_PORTS (0 WEIR_RANGE_FIELDS(BIT_OF_PORTS))
#define FIELDS_WITH_TYPE (0 WEIR_RANGE_FIELDS(BIT_OF_TYPE))
#define CONTEXTS_OF_DIRECTION ((size_t)2 * WEIR_FRAGMENT_KINDS * 256)
#define CONTEXTS_MAX (2 * CONTEXTS_OF_DIRECTION) /* in and out; forwarded packets meet fewer than outgoing ones */

/* ---- fields ---- */

static int add_class(struct field *field, uint32_t number, bool *is_listed)
{
	uint32_t *class;

	if (is_listed[number])
		return 0;
	class = weir_array_add((void **)&field->classes, field->count, sizeof(*class));
	if (!class)
		return -ENOMEM;
	*class = number;
	field->count++;
	is_listed[number] = true;
	return 0;
}

static int add_classes(struct field *field, const uint16_t *numbers, size_t count, bool *is_listed)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (add_class(field, numbers[i], is_listed))
			return -ENOMEM;
	}
	return 0;
}

static int add_prefixes(struct field *field, const struct weir_image_prefix *prefixes, size_t count, uint8_t family,
			uint32_t outside, bool *is_listed)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (prefixes[i].prefix.family == family && add_class(field, prefixes[i].vector, is_listed))
			return -ENOMEM;
	}
	return add_class(field, outside, is_listed);
}

static int add_interfaces(struct field *field, const struct weir_image *image, bool *is_listed)
{
	size_t i;

	for (i = 0; i < image->interface_count; i++) {
		if (add_class(field, image->interfaces[i].vector, is_listed))
			return -ENOMEM;
	}
	/* ... and those that may appear later */
	for (i = 0; i < image->case_count; i++) {
		if (image->cases[i].kind != WEIR_CASE_PATTERN && add_class(field, image->cases[i].vector, is_listed))
			return -ENOMEM;
	}
	return add_class(field, image->config.interface_default, is_listed);
}

static int list_classes(const struct weir_image *image, enum field_number number, struct field *field, bool *is_listed)
{
	const struct weir_classes *classes = image->classes;

	switch (number) {
	case SOURCE4:
	case SOURCE6:
		return add_prefixes(field, image->source_prefixes, image->source_prefix_count,
				    number == SOURCE4 ? 4 : 6, image->source_outside, is_listed);
	case DESTINATION4:
	case DESTINATION6:
		return add_prefixes(field, image->destination_prefixes, image->destination_prefix_count,
				    number == DESTINATION4 ? 4 : 6, image->destination_outside, is_listed);
	case TCP_FLAGS:
		return add_classes(field, classes->tcp_flags, WEIR_BYTE_NONE, is_listed);
	case INTERFACE:
		return add_interfaces(field, image, is_listed);
/* If some packets lack a field that any packet may have, they form one more class. */
#define ADD_CLASSES(constant, name, member, highest, none, who)                                                        \
	case constant:                                                                                                 \
		return add_classes(field, classes->member, (none) + (WHO_##who == WHO_EVERY), is_listed);
		WEIR_RANGE_FIELDS(ADD_CLASSES)
	case FIELD_COUNT:
		break;
	}
	return -EINVAL;
}

static int make_field(const struct weir_image *image, enum field_number number, struct field *field)
{
	_cleanup_(weir_freep) bool *is_listed = calloc(image->vector_count, sizeof(*is_listed));
	struct weir_vector beyond;
	uint32_t i;

	if (!is_listed || list_classes(image, number, field, is_listed))
		return -ENOMEM;
	field->summaries = calloc(field->count, sizeof(*field->summaries));
	field->children = calloc(field->count, sizeof(*field->children));
	if (!field->summaries || !field->children)
		return -ENOMEM;
	field->common = image->vectors[field->classes[0]];
	for (i = 0; i < field->count; i++) {
		weir_vector_and(&field->common, &image->vectors[field->classes[i]]);
		weir_vector_or(&field->any, &image->vectors[field->classes[i]]);
	}
	for (i = 0; i < field->count; i++) {
		beyond = image->vectors[field->classes[i]];
		weir_vector_subtract(&beyond, &field->common);
		field->summaries[i] = beyond.summary;
	}
	return 0;
}

/* ---- contexts ---- */

static bool has_ports(unsigned int protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

static const uint32_t match_fields[FIELD_COUNT] = {
	[SOURCE4] = WEIR_MATCH_SOURCE,		 [SOURCE6] = WEIR_MATCH_SOURCE,
	[DESTINATION4] = WEIR_MATCH_DESTINATION, [DESTINATION6] = WEIR_MATCH_DESTINATION,
	[TCP_FLAGS] = WEIR_MATCH_TCP_FLAGS,	 [INTERFACE] = WEIR_MATCH_INTERFACE,
#define MATCH_FIELD(constant, name, member, highest, none, who) [constant] = WEIR_MATCH_##constant,
	WEIR_RANGE_FIELDS(MATCH_FIELD)};

static struct context make_context(const struct search *search, enum weir_direction direction, unsigned int family,
				   unsigned int fragment, unsigned int protocol)
{
	struct context context = {
		.fields = FIELDS_OF_EVERY | 1u << INTERFACE,
		.kind = search->image->classes->kind[direction][family][fragment][protocol],
	};
	unsigned int f;

	context.fields |= family ? 1u << SOURCE6 | 1u << DESTINATION6 : 1u << SOURCE4 | 1u << DESTINATION4;
	if (fragment != WEIR_FRAGMENT_LATER) {
		if (has_ports(protocol))
			context.fields |= FIELDS_WITH_PORTS;
		if (protocol == IPPROTO_TCP)
			context.fields |= 1u << TCP_FLAGS;
		if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)
			context.fields |= FIELDS_WITH_TYPE;
	}
	context.missing = (FIELDS_WITH_PORTS | 1u << TCP_FLAGS | FIELDS_WITH_TYPE) & ~context.fields;
	for (uint64_t bits = context.fields | context.missing; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		if (!(search->image->config.match_fields & match_fields[f]))
			context.fields &= ~(1u << f), context.missing &= ~(1u << f);
	}
	return context;
}

/* The resources that a packet of this context can meet at all. */
static struct weir_vector context_set(const struct search *search, const struct context *context)
{
	const struct weir_classes *classes = search->image->classes;
	const struct weir_vector *vectors = search->image->vectors;
	struct weir_vector set = vectors[context->kind];
	unsigned int f;

	if (context->missing & 1u << TCP_FLAGS)
		weir_vector_and(&set, &vectors[classes->tcp_flags[WEIR_BYTE_NONE]]);
#define LACK_FIELD(constant, name, member, highest, none, who)                                                         \
	if (context->missing & 1u << constant)                                                                         \
		weir_vector_and(&set, &vectors[classes->member[none]]);
	WEIR_RANGE_FIELDS(LACK_FIELD)
	for (uint64_t bits = context->fields; bits; bits &= bits - 1) {
		f = weir_lowest_bit(bits);
		weir_vector_and(&set, &search->fields[f].any);
	}
	weir_vector_and(&set, &search->weighing);
	return set;
}

static int compare_contexts(const void *left, const void *right)
{
	const struct context *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->fields > b->fields) - (a->fields < b->fields);
}

/* List the distinct contexts: only two if no resource has a condition on the kind, or on fields that only some kinds
 * have.
 */
static int list_contexts(struct search *search)
{
	const size_t most = search->image->config.limits_out ? CONTEXTS_MAX : CONTEXTS_OF_DIRECTION;
	unsigned int i, count = 0;
	struct context *contexts;

	contexts = search->contexts = calloc(most, sizeof(*contexts));
	if (!contexts)
		return -ENOMEM;
	for (i = 0; i < most; i++)
		contexts[i] = make_context(search, i / CONTEXTS_OF_DIRECTION, i / 256 / WEIR_FRAGMENT_KINDS % 2,
					   i / 256 % WEIR_FRAGMENT_KINDS, i % 256);
	qsort(contexts, most, sizeof(*contexts), compare_contexts);
	for (i = 0; i < most; i++) {
		if (!count || compare_contexts(&contexts[count - 1], &contexts[i]))
			contexts[count++] = contexts[i];
	}
	search->context_count = count;
	return 0;
}

/* ---- the search ---- */

static int compare_context_weights(const void *left, const void *right)
{
	const struct context *a = left, *b = right;

	return (a->weight < b->weight) - (a->weight > b->weight);
}

static uint32_t cost_of_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	const bool counts_connections = rule->metric == WEIR_METRIC_CONCURRENCY;
	const size_t place = rule - ruleset->rules;

	if (rule->metric == WEIR_METRIC_REQUESTS || (counts_connections && weir_shares_with(ruleset, place) == place))
		return COST_OF_CONNECTIONS;
	if (counts_connections)
		return COST_OF_RESOURCE; /* the earlier rule finds what both count */
	return weir_flow_of(ruleset, rule)->fields ? COST_OF_FLOW : COST_OF_RESOURCE;
}

static uint32_t cost_of_resource(const struct weir_ruleset *ruleset, size_t resource)
{
	uint32_t cost = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (!ruleset->rules[i].system && ruleset->rules[i].resource == resource)
			cost += cost_of_rule(ruleset, &ruleset->rules[i]);
	return cost;
}

/* Weigh each resource. Resources without weight are left out of all sets. */
static void set_weights(const struct weir_ruleset *ruleset, struct search *search, enum weight by, uint32_t limit)
{
	const struct weir_image *image = search->image;
	uint32_t r, weight;
	unsigned int plane;

	memset(search->plane, 0, sizeof(search->plane));
	memset(&search->weighing, 0, sizeof(search->weighing));
	search->limit = limit;
	search->planes = 0;
	for (r = 0; r < image->resource_count; r++) {
		weight = 1;
		if (by == COUNT_RULES)
			weight = image->resources[image->place[r]].rule_count;
		else if (by == ADD_COSTS)
			weight = cost_of_resource(ruleset, image->place[r]);
		if (weight)
			weir_vector_add(&search->weighing, r);
		for (plane = 0; plane < WEIGHT_BITS; plane++) {
			if (!(weight >> plane & 1))
				continue;
			search->plane[plane][r / 64] |= 1ull << r % 64;
			if (search->planes <= plane)
				search->planes = plane + 1;
		}
	}
	for (r = 0; r < search->context_count; r++) {
		struct weir_vector set = context_set(search, &search->contexts[r]);

		search->contexts[r].weight = weir_meet_weigh(search, &set);
	}
	qsort(search->contexts, search->context_count, sizeof(*search->contexts), compare_context_weights);
}

/* Search for a set heavier than `floor`. Returns false if patience ran out before this was decided. */
static bool search_above(struct search *search, uint32_t floor, uint64_t patience)
{
	struct weir_vector set;
	uint32_t i;

	search->floor = floor;
	search->heaviest.summary = 0;
	search->work = 0;
	search->patience = patience;
	search->is_over = false;
	for (i = 0; i < search->context_count && !search->is_over; i++) {
		if (search->contexts[i].weight <= search->floor)
			break;
		set = context_set(search, &search->contexts[i]);
		weir_meet_explore(search, &set, search->contexts[i].fields);
	}
	return !search->is_over || search->floor > search->limit;
}

/* The most that can meet: if possible exactly; otherwise, if only that can be proved, the limit. */
static int find_most(const struct weir_ruleset *ruleset, struct search *search, enum weight by, uint32_t limit,
		     uint32_t *ret_most)
{
	set_weights(ruleset, search, by, limit);
	if (!search_above(search, 0, PATIENCE) && !search_above(search, limit, 5 * PATIENCE))
		return -E2BIG;
	*ret_most = search->floor;
	return 0;
}

/* ---- messages ---- */

#define NAMED_MAX 4 /* enough to find the others with */

struct names {
	char text[NAMED_MAX * (WEIR_NAME_BYTES + 4) + 32];
	size_t length;
	uint32_t count;
};

static void add_name(struct names *names, const char *name)
{
	if (names->count++ < NAMED_MAX)
		names->length += (size_t)snprintf(names->text + names->length, sizeof(names->text) - names->length,
						  "%s'%.*s'", names->length ? ", " : "", WEIR_NAME_BYTES - 1, name);
}

static void end_names(struct names *names)
{
	if (names->count > NAMED_MAX)
		snprintf(names->text + names->length, sizeof(names->text) - names->length, " and %u more",
			 names->count - NAMED_MAX);
}

static int too_many_rules(const struct weir_ruleset *ruleset, const struct search *search, struct weir_diag *diag)
{
	const struct weir_place *place = NULL;
	struct names names = {};
	size_t i;

	for (i = 0; i < ruleset->rule_count; i++) {
		if (!ruleset->rules[i].system &&
		    !weir_vector_has(&search->heaviest, search->image->bit[ruleset->rules[i].resource]))
			continue;
		add_name(&names, ruleset->rules[i].name);
		place = &ruleset->rules[i].place;
	}
	end_names(&names);
	return weir_diag_error(
		diag, place, NULL, "narrow the matches of their resources so that fewer share a packet, or drop rules",
		"%u rules can meet on one packet, at most %d may%s: %s", names.count + weir_tracks_connections(ruleset),
		WEIR_PACKET_RULES_MAX,
		weir_tracks_connections(ruleset) ? " (one of them hidden, which follows connections)" : "", names.text);
}

static int too_many_resources(const struct weir_ruleset *ruleset, const struct search *search, struct weir_diag *diag)
{
	const struct weir_place *place = NULL;
	struct names names = {};
	size_t i;

	for (i = 0; i < ruleset->resource_count; i++) {
		if (!weir_vector_has(&search->heaviest, search->image->bit[i]))
			continue;
		add_name(&names, ruleset->resources[i].name);
		place = &ruleset->resources[i].place;
	}
	end_names(&names);
	return weir_diag_error(diag, place, NULL, "narrow their matches so that fewer share a packet, or join some",
			       "%u resources can match one packet, at most %d may: %s", names.count,
			       WEIR_PACKET_RESOURCES_MAX, names.text);
}

static int too_hard(struct weir_diag *diag, const char *what, uint32_t limit)
{
	return weir_diag_error(
		diag, NULL, NULL, "let the matches of resources overlap in fewer fields",
		"cannot prove that at most %u %s meet on one packet: the matches overlap in too many ways", limit,
		what);
}

/* Warn of rules that make a forged packet dear. A file whose dearest packet is too hard to find is not warned of. */
static void warn_of_cost(const struct weir_ruleset *ruleset, struct search *search, uint32_t rules,
			 struct weir_diag *diag)
{
	const struct weir_place *place = NULL;
	struct names names = {};
	uint32_t cost;

	if (rules * COST_OF_CONNECTIONS <= COST_MAX)
		return;
	set_weights(ruleset, search, ADD_COSTS, UINT16_MAX);
	if (!search_above(search, COST_MAX, PATIENCE) || search->floor <= COST_MAX)
		return;
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (rule->system || !weir_vector_has(&search->heaviest, search->image->bit[rule->resource]))
			continue;
		add_name(&names, rule->name);
		place = place ?: &rule->place;
	}
	end_names(&names);
	cost = search->floor + COST_OF_PACKET;
	weir_diag_warning(
		diag, place, NULL,
		"use fewer rules for a packet, or put a rate limit without a key before them (docs/security.md)",
		"a packet of a new flow meets %u rules, which cost some %u.%u us: a core for %u,000 forged "
		"packets a second: %s",
		names.count, cost / 10, cost % 10, 10000 / cost, names.text);
}

static int evaluate(const struct weir_ruleset *ruleset, struct search *search, struct weir_image *image,
		    struct weir_diag *diag)
{
	const uint32_t everywhere = weir_count_system_rules(ruleset), hidden = weir_tracks_connections(ruleset);
	const uint32_t room =
		everywhere + hidden < WEIR_PACKET_RULES_MAX ? WEIR_PACKET_RULES_MAX - everywhere - hidden : 0;
	int err = 0;

	/* The file is refused anyway, and the other search would take as long again. */
	if (find_most(ruleset, search, COUNT_RULES, room, &image->packet_rules_max))
		return too_hard(diag, "rules", room);
	if (image->packet_rules_max > room || everywhere + hidden > WEIR_PACKET_RULES_MAX)
		err = too_many_rules(ruleset, search, diag);
	else
		warn_of_cost(ruleset, search, image->packet_rules_max, diag);
	image->packet_rules_max += everywhere;
	if (find_most(ruleset, search, COUNT_RESOURCES, WEIR_PACKET_RESOURCES_MAX, &image->packet_resources_max))
		err = too_hard(diag, "resources", WEIR_PACKET_RESOURCES_MAX);
	else if (image->packet_resources_max > WEIR_PACKET_RESOURCES_MAX)
		err = too_many_resources(ruleset, search, diag);
	return err;
}

static int list_apart(const struct weir_ruleset *ruleset, struct search *search)
{
	const uint16_t *bit = search->image->bit;

	if (!search->image->config.has_excepts)
		return 0;
	search->apart = calloc(ruleset->resource_count, sizeof(*search->apart));
	if (!search->apart)
		return -ENOMEM;
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		for (size_t k = 0; k < match->except_count; k++) {
			weir_vector_add(&search->apart[bit[i]], bit[match->except[k].resource]);
			weir_vector_add(&search->apart[bit[match->except[k].resource]], bit[i]);
		}
	}
	return 0;
}

static void free_search(struct search *search)
{
	unsigned int f;

	if (!search)
		return;
	for (f = 0; f < FIELD_COUNT; f++) {
		free(search->fields[f].classes);
		free(search->fields[f].summaries);
		free(search->fields[f].children);
	}
	free(search->contexts);
	free(search->apart);
	free(search);
}

static void free_searchp(struct search **search)
{
	free_search(*search);
}

int weir_compile_meet(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag)
{
	_cleanup_(free_searchp) struct search *search = calloc(1, sizeof(*search));
	unsigned int f;

	if (!search)
		return weir_compile_no_memory(diag);
	search->image = image;
	for (f = 0; f < FIELD_COUNT; f++) {
		if (make_field(image, f, &search->fields[f]))
			return weir_compile_no_memory(diag);
	}
	if (list_contexts(search) || list_apart(ruleset, search))
		return weir_compile_no_memory(diag);
	return evaluate(ruleset, search, image, diag);
}
