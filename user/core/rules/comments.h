/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Comments in lists of Sentinel's rules: from two slashes to the end of the line, and between slash-star and
 * star-slash. Sentinel Java's parser (fastjson) skips them, so its users write them. YAML reads them as words that
 * become part of the next field's name: `// per second "count": 5` is one field with that long name. In the rest of a
 * rule file, which is weir's own format, a comment is a mistake if the file is JSON; otherwise it means what it means
 * in YAML.
 */
#ifndef WEIR_RULES_COMMENTS_H
#define WEIR_RULES_COMMENTS_H

#include <stdbool.h>
#include <stddef.h>

/* The fields of a rule file that may hold lists of Sentinel's rules. */
#define WEIR_SENTINEL_NAMES                                                                                            \
	"flowRules", "isolationRules", "hotspotRules", "systemRules", "degradeRules", "paramFlowRules", "authorityRules"
#define WEIR_SENTINEL_NAME_COUNT 7

/* Overwrite the comments with blanks, so that everything else keeps its position. `text` has a zero byte after its
 * `bytes`. Returns `bytes`, or the position of a comment that has no end, or that is inside brackets outside such lists
 * (then *ret_is_strange is true).
 */
size_t weir_blank_comments(char *text, size_t bytes, bool *ret_is_strange);

#endif
