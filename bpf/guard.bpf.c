// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program on the interfaces while a rule set is not confirmed yet (docs/changing.md): it hands each packet to the
 * new rules until a moment, and from that moment on to the old ones. So the old rules come back whatever becomes of the
 * command, of its terminal, and of every other process: nothing has to wake up for it.
 *
 * The moment is by CLOCK_BOOTTIME, which nobody can set and which runs while the machine sleeps: a user who closed
 * the lid has not confirmed in time.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "weir_guard.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_guard);
} guard SEC(".maps");

/* By enum weir_guard_set. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, WEIR_GUARD_SETS);
	__type(key, __u32);
	__type(value, __u32);
} guard_sets SEC(".maps");

SEC("xdp.frags")
int weir_guard(struct xdp_md *ctx)
{
	const __u32 zero = 0;
	const struct weir_guard *state = bpf_map_lookup_elem(&guard, &zero);

	if (state && bpf_ktime_get_boot_ns() < *(volatile __u64 *)&state->returns_ns)
		bpf_tail_call(ctx, &guard_sets, WEIR_GUARD_NEW);
	bpf_tail_call(ctx, &guard_sets, WEIR_GUARD_OLD);
	/* Only when somebody has removed the pin of guard_sets, and with it both programs. Without rules to evaluate
	 * by, a host that can be reached is the lesser evil.
	 */
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
