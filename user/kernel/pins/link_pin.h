/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One link of an instance, and the name of its pin, which says at which hook it is, how it is held there, and what its
 * interface was called when it was attached. Names only.
 */
#ifndef WEIR_PINS_LINK_PIN_H
#define WEIR_PINS_LINK_PIN_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "weir_hook.h"

struct weir_link {
	char attached_as[IF_NAMESIZE]; /* what its interface was called when it was attached: in its pin */
	char interface[IF_NAMESIZE];   /* what it is called now; where that cannot be determined, attached_as */
	bool is_name_current; /* it can: the interface is in the instance's network namespace, and we get there */
	uint32_t ifindex;     /* 0: the interface is gone, and the link is dead */
	uint32_t program_id;
	enum weir_hook hook;
	bool is_native; /* at XDP: else in skb mode */
	bool is_filter; /* at tc: a filter of clsact, else a tcx link */
};

/* What goes out; else what comes in. An interface that is limited has always a link of the latter. */
static inline bool weir_hook_is_out(enum weir_hook hook)
{
	return hook == WEIR_HOOK_TC_OUT || hook == WEIR_HOOK_TC_BARE_OUT;
}

/* "native", "skb" or "tc" */
const char *weir_link_mode_name(const struct weir_link *link);

/* The hook at tc of a direction, for packets with or without an Ethernet header. */
static inline enum weir_hook weir_hook_at_tc(bool is_out, bool is_bare)
{
	if (is_bare)
		return is_out ? WEIR_HOOK_TC_BARE_OUT : WEIR_HOOK_TC_BARE_IN;
	return is_out ? WEIR_HOOK_TC_OUT : WEIR_HOOK_TC_IN;
}

/*
 * Name of the pin of a link, by attached_as, hook, and how it is held: which no one can ask the kernel for from another
 * network namespace. An interface may have dots in its name; a pin may not.
 */
#define WEIR_LINK_PIN_BYTES (3 * IF_NAMESIZE + 20)
void weir_link_pin(const struct weir_link *link, char pin[WEIR_LINK_PIN_BYTES]);

/* The other way round; false when it is the pin of something else. */
bool weir_link_pin_parse(const char *pin, struct weir_link *ret_link);

static inline bool weir_is_link_pin(const char *pin)
{
	struct weir_link link;

	return weir_link_pin_parse(pin, &link);
}

#endif
