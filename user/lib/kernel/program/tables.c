// SPDX-License-Identifier: GPL-2.0-only
/* Names, versions and layouts of the tables of an instance. */
#include "program/object.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

/* Tests build a weir in which one table, given by its identifier, has another version. */
#ifdef WEIR_TEST_OTHER_TABLE
#define VERSION_OF(table, version) ((int)(table) == (int)WEIR_TEST_OTHER_TABLE ? (version) + 1 : (version))
#else
#define VERSION_OF(table, version) (version)
#endif

static const struct {
	const char *name, *name_before; /* "": it never had another */
	__u32 version, type, key_bytes, value_bytes;
} tables[WEIR_TABLE_COUNT] = {
#define TABLE(identifier, map, map_type, key, value, flags, row, bytes, layout, size, entries, part, users, lost, ...) \
	[WEIR_TABLE_##identifier] = {                                                                                  \
		#map,	     "" __VA_ARGS__, VERSION_OF(WEIR_TABLE_##identifier, layout), BPF_MAP_TYPE_##map_type,     \
		sizeof(key), sizeof(value)},
#include "weir_tables.def"
#undef TABLE
};
static_assert(WEIR_TABLE_COUNT <= WEIR_TABLES_MAX, "a description has room for so many");

const char *weir_table_name(enum weir_table_id table)
{
	return tables[table].name;
}

const char *weir_table_name_before(enum weir_table_id table)
{
	return tables[table].name_before;
}

enum weir_table_id weir_table_find(const char *name)
{
	enum weir_table_id table = 0;

	while (table < WEIR_TABLE_COUNT && strcmp(name, tables[table].name) != 0 &&
	       (!name[0] || strcmp(name, tables[table].name_before) != 0))
		table++;
	return table;
}

__u32 weir_table_version(enum weir_table_id table)
{
	return tables[table].version;
}

int weir_table_is_shaped(enum weir_table_id table, int map_fd)
{
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(map_fd, &info, &info_bytes))
		return -errno;
	return info.type == tables[table].type && info.key_size == tables[table].key_bytes &&
	       info.value_size == tables[table].value_bytes;
}

int weir_table_scan(enum weir_table_id table, int map_fd, uint32_t size, weir_percpu_visit *visit, void *data)
{
	const uint32_t entries = size ? weir_table_entries(table, size) : 0;

	if (tables[table].type == BPF_MAP_TYPE_PERCPU_ARRAY)
		return weir_percpu_scan(map_fd, entries, tables[table].value_bytes, visit, data);
	return weir_array_scan(map_fd, entries, tables[table].value_bytes, visit, data);
}
