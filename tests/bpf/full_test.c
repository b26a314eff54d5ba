// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flows that are full are noted (bpf/full.h), and their packets blocked without their rows, which lie where memory is
 * slow. Shown by emptying the rows: who is not noted then has sent nothing. What must not happen is that a note is
 * believed that does not hold. Under the virtual clock, on one CPU. Notes are read after a packet that was blocked at
 * once: so before each question a flow is flooded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/packets.h"
#include "../lib/rig.h"
#include "host.h"
#include "util.h"

#define PORT 53
#define OTHER_PORT 123
#define LIMIT 3u
#define MANY 20u /* packets: more than any limit here, and blocked at once in the end */
#define FLOWS_PER_CPU 16384u

struct lab {
	struct rig rig;
	uint64_t now_ns;
};

static unsigned int passed_of(struct lab *lab, const char *source, uint16_t port, unsigned int count)
{
	struct packet_spec spec = packet_udp(source, 1024, "198.51.100.1", port, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&spec, frame);
	unsigned int passed = 0;

	for (unsigned int i = 0; i < count; i++)
		passed += rig_passes(&lab->rig, lab->now_ns, frame, frame_bytes);
	return passed;
}

static unsigned int passed_of_host(struct lab *lab, unsigned int host, unsigned int count)
{
	char source[32];

	snprintf(source, sizeof(source), "10.0.%u.%u", host / 256, host % 256);
	return passed_of(lab, source, PORT, count);
}

/* Buckets of a second; one of them is a window. */
static struct weir_ruleset_rule *begin(struct lab *lab)
{
	memset(lab, 0, sizeof(*lab));
	lab->now_ns = RIG_START_NS;
	rig_begin(&lab->rig, FLOWS_PER_CPU);
	return rig_rule(&lab->rig, rig_resource(&lab->rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, SECOND, 1);
}

static void load(struct lab *lab)
{
	rig_load(&lab->rig, true);
	for (uint32_t i = 0; i < lab->rig.image->rule_count; i++)
		assert_int_equal(lab->rig.image->rules[i].storage, WEIR_STORAGE_NARROW);
}

static void end(struct lab *lab)
{
	rig_end(&lab->rig);
}

/* All rows of all CPUs, as if no flow had ever come by. */
static void empty_rows(struct lab *lab)
{
	_cleanup_(weir_freep) void *zeros = calloc(weir_host_cpus(), WEIR_CHUNK_BYTES);
	int fd = weir_object_map_fd(lab->rig.object, WEIR_MAP_NARROW_FLOWS);

	assert_non_null(zeros);
	for (__u32 chunk = 0; chunk < FLOWS_PER_CPU / WEIR_WAYS / WEIR_NARROW_SETS_PER_CHUNK; chunk++)
		assert_int_equal(bpf_map_update_elem(fd, &chunk, zeros, BPF_EXIST), 0);
}

/* ---- the notes, as they lie in the table ---- */

/* The one note that there is, on whichever CPU, is moved to place `to` of its line, 0 the latest; the others differ
 * from it in one bit each.
 */
static void move_note(struct lab *lab, unsigned int to)
{
	const unsigned int words = WEIR_CHUNK_BYTES / sizeof(uint32_t), words_of_line = 2 * WEIR_FULL_PAIRS;
	_cleanup_(weir_freep) uint32_t *values = calloc(weir_host_cpus(), WEIR_CHUNK_BYTES);
	_cleanup_(weir_closep) int fd = rig_map_fd(&lab->rig, "full_flows");
	uint32_t *line = NULL, note = 0;

	assert_non_null(values);
	for (__u32 chunk = 0; chunk < weir_image_full_chunks(lab->rig.image); chunk++) {
		assert_int_equal(bpf_map_lookup_elem(fd, &chunk, values), 0);
		for (unsigned int i = 0; !line && i < words * weir_host_cpus(); i++)
			if (values[i]) {
				note = values[i];
				line = &values[i / words_of_line * words_of_line];
			}
		if (!line)
			continue;
		for (unsigned int i = 0; i < words_of_line; i++)
			line[i] = i == to ? note : note ^ 1u << i;
		assert_int_equal(bpf_map_update_elem(fd, &chunk, values, BPF_EXIST), 0);
		return;
	}
	fail_msg("there is no note");
}

/* ---- what is noted is blocked ---- */

static void full_flow_is_blocked_without_its_row(void **state)
{
	struct lab lab;

	begin(&lab);
	load(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), LIMIT);
	assert_int_equal(passed_of(&lab, "192.0.2.2", PORT, MANY), LIMIT);
	empty_rows(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), 0);
	assert_int_equal(passed_of(&lab, "192.0.2.2", PORT, MANY), 0);
	assert_int_equal(rig_rule_counters(&lab.rig, 0).blocked.packets, 4 * MANY - 2 * LIMIT);
	/* Whoever is not full is not noted: his row told what he had sent. */
	assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, LIMIT), LIMIT);
	assert_int_equal(passed_of(&lab, "192.0.2.4", PORT, MANY), LIMIT);
	empty_rows(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, 1), 0);
	assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, MANY), LIMIT);
	end(&lab);
}

static void flow_is_noted_when_it_is_blocked_first(void **state)
{
	struct lab lab;

	begin(&lab);
	load(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, LIMIT + 1), LIMIT);
	assert_int_equal(passed_of(&lab, "192.0.2.2", PORT, MANY), LIMIT);
	empty_rows(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), 0);
	end(&lab);
}

static void note_is_found_wherever_it_is_in_its_line(void **state)
{
	for (unsigned int place = 0; place < 2 * WEIR_FULL_PAIRS; place++) {
		struct lab lab;

		begin(&lab);
		load(&lab);
		assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, LIMIT + 2), LIMIT);
		move_note(&lab, place);
		empty_rows(&lab);
		assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), 0);
		end(&lab);
	}
}

static void notes_that_differ_in_one_bit_are_not_of_the_flow(void **state)
{
	struct lab lab;

	begin(&lab);
	load(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, LIMIT + 2), LIMIT);
	move_note(&lab, 2 * WEIR_FULL_PAIRS);
	empty_rows(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), LIMIT);
	end(&lab);
}

static void flow_of_a_rule_that_observes_passes_and_is_counted(void **state)
{
	struct lab lab;

	begin(&lab)->observes = true;
	load(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), MANY);
	empty_rows(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), MANY);
	assert_int_equal(rig_rule_counters(&lab.rig, 0).would_drop.packets, 2 * MANY - LIMIT);
	end(&lab);
}

/* ---- what is not noted, or no longer, has its limit ---- */

static void note_ends_with_its_bucket(void **state)
{
	struct lab lab;

	begin(&lab);
	load(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), LIMIT);
	lab.now_ns += SECOND - 1;
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), 0);
	for (int bucket = 0; bucket < 40; bucket++) {
		lab.now_ns += bucket ? SECOND : 1;
		assert_int_equal(passed_of(&lab, "192.0.2.2", PORT, MANY), LIMIT);
		assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), LIMIT);
	}
	end(&lab);
}

/* As it may in a capture: then what is true of a bucket need not be what was. */
static void note_does_not_hold_again_when_the_clock_goes_back_to_its_bucket(void **state)
{
	struct lab lab;

	begin(&lab);
	load(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), LIMIT);
	lab.now_ns += 5 * SECOND;
	assert_int_equal(passed_of(&lab, "192.0.2.2", PORT, MANY), LIMIT);
	lab.now_ns -= 5 * SECOND;
	empty_rows(&lab);
	assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, MANY), LIMIT);
	assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), LIMIT);
	end(&lab);
}

static void full_flow_of_one_rule_has_its_limit_under_another(void **state)
{
	struct lab lab;

	begin(&lab);
	rig_rule(&lab.rig, rig_resource(&lab.rig, OTHER_PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT + 2, SECOND, 1);
	rig_rule(&lab.rig, rig_resource(&lab.rig, OTHER_PORT + 1, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT + 4,
		 2 * SECOND, 1);
	load(&lab);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), i ? 0 : LIMIT);
		assert_int_equal(passed_of(&lab, "192.0.2.1", OTHER_PORT, MANY), i ? 0 : LIMIT + 2);
		assert_int_equal(passed_of(&lab, "192.0.2.1", OTHER_PORT + 1, MANY), i ? 0 : LIMIT + 4);
	}
	end(&lab);
}

static void flows_under_overrides_have_their_own_limits(void **state)
{
	static struct weir_override overrides[] = {
		{.prefix = {4, 32, {192, 0, 2, 1}}, .threshold_micro = (LIMIT + 2) * WEIR_MICRO},
		{.prefix = {4, 32, {192, 0, 2, 2}}, .threshold_micro = 0},
	};
	struct weir_ruleset_rule *rule;
	struct lab lab;

	rule = begin(&lab);
	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = overrides;
	rule->override_count = ARRAY_SIZE(overrides);
	load(&lab);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, MANY), i ? 0 : LIMIT);
		assert_int_equal(passed_of(&lab, "192.0.2.1", PORT, MANY), i ? 0 : LIMIT + 2);
		assert_int_equal(passed_of(&lab, "192.0.2.2", PORT, MANY), 0);
		assert_int_equal(passed_of(&lab, "192.0.2.4", PORT, MANY), i ? 0 : LIMIT);
	}
	empty_rows(&lab);
	for (int host = 1; host <= 4; host++) {
		char source[32];

		snprintf(source, sizeof(source), "192.0.2.%d", host);
		assert_int_equal(passed_of(&lab, source, PORT, MANY), 0);
	}
	rule = &lab.rig.ruleset->rules[0];
	rule->overrides = NULL; /* they are not its own */
	rule->override_count = 0;
	end(&lab);
}

/* The one override is another source's now. */
static void move_override(struct lab *lab, uint8_t host)
{
	_cleanup_(weir_closep) int fd = rig_map_fd(&lab->rig, "overrides");
	struct weir_override_units units;
	struct weir_override_key key;

	assert_int_equal(bpf_map_get_next_key(fd, NULL, &key), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &key, &units), 0);
	assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
	key.address[3] = host;
	assert_int_equal(bpf_map_update_elem(fd, &key, &units, BPF_NOEXIST), 0);
}

/* Rows keep the version of the load under which they noted that their flow has no override, and 127 reloads later it
 * comes round: what is older than a window is not believed.
 */
static void an_override_reaches_a_flow_that_was_silent_for_a_window(void **state)
{
	static struct weir_override overrides[] = {{.prefix = {4, 32, {192, 0, 2, 1}}}}; /* 0 */
	static const uint64_t thresholds[] = {LIMIT, 100000};				 /* narrow rows and wide ones */

	for (size_t i = 0; i < ARRAY_SIZE(thresholds); i++) {
		struct weir_ruleset_rule *rule;
		struct lab lab;

		rule = begin(&lab);
		rule->threshold_micro = thresholds[i] * WEIR_MICRO;
		rule->override_field = WEIR_KEY_SOURCE;
		rule->overrides = overrides;
		rule->override_count = ARRAY_SIZE(overrides);
		rig_load(&lab.rig, true);
		assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, 2), 2);
		move_override(&lab, 3);
		assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, 1), 1); /* the row is believed: the test is one */
		lab.now_ns += SECOND;
		assert_int_equal(passed_of(&lab, "192.0.2.3", PORT, MANY), 0);
		rule = &lab.rig.ruleset->rules[0];
		rule->overrides = NULL; /* they are not its own */
		rule->override_count = 0;
		end(&lab);
	}
}

/* The next load's thresholds may be others. Its rows are its own here: nobody is full in them. */
static void notes_are_forgotten_by_the_next_load(void **state)
{
	struct lab old, new;

	begin(&old);
	load(&old);
	begin(&new)->threshold_micro = 2 * LIMIT * WEIR_MICRO;
	new.rig.before = &old.rig;
	load(&new);
	assert_int_equal(passed_of(&old, "192.0.2.1", PORT, MANY), LIMIT);
	assert_int_equal(passed_of(&new, "192.0.2.1", PORT, MANY), 2 * LIMIT);
	end(&new);
	end(&old);
}

/* Three for each four notes: one line of these in ten runs over, and what is pushed out is noted again. */
static void every_flow_has_its_limit_where_lines_run_over(void **state)
{
	static uint8_t passed[FLOWS_PER_CPU * 3 / 8];
	struct lab lab;

	begin(&lab);
	load(&lab);
	memset(passed, 0, sizeof(passed));
	srandom(1);
	for (unsigned int i = 0; i < 6 * ARRAY_SIZE(passed); i++) {
		unsigned int host = random() % ARRAY_SIZE(passed);

		passed[host] += passed_of_host(&lab, host, 1);
	}
	for (unsigned int host = 0; host < ARRAY_SIZE(passed); host++)
		assert_int_equal(passed[host] + passed_of_host(&lab, host, LIMIT), LIMIT);
	assert_int_equal(rig_rule_counters(&lab.rig, 0).evicted, 0);
	end(&lab);
}

static int stay_on_one_cpu(void **state)
{
	static cpu_set_t before;

	rig_stay(&before);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_flow_is_blocked_without_its_row),
		cmocka_unit_test(flow_is_noted_when_it_is_blocked_first),
		cmocka_unit_test(note_is_found_wherever_it_is_in_its_line),
		cmocka_unit_test(notes_that_differ_in_one_bit_are_not_of_the_flow),
		cmocka_unit_test(flow_of_a_rule_that_observes_passes_and_is_counted),
		cmocka_unit_test(note_ends_with_its_bucket),
		cmocka_unit_test(note_does_not_hold_again_when_the_clock_goes_back_to_its_bucket),
		cmocka_unit_test(full_flow_of_one_rule_has_its_limit_under_another),
		cmocka_unit_test(flows_under_overrides_have_their_own_limits),
		cmocka_unit_test(an_override_reaches_a_flow_that_was_silent_for_a_window),
		cmocka_unit_test(notes_are_forgotten_by_the_next_load),
		cmocka_unit_test(every_flow_has_its_limit_where_lines_run_over),
	};

	return cmocka_run_group_tests_name("full", tests, stay_on_one_cpu, NULL);
}
