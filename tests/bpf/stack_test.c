// SPDX-License-Identifier: GPL-2.0-only
/*
 * The deepest chain of calls fits the stack that Linux 6.1 grants: 512 bytes, and each function counts for a multiple
 * of 32 (check_max_stack_depth in kernel/bpf/verifier.c). Newer kernels round to 16, where they compile, and so do not
 * show what no longer loads there. Worked out from the instructions, code that a rule set switches off included: a
 * little more than the kernel finds.
 */
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/stack.h"
#include "weir_abi.h"
#include "weir.skel.h"
#include "weir_tc.skel.h"

#define STACK_BYTES 512

static void require_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("needs root\n");
	skip();
}

static void assert_fits(const struct bpf_program *program)
{
	size_t functions;
	uint32_t deepest = stack_deepest(bpf_program__insns(program), bpf_program__insn_cnt(program), &functions);

	assert_true(functions > 10);
	print_message("%s: %zu functions, the deepest chain takes %u bytes\n", bpf_program__name(program), functions,
		      deepest);
	assert_true(deepest <= STACK_BYTES);
}

CLAIM(deepest_chain_of_calls_fits_the_stack_of_linux_6_1)
{
	struct weir_bpf *skeleton;

	require_root();
	skeleton = weir_bpf__open_and_load(); /* which puts all functions behind each other */
	assert_non_null(skeleton);
	assert_fits(skeleton->progs.weir_ingress);
	weir_bpf__destroy(skeleton);
}

CLAIM(so_do_those_at_tc)
{
	struct weir_tc_bpf *skeleton;

	require_root();
	skeleton = weir_tc_bpf__open_and_load();
	assert_non_null(skeleton);
	assert_fits(skeleton->progs.weir_tc_in);
	assert_fits(skeleton->progs.weir_tc_out);
	assert_fits(skeleton->progs.weir_tc_bare_in);
	assert_fits(skeleton->progs.weir_tc_bare_out);
	weir_tc_bpf__destroy(skeleton);
}

RUN_CLAIMS(NULL, NULL)
