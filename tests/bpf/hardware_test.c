// SPDX-License-Identifier: GPL-2.0-only
/* What /sys and /proc say of hardware that is not here: each test makes a tree as the kernel would show it. */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "network/device.h"

#define IFINDEX 7

static char root[] = "/tmp/weir-hardware-XXXXXX";

/* A file of the tree, and the directories that it is in. NULL: only those. */
static void make(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	if (!text)
		return;
	file = fopen(full, "we");
	assert_non_null(file);
	fprintf(file, "%s\n", text);
	fclose(file);
}

static void make_interrupt(const char *directory, int number, const char *action, const char *cpus)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d", directory, number);
	make(path, "msix");
	snprintf(path, sizeof(path), "proc/irq/%d/effective_affinity_list", number);
	make(path, cpus);
	snprintf(path, sizeof(path), "proc/irq/%d/%s/", number, action);
	make(path, NULL);
}

static int begin(void **state)
{
	strcpy(strrchr(root, '-') + 1, "XXXXXX");
	if (!mkdtemp(root))
		return -1;
	make("sys/class/net/eth9/ifindex", "7");
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	return remove(path);
}

static int end(void **state)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct weir_hardware read_all(void)
{
	struct weir_hardware hardware;

	weir_hardware_read(root, "eth9", IFINDEX, &hardware);
	return hardware;
}

/* ---- claims ---- */

CLAIM_WITHIN(interface_of_another_namespace_is_not_taken_for_ours, begin, end)
{
	struct weir_hardware hardware;

	make_interrupt("sys/class/net/eth9/device/msi_irqs", 40, "eth9-rx-0", "1");
	weir_hardware_read(root, "eth9", IFINDEX + 1, &hardware);
	assert_false(hardware.is_known);
	assert_int_equal(hardware.interrupts, 0);
	weir_hardware_read(root, "eth8", IFINDEX, &hardware);
	assert_false(hardware.is_known);
}

CLAIM_WITHIN(interrupts_of_four_queues_on_one_cpu_are_one_cpu, begin, end)
{
	const char *const where = "sys/class/net/eth9/device/msi_irqs";

	make_interrupt(where, 40, "eth9-TxRx-0", "3");
	make_interrupt(where, 41, "eth9-TxRx-1", "3");
	make_interrupt(where, 42, "eth9-TxRx-2", "3");
	make_interrupt(where, 43, "eth9-TxRx-3", "3");
	assert_int_equal(read_all().interrupts, 4);
	assert_int_equal(read_all().interrupt_cpus, 1);
	assert_int_equal(read_all().last_cpu, 3);
	make_interrupt(where, 43, "eth9-TxRx-3", "0-1,8");
	assert_int_equal(read_all().interrupt_cpus, 4);
	assert_int_equal(read_all().last_cpu, 8);
}

CLAIM_WITHIN(interrupts_that_only_send_or_manage_do_not_count, begin, end)
{
	const char *const where = "sys/class/net/eth9/device/msi_irqs";

	make_interrupt(where, 40, "eth9-rx-0", "2");
	make_interrupt(where, 41, "eth9-tx-0", "5");
	make_interrupt(where, 42, "eth9-config", "6");
	make("sys/class/net/eth9/device/msi_irqs/43", "msix"); /* nobody has asked for this one */
	make("proc/irq/43/effective_affinity_list", "7");
	assert_int_equal(read_all().interrupts, 1);
	assert_int_equal(read_all().interrupt_cpus, 1);
	assert_int_equal(read_all().last_cpu, 2);
}

/* The device is virtio's; interrupts are those of the PCI function that carries it. */
CLAIM_WITHIN(virtio_s_interrupts_are_found_one_level_up, begin, end)
{
	char target[PATH_MAX], path[PATH_MAX];

	make("sys/pci/virtio2/features", "0000000000000000000000000000000000000000000000000000000000000000");
	snprintf(target, sizeof(target), "%s/sys/pci/virtio2", root);
	snprintf(path, sizeof(path), "%s/sys/class/net/eth9/device", root);
	assert_int_equal(symlink(target, path), 0);
	make_interrupt("sys/pci/msi_irqs", 38, "virtio2-input.0", "1");
	make_interrupt("sys/pci/msi_irqs", 39, "virtio2-output.0", "0");
	assert_int_equal(read_all().interrupts, 1);
	assert_int_equal(read_all().last_cpu, 1);
}

/* Bit 2 is the right to turn offloads off, bit 7 TCP segments of IPv4 merged. */
CLAIM_WITHIN(virtio_refuses_only_what_it_cannot_turn_off, begin, end)
{
	char bits[] = "0000010100000000000000000000000010000000000000000000000000000000";

	make("sys/class/net/eth9/device/features", bits);
	assert_true(read_all().keeps_merging);
	bits[2] = '1';
	make("sys/class/net/eth9/device/features", bits);
	assert_false(read_all().keeps_merging);
	bits[2] = bits[7] = '0';
	make("sys/class/net/eth9/device/features", bits);
	assert_false(read_all().keeps_merging);
	bits[1] = '1'; /* checksums that are still to be made */
	make("sys/class/net/eth9/device/features", bits);
	assert_true(read_all().keeps_merging);
	make("sys/class/net/eth9/device/features", "0x1f"); /* of some other bus */
	assert_false(read_all().keeps_merging);
}

CLAIM_WITHIN(rps_counts_the_cpus_of_all_queues, begin, end)
{
	make("sys/class/net/eth9/queues/rx-0/rps_cpus", "00000000,00000000");
	make("sys/class/net/eth9/queues/tx-0/xps_cpus", "00000000,ffffffff");
	assert_int_equal(read_all().rps_cpus, 0);
	make("sys/class/net/eth9/queues/rx-0/rps_cpus", "00000001,00000003");
	make("sys/class/net/eth9/queues/rx-1/rps_cpus", "00000001,00000006");
	assert_int_equal(read_all().rps_cpus, 4);
}

RUN_CLAIMS(NULL, NULL)
