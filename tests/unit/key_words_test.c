// SPDX-License-Identifier: GPL-2.0-only
/* Keys of flows, in words and in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "words/key.h"

static const struct weir_rule_identity by_interface = {.key_fields = WEIR_KEY_SOURCE | WEIR_KEY_INTERFACE,
						       .source_bits = {32, 128}};
static const struct weir_flow_key key = {.family = 4, .source = {192, 0, 2, 1}, .ifindex = 7};

static void interface_of_a_key_is_shown_by_its_name(void **state)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_interface, &key, "eth0");

	assert_string_equal(weir_format_key(&by_interface, &key, "eth0", words), "source 192.0.2.1, interface eth0");
	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "eth0");
	json_decref(fields);
}

static void interface_without_a_name_is_shown_by_its_number(void **state)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_interface, &key, NULL);

	assert_string_equal(weir_format_key(&by_interface, &key, NULL, words), "source 192.0.2.1, interface if7");
	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "if7");
	json_decref(fields);
}

/* A name may be any bytes, and JSON has to be UTF-8. */
static void interface_whose_name_is_no_utf_8_stays_in_the_document(void **state)
{
	json_t *fields = weir_json_key(&by_interface, &key, "eth\xff");

	assert_string_equal(json_string_value(json_object_get(fields, "interface")), "eth\xef\xbf\xbd");
	json_decref(fields);
}

static void numbers_stay_numbers(void **state)
{
	const struct weir_rule_identity by_dscp = {.key_fields = WEIR_KEY_DSCP};
	const struct weir_flow_key expedited = {.family = 4, .dscp = 46};
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_key(&by_dscp, &expedited, "eth0");

	assert_string_equal(weir_format_key(&by_dscp, &expedited, "eth0", words), "dscp 46");
	assert_int_equal(json_integer_value(json_object_get(fields, "dscp")), 46);
	json_decref(fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interface_of_a_key_is_shown_by_its_name),
		cmocka_unit_test(interface_without_a_name_is_shown_by_its_number),
		cmocka_unit_test(interface_whose_name_is_no_utf_8_stays_in_the_document),
		cmocka_unit_test(numbers_stay_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
