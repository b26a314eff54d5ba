/* SPDX-License-Identifier: GPL-2.0-only */
/* The building of a document's tree (yaml.c), in its parts. */
#ifndef WEIR_RULES_YAML_BUILDER_H
#define WEIR_RULES_YAML_BUILDER_H

#include <libfyaml.h>

#include "rules/yaml.h"

/* A byte of the text and where that is for people. Moved along rather than searched for: tokens come nearly in
 * order, and counting each from the start of its line would take minutes where many stand on one line.
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
	char *text; /* the document's, without the comments of Sentinel's lists: every byte stands where it stood */
	struct weir_diag *diag;
	struct position position;
	struct weir_node *open[WEIR_YAML_DEPTH_MAX]; /* lists and maps not yet ended, outermost first */
	size_t depth;
	struct anchor *anchors;
	size_t anchor_count;
	bool has_document;
};

/* ---- yaml_places.c ---- */

/* The place of the text from `start` to `end`, of which what lies on the first line is underlined. */
struct weir_place weir_yaml_place_of(struct builder *builder, size_t start, size_t end);
int weir_yaml_mistake(struct builder *builder, const struct weir_place *place, const char *hint, const char *message);

/* The place of what an event was made of. */
struct weir_place weir_yaml_event_place(struct builder *builder, struct fy_event *event);

#endif
