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

#include "base/diag.h"
#include "host/names.h"
#include "weir_hook.h"

#define WEIR_PIN_THRESHOLDS "thresholds"
/* Present if resources have `interface` (instance/newcomers.c). */
#define WEIR_PIN_INTERFACES "interfaces"
#define WEIR_PIN_CASES "interface_cases"
#define WEIR_PIN_HISTORY "history"

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
bool weir_pin_is_there(const char *instance, const char *pin);
/* 0, also if there is no such pin. A caller that only tidies up may ignore the result: detach will report the failure.
 */
int weir_unpin(const char *instance, const char *pin);

#endif
