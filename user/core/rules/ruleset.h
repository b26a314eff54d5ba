/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room rules: from rule files to struct weir_ruleset. yaml.h reads YAML, scalars.h reads single words and numbers, and
 * parse.h names the files that read the parts of a rule file. Other rooms need this header alone, and scalars.h to
 * print the words of a rule file.
 *
 * A rule set as the user wrote it: read from one or several files (parse.c), merged and validated.
 * Nothing here knows of maps or kernels; compile/compile.h turns it into what is loaded. Order is the order of
 * the files on the command line, then the position in the file.
 */
#ifndef WEIR_RULES_RULESET_H
#define WEIR_RULES_RULESET_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "weir_abi.h"
#include "weir_hook.h"

struct weir_range {
	uint32_t low, high; /* both included */
};

struct weir_prefix {
	uint8_t family; /* 4 or 6 */
	uint8_t bits;
	uint8_t address[16]; /* network order, IPv4 in the first four; host bits are zero */
};

/* All flags in `set` must be set and all in `clear` must not (bits as in the TCP header's byte 13). */
struct weir_tcp_flags {
	uint8_t set, clear;
};

/* A list with count 0 means: no condition. */
struct weir_match {
	struct weir_prefix *source;
	size_t source_count;
	struct weir_prefix *destination;
	size_t destination_count;
#define WEIR_MATCH_RANGES(constant, name, member, highest, none, who)                                                  \
	struct weir_range *member;                                                                                     \
	size_t member##_count;
	WEIR_RANGE_FIELDS(WEIR_MATCH_RANGES) /* source_port, source_port_count and so on */
	struct weir_tcp_flags *tcp_flags;
	size_t tcp_flags_count;
	char (*interface)[WEIR_WANTED_BYTES]; /* words (interface_words.h) */
	size_t interface_count;
	bool has_protocol;
	uint8_t protocol[32]; /* a bit for each number: protocol[n / 8] >> n % 8 */
	uint8_t families;     /* 0: no condition. Else bit 0 IPv4, bit 1 IPv6 */
	uint8_t fragments;    /* 0: no condition. Else a bit for each enum weir_fragment */
	uint8_t directions;   /* WEIR_MATCHES_IN and _OUT; 0: the file does not say, and it is IN */
};

/* The flow key; prefix lengths of addresses that are in it. fields 0: the resource is one flow. */
struct weir_flow {
	uint32_t fields; /* enum weir_key_field, or-ed, with WEIR_KEY_RELATIVE() of what is called `remote` ... */
	uint8_t source_bits[2]; /* [0] of IPv4 (at most 32), [1] of IPv6 (at most 128); 0 when not in the key */
	uint8_t destination_bits[2];
};

/* Which way its packets go: WEIR_MATCHES_IN, _OUT or both. */
static inline uint8_t weir_match_directions(const struct weir_match *match)
{
	return match->directions ?: WEIR_MATCHES_IN;
}

#define WEIR_MATCHES_BOTH (WEIR_MATCHES_IN | WEIR_MATCHES_OUT)

/*
 * A key as the program has it for packets of these directions: members are of their remote and their local end
 * (include/weir_fields.h). What comes in has its source at the remote end, what goes out at the local one; of both, it
 * depends on the packet.
 */
struct weir_flow weir_flow_by_ends(const struct weir_flow *flow, uint8_t directions);

/* Some of its fields are a packet's own source or destination, whichever end that is. */
static inline bool weir_names_own_ends(const struct weir_flow *flow)
{
	return flow->fields & WEIR_KEY_ENDS & ~(flow->fields >> 16);
}

/* Of a packet of these directions, both keys name the same flow. */
bool weir_is_same_key(const struct weir_flow *left, const struct weir_flow *right, uint8_t directions);

/* Packets of TCP can be in it. */
bool weir_match_holds_tcp(const struct weir_match *match);

/* The field by which it takes only some packets of a connection; NULL: there is none. */
const char *weir_match_splits_connections(const struct weir_match *match);

struct weir_ruleset_resource {
	char *name;
	struct weir_match match;
	struct weir_flow flow;
	bool is_prioritized; /* its packets occupy, of all rules that can be occupied */
	struct weir_place place;
};

enum weir_strategy { WEIR_STRATEGY_DIRECT, WEIR_STRATEGY_WARM_UP, WEIR_STRATEGY_MEMORY_ADAPTIVE };
enum weir_behavior { WEIR_BEHAVIOR_REJECT, WEIR_BEHAVIOR_THROTTLING };
enum weir_relation { WEIR_RELATION_CURRENT, WEIR_RELATION_ASSOCIATED };

/* What a rule's kind is found by (kind/kind.h). */
struct weir_choices {
	enum weir_metric metric;
	enum weir_behavior behavior;
	enum weir_relation relation;
	bool occupies;
	enum weir_window_kind window;
};

#define WEIR_MICRO 1000000ull /* thresholds are exact decimals of at most six places */

/* A threshold of their own for the flows under a prefix; the longest prefix of a rule wins. */
struct weir_override {
	struct weir_prefix prefix;
	uint64_t threshold_micro;
	struct weir_place place;
};

#define WEIR_OVERRIDES_MAX 100000 /* of one rule */

/* WarmUp: as Sentinel has them. */
struct weir_warm_up_fields {
	uint32_t period_s;    /* 1 to 31,536,000, a year */
	uint32_t cold_factor; /* 2 and more; 3 when the file says 0 or nothing */
};

/* MemoryAdaptive: thresholds in units per interval, low_units at little memory in use. */
struct weir_memory_fields {
	uint64_t low_units, high_units;		  /* low_units > high_units > 0 */
	uint64_t low_mark_bytes, high_mark_bytes; /* 0 < low_mark_bytes < high_mark_bytes */
};

/* A circuit breaker, which has its threshold where all rules have it: a ratio, or a number of requests. */
struct weir_breaker_fields {
	enum weir_breaker_strategy strategy;
	uint64_t interval_ns;  /* a whole number of ms */
	uint32_t buckets;      /* 1 to WEIR_BREAKER_BUCKETS_MAX; divides the interval's ms */
	uint64_t retry_ns;     /* above 0 */
	uint32_t min_requests; /* at least 1 */
	uint64_t max_rt_ns;    /* SlowRequestRatio: above 0; else 0 */
	uint32_t probes;       /* good ones that close it; 0: one, and no other request until then */
};

#define WEIR_NO_RESOURCE SIZE_MAX

/* settings.cluster, by enum weir_cluster_field; NULL: the file does not say. Each value is right. */
enum weir_cluster_field {
	WEIR_CLUSTER_REDIS,	    /* where the store is: rules/store_url.h */
	WEIR_CLUSTER_NAME,	    /* of the hosts together */
	WEIR_CLUSTER_HOST,	    /* of this host; default: its host name */
	WEIR_CLUSTER_PASSWORD_FILE, /* whose first line is the store's password */
	WEIR_CLUSTER_KEY_FILE,	    /* whose first line is the key that names flows in the store */
	WEIR_CLUSTER_CA_FILE,	    /* certificates of who may vouch for the store; default: whom the system trusts */
	WEIR_CLUSTER_SILENT_FOR,    /* how long the part of a silent host is reserved; default: an hour */
	WEIR_CLUSTER_AFTER_SILENCE, /* keep (default) or stop: what it does then */
	WEIR_CLUSTER_FIELDS
};

/* silentFor, which is right; UINT64_MAX: never. */
uint64_t weir_cluster_silent_ns(const char *word);

#define WEIR_SYSTEM_RULES_MAX WEIR_PACKET_RULES_MAX /* a packet meets all of them */

struct weir_ruleset_rule {
	char *name;			/* default RESOURCE#N */
	size_t resource;		/* index into resources; of a system rule WEIR_NO_RESOURCE */
	bool has_own_key;		/* `per`: its flows are not its resource's */
	struct weir_flow own_key;	/* ... but these; else zero */
	enum weir_system_metric system; /* of a system rule; these come before all others */
	bool is_bbr;			/* ... of Load and CpuUsage: BBR */
	enum weir_metric metric;  /* Concurrency goes by connections, a breaker by requests: docs/connections.md */
	uint64_t threshold_micro; /* units per interval, in millionths; 0 for MemoryAdaptive, which has none */
	uint64_t interval_ns;
	uint32_t samples;
	enum weir_window_kind window;
	bool counts_bytes;
	bool observes;
	bool aggregates; /* whenFull: flows without a place anywhere share one limit; else they start over */
	bool occupies; /* it can, and may meet packets that occupy: weir_rule_can_occupy(), weir_meets_prioritized() */
	enum weir_strategy strategy;
	enum weir_behavior behavior;
	enum weir_relation relation;
	size_t ref_resource;	     /* AssociatedResource: whose window is read; else WEIR_NO_RESOURCE */
	uint64_t burst_micro;	     /* tokens: what a bucket holds, in millionths; 0: weir_tokens_burst_micro() */
	uint64_t burst_beyond_micro; /* ... where that is 0: what it holds beyond the threshold, an override's too */
	bool has_burst_beyond;	     /* it was said, be it 0 */
	uint64_t queueing_ms_max;    /* Throttling: the longest wait; at most 2^32 - 1 */
	uint32_t penalty_ms;	     /* Reject: how long a flow is blocked that was; 0: it is not penalised */
	uint32_t penalty_ms_max;     /* the longest; at least penalty_ms */
	struct weir_warm_up_fields warm_up; /* WarmUp only, else zero */
	struct weir_memory_fields memory;   /* MemoryAdaptive only, else zero */
	struct weir_breaker_fields breaker; /* a circuit breaker only, else zero */
	uint32_t override_field;	    /* WEIR_KEY_SOURCE or WEIR_KEY_DESTINATION, whose prefixes these are */
	bool overrides_end;		    /* ... called `remote` or `local` */
	struct weir_override *overrides;    /* in the order of the file, no prefix twice */
	size_t override_count;
	enum weir_cluster cluster; /* clusterMode: the hosts of settings.cluster share its threshold */
	bool falls_back;	   /* ... and keep a part when they cannot reach the store: fallbackToLocalWhenFail */
	struct weir_place place;
	struct weir_place high_mark_place; /* MemoryAdaptive: for weir_ruleset_check_memory */
};

struct weir_settings {
	uint32_t flows_per_cpu;		  /* as written; default 262144 */
	bool drop_malformed;		  /* default true */
	bool drop_unsupported;		  /* default true */
	bool drop_non_ip;		  /* default false */
	struct weir_range *non_ip_except; /* EtherTypes of which the opposite holds */
	size_t non_ip_except_count;	  /* at most WEIR_NON_IP_EXCEPT_MAX */
	bool drop_unmatched;		  /* default false */
	bool observes;			  /* nothing is dropped; default false */
	bool paces;			  /* throttling: pace; default police */
	char *memory_cgroup;		  /* memory: cgroup:PATH, without the "cgroup:"; NULL: the system's memory */
	uint32_t controller_timeout_ms;	  /* a heartbeat older than this is stale: 1000 to 60000, default 3000 */
	uint32_t occupy_timeout_ms;	  /* a unit is occupied for shorter waits only: 0 to 86400000, default 500 */
	uint32_t timed_entries;		  /* addresses for weir block and weir allow; default 65536; 0: none */
	uint32_t connections;		  /* that all Concurrency rules together can track; default 131072 */
	uint32_t connection_flows;	  /* that can have connections; default a quarter of these */
	bool derives_connection_flows;	  /* they are the default */
	char *cluster[WEIR_CLUSTER_FIELDS];
	uint32_t ring_groups; /* of a breaker, a power of two; 0: the default. No file says it: replay asks for more */
	/* silence that ends a connection: by default 10,000, 600,000, 120,000 and 10,000 */
	uint64_t connection_timeout_ms[WEIR_CONNECTION_CLASSES];
};

/* What `settings` calls the time-outs, by enum weir_connection_class. */
extern const char *const *const weir_connection_timeout_names;

/* An entry of `allow:` or `deny:`, by source address. The longest prefix wins, deny on a tie. */
struct weir_listed {
	struct weir_prefix prefix;
	bool denies;
};

#define WEIR_LISTED_MAX 4000000 /* of all files */

struct weir_ruleset {
	struct weir_settings settings;
	struct weir_ruleset_resource *resources;
	size_t resource_count;
	struct weir_ruleset_rule *rules;
	size_t rule_count;
	struct weir_listed *listed; /* sorted by family, address, bits; no prefix twice: in both lists, only the deny */
	size_t listed_count;
	char **file_names; /* what the places point to */
	char **file_texts; /* what was read; NULL: it could not be */
	size_t file_count;
	char **list_names; /* files that were named with '@': their paths from here */
	size_t list_count;
};

/* Can its window be occupied, if packets that it evaluates are prioritised? (docs/semantics.md, 10) */
bool weir_rule_can_occupy(const struct weir_ruleset_rule *rule);

/* Can packets of this resource be prioritised: because it is, or because they may belong to another one that is? False
 * only where their protocols, families or destination ports keep them apart.
 */
bool weir_meets_prioritized(const struct weir_ruleset *ruleset, const struct weir_ruleset_resource *resource);

/*
 * Read and validate rule files, in this order. All mistakes of all files land in *diag. On success
 * (0) the caller owns *ret_ruleset, and *diag may hold warnings; otherwise -errno and *ret_ruleset is
 * untouched. Reads nothing but the files named ("-" is standard input, once), and those that their
 * allow and deny lists name with '@'.
 */
int weir_ruleset_read(const char *const *paths, size_t path_count, struct weir_ruleset **ret_ruleset,
		      struct weir_diag *diag);

/* The same of one rule file that is a text already; `name` is what messages call it. */
int weir_ruleset_parse(const char *name, const char *text, size_t bytes, struct weir_ruleset **ret_ruleset,
		       struct weir_diag *diag);

/*
 * Does the machine have the memory that MemoryAdaptive rules speak of? A high water mark above `total_bytes`
 * would never be reached, and is a mistake (docs/semantics.md, 7): -EINVAL, all of them in *diag. 0 bytes:
 * unknown, nothing is checked.
 */
int weir_ruleset_check_memory(const struct weir_ruleset *ruleset, uint64_t total_bytes, struct weir_diag *diag);

/* The resource of a rule; of a system rule one without a name, a match and a flow key. */
const struct weir_ruleset_resource *weir_resource_of(const struct weir_ruleset *ruleset,
						     const struct weir_ruleset_rule *rule);

/* The flows of a rule: of its own key, or of its resource's. */
const struct weir_flow *weir_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* Whose traffic is compared with its threshold: the same, or all of a refResource without a key. */
const struct weir_flow *weir_counted_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

size_t weir_count_system_rules(const struct weir_ruleset *ruleset);

/* Does any rule go by the handshakes of the whole host, or by how many connections it has open? Then a hidden rule
 * follows all connections.
 */
bool weir_tracks_connections(const struct weir_ruleset *ruleset);

/* Does the rule go by what a controller samples? */
static inline bool weir_goes_by_samples(const struct weir_ruleset_rule *rule)
{
	return rule->system == WEIR_SYSTEM_LOAD || rule->system == WEIR_SYSTEM_CPU_USAGE;
}

/* Mistakes and warnings about the rule set that were found after it was read: show the lines that they point at. */
void weir_ruleset_quote(const struct weir_ruleset *ruleset, struct weir_diag *diag);

void weir_ruleset_free(struct weir_ruleset *ruleset);

static inline void weir_ruleset_freep(struct weir_ruleset **ruleset)
{
	weir_ruleset_free(*ruleset);
}

#endif
