/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room instance: what is attached, from attach to detach. Other rooms need this header alone; instance_internal.h says
 * which file does what.
 *
 * An instance: one set of pinned maps, and the links that hold its program on interfaces. It lives under
 * /sys/fs/bpf/weir/NAME (mode 0700) from attach to detach and needs no process. Commands that change instances take
 * transitions by a lock; those that only read need none, except to distinguish what is half done from what is broken.
 * Never evaluates packets, never prints.
 */
#ifndef WEIR_INSTANCE_H
#define WEIR_INSTANCE_H

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>

#include "compile/forecast.h"
#include "compile/rule_changes.h"
#include "pins/links.h"
#include "pins/pins.h"
#include "program/object.h"
#include "rules/history.h"

#define WEIR_INSTANCE_DEFAULT "main"
#define WEIR_INSTANCE_NAME_BYTES 64

enum weir_attach_mode {
	WEIR_MODE_AUTO,	  /* native, or where that does not work skb, with a warning */
	WEIR_MODE_NATIVE, /* in the driver */
	WEIR_MODE_SKB,	  /* after the driver: any interface, but slower */
	WEIR_MODE_TC,	  /* at tc ingress: any interface, and super-frames count as what they are */
};

/* Rules that are to be confirmed (docs/changing.md). */
struct weir_unconfirmed {
	bool is_so;
	uint64_t returns_ns; /* CLOCK_BOOTTIME: from then on the rules before are in force */
	uint64_t generation; /* of those that are not confirmed */
};

struct weir_instance {
	char name[WEIR_INSTANCE_NAME_BYTES];
	int map_fd[WEIR_STATE_TABLE_COUNT];
	int thresholds_fd;
	struct weir_instance_info info;
	struct weir_rule_info *rules;	      /* info.rule_slots */
	struct weir_resource_info *resources; /* info.resource_slots */
	struct weir_window_spec *specs;	      /* info.spec_count */
	/* slots in use, in the order of the rule files; shadow windows, which are no rules of the user's, are left out
	 */
	uint32_t *rule_order, *resource_order;
	uint32_t rule_count, resource_count;
	struct weir_link *links;
	size_t link_count;
	struct weir_unconfirmed unconfirmed;
	bool is_settled; /* each place is one rule's: not so while a reload describes old and new ones together */
	/* Tables of another version (enum weir_table_id), with those that are of no use without them. They are not
	 * open: map_fd is -1.
	 */
	bool is_incompatible[WEIR_TABLE_COUNT];
	/* Its descriptions are of another version, and so is everything: of `info` there is only the head, and no
	 * rules. Only reload opens such.
	 */
	bool is_all_incompatible;
};

/*
 * Fail with -EPROTO, and say so, when one of these tables is another version's. `tables` has bits of
 * WEIR_TABLE_BIT(); `what` is in them, for people.
 */
#define WEIR_TABLE_BIT(table) (1ull << (table))
int weir_instance_expect_tables(const struct weir_instance *instance, uint64_t tables, const char *what,
				struct weir_diag *diag);

/* Show each entry of a table of its to `visit` (program/array.h). Returns 0, -errno, or what ended it. */
static inline int weir_instance_scan(const struct weir_instance *instance, enum weir_table_id table,
				     weir_percpu_visit *visit, void *data)
{
	return weir_table_scan(table, instance->map_fd[table], instance->info.tables[table].size, visit, data);
}

/* Letters, digits, '_' and '-', at most 63: the BPF file system allows no dots. */
bool weir_instance_name_is_valid(const char *name);

/* The option with which a command means this instance: " --instance NAME", or nothing. Returns `words`. */
#define WEIR_INSTANCE_OPTION_BYTES (WEIR_INSTANCE_NAME_BYTES + 16)
const char *weir_instance_option(const char *name, char words[WEIR_INSTANCE_OPTION_BYTES]);

/* Names of all instances, sorted; none at all is no failure. The caller frees *ret_names. */
int weir_instance_list(struct weir_names *ret_names, struct weir_diag *diag);

/* Whether it has a directory of pins, whatever is in it; or whether that cannot be seen. */
bool weir_instance_exists(const char *name);

/*
 * Read an attached instance; -ENOENT when there is none of this name, -EPROTO when it is another version's,
 * -EAGAIN when a reload of it was cut short. While it is put on or taken off only half of it is there, and in a reload
 * too much: then this waits until no other command is at work, so who calls must not hold the lock. The caller owns
 * *ret_instance.
 */
int weir_instance_open(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* The same of one that weir_instance_list named. *ret_instance is NULL when it is gone by now, which is no failure. */
int weir_instance_open_listed(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* The same, but it does not wait for a reload: see is_settled. */
int weir_instance_open_now(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/*
 * Bring an instance that is kept open up to date, at a tenth of what opening it takes: its links are read again. False:
 * it was reloaded since, or taken off, or cannot be read: it has to be reopened.
 */
bool weir_instance_refresh(struct weir_instance *instance);

/* Say that a reload of it was cut short. Returns -EAGAIN. */
int weir_instance_fail_unsettled(const char *name, struct weir_diag *diag);

/* It is wanted on interfaces by a pattern: it may be on none of them, and wait. */
bool weir_instance_has_patterns(const struct weir_instance *instance);

/* The program that evaluates, whether it is on the links itself or has a guard there; 0: none. */
uint32_t weir_instance_program_id(const struct weir_instance *instance);

/* What the interface of this number is called, which it is on; NULL: it is not, or the interface is gone. */
/* The slot of the rule of that name; NULL means WEIR_ANY_RULE. -EINVAL, and a word: there is none. */
#define WEIR_ANY_RULE UINT32_MAX
int weir_instance_find_rule(const struct weir_instance *instance, const char *name, uint32_t *ret_slot,
			    struct weir_diag *diag);

const char *weir_instance_interface(const struct weir_instance *instance, uint32_t ifindex);

/* Look at its interfaces again: what they are called, and warn of each that has gone since. */
void weir_instance_watch_links(struct weir_instance *instance, struct weir_diag *diag);

/* An instance on two interfaces of which one stands on the other: it evaluates what comes in by both twice. */
struct weir_repeat {
	char upper[IF_NAMESIZE], lower[IF_NAMESIZE];
};

/* All of them, as far as its network namespace can be looked into. The caller frees *ret_repeats; NULL: none. */
size_t weir_instance_find_repeats(const struct weir_instance *instance, struct weir_repeat **ret_repeats);

/* How long its limits hold yet, from now (tables/narrow_span.h). */
uint64_t weir_instance_left_ns(const struct weir_instance *instance);

/* The virtual time of a rule with tokens as it is now, its rate with it: of a rule whose rate moves, what the program
 * goes by. Returns 0 or -errno.
 */
int weir_instance_read_clock(const struct weir_instance *instance, const struct weir_rule_info *rule,
			     struct weir_token_clock *ret_clock);

/* Whether it is another version's, so far that it cannot be opened or shown. *ret_head: what all versions share, as in
 * pins/info.h.
 */
bool weir_instance_is_incompatible(const char *name, struct weir_instance_info *ret_head);

void weir_instance_free(struct weir_instance *instance);

static inline void weir_instance_freep(struct weir_instance **instance)
{
	weir_instance_free(*instance);
}

/* The instance, of whatever version, that has put this program on an interface; false when there is none to be seen. */
bool weir_instance_of_program(uint32_t program_id, char ret_name[WEIR_INSTANCE_NAME_BYTES]);

/* The instance, of this version or another, that limits an interface of the present network namespace, and its program
 * for what comes in there, at whatever hook; false when there is none to be seen.
 */
bool weir_instance_on(uint32_t ifindex, char ret_name[WEIR_INSTANCE_NAME_BYTES], uint32_t *ret_program_id);

struct weir_attach_options {
	const char *instance;
	/* In the present network namespace, no two the same: names, patterns (fnmatch(3)), and exceptions from the
	 * patterns, which begin with '!'. A pattern means no loopback interface, none without an Ethernet header unless
	 * in tc mode, and none all of whose packets come in by others that it means.
	 */
	const char *const *interfaces;
	size_t interface_count;
	enum weir_attach_mode mode;
	/* The caller will be the controller at once: thresholds that move hold from the first packet on. */
	bool is_controlled;
	bool ends_with_run;	      /* the caller will detach it in the end, or whoever takes it over */
	bool takes_over_incompatible; /* for weir_instance_is_attached_as(): what another version attached, too */
	bool allows_merging;	      /* packets that were merged may count as one in skb mode (network/merging.h) */
};

/* Whether they mean the interface of this name: by name, or by a pattern and no exception. */
bool weir_attach_means(const struct weir_attach_options *options, const char *interface);

/*
 * Load the rules and put them on the interfaces: maps first, links last. When anything fails nothing
 * is left behind; -EINVAL means that the rules are wrong. *diag may hold warnings after success. *ret_attached_ns (may
 * be NULL) distinguishes this attachment from a later one of the same name.
 */
int weir_instance_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			 uint64_t *ret_attached_ns, struct weir_diag *diag);

struct weir_attachment {
	uint64_t attached_ns; /* distinguishes it from a later one of the same name */
	bool ends_with_run;   /* as it was attached */
};

/*
 * Put the program in force on more interfaces: on all that the options name and on those that their patterns mean, or,
 * when one of them fails, on none. They are wanted from then on. -ENOENT: the instance is not attached.
 */
int weir_instance_add(const struct weir_attach_options *options, struct weir_diag *diag);

/* From now on these are the interfaces that an attached instance is wanted on; weir_instance_follow does the rest. */
int weir_instance_want(const char *name, const struct weir_attach_options *options, struct weir_diag *diag);

/* Interfaces that were refused when they came, or left out of a pattern: each is reported once. Starts as {}. */
struct weir_follow {
	uint32_t *refused; /* ifindex */
	size_t refused_count;
	uint32_t *left_out; /* ifindex */
	size_t left_out_count;
	bool has_looked;
	bool misses_cases; /* the rules could not learn of interfaces that appeared (newcomers.c) */
};

/*
 * Put the program on interfaces that are wanted and have come, or come back, since: to be called whenever links have
 * changed (network/link_watch.h). Notes each in diag, and warns of one that refuses. Does nothing in another network
 * namespace than the instance's. -EBUSY: another command is at work; ask again soon.
 */
int weir_instance_follow(struct weir_instance *instance, struct weir_follow *follow, struct weir_diag *diag);
void weir_follow_free(struct weir_follow *follow);

/*
 * Whether the instance is attached already as the options ask: to these interfaces of the present network namespace,
 * to no others that are still there, and in that mode. A run that was killed leaves it so. *ret_attachment is touched
 * only then.
 */
bool weir_instance_is_attached_as(const struct weir_attach_options *options, struct weir_attachment *ret_attachment);

struct weir_reload_result {
	uint64_t generation;
	uint64_t returns_s;	    /* it is to be confirmed until then; 0: it is not */
	uint32_t rules, kept_rules; /* kept: with their windows and counters */
	struct weir_rule_changes changes;
	/* prefixes in the lists; before: 0 of what another version attached */
	uint32_t allow_before, allow_now, deny_before, deny_now;
	bool observed_before, observes_now;
};

void weir_reload_result_free(struct weir_reload_result *result);

struct weir_reload_options {
	/* Tables with another version's layout, and windows of a rule that its new ones cannot continue with,
	 * start empty, with a warning. False: say which they are, and change nothing (-EINVAL).
	 */
	bool starts_afresh;
	uint64_t confirm_ns; /* the rules before return so long after, unless these are confirmed; 0: these stay */
};

/*
 * Replace the rules, atomically for every packet. When anything fails the old ones stay; -EINVAL means that the new
 * ones are wrong. But WEIR_RELOAD_NOT_DESCRIBED: the new ones are in force, and what says so to other commands could
 * not be written, or only in part; another reload puts that right. *diag may hold warnings after success. The caller
 * frees *ret_result, which is touched only on success.
 */
#define WEIR_RELOAD_NOT_DESCRIBED (-EUCLEAN)
int weir_instance_reload(const char *name, const struct weir_ruleset *ruleset,
			 const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			 struct weir_diag *diag);

/* What a reload would change, keep, start empty, and cost. */
struct weir_reload_forecast {
	struct weir_forecast changes;
	bool is_before_known;  /* what is in force was kept: then lines are compared, and not only names */
	uint64_t needed_bytes; /* beside what there is, until the old rules are gone */
	uint64_t total_bytes;  /* of the instance's maps, then and (0: unknown) now */
	uint64_t total_bytes_before;
	uint64_t compile_ns, load_ns; /* what it took just now; load_ns 0: it was not loaded */
};

/*
 * Evaluate a reload, and change nothing: the same checks, and the same compiler over the same descriptions. With
 * `loads` the kernel is asked, too, whether it takes the program and its maps; and rules that are not confirmed are in
 * the way, as they are for a reload. The caller frees *ret_forecast.
 */
int weir_instance_foresee(const char *name, const struct weir_ruleset *ruleset,
			  const struct weir_reload_options *options, bool loads,
			  struct weir_reload_forecast *ret_forecast, struct weir_diag *diag);
void weir_reload_forecast_free(struct weir_reload_forecast *forecast);

/*
 * The rule set before the last reload takes the place of the one in force, as a reload does; a second rollback goes
 * forth again. Where the last reload is not confirmed, it is as if that had never been. -ENOENT: there is none.
 */
int weir_instance_rollback(const char *name, struct weir_reload_result *ret_result, struct weir_diag *diag);

/* Rules that were reloaded to be confirmed stay. -ENOENT: there are none. -ETIME: too late. *ret_generation: theirs. */
int weir_instance_confirm(const char *name, uint64_t *ret_generation, struct weir_diag *diag);

/* The moment to return is past. Whoever opens the instance then brings its descriptions in line with what the program
 * does since.
 */
bool weir_unconfirmed_is_over(const struct weir_unconfirmed *unconfirmed);

/* Does so: the rules before are described as what is in force, and the guard is taken off. Warns that it did, or that
 * it failed (-errno). Every open of an instance does it; who keeps one open watches the time.
 */
int weir_instance_return(const char *name, struct weir_diag *diag);

/* Until it returns, in whole seconds and rounded up; 0: it is over. */
uint64_t weir_unconfirmed_left_s(const struct weir_unconfirmed *unconfirmed);

/* What is kept of its rule sets (rules/history.h): empty where nothing is. The caller frees *ret_history. */
void weir_instance_history(const struct weir_instance *instance, struct weir_history *ret_history);

/* Fail with -ENOENT, and say so, unless the instance is attached to this interface (weir_link_find says what a name
 * means). */
int weir_instance_expect_on(const char *name, const char *interface, struct weir_diag *diag);

/*
 * Take the program off `interface`, a name or a pattern that was asked for, or off all of them (NULL). It is not wanted
 * there any more. With the last one the instance goes, unless it waits for others by a pattern.
 * attached_ns other than 0: only if the instance is that attachment, else -ESTALE.
 */
int weir_instance_detach(const char *name, const char *interface, uint64_t attached_ns, struct weir_diag *diag);

/*
 * Note in the instance's journal what was done to it: a line for people, which `weir events` shows. Where there is no
 * journal, as in what another version of weir has attached, nothing is noted, ignoring.
 */
void weir_instance_note(const char *instance, enum weir_journal_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Let drops be reported until then, CLOCK_MONOTONIC, for a reader who may not write (weir_event_watch_open_sample). */
void weir_instance_listen(const char *instance, uint64_t until_ns);

#endif
