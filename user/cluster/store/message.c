// SPDX-License-Identifier: GPL-2.0-only
#include "store/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weir_message_free(struct weir_message *message)
{
	free(message->words);
	free(message->bytes);
	free(message->texts);
}

int weir_message_begin(struct weir_message *message, size_t ledgers, size_t wanted)
{
	size_t texts = WEIR_LEDGER_HEAD_WORDS + ledgers * WEIR_LEDGER_ASK_WORDS + 2 * wanted + 1;
	size_t words = 3 + ledgers + texts + 2 * wanted;

	message->words = calloc(words, sizeof(*message->words));
	message->bytes = calloc(words, sizeof(*message->bytes));
	message->texts = calloc(texts, sizeof(*message->texts));
	return message->words && message->bytes && message->texts ? 0 : -ENOMEM;
}

void weir_message_say(struct weir_message *message, const char *word)
{
	message->bytes[message->count] = strlen(word);
	message->words[message->count++] = word;
}

/* Room for `count` words, which the caller writes and which are then added to the message. */
static weir_ledger_word *say_texts(struct weir_message *message, size_t count)
{
	weir_ledger_word *texts = &message->texts[message->text_count];

	message->text_count += count;
	return texts;
}

static void say_texts_written(struct weir_message *message, size_t count)
{
	weir_ledger_word *texts = &message->texts[message->text_count - count];

	for (size_t i = 0; i < count; i++)
		weir_message_say(message, texts[i]);
}

void weir_message_say_number(struct weir_message *message, size_t number)
{
	snprintf(say_texts(message, 1)[0], WEIR_LEDGER_WORD_CHARS, "%zu", number);
	say_texts_written(message, 1);
}

void weir_message_say_head(struct weir_message *message, const struct weir_member *member)
{
	message->member = member;
	weir_ledger_write_head(member, say_texts(message, WEIR_LEDGER_HEAD_WORDS));
	say_texts_written(message, WEIR_LEDGER_HEAD_WORDS);
}

void weir_message_say_ask(struct weir_message *message, const struct weir_share_ask *ask)
{
	weir_ledger_write_ask(message->member, ask, say_texts(message, WEIR_LEDGER_ASK_WORDS));
	say_texts_written(message, WEIR_LEDGER_ASK_WORDS);
}
