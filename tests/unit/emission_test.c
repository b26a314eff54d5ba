// SPDX-License-Identifier: GPL-2.0-only
/* The emission interval of a unit against the plain formula of docs/semantics.md, 4, in 128 bits. */
#include "../lib/claims.h"
#include "thresholds/token_rates.h"
#include "weir_sizes.h"

#define SECOND WEIR_NSEC_PER_SEC
#define DAY (86400 * SECOND)

static uint64_t chance(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 32 ^ state << 32;
}

/* A number of any length up to `bits`. */
static unsigned __int128 chance_number(unsigned int bits)
{
	unsigned __int128 number = (unsigned __int128)chance() << 64 | chance();

	return number >> (128 - bits) >> chance() % bits | 1;
}

/* ceil(batch * interval / allowed), for products that fit 128 bits. */
static uint64_t plain_emission(uint64_t interval_ns, unsigned __int128 allowed_num, unsigned __int128 allowed_den,
			       uint64_t batch)
{
	unsigned __int128 product = interval_ns * allowed_den * batch;

	return (uint64_t)(product / allowed_num + (product % allowed_num != 0));
}

static void assert_exact(uint64_t interval_ns, unsigned __int128 allowed_num, unsigned __int128 allowed_den,
			 uint64_t batch)
{
	struct weir_emission emission;

	weir_emission_make(interval_ns, allowed_num, allowed_den, &emission);
	assert_int_equal(weir_emission_ns(&emission, batch),
			 plain_emission(interval_ns, allowed_num, allowed_den, batch));
}

CLAIM(random_emission_intervals_are_the_exact_ceiling)
{
	unsigned __int128 num, den;

	for (uint32_t i = 0; i < 300000; i++) {
		num = chance_number(110);
		den = chance_number(63);
		if (num >= den)
			assert_exact(chance() % DAY + 1, num, den, chance() % (WEIR_EMISSION_BATCH_MAX - 1) + 1);
	}
}

/* A quotient that is an integer is met; one that is above it by the least that a denominator allows is not. */
CLAIM(emission_intervals_next_to_an_integer_are_exact)
{
	uint64_t interval_ns, batch, factor;
	unsigned __int128 num;

	for (uint32_t i = 0; i < 100000; i++) {
		batch = chance() % (WEIR_EMISSION_BATCH_MAX - 1) + 1;
		factor = chance() % 1000 + 1;
		interval_ns = factor * (chance() % 1000000 + 1);
		/* batch * interval / num is interval / factor. */
		num = (unsigned __int128)batch * factor;
		assert_exact(interval_ns, num, 1, batch);
		assert_exact(interval_ns, num << 64, (unsigned __int128)1 << 64, batch);
		assert_exact(interval_ns, (num << 62) - 1, (unsigned __int128)1 << 62, batch);
		assert_exact(interval_ns, (num << 62) + 1, (unsigned __int128)1 << 62, batch);
	}
}

CLAIM(the_largest_denominator_and_batch_are_exact)
{
	const unsigned __int128 num = ((unsigned __int128)1 << WEIR_EMISSION_DENOMINATOR_BITS) - 1;

	/* The product is one above, then one below, a multiple of the denominator. */
	assert_exact(1, num, (num + 1) >> 16, 1 << 16);
	assert_exact(1, num, (num - 1) / 0x1ffff + 1, WEIR_EMISSION_BATCH_MAX - 1);
	assert_exact(1, num, num / 0x1ffff, WEIR_EMISSION_BATCH_MAX - 1);
}

CLAIM(published_examples_take_what_they_say)
{
	struct weir_emission emission;

	/* A hundred a second: 10 ms; three: a third of a second, rounded up for one and exact for three. */
	weir_emission_make(SECOND, 100, 1, &emission);
	assert_int_equal(weir_emission_ns(&emission, 1), 10000000);
	weir_emission_make(SECOND, 3, 1, &emission);
	assert_int_equal(weir_emission_ns(&emission, 1), 333333334);
	assert_int_equal(weir_emission_ns(&emission, 2), 666666667);
	assert_int_equal(weir_emission_ns(&emission, 3), SECOND);
	/* Cold, at 100 a second and a factor of three. */
	weir_emission_make(SECOND, 100, 3, &emission);
	assert_int_equal(weir_emission_ns(&emission, 1), 30000000);
}

CLAIM(one_unit_takes_the_interval_and_less_takes_nothing)
{
	struct weir_emission emission;

	weir_emission_make(DAY, 1000000, 1000000, &emission);
	assert_int_equal(weir_emission_ns(&emission, 1), DAY);
	weir_emission_make(DAY, 999999, 1000000, &emission);
	assert_int_equal(weir_emission_ns(&emission, 1), 0);
	weir_emission_make(DAY, 0, 1, &emission);
	assert_int_equal(weir_emission_ns(&emission, 1), 0);
}

RUN_CLAIMS(NULL, NULL)
