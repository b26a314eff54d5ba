// SPDX-License-Identifier: GPL-2.0-only
/*
 * Taking an instance off one interface or all. No program may run without its pins, because nobody could find it any
 * more. So the links go first, and everything else goes with the last of them.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"
#include "pace/pace.h"
#include "pins/pins.h"

/* Remove all links (NULL), or those to one interface. Removes as many as possible. */
static int remove_links(const char *instance, const struct weir_names *pins, const char *attached_as)
{
	struct weir_link link;
	int err = 0;

	for (size_t i = 0; i < pins->count; i++) {
		int one_err = 0;

		if (weir_link_pin_parse(pins->names[i], &link) &&
		    (!attached_as || !strcmp(link.attached_as, attached_as)))
			one_err = weir_link_remove(instance, pins->names[i]);
		err = one_err ? one_err : err;
	}
	return err;
}

int weir_instance_remove_links(const char *instance, const char *attached_as)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	int err = weir_pins_read(instance, &pins);

	return err ? err : remove_links(instance, &pins, attached_as);
}

/* If a filter cannot be removed, everything else stays too: the filter still limits, and commands must be able to find
 * it.
 */
static int fail_to_take_off(const char *instance, int err, struct weir_diag *diag)
{
	return weir_diag_fail(diag, -err, "run it again", "cannot take the program of instance '%s' off", instance);
}

/* If the network namespace no longer exists, neither do its interfaces and the pacing devices. */
static void remove_pace(const char *instance, bool was_live, struct weir_diag *diag)
{
	const bool paced = weir_pace_is_attached(instance);
	char device[IF_NAMESIZE], hint[128];

	if (!weir_pace_detach(instance) || !paced || !was_live)
		return;
	weir_pace_device(instance, device);
	snprintf(hint, sizeof(hint),
		 "in that namespace, 'ip link del %s' removes it; next time, name the namespace: '--netns PATH'",
		 device);
	weir_diag_warning(diag, NULL, NULL, hint,
			  "cannot find the network namespace of instance '%s': the device that held back its packets "
			  "is left there",
			  instance);
}

int weir_instance_remove(const char *instance, struct weir_diag *diag)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	const bool was_live = weir_instance_count_live_links(instance) > 0;
	const char *kept = NULL; /* the pin that could not be removed, and therefore the directory */
	char path[PATH_MAX];
	int err = weir_pins_read(instance, &pins), kept_err = 0;

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the pins of instance '%s'", instance);
	err = remove_links(instance, &pins, NULL);
	if (err)
		return fail_to_take_off(instance, err, diag);
	remove_pace(instance, was_live, diag);
	for (size_t i = 0; i < pins.count; i++) {
		err = weir_unpin(instance, pins.names[i]);
		if (err && !kept) {
			kept = pins.names[i];
			kept_err = err;
		}
	}
	weir_pin_path(instance, kept, path);
	if (kept)
		return weir_diag_fail(diag, -kept_err, NULL, "cannot remove '%s'", path);
	if (rmdir(path))
		return weir_diag_fail(diag, errno, NULL, "cannot remove '%s'", path);
	return 0;
}

void weir_instance_trim_pace(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	_cleanup_(weir_freep) uint32_t *ifindexes = NULL;
	size_t count = 0;

	if (weir_pins_read(instance, &pins))
		return;
	ifindexes = calloc(pins.count + 1, sizeof(*ifindexes));
	for (size_t i = 0; ifindexes && i < pins.count; i++) {
		struct weir_link link = {};

		if (weir_is_link_pin(pins.names[i]) && !weir_link_read(instance, pins.names[i], &link))
			ifindexes[count++] = link.ifindex;
	}
	if (ifindexes)
		weir_pace_trim(instance, ifindexes, count);
}

/* Remove all links to interfaces that no word selects any more. */
static void remove_unwanted(const struct weir_instance *instance)
{
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		char pin[WEIR_LINK_PIN_BYTES];

		if (weir_wanted_means(instance->info.wanted, link->interface) ||
		    weir_wanted_means(instance->info.wanted, link->attached_as))
			continue;
		weir_link_pin(link, pin);
		weir_link_remove(instance->name, pin);
	}
}

static int remove_pattern(struct weir_instance *instance, const char *pattern, struct weir_diag *diag)
{
	int err = weir_instance_expect_wanted(instance, pattern, diag);

	if (err)
		return err;
	weir_wanted_remove(instance->info.wanted, pattern);
	remove_unwanted(instance);
	return 0;
}

/* If a pattern matches the interface, an exception keeps it off. */
static int unwant(struct weir_instance *instance, const char *interface, struct weir_diag *diag)
{
	char exception[WEIR_WANTED_BYTES];

	weir_wanted_remove(instance->info.wanted, interface);
	if (!weir_wanted_means(instance->info.wanted, interface))
		return 0;
	snprintf(exception, sizeof(exception), "!%s", interface);
	return weir_wanted_add(instance->info.wanted, exception, diag);
}

static int remove_named(struct weir_instance *instance, const char *interface, struct weir_diag *diag)
{
	char attached_as[IF_NAMESIZE];
	int err = weir_instance_find_link(instance->name, interface, attached_as, diag);

	if (!err)
		err = unwant(instance, interface, diag);
	/* An interface that was renamed is wanted by its old name. */
	if (!err && strcmp(attached_as, interface) != 0)
		err = unwant(instance, attached_as, diag);
	if (err)
		return err;
	err = weir_instance_remove_links(instance->name, attached_as);
	return err ? fail_to_take_off(instance->name, err, diag) : 0;
}

/* Call this under the lock. Otherwise a controller could put a link back before the interface is marked as unwanted. */
static int detach_one(const char *name, const char *interface, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	int err = weir_instance_open_as_is(name, &instance, diag);

	if (!err)
		err = weir_word_is_pattern(interface) ? remove_pattern(instance, interface, diag)
						      : remove_named(instance, interface, diag);
	if (err)
		return err;
	weir_instance_note(name, WEIR_JOURNAL_INTERFACE, "'%s' is no longer limited: detached", interface);
	if (!weir_instance_count_links(name) && !weir_wanted_has_patterns(instance->info.wanted))
		return weir_instance_remove(name, diag);
	weir_instance_trim_pace(name);
	return instance->is_all_incompatible ? 0 : weir_instance_write_info(instance, diag);
}

/* Whether the instance of this name is still the one that was attached at attached_ns. */
static bool is_same_attachment(const char *instance, uint64_t attached_ns)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_INSTANCE));
	struct weir_instance_info info;
	bool is_incompatible;

	return fd >= 0 && !weir_info_read(fd, &info, &is_incompatible) && info.attached_ns == attached_ns;
}

int weir_instance_detach(const char *name, const char *interface, uint64_t attached_ns, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int lock_fd = -1;
	int err = weir_host_check_privilege(diag);

	if (!err)
		err = weir_instance_expect_attached(name, diag);
	if (!err)
		err = weir_bpffs_lock(&lock_fd, diag);
	if (err)
		return err;
	err = weir_instance_expect_attached(name, diag);
	if (err) {
		/* reported */
	} else if (attached_ns && !is_same_attachment(name, attached_ns)) {
		weir_diag_error(diag, NULL, NULL, NULL, "another command detached instance '%s' and attached it again",
				name);
		err = -ESTALE;
	} else if (interface) {
		err = detach_one(name, interface, diag);
	} else {
		weir_instance_note(name, WEIR_JOURNAL_DETACH, "detached from all interfaces");
		err = weir_instance_remove(name, diag);
	}
	weir_bpffs_tidy();
	return err;
}
