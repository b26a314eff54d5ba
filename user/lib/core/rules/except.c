// SPDX-License-Identifier: GPL-2.0-only
/* match.except: which resources a resource is without. They are looked up by name once all files are read. */
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/rule.h"

static void add_excepted(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	struct weir_excepted *excepted;
	const char *name;
	size_t resource;

	if (!weir_look_up_resource(reader, node, "except", &name, &resource))
		return;
	for (size_t i = 0; i < match->except_count; i++)
		if (match->except[i].resource == resource)
			return;
	excepted = weir_array_add((void **)&match->except, match->except_count, sizeof(*excepted));
	if (!excepted) {
		reader->is_out_of_memory = true;
		return;
	}
	snprintf(excepted->name, sizeof(excepted->name), "%s", name);
	excepted->resource = resource;
	match->except_count++;
}

static void read_one(struct weir_reader *reader, const struct weir_node *node, struct weir_match *match)
{
	if (node->kind != WEIR_NODE_LIST) {
		add_excepted(reader, node, match);
		return;
	}
	if (!node->count)
		weir_complain(reader, node, "name at least one resource, or leave the field out",
			      "'except' is an empty list");
	for (size_t i = 0; i < node->count; i++)
		add_excepted(reader, node->items[i], match);
}

enum { NOT_SEEN, ON_THE_WAY, DONE };

static void complain_of_circle(struct weir_reader *reader, size_t resource, size_t excepted)
{
	const struct weir_ruleset_resource *resources = reader->ruleset->resources;

	if (resource == excepted)
		weir_complain(reader, reader->except_nodes[resource], "leave it out", "resource '%.*s' excepts itself",
			      WEIR_SHOWN(resources[resource].name));
	else
		weir_complain(reader, reader->except_nodes[resource],
			      "a packet of both would belong to neither: leave one of them out",
			      "resource '%.*s' excepts '%.*s', which excepts it, by itself or by way of others",
			      WEIR_SHOWN(resources[resource].name), WEIR_SHOWN(resources[excepted].name));
}

/* Walk along the excepted resources, depth first. `seen` is by resource. */
static void check_circles(struct weir_reader *reader, size_t resource, uint8_t *seen)
{
	const struct weir_match *match = &reader->ruleset->resources[resource].match;

	seen[resource] = ON_THE_WAY;
	for (size_t i = 0; i < match->except_count; i++) {
		const size_t excepted = match->except[i].resource;

		if (seen[excepted] == ON_THE_WAY)
			complain_of_circle(reader, resource, excepted);
		else if (seen[excepted] == NOT_SEEN)
			check_circles(reader, excepted, seen);
	}
	seen[resource] = DONE;
}

void weir_read_excepts(struct weir_reader *reader)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	_cleanup_(weir_freep) uint8_t *seen = calloc(ruleset->resource_count + 1, sizeof(*seen));

	if (!seen) {
		reader->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (reader->except_nodes[i])
			read_one(reader, reader->except_nodes[i], &ruleset->resources[i].match);
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (seen[i] == NOT_SEEN)
			check_circles(reader, i, seen);
}
