/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of an instance need of each other, private to this directory: read.c reads, tables.c knows which of
 * its tables are another version's, interfaces.c which interfaces it is on, detach.c takes it off, attach.c and
 * reload.c put rules in force, and load.c is what those two do alike. Whoever changes an instance holds the lock
 * (host/bpffs.h).
 */
#ifndef WEIR_INSTANCE_PARTS_H
#define WEIR_INSTANCE_PARTS_H

#include "instance/instance.h"

/* ---- read.c ---- */

/* Whether it has a directory of pins, whatever is in it. */
bool weir_instance_exists(const char *instance);

/* Say that it is not attached. Returns -ENOENT. */
int weir_instance_fail_not_attached(const char *instance, struct weir_diag *diag);

/* Before the lock, so that nothing is made or mounted when nothing is attached. Who may not look must not be told that
 * nothing is there.
 */
int weir_instance_expect_attached(const char *name, struct weir_diag *diag);

/* As weir_instance_open_now(), but another version's, too: see is_all_foreign. */
int weir_instance_open_any(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* As it is now, which is wrong while a command is at work on it: for those who hold the lock. Another version's, too.
 */
int weir_instance_open_as_is(const char *name, struct weir_instance **ret_instance, struct weir_diag *diag);

/* ---- tables.c ---- */

/* Sets is_foreign and is_all_foreign by the instance's info. */
void weir_instance_find_foreign(struct weir_instance *instance, bool is_info_foreign);

/* Whether a rule that keeps its slot at a reload loses its windows all the same, with a table of another version. */
bool weir_instance_empties(const struct weir_instance *instance, const struct weir_rule_info *rule);

/* Say that it is another version's. Returns -EPROTO. */
int weir_instance_fail_foreign(const struct weir_instance *instance, struct weir_diag *diag);

/* Tables of another version start afresh at a reload: say so, or refuse (-EINVAL). */
int weir_instance_accept_foreign(const struct weir_instance *instance, enum weir_reload_foreign foreign,
				 struct weir_diag *diag);

/* ---- interfaces.c ---- */

/* Whether a pin of this name is one of a link. */
bool weir_is_link_pin(const char *pin);

/* Fills instance->links. */
int weir_instance_read_links(struct weir_instance *instance, struct weir_diag *diag);

size_t weir_instance_count_links(const char *instance);

/* Of these, how many are on an interface that is still there: a link does not come back with its interface. */
size_t weir_instance_count_live_links(const char *instance);

/* The pin of its link to an interface (weir_link_find), or why there is none. */
int weir_instance_find_link(const char *name, const char *interface, char ret_pin[WEIR_LINK_PIN_BYTES],
			    struct weir_diag *diag);

/* ---- detach.c ---- */

/* Links first, so that no program runs without its pins; then what holds packets for it. */
int weir_instance_remove(const char *instance, struct weir_diag *diag);

/* ---- load.c ---- */

/* -EINVAL is for wrong rules; the kernel's own means something else. */
int weir_not_the_rules(int err);

/* Would a rule wait for more memory in use than there is? */
int weir_instance_check_marks(const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* Whether the host has room for maps of so many bytes. */
int weir_instance_check_memory(uint64_t needed_bytes, struct weir_diag *diag);

/* Compile the rules for this host, now, in the place of `previous` (may be NULL). The caller owns *ret_image. */
int weir_instance_build_image(const struct weir_ruleset *ruleset, const struct weir_previous *previous,
			      struct weir_image **ret_image, struct weir_diag *diag);

/* What the instance's info says after a load; `info` is what it said before. */
void weir_instance_update_info(struct weir_instance_info *info, const struct weir_settings *settings,
			       const struct weir_image *image, const struct weir_object *object);

/* Thresholds that move, as they are to be now (weir_thresholds_publish). */
int weir_instance_publish(const struct weir_settings *settings, const struct weir_image *image,
			  const struct weir_object *object, struct weir_diag *diag);

#endif
