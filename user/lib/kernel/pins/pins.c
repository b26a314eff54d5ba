// SPDX-License-Identifier: GPL-2.0-only
#include "pins/pins.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "program/object.h"

/* Suffix of a pin that is about to replace the one without the suffix. */
#define NEW_SUFFIX "-new"

void weir_pin_path(const char *instance, const char *pin, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s%s%s", weir_bpffs_base(), instance, pin ? "/" : "", pin ? pin : "");
}

/* By enum weir_hook. */
static const char *const program_pins[] = {"program", "program_tc_in", "program_tc_out", "program_tc_bare_in",
					   "program_tc_bare_out"};
static const char *const guard_pins[] = {"guard", "guard_tc_in", "guard_tc_out", "guard_tc_bare_in",
					 "guard_tc_bare_out"};
_Static_assert(ARRAY_SIZE(program_pins) == WEIR_HOOKS && ARRAY_SIZE(guard_pins) == WEIR_HOOKS, "a pin for each hook");

const char *weir_pin_of_program(enum weir_hook hook)
{
	return program_pins[hook];
}

const char *weir_pin_of_guard(enum weir_hook hook)
{
	return guard_pins[hook];
}

int weir_pin(const char *instance, const char *pin, int fd, struct weir_diag *diag)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	if (bpf_obj_pin(fd, path))
		return weir_diag_fail(diag, errno, NULL, "cannot pin '%s'", path);
	return 0;
}

int weir_pin_open(const char *instance, const char *pin)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	return bpf_obj_get(path);
}

bool weir_pin_is_there(const char *instance, const char *pin)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	return !access(path, F_OK);
}

int weir_unpin(const char *instance, const char *pin)
{
	char path[PATH_MAX];

	weir_pin_path(instance, pin, path);
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/* ---- pins that replace others ---- */

#define NEW_PIN_BYTES 64

static const char *new_pin(const char *pin, char buffer[NEW_PIN_BYTES])
{
	snprintf(buffer, NEW_PIN_BYTES, "%s" NEW_SUFFIX, pin);
	return buffer;
}

int weir_pin_new(const char *instance, const char *pin, int fd, struct weir_diag *diag)
{
	char buffer[NEW_PIN_BYTES];

	weir_unpin_new(instance, pin); /* left by a reload that was killed */
	return weir_pin(instance, new_pin(pin, buffer), fd, diag);
}

int weir_pin_take_new(const char *instance, const char *pin, struct weir_diag *diag)
{
	char from[PATH_MAX], to[PATH_MAX], buffer[NEW_PIN_BYTES];

	weir_pin_path(instance, new_pin(pin, buffer), from);
	weir_pin_path(instance, pin, to);
	if (rename(from, to))
		return weir_diag_fail(diag, errno, NULL, "cannot replace '%s'", to);
	return 0;
}

void weir_unpin_new(const char *instance, const char *pin)
{
	char buffer[NEW_PIN_BYTES];

	weir_unpin(instance, new_pin(pin, buffer));
}

int weir_pin_open_new(const char *instance, const char *pin)
{
	char buffer[NEW_PIN_BYTES];

	return weir_pin_open(instance, new_pin(pin, buffer));
}

/* ---- tables, whose pins may have the names of an older version ---- */

int weir_pin_open_table(const char *instance, enum weir_table_id table)
{
	int fd = weir_pin_open(instance, weir_table_name(table));

	if (fd == -ENOENT && weir_table_name_before(table)[0])
		fd = weir_pin_open(instance, weir_table_name_before(table));
	return fd;
}

int weir_pin_rename_table(const char *instance, enum weir_table_id table, struct weir_diag *diag)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (!weir_table_name_before(table)[0])
		return 0;
	weir_pin_path(instance, weir_table_name_before(table), from);
	weir_pin_path(instance, weir_table_name(table), to);
	if (rename(from, to) && errno != ENOENT)
		return weir_diag_fail(diag, errno, NULL, "cannot rename '%s'", from);
	return 0;
}

int weir_pins_read(const char *instance, struct weir_names *ret_pins)
{
	char path[PATH_MAX];

	weir_pin_path(instance, NULL, path);
	return weir_names_read(path, ret_pins);
}

/* ---- descriptions ---- */

#define HEAD_BYTES offsetof(struct weir_instance_info, tables)
_Static_assert(offsetof(struct weir_instance_info, netns) == 160 && HEAD_BYTES == 168, "other versions find it there");

/* The kernel copies as many bytes as the map's values have, which may be more than our description. */
static int read_value(int map_fd, void **ret_value, uint32_t *ret_bytes)
{
	_cleanup_(weir_freep) void *value = NULL;
	struct bpf_map_info map = {};
	__u32 map_bytes = sizeof(map), zero = 0;

	if (bpf_obj_get_info_by_fd(map_fd, &map, &map_bytes))
		return -errno;
	if (map.type != BPF_MAP_TYPE_ARRAY)
		return -EPROTO;
	value = malloc(map.value_size);
	if (!value)
		return -ENOMEM;
	if (bpf_map_lookup_elem(map_fd, &zero, value))
		return -errno;
	*ret_value = TAKE_PTR(value);
	*ret_bytes = map.value_size;
	return 0;
}

/* Sort the tables into our order, whatever order the writing version had; tables that we do not have come last. */
static void sort_tables(struct weir_instance_info *info)
{
	struct weir_table_info sorted[WEIR_TABLES_MAX] = {};
	int others = WEIR_TABLE_COUNT;

	for (int i = 0; i < WEIR_TABLES_MAX; i++) {
		char name[WEIR_TABLE_NAME_BYTES + 1] = "";
		enum weir_table_id table;

		memcpy(name, info->tables[i].name, WEIR_TABLE_NAME_BYTES);
		table = weir_table_find(name);
		if (table < WEIR_TABLE_COUNT)
			sorted[table] = info->tables[i];
		else if (info->tables[i].name[0] && others < WEIR_TABLES_MAX)
			sorted[others++] = info->tables[i];
	}
	memcpy(info->tables, sorted, sizeof(sorted));
}

int weir_info_read(int map_fd, struct weir_instance_info *ret_info, bool *ret_is_incompatible)
{
	_cleanup_(weir_freep) void *value = NULL;
	struct weir_instance_info info = {};
	uint32_t bytes = 0;
	bool is_ours;
	int err;

	err = read_value(map_fd, &value, &bytes);
	if (err)
		return err;
	if (bytes >= HEAD_BYTES)
		memcpy(&info, value, HEAD_BYTES);
	if (info.magic != WEIR_ABI_MAGIC)
		info = (struct weir_instance_info){};
	is_ours = info.abi_version == WEIR_ABI_VERSION && bytes == sizeof(info);
	if (is_ours)
		memcpy(&info, value, sizeof(info));
	sort_tables(&info);
	*ret_info = info;
	*ret_is_incompatible = !is_ours;
	return 0;
}

void weir_info_describe_tables(struct weir_instance_info *info, const __u32 sizes[WEIR_TABLE_COUNT])
{
	memset(info->tables, 0, sizeof(info->tables));
	for (int table = 0; table < WEIR_TABLE_COUNT; table++) {
		strcpy(info->tables[table].name, weir_table_name(table));
		info->tables[table].version = weir_table_version(table);
		info->tables[table].size = sizes[table];
	}
}

int weir_info_expose_incompatible(const char *instance, struct weir_instance_info *info)
{
	for (int table = 0; table < WEIR_TABLE_COUNT; table++) {
		if (info->tables[table].version == weir_table_version(table)) {
			_cleanup_(weir_closep) int fd = weir_pin_open_table(instance, table);
			const int is_shaped = fd < 0 ? fd : weir_table_is_shaped(table, fd);

			if (is_shaped < 0 && is_shaped != -ENOENT)
				return is_shaped;
			if (!is_shaped)
				info->tables[table].version = WEIR_TABLE_INCOMPATIBLE;
		}
	}
	return 0;
}

int weir_info_retire(int map_fd, uint64_t generation)
{
	_cleanup_(weir_freep) void *value = NULL;
	uint32_t bytes = 0, zero = 0;
	int err = read_value(map_fd, &value, &bytes);

	if (err)
		return err;
	if (bytes < HEAD_BYTES)
		return -EPROTO;
	((struct weir_instance_info *)value)->generation = generation;
	return bpf_map_update_elem(map_fd, &zero, value, BPF_ANY) ? -errno : 0;
}

uint64_t weir_info_netns(const char *instance)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_INSTANCE));
	struct weir_instance_info info;
	bool is_incompatible;

	return fd < 0 || weir_info_read(fd, &info, &is_incompatible) ? 0 : info.netns;
}
