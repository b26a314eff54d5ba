// SPDX-License-Identifier: GPL-2.0-only
#include "serve/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "report/event_lines.h"
#include "rules/emit.h"
#include "rules/history.h"
#include "words/json.h"

/* ---- the instance and its sets ---- */

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

/* ---- flows ---- */

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

/* ---- the rule set ---- */

/* Names, one per line. */
static json_t *describe_files(const char *files)
{
	json_t *list = json_array();

	while (*files) {
		size_t bytes = strcspn(files, "\n");
		_cleanup_(weir_freep) char *name = strndup(files, bytes);

		weir_json_append(&list, name ? weir_json_text(name) : NULL);
		files += bytes + (files[bytes] != '\0');
	}
	return list;
}

/* The rule set as `weir show --json` writes it. NULL: out of memory. */
static json_t *describe_rules(const struct weir_ruleset *ruleset)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		return NULL;
	weir_ruleset_emit(ruleset, WEIR_FORM_JSON, false, stream);
	if (fclose(stream))
		return NULL;
	return json_loadb(text, bytes, 0, NULL);
}

static int describe_rule_set(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	const struct weir_kept_set *set;
	char hash[17];
	int err = weir_instance_kept(instance, &history, diag);

	if (err)
		return err;
	set = history.sets[0];
	err = weir_kept_set_read(set, &ruleset, diag);
	if (err)
		return err;
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)set->digest);
	*ret_document = json_pack("{s:s, s:I, s:s, s:o, s:I, s:I, s:o, s:o}", "instance", instance->name, "generation",
				  (json_int_t)instance->info.generation, "hash", hash, "files",
				  describe_files(set->files), "allowCount", (json_int_t)instance->info.allow_count,
				  "denyCount", (json_int_t)instance->info.deny_count, "text", weir_json_text(set->text),
				  "rules", describe_rules(ruleset));
	return *ret_document ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot show the rule set");
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
		err = describe_rule_set(instance, &source->rules, diag);
	if (err)
		return err;
	source->rules_attached_ns = instance->info.attached_ns;
	source->rules_generation = instance->info.generation;
	*ret_document = json_incref(source->rules);
	return 0;
}

/* ---- drops ---- */

/* Both chosen, not derived. A page that gets slow answers sends a request every 10 s or less often. */
#define FLOWS_A_READING 5
#define FORGET_SAMPLE_NS (60 * WEIR_NSEC_PER_SEC)

static void free_sample(struct weir_drop_sample *sample)
{
	json_decref(sample->events);
	weir_event_watch_close(&sample->watch);
	*sample = (struct weir_drop_sample){};
}

/* The sample is of the present attachment, and was requested recently. */
static bool is_going_on(const struct weir_drop_sample *sample, const struct weir_instance *now, uint64_t now_ns)
{
	return sample->events && sample->watch.instance->info.attached_ns == now->info.attached_ns &&
	       now_ns - sample->asked_ns < FORGET_SAMPLE_NS;
}

static int begin_sample(struct weir_drop_sample *sample, const char *instance, struct weir_diag *diag)
{
	int err = weir_event_watch_open_sample(instance, FLOWS_A_READING, &sample->watch, diag);

	if (err)
		return err;
	sample->events = json_array();
	return sample->events ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot keep drops");
}

/* The instance itself keeps changes, so only drops are kept here. */
static bool is_about_drops(const struct weir_reported *reported)
{
	return reported->kind == WEIR_REPORTED_DROP ||
	       (reported->kind == WEIR_REPORTED_MISSED && reported->missed.of == WEIR_REPORTED_DROP);
}

static int add_new_drops(struct weir_drop_sample *sample, struct weir_diag *diag)
{
	_cleanup_(weir_reported_events_free) struct weir_reported_events events = {};
	int err = weir_event_watch_read(&sample->watch, &events, diag);

	for (size_t i = 0; !err && i < events.count; i++)
		if (is_about_drops(&events.all[i]))
			weir_json_append(&sample->events,
					 weir_reported_describe(sample->watch.instance, &events.all[i]));
	if (!err && !sample->events)
		err = weir_diag_fail(diag, ENOMEM, NULL, "cannot keep drops");
	while (!err && json_array_size(sample->events) > WEIR_DROP_SAMPLE_EVENTS)
		json_array_remove(sample->events, 0);
	return err;
}

/* Add the drops since the last call. `now` is the instance as it is now. */
static int read_sample(struct weir_drop_sample *sample, const struct weir_instance *now, struct weir_diag *diag)
{
	const uint64_t now_ns = weir_host_now_ns();
	int err = 0;

	if (!is_going_on(sample, now, now_ns)) {
		free_sample(sample);
		err = begin_sample(sample, now->name, diag);
	}
	if (!err)
		err = add_new_drops(sample, diag);
	if (err)
		free_sample(sample);
	else
		sample->asked_ns = now_ns;
	return err;
}

int weir_source_read_drops(struct weir_source *source, const struct weir_instance *now, const json_t **ret_events,
			   struct weir_diag *diag)
{
	int err;

	if (source->notes)
		__atomic_fetch_add(&source->notes->drops_wanted, 1, __ATOMIC_RELAXED);
	err = read_sample(&source->sample, now, diag);
	*ret_events = source->sample.events;
	return err;
}

void weir_source_free(struct weir_source *source)
{
	weir_instance_free(TAKE_PTR(source->instance));
	weir_sets_view_free(&source->sets);
	forget_rules(source);
	forget_flows(source);
	free_sample(&source->sample);
}
