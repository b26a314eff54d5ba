// SPDX-License-Identifier: GPL-2.0-only
/* What people are reported: mistakes before warnings, and notes last; nothing is said twice or lost on its way. */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/diag.h"
#include "base/printable.h"
#include "base/util.h"

static void assert_prints(void (*print)(const struct weir_diag *diag, FILE *stream), const struct weir_diag *diag,
			  const char *expected)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	print(diag, stream);
	fclose(stream);
	assert_string_equal(text, expected);
}

CLAIM(mistakes_come_first_and_notes_last)
{
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	weir_diag_note(&diag, "interface '%s' has come", "eth7");
	weir_diag_warning(&diag, NULL, NULL, "wait", "slow");
	weir_diag_error(&diag, NULL, NULL, NULL, "wrong");
	assert_int_equal(diag.count, 3);
	assert_int_equal(diag.errors, 1);
	assert_prints(weir_diag_print, &diag, "wrong\nwarning: slow\n    wait\nnote: interface 'eth7' has come\n");
}

CLAIM(what_points_at_a_line_says_so_with_and_without_colours)
{
	const struct weir_place place = {.file = "a.yaml", .line = 3, .column = 4, .width = 2};
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	weir_diag_error(&diag, &place, "\ta\tb: 5\nnext", NULL, "not \033 so");
	assert_prints(weir_diag_print, &diag, "a.yaml:3:4: not ? so\n    a\tb: 5\n     \t^~\n");
	assert_prints(weir_diag_print_coloured, &diag,
		      "\033[1ma.yaml:3:4:\033[0m not ? so\n    a\tb: 5\n     \t\033[1;31m^~\033[0m\n");
}

CLAIM(what_moves_may_become_a_warning)
{
	_cleanup_(weir_diag_free) struct weir_diag to = {}, from = {};

	weir_diag_error(&to, NULL, NULL, NULL, "first");
	weir_diag_error(&from, NULL, NULL, "mend it", "second");
	weir_diag_move(&to, &from, true);
	assert_int_equal(from.count, 0);
	assert_int_equal(from.errors, 0);
	assert_int_equal(to.errors, 1);
	weir_diag_error(&from, NULL, NULL, NULL, "third");
	weir_diag_move(&to, &from, false);
	assert_int_equal(to.errors, 2);
	assert_prints(weir_diag_print, &to, "first\nthird\nwarning: second\n    mend it\n");
}

/* Nothing is kept then but how many there were. */
CLAIM(mistakes_that_nobody_had_memory_for_are_not_silent)
{
	const struct weir_diag diag = {.errors = 1};

	assert_prints(weir_diag_print, &diag, "out of memory\n");
	assert_prints(weir_diag_print_coloured, &diag, "out of memory\n");
}

CLAIM(text_is_made_printable)
{
	static const struct {
		const char *text, *kept, *expected;
	} cases[] = {
		{"eth0\033[2J", "", "eth0?[2J"},
		{"a\tb\n", "\t", "a\tb?"},
		{"d\xc3\xbc \u65e5", "", "d\xc3\xbc \u65e5"},
		{"a\u202eb\u2069\u061c", "", "a?b??"},
		{"\xc2\x9b"
		 "2J\x9b",
		 "", "?2J?"},
		{"\xc3", "", "?"},
		{"\x7f\u2028", "", "??"},
		{"", "", ""},
	};
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(text, cases[i].text);
		weir_make_printable(text, cases[i].kept);
		assert_string_equal(text, cases[i].expected);
	}
	weir_make_printable(NULL, "");
}

RUN_CLAIMS(NULL, NULL)
