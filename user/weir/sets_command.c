// SPDX-License-Identifier: GPL-2.0-only
/* weir sets: the named sets in force, and the labels of one. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "report/status.h"
#include "state/counters.h"
#include "state/dropped_flows.h"
#include "tables/labels.h"
#include "weir/weir.h"

static const struct weir_command weir_sets_command = {
	.name = "sets",
	.options = "nINjWCh",
	.arguments = "[SET]",
	.arguments_max = 1,
	.means_attached = true,
	.about = "List the named sets of the rules in force: how many prefixes and labels each has, the file it came "
		 "from, and how long ago that file changed. 'weir run' and 'weir control' take over a file that "
		 "changes; otherwise 'weir reload' does.\n\n"
		 "With a SET, list its labels: their prefixes; packets matched, if a resource matches exactly this "
		 "label; and packets dropped, if the flow key of a rule has the set. Those with most drops come first. "
		 "No packet is counted for this: '-' means that no rule counts by the label.",
	.example = "  weir sets\n"
		   "  weir sets tenants\n"
		   "  weir sets --json",
};

/* ---- the labels of a set ---- */

struct label_hits {
	const char *label; /* "-": the addresses without one */
	uint64_t prefixes, matched, dropped;
	bool has_matched, has_dropped;
};

static void describe_label(struct weir_figures *line, const void *context, const void *record)
{
	const struct label_hits *hits = record;

	WEIR_TEXT(line, "label", "LABEL", hits->label);
	WEIR_COUNT(line, "prefixCount", ">PREFIXES", hits->prefixes);
	WEIR_KNOWN(line, "matchedPackets", ">MATCHED", hits->has_matched, hits->matched, "-");
	WEIR_KNOWN(line, "droppedPackets", ">DROPPED", hits->has_dropped, hits->dropped, "-");
}

/* Those who want most of the operator's attention first. */
static int compare_hits(const void *left, const void *right)
{
	const struct label_hits *a = left, *b = right;

	if (a->dropped != b->dropped)
		return a->dropped < b->dropped ? 1 : -1;
	if (a->matched != b->matched)
		return a->matched < b->matched ? 1 : -1;
	return strcmp(a->label, b->label);
}

/* If the match has this label, and nothing else, for one of the ends: the number of the label. */
static uint32_t label_of_match(const struct weir_ruleset *ruleset, const struct weir_set *set,
			       const struct weir_match *match)
{
	const struct weir_set_use *uses[] = {match->source_sets, match->destination_sets};
	const size_t counts[] = {match->source_set_count, match->destination_set_count};
	const size_t prefixes[] = {match->source_count, match->destination_count};

	for (size_t end = 0; end < ARRAY_SIZE(uses); end++)
		if (counts[end] == 1 && !prefixes[end] && !uses[end]->excepts && uses[end]->label[0] &&
		    &ruleset->sets[uses[end]->set] == set)
			return weir_set_find_label(set, uses[end]->label);
	return WEIR_NO_LABEL;
}

/* Several resources of one label may have had the same packets: the one with the most counts. */
static int add_matched(const struct weir_instance *instance, const struct weir_ruleset *ruleset,
		       const struct weir_set *set, struct label_hits *hits, struct weir_diag *diag)
{
	_cleanup_(weir_counters_free) struct weir_counters counters = {};
	int err = weir_counters_read(instance, &counters, diag);

	for (uint32_t i = 0; !err && i < instance->resource_count; i++) {
		const uint32_t slot = instance->resource_order[i];
		const struct weir_resource_sum *sum = &counters.resources[slot];
		const uint64_t packets = sum->passed.packets + sum->blocked.packets;
		uint32_t label = WEIR_NO_LABEL;

		for (size_t k = 0; k < ruleset->resource_count && label == WEIR_NO_LABEL; k++)
			if (!strcmp(ruleset->resources[k].name, instance->resources[slot].name))
				label = label_of_match(ruleset, set, &ruleset->resources[k].match);
		if (label == WEIR_NO_LABEL)
			continue;
		hits[label].has_matched = true;
		hits[label].matched = packets > hits[label].matched ? packets : hits[label].matched;
	}
	return err;
}

/* By each rule, since a packet is dropped by one. hits[set->label_count] is of the addresses without a label. */
static int add_dropped(const struct weir_instance *instance, const struct weir_set *set, struct label_hits *hits,
		       struct weir_diag *diag)
{
	const struct weir_drops_wanted wanted = {.most = SIZE_MAX};
	_cleanup_(weir_drops_free) struct weir_drops drops = {};
	int err = weir_drops_read(instance, &wanted, &drops, diag);

	for (size_t i = 0; !err && i < drops.count; i++) {
		const struct weir_dropped_flow *dropped = &drops.worst[i];
		const uint32_t fields = instance->rules[dropped->rule_slot].identity.key_fields;
		const uint8_t *ends[] = {dropped->key.source, dropped->key.destination};

		for (int place = 0; place <= WEIR_KEY_PLACE_DESTINATION && !dropped->is_observed; place++) {
			char text[WEIR_LABEL_BYTES];
			const char *label;
			uint64_t hash;

			if (!(WEIR_KEY_LABEL_ENDS(fields) >> place & 1) ||
			    strcmp(weir_key_set_name(instance->labels, fields, place), set->name) != 0)
				continue;
			memcpy(&hash, ends[place], sizeof(hash));
			label = weir_label_text(instance->labels, hash, text);
			if (!hash)
				hits[set->label_count].dropped += dropped->packets;
			else if (weir_set_find_label(set, label) != WEIR_NO_LABEL)
				hits[weir_set_find_label(set, label)].dropped += dropped->packets;
		}
	}
	return err;
}

/* Does a rule's key have the set? */
static bool is_in_key(const struct weir_instance *instance, const struct weir_set *set)
{
	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const uint32_t fields = instance->rules[instance->rule_order[i]].identity.key_fields;

		for (int place = 0; place <= WEIR_KEY_PLACE_DESTINATION; place++)
			if (WEIR_KEY_LABEL_ENDS(fields) >> place & 1 &&
			    !strcmp(weir_key_set_name(instance->labels, fields, place), set->name))
				return true;
	}
	return false;
}

static int list_labels(const struct weir_options *options, const struct weir_instance *instance,
		       const struct weir_kept_set *kept, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_freep) struct label_hits *hits = NULL;
	_cleanup_(weir_table_free) struct weir_table table = {};
	const char *name = options->arguments[0];
	const struct weir_set *set;
	size_t count;
	bool is_keyed;
	int err = 0;

	if (weir_kept_set_read(kept, &ruleset, diag))
		return -EIO;
	set = weir_find_set(ruleset, name, strlen(name));
	if (!set)
		return weir_diag_error(diag, NULL, NULL, "'weir sets' lists them", "instance '%s' has no set '%s'",
				       options->instance, name);
	hits = calloc(set->label_count + 1, sizeof(*hits));
	if (!hits)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the labels");
	is_keyed = is_in_key(instance, set);
	for (size_t i = 0; i <= set->label_count; i++)
		hits[i] = (struct label_hits){.label = i < set->label_count ? set->labels[i].text : "-",
					      .has_dropped = is_keyed};
	for (size_t i = 0; i < set->entry_count; i++)
		if (set->entries[i].label != WEIR_NO_LABEL)
			hits[set->entries[i].label].prefixes++;
	err = add_matched(instance, ruleset, set, hits, diag);
	if (!err && is_keyed)
		err = add_dropped(instance, set, hits, diag);
	if (err)
		return err;
	count = set->label_count + is_keyed; /* only in a key are addresses without a label a flow */
	qsort(hits, count, sizeof(*hits), compare_hits);
	count = count > options->most ? options->most : count;
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:s, s:I, s:o}", "instance", options->instance, "set",
						 set->name, "labelCount", (json_int_t)set->label_count, "labels",
						 weir_figures_list(describe_label, NULL, hits, count, sizeof(*hits))),
				       diag);
	if (!set->has_labels)
		weir_diag_note(diag, "set '%s' has no labels", set->name);
	else
		weir_table_list(&table, describe_label, NULL, hits, count, sizeof(*hits));
	weir_table_print(&table, stdout);
	return weir_flush_results(diag);
}

/* ---- all sets ---- */

static int list_sets(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_sets_view_free) struct weir_sets_view view = {};
	_cleanup_(weir_table_free) struct weir_table table = {};
	char words[WEIR_SETS_NOTE_WORDS];
	int err = weir_instance_open(options->instance, &instance, diag);

	if (!err)
		err = weir_instance_kept(instance, &history, diag);
	if (!err && options->argument_count)
		return list_labels(options, instance, history.sets[0], diag);
	if (!err)
		err = weir_sets_read(instance, &view, diag);
	if (err)
		return err;
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:o}", "instance", options->instance, "sets",
						 weir_figures_list(weir_describe_set, NULL, view.sets, view.count,
								   sizeof(*view.sets))),
				       diag);
	if (!view.count)
		weir_diag_note(diag, "instance '%s' has no sets", options->instance);
	else
		weir_table_list(&table, weir_describe_set, NULL, view.sets, view.count, sizeof(*view.sets));
	if (view.note.refused_ns)
		weir_diag_warning(diag, NULL, NULL, "correct it: the next change is taken over",
				  "a change was refused, and the sets are as before: %s",
				  weir_sets_note_words(&view.note, words));
	weir_table_print(&table, stdout);
	return weir_flush_results(diag);
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_sets_command, argc, argv, list_sets);
}

const struct weir_command_entry weir_sets_entry = {&weir_sets_command, run_command,
						   "list the named sets in force, with their sizes and files"};
