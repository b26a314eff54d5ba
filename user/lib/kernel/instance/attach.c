// SPDX-License-Identifier: GPL-2.0-only
/*
 * Putting an instance on interfaces. Everything that can be refused is refused before anything is changed. Then maps
 * are filled and pinned, and the links come last. So a packet never meets half an instance, and a failure leaves
 * nothing behind.
 */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/device.h"
#include "network/super_frames.h"
#include "pace/pace.h"
#include "program/array.h"

/* Which interfaces are wanted, and which of them exist. */
struct plan {
	const struct weir_attach_options *options;
	struct weir_wanted wanted[WEIR_WANTED_MAX];
	struct weir_targets targets;
	struct weir_history history; /* the rule set, if it is kept */
	uint8_t directions;	     /* that get a hook */
};

/* ---- refusals ---- */

/* Checks everything that can be refused before anything is changed. At tc, other programs may run on the same
 * interface, and no Ethernet header is needed.
 */
static int check_host(const struct plan *plan, struct weir_diag *diag)
{
	const struct weir_targets *targets = &plan->targets;
	const bool is_at_xdp = plan->directions & WEIR_MATCHES_IN;
	int err = 0;

	if (weir_host_is_realtime()) {
		weir_diag_error(diag, NULL, NULL, "boot a kernel without PREEMPT_RT",
				"this is a realtime kernel (PREEMPT_RT): packets can interleave on one CPU, so limits "
				"would not be exact");
		return -EOPNOTSUPP;
	}
	if (weir_host_cpus_have_gaps()) {
		weir_diag_error(
			diag, NULL, NULL, "boot with possible CPUs numbered from 0 on",
			"this machine's possible CPUs are not numbered without gaps "
			"(/sys/devices/system/cpu/possible): some would be overlooked, so limits would not be exact");
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < targets->count; i++) {
		const struct weir_target *target = &targets->targets[i];

		if (!target->is_named || plan->options->mode == WEIR_MODE_TC)
			continue;
		if (is_at_xdp && weir_instance_refuse_other_program(target->name, target->ifindex, diag))
			err = -EBUSY;
		else if (weir_instance_expect_ethernet(target->name, diag))
			err = -EPROTONOSUPPORT;
	}
	return err;
}

#define INTERFACE_WORDS_BYTES 128

/* Lists the existing interfaces that the instance is on, as far as there is room. */
static void name_interfaces(const char *instance, char words[INTERFACE_WORDS_BYTES])
{
	_cleanup_(weir_freep) struct weir_link *links = NULL;
	size_t written = 0, count;

	words[0] = '\0';
	if (weir_links_read(instance, &links, &count))
		return;
	for (size_t i = 0; i < count && written < INTERFACE_WORDS_BYTES; i++)
		if (links[i].ifindex && weir_link_stands(links, count, i))
			written += snprintf(words + written, INTERFACE_WORDS_BYTES - written, "%s'%s'",
					    written ? ", " : "", links[i].interface);
}

/* An instance without a link was left by a killed attach. An instance whose interfaces are all gone limits nothing and
 * never will again, for example after a container was restarted with new interfaces of the same names. Both are
 * removed.
 */
static int refuse_second_attach(const char *instance, bool is_on_others, struct weir_diag *diag)
{
	char words[INTERFACE_WORDS_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES], hint[WEIR_INSTANCE_HINT_BYTES];
	struct weir_instance_info head;
	int err, is_there = weir_instance_look_for(instance, diag);

	if (is_there <= 0)
		return is_there;
	if (!weir_instance_count_live_links(instance) && !weir_instance_is_controlled(instance))
		return weir_instance_remove(instance, diag);
	err = weir_instance_expect_here(instance, diag);
	if (err)
		return err;
	name_interfaces(instance, words);
	snprintf(hint, sizeof(hint), "'weir reload%s' replaces its rules, 'weir detach%s' takes it off%s",
		 weir_instance_options(instance, option), option,
		 is_on_others ? "; '--instance NAME' creates another" : "");
	if (weir_instance_is_incompatible(instance, &head))
		snprintf(hint, sizeof(hint),
			 "by another version of weir: 'weir reload%s --fresh FILE...' moves it to this version",
			 weir_instance_options(instance, option));
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is already attached to %s", instance, words);
	return -EEXIST;
}

/* ---- the instance ---- */

/* Do what the controller, which takes over at once, would do. */
static int publish_and_beat(const struct weir_settings *settings, const struct weir_image *image,
			    const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_control control = {.validity_ns = settings->controller_timeout_ms * 1000000ull};
	int err = weir_instance_publish(settings, image, object, diag);

	if (err)
		return err;
	control.heartbeat_ns = weir_host_now_ns();
	err = weir_array_write(weir_object_map_fd(object, WEIR_TABLE_CONTROL), &control, 1, sizeof(control));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the first heartbeat") : 0;
}

static int pin_maps(const char *instance, const struct weir_image *image, const struct weir_object *object,
		    struct weir_diag *diag)
{
	char path[PATH_MAX];
	int err = 0;

	weir_pin_path(instance, NULL, path);
	if (mkdir(path, 0700))
		return weir_diag_fail(diag, errno, NULL, "cannot make '%s'", path);
	for (int map = 0; !err && map < WEIR_STATE_TABLE_COUNT; map++)
		err = weir_pin(instance, weir_table_name(map), weir_object_map_fd(object, map), diag);
	if (!err)
		err = weir_pin(instance, WEIR_PIN_THRESHOLDS, weir_object_thresholds_fd(object), diag);
	if (!err)
		err = weir_cases_pin(instance, image, object, weir_pin, diag);
	if (!err)
		err = weir_labels_pin(instance, object, weir_pin, diag);
	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++)
		if (weir_object_hook_fd(object, hook) >= 0)
			err = weir_pin(instance, weir_pin_of_program(hook), weir_object_hook_fd(object, hook), diag);
	return err;
}

static int attach_pace(const char *instance, const struct weir_targets *targets, struct weir_diag *diag)
{
	_cleanup_(weir_freep) uint32_t *ifindexes = calloc(targets->count + 1, sizeof(*ifindexes));

	if (!ifindexes)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot attach instance '%s'", instance);
	for (size_t i = 0; i < targets->count; i++)
		ifindexes[i] = targets->targets[i].ifindex;
	return weir_pace_attach(instance, ifindexes, targets->count, diag);
}

/* An interface that only a pattern matches may be refused for reasons of its own; the others are then limited anyway.
 * If such an interface has gone since it was listed, this does not matter if a controller watches: it will see any
 * successor.
 */
static int put_links(const struct weir_link_terms *terms, const struct weir_targets *targets, bool is_watched,
		     struct weir_diag *diag)
{
	size_t put = 0;
	int refusal = 0;

	for (size_t i = 0; i < targets->count; i++) {
		const struct weir_target *target = &targets->targets[i];
		struct weir_diag messages = {};
		int err = weir_instance_put_link(terms, target->name, target->ifindex, NULL, &messages);

		if (err == -ENODEV && is_watched && !target->is_named) {
			weir_diag_free(&messages);
			continue;
		}
		if (!err)
			weir_instance_warn_of_repeats(terms->instance, target->ifindex, &messages);
		weir_diag_move(diag, &messages, err && !target->is_named);
		if (err && target->is_named)
			return err;
		put += !err;
		refusal = err ? err : refusal;
	}
	return put ? 0 : refusal;
}

/* Call this under the lock. Fills the maps first, attaches last. */
static int pin_and_attach(const struct plan *plan, const struct weir_ruleset *ruleset, const struct weir_image *image,
			  const struct weir_object *object, uint64_t *ret_attached_ns, struct weir_diag *diag)
{
	const struct weir_attach_options *options = plan->options;
	struct weir_link_terms terms = {
		.instance = options->instance,
		.mode = options->mode,
		.allows_merging = options->allows_merging,
		.place = options->place,
		.paces = image->config.paces,
		.paces_out = image->config.paces_out,
		.asks_interface = image->config.asked_fields & WEIR_MATCH_INTERFACE,
		.waits = weir_instance_waits_out(ruleset),
	};
	const struct weir_settings *settings = &ruleset->settings;
	struct weir_instance_info info = {};
	char words[INTERFACE_WORDS_BYTES];
	int err;

	weir_instance_hook_fds(object, terms.program_fd);
	weir_instance_update_info(&info, ruleset, image, object, weir_host_now_ns());
	info.ends_with_run = options->ends_with_run;
	memcpy(info.wanted, plan->wanted, sizeof(info.wanted));
	info.attach_mode = options->mode;
	info.allows_merging = options->allows_merging;
	err = weir_array_write(weir_object_map_fd(object, WEIR_TABLE_INSTANCE), &info, 1, sizeof(info));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'",
				      options->instance);
	err = pin_maps(options->instance, image, object, diag);
	if (!err) {
		_cleanup_(weir_closep) int fd = weir_instance_write_history(options->instance, &plan->history, diag);

		err = fd < 0 ? fd : weir_pin(options->instance, WEIR_PIN_HISTORY, fd, diag);
	}
	if (!err)
		err = weir_instance_write_addresses(0, image, object, diag);
	if (!err && image->config.paces)
		err = attach_pace(options->instance, &plan->targets, diag);
	if (!err && options->is_controlled)
		err = publish_and_beat(settings, image, object, diag);
	if (!err)
		err = put_links(&terms, &plan->targets, options->is_controlled, diag);
	if (err) {
		struct weir_diag ignored = {};

		weir_instance_remove(options->instance, &ignored); /* the first error is the one to report */
		weir_diag_free(&ignored);
		return err;
	}
	weir_instance_warn_of_forwarding(options->instance, image->config.limits_both, diag);
	name_interfaces(options->instance, words);
	weir_instance_note(options->instance, WEIR_JOURNAL_ATTACH, "attached to %s, %u rule%s",
			   words[0] ? words : "nothing yet", image->rule_count, image->rule_count == 1 ? "" : "s");
	if (ret_attached_ns)
		*ret_attached_ns = info.attached_ns;
	return 0;
}

/* No interface has an XDP program, so another instance could be attached to them. */
static bool are_free(const struct weir_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++) {
		struct weir_device device = {};

		if (weir_device_read(targets->targets[i].name, targets->targets[i].ifindex, &device) ||
		    weir_device_program(&device))
			return false;
	}
	return targets->count;
}

static void free_plan(struct plan *plan)
{
	weir_targets_free(&plan->targets);
	weir_history_free(&plan->history);
}

static int make_plan(const struct weir_attach_options *options, struct plan *plan, struct weir_diag *diag)
{
	int err = 0;

	plan->options = options;
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = weir_wanted_add(plan->wanted, options->interfaces[i], diag);
	if (err)
		return err;
	err = weir_targets_find(plan->wanted, options->mode, &plan->targets);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot list the interfaces");
	for (size_t i = 0; i < plan->targets.left_out_count; i++)
		weir_left_out_report(&plan->targets.left_out[i], diag);
	return 0;
}

static int check_plan(const struct plan *plan, struct weir_diag *diag)
{
	int err = check_host(plan, diag);
	int absent = weir_targets_expect(plan->wanted, diag);

	if (!err)
		err = absent;
	if (!err && !plan->targets.count && !plan->options->is_controlled) {
		/* Nobody watches, so a pattern that matches no interface now will never match one. */
		char netns[WEIR_NETNS_WORDS_BYTES];

		weir_diag_error(diag, NULL, NULL,
				"'ip link' shows the interfaces; 'weir run' waits for interfaces to appear",
				"no interface of %s matches '-i %s'", weir_host_netns_words(netns),
				plan->options->interfaces[0]);
		err = -ENODEV;
	}
	return err;
}

int weir_instance_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			 uint64_t *ret_attached_ns, struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(free_plan) struct plan plan = {};
	struct weir_object_options fresh = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_image_memory memory;
	int err;

	plan.directions = weir_ruleset_hooks(ruleset);
	err = weir_host_check_privilege(diag);
	if (!err)
		err = make_plan(options, &plan, diag);
	if (!err)
		err = weir_bpffs_lock(&lock_fd, diag);
	if (err)
		return err;
	err = refuse_second_attach(options->instance, are_free(&plan.targets), diag);
	if (!err)
		err = check_plan(&plan, diag);
	if (!err)
		err = weir_instance_check_marks(ruleset, diag);
	if (!err)
		err = weir_instance_build_image(ruleset, options->mode, NULL, WEIR_EMPTIED_WARNED, &image, diag);
	if (!err && image->config.paces)
		err = weir_pace_check(diag);
	if (!err)
		err = weir_instance_check_cookies(0, image, diag);
	if (!err) {
		weir_image_memory(image, image->config.cpus, &memory);
		err = weir_instance_check_memory(memory.total, diag);
	}
	if (!err)
		err = weir_instance_keep(ruleset, 1, &plan.history.sets[0], diag);
	fresh.now_ns = weir_host_now_ns();
	if (!err) {
		/* One without an Ethernet header is there, or a pattern may select one later, which is then limited at
		 * once; or it would be too late to load the rules again for one (follow.c).
		 */
		const bool needs_bare = weir_targets_have_bare(&plan.targets) || weir_wanted_has_patterns(plan.wanted);

		fresh.hooks = weir_hooks_of(options->mode, plan.directions, needs_bare);
		err = weir_instance_check_place(&options->place, fresh.hooks & ~(1u << WEIR_HOOK_XDP), diag);
	}
	if (!err)
		err = weir_not_the_rules(weir_object_load(image, &fresh, &object, diag));
	if (!err)
		err = weir_not_the_rules(pin_and_attach(&plan, ruleset, image, object, ret_attached_ns, diag));
	if (!err && !ruleset->is_last_good)
		weir_last_good_write(options->instance, plan.history.sets[0], diag);
	weir_bpffs_tidy();
	return err;
}

/* ---- is it attached already? ---- */

static bool has_link(const struct weir_instance *instance, const char *interface)
{
	const uint32_t ifindex = if_nametoindex(interface);

	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];

		if (ifindex && link->ifindex == ifindex)
			return true;
	}
	return false;
}

/* The instance is on everything that the options select, by name or not, and on nothing else. */
static bool is_on_same(const struct weir_instance *instance, const struct weir_attach_options *options)
{
	size_t live = 0;

	for (size_t i = 0; i < instance->link_count; i++)
		live += instance->links[i].ifindex && weir_link_stands(instance->links, instance->link_count, i);

	if (weir_wanted_is(instance->info.wanted, options->interfaces, options->interface_count))
		return live || weir_wanted_has_patterns(instance->info.wanted);
	if (live != options->interface_count)
		return false;
	for (size_t i = 0; i < options->interface_count; i++)
		if (!has_link(instance, options->interfaces[i]))
			return false;
	return true;
}

static bool is_in_mode(const struct weir_link *link, enum weir_attach_mode mode)
{
	if (link->hook != WEIR_HOOK_XDP || mode == WEIR_MODE_TC)
		return link->hook != WEIR_HOOK_XDP && mode == WEIR_MODE_TC;
	return mode == WEIR_MODE_AUTO || link->is_native == (mode == WEIR_MODE_NATIVE);
}

static bool has_mode(const struct weir_instance *instance, enum weir_attach_mode mode)
{
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];

		if (link->ifindex && !weir_hook_is_out(link->hook) && !is_in_mode(link, mode))
			return false;
	}
	return true;
}

bool weir_instance_is_attached_as(const struct weir_attach_options *options, struct weir_attachment *ret_attachment)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_diag ignored = {}; /* the attach that follows will report it */
	int err = weir_instance_open(options->instance, &instance, &ignored);

	if (err == -EPROTO && options->takes_over_incompatible)
		err = weir_instance_open_any(options->instance, &instance, &ignored);
	weir_diag_free(&ignored);
	if (err || instance->info.netns != weir_host_netns() || !has_mode(instance, options->mode) ||
	    !is_on_same(instance, options))
		return false;
	*ret_attachment = (struct weir_attachment){
		.attached_ns = instance->info.attached_ns,
		.ends_with_run = !instance->is_all_incompatible && instance->info.ends_with_run,
	};
	return true;
}
