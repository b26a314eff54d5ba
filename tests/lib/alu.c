// SPDX-License-Identifier: GPL-2.0-only
#include "alu.h"
#include "claims.h"

static uint64_t swap_bytes(uint64_t value, int bits)
{
	switch (bits) {
	case 16:
		return __builtin_bswap16(value);
	case 32:
		return __builtin_bswap32(value);
	default:
		return __builtin_bswap64(value);
	}
}

uint64_t alu_compute(const struct bpf_insn *insn, uint64_t a, uint64_t b)
{
	bool is_wide = BPF_CLASS(insn->code) == BPF_ALU64;

	if (!is_wide && BPF_OP(insn->code) != BPF_END) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (BPF_OP(insn->code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : a;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_XOR:
		return a ^ b;
	case BPF_MOV:
		return b;
	case BPF_NEG:
		return -a;
	case BPF_LSH:
		return a << (b & (is_wide ? 63 : 31));
	case BPF_RSH:
		return a >> (b & (is_wide ? 63 : 31));
	case BPF_ARSH:
		return is_wide ? (uint64_t)((int64_t)a >> (b & 63)) : (uint64_t)((int32_t)a >> (b & 31));
	case BPF_END: /* on a machine like ours `to little-endian` only cuts */
		if (BPF_SRC(insn->code) == BPF_TO_BE)
			return swap_bytes(a, insn->imm);
		return insn->imm == 64 ? a : a & ((1ull << insn->imm) - 1);
	default:
		fail_msg("an operation of another kind: %#x", insn->code);
		return 0;
	}
}

bool alu_jumps(const struct bpf_insn *insn, uint64_t a, uint64_t b)
{
	int64_t signed_a = (int64_t)a, signed_b = (int64_t)b;

	if (BPF_CLASS(insn->code) == BPF_JMP32) {
		signed_a = (int32_t)a;
		signed_b = (int32_t)b;
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	switch (BPF_OP(insn->code)) {
	case BPF_JA:
		return true;
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
	case BPF_JSLE:
		return signed_a <= signed_b;
	default:
		fail_msg("a jump of another kind: %#x", insn->code);
		return false;
	}
}
