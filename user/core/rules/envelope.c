// SPDX-License-Identifier: GPL-2.0-only
/* Documents that contain lists of rules, but are not rule files: advice on which part to pass instead. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"

static const struct weir_node *value_of(const struct weir_node *map, const char *name)
{
	for (size_t i = 0; map && map->kind == WEIR_NODE_MAP && i + 1 < map->count; i += 2)
		if (map->items[i]->kind == WEIR_NODE_WORD && !strcmp(map->items[i]->text, name))
			return map->items[i + 1];
	return NULL;
}

static bool is_list(const struct weir_node *node)
{
	return node && node->kind == WEIR_NODE_LIST;
}

/* Objects that sentinel-golang's data source for Kubernetes reads (FlowRules and others, datasource.sentinel.io), or
 * any other output of `kubectl get -o yaml`.
 */
static bool complain_of_kubernetes(struct weir_reader *reader, const struct weir_node *root)
{
	const struct weir_node *kind = value_of(root, "kind");

	if (!value_of(root, "apiVersion") || !kind || kind->kind != WEIR_NODE_WORD)
		return false;
	weir_complain(reader, root,
		      is_list(value_of(value_of(root, "spec"), "rules"))
			      ? "put the list under 'spec.rules' in a file of its own"
			      : "put its list of rules in a file of its own; FlowRules have it in 'spec.rules'",
		      "this is a Kubernetes object (%.*s), not a rule file", WEIR_SHOWN(kind->text));
	return true;
}

/* The output of /actuator/sentinel in spring-cloud-alibaba: the rules are maps of lists, under names of its own. */
static bool complain_of_actuator(struct weir_reader *reader, const struct weir_node *root)
{
	static const char *const names[] = {"flowRules",     "degradeRules",  "systemRules",
					    "authorityRule", "paramFlowRule", "authorityRules"};
	const struct weir_node *rules = value_of(root, "rules");
	bool has_any = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		has_any |= is_list(value_of(rules, names[i]));
	if (!has_any)
		return false;
	weir_complain(reader, rules,
		      "write the lists under 'rules' as the flowRules, degradeRules, systemRules, authorityRules and "
		      "paramFlowRules of a rule file",
		      "this is the output of Spring's Sentinel actuator, not a rule file");
	return true;
}

/* A list without a name is one of Sentinel's (sentinel.h), unless its items have fields that exist only in weir. */
static bool complain_of_bare_list(struct weir_reader *reader, const struct weir_node *root)
{
	static const struct {
		const char *field, *part;
	} ours[] = {{"match", "resources"}, {"flow", "resources"}, {"rate", "rules"}, {"per", "rules"}};
	char hint[96];

	for (size_t i = 0; is_list(root) && root->count && i < ARRAY_SIZE(ours); i++) {
		if (!value_of(root->items[0], ours[i].field))
			continue;
		snprintf(hint, sizeof(hint), "write '%s:' on a line of its own before it", ours[i].part);
		weir_complain(reader, root, hint, "this list of %s has no name", ours[i].part);
		return true;
	}
	return false;
}

bool weir_complain_of_envelope(struct weir_reader *reader, const struct weir_document *document)
{
	return document->root &&
	       (complain_of_kubernetes(reader, document->root) || complain_of_actuator(reader, document->root) ||
		complain_of_bare_list(reader, document->root));
}
