// SPDX-License-Identifier: GPL-2.0-only
/* The positions of the YAML parser's events, and mistakes at such positions. */
#include <string.h>

#include "base/printable.h"
#include "rules/yaml_builder.h"

static void move_forward(struct position *position, const char *text, size_t offset)
{
	for (; position->offset < offset; position->offset++) {
		if (text[position->offset] == '\n') {
			position->line++;
			position->column = 1;
		} else if (!weir_utf8_continues(text[position->offset + 1])) {
			position->column++;
		}
	}
}

static void move_to(struct position *position, const char *text, size_t offset)
{
	while (position->offset > offset) {
		position->offset--;
		if (text[position->offset] == '\n') {
			size_t line_start = position->offset;

			while (line_start && text[line_start - 1] != '\n')
				line_start--;
			position->offset = line_start;
			position->line--;
			position->column = 1;
			break;
		}
		if (!weir_utf8_continues(text[position->offset + 1]))
			position->column--;
	}
	/* After a step back to the start of an earlier line, the position may still be too far. */
	if (position->offset > offset)
		move_to(position, text, offset);
	move_forward(position, text, offset);
}

struct weir_place weir_yaml_place_of(struct builder *builder, size_t start, size_t end)
{
	const struct weir_document *document = builder->document;
	struct weir_place place = {.file = document->file};

	start = start < document->bytes ? start : document->bytes;
	end = end < document->bytes ? end : document->bytes;
	move_to(&builder->position, document->text, start);
	place.line = builder->position.line;
	place.column = builder->position.column;
	for (size_t at = start; at < end && !strchr("\r\n", document->text[at]); at++)
		place.width += !weir_utf8_continues(document->text[at]);
	return place;
}

const char *weir_document_line(const struct weir_document *document, int line)
{
	return weir_text_line(document->text, line);
}

int weir_yaml_mistake(struct builder *builder, const struct weir_place *place, const char *hint, const char *message)
{
	const char *line = weir_document_line(builder->document, place->line);

	return weir_diag_error(builder->diag, place, line, hint, "%s", message);
}

struct weir_place weir_yaml_event_place(struct builder *builder, struct fy_event *event)
{
	const struct fy_mark *start = fy_event_start_mark(event), *end = fy_event_end_mark(event);
	size_t from = start ? start->input_pos : builder->position.offset;
	size_t to = end ? end->input_pos : from;
	struct fy_token *value = event->type == FYET_SCALAR ? event->scalar.value : NULL;
	enum fy_scalar_style style = value ? fy_token_scalar_style(value) : FYSS_PLAIN;

	/* The marks of a quoted word are inside the quotes, and those of a block are below its '|'. */
	if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) {
		from -= from > 0;
		to++;
	}
	/* Lists and maps are pointed at, but not underlined to their end; an alias begins at its '*'. */
	if (event->type == FYET_SEQUENCE_START || event->type == FYET_MAPPING_START)
		to = from + 1;
	if (event->type == FYET_ALIAS)
		from -= from > 0;
	return weir_yaml_place_of(builder, from, to);
}
