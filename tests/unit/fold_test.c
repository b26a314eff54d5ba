// SPDX-License-Identifier: GPL-2.0-only
/* A program that is folded with its configuration does the same in fewer instructions. */
#include <string.h>

#include "../lib/claims.h"
#include "../lib/alu.h"
#include "../lib/random.h"
#include "base/util.h"
#include "fold/fold.h"

#define MAP 7	    /* the descriptor of the map of constants */
#define OTHER_MAP 8 /* ... of one that is not constant */
#define INSNS_MAX 400
#define FUNCTIONS_MAX 8
#define STACK_BYTES 512

/* At 0 one, at 4 nothing, at 8 a number of 64 bits, and more. */
static const uint32_t constants[16] = {1, 0, 0xdeadbeef, 0x80000001, 0xffffffff, 0x7fffffff, 64, 31};

struct program {
	struct bpf_insn insns[INSNS_MAX];
	struct bpf_func_info functions[FUNCTIONS_MAX];
	uint8_t arguments[FUNCTIONS_MAX];
	struct bpf_line_info lines[INSNS_MAX];
	struct weir_code code;
};

/* ---- instructions ---- */

#define I(c, dst, src, o, i)                                                                                           \
	((struct bpf_insn){.code = (c), .dst_reg = (dst), .src_reg = (src), .off = (o), .imm = (int32_t)(i)})
#define MOV(dst, imm) I(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define COPY(dst, src) I(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define ALU(op, dst, src) I(BPF_ALU64 | (op) | BPF_X, dst, src, 0, 0)
#define ALU_NUMBER(op, dst, imm) I(BPF_ALU64 | (op) | BPF_K, dst, 0, 0, imm)
#define LOAD(size, dst, src, off) I(BPF_LDX | BPF_MEM | (size), dst, src, off, 0)
#define STORE(size, dst, off, src) I(BPF_STX | BPF_MEM | (size), dst, src, off, 0)
#define STORE_NUMBER(size, dst, off, imm) I(BPF_ST | BPF_MEM | (size), dst, 0, off, imm)
#define BRANCH(op, dst, imm, off) I(BPF_JMP | (op) | BPF_K, dst, 0, off, imm)
#define BRANCH_BY(op, dst, src, off) I(BPF_JMP | (op) | BPF_X, dst, src, off, 0)
#define JUMP(off) I(BPF_JMP | BPF_JA, 0, 0, off, 0)
#define CALL(off) I(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, off)
#define HELP(helper) I(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define EXIT I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define CONSTANTS(dst, off) I(BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_VALUE, 0, MAP), I(0, 0, 0, 0, off)
#define OTHER_VALUE(dst) I(BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_VALUE, 0, OTHER_MAP), I(0, 0, 0, 0, 0)

static void add_function(struct program *program, uint32_t at, uint8_t arguments)
{
	assert_true(program->code.function_count < FUNCTIONS_MAX);
	program->arguments[program->code.function_count] = arguments;
	program->functions[program->code.function_count++] = (struct bpf_func_info){.insn_off = at, .type_id = at + 1};
}

static void add(struct program *program, struct bpf_insn insn)
{
	assert_true(program->code.insn_count < INSNS_MAX);
	program->insns[program->code.insn_count++] = insn;
}

/* With a line for each instruction, numbered by its position. */
static void finish(struct program *program)
{
	struct weir_code *code = &program->code;
	uint32_t step;

	code->insns = program->insns;
	code->functions = program->functions;
	code->arguments = program->arguments;
	code->lines = program->lines;
	for (uint32_t at = 0; at < code->insn_count; at += step) {
		step = program->insns[at].code == (BPF_LD | BPF_IMM | BPF_DW) ? 2 : 1;
		program->lines[code->line_count++] = (struct bpf_line_info){.insn_off = at, .line_off = at};
	}
}

static void fold(struct program *program)
{
	const struct weir_constants here = {.map_fd = MAP, .bytes = constants, .size = sizeof(constants)};

	assert_int_equal(weir_fold(&program->code, &here), 0);
}

/* The program, whose functions begin at 0 and at these positions (0: none). */
static struct program *make(const struct bpf_insn *insns, uint32_t count, uint32_t second, uint32_t third)
{
	static struct program program;

	memset(&program, 0, sizeof(program));
	add_function(&program, 0, 1);
	if (second)
		add_function(&program, second, 1);
	if (third)
		add_function(&program, third, 1);
	for (uint32_t i = 0; i < count; i++)
		add(&program, insns[i]);
	finish(&program);
	return &program;
}

static void assert_code(const struct program *program, const struct bpf_insn *expected, uint32_t count)
{
	for (uint32_t i = 0; i < count && i < program->code.insn_count; i++)
		if (memcmp(&program->insns[i], &expected[i], sizeof(*expected)))
			fail_msg("instruction %u is %02x dst %u src %u off %d imm %d", i, program->insns[i].code,
				 program->insns[i].dst_reg, program->insns[i].src_reg, program->insns[i].off,
				 program->insns[i].imm);
	assert_int_equal(program->code.insn_count, count);
}

#define PROGRAM(second, third, ...)                                                                                    \
	make((const struct bpf_insn[]){__VA_ARGS__}, ARRAY_SIZE(((const struct bpf_insn[]){__VA_ARGS__})), second,     \
	     third)
#define EXPECT(program, ...)                                                                                           \
	assert_code(program, (const struct bpf_insn[]){__VA_ARGS__},                                                   \
		    ARRAY_SIZE(((const struct bpf_insn[]){__VA_ARGS__})))

/* ---- what goes ---- */

CLAIM(a_branch_that_the_configuration_decides_goes_with_what_fed_it)
{
	struct program *program = PROGRAM(0, 0, CONSTANTS(2, 0), LOAD(BPF_W, 2, 2, 0), ALU_NUMBER(BPF_AND, 2, 2),
					  BRANCH(BPF_JEQ, 2, 0, 2), MOV(0, 1), EXIT, MOV(0, 2), EXIT);

	fold(program);
	EXPECT(program, MOV(0, 2), EXIT);
}

CLAIM(registers_equal_on_both_branches_are_known_and_others_are_not)
{
	struct program *program = PROGRAM(0, 0, LOAD(BPF_W, 3, 1, 0), MOV(4, 1), MOV(0, 3), BRANCH(BPF_JEQ, 3, 0, 2),
					  MOV(4, 2), MOV(0, 3), ALU(BPF_ADD, 0, 4), EXIT);

	fold(program);
	/* r0 is 3 either way, r4 is not. */
	EXPECT(program, LOAD(BPF_W, 3, 1, 0), MOV(4, 1), MOV(0, 3), BRANCH(BPF_JEQ, 3, 0, 2), MOV(4, 2), MOV(0, 3),
	       ALU(BPF_ADD, 0, 4), EXIT);
	program = PROGRAM(0, 0, LOAD(BPF_W, 3, 1, 0), MOV(4, 1), BRANCH(BPF_JEQ, 3, 0, 1), MOV(4, 1),
			  LOAD(BPF_W, 0, 1, 4), ALU(BPF_ADD, 0, 4), EXIT);
	fold(program);
	EXPECT(program, LOAD(BPF_W, 3, 1, 0), LOAD(BPF_W, 0, 1, 4), ALU_NUMBER(BPF_ADD, 0, 1), EXIT);
}

CLAIM(a_register_that_a_loop_changes_is_not_known)
{
	struct program *program = PROGRAM(0, 0, MOV(0, 0), LOAD(BPF_W, 3, 1, 0), ALU_NUMBER(BPF_ADD, 0, 1),
					  ALU_NUMBER(BPF_SUB, 3, 1), BRANCH(BPF_JNE, 3, 0, -3), EXIT);

	fold(program);
	EXPECT(program, MOV(0, 0), LOAD(BPF_W, 3, 1, 0), ALU_NUMBER(BPF_ADD, 0, 1), ALU_NUMBER(BPF_SUB, 3, 1),
	       BRANCH(BPF_JNE, 3, 0, -3), EXIT);
}

CLAIM(loads_of_packets_and_maps_stay_though_nobody_uses_them)
{
	struct program *program =
		PROGRAM(0, 0, LOAD(BPF_W, 2, 1, 0), OTHER_VALUE(3), LOAD(BPF_W, 3, 3, 0), MOV(0, 0), EXIT);

	fold(program);
	EXPECT(program, LOAD(BPF_W, 2, 1, 0), OTHER_VALUE(3), LOAD(BPF_W, 3, 3, 0), MOV(0, 0), EXIT);
}

CLAIM(a_store_has_its_number_but_on_the_stack_and_in_contexts)
{
	struct program *program =
		PROGRAM(0, 0, COPY(6, 1), MOV(2, 5), STORE(BPF_W, 6, 8, 2), STORE(BPF_W, 10, -4, 2), COPY(2, 10),
			ALU_NUMBER(BPF_ADD, 2, -4), OTHER_VALUE(1), HELP(BPF_FUNC_map_lookup_elem), MOV(0, 0), EXIT);

	fold(program);
	EXPECT(program, COPY(6, 1), MOV(2, 5), STORE_NUMBER(BPF_W, 6, 8, 5), STORE(BPF_W, 10, -4, 2), COPY(2, 10),
	       ALU_NUMBER(BPF_ADD, 2, -4), OTHER_VALUE(1), HELP(BPF_FUNC_map_lookup_elem), MOV(0, 0), EXIT);
	program = PROGRAM(0, 0, MOV(2, 5), STORE(BPF_W, 1, 8, 2), MOV(0, 0), EXIT);
	program->code.stores_to_context = true;
	fold(program);
	EXPECT(program, MOV(2, 5), STORE(BPF_W, 1, 8, 2), MOV(0, 0), EXIT);
}

CLAIM(a_number_that_needs_64_bits_stays_a_load)
{
	struct program *program = PROGRAM(0, 0, CONSTANTS(2, 0), LOAD(BPF_DW, 0, 2, 8), EXIT);

	fold(program);
	EXPECT(program, CONSTANTS(2, 0), LOAD(BPF_DW, 0, 2, 8), EXIT);
}

CLAIM(what_the_verifier_refuses_as_a_number_stays_a_register)
{
	struct program *program = PROGRAM(0, 0, LOAD(BPF_DW, 0, 1, 0), MOV(2, 64), ALU(BPF_LSH, 0, 2), MOV(3, 0),
					  ALU(BPF_DIV, 0, 3), EXIT);

	fold(program);
	EXPECT(program, LOAD(BPF_DW, 0, 1, 0), MOV(2, 64), ALU(BPF_LSH, 0, 2), MOV(3, 0), ALU(BPF_DIV, 0, 3), EXIT);
}

CLAIM(an_operation_that_changes_nothing_goes)
{
	struct program *program = PROGRAM(0, 0, LOAD(BPF_DW, 0, 1, 0), CONSTANTS(2, 0), LOAD(BPF_W, 2, 2, 4),
					  ALU(BPF_ADD, 0, 2), ALU_NUMBER(BPF_LSH, 0, 0), EXIT);

	fold(program);
	EXPECT(program, LOAD(BPF_DW, 0, 1, 0), EXIT);
	/* It clears the upper half. */
	program = PROGRAM(0, 0, LOAD(BPF_DW, 0, 1, 0), I(BPF_ALU | BPF_OR | BPF_K, 0, 0, 0, 0), EXIT);
	fold(program);
	EXPECT(program, LOAD(BPF_DW, 0, 1, 0), I(BPF_ALU | BPF_OR | BPF_K, 0, 0, 0, 0), EXIT);
}

/* ---- functions ---- */

CLAIM(functions_that_nobody_calls_go_and_the_others_move)
{
	struct program *program =
		PROGRAM(7, 9, CONSTANTS(2, 0), LOAD(BPF_W, 2, 2, 4), BRANCH(BPF_JEQ, 2, 0, 1), CALL(2), CALL(3), EXIT,
			LOAD(BPF_W, 0, 1, 0), EXIT, LOAD(BPF_W, 0, 1, 4), EXIT);
	fold(program);
	EXPECT(program, CALL(1), EXIT, LOAD(BPF_W, 0, 1, 4), EXIT);
	assert_int_equal(program->code.function_count, 2);
	assert_int_equal(program->functions[1].insn_off, 2);
	assert_int_equal(program->functions[1].type_id, 10);
	/* Lines of what has gone begin with what follows it, but only in the same function. */
	assert_int_equal(program->code.line_count, 4);
	assert_int_equal(program->lines[0].line_off, 5);
	assert_int_equal(program->lines[2].line_off, 9);
}

CLAIM(a_function_that_only_returns_a_number_is_that_number)
{
	struct program *program = PROGRAM(3, 0, CALL(2), ALU_NUMBER(BPF_AND, 0, 1), EXIT,
					  LOAD(BPF_W, 2, 10, -8) /* of nobody */, CONSTANTS(2, 0), LOAD(BPF_W, 2, 2, 0),
					  MOV(0, 5), BRANCH(BPF_JNE, 2, 0, 1), LOAD(BPF_W, 0, 1, 0), EXIT);

	fold(program);
	EXPECT(program, MOV(0, 1), EXIT);
	assert_int_equal(program->code.function_count, 1);
}

CLAIM(arguments_of_a_function_stay)
{
	struct program *program =
		PROGRAM(4, 0, MOV(1, 3), MOV(2, 4), CALL(1), EXIT, HELP(BPF_FUNC_get_prandom_u32), EXIT);

	fold(program);
	EXPECT(program, MOV(1, 3), CALL(1), EXIT, HELP(BPF_FUNC_get_prandom_u32), EXIT);
}

CLAIM(a_program_with_something_unknown_stays_as_it_is)
{
	static const struct bpf_insn unknown[] = {
		I(BPF_LD | BPF_IMM | BPF_DW, 3, BPF_PSEUDO_FUNC, 0, 3), /* a callback */
		I(BPF_JMP32 | BPF_JA, 0, 0, 0, 1),			/* a long jump */
		I(BPF_STX | BPF_ATOMIC | BPF_DW, 10, 1, -8, 0x100),	/* a load that acquires */
		BRANCH(BPF_JEQ, 3, 0, 100),
		CALL(1),
	};

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		struct program *program = PROGRAM(0, 0, MOV(0, 0), MOV(2, 0), unknown[i], MOV(3, 0), MOV(4, 0), EXIT);
		const struct program before = *program;

		fold(program);
		assert_int_equal(program->code.insn_count, before.code.insn_count);
		assert_memory_equal(program->insns, before.insns, sizeof(before.insns));
	}
}

/* ---- random programs ---- */

/* Registers of a random program: r6 is the context, r7 the constants, r10 the stack; the others hold anything. */
static const uint8_t free_registers[] = {0, 1, 2, 3, 4, 5, 8, 9};

static uint8_t any_register(struct random *random)
{
	return free_registers[random_below(random, ARRAY_SIZE(free_registers))];
}

static int32_t any_number(struct random *random)
{
	static const int32_t numbers[] = {0, 1, -1, 2, 31, 32, 63, 255, INT32_MAX, INT32_MIN};

	return numbers[random_below(random, ARRAY_SIZE(numbers))];
}

static struct bpf_insn any_operation(struct random *random)
{
	static const uint8_t ops[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD,  BPF_OR,  BPF_AND, BPF_XOR,
				      BPF_MOV, BPF_NEG, BPF_LSH, BPF_RSH, BPF_ARSH, BPF_END, BPF_MOV, BPF_AND};
	const uint8_t class = random_percent(random, 50) ? BPF_ALU : BPF_ALU64, dst = any_register(random);
	const uint8_t op = ops[random_below(random, ARRAY_SIZE(ops))];
	int32_t imm = any_number(random);

	if (op == BPF_END)
		return I(BPF_ALU | BPF_END | (random_percent(random, 50) ? BPF_TO_BE : BPF_TO_LE), dst, 0, 0,
			 16 << random_below(random, 3));
	if (op == BPF_NEG)
		return I(class | BPF_NEG, dst, 0, 0, 0);
	if (random_percent(random, 50))
		return I(class | op | BPF_X, dst, any_register(random), 0, 0);
	if (op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH)
		imm &= 31;
	if (op == BPF_DIV || op == BPF_MOD)
		imm |= 1;
	return I(class | op | BPF_K, dst, 0, 0, imm);
}

static struct bpf_insn any_access(struct random *random)
{
	static const uint8_t sizes[] = {BPF_B, BPF_H, BPF_W, BPF_DW};
	const uint8_t which = random_below(random, 4), size = sizes[which];
	const int16_t at = random_below(random, 8) << which;

	switch (random_below(random, 6)) {
	case 0:
		return LOAD(size, any_register(random), 6, at);
	case 1:
		return STORE(size, 6, at, any_register(random));
	case 2:
		return LOAD(size, any_register(random), 10, at - 64);
	case 3:
		return STORE(size, 10, at - 64, any_register(random));
	case 4:
		return I(BPF_STX | BPF_ATOMIC | BPF_DW, 6, any_register(random), 8,
			 random_percent(random, 50) ? BPF_ADD | BPF_FETCH : BPF_CMPXCHG);
	default:
		return LOAD(size, any_register(random), 7, at);
	}
}

/* A branch forward by so many instructions: wide ones are not jumped into, since there are none in the body. */
static struct bpf_insn any_branch(struct random *random, int16_t off)
{
	static const uint8_t ops[] = {BPF_JEQ,	BPF_JNE,  BPF_JGT,  BPF_JGE,  BPF_JLT, BPF_JLE,
				      BPF_JSET, BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE};
	const uint8_t class = random_percent(random, 50) ? BPF_JMP : BPF_JMP32;
	const uint8_t op = ops[random_below(random, ARRAY_SIZE(ops))];

	if (random_percent(random, 10))
		return JUMP(off);
	if (random_percent(random, 50))
		return I(class | op | BPF_X, any_register(random), any_register(random), off, 0);
	return I(class | op | BPF_K, any_register(random), 0, off, any_number(random));
}

static void add_all(struct program *program, const struct bpf_insn *insns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add(program, insns[i]);
}
#define ADD(program, ...)                                                                                              \
	add_all(program, (const struct bpf_insn[]){__VA_ARGS__}, ARRAY_SIZE(((const struct bpf_insn[]){__VA_ARGS__})))

/* Every register and every word of the stack that is read has been written, as the verifier demands. */
static void add_random_function(struct program *program, struct random *random, int body)
{
	add_function(program, program->code.insn_count, 2);
	ADD(program, COPY(6, 1), CONSTANTS(7, 0), COPY(0, 2), LOAD(BPF_W, 3, 7, 4 * random_below(random, 16)),
	    MOV(4, 0), LOAD(BPF_W, 5, 6, 0), MOV(8, any_number(random)), LOAD(BPF_DW, 9, 6, 8), MOV(1, 1));
	for (int i = 0; i < 8; i++)
		add(program, STORE(BPF_DW, 10, -8 - 8 * i, random_percent(random, 50) ? 9 : 8));
	ADD(program, MOV(2, 3), STORE(BPF_DW, 10, -72, 2));
	for (int i = 0; i < body; i++) {
		const uint64_t what = random_below(random, 100);

		add(program, what < 40	 ? any_operation(random)
			     : what < 70 ? any_access(random)
					 : any_branch(random, random_below(random, body - i)));
	}
	/* Three times. */
	ADD(program, LOAD(BPF_DW, 5, 10, -72), ALU_NUMBER(BPF_SUB, 5, 1), STORE(BPF_DW, 10, -72, 5),
	    BRANCH(BPF_JSGT, 5, 0, -body - 4));
	ADD(program, ALU(BPF_XOR, 0, 9), ALU(BPF_ADD, 0, 8), EXIT);
}

/* Some call the next one, from the end: a call is in a block of its own, which some branch may jump over. */
static void add_calls(struct program *program, struct random *random)
{
	const uint32_t count = program->code.function_count;

	for (uint32_t i = 0; i + 1 < count; i++) {
		const uint32_t end = program->functions[i + 1].insn_off;
		const uint32_t at = end - 3,
			       callee = program->functions[i + 1 + random_below(random, count - i - 1)].insn_off;

		/* In place of the loop; r1 and r2 are set right before. */
		program->insns[at - 3] = COPY(1, 6);
		program->insns[at - 2] = COPY(2, 8);
		program->insns[at - 1] = CALL(callee - at);
		for (uint32_t j = program->functions[i].insn_off; j < at - 3; j++) {
			struct bpf_insn *insn = &program->insns[j];
			const bool is_branch = (BPF_CLASS(insn->code) == BPF_JMP || BPF_CLASS(insn->code) == BPF_JMP32);

			if (is_branch && j + 1 + insn->off > at - 3)
				insn->off = random_percent(random, 50) ? (int)(at - 3 - j - 1) : (int)(at - j - 1);
		}
	}
}

static uint64_t size_mask(uint8_t code)
{
	static const uint64_t masks[] = {UINT32_MAX, UINT16_MAX, UINT8_MAX, UINT64_MAX};

	return masks[BPF_SIZE(code) >> 3];
}

static void run_access(const struct bpf_insn *insn, uint64_t *reg)
{
	const bool is_load = BPF_CLASS(insn->code) == BPF_LDX;
	uint8_t *at = (uint8_t *)reg[is_load ? insn->src_reg : insn->dst_reg] + insn->off;
	const uint64_t mask = size_mask(insn->code), bytes = 8 - __builtin_clzll(mask) / 8;
	uint64_t old = 0, value = BPF_CLASS(insn->code) == BPF_ST ? (uint64_t)(int64_t)insn->imm : reg[insn->src_reg];

	memcpy(&old, at, bytes);
	if (is_load) {
		reg[insn->dst_reg] = old;
		return;
	}
	if (BPF_MODE(insn->code) == BPF_ATOMIC) {
		if (insn->imm == BPF_CMPXCHG) {
			value = old == reg[0] ? value : old;
			reg[0] = old;
		} else {
			value += old;
			reg[insn->src_reg] = old;
		}
	}
	memcpy(at, &value, bytes);
}

static uint64_t run(const struct program *program, uint32_t at, uint64_t first, uint64_t second)
{
	uint8_t stack[STACK_BYTES] = {};
	uint64_t reg[11] = {0xbad, first, second, 0xbad, 0xbad, 0xbad, 0xbad, 0xbad, 0xbad, 0xbad};

	reg[10] = (uint64_t)stack + sizeof(stack);
	for (;; at++) {
		const struct bpf_insn *insn = &program->insns[at];
		const uint8_t class = BPF_CLASS(insn->code);
		const uint64_t operand = BPF_SRC(insn->code) ? reg[insn->src_reg] : (uint64_t)(int64_t)insn->imm;

		assert_true(at < program->code.insn_count);
		if (insn->code == (BPF_JMP | BPF_EXIT))
			return reg[0];
		if (insn->code == (BPF_JMP | BPF_CALL)) {
			reg[0] = run(program, at + 1 + insn->imm, reg[1], reg[2]);
			for (int i = 1; i <= 5; i++)
				reg[i] = 7; /* the verifier lets nobody read them; here they only have to be the same */
		} else if (class == BPF_JMP || class == BPF_JMP32) {
			at += alu_jumps(insn, reg[insn->dst_reg], operand) ? insn->off : 0;
		} else if (class == BPF_LD) {
			assert_int_equal(insn->imm, MAP);
			reg[insn->dst_reg] = (uint64_t)constants + program->insns[++at].imm;
		} else if (class == BPF_ALU || class == BPF_ALU64) {
			const uint64_t value = alu_compute(insn, reg[insn->dst_reg], operand);

			reg[insn->dst_reg] =
				class == BPF_ALU && BPF_OP(insn->code) != BPF_END ? (uint32_t)value : value;
		} else {
			run_access(insn, reg);
		}
	}
}

/* Nothing is there that no way leads to: the kernel would refuse it. */
static void assert_all_is_reached(const struct program *program)
{
	bool is_reached[INSNS_MAX] = {};
	bool has_changed = true;

	for (uint32_t i = 0; i < program->code.function_count; i++)
		is_reached[program->functions[i].insn_off] = true;
	while (has_changed) {
		has_changed = false;
		for (uint32_t at = 0; at < program->code.insn_count; at++) {
			const struct bpf_insn *insn = &program->insns[at];
			const uint8_t class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);
			const bool is_jump =
				(class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
			const uint32_t next =
				insn->code == (BPF_JMP | BPF_EXIT) || insn->code == (BPF_JMP | BPF_JA) ? at : at + 1;
			const uint32_t target = is_jump ? at + 1 + insn->off : at;

			if (!is_reached[at] || (is_reached[next] && is_reached[target]))
				continue;
			is_reached[next] = is_reached[target] = has_changed = true;
		}
	}
	for (uint32_t at = 0; at < program->code.insn_count; at++)
		assert_true(is_reached[at]);
}

static void assert_lines_are_sound(const struct weir_code *code)
{
	uint32_t line = 0;

	for (uint32_t i = 1; i < code->line_count; i++)
		assert_true(code->lines[i - 1].insn_off < code->lines[i].insn_off);
	for (uint32_t i = 0; i < code->function_count; i++) {
		while (line < code->line_count && code->lines[line].insn_off < code->functions[i].insn_off)
			line++;
		assert_true(line < code->line_count);
		assert_int_equal(code->lines[line].insn_off, code->functions[i].insn_off);
	}
	assert_true(code->lines[code->line_count - 1].insn_off < code->insn_count);
}

CLAIM(random_programs_do_the_same_in_fewer_instructions)
{
	static struct program before, after;
	uint64_t insns_before = 0, insns_after = 0;

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct random random = {.state = seed};
		const int functions = 1 + (int)random_below(&random, 3);

		memset(&before, 0, sizeof(before));
		for (int i = 0; i < functions; i++)
			add_random_function(&before, &random, 5 + (int)random_below(&random, 40));
		add_calls(&before, &random);
		finish(&before);
		after = before;
		after.code.stores_to_context = random_percent(&random, 20);
		after.code.insns = after.insns;
		after.code.functions = after.functions;
		after.code.arguments = after.arguments;
		after.code.lines = after.lines;
		fold(&after);
		assert_all_is_reached(&after);
		assert_lines_are_sound(&after.code);
		for (int i = 0; i < 3; i++) {
			uint64_t context[2][8];

			for (int word = 0; word < 8; word++)
				context[0][word] = i ? random_u64(&random) : 0;
			memcpy(context[1], context[0], sizeof(context[0]));
			if (run(&before, 0, (uint64_t)context[0], i) != run(&after, 0, (uint64_t)context[1], i) ||
			    memcmp(context[0], context[1], sizeof(context[0])))
				fail_msg("seed %llu: another result", (unsigned long long)seed);
		}
		insns_before += before.code.insn_count;
		insns_after += after.code.insn_count;
	}
	print_message("%.2f of the instructions\n", (double)insns_after / (double)insns_before);
	assert_true(insns_after < insns_before);
}

RUN_CLAIMS(NULL, NULL)
