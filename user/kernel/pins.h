/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of one instance in the BPF file system: a pin for each map, one for each link
 * ("link-INTERFACE"). Only names, paths and pinning; what is pinned when is instance.c's.
 */
#ifndef WEIR_PINS_H
#define WEIR_PINS_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#include "diag.h"

#define WEIR_PIN_THRESHOLDS "thresholds"
#define WEIR_PIN_NEW "-new"	/* suffix of a pin that is about to replace the one without */

/* Path of a pin of an instance, or (pin NULL) of its directory. `path` has PATH_MAX bytes. */
void weir_pin_path(const char *instance, const char *pin, char *path);

/* Name of the pin of an interface's link. An interface may have dots in its name; a pin may not. */
void weir_link_pin(const char *interface, char pin[IF_NAMESIZE * 3 + 8]);

/* Interface of a link's pin; false when it is the pin of something else. */
bool weir_link_pin_interface(const char *pin, char interface[IF_NAMESIZE]);

struct weir_names {
	char **names;
	size_t count;
};

/* Names in a directory but for hidden ones, sorted. Returns 0 or -errno. */
int weir_names_read(const char *path, struct weir_names *ret_names);
void weir_names_free(struct weir_names *names);

int weir_pin(const char *instance, const char *pin, int fd, struct weir_diag *diag);
int weir_pin_open(const char *instance, const char *pin);
void weir_unpin(const char *instance, const char *pin);

#endif
