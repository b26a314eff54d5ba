// SPDX-License-Identifier: GPL-2.0-only
#include "replay/verdict_csv.h"

#include <inttypes.h>
#include <string.h>

void weir_verdict_csv_begin(FILE *stream)
{
	/* Lines end in CRLF, as RFC 4180 has it: whatever reads CSV takes that, not all take less. */
	fputs("packet,time_ns,verdict,wait_ns,resources,rule\r\n", stream);
}

/* A CSV field needs quotes when it holds what ends a field; `joined` are names, which hold no control characters. */
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

static void write_resources(FILE *stream, const struct weir_ruleset *ruleset, const struct weir_judgement *judgement)
{
	bool quotes = false;
	uint32_t i;

	for (i = 0; i < judgement->resource_count; i++)
		quotes |= needs_quotes(ruleset->resources[judgement->resource[i]].name);
	fputs(quotes ? "\"" : "", stream);
	for (i = 0; i < judgement->resource_count; i++) {
		fputs(i ? ";" : "", stream);
		write_escaped(stream, ruleset->resources[judgement->resource[i]].name);
	}
	fputs(quotes ? "\"" : "", stream);
}

void weir_verdict_csv_write(FILE *stream, const struct weir_ruleset *ruleset, uint64_t number, uint64_t time_ns,
			    const struct weir_judgement *judgement)
{
	const char *quote = needs_quotes(judgement->rule) ? "\"" : "";

	fprintf(stream, "%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",", number, time_ns, judgement->passes ? "pass" : "drop",
		judgement->wait_ns);
	write_resources(stream, ruleset, judgement);
	fputs(",", stream);
	fputs(quote, stream);
	write_escaped(stream, judgement->rule);
	fputs(quote, stream);
	fputs("\r\n", stream);
}
