// SPDX-License-Identifier: GPL-2.0-only
#include "words/connection_words.h"

#include "base/util.h"
#include "words/json.h"

static double mean_us(const struct weir_connection_figures *figures)
{
	return figures->handshakes ? (double)figures->handshake_us / figures->handshakes : 0;
}

/* Times are null if nothing was timed. */
static json_t *describe_handshake(const struct weir_connection_figures *figures)
{
	json_t *histogram = json_array();

	for (int i = 0; i < WEIR_HANDSHAKE_STEPS; i++)
		weir_json_append(&histogram, json_integer(figures->handshake_step[i]));
	return json_pack("{s:I, s:o, s:o, s:o}", "count", (json_int_t)figures->handshakes, "minimumUs",
			 figures->handshakes ? json_integer(figures->shortest_us) : json_null(), "meanUs",
			 figures->handshakes ? json_real(mean_us(figures)) : json_null(), "histogram", histogram);
}

json_t *weir_json_connections(const struct weir_connection_figures *figures)
{
	const struct {
		const char *name;
		uint64_t count;
	} counts[] = {
		{"now", figures->now},
		{"max", figures->max},
		{"opened", figures->opened},
		{"learned", figures->learned},
		{"returned", figures->returned},
		{"refused", figures->refused},
		{"closedByFin", figures->closed_by_fin},
		{"closedByReset", figures->closed_by_reset},
		{"closedByIdle", figures->closed_by_idle},
		{"reused", figures->reused},
		{"evicted", figures->evicted},
	};
	json_t *fields = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		json_object_set_new(fields, counts[i].name, json_integer(counts[i].count));
	if (!figures->has_refused)
		json_object_del(fields, "refused");
	json_object_set_new(fields, "handshake", describe_handshake(figures));
	return fields;
}
