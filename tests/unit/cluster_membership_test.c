// SPDX-License-Identifier: GPL-2.0-only
/* Who is in a ledger, read back and followed for people. */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "shares/membership.h"
#include "tables/entry_state.h"

static enum weir_membership_change see(struct weir_membership *membership, uint32_t ledger, const char *name,
				       const char *state)
{
	struct weir_ledger_host host = {.is_live = !strcmp(state, "live"), .wanted = strcmp(state, "left") ? 5 : -1};

	snprintf(host.name, sizeof(host.name), "%s", name);
	return weir_membership_see(membership, ledger, &host);
}

/* As ledger.lua writes them. */
CLAIM(entries_are_read_as_the_script_writes_them)
{
	struct weir_ledger_head head = {};
	struct weir_ledger_host host = {};

	assert_true(weir_ledger_read_head(
		"ledger", "3 p:1 f00 5000000 2000 9000000 3600000000 3 4000000 2500 1000 0a1b2c3d", &head));
	assert_int_equal(head.now_us, 5000000);
	assert_int_equal(head.owed, 2500); /* the larger of what is owed, and of what is not free yet */
	assert_int_equal(head.owed_ends_us, 9000000);
	assert_true(weir_ledger_read_host(
		"host:b", "p2 7 1500 1000 2000 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 5000000, &host));
	assert_string_equal(host.name, "b");
	assert_int_equal(host.hold, 1500);
	assert_int_equal(host.fallback, 1000);
	assert_int_equal(host.wanted, 2000);
	assert_int_equal(host.ends_us, 6000000);
	assert_int_equal(host.silent_us, 3600000000);
	assert_true(host.stops);
	assert_true(host.is_live);
	assert_int_equal(weir_ledger_reserved(&host), 0);
	assert_true(weir_ledger_read_host(
		"host:b", "p2 7 1500 1000 2000 4000000 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 5000000, &host));
	assert_false(host.is_live); /* a lease after the answer that it confirmed */
	assert_int_equal(weir_ledger_reserved(&host), 1500);
	assert_true(weir_ledger_read_host(
		"host:b", "p2 7 1500 1000 -1 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 5000000, &host));
	assert_false(host.is_live);
	assert_int_equal(weir_ledger_reserved(&host), 0);
	assert_int_equal(weir_reserved_percent(0, 3000), 0);
	assert_int_equal(weir_reserved_percent(1, 3000), 1);
	assert_int_equal(weir_reserved_percent(1000, 3000), 34);
	assert_int_equal(weir_reserved_percent(3001, 3000), 100);
	assert_int_equal(weir_reserved_percent(0, 0), 0);
}

CLAIM(what_is_no_entry_is_refused)
{
	struct weir_ledger_head head = {.now_us = 1};
	struct weir_ledger_host host = {.hold = 1};
	char name[80] = "host:";

	assert_false(weir_ledger_read_head(
		"ledger", "3 p:1 f00 words 2000 9000000 3600000000 3 4000000 2500 1000 0a1b2c3d", &head));
	assert_false(
		weir_ledger_read_head("ledger", "2 p:1 f00 5000000 3000 1000 3600000000", &head)); /* of version 2 */
	assert_false(weir_ledger_read_head(
		"host:a", "3 p:1 f00 5000000 2000 9000000 3600000000 3 4000000 2500 1000 0a1b2c3d", &head));
	assert_int_equal(head.now_us, 1);
	assert_false(weir_ledger_read_host(
		"ledger", "p2 7 1500 1000 2000 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 0, &host));
	assert_false(weir_ledger_read_host("host:b", "p2 7 1500 1000", 0, &host));
	assert_false(weir_ledger_read_host(
		"host:", "p2 7 1500 1000 2000 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 0, &host));
	memset(name + 5, 'x', WEIR_CLUSTER_NAME_CHARS);
	assert_false(weir_ledger_read_host(
		name, "p2 7 1500 1000 2000 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 0, &host));
	assert_int_equal(host.hold, 1);
}

/* Whoever writes to the store neither steers a terminal nor hides; and what is shown is enough to forget it. */
CLAIM(host_whose_name_is_no_word_is_shown_and_can_be_named)
{
	static const struct {
		const char *field, *shown;
	} names[] = {
		{"host:b", "b"},	 {"host:\033[2J", "\\x1b[2J"},
		{"host:a b", "a\\x20b"}, {"host:\xc2\x9b", "\\xc2\\x9b"},
		{"host:a\n", "a\\x0a"},	 {"host:\\x62", "\\x5cx62"},
	};
	char longest[WEIR_LEDGER_FIELD_CHARS] = "host:", field[WEIR_LEDGER_FIELD_CHARS];
	struct weir_ledger_host host;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(weir_ledger_read_host(
			names[i].field, "p2 7 1500 1000 2000 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 0,
			&host));
		assert_string_equal(host.name, names[i].shown);
		weir_ledger_field(host.name, field);
		assert_string_equal(field, names[i].field);
	}
	memset(longest + 5, '\033', WEIR_CLUSTER_NAME_CHARS - 1);
	assert_true(weir_ledger_read_host(
		longest, "p2 7 1500 1000 2000 4000001 6000000 1051051 3600000000 1 7000000 0a1b2c3d", 0, &host));
	assert_int_equal(strlen(host.name), WEIR_LEDGER_SHOWN_CHARS - 1);
	weir_ledger_field(host.name, field);
	assert_string_equal(field, longest);
}

CLAIM(members_at_the_start_have_not_joined)
{
	struct weir_membership membership = {};

	assert_int_equal(see(&membership, 0, "a", "live"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 0, "b", "silent"), WEIR_MEMBERSHIP_NOTHING);
	membership.has_looked = true;
	assert_int_equal(see(&membership, 0, "a", "live"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 0, "b", "silent"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 0, "b", "live"), WEIR_MEMBERSHIP_CAME);
	assert_int_equal(see(&membership, 0, "c", "live"), WEIR_MEMBERSHIP_CAME);
	assert_int_equal(weir_membership_live(&membership), 3);
	assert_int_equal(weir_membership_silent(&membership), 0);
}

CLAIM(a_host_is_silent_at_the_second_look)
{
	struct weir_membership membership = {.has_looked = true};

	assert_int_equal(see(&membership, 0, "a", "live"), WEIR_MEMBERSHIP_CAME);
	assert_int_equal(see(&membership, 0, "a", "silent"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 0, "a", "live"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 0, "a", "silent"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_live(&membership), 1);
	assert_int_equal(see(&membership, 0, "a", "silent"), WEIR_MEMBERSHIP_SILENT);
	assert_int_equal(see(&membership, 0, "a", "silent"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_live(&membership), 0);
	assert_int_equal(weir_membership_silent(&membership), 1);
}

/* As one that a busy machine keeps from its ledger while it ends: what was reserved for it is free. */
CLAIM(a_silent_host_that_leaves_has_left)
{
	struct weir_membership membership = {.has_looked = true};

	for (uint32_t ledger = 0; ledger < 2; ledger++)
		see(&membership, ledger, "a", "live");
	for (int i = 0; i < 2; i++)
		for (uint32_t ledger = 0; ledger < 2; ledger++)
			see(&membership, ledger, "a", "silent");
	assert_int_equal(weir_membership_silent(&membership), 1);
	assert_int_equal(see(&membership, 0, "a", "left"), WEIR_MEMBERSHIP_LEFT);
	assert_int_equal(see(&membership, 1, "a", "left"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_silent(&membership), 0);
}

CLAIM(a_host_that_leaves_one_ledger_of_several_has_not_left)
{
	struct weir_membership membership = {.has_looked = true};

	see(&membership, 0, "a", "live");
	see(&membership, 1, "a", "live");
	assert_int_equal(see(&membership, 0, "a", "left"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 1, "a", "live"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 1, "a", "left"), WEIR_MEMBERSHIP_LEFT);
	assert_int_equal(see(&membership, 0, "a", "left"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_live(&membership), 0);
	assert_int_equal(weir_membership_silent(&membership), 0);
}

/* A look at a ledger that finds these, all live; returns the last change of one that it does not find. */
static enum weir_membership_change look(struct weir_membership *membership, uint32_t ledger, const char *a,
					const char *b)
{
	enum weir_membership_change last = WEIR_MEMBERSHIP_NOTHING, change;

	see(membership, ledger, a, "live");
	if (b)
		see(membership, ledger, b, "live");
	for (size_t place = 0; place < membership->count; place++) {
		change = weir_membership_end_look(membership, ledger, place);
		last = change != WEIR_MEMBERSHIP_NOTHING ? change : last;
	}
	return last;
}

CLAIM(a_host_that_is_forgotten_is_silent_no_more)
{
	struct weir_membership membership = {};

	look(&membership, 0, "a", "b");
	see(&membership, 0, "b", "silent");
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_NOTHING);
	see(&membership, 0, "b", "silent");
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_silent(&membership), 1);
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_FORGOTTEN);
	assert_int_equal(weir_membership_silent(&membership), 0);
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_NOTHING);
	see(&membership, 0, "b", "live");
	assert_int_equal(weir_membership_live(&membership), 2);
}

/* A ledger that was lost is without all for a moment, and without those that are cut off for good. */
CLAIM(a_live_host_is_missed_at_the_second_look)
{
	struct weir_membership membership = {};

	look(&membership, 0, "a", "b");
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(look(&membership, 0, "a", "b"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_live(&membership), 2);
	assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_FORGOTTEN);
	assert_int_equal(weir_membership_live(&membership), 1);
	assert_int_equal(weir_membership_silent(&membership), 0);
}

CLAIM(a_host_is_missed_in_no_ledger_but_its_own)
{
	struct weir_membership membership = {};

	look(&membership, 0, "a", NULL);
	look(&membership, 1, "a", "b");
	for (int i = 0; i < 3; i++)
		assert_int_equal(look(&membership, 0, "a", NULL), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(weir_membership_live(&membership), 2);
}

/* Places of those that are gone are used again; beyond, hosts are not followed. */
CLAIM(the_roll_does_not_overflow)
{
	struct weir_membership membership = {.has_looked = true};
	char name[16];

	for (int i = 0; i < WEIR_MEMBERSHIP_HOSTS + 2; i++) {
		snprintf(name, sizeof(name), "h%d", i);
		see(&membership, 0, name, "live");
	}
	assert_int_equal(weir_membership_live(&membership), WEIR_MEMBERSHIP_HOSTS);
	assert_int_equal(see(&membership, 0, "late", "live"), WEIR_MEMBERSHIP_NOTHING);
	assert_int_equal(see(&membership, 0, "h3", "left"), WEIR_MEMBERSHIP_LEFT);
	assert_int_equal(see(&membership, 0, "late", "live"), WEIR_MEMBERSHIP_CAME);
	assert_int_equal(weir_membership_live(&membership), WEIR_MEMBERSHIP_HOSTS);
}

RUN_CLAIMS(NULL, NULL)
