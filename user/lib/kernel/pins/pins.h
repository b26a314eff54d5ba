/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room pins: what an instance has in the BPF file system, and what can be read of it without opening the whole
 * instance: names and paths of pins (this header), its links, and its own description.
 *
 * The files of one instance in the BPF file system are a pin for each map, one for each program, and one for each link
 * ("native-INTERFACE", "tcx-out-INTERFACE", ...: links.h). This header handles only names, paths and pinning; instance/
 * decides what is pinned when.
 */
#ifndef WEIR_PINS_H
#define WEIR_PINS_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "host/host.h"
#include "weir_abi.h"
#include "weir_hook.h"

#define WEIR_PIN_THRESHOLDS "thresholds"
/* Present if resources have `interface` (instance/newcomers.c). */
#define WEIR_PIN_INTERFACES "interfaces"
#define WEIR_PIN_CASES "interface_cases"
#define WEIR_PIN_HISTORY "history"
#define WEIR_PIN_LABELS "labels" /* present if flow keys have sets (instance/labels_map.c) */
#define WEIR_PIN_SETS "sets"	 /* present once the file of a set has changed (instance/sets_note.c) */

/* The program of a hook, pinned so that a reload can put it back without CAP_SYS_ADMIN, and the guard on that hook's
 * links while the rules are not confirmed.
 */
const char *weir_pin_of_program(enum weir_hook hook);
const char *weir_pin_of_guard(enum weir_hook hook);

/* The path of a pin of an instance, or (pin NULL) of its directory. `path` has PATH_MAX bytes. */
void weir_pin_path(const char *instance, const char *pin, char *path);

/* All pins of an instance: those of maps, links and programs. Returns 0 or -errno; the caller frees *ret_pins. */
int weir_pins_read(const char *instance, struct weir_names *ret_pins);

int weir_pin(const char *instance, const char *pin, int fd, struct weir_diag *diag);

/* Pin something that will replace the pin of this name. Removes a new pin that was left there earlier. */
int weir_pin_new(const char *instance, const char *pin, int fd, struct weir_diag *diag);
/* Replace the pin by the new one. Readers see one or the other, since rename is atomic. */
int weir_pin_take_new(const char *instance, const char *pin, struct weir_diag *diag);
/* Remove the new pin, which is not needed after all. */
void weir_unpin_new(const char *instance, const char *pin);
/* Open the new pin. */
int weir_pin_open_new(const char *instance, const char *pin);

int weir_pin_open(const char *instance, const char *pin);

/* The pin of a table, under its name or the one that it had before. */
int weir_pin_open_table(const char *instance, enum weir_table_id table);
/* Give it its present name, if it has the one before. */
int weir_pin_rename_table(const char *instance, enum weir_table_id table, struct weir_diag *diag);

bool weir_pin_is_there(const char *instance, const char *pin);
/* 0, also if there is no such pin. A caller that only tidies up may ignore the result: detach will report the failure.
 */
int weir_unpin(const char *instance, const char *pin);

/* ---- an instance's own description (struct weir_instance_info), whichever version of weir attached it ---- */

/*
 * Read an instance's map `instance`. *ret_is_incompatible: another version wrote it, and only the head that all
 * versions share, from `magic` to `netns`, is valid; abi_version is 0 if even that is unknown. The list of its tables
 * begins with ours, by enum weir_table_id; version 0: the instance has no table of this name, or the table is being
 * replaced. Returns 0 or -errno.
 */
int weir_info_read(int map_fd, struct weir_instance_info *ret_info, bool *ret_is_incompatible);

/*
 * A build between two versions may have changed the layout of a table but not its version number. So inspect the pinned
 * maps: those whose sizes differ from this version's get the version WEIR_TABLE_INCOMPATIBLE. Call this before reading
 * or writing any other table. -errno: some could not be inspected.
 */
#define WEIR_TABLE_INCOMPATIBLE UINT32_MAX
int weir_info_expose_incompatible(const char *instance, struct weir_instance_info *info);

/* Describe the tables with this version's layouts, and with the sizes that a load gave them. */
void weir_info_describe_tables(struct weir_instance_info *info, const __u32 sizes[WEIR_TABLE_COUNT]);

/*
 * A new map has replaced this map `instance`, which may be of any version. Write the number of the new generation into
 * the old map, so that a controller which still reads it notices the reload. Returns 0 or -errno.
 */
int weir_info_retire(int map_fd, uint64_t generation);

/* The inode number of the network namespace of an instance's interfaces; 0 if it cannot be determined. */
uint64_t weir_info_netns(const char *instance);

#endif
