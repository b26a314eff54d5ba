// SPDX-License-Identifier: GPL-2.0-only
#include "exposition/exposition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/util.h"

#define ROOM_FIRST 65536

/* ---- text ---- */

/* Space for this many more bytes at the end of the text; NULL: the text is cut. */
static char *reserve(struct weir_exposition *exposition, size_t bytes)
{
	size_t room = exposition->room ? exposition->room : ROOM_FIRST;
	char *text;

	if (exposition->is_cut)
		return NULL;
	while (room - exposition->bytes < bytes)
		room *= 2;
	if (room != exposition->room) {
		text = realloc(exposition->text, room);
		exposition->is_cut = !text;
		if (!text)
			return NULL;
		exposition->text = text;
		exposition->room = room;
	}
	return exposition->text + exposition->bytes;
}

static void append_text(struct weir_exposition *exposition, const char *text)
{
	const size_t bytes = strlen(text);
	char *at = reserve(exposition, bytes);

	if (!at)
		return;
	memcpy(at, text, bytes);
	exposition->bytes += bytes;
}

/* ---- labels ---- */

/* How the character at `text` (`bytes` long) appears in a label's value: unchanged, or escaped. Returns the length of
 * `ret_said`.
 */
static size_t say_character(const char *text, size_t bytes, char ret_said[4])
{
	if (!bytes) {
		memcpy(ret_said, "\xef\xbf\xbd", 3);
		return 3;
	}
	if (*text == '\\' || *text == '"' || *text == '\n') {
		ret_said[0] = '\\';
		ret_said[1] = *text == '\n' ? 'n' : *text;
		return 2;
	}
	memcpy(ret_said, text, bytes);
	return bytes;
}

void weir_labels_add(struct weir_labels *labels, const char *name, const char *value)
{
	char *at = labels->text + labels->bytes, *end = labels->text + sizeof(labels->text);
	const char *rest = value + strlen(value);
	uint32_t code;

	if ((size_t)(end - at) < strlen(name) + strlen(",=\"\""))
		return;
	if (labels->bytes)
		*at++ = ',';
	at = stpcpy(at, name);
	*at++ = '=';
	*at++ = '"';
	while (value < rest) {
		size_t bytes = weir_utf8_character(value, rest - value, &code);
		char said[4];
		size_t said_bytes = say_character(value, bytes, said);

		if ((size_t)(end - at) < said_bytes + 1)
			return;
		at = mempcpy(at, said, said_bytes);
		value += bytes ? bytes : 1;
	}
	*at++ = '"';
	labels->bytes = at - labels->text;
}

/* ---- metrics ---- */

static const char *suffix_of(const struct weir_metric_family *metric)
{
	return metric->type == WEIR_METRIC_COUNTER ? "_total" : metric->type == WEIR_METRIC_INFO ? "_info" : "";
}

static const char *type_word(const struct weir_metric_family *metric, bool is_openmetrics)
{
	switch (metric->type) {
	case WEIR_METRIC_COUNTER:
		return "counter";
	case WEIR_METRIC_HISTOGRAM:
		return "histogram";
	case WEIR_METRIC_INFO:
		return is_openmetrics ? "info" : "gauge";
	default:
		return "gauge";
	}
}

/* "# HELP NAME TEXT" */
static void append_head(struct weir_exposition *exposition, const char *what, const char *text)
{
	append_text(exposition, "# ");
	append_text(exposition, what);
	append_text(exposition, exposition->metric->name);
	if (!exposition->is_openmetrics) /* in OpenMetrics the family has its own name */
		append_text(exposition, suffix_of(exposition->metric));
	append_text(exposition, " ");
	append_text(exposition, text);
	append_text(exposition, "\n");
}

void weir_exposition_begin(struct weir_exposition *exposition, const struct weir_metric_family *metric)
{
	exposition->metric = metric;
	append_head(exposition, "HELP ", metric->help);
	append_head(exposition, "TYPE ", type_word(metric, exposition->is_openmetrics));
	if (metric->unit && exposition->is_openmetrics)
		append_head(exposition, "UNIT ", metric->unit);
}

static char *put(char *at, const char *text)
{
	return mempcpy(at, text, strlen(text));
}

/* `more` is one more label, or NULL. Space is reserved once per sample, since there are tens of thousands of them. */
static void append_sample(struct weir_exposition *exposition, const char *suffix, const struct weir_labels *labels,
			  const char *more, const char *value)
{
	const size_t label_bytes = labels ? labels->bytes : 0;
	const size_t most = strlen(exposition->metric->name) + strlen(suffix) + label_bytes +
			    (more ? strlen(more) : 0) + strlen(value) + strlen("{,} \n");
	char *at = reserve(exposition, most);

	if (!at)
		return;
	at = put(put(at, exposition->metric->name), suffix);
	if (label_bytes || more)
		*at++ = '{';
	if (label_bytes)
		at = mempcpy(at, labels->text, label_bytes);
	if (label_bytes && more)
		*at++ = ',';
	if (more)
		at = put(at, more);
	if (label_bytes || more)
		*at++ = '}';
	*at++ = ' ';
	at = put(at, value);
	*at++ = '\n';
	exposition->bytes = at - exposition->text;
}

#define NUMBER_BYTES 32

/* printf takes four times as long, and there are tens of thousands of numbers. */
static const char *format_count(uint64_t count, char text[NUMBER_BYTES])
{
	char digits[NUMBER_BYTES];
	size_t bytes = 0;

	do
		digits[bytes++] = '0' + count % 10;
	while (count /= 10);
	for (size_t i = 0; i < bytes; i++)
		text[i] = digits[bytes - 1 - i];
	text[bytes] = '\0';
	return text;
}

void weir_exposition_count(struct weir_exposition *exposition, const struct weir_labels *labels, uint64_t value)
{
	char text[NUMBER_BYTES];

	append_sample(exposition, suffix_of(exposition->metric), labels, NULL, format_count(value, text));
}

void weir_exposition_value(struct weir_exposition *exposition, const struct weir_labels *labels, double value)
{
	char text[NUMBER_BYTES];

	if (value >= 1 && value < 1e15 && value == (double)(uint64_t)value)
		format_count(value, text); /* most thresholds and intervals: same result as printf */
	else
		snprintf(text, sizeof(text), "%.15g", value);
	append_sample(exposition, suffix_of(exposition->metric), labels, NULL, text);
}

void weir_exposition_powers(struct weir_exposition *exposition, const struct weir_labels *labels, const uint64_t *steps,
			    size_t step_count, uint64_t sum_micro)
{
	char text[NUMBER_BYTES], bound[NUMBER_BYTES + 8];
	uint64_t count = 0;

	for (size_t i = 0; i < step_count; i++) {
		count += steps[i];
		if (i + 1 < step_count)
			snprintf(bound, sizeof(bound), "le=\"%.9g\"", (double)(1ull << (i + 1)) / 1e6);
		else
			snprintf(bound, sizeof(bound), "le=\"+Inf\"");
		append_sample(exposition, "_bucket", labels, bound, format_count(count, text));
	}
	append_sample(exposition, "_count", labels, NULL, format_count(count, text));
	snprintf(text, sizeof(text), "%.15g", sum_micro / 1e6);
	append_sample(exposition, "_sum", labels, NULL, text);
}

void weir_exposition_end(struct weir_exposition *exposition)
{
	if (exposition->is_openmetrics)
		append_text(exposition, "# EOF\n");
}

void weir_exposition_free(struct weir_exposition *exposition)
{
	free(exposition->text);
	*exposition = (struct weir_exposition){};
}

/* ---- which format ---- */

const char *weir_exposition_type(bool is_openmetrics)
{
	return is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			      : "text/plain; version=0.0.4; charset=utf-8";
}

#define WEIGHT_FULL 1000

/* Parse a weight such as "0.75" in thousandths; text that is not a weight counts as 0. */
static int parse_weight(const char *text)
{
	int weight, unit = WEIGHT_FULL / 10;

	if (*text != '0' && *text != '1')
		return 0;
	weight = (*text - '0') * WEIGHT_FULL;
	if (text[1] == '.')
		for (text += 2; *text >= '0' && *text <= '9' && unit; text++, unit /= 10)
			weight += (*text - '0') * unit;
	return weight < WEIGHT_FULL ? weight : WEIGHT_FULL;
}

/* One media range with its parameters, which end at zero bytes. */
struct media {
	const char *range;
	const char *version; /* NULL: any */
	int weight;
};

static struct media parse_media(char *text)
{
	struct media media = {.weight = WEIGHT_FULL};
	char *next = text;

	media.range = weir_trim(strsep(&next, ";"), " \t");
	while (next) {
		char *parameter = weir_trim(strsep(&next, ";"), " \t");

		if (!strncasecmp(parameter, "q=", 2))
			media.weight = parse_weight(parameter + 2);
		else if (!strncasecmp(parameter, "version=", 8))
			media.version = parameter + 8;
	}
	return media;
}

bool weir_exposition_is_openmetrics(const char *accept)
{
	int openmetrics = 0, plain = 0;
	char *copy = accept ? strdup(accept) : NULL, *next = copy;

	while (next) {
		const struct media media = parse_media(strsep(&next, ","));
		int *weight = !strcasecmp(media.range, "text/plain") ? &plain : NULL;

		if (!strcasecmp(media.range, "application/openmetrics-text") &&
		    (!media.version || !strncmp(media.version, "1.", 2)))
			weight = &openmetrics;
		if (weight && media.weight > *weight)
			*weight = media.weight;
	}
	free(copy);
	return openmetrics && openmetrics >= plain;
}
