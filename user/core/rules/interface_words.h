/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words that mean interfaces, the same for `-i` and for `match.interface`: a name, a pattern of names (fnmatch(3)), or
 * either behind '!', which is an exception from the patterns.
 */
#ifndef WEIR_INTERFACE_WORDS_H
#define WEIR_INTERFACE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "weir_abi.h"

#define WEIR_WORD_EXCEPTS '!'

/* It means interfaces by their look, or excepts some: it need not mean one that is there. */
bool weir_word_is_pattern(const char *word);

/* Whether they mean the interface of this name: by name, or by a pattern and no exception. No pattern means the
 * loopback interface.
 */
bool weir_words_mean(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *name);

/* Whether one of them is this very word. */
bool weir_words_have(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *word);

#endif
