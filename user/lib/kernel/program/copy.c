// SPDX-License-Identifier: GPL-2.0-only
#include "program/copy.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "program/maps.h"
#include "program/object.h"
#include "program/object_internal.h"
#include "weir.skel.h"
#include "weir_tc.skel.h"

static bool is_in_one_chunk(const char *name)
{
	return !strcmp(name, "narrow_flows") || !strcmp(name, "medium_flows") || !strcmp(name, "wide_flows") ||
	       !strcmp(name, "sharers") || !strcmp(name, "key_samples") || !strcmp(name, "top_drops") ||
	       !strcmp(name, "top_drop_keys");
}

/* ---- before loading ---- */

/* Copy the attached program's global data. */
static int read_data(const struct bpf_map *map, __u32 program_id)
{
	_cleanup_(weir_closep) int fd = weir_program_map_open(program_id, bpf_map__name(map));
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info), zero = 0;
	size_t bytes;
	void *data = (void *)(uintptr_t)bpf_map__initial_value((struct bpf_map *)(uintptr_t)map, &bytes);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	if (!data || info.value_size != bytes)
		return -EPROTO;
	return bpf_map_lookup_elem(fd, &zero, data) ? -errno : 0;
}

static __u32 at_most(__u32 sets, __u32 most)
{
	return sets < most ? sets : most;
}

/* In the harness a tick is a nanosecond. Without shortcuts, the program remembers nothing from one packet to the next.
 */
static void configure(struct weir_config *config, __u32 fields)
{
	config->match_fields &= fields;
	config->is_virtual = 1;
	config->shortcuts = 0;
	config->asked_fields |= weir_asks_beside_fields(config);
	config->counts_flow_drops = 0;
	config->tick_ns = 1;
	config->tick_origin_ns = 0;
	config->sizes[WEIR_TABLE_NARROW_FLOWS] =
		at_most(config->sizes[WEIR_TABLE_NARROW_FLOWS], WEIR_NARROW_SETS_PER_CHUNK);
	config->sizes[WEIR_TABLE_MEDIUM_FLOWS] =
		at_most(config->sizes[WEIR_TABLE_MEDIUM_FLOWS], WEIR_MEDIUM_SETS_PER_CHUNK);
	config->sizes[WEIR_TABLE_WIDE_FLOWS] = at_most(config->sizes[WEIR_TABLE_WIDE_FLOWS], WEIR_WIDE_SETS_PER_CHUNK);
	config->sizes[WEIR_TABLE_SHARERS] = WEIR_SHARERS_LINE_CELLS;
}

/* A program at tc has the configuration in a map of another name, by which it is recognised. */
static int copy_config(struct weir_object *object, __u32 program_id, enum weir_hook *ret_hook)
{
	const struct weir_bpf *skel = object->skel;
	int err = read_data(skel->maps.rodata, program_id);

	*ret_hook = WEIR_HOOK_XDP;
	if (err != -ENOENT)
		return err;
	*ret_hook = WEIR_HOOK_TC_IN;
	err = weir_object_open_tc(object) ?: read_data(object->tc->maps.rodata, program_id);
	if (!err)
		memcpy((void *)(uintptr_t)&skel->rodata->config, (const void *)(uintptr_t)&object->tc->rodata->config,
		       sizeof(skel->rodata->config));
	return err;
}

static int copy_data(struct weir_object *object, __u32 program_id, __u32 fields, enum weir_hook *ret_hook,
		     __u32 *ret_fields)
{
	const struct weir_bpf *skel = object->skel;
	int err = copy_config(object, program_id, ret_hook);

	if (!err)
		err = read_data(skel->maps.bss, program_id);
	if (err)
		return err;
	/* If it is the same build, everything that is copied has the same layout. */
	if (skel->rodata->config.program != weir_object_identity())
		return -EPROTO;
	*ret_fields = skel->rodata->config.match_fields;
	configure((struct weir_config *)(uintptr_t)&skel->rodata->config, fields);
	for (int place = 0; place < WEIR_RULES_MAX; place++)
		skel->bss->generation.rules[place].asks_all = 1;
	return 0;
}

static int copy_map(struct bpf_map *map, __u32 program_id)
{
	const char *name = bpf_map__name(map);
	_cleanup_(weir_closep) int fd = weir_program_map_open(program_id, name);
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	if (fd == -ENOENT)
		return bpf_map__set_max_entries(map, 1); /* a description, which the program does not use */
	if (fd < 0)
		return fd;
	if (weir_map_is_shared(name))
		return bpf_map__reuse_fd(map, fd);
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	return bpf_map__set_max_entries(map, is_in_one_chunk(name) ? 1 : info.max_entries);
}

/* ---- the copy ---- */

struct copying {
	__u32 program_id, fields;
	__u32 *ret_fields;
};

static int copy(const void *what, bool is_unfolded, struct weir_object **ret_copy, struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = weir_object_open();
	const struct copying *copying = what;
	enum weir_hook hook;
	struct bpf_map *map;
	uint32_t hooks;
	int err;

	if (!object)
		return weir_diag_fail(diag, errno, NULL, "cannot open the BPF object");
	object->is_unfolded = is_unfolded;
	err = copy_data(object, copying->program_id, copying->fields, &hook, copying->ret_fields);
	bpf_object__for_each_map(map, object->skel->obj) if (!err && !bpf_map__is_internal(map)) err =
		copy_map(map, copying->program_id);
	if (err == -EPROTO) {
		weir_diag_error(diag, NULL, NULL, "'weir reload' loads this version's program and keeps the windows",
				"the attached program is not this weir's: another version or build loaded it");
		return -EPROTO;
	}
	if (err)
		return weir_diag_fail(diag, -err, err == -EPERM ? "run it as root, or with CAP_SYS_ADMIN" : NULL,
				      "cannot examine the attached program");
	hooks = 1u << hook | (object->skel->rodata->config.limits_out ? 1u << WEIR_HOOK_TC_OUT : 0);
	err = weir_object_load_opened(object, hooks, diag);
	if (!err)
		err = weir_object_map_harness(object, diag);
	if (!err)
		*ret_copy = TAKE_PTR(object);
	return err;
}

/* ---- the contract ---- */

int weir_object_copy(__u32 program_id, __u32 fields, struct weir_object **ret_copy, __u32 *ret_fields,
		     struct weir_diag *diag)
{
	return weir_object_load_by(copy, &(struct copying){program_id, fields, ret_fields}, ret_copy, diag);
}

struct weir_generation *weir_object_generation(const struct weir_object *object)
{
	return &object->skel->bss->generation;
}

const struct weir_config *weir_object_config(const struct weir_object *object)
{
	return (const struct weir_config *)(uintptr_t)&object->skel->rodata->config;
}
