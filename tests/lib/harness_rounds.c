// SPDX-License-Identifier: GPL-2.0-only
#include "harness_rounds.h"

#include <inttypes.h>

#include "claims.h"
#include "base/util.h"

static uint64_t environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

/* Returns whether object and model agree on everything. */
static bool play(struct random *random, const struct weir_ruleset *ruleset, struct packet_spec *specs, size_t count,
		 bool has_directions)
{
	static struct random_reading readings[64];
	static struct random_sample samples[64];
	uint64_t earliest_ns = UINT64_MAX, latest_ns = 0;
	bool agreed = true;
	bool is_at_tc = has_directions && random_percent(random, 50);
	struct harness harness;

	for (size_t i = 0; i < count; i++) {
		earliest_ns = specs[i].time_ns < earliest_ns ? specs[i].time_ns : earliest_ns;
		latest_ns = specs[i].time_ns > latest_ns ? specs[i].time_ns : latest_ns;
		if (!specs[i].is_out && !is_at_tc)
			specs[i].segments = 0;
	}
	assert_int_equal(is_at_tc ? harness_open_at_tc(&harness, ruleset, earliest_ns, latest_ns)
				  : harness_open(&harness, ruleset, earliest_ns, latest_ns),
			 0);
	harness_readings(&harness, readings,
			 random_memory(random, ruleset, specs, count, readings, ARRAY_SIZE(readings)));
	harness_samples(&harness, samples, random_samples(random, ruleset, specs, count, samples, ARRAY_SIZE(samples)));
	for (size_t i = 0; agreed && i < count; i++)
		agreed = harness_evaluate(&harness, &specs[i]);
	agreed = agreed && harness_agrees(&harness);
	harness_close(&harness);
	return agreed;
}

void harness_rounds_agree(const struct harness_rounds *rounds)
{
	uint64_t seed = environment("WEIR_SEED", 20250701), count = environment("WEIR_ROUNDS", rounds->rounds);

	for (uint64_t i = 0; i < count; i++) {
		struct random random = {seed + i};
		struct weir_ruleset *ruleset = rounds->rules(&random);
		struct packet_spec *specs = rounds->traffic(&random, ruleset, rounds->packets);
		bool agreed = play(&random, ruleset, specs, rounds->packets, rounds->has_directions);

		if (!agreed) {
			ruleset_write_yaml(ruleset, stderr);
			fprintf(stderr, "repeat it: WEIR_SEED=%" PRIu64 " WEIR_ROUNDS=1\n", seed + i);
		}
		free(specs);
		weir_ruleset_free(ruleset);
		assert_true(agreed);
	}
}
