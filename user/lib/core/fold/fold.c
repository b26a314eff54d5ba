// SPDX-License-Identifier: GPL-2.0-only
#include "fold/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fold/folding.h"

#define BIT(reg) (1u << (reg))
#define ARGUMENTS(count) ((BIT(count) - 1) << BPF_REG_1)
#define CALLER_SAVED ARGUMENTS(5)

/* ---- which registers are used ---- */

static uint32_t arguments_of(const struct weir_folding *folding, const struct bpf_insn *call, uint32_t at)
{
	if (weir_is_own_call(call))
		return folding->code->arguments[folding->function_at[weir_call_target(call, at)] - 1];
	if (call->src_reg)
		return 5;
	switch (call->imm) {
	case BPF_FUNC_ktime_get_ns:
	case BPF_FUNC_jiffies64:
	case BPF_FUNC_get_smp_processor_id:
	case BPF_FUNC_get_prandom_u32:
		return 0;
	case BPF_FUNC_xdp_get_buff_len:
		return 1;
	case BPF_FUNC_map_lookup_elem:
		return 2;
	default: /* no more than five; too many keep what is in the others */
		return 5;
	}
}

static uint16_t read_by(const struct weir_folding *folding, const struct bpf_insn *insn, uint32_t at)
{
	const uint16_t destination = BIT(insn->dst_reg), source = BIT(insn->src_reg);
	const uint16_t second = BPF_SRC(insn->code) == BPF_X ? source : 0;

	switch (BPF_CLASS(insn->code)) {
	case BPF_LDX:
		return source;
	case BPF_ST:
		return destination;
	case BPF_STX:
		return destination | source | (insn->imm == BPF_CMPXCHG ? BIT(BPF_REG_0) : 0);
	case BPF_ALU:
	case BPF_ALU64:
		if (BPF_OP(insn->code) == BPF_END || BPF_OP(insn->code) == BPF_NEG)
			return destination;
		return second | (BPF_OP(insn->code) == BPF_MOV ? 0 : destination);
	case BPF_JMP:
	case BPF_JMP32:
		if (weir_is_call(insn))
			return ARGUMENTS(arguments_of(folding, insn, at));
		if (weir_is_exit(insn))
			return BIT(BPF_REG_0);
		return weir_is_branch(insn) ? destination | second : 0;
	default:
		return 0;
	}
}

static uint16_t written_by(const struct bpf_insn *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
	case BPF_LDX:
	case BPF_ALU:
	case BPF_ALU64:
		return BIT(insn->dst_reg);
	default:
		return weir_is_call(insn) ? BIT(BPF_REG_0) | CALLER_SAVED : 0;
	}
}

static uint16_t live_after(const struct weir_folding *folding, uint32_t at)
{
	const struct bpf_insn *insn = &folding->code->insns[at];

	if (weir_is_exit(insn))
		return 0;
	if (weir_is_jump(insn))
		return folding->live[weir_jump_target(insn, at)];
	return folding->live[at + folding->size[at]] |
	       (weir_is_branch(insn) ? folding->live[weir_jump_target(insn, at)] : 0);
}

static bool is_useless(const struct weir_folding *folding, uint32_t at, uint16_t after)
{
	return folding->is_removable[at] && !(after & BIT(folding->code->insns[at].dst_reg));
}

static bool find_live_in(struct weir_folding *folding, uint32_t start, uint32_t end)
{
	bool has_changed = false;

	for (uint32_t at = end; at-- > start;) {
		const struct bpf_insn *insn = &folding->code->insns[at];
		uint16_t live;

		if (!folding->size[at])
			continue;
		live = live_after(folding, at);
		if (!is_useless(folding, at, live))
			live = (live & ~written_by(insn)) | read_by(folding, insn, at);
		has_changed |= live != folding->live[at];
		folding->live[at] = live;
	}
	return has_changed;
}

/* ---- what goes ---- */

static void find_positions(struct weir_folding *folding)
{
	uint32_t to = 0;

	for (uint32_t at = 0; at < folding->code->insn_count; at++) {
		folding->moved_to[at] = to;
		to += folding->size[at];
	}
	folding->moved_to[folding->code->insn_count] = to;
}

static bool leads_nowhere_else(const struct weir_folding *folding, uint32_t at)
{
	const struct bpf_insn *insn = &folding->code->insns[at];

	return (weir_is_jump(insn) || weir_is_branch(insn)) &&
	       folding->moved_to[weir_jump_target(insn, at)] == folding->moved_to[at + 1];
}

/* Unmark what computes what nobody uses, and jumps to where the program continues anyway. */
static void fold_unmark(struct weir_folding *folding)
{
	const struct weir_code *code = folding->code;
	uint32_t end = code->insn_count;

	/* What only feeds what nobody uses is not used either: registers are live once something that stays reads them.
	 */
	for (uint32_t i = code->function_count; i-- > 0; end = code->functions[i].insn_off)
		while (find_live_in(folding, code->functions[i].insn_off, end))
			;
	for (uint32_t at = 0; at < folding->code->insn_count; at++)
		if (folding->size[at] && is_useless(folding, at, live_after(folding, at)))
			folding->size[at] = 0;
	find_positions(folding);
	for (uint32_t at = 0; at < folding->code->insn_count; at++)
		if (folding->size[at] && leads_nowhere_else(folding, at))
			folding->size[at] = 0;
	find_positions(folding);
}

/* ---- closing the gaps ---- */

static void move_instructions(struct weir_folding *folding)
{
	const uint32_t *moved_to = folding->moved_to;
	struct bpf_insn *insns = folding->code->insns;

	for (uint32_t at = 0; at < folding->code->insn_count; at++) {
		struct bpf_insn insn = insns[at];
		const uint32_t to = moved_to[at];

		if (!folding->size[at])
			continue;
		if (weir_is_jump(&insn) || weir_is_branch(&insn))
			insn.off = moved_to[weir_jump_target(&insn, at)] - to - 1;
		else if (weir_is_own_call(&insn))
			insn.imm = moved_to[weir_call_target(&insn, at)] - to - 1;
		insns[to] = insn;
		if (folding->size[at] == 2)
			insns[to + 1] = insns[at + 1];
	}
}

/* A line of what has gone begins where the next instruction of its function does, unless another line begins there. */
static void move_lines(struct weir_folding *folding)
{
	const uint32_t *moved_to = folding->moved_to;
	struct weir_code *code = folding->code;
	uint32_t kept = 0, function = 0;

	for (uint32_t i = 0; i < code->line_count; i++) {
		struct bpf_line_info line = code->lines[i];
		uint32_t end;

		while (function + 1 < code->function_count && code->functions[function + 1].insn_off <= line.insn_off)
			function++;
		end = function + 1 < code->function_count ? code->functions[function + 1].insn_off : code->insn_count;
		line.insn_off = moved_to[line.insn_off];
		if (line.insn_off == moved_to[end])
			continue;
		if (kept && code->lines[kept - 1].insn_off == line.insn_off)
			kept--;
		code->lines[kept++] = line;
	}
	code->line_count = kept;
}

static void move_functions(struct weir_folding *folding)
{
	struct weir_code *code = folding->code;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < code->function_count; i++) {
		const uint32_t at = code->functions[i].insn_off;

		if (!folding->states[folding->state_at[at] - 1].is_reached)
			continue;
		code->functions[kept] = code->functions[i];
		code->functions[kept].insn_off = folding->moved_to[at];
		code->arguments[kept++] = code->arguments[i];
	}
	code->function_count = kept;
}

/* ---- what is understood ---- */

static bool is_known_atomic(int32_t imm)
{
	switch (imm & ~BPF_FETCH) {
	case BPF_ADD:
	case BPF_AND:
	case BPF_OR:
	case BPF_XOR:
	case BPF_XCHG & ~BPF_FETCH:
	case BPF_CMPXCHG & ~BPF_FETCH:
		return true;
	default:
		return false;
	}
}

static bool is_known(const struct bpf_insn *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
	case BPF_LDX:
		return true;
	case BPF_LD:
		return weir_is_wide(insn) && insn->src_reg != BPF_PSEUDO_FUNC;
	case BPF_ST:
		return BPF_MODE(insn->code) == BPF_MEM;
	case BPF_STX:
		return BPF_MODE(insn->code) == BPF_MEM ||
		       (BPF_MODE(insn->code) == BPF_ATOMIC && is_known_atomic(insn->imm));
	case BPF_JMP:
		if (weir_is_jump(insn) || weir_is_call(insn) || weir_is_exit(insn))
			return true;
		break;
	}
	return weir_is_branch(insn) && BPF_OP(insn->code) <= BPF_JSLE;
}

/* Whether the steps can take it: a branch ends in its own function, and a call begins one. */
static bool is_sound(const struct weir_folding *folding, uint32_t at, uint32_t start, uint32_t end)
{
	const struct bpf_insn *insn = &folding->code->insns[at];

	const uint32_t next = at + (weir_is_wide(insn) ? 2 : 1);

	if (!is_known(insn) || insn->dst_reg >= WEIR_REGISTERS || insn->src_reg >= WEIR_REGISTERS || next > end)
		return false;
	/* Nothing continues into the next function. */
	if (next == end && !weir_is_exit(insn) && !weir_is_jump(insn))
		return false;
	if (weir_is_jump(insn) || weir_is_branch(insn))
		return weir_jump_target(insn, at) - start < end - start;
	if (weir_is_own_call(insn))
		return weir_call_target(insn, at) < folding->code->insn_count &&
		       folding->function_at[weir_call_target(insn, at)];
	return true;
}

static bool is_understood(const struct weir_folding *folding)
{
	const struct weir_code *code = folding->code;

	for (uint32_t i = 0; i < code->function_count; i++) {
		const uint32_t start = code->functions[i].insn_off;
		const uint32_t end = i + 1 < code->function_count ? code->functions[i + 1].insn_off : code->insn_count;

		for (uint32_t at = start; at < end; at += weir_is_wide(&code->insns[at]) ? 2 : 1)
			if (!is_sound(folding, at, start, end))
				return false;
	}
	return true;
}

/* Functions and lines are in order, and within the code. */
static bool is_in_order(const struct weir_code *code)
{
	uint32_t next = 0;

	if (!code->function_count || code->functions[0].insn_off)
		return false;
	for (uint32_t i = 0; i < code->function_count; next = code->functions[i++].insn_off + 1)
		if (code->functions[i].insn_off < next || code->functions[i].insn_off >= code->insn_count)
			return false;
	next = 0;
	for (uint32_t i = 0; i < code->line_count; next = code->lines[i++].insn_off)
		if (code->lines[i].insn_off < next || code->lines[i].insn_off >= code->insn_count)
			return false;
	return true;
}

/* ---- rounds ---- */

static void clear(struct weir_folding *folding)
{
	const size_t count = folding->code->insn_count;

	memset(folding->size, 0, count * sizeof(*folding->size));
	memset(folding->is_removable, 0, count * sizeof(*folding->is_removable));
	memset(folding->live, 0, count * sizeof(*folding->live));
	memset(folding->state_at, 0, count * sizeof(*folding->state_at));
	memset(folding->function_at, 0, count * sizeof(*folding->function_at));
}

/* Number the functions and the states: registers have a state where a function begins and where a branch leads.
 * Returns how many states there are.
 */
static uint32_t number(struct weir_folding *folding)
{
	const struct weir_code *code = folding->code;
	uint32_t states = 0;

	clear(folding);
	for (uint32_t i = 0; i < code->function_count; i++) {
		folding->function_at[code->functions[i].insn_off] = i + 1;
		folding->state_at[code->functions[i].insn_off] = ++states;
	}
	for (uint32_t at = 0; at < code->insn_count; at += weir_is_wide(&code->insns[at]) ? 2 : 1) {
		const struct bpf_insn *insn = &code->insns[at];
		const uint32_t target = weir_jump_target(insn, at);

		if ((weir_is_jump(insn) || weir_is_branch(insn)) && target < code->insn_count &&
		    !folding->state_at[target])
			folding->state_at[target] = ++states;
	}
	return states;
}

/* A function that does nothing but return a number is that number. */
static void inline_numbers(struct weir_folding *folding)
{
	struct bpf_insn *insns = folding->code->insns;

	for (uint32_t at = 0; at < folding->code->insn_count; at += weir_is_wide(&insns[at]) ? 2 : 1) {
		const struct bpf_insn *first;

		if (!weir_is_own_call(&insns[at]))
			continue;
		first = &insns[weir_call_target(&insns[at], at)];
		if (weir_is_alu(first) && BPF_OP(first->code) == BPF_MOV && BPF_SRC(first->code) == BPF_K &&
		    first->dst_reg == BPF_REG_0 && weir_is_exit(first + 1))
			insns[at] = *first;
	}
}

static bool allocate(struct weir_folding *folding)
{
	const size_t count = folding->code->insn_count + 1;

	folding->size = calloc(count, sizeof(*folding->size));
	folding->is_removable = calloc(count, sizeof(*folding->is_removable));
	folding->live = calloc(count, sizeof(*folding->live));
	folding->state_at = calloc(count, sizeof(*folding->state_at));
	folding->function_at = calloc(count, sizeof(*folding->function_at));
	folding->moved_to = calloc(count, sizeof(*folding->moved_to));
	if (!folding->size || !folding->is_removable || !folding->live || !folding->state_at || !folding->function_at ||
	    !folding->moved_to)
		return false;
	folding->state_count = number(folding);
	folding->states = calloc(folding->state_count, sizeof(*folding->states));
	folding->waiting = calloc(folding->state_count, sizeof(*folding->waiting));
	return folding->states && folding->waiting;
}

static void release(struct weir_folding *folding)
{
	free(folding->size);
	free(folding->is_removable);
	free(folding->live);
	free(folding->state_at);
	free(folding->function_at);
	free(folding->moved_to);
	free(folding->states);
	free(folding->waiting);
}

int weir_fold(struct weir_code *code, const struct weir_constants *constants)
{
	_cleanup_(release) struct weir_folding folding = {.code = code, .constants = constants};
	uint32_t before;

	if (!is_in_order(code))
		return 0;
	if (!allocate(&folding))
		return -ENOMEM;
	if (!is_understood(&folding))
		return 0;
	/* What a round removes leaves more for the next one. */
	do {
		before = code->insn_count;
		weir_fold_propagate(&folding);
		fold_unmark(&folding);
		/* Move what is marked together. */
		move_instructions(&folding);
		move_lines(&folding); /* by the functions as they were */
		move_functions(&folding);
		folding.code->insn_count = folding.moved_to[folding.code->insn_count];
		inline_numbers(&folding);
		memset(folding.states, 0, folding.state_count * sizeof(*folding.states));
		folding.state_count = number(&folding);
	} while (code->insn_count < before);
	return 0;
}
