/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests as circuit breakers see them: a few clients of a few hosts that open connections, are answered early, late
 * or never, reset, fall silent and say their SYN again, while the server is well, and while it is not. Packets come at
 * the edges of what breakers go by: at the nanosecond of a deadline or a retry, and beside it.
 */
#ifndef WEIR_TEST_RANDOM_REQUESTS_H
#define WEIR_TEST_RANDOM_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packets.h"
#include "random.h"

/* What one breaker goes by. */
struct random_breaker_times {
	uint64_t max_rt_ns, retry_ns, bucket_ns;
};

#define RANDOM_BREAKERS_MAX 16
#define RANDOM_REQUEST_CLIENTS 40
#define RANDOM_MOMENTS 16

enum random_request_phase { RANDOM_REQUEST_NONE, RANDOM_REQUEST_OPENED, RANDOM_REQUEST_ANSWERED };

struct random_requests {
	struct random_breaker_times times[RANDOM_BREAKERS_MAX];
	size_t times_count;  /* at least 1 */
	uint64_t timeout_ns; /* halfOpenTimeoutInMs */
	struct {
		struct packet_spec spec; /* of all its packets */
		enum random_request_phase phase;
	} client[RANDOM_REQUEST_CLIENTS];
	size_t client_count;
	/* when something was said lately, the oldest overwritten next */
	uint64_t moment_ns[RANDOM_MOMENTS];
	size_t moments;
	/* how the server is, and for how many packets more */
	unsigned int percent_answered, packets_left;
};

/* times, times_count and timeout_ns are given. */
void random_requests_begin(struct random *random, struct random_requests *requests);

/* Somebody's next packet, which is sent at now_ns. */
struct packet_spec random_requests_packet(struct random *random, struct random_requests *requests, uint64_t now_ns);

/* The time of the packet after one at now_ns; never before it. */
uint64_t random_requests_step(struct random *random, const struct random_requests *requests, uint64_t now_ns);

#endif
