// SPDX-License-Identifier: GPL-2.0-only
#include "report/keys.h"

#include <stdio.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "weir_sizes.h"

#define NSEC_PER_MSEC 1000000ull

const char *weir_flow_key_words(const struct weir_instance *instance, const struct weir_rule_info *rule,
				const struct weir_flow_key *key, char words[WEIR_WORDS_BYTES])
{
	if (!rule->identity.key_fields)
		return "(the whole resource)";
	return weir_format_key(&rule->identity, key, weir_instance_interface(instance, key->ifindex), instance->labels,
			       words);
}

json_t *weir_flow_key_describe(const struct weir_instance *instance, const struct weir_rule_info *rule,
			       const struct weir_flow_key *key)
{
	return weir_json_key(&rule->identity, key, weir_instance_interface(instance, key->ifindex), instance->labels);
}

json_t *weir_json_time(uint64_t monotonic_ns)
{
	const uint64_t wall_ns = weir_host_wall_ns(monotonic_ns);
	const time_t second = wall_ns / WEIR_NSEC_PER_SEC;
	char words[40];
	struct tm utc;
	size_t used;

	if (!monotonic_ns || !gmtime_r(&second, &utc))
		return json_null();
	used = strftime(words, sizeof(words), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(words + used, sizeof(words) - used, ".%03uZ",
		 (unsigned int)(wall_ns % WEIR_NSEC_PER_SEC / NSEC_PER_MSEC));
	return json_string(words);
}
