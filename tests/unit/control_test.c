// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller's step: what it makes of a state that is late, of seconds nobody remembers, of memory that
 * cannot be read; and how it pushes. The arithmetic of one sync is warm_up_test's.
 */
#include <string.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "rules/ruleset.h"
#include "thresholds/control.h"
#include "weir_emission.h"

#define SECOND_NS WEIR_NSEC_PER_SEC
#define LOADED_S 1000 /* of the data plane's clock */

static const struct weir_memory_use unknown_memory;

/* A resource with a WarmUp rule, and what its packets made of it. */
struct resource {
	struct weir_rule_info rule;
	struct weir_warm_state state;
	struct weir_rule_seconds of_cpu[2];
};

static struct weir_rule_info make_warm_up(uint64_t threshold, enum weir_behavior behavior)
{
	const struct weir_ruleset_rule written = {
		.name = "warm",
		.threshold_micro = threshold * WEIR_MICRO,
		.interval_ns = SECOND_NS,
		.samples = 10,
		.strategy = WEIR_STRATEGY_WARM_UP,
		.behavior = behavior,
		.warm_up = {.period_s = 10, .cold_factor = 3},
	};
	struct weir_rule_info rule = {
		.moves = 1,
		.strategy = WEIR_STRATEGY_WARM_UP,
		.behavior = behavior,
		.identity.interval_ns = SECOND_NS,
	};
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	assert_int_equal(weir_warm_up_set_up(&written, &rule.warm_up, &diag), 0);
	return rule;
}

static struct resource load(uint64_t threshold)
{
	struct resource resource = {.rule = make_warm_up(threshold, WEIR_BEHAVIOR_REJECT)};

	weir_control_warm_start(&resource.rule, LOADED_S * SECOND_NS, &resource.state);
	return resource;
}

/* As the program counts. */
static void pass(struct resource *resource, int cpu, uint64_t second, uint64_t units)
{
	struct weir_rule_seconds *seconds = &resource->of_cpu[cpu];
	struct weir_rule_second *at = &seconds->at[second % WEIR_RULE_SECONDS];

	if (at->second != second)
		*at = (struct weir_rule_second){.second = second};
	at->units += units;
	seconds->total += units;
}

static void sync_at(struct resource *resource, uint64_t now_ns)
{
	weir_control_sync(&resource->rule, resource->of_cpu, ARRAY_SIZE(resource->of_cpu), now_ns, &resource->state);
}

static uint64_t allowed(const struct resource *resource)
{
	struct weir_allowance allowance;

	weir_control_allow(&resource->rule, &resource->state, &unknown_memory, 0, &allowance);
	return allowance.units;
}

/* ---- WarmUp ---- */

CLAIM(saturated_start_follows_sentinels_published_curve)
{
	static const uint64_t published[] = {33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100};
	struct resource resource = load(100);

	for (uint64_t i = 0; i < ARRAY_SIZE(published); i++) {
		sync_at(&resource, (LOADED_S + i) * SECOND_NS + 1000000);
		assert_int_equal(allowed(&resource), published[i]);
		pass(&resource, i % 2, LOADED_S + i, published[i] / 2);
		pass(&resource, 0, LOADED_S + i, published[i] - published[i] / 2);
	}
}

/* The same packets, by one controller that ticks every second and by one that comes `late_s` seconds late. */
static void compare_late(uint64_t late_s, uint64_t (*units)(uint64_t second))
{
	struct resource prompt = load(100), late = prompt;

	for (uint64_t second = LOADED_S; second < LOADED_S + late_s; second++) {
		sync_at(&prompt, second * SECOND_NS);
		pass(&prompt, second % 2, second, units(second - LOADED_S));
	}
	memcpy(late.of_cpu, prompt.of_cpu, sizeof(late.of_cpu));
	sync_at(&prompt, (LOADED_S + late_s) * SECOND_NS);
	sync_at(&late, (LOADED_S + late_s) * SECOND_NS);
	assert_memory_equal(&late.state, &prompt.state, sizeof(late.state));
}

static uint64_t uneven(uint64_t second)
{
	static const uint64_t units[] = {90, 0, 33, 120, 1, 0, 0, 77, 34, 100, 100, 5, 0, 31};

	return units[second % ARRAY_SIZE(units)];
}

static uint64_t one_burst(uint64_t second)
{
	return second == 2 ? 90 : 0;
}

static uint64_t steady(uint64_t second)
{
	return 45;
}

static uint64_t nothing(uint64_t second)
{
	return 0;
}

CLAIM(missed_seconds_are_made_up_each_with_its_own_count)
{
	for (uint64_t late_s = 1; late_s <= WEIR_RULE_SECONDS; late_s++)
		compare_late(late_s, uneven);
}

CLAIM(idle_hours_after_a_burst_are_made_up_exactly)
{
	compare_late(4, one_burst);
	compare_late(100, one_burst);
	compare_late(36000, one_burst);
	compare_late(36000, nothing);
}

CLAIM(forgotten_seconds_count_by_their_average)
{
	struct resource prompt = load(100), late;

	compare_late(17, steady);
	compare_late(200, steady);

	/* Seconds are known one by one only for the last 16. */
	for (uint64_t second = LOADED_S; second < LOADED_S + 100; second++) {
		if (second <= LOADED_S + 85)
			sync_at(&prompt, second * SECOND_NS);
		pass(&prompt, 0, second, second < LOADED_S + 85 ? 40 : uneven(second));
	}
	late = load(100);
	memcpy(late.of_cpu, prompt.of_cpu, sizeof(late.of_cpu));
	sync_at(&prompt, (LOADED_S + 100) * SECOND_NS);
	sync_at(&late, (LOADED_S + 100) * SECOND_NS);
	assert_memory_equal(&late.state, &prompt.state, sizeof(late.state));
}

CLAIM(one_silent_cpu_forgets_nothing_for_the_other)
{
	struct resource resource = load(100);

	/* CPU 1 counts in one second and is silent; CPU 0 counts until that second is 20 ago. */
	pass(&resource, 1, LOADED_S, 60);
	for (uint64_t second = LOADED_S; second < LOADED_S + 20; second++)
		pass(&resource, 0, second, 50);
	sync_at(&resource, (LOADED_S + 20) * SECOND_NS);
	assert_int_equal(resource.state.total, 20 * 50 + 60);
}

CLAIM(a_day_without_a_controller_takes_no_longer_than_a_moment)
{
	struct resource resource = load(100);

	for (uint64_t second = LOADED_S + 3000000000; second < LOADED_S + 3000000040; second++)
		pass(&resource, 0, second, 1000000000);
	sync_at(&resource, (LOADED_S + 3000000040) * SECOND_NS);
	assert_int_equal(resource.state.second, LOADED_S + 3000000040);
	assert_int_equal(resource.state.stored, 0);
}

CLAIM(second_that_is_not_over_is_not_counted)
{
	struct resource resource = load(100), later;

	pass(&resource, 0, LOADED_S, 33);
	pass(&resource, 0, LOADED_S + 1, 1000); /* a tick that is late reads these too */
	sync_at(&resource, (LOADED_S + 1) * SECOND_NS + 900000000);
	assert_int_equal(resource.state.total, 33);
	assert_int_equal(allowed(&resource), 34);

	later = resource;
	sync_at(&later, (LOADED_S + 1) * SECOND_NS + 999999999);
	assert_memory_equal(&later, &resource, sizeof(later));
	sync_at(&later, (LOADED_S + 2) * SECOND_NS);
	assert_int_equal(later.state.total, 1033);
}

CLAIM(new_controller_resumes_where_the_killed_one_was)
{
	struct resource resource = load(100), restarted;

	for (uint64_t second = LOADED_S; second < LOADED_S + 5; second++) {
		sync_at(&resource, second * SECOND_NS);
		pass(&resource, 0, second, allowed(&resource));
	}
	assert_int_equal(allowed(&resource), 41);
	restarted = (struct resource){.rule = resource.rule, .state = resource.state};
	memcpy(restarted.of_cpu, resource.of_cpu, sizeof(restarted.of_cpu));
	sync_at(&restarted, (LOADED_S + 5) * SECOND_NS);
	assert_int_equal(allowed(&restarted), 44);
}

CLAIM(clock_that_went_back_changes_nothing)
{
	struct resource resource = load(100), before;

	pass(&resource, 0, LOADED_S, 33);
	sync_at(&resource, (LOADED_S + 1) * SECOND_NS);
	before = resource;
	sync_at(&resource, (LOADED_S - 10) * SECOND_NS);
	assert_memory_equal(&resource, &before, sizeof(before));
	/* What then passes in a second that was synced is not counted again. */
	pass(&resource, 0, LOADED_S - 3, 50);
	pass(&resource, 0, LOADED_S + 1, 40);
	sync_at(&resource, (LOADED_S + 2) * SECOND_NS);
	assert_int_equal(resource.state.stored, before.state.stored - 40);
}

CLAIM(smaller_limit_after_a_reload_clips_what_is_stored)
{
	struct resource resource = load(100);

	assert_int_equal(resource.state.stored, 1000);
	resource.rule = make_warm_up(50, WEIR_BEHAVIOR_REJECT);
	sync_at(&resource, LOADED_S * SECOND_NS);
	assert_int_equal(resource.state.stored, 500);
}

CLAIM(throttling_cold_costs_thirty_milliseconds_a_packet)
{
	struct weir_rule_info rule = make_warm_up(100, WEIR_BEHAVIOR_THROTTLING);
	struct weir_allowance allowance;
	struct weir_warm_state warm;

	weir_control_warm_start(&rule, 0, &warm);
	weir_control_allow(&rule, &warm, &unknown_memory, 0, &allowance);
	assert_int_equal(weir_emission_ns(&allowance.emission, 1), 30000000);
	warm.stored = 0;
	weir_control_allow(&rule, &warm, &unknown_memory, 0, &allowance);
	assert_int_equal(weir_emission_ns(&allowance.emission, 1), 10000000);
}

/* ---- MemoryAdaptive ---- */

static const struct weir_rule_info by_memory = {
	.moves = 1,
	.strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE,
	.memory = {.low_units = 1000, .high_units = 100, .low_mark_bytes = 1024, .high_mark_bytes = 2048},
};

static uint64_t allowed_by_memory(const struct weir_memory_use *memory, uint64_t now_ns)
{
	struct weir_allowance allowance;

	weir_control_allow(&by_memory, NULL, memory, now_ns, &allowance);
	return allowance.units;
}

CLAIM(memory_in_use_moves_the_threshold_between_its_marks)
{
	struct weir_memory_use memory = {.is_known = true, .holds_until_ns = UINT64_MAX};

	assert_int_equal(allowed_by_memory(&memory, 0), 1000);
	memory.used_bytes = 1024;
	assert_int_equal(allowed_by_memory(&memory, 0), 1000);
	memory.used_bytes = 1536;
	assert_int_equal(allowed_by_memory(&memory, 0), 550);
	memory.used_bytes = 2048;
	assert_int_equal(allowed_by_memory(&memory, 0), 100);
	memory.used_bytes = UINT64_MAX;
	assert_int_equal(allowed_by_memory(&memory, 0), 100);
}

CLAIM(memory_that_cannot_be_read_keeps_the_last_reading_for_its_validity)
{
	const struct weir_memory_use memory = {.is_known = true, .used_bytes = 1024, .holds_until_ns = 5 * SECOND_NS};

	assert_int_equal(allowed_by_memory(&memory, 5 * SECOND_NS - 1), 1000);
	assert_int_equal(allowed_by_memory(&memory, 5 * SECOND_NS), 100);
}

CLAIM(memory_never_read_means_the_high_usage_threshold)
{
	assert_int_equal(allowed_by_memory(&unknown_memory, 0), 100);
}

/* ---- pushing ---- */

CLAIM(only_what_changed_is_pushed)
{
	struct weir_pushed pushed = {.word = WEIR_THRESHOLD_WORD(33, 1)}, before = pushed;

	assert_false(weir_control_publish(&pushed, &(struct weir_allowance){.units = 33}));
	assert_memory_equal(&pushed, &before, sizeof(before));
	assert_true(weir_control_publish(&pushed, &(struct weir_allowance){.units = 34}));
	assert_int_equal(pushed.word, WEIR_THRESHOLD_WORD(34, 2));
	assert_false(weir_control_publish(&pushed, &(struct weir_allowance){.units = 34}));
}

CLAIM(emission_goes_to_the_copy_that_the_new_version_names)
{
	struct weir_pushed pushed = {.word = WEIR_THRESHOLD_WORD(33, 1)};

	pushed.emission[1].whole = 30;
	/* The units may stay the same while the emission interval does not. */
	assert_true(weir_control_publish(&pushed, &(struct weir_allowance){.units = 33, .emission.whole = 29}));
	assert_int_equal(pushed.word, WEIR_THRESHOLD_WORD(33, 2));
	assert_int_equal(pushed.emission[0].whole, 29);
	assert_int_equal(pushed.emission[1].whole, 30);
	assert_true(weir_control_publish(&pushed, &(struct weir_allowance){.units = 33, .emission.whole = 28}));
	assert_int_equal(pushed.emission[0].whole, 29);
	assert_int_equal(pushed.emission[1].whole, 28);
}

/* ---- the order of stores ---- */

/* A word at the end of one page, its copies of emission interval or clock at the start of the next, which can only be
 * read: the first store into it shows what a CPU would have found in the word by then.
 */
static struct {
	struct weir_pushed *pushed;
	void *copies;
	size_t bytes;
	uint64_t word_then;
	uint32_t stores;
} pages;

static void note_word(int number)
{
	pages.word_then = __atomic_load_n(&pages.pushed->word, __ATOMIC_ACQUIRE);
	pages.stores++;
	if (mprotect(pages.copies, pages.bytes, PROT_READ | PROT_WRITE))
		_exit(1);
}

static int map_pages(void **state)
{
	char *first;

	pages.bytes = sysconf(_SC_PAGESIZE);
	first = mmap(NULL, 2 * pages.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (first == MAP_FAILED)
		return -1;
	pages.copies = first + pages.bytes;
	pages.pushed = (void *)(first + pages.bytes - offsetof(struct weir_pushed, emission));
	return 0;
}

static int unmap_pages(void **state)
{
	return munmap((char *)pages.copies - pages.bytes, 2 * pages.bytes);
}

static void guard_copies(void)
{
	const struct sigaction action = {.sa_handler = note_word}; /* instead of cmocka's */

	pages.stores = 0;
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(pages.copies, pages.bytes, PROT_READ), 0);
}

CLAIM_WITHIN(an_emission_or_a_rate_is_there_before_the_word_that_points_to_it, map_pages, unmap_pages)
{
	struct weir_pushed *pushed = pages.pushed;

	pushed->word = WEIR_THRESHOLD_WORD(33, 1);
	guard_copies();
	assert_true(weir_control_publish(pushed, &(struct weir_allowance){.units = 34, .emission.whole = 29}));
	assert_int_equal(pages.stores, 1);
	assert_int_equal(pages.word_then, WEIR_THRESHOLD_WORD(33, 1));
	assert_int_equal(pushed->word, WEIR_THRESHOLD_WORD(34, 2));
	guard_copies();
	assert_true(
		weir_control_publish_rate(pushed, &(struct weir_allowance){.units = 35, .rate.whole = 7}, SECOND_NS));
	assert_int_equal(pages.stores, 1);
	assert_int_equal(pages.word_then, WEIR_THRESHOLD_WORD(34, 2));
	assert_int_equal(pushed->word, WEIR_THRESHOLD_WORD(35, 3));
}

/* And the one after it names the other copy. */
CLAIM(versions_come_round_without_those_that_rows_do_not_believe)
{
	static const uint8_t pairs[][2] = {{0, 1}, {1, 2}, {125, 126}, {126, 129}, {129, 130}, {253, 254}, {254, 1}};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct weir_pushed pushed = {.word = WEIR_THRESHOLD_WORD(33, pairs[i][0])};

		assert_true(weir_control_publish(&pushed, &(struct weir_allowance){.units = WEIR_THRESHOLD_MASK}));
		assert_int_equal(pushed.word, WEIR_THRESHOLD_WORD(WEIR_THRESHOLD_MASK, pairs[i][1]));
	}
}

/* ---- rates of tokens ---- */

static uint64_t virtual_time(const struct weir_pushed *pushed, uint64_t now_ns)
{
	struct weir_token_clock clock;
	struct weir_token_time time;

	weir_control_read_clock(pushed, &clock);
	time = weir_token_time(&clock, now_ns);
	return time.high << 32 | time.low;
}

static const struct weir_allowance per_ns[] = {
	{.units = 0},
	{.units = 1, .rate.whole = 1},
	{.units = 2, .rate.whole = 2},
	{.units = 3, .rate = {.whole = 2, .fraction = 1ull << 63}},
};

CLAIM(virtual_time_continues_from_where_it_is_at_another_rate)
{
	struct weir_pushed pushed = {.word = WEIR_THRESHOLD_WORD(1, 1), .clock[1].rate.whole = 1};

	assert_true(weir_control_publish_rate(&pushed, &per_ns[2], 1000));
	assert_int_equal(pushed.word, WEIR_THRESHOLD_WORD(2, 2));
	assert_int_equal(virtual_time(&pushed, 1000), 1000);
	assert_int_equal(virtual_time(&pushed, 1010), 1020);
	assert_false(weir_control_publish_rate(&pushed, &per_ns[2], 1020));
	/* halves of a unit are kept from one change to the next */
	assert_true(weir_control_publish_rate(&pushed, &per_ns[3], 1020));
	assert_true(weir_control_publish_rate(&pushed, &per_ns[1], 1021));
	assert_true(weir_control_publish_rate(&pushed, &per_ns[3], 1022));
	assert_int_equal(virtual_time(&pushed, 1022), 1043);
	assert_int_equal(virtual_time(&pushed, 1023), 1046);
	/* before the latest change it stands still, and cannot be changed */
	assert_int_equal(virtual_time(&pushed, 0), 1043);
	assert_false(weir_control_publish_rate(&pushed, &per_ns[1], 1021));
}

/* The rule's own rate is one a ns. */
CLAIM(a_rate_that_expired_was_the_rules_own_since_then)
{
	const struct weir_rule_info rule = {.tokens.clock.rate.whole = 1};
	struct weir_pushed pushed = {.word = WEIR_THRESHOLD_WORD(2, 1)};

	pushed.clock[1] = (struct weir_token_clock){.start_ns = 100, .rate.whole = 2};
	weir_control_expire(&pushed, &rule, 200, 199);
	assert_int_equal(virtual_time(&pushed, 300), 400);
	weir_control_expire(&pushed, &rule, 200, 300);
	assert_int_equal(virtual_time(&pushed, 200), 200);
	assert_int_equal(virtual_time(&pushed, 300), 300);
	/* nobody has been there since it was pushed */
	assert_true(weir_control_publish_rate(&pushed, &per_ns[2], 300));
	weir_control_expire(&pushed, &rule, 0, 350);
	assert_int_equal(virtual_time(&pushed, 350), 350);
}

RUN_CLAIMS(NULL, NULL)
