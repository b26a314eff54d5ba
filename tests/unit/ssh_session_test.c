// SPDX-License-Identifier: GPL-2.0-only
/* What sshd says of a session, and where it is in an environment. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "frames/compose.h"

#define TCP 6
#define PSH_ACK 0x18

CLAIM(session_over_ipv4_is_a_packet_from_the_client)
{
	const uint8_t client[16] = {203, 0, 113, 5}, server[16] = {198, 51, 100, 1};
	struct weir_packet_words words;

	assert_true(weir_ssh_session_parse("203.0.113.5 50022 198.51.100.1 22", &words));
	assert_int_equal(words.family, 4);
	assert_int_equal(words.protocol, TCP);
	assert_int_equal(words.tcp_flags, PSH_ACK);
	assert_memory_equal(words.source, client, sizeof(client));
	assert_memory_equal(words.destination, server, sizeof(server));
	assert_int_equal(words.source_port, 50022);
	assert_int_equal(words.destination_port, 22);
	assert_int_equal(words.frame_bytes, 14 + 20 + 20 + 64);
}

CLAIM(zone_of_an_address_is_left_out)
{
	struct weir_packet_words words;

	assert_true(weir_ssh_session_parse("fe80::1%eth0 1 fe80::2%eth0 22", &words));
	assert_int_equal(words.family, 6);
	assert_int_equal(words.source[0], 0xfe);
	assert_int_equal(words.source[15], 1);
	assert_int_equal(words.destination[15], 2);
}

CLAIM(ipv4_in_ipv6_is_ipv4)
{
	const uint8_t client[16] = {203, 0, 113, 5};
	struct weir_packet_words words;

	assert_true(weir_ssh_session_parse("::ffff:203.0.113.5 1 198.51.100.1 22", &words));
	assert_int_equal(words.family, 4);
	assert_memory_equal(words.source, client, sizeof(client));
}

CLAIM(other_text_is_no_session)
{
	static const char *const texts[] = {
		"",
		"203.0.113.5",
		"203.0.113.5 50022 198.51.100.1",
		"203.0.113.5 50022 198.51.100.1 22 more",
		"203.0.113.5 70000 198.51.100.1 22",
		"203.0.113.5 50022 198.51.100.1 ssh",
		"203.0.113.500 50022 198.51.100.1 22",
		"203.0.113.5 50022 fe80::1 22",
	};
	struct weir_packet_words words;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_false(weir_ssh_session_parse(texts[i], &words));
}

CLAIM(variable_is_found_by_its_whole_name)
{
	static const char environment[] = "OLD_SSH=1\0SSHX=2\0SSH=3\0SSH_TTY=4";

	assert_string_equal(weir_environment_find(environment, sizeof(environment), "SSH"), "3");
	assert_string_equal(weir_environment_find(environment, sizeof(environment), "SSH_TTY"), "4");
	assert_null(weir_environment_find(environment, sizeof(environment), "TTY"));
	assert_null(weir_environment_find(environment, 0, "SSH"));
}

/* It was longer than what was read of it. */
CLAIM(entry_that_is_cut_short_is_not_believed)
{
	static const char environment[] = {'A', '=', '1', '\0', 'B', '=', '2'};

	assert_string_equal(weir_environment_find(environment, sizeof(environment), "A"), "1");
	assert_null(weir_environment_find(environment, sizeof(environment), "B"));
}

RUN_CLAIMS(NULL, NULL)
