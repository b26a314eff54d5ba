/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Circuit breakers, for the reference model: docs/semantics.md on circuit breakers as a list of all requests that ever
 * were, each with the exact times of what it did. Nothing is kept that can be counted: a window, or how many probes
 * were good, is found by looking at each request. A time-out, and a request that becomes slow, happen at their own
 * moment, in the order of these moments, whenever somebody looks. Written from the text alone.
 *
 * At one nanosecond: first time-outs (who has been silent for all of it is too late), then packets, then what becomes
 * slow (an answer after exactly maxAllowedRtMs is in time).
 */
#ifndef WEIR_TEST_MODEL_BREAKER_H
#define WEIR_TEST_MODEL_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_packet.h"
#include "rules/ruleset.h"

enum model_breaker_strategy { MODEL_SLOW_REQUEST_RATIO, MODEL_ERROR_RATIO, MODEL_ERROR_COUNT };

struct model_breaker_rule {
	enum model_breaker_strategy strategy;
	uint64_t threshold_micro; /* a ratio, or a count of errors, in millionths */
	uint64_t retry_timeout_ns;
	uint64_t min_requests; /* 0 is 1 */
	uint64_t interval_ns;
	uint64_t buckets; /* 1 when they do not divide the interval's ms */
	uint64_t max_rt_ns;
	uint64_t probes;
	uint64_t half_open_timeout_ns; /* of the settings */
};

/* What the rule at that place of a rule set says; its metric is WEIR_METRIC_REQUESTS. */
struct model_breaker_rule model_breaker_rule_of(const struct weir_ruleset *ruleset, size_t place);

enum model_breaker_state { MODEL_BREAKER_CLOSED, MODEL_BREAKER_OPEN, MODEL_BREAKER_HALF_OPEN };

/* How one breaker stands. */
struct model_breaker_view {
	enum model_breaker_state state;
	uint64_t retry_ns;   /* of an open one: from then on an opening is the probe */
	uint64_t total, bad; /* requests in the window: all, and those that were slow or failed */
	uint64_t changes;    /* of the state, so far */
};

struct model_breakers;

struct model_breakers *model_breakers_new(void);
void model_breakers_free(struct model_breakers *breakers);

/*
 * Does the breaker of that flow, whose rule is flow->rule, admit the packet? Nothing is done yet, so a packet that
 * another rule drops has done nothing; the probe was none then. now_ns never descends, from call to call; so below.
 */
bool model_breaker_evaluate(struct model_breakers *breakers, const struct model_breaker_rule *rule,
			    const struct model_key *flow, const struct model_packet *packet, uint64_t now_ns);

/* The packet passed. would_drop: this breaker, which only observes, would not have admitted it. */
void model_breaker_commit(struct model_breakers *breakers, const struct model_breaker_rule *rule,
			  const struct model_key *flow, const struct model_packet *packet, bool would_drop,
			  uint64_t now_ns);

/* What came in has passed, and the rule goes by what goes out: the server's SYN,ACK or RST is the outcome of a request.
 * `flow` is the packet's by the rule's key.
 */
void model_breaker_answer(struct model_breakers *breakers, const struct model_breaker_rule *rule,
			  const struct model_key *flow, const struct model_packet *packet, uint64_t now_ns);

struct model_breaker_view model_breaker_of_flow(struct model_breakers *breakers, const struct model_breaker_rule *rule,
						const struct model_key *flow, uint64_t now_ns);

/* Breakers of all rules that ever evaluated or saw a packet, in places 0 .. count - 1; the key is theirs. */
size_t model_breakers_count(const struct model_breakers *breakers);
const struct model_key *model_breaker_flow(const struct model_breakers *breakers, size_t place);

#endif
