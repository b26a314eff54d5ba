/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of building a document's tree (yaml.c). */
#ifndef WEIR_RULES_YAML_BUILDER_H
#define WEIR_RULES_YAML_BUILDER_H

#include <libfyaml.h>

#include "rules/yaml.h"

/* A byte of the text, and its line and column for people. It is moved along rather than computed from scratch: tokens
 * come nearly in order, and counting from the start of the line for each would take minutes if many tokens are on one
 * line.
 */
struct position {
	size_t offset;
	int line, column;
};

struct anchor {
	char *name;
	struct weir_node *node;
};

struct builder {
	struct weir_document *document;
	char *text; /* the document's text, with the comments of Sentinel's lists blanked out: offsets are unchanged */
	struct weir_diag *diag;
	struct position position;
	struct weir_node *open[WEIR_YAML_DEPTH_MAX]; /* lists and maps not yet ended, outermost first */
	size_t depth;
	struct anchor *anchors;
	size_t anchor_count;
	bool has_document;
	bool is_own; /* weir wrote it: no limit of size */
};

/* ---- yaml_places.c ---- */

/* The place of the text from `start` to `end`. Only the part on the first line is underlined. */
struct weir_place weir_yaml_place_of(struct builder *builder, size_t start, size_t end);
int weir_yaml_mistake(struct builder *builder, const struct weir_place *place, const char *hint, const char *message);

/* The place of the text that an event came from. */
struct weir_place weir_yaml_event_place(struct builder *builder, struct fy_event *event);

#endif
