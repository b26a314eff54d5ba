// SPDX-License-Identifier: GPL-2.0-only
/* Names and versions of the tables of an instance, from the one list in weir_tables.h. */
#include "program/object.h"

#include <assert.h>

/* Tests build a weir that has another version of one table, by its identifier. */
#ifdef WEIR_TEST_OTHER_TABLE
#define VERSION_OF(table, version) ((int)(table) == (int)WEIR_TEST_OTHER_TABLE ? (version) + 1 : (version))
#else
#define VERSION_OF(table, version) (version)
#endif

static const struct {
	const char *name;
	__u32 version;
} tables[WEIR_TABLE_COUNT] = {
#define TABLE(identifier, map, type, bytes, layout)                                                                    \
	[WEIR_MAP_##identifier] = {.name = #map, .version = VERSION_OF(WEIR_MAP_##identifier, layout)},
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
