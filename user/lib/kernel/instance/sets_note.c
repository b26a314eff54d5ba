// SPDX-License-Identifier: GPL-2.0-only
/*
 * What became of the files of an instance's sets when they changed: whether they were taken over, and if not, why.
 * It is in a map that no program reads, so it lives as long as the rules, and any command can show it. Present once
 * a file has changed.
 */
#include "instance/instance.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "compile/forecast.h"
#include "host/bpffs.h"
#include "program/array.h"

#define VERSION 1

bool weir_sets_note_read(const char *instance, struct weir_sets_note *ret_note)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, WEIR_PIN_SETS);
	bool is_known;
	size_t bytes;
	void *mapped;

	*ret_note = (struct weir_sets_note){};
	if (fd < 0 || weir_bytes_map(fd, &mapped, &bytes))
		return false;
	memcpy(ret_note, mapped, sizeof(*ret_note)); /* less than a page */
	munmap(mapped, bytes);
	is_known = ret_note->version == VERSION;
	if (!is_known)
		*ret_note = (struct weir_sets_note){};
	ret_note->set[sizeof(ret_note->set) - 1] = ret_note->file[sizeof(ret_note->file) - 1] =
		ret_note->why[sizeof(ret_note->why) - 1] = '\0';
	return is_known;
}

/* Readers see the note before or the new one. Without it the instance limits as well, so a failure is not reported. */
static void replace(const char *instance, struct weir_sets_note *note)
{
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	_cleanup_(weir_closep) int fd = -1;

	_Static_assert(sizeof(*note) <= 4096, "a note is read as one page");
	note->version = VERSION;
	fd = weir_bytes_write("weir_sets", note, sizeof(*note));
	if (fd >= 0 && weir_instance_exists(instance) && !weir_pin_new(instance, WEIR_PIN_SETS, fd, &ignored))
		weir_pin_take_new(instance, WEIR_PIN_SETS, &ignored);
}

const char *weir_sets_note_words(const struct weir_sets_note *note, char ret_words[WEIR_SETS_NOTE_WORDS])
{
	if (note->line)
		snprintf(ret_words, WEIR_SETS_NOTE_WORDS, "%s:%u: %s", note->file, note->line, note->why);
	else
		snprintf(ret_words, WEIR_SETS_NOTE_WORDS, "%s", note->why);
	return ret_words;
}

void weir_sets_note_loaded(const char *instance)
{
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_sets_note note;

	if (!weir_sets_note_read(instance, &note) || !note.refused_ns || weir_bpffs_lock(&lock_fd, &ignored) ||
	    !weir_sets_note_read(instance, &note))
		return;
	note.refused_ns = 0;
	replace(instance, &note);
}

void weir_sets_note_taken(const char *instance, const struct weir_ruleset *before, const struct weir_ruleset *now)
{
	_cleanup_(weir_changes_free) struct weir_changes changes = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	struct weir_sets_note note;

	if (weir_set_changes_find(before, now, &changes))
		return;
	for (size_t i = 0; i < changes.count; i++) {
		const struct weir_set *set = weir_find_set(now, changes.all[i].name, strlen(changes.all[i].name));

		if (changes.all[i].kind == WEIR_CHANGE_CHANGED && set)
			weir_instance_note(instance, WEIR_JOURNAL_SET, "'%s' taken over: %zu prefix%s, %zu label%s",
					   set->name, set->entry_count, set->entry_count == 1 ? "" : "es",
					   set->label_count, set->label_count == 1 ? "" : "s");
	}
	if (weir_bpffs_lock(&lock_fd, &ignored))
		return;
	weir_sets_note_read(instance, &note);
	note.taken++;
	note.refused_ns = 0;
	replace(instance, &note);
}

/* The set in force whose file this is, by whatever path. */
static const struct weir_set *find_set_of(const struct weir_ruleset *in_force, const char *path)
{
	struct stat of_path, of_set;

	if (!in_force || !path || stat(path, &of_path))
		return NULL;
	for (size_t i = 0; i < in_force->set_count; i++)
		if (in_force->sets[i].file && !stat(in_force->sets[i].file, &of_set) &&
		    of_set.st_dev == of_path.st_dev && of_set.st_ino == of_path.st_ino)
			return &in_force->sets[i];
	return NULL;
}

/* The first mistake in the file of a set, which is *ret_set; else the first of all, and NULL. */
static const struct weir_diag_entry *find_mistake(const struct weir_diag *diag, const struct weir_ruleset *in_force,
						  const struct weir_set **ret_set)
{
	const struct weir_diag_entry *first = NULL;

	for (size_t i = 0; i < diag->count; i++) {
		const struct weir_diag_entry *entry = &diag->entries[i];

		if (entry->is_warning || entry->is_note)
			continue;
		*ret_set = find_set_of(in_force, entry->file);
		if (*ret_set)
			return entry;
		first = first ?: entry;
	}
	return first;
}

void weir_sets_note_refused(const char *instance, const struct weir_ruleset *in_force, bool is_for_sets,
			    struct weir_diag *diag)
{
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	_cleanup_(weir_closep) int lock_fd = -1;
	const struct weir_diag_entry *found;
	const struct weir_set *set = NULL;
	char words[WEIR_SETS_NOTE_WORDS];
	struct weir_sets_note note;
	bool is_opened;

	weir_diag_sort(diag);
	found = find_mistake(diag, in_force, &set);
	is_opened = set;
	/* A file that cannot be opened is a mistake of the line that names it. */
	for (size_t i = 0; in_force && i < in_force->set_count && !set; i++)
		set = in_force->sets[i].file && access(in_force->sets[i].file, R_OK) ? &in_force->sets[i] : NULL;
	if ((!set && !is_for_sets) || weir_bpffs_lock(&lock_fd, &ignored))
		return;
	weir_sets_note_read(instance, &note);
	note.refused++;
	note.refused_ns = weir_host_now_ns();
	note.line = found && (!set || is_opened) ? found->line : 0;
	snprintf(note.set, sizeof(note.set), "%s", set ? set->name : "");
	snprintf(note.file, sizeof(note.file), "%s", set ? set->file : found && found->file ? found->file : "");
	snprintf(note.why, sizeof(note.why), "%s", found ? found->message : "the reload failed");
	replace(instance, &note);
	if (note.line) /* the path comes last, because it may be cut */
		snprintf(words, sizeof(words), "line %u: %s (%s)", note.line, note.why, note.file);
	else
		snprintf(words, sizeof(words), "%s", note.why);
	weir_instance_note(instance, WEIR_JOURNAL_SET, "%s%s%snot taken over: %s", set ? "'" : "", note.set,
			   set ? "' " : "", words);
}
