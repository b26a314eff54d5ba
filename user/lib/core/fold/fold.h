/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room fold: what a load's configuration makes of a BPF program's instructions, before the kernel sees them. Pure: it
 * knows instructions, but neither libbpf nor weir's program.
 *
 * The configuration lies in a map that nobody can change. Linux removes the branches that it decides, but not the
 * instructions that fed them, and moves the whole program for each piece that it removes. So they are removed here:
 * loads from the configuration become numbers, which are followed through registers; branches that these decide go, and
 * so does what nobody reaches, what computes what nobody uses, and a call of a function that only returns a number.
 *
 * A packet's verdict and what the program writes stay the same. Everything that a folded branch knew, the verifier
 * knows as well, since it follows the same numbers. Loads from packets, maps and the context stay even if nobody uses
 * what they load: they may be there for the cache. Atomics and calls stay.
 */
#ifndef WEIR_FOLD_FOLD_H
#define WEIR_FOLD_FOLD_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As libbpf passes it to the kernel. A position is an instruction's; a wide one (BPF_LD | BPF_IMM | BPF_DW) has two. */
struct weir_code {
	struct bpf_insn *insns;
	uint32_t insn_count;
	struct bpf_func_info *functions; /* by position; the first begins at 0 */
	uint8_t *arguments;		 /* how many each of them has */
	uint32_t function_count;
	struct bpf_line_info *lines; /* by position */
	uint32_t line_count;
	bool stores_to_context; /* so stores keep their registers: Linux 6.1 takes no numbers there */
};

/* What loads from a map yield: this map's value, all of it. */
struct weir_constants {
	int map_fd;
	const void *bytes;
	size_t size;
};

/*
 * Fold the code in place; it gets shorter. A program with an instruction that this does not know stays as it is.
 * Returns 0, or -ENOMEM, and then the code is as it was.
 */
int weir_fold(struct weir_code *code, const struct weir_constants *constants);

#endif
