// SPDX-License-Identifier: GPL-2.0-only
#include "rules/interface_words.h"

#include <fnmatch.h>
#include <string.h>

bool weir_word_is_pattern(const char *word)
{
	return word[0] == WEIR_WORD_EXCEPTS || strpbrk(word, "*?[");
}

bool weir_words_have(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(words[i], word, WEIR_WANTED_BYTES))
			return true;
	return false;
}

bool weir_words_mean(const char (*words)[WEIR_WANTED_BYTES], size_t count, const char *name)
{
	bool is_meant = false;

	if (weir_words_have(words, count, name))
		return true;
	if (!strcmp(name, "lo"))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (words[i][0] == WEIR_WORD_EXCEPTS && !fnmatch(words[i] + 1, name, 0))
			return false;
		is_meant |= weir_word_is_pattern(words[i]) && words[i][0] != WEIR_WORD_EXCEPTS &&
			    !fnmatch(words[i], name, 0);
	}
	return is_meant;
}
