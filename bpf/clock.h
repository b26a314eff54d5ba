/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * There are two clocks, and each window spec (bucket length and window) uses one of them.
 *
 * The *tick*: jiffies, converted to ns of CLOCK_MONOTONIC. Reading them takes a fraction of a nanosecond, and every CPU
 * reads the same number. `leap` windows with buckets of 50 ms and more use it. A late tick makes a bucket begin late on
 * all CPUs, so a window of ticks never counts more than its threshold (docs/semantics.md, 1, has the bound in true
 * time). An idle machine stops its ticks; the interrupt that wakes it brings jiffies up to date before any packet is
 * seen.
 *
 * CLOCK_MONOTONIC itself: reading it takes 25 to 45 ns, and also waits for all pending loads. Everything else uses it.
 * It is read at most once per packet, unless an evaluation is repeated.
 *
 * In the harness (replay, tests) both are virtual: a tick is a nanosecond, so a bucket begins exactly where it should.
 */
#ifndef WEIR_CLOCK_H
#define WEIR_CLOCK_H

#include "maps.h"

static __always_inline struct weir_harness *weir_harness(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&harness, &zero);
}

/* The time at which jiffies became this number. */
static __always_inline __u64 weir_tick_time_ns(__u64 jiffies)
{
	return jiffies * config.tick_ns + config.tick_origin_ns;
}

static __always_inline __u64 weir_tick_now(void)
{
	struct weir_harness *l = config.is_virtual ? weir_harness() : NULL;

	return l ? l->clock_ns - l->tick_late_ns : bpf_jiffies64();
}

static __always_inline void weir_set_tick(struct weir_scratch *s, __u64 tick)
{
	s->tick = tick;
	s->tick_ns = weir_tick_time_ns(tick);
	s->tick_s = s->tick_ns / WEIR_NSEC_PER_SEC;
}

/* The packet's time, by CLOCK_MONOTONIC. */
static __always_inline __u64 weir_now_ns(struct weir_scratch *s)
{
	if (!s->has_now) {
		if (config.is_virtual) {
			struct weir_harness *l = weir_harness();

			s->now_ns = l ? l->clock_ns : 0;
		} else {
			s->now_ns = bpf_ktime_get_ns();
		}
		s->has_now = 1;
	}
	return s->now_ns;
}

/* Read the clocks again, when an evaluation is repeated. The tick is read first, so it is always older than
 * CLOCK_MONOTONIC (weir_clock_limit() relies on that). What else a new tick changes waits for the next packet
 * (weir_enter()).
 */
static __always_inline void weir_reread_tick(struct weir_scratch *s)
{
	__u64 tick = weir_tick_now();

	s->has_now = 0;
	if (tick != s->tick)
		weir_set_tick(s, tick);
}

/* Do jiffies prove that the bucket in *clk is the present one? For a window spec that uses the tick, this answer is
 * complete. For one that uses CLOCK_MONOTONIC, jiffies prove nothing in the bucket's last tick. If a tick is late, the
 * bucket is taken for the present one that much longer.
 */
static __always_inline bool weir_clock_is_current(const struct weir_scratch *s, const struct weir_clock *clk)
{
	return s->tick - clk->since_jiffies < clk->sure_jiffies;
}

static __always_inline bool weir_clock_covers(const struct weir_clock *clk, __u64 now_ns)
{
	return now_ns >= clk->start_ns && now_ns < clk->end_ns;
}

/* Compute from which jiffy on, and for how many, the bucket is certainly the present one. Jiffies were read before
 * CLOCK_MONOTONIC, so while they show n more, it is earlier than now + (n + 1) ticks.
 */
static __always_inline void weir_clock_limit(struct weir_clock *clk, __u64 jiffies, __u64 now_ns, const bool by_ticks)
{
	__u64 tick_ns = config.tick_ns, past = 0;

	if (by_ticks) {
		past = (now_ns - clk->start_ns) / tick_ns;
		clk->sure_jiffies = past + (clk->end_ns - now_ns + tick_ns - 1) / tick_ns;
	} else {
		clk->sure_jiffies = (clk->end_ns - now_ns) / tick_ns;
	}
	clk->since_jiffies = jiffies - past;
}

#define WEIR_SALT_STEP 0x9e3779b9u /* odd: a salt comes back after 2^32 buckets (Knuth, TAOCP 3, 6.4) */

/* Make *clk the bucket of now_ns, on a window spec. Narrow and medium rows have 32 bits for a bucket's number. After
 * some years the largest number stays for ever, and a flow that has used up its limit then stays blocked.
 */
static __always_inline void weir_clock_set(struct weir_clock *clk, __u64 jiffies, __u64 now_ns,
					   const struct weir_window_spec *spec, const enum weir_width wide)
{
	__u64 bucket_ns = spec->bucket_ns, bucket;

	if (!bucket_ns)
		return;
	bucket = now_ns / bucket_ns;
	clk->salt += WEIR_SALT_STEP;
	clk->start_ns = bucket * bucket_ns;
	clk->end_ns = clk->start_ns + bucket_ns;
	/* Userspace sets the base before the first packet, so no row has an earlier bucket. */
	bucket = bucket > spec->base_bucket ? bucket - spec->base_bucket : 0;
	if (wide != WEIR_WIDE && bucket > WEIR_NARROW_BUCKET_MAX)
		bucket = WEIR_NARROW_BUCKET_MAX;
	clk->bucket = bucket;
	clk->cell = bucket % WEIR_RING_CELLS;
	weir_clock_limit(clk, jiffies, now_ns, spec->goes_by_ticks);
}

/* Make *clk the bucket of s->tick, or of s->now_ns. Out of line, as it runs once a bucket. */
__noinline int weir_clock_turn(struct weir_scratch *s, struct weir_clock *clk, __u32 spec, __u32 wide)
{
	const struct weir_window_spec *t = bpf_map_lookup_elem(&window_specs, &spec);

	if (!s || !clk || !t)
		return 0;
	weir_clock_set(clk, s->tick, t->goes_by_ticks ? s->tick_ns : s->now_ns, t, wide);
	return 0;
}

/* Bring *clk, the clock of the rule's window spec, to the present, by reading the clock that the window spec uses. */
static __always_inline void weir_clock_enter(struct weir_scratch *s, struct weir_clock *clk,
					     const struct weir_rule *rule, const enum weir_width wide)
{
	if (unlikely(rule->goes_by_ticks ? !weir_clock_is_current(s, clk) : !weir_clock_covers(clk, weir_now_ns(s))))
		weir_clock_turn(s, clk, rule->spec, wide);
}

/* Read the clock once more: is the bucket in *clk over by now, whatever was read for this packet before? */
static __always_inline bool weir_reread_is_over(struct weir_scratch *s, const struct weir_clock *clk,
						const struct weir_rule *rule)
{
	weir_reread_tick(s);
	return rule->goes_by_ticks ? !weir_clock_is_current(s, clk) : weir_now_ns(s) >= clk->end_ns;
}

/* The time that an evaluation by this rule uses, after weir_clock_enter(). */
static __always_inline __u64 weir_rule_time_ns(struct weir_scratch *s, const struct weir_rule *rule)
{
	return rule->goes_by_ticks ? s->tick_ns : weir_now_ns(s);
}

/* This CPU's clock of a window spec, for rows of this format. */
static __always_inline struct weir_clock *weir_clock_of(struct weir_scratch *s, __u32 spec, const enum weir_width wide)
{
	if (wide == WEIR_WIDE)
		return bpf_map_lookup_elem(&clocks, &spec);
	OPAQUE(spec);
	return &s->narrow_clock[spec & (WEIR_SPECS_NARROW - 1)];
}

#endif
