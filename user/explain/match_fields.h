/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which fields of a packet decide whether it belongs to a resource: read from the tables that the program matches by.
 */
#ifndef WEIR_EXPLAIN_MATCH_FIELDS_H
#define WEIR_EXPLAIN_MATCH_FIELDS_H

#include "program/object.h"

/* Where the resource's bit is in a vector; -1: nowhere. */
int weir_resource_bit(const struct weir_object *object, uint32_t place);

/*
 * Those of `fields` (enum weir_match_field, or-ed) that the resource with this bit asks of a packet in this direction.
 * For addresses and interfaces it is taken to ask about each. Returns a negative -errno, or the fields.
 */
int64_t weir_fields_asked(const struct weir_object *object, uint32_t bit, enum weir_direction direction,
			  uint32_t fields);

/* Whether packets of a family belong to it at all: 1, 0 or -errno. */
int weir_resource_takes_family(const struct weir_object *object, uint32_t bit, enum weir_direction direction,
			       bool is_ipv6);

/* enum weir_match_field, or-ed: what of a packet in this direction the rule's key is made of. */
uint32_t weir_fields_of_key(const struct weir_rule *rule, enum weir_direction direction);

#endif
