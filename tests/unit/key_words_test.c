// SPDX-License-Identifier: GPL-2.0-only
/* Keys of flows, in words and in JSON. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "tables/labels.h"
#include "words/json.h"
#include "words/state_words.h"
#include "words/words.h"

static const struct weir_rule_identity by_interface = {.key_fields = WEIR_KEY_SOURCE | WEIR_KEY_INTERFACE,
						       .source_bits = {32, 128}};
static const struct weir_flow_key key = {.family = 4, .source = {192, 0, 2, 1}, .ifindex = 7};

CLAIM(interface_of_a_key_is_shown_by_its_name)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_interface, &key, "eth0", NULL);

	assert_string_equal(weir_format_key(&by_interface, &key, "eth0", NULL, words),
			    "source 192.0.2.1, interface eth0");
	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "eth0");
	json_decref(fields);
}

CLAIM(interface_without_a_name_is_shown_by_its_number)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_interface, &key, NULL, NULL);

	assert_string_equal(weir_format_key(&by_interface, &key, NULL, NULL, words), "source 192.0.2.1, interface if7");
	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "if7");
	json_decref(fields);
}

/* A name may be any bytes, and JSON has to be UTF-8. */
CLAIM(interface_whose_name_is_no_utf_8_stays_in_the_document)
{
	json_t *fields = weir_json_key(&by_interface, &key, "eth\xff", NULL);

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
	json_t *fields = weir_json_key(&by_dscp, &expedited, "eth0", NULL);

	assert_string_equal(weir_format_key(&by_dscp, &expedited, "eth0", NULL, words), "dscp 46");
	assert_int_equal(json_integer_value(json_object_get(fields, "dscp")), 46);
	json_decref(fields);
}

static uint64_t address_word(const char *text, const __u64 *seed)
{
	return weir_label_hash(seed, text, strlen(text));
}

/* The longest label fills its place; a flow may outlive its label. */
CLAIM(labels_are_shown_by_their_texts)
{
	static const char *const texts[] = {"gold", "with, a comma", "ab",
					    "sixty-four-bytes-long-sixty-four-bytes-long-sixty-four-bytes-lon"};
	const __u64 seed[16] = {1, 2, 3};
	const struct weir_rule_identity by_label = {.key_fields = WEIR_KEY_SOURCE | WEIR_KEY_LABEL(WEIR_KEY_SOURCE) |
								  WEIR_KEY_DESTINATION_PORT |
								  WEIR_KEY_SET(WEIR_KEY_PLACE_SOURCE, 2)};
	const size_t labels_bytes = weir_labels_bytes(ARRAY_SIZE(texts));
	_cleanup_(weir_freep) struct weir_key_labels *labels = calloc(1, labels_bytes);
	struct weir_flow_key of_label = {.destination_port = 0x3500};
	char words[WEIR_WORDS_BYTES], expected[160];
	uint64_t hashes[ARRAY_SIZE(texts)], unknown;
	json_t *fields;

	assert_non_null(labels);
	labels->set_count = 2;
	labels->count = ARRAY_SIZE(texts);
	strcpy(labels->sets[1], "tenants");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		memcpy(labels->label[i].text, texts[i], strlen(texts[i]));
	weir_labels_hash(labels, seed, hashes);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_true(hashes[i] == address_word(texts[i], seed));
		memcpy(of_label.source, &hashes[i], sizeof(hashes[i]));
		snprintf(expected, sizeof(expected), "source@tenants %s, destinationPort 53", texts[i]);
		assert_string_equal(weir_format_key(&by_label, &of_label, NULL, labels, words), expected);
	}
	fields = weir_json_key(&by_label, &of_label, NULL, labels);
	assert_string_equal(json_string_value(json_object_get(fields, "source@tenants")), texts[3]);
	json_decref(fields);
	memset(of_label.source, 0, sizeof(of_label.source));
	assert_string_equal(weir_format_key(&by_label, &of_label, NULL, labels, words),
			    "source@tenants -, destinationPort 53");
	unknown = 0x1234;
	memcpy(of_label.source, &unknown, sizeof(unknown));
	assert_string_equal(weir_format_key(&by_label, &of_label, NULL, labels, words),
			    "source@tenants ?0000000000001234, destinationPort 53");
	assert_string_equal(weir_format_key(&by_label, &of_label, NULL, NULL, words),
			    "source@? ?0000000000001234, destinationPort 53");
}

/* The reference's vectors (SipHash-2-4, key 00 01 02 ... 0f) need a secret that is multiplied to that key. */
CLAIM(hash_of_a_label_is_siphash)
{
	/* key / 0x9e3779b97f4a7c15 modulo 2^64 */
	const uint64_t inverse = 0xf1de83e19937733dull;
	const __u64 seed[16] = {0x0706050403020100ull * inverse, 0x0f0e0d0c0b0a0908ull * inverse};
	char text[15];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)i;
	assert_true(weir_label_hash(seed, text, 15) == 0xa129ca6149be45e5ull);
	assert_true(weir_label_hash(seed, text, 0) == 0x726fdb47dd0e0e31ull);
	assert_true(weir_label_hash(seed, text, 8) == 0x93f5f5799a932462ull);
}

RUN_CLAIMS(NULL, NULL)
