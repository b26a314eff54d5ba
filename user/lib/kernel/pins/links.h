/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The links of an instance, each of which holds one of its programs at a hook of an interface. A link is found by its
 * pin, whose name contains the hook and the name that the interface had when it was attached. The kernel knows the
 * interface by its index, and thereby its present name. If the kernel has no tcx, a link at tc is a filter.
 */
#ifndef WEIR_PINS_LINKS_H
#define WEIR_PINS_LINKS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "network/netlink.h"
#include "pins/pins.h"
#include "weir_hook.h"

/* ---- one link, and the name of its pin ----
 *
 * That name contains the hook, how the link is held, and the interface's name at the time of attaching.
 */

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

/* For outgoing packets, else for incoming ones. A limited interface has a link for one of these, or for both. */
static inline bool weir_hook_is_out(enum weir_hook hook)
{
	return hook == WEIR_HOOK_TC_OUT || hook == WEIR_HOOK_TC_BARE_OUT;
}

/* For packets without an Ethernet header. */
static inline bool weir_hook_is_bare(enum weir_hook hook)
{
	return hook == WEIR_HOOK_TC_BARE_IN || hook == WEIR_HOOK_TC_BARE_OUT;
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

/* ---- filters in place of links ----
 *
 * A clsact filter used instead of a link, for kernels without tcx (network/tc.h). The kernel keeps the filter with the
 * interface, not with us. So a map that names the interface is pinned instead, and the filter is found by its
 * preference, handle and name; handle and name are unique to the instance. A second pin notes whether weir
 * created the interface's clsact qdisc. Only then is the qdisc removed, along with the last filter in it.
 */

/* Call this in the instance's network namespace. If it fails, nothing is left. Returns 0 or -errno. */
int weir_filter_link_create(const char *instance, const struct weir_link *link, int program_fd);

/* Prepare an interface's qdisc for a filter of this instance: create it if there is none, and note that. Give it back
 * when the filter is gone. Both return 0 or the kernel's -errno.
 */
int weir_clsact_take(struct weir_netlink *netlink, const char *instance, uint32_t ifindex);
int weir_clsact_give_back(struct weir_netlink *netlink, const char *instance, uint32_t ifindex);

/* The interface of a pin that is such a note; 0: it is another pin. */
uint32_t weir_clsact_of_pin(const char *pin);

/* ---- links of an instance ---- */

/* Fill in the interface index and program of the link with this pin, and what the pin's name says. Returns 0 or -errno.
 */
int weir_link_read(const char *instance, const char *pin, struct weir_link *link);

/* All links, in the order of their pins. Returns 0 or -errno; the caller frees *ret_links. */
int weir_links_read(const char *instance, struct weir_link **ret_links, size_t *ret_count);

/* Whether the link stands for its interface, which may have two: that for incoming packets does, if there is one. So a
 * loop over the links meets each interface once.
 */
bool weir_link_stands(const struct weir_link *links, size_t count, size_t place);

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
