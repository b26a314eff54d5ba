/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room instance: what is attached, from attach to detach. Other rooms include only this header; instance_internal.h
 * says what each file does.
 *
 * An instance is one set of pinned maps, and the links that hold its program on interfaces. It lives under
 * /sys/fs/bpf/weir/NAME (mode 0700) from attach to detach and needs no process. Commands that change instances take a
 * lock, one after the other. Commands that only read need the lock only to find out whether an incomplete instance is
 * in transition or broken. Never evaluates packets, never prints.
 */
#ifndef WEIR_INSTANCE_H
#define WEIR_INSTANCE_H

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "compile/forecast.h"
#include "host/host.h"
#include "network/tc.h"
#include "pins/links.h"
#include "pins/pins.h"
#include "program/object.h"
#include "program/top_drops.h"
#include "rules/history.h"

#define WEIR_INSTANCE_DEFAULT "main"
#define WEIR_INSTANCE_NAME_BYTES 64

enum weir_attach_mode {
	WEIR_MODE_AUTO,	  /* native; if that does not work skb, with a warning */
	WEIR_MODE_NATIVE, /* in the driver */
	WEIR_MODE_SKB,	  /* after the driver: works on any interface, but is slower */
	WEIR_MODE_TC,	  /* at tc ingress: works on any interface, and a super-frame counts as the packets in it */
};

/* Rules that have to be confirmed (docs/changing.md). */
struct weir_unconfirmed {
	bool is_so;
	uint64_t returns_ns; /* CLOCK_BOOTTIME: from then on the previous rules are in force */
	uint64_t generation; /* of the unconfirmed rules */
};

struct weir_instance {
	char name[WEIR_INSTANCE_NAME_BYTES];
	int map_fd[WEIR_STATE_TABLE_COUNT];
	int thresholds_fd;
	struct weir_instance_info info;
	struct weir_rule_info *rules;	      /* info.rule_slots */
	struct weir_resource_info *resources; /* info.resource_slots */
	struct weir_window_spec *specs;	      /* info.spec_count */
	/* The slots in use, in the order of the rule files. Shadow windows are left out, since they are not the user's
	 * rules.
	 */
	uint32_t *rule_order, *resource_order;
	uint32_t rule_count, resource_count;
	struct weir_link *links;
	size_t link_count;
	/* Of flow keys, mapped; NULL: no rule's key has a set, or another version loaded the rules. */
	const struct weir_key_labels *labels;
	size_t labels_bytes;
	struct weir_unconfirmed unconfirmed;
	bool is_settled; /* each place belongs to one rule; false while a reload describes old and new rules together */
	/* Tables of another version (by enum weir_table_id), and the tables that are useless without them. They are not
	 * open: map_fd is -1.
	 */
	bool is_incompatible[WEIR_TABLE_COUNT];
	/* Another version wrote its descriptions, so everything is incompatible: `info` has only the head, and there
	 * are no rules. Only a reload opens such an instance.
	 */
	bool is_all_incompatible;
};

/*
 * Fail with -EPROTO and a message if one of these tables belongs to another version. `tables` has bits of
 * WEIR_TABLE_BIT(); `what` says, for people, what the tables contain.
 */
#define WEIR_TABLE_BIT(table) (1ull << (table))
int weir_instance_expect_tables(const struct weir_instance *instance, uint64_t tables, const char *what,
				struct weir_diag *diag);

static inline struct weir_tables weir_instance_tables(const struct weir_instance *instance)
{
	struct weir_tables tables = {.rules = instance->rules, .rule_slots = instance->info.rule_slots};

	for (enum weir_table_id table = 0; table < WEIR_STATE_TABLE_COUNT; table++) {
		tables.fd[table] = instance->map_fd[table];
		tables.size[table] = instance->info.tables[table].size;
	}
	return tables;
}

/* Call `visit` for each entry of one of the instance's tables (program/array.h). Returns 0, -errno, or the result of
 * the visit that stopped the scan.
 */
static inline int weir_instance_scan(const struct weir_instance *instance, enum weir_table_id table,
				     weir_percpu_visit *visit, void *data)
{
	return weir_table_scan(table, instance->map_fd[table], instance->info.tables[table].size, visit, data);
}

/* Letters, digits, '_' and '-', at most 63: the BPF file system allows no dots. */
bool weir_instance_name_is_valid(const char *name);

/*
 * Fail with -EINVAL, and a message that says where the instance is, if its interfaces are in another network namespace
 * than the present one. An instance that is not attached, or whose namespace is not known, is accepted.
 */
int weir_instance_expect_here(const char *name, struct weir_diag *diag);

/* The options with which a command that is typed where this one was finds the instance, and its interfaces:
 * " --netns far --instance NAME", or one of them, or nothing. Returns `words`.
 */
#define WEIR_INSTANCE_OPTIONS_BYTES (WEIR_NETNS_WORDS_BYTES + WEIR_INSTANCE_NAME_BYTES + 16)
#define WEIR_INSTANCE_HINT_BYTES (2 * WEIR_INSTANCE_OPTIONS_BYTES + 128) /* has room for them, in two commands */
const char *weir_instance_options(const char *name, char words[WEIR_INSTANCE_OPTIONS_BYTES]);

/* The names of all instances, sorted. No instance at all is not a failure. The caller frees *ret_names. */
int weir_instance_list(struct weir_names *ret_names, struct weir_diag *diag);

/* Whether the instance has a directory of pins, whatever is in it. Also true if this cannot be determined. */
bool weir_instance_exists(const char *name);

/*
 * Read an attached instance. -ENOENT: there is none of this name; -EPROTO: another version attached it; -EAGAIN: a
 * reload of it was interrupted. During an attach or detach the instance is incomplete, and during a reload it has more
 * than it should. In these cases the call waits until no other command is at work, so the caller must not hold the
 * lock. The caller owns *ret_instance.
 */
int weir_instance_open(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* The same for an instance that weir_instance_list() returned. If the instance is gone by now, *ret_instance is NULL,
 * which is not a failure.
 */
int weir_instance_open_listed(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* As weir_instance_open(), but does not wait for a reload: see is_settled. */
int weir_instance_open_now(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/*
 * Update an instance that is kept open, for a tenth of the cost of opening it: only its links are re-read. False: the
 * instance was reloaded or detached, or cannot be read, so the caller has to reopen it.
 */
bool weir_instance_refresh(struct weir_instance *instance);

/* Report that a reload of the instance was interrupted. Returns -EAGAIN. */
int weir_instance_fail_unsettled(const char *name, struct weir_diag *diag);

/* The instance is wanted on interfaces by a pattern, so it may be on no interface and wait for one. */
bool weir_instance_has_patterns(const struct weir_instance *instance);

/* The program that evaluates packets, whether it is on the links itself or behind a guard; 0: none. */
uint32_t weir_instance_program_id(const struct weir_instance *instance);

/* Some program evaluates packets of this direction, on each interface that is limited. NULL, a rule set that is not
 * attached: true.
 */
bool weir_instance_evaluates(const struct weir_instance *instance, bool is_out);

/* The slot of the rule of that name. A NULL name means WEIR_ANY_RULE. -EINVAL and a message: there is no such rule. */
#define WEIR_ANY_RULE UINT32_MAX
int weir_instance_find_rule(const struct weir_instance *instance, const char *name, uint32_t *ret_slot,
			    struct weir_diag *diag);

/* The present name of the interface with this index. NULL: the instance is not on it, or the interface is gone. */
const char *weir_instance_interface(const struct weir_instance *instance, uint32_t ifindex);

/* Its link to that interface for one direction, or NULL. */
const struct weir_link *weir_instance_link_on(const struct weir_instance *instance, uint32_t ifindex, bool is_out);

/* Look at the instance's interfaces again: update their names, and warn of each one that has gone, or has lost weir's
 * program. Returns whether there was one: weir_instance_follow() puts the program back where it can.
 */
bool weir_instance_watch_links(struct weir_instance *instance, struct weir_diag *diag);

/* An instance on two interfaces, one of which is on top of the other. It evaluates packets that arrive through both
 * twice.
 */
struct weir_repeat {
	char upper[IF_NAMESIZE], lower[IF_NAMESIZE];
};

/* All repeats, as far as the instance's network namespace can be read. The caller frees *ret_repeats; NULL: none. */
size_t weir_instance_find_repeats(const struct weir_instance *instance, struct weir_repeat **ret_repeats);

/* An interface that the instance is to limit, and where it has no program for one or both directions. */
#define WEIR_LOSS_BYTES 384
struct weir_loss {
	char interface[IF_NAMESIZE];
	char words[WEIR_LOSS_BYTES]; /* "instance 'main' is to limit 'eth0' by XDP, but its program there is gone" */
	char cure[WEIR_LOSS_BYTES];  /* "'weir attach -i eth0' puts it back", for all interfaces of the instance */
};

/* All of them, as far as the instance's network namespace can be read; none while another command is at work. Reads the
 * links again. The caller frees *ret_losses; NULL: none.
 */
size_t weir_instance_find_losses(struct weir_instance *instance, struct weir_loss **ret_losses);
/* The warning also says which interface is gone, and that the figures are those until then. */
void weir_instance_warn_of_losses(struct weir_instance *instance, struct weir_diag *diag);
/* Where its drops by flow are (program/top_drops.h). */
struct weir_top_drops_maps weir_top_drops_of(const struct weir_instance *instance);

/* An interface that the instance limited and that is gone; NULL: there is none. Interfaces that a pattern names come
 * and go, and count only if no other is left.
 */
const char *weir_instance_gone_interface(const struct weir_instance *instance);

/* How much longer its limits hold, from now (tables/entry_state.h). */
uint64_t weir_instance_left_ns(const struct weir_instance *instance);

/* The present virtual time of a rule with tokens, and its rate. If the rate moves, this is the rate that the program
 * uses. Returns 0 or -errno.
 */
int weir_instance_read_clock(const struct weir_instance *instance, const struct weir_rule_info *rule,
			     struct weir_token_clock *ret_clock);

/* Whether another version attached the instance, and this version can neither open nor show it. *ret_head gets the part
 * that all versions share, as in pins/pins.h.
 */
bool weir_instance_is_incompatible(const char *name, struct weir_instance_info *ret_head);

void weir_instance_free(struct weir_instance *instance);

static inline void weir_instance_freep(struct weir_instance **instance)
{
	weir_instance_free(*instance);
}

/* The instance, of any version, that has put this program on an interface; false if none is visible. */
bool weir_instance_of_program(uint32_t program_id, char ret_name[WEIR_INSTANCE_NAME_BYTES]);

/* The instance, of this version or another, that limits an interface of the present network namespace, and its link
 * for incoming packets, at any hook, or if it has none, that for outgoing ones; false if none is visible.
 */
bool weir_instance_on(uint32_t ifindex, char ret_name[WEIR_INSTANCE_NAME_BYTES], struct weir_link *ret_link);

struct weir_attach_options {
	const char *instance;
	/* In the present network namespace, all different: names, patterns (fnmatch(3)), and exceptions from the
	 * patterns, which begin with '!'. A pattern excludes loopback interfaces, interfaces without an Ethernet header
	 * (except in tc mode), and interfaces all of whose packets arrive through others that it matches.
	 */
	const char *const *interfaces;
	size_t interface_count;
	enum weir_attach_mode mode;
	/* The caller becomes the controller at once, so thresholds that move are in force from the first packet on. */
	bool is_controlled;
	bool ends_with_run;	      /* the caller, or its successor, will detach the instance in the end */
	bool takes_over_incompatible; /* for weir_instance_is_attached_as(): accept another version's, too */
	bool allows_merging;	      /* in skb mode merged packets may count as one (network/super_frames.h) */
	struct weir_tcx_place place;  /* at tc, on the interfaces that are there now */
};

/* Whether the options select the interface of this name, either by its name or by a pattern with no exception for it.
 */
bool weir_attach_means(const struct weir_attach_options *options, const char *interface);

/*
 * Load the rules and put them on the interfaces: maps first, links last. If anything fails, nothing is left behind;
 * -EINVAL means that the rules are wrong. *diag may hold warnings after success. *ret_attached_ns (may be NULL)
 * distinguishes this attachment from a later one of the same name.
 */
int weir_instance_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			 uint64_t *ret_attached_ns, struct weir_diag *diag);

struct weir_attachment {
	uint64_t attached_ns; /* distinguishes this attachment from a later one of the same name */
	bool ends_with_run;   /* as given when it was attached */
};

/*
 * Put the program in force on more interfaces: on all that the options name and all that their patterns match. If one
 * of them fails, no interface is added. From then on all of them are wanted. -ENOENT: the instance is not attached.
 */
int weir_instance_add(const struct weir_attach_options *options, struct weir_diag *diag);

/* Set the interfaces on which an attached instance is wanted from now on. weir_instance_follow() does the rest. */
int weir_instance_want(const char *name, const struct weir_attach_options *options, struct weir_diag *diag);

/* Interfaces that were refused when they appeared, or that a pattern leaves out. Each is reported once. Starts as {}.
 */
struct weir_follow {
	uint32_t *refused; /* ifindex */
	size_t refused_count;
	uint32_t *left_out; /* ifindex */
	size_t left_out_count;
	bool has_looked;
	bool misses_cases;     /* the rules could not learn of interfaces that appeared (newcomers.c) */
	bool misses_addresses; /* ... nor of this host's addresses (answers.c) */
};

/*
 * Put the program on wanted interfaces that have appeared or come back. Call this whenever links have changed
 * (network/netlink.h). Notes each interface in diag, and warns of each one that refuses the program. Does nothing if
 * the instance is in another network namespace. -EBUSY: another command is at work; try again soon.
 */
int weir_instance_follow(struct weir_instance *instance, struct weir_follow *follow, struct weir_diag *diag);

/* Are senders of blocked packets answered (onBlock)? */
bool weir_instance_answers(const struct weir_instance *instance);
/* Does the kernel give SYN cookies in the present network namespace, whatever the queues (tcp_syncookies is 2)? */
bool weir_cookies_are_given(void);
void weir_follow_free(struct weir_follow *follow);

/*
 * Whether the instance is already attached as the options ask: to these interfaces of the present network namespace, to
 * no other existing interface, and in that mode. A killed `weir run` leaves an instance like this. *ret_attachment is
 * touched only if the answer is yes.
 */
bool weir_instance_is_attached_as(const struct weir_attach_options *options, struct weir_attachment *ret_attachment);

struct weir_reload_result {
	uint64_t generation;
	uint64_t returns_s;	    /* seconds left to confirm it; 0: it need not be confirmed */
	uint32_t rules, kept_rules; /* kept: with their windows and counters */
	struct weir_changes changes;
	/* Prefixes in the lists. The numbers before the reload are 0 if another version attached the instance. */
	uint32_t allow_before, allow_now, deny_before, deny_now;
	bool observed_before, observes_now;
};

void weir_reload_result_free(struct weir_reload_result *result);

struct weir_reload_options {
	/* Start empty, with a warning, the tables that have another version's layout, and the windows of a rule that
	 * its new definition cannot continue. False: list them and change nothing (-EINVAL).
	 */
	bool starts_afresh;
	uint64_t confirm_ns; /* without a confirmation the previous rules return after this; 0: the new ones stay */
	bool adds_in;	     /* evaluate incoming packets, even if no rule needs that */
};

/*
 * Replace the rules, atomically for every packet. If anything fails, the old rules stay; -EINVAL means that the new
 * rules are wrong. The exception is WEIR_RELOAD_NOT_DESCRIBED: the new rules are in force, but the descriptions that
 * show this to other commands could not be written, or only in part. Another reload repairs them. *diag may hold
 * warnings after success. The caller frees *ret_result, which is touched only on success.
 */
#define WEIR_RELOAD_NOT_DESCRIBED (-EUCLEAN)
int weir_instance_reload(const char *name, const struct weir_ruleset *ruleset,
			 const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			 struct weir_diag *diag);

/* What a reload would change, keep, start empty, and cost. */
struct weir_reload_forecast {
	struct weir_forecast changes;
	bool is_before_known;  /* the rules in force were kept, so lines are compared and not only names */
	uint64_t needed_bytes; /* in addition to what is allocated, until the old rules are gone */
	uint64_t total_bytes;  /* of the instance's maps: after the reload and (0: unknown) now */
	uint64_t total_bytes_before;
	uint64_t compile_ns, load_ns; /* time that each step took just now; load_ns 0: the program was not loaded */
};

/*
 * Evaluate a reload without changing anything: the same checks, and the same compiler with the same descriptions. With
 * `loads`, also ask the kernel whether it accepts the program and its maps. As with a reload, unconfirmed rules are a
 * reason to refuse. The caller frees *ret_forecast.
 */
int weir_instance_foresee(const char *name, const struct weir_ruleset *ruleset,
			  const struct weir_reload_options *options, bool loads,
			  struct weir_reload_forecast *ret_forecast, struct weir_diag *diag);
void weir_reload_forecast_free(struct weir_reload_forecast *forecast);

/*
 * Take the lock, which the caller closes, after making sure that incoming packets are evaluated: for a timed entry that
 * is written next. If no rule needs that, the rules in force are loaded once more for it; they keep their windows.
 * While rules are not confirmed, both rule sets evaluate them from then on. If this fails, nothing has changed.
 */
int weir_instance_hold_in(const char *name, int *ret_lock_fd, struct weir_diag *diag);

/*
 * Replace the rule set in force by the one before the last reload, in the same way as a reload does. A second rollback
 * returns to the newer rule set. If the last reload is not confirmed, it is undone as if it had never happened.
 * -ENOENT: there is no previous rule set.
 */
int weir_instance_rollback(const char *name, struct weir_reload_result *ret_result, struct weir_diag *diag);

/* Keep rules that were reloaded subject to confirmation. -ENOENT: there are none. -ETIME: too late. *ret_generation is
 * the generation of these rules.
 */
int weir_instance_confirm(const char *name, uint64_t *ret_generation, struct weir_diag *diag);

/* The time to confirm is over, and the program uses the previous rules. The next command that opens the instance
 * updates its descriptions accordingly.
 */
bool weir_unconfirmed_is_over(const struct weir_unconfirmed *unconfirmed);

/* Update these descriptions: describe the previous rules as those in force, and take the guard off. Warns that it did
 * so, or that it failed (-errno). Every open of an instance does this. A process that keeps an instance open must watch
 * the time itself.
 */
int weir_instance_return(const char *name, struct weir_diag *diag);

/* The time until the previous rules return, in whole seconds, rounded up; 0: it is over. */
uint64_t weir_unconfirmed_left_s(const struct weir_unconfirmed *unconfirmed);

/* The rule sets that the instance has kept (rules/history.h): empty if it has kept none. The caller frees *ret_history.
 */
void weir_instance_history(const struct weir_instance *instance, struct weir_history *ret_history);
/* Does the rule set in force have named sets? Costs little. */
bool weir_instance_has_sets(const char *name);
/* As weir_instance_history(); -ENOENT, with the reason in *diag, if it has not kept the one in force. */
int weir_instance_kept(const struct weir_instance *instance, struct weir_history *ret_history, struct weir_diag *diag);

/* What became of the files of its sets when they changed (sets_note.c). Counts are since the attach. */
struct weir_sets_note {
	uint32_t version, line; /* line 0: not known */
	uint64_t taken, refused;
	uint64_t refused_ns; /* CLOCK_MONOTONIC, when the last change was refused; 0: it was not, or there was none */
	char set[WEIR_NAME_BYTES]; /* why, valid then. Empty: not known */
	char file[1024];
	char why[384];
};

/* False, and a note of zeros: no file has changed yet. */
bool weir_sets_note_read(const char *instance, struct weir_sets_note *ret_note);
/* Why a change was refused: "tenants.csv:17: ..." */
#define WEIR_SETS_NOTE_WORDS 1536
const char *weir_sets_note_words(const struct weir_sets_note *note, char ret_words[WEIR_SETS_NOTE_WORDS]);
/* Files that have changed are in force now. `before`: the rule set that was in force, with its prefixes. */
void weir_sets_note_taken(const char *instance, const struct weir_ruleset *before, const struct weir_ruleset *now);
/* They are not, for the mistakes in diag, which are sorted: noted if one is in a file of a set in force, or if the
 * reload was for sets. in_force: without prefixes; NULL: not known.
 */
void weir_sets_note_refused(const char *instance, const struct weir_ruleset *in_force, bool is_for_sets,
			    struct weir_diag *diag);
/* All files were read again, and are in force. */
void weir_sets_note_loaded(const char *instance);

/*
 * The rule set that was stored on disk at the last load which was confirmed, or needed no confirming. -ENOENT without a
 * message: there is none. *ret_stored is its local date and time. The caller frees *ret_ruleset, which is marked as the
 * last good one.
 */
#define WEIR_LAST_GOOD_TIME_BYTES 32
int weir_last_good_read(const char *instance, struct weir_ruleset **ret_ruleset,
			char ret_stored[WEIR_LAST_GOOD_TIME_BYTES], struct weir_diag *diag);
/* The file that it is in. */
#define WEIR_LAST_GOOD_PATH_BYTES 4352
void weir_last_good_path(const char *instance, char ret_path[WEIR_LAST_GOOD_PATH_BYTES]);

/* Fail with -ENOENT and a message unless the instance is attached to this interface. weir_link_find() says what a name
 * means.
 */
int weir_instance_expect_on(const char *name, const char *interface, struct weir_diag *diag);

/*
 * Take the program off `interface` (a name, or a pattern that the user gave), or off all interfaces (NULL). The
 * instance is not wanted there any more. When the last interface is removed, the instance goes too, unless it waits for
 * others by a pattern. If attached_ns is not 0, the instance must be that attachment, or the call fails with -ESTALE.
 */
int weir_instance_detach(const char *name, const char *interface, uint64_t attached_ns, struct weir_diag *diag);

/*
 * Write a line for people into the instance's journal, which `weir events` shows. If the instance has no journal, for
 * example because another version of weir attached it, nothing is written, ignoring.
 */
void weir_instance_note(const char *instance, enum weir_journal_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for something that happened earlier (CLOCK_MONOTONIC). */
void weir_instance_note_at(const char *instance, uint64_t time_ns, enum weir_journal_kind kind, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Let drops be reported until this time (CLOCK_MONOTONIC), on behalf of a reader that may not write
 * (weir_event_watch_open_sample).
 */
void weir_instance_listen(const char *instance, uint64_t until_ns);

/* ---- overrides in force ----
 *
 * As the attached program finds them: in a trie of its own, which is not pinned and is found through the program. For
 * display only.
 */

/* A descriptor of the trie; -ENOENT if nothing is attached any more, or another -errno. */
int weir_overrides_open(const struct weir_instance *instance);

/* The threshold of the flow with this key, under a rule with overrides: that of the longest matching prefix, or the
 * rule's own.
 */
int weir_overrides_find(int fd, const struct weir_rule_info *rule, const struct weir_flow_key *key,
			uint64_t *ret_units);

/* Call `visit` for the overrides of all rules. Returns 0 or -errno. */
typedef int weir_override_visit(const struct weir_override_key *key, const struct weir_override_units *units,
				void *data);
int weir_overrides_scan(int fd, weir_override_visit *visit, void *data);

#endif
