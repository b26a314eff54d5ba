// SPDX-License-Identifier: GPL-2.0-only
#include "program/guard.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "guard.skel.h"

struct weir_guard_object {
	struct guard_bpf *skel;
};

static struct bpf_program *program_of(const struct guard_bpf *skel, enum weir_hook hook)
{
	struct bpf_program *const programs[] = {
		[WEIR_HOOK_XDP] = skel->progs.weir_guard,
		[WEIR_HOOK_TC_IN] = skel->progs.weir_guard_in,
		[WEIR_HOOK_TC_OUT] = skel->progs.weir_guard_out,
		[WEIR_HOOK_TC_BARE_IN] = skel->progs.weir_guard_b_in,
		[WEIR_HOOK_TC_BARE_OUT] = skel->progs.weir_guard_b_out,
	};

	_Static_assert(ARRAY_SIZE(programs) == WEIR_HOOKS, "a guard for each hook");
	return programs[hook];
}

static __u32 slot_of(enum weir_hook hook, enum weir_guard_set set)
{
	return hook == WEIR_HOOK_XDP ? set : WEIR_GUARD_SLOT(hook, set);
}

bool weir_guard_has(const struct weir_guard_maps *maps, enum weir_hook hook, enum weir_guard_set set)
{
	const __u32 slot = slot_of(hook, set);
	__u32 program_id;

	return !bpf_map_lookup_elem(hook == WEIR_HOOK_XDP ? maps->sets_fd : maps->tc_sets_fd, &slot, &program_id);
}

static int put_program(const struct guard_bpf *skel, enum weir_hook hook, enum weir_guard_set set, int program_fd)
{
	const bool is_xdp = hook == WEIR_HOOK_XDP;
	const __u32 slot = slot_of(hook, set);
	const int map_fd = bpf_map__fd(is_xdp ? skel->maps.guard_sets : skel->maps.guard_tc_sets);

	return program_fd >= 0 && bpf_map_update_elem(map_fd, &slot, &program_fd, BPF_ANY) ? -errno : 0;
}

static int fill(const struct weir_guard_object *object, const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS],
		const struct weir_guard *state)
{
	const __u32 zero = 0;
	int err = state && bpf_map_update_elem(weir_guard_state_fd(object), &zero, state, BPF_ANY) ? -errno : 0;

	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++) {
		err = put_program(object->skel, hook, WEIR_GUARD_NEW, new_fd[hook]);
		if (!err)
			err = put_program(object->skel, hook, WEIR_GUARD_OLD, old_fd[hook]);
	}
	return err;
}

/* Load the guards of hooks that have a program, and do not create the map of a hook type without any. */
static int load(struct guard_bpf *skel, const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS],
		const struct weir_guard_maps *shared)
{
	bool is_at_tc = false, is_at_xdp = new_fd[WEIR_HOOK_XDP] >= 0 || old_fd[WEIR_HOOK_XDP] >= 0;
	int err = 0;

	for (int hook = 0; hook < WEIR_HOOKS; hook++) {
		const bool is_needed = new_fd[hook] >= 0 || old_fd[hook] >= 0;

		bpf_program__set_autoload(program_of(skel, hook), is_needed);
		is_at_tc |= is_needed && hook != WEIR_HOOK_XDP;
	}
	bpf_map__set_autocreate(skel->maps.guard_tc_sets, is_at_tc);
	bpf_map__set_autocreate(skel->maps.guard_sets, is_at_xdp);
	if (shared)
		err = bpf_map__reuse_fd(skel->maps.guard, shared->state_fd);
	if (!err && shared && is_at_xdp && shared->sets_fd >= 0)
		err = bpf_map__reuse_fd(skel->maps.guard_sets, shared->sets_fd);
	if (!err && shared && is_at_tc && shared->tc_sets_fd >= 0)
		err = bpf_map__reuse_fd(skel->maps.guard_tc_sets, shared->tc_sets_fd);
	return err ?: guard_bpf__load(skel);
}

int weir_guard_load(const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS], const struct weir_guard *state,
		    const struct weir_guard_maps *shared, struct weir_guard_object **ret_object, struct weir_diag *diag)
{
	_cleanup_(weir_guard_object_freep) struct weir_guard_object *object = calloc(1, sizeof(*object));
	int err;

	if (!object)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot load the guard of the new rules");
	object->skel = guard_bpf__open();
	err = object->skel ? load(object->skel, new_fd, old_fd, shared) : -errno;
	if (err)
		return weir_diag_fail(diag, -err, "reload without '--confirm', which needs no guard",
				      "cannot load the guard of the new rules");
	err = fill(object, new_fd, old_fd, state);
	if (err)
		return weir_diag_fail(diag, -err, "reload without '--confirm', which needs no guard",
				      "cannot hand the rules to their guard");
	*ret_object = TAKE_PTR(object);
	return 0;
}

void weir_guard_object_free(struct weir_guard_object *object)
{
	if (!object)
		return;
	guard_bpf__destroy(object->skel);
	free(object);
}

int weir_guard_program_fd(const struct weir_guard_object *object, enum weir_hook hook)
{
	const int fd = bpf_program__fd(program_of(object->skel, hook));

	return fd < 0 ? -1 : fd;
}

int weir_guard_state_fd(const struct weir_guard_object *object)
{
	return bpf_map__fd(object->skel->maps.guard);
}

static int fd_or_none(const struct bpf_map *map)
{
	return bpf_map__autocreate(map) ? bpf_map__fd(map) : -1;
}

int weir_guard_sets_fd(const struct weir_guard_object *object)
{
	return fd_or_none(object->skel->maps.guard_sets);
}

int weir_guard_tc_sets_fd(const struct weir_guard_object *object)
{
	return fd_or_none(object->skel->maps.guard_tc_sets);
}

static size_t state_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

volatile struct weir_guard *weir_guard_map(int state_fd)
{
	void *state = mmap(NULL, state_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, state_fd, 0);

	return state == MAP_FAILED ? NULL : state;
}

void weir_guard_unmap(volatile struct weir_guard *state)
{
	if (state)
		munmap((void *)state, state_bytes());
}
