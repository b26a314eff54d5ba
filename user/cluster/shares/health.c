// SPDX-License-Identifier: GPL-2.0-only
#include "shares/health.h"

#include <stdlib.h>
#include <string.h>

/* The value of "\nNAME:VALUE\r\n", or NULL. */
static const char *field_of(const char *info, const char *name)
{
	const size_t chars = strlen(name);

	for (const char *at = info; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, name, chars) && at[chars] == ':')
			return at + chars + 1;
	}
	return NULL;
}

static size_t value_chars(const char *value)
{
	return strcspn(value, "\r\n");
}

bool weir_store_read_version(const char *info, struct weir_store_version *ret_version)
{
	const char *redis = field_of(info, "redis_version"), *valkey = field_of(info, "valkey_version");
	const char *own = valkey ? valkey : redis;
	struct weir_store_version version = {.is_valkey = valkey};
	char *end;

	if (!redis || !value_chars(own) || value_chars(own) >= sizeof(version.text))
		return false;
	version.redis_major = (unsigned int)strtoul(redis, &end, 10);
	if (end == redis || *end != '.')
		return false;
	memcpy(version.text, own, value_chars(own));
	*ret_version = version;
	return true;
}

bool weir_store_may_evict(const char *info)
{
	const char *policy = field_of(info, "maxmemory_policy"), *limit = field_of(info, "maxmemory");

	return policy && limit && strtoull(limit, NULL, 10) > 0 && strncmp(policy, "noeviction", 10) != 0;
}

static uint64_t taken_ns(const struct weir_clock_reading *reading)
{
	return reading->received_ns - reading->sent_ns;
}

const struct weir_clock_reading *weir_clock_best(const struct weir_clock_reading *readings, size_t count)
{
	const struct weir_clock_reading *best = readings;

	for (size_t i = 1; i < count; i++)
		if (taken_ns(&readings[i]) < taken_ns(best))
			best = &readings[i];
	return best;
}

double weir_clock_drift_ppm(const struct weir_clock_reading *first, const struct weir_clock_reading *second,
			    double *ret_error_ppm)
{
	const double its_ns = ((double)second->store_us - (double)first->store_us) * 1000;
	/* From the middle of the first reading to the middle of the second. */
	const double our_ns =
		(double)(second->sent_ns - first->sent_ns) + ((double)taken_ns(second) - (double)taken_ns(first)) / 2;
	/* The store's times are truncated to microseconds. */
	const double error_ns = ((double)taken_ns(first) + (double)taken_ns(second)) / 2 + 1000;

	*ret_error_ppm = error_ns / our_ns * 1e6;
	return (its_ns - our_ns) / our_ns * 1e6;
}
