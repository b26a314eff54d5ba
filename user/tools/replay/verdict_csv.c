// SPDX-License-Identifier: GPL-2.0-only
#include "replay/verdict_csv.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include "rules/scalars.h"

void weir_verdict_csv_begin(FILE *stream, struct weir_verdict_columns columns)
{
	/* Lines end in CRLF, as in RFC 4180: every CSV reader accepts that, but not all accept less. */
	fputs("packet,time_ns,verdict,wait_ns,resources,rule", stream);
	fputs(columns.is_wide ? ",saddr,daddr,proto,sport,dport" : "", stream);
	fputs(columns.has_direction ? ",direction" : "", stream);
	fputs(columns.has_answer ? ",answer\r\n" : "\r\n", stream);
}

/* A CSV field needs quotes if it contains a character that ends a field. `joined` consists of names, which have no
 * control characters.
 */
static void write_escaped(FILE *stream, const char *text)
{
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
}

static bool needs_quotes(const char *text)
{
	return text[strcspn(text, ",\"\r\n")] != '\0';
}

static void write_resources(FILE *stream, const struct weir_ruleset *ruleset, const struct weir_evaluation *evaluation)
{
	bool quotes = false;
	uint32_t i;

	for (i = 0; i < evaluation->resource_count; i++)
		quotes |= needs_quotes(ruleset->resources[evaluation->resource[i]].name);
	fputs(quotes ? "\"" : "", stream);
	for (i = 0; i < evaluation->resource_count; i++) {
		fputs(i ? ";" : "", stream);
		write_escaped(stream, ruleset->resources[evaluation->resource[i]].name);
	}
	fputs(quotes ? "\"" : "", stream);
}

/* The protocol is written as a number, since its names differ. Empty: there is none. */
static void write_packet(FILE *stream, const struct weir_evaluation *evaluation)
{
	const struct weir_flow_key *packet = &evaluation->packet;
	const int family = packet->family == 6 ? AF_INET6 : AF_INET;
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];

	if (!evaluation->has_packet) {
		fputs(",,,,,", stream);
		return;
	}
	inet_ntop(family, packet->source, source, sizeof(source));
	inet_ntop(family, packet->destination, destination, sizeof(destination));
	fprintf(stream, ",%s,%s,%u,", source, destination, packet->protocol);
	if (evaluation->has_ports)
		fprintf(stream, "%u,%u", ntohs(packet->source_port), ntohs(packet->destination_port));
	else
		fputs(",", stream);
}

void weir_verdict_csv_write(FILE *stream, const struct weir_ruleset *ruleset, uint64_t number, uint64_t time_ns,
			    const struct weir_evaluation *evaluation, struct weir_verdict_columns columns)
{
	const char *quote = needs_quotes(evaluation->rule) ? "\"" : "";

	fprintf(stream, "%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",", number, time_ns,
		evaluation->passes ? "pass" : "drop", evaluation->wait_ns);
	write_resources(stream, ruleset, evaluation);
	fputs(",", stream);
	fputs(quote, stream);
	write_escaped(stream, evaluation->rule);
	fputs(quote, stream);
	if (columns.is_wide)
		write_packet(stream, evaluation);
	if (columns.has_direction)
		fputs(evaluation->direction == WEIR_DIRECTION_IN ? ",in" : ",out", stream);
	if (columns.has_answer)
		fprintf(stream, ",%s", evaluation->answer ? weir_on_block_names[evaluation->answer] : "");
	fputs("\r\n", stream);
}
