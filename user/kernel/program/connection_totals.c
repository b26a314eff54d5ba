// SPDX-License-Identifier: GPL-2.0-only
#include "program/connection_totals.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "base/util.h"
#include "host/host.h"

struct weir_connection_fds weir_object_connection_fds(const struct weir_object *object)
{
	return (struct weir_connection_fds){
		.totals = weir_object_map_fd(object, WEIR_TABLE_CONNECTION_TOTALS),
		.lone = weir_object_map_fd(object, WEIR_TABLE_LONE_CONNECTIONS),
	};
}

int weir_connections_read_rule(const struct weir_connection_fds *fds, uint32_t slot,
			       const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures)
{
	_cleanup_(weir_freep) struct weir_connection_total *totals = NULL;
	struct weir_connection_flow lone;
	int cpus = weir_host_cpus();

	if (cpus < 0)
		return cpus;
	totals = calloc(cpus, sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fds->lone, &slot, &lone) < 0 || bpf_map_lookup_elem(fds->totals, &slot, totals) < 0)
		return -errno;
	weir_connection_rule_figures(totals, cpus, &lone, clock, ret_figures);
	return 0;
}
