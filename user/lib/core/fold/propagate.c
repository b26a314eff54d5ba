// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conditional constant propagation: what each register holds at each instruction that some packet can reach, as far as
 * it is the same for all packets. A branch that is decided leads only one way. (Wegman and Zadeck, "Constant
 * Propagation with Conditional Branches", TOPLAS 13(2), 1991; here by blocks, without SSA.)
 */
#include <string.h>

#include "fold/folding.h"

/* ---- values ---- */

static const struct weir_value unknown = {.kind = WEIR_VALUE_UNKNOWN};

static struct weir_value number(uint64_t value)
{
	return (struct weir_value){.kind = WEIR_VALUE_NUMBER, .number = value};
}

static struct weir_value load(const struct bpf_insn *insn, const struct weir_value *from,
			      const struct weir_constants *constants)
{
	static const uint8_t bytes_of[] = {[BPF_W >> 3] = 4, [BPF_H >> 3] = 2, [BPF_B >> 3] = 1, [BPF_DW >> 3] = 8};
	const uint8_t bytes = bytes_of[BPF_SIZE(insn->code) >> 3];
	const uint64_t at = from->number + (int64_t)insn->off;
	union {
		uint8_t b;
		uint16_t h;
		uint32_t w;
		uint64_t dw;
	} loaded;

	if (from->kind != WEIR_VALUE_CONSTANTS || at > constants->size || constants->size - at < bytes)
		return unknown;
	memcpy(&loaded, (const uint8_t *)constants->bytes + at, bytes);
	return number(bytes == 1 ? loaded.b : bytes == 2 ? loaded.h : bytes == 4 ? loaded.w : loaded.dw);
}

/* `a` and `b` are as wide as the operation. False: not an operation that is known here. */
static bool compute(uint8_t op, uint64_t a, uint64_t b, unsigned int bits, uint64_t *ret)
{
	const int64_t is_negative = bits == 32 ? (int32_t)a : (int64_t)a;

	switch (op) {
	case BPF_ADD:
		*ret = a + b;
		return true;
	case BPF_SUB:
		*ret = a - b;
		return true;
	case BPF_MUL:
		*ret = a * b;
		return true;
	case BPF_DIV:
		*ret = b ? a / b : 0;
		return true;
	case BPF_MOD:
		*ret = b ? a % b : a;
		return true;
	case BPF_OR:
		*ret = a | b;
		return true;
	case BPF_AND:
		*ret = a & b;
		return true;
	case BPF_XOR:
		*ret = a ^ b;
		return true;
	case BPF_MOV:
		*ret = b;
		return true;
	case BPF_NEG:
		*ret = -a;
		return true;
	case BPF_LSH:
		*ret = a << (b & (bits - 1));
		return true;
	case BPF_RSH:
		*ret = a >> (b & (bits - 1));
		return true;
	case BPF_ARSH:
		*ret = is_negative >> (b & (bits - 1));
		return true;
	default:
		return false;
	}
}

/* An address and a number, or a number that makes the other one irrelevant. */
static struct weir_value mix(const struct bpf_insn *insn, struct weir_value a, struct weir_value b)
{
	const bool is_long = BPF_CLASS(insn->code) == BPF_ALU64;
	const uint8_t op = BPF_OP(insn->code);

	if ((op == BPF_AND || op == BPF_MUL) && b.kind == WEIR_VALUE_NUMBER && !b.number)
		return number(0);
	if (!is_long || b.kind != WEIR_VALUE_NUMBER || (a.kind != WEIR_VALUE_CONSTANTS && a.kind != WEIR_VALUE_STACK))
		return unknown;
	if (op == BPF_ADD)
		a.number += b.number;
	else if (op == BPF_SUB)
		a.number -= b.number;
	else
		return unknown;
	return a;
}

static struct weir_value operand(const struct bpf_insn *insn, const struct weir_value *registers)
{
	return BPF_SRC(insn->code) == BPF_X ? registers[insn->src_reg] : number((int64_t)insn->imm);
}

static struct weir_value operate(const struct bpf_insn *insn, const struct weir_value *registers)
{
	const bool is_long = BPF_CLASS(insn->code) == BPF_ALU64;
	struct weir_value a = registers[insn->dst_reg], b = operand(insn, registers);
	uint64_t result;

	/* Swaps of bytes; and the operations of newer instruction sets, which have an offset. */
	if (BPF_OP(insn->code) == BPF_END || insn->off)
		return unknown;
	if (BPF_OP(insn->code) == BPF_MOV) {
		if (is_long)
			return b;
		a = number(0);
	} else if (BPF_OP(insn->code) == BPF_NEG) {
		b = number(0);
	}
	if (!is_long)
		b.number = (uint32_t)b.number;
	if (a.kind != WEIR_VALUE_NUMBER || b.kind != WEIR_VALUE_NUMBER)
		return mix(insn, a, b);
	if (!is_long)
		a.number = (uint32_t)a.number;
	if (!compute(BPF_OP(insn->code), a.number, b.number, is_long ? 64 : 32, &result))
		return unknown;
	return number(is_long ? result : (uint32_t)result);
}

struct weir_value weir_value_after(const struct bpf_insn *insn, const struct weir_value *registers,
				   const struct weir_constants *constants)
{
	if (weir_is_wide(insn) && !insn->src_reg)
		return number((uint64_t)(uint32_t)insn[1].imm << 32 | (uint32_t)insn->imm);
	if (weir_is_wide(insn) && insn->src_reg == BPF_PSEUDO_MAP_VALUE && insn->imm == constants->map_fd)
		return (struct weir_value){.kind = WEIR_VALUE_CONSTANTS, .number = (uint32_t)insn[1].imm};
	if (weir_is_wide(insn))
		return unknown;
	if (weir_is_alu(insn))
		return operate(insn, registers);
	if (BPF_CLASS(insn->code) == BPF_LDX && BPF_MODE(insn->code) == BPF_MEM)
		return load(insn, &registers[insn->src_reg], constants);
	return unknown;
}

static bool is_taken(uint8_t op, uint64_t a, uint64_t b, int64_t signed_a, int64_t signed_b)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JSET:
		return a & b;
	case BPF_JSGT:
		return signed_a > signed_b;
	case BPF_JSGE:
		return signed_a >= signed_b;
	case BPF_JSLT:
		return signed_a < signed_b;
	default: /* BPF_JSLE: weir_fold() lets no other pass */
		return signed_a <= signed_b;
	}
}

int weir_value_decides(const struct bpf_insn *insn, const struct weir_value *registers)
{
	const bool is_long = BPF_CLASS(insn->code) == BPF_JMP;
	const struct weir_value a = registers[insn->dst_reg], b = operand(insn, registers);
	const uint8_t op = BPF_OP(insn->code);

	if (a.kind != WEIR_VALUE_NUMBER || b.kind != WEIR_VALUE_NUMBER)
		return -1;
	if (is_long)
		return is_taken(op, a.number, b.number, (int64_t)a.number, (int64_t)b.number);
	return is_taken(op, (uint32_t)a.number, (uint32_t)b.number, (int32_t)a.number, (int32_t)b.number);
}

/* ---- states ---- */

static void wait_for(struct weir_folding *folding, struct weir_state *state, uint32_t at)
{
	if (!state->is_waiting)
		folding->waiting[folding->waiting_count++] = at;
	state->is_waiting = true;
}

/* The instruction is reached with these registers, too. */
static void enter(struct weir_folding *folding, uint32_t at, const struct weir_value *registers)
{
	struct weir_state *state = &folding->states[folding->state_at[at] - 1];

	if (!state->is_reached) {
		memcpy(state->registers, registers, sizeof(state->registers));
		state->is_reached = true;
		wait_for(folding, state, at);
		return;
	}
	for (int i = 0; i < WEIR_REGISTERS; i++) {
		struct weir_value *value = &state->registers[i];

		if (value->kind == WEIR_VALUE_UNKNOWN || weir_is_same_value(value, &registers[i]))
			continue;
		value->kind = WEIR_VALUE_UNKNOWN;
		wait_for(folding, state, at);
	}
}

static void enter_function(struct weir_folding *folding, uint32_t at)
{
	const struct weir_value registers[WEIR_REGISTERS] = {[BPF_REG_10] = {.kind = WEIR_VALUE_STACK}};

	enter(folding, at, registers);
}

static void step(const struct bpf_insn *insn, struct weir_value *registers, const struct weir_constants *constants)
{
	const uint8_t class = BPF_CLASS(insn->code);

	if (weir_is_call(insn)) {
		memset(registers, 0, (BPF_REG_5 + 1) * sizeof(*registers));
	} else if (class == BPF_STX) { /* atomics that fetch write one of the two */
		if (BPF_MODE(insn->code) == BPF_ATOMIC && insn->imm & BPF_FETCH)
			registers[insn->imm == BPF_CMPXCHG ? BPF_REG_0 : insn->src_reg].kind = WEIR_VALUE_UNKNOWN;
	} else if (class != BPF_ST) {
		registers[insn->dst_reg] = weir_value_after(insn, registers, constants);
	}
}

/* ---- instructions ---- */

static bool fits(uint64_t number)
{
	return (int64_t)number == (int32_t)number;
}

/* The instruction with a number in place of its second register, where there is such a one. */
static void use_number(struct bpf_insn *insn, uint64_t number)
{
	const uint8_t class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);
	const bool is_long = class == BPF_ALU64 || class == BPF_JMP;

	if (is_long && !fits(number))
		return;
	if (weir_is_alu(insn)) {
		if (op == BPF_END || insn->off)
			return;
		/* The verifier refuses these two. */
		if ((op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH) && number >= (is_long ? 64 : 32))
			return;
		if ((op == BPF_DIV || op == BPF_MOD) && !(is_long ? number : (uint32_t)number))
			return;
	}
	insn->code &= ~BPF_X;
	insn->src_reg = 0;
	insn->imm = (int32_t)number;
}

/* An operation of 64 bits that leaves its register as it is. (One of 32 bits clears the upper half.) */
static bool does_nothing(const struct bpf_insn *insn)
{
	if (BPF_CLASS(insn->code) != BPF_ALU64 || BPF_SRC(insn->code) != BPF_K || insn->imm)
		return false;
	switch (BPF_OP(insn->code)) {
	case BPF_ADD:
	case BPF_SUB:
	case BPF_OR:
	case BPF_XOR:
	case BPF_LSH:
	case BPF_RSH:
	case BPF_ARSH:
		return true;
	default:
		return false;
	}
}

/* A number that needs more than 32 bits would need a wide instruction; the load is as good. */
static void set_number(struct bpf_insn *insn, uint64_t number)
{
	if (!fits(number) && number != (uint32_t)number)
		return;
	*insn = (struct bpf_insn){
		.code = (fits(number) ? BPF_ALU64 : BPF_ALU) | BPF_MOV | BPF_K,
		.dst_reg = insn->dst_reg,
		.imm = (int32_t)number,
	};
}

static bool is_removable(const struct bpf_insn *insn, const struct weir_value *registers)
{
	const enum weir_value_kind from = registers[insn->src_reg].kind;

	return weir_is_wide(insn) || weir_is_alu(insn) ||
	       (BPF_CLASS(insn->code) == BPF_LDX && (from == WEIR_VALUE_CONSTANTS || from == WEIR_VALUE_STACK));
}

/* Write what is known into the instruction. */
static void rewrite(struct weir_folding *folding, uint32_t at, const struct weir_value *registers)
{
	struct bpf_insn *insn = &folding->code->insns[at];
	const struct weir_value *second = &registers[insn->src_reg];
	const struct weir_value result = weir_value_after(insn, registers, folding->constants);
	const bool has_second = BPF_SRC(insn->code) == BPF_X && second->kind == WEIR_VALUE_NUMBER;

	folding->is_removable[at] = is_removable(insn, registers);
	if (weir_is_branch(insn)) {
		const int decision = weir_value_decides(insn, registers);

		if (decision >= 0)
			*insn = (struct bpf_insn){.code = BPF_JMP | BPF_JA, .off = decision ? insn->off : 0};
		else if (has_second)
			use_number(insn, second->number);
	} else if (result.kind == WEIR_VALUE_NUMBER && !weir_is_wide(insn)) {
		set_number(insn, result.number);
	} else if (weir_is_alu(insn)) {
		if (has_second)
			use_number(insn, second->number);
		if (does_nothing(insn))
			*insn = (struct bpf_insn){.code = BPF_JMP | BPF_JA};
	} else if (BPF_CLASS(insn->code) == BPF_STX && second->kind == WEIR_VALUE_NUMBER &&
		   !folding->code->stores_to_context && BPF_MODE(insn->code) == BPF_MEM &&
		   registers[insn->dst_reg].kind != WEIR_VALUE_STACK && /* Linux 6.1 would not know what is there */
		   (BPF_SIZE(insn->code) != BPF_DW || fits(second->number))) {
		insn->code = BPF_ST | BPF_MEM | BPF_SIZE(insn->code);
		insn->src_reg = 0;
		insn->imm = (int32_t)second->number;
	}
}

/* ---- the way through the program ---- */

/* From an instruction with a state to the next one. */
static void walk(struct weir_folding *folding, uint32_t at, bool is_rewriting)
{
	struct weir_value registers[WEIR_REGISTERS];

	memcpy(registers, folding->states[folding->state_at[at] - 1].registers, sizeof(registers));
	do {
		const struct bpf_insn *insn = &folding->code->insns[at];

		if (is_rewriting)
			rewrite(folding, at, registers);
		folding->size[at] = weir_is_wide(insn) ? 2 : 1;
		if (weir_is_exit(insn))
			return;
		if (weir_is_jump(insn) && insn->off) {
			enter(folding, weir_jump_target(insn, at), registers);
			return;
		}
		if (weir_is_branch(insn)) {
			const int decision = weir_value_decides(insn, registers);

			if (decision)
				enter(folding, weir_jump_target(insn, at), registers);
			if (decision > 0)
				return;
		} else if (!weir_is_jump(insn)) {
			if (weir_is_own_call(insn))
				enter_function(folding, weir_call_target(insn, at));
			step(insn, registers, folding->constants);
		}
		at += folding->size[at];
	} while (!folding->state_at[at]);
	enter(folding, at, registers);
}

void weir_fold_propagate(struct weir_folding *folding)
{
	enter_function(folding, 0);
	while (folding->waiting_count) {
		const uint32_t at = folding->waiting[--folding->waiting_count];

		folding->states[folding->state_at[at] - 1].is_waiting = false;
		walk(folding, at, false);
	}
	for (uint32_t at = 0; at < folding->code->insn_count; at++)
		if (folding->state_at[at] && folding->states[folding->state_at[at] - 1].is_reached)
			walk(folding, at, true);
}
