/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room rules: from rule files to struct weir_ruleset. yaml.h reads YAML, scalars.h reads single words and numbers, and
 * parse.h names the files that read the parts of a rule file. Other rooms need only this header, and scalars.h to print
 * the words of a rule file.
 *
 * A rule set as the user wrote it: read from one or several files (parse.c), merged and validated. Nothing here knows
 * of maps or kernels; compile/compile.h turns it into a load. The order is that of the files on the command line, then
 * that within each file.
 */
#ifndef WEIR_RULES_RULESET_H
#define WEIR_RULES_RULESET_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
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

/* All flags in `set` must be set and all in `clear` must be clear (bits as in the TCP header's byte 13). */
struct weir_tcp_flags {
	uint8_t set, clear;
};

/* A resource that another one excepts: packets of the first do not belong to the other. */
struct weir_excepted {
	char name[WEIR_NAME_BYTES];
	size_t resource; /* index into resources; found once all files are read */
};

#define WEIR_LABEL_BYTES 65 /* with its terminating zero: 1 to 64 bytes */

/* "@NAME", "@NAME:LABEL", and the same after '!': a named set where a prefix may stand. */
struct weir_set_use {
	size_t set; /* index into sets */
	char name[WEIR_NAME_BYTES];
	char label[WEIR_LABEL_BYTES]; /* empty: any prefix of the set */
	bool excepts;		      /* after '!' */
};

/* A list with count 0 means that there is no condition. An address is accepted if a prefix or a set without '!' has it,
 * or if there are none; and each set with '!' must not have it.
 */
struct weir_match {
	struct weir_prefix *source;
	size_t source_count;
	struct weir_set_use *source_sets;
	size_t source_set_count;
	struct weir_prefix *destination;
	size_t destination_count;
	struct weir_set_use *destination_sets;
	size_t destination_set_count;
#define WEIR_MATCH_RANGES(constant, name, member, highest, none, who)                                                  \
	struct weir_range *member;                                                                                     \
	size_t member##_count;
	WEIR_RANGE_FIELDS(WEIR_MATCH_RANGES) /* source_port, source_port_count and so on */
	struct weir_tcp_flags *tcp_flags;
	size_t tcp_flags_count;
	char (*interface)[WEIR_WANTED_BYTES]; /* words (scalars.h) */
	size_t interface_count;
	struct weir_excepted *except; /* no circles */
	size_t except_count;
	bool has_protocol;
	uint8_t protocol[32]; /* a bit for each number: protocol[n / 8] >> n % 8 */
	uint8_t families;     /* 0: no condition. Otherwise bit 0 IPv4, bit 1 IPv6 */
	uint8_t fragments;    /* 0: no condition. Otherwise a bit for each enum weir_fragment */
	uint8_t directions;   /* WEIR_MATCHES_IN and _OUT; 0: not in the file, which means IN */
};

/* The flow key, with the prefix lengths of its addresses. If `fields` is 0, the resource is one flow. */
struct weir_flow {
	/* enum weir_key_field, or-ed; fields that the file calls `remote` ... have WEIR_KEY_RELATIVE(). */
	uint32_t fields;
	uint8_t source_bits[2]; /* [0] for IPv4 (at most 32), [1] for IPv6 (at most 128); 0 if not in the key */
	uint8_t destination_bits[2];
	/* With WEIR_KEY_LABEL(): the set whose labels take the address's place. Compared as memory: with zeros. */
	char source_set[WEIR_NAME_BYTES];
	char destination_set[WEIR_NAME_BYTES];
};

/* The set by which the key has this end, or NULL: it has an address there, or nothing. */
static inline const char *weir_flow_set(const struct weir_flow *flow, int place)
{
	if (place > WEIR_KEY_PLACE_DESTINATION || !(flow->fields & WEIR_KEY_LABEL(1u << place)))
		return NULL;
	return place == WEIR_KEY_PLACE_SOURCE ? flow->source_set : flow->destination_set;
}

/* The directions of its packets: WEIR_MATCHES_IN, _OUT or both. */
static inline uint8_t weir_match_directions(const struct weir_match *match)
{
	return match->directions ?: WEIR_MATCHES_IN;
}

#define WEIR_MATCHES_BOTH (WEIR_MATCHES_IN | WEIR_MATCHES_OUT)

/*
 * The key as the program has it for packets of these directions: its members belong to the remote and the local end
 * (include/weir_fields.h). The source of an incoming packet is its remote end, and the source of an outgoing packet is
 * its local end. If the resource has both directions, this depends on the packet.
 */
struct weir_flow weir_flow_by_ends(const struct weir_flow *flow, uint8_t directions);

/* Does the key have fields for a packet's own source or destination, rather than for the remote or local end? */
static inline bool weir_names_own_ends(const struct weir_flow *flow)
{
	return flow->fields & WEIR_KEY_ENDS & ~(flow->fields >> 16);
}

/* Do both keys name the same flow for packets of these directions? */
bool weir_is_same_key(const struct weir_flow *left, const struct weir_flow *right, uint8_t directions);

/* Can the match include TCP packets? */
bool weir_match_holds_tcp(const struct weir_match *match);

/* Can the match include packets of the interface of this name? */
bool weir_match_means(const struct weir_match *match, const char *interface);

/* The match field that selects only some packets of a connection; NULL: there is none. */
const char *weir_match_splits_connections(const struct weir_match *match);

struct weir_ruleset_resource {
	char *name;
	struct weir_match match;
	struct weir_flow flow;
	bool is_prioritized; /* its packets occupy later buckets of every rule that allows it */
	struct weir_place place;
};

enum weir_strategy { WEIR_STRATEGY_DIRECT, WEIR_STRATEGY_WARM_UP, WEIR_STRATEGY_MEMORY_ADAPTIVE };
enum weir_behavior { WEIR_BEHAVIOR_REJECT, WEIR_BEHAVIOR_THROTTLING };
enum weir_relation { WEIR_RELATION_CURRENT, WEIR_RELATION_ASSOCIATED };

/* The choices that determine a rule's kind (kind/kind.h). */
struct weir_choices {
	enum weir_metric metric;
	enum weir_behavior behavior;
	enum weir_relation relation;
	bool occupies;
	enum weir_window_kind window;
};

#define WEIR_MICRO 1000000ull /* thresholds are exact decimals of at most six places */

/* A separate threshold for the flows under one prefix, of which the rule's longest matching one wins, or for those of
 * one label.
 */
struct weir_override {
	struct weir_prefix prefix; /* family 0: by label */
	char label[WEIR_LABEL_BYTES];
	uint64_t threshold_micro;
	bool is_of_set; /* a set has the prefix: see weir_override_set */
	struct weir_place place;
};

/* A set in the overrides of a rule. */
struct weir_override_set {
	struct weir_set_use use;
	uint64_t threshold_micro;
	size_t place; /* index into overrides, from which its prefixes follow */
};

#define WEIR_OVERRIDES_MAX 100000 /* of one rule */

/* WarmUp fields, with Sentinel's meaning. */
struct weir_warm_up_fields {
	uint32_t period_s;    /* 1 to 31,536,000, a year */
	uint32_t cold_factor; /* 2 and more; 3 if the file says 0 or nothing */
};

/* A circuit breaker. Its threshold is in the field that all rules have: a ratio, or a number of requests. */
struct weir_breaker_fields {
	enum weir_breaker_strategy strategy;
	uint64_t interval_ns;  /* a whole number of ms */
	uint32_t buckets;      /* 1 to WEIR_BREAKER_BUCKETS_MAX; divides the interval's ms */
	uint64_t retry_ns;     /* above 0 */
	uint32_t min_requests; /* at least 1 */
	uint64_t max_rt_ns;    /* above 0 for SlowRequestRatio; otherwise 0 */
	/* Successful probes that close it. 0: a single one, and no other request is admitted until then. */
	uint32_t probes;
};

#define WEIR_NO_RESOURCE SIZE_MAX

/* settings.cluster, by enum weir_cluster_field; NULL: not in the file. Each value has been validated. */
enum weir_cluster_field {
	WEIR_CLUSTER_REDIS,	    /* where the store is: rules/cluster.h */
	WEIR_CLUSTER_NAME,	    /* name of the cluster */
	WEIR_CLUSTER_HOST,	    /* of this host; default: its host name */
	WEIR_CLUSTER_PASSWORD_FILE, /* a file whose first line is the store's password */
	WEIR_CLUSTER_KEY_FILE,	    /* a file whose first line is the key that names flows in the store */
	WEIR_CLUSTER_CA_FILE,	    /* CAs trusted to sign the store's certificate; default: the system's */
	WEIR_CLUSTER_SILENT_FOR,    /* how long a silent host's part stays reserved; default: an hour */
	WEIR_CLUSTER_AFTER_SILENCE, /* keep (default) or stop: what happens to it then */
	WEIR_CLUSTER_FIELDS
};

/* The value of silentFor, which has been validated; UINT64_MAX: never. */
uint64_t weir_cluster_silent_ns(const char *word);

#define WEIR_SYSTEM_RULES_MAX WEIR_PACKET_RULES_MAX /* every packet meets all of them */

struct weir_ruleset_rule {
	char *name;			/* default RESOURCE#N */
	size_t resource;		/* index into resources; WEIR_NO_RESOURCE for a system rule */
	bool has_own_key;		/* `per`: its flows differ from its resource's */
	struct weir_flow own_key;	/* ... its flow key; otherwise zero */
	struct weir_flow fair_by;	/* fairBy: what distinguishes its children, beside its key; otherwise zero */
	enum weir_system_metric system; /* for a system rule; system rules come before all others */
	bool is_bbr;			/* ... for Load and CpuUsage: strategy BBR */
	enum weir_metric metric;	/* Concurrency counts connections, a breaker requests: docs/connections.md */
	uint64_t threshold_micro;	/* units per interval, in millionths; 0 for MemoryAdaptive, which has none */
	uint64_t interval_ns;
	uint32_t samples;
	enum weir_window_kind window;
	bool counts_bytes;
	bool observes;
	enum weir_on_block on_block;
	bool aggregates; /* whenFull: flows without a place anywhere share one limit; otherwise they start over */
	/* Its window can be occupied, and it may meet packets that do so: weir_rule_can_occupy(),
	 * weir_meets_prioritized().
	 */
	bool occupies;
	enum weir_strategy strategy;
	enum weir_behavior behavior;
	enum weir_relation relation;
	size_t ref_resource; /* AssociatedResource: the resource whose window is read; otherwise WEIR_NO_RESOURCE */
	/* Tokens: the capacity of a bucket, in millionths; 0: weir_tokens_burst_micro() computes it. */
	uint64_t burst_micro;
	/* ... in that case: how far the capacity exceeds the threshold, also for an override. */
	uint64_t burst_beyond_micro;
	bool has_burst_beyond;		    /* the file gives it, even if as 0 */
	uint64_t queueing_ms_max;	    /* Throttling: the longest wait; at most 2^32 - 1 */
	uint32_t penalty_ms;		    /* Reject: how long a flow stays blocked after a drop; 0: no penalty */
	uint32_t penalty_ms_max;	    /* the longest penalty; at least penalty_ms */
	struct weir_warm_up_fields warm_up; /* WarmUp only, otherwise zero */
	struct weir_memory_adaptive memory; /* MemoryAdaptive only, otherwise zero */
	struct weir_breaker_fields breaker; /* circuit breakers only, otherwise zero */
	uint32_t override_field; /* WEIR_KEY_SOURCE or WEIR_KEY_DESTINATION, which the prefixes are matched with */
	bool overrides_end;	 /* ... called `remote` or `local` in the file */
	bool overrides_label;	 /* ... or whose labels, since the key has a set there */
	struct weir_override *overrides; /* in the order of the file, without duplicate prefixes */
	size_t override_count;
	struct weir_override_set *override_sets;
	size_t override_set_count;
	enum weir_cluster cluster; /* clusterMode: the hosts of settings.cluster share its threshold */
	/* fallbackToLocalWhenFail: hosts keep a part of the threshold when they cannot reach the store. */
	bool falls_back;
	struct weir_place place;
	struct weir_place high_mark_place; /* MemoryAdaptive: for weir_ruleset_check_memory */
};

/* What a description (struct weir_rule_info) keeps of a rule as it was written, beside its identity: the compiler
 * copies it to the description, and what prints a loaded rule copies it back.
 */
#define WEIR_DESCRIBED_FIELDS(FIELD)                                                                                   \
	FIELD(system), FIELD(is_bbr), FIELD(threshold_micro), FIELD(observes), FIELD(on_block), FIELD(aggregates),     \
		FIELD(occupies), FIELD(strategy), FIELD(behavior), FIELD(relation), FIELD(penalty_ms),                 \
		FIELD(penalty_ms_max), FIELD(memory), FIELD(cluster), FIELD(falls_back)

struct weir_settings {
	uint32_t flows_per_cpu;		  /* as written; default 262144 */
	bool drop_malformed;		  /* default true */
	bool drop_unsupported;		  /* default true */
	bool drop_non_ip;		  /* default false */
	struct weir_range *non_ip_except; /* EtherTypes for which the opposite holds */
	size_t non_ip_except_count;	  /* at most WEIR_NON_IP_EXCEPT_MAX */
	bool drop_unmatched;		  /* default false */
	bool observes;			  /* nothing is dropped; default false */
	bool paces;			  /* throttling: pace; the default is police */
	char *memory_cgroup;		  /* memory: cgroup:PATH, without the "cgroup:"; NULL: the system's memory */
	uint32_t controller_timeout_ms;	  /* a heartbeat older than this is stale: 1000 to 60000, default 3000 */
	uint32_t occupy_timeout_ms;	  /* only waits shorter than this occupy a unit: 0 to 86400000, default 500 */
	uint32_t timed_entries;		  /* addresses for weir block and weir allow; default 65536; 0: none */
	bool timed_evicts;		  /* timedWhenFull: evict; the default is refuse */
	/* timedParts: how many of these addresses are one program's; together at most timed_entries */
	struct weir_timed_part timed_parts[WEIR_TIMED_PARTS_MAX];
	size_t timed_part_count;
	uint32_t connections;	       /* most that all Concurrency rules together can track; default 131072 */
	uint32_t connection_flows;     /* most that can have connections; default: a quarter of `connections` */
	bool derives_connection_flows; /* connection_flows is the default */
	char *cluster[WEIR_CLUSTER_FIELDS];
	uint64_t answer_rates[WEIR_ANSWER_BUCKETS]; /* per second; 0: the default. weir_answer_rate() */
	/* Per breaker, a power of two; 0: the default. Not in rule files: replay asks for more. */
	uint32_t ring_groups;
	/* how long a connection is silent before it ends: by default 10,000, 600,000, 120,000 and 10,000 */
	uint64_t connection_timeout_ms[WEIR_CONNECTION_CLASSES];
};

uint64_t weir_answer_rate(const struct weir_settings *settings, unsigned int bucket);

/* The names of the timeouts in `settings`, by enum weir_connection_class. */
extern const char *const *const weir_connection_timeout_names;

/* An entry of `allow:` or `deny:`, by source address. The longest prefix wins, deny on a tie. */
struct weir_listed {
	struct weir_prefix prefix;
	bool denies;
	bool is_of_set;	  /* only because a set is in the list: see weir_listed_set */
	bool hides_allow; /* ... and `allow` has it, too, without a set */
};

/* A set in one of the lists. */
struct weir_listed_set {
	struct weir_set_use use;
	bool denies;
};

#define WEIR_LISTED_MAX 4000000 /* of all files */

/* ---- named sets ---- */

#define WEIR_SET_ENTRIES_MAX 4000000 /* of all sets */
#define WEIR_SET_LABELS_MAX 131072   /* of one set */
#define WEIR_SET_WEIGHT_MAX 1000
#define WEIR_SET_OVERRIDES_MAX 10000 /* of a set in overrides */
#define WEIR_NO_LABEL UINT32_MAX

struct weir_set_entry {
	struct weir_prefix prefix;
	uint32_t label; /* index into labels; WEIR_NO_LABEL: the set has none */
	uint32_t line;	/* of the file, or of the rule file */
};

struct weir_set_label {
	char *text;
	uint32_t weight; /* 1 to WEIR_SET_WEIGHT_MAX; 0: not given, which means 1 */
};

/* The label of an address is that of the longest prefix that covers it. */
struct weir_set {
	char *name;
	char *file; /* its path, absolute; NULL: its prefixes are in the rule file */
	bool has_labels;
	struct weir_set_entry *entries; /* sorted by prefix, without duplicates */
	size_t entry_count;
	struct weir_set_label *labels; /* sorted by text */
	size_t label_count;
	struct weir_place place;
};

/* The number of this label, or WEIR_NO_LABEL if no prefix of the set has it. */
uint32_t weir_set_find_label(const struct weir_set *set, const char *text);

/* Remove its prefixes and labels. */
void weir_set_empty(struct weir_set *set);

struct weir_ruleset {
	struct weir_settings settings;
	struct weir_set *sets; /* in the order of the files */
	size_t set_count;
	struct weir_ruleset_resource *resources;
	size_t resource_count;
	struct weir_ruleset_rule *rules;
	size_t rule_count;
	/* Sorted by family, address and bits, without duplicates: of a prefix in both lists, only the deny. */
	struct weir_listed *listed;
	size_t listed_count;
	struct weir_listed_set *listed_sets;
	size_t listed_set_count;
	char **file_names; /* what the places refer to */
	char **file_texts; /* the text that was read; NULL: it could not be read */
	size_t file_count;
	bool is_last_good; /* it is loaded instead of rule files that are wrong (instance/last_good.c) */
	char **list_names; /* files that lists and sets name: their paths from here */
	size_t list_count;
	char *origin; /* a kept rule set whose sets were read again: the names of its rule files, one per line */
};

/* The set whose name is these bytes of a longer text, or NULL. */
const struct weir_set *weir_find_set(const struct weir_ruleset *ruleset, const char *name, size_t bytes);

/* Does a rule answer what it blocks? */
bool weir_any_answers(const struct weir_ruleset *ruleset);

/* Is it a circuit breaker of outgoing requests? Their answers come in. */
bool weir_breaks_what_goes_out(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* Can this rule's window be occupied, if packets that it evaluates are prioritized? (docs/semantics.md, 10) */
bool weir_rule_can_occupy(const struct weir_ruleset_rule *rule);

/* Can packets of this resource be prioritized, because it is, or because they may also belong to another resource that
 * is? False only if protocols, families or destination ports rule it out.
 */
bool weir_meets_prioritized(const struct weir_ruleset *ruleset, const struct weir_ruleset_resource *resource);

/*
 * Read and validate rule files, in this order. All mistakes of all files are added to *diag. On success (0) the caller
 * owns *ret_ruleset, and *diag may hold warnings; otherwise the result is -errno and *ret_ruleset is untouched. Reads
 * only the named files ("-" is standard input, once), and files that their allow and deny lists name with '@'.
 */
int weir_ruleset_read(const char *const *paths, size_t path_count, struct weir_ruleset **ret_ruleset,
		      struct weir_diag *diag);

/* The same for the text of one rule file; messages call it `name`. */
int weir_ruleset_parse(const char *name, const char *text, size_t bytes, struct weir_ruleset **ret_ruleset,
		       struct weir_diag *diag);

/* What is kept beside a text of weir_ruleset_text(): contents of sets and lists. Functions return false if that is not
 * whole.
 */
struct weir_kept_content {
	bool (*take_set)(struct weir_kept_content *content, struct weir_set *set); /* for each set, in order */
	bool (*take_lists)(struct weir_kept_content *content, struct weir_ruleset *ruleset);
	void *data;
	bool reads_files; /* a set that has a file is read from it instead */
};

/* The same for a text of weir_ruleset_text(), which has no limit of size: it may come from many files. content NULL:
 * without the prefixes of sets and lists.
 */
int weir_ruleset_parse_own(const char *name, const char *text, size_t bytes, struct weir_kept_content *content,
			   struct weir_ruleset **ret_ruleset, struct weir_diag *diag);

/*
 * Does the machine have as much memory as the MemoryAdaptive rules refer to? A high water mark above `total_bytes`
 * could never be reached, and is a mistake (docs/semantics.md, 7): returns -EINVAL, with all of them in *diag. If
 * total_bytes is 0, the total is unknown and nothing is checked.
 */
int weir_ruleset_check_memory(const struct weir_ruleset *ruleset, uint64_t total_bytes, struct weir_diag *diag);

/* The resource of a rule; for a system rule, a resource without a name, match and flow key. */
const struct weir_ruleset_resource *weir_resource_of(const struct weir_ruleset *ruleset,
						     const struct weir_ruleset_rule *rule);

/* The flow key of a rule: its own, or its resource's. */
const struct weir_flow *weir_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* The hidden rule that describes a rule's children has its name behind this. No name of the user's has a ';'. */
#define WEIR_FAIR_PREFIX "fair;"

/* The key of the children that share a rule's threshold fairly: its flow key and fairBy together. */
struct weir_flow weir_child_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/* The flow key whose traffic is compared with the threshold: the rule's, or a refResource's, which without a key counts
 * all its traffic.
 */
const struct weir_flow *weir_counted_flow_of(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule);

/*
 * What needs packets of a direction to be evaluated: bits 1 << enum weir_need; 0: nothing, so no hook for them is
 * attached. If neither direction is needed, as by an empty file, the one for incoming packets is attached all the same:
 * an instance is on its interfaces by some hook.
 */
enum weir_need {
	WEIR_NEED_RESOURCES,
	WEIR_NEED_LISTS,
	WEIR_NEED_SYSTEM,
	WEIR_NEED_ANSWERS,  /* circuit breakers on `out` learn from what comes in */
	WEIR_NEED_SETTINGS, /* unmatched, malformed, unsupported or nonIp drops something */
	WEIR_NEED_ENTRIES,  /* `weir block` and `weir allow`: of an instance, not of a rule set */
	WEIR_NEEDS
};
uint32_t weir_ruleset_needs(const struct weir_ruleset *ruleset, enum weir_direction direction);

/* All its rules are about outgoing packets. Then `malformed` and `unsupported` are `pass` by default. */
bool weir_ruleset_is_out_only(const struct weir_ruleset *ruleset);

/* The directions that get a hook, WEIR_MATCHES_IN and _OUT. */
uint8_t weir_ruleset_hooks(const struct weir_ruleset *ruleset);

size_t weir_count_system_rules(const struct weir_ruleset *ruleset);

/* Does any rule depend on the handshakes of the whole host, or on its number of open connections? Then a hidden rule
 * tracks all connections.
 */
bool weir_tracks_connections(const struct weir_ruleset *ruleset);

/* Does the rule depend on values that a controller samples? */
static inline bool weir_goes_by_samples(const struct weir_ruleset_rule *rule)
{
	return rule->system == WEIR_SYSTEM_LOAD || rule->system == WEIR_SYSTEM_CPU_USAGE;
}

/* For mistakes and warnings about the rule set that were found after reading: add the lines that they point at. */
void weir_ruleset_quote(const struct weir_ruleset *ruleset, struct weir_diag *diag);

void weir_ruleset_free(struct weir_ruleset *ruleset);

static inline void weir_ruleset_freep(struct weir_ruleset **ruleset)
{
	weir_ruleset_free(*ruleset);
}

/* ---- the files that a command's arguments name; nothing here interprets their text ---- */

/* Paths to read, in order; "-" is standard input. */
struct weir_rule_files {
	char **paths;
	size_t count;
	bool is_incomplete; /* some could not be found; this has been reported */
	bool is_out_of_memory;
};

/*
 * The files that the arguments name. A file is taken as it is. A directory contributes its *.yaml, *.yml and *.json
 * files, in the order of their bytes (the C locale's), except hidden ones and anything that is not a file. A directory
 * without such files is a mistake, as an empty file is.
 */
void weir_find_rule_files(const char *const *arguments, size_t argument_count, struct weir_rule_files *ret_files,
			  struct weir_diag *diag);
void weir_rule_files_free(struct weir_rule_files *files);

/* Read the text of a file, followed by a zero byte. `file` is its name in messages. The caller frees *ret_text. Returns
 * 0, or -errno after adding the reason to *diag.
 */
int weir_read_rule_file(const char *path, const char *file, struct weir_diag *diag, char **ret_text, size_t *ret_bytes);

#endif
