// SPDX-License-Identifier: GPL-2.0-only
/*
 * Putting an instance on interfaces. What can be refused is refused before anything is touched; then maps are filled
 * and pinned, and links come last: a packet never meets half of it, and a failure leaves nothing behind.
 */
#include "instance/parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/device.h"
#include "network/merging.h"
#include "pace/pace.h"
#include "program/array.h"

/* ---- refusals ---- */

static int refuse_other_program(const char *interface, uint32_t ifindex, struct weir_diag *diag)
{
	char name[16], hint[224], owner[WEIR_INSTANCE_NAME_BYTES], option[WEIR_INSTANCE_OPTION_BYTES];
	struct weir_device device = {};
	uint32_t program_id;

	if (weir_device_read(interface, ifindex, &device))
		return 0;
	program_id = weir_device_program(&device);
	if (!program_id)
		return 0;
	weir_program_name(program_id, name);
	if (weir_instance_of_program(program_id, owner))
		snprintf(hint, sizeof(hint), "it is weir itself: 'weir detach%s' takes it off",
			 weir_instance_option(owner, option));
	else
		snprintf(hint, sizeof(hint),
			 "take it off first: 'ip link set dev %s %s off', or the program that attached it", interface,
			 weir_device_xdp_word(&device));
	weir_diag_error(diag, NULL, NULL, hint, "'%s' already has an XDP program: '%s' (id %u)", interface, name,
			program_id);
	return -EBUSY;
}

/* What can be refused before anything is touched. */
static int check_host(const struct weir_attach_options *options, struct weir_diag *diag)
{
	int err = 0;

	if (weir_host_is_realtime()) {
		weir_diag_error(diag, NULL, NULL, "boot a kernel without PREEMPT_RT",
				"this kernel is a realtime one (PREEMPT_RT), on which packets can interleave on one "
				"CPU: limits would not be exact");
		return -EOPNOTSUPP;
	}
	if (weir_host_cpus_have_gaps()) {
		weir_diag_error(
			diag, NULL, NULL, "boot with possible CPUs numbered from 0 on",
			"numbers are missing among this machine's possible CPUs "
			"(/sys/devices/system/cpu/possible): some would be overlooked, and limits not be exact");
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < options->interface_count; i++) {
		int ifindex = weir_host_ifindex(options->interfaces[i], diag);

		if (ifindex < 0)
			err = ifindex;
		else if (refuse_other_program(options->interfaces[i], ifindex, diag))
			err = -EBUSY;
	}
	return err;
}

#define INTERFACE_WORDS_BYTES 128

/* The interfaces that it is on and that are still there, as far as there is room. */
static void name_interfaces(const char *instance, char words[INTERFACE_WORDS_BYTES])
{
	_cleanup_(weir_freep) struct weir_link *links = NULL;
	size_t written = 0, count;

	words[0] = '\0';
	if (weir_links_read(instance, &links, &count))
		return;
	for (size_t i = 0; i < count && written < INTERFACE_WORDS_BYTES; i++)
		if (links[i].ifindex)
			written += snprintf(words + written, INTERFACE_WORDS_BYTES - written, "%s'%s'",
					    written ? ", " : "", links[i].interface);
}

/* An instance without a link is what an attach that was killed left behind. One whose interfaces are all gone limits
 * nothing, and never will again: as after a container that is started anew, under the same names.
 */
static int refuse_second_attach(const char *instance, bool is_on_others, struct weir_diag *diag)
{
	char words[INTERFACE_WORDS_BYTES], option[WEIR_INSTANCE_OPTION_BYTES], hint[192];
	struct weir_instance_info head;

	if (!weir_instance_exists(instance))
		return 0;
	if (!weir_instance_count_live_links(instance))
		return weir_instance_remove(instance, diag);
	name_interfaces(instance, words);
	snprintf(hint, sizeof(hint), "'weir reload%s' replaces its rules, 'weir detach%s' takes it off%s",
		 weir_instance_option(instance, option), option,
		 is_on_others ? "; '--instance NAME' makes another" : "");
	if (weir_instance_is_foreign(instance, &head))
		snprintf(hint, sizeof(hint),
			 "by another version of weir: 'weir reload%s --fresh FILE...' makes it this one's",
			 weir_instance_option(instance, option));
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is already attached to %s", instance, words);
	return -EEXIST;
}

/* ---- one interface ---- */

static int explain_link_failure(const char *interface, uint32_t ifindex, int err, bool is_native,
				struct weir_diag *diag)
{
	const char *mode = is_native ? "native" : "skb", *why = strerror(-err);
	const char *hint = "'weir doctor INTERFACE' tells more";

	if (err == -EBUSY || err == -EEXIST) {
		int busy = refuse_other_program(interface, ifindex, diag);

		if (busy)
			return busy;
	}
	if (is_native && (err == -EOPNOTSUPP || err == -ENOTSUP)) {
		why = "the driver has no XDP support";
		hint = "try '--mode skb' (slower), or another interface";
	} else if (is_native && (err == -EINVAL || err == -ERANGE || err == -E2BIG || err == -ENOSPC)) {
		why = "the driver refuses it as the interface is set up now (MTU, LRO or number of queues)";
		hint = "'weir doctor INTERFACE' tells more; '--mode skb' always works, but is slower";
	}
	weir_diag_error(diag, NULL, NULL, hint, "cannot attach to '%s' in %s mode: %s (%s)", interface, mode, why,
			strerrorname_np(-err));
	return err;
}

/* The driver's own no; anything else would fail in skb mode as well, or hide a mistake. */
static bool is_refused_by_driver(int err)
{
	return err == -EOPNOTSUPP || err == -EINVAL || err == -ERANGE || err == -E2BIG || err == -ENOSPC;
}

/* Returns the link, or -errno. */
static int create_link(int program_fd, uint32_t ifindex, bool is_native)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);

	return bpf_link_create(program_fd, ifindex, BPF_XDP, &options);
}

/* What is merged before skb mode sees it is judged as one packet: other limits than those that were written. */
static int check_merging(const struct weir_attach_options *options, const char *interface, uint32_t ifindex,
			 struct weir_diag *diag)
{
	struct weir_merging merging;
	char hint[224];

	if (!weir_merging_find(interface, ifindex, &merging))
		return 0;
	snprintf(hint, sizeof(hint),
		 "'ethtool -K %s %s off'; or '--allow-gro': then what was merged counts as one packet",
		 merging.interface, merging.offload);
	if (options->allows_merging) {
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "%s of '%s' merges packets before skb mode sees them on '%s': each counts as one",
				  merging.offload, merging.interface, interface);
		return 0;
	}
	weir_diag_error(
		diag, NULL, NULL, hint,
		"cannot attach to '%s' in skb mode: %s of '%s' merges packets before they are judged, and limits "
		"would let many times as much through",
		interface, merging.offload, merging.interface);
	return -EOPNOTSUPP;
}

static int attach_interface(const struct weir_attach_options *options, int program_fd, bool paces,
			    const char *interface, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int link_fd = -1;
	char pin[WEIR_LINK_PIN_BYTES];
	bool is_native = options->mode != WEIR_MODE_SKB;
	int err, ifindex, native_err = 0;

	ifindex = weir_host_ifindex(interface, diag);
	if (ifindex < 0)
		return ifindex;
	link_fd = create_link(program_fd, ifindex, is_native);
	if (options->mode == WEIR_MODE_AUTO && is_refused_by_driver(link_fd)) {
		native_err = link_fd;
		is_native = false;
		link_fd = create_link(program_fd, ifindex, false);
	}
	if (link_fd < 0)
		return explain_link_failure(interface, ifindex, link_fd, is_native, diag);
	if (paces && !is_native)
		return weir_pace_refuse_skb(interface, diag);
	err = is_native ? 0 : check_merging(options, interface, ifindex, diag);
	if (err)
		return err;
	if (native_err)
		weir_diag_warning(diag, NULL, NULL, "'--mode native' refuses instead",
				  "'%s' is attached in skb mode, which is slower: native mode failed (%s)", interface,
				  strerrorname_np(-native_err));
	weir_link_pin(interface, is_native, pin);
	return weir_pin(options->instance, pin, link_fd, diag);
}

/* ---- the instance ---- */

/* As the controller, which takes over at once. */
static int publish_and_beat(const struct weir_settings *settings, const struct weir_image *image,
			    const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_control control = {.validity_ns = settings->controller_timeout_ms * 1000000ull};
	int err = weir_instance_publish(settings, image, object, diag);

	if (err)
		return err;
	control.heartbeat_ns = weir_host_now_ns();
	err = weir_array_write(weir_object_map_fd(object, WEIR_MAP_CONTROL), &control, 1, sizeof(control));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the first heartbeat") : 0;
}

static int pin_maps(const char *instance, const struct weir_object *object, struct weir_diag *diag)
{
	char path[PATH_MAX];
	int err = 0;

	weir_pin_path(instance, NULL, path);
	if (mkdir(path, 0700))
		return weir_diag_fail(diag, errno, NULL, "cannot make '%s'", path);
	for (int map = 0; !err && map < WEIR_MAP_COUNT; map++)
		err = weir_pin(instance, weir_instance_map_name(map), weir_object_map_fd(object, map), diag);
	if (!err)
		err = weir_pin(instance, WEIR_PIN_THRESHOLDS, weir_object_thresholds_fd(object), diag);
	return err ? err : weir_pin(instance, WEIR_PIN_PROGRAM, weir_object_program_fd(object), diag);
}

static int attach_pace(const struct weir_attach_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_freep) uint32_t *ifindexes = calloc(options->interface_count + 1, sizeof(*ifindexes));

	if (!ifindexes)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot attach instance '%s'", options->instance);
	for (size_t i = 0; i < options->interface_count; i++) {
		int ifindex = weir_host_ifindex(options->interfaces[i], diag);

		if (ifindex < 0)
			return ifindex;
		ifindexes[i] = ifindex;
	}
	return weir_pace_attach(options->instance, ifindexes, options->interface_count, diag);
}

/* Under the lock. Fills first, attaches last. */
static int pin_and_attach(const struct weir_attach_options *options, const struct weir_settings *settings,
			  const struct weir_image *image, const struct weir_object *object, uint64_t *ret_attached_ns,
			  struct weir_diag *diag)
{
	struct weir_instance_info info = {};
	int err;

	weir_instance_update_info(&info, settings, image, object);
	info.ends_with_run = options->ends_with_run;
	err = weir_array_write(weir_object_map_fd(object, WEIR_MAP_INSTANCE), &info, 1, sizeof(info));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'",
				      options->instance);
	err = pin_maps(options->instance, object, diag);
	if (!err && image->config.paces)
		err = attach_pace(options, diag);
	if (!err && options->is_controlled)
		err = publish_and_beat(settings, image, object, diag);
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = attach_interface(options, weir_object_program_fd(object), image->config.paces,
				       options->interfaces[i], diag);
	if (err) {
		struct weir_diag ignored = {};

		weir_instance_remove(options->instance, &ignored); /* the first mistake is the one to tell */
		weir_diag_free(&ignored);
		return err;
	}
	if (ret_attached_ns)
		*ret_attached_ns = info.attached_ns;
	return 0;
}

/* No XDP program is on any of the interfaces: another instance could be attached there. */
static bool are_free(const struct weir_attach_options *options)
{
	for (size_t i = 0; i < options->interface_count; i++) {
		const uint32_t ifindex = if_nametoindex(options->interfaces[i]);
		struct weir_device device = {};

		if (!ifindex || weir_device_read(options->interfaces[i], ifindex, &device) ||
		    weir_device_program(&device))
			return false;
	}
	return true;
}

int weir_instance_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			 uint64_t *ret_attached_ns, struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_object_options fresh = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_image_memory memory;
	int err;

	err = weir_host_check_privilege(diag);
	if (!err)
		err = weir_bpffs_lock(&lock_fd, diag);
	if (err)
		return err;
	err = refuse_second_attach(options->instance, are_free(options), diag);
	if (!err)
		err = check_host(options, diag);
	if (!err)
		err = weir_instance_check_marks(ruleset, diag);
	if (!err)
		err = weir_instance_build_image(ruleset, NULL, &image, diag);
	if (!err && image->config.paces)
		err = weir_pace_check(diag);
	if (!err) {
		weir_image_memory(image, image->config.cpus, &memory);
		err = weir_instance_check_memory(memory.total, diag);
	}
	fresh.now_ns = weir_host_now_ns();
	if (!err)
		err = weir_not_the_rules(weir_object_load(image, &fresh, &object, diag));
	if (!err)
		err = weir_not_the_rules(
			pin_and_attach(options, &ruleset->settings, image, object, ret_attached_ns, diag));
	weir_bpffs_tidy();
	return err;
}

/* ---- attached already ---- */

static bool has_link(const struct weir_instance *instance, const char *interface, enum weir_attach_mode mode)
{
	const uint32_t ifindex = if_nametoindex(interface);

	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];

		if (ifindex && link->ifindex == ifindex &&
		    (mode == WEIR_MODE_AUTO || link->is_native == (mode == WEIR_MODE_NATIVE)))
			return true;
	}
	return false;
}

static size_t count_live(const struct weir_instance *instance)
{
	size_t live = 0;

	for (size_t i = 0; i < instance->link_count; i++)
		live += instance->links[i].ifindex != 0;
	return live;
}

bool weir_instance_is_attached_as(const struct weir_attach_options *options, struct weir_attachment *ret_attachment)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_diag ignored = {}; /* who attaches then says it */
	int err = weir_instance_open(options->instance, &instance, &ignored);

	weir_diag_free(&ignored);
	if (err || count_live(instance) != options->interface_count || instance->info.netns != weir_host_netns())
		return false;
	for (size_t i = 0; i < options->interface_count; i++)
		if (!has_link(instance, options->interfaces[i], options->mode))
			return false;
	*ret_attachment = (struct weir_attachment){
		.attached_ns = instance->info.attached_ns,
		.ends_with_run = instance->info.ends_with_run,
	};
	return true;
}
