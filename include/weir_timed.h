/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Timed entries: addresses and prefixes that an operator blocks or allows for a while (`weir block`, `weir allow`),
 * beside the allow and deny lists of the rule files. They belong to the instance, so a reload keeps them. Userspace
 * writes them. The program compares their times, so no process is needed when one ends.
 */
#ifndef WEIR_ABI_TIMED_H
#define WEIR_ABI_TIMED_H

#include <linux/types.h>

#define WEIR_REASON_BYTES 64 /* with its terminating zero; chosen, not derived */

/* The program that gave an order, by its name: letters, digits, '-', '_' and '.'. Empty: "hand". */
#define WEIR_BY_BYTES 16 /* with its terminating zero */
#define WEIR_BY_HAND "hand"

/* settings.timedParts: as many addresses, and no more, are one program's. The others share the rest of the table. */
struct weir_timed_part {
	char by[WEIR_BY_BYTES]; /* WEIR_BY_HAND is written out here */
	__u32 addresses;
};
#define WEIR_TIMED_PARTS_MAX 16

/* Map `timed_state`, one element: the times (CLOCK_MONOTONIC) from which on no entry of each sort is in force; 0: there
 * never was one. Raised before an entry is written, and never lowered. The counters are userspace's alone.
 */
struct weir_timed_state {
	__u64 addresses_until_ns;
	__u64 prefixes_until_ns;
	__u64 evicted; /* addresses whose block ended early, to make room */
	__u64 refused; /* orders that found no room */
};

/* Key of the hash map `timed_addresses`. */
struct weir_timed_address {
	__u8 address[16]; /* network order; IPv4 in the first four, the others zero */
	__u32 family;	  /* 4 or 6 */
};

/* Key of the trie `timed_prefixes`: shorter prefixes than whole addresses. */
struct weir_timed_prefix {
	__u32 key_bits; /* WEIR_TIMED_FIXED_BITS, plus the prefix length */
	__u8 family;
	__u8 address[16];
	__u8 zero[3]; /* never compared */
};
#define WEIR_TIMED_FIXED_BITS 8
#define WEIR_TIMED_PREFIXES_MAX 4096 /* because large tries are slow */

/*
 * Their value. Each of the two orders has its own time; while both hold, the packet is denied. `hits` is the program's
 * word, and userspace's when it writes an entry: what the program counts in that instant is lost.
 */
struct weir_timed {
	__u64 deny_until_ns; /* CLOCK_MONOTONIC; 0: not denied */
	__u64 allow_until_ns;
	__u64 hits; /* packets dropped since the deny entry came into force */
	__u32 bits; /* prefix length */
	__u32 pad;
	/*
	 * Three texts, each ended by a zero: the reason of the order to deny, who gave it, and who gave the order to
	 * allow. What is left is zero. So it has been since only the reason was there: then "hand" gave the orders.
	 */
	char reason[WEIR_REASON_BYTES];
};

/*
 * Map `listed_prefixes`, of the generation: the prefixes of the files' lists, sorted by family, address and length. The
 * lists in which packets are looked up do not record the length of the prefix that decided. If a timed entry and a
 * file's list disagree, the length is looked up here.
 */
struct weir_listed_prefix {
	__u64 high, low; /* the address in host order; IPv4 in the upper half of `high` */
	__u32 parent;	 /* one more than the place of the longest prefix that encloses it; 0: none does */
	__u8 bits;
	__u8 is_ipv6;
	__u8 pad[2];
};

#endif
