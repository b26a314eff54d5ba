// SPDX-License-Identifier: GPL-2.0-only
#include "program/connection_totals.h"

#include <bpf/bpf.h>
#include <errno.h>

int weir_connections_read_rule(int totals_fd, uint32_t slot, const struct weir_connection_clock *clock,
			       struct weir_connection_figures *ret_figures)
{
	struct weir_connection_flow total;

	if (bpf_map_lookup_elem(totals_fd, &slot, &total) < 0)
		return -errno;
	weir_connection_figures(&total, WEIR_CONNECTION_LONE_TAG, clock, ret_figures);
	return 0;
}
