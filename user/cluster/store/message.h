/* SPDX-License-Identifier: GPL-2.0-only */
/* A command to the store, built word by word, including the words of the ledger's protocol (shares/ledger.h). */
#ifndef WEIR_STORE_MESSAGE_H
#define WEIR_STORE_MESSAGE_H

#include <stddef.h>

#include "shares/ledger.h"

struct weir_message {
	const char **words;
	size_t *bytes;
	weir_ledger_word *texts;
	size_t count, text_count;
	const struct weir_member *member; /* of the head, which the checks of the asks include */
};

/* The message must be zeroed before. Reserves room for this many ledgers and wanted flows. -ENOMEM. The caller frees
 * the message in any case.
 */
int weir_message_begin(struct weir_message *message, size_t ledgers, size_t wanted);
void weir_message_free(struct weir_message *message);

/* The word is not copied. */
void weir_message_say(struct weir_message *message, const char *word);
void weir_message_say_number(struct weir_message *message, size_t number);
void weir_message_say_head(struct weir_message *message, const struct weir_member *member);
/* After the head. */
void weir_message_say_ask(struct weir_message *message, const struct weir_share_ask *ask);

#endif
