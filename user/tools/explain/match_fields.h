/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which fields of a packet decide whether it matches a resource, read from the tables that the program uses for
 * matching.
 */
#ifndef WEIR_EXPLAIN_MATCH_FIELDS_H
#define WEIR_EXPLAIN_MATCH_FIELDS_H

#include "program/object.h"
#include "sandbox/sandbox_run.h"

/* The position of the resource's bit in a vector; -1: it has none. */
int weir_resource_bit(const struct weir_object *object, uint32_t place);

/*
 * Those of `fields` (enum weir_match_field, or-ed) that the resource with this bit compares for a packet in this
 * direction. Addresses and interfaces are assumed to be compared. Returns the fields, or a negative -errno.
 */
int64_t weir_fields_asked(const struct weir_object *object, uint32_t bit, enum weir_direction direction,
			  uint32_t fields);

/* Whether the resource can match any packet of this family: 1, 0 or -errno. */
int weir_resource_takes_family(const struct weir_object *object, uint32_t bit, enum weir_direction direction,
			       bool is_ipv6);

/*
 * A resource that perhaps matches, because these fields of the packet are not known, is no reason to leave out one that
 * excepts it. Changes the run's object so that only a resource that matches for certain is.
 */
int weir_settle_excepts(const struct weir_sandbox_run *run, enum weir_direction direction, uint32_t unknown);

/* enum weir_match_field, or-ed: the fields of a packet in this direction from which the rule's key is made. */
uint32_t weir_fields_of_key(const struct weir_rule *rule, enum weir_direction direction);

#endif
