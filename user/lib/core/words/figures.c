// SPDX-License-Identifier: GPL-2.0-only
#include "words/figures.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "words/json.h"

bool weir_line_has_field(const struct weir_figures *line, const char *name)
{
	return name && !line->put;
}

bool weir_line_has_cell(struct weir_figures *line, const char *heading)
{
	if (!heading || !line->put)
		return false;
	if (line->is_heading)
		line->put(line->table, heading);
	return !line->is_heading;
}

/* Set the field that the path leads to, making the objects on its way. Takes the node; NULL: memory ran out. */
static int set_at(json_t *fields, const char *path, json_t *node)
{
	const size_t bytes = strcspn(path, ".");
	char name[32];

	if (!path[bytes])
		return json_object_set_new(fields, path, node);
	snprintf(name, sizeof(name), "%.*s", (int)bytes, path);
	if (!json_object_get(fields, name))
		json_object_set_new(fields, name, json_object());
	return set_at(json_object_get(fields, name), path + bytes + 1, node);
}

void weir_line_set(struct weir_figures *line, const char *name, json_t *node)
{
	assert(name); /* weir_line_has_field() */
	if (!set_at(line->fields, name, node))
		return;
	json_decref(line->fields);
	line->fields = NULL;
}

void weir_line_print(struct weir_figures *line, const char *format, ...)
{
	_cleanup_(weir_freep) char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	line->put(line->table, text ?: "");
}

void weir_line_counters(struct weir_figures *line, const struct weir_column *columns, const struct weir_rule_info *rule,
			const void *record)
{
	for (; columns->json; columns++)
		if (!columns->is_only_then || line->put || columns->when(rule))
			WEIR_COUNT(line, columns->json, columns->heading,
				   *(const uint64_t *)((const char *)record + columns->offset));
}

void weir_figures_add(weir_describer *describe, const void *context, const void *record, json_t **fields)
{
	struct weir_figures line = {.fields = *fields};

	describe(&line, context, record);
	*fields = line.fields;
}

json_t *weir_figures_describe(weir_describer *describe, const void *context, const void *record)
{
	json_t *fields = json_object();

	weir_figures_add(describe, context, record, &fields);
	return fields;
}

json_t *weir_figures_list(weir_describer *describe, const void *context, const void *records, size_t count,
			  size_t record_bytes)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		weir_json_append(&list,
				 weir_figures_describe(describe, context, (const char *)records + i * record_bytes));
	return list;
}

void weir_describe_tally(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_tally *tally = record;

	WEIR_COUNT(line, "packets", ">packets", tally->packets);
	WEIR_COUNT(line, "bytes", ">bytes", tally->bytes);
}

json_t *weir_json_tally(const struct weir_tally *tally)
{
	return weir_figures_describe(weir_describe_tally, NULL, tally);
}
