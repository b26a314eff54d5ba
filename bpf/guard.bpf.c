// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs on the interfaces while a rule set is not confirmed yet (docs/changing.md): each hands packets to the
 * new rules until a deadline, and to the old ones after it. So the old rules return whatever happens to the command,
 * its terminal, or any other process: nothing has to wake up for it. All hooks read the deadline from one map, so they
 * switch together.
 *
 * The deadline is by CLOCK_BOOTTIME, which nobody can set and which runs while the machine sleeps: a user who closed
 * the lid has not confirmed in time.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "weir_guard.h"
#include "weir_hook.h"

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

/* The same for the hooks at tc, because a PROG_ARRAY holds programs of one type. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, WEIR_HOOKS *WEIR_GUARD_SETS);
	__type(key, __u32);
	__type(value, __u32);
} guard_tc_sets SEC(".maps");

static __always_inline bool weir_is_new_in_force(void)
{
	const __u32 zero = 0;
	const struct weir_guard *state = bpf_map_lookup_elem(&guard, &zero);

	return state && bpf_ktime_get_boot_ns() < *(volatile __u64 *)&state->returns_ns;
}

/* One of the two rule sets may have no program for a hook: then packets pass there. So they do when somebody has
 * removed the pins of the sets, and with them the programs: without rules to evaluate by, a host that can be reached is
 * the lesser evil.
 */
SEC("xdp.frags")
int weir_guard(struct xdp_md *ctx)
{
	if (weir_is_new_in_force())
		bpf_tail_call(ctx, &guard_sets, WEIR_GUARD_NEW);
	else
		bpf_tail_call(ctx, &guard_sets, WEIR_GUARD_OLD);
	return XDP_PASS;
}

static __always_inline int weir_guard_at(struct __sk_buff *skb, enum weir_hook hook)
{
	if (weir_is_new_in_force())
		bpf_tail_call(skb, &guard_tc_sets, WEIR_GUARD_SLOT(hook, WEIR_GUARD_NEW));
	else
		bpf_tail_call(skb, &guard_tc_sets, WEIR_GUARD_SLOT(hook, WEIR_GUARD_OLD));
	return TC_ACT_UNSPEC;
}

SEC("tc")
int weir_guard_in(struct __sk_buff *skb)
{
	return weir_guard_at(skb, WEIR_HOOK_TC_IN);
}

SEC("tc")
int weir_guard_out(struct __sk_buff *skb)
{
	return weir_guard_at(skb, WEIR_HOOK_TC_OUT);
}

SEC("tc")
int weir_guard_b_in(struct __sk_buff *skb)
{
	return weir_guard_at(skb, WEIR_HOOK_TC_BARE_IN);
}

SEC("tc")
int weir_guard_b_out(struct __sk_buff *skb)
{
	return weir_guard_at(skb, WEIR_HOOK_TC_BARE_OUT);
}

char LICENSE[] SEC("license") = "GPL";
