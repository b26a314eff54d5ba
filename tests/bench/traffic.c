// SPDX-License-Identifier: GPL-2.0-only
#include "traffic.h"

#include "weir_abi.h"

#define SECOND_NS WEIR_NSEC_PER_SEC
#define MS_NS (SECOND_NS / 1000)
#define LARGE 50000 /* packets a second: limits from here on are offered less beyond them, so that one core can */

const char *const traffic_names[TRAFFIC_PATTERNS] = {"steady", "bursts", "window edges", "on-off"};

static uint64_t scale(uint64_t rate, uint64_t ns)
{
	return (unsigned __int128)rate * ns / SECOND_NS;
}

/* Twice the limit; 1.3 times a large one. */
static uint64_t steady(uint64_t limit, uint64_t since_ns)
{
	return scale(limit < LARGE ? 2 * limit : limit + limit * 3 / 10, since_ns);
}

/* Half as much again as the limit, and one more, every 1.37 seconds. */
static uint64_t bursts(uint64_t limit, uint64_t since_ns)
{
	return since_ns < 200 * MS_NS ? 0 : (limit + limit / 2 + 1) * ((since_ns - 200 * MS_NS) / (1370 * MS_NS) + 1);
}

/*
 * The limit just before second 1, again just after it, again 0.9 seconds later, when the bucket of the first burst has
 * left a window of the present bucket and nine before; then silence until second 4. Large bursts take a while to
 * send: the first begins early enough.
 */
static uint64_t edges(uint64_t limit, uint32_t flows, uint64_t since_ns)
{
	const uint64_t period_ns = 3 * SECOND_NS;
	uint64_t lead_ns = 5 * MS_NS + limit * flows * 800, bursts = since_ns / period_ns * 3,
		 in_ns = since_ns % period_ns;

	if (lead_ns > 90 * MS_NS)
		lead_ns = 90 * MS_NS;
	bursts += in_ns >= SECOND_NS - lead_ns;
	bursts += in_ns >= SECOND_NS + MS_NS;
	bursts += in_ns >= SECOND_NS + 901 * MS_NS;
	return limit * bursts;
}

/* Three times the limit in the half second that is on; twice a large one. */
static uint64_t on_off(uint64_t limit, uint64_t since_ns)
{
	uint64_t seconds = since_ns / SECOND_NS, in_ns = since_ns % SECOND_NS;
	uint64_t on_ns = seconds * (SECOND_NS / 2) + (in_ns < SECOND_NS / 2 ? in_ns : SECOND_NS / 2);

	return scale(limit < LARGE ? 6 * limit : 2 * limit, on_ns);
}

uint64_t traffic_due(const struct traffic *traffic, uint64_t since_ns)
{
	uint64_t limit = traffic->limit;

	switch (traffic->pattern) {
	case TRAFFIC_STEADY:
		return traffic->flows * steady(limit, since_ns);
	case TRAFFIC_BURSTS:
		return traffic->flows * bursts(limit, since_ns);
	case TRAFFIC_EDGES:
		return traffic->flows * edges(limit, traffic->flows, since_ns);
	case TRAFFIC_ON_OFF:
		return traffic->flows * on_off(limit, since_ns);
	case TRAFFIC_PATTERNS:
		break;
	}
	return 0;
}
