/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One link of an instance, and the name of its pin. That name contains the hook, how the link is held, and the
 * interface's name at the time of attaching. This file handles only names.
 */
#ifndef WEIR_PINS_LINK_PIN_H
#define WEIR_PINS_LINK_PIN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "weir_hook.h"

struct weir_link {
	char attached_as[IF_NAMESIZE]; /* the interface's name when the link was attached; part of the pin's name */
	char interface[IF_NAMESIZE];   /* the interface's present name; if that cannot be determined, attached_as */
	bool is_name_current; /* `interface` is known to be current: we could look in the instance's namespace */
	uint32_t ifindex;     /* 0: the interface is gone, and the link is dead */
	uint32_t program_id;
	enum weir_hook hook;
	bool is_native; /* at XDP: native mode, else skb mode */
	bool is_filter; /* at tc: a clsact filter, else a tcx link */
};

/* For outgoing packets, else for incoming ones. A limited interface always has a link for incoming packets. */
static inline bool weir_hook_is_out(enum weir_hook hook)
{
	return hook == WEIR_HOOK_TC_OUT || hook == WEIR_HOOK_TC_BARE_OUT;
}

/* "native", "skb" or "tc" */
const char *weir_link_mode_name(const struct weir_link *link);

/* The tc hook for a direction, for packets with or without an Ethernet header. */
static inline enum weir_hook weir_hook_at_tc(bool is_out, bool is_bare)
{
	if (is_bare)
		return is_out ? WEIR_HOOK_TC_BARE_OUT : WEIR_HOOK_TC_BARE_IN;
	return is_out ? WEIR_HOOK_TC_OUT : WEIR_HOOK_TC_IN;
}

/*
 * The name of a link's pin. It contains attached_as, the hook, and how the link is held, none of which the kernel
 * reports to another network namespace. An interface's name may contain dots; a pin's may not.
 */
#define WEIR_LINK_PIN_BYTES (3 * IF_NAMESIZE + 20)
void weir_link_pin(const struct weir_link *link, char pin[WEIR_LINK_PIN_BYTES]);

/* The reverse; false if it is the pin of something else. */
bool weir_link_pin_parse(const char *pin, struct weir_link *ret_link);

static inline bool weir_is_link_pin(const char *pin)
{
	struct weir_link link;

	return weir_link_pin_parse(pin, &link);
}

#endif
