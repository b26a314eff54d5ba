// SPDX-License-Identifier: GPL-2.0-only
#include "instance.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "bpffs.h"
#include "device.h"
#include "host.h"
#include "info.h"
#include "memory.h"
#include "narrow_span.h"
#include "pace.h"
#include "thresholds.h"
#include "util.h"

/* ---- names ---- */

bool weir_instance_name_is_valid(const char *name)
{
	size_t bytes = strlen(name);

	for (const char *at = name; *at; at++)
		if (!isascii(*at) || (!isalnum(*at) && *at != '_' && *at != '-'))
			return false;
	return bytes > 0 && bytes < WEIR_INSTANCE_NAME_BYTES;
}

int weir_instance_list(struct weir_names *ret_names, struct weir_diag *diag)
{
	int err = weir_names_read(weir_bpffs_base(), ret_names);

	if (err == -ENOENT) {
		*ret_names = (struct weir_names){};
		return 0;
	}
	if (err)
		return weir_diag_fail(diag, -err, err == -EACCES ? "run it as root" : NULL, "cannot read '%s'",
				      weir_bpffs_base());
	return 0;
}

static bool directory_exists(const char *instance)
{
	char path[PATH_MAX];
	struct stat status;

	weir_pin_path(instance, NULL, path);
	return !stat(path, &status);
}

static int list_pins(const char *instance, struct weir_names *ret_pins)
{
	char path[PATH_MAX];

	weir_pin_path(instance, NULL, path);
	return weir_names_read(path, ret_pins);
}

const char *weir_instance_option(const char *name, char words[WEIR_INSTANCE_OPTION_BYTES])
{
	words[0] = 0;
	if (strcmp(name, WEIR_INSTANCE_DEFAULT))
		snprintf(words, WEIR_INSTANCE_OPTION_BYTES, " --instance %s", name);
	return words;
}

static int fail_not_attached(const char *instance, struct weir_diag *diag)
{
	weir_diag_error(diag, NULL, NULL, "'weir status' lists what is attached; 'weir attach' starts one",
			"instance '%s' is not attached", instance);
	return -ENOENT;
}

/* ---- reading what is attached ---- */

static void *read_all(int map_fd, uint32_t count, size_t value_bytes)
{
	_cleanup_(weir_freep) void *values = calloc(count + 1, value_bytes);
	int err = values ? weir_array_read(map_fd, values, count, value_bytes) : -ENOMEM;

	if (err) {
		errno = -err;
		return NULL;
	}
	return TAKE_PTR(values);
}

static int read_info(struct weir_instance *instance, struct weir_diag *diag)
{
	bool is_foreign;
	int err;

	err = weir_info_read(instance->map_fd[WEIR_MAP_INSTANCE], &instance->info, &is_foreign);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read instance '%s'", instance->name);
	if (!is_foreign)
		return 0;
	weir_diag_error(diag, NULL, NULL, "detach it and attach again, with one version",
			"instance '%s' was attached by another version of weir (its maps are of version %u, and "
			"this one reads %u)",
			instance->name, instance->info.abi_version, WEIR_ABI_VERSION);
	return -EPROTO;
}

static int fail_cut_short(const char *name, int err, const char *map, struct weir_diag *diag)
{
	char hint[192], option[WEIR_INSTANCE_OPTION_BYTES];

	snprintf(hint, sizeof(hint), "an attach was cut short, perhaps: 'weir detach%s' clears it away",
		 weir_instance_option(name, option));
	return weir_diag_fail(diag, err, hint, "cannot open map '%s' of instance '%s'", map, name);
}

static int open_map(struct weir_instance *instance, enum weir_instance_map map, struct weir_diag *diag)
{
	instance->map_fd[map] = weir_pin_open(instance->name, weir_instance_map_name(map));
	if (instance->map_fd[map] < 0)
		return fail_cut_short(instance->name, -instance->map_fd[map], weir_instance_map_name(map), diag);
	return 0;
}

/* Its description first: another version may have other maps. */
static int open_maps(struct weir_instance *instance, struct weir_diag *diag)
{
	int err = open_map(instance, WEIR_MAP_INSTANCE, diag);

	if (!err)
		err = read_info(instance, diag);
	for (int map = 0; !err && map < WEIR_MAP_COUNT; map++)
		if (map != WEIR_MAP_INSTANCE)
			err = open_map(instance, map, diag);
	if (err)
		return err;
	instance->thresholds_fd = weir_pin_open(instance->name, WEIR_PIN_THRESHOLDS);
	if (instance->thresholds_fd < 0)
		return weir_diag_fail(diag, -instance->thresholds_fd, NULL,
				      "cannot open the thresholds of instance '%s'", instance->name);
	return 0;
}

static int read_descriptions(struct weir_instance *instance, struct weir_diag *diag)
{
	const struct weir_instance_info *info = &instance->info;

	instance->rules = read_all(instance->map_fd[WEIR_MAP_RULE_INFO], info->rule_slots, sizeof(*instance->rules));
	if (instance->rules)
		instance->resources = read_all(instance->map_fd[WEIR_MAP_RESOURCE_INFO], info->resource_slots,
					       sizeof(*instance->resources));
	if (instance->resources)
		instance->timings =
			read_all(instance->map_fd[WEIR_MAP_TIMINGS], info->timing_count, sizeof(*instance->timings));
	if (!instance->timings)
		return weir_diag_fail(diag, errno, NULL, "cannot read the descriptions of instance '%s'",
				      instance->name);
	return 0;
}

static int compare_rule_places(const void *left, const void *right, void *rules)
{
	const struct weir_rule_info *infos = rules;

	return (int)infos[*(const uint32_t *)left].place - (int)infos[*(const uint32_t *)right].place;
}

static int compare_resource_places(const void *left, const void *right, void *resources)
{
	const struct weir_resource_info *infos = resources;

	return (int)infos[*(const uint32_t *)left].place - (int)infos[*(const uint32_t *)right].place;
}

static int put_in_order(struct weir_instance *instance, struct weir_diag *diag)
{
	instance->rule_order = calloc(instance->info.rule_slots + 1, sizeof(*instance->rule_order));
	instance->resource_order = calloc(instance->info.resource_slots + 1, sizeof(*instance->resource_order));
	if (!instance->rule_order || !instance->resource_order)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read instance '%s'", instance->name);
	for (uint32_t slot = 0; slot < instance->info.rule_slots; slot++)
		if (instance->rules[slot].state == WEIR_SLOT_USED && !instance->rules[slot].is_meter)
			instance->rule_order[instance->rule_count++] = slot;
	for (uint32_t slot = 0; slot < instance->info.resource_slots; slot++)
		if (instance->resources[slot].state == WEIR_SLOT_USED)
			instance->resource_order[instance->resource_count++] = slot;
	qsort_r(instance->rule_order, instance->rule_count, sizeof(uint32_t), compare_rule_places, instance->rules);
	qsort_r(instance->resource_order, instance->resource_count, sizeof(uint32_t), compare_resource_places,
		instance->resources);
	return 0;
}

static bool is_link(const char *pin)
{
	char interface[IF_NAMESIZE];
	bool is_native;

	return weir_link_pin_parse(pin, interface, &is_native);
}

static int read_link(const char *instance, const char *pin, struct weir_link *link)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pin);
	struct bpf_link_info info = {};
	__u32 info_bytes = sizeof(info);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	link->ifindex = info.xdp.ifindex;
	link->program_id = info.prog_id;
	return 0;
}

static int read_links(struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	int err = list_pins(instance->name, &pins);

	for (size_t i = 0; !err && i < pins.count; i++) {
		struct weir_link link = {};

		if (!weir_link_pin_parse(pins.names[i], link.interface, &link.is_native))
			continue;
		err = read_link(instance->name, pins.names[i], &link);
		if (!err && !weir_array_add((void **)&instance->links, instance->link_count, sizeof(link)))
			err = -ENOMEM;
		if (!err)
			instance->links[instance->link_count++] = link;
	}
	return err ? weir_diag_fail(diag, -err, NULL, "cannot read the links of instance '%s'", instance->name) : 0;
}

/* As it is now, which is wrong while a command is at work on it: for those who hold the lock. */
static bool is_settled(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (instance->rules[instance->rule_order[i]].place != i)
			return false;
	return true;
}

static int open_as_is(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = calloc(1, sizeof(*instance));
	int err;

	if (!instance)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read instance '%s'", name);
	snprintf(instance->name, sizeof(instance->name), "%s", name);
	for (int map = 0; map < WEIR_MAP_COUNT; map++)
		instance->map_fd[map] = -1;
	instance->thresholds_fd = -1;

	/* Who may not look must not be told that nothing is there. */
	err = weir_host_check_privilege(diag);
	if (err)
		return err;
	if (!directory_exists(name))
		return fail_not_attached(name, diag);
	err = open_maps(instance, diag);
	if (!err)
		err = read_descriptions(instance, diag);
	if (!err)
		err = put_in_order(instance, diag);
	if (!err)
		err = read_links(instance, diag);
	if (err)
		return err;
	instance->is_settled = is_settled(instance);
	*ret_instance = TAKE_PTR(instance);
	return 0;
}

/* It is half done, or broken: once no other command is at work it is one or the other. */
static int open_when_quiet(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_bpffs_lock(&lock_fd, diag);

	if (err)
		return err;
	if (directory_exists(name))
		err = open_as_is(name, ret_instance, diag);
	else
		*ret_instance = NULL;
	weir_bpffs_tidy();
	return err;
}

static int open_listed(const char *name, bool waits_for_reload, struct weir_instance **ret_instance,
		       struct weir_diag *diag)
{
	struct weir_diag in_between = {}; /* what was wrong may be over in a moment */
	int err = open_as_is(name, ret_instance, &in_between);

	weir_diag_free(&in_between);
	if (!err && ((*ret_instance)->is_settled || !waits_for_reload))
		return 0;
	if (!err)
		weir_instance_free(TAKE_PTR(*ret_instance));
	return open_when_quiet(name, ret_instance, diag);
}

int weir_instance_fail_unsettled(const char *name, struct weir_diag *diag)
{
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

	snprintf(hint, sizeof(hint), "'weir reload%s' puts it right", weir_instance_option(name, option));
	weir_diag_error(diag, NULL, NULL, hint, "a reload of instance '%s' was cut short", name);
	return -EAGAIN;
}

int weir_instance_open_listed(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	struct weir_instance *instance;
	int err = open_listed(name, true, &instance, diag);

	if (!err && instance && !instance->is_settled) {
		weir_instance_free(instance);
		err = weir_instance_fail_unsettled(name, diag);
	}
	if (!err)
		*ret_instance = instance;
	return err;
}

/* Before the lock, so that nothing is made or mounted when nothing is attached. Who may not look must not be told that
 * nothing is there.
 */
static int expect_attached(const char *name, struct weir_diag *diag)
{
	int err = weir_host_check_privilege(diag);

	if (!err && !directory_exists(name))
		err = fail_not_attached(name, diag);
	return err;
}

static int fail_if_gone(const char *name, struct weir_instance *instance, struct weir_instance **ret_instance,
			struct weir_diag *diag)
{
	if (!instance)
		return fail_not_attached(name, diag);
	*ret_instance = instance;
	return 0;
}

int weir_instance_open(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	struct weir_instance *instance;
	int err = expect_attached(name, diag);

	if (!err)
		err = weir_instance_open_listed(name, &instance, diag);
	return err ? err : fail_if_gone(name, instance, ret_instance, diag);
}

int weir_instance_open_now(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag)
{
	struct weir_instance *instance;
	int err = expect_attached(name, diag);

	if (!err)
		err = open_listed(name, false, &instance, diag);
	return err ? err : fail_if_gone(name, instance, ret_instance, diag);
}

void weir_instance_watch_links(struct weir_instance *instance, struct weir_diag *diag)
{
	for (size_t i = 0; i < instance->link_count; i++) {
		struct weir_link *link = &instance->links[i], now = {};
		char pin[WEIR_LINK_PIN_BYTES];

		if (!link->ifindex)
			continue;
		weir_link_pin(link->interface, link->is_native, pin);
		/* What cannot be read is being detached. */
		if (read_link(instance->name, pin, &now) || now.ifindex)
			continue;
		link->ifindex = 0;
		weir_diag_warning(
			diag, NULL, NULL,
			"should it come back, nothing is limited there until it is attached anew: 'weir detach', then "
			"'weir run' or 'weir attach'",
			"interface '%s' is gone, and the limits with it", link->interface);
	}
}

uint64_t weir_instance_left_ns(const struct weir_instance *instance)
{
	return weir_narrow_left_ns(instance->rules, instance->info.rule_slots, instance->timings,
				   instance->info.timing_count, weir_host_now_ns());
}

bool weir_instance_is_foreign(const char *name, struct weir_instance_info *ret_head)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(name, weir_instance_map_name(WEIR_MAP_INSTANCE));
	bool is_foreign;

	return fd >= 0 && !weir_info_read(fd, ret_head, &is_foreign) && is_foreign;
}

void weir_instance_free(struct weir_instance *instance)
{
	if (!instance)
		return;
	for (int map = 0; map < WEIR_MAP_COUNT; map++)
		weir_closep(&instance->map_fd[map]);
	weir_closep(&instance->thresholds_fd);
	free(instance->rules);
	free(instance->resources);
	free(instance->timings);
	free(instance->rule_order);
	free(instance->resource_order);
	free(instance->links);
	free(instance);
}

bool weir_instance_of_program(uint32_t program_id, char ret_name[WEIR_INSTANCE_NAME_BYTES])
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	bool is_found = false;

	if (weir_names_read(weir_bpffs_base(), &names))
		return false;
	for (size_t i = 0; i < names.count && !is_found; i++) {
		_cleanup_(weir_names_free) struct weir_names pins = {};
		struct weir_link link = {};

		if (list_pins(names.names[i], &pins))
			continue;
		for (size_t pin = 0; pin < pins.count && !is_found; pin++)
			is_found = is_link(pins.names[pin]) && !read_link(names.names[i], pins.names[pin], &link) &&
				   link.program_id == program_id;
		if (is_found)
			snprintf(ret_name, WEIR_INSTANCE_NAME_BYTES, "%s", names.names[i]);
	}
	return is_found;
}

/* ---- taking it off ---- */

/* Off the interface at once, and not when the kernel gets to the last reference. */
static void remove_link(const char *instance, const char *pin)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pin);

	if (fd >= 0)
		bpf_link_detach(fd); /* fails when the interface is gone, ignoring */
	weir_unpin(instance, pin);
}

/* Links first, so that no program runs without its pins; then what holds packets for it. */
static int remove_instance(const char *instance, struct weir_diag *diag)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	char path[PATH_MAX];
	int err = list_pins(instance, &pins);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the pins of instance '%s'", instance);
	for (size_t i = 0; i < pins.count; i++)
		if (is_link(pins.names[i]))
			remove_link(instance, pins.names[i]);
	weir_pace_detach(instance);
	for (size_t i = 0; i < pins.count; i++)
		if (!is_link(pins.names[i]))
			weir_unpin(instance, pins.names[i]);
	weir_pin_path(instance, NULL, path);
	if (rmdir(path))
		return weir_diag_fail(diag, errno, NULL, "cannot remove '%s'", path);
	return 0;
}

static size_t count_links(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	size_t links = 0;

	if (list_pins(instance, &pins))
		return 0;
	for (size_t i = 0; i < pins.count; i++)
		links += is_link(pins.names[i]);
	return links;
}

/* Take pacing off the interfaces that have no link any more. */
static void trim_pace(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	_cleanup_(weir_freep) uint32_t *ifindexes = NULL;
	size_t count = 0;

	if (list_pins(instance, &pins))
		return;
	ifindexes = calloc(pins.count + 1, sizeof(*ifindexes));
	for (size_t i = 0; ifindexes && i < pins.count; i++) {
		struct weir_link link = {};

		if (is_link(pins.names[i]) && !read_link(instance, pins.names[i], &link))
			ifindexes[count++] = link.ifindex;
	}
	if (ifindexes)
		weir_pace_trim(instance, ifindexes, count);
}

static bool is_pinned_to(const char *instance, const char *interface, bool is_native, char pin[WEIR_LINK_PIN_BYTES])
{
	char path[PATH_MAX];
	struct stat status;

	weir_link_pin(interface, is_native, pin);
	weir_pin_path(instance, pin, path);
	return !stat(path, &status);
}

int weir_instance_expect_on(const char *name, const char *interface, struct weir_diag *diag)
{
	char pin[WEIR_LINK_PIN_BYTES];
	int err = expect_attached(name, diag);

	if (err || is_pinned_to(name, interface, true, pin) || is_pinned_to(name, interface, false, pin))
		return err;
	weir_diag_error(diag, NULL, NULL, "'weir status' shows where it is", "instance '%s' is not attached to '%s'",
			name, interface);
	return -ENOENT;
}

static int detach_one(const char *instance, const char *interface, struct weir_diag *diag)
{
	const bool modes[] = {true, false};
	char pin[WEIR_LINK_PIN_BYTES];
	int err = weir_instance_expect_on(instance, interface, diag);

	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (is_pinned_to(instance, interface, modes[i], pin))
			remove_link(instance, pin);
	if (!count_links(instance))
		return remove_instance(instance, diag);
	trim_pace(instance);
	return 0;
}

/* The instance of this name is the one that was attached at attached_ns. */
static bool is_same_attachment(const char *instance, uint64_t attached_ns)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_instance_map_name(WEIR_MAP_INSTANCE));
	struct weir_instance_info info;
	bool is_foreign;

	return fd >= 0 && !weir_info_read(fd, &info, &is_foreign) && info.attached_ns == attached_ns;
}

int weir_instance_detach(const char *name, const char *interface, uint64_t attached_ns, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = expect_attached(name, diag);

	if (!err)
		err = weir_bpffs_lock(&lock_fd, diag);
	if (err)
		return err;
	if (!directory_exists(name)) {
		err = fail_not_attached(name, diag);
	} else if (attached_ns && !is_same_attachment(name, attached_ns)) {
		weir_diag_error(diag, NULL, NULL, NULL, "instance '%s' was attached anew by another command", name);
		err = -ESTALE;
	} else if (interface) {
		err = detach_one(name, interface, diag);
	} else {
		err = remove_instance(name, diag);
	}
	weir_bpffs_tidy();
	return err;
}

/* ---- attaching ---- */

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

static int attach_interface(const struct weir_attach_options *options, int program_fd, bool paces,
			    const char *interface, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int link_fd = -1;
	char pin[WEIR_LINK_PIN_BYTES];
	int ifindex, native_err = 0;

	ifindex = weir_host_ifindex(interface, diag);
	if (ifindex < 0)
		return ifindex;
	if (options->mode != WEIR_MODE_SKB)
		native_err = link_fd = create_link(program_fd, ifindex, true);
	if (options->mode == WEIR_MODE_SKB || (options->mode == WEIR_MODE_AUTO && is_refused_by_driver(link_fd)))
		link_fd = create_link(program_fd, ifindex, false);
	if (link_fd < 0)
		return explain_link_failure(interface, ifindex, link_fd, link_fd == native_err, diag);
	if (paces && link_fd != native_err)
		return weir_pace_refuse_skb(interface, diag);
	if (native_err < 0)
		weir_diag_warning(diag, NULL, NULL, "'--mode native' refuses instead",
				  "'%s' is attached in skb mode, which is slower: native mode failed (%s)", interface,
				  strerrorname_np(-native_err));
	weir_link_pin(interface, link_fd == native_err, pin);
	return weir_pin(options->instance, pin, link_fd, diag);
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
	for (size_t i = 0; i < options->interface_count; i++) {
		int ifindex = weir_host_ifindex(options->interfaces[i], diag);

		if (ifindex < 0)
			err = ifindex;
		else if (refuse_other_program(options->interfaces[i], ifindex, diag))
			err = -EBUSY;
	}
	return err;
}

/* Would a rule wait for more memory in use than there is? */
static int check_marks(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	return weir_ruleset_check_memory(ruleset, weir_memory_total_bytes(ruleset->settings.memory_cgroup), diag);
}

static int check_memory(uint64_t needed_bytes, struct weir_diag *diag)
{
	uint64_t available_bytes;

	if (weir_host_has_memory(needed_bytes, &available_bytes))
		return 0;
	weir_diag_error(diag, NULL, NULL,
			"lower settings.flowsPerCpu or connections; 'weir check' shows what takes the memory",
			"the maps need %.1f MB and %.1f MB are available, of which a sixteenth must stay free",
			needed_bytes / 1e6, available_bytes / 1e6);
	return -ENOMEM;
}

static int build_image(const struct weir_ruleset *ruleset, const struct weir_previous *previous,
		       struct weir_image **ret_image, struct weir_diag *diag)
{
	int cpus = weir_host_cpus();
	struct weir_compile_options options = {
		.cpus = cpus,
		.now_ns = weir_host_now_ns(),
		.previous = previous,
		.ifindex = weir_host_find_ifindex,
	};

	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot tell how many CPUs there are");
	return weir_image_build(ruleset, &options, ret_image, diag);
}

/* What the instance's info says after a load; `info` is what it said before. */
static void update_info(struct weir_instance_info *info, const struct weir_settings *settings,
			const struct weir_image *image, const struct weir_object *object)
{
	const struct weir_config *config = &image->config;

	info->magic = WEIR_ABI_MAGIC;
	info->abi_version = WEIR_ABI_VERSION;
	memcpy(info->seed, weir_object_seed(object), sizeof(info->seed));
	info->generation++;
	info->loaded_ns = weir_host_now_ns();
	if (!info->attached_ns) {
		info->attached_ns = info->loaded_ns;
		info->netns = weir_host_netns();
	}
	info->rule_slots = image->rule_slots;
	info->resource_slots = image->resource_slots;
	info->narrow_sets = config->narrow_sets;
	info->wide_sets = config->wide_sets;
	info->presence_cells = config->presence_cells;
	info->presence_shift = config->presence_shift;
	info->flows_per_cpu = image->flows_per_cpu;
	info->policies = (config->drop_malformed ? 1 : 0) | (config->drop_unsupported ? 2 : 0) |
			 (config->drop_non_ip ? 4 : 0) | (config->drop_unmatched ? 8 : 0);
	info->timing_count = image->timing_count;
	info->throttle_sets = config->throttle_sets;
	info->warming_sets = config->warming_sets;
	info->connection_sets = config->connection_sets;
	info->connection_flow_sets = config->connection_flow_sets;
	memcpy(info->connection_timeout_ms, image->connection_timeout_ms, sizeof(info->connection_timeout_ms));
	info->controller_timeout_ms = settings->controller_timeout_ms;
	info->allow_count = image->allow_count;
	info->deny_count = image->deny_count;
	memset(info->memory_cgroup, 0, sizeof(info->memory_cgroup));
	if (settings->memory_cgroup)
		strncpy(info->memory_cgroup, settings->memory_cgroup, sizeof(info->memory_cgroup) - 1);
}

static struct weir_memory_use read_memory_use(const struct weir_settings *settings)
{
	_cleanup_(weir_memory_freep) struct weir_memory *memory = weir_memory_open(settings->memory_cgroup);
	struct weir_memory_use use = {.holds_until_ns = UINT64_MAX};

	use.is_known = memory && !weir_memory_read(memory, &use.used_bytes);
	return use;
}

/* Nobody reads these thresholds yet. */
static int publish(const struct weir_settings *settings, const struct weir_image *image,
		   const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_memory_use memory;

	if (!image->config.has_moving)
		return 0;
	memory = read_memory_use(settings);
	return weir_thresholds_publish(image, object, weir_host_now_ns(), &memory, diag);
}

/* As the controller, which takes over at once. */
static int publish_and_beat(const struct weir_settings *settings, const struct weir_image *image,
			    const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_control control = {.validity_ns = settings->controller_timeout_ms * 1000000ull};
	int err = publish(settings, image, object, diag);

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
	return err ? err : weir_pin(instance, WEIR_PIN_THRESHOLDS, weir_object_thresholds_fd(object), diag);
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

	update_info(&info, settings, image, object);
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

		remove_instance(options->instance, &ignored); /* the first mistake is the one to tell */
		weir_diag_free(&ignored);
		return err;
	}
	if (ret_attached_ns)
		*ret_attached_ns = info.attached_ns;
	return 0;
}

/* -EINVAL is for wrong rules; the kernel's own means something else. */
static int not_the_rules(int err)
{
	return err == -EINVAL ? -EIO : err;
}

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

bool weir_instance_is_attached_as(const struct weir_attach_options *options, uint64_t *ret_attached_ns)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_diag ignored = {}; /* who attaches then says it */
	int err = weir_instance_open(options->instance, &instance, &ignored);

	weir_diag_free(&ignored);
	if (err || instance->link_count != options->interface_count || instance->info.netns != weir_host_netns())
		return false;
	for (size_t i = 0; i < options->interface_count; i++)
		if (!has_link(instance, options->interfaces[i], options->mode))
			return false;
	*ret_attached_ns = instance->info.attached_ns;
	return true;
}

#define INTERFACE_WORDS_BYTES 128

/* The interfaces that it is on, as far as there is room. */
static void name_interfaces(const char *instance, char words[INTERFACE_WORDS_BYTES])
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	size_t written = 0;

	words[0] = '\0';
	if (list_pins(instance, &pins))
		return;
	for (size_t i = 0; i < pins.count && written < INTERFACE_WORDS_BYTES; i++) {
		char interface[IF_NAMESIZE];
		bool is_native;

		if (weir_link_pin_parse(pins.names[i], interface, &is_native))
			written += snprintf(words + written, INTERFACE_WORDS_BYTES - written, "%s'%s'",
					    written ? ", " : "", interface);
	}
}

/* An instance without a link is what an attach that was killed left behind. */
static int refuse_second_attach(const char *instance, struct weir_diag *diag)
{
	char words[INTERFACE_WORDS_BYTES];

	if (!directory_exists(instance))
		return 0;
	if (!count_links(instance))
		return remove_instance(instance, diag);
	name_interfaces(instance, words);
	weir_diag_error(diag, NULL, NULL,
			"'weir reload' replaces its rules, 'weir detach' takes it off; '--instance NAME' makes another",
			"instance '%s' is already attached to %s", instance, words);
	return -EEXIST;
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
	err = refuse_second_attach(options->instance, diag);
	if (!err)
		err = check_host(options, diag);
	if (!err)
		err = check_marks(ruleset, diag);
	if (!err)
		err = build_image(ruleset, NULL, &image, diag);
	if (!err && image->config.paces)
		err = weir_pace_check(diag);
	if (!err) {
		weir_image_memory(image, image->config.cpus, &memory);
		err = check_memory(memory.total, diag);
	}
	fresh.now_ns = weir_host_now_ns();
	if (!err)
		err = not_the_rules(weir_object_load(image, &fresh, &object, diag));
	if (!err)
		err = not_the_rules(pin_and_attach(options, &ruleset->settings, image, object, ret_attached_ns, diag));
	weir_bpffs_tidy();
	return err;
}

/* ---- reloading ---- */

/* Nobody needs the connections that there were: those left in the tables have been counted by other steps, or in flows
 * of another table.
 */
static bool forgets_connections(const struct weir_instance *instance, const struct weir_image *image)
{
	const struct weir_instance_info *info = &instance->info;

	return image->config.connection_sets != info->connection_sets ||
	       (info->connection_flow_sets && image->config.connection_flow_sets != info->connection_flow_sets) ||
	       memcmp(image->connection_timeout_ms, info->connection_timeout_ms, sizeof(info->connection_timeout_ms));
}

static bool is_of_connections(enum weir_instance_map map)
{
	return map == WEIR_MAP_CONNECTIONS || map == WEIR_MAP_CONNECTION_FLOWS || map == WEIR_MAP_CONNECTION_TOTALS;
}

/* A flow table that the image wants in another size held nothing of use (compile.h) and is made anew. */
static bool is_replaced(const struct weir_instance *instance, const struct weir_image *image,
			enum weir_instance_map map)
{
	return (map == WEIR_MAP_NARROW_FLOWS && image->config.narrow_sets != instance->info.narrow_sets) ||
	       (map == WEIR_MAP_WIDE_FLOWS && image->config.wide_sets != instance->info.wide_sets) ||
	       (map == WEIR_MAP_THROTTLED_FLOWS && image->config.throttle_sets != instance->info.throttle_sets) ||
	       (map == WEIR_MAP_WARMING_FLOWS && image->config.warming_sets != instance->info.warming_sets) ||
	       (map == WEIR_MAP_CONNECTION_FLOWS &&
		image->config.connection_flow_sets != instance->info.connection_flow_sets) ||
	       (is_of_connections(map) && forgets_connections(instance, image)) ||
	       (map == WEIR_MAP_PRESENCE && (image->config.presence_cells != instance->info.presence_cells ||
					     image->config.presence_shift != instance->info.presence_shift));
}

/* What a reload needs beside what there is: the old generation stays until the new one is in its place. */
static uint64_t new_bytes(const struct weir_instance *instance, const struct weir_image *image)
{
	struct weir_image_memory memory;
	uint64_t bytes;

	weir_image_memory(image, image->config.cpus, &memory);
	bytes = memory.matching + memory.lists + memory.full_flows;
	if (is_replaced(instance, image, WEIR_MAP_NARROW_FLOWS))
		bytes += memory.narrow_table;
	if (is_replaced(instance, image, WEIR_MAP_WIDE_FLOWS))
		bytes += memory.wide_table;
	if (is_replaced(instance, image, WEIR_MAP_PRESENCE))
		bytes += memory.presence;
	if (is_replaced(instance, image, WEIR_MAP_THROTTLED_FLOWS) ||
	    is_replaced(instance, image, WEIR_MAP_WARMING_FLOWS))
		bytes += memory.shared;
	if (is_replaced(instance, image, WEIR_MAP_CONNECTIONS) ||
	    is_replaced(instance, image, WEIR_MAP_CONNECTION_FLOWS))
		bytes += memory.connections;
	return bytes;
}

/* One description is written before the swap, the other after it. */
static int write_descriptions(const struct weir_instance *instance, const struct weir_rule_info *rules,
			      const struct weir_resource_info *resources, struct weir_diag *diag)
{
	int err = weir_array_write(instance->map_fd[WEIR_MAP_RULE_INFO], rules, instance->info.rule_slots,
				   sizeof(*rules));

	if (!err)
		err = weir_array_write(instance->map_fd[WEIR_MAP_RESOURCE_INFO], resources,
				       instance->info.resource_slots, sizeof(*resources));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot write the descriptions of instance '%s'",
				      instance->name);
	return 0;
}

/*
 * Describe what was and what will be, so that slots of either are taken whatever happens now: a reload
 * that is killed half-way must not leave slots in use that the next one thinks are free.
 */
static int describe_both(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_rule_info *rules = calloc(image->rule_slots + 1, sizeof(*rules));
	_cleanup_(weir_freep) struct weir_resource_info *resources =
		calloc(image->resource_slots + 1, sizeof(*resources));

	if (!rules || !resources)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (uint32_t slot = 0; slot < image->rule_slots; slot++)
		rules[slot] = image->fresh_rule_slots[slot] ? image->rule_info[slot] : instance->rules[slot];
	for (uint32_t slot = 0; slot < image->resource_slots; slot++)
		resources[slot] =
			image->fresh_resource_slots[slot] ? image->resource_info[slot] : instance->resources[slot];
	return write_descriptions(instance, rules, resources, diag);
}

static const char *new_pin(const char *pin, char buffer[64])
{
	snprintf(buffer, 64, "%s" WEIR_PIN_NEW, pin);
	return buffer;
}

static int pin_anew(const char *instance, const char *pin, int fd, struct weir_diag *diag)
{
	char buffer[64];

	weir_unpin(instance, new_pin(pin, buffer)); /* of a reload that was killed */
	return weir_pin(instance, new_pin(pin, buffer), fd, diag);
}

/* In one step for those who look: rename replaces. */
static int take_new_pin(const char *instance, const char *pin, struct weir_diag *diag)
{
	char from[PATH_MAX], to[PATH_MAX], buffer[64];

	weir_pin_path(instance, new_pin(pin, buffer), from);
	weir_pin_path(instance, pin, to);
	if (rename(from, to))
		return weir_diag_fail(diag, errno, NULL, "cannot replace '%s'", to);
	return 0;
}

/* A link whose program is being replaced. */
struct swap {
	int link_fd, old_program_fd;
};

static void free_swaps(struct swap **swaps)
{
	for (struct swap *swap = *swaps; swap && swap->link_fd; swap++) {
		weir_closep(&swap->link_fd);
		weir_closep(&swap->old_program_fd);
	}
	free(*swaps);
}

static int swap_link(const struct weir_instance *instance, const struct weir_link *link, int program_fd,
		     struct swap *swap)
{
	char pin[WEIR_LINK_PIN_BYTES];

	weir_link_pin(link->interface, link->is_native, pin);
	swap->old_program_fd = bpf_prog_get_fd_by_id(link->program_id);
	swap->link_fd = weir_pin_open(instance->name, pin);
	if (swap->link_fd < 0)
		return swap->link_fd;
	if (swap->old_program_fd < 0)
		return swap->old_program_fd;
	return bpf_link_update(swap->link_fd, program_fd, NULL) ? -errno : 0;
}

/* Put the new program on every link, or on none. Each packet meets the old rules or the new ones. */
static int swap_links(const struct weir_instance *instance, int program_fd, struct weir_diag *diag)
{
	_cleanup_(free_swaps) struct swap *swaps = calloc(instance->link_count + 1, sizeof(*swaps));
	size_t done = 0;
	int err = 0;

	if (!swaps)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (size_t i = 0; !err && i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];

		if (!link->ifindex) {
			weir_diag_warning(diag, NULL, NULL, "'weir detach -i' forgets it",
					  "interface '%s' is gone, and the rules with it", link->interface);
			continue;
		}
		err = swap_link(instance, link, program_fd, &swaps[done]);
		if (err)
			weir_diag_fail(diag, -err, "the old rules go on", "cannot replace the program on '%s'",
				       link->interface);
		else
			done++;
	}
	/* The same call that has just worked the other way round. */
	while (err && done--)
		bpf_link_update(swaps[done].link_fd, swaps[done].old_program_fd, NULL);
	return err;
}

static int pin_new_maps(const struct weir_instance *instance, const struct weir_image *image,
			const struct weir_object *object, struct weir_diag *diag)
{
	int err = pin_anew(instance->name, WEIR_PIN_THRESHOLDS, weir_object_thresholds_fd(object), diag);

	for (int map = 0; !err && map < WEIR_MAP_COUNT; map++)
		if (is_replaced(instance, image, map))
			err = pin_anew(instance->name, weir_instance_map_name(map), weir_object_map_fd(object, map),
				       diag);
	return err;
}

static int take_new_pins(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	int err = take_new_pin(instance->name, WEIR_PIN_THRESHOLDS, diag);

	for (int map = 0; !err && map < WEIR_MAP_COUNT; map++)
		if (is_replaced(instance, image, map))
			err = take_new_pin(instance->name, weir_instance_map_name(map), diag);
	return err;
}

static void drop_new_pins(const struct weir_instance *instance)
{
	char buffer[64];

	weir_unpin(instance->name, new_pin(WEIR_PIN_THRESHOLDS, buffer));
	for (int map = 0; map < WEIR_MAP_COUNT; map++)
		weir_unpin(instance->name, new_pin(weir_instance_map_name(map), buffer));
}

/* The new rules are in force; let everyone who looks see them. */
static int make_known(struct weir_instance *instance, const struct weir_settings *settings,
		      const struct weir_image *image, const struct weir_object *object, struct weir_diag *diag)
{
	int err;

	/* Again: a second may have begun meanwhile. The controller, if any, comes after the generation's number. */
	err = publish(settings, image, object, diag);
	if (!err)
		err = take_new_pins(instance, image, diag);
	if (!err)
		err = write_descriptions(instance, image->rule_info, image->resource_info, diag);
	if (err)
		return err;
	update_info(&instance->info, settings, image, object);
	err = weir_array_write(instance->map_fd[WEIR_MAP_INSTANCE], &instance->info, 1, sizeof(instance->info));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot write the description of instance '%s'", instance->name)
		   : 0;
}

/* Up to the swap everything can be undone; after it the new rules are in force. */
static int swap_in(struct weir_instance *instance, const struct weir_settings *settings, const struct weir_image *image,
		   const struct weir_object *object, struct weir_diag *diag)
{
	struct weir_diag ignored = {};
	int err;

	err = describe_both(instance, image, diag);
	if (!err)
		err = pin_new_maps(instance, image, object, diag);
	if (!err)
		err = publish(settings, image, object, diag);
	if (!err)
		err = swap_links(instance, weir_object_program_fd(object), diag);
	if (err) {
		drop_new_pins(instance);
		write_descriptions(instance, instance->rules, instance->resources, &ignored);
		weir_diag_free(&ignored);
		return err;
	}
	return make_known(instance, settings, image, object, diag);
}

/* Rules that pace where the old ones did not. *ret_is_new: it has to be taken off again if the reload fails. */
static int start_pace(const struct weir_instance *instance, const struct weir_image *image, bool *ret_is_new,
		      struct weir_diag *diag)
{
	_cleanup_(weir_freep) uint32_t *ifindexes = calloc(instance->link_count + 1, sizeof(*ifindexes));
	size_t count = 0;
	int err;

	if (!image->config.paces || weir_pace_is_attached(instance->name))
		return 0;
	if (!ifindexes)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (size_t i = 0; i < instance->link_count; i++) {
		if (!instance->links[i].is_native)
			return weir_pace_refuse_skb(instance->links[i].interface, diag);
		if (instance->links[i].ifindex)
			ifindexes[count++] = instance->links[i].ifindex;
	}
	err = weir_pace_check(diag);
	if (!err)
		err = weir_pace_attach(instance->name, ifindexes, count, diag);
	*ret_is_new = !err;
	return err;
}

static int load_over(const struct weir_instance *instance, const struct weir_image *image,
		     struct weir_object **ret_object, struct weir_diag *diag)
{
	struct weir_object_options options = {
		.seed = instance->info.seed,
		.now_ns = weir_host_now_ns(),
		.previous_rules = instance->rules,
	};

	for (int map = 0; map < WEIR_MAP_COUNT; map++)
		options.reuse_fd[map] = is_replaced(instance, image, map) ? -1 : instance->map_fd[map];
	return weir_object_load(image, &options, ret_object, diag);
}

static bool names_interfaces(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (ruleset->resources[i].match.interface_count)
			return true;
	return false;
}

/* Interface names are looked up here, and would mean others in another network namespace. */
static int check_netns(const struct weir_instance *instance, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	if (!names_interfaces(ruleset) || instance->info.netns == weir_host_netns())
		return 0;
	weir_diag_error(diag, NULL, NULL, "reload it from there: '--netns NAME'",
			"instance '%s' is attached in another network namespace, and the rules name interfaces",
			instance->name);
	return -EINVAL;
}

/* Rules whose buckets cannot be told apart must not be put in force, or not for long. */
static int check_span(const struct weir_instance *instance, const struct weir_image *image, struct weir_diag *diag)
{
	static const char *const hint = "detach it and attach again";
	uint64_t left_ns = weir_narrow_left_ns(image->rule_info, image->rule_slots, image->timings, image->timing_count,
					       weir_host_now_ns());
	char buffer[WEIR_NARROW_WORDS_BYTES];
	const char *words = weir_narrow_words(left_ns, buffer);

	if (!words)
		return 0;
	if (left_ns) {
		weir_diag_warning(diag, NULL, NULL, hint, "instance '%s' was %s", instance->name, words);
		return 0;
	}
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' was %s", instance->name, words);
	return -EOVERFLOW;
}

static struct weir_previous what_runs(const struct weir_instance *instance)
{
	struct weir_previous previous = {
		.rules = instance->rules,
		.resources = instance->resources,
		.timings = instance->timings,
		.rule_slots = instance->info.rule_slots,
		.resource_slots = instance->info.resource_slots,
		.timing_count = instance->info.timing_count,
		.narrow_sets = instance->info.narrow_sets,
		.wide_sets = instance->info.wide_sets,
		.throttle_sets = instance->info.throttle_sets,
		.warming_sets = instance->info.warming_sets,
		.connection_sets = instance->info.connection_sets,
		.connection_flow_sets = instance->info.connection_flow_sets,
		.presence_cells = instance->info.presence_cells,
		.presence_shift = instance->info.presence_shift,
	};

	memcpy(previous.connection_timeout_ms, instance->info.connection_timeout_ms,
	       sizeof(previous.connection_timeout_ms));
	return previous;
}

/* One without any is what is left of an attach, or a detach, that was killed. */
static int check_links(const struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

	if (instance->link_count)
		return 0;
	snprintf(hint, sizeof(hint), "'weir detach%s' clears it away", weir_instance_option(instance->name, option));
	weir_diag_error(diag, NULL, NULL, hint,
			"instance '%s' is attached to no interface: an attach or a detach was cut short",
			instance->name);
	return -ENOENT;
}

int weir_instance_reload(const char *name, const struct weir_ruleset *ruleset, struct weir_reload_result *ret_result,
			 struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_previous previous;
	bool paces_anew = false;
	int err;

	/* Before the lock, so that nothing is made or mounted when nothing is attached. */
	err = weir_instance_open_now(name, &instance, diag);
	if (err)
		return err;
	weir_instance_free(TAKE_PTR(instance));
	err = weir_bpffs_lock(&lock_fd, diag);
	if (!err)
		err = open_as_is(name, &instance, diag);
	if (!err)
		err = check_links(instance, diag);
	if (!err)
		err = check_netns(instance, ruleset, diag);
	if (!err)
		err = check_marks(ruleset, diag);
	if (err)
		return err;

	previous = what_runs(instance);
	err = build_image(ruleset, &previous, &image, diag);
	if (!err)
		err = check_span(instance, image, diag);
	if (!err)
		err = check_memory(new_bytes(instance, image), diag);
	if (!err)
		err = not_the_rules(load_over(instance, image, &object, diag));
	if (!err)
		err = not_the_rules(start_pace(instance, image, &paces_anew, diag));
	if (!err)
		err = not_the_rules(swap_in(instance, &ruleset->settings, image, object, diag));
	if (err ? paces_anew : !image->config.paces && weir_pace_is_attached(name))
		weir_pace_detach(name);
	if (err)
		return err;
	*ret_result = (struct weir_reload_result){
		.generation = instance->info.generation,
		.rules = image->rule_count,
		.kept_rules = image->kept_rules,
	};
	return 0;
}
