// SPDX-License-Identifier: GPL-2.0-only
#include "sandbox/sandbox_program.h"

#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "program/maps.h"

/* Room for the flows of one packet; rounded up to one chunk of rows. */
#define SANDBOX_FLOWS_PER_CPU 512
#define SANDBOX_CONNECTIONS 1024

/* The smallest possible tables, enough for one packet. */
static int build_image(const struct weir_ruleset *ruleset, uint32_t fields, struct weir_sandbox_program *program,
		       struct weir_diag *diag)
{
	const int cpus = weir_host_cpus();
	struct weir_compile_options options = {
		.cpus = cpus,
		.now_ns = program->now_ns,
		.ifindex = weir_host_find_ifindex,
	};
	/* The sandbox has one chunk of each format (weir_object_copy()). */
	static const struct {
		enum weir_table_id table;
		uint32_t sets_max;
	} rows[] = {
		{WEIR_TABLE_NARROW_FLOWS, WEIR_NARROW_SETS_PER_CHUNK},
		{WEIR_TABLE_MEDIUM_FLOWS, WEIR_MEDIUM_SETS_PER_CHUNK},
		{WEIR_TABLE_WIDE_FLOWS, WEIR_WIDE_SETS_PER_CHUNK},
	};
	struct weir_ruleset small = *ruleset;
	struct weir_config *config;
	int err;

	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot find out how many CPUs there are");
	small.settings.flows_per_cpu = SANDBOX_FLOWS_PER_CPU;
	small.settings.connections = SANDBOX_CONNECTIONS;
	small.settings.connection_flows = SANDBOX_CONNECTIONS;
	err = weir_image_build(&small, &options, &program->image, diag);
	if (err)
		return err;
	err = weir_image_add_interfaces(program->image);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot list the interfaces");
	config = &program->image->config;
	program->asked_fields = config->match_fields;
	if (config->match_fields & ~fields) {
		/* By fewer fields a packet may meet more rules than the file allows. */
		config->match_fields &= fields;
		config->packet_rules = WEIR_PACKET_RULES_MAX;
		config->packet_resources = WEIR_PACKET_RESOURCES_MAX;
		config->asks_out_of_line = true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (config->sizes[rows[i].table] > rows[i].sets_max)
			config->sizes[rows[i].table] = rows[i].sets_max;
	return 0;
}

int weir_sandbox_program_open(const struct weir_ruleset *ruleset, uint32_t fields,
			      struct weir_sandbox_program *ret_program, struct weir_diag *diag)
{
	_cleanup_(weir_sandbox_program_close) struct weir_sandbox_program program = {.now_ns = weir_host_now_ns()};
	const struct weir_object_options options = {
		.is_virtual = true,
		.now_ns = program.now_ns,
		.without_shortcuts = WEIR_SHORTCUTS_ALL,
	};
	int err = build_image(ruleset, fields, &program, diag);

	if (err)
		return err;
	err = weir_object_load(program.image, &options, &program.object, diag);
	if (err)
		return err == -EINVAL ? -EIO : err; /* the kernel refuses it, which is not a mistake in the rules */
	*ret_program = program;
	program = (struct weir_sandbox_program){};
	return 0;
}

void weir_sandbox_program_close(struct weir_sandbox_program *program)
{
	weir_object_free(program->object);
	weir_image_free(program->image);
	*program = (struct weir_sandbox_program){};
}

int weir_sandbox_program_stay(struct weir_sandbox_program *program)
{
	const int cpu = sched_getcpu();
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	return sched_getaffinity(0, sizeof(program->before), &program->before) ||
			       sched_setaffinity(0, sizeof(here), &here)
		       ? -errno
		       : 0;
}

void weir_sandbox_program_leave(const struct weir_sandbox_program *program)
{
	sched_setaffinity(0, sizeof(program->before), &program->before);
}
