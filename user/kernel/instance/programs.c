// SPDX-License-Identifier: GPL-2.0-only
/* Which programs are on an instance's links, and putting another one there, on all of them or on none. */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/util.h"

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

/* By its pin, or that of a reload that was cut short; by its number, which takes CAP_SYS_ADMIN, where another version
 * has pinned none. Returns a descriptor or -errno.
 */
static int open_program(const char *instance, uint32_t id)
{
	int fds[] = {weir_pin_open(instance, WEIR_PIN_PROGRAM), weir_pin_open_new(instance, WEIR_PIN_PROGRAM),
		     weir_pin_open(instance, WEIR_PIN_GUARD)};
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

int weir_instance_open_programs(const struct weir_instance *instance, struct weir_old_program **ret_programs,
				struct weir_diag *diag)
{
	_cleanup_(weir_old_programs_free) struct weir_old_program *programs =
		calloc(instance->link_count + 1, sizeof(*programs));

	if (!programs)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reload instance '%s'", instance->name);
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		struct weir_old_program *program = find_program(programs, link->program_id);

		if (!link->ifindex || program->id)
			continue;
		program->fd = open_program(instance->name, link->program_id);
		if (program->fd < 0)
			return weir_diag_fail(diag, -program->fd, "the old rules stay",
					      "cannot open the program on '%s'", link->interface);
		program->id = link->program_id;
	}
	*ret_programs = TAKE_PTR(programs);
	return 0;
}

/* Its descriptor is not kept: there may be more interfaces than a process may have descriptors. */
static int swap_link(const struct weir_instance *instance, const struct weir_link *link, int program_fd)
{
	_cleanup_(weir_closep) int fd = -1;
	char pin[WEIR_LINK_PIN_BYTES];

	weir_link_pin(link->attached_as, link->is_native, pin);
	fd = weir_pin_open(instance->name, pin);
	if (fd < 0)
		return fd;
	return bpf_link_update(fd, program_fd, NULL) ? -errno : 0;
}

static void warn_gone(const struct weir_instance *instance, const struct weir_link *link, struct weir_diag *diag)
{
	char hint[128], option[WEIR_INSTANCE_OPTION_BYTES];

	snprintf(hint, sizeof(hint), "'weir detach%s -i %s' forgets it", weir_instance_option(instance->name, option),
		 link->interface);
	weir_diag_warning(diag, NULL, NULL, hint, "interface '%s' is gone, and its limits with it", link->interface);
}

int weir_instance_swap_links(const struct weir_instance *instance, int program_fd, struct weir_old_program *old,
			     struct weir_diag *diag)
{
	size_t done = 0;
	int err = 0;

	for (; !err && done < instance->link_count; done += !err) {
		const struct weir_link *link = &instance->links[done];

		if (!link->ifindex) {
			warn_gone(instance, link, diag);
			continue;
		}
		err = swap_link(instance, link, program_fd);
		if (err)
			weir_diag_fail(diag, -err, "the old rules stay", "cannot replace the program on '%s'",
				       link->interface);
	}
	/* The same call that has just worked the other way round. */
	while (err && done--)
		if (instance->links[done].ifindex)
			swap_link(instance, &instance->links[done],
				  find_program(old, instance->links[done].program_id)->fd);
	return err;
}
