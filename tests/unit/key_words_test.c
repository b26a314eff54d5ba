// SPDX-License-Identifier: GPL-2.0-only
/* Keys of flows, in words and in JSON. */
#include <string.h>

#include "../lib/claims.h"
#include "words/json.h"
#include "words/state_words.h"
#include "words/words.h"

static const struct weir_rule_identity by_interface = {.key_fields = WEIR_KEY_SOURCE | WEIR_KEY_INTERFACE,
						       .source_bits = {32, 128}};
static const struct weir_flow_key key = {.family = 4, .source = {192, 0, 2, 1}, .ifindex = 7};

CLAIM(interface_of_a_key_is_shown_by_its_name)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_interface, &key, "eth0");

	assert_string_equal(weir_format_key(&by_interface, &key, "eth0", words), "source 192.0.2.1, interface eth0");
	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "eth0");
	json_decref(fields);
}

CLAIM(interface_without_a_name_is_shown_by_its_number)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_interface, &key, NULL);

	assert_string_equal(weir_format_key(&by_interface, &key, NULL, words), "source 192.0.2.1, interface if7");
	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "if7");
	json_decref(fields);
}

/* A name may be any bytes, and JSON has to be UTF-8. */
CLAIM(interface_whose_name_is_no_utf_8_stays_in_the_document)
{
	json_t *fields = weir_json_key(&by_interface, &key, "eth\xff");

	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "eth\xef\xbf\xbd");
	json_decref(fields);
}

/* Names of rules cannot have them, those of files, namespaces and interfaces can. */
CLAIM(what_a_terminal_obeys_is_escaped)
{
	json_t *document = json_pack("[s, s, s]",
				     "a\xe2\x80\xae"
				     "b",
				     "\xe2\x81\xa6\x7f\xc2\x9b\xe2\x80\x8e", "\xc3\xa9 \x01");
	char *text = weir_json_dump(document, JSON_COMPACT);
	json_t *again = json_loads(text, 0, NULL);

	assert_string_equal(text, "[\"a\\u202eb\",\"\\u2066\\u007f\\u009b\\u200e\",\"\xc3\xa9 \\u0001\"]");
	assert_true(json_equal(document, again));
	json_decref(again);
	json_decref(document);
	free(text);
}

CLAIM(numbers_stay_numbers)
{
	const struct weir_rule_identity by_dscp = {.key_fields = WEIR_KEY_DSCP};
	const struct weir_flow_key expedited = {.family = 4, .dscp = 46};
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_dscp, &expedited, "eth0");

	assert_string_equal(weir_format_key(&by_dscp, &expedited, "eth0", words), "dscp 46");
	assert_int_equal(json_integer_value(json_object_get(fields, "dscp")), 46);
	json_decref(fields);
}

RUN_CLAIMS(NULL, NULL)
