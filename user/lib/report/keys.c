// SPDX-License-Identifier: GPL-2.0-only
#include "report/keys.h"

const char *weir_flow_key_words(const struct weir_instance *instance, const struct weir_rule_info *rule,
				const struct weir_flow_key *key, char words[WEIR_WORDS_BYTES])
{
	if (!rule->identity.key_fields)
		return "(the whole resource)";
	return weir_format_key(&rule->identity, key, weir_instance_interface(instance, key->ifindex), words);
}

json_t *weir_flow_key_describe(const struct weir_instance *instance, const struct weir_rule_info *rule,
			       const struct weir_flow_key *key)
{
	return weir_json_key(&rule->identity, key, weir_instance_interface(instance, key->ifindex));
}
