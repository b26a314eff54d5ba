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

static int fill(const struct weir_guard_object *object, int new_fd, int old_fd, const struct weir_guard *state)
{
	const int fds[WEIR_GUARD_SETS] = {[WEIR_GUARD_NEW] = new_fd, [WEIR_GUARD_OLD] = old_fd};
	const __u32 zero = 0;

	if (bpf_map_update_elem(weir_guard_state_fd(object), &zero, state, BPF_ANY))
		return -errno;
	for (__u32 set = 0; set < WEIR_GUARD_SETS; set++)
		if (bpf_map_update_elem(weir_guard_sets_fd(object), &set, &fds[set], BPF_ANY))
			return -errno;
	return 0;
}

int weir_guard_load(int new_fd, int old_fd, const struct weir_guard *state, struct weir_guard_object **ret_object,
		    struct weir_diag *diag)
{
	_cleanup_(weir_guard_object_freep) struct weir_guard_object *object = calloc(1, sizeof(*object));
	int err;

	if (!object)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot load the guard of the new rules");
	object->skel = guard_bpf__open_and_load();
	if (!object->skel)
		return weir_diag_fail(diag, errno, "reload without '--confirm', which needs no guard",
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

int weir_guard_program_fd(const struct weir_guard_object *object)
{
	return bpf_program__fd(object->skel->progs.weir_guard);
}

int weir_guard_state_fd(const struct weir_guard_object *object)
{
	return bpf_map__fd(object->skel->maps.guard);
}

int weir_guard_sets_fd(const struct weir_guard_object *object)
{
	return bpf_map__fd(object->skel->maps.guard_sets);
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
