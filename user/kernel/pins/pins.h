/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room pins: what an instance has in the BPF file system, and what can be read of it without opening the whole
 * instance: names and paths of pins (this header), its links, and what it says of itself.
 *
 * Files of one instance in the BPF file system: a pin for each map, one for each program, and one for each link
 * ("native-INTERFACE", "tcx-out-INTERFACE", ...: links.h). Only names, paths and pinning; what is pinned when is for
 * instance/ to say.
 */
#ifndef WEIR_PINS_H
#define WEIR_PINS_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "host/names.h"
#include "weir_hook.h"

#define WEIR_PIN_THRESHOLDS "thresholds"
/* Where resources have `interface` (instance/newcomers.c). */
#define WEIR_PIN_INTERFACES "interfaces"
#define WEIR_PIN_CASES "interface_cases"
#define WEIR_PIN_HISTORY "history"

/* The program of a hook, so that a reload can put it back without CAP_SYS_ADMIN; and the one on its links while the
 * rules are not confirmed.
 */
const char *weir_pin_of_program(enum weir_hook hook);
const char *weir_pin_of_guard(enum weir_hook hook);

/* Path of a pin of an instance, or (pin NULL) of its directory. `path` has PATH_MAX bytes. */
void weir_pin_path(const char *instance, const char *pin, char *path);

/* All pins of an instance, of maps, links and programs. Returns 0 or -errno; the caller frees *ret_pins. */
int weir_pins_read(const char *instance, struct weir_names *ret_pins);

int weir_pin(const char *instance, const char *pin, int fd, struct weir_diag *diag);

/* A pin that is about to replace the one of this name; one that was left there goes. */
int weir_pin_new(const char *instance, const char *pin, int fd, struct weir_diag *diag);
/* It does so, in one step for those who look: rename replaces. */
int weir_pin_take_new(const char *instance, const char *pin, struct weir_diag *diag);
/* It does not, after all. */
void weir_unpin_new(const char *instance, const char *pin);
/* Opened as it would be then. */
int weir_pin_open_new(const char *instance, const char *pin);

int weir_pin_open(const char *instance, const char *pin);
bool weir_pin_is_there(const char *instance, const char *pin);
/* 0, also when there is none. Who only tidies up may ignore what it returns: detach will say it. */
int weir_unpin(const char *instance, const char *pin);

#endif
