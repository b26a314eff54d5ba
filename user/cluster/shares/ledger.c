// SPDX-License-Identifier: GPL-2.0-only
#include "shares/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* The assembler includes the file unchanged. The path is relative to the top of the source tree, where make runs. */
__asm__(".section .rodata\n"
	"weir_ledger_lua:\n"
	".incbin \"user/cluster/shares/ledger.lua\"\n"
	"weir_ledger_lua_end:\n"
	".previous\n");
extern const char weir_ledger_lua[], weir_ledger_lua_end[];

const char *weir_ledger_script(size_t *ret_bytes)
{
	/* cppcheck-suppress comparePointers ; both are labels in one section */
	*ret_bytes = (size_t)(weir_ledger_lua_end - weir_ledger_lua);
	return weir_ledger_lua;
}

/* Not by snprintf(): a thousand rules have 70,000 numbers a second, and snprintf() took a third of the CPU time that a
 * controller then needed.
 */
static void write_number(weir_ledger_word word, int64_t number)
{
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char digits[WEIR_LEDGER_WORD_CHARS];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + left % 10);
	while (left /= 10);
	if (number < 0)
		digits[count++] = '-';
	word[count] = '\0';
	for (size_t i = 0; i < count; i++)
		word[i] = digits[count - 1 - i];
}

void weir_ledger_write_head(const struct weir_member *member, weir_ledger_word words[WEIR_LEDGER_HEAD_WORDS])
{
	snprintf(words[0], WEIR_LEDGER_WORD_CHARS, "%s", member->host);
	snprintf(words[1], WEIR_LEDGER_WORD_CHARS, "%s", member->process);
	write_number(words[2], (int64_t)member->turn);
	write_number(words[3], WEIR_CLUSTER_LEASE_NS / 1000);
	write_number(words[4], WEIR_CLUSTER_SETTLED_NS / 1000);
}

#define EPOCH_WORD 8

/* The checks of ledger.lua. A prime, so that no single changed digit leaves the check as it was. */
#define CHECK_PRIME 2147483647

static int64_t add_number(int64_t check, int64_t number)
{
	number %= CHECK_PRIME;
	return (check * 31 + (number < 0 ? number + CHECK_PRIME : number)) % CHECK_PRIME;
}

static int64_t add_text(int64_t check, const char *text)
{
	for (; *text; text++)
		check = (check * 31 + (unsigned char)*text) % CHECK_PRIME;
	return check;
}

void weir_ledger_write_ask(const struct weir_member *member, const struct weir_share_ask *ask,
			   weir_ledger_word words[WEIR_LEDGER_ASK_WORDS])
{
	const int64_t numbers[] = {
		(int64_t)ask->threshold,
		(int64_t)ask->rest_us,
		ask->may_fall_back,
		ask->leaves,
		(int64_t)ask->ask,
		(int64_t)ask->share,
		ask->peak,
		(int64_t)ask->fallback,
		0 /* EPOCH_WORD */,
		ask->now_us,
		ask->received_us,
		ask->contact_us,
		ask->total,
		(int64_t)ask->base,
		ask->flows_most,
		ask->silent_us,
		ask->stops,
		ask->longest_us,
		ask->expected,
		ask->rises_us,
		ask->owed,
	};
	int64_t check = add_text(add_text(0, member->host), member->process);

	_Static_assert(ARRAY_SIZE(numbers) == WEIR_LEDGER_ASK_WORDS - 1, "the last word is the check");
	check = add_number(check, (int64_t)member->turn);
	check = add_number(check, WEIR_CLUSTER_LEASE_NS / 1000);
	check = add_number(check, WEIR_CLUSTER_SETTLED_NS / 1000);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (i == EPOCH_WORD) {
			snprintf(words[i], WEIR_LEDGER_WORD_CHARS, "%s", ask->epoch);
			check = add_text(check, words[i]);
		} else {
			write_number(words[i], numbers[i]);
			check = add_number(check, numbers[i]);
		}
	}
	write_number(words[ARRAY_SIZE(numbers)], check);
}

int weir_ledger_read_answer(const char *epoch, const long long numbers[WEIR_LEDGER_ANSWER_NUMBERS],
			    const struct weir_share_terms *terms, struct weir_share_answer *ret_answer)
{
	long long threshold = (long long)terms->threshold;
	long long now_us = numbers[0], share = numbers[1], fallback = numbers[2], lease_us = numbers[3];
	long long longest_us = numbers[7], expected = numbers[8], owed = numbers[9];
	int64_t check = add_text(0, epoch);

	for (size_t i = 0; i < WEIR_LEDGER_ANSWER_NUMBERS - 1; i++)
		check = add_number(check, numbers[i]);
	if (check != numbers[WEIR_LEDGER_ANSWER_NUMBERS - 1])
		return -EINVAL;

	if (epoch[0] == '\0' || strlen(epoch) >= WEIR_CLUSTER_EPOCH_CHARS || now_us < 0)
		return -EINVAL;
	if (share < 0 || share > threshold || fallback < 0 || fallback > threshold)
		return -EINVAL;
	/* A store may shorten leases, but never lengthen them. */
	if (lease_us < WEIR_LEASE_TAKEN || lease_us > (long long)(WEIR_CLUSTER_LEASE_NS / 1000))
		return -EINVAL;
	if (longest_us < 0 || longest_us > WEIR_CLUSTER_FOREVER_US || expected < 0 || owed < 0)
		return -EINVAL;
	*ret_answer = (struct weir_share_answer){
		.now_us = now_us,
		.share = (uint64_t)share,
		.fallback = (uint64_t)fallback,
		.lease_us = lease_us,
		.hosts = numbers[4],
		.total = numbers[5],
		.silent = numbers[6],
		.longest_us = longest_us,
		.expected = expected,
		.owed = owed,
	};
	snprintf(ret_answer->epoch, sizeof(ret_answer->epoch), "%s", epoch);
	return 0;
}
