// SPDX-License-Identifier: GPL-2.0-only
/* Instances by name: which ones are attached, and the error for one that is not. */
#include "instance/instance_internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "network/netns.h"
#include "pins/pins.h"
#include "rules/scalars.h"

bool weir_instance_name_is_valid(const char *name)
{
	size_t bytes = strlen(name);

	for (const char *at = name; *at; at++)
		if (!isascii(*at) || (!isalnum(*at) && *at != '_' && *at != '-'))
			return false;
	return bytes > 0 && bytes < WEIR_INSTANCE_NAME_BYTES;
}

static int fail_out_of_sight(struct weir_diag *diag)
{
	weir_diag_error(diag, NULL, NULL, "run it as root",
			"cannot see what is attached: this mount namespace has no BPF file system");
	return -EACCES;
}

int weir_instance_list(struct weir_names *ret_names, struct weir_diag *diag)
{
	int err = weir_names_read(weir_bpffs_base(), ret_names);

	if (err == -ENOENT && weir_bpffs_is_out_of_sight())
		return fail_out_of_sight(diag);
	if (err == -ENOENT) {
		*ret_names = (struct weir_names){};
		return 0;
	}
	if (err)
		return weir_diag_fail(diag, -err, err == -EACCES ? "run it as root" : NULL, "cannot read '%s'",
				      weir_bpffs_base());
	return 0;
}

/* 0, -ENOENT if it has no directory of pins, or the reason why this cannot be determined. */
static int look_for(const char *name)
{
	char path[PATH_MAX];
	struct stat status;

	weir_pin_path(name, NULL, path);
	return stat(path, &status) ? -errno : 0;
}

bool weir_instance_exists(const char *name)
{
	return look_for(name) != -ENOENT;
}

int weir_instance_look_for(const char *name, struct weir_diag *diag)
{
	int err = look_for(name);

	if (err == -ENOENT)
		return weir_bpffs_is_out_of_sight() ? fail_out_of_sight(diag) : 0;
	if (err)
		return weir_diag_fail(diag, -err, err == -EACCES ? "run it as root, or with CAP_DAC_OVERRIDE" : NULL,
				      "cannot see whether instance '%s' is attached: '%s/%s'", name, weir_bpffs_base(),
				      name);
	return 1;
}

const char *weir_instance_options(const char *name, char words[WEIR_INSTANCE_OPTIONS_BYTES])
{
	const uint64_t there = weir_info_netns(name);
	const int room = WEIR_NETNS_WORDS_BYTES - sizeof(" --netns ");
	char argument[PATH_MAX];
	size_t used;

	/* A path that has no room is left out: half of it would be wrong. */
	if ((there && there != weir_host_netns()) || !weir_host_netns_option(words)) {
		words[0] = '\0';
		if (there && there != weir_host_first_netns() && weir_netns_argument(there, argument) &&
		    strlen(argument) <= (size_t)room)
			snprintf(words, WEIR_NETNS_WORDS_BYTES, " --netns %.*s", room, argument);
	}
	used = strlen(words);
	if (strcmp(name, WEIR_INSTANCE_DEFAULT))
		snprintf(words + used, WEIR_INSTANCE_OPTIONS_BYTES - used, " --instance %s", name);
	return words;
}

#define HINT_BYTES 256

/* "did you mean 'dns'?", "attached: 'dns', 'web'; choose one with '--instance NAME'", with as many names as fit. If
 * nothing is attached: how to attach an instance.
 */
static void hint_at_attached(const char *instance, char hint[HINT_BYTES])
{
	struct weir_diag ignored = {};
	struct weir_names names = {};
	const char *nearest;
	size_t at = 0;

	snprintf(hint, HINT_BYTES, "nothing is attached; 'weir attach' attaches one");
	if (!weir_instance_list(&names, &ignored) && names.count) {
		nearest = weir_nearest(instance, names.names, names.count, sizeof(*names.names));
		if (nearest)
			at += snprintf(hint, HINT_BYTES, "did you mean '%s'? ", nearest);
		for (size_t i = 0; i < names.count && at < HINT_BYTES - WEIR_INSTANCE_NAME_BYTES - 64; i++)
			at += snprintf(hint + at, HINT_BYTES - at, "%s'%s'", i ? ", " : "attached: ", names.names[i]);
		snprintf(hint + at, HINT_BYTES - at, "; choose one with '--instance NAME'");
	}
	weir_names_free(&names);
	weir_diag_free(&ignored);
}

int weir_instance_fail_not_attached(const char *instance, struct weir_diag *diag)
{
	char hint[HINT_BYTES];

	hint_at_attached(instance, hint);
	weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is not attached", instance);
	return -ENOENT;
}

int weir_instance_expect_attached(const char *name, struct weir_diag *diag)
{
	int is_there = weir_instance_look_for(name, diag);

	if (is_there < 0)
		return is_there;
	return is_there ? 0 : weir_instance_fail_not_attached(name, diag);
}

/* An instance of the present network namespace, which was probably meant; false if there is none, or if there are
 * several.
 */
static bool find_only_one_here(char ret_name[WEIR_INSTANCE_NAME_BYTES])
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	const uint64_t here = weir_host_netns();
	size_t count = 0;

	if (weir_instance_list(&names, &ignored))
		return false;
	for (size_t i = 0; i < names.count; i++)
		if (weir_info_netns(names.names[i]) == here && !count++)
			snprintf(ret_name, WEIR_INSTANCE_NAME_BYTES, "%s", names.names[i]);
	return count == 1;
}

int weir_instance_expect_here(const char *name, struct weir_diag *diag)
{
	const uint64_t there = weir_info_netns(name), here = weir_host_netns();
	char netns[NAME_MAX + 1], where[NAME_MAX + 64], words[WEIR_NETNS_WORDS_BYTES], other[WEIR_INSTANCE_NAME_BYTES];
	char argument[PATH_MAX], hint[PATH_MAX + HINT_BYTES] = "its interfaces are where no name or process leads to";

	if (!there || !here || there == here)
		return 0;
	if (weir_netns_name(there, netns))
		snprintf(where, sizeof(where), "network namespace '%s'", netns);
	else
		snprintf(where, sizeof(where), "network namespace %llu, which has no name", (unsigned long long)there);
	if (there == weir_host_first_netns())
		snprintf(hint, sizeof(hint), "leave '--netns' out");
	else if (weir_netns_argument(there, argument))
		snprintf(hint, sizeof(hint), "write '--netns %s'", argument);
	if (find_only_one_here(other))
		snprintf(hint + strlen(hint), sizeof(hint) - strlen(hint), "; the instance here is '%s'", other);
	return weir_diag_error(diag, NULL, NULL, hint, "instance '%s' is in %s, not in %s", name, where,
			       weir_host_netns_words(words));
}
