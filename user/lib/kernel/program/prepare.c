// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens to a program when libbpf has finished it, with all its functions, maps and references, and before it
 * passes it to the kernel: its configuration is folded into it (fold/fold.h). And what libbpf must not do before.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "fold/fold.h"
#include "host/host.h"
#include "program/object_internal.h"

/* libbpf calls back without saying for which object. */
static __thread struct preparation *preparing;

void weir_object_start_preparing(struct preparation *preparation)
{
	preparing = preparation;
}

void weir_object_stop_preparing(struct preparation *preparation)
{
	preparing = NULL;
	free(preparation->functions);
	free(preparation->lines);
}

static void *copy(const void *from, size_t bytes)
{
	void *to = malloc(bytes);

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

static uint8_t *count_arguments(const struct btf *btf, const struct bpf_func_info *functions, uint32_t count)
{
	uint8_t *arguments = malloc(count);

	for (uint32_t i = 0; arguments && i < count; i++) {
		const struct btf_type *function = btf__type_by_id(btf, functions[i].type_id);

		arguments[i] = btf_vlen(btf__type_by_id(btf, function->type));
	}
	return arguments;
}

/* The kernel gets the folded functions and lines from here, so they stay until the load is over. */
static int fold(struct bpf_program *program, struct bpf_prog_load_opts *options)
{
	const size_t functions_bytes = options->func_info_cnt * sizeof(struct bpf_func_info);
	const size_t lines_bytes = options->line_info_cnt * sizeof(struct bpf_line_info);
	const size_t insn_count = bpf_program__insn_cnt(program);
	_cleanup_(weir_freep) void *insns = copy(bpf_program__insns(program), insn_count * sizeof(struct bpf_insn));
	_cleanup_(weir_freep) void *functions = copy(options->func_info, functions_bytes);
	_cleanup_(weir_freep) void *lines = copy(options->line_info, lines_bytes);
	_cleanup_(weir_freep) uint8_t *arguments =
		count_arguments(bpf_object__btf(preparing->object), options->func_info, options->func_info_cnt);
	struct weir_constants constants = {.map_fd = bpf_map__fd(preparing->constants)};
	struct weir_code code = {
		.insns = insns,
		.insn_count = insn_count,
		.functions = functions,
		.arguments = arguments,
		.function_count = options->func_info_cnt,
		.lines = lines,
		.line_count = options->line_info_cnt,
		.stores_to_context = bpf_program__type(program) == BPF_PROG_TYPE_SCHED_CLS,
	};
	int err = insns && functions && lines && arguments ? 0 : -ENOMEM;

	constants.bytes = bpf_map__initial_value((struct bpf_map *)(uintptr_t)preparing->constants, &constants.size);
	if (!err)
		err = weir_fold(&code, &constants);
	if (!err)
		err = bpf_program__set_insns(program, code.insns, code.insn_count);
	if (err)
		return err;
	free(preparing->functions); /* of the program before, which is loaded */
	free(preparing->lines);
	options->func_info = preparing->functions = TAKE_PTR(functions);
	options->func_info_cnt = code.function_count;
	options->line_info = preparing->lines = TAKE_PTR(lines);
	options->line_info_cnt = code.line_count;
	return 0;
}

/* libbpf calls this before it loads a program of the section. It replaces libbpf's own step, which would set the flag.
 */
static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	int err = weir_object_refuse_half_a_program(options);

	options->prog_flags |= cookie;
	if (err || !preparing || !preparing->constants || options->func_info_rec_size != sizeof(struct bpf_func_info) ||
	    options->line_info_rec_size != sizeof(struct bpf_line_info))
		return err;
	return fold(program, options);
}

/*
 * If vmlinux lacks a weak kfunc (before Linux 6.2), libbpf looks for it in modules. Listing modules takes
 * CAP_SYS_ADMIN, and libbpf 1.1 treats a lack of this capability as a failure of the load; but it lists them only once.
 * So make it list them here, for a function that does not exist. Afterwards it correctly finds the kfunc missing. Newer
 * libbpf (1.5) handles missing modules itself.
 */
void weir_object_skip_module_btfs(struct bpf_program *program)
{
	if (!weir_host_kernel_is_at_least(6, 2))
		bpf_program__set_attach_target(program, 0, "weir_nowhere");
}

void weir_object_register_handlers(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, xdp, .prog_prepare_load_fn = prepare, .cookie = BPF_F_XDP_HAS_FRAGS);
	LIBBPF_OPTS(libbpf_prog_handler_opts, tc, .prog_prepare_load_fn = prepare);

	/* These fail only for lack of memory. libbpf then loads programs in its own way. */
	libbpf_register_prog_handler("xdp.frags", BPF_PROG_TYPE_XDP, BPF_XDP, &xdp);
	libbpf_register_prog_handler("tc", BPF_PROG_TYPE_SCHED_CLS, 0, &tc);
}
