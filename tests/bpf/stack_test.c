// SPDX-License-Identifier: GPL-2.0-only
/*
 * The deepest chain of calls fits the stack that Linux 6.1 grants: 512 bytes, and each function counts for a multiple
 * of 32 (check_max_stack_depth in kernel/bpf/verifier.c). Newer kernels round to 16, where they compile, and so do not
 * show what no longer loads there. Worked out from the instructions, code that a rule set switches off included: a
 * little more than the kernel finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "../lib/stack.h"
#include "weir_abi.h"
#include "weir.skel.h"

#define STACK_BYTES 512

static void deepest_chain_of_calls_fits_the_stack_of_linux_6_1(void **state)
{
	struct weir_bpf *skeleton;
	size_t functions;
	uint32_t deepest;

	if (geteuid() != 0) {
		print_message("needs root\n");
		skip();
	}
	skeleton = weir_bpf__open_and_load(); /* which puts all functions behind each other */
	assert_non_null(skeleton);
	deepest = stack_deepest(bpf_program__insns(skeleton->progs.weir_ingress),
				bpf_program__insn_cnt(skeleton->progs.weir_ingress), &functions);
	assert_true(functions > 10);
	print_message("%zu functions, the deepest chain takes %u bytes\n", functions, deepest);
	assert_true(deepest <= STACK_BYTES);
	weir_bpf__destroy(skeleton);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deepest_chain_of_calls_fits_the_stack_of_linux_6_1),
	};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
