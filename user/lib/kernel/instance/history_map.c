// SPDX-License-Identifier: GPL-2.0-only
/*
 * The history of an instance (rules/history.h), in a map of its own that no program reads. It is pinned with the other
 * maps, and so lives as long as they do, needs no directory on a disk, and is replaced in one step.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/util.h"
#include "program/array.h"

/* Write the history to a new map. Returns a descriptor or -errno. */
static int write_map(const struct weir_history *history)
{
	_cleanup_(weir_freep) uint8_t *bytes = NULL;
	size_t count;
	int err = weir_history_pack(history, &bytes, &count);

	return err ?: weir_bytes_write("weir_history", bytes, count);
}

int weir_instance_write_history(const char *instance, const struct weir_history *history, struct weir_diag *diag)
{
	int fd = write_map(history);

	return fd < 0 ? weir_diag_fail(diag, -fd, NULL, "cannot keep the rule set of instance '%s'", instance) : fd;
}

static int read_map(int fd, struct weir_history *ret_history)
{
	size_t bytes;
	void *mapped;
	int err = weir_bytes_map(fd, &mapped, &bytes);

	if (err)
		return err;
	err = weir_history_unpack(mapped, bytes, ret_history);
	munmap(mapped, bytes);
	return err;
}

bool weir_instance_has_sets(const char *name)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(name, WEIR_PIN_HISTORY);
	bool has_sets;
	size_t bytes;
	void *mapped;

	if (fd < 0 || weir_bytes_map(fd, &mapped, &bytes))
		return false;
	has_sets = weir_history_has_sets(mapped, bytes);
	munmap(mapped, bytes);
	return has_sets;
}

/* A reload writes the history before it increments the generation, and may be killed in between. An older history does
 * not describe the present rules: they were loaded by a version of weir without histories.
 */
static bool is_of(const struct weir_history *history, uint64_t generation)
{
	return history->sets[0] &&
	       (history->sets[0]->generation == generation || history->sets[0]->generation == generation + 1);
}

void weir_instance_history(const struct weir_instance *instance, struct weir_history *ret_history)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance->name, WEIR_PIN_HISTORY);

	*ret_history = (struct weir_history){};
	if (fd < 0 || read_map(fd, ret_history))
		return;
	if (!is_of(ret_history, instance->info.generation))
		weir_history_free(ret_history);
}

int weir_instance_kept(const struct weir_instance *instance, struct weir_history *ret_history, struct weir_diag *diag)
{
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_history(instance, ret_history);
	if (ret_history->sets[0])
		return 0;
	snprintf(hint, sizeof(hint), "'weir reload%s FILE...' loads one that is kept",
		 weir_instance_options(instance->name, option));
	weir_diag_error(
		diag, NULL, NULL, hint,
		"the rule set of instance '%s' was not kept: another version of weir loaded it, or it is too large",
		instance->name);
	return -ENOENT;
}

int weir_instance_keep(const struct weir_ruleset *ruleset, uint64_t generation, struct weir_kept_set **ret_set,
		       struct weir_diag *diag)
{
	int err = weir_kept_set_make(ruleset, ret_set);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot keep the rule set");
	(*ret_set)->generation = generation;
	return 0;
}
