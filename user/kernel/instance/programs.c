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
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

	weir_instance_option(instance->name, option);
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];

		if (link->ifindex || weir_hook_is_out(link->hook) || is_lost(link, losses, count))
			continue;
		snprintf(hint, sizeof(hint), "'weir detach%s -i %s' forgets it", option, link->interface);
		weir_diag_warning(diag, NULL, NULL, hint, "interface '%s' is gone, and its limits with it",
				  link->interface);
	}
}

/* The interface has no link for outgoing packets: the new rules evaluate them, but the old ones do not. */
static bool lacks_out(const struct weir_instance *instance, const struct weir_link *in)
{
	return !weir_hook_is_out(in->hook) && in->ifindex && !weir_instance_link_on(instance, in->ifindex, true);
}

static bool is_any_without_out(const struct weir_instance *instance)
{
	for (size_t i = 0; i < instance->link_count; i++)
		if (lacks_out(instance, &instance->links[i]))
			return true;
	return false;
}

static void remove_out(const struct weir_instance *instance, const struct weir_link *in)
{
	struct weir_link out = *in;
	char pin[WEIR_LINK_PIN_BYTES];

	out.hook = weir_hook_at_tc(true, in->hook == WEIR_HOOK_TC_BARE_IN);
	out.is_native = false;
	for (int is_filter = 0; is_filter < 2; is_filter++) {
		out.is_filter = is_filter;
		weir_link_pin(&out, pin);
		weir_link_remove(instance->name, pin);
	}
}

/* Called before existing programs are replaced, because it can fail. If a link refuses, all of these are removed again.
 */
static int put_out(const struct weir_instance *instance, const int program_fd[WEIR_HOOKS], struct weir_diag *diag)
{
	struct weir_link_terms terms = {.instance = instance->name};
	_cleanup_(weir_netns_leave) int back_fd = -1;
	size_t done = 0;
	int err = 0;

	memcpy(terms.program_fd, program_fd, sizeof(terms.program_fd));
	if (program_fd[WEIR_HOOK_TC_OUT] < 0 || !is_any_without_out(instance))
		return 0;
	err = weir_netns_enter(instance->info.netns, &back_fd);
	if (err)
		return weir_diag_fail(
			diag, -err, "the old rules stay",
			"cannot enter the network namespace of instance '%s', to evaluate outgoing packets",
			instance->name);
	for (; !err && done < instance->link_count; done += !err)
		if (lacks_out(instance, &instance->links[done]))
			err = weir_instance_put_out(&terms, &instance->links[done], diag);
	while (err && done--)
		if (lacks_out(instance, &instance->links[done]))
			remove_out(instance, &instance->links[done]);
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

int weir_instance_swap_links(const struct weir_instance *instance, const int program_fd[WEIR_HOOKS],
			     struct weir_old_program *old, struct weir_diag *diag)
{
	int err = put_out(instance, program_fd, diag);

	if (err)
		return err;
	warn_of_gone(instance, diag);
	err = swap(instance, program_fd, old, diag);
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		char pin[WEIR_LINK_PIN_BYTES];

		if (err && lacks_out(instance, link))
			remove_out(instance, link);
		if (err || !weir_hook_is_out(link->hook) || program_fd[link->hook] >= 0)
			continue;
		weir_link_pin(link, pin);
		weir_link_remove(instance->name, pin);
	}
	return err;
}
