// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reference model's circuit breakers, sentence by sentence, worked out by hand: what a request is, when its outcome
 * is known, which window counts it, and what opens and closes a breaker, each to the nanosecond.
 */
#include "base/util.h"
#include "model_breaker_bench.h"

#define RETRY (3 * SECOND) /* of bench_rule */

/* A rule that counts and never opens. */
static void only_count(struct bench *bench, enum model_breaker_strategy strategy)
{
	bench_rule(bench, strategy, 1)->min_requests = 1000000;
}

static void assert_counted(struct bench *bench, uint64_t time_ns, uint64_t total, uint64_t bad)
{
	struct model_breaker_view view = bench_view(bench, time_ns);

	assert_int_equal(view.total, total);
	assert_int_equal(view.bad, bad);
}

static void assert_open(struct bench *bench, uint64_t time_ns, uint64_t retry_ns)
{
	struct model_breaker_view view = bench_view(bench, time_ns);

	assert_int_equal(view.state, MODEL_BREAKER_OPEN);
	assert_int_equal(view.retry_ns, retry_ns);
}

/* ---- what a request is ---- */

BENCH_CLAIM(a_request_is_a_syn_without_ack_fin_and_rst)
{
	static const uint8_t others[] = {0, ACK, SYN | ACK, SYN | FIN, SYN | RST, SYN | FIN | ACK, FIN, RST, 0xff};

	only_count(bench, MODEL_ERROR_RATIO);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(bench_tcp(bench, i, others[i], START));
	assert_counted(bench, START + TIMEOUT, 0, 0);
	bench_opens(bench, 100, START + TIMEOUT);
	bench_tcp(bench, 101, SYN | 0xc0, START + TIMEOUT); /* asks for ECN */
	assert_counted(bench, START + 2 * TIMEOUT, 2, 2);
}

BENCH_CLAIM(what_is_no_opening_passes_an_open_breaker)
{
	static const uint8_t others[] = {0, ACK, SYN | ACK, SYN | FIN, SYN | RST, FIN | ACK, RST};
	struct model_packet packet;

	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_failed(bench, 1, START, START);
	assert_open(bench, START, START + RETRY);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_true(bench_tcp(bench, i, others[i], START));
	assert_false(bench_tcp(bench, 100, SYN, START));
	packet = bench_packet_of(100, SYN);
	packet.fragment = WEIR_FRAGMENT_LATER;
	packet.has_ports = packet.has_tcp_flags = false;
	assert_true(bench_packet(bench, &packet, START));
	packet = bench_packet_of(100, SYN);
	packet.protocol = 17;
	assert_true(bench_packet(bench, &packet, START));
}

BENCH_CLAIM(what_is_dropped_does_nothing)
{
	only_count(bench, MODEL_ERROR_RATIO);
	assert_true(bench_tcp_dropped(bench, 1, SYN, START));
	assert_true(bench_tcp(bench, 1, ACK, START)); /* of no request */
	bench_opens(bench, 2, START);
	bench_tcp_dropped(bench, 2, ACK, START + 1 * SECOND);
	bench_tcp_dropped(bench, 2, RST, START + 2 * SECOND);
	bench_tcp_dropped(bench, 2, SYN, START + 3 * SECOND);
	assert_counted(bench, START + TIMEOUT - 1, 0, 0);
	assert_counted(bench, START + TIMEOUT, 1, 1);
}

BENCH_CLAIM(a_retransmitted_syn_is_no_new_request_and_ends_silence)
{
	only_count(bench, MODEL_ERROR_RATIO);
	bench_opens(bench, 1, START);
	bench_opens(bench, 1, START + 1 * SECOND);
	bench_opens(bench, 1, START + 3 * SECOND);
	assert_counted(bench, START + 3 * SECOND + TIMEOUT - 1, 0, 0);
	assert_counted(bench, START + 3 * SECOND + TIMEOUT, 1, 1);
}

BENCH_CLAIM(a_retransmitted_syn_passes_an_open_breaker)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_opens(bench, 1, START);
	bench_failed(bench, 2, START, START);
	assert_true(bench_tcp(bench, 1, SYN, START + 1));
	assert_open(bench, START + 1, START + RETRY);
	/* nor is it the probe, once that is due */
	assert_true(bench_tcp(bench, 1, SYN, START + RETRY));
	assert_open(bench, START + RETRY, START + RETRY);
}

BENCH_CLAIM(the_probe_may_say_it_once_more)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_failed(bench, 1, START, START);
	bench_opens(bench, 2, START + RETRY);
	assert_true(bench_tcp(bench, 2, SYN, START + RETRY + SECOND));
	assert_false(bench_tcp(bench, 3, SYN, START + RETRY + SECOND));
	assert_true(bench_tcp(bench, 2, ACK, START + RETRY + 2 * SECOND));
	assert_int_equal(bench_state(bench, START + RETRY + 2 * SECOND), MODEL_BREAKER_CLOSED);
}

BENCH_CLAIM(a_syn_after_the_outcome_is_a_new_request)
{
	only_count(bench, MODEL_ERROR_RATIO);
	bench_done(bench, 1, START, MS);
	bench_failed(bench, 1, START + 1 * SECOND, START + 2 * SECOND);
	bench_opens(bench, 1, START + 3 * SECOND);
	assert_counted(bench, START + 9 * SECOND, 2, 1);
	bench_opens(bench, 1, START + 3 * SECOND + TIMEOUT);
	assert_counted(bench, START + 3 * SECOND + 2 * TIMEOUT, 1, 1);
	assert_int_equal(bench_state(bench, START), MODEL_BREAKER_CLOSED);
}

/* ---- outcomes ---- */

BENCH_CLAIM(the_first_packet_that_talks_is_the_answer)
{
	only_count(bench, MODEL_ERROR_RATIO);
	bench_done(bench, 1, START, MS);
	bench_tcp(bench, 1, ACK, START + 2 * MS);
	bench_tcp(bench, 1, RST, START + 3 * MS);
	assert_counted(bench, START + 3 * MS, 1, 0);
}

BENCH_CLAIM(a_reset_or_a_finish_before_it_is_a_failure)
{
	only_count(bench, MODEL_ERROR_RATIO);
	bench_failed(bench, 1, START, START + MS);
	bench_opens(bench, 2, START);
	bench_tcp(bench, 2, FIN | ACK, START + 2 * MS);
	assert_counted(bench, START + 2 * MS, 2, 2);
	/* what it says later comes too late */
	bench_tcp(bench, 1, ACK, START + 3 * MS);
	bench_tcp(bench, 2, ACK, START + 3 * MS);
	assert_counted(bench, START + 3 * MS, 2, 2);
}

BENCH_CLAIM(silence_is_a_failure_at_the_end_of_the_time_out)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench_opens(bench, 1, START + 7);
	bench_opens(bench, 2, START + 7 + TIMEOUT - 1);
	assert_false(bench_tcp(bench, 3, SYN, START + 7 + TIMEOUT));
	assert_open(bench, START + 7 + TIMEOUT, START + 7 + TIMEOUT + RETRY);
}

BENCH_CLAIM(an_answer_at_the_end_of_the_time_out_is_too_late)
{
	only_count(bench, MODEL_ERROR_RATIO);
	bench_done(bench, 1, START + SECOND, TIMEOUT - 1);
	bench_done(bench, 2, START + 2 * SECOND, TIMEOUT);
	assert_counted(bench, START + 2 * SECOND + TIMEOUT, 2, 1);
}

BENCH_CLAIM(a_time_out_counts_at_its_moment_and_not_when_somebody_looks)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	bench->rule[0].threshold_micro *= 2;
	bench->rule[0].interval_ns = SECOND;
	bench_opens(bench, 1, START); /* fails at 10 s, in a window that nobody sees */
	bench_failed(bench, 2, START + SECOND, START + TIMEOUT + SECOND);
	assert_int_equal(bench_state(bench, START + TIMEOUT + SECOND), MODEL_BREAKER_CLOSED);
	/* two in one window open it, and the retry counts from the second of them */
	bench_opens(bench, 3, START + 20 * SECOND);
	bench_opens(bench, 4, START + 20 * SECOND + 900 * MS);
	bench_opens(bench, 5, START + 20 * SECOND + TIMEOUT + 900 * MS - 1);
	assert_open(bench, START + 100 * SECOND, START + 20 * SECOND + TIMEOUT + 900 * MS + RETRY);
}

BENCH_CLAIM(time_outs_happen_in_the_order_of_their_moments)
{
	bench_rule(bench, MODEL_ERROR_COUNT, 1);
	/* the first to open is, by its retransmission, the last to fail */
	bench_opens(bench, 1, START);
	bench_opens(bench, 2, START + SECOND);
	bench_opens(bench, 1, START + 2 * SECOND);
	assert_open(bench, START + 100 * SECOND, START + SECOND + TIMEOUT + RETRY);
}

/* ---- slow requests ---- */

BENCH_CLAIM(rt_runs_from_the_first_syn)
{
	only_count(bench, MODEL_SLOW_REQUEST_RATIO);
	bench_opens(bench, 1, START);
	bench_opens(bench, 1, START + 49 * MS);
	bench_tcp(bench, 1, ACK, START + 51 * MS);
	assert_counted(bench, START + 51 * MS, 1, 1);
}

BENCH_CLAIM(an_rt_of_the_maximum_is_not_slow_and_a_nanosecond_more_is)
{
	only_count(bench, MODEL_SLOW_REQUEST_RATIO);
	bench_done(bench, 1, START, 50 * MS);
	assert_counted(bench, START + 50 * MS, 1, 0);
	bench_done(bench, 2, START, 50 * MS + 1);
	assert_counted(bench, START + 50 * MS + 1, 2, 1);
}

BENCH_CLAIM(a_request_without_answer_is_slow_after_the_maximum)
{
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 1);
	bench_opens(bench, 1, START);
	bench_opens(bench, 2, START + 50 * MS); /* at that moment it was not yet older */
	assert_false(bench_tcp(bench, 3, SYN, START + 50 * MS + 1));
	assert_open(bench, START + 50 * MS + 1, START + 50 * MS + RETRY);
}

BENCH_CLAIM(the_nanosecond_of_the_retry_counts_from_when_it_was_slow)
{
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 1);
	bench_opens(bench, 1, START);
	assert_false(bench_tcp(bench, 2, SYN, START + 50 * MS + RETRY - 1));
	assert_true(bench_tcp(bench, 2, SYN, START + 50 * MS + RETRY));
}

BENCH_CLAIM(a_slow_request_counts_in_the_bucket_in_which_it_was_slow)
{
	only_count(bench, MODEL_SLOW_REQUEST_RATIO);
	bench->rule[0].interval_ns = SECOND;
	bench_opens(bench, 1, START - 50 * MS - 1);
	assert_counted(bench, START - 1, 0, 0); /* packets of that moment come first */
	assert_counted(bench, START, 0, 0);
	bench_opens(bench, 2, START - 50 * MS);
	assert_counted(bench, START + 1, 1, 1);
	assert_counted(bench, START + SECOND - 1, 1, 1);
	assert_counted(bench, START + SECOND, 0, 0);
}

BENCH_CLAIM(a_slow_request_is_not_counted_again)
{
	only_count(bench, MODEL_SLOW_REQUEST_RATIO);
	bench_done(bench, 1, START, SECOND);
	bench_failed(bench, 2, START, START + SECOND);
	bench_opens(bench, 3, START); /* and silent */
	assert_counted(bench, START + SECOND, 3, 3);
	/* nor in the window in which its answer or its time-out comes */
	bench->rule[0].interval_ns = SECOND;
	assert_counted(bench, START + SECOND, 0, 0);
	assert_counted(bench, START + TIMEOUT, 0, 0);
	/* meanwhile it was still being opened, so that its SYN was none of a new request */
	bench_opens(bench, 4, START + 20 * SECOND);
	bench_opens(bench, 4, START + 21 * SECOND);
	assert_counted(bench, START + 20 * SECOND + 51 * MS, 1, 1);
	assert_counted(bench, START + 21 * SECOND + 51 * MS, 0, 0);
}

BENCH_CLAIM(a_failure_is_slow_at_once)
{
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 1);
	bench_failed(bench, 1, START, START + MS);
	assert_open(bench, START + MS, START + MS + RETRY);
}

BENCH_CLAIM(a_time_out_shorter_than_the_maximum_is_slow_when_it_ends)
{
	bench_rule(bench, MODEL_SLOW_REQUEST_RATIO, 1);
	bench->rule[0].max_rt_ns = TIMEOUT + SECOND;
	bench_opens(bench, 1, START);
	assert_int_equal(bench_state(bench, START + TIMEOUT - 1), MODEL_BREAKER_CLOSED);
	assert_open(bench, START + TIMEOUT, START + TIMEOUT + RETRY);
}

BENCH_CLAIM(only_breakers_on_slow_requests_ask_for_rt)
{
	only_count(bench, MODEL_ERROR_RATIO);
	bench_done(bench, 1, START, TIMEOUT - 1);
	assert_counted(bench, START + TIMEOUT - 1, 1, 0);
}

RUN_CLAIMS(NULL, NULL)
