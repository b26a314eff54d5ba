// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who knows the source and can choose 2^20 addresses, but not the secret, makes another's flow share its sets of rows
 * no more often than chance would. The hash is linear at its heart (bpf/packet/flow.h), so the addresses are chosen to
 * hurt that: in a row, at every distance, with differences that cancel. tests/bpf/frames_test says that the program's
 * hash is this one.
 */
#include <arpa/inet.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/random.h"
#include "base/util.h"
#include "tables/flow_hash.h"

#define ADDRESSES (1u << 20)
#define SETS (1u << 16) /* of narrow rows, by default */
#define SECRETS 12
#define VICTIMS 256 /* of each family, under each secret */

/* A chosen flow has two sets, and so has the victim: so many of the flows have one in common with it, by chance. */
#define MEETINGS_MEAN (4 * ADDRESSES / SETS)
/* Flows by chance would meet one victim that often once in 10^9 victims (64 and a Poisson distribution); there are
 * 34,000. The secrets are the same in every run, so that what passes once passes always.
 */
#define MEETINGS_MAX (2 * MEETINGS_MEAN)
/* All victims of a family together: 196,608 meetings are to be expected. By chance they are 2 % more once in 10^15
 * times.
 */
#define PERCENT_MORE_MAX 2

/* As the loader draws them: any numbers, of which the last two are odd. */
static void draw_secret(struct random *random, __u64 secret[16])
{
	for (int i = 0; i < 16; i++)
		secret[i] = random_u64(random);
	secret[14] |= 1;
	secret[15] |= 1;
}

/* ---- whom a sender may be ---- */

/* `number` in the words of an IPv6 source, as the hash reads them: their bits in the order of this machine. */
struct family {
	const char *name;
	bool is_ipv6;
	void (*fill)(uint32_t words[4], uint32_t number);
};

static void in_a_row(uint32_t words[4], uint32_t number)
{
	words[0] = htonl(0x0a000000 + number);
}

static void at_a_distance_of_4096(uint32_t words[4], uint32_t number)
{
	words[0] = htonl(number << 12);
}

static void words_in_a_row(uint32_t words[4], uint32_t number)
{
	words[0] = 0x01000000 + number;
}

static void hosts_of_a_network(uint32_t words[4], uint32_t number)
{
	words[0] = htonl(0x20010db8);
	words[3] = htonl(number);
}

static void networks_of_a_site(uint32_t words[4], uint32_t number)
{
	words[0] = htonl(0x20010000 | number >> 4);
	words[1] = htonl(number << 28);
}

/* Two words whose sum is always the same. */
static void differences_that_cancel(uint32_t words[4], uint32_t number)
{
	words[2] = 0x80000000 + number;
	words[3] = 0x80000000 - number;
}

/* The highest five bits of each word: a product then has but zeros below. */
static void highest_bits_of_all_words(uint32_t words[4], uint32_t number)
{
	for (int i = 0; i < 4; i++)
		words[i] = number >> 5 * i << 27;
}

static void lowest_bits_of_all_words(uint32_t words[4], uint32_t number)
{
	for (int i = 0; i < 4; i++)
		words[i] = number >> 5 * i & 31;
}

static void all_words_the_same(uint32_t words[4], uint32_t number)
{
	for (int i = 0; i < 4; i++)
		words[i] = number;
}

/* Multiples of a number that is no power of two: a lattice. */
static void at_an_odd_distance(uint32_t words[4], uint32_t number)
{
	words[0] = number * 0x9e3779b1u;
	words[1] = number * 0x85ebca6bu;
}

static void by_halves(uint32_t words[4], uint32_t number)
{
	words[0] = number & 0x3ff;
	words[3] = (number >> 10) * 0x00400000u;
}

static const struct family families[] = {
	{"IPv4, in a row", false, in_a_row},
	{"IPv4, at a distance of 4096", false, at_a_distance_of_4096},
	{"IPv4, words in a row", false, words_in_a_row},
	{"IPv6, hosts of a network", true, hosts_of_a_network},
	{"IPv6, networks of a site", true, networks_of_a_site},
	{"IPv6, differences that cancel", true, differences_that_cancel},
	{"IPv6, highest bits of all words", true, highest_bits_of_all_words},
	{"IPv6, lowest bits of all words", true, lowest_bits_of_all_words},
	{"IPv6, all words the same", true, all_words_the_same},
	{"IPv6, at an odd distance", true, at_an_odd_distance},
	{"IPv6, lowest and highest bits", true, by_halves},
};

/* ---- where they meet ---- */

struct place {
	uint32_t tag, set, other_set;
};

/* The chosen flows, by the first of their two sets. */
struct chosen {
	uint32_t in_set[SETS]; /* flows that may have a row there */
	uint32_t first[SETS];  /* one more than a flow's number; 0: none */
	uint32_t next[ADDRESSES];
	struct place place[ADDRESSES];
};

static struct place place_of(const __u64 secret[16], bool is_ipv6, const uint32_t words[4])
{
	struct weir_flow_key key = {.family = is_ipv6 ? 6 : 4};
	struct place place;
	uint64_t hash;

	memcpy(key.source, words, is_ipv6 ? 16 : 4);
	hash = weir_hash_flow(secret, 3, 1, &key);
	place.tag = hash >> 32 & ~(WEIR_SPECS_NARROW - 1u);
	place.set = hash & (SETS - 1);
	place.other_set = WEIR_OTHER_SET(place.set, place.tag, WEIR_NARROW_PAGE_SETS);
	return place;
}

static void place_all(struct chosen *chosen, const struct family *family, const __u64 secret[16])
{
	memset(chosen->in_set, 0, sizeof(chosen->in_set));
	memset(chosen->first, 0, sizeof(chosen->first));
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		struct place *place = &chosen->place[i];
		uint32_t words[4] = {};

		family->fill(words, i);
		*place = place_of(secret, family->is_ipv6, words);
		chosen->in_set[place->set]++;
		chosen->in_set[place->other_set]++;
		chosen->next[i] = chosen->first[place->set];
		chosen->first[place->set] = i + 1;
	}
}

/* One of the family's neighbours, or any other. */
static void fill_victim(const struct family *family, struct random *random, uint32_t words[4])
{
	uint32_t *word = &words[random_below(random, family->is_ipv6 ? 4 : 1)];

	family->fill(words, random_below(random, ADDRESSES));
	*word ^= random_percent(random, 50) ? 1u << random_below(random, 32) : (uint32_t)random_u64(random);
}

/* Is the victim a chosen flow itself? No other has the same row. */
static bool is_chosen(const struct chosen *chosen, const struct family *family, const struct place *victim,
		      const uint32_t victim_words[4])
{
	for (uint32_t i = chosen->first[victim->set]; i; i = chosen->next[i - 1]) {
		uint32_t words[4] = {};

		if (chosen->place[i - 1].tag != victim->tag)
			continue;
		family->fill(words, i - 1);
		assert_memory_equal(words, victim_words, sizeof(words));
		return true;
	}
	return false;
}

/* How often chosen flows have a set in common with victims, of which each is another's. */
static uint64_t meetings_of(const struct family *family, struct random *random, const __u64 secret[16])
{
	static struct chosen chosen;
	uint64_t sum = 0;
	int victims = 0;

	place_all(&chosen, family, secret);
	while (victims < VICTIMS) {
		uint32_t words[4] = {}, meetings;
		struct place victim;

		fill_victim(family, random, words);
		victim = place_of(secret, family->is_ipv6, words);
		if (is_chosen(&chosen, family, &victim, words))
			continue;
		meetings = chosen.in_set[victim.set] + chosen.in_set[victim.other_set];
		assert_in_range(meetings, 0, MEETINGS_MAX);
		sum += meetings;
		victims++;
	}
	return sum;
}

CLAIM(chosen_addresses_meet_a_flow_no_more_often_than_chance)
{
	const uint64_t expected = (uint64_t)SECRETS * VICTIMS * MEETINGS_MEAN;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct random random = {.state = 1};
		uint64_t meetings = 0;
		__u64 secret[16] = {};

		for (int j = 0; j < SECRETS; j++) {
			draw_secret(&random, secret);
			meetings += meetings_of(&families[i], &random, secret);
		}
		print_message("%s: %.4f of chance\n", families[i].name, (double)meetings / (double)expected);
		assert_true(meetings * 100 <= expected * (100 + PERCENT_MORE_MAX));
	}
}

RUN_CLAIMS(NULL, NULL)
