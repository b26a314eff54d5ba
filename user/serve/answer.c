// SPDX-License-Identifier: GPL-2.0-only
#include "serve/answer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "control/calculator.h"
#include "exposition/exposition.h"
#include "host/host.h"
#include "report/drops.h"
#include "report/event_lines.h"
#include "rules/scalars.h"
#include "serve/metrics.h"
#include "words/json.h"

#define TYPE_JSON "application/json"
#define FLOWS_DEFAULT 20 /* the same as `weir flows` */
#define EVENTS_DEFAULT 20
#define EVENTS_MAX 1000

/* However often a client requests the flows, they are re-read only after this many times what reading them takes; 20
 * means at most a twentieth of a CPU. The number of flows in /metrics changes more slowly, and may be older.
 */
#define FLOWS_PATIENCE 20
#define METRICS_PATIENCE 300

/* ---- replies ---- */

/* Takes ownership of the document; NULL: there was no memory for it. */
static void reply_json(struct weir_reply *reply, unsigned int status, json_t *document)
{
	char *text = weir_json_dump(document, WEIR_JSON_FLAGS);
	size_t bytes = text ? strlen(text) : 0;

	json_decref(document);
	reply->status = text ? status : 500;
	reply->type = TYPE_JSON;
	reply->body = text;
	reply->bytes = bytes;
	if (text)
		reply->body[reply->bytes++] = '\n'; /* in place of the zero */
}

/* An error message and, if there is one, the advice. */
static void reply_words(struct weir_reply *reply, unsigned int status, const char *error, const char *hint)
{
	reply_json(reply, status,
		   json_pack("{s:o, s:o*}", "error", weir_json_text(error), "hint",
			     hint ? weir_json_text(hint) : NULL));
}

/* Takes the message in the diag, and frees the diag. The status is 503, because the instance may come back. */
static void reply_failure(struct weir_reply *reply, int err, struct weir_diag *diag)
{
	const struct weir_diag_entry *first = diag->count ? &diag->entries[0] : NULL;

	reply_words(reply, 503, first ? first->message : strerror(-err), first ? first->hint : NULL);
	weir_diag_free(diag);
}

/* The document or, if there was an error, the error. */
static void reply_or_fail(struct weir_reply *reply, int err, json_t **document, struct weir_diag *diag)
{
	if (err)
		reply_failure(reply, err, diag);
	else
		reply_json(reply, 200, *document);
	weir_diag_free(diag); /* there may be a warning */
}

/* ---- the paths ---- */

static int take_status(struct weir_source *source, json_t **ret_document, struct weir_diag *diag)
{
	const struct weir_instance *instance;
	_cleanup_(weir_status_free) struct weir_status_view view = {};
	int err = weir_source_open(source, &instance, diag);

	if (!err)
		err = weir_status_read(instance, &view, diag);
	if (!err)
		err = weir_source_read_sets(source, &view.sets, diag);
	if (!err)
		*ret_document = json_pack("{s:[o]}", "instances", weir_status_describe(&view));
	return err;
}

static void answer_status(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	struct weir_diag diag = {};
	json_t *document;

	reply_or_fail(reply, take_status(source, &document, &diag), &document, &diag);
}

static int take_stats(struct weir_source *source, json_t **ret_document, struct weir_diag *diag)
{
	const struct weir_instance *instance;
	_cleanup_(weir_stats_free) struct weir_stats_view view = {};
	int err = weir_source_open(source, &instance, diag);

	if (!err)
		err = weir_stats_read(instance, &view, diag);
	if (!err)
		*ret_document = weir_stats_describe(&view);
	return err;
}

static void answer_stats(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	struct weir_diag diag = {};
	json_t *document;

	reply_or_fail(reply, take_stats(source, &document, &diag), &document, &diag);
}

/* A document about the last reading of the flows. */
typedef json_t *describe_flows(const struct weir_source *source, size_t most);

static json_t *describe_busiest(const struct weir_source *source, size_t most)
{
	return weir_flows_describe_most(&source->flows, most);
}

static json_t *describe_dropped(const struct weir_source *source, size_t most)
{
	return weir_drops_describe_most(source->flows_instance, &source->drops, most);
}

static int take_flows(struct weir_source *source, size_t most, describe_flows *describe, json_t **ret_document,
		      struct weir_diag *diag)
{
	const struct weir_instance *instance;
	int err = weir_source_open(source, &instance, diag);

	if (!err)
		err = weir_source_read_flows(source, instance, FLOWS_PATIENCE, diag);
	if (!err)
		*ret_document = describe(source, most);
	return err;
}

/* Parse the requested number, up to `most`. If there is none, *ret_number is unchanged. False: it is not such a number,
 * and the request has been refused.
 */
static bool read_number(const char *word, uint64_t most, struct weir_reply *reply, uint64_t *ret_number)
{
	struct weir_refusal refusal;

	if (!word || !weir_parse_number(word, 1, most, ret_number, &refusal))
		return true;
	reply_words(reply, 400, refusal.message, refusal.hint);
	return false;
}

static void answer_with_flows(struct weir_source *source, const struct weir_request *request, describe_flows *describe,
			      struct weir_reply *reply)
{
	struct weir_diag diag = {};
	uint64_t most = FLOWS_DEFAULT;
	json_t *document;

	if (!read_number(request->number, WEIR_SOURCE_FLOWS, reply, &most))
		return;
	reply_or_fail(reply, take_flows(source, most, describe, &document, &diag), &document, &diag);
	if (reply->status == 200)
		reply->age_s = weir_source_flows_age_ns(source) / WEIR_NSEC_PER_SEC;
}

static void answer_flows(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	answer_with_flows(source, request, describe_busiest, reply);
}

static void answer_dropped(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	answer_with_flows(source, request, describe_dropped, reply);
}

static json_int_t time_of(const json_t *event)
{
	return json_integer_value(json_object_get(event, "timeNs"));
}

/* Merge the latest `most` of `drops` into `changes` by time; both have the oldest first. Takes ownership of `changes`.
 * NULL: out of memory.
 */
static json_t *merge(json_t *changes, const json_t *drops, size_t most)
{
	const size_t change_count = json_array_size(changes), drop_count = json_array_size(drops);
	size_t change = 0, drop = drop_count > most ? drop_count - most : 0;
	json_t *merged = changes ? json_array() : NULL;

	while (merged && (change < change_count || drop < drop_count)) {
		json_t *next = json_array_get(changes, change), *next_drop = json_array_get(drops, drop);

		if (!next || (next_drop && time_of(next_drop) < time_of(next))) {
			next = next_drop;
			drop++;
		} else {
			change++;
		}
		weir_json_append(&merged, json_incref(next));
	}
	json_decref(changes);
	return merged;
}

/* The latest changes and, if any are requested, drops between them. */
static int take_events(struct weir_source *source, size_t most, size_t drops_most, json_t **ret_document,
		       struct weir_diag *diag)
{
	const json_t *drops = NULL;
	_cleanup_(weir_reported_events_free) struct weir_reported_events events = {};
	const struct weir_instance *instance;
	int err = weir_source_open(source, &instance, diag);

	if (!err)
		err = weir_events_read_past(instance, &events, diag);
	if (!err && drops_most)
		err = weir_source_read_drops(source, instance, &drops, diag);
	if (!err)
		*ret_document = merge(weir_events_describe_past(instance, &events, most), drops, drops_most);
	return err;
}

static void answer_events(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	struct weir_diag diag = {};
	uint64_t most = EVENTS_DEFAULT, drops_most = 0;
	json_t *document;

	if (read_number(request->number, EVENTS_MAX, reply, &most) &&
	    read_number(request->drops, WEIR_DROP_SAMPLE_EVENTS, reply, &drops_most))
		reply_or_fail(reply, take_events(source, most, drops_most, &document, &diag), &document, &diag);
}

static int take_cluster(struct weir_source *source, json_t **ret_document, struct weir_diag *diag)
{
	const struct weir_instance *instance;
	const struct weir_calculator *cluster = weir_calculator_find("cluster");
	int err = weir_source_open(source, &instance, diag);

	if (!err && cluster)
		err = cluster->describe(instance, ret_document, diag);
	return err;
}

static void answer_cluster(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	struct weir_diag diag = {};
	json_t *document = NULL;

	reply_or_fail(reply, take_cluster(source, &document, &diag), &document, &diag);
}

static void answer_rules(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	struct weir_diag diag = {};
	json_t *document;

	reply_or_fail(reply, weir_source_read_rules(source, &document, &diag), &document, &diag);
}

static void free_reading(struct weir_reading *reading)
{
	weir_status_free(&reading->status);
	weir_stats_free(&reading->stats);
}

static int take_metrics(struct weir_source *source, struct weir_exposition *exposition, struct weir_diag *diag)
{
	_cleanup_(free_reading) struct weir_reading reading = {};
	int err = weir_source_open(source, &reading.instance, diag);

	if (!err)
		err = weir_source_read_flows(source, reading.instance, METRICS_PATIENCE, diag);
	if (!err)
		err = weir_status_read(reading.instance, &reading.status, diag);
	if (!err)
		err = weir_source_read_sets(source, &reading.status.sets, diag);
	if (!err)
		err = weir_stats_read(reading.instance, &reading.stats, diag);
	if (!err)
		weir_metrics_write(source, &reading, exposition);
	return !err && exposition->is_cut ? -ENOMEM : err;
}

static void answer_metrics(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	struct weir_exposition exposition = {.is_openmetrics = weir_exposition_is_openmetrics(request->accept)};
	struct weir_diag diag = {};
	int err = take_metrics(source, &exposition, &diag);

	if (err) {
		weir_exposition_free(&exposition);
		reply_failure(reply, err, &diag);
		return;
	}
	weir_diag_free(&diag);
	reply->status = 200;
	reply->type = weir_exposition_type(exposition.is_openmetrics);
	reply->body = exposition.text;
	reply->bytes = exposition.bytes;
}

static void answer_index(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply);

static const struct route {
	const char *path;
	void (*answer)(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply);
} routes[] = {
	{"/metrics", answer_metrics},	 {"/api/v1", answer_index},	    {"/api/v1/status", answer_status},
	{"/api/v1/stats", answer_stats}, {"/api/v1/flows", answer_flows},   {"/api/v1/dropped", answer_dropped},
	{"/api/v1/rules", answer_rules}, {"/api/v1/events", answer_events}, {"/api/v1/cluster", answer_cluster},
};

static void answer_index(struct weir_source *source, const struct weir_request *request, struct weir_reply *reply)
{
	json_t *paths = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		weir_json_append(&paths, json_string(routes[i].path));
	reply_json(reply, 200, json_pack("{s:s, s:o}", "instance", source->instance_name, "paths", paths));
}

/* ---- the request ---- */

/* "127.0.0.1:9617", "[::1]", "localhost:80": a name that belongs to no domain. */
static bool is_nobodys_name(const char *host)
{
	char name[INET6_ADDRSTRLEN + 1];
	struct in6_addr address6;
	struct in_addr address;
	size_t bytes;

	if (host[0] == '[') {
		bytes = strcspn(++host, "]");
		if (bytes >= sizeof(name))
			return false;
		memcpy(name, host, bytes);
		name[bytes] = '\0';
		return inet_pton(AF_INET6, name, &address6) == 1;
	}
	bytes = strcspn(host, ":");
	if (bytes >= sizeof(name))
		return false;
	memcpy(name, host, bytes);
	name[bytes] = '\0';
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1;
}

/* The request was made by a browser on behalf of a page of another origin. Such a page cannot read the answer, but by
 * requesting drops it would turn their reporting on. A person may follow a link to our page.
 */
static bool is_from_elsewhere(const struct weir_request *request)
{
	return request->fetch_site && strcmp(request->path, "/") &&
	       (!strcmp(request->fetch_site, "cross-site") || !strcmp(request->fetch_site, "same-site"));
}

/* Whether to refuse the request, whatever it asks for. */
static bool is_refused(const struct weir_request *request, struct weir_reply *reply)
{
	if (strcmp(request->method, "GET") && strcmp(request->method, "HEAD")) {
		reply->allow = "GET, HEAD";
		reply_words(reply, 405, "this server is read-only", "use GET or HEAD");
		return true;
	}
	if (request->has_body) {
		reply_words(reply, 413, "requests must not have a body", NULL);
		return true;
	}
	if (request->is_loopback && request->host && *request->host && !is_nobodys_name(request->host)) {
		reply_words(
			reply, 421, "this server does not have that host name",
			"use the address that weir listens on, or 'localhost', as Host; a reverse proxy can set it");
		return true;
	}
	if (is_from_elsewhere(request)) {
		reply_words(reply, 403, "the request comes from a page of another origin",
			    "open it in a tab of its own");
		return true;
	}
	return false;
}

void weir_answer(struct weir_source *source, const struct weir_request *request, struct weir_reply *ret_reply)
{
	const struct weir_asset *asset;

	*ret_reply = (struct weir_reply){};
	if (is_refused(request, ret_reply))
		return;
	asset = weir_page_find(request->path);
	if (asset) {
		/* The asset is part of the program. The library's parameter is not const, although the library never
		 * changes the data.
		 */
		ret_reply->status = 200;
		ret_reply->type = asset->type;
		ret_reply->body = (char *)asset->begin;
		ret_reply->bytes = asset->end - asset->begin;
		ret_reply->is_static = true;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		if (!strcmp(routes[i].path, request->path)) {
			routes[i].answer(source, request, ret_reply);
			return;
		}
	reply_words(ret_reply, 404, "nothing is at this path", "'/api/v1' lists the paths");
}
