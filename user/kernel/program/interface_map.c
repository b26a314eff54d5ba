// SPDX-License-Identifier: GPL-2.0-only
#include "program/interface_map.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>

#include "base/util.h"
#include "host/host.h"

static void free_interfaces(struct if_nameindex **interfaces)
{
	if (*interfaces) /* glibc inspects the name */
		if_freenameindex(*interfaces);
}

int weir_image_add_interfaces(struct weir_image *image)
{
	_cleanup_(free_interfaces) struct if_nameindex *interfaces = NULL;
	int err = 0;

	if (!image->case_count)
		return 0;
	interfaces = if_nameindex();
	if (!interfaces)
		return -errno;
	for (const struct if_nameindex *i = interfaces; !err && i->if_index; i++)
		err = weir_image_add_interface(image, i->if_name, i->if_index);
	return err;
}

/* ---- interfaces that appear and go ---- */

struct found {
	struct weir_image_interface *list;
	size_t count;
};

static void found_free(struct found *found)
{
	free(found->list);
}

static bool has(const struct found *found, uint32_t ifindex)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->list[i].ifindex == ifindex)
			return true;
	return false;
}

static int add(struct found *found, uint32_t ifindex, uint32_t vector)
{
	struct weir_image_interface *slot = weir_array_add((void **)&found->list, found->count, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	*slot = (struct weir_image_interface){ifindex, vector};
	found->count++;
	return 0;
}

/* Find interfaces by their names, and then by their alternative names (`ip link property add altname`). */
static int find_all(const struct weir_interface_case *cases, uint32_t count, struct found *found)
{
	_cleanup_(free_interfaces) struct if_nameindex *interfaces = if_nameindex();
	uint32_t vector;
	int err = interfaces ? 0 : -errno;

	for (const struct if_nameindex *i = interfaces; !err && i->if_index; i++)
		if (weir_interface_cases_find(cases, count, i->if_name, &vector))
			err = add(found, i->if_index, vector);
	for (uint32_t i = 0; !err && i < count; i++) {
		uint32_t ifindex = cases[i].kind == WEIR_CASE_NAME ? weir_host_find_ifindex(cases[i].word, NULL) : 0;

		if (ifindex && !has(found, ifindex))
			err = add(found, ifindex, cases[i].vector);
	}
	return err;
}

/* Remove interfaces that have gone first, because the map may be full. */
static int remove_others(int map_fd, const struct found *found)
{
	_cleanup_(found_free) struct found gone = {};
	uint32_t ifindex, *before = NULL;
	int err = 0;

	while (!err && !bpf_map_get_next_key(map_fd, before, &ifindex)) {
		if (!has(found, ifindex))
			err = add(&gone, ifindex, 0);
		before = &ifindex;
	}
	for (size_t i = 0; !err && i < gone.count; i++)
		if (bpf_map_delete_elem(map_fd, &gone.list[i].ifindex) && errno != ENOENT)
			err = -errno;
	return err;
}

int weir_interfaces_update(int map_fd, const struct weir_interface_case *cases, uint32_t count)
{
	_cleanup_(found_free) struct found found = {};
	int err = find_all(cases, count, &found);

	if (!err)
		err = remove_others(map_fd, &found);
	for (size_t i = 0; !err && i < found.count; i++) {
		const struct weir_image_interface *interface = &found.list[i];
		uint32_t vector;

		if (!bpf_map_lookup_elem(map_fd, &interface->ifindex, &vector) && vector == interface->vector)
			continue;
		if (bpf_map_update_elem(map_fd, &interface->ifindex, &interface->vector, BPF_ANY))
			err = -errno;
	}
	return err;
}
