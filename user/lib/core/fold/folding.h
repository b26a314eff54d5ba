/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the steps of weir_fold() share: code that is understood, and what is known of each instruction.
 */
#ifndef WEIR_FOLD_FOLDING_H
#define WEIR_FOLD_FOLDING_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "fold/fold.h"

/* ---- what a register holds, as far as this is the same for every packet ---- */

#define WEIR_REGISTERS 11

enum weir_value_kind {
	WEIR_VALUE_UNKNOWN,
	WEIR_VALUE_NUMBER,
	WEIR_VALUE_CONSTANTS, /* an address in the constants: the number is the offset */
	WEIR_VALUE_STACK,     /* an address in the function's stack: the number is the offset from its end */
};

struct weir_value {
	enum weir_value_kind kind;
	uint64_t number;
};

static inline bool weir_is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static inline bool weir_is_alu(const struct bpf_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_ALU || BPF_CLASS(insn->code) == BPF_ALU64;
}

/* A jump that may be taken or not. */
static inline bool weir_is_branch(const struct bpf_insn *insn)
{
	const uint8_t class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_JA && op != BPF_CALL && op != BPF_EXIT;
}

static inline bool weir_is_jump(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JA);
}

static inline bool weir_is_exit(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_EXIT);
}

static inline bool weir_is_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL);
}

/* A call of a function of the program. */
static inline bool weir_is_own_call(const struct bpf_insn *insn)
{
	return weir_is_call(insn) && insn->src_reg == BPF_PSEUDO_CALL;
}

static inline bool weir_is_same_value(const struct weir_value *a, const struct weir_value *b)
{
	return a->kind == b->kind && a->number == b->number;
}

/* What the instruction leaves in its destination, given the registers before it. Unknown for whatever is not a load or
 * an operation.
 */
struct weir_value weir_value_after(const struct bpf_insn *insn, const struct weir_value *registers,
				   const struct weir_constants *constants);

/* 1: the branch is always taken, 0: never, -1: it depends on the packet. */
int weir_value_decides(const struct bpf_insn *insn, const struct weir_value *registers);

/* ---- what the steps share ---- */

struct weir_folding {
	struct weir_code *code;
	const struct weir_constants *constants;
	/* By position. */
	uint8_t *size;	       /* how many positions the instruction keeps; 0: nobody reaches it, or it goes */
	bool *is_removable;    /* it does nothing but write its destination */
	uint16_t *live;	       /* bits of the registers that are read from here on before they are written */
	uint32_t *state_at;    /* 1 + the number of its state; 0: none, as it is reached from the one before it only */
	uint32_t *function_at; /* 1 + the number of the function that begins here; 0: none */
	uint32_t *moved_to;    /* where what stays from here on begins afterwards; it has one more than the others */
	uint32_t *waiting;     /* positions whose state has changed */
	uint32_t waiting_count;
	struct weir_state *states;
	uint32_t state_count;
};

/* propagate.c: mark what is reached, and write what is known about it into the instructions. */
void weir_fold_propagate(struct weir_folding *folding);

struct weir_state {
	struct weir_value registers[WEIR_REGISTERS];
	bool is_reached, is_waiting;
};

static inline uint32_t weir_jump_target(const struct bpf_insn *insn, uint32_t at)
{
	return at + 1 + insn->off;
}

static inline uint32_t weir_call_target(const struct bpf_insn *insn, uint32_t at)
{
	return at + 1 + insn->imm;
}

#endif
