/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a load is made of: configuration, rules, resources, vectors, classes, thresholds, overrides. Userspace fills it
 * in before it attaches the program. Afterwards nothing changes, except thresholds, which the controller writes. The
 * next load brings all of it again: layouts here may change freely.
 */
#ifndef WEIR_ABI_GENERATION_H
#define WEIR_ABI_GENERATION_H

#include "weir_breakers.h"
#include "weir_connections.h"
#include "weir_emission.h"
#include "weir_fair.h"
#include "weir_fields.h"
#include "weir_hook.h"
#include "weir_sizes.h"
#include "weir_state.h"
#include "weir_warm_up.h"

/* A threshold and its version share a word, so that one aligned store changes both. */
#define WEIR_THRESHOLD_BITS 56
#define WEIR_THRESHOLD_MASK ((1ull << WEIR_THRESHOLD_BITS) - 1)
/*
 * Versions of a rule's threshold: rows that know of another ask again. The highest bit of the eight is the program's
 * note that a flow has no override. NONE: so many thresholds have held within one window that a row might take
 * another for this one, so no row is believed (slots.c). Rows then note OBSOLETE, which no rule has.
 */
#define WEIR_VERSION_NONE 0u
#define WEIR_VERSIONS 126u
#define WEIR_VERSION_OBSOLETE 127u
#define WEIR_VERSION_PLAIN 0x80u
#define WEIR_THRESHOLD_WORD(units, version)                                                                            \
	(((__u64)(__u8)(version) << WEIR_THRESHOLD_BITS) | ((units)&WEIR_THRESHOLD_MASK))

/*
 * Map `thresholds`, by the place of a rule: a threshold that the controller moves. The word and the emission interval
 * must change together. So the controller first writes the emission interval to the copy that nobody reads. Then one
 * store of the word publishes both: the lowest bit of its version names the copy.
 */
struct weir_pushed {
	__u64 word; /* a WEIR_THRESHOLD_WORD */
	__u64 pad;
	union {					  /* [version & 1] */
		struct weir_emission emission[2]; /* of rules that throttle */
		struct weir_token_clock clock[2]; /* of rules with tokens */
	};
};

#define WEIR_KEY_BYTES(constant, name, member, part, form) +sizeof(((struct weir_flow_key *)0)->member)
_Static_assert(sizeof(struct weir_flow_key) ==
		       (0 WEIR_KEY_FIELDS(WEIR_KEY_BYTES)) + 1 /* family */ + sizeof(((struct weir_flow_key *)0)->zero),
	       "a member that is no field would be hashed as the packet before left it, and so would a hole");

/* What a rule limits. */
enum weir_metric {
	WEIR_METRIC_RATE,	 /* units per interval */
	WEIR_METRIC_CONCURRENCY, /* connections open at once */
	WEIR_METRIC_SIGNAL,	 /* a system rule: a signal of the whole host */
	WEIR_METRIC_REQUESTS,	 /* a circuit breaker: the outcomes of openings */
	WEIR_METRIC_SHARE,	 /* a hidden rule: what the children of a rule with fairBy offer */
};

/* What a rule asks before its window, and before it blocks a flow that is over its limit. */
enum weir_bar {
	WEIR_BAR_NONE,
	WEIR_BAR_PENALTY, /* is a penalty running? */
	WEIR_BAR_LEVEL,	  /* fairBy: the child's level; `shadow` is the place of the rule that describes children */
};

/* Whether the hosts of a cluster share a rule's threshold, and whose it is (Sentinel's thresholdType). */
enum weir_cluster {
	WEIR_CLUSTER_OFF,
	WEIR_CLUSTER_AVG_LOCAL, /* each host has it: together, the threshold times their number */
	WEIR_CLUSTER_GLOBAL,	/* all hosts' */
};

/* The kind of a limit: by what a rule evaluates a packet (weir_kinds.def). */
enum weir_kind_id {
#define KIND(identifier, ...) WEIR_KIND_##identifier,
#include "weir_kinds.def"
	WEIR_KIND_COUNT
};

/* Where a rule's threshold is. */
enum weir_moves {
	WEIR_MOVES_NOT,	  /* in the rule */
	WEIR_MOVES_ALONE, /* in map `thresholds`, by place: the controller moves it */
	WEIR_MOVES_SHARED /* in map `shares`, by slot: this host's share; the rule has the whole threshold */
};

/* weir_generation.rules, by the rule's place in the order of definition. The shadow windows follow: hidden rules
 * without a threshold, whose windows count what passed on a resource, for the rules that are associated with it.
 */
struct weir_rule {
	__u64 bucket_ns;
	__u64 base_bucket;
	__u64 source_hash[2]; /* of an IPv4 and an IPv6 source, without the address: the loader, which has the secret */
	__u32 slot;	      /* of the instance: counters, lone rows */
	__u16 spec;	      /* of the instance; part of the hash, too */
	__u16 resource;	      /* place in `resources` */
	__u8 storage;	      /* enum weir_storage */
	__u8 window;	      /* enum weir_window_kind */
	__u8 window_cells;
	__u8 counts_bytes;    /* a packet's batch is the bytes of its frame, not 1 */
	__u8 observes;	      /* counts what it would drop, and lets it pass */
	__u8 overflow;	      /* whenFull aggregate: 1 + WEIR_OVERFLOW_CLASS() for windows, 1 for others; evict: 0 */
	__u8 threshold_moves; /* enum weir_moves */
	__u8 asks_all;	      /* its window is longer than an epoch of the sharers cell: ask every CPU */
	__be32 source_mask4;  /* the part of an address that belongs to the key */
	__be32 destination_mask4;
	__be32 source_mask6[4];
	__be32 destination_mask6[4];
	__u64 threshold;	    /* a WEIR_THRESHOLD_WORD; if it is pushed, the safe value for a stale controller */
	__u16 place;		    /* of this rule */
	__u8 goes_by_ticks;	    /* as its window spec */
	__u8 needs_allowed;	    /* `threshold` is not enough: call weir_find_allowed() first */
	__u8 kind;		    /* enum weir_kind_id */
	__u8 warms_flows;	    /* the program itself warms up each flow */
	__u8 has_overrides;	    /* some flows have their own threshold: map `overrides` */
	__u8 overrides_destination; /* ... by destination address, not source */
	__u16 key_fields;	    /* enum weir_key_field, or-ed, and WEIR_KEY_TURNED; of an end by label only
				     * WEIR_KEY_LABEL */
	__u8 evaluates;		    /* for system rules: enum weir_work, or-ed */
	union {
		__u8 signal;	/* of kind SYSTEM: enum weir_system_metric, perhaps with WEIR_SIGNAL_BBR */
		__u8 unit_bits; /* of kind OCCUPY: of a cell; weir_occupy_unit_bits() */
	};
	__u32 shadow;		       /* place of an associated rule's shadow window, or of a shadow window's reader */
	__u32 penalty_ms;	       /* blockDurationInMs; 0: none */
	__u32 penalty_ms_max;	       /* blockDurationMaxInMs, or the same */
	__u64 queueing_ns_max;	       /* throttling: the longest wait; occupying: every wait is shorter */
	struct weir_emission emission; /* throttling: for `threshold` */
	__u32 flows_slot;  /* in the hash of its flows: `slot`, unless it shares connections (docs/connections.md) */
	__u16 shares_with; /* of rules that share connections: the place of the first; else this rule's */
	/* Distinguishes its top drops from others of the same flow: by whether it drops packets, or only would; and by
	 * its number among rules that share connections, whose flows have one hash.
	 */
	__u8 drops_mark;
	__u8 is_plain;	   /* bpf/window/shortcuts.h: several of these on one packet are asked at once */
	__u8 on_block;	   /* enum weir_on_block */
	__u8 label_set[2]; /* WEIR_KEY_LABEL: the set's number, [0] of the source, [1] of the destination */
	__u8 bar;	   /* enum weir_bar */
	__u8 is_fixed;	   /* bpf/window/shortcuts.h: until when a source over its limit stays so is remembered */
	__u8 pad[3];
	union {
		struct weir_warm_up warm_up; /* if warms_flows */
		struct weir_tokens tokens;   /* of rules with tokens */
		struct weir_breaker_terms breaker;
		struct weir_fair_terms fair; /* of rules that describe children */
	};
};
_Static_assert(sizeof(struct weir_rule) == 248, "");
_Static_assert(WEIR_KEY_FIELD_COUNT <= 10, "a bit for each field, below WEIR_KEY_LABEL and WEIR_KEY_TURNED");

/* The secret that flows are hashed with (bpf/packet/flow.h): two numbers for rule and window spec, one for each word of
 * the key, two for the bijection at the end.
 */
#define WEIR_SEED_KEY 2
#define WEIR_SEED_FINISH 14

/* By value: through a pointer clang would take the program's volatile seeds for the zeros that the object has. */
static inline __u64 weir_rule_hash(const struct weir_rule *rule, __u64 seed_0, __u64 seed_1)
{
	return seed_0 + (__u64)(rule->spec * WEIR_RULE_SLOTS_MAX + rule->flows_slot) * seed_1;
}

/* What rule, window spec and family of a key of just the source add to its hash. */
static inline __u64 weir_source_hash(const struct weir_rule *rule, const __u64 seed[], __u64 family)
{
	const int word = __builtin_offsetof(struct weir_flow_key, family) / sizeof(__u32);
	const int shift = __builtin_offsetof(struct weir_flow_key, family) % sizeof(__u32) * 8;

	return weir_rule_hash(rule, seed[0], seed[1]) + (family << shift) * seed[WEIR_SEED_KEY + word];
}

/* A flag in weir_rule.signal: drop only what exceeds the host's own pace. The threshold is in millionths. */
#define WEIR_SIGNAL_BBR 0x80u

/* Where a passing packet of a resource is counted, beside the rules' own windows. */
enum weir_shadow_kind {
	WEIR_SHADOW_WINDOW,  /* in the window of `rule` */
	WEIR_SHADOW_SECONDS, /* in `rule_seconds`, for `rule`, whose WarmUp the controller computes */
	WEIR_SHADOW_WARMING, /* in `warming_flows`, for `rule`, which warms up each flow */
};

struct weir_shadow {
	__u8 kind;	    /* enum weir_shadow_kind */
	__u8 skips_dropped; /* for one rule that observes: do not count what it would have dropped */
	__u16 rule;	    /* place in weir_generation.rules */
};
#define WEIR_RESOURCE_SHADOWS_MAX 32 /* on one resource */

/* weir_generation.resources, by place in the order of definition. */
struct weir_resource {
	__u32 slot; /* of the instance: counters */
	__u8 rule_count;
	__u8 is_both; /* it matches incoming and outgoing packets */
	__u8 shadow_count;
	__u8 is_prioritized;		   /* its packets occupy */
	__u16 rule[WEIR_PACKET_RULES_MAX]; /* ascending */
	struct weir_shadow shadow[WEIR_RESOURCE_SHADOWS_MAX];
};

/* A set of resources, one bit each (weir_generation.place says whose). `summary` says which words are not zero. */
#define WEIR_VECTOR_WORDS (WEIR_RESOURCES_MAX / 64)
struct weir_vector {
	__u64 summary;
	__u64 word[WEIR_VECTOR_WORDS];
};

/* Beside the fields of matches: where there are system rules, packets differ by enum weir_work. */
#define WEIR_COMPARE_WORK (WEIR_MATCH_ALL + 1)

/* In weir_config.asked_fields, by the loader: what few loads ask for, so that others are asked once for all of it. */
#define WEIR_ASKS_HARNESS (WEIR_MATCH_ALL + 1)
#define WEIR_ASKS_PARSER (WEIR_ASKS_HARNESS << 1) /* without WEIR_SHORTCUT_PARSE, or for WEIR_MATCH_PARSER */
#define WEIR_ASKS_LISTS (WEIR_ASKS_HARNESS << 2)  /* or timed entries */

/* Fields that only the general parser reads: in weir_parse_usual() they would cost loads that do not use them. */
#define WEIR_MATCH_PARSER WEIR_MATCH_IP_LENGTH

/* Fields that resources rarely ask about. */
#define WEIR_MATCH_SELDOM (WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_TCP_FLAGS | WEIR_MATCH_ICMP_TYPE | WEIR_MATCH_VLAN)

enum weir_fragment {
	WEIR_FRAGMENT_NONE, /* a whole packet, or an IPv6 atomic fragment */
	WEIR_FRAGMENT_FIRST,
	WEIR_FRAGMENT_LATER, /* has no ports, flags or type */
	WEIR_FRAGMENT_KINDS
};

/* For each value of a field: the number of the vector of resources that accept it. Every entry is valid, even of fields
 * that are not in use.
 */
struct weir_classes {
	__u16 kind[WEIR_DIRECTIONS][2][WEIR_FRAGMENT_KINDS][256]; /* [][0 IPv4, 1 IPv6][fragment][protocol] */
	__u16 tcp_flags[WEIR_BYTE_NONE + 1];
#define WEIR_CLASS_ARRAY(constant, name, member, highest, none, who) __u16 member[(none) + 1];
	WEIR_RANGE_FIELDS(WEIR_CLASS_ARRAY)
};

/* With up to 64 resources a vector is one word, and a load mostly has fewer vectors than this. */
#define WEIR_ONLY_WORDS 4096

/* The tables that every packet reads. They are global data of the program (.bss), so that no look-up is needed. Filled
 * in before the program is loaded.
 */
struct weir_generation {
	struct weir_classes classes;
	__u64 only_word[WEIR_ONLY_WORDS]; /* if weir_config.has_only_words: the word of each vector */
	__u16 place[WEIR_RESOURCES_MAX];  /* for each bit of a vector: a place in `resources` */
	struct weir_resource resources[WEIR_RESOURCES_MAX];
	struct weir_rule rules[WEIR_RULES_MAX];
	/* By place, if weir_config.has_excepts: a vector of PLACES, the resources that this one excepts; 0: none.
	 * Their bits are below this resource's bit, so the program knows whether the packet belongs to them.
	 */
	__u16 except[WEIR_RESOURCES_MAX];
	/* By the number of a set in flow keys, [0] IPv4, [1] IPv6: an entry as in struct weir_prefix_node, but with
	 * numbers of labels where that has vectors'.
	 */
	__u32 label_root[WEIR_KEY_SETS_MAX + 1][2];
};

/* Key of the trie `overrides`, whose value is a struct weir_override_units. */
struct weir_override_key {
	__u32 prefix_bits; /* 40 for place and family, plus the prefix length */
	__u32 place;	   /* of the rule */
	__u8 family;	   /* 4 or 6; 0: by label */
	__u8 address[16];  /* IPv4 in the first four; a label's hash in the first eight */
	__u8 zero[3];	   /* never compared */
};
#define WEIR_OVERRIDE_FIXED_BITS 40
#define WEIR_OVERRIDE_LABEL_BITS (WEIR_OVERRIDE_FIXED_BITS + 64)

struct weir_override_units {
	__u64 units;
	union {
		struct weir_emission emission; /* throttling */
		struct {
			struct weir_token_rate rate;
			__u64 capacity;
			__u32 batch_max, mark;
		} tokens; /* as in struct weir_tokens; the clock starts at 0, and the unit is the rule's */
	};
};

/* What the program leaves out on request, without another verdict (bpf/window/shortcuts.h, and where the comment
 * says).
 */
enum weir_shortcut {
	WEIR_SHORTCUT_PARSE = 1 << 0,  /* frames of the usual shape: bpf/packet/parse.h */
	WEIR_SHORTCUT_MATCH = 1 << 1,  /* what the previous packet matched: bpf/packet/match.h */
	WEIR_SHORTCUT_SOURCE = 1 << 2, /* a source that was over its limit just now */
	WEIR_SHORTCUT_FETCH = 1 << 3,  /* all lines of a flow at once */
	WEIR_SHORTCUT_OVER = 1 << 4,   /* a row remembers that its flow is over its limit */
	WEIR_SHORTCUT_LEASE = 1 << 5,  /* spend what the flow has leased */
	WEIR_SHORTCUT_FIRST = 1 << 6,  /* a flow's first packet in a bucket */
	WEIR_SHORTCUT_NOTE = 1 << 7,   /* a note says that a flow is over its limit: bpf/window/notes.h */
	WEIR_SHORTCUTS_ALL = (1 << 8) - 1,
};

/* EtherTypes in host order, both ends included. */
#define WEIR_NON_IP_EXCEPT_MAX 16
struct weir_ethertypes {
	__u16 low, high;
};

/* The tables of the instance, and last those of a generation that have a version (weir_tables.def). */
enum weir_table_id {
#define TABLE(identifier, ...) WEIR_TABLE_##identifier,
#include "weir_tables.def"
#undef TABLE
	WEIR_TABLE_COUNT,
	WEIR_TABLE_NONE = WEIR_TABLE_COUNT,
	WEIR_STATE_TABLE_COUNT = WEIR_TABLE_THRESHOLDS,
};

/* .rodata of the program. The verifier knows it, and removes what is switched off. */
struct weir_config {
	__u64 seed[16];		 /* the secret that flows are hashed with; the same until detach */
	__u64 tick_ns;		 /* length of a tick; in the harness 1 */
	__u64 tick_origin_ns;	 /* CLOCK_MONOTONIC when jiffies were zero, modulo 2^64; in the harness 0 */
	__u64 load;		 /* random, not 0: which load this is (bpf/scratch.h) */
	__u64 program;		 /* which build of the programs this is (program/object_internal.h) */
	__u32 shortcuts;	 /* enum weir_shortcut, or-ed; 0: none */
	__u32 observes;		 /* everything is evaluated and counted, nothing is dropped */
	__u32 is_virtual;	 /* replay and tests: clock and interface come from map `harness` */
	__u32 is_weakly_ordered; /* the machine reorders plain stores and loads, so they need fences */
	__u32 cpus;		 /* possible CPUs */
	__u32 resource_count;	 /* 0: nothing matches */
	__u32 vector_words;	 /* words of a vector in use */
	__u32 has_only_words;	 /* a vector is one word, and weir_generation.only_word has it; set by the loader */
	__u32 match_fields;	 /* enum weir_match_field, or-ed */
	__u32 source_root[2];	 /* [0] IPv4, [1] IPv6: an entry as in struct weir_prefix_node */
	__u32 destination_root[2];
	__u32 interface_default;       /* vector number for interfaces not listed */
	__u32 sizes[WEIR_TABLE_COUNT]; /* of the tables (weir_tables.def); 0: no such table */
	__u32 sharers_shift;	       /* an epoch is 2^this ns */
	__u32 overflow_classes;	       /* classes with a rule that says `whenFull: aggregate`, one bit each */
	__u32 has_overflow;	       /* such a rule has tokens or TATs */
	__u32 drop_malformed;
	__u32 drop_unsupported;
	__u32 drop_non_ip;
	__u32 non_ip_except_count;
	struct weir_ethertypes non_ip_except[WEIR_NON_IP_EXCEPT_MAX]; /* which get the opposite action */
	__u32 drop_unmatched;
	/* what some rule of the load needs; folding removes the rest */
	__u32 asked_fields; /* enum weir_match_field, or-ed: what a match, a key or a kind reads; WEIR_ASKS_* */
	__u32 has_moving;   /* WEIR_MOVES_ALONE */
	__u32 kinds;	    /* of its rules: one bit for each enum weir_kind_id */
	__u32 storages;	    /* of its windows: one bit for each enum weir_storage */
	__u32 packet_rules; /* the most rules that meet on one packet */
	__u32 packet_resources;
	__u32 has_excepts;	/* some resource is without others (weir_generation.except) */
	__u32 label_first;	/* if some flow key has WEIR_KEY_LABEL, else 0: weir_prefixes.h */
	__u32 asks_out_of_line; /* some rule is not a packet's first, or has a bar, or has no narrow rows */
	__u32 has_fixed;	/* some rule is_fixed */
	__u32 has_shadows;
	__u32 warms_flows;
	__u32 has_overrides;
	__u32 paces;		 /* throttling: pace. An incoming packet that must wait gets its departure time */
	__u32 penalises;	 /* some rule has penalties */
	__u32 bars;		 /* some rule has a bar (enum weir_bar) */
	__u32 counts_flow_drops; /* drops are counted by flow */
	__u32 has_observers;	 /* some rule observes */
	/* allow and deny lists: weir_lists.h */
	__u32 has_lists;
	__u32 list_levels; /* one bit for each enum weir_list_level that has groups */
	__u32 list_salt;
	__u32 list_bucket_bits; /* there are 2^this buckets */
	/* timed entries: weir_timed.h */
	__u32 has_timed;
	__u32 listed_ipv4; /* in listed_prefixes: this many of IPv4 come first, then those of IPv6 */
	__u32 listed_ipv6;
	__u32 pad4;
	/* system rules: places 0 to system_rules - 1; their connections are counted by a hidden rule */
	__u32 system_rules;
	__u32 has_tracker;
	__u32 tracker;	       /* its place */
	__u32 compared_fields; /* match_fields and WEIR_COMPARE_WORK: what the match memory compares */
	/* connections */
	__u64 connection_step_ns[WEIR_CONNECTION_CLASSES];
	/* circuit breakers */
	__u32 ring_shift; /* a ring has 2^this groups */
	__u32 lone_ring_shift;
	__u32 rings_are_unordered; /* a request may be due before one that came earlier */
	__u32 has_shares;	   /* WEIR_MOVES_SHARED */
	__u32 shares_flows;	   /* ... of a rule with a flow key */
	__u32 shares_connections;  /* some rules count the same ones (weir_rule.shares_with) */
	__u64 request_timeout_ns;  /* after this much silence, a request has failed */
	/* outgoing packets, at tc */
	__u32 limits_out;  /* some resource is `out` or `both` */
	__u32 limits_both; /* some resource is `both` */
	__u32 paces_out;   /* like `paces`, for outgoing packets: the fq of the device delays them */
	__u32 acts_after;  /* there is work after an incoming packet's verdict: `paces`, `answered_count`, `answers` */
	/* Answers to blocked packets: one bit for each enum weir_on_block of its rules. A CPU takes so many at once,
	 * and portions are so far apart.
	 */
	__u32 answers;
	__u32 answer_portion[WEIR_ANSWER_BUCKETS];
	__u64 answer_portion_ns[WEIR_ANSWER_BUCKETS];
	/* The places of breakers on `out`, which learn from incoming answers. */
	__u32 answered_count;
	__u32 answered[WEIR_ANSWERED_MAX];
};

static inline __u32 weir_asks_beside_fields(const struct weir_config *config)
{
	return (config->is_virtual ? WEIR_ASKS_HARNESS : 0) |
	       (config->shortcuts & WEIR_SHORTCUT_PARSE && !(config->asked_fields & WEIR_MATCH_PARSER)
			? 0
			: WEIR_ASKS_PARSER) |
	       (config->has_lists || config->has_timed ? WEIR_ASKS_LISTS : 0);
}

#endif
