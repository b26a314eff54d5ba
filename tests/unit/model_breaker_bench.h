/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests of the model's circuit breakers share: one or two breakers, and the packets of a few clients, each on a
 * connection of its own that is named by its port.
 */
#ifndef WEIR_TEST_MODEL_BREAKER_BENCH_H
#define WEIR_TEST_MODEL_BREAKER_BENCH_H

#include "../lib/claims.h"
#include "../lib/model_breaker.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define START (7200 * SECOND) /* an edge of every bucket below */

/* halfOpenTimeoutInMs, of all of them. */
#define TIMEOUT (10 * SECOND)

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

struct bench {
	struct model_breakers *breakers;
	struct model_breaker_rule rule[2];
	unsigned int rule_count;
	bool observes; /* the first of them */
	int blocker;   /* of the last packet: place of the rule that dropped it, or -1 */
};

/* A test's setup and teardown: a bench without a rule. */
int bench_begin(void **state);
int bench_end(void **state);
#define BENCH_CLAIM(what) CLAIM_ABOUT(what, struct bench *bench, bench_begin, bench_end)

/* Without a rule again. */
void bench_restart(struct bench *bench);

/* The next rule: of 10 s in one bucket, 3 s until the retry, minRequestAmount 1, maxAllowedRtMs 50. */
struct model_breaker_rule *bench_rule(struct bench *bench, enum model_breaker_strategy strategy, double threshold);

/* Give all rules a packet at a time. Returns whether it passed. */
bool bench_tcp(struct bench *bench, uint16_t port, uint8_t flags, uint64_t time_ns);

/* ... of another source. */
bool bench_tcp_from(struct bench *bench, uint8_t source, uint16_t port, uint8_t flags, uint64_t time_ns);

/* ... that another rule drops after they were asked. Returns whether they would have let it pass. */
bool bench_tcp_dropped(struct bench *bench, uint16_t port, uint8_t flags, uint64_t time_ns);

/* ... of another kind. */
bool bench_packet(struct bench *bench, const struct model_packet *packet, uint64_t time_ns);
struct model_packet bench_packet_of(uint16_t port, uint8_t flags);

/* Openings that pass, and what comes of them. */
void bench_opens(struct bench *bench, uint16_t port, uint64_t time_ns);
void bench_done(struct bench *bench, uint16_t port, uint64_t syn_ns, uint64_t rt_ns);
void bench_failed(struct bench *bench, uint16_t port, uint64_t syn_ns, uint64_t reset_ns);

/* How the first rule's breaker stands at a time. */
struct model_breaker_view bench_view(struct bench *bench, uint64_t time_ns);
enum model_breaker_state bench_state(struct bench *bench, uint64_t time_ns);

#endif
