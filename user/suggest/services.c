// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/services.h"

#include <errno.h>

#include "base/util.h"
#include "rules/scalars.h"

#define SHARE 100 /* a service matters if it has at least one in this many; chosen, not derived */

static uint64_t clients_of(const struct weir_suggest_measured *measured, uint32_t group)
{
	return (uint64_t)weir_flow_table_group_count(measured->flows, group) *
	       weir_flow_table_one_in(measured->flows, group);
}

/* Keep the groups with the most packets first. */
static uint32_t insert(const struct weir_suggest_measured *measured, uint32_t *groups, uint32_t count, uint32_t group)
{
	uint32_t place = count < WEIR_SERVICES_MAX ? count++ : WEIR_SERVICES_MAX;

	while (place > 0 && measured->group_total[groups[place - 1]].packets < measured->group_total[group].packets) {
		if (place < WEIR_SERVICES_MAX)
			groups[place] = groups[place - 1];
		place--;
	}
	if (place < WEIR_SERVICES_MAX)
		groups[place] = group;
	return count;
}

static uint32_t choose(const struct weir_suggest_measured *measured, uint32_t groups[WEIR_SERVICES_MAX])
{
	uint64_t packets = 0, clients = 0;
	uint32_t count = 0;

	for (uint32_t group = 0; group < measured->groups; group++) {
		packets += measured->group_total[group].packets;
		clients += clients_of(measured, group);
	}
	for (uint32_t group = 0; group < measured->groups; group++)
		if (measured->group_total[group].packets && (measured->group_total[group].packets * SHARE >= packets ||
							     clients_of(measured, group) * SHARE >= clients))
			count = insert(measured, groups, count, group);
	return count;
}

static void write_service(FILE *stream, uint32_t group)
{
	const char *name = weir_protocol_name(weir_service_protocol(group));
	char number[12];

	snprintf(number, sizeof(number), "%u", weir_service_protocol(group));
	fprintf(stream, "  - {name: %s%s", name ? "" : "protocol-", name ?: number);
	if (weir_service_port(group) >= 0)
		fprintf(stream, "-%d", weir_service_port(group));
	fprintf(stream, ", match: {protocol: %s", name ?: number);
	if (weir_service_port(group) >= 0)
		fprintf(stream, ", destinationPort: %d", weir_service_port(group));
	fputs("}, flow: source/32/64}\n", stream);
}

int weir_suggest_services(const struct weir_suggest_measured *measured, uint32_t ret_groups[WEIR_SERVICES_MAX],
			  struct weir_ruleset **ret_ruleset, struct weir_diag *diag)
{
	const uint32_t count = choose(measured, ret_groups);
	_cleanup_(weir_freep) char *text = NULL;
	struct weir_diag warnings = {};
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	int err;

	if (!stream)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot name the services");
	fputs("rules: []\nresources:\n", stream);
	for (uint32_t i = 0; i < count; i++)
		write_service(stream, ret_groups[i]);
	if (!count)
		fputs("  []\n", stream);
	if (fclose(stream))
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot name the services");
	err = weir_ruleset_parse("services", text, bytes, ret_ruleset, &warnings);
	weir_diag_free(&warnings); /* it only says that there are no rules yet */
	return err ? weir_diag_fail(diag, ENOMEM, NULL, "cannot name the services") : 0;
}
