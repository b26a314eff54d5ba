/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is the packet's source blocked or allowed for a while? Timed entries (weir_timed.h) and the lists of the rule files
 * work as one list: the longest prefix decides, and on a tie, deny does. While there are no timed entries, a packet
 * costs two reads of words that are hardly ever written.
 */
#ifndef WEIR_BPF_TIMED_H
#define WEIR_BPF_TIMED_H

#include "clock.h"
#include "packet/lists.h"
#include "weir_timed.h"

WEIR_MAP(listed_prefixes, BPF_MAP_TYPE_ARRAY, 1, struct weir_listed_prefix, BPF_F_MMAPABLE);

/* Is an entry that ends at until_ns (0: there is none) in force at this packet's time? */
static __always_inline bool weir_is_in_force(struct weir_scratch *s, __u64 until_ns)
{
	return until_ns && weir_now_ns(s) < until_ns;
}

static __always_inline __u32 weir_timed_answer(struct weir_scratch *s, const struct weir_timed *timed)
{
	if (weir_is_in_force(s, READ_ONCE(timed->deny_until_ns)))
		return WEIR_LIST_DENIES;
	return weir_is_in_force(s, READ_ONCE(timed->allow_until_ns)) ? WEIR_LIST_ALLOWS : WEIR_LIST_NEITHER;
}

/* Copy the part of a source that its family uses. */
static __always_inline void weir_copy_source(__u8 ret_address[16], const struct weir_packet *pkt)
{
	__be32 *words = (__be32 *)ret_address;

	words[0] = pkt->source[0];
	words[1] = pkt->is_ipv6 ? pkt->source[1] : 0;
	words[2] = pkt->is_ipv6 ? pkt->source[2] : 0;
	words[3] = pkt->is_ipv6 ? pkt->source[3] : 0;
}

/* ---- where a file's list says something else ---- */

static __always_inline bool weir_listed_covers(const struct weir_listed_prefix *listed, __u64 high, __u64 low)
{
	__u32 bits = listed->bits;

	if (!bits)
		return true;
	if (bits <= 64)
		return !((high ^ listed->high) >> ((64 - bits) & 63));
	return high == listed->high && !((low ^ listed->low) >> ((128 - bits) & 63));
}

/* The length of the longest prefix of the files' lists that the packet's source is in; -1: it is in none. */
__noinline int weir_listed_bits(struct weir_scratch *s)
{
	__u32 first, count, at;
	__u64 high, low = 0;

	WEIR_GLOBAL(LISTS, s, -1);
	high = (__u64)bpf_ntohl(s->packet.source[0]) << 32;
	if (s->packet.is_ipv6) {
		high |= bpf_ntohl(s->packet.source[1]);
		low = (__u64)bpf_ntohl(s->packet.source[2]) << 32 | bpf_ntohl(s->packet.source[3]);
	}
	first = s->packet.is_ipv6 ? config.listed_ipv4 : 0;
	count = s->packet.is_ipv6 ? config.listed_ipv6 : config.listed_ipv4;
	/* These numbers are constants to the verifier, and it follows a search among a known number of elements into
	 * each. With more than some 2,000 prefixes, it gave up after its million instructions (Linux 6.18).
	 */
	FORGET(s->forgotten, first);
	FORGET(s->forgotten, count);
	/* `first` is then one more than the place of the last element that begins at or before the source. */
	for (int i = 0; i < WEIR_LIST_COUNT_BITS && count; i++) {
		__u32 half = count / 2;
		const struct weir_listed_prefix *listed;

		at = first + half;
		listed = bpf_map_lookup_elem(&listed_prefixes, &at);
		if (!listed)
			return -1;
		if (listed->high < high || (listed->high == high && listed->low <= low)) {
			first += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	for (int i = 0; i < 129 && first; i++) {
		const struct weir_listed_prefix *listed;

		at = first - 1;
		listed = bpf_map_lookup_elem(&listed_prefixes, &at);
		if (!listed || listed->is_ipv6 != s->packet.is_ipv6)
			return -1;
		if (weir_listed_covers(listed, high, low))
			return listed->bits;
		first = listed->parent;
	}
	return -1;
}

/* Does the list of the files decide, if it disagrees with a timed entry? */
static __always_inline bool weir_file_wins(struct weir_scratch *s, __u32 answer, __u32 bits)
{
	int listed_bits;

	if (answer == WEIR_LIST_DENIES && bits == (s->packet.is_ipv6 ? 128 : 32))
		return false; /* nothing is longer */
	listed_bits = weir_listed_bits(s);
	return answer == WEIR_LIST_DENIES ? listed_bits > (int)bits : listed_bits >= (int)bits;
}

/* ---- who is blocked, and how often ---- */

/* Beyond this many hits, a CPU counts its drops in steps. A flood from one network arrives on all CPUs, and each would
 * have to wait for the others to count. Chosen, not derived.
 */
#define WEIR_HITS_EXACT 4096
#define WEIR_HITS_STEP 64

/* Count a packet that this entry drops, but not for `weir explain`, which uses the same entries. */
static __always_inline void weir_count_hit(struct weir_scratch *s, struct weir_timed *timed)
{
	__u64 step = READ_ONCE(timed->hits) < WEIR_HITS_EXACT ? 1 : WEIR_HITS_STEP;

	if (config.is_virtual || (step > 1 && ++s->hits_skipped % WEIR_HITS_STEP))
		return;
	__sync_fetch_and_add(&timed->hits, step);
}

/* If a whole address is denied, the lists of the files do not matter, because no prefix is longer. */
__noinline int weir_ask_timed_addresses(struct weir_scratch *s)
{
	struct weir_timed_address key = {};
	struct weir_timed *timed;
	__u32 answer;

	WEIR_GLOBAL(TIMED_ENTRIES, s, WEIR_LIST_NEITHER);
	weir_copy_source(key.address, &s->packet);
	key.family = s->packet.is_ipv6 ? 6 : 4;
	timed = bpf_map_lookup_elem(&timed_addresses, &key);
	if (!timed)
		return WEIR_LIST_NEITHER;
	answer = weir_timed_answer(s, timed);
	if (answer == WEIR_LIST_DENIES)
		weir_count_hit(s, timed);
	return answer;
}

/* Find the longest prefix in force; some entries in the trie may have ended. `file` is the answer of the files' lists.
 */
__noinline int weir_ask_timed_prefixes(struct weir_scratch *s, __u32 file)
{
	struct weir_timed_prefix key = {};
	struct weir_timed *timed = NULL;
	__u32 answer = WEIR_LIST_NEITHER;

	WEIR_GLOBAL(TIMED_ENTRIES, s, WEIR_LIST_NEITHER);
	__builtin_memcpy(key.address, s->packet.source, sizeof(key.address));
	key.family = s->packet.is_ipv6 ? 6 : 4;
	key.key_bits = WEIR_TIMED_FIXED_BITS + (s->packet.is_ipv6 ? 128 : 32);
	for (int i = 0; i < 129; i++) {
		timed = bpf_map_lookup_elem(&timed_prefixes, &key);
		if (!timed)
			return WEIR_LIST_NEITHER;
		answer = weir_timed_answer(s, timed);
		if (answer != WEIR_LIST_NEITHER)
			break;
		if (!timed->bits)
			return WEIR_LIST_NEITHER;
		key.key_bits = WEIR_TIMED_FIXED_BITS - 1 + timed->bits;
	}
	if (!timed || answer == WEIR_LIST_NEITHER)
		return WEIR_LIST_NEITHER;
	if (file != WEIR_LIST_NEITHER && file != answer && weir_file_wins(s, answer, timed->bits))
		return file;
	if (answer == WEIR_LIST_DENIES)
		weir_count_hit(s, timed);
	return answer;
}

/* ---- all of it ---- */

/* The answer of timed entries and lists together. */
__noinline int weir_ask_timed(struct weir_scratch *s)
{
	__u32 zero = 0, answer = WEIR_LIST_NEITHER, file = WEIR_LIST_NEITHER;
	struct weir_timed_state *state = bpf_map_lookup_elem(&timed_state, &zero);
	__u64 tick_ns;

	WEIR_GLOBAL(TIMED_ENTRIES, s && state, WEIR_LIST_BROKEN);
	/* A tick is never ahead of the clock, so an entry that is over by the tick is over. */
	tick_ns = s->tick_ns;
	if (config.has_lists)
		file = weir_listed(&s->packet);
	if (file == WEIR_LIST_BROKEN)
		return file;
	if (READ_ONCE(state->addresses_until_ns) > tick_ns)
		answer = weir_ask_timed_addresses(s);
	if (answer == WEIR_LIST_ALLOWS && file == WEIR_LIST_DENIES &&
	    weir_file_wins(s, answer, s->packet.is_ipv6 ? 128 : 32))
		return file;
	if (answer == WEIR_LIST_NEITHER && READ_ONCE(state->prefixes_until_ns) > tick_ns)
		answer = weir_ask_timed_prefixes(s, file);
	return answer == WEIR_LIST_NEITHER ? file : answer;
}

/* Are there any timed entries in force, or were there? */
static __always_inline bool weir_has_timed(void)
{
	const struct weir_timed_state *state;
	__u32 zero = 0;

	if (!config.has_timed)
		return false;
	state = bpf_map_lookup_elem(&timed_state, &zero);
	return state && (READ_ONCE(state->addresses_until_ns) | READ_ONCE(state->prefixes_until_ns));
}

/* The verdict of a source that is in a list or a timed entry; WEIR_VERDICT_OPEN when it is in none. */
static __always_inline enum weir_verdict weir_ask_lists(struct weir_scratch *s)
{
	__u32 answer = WEIR_LIST_NEITHER;

	if (unlikely(weir_has_timed()))
		answer = weir_ask_timed(s);
	else if (config.has_lists)
		answer = weir_listed(&s->packet);
	switch (answer) {
	case WEIR_LIST_NEITHER:
		return WEIR_VERDICT_OPEN;
	case WEIR_LIST_ALLOWS:
		return WEIR_VERDICT_ALLOW;
	case WEIR_LIST_DENIES:
		return WEIR_VERDICT_DENY;
	default:
		return WEIR_VERDICT_ERROR;
	}
}

#endif
