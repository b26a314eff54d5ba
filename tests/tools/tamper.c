// SPDX-License-Identifier: GPL-2.0-only
/*
 * tamper INSTANCE version N          say that version N of weir attached it
 * tamper INSTANCE make N BYTES       make an instance as version N could have left it: a description of BYTES, no more
 * tamper INSTANCE days N             age it, so that the numbers of its buckets last for N days yet
 * tamper INSTANCE displace MS        describe its first rule as a reload does that takes MS at it; says "half" in the
 *                                    middle, and "whole" before others may look. 0: as one that was killed there.
 *                                    SIGUSR1 ends the waiting
 * tamper INSTANCE leave MS           take its pins away as a detach does that takes MS at it; says "half" in the middle
 *
 * tamper INSTANCE rename             give its tables the names that they had before, as an older version did
 * tamper INSTANCE resize TABLE       put a table in the place of this one whose values are eight bytes longer
 *
 * What other versions of weir, the years, or commands at work leave behind, for tests. Exit 1 when it cannot be done.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pins/pins.h"
#include "program/array.h"
#include "program/object.h"

static int fail(const char *what)
{
	fprintf(stderr, "tamper: %s: %s\n", what, strerror(errno));
	return 1;
}

static int set_version(const char *instance, uint32_t version)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_INSTANCE));
	struct weir_instance_info info;

	if (fd < 0 || weir_array_read(fd, &info, 1, sizeof(info)))
		return fail("cannot read the description");
	info.abi_version = version;
	return weir_array_write(fd, &info, 1, sizeof(info)) ? fail("cannot write the description") : 0;
}

static int make(const char *instance, uint32_t version, uint32_t bytes)
{
	const uint32_t head[] = {WEIR_ABI_MAGIC, version};
	_cleanup_(weir_freep) char *value = calloc(1, bytes + sizeof(head));
	_cleanup_(weir_closep) int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "instance", sizeof(uint32_t), bytes, 1, NULL);
	struct weir_diag ignored = {};
	char path[PATH_MAX];

	if (!value || fd < 0)
		return fail("cannot make a map");
	memcpy(value, head, sizeof(head));
	weir_pin_path(instance, NULL, path);
	if (weir_array_write(fd, value, 1, bytes) || mkdir(path, 0700))
		return fail("cannot make the instance");
	return weir_pin(instance, weir_table_name(WEIR_TABLE_INSTANCE), fd, &ignored) ? fail("cannot pin it") : 0;
}

static int set_days(const char *instance, uint64_t days)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_WINDOW_SPECS));
	struct weir_window_spec spec;

	/* The first is enough. */
	if (fd < 0 || weir_array_read(fd, &spec, 1, sizeof(spec)))
		return fail("cannot read the window specs");
	spec.base_bucket = (weir_host_now_ns() + days * 86400 * WEIR_NSEC_PER_SEC) / spec.bucket_ns - (1ull << 32);
	return weir_array_write(fd, &spec, 1, sizeof(spec)) ? fail("cannot write the window specs") : 0;
}

static void go_on(int signal_number)
{
}

static int displace(const char *instance, uint64_t ms)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_RULE_INFO));
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_diag ignored = {};
	struct weir_rule_info rule;

	signal(SIGUSR1, go_on);
	if (weir_bpffs_lock(&lock_fd, &ignored) || fd < 0 || weir_array_read(fd, &rule, 1, sizeof(rule)))
		return fail("cannot read the rules");
	rule.place++;
	if (weir_array_write(fd, &rule, 1, sizeof(rule)))
		return fail("cannot write the rules");
	puts("half");
	fflush(stdout);
	usleep(ms * 1000);
	if (!ms)
		return 0;
	rule.place--;
	if (weir_array_write(fd, &rule, 1, sizeof(rule)))
		return fail("cannot write the rules");
	puts("whole");
	return fflush(stdout); /* and only then the lock is let go */
}

static int rename_tables(const char *instance)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_INSTANCE));
	struct weir_instance_info info;
	char from[PATH_MAX], to[PATH_MAX];

	if (fd < 0 || weir_array_read(fd, &info, 1, sizeof(info)))
		return fail("cannot read the description");
	for (int table = 0; table < WEIR_TABLE_COUNT; table++) {
		const char *before = weir_table_name_before(table);

		if (!before[0])
			continue;
		strcpy(info.tables[table].name, before);
		weir_pin_path(instance, weir_table_name(table), from);
		weir_pin_path(instance, before, to);
		if (rename(from, to))
			return fail("cannot rename a pin");
	}
	return weir_array_write(fd, &info, 1, sizeof(info)) ? fail("cannot write the description") : 0;
}

/* As a build between two versions may have laid it out, under the same number. */
static int resize(const char *instance, const char *table)
{
	_cleanup_(weir_closep) int old_fd = weir_pin_open(instance, table), fd = -1;
	LIBBPF_OPTS(bpf_map_create_opts, options);
	struct weir_diag ignored = {};
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	if (old_fd < 0 || bpf_obj_get_info_by_fd(old_fd, &info, &info_bytes))
		return fail("cannot read the table");
	options.map_flags = info.map_flags;
	fd = bpf_map_create(info.type, "resized", info.key_size, info.value_size + 8, info.max_entries, &options);
	if (fd < 0)
		return fail("cannot make a table");
	weir_unpin(instance, table);
	return weir_pin(instance, table, fd, &ignored) ? fail("cannot pin it") : 0;
}

/* Of an instance without links, or the interface keeps the program as long as the pin of the link is there. */
static int leave(const char *instance, uint64_t ms)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_diag ignored = {};
	char path[PATH_MAX];

	weir_pin_path(instance, NULL, path);
	if (weir_bpffs_lock(&lock_fd, &ignored) || weir_names_read(path, &pins))
		return fail("cannot lock it");
	for (size_t i = 0; i < pins.count; i++)
		weir_unpin(instance, pins.names[i]);
	puts("half");
	fflush(stdout);
	usleep(ms * 1000);
	return rmdir(path) ? fail("cannot take it away") : 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[2], "version"))
		return set_version(argv[1], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[2], "days"))
		return set_days(argv[1], atoi(argv[3]));
	if (argc == 5 && !strcmp(argv[2], "make"))
		return make(argv[1], atoi(argv[3]), atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[2], "displace"))
		return displace(argv[1], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[2], "leave"))
		return leave(argv[1], atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[2], "rename"))
		return rename_tables(argv[1]);
	if (argc == 4 && !strcmp(argv[2], "resize"))
		return resize(argv[1], argv[3]);
	fprintf(stderr,
		"tamper INSTANCE version N | make N BYTES | days N | displace MS | leave MS | rename | resize TABLE\n");
	return 1;
}
