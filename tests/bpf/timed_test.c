// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timed entries (bpf/packet/timed.h, kernel/timed/): with the lists of the rule files they are one list, of which
 * the longest prefix decides, deny on a tie; each ends by itself. Compared with a list of all of them, tried one by
 * one.
 */
#include <arpa/inet.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/model_packet.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "rules/scalars.h"
#include "timed/timed.h"

#define PORT 53
#define PLACES 64u

struct bench {
	struct rig rig;
	struct weir_instance instance; /* as far as orders go */
};

/* Everything passes that is in no list: the rule has room for all. */
static void open_bench(struct bench *bench, struct weir_listed *listed, size_t listed_count, const struct bench *before)
{
	memset(bench, 0, sizeof(*bench));
	rig_begin(&bench->rig, 512);
	rig_rule(&bench->rig, rig_resource(&bench->rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1000000000, SECOND,
		 1);
	bench->rig.ruleset->settings.timed_entries = PLACES;
	bench->rig.ruleset->listed = listed;
	bench->rig.ruleset->listed_count = listed_count;
	if (before) {
		bench->rig.reloads = &before->rig;
		bench->rig.now_ns = RIG_START_NS;
	}
	rig_load(&bench->rig, true);
	snprintf(bench->instance.name, sizeof(bench->instance.name), "test");
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
		bench->instance.map_fd[map] = weir_object_map_fd(bench->rig.object, map);
	bench->instance.info.tables[WEIR_TABLE_TIMED_ADDRESSES].size = PLACES;
}

static struct weir_prefix prefix_of(const char *text)
{
	struct weir_refusal refusal;
	struct weir_prefix prefix;

	assert_int_equal(weir_parse_prefix(text, &prefix, &refusal), 0);
	return prefix;
}

static size_t give(struct bench *bench, bool denies, const char *text, uint64_t lasts_ns)
{
	const struct weir_timed_order order = {.prefix = prefix_of(text), .lasts_ns = lasts_ns};
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	struct weir_timed_given given = {.changed = 99};

	assert_int_equal(weir_timed_give(&bench->instance, denies, &order, 1, &given, &diag), 0);
	return given.changed;
}

static enum weir_verdict verdict_at(struct bench *bench, const char *source, uint64_t now_ns)
{
	struct packet_spec spec =
		packet_udp(source, 1024, strchr(source, ':') ? "2001:db8:1::1" : "198.51.100.1", PORT, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(&spec, frame);

	rig_passes(&bench->rig, now_ns, frame, frame_bytes);
	return weir_object_harness(bench->rig.object)->verdict;
}

#define NOW weir_host_now_ns()
#define HOUR (3600 * SECOND)

static struct weir_listed *lists(size_t count, ...)
{
	struct weir_listed *listed = calloc(count, sizeof(*listed));
	va_list args;

	assert_non_null(listed);
	va_start(args, count);
	for (size_t i = 0; i < count; i++) {
		const char *text = va_arg(args, const char *);

		listed[i] = (struct weir_listed){.prefix = prefix_of(text + 1), .denies = text[0] == '-'};
	}
	va_end(args);
	return listed;
}

/* ---- claims ---- */

CLAIM(a_blocked_address_is_dropped_until_its_time_is_over)
{
	struct bench bench;
	uint64_t before_ns, after_ns;

	open_bench(&bench, NULL, 0, NULL);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", NOW), WEIR_VERDICT_PASS);
	before_ns = NOW;
	assert_int_equal(give(&bench, true, "192.0.2.1", HOUR), 1);
	after_ns = NOW;
	assert_int_equal(give(&bench, true, "2001:db8::1", HOUR), 1);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", after_ns), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", before_ns + HOUR - 1), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", after_ns + HOUR), WEIR_VERDICT_PASS);
	assert_int_equal(verdict_at(&bench, "192.0.2.2", after_ns), WEIR_VERDICT_PASS);
	assert_int_equal(verdict_at(&bench, "2001:db8::1", after_ns + MS), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "2001:db8::2", after_ns + MS), WEIR_VERDICT_PASS);
	/* the first four bytes of an address of the other family */
	assert_int_equal(verdict_at(&bench, "c000:0201::", after_ns), WEIR_VERDICT_PASS);
	rig_end(&bench.rig);
}

CLAIM(a_prefix_that_is_over_hides_no_shorter_one)
{
	struct bench bench;
	uint64_t now_ns;

	open_bench(&bench, NULL, 0, NULL);
	give(&bench, true, "10.0.0.0/8", 3 * HOUR);
	give(&bench, false, "10.1.0.0/16", 2 * HOUR);
	give(&bench, true, "10.1.2.0/24", HOUR);
	now_ns = NOW;
	assert_int_equal(verdict_at(&bench, "10.1.2.3", now_ns), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "10.1.2.3", now_ns + HOUR), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_at(&bench, "10.1.2.3", now_ns + 2 * HOUR), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "10.1.2.3", now_ns + 3 * HOUR), WEIR_VERDICT_PASS);
	rig_end(&bench.rig);
}

CLAIM(to_block_wins_on_a_tie_and_each_order_ends_for_itself)
{
	struct bench bench;
	uint64_t now_ns;

	open_bench(&bench, NULL, 0, NULL);
	give(&bench, true, "192.0.2.1", HOUR);
	give(&bench, false, "192.0.2.1", 2 * HOUR);
	now_ns = NOW;
	assert_int_equal(verdict_at(&bench, "192.0.2.1", now_ns), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", now_ns + HOUR), WEIR_VERDICT_ALLOW);
	assert_int_equal(give(&bench, true, "192.0.2.1", 0), 1);
	assert_int_equal(give(&bench, true, "192.0.2.1", 0), 0);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", now_ns), WEIR_VERDICT_ALLOW);
	assert_int_equal(give(&bench, false, "192.0.2.1", 0), 1);
	assert_int_equal(verdict_at(&bench, "192.0.2.1", now_ns), WEIR_VERDICT_PASS);
	rig_end(&bench.rig);
}

CLAIM(with_the_lists_of_files_the_longest_prefix_wins)
{
	struct bench bench;

	open_bench(&bench,
		   lists(6, "+10.0.0.0/8", "-10.1.0.0/16", "+10.1.1.1/32", "+172.16.0.0/12", "-2001:db8::/32",
			 "-2001:db8:1:1::/64"),
		   6, NULL);
	give(&bench, true, "10.0.0.0/12", HOUR);      /* longer than /8 */
	give(&bench, false, "10.1.0.0/16", HOUR);     /* a tie */
	give(&bench, true, "10.1.1.0/24", HOUR);      /* shorter than /32 */
	give(&bench, true, "172.16.0.0/12", HOUR);    /* a tie the other way */
	give(&bench, false, "2001:db8::5", HOUR);     /* an address */
	give(&bench, false, "2001::/16", HOUR);	      /* shorter than /32 */
	give(&bench, false, "2001:db8:1::/48", HOUR); /* shorter than /64 */
	assert_int_equal(verdict_at(&bench, "10.200.0.1", NOW), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_at(&bench, "10.2.0.1", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "10.1.2.1", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "10.1.1.2", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "10.1.1.1", NOW), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_at(&bench, "172.16.0.1", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "2001:db8::5", NOW), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_at(&bench, "2001:db8::6", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "2001:db9::6", NOW), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_at(&bench, "2001:db8:1:1::6", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&bench, "2001:db8:1:2::6", NOW), WEIR_VERDICT_ALLOW);
	/* to block an address that a file allows as such: a tie */
	give(&bench, true, "10.1.1.1", HOUR);
	assert_int_equal(verdict_at(&bench, "10.1.1.1", NOW), WEIR_VERDICT_DENY);
	rig_end(&bench.rig);
}

/* The verifier must not follow the search through a list into each of its places: it gave up at some 2,000. */
CLAIM(long_lists_load_beside_timed_entries)
{
	enum { HOSTS = 20000 };
	struct weir_listed *listed = calloc(HOSTS, sizeof(*listed));
	char source[INET_ADDRSTRLEN];
	struct bench bench;

	assert_non_null(listed);
	for (uint32_t i = 0; i < HOSTS; i++) {
		const uint32_t address = htonl(0x0a000000 + 2 * i);

		listed[i] = (struct weir_listed){.prefix = {.family = 4, .bits = 32}, .denies = true};
		memcpy(listed[i].prefix.address, &address, sizeof(address));
	}
	open_bench(&bench, listed, HOSTS, NULL);
	assert_int_equal(give(&bench, false, "10.0.0.0/8", HOUR), 1);
	for (uint32_t i = 0; i < 2 * HOSTS; i += 97) {
		const uint32_t address = htonl(0x0a000000 + i);

		inet_ntop(AF_INET, &address, source, sizeof(source));
		assert_int_equal(verdict_at(&bench, source, NOW), i % 2 ? WEIR_VERDICT_ALLOW : WEIR_VERDICT_DENY);
	}
	rig_end(&bench.rig);
}

CLAIM(a_reload_keeps_what_is_blocked_and_takes_new_lists)
{
	struct bench first, second;

	open_bench(&first, NULL, 0, NULL);
	give(&first, true, "192.0.2.1", HOUR);
	give(&first, false, "10.0.0.0/8", HOUR);
	open_bench(&second, lists(1, "-10.1.0.0/16"), 1, &first);
	assert_int_equal(verdict_at(&second, "192.0.2.1", NOW), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_at(&second, "10.2.0.1", NOW), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_at(&second, "10.1.0.1", NOW), WEIR_VERDICT_DENY);
	rig_end(&second.rig);
	rig_end(&first.rig);
}

CLAIM(what_is_over_makes_room_and_a_full_table_says_so)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = calloc(2 * PLACES, sizeof(*orders));
	struct weir_diag diag = {};
	struct bench bench;
	struct weir_timed_given given;

	assert_non_null(orders);
	open_bench(&bench, NULL, 0, NULL);
	for (uint32_t i = 0; i < 2 * PLACES; i++) {
		orders[i].prefix = prefix_of("192.0.2.1");
		orders[i].prefix.address[3] = i;
		orders[i].lasts_ns = i < PLACES ? 1 : HOUR;
	}
	assert_int_equal(weir_timed_give(&bench.instance, true, orders, PLACES, &given, &diag), 0);
	assert_int_equal(given.changed, PLACES);
	assert_int_equal(weir_timed_give(&bench.instance, true, orders + PLACES, PLACES, &given, &diag), 0);
	/* Those that are there are renewed, whether they come before what finds no room or after it. */
	orders[0].lasts_ns = orders[2].lasts_ns = HOUR;
	orders[1] = orders[PLACES];
	orders[3] = orders[2 * PLACES - 1];
	assert_int_equal(weir_timed_give(&bench.instance, true, orders, 4, &given, &diag), -ENOSPC);
	assert_int_equal(given.changed, 2);
	assert_int_equal(diag.errors, 1);
	assert_string_equal(diag.entries[0].message,
			    "no room for 2 addresses, the first of them 192.0.2.0: only 64 addresses fit");
	weir_diag_free(&diag);
	rig_end(&bench.rig);
}

CLAIM(a_reason_and_hits_are_kept_until_the_order_is_over)
{
	struct weir_timed_order order = {
		.prefix = prefix_of("192.0.2.1"), .lasts_ns = HOUR, .hits = 5, .reason = "one"};
	struct weir_timed_order *found;
	struct weir_diag diag = {};
	struct bench bench;
	struct weir_timed_given given;
	size_t count;

	open_bench(&bench, NULL, 0, NULL);
	for (int with_prefix = 0; with_prefix < 2; with_prefix++) {
		order.prefix.bits = with_prefix ? 24 : 32;
		order.prefix.address[3] = !with_prefix;
		assert_int_equal(weir_timed_give(&bench.instance, true, &order, 1, &given, &diag), 0);
		/* Allowed as well, and blocked again without a reason: the first one stays. */
		give(&bench, false, with_prefix ? "192.0.2.0/24" : "192.0.2.1", HOUR);
		give(&bench, true, with_prefix ? "192.0.2.0/24" : "192.0.2.1", 2 * HOUR);
		assert_int_equal(weir_timed_read(&bench.instance, true, &found, &count, &diag), 0);
		assert_int_equal(count, 1);
		assert_int_equal(found[0].hits, 5);
		assert_string_equal(found[0].reason, "one");
		free(found);
		/* It ends, and the other order does not: the next order to block begins afresh. */
		give(&bench, true, with_prefix ? "192.0.2.0/24" : "192.0.2.1", 0);
		give(&bench, true, with_prefix ? "192.0.2.0/24" : "192.0.2.1", HOUR);
		assert_int_equal(weir_timed_read(&bench.instance, true, &found, &count, &diag), 0);
		assert_int_equal(found[0].hits, 0);
		assert_string_equal(found[0].reason, "");
		free(found);
		give(&bench, true, with_prefix ? "192.0.2.0/24" : "192.0.2.1", 0);
	}
	rig_end(&bench.rig);
}

/* ---- parts of the table, by program ---- */

static int give_many(struct bench *bench, const char *first, uint32_t count, const char *by, uint64_t lasts_ns,
		     struct weir_timed_given *ret_given, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = calloc(count, sizeof(*orders));

	assert_non_null(orders);
	for (uint32_t i = 0; i < count; i++) {
		orders[i].prefix = prefix_of(first);
		orders[i].prefix.address[3] += i;
		orders[i].lasts_ns = lasts_ns;
		weir_order_set_by(&orders[i], by);
	}
	return weir_timed_give(&bench->instance, true, orders, count, ret_given, diag);
}

static void open_divided(struct bench *bench, bool evicts)
{
	struct weir_instance_info *info = &bench->instance.info;

	open_bench(bench, NULL, 0, NULL);
	info->timed_evicts = evicts;
	info->timed_part_count = 2;
	info->timed_parts[0] = (struct weir_timed_part){"fail2ban", 20};
	info->timed_parts[1] = (struct weir_timed_part){"crowdsec", 30};
}

/* PLACES - 50 are shared. */
CLAIM(a_program_has_its_part_and_no_more)
{
	struct weir_timed_counts counts;
	struct weir_timed_given given;
	struct weir_diag diag = {};
	struct bench bench;

	open_divided(&bench, false);
	assert_int_equal(give_many(&bench, "192.0.2.1", 25, "fail2ban", HOUR, &given, &diag), -ENOSPC);
	assert_int_equal(given.changed, 20);
	assert_string_equal(diag.entries[0].message, "no room for 5 addresses, the first of them 192.0.2.21: the part "
						     "of 'fail2ban' is full: 20 of 20 addresses");
	/* To renew takes no place, neither of its own nor of another's. */
	assert_int_equal(give_many(&bench, "192.0.2.1", 20, "fail2ban", 2 * HOUR, &given, &diag), 0);
	assert_int_equal(give_many(&bench, "198.51.100.1", PLACES, "feed", HOUR, &given, &diag), -ENOSPC);
	assert_int_equal(given.changed, PLACES - 50);
	assert_string_equal(diag.entries[1].message, "no room for 50 addresses, the first of them 198.51.100.15: the "
						     "part of programs without one is full: 14 of 14 addresses");
	assert_int_equal(give_many(&bench, "203.0.113.1", 30, "crowdsec", HOUR, &given, &diag), 0);
	/* What another program takes over counts for that one; a prefix takes no place. */
	assert_int_equal(give_many(&bench, "192.0.2.1", 1, "feed", 3 * HOUR, &given, &diag), -ENOSPC);
	assert_int_equal(give(&bench, true, "198.51.100.1", 0), 1);
	assert_int_equal(give_many(&bench, "192.0.2.1", 1, "feed", 3 * HOUR, &given, &diag), 0);
	give(&bench, true, "10.0.0.0/8", HOUR);
	assert_int_equal(weir_timed_count(&bench.instance, &counts, &diag), 0);
	assert_int_equal(counts.share_count, 3);
	assert_int_equal(counts.shares[0].used, 19);
	assert_int_equal(counts.shares[0].room, 20);
	assert_int_equal(counts.shares[1].used, 30);
	assert_int_equal(counts.shares[2].used, 14);
	assert_int_equal(counts.shares[2].room, 14);
	assert_int_equal(counts.addresses, PLACES - 1);
	assert_int_equal(counts.refused, 5 + 50 + 1);
	assert_int_equal(counts.source_count, 4);
	weir_diag_free(&diag);
	rig_end(&bench.rig);
}

static bool is_blocked(struct bench *bench, const char *source)
{
	return verdict_at(bench, source, NOW) == WEIR_VERDICT_DENY;
}

CLAIM(what_ends_first_makes_room_in_its_own_part)
{
	struct weir_timed_counts counts;
	struct weir_timed_given given;
	struct weir_diag diag = {};
	struct bench bench;

	open_divided(&bench, true);
	assert_int_equal(give_many(&bench, "192.0.2.1", 19, "fail2ban", 3 * HOUR, &given, &diag), 0);
	assert_int_equal(give_many(&bench, "192.0.2.99", 1, "fail2ban", 2 * HOUR, &given, &diag), 0);
	assert_int_equal(give_many(&bench, "203.0.113.1", 1, "crowdsec", HOUR, &given, &diag), 0);
	assert_int_equal(given.evicted, 0);
	assert_int_equal(give_many(&bench, "192.0.2.100", 1, "fail2ban", HOUR, &given, &diag), 0);
	assert_int_equal(given.evicted, 1);
	assert_int_equal(given.first_evicted.prefix.address[3], 99);
	assert_string_equal(given.first_evicted.by, "fail2ban");
	assert_false(is_blocked(&bench, "192.0.2.99"));
	assert_true(is_blocked(&bench, "192.0.2.100"));
	assert_true(is_blocked(&bench, "203.0.113.1"));
	/* Those that share: its own first, then another's, but neither a block for good nor an entry of `allow`. */
	assert_int_equal(give_many(&bench, "198.51.100.1", 1, "feed", HOUR, &given, &diag), 0);
	give(&bench, false, "198.51.100.90", HOUR / 2);
	give(&bench, true, "198.51.100.91", 24 * 3650 * HOUR);
	assert_int_equal(give_many(&bench, "198.51.100.20", 10, "other", HOUR / 2, &given, &diag), 0);
	assert_int_equal(give_many(&bench, "198.51.100.2", 4, "feed", 2 * HOUR, &given, &diag), 0);
	assert_int_equal(given.evicted, 3);
	assert_string_equal(given.first_evicted.by, "feed");
	assert_int_equal(give_many(&bench, "198.51.100.40", 20, "third", HOUR, &given, &diag), -ENOSPC);
	assert_int_equal(given.evicted, PLACES - 50 - 2);
	assert_true(is_blocked(&bench, "198.51.100.91"));
	assert_int_equal(verdict_at(&bench, "198.51.100.90", NOW), WEIR_VERDICT_ALLOW);
	assert_int_equal(weir_timed_count(&bench.instance, &counts, &diag), 0);
	assert_int_equal(counts.evicted, 1 + 3 + PLACES - 52);
	assert_int_equal(counts.shares[0].used, 20);
	assert_int_equal(counts.shares[2].used, PLACES - 50);
	weir_diag_free(&diag);
	rig_end(&bench.rig);
}

/* In the bytes of an entry that the reason leaves, who blocks and who allows. */
CLAIM(names_share_their_room_with_the_reason)
{
	struct weir_timed_order order = {.prefix = prefix_of("192.0.2.1"), .lasts_ns = HOUR}, *found;
	struct weir_timed_given given;
	struct weir_diag diag = {};
	struct bench bench;
	char reason[WEIR_REASON_BYTES] = "";
	size_t count;

	open_bench(&bench, NULL, 0, NULL);
	memset(reason, 'a', 63);
	weir_order_set_reason(&order, reason);
	assert_int_equal(weir_timed_give(&bench.instance, true, &order, 1, &given, &diag), 0);
	order = (struct weir_timed_order){.prefix = order.prefix, .lasts_ns = HOUR};
	weir_order_set_by(&order, "fail2ban");
	assert_int_equal(weir_timed_give(&bench.instance, true, &order, 1, &given, &diag), 0);
	weir_order_set_by(&order, "x");
	assert_int_equal(weir_timed_give(&bench.instance, false, &order, 1, &given, &diag), 0);
	assert_int_equal(weir_timed_read(&bench.instance, true, &found, &count, &diag), 0);
	assert_string_equal(found[0].by, "fail2ban");
	assert_int_equal(strlen(found[0].reason), 54);
	free(found);
	weir_order_set_reason(&order, "short");
	weir_order_set_by(&order, "crowdsec");
	assert_int_equal(weir_timed_give(&bench.instance, true, &order, 1, &given, &diag), 0);
	weir_order_set_by(&order, "x");
	assert_int_equal(weir_timed_give(&bench.instance, false, &order, 1, &given, &diag), 0);
	assert_int_equal(weir_timed_read(&bench.instance, false, &found, &count, &diag), 0);
	assert_string_equal(found[0].by, "x");
	free(found);
	assert_int_equal(weir_timed_read(&bench.instance, true, &found, &count, &diag), 0);
	assert_string_equal(found[0].by, "crowdsec");
	assert_string_equal(found[0].reason, "short");
	free(found);
	rig_end(&bench.rig);
}

/* ---- random lists and orders ---- */

#define ENTRIES_MAX 40

struct entry {
	struct weir_prefix prefix;
	bool denies;
	uint64_t until_ns;
};

/* Prefixes of a few addresses, so that they enclose each other. */
static struct weir_prefix random_near(struct random *random)
{
	static const char *const hosts[] = {"10.1.2.3", "10.1.2.4", "10.200.0.1", "2001:db8::1",
					    "2001:db8::8000:0:0:1"};
	struct weir_prefix prefix = prefix_of(hosts[random_below(random, ARRAY_SIZE(hosts))]);
	unsigned int longest = prefix.bits;

	if (random_percent(random, 70))
		prefix.bits = random_between(random, random_percent(random, 10) ? 0 : 8, longest);
	for (unsigned int i = prefix.bits; i < 128; i++)
		prefix.address[i / 8] &= ~(0x80 >> i % 8);
	return prefix;
}

static int compare_listed(const void *a, const void *b)
{
	const struct weir_prefix *first = &((const struct weir_listed *)a)->prefix;
	const struct weir_prefix *second = &((const struct weir_listed *)b)->prefix;

	if (first->family != second->family)
		return first->family - second->family;
	return memcmp(first->address, second->address, sizeof(first->address)) ?: first->bits - second->bits;
}

/* As the reader of rule files leaves them: sorted, and no prefix twice. */
static struct weir_listed *random_listed(struct random *random, size_t *ret_count)
{
	size_t count = random_below(random, 20), kept = 0;
	struct weir_listed *listed = calloc(count + 1, sizeof(*listed));

	assert_non_null(listed);
	for (size_t i = 0; i < count; i++)
		listed[i] = (struct weir_listed){.prefix = random_near(random), .denies = random_percent(random, 50)};
	qsort(listed, count, sizeof(*listed), compare_listed);
	for (size_t i = 0; i < count; i++)
		if (kept && !compare_listed(&listed[kept - 1], &listed[i]))
			listed[kept - 1].denies |= listed[i].denies;
		else
			listed[kept++] = listed[i];
	*ret_count = kept;
	return listed;
}

static enum weir_verdict expected(const struct entry *entries, size_t count, const struct weir_prefix *source,
				  uint64_t now_ns)
{
	enum weir_verdict verdict = WEIR_VERDICT_PASS;
	int longest = -1;

	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i];

		if (now_ns >= entry->until_ns || entry->prefix.bits < longest ||
		    !model_in_prefix(&entry->prefix, source->family, source->address))
			continue;
		if (entry->prefix.bits > longest || entry->denies)
			verdict = entry->denies ? WEIR_VERDICT_DENY : WEIR_VERDICT_ALLOW;
		longest = entry->prefix.bits;
	}
	return verdict;
}

/* An order takes the place of an earlier one of its kind for the prefix. */
static size_t add_entry(struct entry *entries, size_t first, size_t count, const struct entry *new)
{
	for (size_t i = first; i < count; i++)
		if (entries[i].denies == new->denies &&
		    !memcmp(&entries[i].prefix, &new->prefix, sizeof(new->prefix))) {
			entries[i] = *new;
			return count;
		}
	entries[count] = *new;
	return count + 1;
}

static void play(struct random *random)
{
	struct entry entries[2 * ENTRIES_MAX];
	struct weir_listed *listed;
	size_t listed_count, count = 0, orders = random_between(random, 1, ENTRIES_MAX);
	struct bench bench;
	uint64_t now_ns;

	listed = random_listed(random, &listed_count);
	for (; count < listed_count; count++)
		entries[count] = (struct entry){listed[count].prefix, listed[count].denies, UINT64_MAX};
	open_bench(&bench, listed, listed_count, NULL);
	for (size_t i = 0; i < orders; i++) {
		struct weir_timed_order order = {.prefix = random_near(random),
						 .lasts_ns = random_between(random, 1, 5) * HOUR};
		struct entry entry = {order.prefix, random_percent(random, 50), 0};
		struct weir_diag diag = {};
		struct weir_timed_given given;

		assert_int_equal(weir_timed_give(&bench.instance, entry.denies, &order, 1, &given, &diag), 0);
		/* Its end is not asked about: seconds before and after will do. */
		entry.until_ns = NOW + order.lasts_ns;
		count = add_entry(entries, listed_count, count, &entry);
	}
	now_ns = NOW;
	for (int i = 0; i < 200; i++) {
		struct weir_prefix source = random_near(random);
		char text[INET6_ADDRSTRLEN];
		uint64_t at_ns = now_ns + random_below(random, 6) * HOUR + HOUR / 2;

		source.bits = source.family == 6 ? 128 : 32;
		inet_ntop(source.family == 6 ? AF_INET6 : AF_INET, source.address, text, sizeof(text));
		if (verdict_at(&bench, text, at_ns) != expected(entries, count, &source, at_ns))
			fail_msg("%s is not what it should be: %d", text, expected(entries, count, &source, at_ns));
	}
	rig_end(&bench.rig);
}

CLAIM(agrees_with_all_entries_tried_one_by_one)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct random random = {seed};

		play(&random);
	}
}

RUN_CLAIMS(NULL, NULL)
