// SPDX-License-Identifier: GPL-2.0-only
/*
 * hooks IFACE: print the tcx programs of an interface in the order in which they run, a line each: "tcx/ingress NAME
 * ID".
 * Debian 12's bpftool is older than tcx.
 *
 * hooks --hold ingress|egress IFACE: be one of them, which passes everything on, until killed. Prints "ready".
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "network/device.h"
#include "network/tc.h"

#define TCX_INGRESS 46 /* enum bpf_attach_type of Linux 6.6 */
#define PROGRAMS_MAX 64

static void print_programs(uint32_t ifindex, bool is_egress)
{
	__u32 ids[PROGRAMS_MAX] = {}, count = PROGRAMS_MAX;

	if (bpf_prog_query((int)ifindex, (enum bpf_attach_type)(TCX_INGRESS + is_egress), 0, NULL, ids, &count))
		return;
	for (__u32 i = 0; i < count; i++) {
		char name[16];

		weir_program_name(ids[i], name);
		printf("tcx/%s %s %u\n", is_egress ? "egress" : "ingress", name, ids[i]);
	}
}

static int hold(uint32_t ifindex, bool is_egress)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1}, /* TCX_NEXT */
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "other", "GPL", code, sizeof(code) / sizeof(code[0]), NULL);

	if (fd < 0 || weir_tcx_attach(fd, ifindex, is_egress, &(struct weir_tcx_place){}) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	const bool holds = argc == 4 && !strcmp(argv[1], "--hold");
	const uint32_t ifindex = argc > 1 ? if_nametoindex(argv[argc - 1]) : 0;

	if (!ifindex)
		return 2;
	if (holds)
		return hold(ifindex, !strcmp(argv[2], "egress"));
	print_programs(ifindex, false);
	print_programs(ifindex, true);
	return 0;
}
