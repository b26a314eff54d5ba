// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allow and deny lists, through the shipped program: random prefixes that nest, touch and repeat, against an oracle
 * that looks at every prefix for every packet.
 */
#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define PORT 53
#define SOURCE4_OFFSET (14 + 12) /* of the source address in the frame */
#define SOURCE6_OFFSET (14 + 8)

struct lists {
	struct rig rig;
	uint8_t frame[2][PACKET_BYTES_MAX]; /* [0] IPv4, [1] IPv6 */
	size_t frame_bytes[2];
};

/* One rule that lets nothing through, so that whoever meets a rule is seen to. */
static void lists_begin(struct lists *lists)
{
	struct packet_spec spec4 = packet_udp("0.0.0.0", 1000, "192.0.2.53", PORT, 0);
	struct packet_spec spec6 = packet_udp("::", 1000, "2001:db8::53", PORT, 0);

	memset(lists, 0, sizeof(*lists));
	lists->frame_bytes[0] = packet_build(&spec4, lists->frame[0]);
	lists->frame_bytes[1] = packet_build(&spec6, lists->frame[1]);
	rig_begin(&lists->rig, 512);
	rig_rule(&lists->rig, rig_resource(&lists->rig, PORT, 0), WEIR_WINDOW_LEAP, 0, SECOND, 10);
}

static void lists_end(struct lists *lists)
{
	rig_end(&lists->rig);
}

static void list_prefix(struct lists *lists, const struct weir_prefix *prefix, bool denies)
{
	struct weir_ruleset *ruleset = lists->rig.ruleset;
	struct weir_listed *listed = weir_array_add((void **)&ruleset->listed, ruleset->listed_count, sizeof(*listed));

	assert_non_null(listed);
	*listed = (struct weir_listed){.prefix = *prefix, .denies = denies};
	ruleset->listed_count++;
}

static void list(struct lists *lists, bool denies, const char *address, uint8_t bits)
{
	struct weir_prefix prefix = {.family = strchr(address, ':') ? 6 : 4, .bits = bits};

	assert_int_equal(inet_pton(prefix.family == 6 ? AF_INET6 : AF_INET, address, prefix.address), 1);
	list_prefix(lists, &prefix, denies);
}

static int compare_listed(const void *left, const void *right)
{
	const struct weir_listed *a = left, *b = right;
	int order = memcmp(a->prefix.address, b->prefix.address, sizeof(a->prefix.address));

	if (a->prefix.family != b->prefix.family)
		return a->prefix.family - b->prefix.family;
	if (order)
		return order;
	if (a->prefix.bits != b->prefix.bits)
		return a->prefix.bits - b->prefix.bits;
	return a->denies - b->denies;
}

/* As the rule reader hands them over: sorted, nothing twice. */
static void lists_load(struct lists *lists)
{
	struct weir_ruleset *ruleset = lists->rig.ruleset;
	size_t count = 0;

	qsort(ruleset->listed, ruleset->listed_count, sizeof(*ruleset->listed), compare_listed);
	for (size_t i = 0; i < ruleset->listed_count; i++)
		if (!count || compare_listed(&ruleset->listed[i], &ruleset->listed[count - 1]))
			ruleset->listed[count++] = ruleset->listed[i];
	ruleset->listed_count = count;
	rig_load(&lists->rig, true);
}

/* The verdict on a packet from this address: whom no list names meets the rule and is blocked. */
static enum weir_verdict verdict_on(struct lists *lists, uint8_t family, const uint8_t address[16])
{
	bool is_ipv6 = family == 6;
	uint8_t *frame = lists->frame[is_ipv6];

	memcpy(frame + (is_ipv6 ? SOURCE6_OFFSET : SOURCE4_OFFSET), address, is_ipv6 ? 16 : 4);
	rig_passes(&lists->rig, RIG_START_NS, frame, lists->frame_bytes[is_ipv6]);
	return weir_object_harness(lists->rig.object)->verdict;
}

static enum weir_verdict verdict_on_text(struct lists *lists, const char *text)
{
	uint8_t address[16] = {}, family = strchr(text, ':') ? 6 : 4;

	assert_int_equal(inet_pton(family == 6 ? AF_INET6 : AF_INET, text, address), 1);
	return verdict_on(lists, family, address);
}

/* ---- the oracle ---- */

static bool is_under(const struct weir_prefix *prefix, const uint8_t address[16])
{
	for (int bit = 0; bit < prefix->bits; bit++)
		if ((prefix->address[bit / 8] ^ address[bit / 8]) >> (7 - bit % 8) & 1)
			return false;
	return true;
}

/* The longest prefix wins, deny on a tie. */
static enum weir_verdict expected(const struct weir_ruleset *ruleset, uint8_t family, const uint8_t address[16])
{
	enum weir_verdict verdict = WEIR_VERDICT_BLOCK;
	int longest = -1;

	for (size_t i = 0; i < ruleset->listed_count; i++) {
		const struct weir_listed *listed = &ruleset->listed[i];
		int bits = listed->prefix.bits;

		if (listed->prefix.family != family || bits < longest || !is_under(&listed->prefix, address))
			continue;
		if (bits == longest && !listed->denies)
			continue;
		longest = bits;
		verdict = listed->denies ? WEIR_VERDICT_DENY : WEIR_VERDICT_ALLOW;
	}
	return verdict;
}

/* ---- random lists ---- */

static void set_bits_from(uint8_t address[16], int first, int width, bool value)
{
	for (int bit = first; bit < width; bit++) {
		uint8_t mask = 0x80 >> bit % 8;

		address[bit / 8] = value ? address[bit / 8] | mask : address[bit / 8] & ~mask;
	}
}

/* One more than this address, or one less, in the whole width; wraps. */
static void step(uint8_t address[16], int width, int by)
{
	for (int byte = width / 8; byte-- > 0;) {
		address[byte] += by;
		if (address[byte] != (by > 0 ? 0 : 0xff))
			return;
	}
}

/* An address that shares its first `shared` bits with `near`. */
static void scatter(struct random *random, uint8_t address[16], const uint8_t near[16], int shared, int width)
{
	memset(address, 0, 16);
	for (int bit = 0; bit < width; bit++) {
		uint8_t value = bit < shared ? near[bit / 8] >> (7 - bit % 8) & 1 : random_below(random, 2);

		address[bit / 8] |= value << (7 - bit % 8);
	}
}

/* Prefixes of one family, often inside or beside one that is already there, so that they nest and touch. */
static void list_random(struct lists *lists, struct random *random, uint8_t family, size_t count, int shortest)
{
	int width = family == 6 ? 128 : 32;
	struct weir_ruleset *ruleset = lists->rig.ruleset;

	for (size_t i = 0; i < count; i++) {
		struct weir_prefix prefix = {.family = family};
		uint8_t near[16] = {};
		int shared = 0;

		if (ruleset->listed_count && random_percent(random, 80)) {
			const struct weir_prefix *other =
				&ruleset->listed[random_below(random, ruleset->listed_count)].prefix;

			memcpy(near, other->address, sizeof(near));
			shared = random_percent(random, 50) ? other->bits : random_below(random, width + 1);
		}
		prefix.bits = random_between(random, shortest, width);
		if (random_percent(random, 30))
			prefix.bits = width;
		scatter(random, prefix.address, near, shared < width ? shared : width, width);
		set_bits_from(prefix.address, prefix.bits, 128, false);
		list_prefix(lists, &prefix, random_percent(random, 50));
		if (random_percent(random, 5)) /* the same in both lists */
			list_prefix(lists, &prefix, random_percent(random, 50));
	}
}

static void assert_as_expected(struct lists *lists, uint8_t family, const uint8_t address[16])
{
	enum weir_verdict verdict = verdict_on(lists, family, address);
	char text[INET6_ADDRSTRLEN];

	if (verdict == expected(lists->rig.ruleset, family, address))
		return;
	inet_ntop(family == 6 ? AF_INET6 : AF_INET, address, text, sizeof(text));
	fail_msg("verdict %d on %s, not %d", verdict, text, expected(lists->rig.ruleset, family, address));
}

/* The first and last address of a prefix, their neighbours outside, one inside, one somewhere near. */
static void ask_around(struct lists *lists, struct random *random, const struct weir_prefix *prefix)
{
	int width = prefix->family == 6 ? 128 : 32;
	uint8_t address[16];

	memcpy(address, prefix->address, sizeof(address));
	assert_as_expected(lists, prefix->family, address);
	step(address, width, -1);
	assert_as_expected(lists, prefix->family, address);
	memcpy(address, prefix->address, sizeof(address));
	set_bits_from(address, prefix->bits, width, true);
	assert_as_expected(lists, prefix->family, address);
	step(address, width, 1);
	assert_as_expected(lists, prefix->family, address);
	scatter(random, address, prefix->address, prefix->bits, width);
	assert_as_expected(lists, prefix->family, address);
	scatter(random, address, prefix->address, random_below(random, width + 1), width);
	assert_as_expected(lists, prefix->family, address);
}

CLAIM(longest_prefix_decides_in_random_lists)
{
	static const size_t counts[] = {1, 2, 5, 30, 300, 1500};

	rig_require(1);
	for (uint64_t seed = 0; seed < 24; seed++) {
		struct random random = {.state = seed + 1};
		_cleanup_(lists_end) struct lists lists = {};
		size_t count = counts[seed % ARRAY_SIZE(counts)];

		lists_begin(&lists);
		list_random(&lists, &random, 4, count, seed % 3 * 8);
		list_random(&lists, &random, 6, count, seed % 5 * 16);
		lists_load(&lists);
		for (size_t i = 0; i < lists.rig.ruleset->listed_count; i++) {
			struct weir_prefix prefix = lists.rig.ruleset->listed[i].prefix;

			ask_around(&lists, &random, &prefix);
			prefix.bits = 0; /* anywhere */
			ask_around(&lists, &random, &prefix);
		}
	}
}

/* Every length from 0 to the whole address, one inside the other, in turn allowed and denied. */
CLAIM(prefixes_nested_at_every_length_are_distinguished)
{
	for (uint8_t family = 4; family <= 6; family += 2) {
		int width = family == 6 ? 128 : 32;
		struct random random = {.state = family};
		struct weir_prefix prefix = {.family = family};
		uint8_t whole[16];
		_cleanup_(lists_end) struct lists lists = {};

		lists_begin(&lists);
		scatter(&random, whole, whole, 0, width);
		for (int bits = 0; bits <= width; bits++) {
			memcpy(prefix.address, whole, sizeof(whole));
			set_bits_from(prefix.address, bits, 128, false);
			prefix.bits = bits;
			list_prefix(&lists, &prefix, bits % 2);
		}
		lists_load(&lists);
		for (int bits = 0; bits < width; bits++) {
			uint8_t address[16];

			memcpy(address, whole, sizeof(whole));
			address[bits / 8] ^= 0x80 >> bits % 8; /* under the prefix of `bits`, and no longer one */
			assert_int_equal(verdict_on(&lists, family, address),
					 bits % 2 ? WEIR_VERDICT_DENY : WEIR_VERDICT_ALLOW);
		}
		assert_int_equal(verdict_on(&lists, family, whole), WEIR_VERDICT_ALLOW);
	}
}

/* Every address of a /16 and its neighbours, the odd ones denied, but for a /24 and some hosts. */
CLAIM(a_dense_range_of_hosts_is_distinguished)
{
	struct random random = {.state = 7};
	_cleanup_(lists_end) struct lists lists = {};

	lists_begin(&lists);
	for (uint32_t host = 1; host < 65536; host += 2) {
		struct weir_prefix prefix = {.family = 4, .bits = 32, .address = {198, 18, host >> 8, host & 0xff}};

		list_prefix(&lists, &prefix, true);
	}
	list(&lists, false, "198.18.7.0", 24);
	for (int i = 0; i < 2000; i++) {
		struct weir_prefix prefix = {.family = 6, .bits = 128, .address = {0x20, 1, 0xd, 0xb8}};

		prefix.address[14] = i >> 7;
		prefix.address[15] = i << 1;
		list_prefix(&lists, &prefix, i % 3);
	}
	lists_load(&lists);
	for (uint32_t host = 0; host < 65536; host++) {
		uint8_t address[16] = {198, 18, host >> 8, host & 0xff};
		enum weir_verdict otherwise = host >> 8 == 7 ? WEIR_VERDICT_ALLOW : WEIR_VERDICT_BLOCK;

		assert_int_equal(verdict_on(&lists, 4, address), host % 2 ? WEIR_VERDICT_DENY : otherwise);
	}
	for (int i = 0; i < 4010; i++) {
		uint8_t address[16] = {0x20, 1, 0xd, 0xb8};

		address[14] = i >> 8;
		address[15] = i;
		assert_as_expected(&lists, 6, address);
	}
	ask_around(&lists, &random, &lists.rig.ruleset->listed[0].prefix);
}

/* ---- what it means ---- */

CLAIM(deny_wins_where_both_lists_name_the_same_prefix)
{
	_cleanup_(lists_end) struct lists lists = {};

	lists_begin(&lists);
	list(&lists, false, "0.0.0.0", 0);
	list(&lists, true, "0.0.0.0", 0);
	list(&lists, true, "10.0.0.0", 20);
	list(&lists, false, "10.0.0.0", 20);
	list(&lists, false, "10.0.0.7", 32);
	list(&lists, true, "2001:db8::1", 128);
	list(&lists, false, "2001:db8::1", 128);
	list(&lists, false, "2001:db8::", 64);
	lists_load(&lists);
	assert_int_equal(verdict_on_text(&lists, "192.0.2.1"), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_on_text(&lists, "10.0.0.6"), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_on_text(&lists, "10.0.0.7"), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_on_text(&lists, "2001:db8::1"), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_on_text(&lists, "2001:db8::2"), WEIR_VERDICT_ALLOW);
}

/* 192.0.2.1 and c000:201:: begin with the same 32 bits. */
CLAIM(a_prefix_of_one_family_says_nothing_of_the_other)
{
	_cleanup_(lists_end) struct lists lists = {};

	lists_begin(&lists);
	list(&lists, true, "192.0.2.1", 32);
	list(&lists, true, "192.0.0.0", 16);
	list(&lists, true, "10.0.0.0", 8);
	list(&lists, false, "c633:6400::", 24); /* 198.51.100.0 */
	list(&lists, false, "cb00::", 16);	/* 203.0.0.0 */
	list(&lists, false, "1400::", 8);	/* 20.0.0.0 */
	lists_load(&lists);
	assert_int_equal(verdict_on_text(&lists, "192.0.2.1"), WEIR_VERDICT_DENY);
	assert_int_equal(verdict_on_text(&lists, "c000:201::"), WEIR_VERDICT_BLOCK);
	assert_int_equal(verdict_on_text(&lists, "c000:300::"), WEIR_VERDICT_BLOCK);
	assert_int_equal(verdict_on_text(&lists, "a00::1"), WEIR_VERDICT_BLOCK);
	assert_int_equal(verdict_on_text(&lists, "c633:6401::"), WEIR_VERDICT_ALLOW);
	assert_int_equal(verdict_on_text(&lists, "198.51.100.1"), WEIR_VERDICT_BLOCK);
	assert_int_equal(verdict_on_text(&lists, "203.0.1.1"), WEIR_VERDICT_BLOCK);
	assert_int_equal(verdict_on_text(&lists, "20.1.1.1"), WEIR_VERDICT_BLOCK);
}

/* Not even one that observes counts it, and no window does. */
CLAIM(a_listed_packet_meets_no_resource)
{
	_cleanup_(lists_end) struct lists lists = {};

	lists_begin(&lists);
	list(&lists, false, "192.0.2.1", 32);
	list(&lists, true, "192.0.2.2", 32);
	lists_load(&lists);
	assert_int_equal(verdict_on_text(&lists, "192.0.2.1"), WEIR_VERDICT_ALLOW);
	assert_int_equal(weir_object_harness(lists.rig.object)->resource_count, 0);
	assert_int_equal(verdict_on_text(&lists, "192.0.2.2"), WEIR_VERDICT_DENY);
	assert_int_equal(weir_object_harness(lists.rig.object)->resource_count, 0);
	assert_int_equal(weir_object_harness(lists.rig.object)->rule, WEIR_NO_RULE);
	assert_int_equal(rig_passed(&lists.rig, 0), 0);
	assert_int_equal(rig_rule_counters(&lists.rig, 0).blocked.packets, 0);
	assert_int_equal(verdict_on_text(&lists, "192.0.2.3"), WEIR_VERDICT_BLOCK);
	assert_int_equal(rig_rule_counters(&lists.rig, 0).blocked.packets, 1);
}

CLAIM(a_malformed_packet_of_an_allowed_source_stays_malformed)
{
	_cleanup_(lists_end) struct lists lists = {};

	lists_begin(&lists);
	list(&lists, false, "0.0.0.0", 0);
	lists_load(&lists);
	assert_int_equal(verdict_on_text(&lists, "192.0.2.1"), WEIR_VERDICT_ALLOW);
	lists.frame[0][14] = 0x44; /* ihl 4 */
	assert_int_equal(verdict_on_text(&lists, "192.0.2.1"), WEIR_VERDICT_MALFORMED_DROP);
}

/* ---- a million ---- */

#define MILLION 1000000u
/* Of CPU time, so that a busy machine does not count: a second, mostly. Looking at each prefix for each other would be
 * 4 x 10^12 looks. How quick it is, is bench's.
 */
#define LOAD_CPU_NS_MAX (60 * SECOND)
#define LISTS_BYTES_MAX (90u << 20) /* a million hosts of each family, nothing in common: 73 MB */

/* Spread over the whole address space by a bijection of 32-bit numbers, so that none comes twice. */
static void million_address(uint32_t number, uint8_t family, uint8_t ret_address[16])
{
	uint32_t scattered = number * 0x9e3779b1u;
	uint32_t words[4] = {htonl(scattered), 0, 0, 0};

	if (family == 6) {
		words[0] = htonl(0x20010db8);
		words[1] = htonl(scattered);
		words[3] = htonl(~scattered);
	}
	memcpy(ret_address, words, sizeof(words));
}

static uint64_t cpu_time_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * SECOND + used.tv_nsec;
}

CLAIM(two_million_hosts_load_in_less_than_a_minute)
{
	struct weir_prefix prefix = {};
	struct weir_image_memory memory;
	_cleanup_(lists_end) struct lists lists = {};
	uint64_t load_ns;

	lists_begin(&lists);
	for (uint32_t i = 0; i < 2 * MILLION; i++) {
		prefix.family = i < MILLION ? 4 : 6;
		prefix.bits = prefix.family == 4 ? 32 : 128;
		million_address(i % MILLION, prefix.family, prefix.address);
		list_prefix(&lists, &prefix, i % 2);
	}
	qsort(lists.rig.ruleset->listed, 2 * MILLION, sizeof(struct weir_listed), compare_listed);
	load_ns = cpu_time_ns();
	rig_load(&lists.rig, true);
	load_ns = cpu_time_ns() - load_ns;
	weir_image_memory(lists.rig.image, weir_host_cpus(), &memory);
	print_message("2 x %u prefixes: compiled and loaded in %.2f s of CPU time, %.1f MB\n", MILLION, load_ns / 1e9,
		      memory.lists / 1e6);
	assert_true(load_ns < LOAD_CPU_NS_MAX);
	assert_true(memory.lists <= LISTS_BYTES_MAX);
	for (uint32_t i = 0; i < 2 * MILLION; i += 37) {
		uint8_t family = i < MILLION ? 4 : 6, address[16];

		million_address(i % MILLION, family, address);
		assert_int_equal(verdict_on(&lists, family, address), i % 2 ? WEIR_VERDICT_DENY : WEIR_VERDICT_ALLOW);
		million_address(i % MILLION + MILLION, family, address);
		assert_int_equal(verdict_on(&lists, family, address), WEIR_VERDICT_BLOCK);
	}
}

int main(void)
{
	rig_pin(0);
	return run_claims(NULL, NULL);
}
