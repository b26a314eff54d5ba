// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shadow windows: what else a packet that passes has to be counted by. A rule that goes by another resource's traffic
 * reads a window that counts it, which several such rules may share; a rule that warms up goes by what passed in each
 * second. Shadow windows are kept by hidden rules behind the user's, with slots and window specs like
 * theirs.
 *
 * A rule that observes does not count what it would have dropped (docs/semantics.md, 6), so that it has a window to
 * itself. Alone it has the one that all would share: when it begins to enforce, it continues with that.
 *
 * And the tracker: system rules that go by handshakes, or by how many connections are open, have a hidden rule that
 * follows the connections of all resources together.
 */
#include "compile/build_steps.h"

#include <string.h>

#include "base/util.h"
#include "rules/scalars.h"

struct shadowing {
	struct weir_image *image;
	struct weir_rule_list *list;
	struct weir_diag *diag;
};

static const struct weir_ruleset_resource *resource_at(const struct shadowing *shadowing, size_t resource)
{
	return &shadowing->list->ruleset.resources[resource];
}

static uint8_t directions_of(const struct shadowing *shadowing, size_t resource)
{
	return weir_match_directions(&resource_at(shadowing, resource)->match);
}

static int add_to_resource(struct shadowing *shadowing, const struct weir_ruleset_rule *rule, size_t resource,
			   const struct weir_shadow *shadow)
{
	struct weir_resource *counted = &shadowing->image->resources[resource];

	if (counted->shadow_count == WEIR_RESOURCE_SHADOWS_MAX)
		return weir_diag_error(
			shadowing->diag, &rule->place, NULL,
			"give the rules that refer to it the same statIntervalInMs, sampleCount, window and unit",
			"rule '%s' is one too many that depends on the traffic of resource '%s': at most %d counts of "
			"it can be kept",
			rule->name, resource_at(shadowing, resource)->name, WEIR_RESOURCE_SHADOWS_MAX);
	counted->shadow[counted->shadow_count++] = *shadow;
	return 0;
}

/* ---- windows of other resources ---- */

static bool has_same_window(const struct weir_ruleset_rule *a, const struct weir_ruleset_rule *b)
{
	return a->interval_ns == b->interval_ns && a->samples == b->samples && a->window == b->window &&
	       a->counts_bytes == b->counts_bytes;
}

/*
 * Together with the resource it says all that distinguishes shadow windows. With a ';' in it, no name of the user's; a
 * window that others cannot share has its observer's, who is no rule of the resource that is read.
 */
static char *name_of_shadow(const struct weir_ruleset_rule *rule, bool is_shared)
{
	char *name;

	if (!is_shared)
		return strdup(rule->name);
	if (asprintf(&name, "meter;%llu;%u;%s;%s", (unsigned long long)rule->interval_ns, rule->samples,
		     weir_window_names[rule->window], rule->counts_bytes ? "bytes" : "packets") < 0)
		return NULL;
	return name;
}

/* A hidden rule on the resource that the rule at `reader` refers to, with a window like its own. */
static int add_shadow(struct shadowing *shadowing, size_t reader, bool is_shared)
{
	struct weir_ruleset *ruleset = &shadowing->list->ruleset;
	const struct weir_ruleset_rule *rule = &ruleset->rules[reader];
	const struct weir_ruleset_rule shadow = {
		.name = name_of_shadow(rule, is_shared),
		.resource = rule->ref_resource,
		.interval_ns = rule->interval_ns,
		.samples = rule->samples,
		.window = rule->window,
		.counts_bytes = rule->counts_bytes,
		.ref_resource = WEIR_NO_RESOURCE,
		.place = rule->place,
	};
	size_t place = ruleset->rule_count;

	if (!shadow.name)
		return weir_compile_no_memory(shadowing->diag);
	ruleset->rules[place] = shadow;
	ruleset->rule_count++;
	shadowing->list->terms[place] = (struct weir_terms){.is_shadow = true, .has_window = true, .shadow = reader};
	shadowing->list->terms[reader].shadow = place;
	shadowing->image->shadow_count++;
	return add_to_resource(
		shadowing, rule, rule->ref_resource,
		&(struct weir_shadow){.kind = WEIR_SHADOW_WINDOW, .skips_dropped = rule->observes, .rule = place});
}

/* The shadow window of the referred resource with this rule's window, or NULL. */
static const struct weir_shadow *find_shadow(const struct shadowing *shadowing, const struct weir_ruleset_rule *rule)
{
	const struct weir_resource *resource = &shadowing->image->resources[rule->ref_resource];
	uint32_t i;

	for (i = 0; i < resource->shadow_count; i++) {
		const struct weir_shadow *shadow = &resource->shadow[i];

		if (shadow->kind == WEIR_SHADOW_WINDOW &&
		    has_same_window(&shadowing->list->ruleset.rules[shadow->rule], rule))
			return shadow;
	}
	return NULL;
}

static int shadow_window(struct shadowing *shadowing, size_t place)
{
	const struct weir_ruleset_rule *rule = &shadowing->list->ruleset.rules[place];
	struct weir_terms *terms = shadowing->list->terms;
	const struct weir_shadow *found = find_shadow(shadowing, rule);
	int err = 0;

	if (!found || rule->observes) {
		if (shadowing->list->ruleset.rule_count == WEIR_RULES_MAX)
			return weir_diag_error(
				shadowing->diag, &rule->place, NULL, "use fewer rules, or refer to fewer resources",
				"rule '%s' has no room to count resource '%s': at most %d rules, one more for each "
				"window that they refer to",
				rule->name, resource_at(shadowing, rule->ref_resource)->name, WEIR_RULES_MAX);
		err = add_shadow(shadowing, place, !found);
	} else {
		terms[place].shadow = found->rule;
	}
	/* It finds its flow by the key of packets that go another way than those that it counts. */
	terms[terms[place].shadow].directions |= directions_of(shadowing, rule->resource);
	return err;
}

/* ---- what warms a rule up ---- */

static int shadow_warm_up(struct shadowing *shadowing, const struct weir_ruleset_rule *rule, size_t place)
{
	const struct weir_shadow shadow = {
		.kind = shadowing->list->terms[place].warms_flows ? WEIR_SHADOW_WARMING : WEIR_SHADOW_SECONDS,
		.skips_dropped = rule->observes,
		.rule = place,
	};
	const size_t counted = rule->relation == WEIR_RELATION_CURRENT ? rule->resource : rule->ref_resource;

	shadowing->list->terms[place].directions |= directions_of(shadowing, counted);
	return add_to_resource(shadowing, rule, counted, &shadow);
}

static int shadow_rule(struct shadowing *shadowing, size_t place)
{
	const struct weir_ruleset_rule *rule = &shadowing->list->ruleset.rules[place];
	int err = 0;

	if (weir_kinds[shadowing->list->terms[place].kind]->reads_shadow)
		err = shadow_window(shadowing, place);
	if (!err && rule->strategy == WEIR_STRATEGY_WARM_UP)
		err = shadow_warm_up(shadowing, rule, place);
	return err;
}

/* ---- connections, for system rules ---- */

/* It drops nothing: without a limit, and as one that observes, should the tables not take a connection in. */
static int add_tracker(struct shadowing *shadowing)
{
	struct weir_rule_list *list = shadowing->list;
	struct weir_ruleset *ruleset = &list->ruleset;
	const struct weir_ruleset_rule tracker = {
		.name = strdup("tracker;connections"),
		.resource = WEIR_NO_RESOURCE,
		.ref_resource = WEIR_NO_RESOURCE,
		.metric = WEIR_METRIC_CONCURRENCY,
		.observes = true,
		.place = ruleset->rules[0].place,
	};

	if (!tracker.name)
		return weir_compile_no_memory(shadowing->diag);
	if (ruleset->rule_count == WEIR_RULES_MAX) {
		free(tracker.name);
		return weir_diag_error(shadowing->diag, &tracker.place, NULL, "use fewer rules",
				       "system rules have no room to follow connections: at most %d rules, and one for "
				       "that",
				       WEIR_RULES_MAX);
	}
	list->tracker = ruleset->rule_count;
	list->terms[list->tracker] = (struct weir_terms){
		.kind = weir_kind_id_of(&tracker),
		.is_shadow = true,
		.units = WEIR_THRESHOLD_UNITS_MAX,
		.units_max = WEIR_THRESHOLD_UNITS_MAX,
	};
	ruleset->rules[ruleset->rule_count++] = tracker;
	shadowing->image->shadow_count++;
	return 0;
}

/* ---- the list ---- */

static int make_all_terms(const struct weir_ruleset *ruleset, struct weir_rule_list *list, struct weir_diag *diag)
{
	size_t place;
	int err = 0;

	for (place = 0; place < ruleset->rule_count; place++) {
		if (weir_terms_make(ruleset, &ruleset->rules[place], &list->terms[place], diag))
			err = -EINVAL;
	}
	return err;
}

int weir_compile_shadows(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_rule_list *list,
			 struct weir_diag *diag)
{
	struct shadowing shadowing = {.image = image, .list = list, .diag = diag};
	size_t place;
	int err;

	/* Each rule needs one shadow window at most, and the program has no room for more. */
	list->user_rules = ruleset->rule_count;
	list->ruleset = *ruleset;
	list->ruleset.rules = calloc(2 * ruleset->rule_count + 1, sizeof(*list->ruleset.rules));
	list->terms = calloc(2 * ruleset->rule_count + 1, sizeof(*list->terms));
	if (!list->ruleset.rules || !list->terms)
		return weir_compile_no_memory(diag);
	if (ruleset->rule_count)
		memcpy(list->ruleset.rules, ruleset->rules, ruleset->rule_count * sizeof(*ruleset->rules));
	err = make_all_terms(ruleset, list, diag);
	/* Rules that enforce come first: what they share is then found. */
	for (place = 0; !err && place < ruleset->rule_count; place++)
		err = ruleset->rules[place].observes ? 0 : shadow_rule(&shadowing, place);
	for (place = 0; !err && place < ruleset->rule_count; place++)
		err = ruleset->rules[place].observes ? shadow_rule(&shadowing, place) : 0;
	if (!err && weir_tracks_connections(ruleset))
		err = add_tracker(&shadowing);
	return err;
}

void weir_rule_list_free(struct weir_rule_list *list)
{
	size_t place;

	if (list->ruleset.rules) {
		for (place = list->user_rules; place < list->ruleset.rule_count; place++)
			free(list->ruleset.rules[place].name);
	}
	free(list->ruleset.rules);
	free(list->terms);
}
