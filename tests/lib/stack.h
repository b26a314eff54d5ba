/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stack that a program's deepest chain of calls takes as Linux 6.1 counts it: each function for a multiple of 32
 * bytes (check_max_stack_depth in kernel/bpf/verifier.c). Worked out from the instructions: a little more than the
 * kernel finds, which leaves out what it has never reached.
 */
#ifndef WEIR_TEST_STACK_H
#define WEIR_TEST_STACK_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* Calls say by how far the function is away. */
uint32_t stack_deepest(const struct bpf_insn *insns, size_t insn_count, size_t *ret_functions);

#endif
