// SPDX-License-Identifier: GPL-2.0-only
#include "stack.h"
#include "claims.h"

#define STACK_STEP 32
#define FUNCTIONS_MAX 256

struct program {
	const struct bpf_insn *insns;
	size_t insn_count;
	size_t start[FUNCTIONS_MAX + 1]; /* ascending, and the end */
	size_t function_count;
};

static bool is_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
}

static int compare_starts(const void *one, const void *other)
{
	size_t a = *(const size_t *)one, b = *(const size_t *)other;

	return (a > b) - (a < b);
}

static void add_function(struct program *program, size_t start)
{
	for (size_t i = 0; i < program->function_count; i++)
		if (program->start[i] == start)
			return;
	assert_true(program->function_count < FUNCTIONS_MAX);
	program->start[program->function_count++] = start;
}

static void find_functions(struct program *program)
{
	add_function(program, 0);
	for (size_t i = 0; i < program->insn_count; i++)
		if (is_call(&program->insns[i]))
			add_function(program, i + 1 + program->insns[i].imm);
	qsort(program->start, program->function_count, sizeof(program->start[0]), compare_starts);
	program->start[program->function_count] = program->insn_count;
}

/* How far below the frame pointer a function reaches: by an access, or by an address that it makes. */
static uint32_t depth_of(const struct program *program, size_t function)
{
	bool is_frame[MAX_BPF_REG] = {[BPF_REG_10] = true};
	int lowest = 0;

	for (size_t i = program->start[function]; i < program->start[function + 1]; i++) {
		const struct bpf_insn *insn = &program->insns[i];
		int class = BPF_CLASS(insn->code), reached = 0;

		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
			is_frame[insn->dst_reg] = false;
			i++; /* it takes two places */
			continue;
		}
		if (((class == BPF_ST || class == BPF_STX) && insn->dst_reg == BPF_REG_10) ||
		    (class == BPF_LDX && insn->src_reg == BPF_REG_10))
			reached = insn->off;
		else if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K) && is_frame[insn->dst_reg])
			reached = insn->imm;
		if (class == BPF_ALU64 || class == BPF_ALU || class == BPF_LDX)
			is_frame[insn->dst_reg] =
				insn->code == (BPF_ALU64 | BPF_MOV | BPF_X) && insn->src_reg == BPF_REG_10;
		if (reached < lowest)
			lowest = reached;
	}
	return -lowest;
}

static size_t function_at(const struct program *program, size_t start)
{
	for (size_t i = 0; i < program->function_count; i++)
		if (program->start[i] == start)
			return i;
	fail_msg("a call to where no function begins");
	return 0;
}

/* Stack of the deepest chain that begins at a function; calls do not recur. */
static uint32_t chain_of(const struct program *program, size_t function, uint32_t *known)
{
	uint32_t depth = depth_of(program, function), deepest = 0;

	if (known[function])
		return known[function];
	for (size_t i = program->start[function]; i < program->start[function + 1]; i++) {
		uint32_t below;

		if (!is_call(&program->insns[i]))
			continue;
		below = chain_of(program, function_at(program, i + 1 + program->insns[i].imm), known);
		if (below > deepest)
			deepest = below;
	}
	if (depth == 0)
		depth = 1;
	known[function] = (depth + STACK_STEP - 1) / STACK_STEP * STACK_STEP + deepest;
	return known[function];
}

uint32_t stack_deepest(const struct bpf_insn *insns, size_t insn_count, size_t *ret_functions)
{
	struct program program = {.insns = insns, .insn_count = insn_count};
	uint32_t known[FUNCTIONS_MAX] = {};

	find_functions(&program);
	*ret_functions = program.function_count;
	return chain_of(&program, 0, known);
}
