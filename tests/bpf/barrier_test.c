// SPDX-License-Identifier: GPL-2.0-only
/*
 * A full barrier is where docs/internals/lease.md and docs/internals/ordering.md need one, and no run shows that it is
 * missing: on x86 a store is late by some nanoseconds at most, and 40,000 races found nothing; others are needed on
 * weakly ordered machines alone, and are in the object for all. So the instructions are looked at.
 */
#include <elf.h>
#include <linux/bpf.h>
#include <string.h>

#include "../lib/claims.h"
#include "weir_abi.h"
#include "weir.skel.h"

struct function {
	const struct bpf_insn *insns;
	size_t count;
};

/* A function of its own, which is not inlined, in the object as the compiler made it. */
static struct function find_function(const char *name)
{
	size_t bytes;
	const uint8_t *object = weir_bpf__elf_bytes(&bytes);
	const Elf64_Ehdr *header = (const void *)object;
	const Elf64_Shdr *sections = (const void *)(object + header->e_shoff);

	for (int i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(object + sections[i].sh_offset);
		const char *names = (const char *)object + sections[sections[i].sh_link].sh_offset;

		for (size_t n = 0; sections[i].sh_type == SHT_SYMTAB && n < sections[i].sh_size / sizeof(*symbols); n++)
			if (!strcmp(names + symbols[n].st_name, name))
				return (struct function){
					.insns = (const void *)(object + sections[symbols[n].st_shndx].sh_offset +
								symbols[n].st_value),
					.count = symbols[n].st_size / sizeof(struct bpf_insn),
				};
	}
	fail_msg("no function '%s'", name);
	return (struct function){};
}

/* An atomic addition whose result is used: Linux orders everything by it, on every processor. */
static bool is_full_barrier(const struct bpf_insn *insn)
{
	return insn->code == (BPF_STX | BPF_ATOMIC | BPF_DW) && insn->imm == (BPF_ADD | BPF_FETCH);
}

static bool is_jump(const struct bpf_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_JMP || BPF_CLASS(insn->code) == BPF_JMP32;
}

/* A cell has 32 bits. The barrier of those that ask everybody is followed by no load. */
CLAIM(a_cpu_that_its_cell_names_already_looks_at_it_again_behind_a_barrier)
{
	const struct function announce = find_function("weir_announce_or_ask_all");
	uint32_t looks = 0;

	assert_true(announce.count > 0);
	for (size_t i = 0; i < announce.count; i++) {
		size_t next = i + 1;

		if (!is_full_barrier(&announce.insns[i]))
			continue;
		while (next < announce.count && !is_jump(&announce.insns[next]) &&
		       announce.insns[next].code != (BPF_LDX | BPF_MEM | BPF_W))
			next++;
		looks += next < announce.count && !is_jump(&announce.insns[next]);
	}
	assert_int_equal(looks, 1);
}

static uint32_t full_barriers_in(const char *name)
{
	const struct function function = find_function(name);
	uint32_t barriers = 0;

	for (size_t i = 0; i < function.count; i++)
		barriers += is_full_barrier(&function.insns[i]);
	return barriers;
}

static bool is_compared_with_zero(const struct bpf_insn *insn, uint8_t reg)
{
	return (insn->code == (BPF_JMP | BPF_JEQ | BPF_K) || insn->code == (BPF_JMP | BPF_JNE | BPF_K)) &&
	       insn->dst_reg == reg && !insn->imm;
}

/* Another CPU may have written the tag: then the compare-and-swap that would have has failed, and is no barrier. The
 * word is compared with 0 when it has been read, and before that perhaps its address.
 */
CLAIM(a_new_connections_word_is_looked_at_behind_a_barrier)
{
	const struct function insert = find_function("weir_insert_connection");
	uint32_t looks = 0;

	for (size_t i = 0; i + 3 < insert.count; i++) {
		const struct bpf_insn *load = &insert.insns[i + 1];

		if (is_compared_with_zero(load, (load + 1)->src_reg))
			load++;
		looks += is_full_barrier(&insert.insns[i]) && load->code == (BPF_LDX | BPF_MEM | BPF_DW) &&
			 is_compared_with_zero(load + 1, load->dst_reg);
	}
	assert_int_equal(looks, 1);
}

/* Whoever reads the count goes by what it counts: by the mean, or by the shortest one and the count. */
CLAIM(handshakes_are_counted_behind_a_barrier_and_their_times_read_behind_one)
{
	assert_int_equal(full_barriers_in("weir_note_handshake"), 1);
	assert_int_equal(full_barriers_in("weir_evaluate_system"), 2);
}

RUN_CLAIMS(NULL, NULL)
