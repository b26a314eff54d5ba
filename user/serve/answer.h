/* SPDX-License-Identifier: GPL-2.0-only */
/* From a request to its reply: what is at which path. Independent of connections. */
#ifndef WEIR_SERVE_ANSWER_H
#define WEIR_SERVE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/source.h"

struct weir_request {
	const char *method, *path;
	const char *host;	/* the header; NULL: none */
	const char *accept;	/* the header; NULL: none */
	const char *number;	/* ?number=; NULL: not given */
	const char *drops;	/* ?drops=; NULL: not given */
	const char *fetch_site; /* the header Sec-Fetch-Site: where the page is that made the browser ask; NULL: none */
	bool has_body;
	/* The request came to a loopback address. There only a browser that is misled by another host's page (DNS
	 * rebinding) names a host.
	 */
	bool is_loopback;
};

struct weir_reply {
	unsigned int status; /* the HTTP status */
	const char *type;    /* of the body */
	const char *allow;   /* NULL, or the methods that are allowed */
	char *body;	     /* malloc'ed, unless it is_static */
	size_t bytes;
	bool is_static;
	unsigned int age_s; /* age of the data */
};

/* There is always a reply. Without memory for its body, the body is empty and the status is 500. */
void weir_answer(struct weir_source *source, const struct weir_request *request, struct weir_reply *ret_reply);

/* The page for people, and the files that it loads. All of them are part of the program (user/serve/page, and
 * libjs-dygraphs).
 */
struct weir_asset {
	const char *path; /* path of the request */
	const char *type; /* content type */
	const char *begin, *end;
};

/* NULL: nothing is at this path, or this build has no page (make WITHOUT=page). */
const struct weir_asset *weir_page_find(const char *path);

bool weir_page_is_built(void);

#endif
