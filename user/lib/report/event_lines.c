// SPDX-License-Identifier: GPL-2.0-only
#include "report/event_lines.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"
#include "frames/link_type.h"
#include "host/host.h"
#include "report/keys.h"
#include "rules/scalars.h"
#include "tables/entry_state.h"
#include "words/json.h"
#include "words/state_words.h"

static const char *const journal_names[WEIR_JOURNAL_KINDS] = {
	[WEIR_JOURNAL_ATTACH] = "attach",	[WEIR_JOURNAL_DETACH] = "detach",
	[WEIR_JOURNAL_RELOAD] = "reload",	[WEIR_JOURNAL_ROLLBACK] = "rollback",
	[WEIR_JOURNAL_CONFIRM] = "confirm",	[WEIR_JOURNAL_RETURN] = "return",
	[WEIR_JOURNAL_INTERFACE] = "interface", [WEIR_JOURNAL_CONTROLLER] = "controller",
	[WEIR_JOURNAL_CLUSTER] = "cluster",	[WEIR_JOURNAL_BLOCK] = "block",
	[WEIR_JOURNAL_ALLOW] = "allow",		[WEIR_JOURNAL_SET] = "set",
};

const char *weir_reported_name(const struct weir_reported *reported)
{
	switch (reported->kind) {
	case WEIR_REPORTED_DROP:
		return reported->event.flags & WEIR_EVENT_OBSERVED ? "wouldDrop" : "drop";
	case WEIR_REPORTED_PENALTY:
		if (reported->event.flags & WEIR_EVENT_SHARES)
			return reported->event.value ? "contended" : "calm";
		return "penalty";
	case WEIR_REPORTED_BREAKER:
		return "breaker";
	case WEIR_REPORTED_JOURNAL:
		return reported->entry.kind < WEIR_JOURNAL_KINDS ? journal_names[reported->entry.kind] : "?";
	case WEIR_REPORTED_STALE:
		return "stale";
	case WEIR_REPORTED_MISSED:
		return "missed";
	}
	return "?";
}

static const char *format_address(const struct weir_ends *ends, const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(ends->family == 6 ? AF_INET6 : AF_INET, address, text, INET6_ADDRSTRLEN) ? text : "?";
}

static const char *const missed_names[] = {"drops", "penalties", "changes of breakers", "entries of the journal"};

static const char *missed_name(const struct weir_reported *reported)
{
	return reported->missed.of < ARRAY_SIZE(missed_names) ? missed_names[reported->missed.of] : "events";
}

/* ---- JSON ---- */

static json_t *describe_packet(const struct weir_instance *instance, const struct weir_event *event)
{
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
	const uint8_t direction = event->flags & WEIR_EVENT_OUT ? WEIR_MATCHES_OUT : WEIR_MATCHES_IN;
	json_t *fields = json_pack("{s:s, s:I, s:I, s:s?}", "direction", weir_direction_name(direction), "packets",
				   (json_int_t)weir_event_packets(event), "bytes", (json_int_t)event->frame_bytes,
				   "interface", weir_instance_interface(instance, event->ifindex));
	struct weir_ends ends;

	if (!fields || !weir_frame_ends(event->frame, event->kept_bytes, &ends))
		return fields;
	json_object_set_new(fields, "source", json_string(format_address(&ends, ends.source, source)));
	json_object_set_new(fields, "destination", json_string(format_address(&ends, ends.destination, destination)));
	json_object_set_new(fields, "protocol", json_integer(ends.protocol));
	if (ends.has_ports) {
		json_object_set_new(fields, "sourcePort", json_integer(ends.source_port));
		json_object_set_new(fields, "destinationPort", json_integer(ends.destination_port));
	}
	return fields;
}

/* What its sender got, if settings.answers allowed it; NULL: nothing. */
static const char *answer_to(const struct weir_instance *instance, const struct weir_event *event,
			     const struct weir_rule_info *rule)
{
	const bool is_dropped = event->verdict == WEIR_VERDICT_BLOCK && !(event->flags & WEIR_EVENT_OUT);

	if (!is_dropped || !rule || !rule->on_block || rule->on_block >= WEIR_ON_BLOCK_COUNT || rule->observes ||
	    instance->info.observes)
		return NULL;
	return weir_on_block_names[rule->on_block];
}

static void add_drop(const struct weir_instance *instance, const struct weir_reported *reported,
		     const struct weir_rule_info *rule, json_t *fields)
{
	const struct weir_event *event = &reported->event;

	json_object_set_new(fields, "verdict",
			    json_string(event->verdict < WEIR_VERDICT_COUNT ? weir_verdict_names[event->verdict]
									    : "?"));
	json_object_set_new(fields, "penalised", json_boolean(event->flags & WEIR_EVENT_PENALISED));
	json_object_set_new(fields, "packet", describe_packet(instance, event));
	if (answer_to(instance, event, rule))
		json_object_set_new(fields, "onBlock", json_string(answer_to(instance, event, rule)));
	if (rule && weir_reported_has_figures(reported))
		weir_json_add_drop_figures(rule, event->used, event->threshold, fields);
}

static void add_rule(const struct weir_instance *instance, const struct weir_reported *reported,
		     const struct weir_rule_info *rule, json_t *fields)
{
	json_object_set_new(fields, "rule", rule ? json_string(rule->name) : json_null());
	if (!rule)
		return;
	json_object_set_new(fields, "resource", rule->system ? json_null() : json_string(rule->resource_name));
	if (reported->kind == WEIR_REPORTED_MISSED)
		return;
	json_object_set_new(fields, "key", weir_flow_key_describe(instance, rule, &reported->event.key));
}

static void add_breaker(const struct weir_event *event, json_t *fields)
{
	json_object_set_new(fields, "state",
			    json_string(event->value <= WEIR_BREAKER_HALF_OPEN ? weir_breaker_kind_names[event->value]
									       : "?"));
	json_object_set_new(fields, "requests", json_integer((json_int_t)(event->used >> 32)));
	json_object_set_new(fields, "bad", json_integer((json_int_t)(event->used & 0xffffffff)));
}

/* Add the text of the line in words. */
static void add_words(const struct weir_instance *instance, const struct weir_reported *reported, json_t *fields)
{
	_cleanup_(weir_freep) char *words = weir_reported_words(instance, reported);

	json_object_set_new(fields, "text", words ? weir_json_text(words) : json_null());
}

json_t *weir_reported_describe(const struct weir_instance *instance, const struct weir_reported *reported)
{
	const struct weir_rule_info *rule = weir_reported_rule(instance, reported);
	json_t *fields = json_pack("{s:s, s:I, s:s}", "event", weir_reported_name(reported), "timeNs",
				   (json_int_t)weir_host_wall_ns(reported->time_ns), "instance", instance->name);

	if (!fields)
		return NULL;
	if (reported->kind <= WEIR_REPORTED_BREAKER || rule)
		add_rule(instance, reported, rule, fields);
	if (reported->kind == WEIR_REPORTED_DROP)
		add_drop(instance, reported, rule, fields);
	if (reported->kind == WEIR_REPORTED_PENALTY && !(reported->event.flags & WEIR_EVENT_SHARES))
		json_object_set_new(fields, "untilNs",
				    json_integer((json_int_t)weir_host_wall_ns(reported->event.value)));
	if (reported->kind == WEIR_REPORTED_BREAKER)
		add_breaker(&reported->event, fields);
	if (reported->kind != WEIR_REPORTED_DROP)
		add_words(instance, reported, fields);
	if (reported->kind == WEIR_REPORTED_MISSED) {
		json_object_set_new(fields, "count", json_integer((json_int_t)reported->missed.count));
		json_object_set_new(fields, "of", json_string(missed_name(reported)));
	}
	return fields;
}

/* ---- words ---- */

static void print_flow(const struct weir_instance *instance, const struct weir_rule_info *rule,
		       const struct weir_event *event, FILE *text)
{
	char words[WEIR_WORDS_BYTES];

	if (!rule) {
		fprintf(text, "rule '?'");
		return;
	}
	fprintf(text, "rule '%s', %s", rule->name,
		rule->identity.key_fields ? weir_flow_key_words(instance, rule, &event->key, words)
					  : "the whole resource");
}

static void print_packet(const struct weir_instance *instance, const struct weir_event *event, FILE *text)
{
	char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN];
	const char *interface = weir_instance_interface(instance, event->ifindex);
	struct weir_ends ends;

	if (!weir_frame_ends(event->frame, event->kept_bytes, &ends)) {
		fprintf(text, "a frame");
	} else {
		format_address(&ends, ends.source, source);
		format_address(&ends, ends.destination, destination);
		if (ends.has_ports)
			fprintf(text, "%s port %u to %s port %u", source, ends.source_port, destination,
				ends.destination_port);
		else
			fprintf(text, "%s to %s", source, destination);
		if (weir_protocol_name(ends.protocol))
			fprintf(text, ", %s", weir_protocol_name(ends.protocol));
		else
			fprintf(text, ", protocol %u", ends.protocol);
	}
	if (weir_event_packets(event) > 1)
		fprintf(text, ", %llu packets", (unsigned long long)weir_event_packets(event));
	fprintf(text, ", %u bytes%s%s%s", event->frame_bytes, event->flags & WEIR_EVENT_OUT ? " out" : "",
		interface ? " on " : "", interface ? interface : "");
}

/* Print why a packet was dropped. */
static void print_reason(const struct weir_instance *instance, const struct weir_reported *reported,
			 const struct weir_rule_info *rule, FILE *text)
{
	const struct weir_event *event = &reported->event;
	char words[WEIR_WORDS_BYTES];

	if (event->rule_slot == WEIR_EVENT_NO_RULE)
		fprintf(text, "%s", event->verdict < WEIR_VERDICT_COUNT ? weir_verdict_names[event->verdict] : "?");
	else
		print_flow(instance, rule, event, text);
	if (event->flags & WEIR_EVENT_PENALISED)
		fprintf(text, ", penalised");
	if (answer_to(instance, event, rule))
		fprintf(text, ", %s", answer_to(instance, event, rule));
	if (rule && weir_reported_has_figures(reported))
		fprintf(text, ", %s", weir_format_drop_figures(rule, event->used, event->threshold, words));
}

static void print_change(const struct weir_instance *instance, const struct weir_reported *reported,
			 const struct weir_rule_info *rule, FILE *text)
{
	const struct weir_event *event = &reported->event;
	char words[WEIR_WORDS_BYTES];

	print_flow(instance, rule, event, text);
	if (event->flags & WEIR_EVENT_SHARES)
		fprintf(text, "%s",
			event->value ? ": those who share it want more than there is"
				     : ": everybody gets what he wants");
	else if (reported->kind == WEIR_REPORTED_PENALTY)
		fprintf(text, ": blocked for %s",
			weir_format_age(event->value > event->time_ns ? event->value - event->time_ns : 0, words));
	else
		fprintf(text, ": %s",
			event->value <= WEIR_BREAKER_HALF_OPEN ? weir_breaker_kind_word(event->value) : "?");
	/* The window is why a breaker opens. A probe opens the other states, and their window is the former one. */
	if (reported->kind != WEIR_REPORTED_PENALTY && event->value == WEIR_BREAKER_OPEN)
		fprintf(text, ", %llu of %llu requests were bad", (unsigned long long)(event->used & 0xffffffff),
			(unsigned long long)(event->used >> 32));
}

static void print_missed(const struct weir_reported *reported, const struct weir_rule_info *rule, FILE *text)
{
	const unsigned long long count = reported->missed.count;

	if (rule)
		fprintf(text, "%llu more %s of rule '%s' not shown", count, missed_name(reported), rule->name);
	else if (reported->missed.of == WEIR_REPORTED_DROP)
		fprintf(text, "%llu more drop%s not shown", count, weir_plural(count));
	else
		fprintf(text, "%llu %s arrived faster than they were read", count, missed_name(reported));
}

static void print_words(const struct weir_instance *instance, const struct weir_reported *reported, FILE *text)
{
	const struct weir_rule_info *rule = weir_reported_rule(instance, reported);

	switch (reported->kind) {
	case WEIR_REPORTED_DROP:
		print_reason(instance, reported, rule, text);
		fprintf(text, ": ");
		print_packet(instance, &reported->event, text);
		break;
	case WEIR_REPORTED_PENALTY:
	case WEIR_REPORTED_BREAKER:
		print_change(instance, reported, rule, text);
		break;
	case WEIR_REPORTED_JOURNAL:
		fprintf(text, "%s", reported->entry.text);
		break;
	case WEIR_REPORTED_STALE:
		fprintf(text, "the controller is silent: moving thresholds are at their safe values");
		break;
	case WEIR_REPORTED_MISSED:
		print_missed(reported, rule, text);
		break;
	}
}

static void print_comment(const struct weir_instance *instance, const struct weir_reported *reported, FILE *text)
{
	const struct weir_rule_info *rule = weir_reported_rule(instance, reported);

	fprintf(text, "%s: ", weir_reported_name(reported));
	print_reason(instance, reported, rule, text);
	if (rule && !rule->system)
		fprintf(text, ", resource '%s'", rule->resource_name);
}

/* The output of print() as a string; NULL: out of memory. */
static char *as_text(void print(const struct weir_instance *, const struct weir_reported *, FILE *),
		     const struct weir_instance *instance, const struct weir_reported *reported)
{
	char *words = NULL;
	size_t bytes;
	FILE *text = open_memstream(&words, &bytes);

	if (!text)
		return NULL;
	print(instance, reported, text);
	fclose(text);
	weir_make_printable(words, "");
	return words;
}

char *weir_reported_words(const struct weir_instance *instance, const struct weir_reported *reported)
{
	return as_text(print_words, instance, reported);
}

char *weir_reported_comment(const struct weir_instance *instance, const struct weir_reported *reported)
{
	return as_text(print_comment, instance, reported);
}

/* One rule gets at most this fraction of a list, unless there is room. Chosen, not derived. */
#define RULE_PART 4

/* Is this a change of a rule that has `count` more changes after it? */
static bool has_later(const struct weir_reported_events *events, size_t at, size_t count)
{
	const struct weir_reported *reported = &events->all[at];

	if (reported->kind != WEIR_REPORTED_PENALTY && reported->kind != WEIR_REPORTED_BREAKER)
		return false;
	for (size_t i = at + 1; count && i < events->count; i++)
		count -= events->all[i].kind == reported->kind &&
			 events->all[i].event.rule_slot == reported->event.rule_slot;
	return !count;
}

/* Mark the latest `most` events, at most `of_rule` per rule. Returns how many are still missing. */
static size_t choose(const struct weir_reported_events *events, size_t of_rule, size_t most, bool *chosen)
{
	for (size_t i = events->count; i-- && most;)
		if (!chosen[i] && !has_later(events, i, of_rule)) {
			chosen[i] = true;
			most--;
		}
	return most;
}

json_t *weir_events_describe_past(const struct weir_instance *instance, const struct weir_reported_events *events,
				  size_t most)
{
	_cleanup_(weir_freep) bool *chosen = calloc(events->count + 1, sizeof(*chosen));
	json_t *list = chosen ? json_array() : NULL;

	if (chosen)
		choose(events, events->count + 1, choose(events, most / RULE_PART + 1, most, chosen), chosen);
	for (size_t i = 0; chosen && i < events->count; i++)
		if (chosen[i])
			weir_json_append(&list, weir_reported_describe(instance, &events->all[i]));
	return list;
}
