/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words that select interfaces, for `-i` and `match.interface` alike: a name, a pattern for names (fnmatch(3)), or
 * either after '!', which makes an exception from the patterns.
 */
#ifndef WEIR_INTERFACE_WORDS_H
#define WEIR_INTERFACE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "weir_abi.h"

#define WEIR_WORD_EXCEPTS '!'

/* Is the word a pattern or an exception? If so, no matching interface needs to exist. */
bool weir_word_is_pattern(const char *word);

/* Do the words select the interface of this name: by its name, or by a pattern without an exception? No pattern selects
 * the loopback interface.
 */
bool weir_words_mean(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *name);

/* Is one of the words exactly this word? */
bool weir_words_have(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *word);

#endif
