// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind WINDOW: a rule is evaluated by the sliding window of its own resource, kept in rows per CPU (docs/semantics.md,
 * 1 and 2). Shadow windows are of this kind, too.
 */
#include "base/util.h"
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/rule.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return true; /* everything that no other kind takes */
}

/* ---- flow tables ---- */

static bool is_narrow(const struct weir_rule_info *rule)
{
	return rule->storage == WEIR_STORAGE_NARROW && weir_has_window(rule);
}

static bool is_medium(const struct weir_rule_info *rule)
{
	return rule->storage == WEIR_STORAGE_MEDIUM && weir_has_window(rule);
}

static bool is_wide(const struct weir_rule_info *rule)
{
	return rule->storage == WEIR_STORAGE_WIDE && weir_has_window(rule);
}

static void size_rows(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing narrow = {
		.keeps = is_narrow,
		.sets = image->flows_per_cpu / WEIR_WAYS,
		.sets_idle = WEIR_NARROW_SETS_PER_CHUNK,
		.table = WEIR_TABLE_NARROW_FLOWS,
		.ways = WEIR_WAYS,
		.keeping = "flow tables keep their",
		.what = "flows per CPU",
		.setting = "flowsPerCpu",
	};
	struct weir_sizing medium = narrow, wide = narrow;

	medium.keeps = is_medium;
	medium.sets_idle = WEIR_MEDIUM_SETS_PER_CHUNK;
	medium.table = WEIR_TABLE_MEDIUM_FLOWS;
	wide.keeps = is_wide;
	wide.sets_idle = WEIR_WIDE_SETS_PER_CHUNK;
	wide.table = WEIR_TABLE_WIDE_FLOWS;
	weir_size_table(image, previous, &narrow, diag);
	weir_size_table(image, previous, &medium, diag);
	weir_size_table(image, previous, &wide, diag);
}

/* ---- sharers ---- */

static bool keeps_windows(const struct weir_rule_info *rule)
{
	return is_narrow(rule) || is_medium(rule) || is_wide(rule);
}

static bool has_flows(const struct weir_rule *rule)
{
	return rule->kind == WEIR_KIND_WINDOW && rule->storage != WEIR_STORAGE_LONE;
}

/* How far back a rule's window reaches. */
static uint64_t window_ns(const struct weir_rule *rule)
{
	return rule->window_cells * rule->bucket_ns;
}

/* The shortest epoch that is at least as long as the longest window of a flow. */
static uint32_t sharers_shift(const struct weir_image *image)
{
	uint32_t shift = WEIR_SHARERS_SHIFT_MIN, i;

	for (i = 0; i < image->rule_count; i++)
		while (has_flows(&image->rules[i]) && window_ns(&image->rules[i]) > 1ull << shift)
			shift++;
	return shift;
}

/*
 * The sharers table. While rows of a running rule depend on it, it keeps its size and the length of its epochs. A rule
 * that a reload adds, and whose window is longer than these epochs, does without the table. So do shadow windows, which
 * count packets that have passed and take no lease.
 */
static void size_sharers(const struct weir_previous *previous, struct weir_image *image)
{
	uint64_t wanted = (uint64_t)image->flows_per_cpu * image->config.cpus;
	struct weir_config *config = &image->config;
	uint32_t i;

	config->sizes[WEIR_TABLE_SHARERS] = WEIR_SHARERS_LINE_CELLS;
	config->sharers_shift = sharers_shift(image);
	while (weir_any_rule(keeps_windows, image->rule_info, image->rule_slots) &&
	       config->sizes[WEIR_TABLE_SHARERS] < wanted && config->sizes[WEIR_TABLE_SHARERS] < 1u << 31)
		config->sizes[WEIR_TABLE_SHARERS] *= 2;
	if (previous->sizes[WEIR_TABLE_SHARERS] &&
	    weir_any_rule(keeps_windows, previous->rules, previous->rule_slots)) {
		config->sizes[WEIR_TABLE_SHARERS] = previous->sizes[WEIR_TABLE_SHARERS];
		config->sharers_shift = previous->sharers_shift;
	}
	for (i = 0; i < image->rule_count + image->shadow_count; i++)
		image->rules[i].asks_all =
			i >= image->rule_count || window_ns(&image->rules[i]) > 1ull << config->sharers_shift;
}

/* The table has room for WEIR_ROW_GHOSTS_PER_ROW ghosts for each row of one CPU, however many CPUs there are: it
 * remembers that many times as many flows as there are rows. It keeps its size while rows of a running rule may have
 * left ghosts in it.
 */
static void size_row_ghosts(const struct weir_previous *previous, struct weir_image *image)
{
	struct weir_config *config = &image->config;

	config->sizes[WEIR_TABLE_ROW_GHOSTS] = WEIR_ROW_GHOST_PAGE_SETS;
	if (weir_any_rule(weir_leaves_row_ghosts, image->rule_info, image->rule_slots))
		config->sizes[WEIR_TABLE_ROW_GHOSTS] =
			image->flows_per_cpu / WEIR_ROW_GHOST_WAYS * WEIR_ROW_GHOSTS_PER_ROW;
	if (weir_any_rule(weir_has_occupy_flows, image->rule_info, image->rule_slots))
		config->sizes[WEIR_TABLE_ROW_GHOSTS] *= WEIR_ROW_GHOSTS_OF_OCCUPY;
	if (previous->sizes[WEIR_TABLE_ROW_GHOSTS] &&
	    weir_any_rule(weir_leaves_row_ghosts, previous->rules, previous->rule_slots))
		config->sizes[WEIR_TABLE_ROW_GHOSTS] = previous->sizes[WEIR_TABLE_ROW_GHOSTS];
}

/* If no rule aggregates there is no table. An existing table stays while it may count something. */
static void size_overflow(const struct weir_previous *previous, struct weir_image *image)
{
	struct weir_config *config = &image->config;

	for (uint32_t i = 0; i < image->rule_count; i++) {
		struct weir_rule *rule = &image->rules[i];
		const struct weir_rule_info *info = &image->rule_info[rule->slot];

		if (!info->aggregates || !info->identity.key_fields)
			continue;
		/* What aggregating rules share: for windows the class of their overflow window. */
		if (weir_leaves_row_ghosts(info)) {
			const uint8_t class = WEIR_OVERFLOW_CLASS(rule->spec, rule->storage == WEIR_STORAGE_NARROW);

			rule->overflow = 1 + class;
			config->overflow_classes |= 1u << class;
		} else {
			rule->overflow = 1;
			config->has_overflow = true;
		}
	}
	if (config->overflow_classes ||
	    (previous->sizes[WEIR_TABLE_OVERFLOW_WINDOWS] &&
	     config->sizes[WEIR_TABLE_ROW_GHOSTS] == previous->sizes[WEIR_TABLE_ROW_GHOSTS]))
		config->sizes[WEIR_TABLE_OVERFLOW_WINDOWS] = config->sizes[WEIR_TABLE_ROW_GHOSTS] / WEIR_OVERFLOW_SETS;
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	size_rows(previous, image, diag);
	size_sharers(previous, image);
	size_row_ghosts(previous, image);
	size_overflow(previous, image);
}

const struct weir_kind weir_kind_window = {
	.is_chosen = is_chosen,
	.fields = WEIR_RULE_FIELDS_ALL & ~(1u << RULE_REF_RESOURCE),
	.threshold_hint = "write how many packets an interval may hold: 'threshold: 1000'",
	.below_one = "a threshold below 1 admits nothing",
	.below_one_hint = "a packet is admitted whole or not at all",
	.keeps_window = true,
	.size_tables = size_tables,
};
