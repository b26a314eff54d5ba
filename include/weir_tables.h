/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of an instance (weir_tables.def): their layouts have not changed without another version. */
#ifndef WEIR_ABI_TABLES_H
#define WEIR_ABI_TABLES_H

#include "weir_abi.h"
#include "weir_timed.h"

#define TABLE(identifier, map, map_type, key, value, flags, row, bytes, version, ...)                                  \
	_Static_assert(sizeof(row) == (bytes), "another layout of " #map " needs another version");                    \
	_Static_assert(sizeof(#map) <= WEIR_TABLE_NAME_BYTES, "the name of " #map " is too long for a description");
#include "weir_tables.def"
#undef TABLE

#endif
