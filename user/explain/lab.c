// SPDX-License-Identifier: GPL-2.0-only
#include "explain/lab.h"

#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "program/interface_map.h"

/* Room for the flows of one packet; rounded up to a chunk of rows. */
#define LAB_FLOWS_PER_CPU 512
#define LAB_CONNECTIONS 1024

/* The sandbox has one chunk of each format (weir_object_copy()). */
static void limit_sets(struct weir_config *config)
{
	if (config->sizes[WEIR_TABLE_NARROW_FLOWS] > WEIR_NARROW_SETS_PER_CHUNK)
		config->sizes[WEIR_TABLE_NARROW_FLOWS] = WEIR_NARROW_SETS_PER_CHUNK;
	if (config->sizes[WEIR_TABLE_MEDIUM_FLOWS] > WEIR_MEDIUM_SETS_PER_CHUNK)
		config->sizes[WEIR_TABLE_MEDIUM_FLOWS] = WEIR_MEDIUM_SETS_PER_CHUNK;
	if (config->sizes[WEIR_TABLE_WIDE_FLOWS] > WEIR_WIDE_SETS_PER_CHUNK)
		config->sizes[WEIR_TABLE_WIDE_FLOWS] = WEIR_WIDE_SETS_PER_CHUNK;
}

/* Match by these fields alone: then more may meet on a packet than the file allows. */
static void limit_fields(struct weir_config *config, uint32_t fields)
{
	if (!(config->match_fields & ~fields))
		return;
	config->match_fields &= fields;
	config->packet_rules = WEIR_PACKET_RULES_MAX;
	config->packet_resources = WEIR_PACKET_RESOURCES_MAX;
	config->asks_out_of_line = true;
}

/* Tables for one packet: the smallest there are. */
static int build_image(const struct weir_ruleset *ruleset, uint32_t fields, struct weir_lab_program *lab,
		       struct weir_diag *diag)
{
	const int cpus = weir_host_cpus();
	struct weir_compile_options options = {
		.cpus = cpus,
		.now_ns = lab->now_ns,
		.ifindex = weir_host_find_ifindex,
	};
	struct weir_ruleset small = *ruleset;
	int err;

	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot tell how many CPUs there are");
	small.settings.flows_per_cpu = LAB_FLOWS_PER_CPU;
	small.settings.connections = LAB_CONNECTIONS;
	small.settings.connection_flows = LAB_CONNECTIONS;
	err = weir_image_build(&small, &options, &lab->image, diag);
	if (err)
		return err;
	err = weir_image_add_interfaces(lab->image);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot list the interfaces");
	lab->asked_fields = lab->image->config.match_fields;
	limit_fields(&lab->image->config, fields);
	limit_sets(&lab->image->config);
	return 0;
}

int weir_lab_open(const struct weir_ruleset *ruleset, uint32_t fields, struct weir_lab_program *ret_lab,
		  struct weir_diag *diag)
{
	_cleanup_(weir_lab_close) struct weir_lab_program lab = {.now_ns = weir_host_now_ns()};
	const struct weir_object_options options = {
		.is_virtual = true,
		.now_ns = lab.now_ns,
		.without_shortcuts = WEIR_SHORTCUTS_ALL,
	};
	int err = build_image(ruleset, fields, &lab, diag);

	if (err)
		return err;
	err = weir_object_load(lab.image, &options, &lab.object, diag);
	if (err)
		return err == -EINVAL ? -EIO : err; /* the kernel's opinion, not a mistake in the rules */
	*ret_lab = lab;
	lab = (struct weir_lab_program){};
	return 0;
}

void weir_lab_close(struct weir_lab_program *lab)
{
	weir_object_free(lab->object);
	weir_image_free(lab->image);
	*lab = (struct weir_lab_program){};
}

int weir_lab_stay(struct weir_lab_program *lab)
{
	const int cpu = sched_getcpu();
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	return sched_getaffinity(0, sizeof(lab->before), &lab->before) || sched_setaffinity(0, sizeof(here), &here)
		       ? -errno
		       : 0;
}

void weir_lab_leave(const struct weir_lab_program *lab)
{
	sched_setaffinity(0, sizeof(lab->before), &lab->before);
}
