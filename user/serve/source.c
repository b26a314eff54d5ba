// SPDX-License-Identifier: GPL-2.0-only
#include "serve/source.h"

#include "base/util.h"
#include "host/host.h"
#include "report/rule_set.h"

int weir_source_open(struct weir_source *source, const struct weir_instance **ret_instance, struct weir_diag *diag)
{
	int err;

	if (!source->instance || !weir_instance_refresh(source->instance)) {
		weir_instance_free(TAKE_PTR(source->instance));
		weir_sets_view_free(&source->sets);
		source->has_sets = false;
		err = weir_instance_open(source->instance_name, &source->instance, diag);
		if (err)
			return err;
	}
	*ret_instance = source->instance;
	return 0;
}

int weir_source_read_sets(struct weir_source *source, const struct weir_sets_view **ret_sets, struct weir_diag *diag)
{
	int err = source->has_sets ? 0 : weir_sets_read(source->instance, &source->sets, diag);

	if (err)
		return err;
	source->has_sets = true;
	weir_sets_read_note(source->instance, &source->sets);
	*ret_sets = &source->sets;
	return 0;
}

static void forget_flows(struct weir_source *source)
{
	weir_flows_view_free(&source->flows);
	weir_drops_free(&source->drops);
	weir_instance_free(TAKE_PTR(source->flows_instance));
	source->flows_read_ns = 0;
}

uint64_t weir_source_flows_age_ns(const struct weir_source *source)
{
	return weir_host_now_ns() - source->flows_read_ns;
}

/* Shown flows are at most this old, unless reading them so often would take a twentieth of a CPU. A dashboard then
 * shows those of the last scrape, or of the one before. They are never older than a minute: where a hypervisor takes
 * the CPU away, that counts as CPU time, too, and a single reading that was so interrupted would put off the next for
 * minutes. Chosen, not derived.
 */
#define AGE_NS_MAX (15 * WEIR_NSEC_PER_SEC)
#define COSTLY_AGE_NS_MAX (60 * WEIR_NSEC_PER_SEC)
#define COST_PART_MAX 20

static uint64_t patience_ns(const struct weir_source *source, unsigned int patience)
{
	const uint64_t asked_ns = patience * source->flows_cost_ns, least_ns = COST_PART_MAX * source->flows_cost_ns;
	uint64_t most_ns = least_ns > AGE_NS_MAX ? least_ns : AGE_NS_MAX;

	if (most_ns > COSTLY_AGE_NS_MAX)
		most_ns = COSTLY_AGE_NS_MAX;
	return asked_ns < most_ns ? asked_ns : most_ns;
}

/* The reading is of the rules in force, and is recent enough. */
static bool is_fresh(const struct weir_source *source, const struct weir_instance *instance, unsigned int patience)
{
	return source->flows_read_ns && source->flows_instance->info.attached_ns == instance->info.attached_ns &&
	       source->flows_instance->info.generation == instance->info.generation &&
	       weir_source_flows_age_ns(source) < patience_ns(source, patience);
}

int weir_source_read_flows(struct weir_source *source, const struct weir_instance *now, unsigned int patience,
			   struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	const struct weir_drops_wanted wanted = {.most = SIZE_MAX}; /* all, to count them by rule */
	const uint64_t begun_cpu_ns = weir_host_cpu_ns();
	int err;

	if (is_fresh(source, now, patience))
		return 0;
	forget_flows(source);
	err = weir_instance_open(source->instance_name, &instance, diag); /* opened separately, because it is kept */
	if (!err)
		err = weir_flows_view_read(instance, WEIR_ANY_RULE, WEIR_SOURCE_FLOWS, &source->flows, diag);
	if (!err)
		err = weir_drops_read(instance, &wanted, &source->drops, diag);
	if (err) {
		forget_flows(source);
		return err;
	}
	source->flows_instance = TAKE_PTR(instance);
	source->flows_read_ns = weir_host_now_ns();
	source->flows_cost_ns = weir_host_cpu_ns() - begun_cpu_ns; /* others may have run meanwhile */
	return 0;
}

static void forget_rules(struct weir_source *source)
{
	json_decref(source->rules);
	source->rules = NULL;
}

int weir_source_read_rules(struct weir_source *source, json_t **ret_document, struct weir_diag *diag)
{
	const struct weir_instance *instance;
	int err = weir_source_open(source, &instance, diag);

	if (err)
		return err;
	if (source->rules_attached_ns != instance->info.attached_ns ||
	    source->rules_generation != instance->info.generation)
		forget_rules(source);
	if (!source->rules)
		err = weir_rule_set_describe(instance, &source->rules, diag);
	if (err)
		return err;
	source->rules_attached_ns = instance->info.attached_ns;
	source->rules_generation = instance->info.generation;
	*ret_document = json_incref(source->rules);
	return 0;
}

int weir_source_read_drops(struct weir_source *source, const struct weir_instance *now, const json_t **ret_events,
			   struct weir_diag *diag)
{
	int err;

	if (source->notes)
		__atomic_fetch_add(&source->notes->drops_wanted, 1, __ATOMIC_RELAXED);
	err = weir_drop_sample_read(&source->sample, now, diag);
	*ret_events = source->sample.events;
	return err;
}

void weir_source_free(struct weir_source *source)
{
	weir_instance_free(TAKE_PTR(source->instance));
	weir_sets_view_free(&source->sets);
	forget_rules(source);
	forget_flows(source);
	weir_drop_sample_free(&source->sample);
}
