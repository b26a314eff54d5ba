/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What BPF's operations and branches do, for interpreters in tests. Asserts (cmocka) that it knows what it meets.
 * Written apart from user/lib/core/fold/propagate.c, which computes the same: these interpreters check it.
 */
#ifndef WEIR_TEST_ALU_H
#define WEIR_TEST_ALU_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* a: the destination, b: the second operand. */
uint64_t alu_compute(const struct bpf_insn *insn, uint64_t a, uint64_t b);
bool alu_jumps(const struct bpf_insn *insn, uint64_t a, uint64_t b);

#endif
