// SPDX-License-Identifier: GPL-2.0-only
#include "program/maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/object.h"

#define PROGRAM_MAPS_MAX 64 /* the most maps that a program may use (kernel: MAX_USED_MAPS) */

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
	const enum weir_table_id table = weir_table_find(name);
	__u32 ids[PROGRAM_MAPS_MAX];
	struct bpf_prog_info info = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	__u32 info_bytes = sizeof(info), count;
	int map_fd;

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		return -errno;
	count = info.nr_map_ids < ARRAY_SIZE(ids) ? info.nr_map_ids : ARRAY_SIZE(ids);
	map_fd = open_named(ids, count, name);
	/* A table that an older version created keeps its name in the kernel. */
	if (map_fd == -ENOENT && table < WEIR_TABLE_COUNT && weir_table_name_before(table)[0])
		map_fd = open_named(ids, count, weir_table_name_before(table));
	return map_fd;
}

struct bpf_map *weir_map_find(const struct bpf_object *object, const char *name)
{
	const enum weir_table_id table = weir_table_find(name);
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	if (map || table == WEIR_TABLE_COUNT || !weir_table_name_before(table)[0])
		return map;
	bpf_object__for_each_map(map, object) if (!strncmp(bpf_map__name(map), weir_table_name_before(table),
							   BPF_OBJ_NAME_LEN - 1)) return map;
	return NULL;
}

/* Those of a generation, and those that userspace writes. */
static const char *const shared_names[] = {
	"vectors",	"thresholds",	   "interfaces",     "prefix_nodes",  "overrides",
	"window_specs", "list_roots",	   "list_buckets",   "list_words",    "listed_prefixes",
	"timed_state",	"timed_addresses", "timed_prefixes", "own_addresses",
};

bool weir_map_is_shared(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared_names); i++)
		if (!strcmp(shared_names[i], name))
			return true;
	return false;
}

int weir_program_bind_shared(int program_fd, const struct bpf_object *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared_names); i++)
		if (bpf_prog_bind_map(program_fd, bpf_map__fd(weir_map_find(object, shared_names[i])), NULL))
			return -errno;
	return 0;
}

/* ---- lists ---- */

#define LIST_MAPS 4

/* The contents of one map. The values consist of whole words, which an array map stores without gaps. */
struct content {
	const char *map_name;
	const void *values;
	uint32_t count;
	size_t value_bytes;
};

static void list_contents(const struct weir_image_lists *lists, struct content ret_contents[LIST_MAPS])
{
	const struct content contents[LIST_MAPS] = {
		{"list_roots", lists->roots, lists->root_count, sizeof(*lists->roots)},
		{"list_buckets", lists->buckets, lists->bucket_count, sizeof(*lists->buckets)},
		{"list_words", lists->words, lists->word_count, sizeof(*lists->words)},
		{"listed_prefixes", lists->prefixes, lists->prefix_count, sizeof(*lists->prefixes)},
	};

	memcpy(ret_contents, contents, sizeof(contents));
}

int weir_lists_size(struct bpf_object *object, const struct weir_image_lists *lists)
{
	struct content contents[LIST_MAPS];

	list_contents(lists, contents);
	for (int i = 0; i < LIST_MAPS; i++) {
		int err = bpf_map__set_max_entries(bpf_object__find_map_by_name(object, contents[i].map_name),
						   contents[i].count ? contents[i].count : 1);

		if (err)
			return err;
	}
	return 0;
}

static int copy_into(const struct bpf_map *map, const struct content *content)
{
	size_t page_bytes = sysconf(_SC_PAGESIZE);
	size_t bytes = content->count * content->value_bytes;
	size_t mapped_bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
	void *values;

	if (!bytes)
		return 0;
	values = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (values == MAP_FAILED)
		return -errno;
	memcpy(values, content->values, bytes);
	munmap(values, mapped_bytes);
	return 0;
}

int weir_lists_fill(struct bpf_object *object, const struct weir_image_lists *lists, struct weir_diag *diag)
{
	struct content contents[LIST_MAPS];

	list_contents(lists, contents);
	for (int i = 0; i < LIST_MAPS; i++) {
		int err = copy_into(bpf_object__find_map_by_name(object, contents[i].map_name), &contents[i]);

		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot fill map '%s'", contents[i].map_name);
	}
	return 0;
}

/* ---- interfaces ---- */

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
