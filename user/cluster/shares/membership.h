/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The members of a ledger, for people: its entries, parsed, and the membership of the hosts of a cluster, which shows
 * when a host comes, falls silent, or leaves. Nothing here decides what a host may admit. Pure.
 */
#ifndef WEIR_SHARES_MEMBERSHIP_H
#define WEIR_SHARES_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shares/share.h"

/* A name for display: each byte that is not an ASCII letter, digit or punctuation mark is written as \xHH. */
#define WEIR_LEDGER_SHOWN_CHARS (4 * (WEIR_CLUSTER_NAME_CHARS - 1) + 1)

/* A host's entry in a ledger. */
struct weir_ledger_host {
	char name[WEIR_LEDGER_SHOWN_CHARS];
	uint64_t hold;	   /* the part of the threshold that is counted as the host's, in units per interval */
	uint64_t fallback; /* what the host keeps without the store */
	int64_t wanted;	   /* what the host asked for; -1: it has left */
	int64_t silent_us; /* how long its fallback stays reserved when it is silent; if `stops`, it then has none */
	bool stops;
	int64_t ends_us; /* until this time, by the ledger's clock, the ledger assumes that the lease is valid */
	bool is_live;
};

/* The ledger's own field. */
struct weir_ledger_head {
	int64_t now_us;
	uint64_t owed;	      /* reserved for hosts that another ledger knew, and this one does not */
	int64_t owed_ends_us; /* until then, by the ledger's clock */
};

#define WEIR_LEDGER_VERSION "3" /* VERSION in ledger.lua */

/* Parse a field of the ledger's hash and its text, as ledger.lua writes them. False: it is not such a field. */
bool weir_ledger_read_head(const char *field, const char *text, struct weir_ledger_head *ret_head);
bool weir_ledger_read_host(const char *field, const char *text, int64_t now_us, struct weir_ledger_host *ret_host);

/* The field, 'host:...', of the host with this displayed name, cut to WEIR_LEDGER_FIELD_CHARS. */
#define WEIR_LEDGER_FIELD_CHARS (WEIR_CLUSTER_NAME_CHARS + 8)
void weir_ledger_field(const char *shown, char field[WEIR_LEDGER_FIELD_CHARS]);

/* The part of the threshold that is reserved because this host is silent; 0 if it is live or has left. */
uint64_t weir_ledger_reserved(const struct weir_ledger_host *host);

enum weir_membership_change {
	WEIR_MEMBERSHIP_NOTHING,
	WEIR_MEMBERSHIP_CAME,
	WEIR_MEMBERSHIP_SILENT,
	WEIR_MEMBERSHIP_LEFT,
	WEIR_MEMBERSHIP_FORGOTTEN
};

/* More than the number of hosts that a ledger is designed for. Hosts beyond this number are not reported. */
#define WEIR_MEMBERSHIP_HOSTS 128

/* When it is all zero, it knows no host. */
struct weir_membership {
	struct weir_membership_host {
		char name[WEIR_LEDGER_SHOWN_CHARS];
		uint32_t ledger;      /* the ledger in which the host was last live or, if it never was, was found */
		uint8_t silent_looks; /* consecutive looks at which the host was silent */
		bool is_live, is_silent;
		bool is_found; /* by the current look */
	} hosts[WEIR_MEMBERSHIP_HOSTS];
	size_t count;
	bool has_looked; /* a host found by the first look has not just come */
};

/*
 * A look at a ledger (`ledger` is its number, as there may be several) has found this host. The host counts as silent
 * only after two such looks in a row, because a controller that was delayed for a second is no news. It has left when
 * the ledger in which it was last live says so.
 */
enum weir_membership_change weir_membership_see(struct weir_membership *membership, uint32_t ledger,
						const struct weir_ledger_host *host);

/*
 * The look is over: what happened to the host at this place (below membership->count)? A host that has disappeared from
 * its own ledger is forgotten; if it was live, only after two such looks in a row.
 */
enum weir_membership_change weir_membership_end_look(struct weir_membership *membership, uint32_t ledger, size_t place);

uint32_t weir_membership_live(const struct weir_membership *membership);
uint32_t weir_membership_silent(const struct weir_membership *membership);

#endif
