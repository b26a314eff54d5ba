/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The links of an instance, each of which holds one of its programs at a hook of an interface. A link is found by its
 * pin, whose name contains the hook and the name that the interface had when it was attached. The kernel knows the
 * interface by its index, and thereby its present name. If the kernel has no tcx, a link at tc is a filter
 * (filter_link.h).
 */
#ifndef WEIR_PINS_LINKS_H
#define WEIR_PINS_LINKS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pins/link_pin.h"
#include "pins/pins.h"

/* Fill in the interface index and program of the link with this pin, and what the pin's name says. Returns 0 or -errno.
 */
int weir_link_read(const char *instance, const char *pin, struct weir_link *link);

/* All links, in the order of their pins. Returns 0 or -errno; the caller frees *ret_links. */
int weir_links_read(const char *instance, struct weir_link **ret_links, size_t *ret_count);

/* Update the names of their interfaces, for those in the present network namespace. */
void weir_links_name_here(const char *instance, struct weir_link *links, size_t count);

/*
 * The name under which the interface that `interface` refers to was attached. That is the interface with this name now;
 * otherwise the one with this name then, unless another interface has the name now. Returns 0, -ENOENT or another
 * -errno.
 */
int weir_link_find(const char *instance, const char *interface, char ret_attached_as[IF_NAMESIZE]);

/* Replace the program of a link. Each packet meets the old program or the new one. Returns 0 or -errno. */
int weir_link_update(const char *instance, const struct weir_link *link, int program_fd);

/* Remove the link at once, with anything that is left of it. Returns 0 or -errno: a filter may stay, and its pin with
 * it.
 */
int weir_link_remove(const char *instance, const char *pin);

#endif
