/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is it still the bucket that it was? Told by this CPU's next timer interrupt, without reading a clock: 25 ns less.
 *
 * The kernel keeps in hrtimer_cpu_base.expires_next when, by CLOCK_MONOTONIC, it told the CPU's timer to
 * interrupt next. A program of XDP runs with interrupts on: so it is earlier than that, or later by no more than
 * what it takes an interrupt to arrive. Is that before the bucket's end, then the bucket is not over. Unlike
 * jiffies, which another CPU moves on, or does not while its host lets it wait, this is the CPU's own: where it
 * stalls the interrupt stalls with it. On two virtual CPUs with noisy neighbours, busy both for minutes, the latest
 * interrupt came 46 us after its time (jiffies are milliseconds late there). WEIR_TIMER_LATE_NS are allowed for. An
 * emulated machine has its interrupts from another thread of the emulator, which may have to wait while the CPU runs
 * on: where the clock, when it is read, shows that both have lagged, it is read for each packet from then on. (The
 * interrupt alone was once later than that on virtual CPUs, too.)
 *
 * Should an interrupt be later all the same, and jiffies too, packets are counted in a bucket that was over by as
 * much: as if they had come so much earlier. No window ever holds more than its threshold.
 *
 * Where it cannot be told (no bpf_rdonly_cast before Linux 6.2, other names in the kernel, no high-resolution timers, a
 * CPU that was offline at attach, a tick that is switched off and so has no next time in the bucket) the clock is read.
 */
#ifndef WEIR_TIMER_H
#define WEIR_TIMER_H

#include "maps.h"
#include "work.h"

#include <bpf/bpf_core_read.h>

/* As much of the kernel's structs as is asked for; where it lies is found at load (CO-RE). */
struct hrtimer_cpu_base {
	unsigned int cpu;
	unsigned int hres_active : 1;
	unsigned int hang_detected : 1;
	__s64 expires_next;
} __attribute__((preserve_access_index));

struct hrtimer_clock_base {
	struct hrtimer_cpu_base *cpu_base;
} __attribute__((preserve_access_index));

struct hrtimer {
	struct hrtimer_clock_base *base;
} __attribute__((preserve_access_index));

struct sched_dl_entity {
	struct hrtimer dl_timer;
} __attribute__((preserve_access_index));

struct task_struct {
	struct sched_dl_entity dl;
} __attribute__((preserve_access_index));

extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak; /* since Linux 6.2; costs nothing */

#define WEIR_TIMER_NEVER (~0ull >> 1) /* later than any bucket's end */

/* An interrupt later than this is taken for impossible: twenty times the latest that was seen. */
#define WEIR_TIMER_LATE_NS 1000000

/* For so long after both have lagged, the clock is read. */
#define WEIR_TIMER_DISTRUST_NS (600 * WEIR_NSEC_PER_SEC)

/* Does this kernel have all of it? Constants, once loaded: what they rule out is gone then. */
static __always_inline bool weir_has_timers(void)
{
	return bpf_rdonly_cast && bpf_core_field_exists(struct hrtimer_cpu_base, expires_next) &&
	       bpf_core_field_exists(struct hrtimer_cpu_base, hres_active) &&
	       bpf_core_field_exists(struct hrtimer_cpu_base, hang_detected);
}

static __always_inline bool weir_can_learn_timers(void)
{
	return weir_has_timers() && bpf_core_field_exists(struct hrtimer_cpu_base, cpu) &&
	       bpf_core_field_exists(struct hrtimer_clock_base, cpu_base) &&
	       bpf_core_field_exists(struct hrtimer, base) && bpf_core_field_exists(struct sched_dl_entity, dl_timer) &&
	       bpf_core_field_exists(struct task_struct, dl);
}

/*
 * To be run in a thread that was made on this CPU: then that is where the kernel put the timer every thread has for its
 * deadlines, and so it leads to the timers of the CPU.
 */
static __always_inline void weir_learn_timers_here(struct weir_work *w)
{
	struct hrtimer_cpu_base *base;
	struct task_struct *task;

	w->timers = 0;
	if (!weir_can_learn_timers())
		return;
	task = (struct task_struct *)bpf_get_current_task_btf();
	base = task->dl.dl_timer.base->cpu_base;
	if (base->cpu == bpf_get_smp_processor_id())
		w->timers = (__u64)base;
}

/* When the next interrupt is due. Where the timer has the resolution of the tick alone, and after a hang, the kernel
 * lets it come later than it says: then it tells nothing.
 */
static __always_inline void weir_read_timer(struct weir_work *w)
{
	struct hrtimer_cpu_base *base;
	bool is_sure;

	base = bpf_rdonly_cast((void *)w->timers, bpf_core_type_id_kernel(struct hrtimer_cpu_base));
	is_sure = BPF_CORE_READ_BITFIELD(base, hres_active) && !BPF_CORE_READ_BITFIELD(base, hang_detected);
	w->timer_ns = is_sure ? base->expires_next : WEIR_TIMER_NEVER;
	w->has_timer = 1;
}

/* The clock has been read, and the bucket in *clk is not over: do both witnesses lag, or have they of late? The
 * interrupt is overdue by more than was taken for possible, and jiffies promise more of the bucket than is left, and a
 * tick.
 */
static __always_inline bool weir_witnesses_lag(struct weir_work *w, const struct weir_clock *clk)
{
	weir_read_timer(w);
	if (unlikely(w->now_ns > w->timer_ns + WEIR_TIMER_LATE_NS) && clk->until_jiffies > w->jiffies &&
	    (clk->until_jiffies - w->jiffies - 1) * config.tick_ns > clk->end_ns - w->now_ns)
		w->lagged_ns = w->now_ns;
	return unlikely(w->lagged_ns) && w->now_ns - w->lagged_ns < WEIR_TIMER_DISTRUST_NS;
}

/* When the clock is read: until when the next interrupt has to be, that `end_ns` is not over before it. */
static __always_inline __u64 weir_timer_span_ns(struct weir_work *w, const struct weir_clock *clk, __u64 end_ns)
{
	if (!weir_has_timers() || !w->timers || end_ns - clk->start_ns <= WEIR_TIMER_LATE_NS ||
	    weir_witnesses_lag(w, clk))
		return 0;
	return end_ns - WEIR_TIMER_LATE_NS - clk->start_ns;
}

/* The bucket in *clk is surely not over. */
static __always_inline bool weir_timer_holds(struct weir_work *w, const struct weir_clock *clk)
{
	if (!weir_has_timers() || !clk->timer_span_ns)
		return false;
	if (!w->has_timer)
		weir_read_timer(w);
	return w->timer_ns - clk->start_ns < clk->timer_span_ns;
}

#endif
