// SPDX-License-Identifier: GPL-2.0-only
#include "network/hardware.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "host/host.h"
#include "host/names.h"

#define CPUS_MAX 4096 /* Linux can be built for twice as many; no such machine is known */

struct cpus {
	bool has[CPUS_MAX];
};

static uint32_t count_cpus(const struct cpus *cpus, uint32_t *ret_last)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CPUS_MAX; i++) {
		count += cpus->has[i];
		if (cpus->has[i])
			*ret_last = i;
	}
	return count;
}

/* ---- virtio (Virtual I/O Device 1.2, 5.1.3) ---- */

/* Offloads with which the host merges several packets into one, or leaves out checksums that are still to be computed.
 */
#define GUEST_OFFLOADS                                                                                                 \
	{                                                                                                              \
		1, 7, 8, 9, 10, 54, 55                                                                                 \
	} /* CSUM, TSO4, TSO6, ECN, UFO, USO4, USO6 */
#define CTRL_GUEST_OFFLOADS 2

/* With these offloads on, the driver refuses XDP (virtnet_xdp_set: EOPNOTSUPP), unless it has permission to turn them
 * off: then it does so by itself.
 */
static bool keeps_merging(const char *root, const char *name)
{
	static const int offloads[] = GUEST_OFFLOADS;
	char path[PATH_MAX], bits[256];

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/features", root, name);
	/* '0' or '1' for each feature, starting with number 0. Other buses have no such file. */
	if (weir_host_read_text(path, bits, sizeof(bits)) || strspn(bits, "01") < 64 ||
	    bits[CTRL_GUEST_OFFLOADS] == '1')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(offloads); i++)
		if (bits[offloads[i]] == '1')
			return true;
	return false;
}

/* ---- interrupts ---- */

/* "0-3,8" */
static void add_list(const char *list, struct cpus *cpus)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end == list)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++)
			cpus->has[cpu] = true;
		list = *end == ',' ? end + 1 : "";
	}
}

/* Recognised by the names that drivers use: "eth0-TxRx-3", "virtio2-input.0", "mlx5_comp4@pci:...". Other interrupts do
 * not matter.
 */
static bool is_receive_interrupt(const char *action)
{
	if (strcasestr(action, "rx"))
		return true;
	return !strcasestr(action, "tx") && !strcasestr(action, "output") && !strcasestr(action, "config") &&
	       !strcasestr(action, "async") && !strcasestr(action, "mgmnt");
}

/* An interrupt in use has an action. The action's directory is among the files that all interrupts have. */
static bool is_for_receiving(const char *root, const char *number)
{
	_cleanup_(weir_names_free) struct weir_names names = {};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/irq/%s", root, number);
	if (weir_names_read(path, &names))
		return false;
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(weir_names_free) struct weir_names inside = {};

		snprintf(path, sizeof(path), "%s/proc/irq/%s/%s", root, number, names.names[i]);
		if (!weir_names_read(path, &inside) && is_receive_interrupt(names.names[i]))
			return true;
	}
	return false;
}

static void read_affinity(const char *root, const char *number, struct cpus *cpus)
{
	static const char *const files[] = {"effective_affinity_list", "smp_affinity_list"};
	char path[PATH_MAX], list[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/proc/irq/%s/%s", root, number, files[i]);
		if (!weir_host_read_text(path, list, sizeof(list)) && list[0] >= '0' && list[0] <= '9') {
			add_list(list, cpus);
			return;
		}
	}
}

/* The interrupts of the device, or of the device that carries it (virtio's PCI function). */
static void read_interrupts(const char *root, const char *name, struct weir_hardware *hardware)
{
	_cleanup_(weir_names_free) struct weir_names numbers = {};
	struct cpus cpus = {};
	char path[PATH_MAX], ignored[256];
	bool is_virtio;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/features", root, name);
	is_virtio = !weir_host_read_text(path, ignored, sizeof(ignored));
	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device%s/msi_irqs", root, name, is_virtio ? "/.." : "");
	if (weir_names_read(path, &numbers))
		return;
	for (size_t i = 0; i < numbers.count; i++) {
		if (!is_for_receiving(root, numbers.names[i]))
			continue;
		hardware->interrupts++;
		read_affinity(root, numbers.names[i], &cpus);
	}
	hardware->interrupt_cpus = count_cpus(&cpus, &hardware->last_cpu);
}

/* ---- RPS ---- */

/* "00000000,0000000c": words of 32 CPUs each, highest first. */
static void add_mask(const char *mask, struct cpus *cpus)
{
	uint32_t cpu = 0;

	for (size_t i = strlen(mask); i--;) {
		char digit[] = {mask[i], '\0'};

		if (!strchr("0123456789abcdef", mask[i]))
			continue;
		for (unsigned long bits = strtoul(digit, NULL, 16), bit = 0; bit < 4; bit++, cpu++)
			if (bits >> bit & 1 && cpu < CPUS_MAX)
				cpus->has[cpu] = true;
	}
}

static void read_rps(const char *root, const char *name, struct weir_hardware *hardware)
{
	_cleanup_(weir_names_free) struct weir_names queues = {};
	struct cpus cpus = {};
	char path[PATH_MAX], mask[1024];
	uint32_t ignored;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/queues", root, name);
	if (weir_names_read(path, &queues))
		return;
	for (size_t i = 0; i < queues.count; i++) {
		snprintf(path, sizeof(path), "%s/sys/class/net/%s/queues/%s/rps_cpus", root, name, queues.names[i]);
		if (!weir_host_read_text(path, mask, sizeof(mask)))
			add_mask(mask, &cpus);
	}
	hardware->rps_cpus = count_cpus(&cpus, &ignored);
}

/* ---- the contract ---- */

/* In another namespace that name may belong to another interface. It is unlikely that two namespaces have the same name
 * with the same index.
 */
static bool is_shown(const char *root, const char *name, uint32_t ifindex)
{
	char path[PATH_MAX], number[16];

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/ifindex", root, name);
	return !weir_host_read_text(path, number, sizeof(number)) && strtoul(number, NULL, 10) == ifindex;
}

void weir_hardware_read(const char *root, const char *name, uint32_t ifindex, struct weir_hardware *ret_hardware)
{
	struct weir_hardware hardware = {.is_known = is_shown(root, name, ifindex)};

	if (hardware.is_known) {
		hardware.keeps_merging = keeps_merging(root, name);
		read_interrupts(root, name, &hardware);
		read_rps(root, name, &hardware);
	}
	*ret_hardware = hardware;
}
