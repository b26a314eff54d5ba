// SPDX-License-Identifier: GPL-2.0-only
#include "print_drops.h"

#include "base/util.h"
#include "print.h"
#include "report/keys.h"

static const char *format_ago(uint64_t now_ns, uint64_t then_ns, char words[WEIR_WORDS_BYTES])
{
	return weir_format_age(now_ns > then_ns ? now_ns - then_ns : 0, words);
}

static void print_dropped(struct weir_table *table, const struct weir_instance *instance,
			  const struct weir_dropped_flow *dropped, uint64_t now_ns)
{
	const struct weir_rule_info *rule = &instance->rules[dropped->rule_slot];
	char words[WEIR_WORDS_BYTES];

	weir_table_cell(table, "%s%s", rule->name, dropped->is_observed ? " (would drop)" : "");
	weir_table_cell(table, "%s%llu%s", dropped->is_estimated ? "~" : "", (unsigned long long)dropped->packets,
			dropped->missed ? "+" : "");
	weir_table_cell(table, "%s%llu", dropped->is_estimated ? "~" : "", (unsigned long long)dropped->bytes);
	weir_table_cell(table, "%s ago", format_ago(now_ns, dropped->first_ns, words));
	weir_table_cell(table, "%s ago", format_ago(now_ns, dropped->last_ns, words));
	weir_table_cell(table, "%s", weir_flow_key_words(instance, rule, &dropped->key, words));
}

/* Explain the marks in the table. */
static void print_legend(const struct weir_drops *drops)
{
	uint64_t missed = 0;
	bool is_estimated = false;

	for (size_t i = 0; i < drops->count; i++) {
		is_estimated |= drops->worst[i].is_estimated;
		if (drops->worst[i].missed > missed)
			missed = drops->worst[i].missed;
	}
	if (is_estimated)
		printf("~ estimated from samples, as there were too many drops to count each one\n");
	if (missed)
		printf("+ up to %llu more, lost before the flow was listed\n", (unsigned long long)missed);
	if (drops->missed)
		printf("a flow that is not listed lost at most %llu\n", (unsigned long long)drops->missed);
}

static void print_sum(const struct weir_drops *drops)
{
	const unsigned long long observed = drops->observed, dropped = drops->flows - drops->observed;

	if (drops->count)
		putchar('\n');
	if (dropped || !observed)
		printf("%llu dropped flow%s%s", dropped, weir_plural(dropped), observed ? " and " : "");
	if (observed)
		printf("%llu flow%s that would be dropped", observed, weir_plural(observed));
	printf(", %llu packet%s\n", (unsigned long long)drops->packets, weir_plural(drops->packets));
}

void weir_print_drops(const struct weir_instance *instance, const struct weir_drops *drops)
{
	const bool only_observes = drops->observed && drops->observed == drops->flows;
	const char *const whose = only_observes ? "flow that would be dropped" : "dropped flow";
	const char *const headings[] = {"rule", ">packets", ">bytes", ">first drop", ">last drop", whose};
	_cleanup_(weir_table_free) struct weir_table table = {.headings = headings, .columns = ARRAY_SIZE(headings)};

	for (size_t i = 0; i < drops->count; i++)
		print_dropped(&table, instance, &drops->worst[i], drops->now_ns);
	weir_table_print(&table, stdout);
	print_sum(drops);
	print_legend(drops);
}
