// SPDX-License-Identifier: GPL-2.0-only
#include "watch/overrides.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

#define PROGRAM_MAPS_MAX 64 /* what a program may use (kernel: MAX_USED_MAPS) */

/* The map of this name, or -ENOENT. */
static int open_named(const __u32 *ids, __u32 count, const char *name)
{
	for (__u32 i = 0; i < count; i++) {
		_cleanup_(weir_closep) int fd = bpf_map_get_fd_by_id(ids[i]);
		struct bpf_map_info info = {};
		__u32 info_bytes = sizeof(info);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &info_bytes) && !strcmp(info.name, name))
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

static int open_of_program(uint32_t program_id)
{
	_cleanup_(weir_closep) int fd = bpf_prog_get_fd_by_id(program_id);
	__u32 ids[PROGRAM_MAPS_MAX];
	struct bpf_prog_info info = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	__u32 info_bytes = sizeof(info);

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	return open_named(ids, info.nr_map_ids < ARRAY_SIZE(ids) ? info.nr_map_ids : ARRAY_SIZE(ids), "overrides");
}

int weir_overrides_open(const struct weir_instance *instance)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex)
			return open_of_program(instance->links[i].program_id);
	return -ENOENT;
}

int weir_overrides_find(int fd, const struct weir_rule_info *rule, const struct weir_flow_key *key, uint64_t *ret_units)
{
	struct weir_override_key wanted = {.place = rule->place, .family = key->family};
	struct weir_override_units found;

	wanted.prefix_bits = WEIR_OVERRIDE_FIXED_BITS + (key->family == 6 ? 128 : 32);
	memcpy(wanted.address, rule->overrides_destination ? key->destination : key->source, sizeof(wanted.address));
	if (bpf_map_lookup_elem(fd, &wanted, &found)) {
		if (errno != ENOENT)
			return -errno;
		found.units = rule->threshold_word & WEIR_THRESHOLD_MASK;
	}
	*ret_units = found.units;
	return 0;
}
