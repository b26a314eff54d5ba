/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger's script and its message format: a host's message as arguments of EVALSHA, and parsing the answer. Knows
 * the order of the fields, as ledger.lua does, and nothing of sockets.
 */
#ifndef WEIR_SHARES_LEDGER_H
#define WEIR_SHARES_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "shares/share.h"

#define WEIR_LEDGER_HEAD_WORDS 5      /* host, process, turn, lease_us, settled_us */
#define WEIR_LEDGER_ASK_WORDS 22      /* for each rule */
#define WEIR_LEDGER_ANSWER_NUMBERS 11 /* an answer consists of the epoch and these */
#define WEIR_LEDGER_WORD_CHARS 64

typedef char weir_ledger_word[WEIR_LEDGER_WORD_CHARS];

/* The source of ledger.lua, not terminated by a zero. */
const char *weir_ledger_script(size_t *ret_bytes);

void weir_ledger_write_head(const struct weir_member *member, weir_ledger_word words[WEIR_LEDGER_HEAD_WORDS]);
/* The last word is a check over the others and the head, so that a message changed on its way is not used [11]. */
void weir_ledger_write_ask(const struct weir_member *member, const struct weir_share_ask *ask,
			   weir_ledger_word words[WEIR_LEDGER_ASK_WORDS]);

/*
 * Parse an answer: the epoch, and its numbers in the order of the script. A store can answer anything. -EINVAL: no
 * ledger would give this answer to a host with these terms, or it was changed on its way; *ret_answer stays as it was.
 */
int weir_ledger_read_answer(const char *epoch, const long long numbers[WEIR_LEDGER_ANSWER_NUMBERS],
			    const struct weir_share_terms *terms, struct weir_share_answer *ret_answer);

#endif
