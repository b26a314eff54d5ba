// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/measure.h"

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
	uint64_t packets[2] = {}, clients[2] = {}; /* incoming, outgoing */
	uint32_t count = 0;

	for (uint32_t group = 0; group < measured->own_groups; group++) {
		const bool is_out = weir_service_of(group).side != WEIR_SERVICE_REQUESTS;

		packets[is_out] += measured->group_total[group].packets;
		clients[is_out] += clients_of(measured, group);
	}
	for (uint32_t group = 0; group < measured->own_groups; group++) {
		const bool is_out = weir_service_of(group).side != WEIR_SERVICE_REQUESTS;
		const uint64_t own = measured->group_total[group].packets;

		if (own && (own * SHARE >= packets[is_out] || clients_of(measured, group) * SHARE >= clients[is_out]))
			count = insert(measured, groups, count, group);
	}
	return count;
}

/* Matches are about the packet's own fields: the source port of an answer is the service's. For what this host asks
 * others, the key has the port as well, which `check` takes for the word that just this is meant.
 */
static void write_service(FILE *stream, uint32_t group)
{
	static const char *const suffixes[] = {"", "-answers", "-out"};
	const struct weir_served service = weir_service_of(group);
	const bool is_out = service.side != WEIR_SERVICE_REQUESTS;
	const char *name = weir_protocol_name(service.protocol);
	char number[12];

	snprintf(number, sizeof(number), "%u", service.protocol);
	fprintf(stream, "  - {name: %s%s", name ? "" : "protocol-", name ?: number);
	if (service.port >= 0)
		fprintf(stream, "-%d", service.port);
	fprintf(stream, "%s, match: {%sprotocol: %s", suffixes[service.side], is_out ? "direction: out, " : "",
		name ?: number);
	if (service.port >= 0)
		fprintf(stream, ", %sPort: %d", service.side == WEIR_SERVICE_ANSWERS ? "source" : "destination",
			service.port);
	fprintf(stream, "}, flow: %s}\n",
		!is_out							      ? "source/32/64"
		: service.side == WEIR_SERVICE_ELSEWHERE && service.port >= 0 ? "[remote/32/64, remotePort]"
									      : "remote/32/64");
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
