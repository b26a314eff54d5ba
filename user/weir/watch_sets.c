// SPDX-License-Identifier: GPL-2.0-only
#include "weir/watch_sets.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/util.h"
#include "instance/instance.h"
#include "rules/history.h"
#include "rules/ruleset.h"

/* Without a change for so long, a file is done: a writer that replaces several does so one after the other. Even with a
 * change every time, the wait ends after QUIET_MS * QUIET_MAX, before the 2 s that are promised. Chosen, not derived.
 */
#define QUIET_MS 100
#define QUIET_MAX 10
#define UNCONFIRMED_MS 500
/* A directory that is replaced, or comes later, sends no event. */
#define RECHECK_MS 1000

struct watched {
	char *path;
	int directory; /* watch descriptor; -1: there is no such directory now */
	struct stat status;
};

struct watch {
	int fd;
	struct watched *files;
	size_t count;
};

static void watch_free(struct watch *watch)
{
	weir_closep(&watch->fd);
	for (size_t i = 0; i < watch->count; i++)
		free(watch->files[i].path);
	free(watch->files);
}

/* What is at the path now, whatever links lead there. A file that is gone has no status. */
static struct stat status_of(const char *path)
{
	struct stat status;

	return stat(path, &status) ? (struct stat){} : status;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_later(const struct stat *status, uint64_t since_ns)
{
	return status->st_ctim.tv_sec * WEIR_NSEC_PER_SEC + status->st_ctim.tv_nsec >= since_ns;
}

/* Its directory is watched, since a file that is replaced is another file. The watch takes over the path. */
static int watch_file(struct watch *watch, char *path)
{
	struct watched *file = path ? &watch->files[watch->count++] : NULL;
	char directory[PATH_MAX];

	if (!file)
		return -ENOMEM;
	file->path = path;
	snprintf(directory, sizeof(directory), "%.*s/", (int)(strrchr(path, '/') - path), path);
	file->directory = inotify_add_watch(watch->fd, directory, IN_CLOSE_WRITE | IN_MOVED_TO);
	if (file->directory < 0 && errno != ENOENT)
		return -errno;
	file->status = status_of(path); /* what changes after this is an event */
	return 0;
}

/* The files of the sets, and where links in their place lead. */
static int watch_files(const struct weir_ruleset *ruleset, struct watch *watch)
{
	int err = 0;

	watch->files = calloc(2 * ruleset->set_count + 1, sizeof(*watch->files));
	if (!watch->files)
		return -ENOMEM;
	for (size_t i = 0; !err && i < ruleset->set_count; i++) {
		const char *path = ruleset->sets[i].file;
		char *target;

		if (!path || path[0] != '/')
			continue;
		err = watch_file(watch, strdup(path));
		target = err ? NULL : realpath(path, NULL);
		if (target && strcmp(target, path) != 0)
			err = watch_file(watch, target);
		else
			free(target);
	}
	return err ?: watch->count ? 0 : -ENOENT;
}

/* Does the name of a file now lead to another file? */
static bool leads_elsewhere(const struct watch *watch)
{
	bool does = false;

	for (size_t i = 0; i < watch->count; i++) {
		const struct stat now = status_of(watch->files[i].path);

		does |= now.st_ino && !is_same_file(&now, &watch->files[i].status);
	}
	return does;
}

/* Is this about one of the files: by its name, or since the name now leads to another file? A file that is only half
 * written is the same file, and its writer has not closed it.
 */
static bool concerns(const struct watch *watch, const struct inotify_event *event)
{
	bool does = event->mask & IN_Q_OVERFLOW || leads_elsewhere(watch);

	for (size_t i = 0; i < watch->count; i++)
		does |= event->wd == watch->files[i].directory && event->len &&
			!strcmp(event->name, strrchr(watch->files[i].path, '/') + 1);
	return does;
}

/* Wait for events for so long. Returns whether one concerns a file. */
static bool wait_for_change(struct watch *watch, int timeout_ms)
{
	struct pollfd polled = {.fd = watch->fd, .events = POLLIN};
	_Alignas(struct inotify_event) char events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
	bool has_changed = false;
	ssize_t bytes;

	if (poll(&polled, 1, timeout_ms) <= 0)
		return false;
	bytes = read(watch->fd, events, sizeof(events));
	for (ssize_t at = 0; at < bytes;) {
		const struct inotify_event *event = (const struct inotify_event *)(events + at);

		has_changed |= concerns(watch, event);
		at += sizeof(*event) + event->len;
	}
	return has_changed;
}

/* Are the rules in force from the files that the options name, if these are to be read? */
static bool are_from_files(const struct weir_reloads *reloads, const char *names)
{
	_cleanup_(weir_rule_files_free) struct weir_rule_files files = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};

	if (!reloads->reads_rules)
		return true;
	weir_find_rule_files((const char *const *)reloads->options->arguments, reloads->options->argument_count, &files,
			     &ignored);
	for (size_t i = 0; i < files.count; i++) {
		const size_t bytes = strlen(files.paths[i]);

		if (strncmp(names, files.paths[i], bytes) != 0 || names[bytes] != '\n')
			return false;
		names += bytes + 1;
	}
	return !*names;
}

/* The rules in force, without prefixes. -ESTALE: they are not from the files that would be read. */
static int read_in_force(const struct weir_reloads *reloads, struct weir_ruleset **ret_ruleset,
			 bool *ret_is_unconfirmed)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	int err = weir_instance_open(reloads->options->instance, &instance, &ignored);

	if (err)
		return err;
	*ret_is_unconfirmed = instance->unconfirmed.is_so && !weir_unconfirmed_is_over(&instance->unconfirmed);
	weir_instance_history(instance, &history);
	if (!history.sets[0] || !are_from_files(reloads, history.sets[0]->files))
		return -ESTALE;
	return weir_kept_set_read_text(history.sets[0], ret_ruleset, &ignored);
}

int weir_sets_wait(const struct weir_reloads *reloads)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL, *now = NULL;
	_cleanup_(watch_free) struct watch watch = {.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
	bool is_unconfirmed = false, has_changed = false;
	int err = watch.fd < 0 ? -errno : read_in_force(reloads, &ruleset, &is_unconfirmed);

	if (!err && ruleset)
		err = watch_files(ruleset, &watch);
	if (err)
		return err;
	/* What changed before the watch began. */
	for (size_t i = 0; i < watch.count; i++)
		has_changed |= watch.files[i].status.st_ino && is_later(&watch.files[i].status, reloads->since_ns);
	for (;; has_changed = false) {
		while (!has_changed)
			has_changed = wait_for_change(&watch, RECHECK_MS) || leads_elsewhere(&watch);
		for (int i = 0; i < QUIET_MAX && wait_for_change(&watch, QUIET_MS); i++)
			;
		for (is_unconfirmed = true; is_unconfirmed; poll(NULL, 0, is_unconfirmed ? UNCONFIRMED_MS : 0)) {
			weir_ruleset_free(TAKE_PTR(now));
			err = read_in_force(reloads, &now, &is_unconfirmed);
			if (err && err != -ESTALE)
				return err;
		}
		if (!err)
			return 0;
	}
}
