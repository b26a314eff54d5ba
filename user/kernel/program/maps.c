// SPDX-License-Identifier: GPL-2.0-only
#include "program/maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

#define PROGRAM_MAPS_MAX 64 /* the most maps that a program may use (kernel: MAX_USED_MAPS) */

_Static_assert(WEIR_PROGRAM_TAG_BYTES == BPF_TAG_SIZE, "");

/* A descriptor of the map of this name, or -ENOENT. */
static int open_named(const __u32 *ids, __u32 count, const char *name)
{
	for (__u32 i = 0; i < count; i++) {
		_cleanup_(weir_closep) int fd = bpf_map_get_fd_by_id(ids[i]);
		struct bpf_map_info info = {};
		__u32 info_bytes = sizeof(info);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &info_bytes) &&
		    !strncmp(info.name, name, sizeof(info.name) - 1))
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

int weir_program_map_open(__u32 program_id, const char *name)
{
	_cleanup_(weir_closep) int fd = bpf_prog_get_fd_by_id(program_id);
	__u32 ids[PROGRAM_MAPS_MAX];
	struct bpf_prog_info info = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	__u32 info_bytes = sizeof(info);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	return open_named(ids, info.nr_map_ids < ARRAY_SIZE(ids) ? info.nr_map_ids : ARRAY_SIZE(ids), name);
}

int weir_program_tag(int program_fd, __u8 ret_tag[WEIR_PROGRAM_TAG_BYTES])
{
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(program_fd, &info, &info_bytes))
		return -errno;
	memcpy(ret_tag, info.tag, WEIR_PROGRAM_TAG_BYTES);
	return 0;
}
