/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The links of an instance, each of which holds its program on an interface. A link is found by its pin, which has the
 * name that the interface had when it was attached; the kernel knows it by its number, and so what it is called now.
 */
#ifndef WEIR_PINS_LINKS_H
#define WEIR_PINS_LINKS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pins/pins.h"

struct weir_link {
	char attached_as[IF_NAMESIZE]; /* what its interface was called when it was attached: in its pin */
	char interface[IF_NAMESIZE];   /* what it is called now; where that cannot be determined, attached_as */
	bool is_name_current; /* it can: the interface is in the instance's network namespace, and we get there */
	uint32_t ifindex;     /* 0: the interface is gone, and the link is dead */
	uint32_t program_id;
	bool is_native; /* else in skb mode */
};

/* Fill in number and program. Returns 0 or -errno. */
int weir_link_read(const char *instance, const char *pin, struct weir_link *link);

/* All of them, in the order of their pins. Returns 0 or -errno; the caller frees *ret_links. */
int weir_links_read(const char *instance, struct weir_link **ret_links, size_t *ret_count);

/* Look again what their interfaces are called, as far as these are in the present network namespace. */
void weir_links_name_here(const char *instance, struct weir_link *links, size_t count);

/*
 * The pin of the link that `interface` means: the one on the interface of this name now, else the one whose interface
 * had it when it was attached, unless another interface has it by now. Returns 0, -ENOENT or another -errno.
 */
int weir_link_find(const char *instance, const char *interface, char ret_pin[WEIR_LINK_PIN_BYTES]);

#endif
