/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Comments in lists of Sentinel's rules: two slashes to the end of the line, and what stands between slash-star and
 * star-slash. Sentinel Java's parser (fastjson) skips them, so its users write them. To YAML they are words, which take
 * the name of the next field with them: `// per second "count": 5` is a field of that long name. In the rest of a rule
 * file, which is weir's own, they are a mistake where the file is JSON, else what they are to YAML.
 */
#ifndef WEIR_RULES_COMMENTS_H
#define WEIR_RULES_COMMENTS_H

#include <stdbool.h>
#include <stddef.h>

/* The fields of a rule file under which lists of Sentinel's may stand. */
#define WEIR_SENTINEL_NAMES                                                                                            \
	"flowRules", "isolationRules", "hotspotRules", "systemRules", "degradeRules", "paramFlowRules", "authorityRules"
#define WEIR_SENTINEL_NAME_COUNT 7

/* Overwrite them with blanks, so that all else stays in its place. `text` ends with a zero byte behind its `bytes`.
 * Returns where a comment begins that does not end, or that stands in brackets outside of such lists (*ret_is_strange),
 * else `bytes`.
 */
size_t weir_blank_comments(char *text, size_t bytes, bool *ret_is_strange);

#endif
