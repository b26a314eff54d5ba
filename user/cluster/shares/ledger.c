// SPDX-License-Identifier: GPL-2.0-only
#include "shares/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

void weir_ledger_write_ask(const struct weir_share_ask *ask, weir_ledger_word words[WEIR_LEDGER_ASK_WORDS])
{
	write_number(words[0], (int64_t)ask->threshold);
	write_number(words[1], (int64_t)ask->rest_us);
	write_number(words[2], ask->may_fall_back);
	write_number(words[3], ask->leaves);
	write_number(words[4], (int64_t)ask->ask);
	write_number(words[5], (int64_t)ask->share);
	write_number(words[6], ask->peak);
	write_number(words[7], (int64_t)ask->fallback);
	snprintf(words[8], WEIR_LEDGER_WORD_CHARS, "%s", ask->epoch);
	write_number(words[9], ask->now_us);
	write_number(words[10], ask->received_us);
	write_number(words[11], ask->contact_us);
	write_number(words[12], ask->total);
	write_number(words[13], (int64_t)ask->base);
	write_number(words[14], ask->flows_most);
	write_number(words[15], ask->silent_us);
	write_number(words[16], ask->stops);
	write_number(words[17], ask->longest_us);
}

int weir_ledger_read_answer(const char *epoch, const long long numbers[WEIR_LEDGER_ANSWER_NUMBERS],
			    const struct weir_share_terms *terms, struct weir_share_answer *ret_answer)
{
	long long threshold = (long long)terms->threshold;
	long long now_us = numbers[0], share = numbers[1], fallback = numbers[2], lease_us = numbers[3];
	long long longest_us = numbers[7];

	if (epoch[0] == '\0' || strlen(epoch) >= WEIR_CLUSTER_EPOCH_CHARS || now_us < 0)
		return -EINVAL;
	if (share < 0 || share > threshold || fallback < 0 || fallback > threshold)
		return -EINVAL;
	/* A store may shorten leases, but never lengthen them. */
	if (lease_us < WEIR_LEASE_TAKEN || lease_us > (long long)(WEIR_CLUSTER_LEASE_NS / 1000))
		return -EINVAL;
	if (longest_us < 0 || longest_us > WEIR_CLUSTER_FOREVER_US)
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
	};
	snprintf(ret_answer->epoch, sizeof(ret_answer->epoch), "%s", epoch);
	return 0;
}
