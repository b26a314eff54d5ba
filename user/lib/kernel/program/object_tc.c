// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second object of a load: the programs at tc (bpf/weir_tc.bpf.c), which use the maps of the first object. Only the
 * programs of hooks in use are loaded.
 */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "program/object.h"
#include "program/maps.h"
#include "program/object_internal.h"
#include "weir.skel.h"
#include "weir_tc.skel.h"

static struct bpf_program *program_of(const struct weir_tc_bpf *skel, enum weir_hook hook)
{
	switch (hook) {
	case WEIR_HOOK_TC_IN:
		return skel->progs.weir_tc_in;
	case WEIR_HOOK_TC_OUT:
		return skel->progs.weir_tc_out;
	case WEIR_HOOK_TC_BARE_IN:
		return skel->progs.weir_tc_bare_in;
	case WEIR_HOOK_TC_BARE_OUT:
		return skel->progs.weir_tc_bare_out;
	case WEIR_HOOK_XDP:
	case WEIR_HOOKS:
		break;
	}
	return NULL;
}

/* Use the first object's maps, including its global tables (.bss). The configuration is a copy, because each object's
 * is frozen.
 */
static int share_maps(const struct weir_object *object)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object->tc->obj)
	{
		const struct bpf_map *first = map == object->tc->maps.bss
						      ? object->skel->maps.bss
						      : weir_map_find(object->skel->obj, bpf_map__name(map));

		if (map == object->tc->maps.rodata)
			continue;
		err = first ? bpf_map__reuse_fd(map, bpf_map__fd(first)) : -ENOENT;
		if (err)
			break;
	}
	return err;
}

__u64 weir_object_identity(void)
{
	size_t bytes, tc_bytes;
	const void *elf = weir_bpf__elf_bytes(&bytes), *tc = weir_tc_bpf__elf_bytes(&tc_bytes);

	return weir_digest_words(weir_digest_words(WEIR_DIGEST_BASIS, elf, bytes), tc, tc_bytes);
}

int weir_object_open_tc(struct weir_object *object)
{
	if (!object->tc)
		object->tc = weir_tc_bpf__open();
	return object->tc ? 0 : -errno;
}

int weir_object_load_tc(struct weir_object *object, uint32_t hooks, struct weir_diag *diag)
{
	_cleanup_(weir_object_free_listener) struct listener listener = {};
	_cleanup_(weir_object_stop_preparing) struct preparation preparation = {};
	int err;

	hooks &= ~(1u << WEIR_HOOK_XDP);
	if (!hooks)
		return 0;
	err = weir_object_open_tc(object);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot open the BPF object for tc");
	for (enum weir_hook hook = WEIR_HOOK_TC_IN; !err && hook < WEIR_HOOKS; hook++)
		err = bpf_program__set_autoload(program_of(object->tc, hook), hooks >> hook & 1);
	memcpy((void *)(uintptr_t)&object->tc->rodata->config, (const void *)(uintptr_t)&object->skel->rodata->config,
	       sizeof(object->tc->rodata->config));
	if (!err)
		err = share_maps(object);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot set up the maps for tc");
	preparation.object = object->tc->obj;
	preparation.constants = object->is_unfolded ? NULL : object->tc->maps.rodata;
	weir_object_start_listening(&listener);
	weir_object_start_preparing(&preparation);
	err = weir_tc_bpf__load(object->tc);
	weir_object_stop_listening(&listener);
	return err ? weir_object_explain_load_failure(err, &listener, diag) : 0;
}

void weir_object_free_tc(struct weir_object *object)
{
	weir_tc_bpf__destroy(object->tc);
}

int weir_object_tc_fd(const struct weir_object *object, enum weir_hook hook)
{
	const int fd = object->tc ? bpf_program__fd(program_of(object->tc, hook)) : -1;

	return fd < 0 ? -1 : fd;
}
