/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger's script, and its words: what a host says to it as arguments of EVALSHA, and its answer read back. Knows
 * the order of fields, which ledger.lua has too, and nothing of sockets.
 */
#ifndef WEIR_SHARES_LEDGER_H
#define WEIR_SHARES_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "shares/share.h"

#define WEIR_LEDGER_HEAD_WORDS 5 /* host, process, turn, lease_us, settled_us; then for each rule: */
#define WEIR_LEDGER_ASK_WORDS 18
#define WEIR_LEDGER_ANSWER_NUMBERS 8 /* an answer is the epoch, and these */
#define WEIR_LEDGER_WORD_CHARS 64

typedef char weir_ledger_word[WEIR_LEDGER_WORD_CHARS];

/* The source of ledger.lua, not ended by a zero. */
const char *weir_ledger_script(size_t *ret_bytes);

void weir_ledger_write_head(const struct weir_member *member, weir_ledger_word words[WEIR_LEDGER_HEAD_WORDS]);
void weir_ledger_write_ask(const struct weir_share_ask *ask, weir_ledger_word words[WEIR_LEDGER_ASK_WORDS]);

/*
 * An answer, from the epoch and its numbers in the order of the script. A store can answer anything: -EINVAL when no
 * ledger would say this to a host with these terms, and *ret_answer stays as it was.
 */
int weir_ledger_read_answer(const char *epoch, const long long numbers[WEIR_LEDGER_ANSWER_NUMBERS],
			    const struct weir_share_terms *terms, struct weir_share_answer *ret_answer);

#endif
