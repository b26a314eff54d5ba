// SPDX-License-Identifier: GPL-2.0-only
/* Quantities, rates, durations and prefixes: what is taken is within its bounds, and its own text reads as the same. */
#include "fuzz.h"

#include <string.h>

#include "rules/quantity.h"
#include "rules/ruleset.h"
#include "rules/scalars.h"

static void try_prefix(const char *text)
{
	struct weir_prefix prefix, again;
	struct weir_refusal refusal;
	char shown[WEIR_PREFIX_TEXT_BYTES];

	memset(&prefix, 0, sizeof(prefix));
	if (weir_parse_prefix(text, &prefix, &refusal))
		return;
	memset(&again, 0, sizeof(again));
	FUZZ_CHECK(!weir_parse_prefix(weir_format_prefix(&prefix, shown), &again, &refusal));
	FUZZ_CHECK(!weir_compare_prefixes(&prefix, &again));
}

static void try_quantities(const char *text)
{
	char shown[WEIR_DURATION_TEXT_BYTES];
	struct weir_refusal refusal;
	struct weir_rate rate;
	uint64_t value, again;

	for (int counts_bytes = 0; counts_bytes < 2; counts_bytes++) {
		if (!weir_parse_threshold(text, counts_bytes, &value, &refusal))
			FUZZ_CHECK(value / 1000000 <= WEIR_THRESHOLD_UNITS_MAX);
		if (!weir_parse_count(text, counts_bytes, 3, 1u << 20, &value, &refusal))
			FUZZ_CHECK(value >= 3 && value <= 1u << 20);
	}
	if (!weir_parse_duration(text, &value, &refusal)) {
		FUZZ_CHECK(!weir_parse_duration(weir_format_duration(value, shown), &again, &refusal));
		FUZZ_CHECK(value == again);
	}
	if (!weir_parse_time(text, 1000000, 0, 5000, &value, &refusal))
		FUZZ_CHECK(value <= 5000);
	if (!weir_parse_rate(text, &rate, &refusal))
		FUZZ_CHECK(rate.interval_ns > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1);

	FUZZ_CHECK(text);
	if (bytes)
		memcpy(text, data, bytes);
	text[bytes] = '\0';
	try_quantities(text);
	try_prefix(text);
	free(text);
	return 0;
}
