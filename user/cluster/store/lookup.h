/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resolves a name to addresses without blocking. getaddrinfo() may take as long as an unresponsive name server, half a
 * minute and more, so it runs in a thread of its own. (A non-blocking resolver such as c-ares would not follow
 * nsswitch.conf(5), and getaddrinfo_a(3) cannot be cancelled while it runs.) The thread shares nothing with anybody: a
 * caller that cancels a lookup continues at once, and the thread cleans up after itself.
 */
#ifndef WEIR_STORE_LOOKUP_H
#define WEIR_STORE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Further addresses are not tried. Chosen, not derived: a store has one or two. */
#define WEIR_LOOKUP_ADDRESSES 8

struct weir_looked_up {
	struct weir_found_address {
		uint8_t family;	     /* 4 or 6 */
		uint8_t address[16]; /* network order, IPv4 in the first four */
		uint32_t scope;	     /* for a link-local address: its interface */
	} addresses[WEIR_LOOKUP_ADDRESSES];
	size_t count; /* at least one, otherwise `trouble` is set */
	char trouble[96];
};

struct weir_lookup;

/* Returns 0 or -errno. */
int weir_lookup_begin(const char *name, struct weir_lookup **ret_lookup);

/* A descriptor that becomes readable when the lookup is over. */
int weir_lookup_fd(const struct weir_lookup *lookup);

/* Is the lookup over? Then *ret is the result. */
bool weir_lookup_has_ended(const struct weir_lookup *lookup, struct weir_looked_up *ret);

/* May be called at any time. NULL: does nothing. */
void weir_lookup_free(struct weir_lookup *lookup);

#endif
