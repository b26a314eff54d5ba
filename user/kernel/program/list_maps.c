// SPDX-License-Identifier: GPL-2.0-only
#include "program/list_maps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

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
