// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to `weir run --listen`, from where libmicrohttpd has taken them apart: lines of method, path, Host, Accept
 * ?number= and ?drops=. Each has a reply, and what is no success is JSON with a word of error. No instance of that name
 * is there, so that nothing of this machine is read.
 */
#include "fuzz.h"

#include <jansson.h>
#include <string.h>

#include "serve/answer.h"

/* The next line, cut out of *text; NULL: there is none, or an empty one. */
static const char *take_line(char **text)
{
	char *line = *text ? strsep(text, "\n") : NULL;

	return line && *line ? line : NULL;
}

static void check_reply(const struct weir_reply *reply)
{
	json_t *document;

	FUZZ_CHECK(reply->status >= 200 && reply->status < 600);
	if (reply->status == 200)
		return;
	FUZZ_CHECK(reply->type && !strcmp(reply->type, "application/json"));
	document = json_loadb(reply->body, reply->bytes, 0, NULL);
	FUZZ_CHECK(json_is_string(json_object_get(document, "error")));
	json_decref(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct weir_source source = {.instance_name = "fuzz-none"};
	struct weir_request request = {};
	struct weir_reply reply;
	char *text, *rest;

	if (!bytes)
		return 0;
	text = rest = strndup((const char *)data + 1, bytes - 1);
	FUZZ_CHECK(text);
	request.has_body = data[0] & 1;
	request.is_loopback = data[0] & 2;
	request.method = take_line(&rest) ?: "GET";
	request.path = take_line(&rest) ?: "/";
	request.host = take_line(&rest);
	request.accept = take_line(&rest);
	request.number = take_line(&rest);
	request.drops = take_line(&rest);
	weir_answer(&source, &request, &reply);
	check_reply(&reply);
	if (!reply.is_static)
		free(reply.body);
	weir_source_free(&source);
	free(text);
	return 0;
}
