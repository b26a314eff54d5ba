// SPDX-License-Identifier: GPL-2.0-only
/* Which programs are on an instance's links, and replacing them on all links or on none. */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "network/netns.h"

void weir_old_programs_free(struct weir_old_program **programs)
{
	for (struct weir_old_program *program = *programs; program && program->id; program++)
		weir_closep(&program->fd);
	free(*programs);
}

static bool is_program(int fd, uint32_t id)
{
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &info_bytes) && info.id == id;
}

/* Open a program by its pin, or by the new pin of an interrupted reload. If another version has pinned none, open it by
 * its id, which takes CAP_SYS_ADMIN. Returns a descriptor or -errno.
 */
static int open_program(const char *instance, enum weir_hook hook, uint32_t id)
{
	int fds[] = {weir_pin_open(instance, weir_pin_of_program(hook)),
		     weir_pin_open_new(instance, weir_pin_of_program(hook)),
		     weir_pin_open(instance, weir_pin_of_guard(hook))};
	int found = -1;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (found < 0 && is_program(fds[i], id))
			found = TAKE_FD(fds[i]);
		weir_closep(&fds[i]);
	}
	return found >= 0 ? found : bpf_prog_get_fd_by_id(id);
}

static struct weir_old_program *find_program(struct weir_old_program *programs, uint32_t id)
{
	while (programs->id && programs->id != id)
		programs++;
	return programs;
}

/* Add the program of a hook that no interface uses now: a new interface would get it. */
static void add_pinned(const char *instance, enum weir_hook hook, struct weir_old_program *programs)
{
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);
	int fd;

	for (; programs->id; programs++)
		if (programs->hook == hook)
			return;
	fd = weir_pin_open(instance, weir_pin_of_program(hook));
	if (fd < 0)
		return;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		weir_closep(&fd);
	else
		*programs = (struct weir_old_program){.id = info.id, .fd = fd, .hook = hook};
}

int weir_instance_open_programs(const struct weir_instance *instance, struct weir_old_program **ret_programs,
				struct weir_diag *diag)
{
	_cleanup_(weir_old_programs_free) struct weir_old_program *programs =
		calloc(instance->link_count + WEIR_HOOKS + 1, sizeof(*programs));

	if (!programs)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		struct weir_old_program *program = find_program(programs, link->program_id);

		if (!link->ifindex || program->id)
			continue;
		program->fd = open_program(instance->name, link->hook, link->program_id);
		if (program->fd < 0)
			return weir_diag_fail(diag, -program->fd, "the old rules stay",
					      "cannot open the program on '%s'", link->interface);
		program->id = link->program_id;
		program->hook = link->hook;
	}
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		add_pinned(instance->name, hook, programs);
	*ret_programs = TAKE_PTR(programs);
	return 0;
}

/* If only its program is gone, weir_instance_warn_of_losses() says so. */
static bool is_lost(const struct weir_link *link, const struct weir_loss *losses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(losses[i].interface, link->attached_as))
			return true;
	return false;
}

static void warn_of_gone(const struct weir_instance *instance, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_loss *losses = NULL;
	const size_t count = weir_instance_losses_now(instance, &losses);
	char hint[WEIR_INSTANCE_HINT_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];

	weir_instance_options(instance->name, option);
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];

		if (link->ifindex || !weir_link_stands(instance->links, instance->link_count, i) ||
		    is_lost(link, losses, count))
			continue;
		snprintf(hint, sizeof(hint), "'weir detach%s -i %s' forgets it", option, link->interface);
		weir_diag_warning(diag, NULL, NULL, hint, "interface '%s' is gone, and its limits with it",
				  link->interface);
	}
}

/* The interface of link `place`, which stands for it, has no link for that direction, and the new rules need one. */
static bool lacks(const struct weir_instance *instance, const struct weir_link_terms *terms, size_t place, bool is_out)
{
	const struct weir_link *link = &instance->links[place];

	return link->ifindex && weir_link_stands(instance->links, instance->link_count, place) &&
	       weir_link_terms_have(terms, link, is_out) && !weir_instance_link_on(instance, link->ifindex, is_out);
}

static bool is_any_lacking(const struct weir_instance *instance, const struct weir_link_terms *terms)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (lacks(instance, terms, i, false) || lacks(instance, terms, i, true))
			return true;
	return false;
}

/* Remove the links that were put there. */
static void remove_put(const struct weir_instance *instance, const struct weir_link_terms *terms)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};

	weir_pins_read(instance->name, &pins); /* without them nothing can be removed, ignoring */
	for (size_t i = 0; i < instance->link_count; i++)
		for (size_t pin = 0; pin < pins.count; pin++) {
			struct weir_link link;

			if (weir_link_pin_parse(pins.names[pin], &link) &&
			    !strcmp(link.attached_as, instance->links[i].attached_as) &&
			    lacks(instance, terms, i, weir_hook_is_out(link.hook)))
				weir_link_remove(instance->name, pins.names[pin]);
		}
}

/* Called before existing programs are replaced, because it can fail. If a link refuses, all of these are removed again.
 */
static int put_lacking(const struct weir_instance *instance, const struct weir_link_terms *terms,
		       struct weir_diag *diag)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	int err;

	if (!is_any_lacking(instance, terms))
		return 0;
	err = weir_netns_enter(instance->info.netns, &back_fd);
	if (err)
		return weir_diag_fail(diag, -err, "the old rules stay",
				      "cannot enter the network namespace of instance '%s', to evaluate packets of "
				      "another direction",
				      instance->name);
	for (size_t i = 0; !err && i < instance->link_count; i++)
		for (int is_out = 0; !err && is_out < 2; is_out++)
			if (lacks(instance, terms, i, is_out))
				err = weir_instance_put_other(terms, &instance->links[i], is_out, diag);
	if (err)
		remove_put(instance, terms);
	return err;
}

/* Replace the program on all links that have a new one, or on none. */
static int swap(const struct weir_instance *instance, const int program_fd[WEIR_HOOKS], struct weir_old_program *old,
		struct weir_diag *diag)
{
	size_t done = 0;
	int err = 0;

	for (; !err && done < instance->link_count; done += !err) {
		const struct weir_link *link = &instance->links[done];

		if (!link->ifindex || program_fd[link->hook] < 0)
			continue;
		err = weir_link_update(instance->name, link, program_fd[link->hook]);
		if (err)
			weir_diag_fail(diag, -err, "the old rules stay", "cannot replace the program on '%s'",
				       link->interface);
	}
	/* This is the same call as the one that has just succeeded, in the other direction. */
	while (err && done--) {
		const struct weir_link *link = &instance->links[done];

		if (link->ifindex && program_fd[link->hook] >= 0)
			weir_link_update(instance->name, link, find_program(old, link->program_id)->fd);
	}
	return err;
}

int weir_instance_swap_links(const struct weir_instance *instance, const struct weir_link_terms *terms,
			     struct weir_old_program *old, struct weir_diag *diag)
{
	int err = put_lacking(instance, terms, diag);

	if (err)
		return err;
	warn_of_gone(instance, diag);
	err = swap(instance, terms->program_fd, old, diag);
	if (err)
		remove_put(instance, terms);
	for (size_t i = 0; !err && i < instance->link_count; i++) {
		char pin[WEIR_LINK_PIN_BYTES];

		if (terms->program_fd[instance->links[i].hook] >= 0)
			continue;
		weir_link_pin(&instance->links[i], pin);
		weir_link_remove(instance->name, pin);
	}
	return err;
}
