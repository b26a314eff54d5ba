/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Descriptions of what runs. Only userspace writes and reads them: every command learns from them what is loaded, and a
 * reload which slots its rules keep. They survive a reload: weir_tables.def has their versions.
 */
#ifndef WEIR_ABI_DESCRIPTION_H
#define WEIR_ABI_DESCRIPTION_H

#include "weir_breakers.h"
#include "weir_connections.h"
#include "weir_generation.h"
#include "weir_hook.h"
#include "weir_sizes.h"
#include "weir_timed.h"
#include "weir_tokens.h"
#include "weir_warm_up.h"

/* One table of the instance (weir_tables.def). */
#define WEIR_TABLE_NAME_BYTES 24
#define WEIR_TABLES_MAX 64
struct weir_table_info {
	char name[WEIR_TABLE_NAME_BYTES]; /* of the map; empty: none */
	__u32 version;			  /* 0: a reload is replacing the table, or died while doing so */
	__u32 size;			  /* weir_config.sizes */
};

/*
 * The interfaces that an instance is wanted on, as `-i` names them: a name, a pattern (fnmatch(3)), or either of them
 * behind '!', which is an exception from the patterns.
 */
#define WEIR_WANTED_BYTES 32
#define WEIR_WANTED_MAX 256
struct weir_wanted {
	char word[WEIR_WANTED_BYTES]; /* empty: the list ends here */
};

/*
 * Which vector an interface has that comes while rules are in force, by its name: an array of these is pinned with the
 * generation's map `interfaces`, where its resources have `interface`. The head comes first, then names, which decide
 * by themselves, then patterns and exceptions, by the group of resources that has them, then the groups that an
 * interface may be of at once. Groups are those of equal words.
 */
#define WEIR_INTERFACE_GROUPS_MAX 256
enum weir_interface_case_kind {
	WEIR_CASE_HEAD = 1, /* another layout has another number */
	WEIR_CASE_NAME,
	WEIR_CASE_PATTERN,
	WEIR_CASE_GROUPS,
};
struct weir_interface_case {
	union {
		char word[WEIR_WANTED_BYTES];
		__u64 groups[WEIR_INTERFACE_GROUPS_MAX / 64]; /* a bit for each */
	};
	__u32 kind;
	__u32 group;  /* of a pattern */
	__u32 vector; /* of names and groups */
	__u32 map_id; /* in the head: the map `interfaces` to which the vectors belong */
};

/* settings.cluster, each with its terminating zero; empty: not in the file. */
#define WEIR_CLUSTER_URL_CHARS 128
#define WEIR_CLUSTER_WORD_CHARS 64
#define WEIR_CLUSTER_PATH_CHARS 256
struct weir_cluster_info {
	char redis[WEIR_CLUSTER_URL_CHARS];
	char name[WEIR_CLUSTER_WORD_CHARS];
	char host[WEIR_CLUSTER_WORD_CHARS];
	char password_file[WEIR_CLUSTER_PATH_CHARS];
	char key_file[WEIR_CLUSTER_PATH_CHARS];
	char ca_file[WEIR_CLUSTER_PATH_CHARS];
	/* What follows may change without ending the present sharing. */
	__u64 silent_ns; /* silentFor; all ones: never */
	__u32 stops;	 /* afterSilence */
	__u32 pad;
};

/*
 * Map `instance`, one element. All versions of weir find the fields up to `netns` where they are. The rest is laid out
 * as WEIR_ABI_VERSION says, which stands for this struct and nothing else.
 */
#define WEIR_PACES_IN 1
#define WEIR_PACES_OUT 2
#define WEIR_ASKS_INTERFACE 0x10u /* in `policies`: matches or keys use `interface` */
#define WEIR_IS_LAST_GOOD 0x20u	  /* ... the last good rule set is in force, since the rule files were wrong */
struct weir_instance_info {
	__u32 magic;
	__u32 abi_version;
	__u64 seed[16];
	__u64 generation;				/* 1 at attach, one more with every reload */
	__u64 attached_ns;				/* CLOCK_MONOTONIC */
	__u64 loaded_ns;				/* time of the last load */
	__u64 netns;					/* inode number of the network namespace of its interfaces */
	struct weir_table_info tables[WEIR_TABLES_MAX]; /* once read, our own come first, by enum weir_table_id */
	__u32 rule_slots;				/* capacities of the instance's maps */
	__u32 resource_slots;
	__u32 flows_per_cpu;
	__u32 policies; /* bit 0 drop_malformed, 1 unsupported, 2 non-IP, 3 unmatched; WEIR_ASKS_INTERFACE ... */
	__u32 spec_count;
	__u32 sharers_shift;
	__u32 controller_timeout_ms;
	__u64 connection_timeout_ms[WEIR_CONNECTION_CLASSES];
	__u32 allow_count; /* prefixes in the lists */
	__u32 deny_count;
	char memory_cgroup[256]; /* settings.memory; empty: of the whole system */
	__u64 tick_origin_ns;	 /* weir_config.tick_origin_ns of every load */
	__u32 ends_with_run;	 /* a `weir run` attached it; that one or the next one detaches it when it ends */
	__u32 observes;		 /* nothing is dropped: weir_config.observes */
	/* How to attach to an interface that appears. */
	struct weir_wanted wanted[WEIR_WANTED_MAX];
	__u32 attach_mode;    /* enum weir_attach_mode */
	__u32 allows_merging; /* in skb mode, merged packets may count as one */
	__u32 paces;	      /* WEIR_PACES_IN and _OUT: weir_config.paces and paces_out of the last load */
	__u32 non_ip_except_count;
	struct weir_ethertypes non_ip_except[WEIR_NON_IP_EXCEPT_MAX]; /* likewise */
	struct weir_cluster_info cluster;
	__u32 timed_evicts;	/* settings.timedWhenFull is evict */
	__u32 timed_part_count; /* settings.timedParts */
	struct weir_timed_part timed_parts[WEIR_TIMED_PARTS_MAX];
};

/* MemoryAdaptive, as the user wrote it. low_units applies while little memory is in use. */
struct weir_memory_adaptive {
	__u64 low_units, high_units;	       /* per interval; low_units > high_units > 0 */
	__u64 low_mark_bytes, high_mark_bytes; /* 0 < low_mark_bytes < high_mark_bytes */
};

enum weir_slot_state {
	WEIR_SLOT_FREE,
	WEIR_SLOT_USED,
	WEIR_SLOT_COOLING, /* its rule is gone; free after free_after_ns, when all its state has expired */
};

/* What must stay the same, beside its names, for a rule to keep its slot at a reload. */
struct weir_rule_identity {
	__u64 interval_ns;
	__u32 samples;
	__u32 window; /* enum weir_window_kind */
	__u32 counts_bytes;
	__u32 key_fields;
	__u8 source_bits[2]; /* prefix lengths of the key, [0] IPv4, [1] IPv6; 0 when not in the key */
	__u8 destination_bits[2];
	__u32 metric; /* enum weir_metric */
};

/* Map `rule_info`, by rule slot. */
struct weir_rule_info {
	char name[WEIR_NAME_BYTES];
	char resource_name[WEIR_NAME_BYTES];
	struct weir_rule_identity identity;
	__u64 threshold_micro; /* as the user wrote it, in millionths of a unit */
	__u64 threshold_word;  /* as last loaded */
	__u64 free_after_ns;   /* CLOCK_MONOTONIC */
	/* Since then, no row has noted a version of the other half (with WEIR_VERSION_NONE: any version). 0: never. */
	__u64 versions_since_ns;
	__u32 state; /* enum weir_slot_state */
	__u32 place; /* in weir_generation.rules */
	__u32 resource_slot;
	__u32 storage; /* enum weir_storage */
	__u32 spec;
	__u32 observes;
	__u32 is_shadow; /* a hidden rule, not the user's */
	__u32 strategy;	 /* enum weir_strategy, weir_behavior, weir_relation */
	__u32 behavior;
	__u32 relation;
	__u32 moves;   /* the controller pushes its threshold */
	__u32 cluster; /* enum weir_cluster: the controller pushes shares of its threshold */
	__u8 falls_back;
	__u8 on_block; /* enum weir_on_block; an older version left 0, as in pad, behind a falls_back of 32 bits */
	__u8 pad[2];
	__u32 override_count;
	__u32 overrides_destination; /* found by destination address, not source */
	__u32 occupies;		     /* packets may occupy later buckets of its window */
	__u64 overrides_digest;	     /* a digest of all overrides, in any order; 0: there are none */
	__u32 system;		     /* enum weir_system_metric; then it has no resource */
	__u8 is_bbr;
	__u8 aggregates; /* whenFull: aggregate */
	/* Only for output; an older version left zeros. */
	__u8 families;	   /* the families that its resource matches: bit 0 IPv4, bit 1 IPv6; 0: both */
	__u8 counts_whole; /* it has a key, but refResource has none: all its traffic counts */
	__u64 queueing_ns_max;
	__u32 penalty_ms; /* 0: none */
	__u32 penalty_ms_max;
	/* Until then shared sets may hold flows of this slot, of this rule or an earlier one (0: they never did). A
	 * rule that would find them does not get the slot.
	 */
	__u64 flows_until_ns;
	union {
		struct weir_warm_up warm_up; /* of WarmUp */
		struct weir_breaker_terms breaker;
		__u32 flows_slot_and_one; /* of rules that count connections: weir_connections_slot() */
	};
	struct weir_memory_adaptive memory;	 /* of MemoryAdaptive */
	char ref_resource_name[WEIR_NAME_BYTES]; /* for AssociatedResource; otherwise empty */
	struct weir_tokens tokens;		 /* for rules with tokens, as last loaded */
	__u64 burst_micro;			 /* ... and what a full bucket holds, in millionths of a unit */
};

/* A system rule that uses what the controller samples. */
static inline int weir_needs_samples(const struct weir_rule_info *rule)
{
	return rule->system == WEIR_SYSTEM_LOAD || rule->system == WEIR_SYSTEM_CPU_USAGE;
}

/* A system rule that uses handshakes or the number of open connections. */
static inline int weir_needs_handshakes(const struct weir_rule_info *rule)
{
	return rule->system == WEIR_SYSTEM_AVG_RT || rule->is_bbr;
}

/* Map `resource_info`, by resource slot. */
struct weir_resource_info {
	char name[WEIR_NAME_BYTES];
	__u64 free_after_ns;
	__u32 state;
	__u32 place;
	__u32 rule_count;
	__u32 directions; /* WEIR_MATCHES_IN and _OUT; an older version left 0, because it knew incoming packets only */
};

static inline __u32 weir_resource_directions(const struct weir_resource_info *resource)
{
	return resource->directions ?: WEIR_MATCHES_IN;
}

#endif
