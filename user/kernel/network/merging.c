// SPDX-License-Identifier: GPL-2.0-only
#include "network/merging.h"

#include <linux/ethtool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "network/features.h"
#include "network/stack.h"

static const char *offload_of(int fd, const char *name)
{
	struct ethtool_value gro = {.cmd = ETHTOOL_GGRO}, flags = {.cmd = ETHTOOL_GFLAGS};

	if (weir_ethtool_ask(fd, name, &flags) && flags.data & ETH_FLAG_LRO)
		return "lro";
	if (weir_feature_is_on(fd, name, "rx-gro-hw"))
		return "rx-gro-hw";
	return weir_ethtool_ask(fd, name, &gro) && gro.data ? "gro" : NULL;
}

/* Examines the interfaces at the bottom, where packets arrive. Nothing is merged on the way through the host itself. */
bool weir_merging_find(const char *name, uint32_t ifindex, struct weir_merging *ret_merging)
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	_cleanup_(weir_stack_free) struct weir_stack stack = {};

	if (fd < 0)
		return false;
	weir_stack_read(name, ifindex, &stack);
	for (size_t i = 0; i < stack.bottom_count; i++) {
		const struct weir_stacked *bottom = &stack.bottoms[i];
		const char *offload = bottom->kind == WEIR_LINK_LOOPBACK ? NULL : offload_of(fd, bottom->name);

		if (!offload)
			continue;
		ret_merging->offload = offload;
		ret_merging->is_fixed =
			!strcmp(offload, "rx-gro-hw") && !weir_feature_can_change(fd, bottom->name, offload);
		memcpy(ret_merging->interface, bottom->name, sizeof(ret_merging->interface));
		return true;
	}
	return false;
}
