// SPDX-License-Identifier: GPL-2.0-only
#include "interpreter.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"
#include "alu.h"
#include "host/host.h"
#include "program/object_internal.h"
#include "weir.skel.h"

#define CPUS 2
#define LINE_BYTES 64
#define PAGE_BYTES 4096
#define FRAMES 8
#define STACK_BYTES 512
#define LINES_MAX 512
/* Where the values of an array begin that nobody may map: behind struct bpf_array, which begins with a page. */
#define ARRAY_HEAD_BYTES 16

struct map {
	struct bpf_map_info info;
	int fd;
	size_t stride;
	uint8_t *values[CPUS], *memory[CPUS]; /* the values of the one CPU that there is, of maps that all share */
};

struct interpreter {
	const struct bpf_insn *insns;
	size_t insn_count;
	uint16_t *function_of; /* by instruction */
	struct interpreter_function function[INTERPRETER_FUNCTIONS_MAX];
	size_t function_count;
	struct map map[INTERPRETER_MAPS_MAX];
	struct interpreter_map touched[INTERPRETER_MAPS_MAX];
	size_t map_count;
	uint64_t now_ns, tick_ns, tick_origin_ns;
	uint64_t line[LINES_MAX]; /* of this packet */
	size_t line_count;
	struct xdp_md context;
	uint8_t *frame;
	size_t frame_bytes;
	uint8_t stack[FRAMES * STACK_BYTES] __attribute__((aligned(LINE_BYTES)));
};

/* ---- maps ---- */

static bool is_array(const struct map *map)
{
	return map->info.type == BPF_MAP_TYPE_ARRAY || map->info.type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static int cpus_of(const struct map *map)
{
	return map->info.type == BPF_MAP_TYPE_PERCPU_ARRAY ? CPUS : 1;
}

static void copy_values(struct map *map)
{
	size_t head = map->info.map_flags & BPF_F_MMAPABLE || cpus_of(map) > 1 ? 0 : ARRAY_HEAD_BYTES;
	uint8_t *value = calloc(weir_host_cpus(), map->stride);

	assert_non_null(value);
	for (int cpu = 0; cpu < cpus_of(map); cpu++) {
		size_t bytes = (head + map->stride * map->info.max_entries + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;

		map->memory[cpu] = aligned_alloc(PAGE_BYTES, bytes);
		assert_non_null(map->memory[cpu]);
		map->values[cpu] = map->memory[cpu] + head;
	}
	for (uint32_t i = 0; i < map->info.max_entries; i++) {
		assert_int_equal(bpf_map_lookup_elem(map->fd, &i, value), 0);
		for (int cpu = 0; cpu < cpus_of(map); cpu++)
			memcpy(map->values[cpu] + i * map->stride, value + cpu * map->stride, map->stride);
	}
	free(value);
}

/* The map that an instruction names by its descriptor. */
static struct map *find_map(struct interpreter *it, int fd)
{
	__u32 bytes = sizeof(struct bpf_map_info);
	struct map *map;

	for (size_t i = 0; i < it->map_count; i++)
		if (it->map[i].fd == fd)
			return &it->map[i];
	assert_true(it->map_count < INTERPRETER_MAPS_MAX);
	map = &it->map[it->map_count];
	map->fd = fd;
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &map->info, &bytes), 0);
	map->stride = (map->info.value_size + 7) / 8 * 8;
	if (is_array(map))
		copy_values(map);
	it->touched[it->map_count++].name = map->info.name;
	return map;
}

static uint64_t value_of(const struct map *map, uint64_t key_pointer, int cpu)
{
	uint32_t key = *(const uint32_t *)key_pointer;

	if (cpu >= cpus_of(map))
		return 0;
	return key < map->info.max_entries ? (uint64_t)(map->values[cpu] + key * map->stride) : 0;
}

static void touch(struct interpreter *it, uint64_t address)
{
	uint64_t line = address / LINE_BYTES;

	for (size_t i = 0; i < it->line_count; i++)
		if (it->line[i] == line)
			return;
	assert_true(it->line_count < LINES_MAX);
	it->line[it->line_count++] = line;
	for (size_t i = 0; i < it->map_count; i++) {
		const struct map *map = &it->map[i];

		for (int cpu = 0; is_array(map) && cpu < cpus_of(map); cpu++)
			if (address - (uint64_t)map->values[cpu] < map->stride * map->info.max_entries)
				it->touched[i].lines++;
	}
}

/* ---- functions and their names ---- */

static bool is_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
}

/* The names of the functions in the kernel, where they are in the same order. */
static void name_functions(struct interpreter *it, const struct weir_object *object)
{
	const struct btf *btf = bpf_object__btf(object->skel->obj);
	struct bpf_func_info in_kernel[INTERPRETER_FUNCTIONS_MAX];
	struct bpf_prog_info info = {
		.nr_func_info = INTERPRETER_FUNCTIONS_MAX,
		.func_info_rec_size = sizeof(in_kernel[0]),
		.func_info = (uintptr_t)in_kernel,
	};
	__u32 info_bytes = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(weir_object_program_fd(object), &info, &info_bytes), 0);
	assert_int_equal(info.nr_func_info, it->function_count);
	for (size_t i = 0; i < it->function_count; i++)
		it->function[i].name = btf__name_by_offset(btf, btf__type_by_id(btf, in_kernel[i].type_id)->name_off);
}

static void find_functions(struct interpreter *it)
{
	bool *begins = calloc(it->insn_count + 1, sizeof(*begins));

	assert_non_null(begins);
	begins[0] = begins[it->insn_count] = true;
	for (size_t i = 0; i < it->insn_count; i++)
		if (is_call(&it->insns[i]))
			begins[i + 1 + it->insns[i].imm] = true;
	for (size_t i = 0, end; i < it->insn_count; i = end) {
		for (end = i + 1; !begins[end];)
			end++;
		assert_true(it->function_count < INTERPRETER_FUNCTIONS_MAX);
		for (size_t j = i; j < end; j++)
			it->function_of[j] = it->function_count;
		it->function_count++;
	}
	free(begins);
}

struct interpreter *interpreter_new(const struct weir_object *object, uint64_t now_ns)
{
	const volatile struct weir_config *config = &object->skel->rodata->config;
	struct interpreter *it = calloc(1, sizeof(*it));

	assert_non_null(it);
	it->insns = bpf_program__insns(object->skel->progs.weir_ingress);
	it->insn_count = bpf_program__insn_cnt(object->skel->progs.weir_ingress);
	it->function_of = calloc(it->insn_count, sizeof(*it->function_of));
	assert_non_null(it->function_of);
	find_functions(it);
	name_functions(it, object);
	it->now_ns = now_ns;
	it->tick_ns = config->tick_ns;
	it->tick_origin_ns = config->tick_origin_ns;
	return it;
}

void interpreter_free(struct interpreter *it)
{
	for (size_t i = 0; i < it->map_count; i++)
		for (int cpu = 0; cpu < CPUS; cpu++)
			free(it->map[i].memory[cpu]);
	free(it->function_of);
	free(it);
}

/* ---- instructions ---- */

static uint64_t bytes_of(uint64_t pointer, int size)
{
	switch (size) {
	case BPF_B:
		return *(const uint8_t *)pointer;
	case BPF_H:
		return *(const uint16_t *)pointer;
	case BPF_W:
		return *(const uint32_t *)pointer;
	default:
		return *(const uint64_t *)pointer;
	}
}

static uint64_t load(struct interpreter *it, uint64_t pointer, int size)
{
	if (pointer == (uint64_t)&it->context.data)
		return (uint64_t)it->frame;
	if (pointer == (uint64_t)&it->context.data_end)
		return (uint64_t)it->frame + it->frame_bytes;
	touch(it, pointer);
	return bytes_of(pointer, size);
}

static void store(struct interpreter *it, uint64_t pointer, uint64_t value, int size)
{
	touch(it, pointer);
	switch (size) {
	case BPF_B:
		*(uint8_t *)pointer = value;
		break;
	case BPF_H:
		*(uint16_t *)pointer = value;
		break;
	case BPF_W:
		*(uint32_t *)pointer = value;
		break;
	default:
		*(uint64_t *)pointer = value;
	}
}

static void swap(struct interpreter *it, const struct bpf_insn *insn, uint64_t *reg)
{
	uint64_t pointer = reg[insn->dst_reg] + insn->off, operand = reg[insn->src_reg];
	int size = BPF_SIZE(insn->code);
	uint64_t old = load(it, pointer, size);
	uint64_t value = old;

	switch (insn->imm & ~BPF_FETCH) {
	case BPF_ADD:
		value += operand;
		break;
	case BPF_OR:
		value |= operand;
		break;
	case BPF_AND:
		value &= operand;
		break;
	case BPF_XOR:
		value ^= operand;
		break;
	case BPF_XCHG & ~BPF_FETCH:
		value = operand;
		break;
	case BPF_CMPXCHG & ~BPF_FETCH:
		if (old == (size == BPF_W ? (uint32_t)reg[BPF_REG_0] : reg[BPF_REG_0]))
			value = operand;
		break;
	default:
		fail_msg("an atomic of another kind: %#x", insn->imm);
	}
	store(it, pointer, value, size);
	if (insn->imm == BPF_CMPXCHG)
		reg[BPF_REG_0] = old;
	else if (insn->imm & BPF_FETCH)
		reg[insn->src_reg] = old;
}

/* As bpf_csum_diff(), of words that are added. */
static uint64_t add_words(const uint8_t *bytes, size_t byte_count, uint32_t seed)
{
	uint64_t sum = seed;
	uint32_t word;

	for (size_t i = 0; i + sizeof(word) <= byte_count; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		sum += word;
	}
	while (sum >> 32)
		sum = (uint32_t)sum + (sum >> 32);
	return sum;
}

static uint64_t help(struct interpreter *it, int helper, const uint64_t *reg)
{
	const struct map *map = (const struct map *)reg[BPF_REG_1];

	switch (helper) {
	case BPF_FUNC_map_lookup_elem:
		assert_true(is_array(map));
		return value_of(map, reg[BPF_REG_2], 0);
	case BPF_FUNC_map_lookup_percpu_elem:
		return value_of(map, reg[BPF_REG_2], (int)reg[BPF_REG_3]);
	case BPF_FUNC_ktime_get_ns:
		return it->now_ns;
	case BPF_FUNC_jiffies64:
		return (it->now_ns - it->tick_origin_ns) / it->tick_ns;
	case BPF_FUNC_get_smp_processor_id:
		return 0;
	case BPF_FUNC_get_prandom_u32: /* the same in every run, so that counts are */
		return 0x9e3779b9;
	case BPF_FUNC_xdp_get_buff_len:
		return it->frame_bytes;
	case BPF_FUNC_csum_diff:
		assert_int_equal(reg[BPF_REG_2], 0);
		return add_words((const uint8_t *)reg[BPF_REG_3], reg[BPF_REG_4], reg[BPF_REG_5]);
	case BPF_FUNC_xdp_load_bytes:
		if (reg[BPF_REG_2] + reg[BPF_REG_4] > it->frame_bytes)
			return (uint64_t)-EINVAL;
		memcpy((void *)reg[BPF_REG_3], it->frame + reg[BPF_REG_2], reg[BPF_REG_4]);
		return 0;
	default:
		fail_msg("a helper that is not known here: %d", helper);
		return 0;
	}
}

/* A number of 64 bits, a map, or the address of a value in one. Takes two places. */
static uint64_t constant(struct interpreter *it, const struct bpf_insn *insn)
{
	switch (insn->src_reg) {
	case 0:
		return (uint32_t)insn[0].imm | (uint64_t)insn[1].imm << 32;
	case BPF_PSEUDO_MAP_FD:
		return (uint64_t)find_map(it, insn->imm);
	case BPF_PSEUDO_MAP_VALUE:
		return (uint64_t)find_map(it, insn->imm)->values[0] + (uint32_t)insn[1].imm;
	case BPF_PSEUDO_BTF_ID: /* a function of later kernels: as on Linux 6.1 there is none */
		return 0;
	default:
		fail_msg("a constant of another kind: %d", insn->src_reg);
		return 0;
	}
}

static uint64_t call(struct interpreter *it, size_t at, const uint64_t *arguments, int depth);

/* One instruction that is neither jump nor call. */
static void step(struct interpreter *it, const struct bpf_insn *insn, uint64_t *reg)
{
	uint64_t operand = BPF_SRC(insn->code) == BPF_X ? reg[insn->src_reg] : (uint64_t)(int64_t)insn->imm;
	int size = BPF_SIZE(insn->code);

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU64:
		reg[insn->dst_reg] = alu_compute(insn, reg[insn->dst_reg], operand);
		break;
	case BPF_ALU:
		reg[insn->dst_reg] = alu_compute(insn, reg[insn->dst_reg], operand);
		if (BPF_OP(insn->code) != BPF_END)
			reg[insn->dst_reg] = (uint32_t)reg[insn->dst_reg];
		break;
	case BPF_LDX:
		reg[insn->dst_reg] = load(it, reg[insn->src_reg] + insn->off, size);
		break;
	case BPF_ST:
		store(it, reg[insn->dst_reg] + insn->off, (uint64_t)(int64_t)insn->imm, size);
		break;
	case BPF_STX:
		if (BPF_MODE(insn->code) == BPF_ATOMIC)
			swap(it, insn, reg);
		else
			store(it, reg[insn->dst_reg] + insn->off, reg[insn->src_reg], size);
		break;
	default:
		reg[insn->dst_reg] = constant(it, insn);
	}
}

/* The function that begins at an instruction. */
static uint64_t call(struct interpreter *it, size_t at, const uint64_t *arguments, int depth)
{
	uint64_t reg[MAX_BPF_REG] = {};

	assert_true(depth < FRAMES);
	memcpy(&reg[BPF_REG_1], arguments, 5 * sizeof(*arguments));
	reg[BPF_REG_10] = (uint64_t)it->stack + (depth + 1) * STACK_BYTES;
	for (;; at++) {
		const struct bpf_insn *insn = &it->insns[at];
		int class = BPF_CLASS(insn->code);

		it->function[it->function_of[at]].instructions++;
		if (insn->code == (BPF_JMP | BPF_EXIT)) {
			return reg[BPF_REG_0];
		} else if (is_call(insn)) {
			reg[BPF_REG_0] = call(it, at + 1 + insn->imm, &reg[BPF_REG_1], depth + 1);
		} else if (insn->code == (BPF_JMP | BPF_CALL)) {
			assert_int_equal(insn->src_reg, 0);
			it->function[it->function_of[at]].helper_calls++;
			reg[BPF_REG_0] = help(it, insn->imm, reg);
		} else if (class == BPF_JMP || class == BPF_JMP32) {
			if (alu_jumps(insn, reg[insn->dst_reg],
				      BPF_SRC(insn->code) == BPF_X ? reg[insn->src_reg] : (uint64_t)(int64_t)insn->imm))
				at += insn->off;
		} else {
			step(it, insn, reg);
			at += insn->code == (BPF_LD | BPF_IMM | BPF_DW);
		}
	}
}

void interpreter_advance(struct interpreter *it, uint64_t ns)
{
	it->now_ns += ns;
}

int interpreter_run(struct interpreter *it, uint8_t *frame, size_t frame_bytes)
{
	uint64_t arguments[5] = {(uint64_t)&it->context};

	it->frame = frame;
	it->frame_bytes = frame_bytes;
	it->line_count = 0;
	return (int)call(it, 0, arguments, 0);
}

void interpreter_reset(struct interpreter *it)
{
	for (size_t i = 0; i < it->function_count; i++)
		it->function[i].instructions = it->function[i].helper_calls = 0;
	for (size_t i = 0; i < it->map_count; i++)
		it->touched[i].lines = 0;
}

size_t interpreter_functions(const struct interpreter *it, const struct interpreter_function **ret_functions)
{
	*ret_functions = it->function;
	return it->function_count;
}

size_t interpreter_maps(const struct interpreter *it, const struct interpreter_map **ret_maps)
{
	*ret_maps = it->touched;
	return it->map_count;
}
