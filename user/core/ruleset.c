// SPDX-License-Identifier: GPL-2.0-only
#include "ruleset.h"

#include <stdlib.h>

static void free_match(struct weir_match *match)
{
	free(match->source);
	free(match->destination);
	free(match->source_port);
	free(match->destination_port);
	free(match->vlan);
	free(match->icmp_type);
	free(match->length);
	free(match->tcp_flags);
	free(match->interface);
}

void weir_ruleset_free(struct weir_ruleset *ruleset)
{
	if (!ruleset)
		return;
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		free(ruleset->resources[i].name);
		free_match(&ruleset->resources[i].match);
	}
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		free(ruleset->rules[i].name);
		free(ruleset->rules[i].overrides);
	}
	for (size_t i = 0; i < ruleset->file_count; i++)
		free(ruleset->file_names[i]);
	free(ruleset->resources);
	free(ruleset->rules);
	free(ruleset->file_names);
	free(ruleset->settings.memory_cgroup);
	free(ruleset->listed);
	free(ruleset);
}
