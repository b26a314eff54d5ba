// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a store sends, as a connection cuts it: replies are read or the connection ends, and whatever passes the scan is
 * a reply to hiredis, too. Each is taken for all that it may be: the script's answer, and a ledger that is looked at.
 * The first byte says how long the pieces are.
 */
#include "fuzz.h"

#include <string.h>

#include "shares/ledger.h"
#include "shares/membership.h"
#include "store/replies.h"

static volatile size_t all_read;

static const struct weir_share_terms terms = {.threshold = 3000, .interval_ns = 1000000000};

static void read_answer(const struct weir_reply *reply)
{
	long long numbers[WEIR_LEDGER_ANSWER_NUMBERS];
	struct weir_share_answer answer;
	const char *epoch;

	if (weir_reply_count(reply) < 1 + WEIR_LEDGER_ANSWER_NUMBERS)
		return;
	epoch = weir_reply_text(weir_reply_at(reply, 0));
	for (size_t i = 0; i < WEIR_LEDGER_ANSWER_NUMBERS; i++)
		numbers[i] = weir_reply_number(weir_reply_at(reply, 1 + i));
	if (epoch && !weir_ledger_read_answer(epoch, numbers, &terms, &answer))
		FUZZ_CHECK(answer.share <= terms.threshold && answer.fallback <= terms.threshold);
}

static void read_ledger(const struct weir_reply *reply, struct weir_membership *roll)
{
	struct weir_ledger_head head = {};
	struct weir_ledger_host host;

	for (size_t i = 0; i + 1 < weir_reply_count(reply); i += 2) {
		const char *field = weir_reply_text(weir_reply_at(reply, i));
		const char *text = weir_reply_text(weir_reply_at(reply, i + 1));

		if (!field || !text)
			continue;
		weir_ledger_read_head(field, text, &head);
		if (weir_ledger_read_host(field, text, head.now_us, &host))
			weir_membership_see(roll, 0, &host);
	}
}

static void take(const struct weir_reply *reply, struct weir_membership *roll)
{
	const char *error = weir_reply_error(reply);

	for (const char *at = error; at && *at; at++)
		FUZZ_CHECK(*at >= ' ' && *at <= '~');
	all_read += weir_reply_text(reply) ? strlen(weir_reply_text(reply)) : 0;
	read_answer(reply);
	read_ledger(reply, roll);
	for (size_t i = 0; i < weir_reply_count(reply); i++)
		take(weir_reply_at(reply, i), roll);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const size_t most = bytes ? 1 + data[0] % 64u : 0;
	struct weir_replies *replies = weir_replies_open();
	static struct weir_membership nobody;
	struct weir_membership roll = nobody;

	FUZZ_CHECK(replies);
	for (size_t at = 1, count; at < bytes; at += count) {
		struct weir_reply *reply = NULL;

		count = bytes - at < most ? bytes - at : most;
		if (weir_replies_feed(replies, (const char *)data + at, count))
			break;
		do {
			FUZZ_CHECK(!weir_replies_next(replies, &reply));
			if (reply)
				take(reply, &roll);
			weir_store_free_reply(reply);
		} while (reply);
	}
	weir_replies_free(replies);
	return 0;
}
