// SPDX-License-Identifier: GPL-2.0-only
/*
 * The links of an instance: one for each interface that it is on. Each has a pin that says interface and mode, and the
 * kernel knows the rest: which program, and whether the interface is still there. Nothing is changed here.
 */
#include "instance/parts.h"

#include <errno.h>

#include "base/util.h"
#include "host/bpffs.h"
#include "host/host.h"

bool weir_is_link_pin(const char *pin)
{
	char interface[IF_NAMESIZE];
	bool is_native;

	return weir_link_pin_parse(pin, interface, &is_native);
}

int weir_instance_read_links(struct weir_instance *instance, struct weir_diag *diag)
{
	int err = weir_links_read(instance->name, &instance->links, &instance->link_count);

	return err ? weir_diag_fail(diag, -err, NULL, "cannot read the links of instance '%s'", instance->name) : 0;
}

size_t weir_instance_count_links(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	size_t links = 0;

	if (weir_pins_read(instance, &pins))
		return 0;
	for (size_t i = 0; i < pins.count; i++)
		links += weir_is_link_pin(pins.names[i]);
	return links;
}

size_t weir_instance_count_live_links(const char *instance)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	size_t links = 0;

	if (weir_pins_read(instance, &pins))
		return 0;
	for (size_t i = 0; i < pins.count; i++) {
		struct weir_link link = {};

		/* One that cannot be read may live. */
		links += weir_is_link_pin(pins.names[i]) &&
			 (weir_link_read(instance, pins.names[i], &link) || link.ifindex);
	}
	return links;
}

int weir_instance_find_link(const char *name, const char *interface, char ret_pin[WEIR_LINK_PIN_BYTES],
			    struct weir_diag *diag)
{
	int err = weir_link_find(name, interface, ret_pin);

	if (err == -ENOENT)
		weir_diag_error(diag, NULL, NULL, "'weir status' shows where it is",
				"instance '%s' is not attached to '%s'", name, interface);
	else if (err)
		weir_diag_fail(diag, -err, NULL, "cannot read the links of instance '%s'", name);
	return err;
}

int weir_instance_expect_on(const char *name, const char *interface, struct weir_diag *diag)
{
	char pin[WEIR_LINK_PIN_BYTES];
	int err = weir_instance_expect_attached(name, diag);

	return err ? err : weir_instance_find_link(name, interface, pin, diag);
}

void weir_instance_watch_links(struct weir_instance *instance, struct weir_diag *diag)
{
	char hint[256], option[WEIR_INSTANCE_OPTION_BYTES];

	/* Elsewhere they keep those of the last reload: to go there each time may mean to search all processes. */
	if (instance->info.netns == weir_host_netns())
		weir_links_name_here(instance->name, instance->links, instance->link_count);
	for (size_t i = 0; i < instance->link_count; i++) {
		struct weir_link *link = &instance->links[i], now = {};
		char pin[WEIR_LINK_PIN_BYTES];

		if (!link->ifindex)
			continue;
		weir_link_pin(link->attached_as, link->is_native, pin);
		/* What cannot be read is being detached. */
		if (weir_link_read(instance->name, pin, &now) || now.ifindex)
			continue;
		link->ifindex = 0;
		snprintf(hint, sizeof(hint),
			 "should it come back, nothing is limited there until it is attached anew: 'weir detach%s', "
			 "then 'weir run' or 'weir attach'",
			 weir_instance_option(instance->name, option));
		weir_diag_warning(diag, NULL, NULL, hint, "interface '%s' is gone, and the limits with it",
				  link->interface);
	}
}

bool weir_instance_of_program(uint32_t program_id, char ret_name[WEIR_INSTANCE_NAME_BYTES])
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	bool is_found = false;

	if (weir_names_read(weir_bpffs_base(), &names))
		return false;
	for (size_t i = 0; i < names.count && !is_found; i++) {
		_cleanup_(weir_names_free) struct weir_names pins = {};
		struct weir_link link = {};

		if (weir_pins_read(names.names[i], &pins))
			continue;
		for (size_t pin = 0; pin < pins.count && !is_found; pin++)
			is_found = weir_is_link_pin(pins.names[pin]) &&
				   !weir_link_read(names.names[i], pins.names[pin], &link) &&
				   link.program_id == program_id;
		if (is_found)
			snprintf(ret_name, WEIR_INSTANCE_NAME_BYTES, "%s", names.names[i]);
	}
	return is_found;
}
