/* SPDX-License-Identifier: GPL-2.0-only */
/* The suggestions as a rule file that can be loaded unchanged and drops nothing, with a comment on each number. */
#ifndef WEIR_SUGGEST_RULE_FILE_H
#define WEIR_SUGGEST_RULE_FILE_H

#include "suggest/suggest.h"

/* The text of the file, with the results of the proof if there is one; rules are in the order of the suggestions. The
 * caller frees it; NULL: no memory.
 */
char *weir_suggest_rule_file(const struct weir_suggest_options *options, const struct weir_suggest_report *report);

#endif
