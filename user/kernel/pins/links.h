/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The links of an instance, each of which holds one of its programs at a hook of an interface. A link is found by its
 * pin, whose name says the hook and what the interface was called when it was attached; the kernel knows the interface
 * by its number, and so what it is called now. Where the kernel has no tcx, a link at tc is a filter (filter_link.h).
 */
#ifndef WEIR_PINS_LINKS_H
#define WEIR_PINS_LINKS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pins/link_pin.h"
#include "pins/pins.h"

/* Fill in number and program of the link of a pin, and what the pin says. Returns 0 or -errno. */
int weir_link_read(const char *instance, const char *pin, struct weir_link *link);

/* All of them, in the order of their pins. Returns 0 or -errno; the caller frees *ret_links. */
int weir_links_read(const char *instance, struct weir_link **ret_links, size_t *ret_count);

/* Look again what their interfaces are called, as far as these are in the present network namespace. */
void weir_links_name_here(const char *instance, struct weir_link *links, size_t count);

/*
 * What the interface that `interface` means was called when it was attached: the one of this name now, else the one
 * that had it then, unless another interface has it by now. Returns 0, -ENOENT or another -errno.
 */
int weir_link_find(const char *instance, const char *interface, char ret_attached_as[IF_NAMESIZE]);

/* Put another program in the place of a link's. Each packet meets one or the other. Returns 0 or -errno. */
int weir_link_update(const char *instance, const struct weir_link *link, int program_fd);

/* Take it off, at once; whatever is left of it goes. Returns 0 or -errno: a filter may stay, and its pin with it. */
int weir_link_remove(const char *instance, const char *pin);

#endif
