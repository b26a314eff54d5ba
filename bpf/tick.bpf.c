// SPDX-License-Identifier: GPL-2.0-only
/*
 * When was jiffy zero? Userspace cannot read jiffies; this program reads them beside CLOCK_MONOTONIC, so that the
 * loader can give the data plane the time of a tick (user/lib/kernel/program/tick.c).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "weir_abi.h"

SEC("syscall")
int weir_read_tick(struct weir_tick_reading *reading)
{
	reading->jiffies = bpf_jiffies64();
	reading->now_ns = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
