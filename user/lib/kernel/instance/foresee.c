// SPDX-License-Identifier: GPL-2.0-only
/* Finds out what a reload would change, without doing it. */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"

static void read_before(const struct weir_instance *instance, struct weir_ruleset **ret_before)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	struct weir_diag ignored = {};

	weir_instance_history(instance, &history);
	if (history.sets[0])
		weir_kept_set_read(history.sets[0], ret_before, &ignored);
	weir_diag_free(&ignored);
}

/* The memory that the maps of these rules take; 0: unknown. */
static uint64_t bytes_of(const struct weir_ruleset *ruleset, enum weir_attach_mode mode,
			 const struct weir_previous *previous)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_image_memory memory;
	struct weir_diag ignored = {};
	int err = ruleset ? weir_instance_build_image(ruleset, mode, previous, WEIR_EMPTIED_WARNED, &image, &ignored)
			  : -ENOENT;

	weir_diag_free(&ignored);
	if (err)
		return 0;
	weir_image_memory(image, image->config.cpus, &memory);
	return memory.total;
}

static void find_emptied(const struct weir_instance *instance, const struct weir_image *image,
			 struct weir_forecast *forecast)
{
	for (uint32_t i = 0; i < image->rule_count; i++) {
		struct weir_change *change = &forecast->rules.all[i];

		if (!change->keeps_state || !weir_instance_empties(instance, &image->rule_info[image->rules[i].slot]))
			continue;
		change->keeps_state = false;
		change->why_empty = "another version of weir uses another layout for its table";
		forecast->kept_rules--;
	}
}

/* Ask the kernel whether it accepts the program and its maps, and remove them again at once. */
static int try_load(const struct weir_instance *instance, const struct weir_transition *transition,
		    const struct weir_image *image, uint64_t *ret_load_ns, struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	const uint64_t start_ns = weir_host_now_ns();
	int err = weir_not_the_rules(weir_reload_load(instance, transition, image, true, &object, diag));

	if (!err)
		err = weir_not_the_rules(weir_reload_check_pace(instance, image, transition->ruleset, diag));
	*ret_load_ns = weir_host_now_ns() - start_ns;
	return err;
}

/* Call this under the lock. */
static int foresee(struct weir_instance *instance, const struct weir_transition *transition, bool loads,
		   struct weir_reload_forecast *ret_forecast, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *before = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(weir_freep) struct weir_rule_info *rules = weir_reload_rules_now(instance);
	const struct weir_previous previous = weir_reload_what_runs(instance, rules);
	struct weir_reload_forecast result = {};
	const uint64_t start_ns = weir_host_now_ns();
	struct weir_image_memory memory;
	int err =
		rules ? weir_reload_prepare(instance, transition, &image, diag)
		      : weir_diag_fail(diag, ENOMEM, NULL, "cannot compare the rules of instance '%s'", instance->name);

	result.compile_ns = weir_host_now_ns() - start_ns;
	if (!err && loads)
		err = try_load(instance, transition, image, &result.load_ns, diag);
	if (err)
		return err;
	weir_image_memory(image, image->config.cpus, &memory);
	result.total_bytes = memory.total;
	result.needed_bytes = weir_reload_new_bytes(instance, image);
	read_before(instance, &before);
	result.total_bytes_before = bytes_of(before, weir_reload_mode(instance), &previous);
	result.is_before_known = before != NULL;
	err = weir_forecast_make(before, transition->ruleset, &previous, image, &result.changes);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot compare the rules of instance '%s'", instance->name);
	find_emptied(instance, image, &result.changes);
	*ret_forecast = result;
	return 0;
}

int weir_instance_foresee(const char *name, const struct weir_ruleset *ruleset,
			  const struct weir_reload_options *options, bool loads,
			  struct weir_reload_forecast *ret_forecast, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_transition transition = {.kind = WEIR_TRANSITION_LOADED, .ruleset = ruleset};
	_cleanup_(weir_closep) int lock_fd = -1;
	int err;

	/* A user who only compares sees, in addition to the rest, what a reload would refuse. */
	if (!options->starts_afresh)
		transition.emptied = loads ? WEIR_EMPTIED_REFUSED : WEIR_EMPTIED_TO_BE_REFUSED;
	err = weir_instance_open_any(name, &instance, diag);

	if (err)
		return err;
	weir_instance_free(TAKE_PTR(instance));
	err = weir_bpffs_lock(&lock_fd, diag);
	if (!err)
		err = weir_instance_open_as_is(name, &instance, diag);
	if (!err)
		err = weir_instance_accept_incompatible(instance, options->starts_afresh, diag);
	if (!err && loads)
		err = weir_transition_check(instance, transition.kind, diag);
	return err ? err : foresee(instance, &transition, loads, ret_forecast, diag);
}

void weir_reload_forecast_free(struct weir_reload_forecast *forecast)
{
	weir_forecast_free(&forecast->changes);
}
