// SPDX-License-Identifier: GPL-2.0-only
#include "thresholds/control.h"

#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/ruleset.h"
#include "rules/scalars.h"
#include "thresholds/token_rates.h"
#include "weir_warm_up.h"

/* ---- memory ---- */

struct rational {
	unsigned __int128 num, den;
};

/* With thresholds up to 10^13 and marks up to 2^64, num is below 2^108; weir_emission_make requires less than 2^111. */
static struct rational allowed(const struct weir_memory_adaptive *params, uint64_t used_bytes)
{
	unsigned __int128 span_bytes;

	if (used_bytes <= params->low_mark_bytes)
		return (struct rational){params->low_units, 1};
	if (used_bytes >= params->high_mark_bytes)
		return (struct rational){params->high_units, 1};
	span_bytes = params->high_mark_bytes - params->low_mark_bytes;
	return (struct rational){
		.num = params->low_units * span_bytes - (unsigned __int128)(params->low_units - params->high_units) *
								(used_bytes - params->low_mark_bytes),
		.den = span_bytes,
	};
}

uint64_t weir_memory_adaptive_units(const struct weir_memory_adaptive *params, uint64_t used_bytes)
{
	struct rational units = allowed(params, used_bytes);

	return (uint64_t)(units.num / units.den);
}

void weir_memory_adaptive_emission(const struct weir_memory_adaptive *params, uint64_t used_bytes, uint64_t interval_ns,
				   struct weir_emission *ret_emission)
{
	struct rational units = allowed(params, used_bytes);

	weir_emission_make(interval_ns, units.num, units.den, ret_emission);
}

void weir_memory_adaptive_token_rate(const struct weir_memory_adaptive *params, uint64_t used_bytes,
				     uint64_t interval_ns, uint64_t unit, struct weir_token_rate *ret_rate)
{
	struct rational units = allowed(params, used_bytes);

	weir_tokens_rate(units.num, units.den, interval_ns, unit, ret_rate);
}

/* ---- setting up WarmUp ---- */

/* The bound that struct weir_warm_up guarantees to code that computes in 64 bits. */
#define NUMBER_END ((unsigned __int128)1 << 62)

static uint64_t greatest_common_divisor(unsigned __int128 a, uint64_t b)
{
	uint64_t rest;

	while (b) {
		rest = (uint64_t)(a % b);
		a = b;
		b = rest;
	}
	return (uint64_t)a;
}

static int too_large(const struct weir_ruleset_rule *rule, const struct weir_warm_up *params, struct weir_diag *diag)
{
	return weir_diag_error(diag, &rule->place, NULL,
			       params->limit_den > 1 ? "write a threshold with fewer decimals, or lower warmUpPeriodSec"
						     : "lower warmUpPeriodSec, or write a rounder threshold",
			       "rule '%s' warms up with numbers too large for exact arithmetic", rule->name);
}

/* interval / threshold in lowest terms, or 0 / 1. Returns false if the numerator does not fit. */
static bool set_cost(const struct weir_ruleset_rule *rule, struct weir_warm_up *params)
{
	unsigned __int128 num = (unsigned __int128)rule->interval_ns * WEIR_MICRO;
	uint64_t divisor;

	params->emission_den = 1;
	if (!weir_kind_of(rule)->has_emission || rule->threshold_micro < WEIR_MICRO)
		return true;
	divisor = greatest_common_divisor(num, rule->threshold_micro);
	num /= divisor;
	params->emission_num = (uint64_t)num;
	params->emission_den = rule->threshold_micro / divisor;
	return num <= UINT64_MAX;
}

int weir_warm_up_set_up(const struct weir_ruleset_rule *rule, struct weir_warm_up *ret_params, struct weir_diag *diag)
{
	/* R, tokens a second: threshold / interval. At most 2^74; multiplied by a period, 2^107. */
	const unsigned __int128 rate_num = (unsigned __int128)rule->threshold_micro * (WEIR_NSEC_PER_SEC / WEIR_MICRO);
	const unsigned __int128 rate_den = rule->interval_ns;
	const uint64_t divisor = greatest_common_divisor(rule->threshold_micro, WEIR_MICRO);
	const uint64_t cold_factor = rule->warm_up.cold_factor;
	unsigned __int128 warning, ramp, ramp_or_one;
	struct weir_warm_up params;

	memset(&params, 0, sizeof(params));
	params.limit_num = rule->threshold_micro / divisor;
	params.limit_den = WEIR_MICRO / divisor;
	params.cold_less_one = cold_factor - 1;
	warning = rate_num * rule->warm_up.period_s / (rate_den * (cold_factor - 1));
	ramp = 2 * rate_num * rule->warm_up.period_s / (rate_den * (cold_factor + 1));
	ramp_or_one = ramp ?: 1;
	if (warning + ramp >= NUMBER_END || rate_num / rate_den >= NUMBER_END ||
	    params.limit_den * ramp_or_one * cold_factor >= NUMBER_END)
		return too_large(rule, &params, diag);
	if (!set_cost(rule, &params) || params.emission_den * ramp_or_one >= NUMBER_END)
		return too_large(rule, &params, diag);
	params.warning = (uint64_t)warning;
	params.ramp = (uint64_t)ramp;
	params.max = params.warning + params.ramp;
	params.refill = (uint64_t)(rate_num / rate_den);
	params.refill_below = params.refill / cold_factor;
	*ret_params = params;
	return 0;
}

/* The bounds of struct weir_warm_up keep den, including the interval, below 2^109. */
void weir_warm_up_token_rate(const struct weir_warm_up *params, uint64_t stored, uint64_t interval_ns, uint64_t unit,
			     struct weir_token_rate *ret_rate)
{
	unsigned __int128 num = params->limit_num, den = params->limit_den;

	if (params->ramp && stored > params->warning) {
		num *= params->ramp;
		den *= (stored - params->warning) * params->cold_less_one + params->ramp;
	}
	weir_tokens_rate(num, den, interval_ns, unit, ret_rate);
}

/* If only the sum over some seconds is known, at most this many of them are filled in. Chosen, not derived: it bounds
 * the time of a step, and a sum spread over more than a day says little about any one second.
 */
#define FORGOTTEN_SECONDS_MAX 86400u

bool weir_control_warms_up(const struct weir_rule_info *rule)
{
	return rule->moves && rule->strategy == WEIR_STRATEGY_WARM_UP;
}

void weir_control_warm_start(const struct weir_rule_info *rule, uint64_t now_ns, struct weir_warm_state *ret_state)
{
	*ret_state = (struct weir_warm_state){
		.stored = rule->warm_up.max,
		.second = now_ns / WEIR_NSEC_PER_SEC,
	};
}

/* ---- what passed ---- */

/* What all CPUs counted, from the state's second up to the current one. */
struct passed {
	uint64_t total;
	uint64_t forgotten_end; /* some CPU may have forgotten seconds before this one */
	uint64_t forgotten;	/* units that passed in those seconds, from the state's second on */
	uint64_t since;		/* units in the current second, and later */
	/* By second. Each CPU remembers 16 seconds; those that no CPU has forgotten are among the last 16. */
	uint64_t second[WEIR_RULE_SECONDS];
	uint64_t units[WEIR_RULE_SECONDS];
	uint64_t known; /* sum of the units above */
};

/* The newest second in which any CPU counted; 0: none. An entry that was never used has no units. */
static uint64_t newest_second(const struct weir_rule_seconds *of_cpus, uint32_t cpus)
{
	uint64_t newest = 0;

	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		for (int i = 0; i < WEIR_RULE_SECONDS; i++)
			if (of_cpus[cpu].at[i].second > newest)
				newest = of_cpus[cpu].at[i].second;
	return newest;
}

static void add_second(struct passed *passed, const struct weir_rule_second *at, uint64_t first, uint64_t end)
{
	uint64_t index = at->second % WEIR_RULE_SECONDS;

	if (at->second >= end) {
		passed->since += at->units;
	} else if (at->second >= first && at->second >= passed->forgotten_end) {
		passed->second[index] = at->second;
		passed->units[index] += at->units;
		passed->known += at->units;
	}
}

/* Add the units of seconds `first` to `end` - 1. */
static void add_up(const struct weir_rule_seconds *of_cpus, uint32_t cpus, uint64_t first, uint64_t end,
		   uint64_t total_before, struct passed *passed)
{
	uint64_t newest = newest_second(of_cpus, cpus), accounted;

	*passed = (struct passed){.forgotten_end = first};
	if (newest >= first + WEIR_RULE_SECONDS)
		passed->forgotten_end = newest - WEIR_RULE_SECONDS + 1;
	if (passed->forgotten_end > end)
		passed->forgotten_end = end;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		passed->total += of_cpus[cpu].total;
		for (int i = 0; i < WEIR_RULE_SECONDS; i++)
			add_second(passed, &of_cpus[cpu].at[i], first, end);
	}
	/* Totals and seconds change while they are read, so a sum may be off by what passed meanwhile. */
	accounted = total_before + passed->known + passed->since;
	passed->forgotten = passed->total > accounted ? passed->total - accounted : 0;
}

/* ---- the steps of WarmUp ---- */

/* Sync `seconds` seconds in which `units` passed in total. */
static uint64_t sync_forgotten(const struct weir_warm_up *params, uint64_t stored, uint64_t seconds, uint64_t units)
{
	uint64_t each, more;

	if (!units)
		return weir_warm_up_idle(params, stored, seconds);
	each = units / seconds;
	more = units % seconds; /* this many seconds pass one unit more; they come first */
	if (seconds > FORGOTTEN_SECONDS_MAX) {
		more = more > seconds - FORGOTTEN_SECONDS_MAX ? more - (seconds - FORGOTTEN_SECONDS_MAX) : 0;
		seconds = FORGOTTEN_SECONDS_MAX;
	}
	for (uint64_t i = 0; i < seconds; i++)
		stored = weir_warm_up_sync(params, stored, each + (i < more));
	return stored;
}

/* Sync seconds `first` to `end` - 1. Runs of seconds in which nothing passed are done in one step. */
static uint64_t sync_known(const struct weir_warm_up *params, uint64_t stored, const struct passed *passed,
			   uint64_t first, uint64_t end)
{
	uint64_t next = first;

	/* All known units are within 16 seconds of each other; nothing passed before the earliest. */
	while (next < end) {
		uint64_t earliest = end, units = 0;

		for (int i = 0; i < WEIR_RULE_SECONDS; i++) {
			if (passed->second[i] < next || passed->second[i] >= earliest || !passed->units[i])
				continue;
			earliest = passed->second[i];
			units = passed->units[i];
		}
		stored = weir_warm_up_idle(params, stored, earliest - next);
		if (earliest < end)
			stored = weir_warm_up_sync(params, stored, units);
		next = earliest + 1;
	}
	return stored;
}

void weir_control_sync(const struct weir_rule_info *rule, const struct weir_rule_seconds *of_cpus, uint32_t cpus,
		       uint64_t now_ns, struct weir_warm_state *state)
{
	uint64_t now_s = now_ns / WEIR_NSEC_PER_SEC, forgotten_s;
	const struct weir_warm_up *params = &rule->warm_up;
	struct passed passed;

	/* A reload may have lowered the maximum. */
	if (state->stored > params->max)
		state->stored = params->max;
	if (now_s <= state->second)
		return;
	add_up(of_cpus, cpus, state->second, now_s, state->total, &passed);
	forgotten_s = passed.forgotten_end - state->second;
	if (forgotten_s)
		state->stored = sync_forgotten(params, state->stored, forgotten_s, passed.forgotten);
	state->stored = sync_known(params, state->stored, &passed, passed.forgotten_end, now_s);
	state->second = now_s;
	state->total = passed.total - passed.since;
}

/* ---- thresholds ---- */

static void allow_by_memory(const struct weir_rule_info *rule, const struct weir_memory_use *memory, uint64_t now_ns,
			    struct weir_allowance *allowance)
{
	/* Unknown usage is treated as the worst case: highMemUsageThreshold. */
	uint64_t used_bytes = memory->is_known && now_ns < memory->holds_until_ns ? memory->used_bytes : UINT64_MAX;

	allowance->units = weir_memory_adaptive_units(&rule->memory, used_bytes);
	if (weir_kind_of_info(rule)->has_emission)
		weir_memory_adaptive_emission(&rule->memory, used_bytes, rule->identity.interval_ns,
					      &allowance->emission);
	if (weir_kind_of_info(rule)->has_tokens)
		weir_memory_adaptive_token_rate(&rule->memory, used_bytes, rule->identity.interval_ns,
						rule->tokens.unit, &allowance->rate);
}

void weir_control_allow(const struct weir_rule_info *rule, const struct weir_warm_state *state,
			const struct weir_memory_use *memory, uint64_t now_ns, struct weir_allowance *ret_allowance)
{
	*ret_allowance = (struct weir_allowance){};
	if (!weir_control_warms_up(rule)) {
		allow_by_memory(rule, memory, now_ns, ret_allowance);
		return;
	}
	ret_allowance->units = weir_warm_up_units(&rule->warm_up, state->stored);
	if (weir_kind_of_info(rule)->has_emission)
		weir_warm_up_emission(&rule->warm_up, state->stored, &ret_allowance->emission);
	if (weir_kind_of_info(rule)->has_tokens)
		weir_warm_up_token_rate(&rule->warm_up, state->stored, rule->identity.interval_ns, rule->tokens.unit,
					&ret_allowance->rate);
}

/* Publish an emission interval or a clock; the other is NULL. */
static void publish(struct weir_pushed *pushed, uint64_t units, const struct weir_emission *emission,
		    const struct weir_token_clock *clock)
{
	const uint8_t before = pushed->word >> WEIR_THRESHOLD_BITS;
	/* Versions alternate between odd and even, since the lowest bit selects a copy. Values that rows never accept
	 * are skipped.
	 */
	const uint8_t version = before % 128 >= WEIR_VERSIONS ? before / 128 * 128 + 129 + before % 2 : before + 1;

	/* The unused copy is the one that the previous word pointed to. The current word must be visible before this
	 * copy is overwritten.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (clock)
		pushed->clock[version & 1] = *clock;
	if (emission)
		pushed->emission[version & 1] = *emission;
	/* The copy must be visible before the word that points to it. */
	__atomic_store_n(&pushed->word, WEIR_THRESHOLD_WORD(units, version), __ATOMIC_RELEASE);
}

bool weir_control_publish(struct weir_pushed *pushed, const struct weir_allowance *allowance)
{
	uint64_t word = __atomic_load_n(&pushed->word, __ATOMIC_RELAXED);
	uint8_t version = word >> WEIR_THRESHOLD_BITS;

	if ((word & WEIR_THRESHOLD_MASK) == allowance->units &&
	    !memcmp(&pushed->emission[version & 1], &allowance->emission, sizeof(allowance->emission)))
		return false;
	publish(pushed, allowance->units, &allowance->emission, NULL);
	return true;
}

void weir_control_read_clock(const struct weir_pushed *pushed, struct weir_token_clock *ret_clock)
{
	uint64_t word;

	/* Repeat until nothing was pushed during the reading. */
	do {
		word = __atomic_load_n(&pushed->word, __ATOMIC_ACQUIRE);
		*ret_clock = pushed->clock[word >> WEIR_THRESHOLD_BITS & 1];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&pushed->word, __ATOMIC_RELAXED) != word);
}

bool weir_control_publish_rate(struct weir_pushed *pushed, const struct weir_allowance *allowance, uint64_t at_ns)
{
	struct weir_token_clock clock;

	weir_control_read_clock(pushed, &clock);
	if (at_ns < clock.start_ns || weir_tokens_same_rate(&clock.rate, &allowance->rate))
		return false;
	weir_turn_token_clock(&clock, at_ns, &allowance->rate);
	publish(pushed, allowance->units, NULL, &clock);
	return true;
}

void weir_control_expire(struct weir_pushed *pushed, const struct weir_rule_info *rule, uint64_t expiry_ns,
			 uint64_t now_ns)
{
	struct weir_token_clock clock;

	weir_control_read_clock(pushed, &clock);
	if (now_ns < expiry_ns || weir_tokens_same_rate(&clock.rate, &rule->tokens.clock.rate))
		return;
	weir_expire_token_clock(&clock, expiry_ns, now_ns, &rule->tokens.clock.rate);
	publish(pushed, pushed->word & WEIR_THRESHOLD_MASK, NULL, &clock);
}
