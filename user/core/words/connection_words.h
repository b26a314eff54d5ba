/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts of connections in JSON. */
#ifndef WEIR_CONNECTION_WORDS_H
#define WEIR_CONNECTION_WORDS_H

#include <jansson.h>

#include "tables/connection_counts.h"

/* An object with now, max, opened, learned, refused, closedByFin, closedByReset, closedByIdle, reused, evicted and
 * handshake.
 */
json_t *weir_json_connections(const struct weir_connection_figures *figures);

#endif
