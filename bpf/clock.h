/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time, as cheaply as the promises allow.
 *
 * CLOCK_MONOTONIC costs as much as everything else on the drop path together, so it is read only when a
 * decision needs it, and mostly at most once a packet. What that path needs is weaker: "is the bucket that this CPU
 * last saw surely not over yet?" Jiffies answer that in a fraction of a nanosecond. They advance in steps
 * of tick_ns of the same clock, so if K was the time when jiffies showed J (J was read first), then while
 * they show J' it is earlier than K + (J' - J + 1) * tick_ns.
 *
 * Jiffies can lag, where a timer interrupt is late (virtual CPUs: by more than a tick). A full flow then stays
 * full that much longer, no more: packets are never admitted by jiffies alone. Tried for leap windows, which only
 * ask which bucket it is: 30 ns less, and 1,048 of 1,000 in an interval of true time (tests/bpf/cpus_test). What
 * a leap window goes by, if both agree, is jiffies and this CPU's own next timer interrupt (timer.h).
 */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include "maps.h"
#include "timer.h"

static __always_inline struct weir_lab *weir_lab(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&lab, &zero);
}

static __always_inline __u64 weir_now_ns(struct weir_work *w)
{
	if (!w->has_now) {
		if (config.is_virtual) {
			struct weir_lab *l = weir_lab();

			w->now_ns = l ? l->clock_ns : 0;
		} else {
			w->jiffies = bpf_jiffies64(); /* before the clock: see above */
			w->now_ns = bpf_ktime_get_ns();
		}
		w->has_now = 1;
	}
	return w->now_ns;
}

static __always_inline bool weir_clock_covers(const struct weir_clock *clk, __u64 now_ns)
{
	return now_ns >= clk->start_ns && now_ns < clk->end_ns;
}

/* The bucket in *clk is surely not over, and no clock was read to know it. Where a jiffy's length is not known,
 * until_jiffies stays 0.
 */
static __always_inline bool weir_clock_holds(const struct weir_clock *clk)
{
	return bpf_jiffies64() < clk->until_jiffies;
}

/* The bucket in *clk is not over. Jiffies do not tell so of its last tick or two: the clock does. */
static __always_inline bool weir_clock_is_in_bucket(struct weir_work *w, const struct weir_clock *clk)
{
	if (weir_clock_holds(clk))
		return true;
	weir_now_ns(w);
	return weir_clock_covers(clk, w->now_ns);
}

/* Until when the clock need not be read, going by the timer: not beyond the epoch of presence.h, which is told by
 * the time that was read last.
 */
static __always_inline __u64 weir_span_of(struct weir_work *w, const struct weir_clock *clk)
{
	__u64 epoch_end_ns = ((w->now_ns >> config.presence_shift) + 1) << config.presence_shift;

	if (config.is_virtual)
		return 0;
	return weir_timer_span_ns(w, clk, clk->end_ns < epoch_end_ns ? clk->end_ns : epoch_end_ns);
}

/* The bucket in *clk is not the one that w->now_ns lies in: make it that. */
static __always_inline void weir_clock_set(struct weir_work *w, struct weir_clock *clk, __u64 bucket_ns,
					   __u64 base_bucket, __u32 wide)
{
	__u64 bucket = w->now_ns / bucket_ns;

	clk->start_ns = bucket * bucket_ns;
	clk->end_ns = clk->start_ns + bucket_ns;
	/* Before the base lies only what no row can hold: userspace sets it before the first packet. */
	bucket = bucket > base_bucket ? bucket - base_bucket : 0;
	if (!wide && bucket > WEIR_NARROW_BUCKET_MAX)
		bucket = WEIR_NARROW_BUCKET_MAX;
	clk->bucket = bucket;
	clk->cell = bucket % WEIR_RING_CELLS;
	clk->salt += WEIR_SALT_STEP;
	clk->timer_span_ns = 0;
	clk->until_jiffies = config.tick_ns ? w->jiffies + (clk->end_ns - w->now_ns) / config.tick_ns : 0;
}

/* The same out of line, as it is once a bucket. */
__noinline int weir_clock_turn(struct weir_work *w, struct weir_clock *clk, __u64 bucket_ns, __u64 base_bucket,
			       __u32 wide)
{
	if (w && clk)
		weir_clock_set(w, clk, bucket_ns, base_bucket, wide);
	return 0;
}

/* Bring *clk to the present; the bucket lies at base_bucket + clk->bucket on absolute time. Narrow rows hold 32 bits of
 * that: the last number, after years, stays for ever, so that what has used up its limit is blocked from then on.
 */
static __always_inline void weir_clock_update(struct weir_work *w, struct weir_clock *clk, __u64 bucket_ns,
					      __u64 base_bucket, const bool wide)
{
	weir_now_ns(w);
	if (unlikely(!weir_clock_covers(clk, w->now_ns)))
		weir_clock_turn(w, clk, bucket_ns, base_bucket, wide);
}

/* Bring *clk to the present, for a window that only asks which bucket it is. */
static __always_inline void weir_clock_enter(struct weir_work *w, struct weir_clock *clk, const struct weir_rule *rule,
					     const bool wide)
{
	bool goes_by_timer = rule->window == WEIR_WINDOW_LEAP;

	if (!w->has_now && goes_by_timer && weir_clock_holds(clk) && weir_timer_holds(w, clk))
		return;
	weir_clock_update(w, clk, rule->bucket_ns, rule->base_bucket, wide);
	if (goes_by_timer)
		clk->timer_span_ns = weir_span_of(w, clk);
}

/* The bucket in *clk is over by now, whatever was read for this packet before. */
static __always_inline bool weir_clock_ran_on(struct weir_work *w, const struct weir_clock *clk)
{
	w->has_now = 0;
	return weir_now_ns(w) >= clk->end_ns;
}

/* This CPU's clock of a timing that narrow rows can name. */
static __always_inline struct weir_clock *weir_narrow_clock(struct weir_work *w, __u32 timing)
{
	OPAQUE(timing);
	return &w->narrow[timing & (WEIR_TIMINGS_NARROW - 1)];
}

__noinline int weir_update_second(struct weir_work *w)
{
	if (w)
		weir_clock_update(w, &w->second, WEIR_NSEC_PER_SEC, 0, true);
	return 0;
}

/* The present second of the data plane's clock. At its end by up to a tick late, as nothing is decided by it. */
static __always_inline __u64 weir_now_second(struct weir_work *w)
{
	if (unlikely(!weir_clock_holds(&w->second)))
		weir_update_second(w);
	return w->second.bucket;
}

#endif
