/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of an instance need of each other, private to this directory.
 *
 * attached.c lists the instances. read.c reads one, and open.c does so while other commands are at work.
 * table_versions.c finds tables of another version, interfaces.c lists the interfaces that the instance is on, and
 * wanted.c those on which it is wanted, losses.c those of them that it has lost. repeats.c finds packets that it sees
 * twice. attach.c and reload.c put rules in
 * force (reload_plan.c plans a reload), load.c has what these two share, foresee.c does a dry run of a reload, and
 * detach.c takes the instance off. link.c puts a program on one interface, follow.c does so for interfaces that are
 * added or appear later, and entries.c for timed entries. programs.c manages the programs on the links, and
 * newcomers.c applies `match.interface` to interfaces that appear later. transition.c, transition_requests.c,
 * history_map.c and unconfirmed.c return to earlier rules. sets_note.c keeps what became of changed files of sets.
 * Whoever changes an instance holds the lock (host/bpffs.h).
 */
#ifndef WEIR_INSTANCE_INSTANCE_INTERNAL_H
#define WEIR_INSTANCE_INSTANCE_INTERNAL_H

#include "instance/instance.h"
#include "program/guard.h"
#include "rules/scalars.h"

/* ---- attached.c ---- */

/* Report that the instance is not attached. Returns -ENOENT. */
int weir_instance_fail_not_attached(const char *instance, struct weir_diag *diag);

/* 1 if the instance has a directory of pins, 0 if it has none, or -errno, reported. A user without permission must read
 * neither that nothing is attached nor that the instance is missing.
 */
int weir_instance_look_for(const char *name, struct weir_diag *diag);

/* Called before the lock is taken, so that nothing is created or mounted if nothing is attached. -ENOENT is reported,
 * too.
 */
int weir_instance_expect_attached(const char *name, struct weir_diag *diag);

/* ---- open.c ---- */

/* As weir_instance_open_now(), but also opens an instance of another version: see is_all_incompatible. */
int weir_instance_open_any(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* ---- read.c ---- */

/* Read the instance as it is now. The result is wrong while a command is at work on the instance, so the caller must
 * hold the lock. Also reads an instance of another version.
 */
int weir_instance_open_as_is(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* ---- table_versions.c ---- */

/* Sets is_incompatible and is_all_incompatible according to the instance's info. */
void weir_instance_find_incompatible(struct weir_instance *instance, bool is_info_incompatible);

/* Whether a rule that keeps its slot at a reload still loses its windows, because a table has another version. */
bool weir_instance_empties(const struct weir_instance *instance, const struct weir_rule_info *rule);

/* Report that the instance belongs to another version. Returns -EPROTO. */
int weir_instance_fail_incompatible(const struct weir_instance *instance, struct weir_diag *diag);

/* A reload starts tables of another version afresh: warn of it, or refuse (-EINVAL). */
int weir_instance_accept_incompatible(const struct weir_instance *instance, bool starts_afresh, struct weir_diag *diag);

/* ---- interfaces.c ---- */

/* A process is the controller of this instance (control/controller.h). */
bool weir_instance_is_controlled(const char *name);

/* Fills instance->links, or replaces them by those of now. */
int weir_instance_read_links(struct weir_instance *instance, struct weir_diag *diag);

size_t weir_instance_count_links(const char *instance);

/* How many of these links are on an interface that still exists. A link does not come back with its interface. */
size_t weir_instance_count_live_links(const char *instance);

/* The name that an interface of the instance had when it was attached (weir_link_find), or why the instance is not on
 * it.
 */
int weir_instance_find_link(const char *name, const char *interface, char ret_attached_as[IF_NAMESIZE],
			    struct weir_diag *diag);

/* ---- newcomers.c ---- */

/* Pin at attach. At a reload: pin beside the old rules' pins, then replace these, or drop the new pins if the reload
 * fails.
 */
int weir_cases_pin(const char *instance, const struct weir_image *image, const struct weir_object *object,
		   int (*pin_one)(const char *instance, const char *pin, int fd, struct weir_diag *diag),
		   struct weir_diag *diag); /* weir_pin, or weir_pin_new */
int weir_cases_take_new(const char *instance, const struct weir_image *image, struct weir_diag *diag);
void weir_cases_drop_new(const char *instance);

/* Update what `interface` means according to the interfaces of the present network namespace, which is the instance's.
 * Returns 0 or -errno.
 */
int weir_cases_follow(const char *instance);

/* ---- labels_map.c: the same for the labels of flow keys ---- */

int weir_labels_pin(const char *instance, const struct weir_object *object,
		    int (*pin_one)(const char *instance, const char *pin, int fd, struct weir_diag *diag),
		    struct weir_diag *diag);
int weir_labels_take_new(const char *instance, const struct weir_object *object, struct weir_diag *diag);
/* Set instance->labels, once its rules are known. */
void weir_labels_map(struct weir_instance *instance);
void weir_labels_unmap(struct weir_instance *instance);

/* ---- answers.c ---- */

/* Make the map contain the addresses of the present network namespace. Returns 0 or -errno. */
int weir_own_addresses_write(int map_fd);
/* The same for a load that answers, in the namespace of its interfaces (0: the present one). */
int weir_instance_write_addresses(uint64_t netns, const struct weir_image *image, const struct weir_object *object,
				  struct weir_diag *diag);
/* Refuse `onBlock: cookie` where the kernel does not give cookies. */
int weir_instance_check_cookies(uint64_t netns, const struct weir_image *image, struct weir_diag *diag);
/* Warn if answers cannot leave by an interface that has appeared. (weir_examine_attached() does it for the others.) */
void weir_instance_warn_of_answers(const struct weir_link *link, struct weir_diag *diag);

/* ---- wanted.c ---- */

/* Words in weir_instance_info.wanted, which has room for WEIR_WANTED_MAX. Adding a word that is there changes nothing;
 * -ENOSPC: no room. Removing returns whether the word was there.
 */
int weir_wanted_add(struct weir_wanted *wanted, const char *word, struct weir_diag *diag);
bool weir_wanted_remove(struct weir_wanted *wanted, const char *word);

/* An interface of this name is wanted, either by name or by a pattern with no exception for it. */
bool weir_wanted_means(const struct weir_wanted *wanted, const char *name);
bool weir_wanted_names(const struct weir_wanted *wanted, const char *name); /* by name, or as exactly this word */
bool weir_wanted_has_patterns(const struct weir_wanted *wanted);

/* The words are exactly these, whatever exceptions there are. */
bool weir_wanted_is(const struct weir_wanted *wanted, const char *const *words, size_t count);

/* Existing interfaces of the present network namespace on which the instance is wanted. */
struct weir_target {
	char name[IF_NAMESIZE];
	uint32_t ifindex;
	bool is_named; /* wanted by its own name: the user then wants an error if it cannot be limited */
	bool is_bare;  /* its packets have no Ethernet header */
};
/* An interface that only a pattern matches, and on which the program would be of no use. */
#define WEIR_LEFT_OUT_BYTES 128
struct weir_left_out {
	char name[IF_NAMESIZE];
	uint32_t ifindex;
	char why[WEIR_LEFT_OUT_BYTES];
};
struct weir_targets {
	struct weir_target *targets;
	size_t count;
	struct weir_left_out *left_out;
	size_t left_out_count;
};
int weir_targets_find(const struct weir_wanted *wanted, enum weir_attach_mode mode,
		      struct weir_targets *ret_targets); /* 0 or -errno */
bool weir_targets_have_bare(const struct weir_targets *targets);
bool weir_targets_leave_out(const struct weir_wanted *wanted, enum weir_attach_mode mode, const char *name);
void weir_left_out_report(const struct weir_left_out *left_out, struct weir_diag *diag);
void weir_targets_free(struct weir_targets *targets);

/* Fail with -ENODEV and a message unless every interface that is wanted by name exists. */
int weir_targets_expect(const struct weir_wanted *wanted, struct weir_diag *diag);

/* Fail with -ENOENT and a message unless the instance is wanted by exactly this pattern. */
int weir_instance_expect_wanted(const struct weir_instance *instance, const char *pattern, struct weir_diag *diag);

/* ---- losses.c ---- */

/* The instance has no link to this interface for a direction that it evaluates. */
bool weir_instance_lacks_link(const struct weir_instance *instance, uint32_t ifindex, bool is_out);

/* As weir_instance_find_losses(), by the links as they were read, for a caller that holds the lock. */
size_t weir_instance_losses_now(const struct weir_instance *instance, struct weir_loss **ret_losses);

/* ---- repeats.c ---- */

/* Warn of packets that the instance evaluates once more since it was put on this interface. */
void weir_instance_warn_of_repeats(const char *instance, uint32_t ifindex, struct weir_diag *diag);

/* Warn of packets that the instance forwards, and counts both when they come in and when they go out. */
void weir_instance_warn_of_forwarding(const char *instance, bool limits_both, struct weir_diag *diag);

/* ---- link.c ---- */

/* Fail with -EPROTONOSUPPORT and a message unless packets of the interface begin with an Ethernet header. */
int weir_instance_expect_ethernet(const char *interface, struct weir_diag *diag);

/* If an XDP program is on the interface, fail with -EBUSY and say whose it is. */
int weir_instance_refuse_other_program(const char *interface, uint32_t ifindex, struct weir_diag *diag);

/* The most packets, and the longest time, that rules let outgoing packets wait: for weir_pace_check_out(). Thresholds
 * that move are not included.
 */
struct weir_waits {
	uint64_t packets, wait_ns;
};

/* How loaded programs are put on interfaces. */
struct weir_link_terms {
	const char *instance;
	enum weir_attach_mode mode;
	bool allows_merging, paces, paces_out, asks_interface;
	struct weir_waits waits; /* valid if paces_out */
	struct weir_tcx_place place;
	int program_fd[WEIR_HOOKS]; /* -1: none for this hook, at which nothing is then evaluated */
};

#define WEIR_NO_PROGRAMS                                                                                               \
	{                                                                                                              \
		-1, -1, -1, -1, -1                                                                                     \
	}

/* Refuse rules that ask for `interface` on a bond in native mode. */
int weir_instance_refuse_ports(const char *interface, bool asks_interface, struct weir_diag *diag);

/* Refuse a place among the programs at tc for rules that are not evaluated there: -EINVAL, a wrong request. */
int weir_instance_check_place(const struct weir_tcx_place *place, bool is_at_tc, struct weir_diag *diag);

/* Put the programs on one interface and pin the links: one for each direction that has a program. If this fails,
 * nothing is left. *ret_link, which may be NULL, is the link that stands for the interface.
 */
int weir_instance_put_link(const struct weir_link_terms *terms, const char *interface, uint32_t ifindex,
			   struct weir_link *ret_link, struct weir_diag *diag);

/* Put only the link for one direction on an interface that has the link `there`, in the instance's network namespace.
 * Does nothing if packets of that direction are not evaluated, or if the interface has that link already.
 */
int weir_instance_put_other(const struct weir_link_terms *terms, const struct weir_link *there, bool is_out,
			    struct weir_diag *diag);

/* Whether an interface with the link `there` gets a program for this direction. */
bool weir_link_terms_have(const struct weir_link_terms *terms, const struct weir_link *there, bool is_out);

/* What an instance's description says of its links; without programs. */
struct weir_link_terms weir_instance_terms(const struct weir_instance *instance);

/* ---- detach.c ---- */

/* Remove all links to one interface. Returns 0 or -errno: some could not be removed. */
int weir_instance_remove_links(const char *instance, const char *attached_as);

/* Stop pacing on interfaces that no longer have a link. */
void weir_instance_trim_pace(const char *instance);

/* Links go first, so that no program runs without its pins, and then whatever holds packets for the instance. */
int weir_instance_remove(const char *instance, struct weir_diag *diag);

/* ---- programs.c ---- */

/* A program that links have now, or will get; usually one for all links of a hook. It is kept so that it can be put
 * back if the next link refuses the change, or the new rules are not confirmed.
 */
struct weir_old_program {
	uint32_t id;
	int fd;
	enum weir_hook hook;
};

void weir_old_programs_free(struct weir_old_program **programs);

/* Called before anything is changed. The list has an extra last element with id 0. The caller frees *ret_programs. */
int weir_instance_open_programs(const struct weir_instance *instance, struct weir_old_program **ret_programs,
				struct weir_diag *diag);

/*
 * Put other programs, those of `terms`, on all links or, if that fails, on none. At each hook a packet meets the old
 * rules or the new ones; a packet that comes in and goes out at once may meet both. Links of a direction are added or
 * removed depending on whether there is a program for it.
 */
int weir_instance_swap_links(const struct weir_instance *instance, const struct weir_link_terms *terms,
			     struct weir_old_program *old, struct weir_diag *diag);

/* ---- history_map.c ---- */

/* Prepare a rule set for keeping as that of a generation. */
int weir_instance_keep(const struct weir_ruleset *ruleset, uint64_t generation, struct weir_kept_set **ret_set,
		       struct weir_diag *diag);

/* A descriptor of a map that holds the history, or -errno and the reason. */
int weir_instance_write_history(const char *instance, const struct weir_history *history, struct weir_diag *diag);

/* ---- last_good.c ---- */

/* Store the rule set that is in force, and needs no confirming, for a boot with a wrong rule file. Call this under the
 * lock. A failure is a warning.
 */
void weir_last_good_write(const char *instance, struct weir_kept_set *set, struct weir_diag *diag);

/* ---- unconfirmed.c ---- */

/* The guard of rules that have to be confirmed: until returns_ns packets go to the programs new_fd, then to old_fd, by
 * hook (program/guard.h). The guard is pinned, but not yet on a link. `rules` are the old rules as they are now. The
 * caller frees *ret_guard.
 */
int weir_guard_set_up(const struct weir_instance *instance, const struct weir_rule_info *rules,
		      const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS], uint64_t returns_ns,
		      struct weir_guard_object **ret_guard, struct weir_diag *diag);
void weir_guard_remove(const char *instance);

/* Fills instance->unconfirmed. The links must have been read. */
void weir_guard_look(struct weir_instance *instance);

/* A guard is still on a link although its rules are confirmed: the command that confirmed them was killed. */
bool weir_guard_is_left(const struct weir_instance *instance);

/* What belongs on the links of a hook now: the program, or its guard. Returns a descriptor, -ENOENT if nothing is
 * evaluated at that hook, or another -errno.
 */
int weir_instance_open_program(const struct weir_instance *instance, enum weir_hook hook);

/* The guard's maps, which the caller closes; and to pin, or unpin, what a guard of more hooks has beside them. */
struct weir_guard_maps weir_guard_open_maps(const char *instance);
int weir_guard_pin_more(const char *instance, const struct weir_guard_object *guard, const struct weir_guard_maps *maps,
			struct weir_diag *diag);
void weir_guard_unpin_more(const char *instance, const struct weir_guard_object *guard,
			   const struct weir_guard_maps *maps);

/* The new rules have programs for incoming packets only behind the guard: for timed entries alone (entries.c). A load
 * of these rules gives them their own, and takes the guard off.
 */
bool weir_guard_has_entries(const struct weir_instance *instance);

/* Keep the new rules. -ETIME: too late, the old ones are in force. */
int weir_guard_confirm(const char *instance);

/* Describe what runs as if the rules behind the guard had never been loaded. */
void weir_guard_take_back(const struct weir_instance *instance, struct weir_previous *previous);

/* ---- transition.c ---- */

/* A change from one rule set to another. */
struct weir_transition {
	enum weir_transition_kind kind;
	const struct weir_ruleset *ruleset;
	struct weir_ruleset *kept;   /* the same rule set, owned, if it comes from the history */
	struct weir_history history; /* as it will be afterwards */
	enum weir_emptied emptied;   /* what happens to windows that cannot be kept */
	uint64_t confirm_ns;	     /* time to confirm the rules, from the swap on; 0: they need no confirmation */
	uint64_t returns_ns;	     /* CLOCK_BOOTTIME, set at the swap; 0: the rules need no confirmation */
	bool adds_bare; /* load the programs for interfaces without an Ethernet header, if there are none */
	bool adds_in;	/* load those for incoming packets, even if no rule needs them */
};

void weir_transition_free(struct weir_transition *transition);

/* Refuse to reload rules that are not confirmed yet: -EBUSY. */
int weir_transition_check(const struct weir_instance *instance, enum weir_transition_kind kind, struct weir_diag *diag);

/*
 * Plan a transition, under the lock: which rule set to load, and what to keep afterwards. Rules that are not confirmed
 * yet cannot be reloaded; rolling them back means returning to the previous rules. 1: nothing to do, because another
 * command has already returned to these. LOADED without `ruleset`: load the one in force once more.
 */
int weir_transition_plan(struct weir_instance *instance, enum weir_transition_kind kind,
			 const struct weir_ruleset *ruleset, const struct weir_reload_options *options,
			 struct weir_transition *ret_transition, struct weir_diag *diag);

/* Take a guard off the links after its rules have been confirmed. */
int weir_instance_finish_confirm(struct weir_instance *instance, struct weir_diag *diag);

/* ---- reload.c ---- */

/* A reload (`ruleset`), or a rollback or return (NULL). *ret_result is touched only if this returns 0; 1: there was
 * nothing to do.
 */
int weir_instance_transition(const char *name, enum weir_transition_kind kind, const struct weir_ruleset *ruleset,
			     const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			     struct weir_diag *diag);

/* The same for a caller that holds the lock and has opened the instance since, which is out of date afterwards. */
int weir_instance_transition_locked(struct weir_instance *instance, enum weir_transition_kind kind,
				    const struct weir_ruleset *ruleset, const struct weir_reload_options *options,
				    struct weir_reload_result *ret_result, struct weir_diag *diag);

/* Check whether these rules can make packets wait here. `image` is compiled from `ruleset`. */
int weir_reload_check_pace(const struct weir_instance *instance, const struct weir_image *image,
			   const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* ---- reload_plan.c ---- */

/* Whether this table is recreated, and replaced together with the program. */
bool weir_reload_replaces(const struct weir_instance *instance, const struct weir_image *image,
			  enum weir_table_id table);

/* The memory that a reload needs in addition: the old generation stays until the new one has replaced it. */
uint64_t weir_reload_new_bytes(const struct weir_instance *instance, const struct weir_image *image);

/* The rules with their present virtual times, from which the buckets continue. The caller frees them. */
struct weir_rule_info *weir_reload_rules_now(const struct weir_instance *instance);

/* The result borrows everything that it points to. */
struct weir_previous weir_reload_what_runs(const struct weir_instance *instance, struct weir_rule_info *rules);

/* The mode for which the rules are compiled: TC if incoming packets of some interface are evaluated at tc. */
enum weir_attach_mode weir_reload_mode(const struct weir_instance *instance);

/* Load the programs over the maps that stay. */
int weir_reload_load(const struct weir_instance *instance, const struct weir_transition *transition,
		     const struct weir_image *image, bool is_trial, struct weir_object **ret_object,
		     struct weir_diag *diag);

/* Run the checks and build the image. Changes nothing. */
int weir_reload_prepare(struct weir_instance *instance, const struct weir_transition *transition,
			struct weir_image **ret_image, struct weir_diag *diag);

/* ---- load.c ---- */

/* -EINVAL is reserved for wrong rules. The kernel's own -EINVAL means something else, and becomes another error here.
 */
int weir_not_the_rules(int err);

/* Check the memory marks of the rules against the total memory of the host or its cgroup. */
int weir_instance_check_marks(const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* Check whether the host has room for maps of this size. */
int weir_instance_check_memory(uint64_t needed_bytes, struct weir_diag *diag);

/* Compile the rules for this host at this moment, as a replacement of `previous` (may be NULL). The caller owns
 * *ret_image.
 */
int weir_instance_build_image(const struct weir_ruleset *ruleset, enum weir_attach_mode mode,
			      const struct weir_previous *previous, enum weir_emptied emptied,
			      struct weir_image **ret_image, struct weir_diag *diag);

/* The hooks for these directions, as bits 1 << enum weir_hook: for incoming packets according to the mode. In tc mode,
 * `has_bare` adds those of interfaces without an Ethernet header: each program takes the verifier's time for itself,
 * and few instances have such interfaces (load_again() in follow.c).
 */
uint32_t weir_hooks_of(enum weir_attach_mode mode, uint8_t directions, bool has_bare);

struct weir_waits weir_instance_waits_out(const struct weir_ruleset *ruleset);

/* The descriptors of an object's programs, which the object keeps; -1: no program for that hook. */
void weir_instance_hook_fds(const struct weir_object *object, int ret_fds[WEIR_HOOKS]);

/* Update the instance's info after a load; `info` holds the previous contents. loaded_ns (CLOCK_MONOTONIC) is when the
 * kernel began to go by these rules.
 */
void weir_instance_update_info(struct weir_instance_info *info, const struct weir_ruleset *ruleset,
			       const struct weir_image *image, const struct weir_object *object, uint64_t loaded_ns);

int weir_instance_write_info(const struct weir_instance *instance, struct weir_diag *diag);

/* Publish the present values of thresholds that move (weir_thresholds_publish). */
int weir_instance_publish(const struct weir_settings *settings, const struct weir_image *image,
			  const struct weir_object *object, struct weir_diag *diag);

#endif
