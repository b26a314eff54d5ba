// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shadow windows: additional windows in which a passing packet is counted. A rule that depends on another resource's
 * traffic reads a window that counts this traffic; several such rules may share one. A rule that warms up depends on
 * what passed in each second. Shadow windows belong to hidden rules after the user's, with slots and window specs of
 * their own.
 *
 * A rule that observes does not count what it would have dropped (docs/semantics.md, 6), so it needs a window of its
 * own. If it is the only reader, it gets the window that all would share, so that it continues with that window when it
 * begins to enforce.
 *
 * There is also the tracker: if system rules depend on handshakes, or on the number of open connections, a hidden rule
 * tracks the connections of all resources together.
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
			"rule '%s' is one too many for the traffic of resource '%s': at most %d counts of "
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
 * The name of a shadow window. Together with the resource it identifies the window completely. It contains a ';', so no
 * name of the user's can equal it. A window that is not shared gets the name of the observing rule, which does not
 * belong to the resource that is read.
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

/* Add a hidden rule on the resource that the rule at `reader` refers to, with the same window as that rule. */
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

/* The shadow window on the referenced resource with the same window as this rule, or NULL. */
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
	/* The rule finds its flow by the key of its own packets, which may have another direction than those counted.
	 */
	terms[terms[place].shadow].directions |= directions_of(shadowing, rule->resource);
	return err;
}

/* ---- windows that warm up rules ---- */

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

/* ---- children with fair shares ---- */

/* Add the hidden rule that describes the children of the rule at `place`. */
static int add_children(struct shadowing *shadowing, size_t place)
{
	struct weir_ruleset *ruleset = &shadowing->list->ruleset;
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	struct weir_ruleset_rule children = {
		.resource = rule->resource,
		.has_own_key = true,
		.own_key = weir_child_flow_of(ruleset, rule),
		.metric = WEIR_METRIC_SHARE,
		.counts_bytes = rule->counts_bytes,
		.observes = rule->observes,
		.ref_resource = WEIR_NO_RESOURCE,
		.place = rule->place,
	};
	const size_t hidden = ruleset->rule_count;

	if (hidden == WEIR_RULES_MAX)
		return weir_diag_error(
			shadowing->diag, &rule->place, NULL, "use fewer rules",
			"rule '%s' has no room for 'fairBy': at most %d rules, one more for each with it", rule->name,
			WEIR_RULES_MAX);
	if (asprintf(&children.name, WEIR_FAIR_PREFIX "%s", rule->name) < 0)
		return weir_compile_no_memory(shadowing->diag);
	ruleset->rules[hidden] = children;
	ruleset->rule_count++;
	shadowing->list->terms[hidden] =
		(struct weir_terms){.kind = WEIR_KIND_FAIR, .is_shadow = true, .shadow = place};
	shadowing->list->terms[place].shadow = hidden;
	shadowing->image->shadow_count++;
	return 0;
}

static int shadow_rule(struct shadowing *shadowing, size_t place)
{
	const struct weir_ruleset_rule *rule = &shadowing->list->ruleset.rules[place];
	int err = 0;

	if (weir_kinds[shadowing->list->terms[place].kind]->reads_shadow)
		err = shadow_window(shadowing, place);
	if (!err && rule->strategy == WEIR_STRATEGY_WARM_UP)
		err = shadow_warm_up(shadowing, rule, place);
	if (!err && rule->fair_by.fields)
		err = add_children(shadowing, place);
	return err;
}

/* ---- connections, for system rules ---- */

/* The tracker drops nothing: it has no limit, and it observes, in case the tables have no space for a connection. */
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
		return weir_diag_error(
			shadowing->diag, &tracker.place, NULL, "use fewer rules",
			"no room for the hidden rule that follows connections for system rules: at most %d "
			"rules in all",
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

	/* Each rule needs at most one shadow window, and the program has space for no more. */
	list->user_rules = ruleset->rule_count;
	list->ruleset = *ruleset;
	list->ruleset.rules = calloc(2 * ruleset->rule_count + 1, sizeof(*list->ruleset.rules));
	list->terms = calloc(2 * ruleset->rule_count + 1, sizeof(*list->terms));
	if (!list->ruleset.rules || !list->terms)
		return weir_compile_no_memory(diag);
	if (ruleset->rule_count)
		memcpy(list->ruleset.rules, ruleset->rules, ruleset->rule_count * sizeof(*ruleset->rules));
	err = make_all_terms(ruleset, list, diag);
	/* Rules that enforce come first, so that observing rules find the windows they share. */
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
