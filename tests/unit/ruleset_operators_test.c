// SPDX-License-Identifier: GPL-2.0-only
/* What operators get wrong, in YAML and in words of other limiters: the place, and what to write in its stead. */
#include <stdio.h>
#include <string.h>

#include "ruleset_bench.h"

#define NAMED "resources:\n  - name: dns\n"

BENCH_CLAIM(mistake_in_yaml_is_reported_where_it_was_made)
{
	static const struct sample samples[] = {
		/* tabs */
		{"resources:\n\t- name: dns\n", 2, 1, "tab character may not be used", "spaces, not tabs"},
		{NAMED "    match:\n\t\tprotocol: udp\n", 4, 1, "tab character may not be used", "spaces, not tabs"},
		{NAMED "    match:\n      protocol: udp\n    \tvlan: 5\n", 5, 6, "tab used as indentation", "not tabs"},
		/* colons */
		{"resources:\n  - name dns\n    flow: source\n", 2, 5, "there is no ':' after", "'name: value'"},
		{"resources\n  - name: dns\n", 1, 1, "there is no ':' after", "a space after the ':'"},
		{NAMED "    match:\n      protocol: udp\n      vlan 5\n", 5, 7, "there is no ':' after", NULL},
		{"resources:\n  - name:dns\n    flow:source\n", 2, 5, "must be a map of fields", "'name: value'"},
		{"resources:\n  - name = dns\n", 2, 5, "must be a map of fields", "a ':' and a space between"},
		{NAMED "rules:\n  - resource: dns\n    rate:20/s\n", 5, 5, "there is no space after the ':'",
		 "write 'rate: 20/s'"},
		{NAMED "rules:\n  - resource: dns\n    rate:20/s\n    name: x\n", 5, 5,
		 "there is no space after the ':'", "write 'rate: 20/s'"},
		{NAMED "rules:\n  - rate:20/s\n    resource: dns\n", 4, 5, "there is no space after the ':'",
		 "write 'rate: 20/s'"},
		{"resources:\n  - name: a: b\n", 2, 12, "there is a second ': '", "in quotes"},
		/* indentation */
		{NAMED "   flow: source\n", 3, 4, "indented differently from the fields above", "the same column"},
		{NAMED "      flow: source\n", 3, 7, "this line is indented too far", "the same column"},
		{NAMED "  flow: source\n", 3, 3, "indented differently from the fields above", "the same column"},
		{NAMED " match: {}\n", 3, 2, "indented differently", NULL},
		{NAMED "  rules:\n    - resource: dns\n", 3, 3, "'rules:' is indented", "begin it in the first column"},
		{NAMED "    flow: source\n rules: []\n", 4, 2, "'rules:' is indented", "at the top of the file"},
		{NAMED "   - name: web\n", 3, 4, "this '-' is indented differently", "items of one list"},
		{NAMED " - name: web\n", 3, 2, "this '-' is indented differently", "items of one list"},
		{"resources: - name: dns\n", 1, 12, "a list cannot begin on the line of its name", "on its own line"},
		{NAMED "    match:\n    flow: source\n", 3, 5, "'match' has no value", "leave the field out"},
		/* dashes */
		{"resources:\n  name: dns\n", 2, 3, "'resources' must be a list", "'- '"},
		{"resources:\n  -name: dns\n", 2, 3, "'resources' must be a list", "space after the '-'"},
		{"resources:\n  -\xc2\xa0name: dns\n", 2, 3, "'resources' must be a list", "plain space after the '-'"},
		/* duplicates */
		{NAMED "    flow: source\n    flow: vlan\n", 4, 5, "'flow' is given twice: first in line 3",
		 "leave one"},
		{NAMED "resources: []\n", 3, 1, "'resources' is given twice: first in line 1", "leave one"},
		/* quotes */
		{"resources:\n  - name: \"dns\n    flow: source\n", 2, 11, "is not closed", "the same quote"},
		{"resources:\n  - name: 'dns\n    flow: source\n", 2, 11, "is not closed", "the same quote"},
		{"resources: [{name: \"dns}]\n", 1, 20, "is not closed", "the same quote"},
		{"resources:\n  - name: \"dns\" web\n", 2, 17, "after the closing quote", "in quotes, or none"},
		{"resources:\n  - name: \"a\\Users\"\n", 2, 13, "escape", "use single quotes"},
		/* brackets */
		{NAMED "    flow: [source, vlan\n    match: {vlan: 5}\nrules: []\n", 3, 11, "'[' is not closed",
		 "write the closing ']': without it, line 4"},
		{NAMED "    match: {vlan: 5\nrules: []\n", 3, 12, "'{' is not closed",
		 "write the closing '}': without it, line 4"},
		{"{\"resources\": [{\"name\": \"dns\"}\n", 1, 15, "'[' is not closed", "']'"},
		{"resources: [\n  {name: a},\n  {name: b}\n", 1, 12, "'[' is not closed", NULL},
		{"resources: [{name: dns]\n", 1, 23, "mismatched", "first close the earlier '{'"},
		{"resources:\n  - {name: dns}}\n", 2, 16, "closes nothing", "remove it"},
		{"resources:\n  - {name: dns flow: source}\n", 2, 20, "a ',' is missing before this", "{name: x"},
		{"{\"resources\": [{\"name\": \"dns\"}]\n \"rules\": []}\n", 2, 3, "a ',' is missing", "[a, b]"},
		/* what YAML keeps for itself */
		{"deny: [@bad.txt]\n", 1, 8, "cannot start with '@'", "\"@FILE\""},
		{"resources:\n  - name: %web\n", 2, 11, "cannot start with '%'", "in quotes"},
		{"resources:\n  - name: *\n", 2, 12, "invalid alias", "in quotes"},
		{NAMED "    match: {tcpFlags: !ack}\n", 3, 23, "YAML tags", "in quotes"},
		{NAMED "    match: *web\n", 3, 12, "the alias has no anchor", "must come before"},
		/* no YAML at all */
		{"[resources]\nname = dns\n", 2, 1, "no field of a rule file begins here", "'resources:'"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(a_word_of_another_limiter_is_answered_with_ours)
{
	static const struct sample samples[] = {
		{MATCH("dport: 53"), 4, 5, "no field 'dport'", "write 'destinationPort'"},
		{MATCH("sport: 53"), 4, 5, "no field 'sport'", "write 'sourcePort'"},
		{MATCH("port: 53"), 4, 5, "no field 'port'", "'destinationPort' or 'sourcePort'"},
		{MATCH("proto: udp"), 4, 5, "no field 'proto'", "'protocol'"},
		{MATCH("saddr: 10.0.0.1"), 4, 5, "no field 'saddr'", "write 'source'"},
		{MATCH("dst: 10.0.0.1"), 4, 5, "no field 'dst'", "write 'destination'"},
		{MATCH("flags: syn"), 4, 5, "no field 'flags'", "'tcpFlags'"},
		{MATCH("iif: eth0"), 4, 5, "no field 'iif'", "write 'interface'"},
		{MATCH("destinationPort: \"80,443\""), 4, 22, "is not a whole number", "write a list: [80,443]"},
		{MATCH("destinationPort: 1024:65535"), 4, 22, "is not a whole number", "write 1024-65535"},
		{MATCH("source: \"10.0.0.0/8, 192.0.2.1\""), 4, 13, "is not an IP address", "as a list"},
		{"resources:\n- name: r\n  key: source\n", 3, 3, "no field 'key'", "write 'flow: source'"},
		{RULE("action: drop"), 5, 3, "no field 'action'", "a rule drops what exceeds its limit"},
		{RULE("limit: 5"), 5, 3, "no field 'limit'", "'rate: 20/s'"},
		{RULE("pps: 5"), 5, 3, "no field 'pps'", "'rate: 20/s'"},
		{RULE("bps: 5"), 5, 3, "no field 'bps'", "'rate: 100Mbit/s'"},
		{RULE("interval: 1s"), 5, 3, "no field 'interval'", "'statInterval: 1m'"},
		{RULE("per: minute"), 5, 8, "'minute' is not a field of a flow key", "'rate: 6/min'"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* A mistake on each line that has a column: where it is reported. */
BENCH_CLAIM(twenty_five_mistakes_are_reported_all_at_once)
{
	static const struct {
		const char *line;
		int column;
	} lines[] = {
		{"settings: {flowsPerCpu: 64K,", 25},
		{"  malformed: reject,", 14},
		{"  nonip: drop,", 3},
		{"  controllerTimeout: 5}", 22},
		{"allow: [192.0.2.1/24]", 9},
		{"deny: [example.org]", 8},
		{"resources:", 0},
		{"  - {name: dns, match: {proto: udp}, flow: source}", 25},
		{"  - {name: web, match: {destinationPort: 80abc}}", 42},
		{"  - {name: dns}", 12},
		{"  - {name: a, flow: [source, sorce]}", 30},
		{"  - {name: b, match: {tcpFlags: 'syn ack'}}", 33},
		{"  - {name: c, match: {vlan: 5000}}", 29},
		{"rules:", 0},
		{"  - {resource: dsn, rate: 5/s}", 16},
		{"  - {resource: dns}", 5},
		{"  - {rate: 5/s}", 5},
		{"  - {resource: dns, rate: 100Mbps}", 27},
		{"  - {resource: dns, treshold: 5, threshold: 5}", 21},
		{"  - {resource: dns, threshold: 1.5.2}", 32},
		{"  - {resource: dns, threshold: -1}", 32},
		{"  - {resource: dns, threshold: 5, statIntervalInMs: 1m}", 53},
		{"  - {resource: dns, rate: 5/s, unit: packets}", 38},
		{"  - {resource: dns, rate: 5/s, window: sliding}", 40},
		{"  - {resource: dns, rate: 5/s, sampleCount: 11}", 45},
		{"  - {resource: dns, rate: 5/s, controlBehavior: Queue}", 49},
		{"  - {resource: dns, rate: 5/s, overrides: [{threshold: 1}]}", 44},
	};
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes, entries = 0;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		fprintf(stream, "%s\n", lines[i].line);
	fclose(stream);
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 25);
	weir_diag_sort(&bench->diag);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const struct weir_diag_entry *entry = &bench->diag.entries[entries];

		if (!lines[i].column)
			continue;
		if (entry->line != (int)i + 1 || entry->column != lines[i].column || !entry->hint)
			fail_msg("expected line %zu, column %d, and a hint; got %d:%d: %s (%s)", i + 1, lines[i].column,
				 entry->line, entry->column, entry->message, entry->hint ?: "none");
		entries++;
	}
}

RUN_CLAIMS(NULL, NULL)
