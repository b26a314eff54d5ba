// SPDX-License-Identifier: GPL-2.0-only
/* Names, versions and layouts of the tables of an instance, from the one list in weir_tables.h. */
#include "program/object.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>

#include "base/util.h"

/* Tests build a weir that has another version of one table, by its identifier. */
#ifdef WEIR_TEST_OTHER_TABLE
#define VERSION_OF(table, version) ((int)(table) == (int)WEIR_TEST_OTHER_TABLE ? (version) + 1 : (version))
#else
#define VERSION_OF(table, version) (version)
#endif

static const struct {
	const char *name;
	__u32 version, value_bytes;
} tables[WEIR_TABLE_COUNT] = {
#define TABLE(identifier, map, type, bytes, layout)                                                                    \
	[WEIR_MAP_##identifier] = {                                                                                    \
		.name = #map, .version = VERSION_OF(WEIR_MAP_##identifier, layout), .value_bytes = bytes},
	WEIR_STATE_TABLES(TABLE) WEIR_SHOWN_TABLES(TABLE)
#undef TABLE
};
static_assert(WEIR_TABLE_COUNT <= WEIR_TABLES_MAX, "a description has room for so many");

const char *weir_state_table_name(int table)
{
	return tables[table].name;
}

const char *weir_instance_map_name(enum weir_instance_map map)
{
	return tables[map].name;
}

__u32 weir_state_table_version(int table)
{
	return tables[table].version;
}

struct shape {
	int table;
	__u32 type, key_bytes, value_bytes;
};

/* The others are arrays of their type. */
static const struct shape no_arrays[] = {
#define PER_CPU(identifier, value)                                                                                     \
	{                                                                                                              \
		WEIR_MAP_##identifier, BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(__u32), sizeof(value)                         \
	}
	PER_CPU(NARROW_FLOWS, struct weir_narrow_chunk),
	PER_CPU(MEDIUM_FLOWS, struct weir_medium_chunk),
	PER_CPU(WIDE_FLOWS, struct weir_wide_chunk),
	PER_CPU(LONE_ROWS, struct weir_wide_row),
	PER_CPU(TALKERS, struct weir_talker_chunk),
	PER_CPU(RULE_COUNTERS, struct weir_rule_counters),
	PER_CPU(RESOURCE_COUNTERS, struct weir_resource_counters),
	PER_CPU(TOTALS, struct weir_totals),
	PER_CPU(RULE_SECONDS, struct weir_rule_seconds),
	PER_CPU(FLOW_DEMANDS, __u64),
	PER_CPU(CONNECTION_TOTALS, struct weir_connection_total),
	PER_CPU(PACE, struct weir_pace_counters),
#undef PER_CPU
	{WEIR_MAP_TIMED_ADDRESSES, BPF_MAP_TYPE_HASH, sizeof(struct weir_timed_address), sizeof(struct weir_timed)},
	{WEIR_MAP_TIMED_PREFIXES, BPF_MAP_TYPE_LPM_TRIE, sizeof(struct weir_timed_prefix), sizeof(struct weir_timed)},
};

int weir_state_table_is_shaped(int table, int map_fd)
{
	struct shape shape = {table, BPF_MAP_TYPE_ARRAY, sizeof(__u32), tables[table].value_bytes};
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	for (size_t i = 0; i < ARRAY_SIZE(no_arrays); i++)
		if (no_arrays[i].table == table)
			shape = no_arrays[i];
	if (bpf_obj_get_info_by_fd(map_fd, &info, &info_bytes))
		return -errno;
	return info.type == shape.type && info.key_size == shape.key_bytes && info.value_size == shape.value_bytes;
}
