// SPDX-License-Identifier: GPL-2.0-only
#include "random_requests.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/util.h"

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10

#define PICK(random, array) ((array)[random_below(random, ARRAY_SIZE(array))])

/* Hosts of random_ruleset's prefixes, so that resources, keys and overrides see some of each. */
static struct packet_spec random_spec(struct random *random)
{
	static const char *const hosts4[] = {"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "198.51.100.1"};
	static const char *const hosts6[] = {"2001:db8::1", "2001:db8::2"};
	static const uint16_t ports[] = {53, 80, 443};
	struct packet_spec spec = {.family = random_percent(random, 85) ? 4 : 6, .protocol = 6, .payload_bytes = 18};
	int af = spec.family == 4 ? AF_INET : AF_INET6, parsed;

	parsed = inet_pton(af, spec.family == 4 ? PICK(random, hosts4) : PICK(random, hosts6), spec.source);
	assert(parsed == 1);
	parsed = inet_pton(af, spec.family == 4 ? "192.0.2.130" : "2001:db8:1::1", spec.destination);
	assert(parsed == 1);
	spec.source_port = random_between(random, 2000, 2015);
	spec.destination_port = PICK(random, ports);
	return spec;
}

/* How many of the openings are answered, until it changes. */
static void change_server(struct random *random, struct random_requests *requests)
{
	static const unsigned int percents[] = {0, 10, 40, 70, 90, 98, 100, 100};

	requests->percent_answered = PICK(random, percents);
	requests->packets_left = random_between(random, 5, 150);
}

void random_requests_begin(struct random *random, struct random_requests *requests)
{
	assert(requests->times_count >= 1 && requests->times_count <= RANDOM_BREAKERS_MAX);
	requests->client_count = random_between(random, 1, RANDOM_REQUEST_CLIENTS);
	for (size_t i = 0; i < requests->client_count; i++) {
		requests->client[i].spec = random_spec(random);
		requests->client[i].phase = RANDOM_REQUEST_NONE;
	}
	requests->moments = 0;
	change_server(random, requests);
}

static void note_moment(struct random_requests *requests, uint64_t now_ns)
{
	requests->moment_ns[requests->moments++ % RANDOM_MOMENTS] = now_ns;
}

/* What a client says whose opening was not answered: its SYN again, that it gives up, or oddities. */
static uint8_t unanswered(struct random *random, enum random_request_phase *phase)
{
	switch (random_below(random, 10)) {
	case 0 ... 4:
		return SYN;
	case 5 ... 7:
		*phase = RANDOM_REQUEST_NONE;
		return RST;
	case 8:
		*phase = RANDOM_REQUEST_NONE;
		return FIN | ACK;
	}
	return random_percent(random, 50) ? SYN | RST : SYN | FIN;
}

/* 0xff: it says nothing now. */
static uint8_t say(struct random *random, const struct random_requests *requests, enum random_request_phase *phase)
{
	switch (*phase) {
	case RANDOM_REQUEST_NONE:
		if (random_percent(random, 3))
			return PICK(random, ((uint8_t[]){ACK, RST, FIN | ACK, SYN | ACK}));
		*phase = RANDOM_REQUEST_OPENED;
		return SYN;
	case RANDOM_REQUEST_OPENED:
		if (random_percent(random, requests->percent_answered)) {
			*phase = RANDOM_REQUEST_ANSWERED;
			return random_percent(random, 95) ? ACK : SYN | ACK;
		}
		return random_percent(random, 60) ? 0xff : unanswered(random, phase);
	case RANDOM_REQUEST_ANSWERED:
		break;
	}
	if (random_percent(random, 30))
		return ACK | PSH;
	*phase = RANDOM_REQUEST_OPENED;
	if (random_percent(random, 60))
		return SYN; /* the same port again */
	*phase = RANDOM_REQUEST_NONE;
	return random_percent(random, 50) ? FIN | ACK : RST | ACK;
}

struct packet_spec random_requests_packet(struct random *random, struct random_requests *requests, uint64_t now_ns)
{
	if (requests->packets_left-- == 0)
		change_server(random, requests);
	note_moment(requests, now_ns);
	for (;;) {
		/* The first speak often, so that much comes in time; the last are mostly silent. */
		size_t i = random_below(random, random_between(random, 1, requests->client_count));
		struct packet_spec spec = requests->client[i].spec;

		spec.tcp_flags = say(random, requests, &requests->client[i].phase);
		if (spec.tcp_flags != 0xff)
			return spec;
		/* Somebody else speaks; now and then this one is never heard of again. */
		if (!random_percent(random, 20))
			continue;
		requests->client[i].spec = random_spec(random);
		requests->client[i].phase = RANDOM_REQUEST_NONE;
	}
}

/* A deadline or a retry that what was said at `moment` may lead to. */
static uint64_t consequence(struct random *random, const struct random_requests *requests, uint64_t moment_ns)
{
	const struct random_breaker_times *times = &requests->times[random_below(random, requests->times_count)];

	switch (random_below(random, 7)) {
	case 0:
		return moment_ns + times->max_rt_ns;
	case 1:
		return moment_ns + requests->timeout_ns;
	case 2:
		return moment_ns + times->retry_ns;
	case 3:
		return moment_ns + times->max_rt_ns + times->retry_ns;
	case 4:
		return moment_ns + requests->timeout_ns + times->retry_ns;
	case 5: /* so that a deadline falls on the edge of a bucket */
		return (moment_ns / times->bucket_ns + 1) * times->bucket_ns - times->max_rt_ns;
	}
	return (moment_ns / times->bucket_ns + 1) * times->bucket_ns;
}

uint64_t random_requests_step(struct random *random, const struct random_requests *requests, uint64_t now_ns)
{
	const struct random_breaker_times *times = &requests->times[random_below(random, requests->times_count)];
	size_t known = requests->moments < RANDOM_MOMENTS ? requests->moments : RANDOM_MOMENTS;
	uint64_t edge_ns;

	switch (random_below(random, 100)) {
	case 0 ... 39: /* a burst */
		return now_ns + random_below(random, 2);
	case 40 ... 69:
		return now_ns + random_below(random, (times->max_rt_ns + times->bucket_ns) / 20 + 2);
	case 70 ... 71:
		return now_ns + random_below(random, times->retry_ns + requests->timeout_ns);
	}
	if (known == 0)
		return now_ns;
	edge_ns = consequence(random, requests, requests->moment_ns[random_below(random, known)]);
	edge_ns += random_below(random, 3) - 1;
	return edge_ns > now_ns && edge_ns < now_ns + 100 * WEIR_NSEC_PER_SEC ? edge_ns : now_ns;
}
