// SPDX-License-Identifier: GPL-2.0-only
#include "rules/ruleset.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text_file.h"
#include "base/util.h"
#include "rules/yaml.h"

/* ---- which files ---- */

static bool is_directory(const char *path)
{
	struct stat status;

	return strcmp(path, "-") && !stat(path, &status) && S_ISDIR(status.st_mode);
}

static bool is_rule_file_name(const char *name)
{
	static const char *const endings[] = {".yaml", ".yml", ".json"};

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t ending = strlen(endings[i]);

		if (name[0] != '.' && strlen(name) > ending && !strcmp(name + strlen(name) - ending, endings[i]))
			return true;
	}
	return false;
}

/* Takes ownership of the path, which may be NULL if memory ran out. */
static void add_path(struct weir_rule_files *files, char *path)
{
	char **slot = path ? weir_array_add((void **)&files->paths, files->count, sizeof(*slot)) : NULL;

	if (!slot) {
		free(path);
		files->is_out_of_memory = true;
		return;
	}
	*slot = path;
	files->count++;
}

/* A file that cannot be examined is added too, so that the failure to open it is reported. */
static void add_entry(struct weir_rule_files *files, const char *directory, const char *name)
{
	const char *slash = directory[strlen(directory) - 1] == '/' ? "" : "/";
	struct stat status;
	char *path = NULL;

	if (!is_rule_file_name(name))
		return;
	if (asprintf(&path, "%s%s%s", directory, slash, name) < 0)
		path = NULL;
	if (path && !stat(path, &status) && !S_ISREG(status.st_mode))
		free(path);
	else
		add_path(files, path);
}

static int compare_paths(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* 0 or -errno. */
static int add_entries(struct weir_rule_files *files, const char *directory)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	int err;

	if (!stream)
		return -errno;
	while (errno = 0, (entry = readdir(stream)))
		add_entry(files, directory, entry->d_name);
	err = -errno;
	closedir(stream);
	return err;
}

static void add_directory(struct weir_rule_files *files, const char *directory, struct weir_diag *diag)
{
	const size_t count_before = files->count;
	int err = add_entries(files, directory);

	if (err) {
		weir_diag_fail(diag, -err, NULL, "cannot read directory '%s'", directory);
		files->is_incomplete = true;
	} else if (files->count == count_before && !files->is_out_of_memory) {
		weir_diag_fail(diag, 0,
			       "their names must end in .yaml, .yml or .json; for no rules at all, create one that "
			       "contains '{}'",
			       "there are no rule files in directory '%s'", directory);
		files->is_incomplete = true;
	}
	if (files->count > count_before)
		qsort(files->paths + count_before, files->count - count_before, sizeof(*files->paths), compare_paths);
}

void weir_find_rule_files(const char *const *arguments, size_t argument_count, struct weir_rule_files *ret_files,
			  struct weir_diag *diag)
{
	*ret_files = (struct weir_rule_files){};
	for (size_t i = 0; i < argument_count; i++) {
		if (is_directory(arguments[i]))
			add_directory(ret_files, arguments[i], diag);
		else
			add_path(ret_files, strdup(arguments[i]));
	}
}

void weir_rule_files_free(struct weir_rule_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct weir_rule_files){};
}

/* ---- their contents ---- */

/* Recognised by the first bytes of pcap (with microseconds or nanoseconds, in either byte order) and of pcapng. */
static bool is_capture(const char *text, size_t bytes)
{
	static const char magics[][5] = {"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1",
					 "\x0a\x0d\x0d\x0a"};

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if (bytes >= 4 && !memcmp(text, magics[i], 4))
			return true;
	return false;
}

static int read_stream(FILE *stream, const char *file, struct weir_diag *diag, char **ret_text, size_t *ret_bytes)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes = 0, room = 0;

	do {
		if (room - bytes < 2) {
			char *grown = realloc(text, room = room ? 2 * room : 65536);

			if (!grown)
				return -ENOMEM;
			text = grown;
		}
		errno = 0;
		bytes += fread(text + bytes, 1, room - bytes - 1, stream);
		if (ferror(stream))
			return weir_diag_fail(diag, errno ?: EIO, NULL, "cannot read '%s'", file);
		if (is_capture(text, bytes))
			return weir_diag_error(diag, NULL, NULL,
					       "rules come first and the capture last: 'weir replay -r FILE... PCAP'",
					       "'%s' is a packet capture, not a rule file", file);
		if (bytes > WEIR_YAML_BYTES_MAX)
			return weir_diag_fail(
				diag, 0,
				"split it, as rule files are merged; or put addresses in a list file, \"@FILE\"",
				"'%s' is larger than 8 MB", file);
	} while (!feof(stream));
	text[bytes] = '\0';
	*ret_text = TAKE_PTR(text);
	*ret_bytes = bytes;
	return 0;
}

static const char absent_hint[] = "name a rule file, or a directory of them; '-' is standard input";

int weir_read_rule_file(const char *path, const char *file, struct weir_diag *diag, char **ret_text, size_t *ret_bytes)
{
	_cleanup_(weir_fclosep) FILE *stream = NULL;
	int err;

	if (!strcmp(path, "-"))
		return read_stream(stdin, file, diag, ret_text, ret_bytes);
	err = weir_text_file_open(path, &stream);
	if (err) {
		weir_diag_error(diag, NULL, NULL, err == -ENOENT ? absent_hint : NULL, "cannot open '%s': %s", file,
				weir_text_file_explain(err));
		return err;
	}
	return read_stream(stream, file, diag, ret_text, ret_bytes);
}
