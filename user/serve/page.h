/* SPDX-License-Identifier: GPL-2.0-only */
/* The page for people, and the files that it loads. All of them are part of the program (user/serve/page, and
 * libjs-dygraphs).
 */
#ifndef WEIR_SERVE_PAGE_H
#define WEIR_SERVE_PAGE_H

#include <stdbool.h>

struct weir_asset {
	const char *path; /* path of the request */
	const char *type; /* content type */
	const char *begin, *end;
};

/* NULL: nothing is at this path, or this build has no page (make WITHOUT=page). */
const struct weir_asset *weir_page_find(const char *path);

bool weir_page_is_built(void);

#endif
