/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of an instance need of each other, private to this directory: attached.c knows which there are,
 * read.c reads one and open.c does so while others are at work, table_versions.c knows which of its tables are
 * another version's, interfaces.c which interfaces it is on, wanted.c on which it is wanted, repeats.c which packets
 * it sees twice, detach.c takes it off, attach.c and reload.c (by reload_plan.c) put rules in force, load.c is what
 * those two do alike, foresee.c is a reload without doing it, link.c puts a program on one interface, follow.c does
 * so where one is added, or comes, programs.c knows what is on the links, newcomers.c what `interface` means of what
 * comes, and transition.c, transition_requests.c, history_map.c and unconfirmed.c are about going back. Whoever
 * changes an instance holds the lock (host/bpffs.h).
 */
#ifndef WEIR_INSTANCE_INSTANCE_INTERNAL_H
#define WEIR_INSTANCE_INSTANCE_INTERNAL_H

#include "instance/instance.h"
#include "program/guard.h"
#include "rules/interface_words.h"

/* ---- attached.c ---- */

/* Say that it is not attached. Returns -ENOENT. */
int weir_instance_fail_not_attached(const char *instance, struct weir_diag *diag);

/* 1 when it has a directory of pins, 0 when it has none; or -errno, reported. A user who may not look must not read
 * that nothing is there, nor take what is there for nothing.
 */
int weir_instance_look_for(const char *name, struct weir_diag *diag);

/* Before the lock, so that nothing is made or mounted when nothing is attached. -ENOENT: reported, too. */
int weir_instance_expect_attached(const char *name, struct weir_diag *diag);

/* ---- open.c ---- */

/* As weir_instance_open_now(), but another version's, too: see is_all_incompatible. */
int weir_instance_open_any(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* ---- read.c ---- */

/* As it is now, which is wrong while a command is at work on it: for those who hold the lock. Another version's, too.
 */
int weir_instance_open_as_is(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* ---- table_versions.c ---- */

/* Sets is_incompatible and is_all_incompatible by the instance's info. */
void weir_instance_find_incompatible(struct weir_instance *instance, bool is_info_incompatible);

/* Whether a rule that keeps its slot at a reload loses its windows all the same, with a table of another version. */
bool weir_instance_empties(const struct weir_instance *instance, const struct weir_rule_info *rule);

/* Say that it is another version's. Returns -EPROTO. */
int weir_instance_fail_incompatible(const struct weir_instance *instance, struct weir_diag *diag);

/* Tables of another version start afresh at a reload: say so, or refuse (-EINVAL). */
int weir_instance_accept_incompatible(const struct weir_instance *instance, bool starts_afresh, struct weir_diag *diag);

/* ---- interfaces.c ---- */

/* A process is its controller (control/controller.h). */
bool weir_instance_is_controlled(const char *name);

/* Fills instance->links. */
int weir_instance_read_links(struct weir_instance *instance, struct weir_diag *diag);

size_t weir_instance_count_links(const char *instance);

/* Of these, how many are on an interface that is still there: a link does not come back with its interface. */
size_t weir_instance_count_live_links(const char *instance);

/* What an interface that it is on was called when it was attached (weir_link_find), or why it is not on it. */
int weir_instance_find_link(const char *name, const char *interface, char ret_attached_as[IF_NAMESIZE],
			    struct weir_diag *diag);

/* ---- newcomers.c ---- */

/* At attach; and at a reload, beside the pins of the rules before, in their place, or not after all. */
int weir_cases_pin(const char *instance, const struct weir_image *image, const struct weir_object *object,
		   struct weir_diag *diag);
int weir_cases_pin_new(const char *instance, const struct weir_image *image, const struct weir_object *object,
		       struct weir_diag *diag);
int weir_cases_take_new(const char *instance, const struct weir_image *image, struct weir_diag *diag);
void weir_cases_drop_new(const char *instance);

/* Bring what `interface` means in line with the interfaces of the present network namespace, the instance's. Returns 0
 * or -errno.
 */
int weir_cases_follow(const char *instance);

/* ---- wanted.c ---- */

/* Words in weir_instance_info.wanted, which has WEIR_WANTED_MAX. Adding one that is there changes nothing; -ENOSPC:
 * there is no room. Removing says whether it was there. */
int weir_wanted_add(struct weir_wanted *wanted, const char *word, struct weir_diag *diag);
bool weir_wanted_remove(struct weir_wanted *wanted, const char *word);

/* An interface of this name is wanted: by name, or by a pattern and no exception. */
bool weir_wanted_means(const struct weir_wanted *wanted, const char *name);
bool weir_wanted_names(const struct weir_wanted *wanted, const char *name); /* by name, or as this very word */
bool weir_wanted_has_patterns(const struct weir_wanted *wanted);

/* They are these words, whatever is excepted. */
bool weir_wanted_is(const struct weir_wanted *wanted, const char *const *words, size_t count);

/* Interfaces of the present network namespace that are there, and wanted. */
struct weir_target {
	char name[IF_NAMESIZE];
	uint32_t ifindex;
	bool is_named; /* by its own name: who asks for it wants to know when it cannot be */
};
/* One that only a pattern means, and on which the program is of no use. */
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
bool weir_targets_leave_out(const struct weir_wanted *wanted, enum weir_attach_mode mode, const char *name);
void weir_left_out_tell(const struct weir_left_out *left_out, struct weir_diag *diag);
void weir_targets_free(struct weir_targets *targets);

/* Fail with -ENODEV, and say so, unless each that is wanted by its name is there. */
int weir_targets_expect(const struct weir_wanted *wanted, struct weir_diag *diag);

/* Fail with -ENOENT, and say so, unless it is wanted by this very pattern. */
int weir_instance_expect_wanted(const struct weir_instance *instance, const char *pattern, struct weir_diag *diag);

/* ---- repeats.c ---- */

/* Warn of packets that the instance, on this interface since just now, sees once more than it did. */
void weir_instance_warn_of_repeats(const char *instance, uint32_t ifindex, struct weir_diag *diag);

/* Warn of packets that it forwards, and counts as they come in and as they go out. */
void weir_instance_warn_of_forwarding(const char *instance, const struct weir_image *image, struct weir_diag *diag);

/* ---- link.c ---- */

/* Fail with -EPROTONOSUPPORT, and say why, unless packets of the interface begin with Ethernet. */
int weir_instance_expect_ethernet(const char *interface, struct weir_diag *diag);

/* Fail with -EBUSY, and say whose it is, if an XDP program is on the interface. */
int weir_instance_refuse_other_program(const char *interface, uint32_t ifindex, struct weir_diag *diag);

/* How much of what goes out rules let wait, at most: for weir_pace_check_out(). Thresholds that move are left out. */
struct weir_waits {
	uint64_t packets, wait_ns;
};

/* How loaded programs are put on interfaces. */
struct weir_link_terms {
	const char *instance;
	enum weir_attach_mode mode;
	bool allows_merging, paces, paces_out;
	struct weir_waits waits;    /* where paces_out */
	int program_fd[WEIR_HOOKS]; /* -1: none for this hook. Without one for what goes out, that is not evaluated */
};

#define WEIR_NO_PROGRAMS                                                                                               \
	{                                                                                                              \
		-1, -1, -1, -1, -1                                                                                     \
	}

/* Put them on one, and pin the links: for what comes in, and for what goes out where that is evaluated. When it fails
 * nothing is left. *ret_link, which may be NULL, is that of what comes in.
 */
int weir_instance_put_link(const struct weir_link_terms *terms, const char *interface, uint32_t ifindex,
			   struct weir_link *ret_link, struct weir_diag *diag);

/* Only the link of what goes out, for an interface whose other link is `in`: in the instance's network namespace. Does
 * nothing where it is not evaluated.
 */
int weir_instance_put_out(const struct weir_link_terms *terms, const struct weir_link *in, struct weir_diag *diag);

/* ---- detach.c ---- */

/* Off one interface, all links to it. Returns 0 or -errno: some could not be taken off. */
int weir_instance_remove_links(const char *instance, const char *attached_as);

/* Take pacing off the interfaces that have no link any more. */
void weir_instance_trim_pace(const char *instance);

/* Links first, so that no program runs without its pins; then what holds packets for it. */
int weir_instance_remove(const char *instance, struct weir_diag *diag);

/* ---- programs.c ---- */

/* A program that links have now, or are to get, one for all of a hook as a rule: to put it back should the next link
 * refuse, or the new rules not be confirmed.
 */
struct weir_old_program {
	uint32_t id;
	int fd;
	enum weir_hook hook;
};

void weir_old_programs_free(struct weir_old_program **programs);

/* Before anything is changed: one more than there are, the last with id 0. The caller frees *ret_programs. */
int weir_instance_open_programs(const struct weir_instance *instance, struct weir_old_program **ret_programs,
				struct weir_diag *diag);

/*
 * Put other programs on all links, by enum weir_hook, or on none. At each hook a packet meets the old rules or the new
 * ones; one that comes in, and goes out at once, may meet both. Links for what goes out come, or go, as there is a
 * program for it or not (-1).
 */
int weir_instance_swap_links(const struct weir_instance *instance, const int program_fd[WEIR_HOOKS],
			     struct weir_old_program *old, struct weir_diag *diag);

/* ---- history_map.c ---- */

/* To be kept as that of a generation. NULL, with a warning, where it is too large. */
int weir_instance_keep(const struct weir_ruleset *ruleset, uint64_t generation, struct weir_kept_set **ret_set,
		       struct weir_diag *diag);

/* A descriptor of a map that holds it, or -errno and why. */
int weir_instance_write_history(const char *instance, const struct weir_history *history, struct weir_diag *diag);

/* ---- unconfirmed.c ---- */

/* The guard of rules that are to be confirmed: until returns_ns packets go to the programs new_fd, then to old_fd, by
 * hook (program/guard.h). It is pinned, and on no link yet. `rules` are the old ones as they are now. The caller frees
 * *ret_guard.
 */
int weir_guard_set_up(const struct weir_instance *instance, const struct weir_rule_info *rules,
		      const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS], uint64_t returns_ns,
		      struct weir_guard_object **ret_guard, struct weir_diag *diag);
void weir_guard_remove(const char *instance);

/* Fills instance->unconfirmed, once its links are read. */
void weir_guard_look(struct weir_instance *instance);

/* A guard is on a link, though its rules are confirmed: who confirmed them was killed. */
bool weir_guard_is_left(const struct weir_instance *instance);

/* What belongs on links of a hook now: the program, or its guard. A descriptor; -ENOENT: nothing is evaluated there; or
 * another -errno.
 */
int weir_instance_open_program(const struct weir_instance *instance, enum weir_hook hook);

/* They stay. -ETIME: too late, and the old ones are in force. */
int weir_guard_confirm(const char *instance);

/* What runs, as if the rules that the guard is there for had never been loaded. */
void weir_guard_take_back(const struct weir_instance *instance, struct weir_previous *previous);

/* ---- transition.c ---- */

/* A transition from one rule set to another. */
struct weir_transition {
	enum weir_transition_kind kind;
	const struct weir_ruleset *ruleset;
	struct weir_ruleset *kept;   /* that is it, if it is one that was kept */
	struct weir_history history; /* as it will be */
	enum weir_emptied emptied;   /* what becomes of windows that cannot be kept */
	uint64_t confirm_ns;	     /* how long there is to confirm it, from the swap on; 0: it is not to be */
	uint64_t returns_ns;	     /* CLOCK_BOOTTIME, from the swap on; 0: it is not to be confirmed */
};

void weir_transition_free(struct weir_transition *transition);

/* Rules that are not confirmed yet are not reloaded: -EBUSY. */
int weir_transition_check(const struct weir_instance *instance, enum weir_transition_kind kind, struct weir_diag *diag);

/*
 * What a transition comes to, under the lock: which rule set, and what is kept then. Rules that are not confirmed yet
 * are not reloaded; a rollback of them is their return. 1: nothing is to be done, another command has returned them.
 */
int weir_transition_plan(struct weir_instance *instance, enum weir_transition_kind kind,
			 const struct weir_ruleset *ruleset, const struct weir_reload_options *options,
			 struct weir_transition *ret_transition, struct weir_diag *diag);

/* Take a guard off the links whose rules are confirmed. */
int weir_instance_finish_confirm(struct weir_instance *instance, struct weir_diag *diag);

/* ---- reload.c ---- */

/* A reload (`ruleset`), a rollback or a return (NULL). *ret_result is touched only when it returns 0; 1: nothing was to
 * be done.
 */
int weir_instance_transition(const char *name, enum weir_transition_kind kind, const struct weir_ruleset *ruleset,
			     const struct weir_reload_options *options, struct weir_reload_result *ret_result,
			     struct weir_diag *diag);

/* Packets that wait: whether these rules can have that, `image` made of `ruleset`. */
int weir_reload_check_pace(const struct weir_instance *instance, const struct weir_image *image,
			   const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* ---- reload_plan.c ---- */

/* A table that is recreated, and replaced together with the program. */
bool weir_reload_replaces(const struct weir_instance *instance, const struct weir_image *image,
			  enum weir_table_id table);

/* What a reload needs beside what there is: the old generation stays until the new one is in its place. */
uint64_t weir_reload_new_bytes(const struct weir_instance *instance, const struct weir_image *image);

/* The rules with their virtual times as they are now, where buckets continue from. The caller's to free. */
struct weir_rule_info *weir_reload_rules_now(const struct weir_instance *instance);

/* Borrows all that it points to. */
struct weir_previous weir_reload_what_runs(const struct weir_instance *instance, struct weir_rule_info *rules);

/* The mode that its rules are compiled for: TC where what comes in on some interface is evaluated there. */
enum weir_attach_mode weir_reload_mode(const struct weir_instance *instance);

/* The hooks that the image is loaded for: those of weir_hooks_of(), and no interface loses the one that it has. */
uint32_t weir_reload_hooks(const struct weir_instance *instance, const struct weir_image *image);

/* Load the program over the maps that stay. */
int weir_reload_load(const struct weir_instance *instance, const struct weir_image *image, bool is_trial,
		     struct weir_object **ret_object, struct weir_diag *diag);

/* Checks, and the image. Changes nothing. */
int weir_reload_prepare(struct weir_instance *instance, const struct weir_transition *transition,
			struct weir_image **ret_image, struct weir_diag *diag);

/* ---- load.c ---- */

/* -EINVAL is for wrong rules; the kernel's own means something else. */
int weir_not_the_rules(int err);

/* Would a rule wait for more memory in use than there is? */
int weir_instance_check_marks(const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* Whether the host has room for maps of so many bytes. */
int weir_instance_check_memory(uint64_t needed_bytes, struct weir_diag *diag);

/* Compile the rules for this host, now, in the place of `previous` (may be NULL). The caller owns *ret_image. */
int weir_instance_build_image(const struct weir_ruleset *ruleset, enum weir_attach_mode mode,
			      const struct weir_previous *previous, enum weir_emptied emptied,
			      struct weir_image **ret_image, struct weir_diag *diag);

/* The hooks that an image needs, bits 1 << enum weir_hook: for what comes in as the mode says; for what goes out where
 * rules evaluate that. Programs for packets without Ethernet only where interfaces without it are taken.
 */
uint32_t weir_hooks_of(enum weir_attach_mode mode, const struct weir_image *image);

struct weir_waits weir_instance_waits_out(const struct weir_ruleset *ruleset);

/* Descriptors of an object's programs, which it keeps; -1: it has none for a hook. */
void weir_instance_hook_fds(const struct weir_object *object, int ret_fds[WEIR_HOOKS]);

/* What the instance's info says after a load; `info` is what it said before. */
void weir_instance_update_info(struct weir_instance_info *info, const struct weir_settings *settings,
			       const struct weir_image *image, const struct weir_object *object);

int weir_instance_write_info(const struct weir_instance *instance, struct weir_diag *diag);

/* Thresholds that move, as they are to be now (weir_thresholds_publish). */
int weir_instance_publish(const struct weir_settings *settings, const struct weir_image *image,
			  const struct weir_object *object, struct weir_diag *diag);

#endif
