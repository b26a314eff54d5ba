/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The addresses of a name, looked up without waiting. getaddrinfo() may take as long as a name server that does not
 * answer, half a minute and more, so it has a thread of its own. (A resolver that does not wait, as c-ares, would not
 * ask what nsswitch.conf(5) says; getaddrinfo_a(3) cannot be given up while it is under way.) The thread has nothing of
 * anybody else's: a caller that gives a lookup up continues at once, and the thread cleans up after itself.
 */
#ifndef WEIR_STORE_LOOKUP_H
#define WEIR_STORE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those beyond are not tried. Chosen, not derived: a store has one or two. */
#define WEIR_LOOKUP_ADDRESSES 8

struct weir_looked_up {
	struct weir_found_address {
		uint8_t family;	     /* 4 or 6 */
		uint8_t address[16]; /* network order, IPv4 in the first four */
		uint32_t scope;	     /* of a link-local one: its interface */
	} addresses[WEIR_LOOKUP_ADDRESSES];
	size_t count; /* at least one, or there is trouble */
	char trouble[96];
};

struct weir_lookup;

/* Returns 0 or -errno. */
int weir_lookup_begin(const char *name, struct weir_lookup **ret_lookup);

/* It becomes readable when the lookup is over. */
int weir_lookup_fd(const struct weir_lookup *lookup);

/* Is it over? Then *ret is what came of it. */
bool weir_lookup_has_ended(const struct weir_lookup *lookup, struct weir_looked_up *ret);

/* At any time. NULL: nothing. */
void weir_lookup_free(struct weir_lookup *lookup);

#endif
