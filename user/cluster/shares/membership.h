/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is in a ledger, for people: its entries read back, and a membership of the hosts of a cluster, which shows who
 * comes, falls silent, or leaves. Nothing here decides what a host may admit. Pure.
 */
#ifndef WEIR_SHARES_MEMBERSHIP_H
#define WEIR_SHARES_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shares/share.h"

/* A name as it is shown, each byte as \xHH that is no letter, digit or sign of ASCII. */
#define WEIR_LEDGER_SHOWN_CHARS (4 * (WEIR_CLUSTER_NAME_CHARS - 1) + 1)

/* A host, as a ledger has it. */
struct weir_ledger_host {
	char name[WEIR_LEDGER_SHOWN_CHARS];
	uint64_t hold;	   /* of the threshold: counted as its, units per interval */
	uint64_t fallback; /* what it keeps without the store */
	int64_t wanted;	   /* what it asked for; -1: it has left */
	int64_t silent_us; /* for so long its fallback is reserved when it is silent; then, if `stops`, it has none */
	bool stops;
	int64_t ends_us; /* until then the ledger counts on its lease, by its own time */
	bool is_live;
};

/* The ledger's own field. */
struct weir_ledger_head {
	int64_t now_us;
	uint64_t owed, came; /* to hosts of a ledger that was lost, and what of it has come */
};

/* A field of the ledger's hash and its text, as ledger.lua writes them. False: it is none such. */
bool weir_ledger_read_head(const char *field, const char *text, struct weir_ledger_head *ret_head);
bool weir_ledger_read_host(const char *field, const char *text, int64_t now_us, struct weir_ledger_host *ret_host);

/* The field that a host is in whose name is shown so, 'host:...' and cut to WEIR_LEDGER_FIELD_CHARS. */
#define WEIR_LEDGER_FIELD_CHARS (WEIR_CLUSTER_NAME_CHARS + 8)
void weir_ledger_field(const char *shown, char field[WEIR_LEDGER_FIELD_CHARS]);

/* What of the threshold is left alone because this host is silent: 0 of one that is live, or has left. */
uint64_t weir_ledger_reserved(const struct weir_ledger_host *host);

/* In hundredths of a threshold; rounded up, as little is not nothing. */
uint32_t weir_ledger_percent(uint64_t reserved, uint64_t threshold);

enum weir_membership_change {
	WEIR_MEMBERSHIP_NOTHING,
	WEIR_MEMBERSHIP_CAME,
	WEIR_MEMBERSHIP_SILENT,
	WEIR_MEMBERSHIP_LEFT,
	WEIR_MEMBERSHIP_FORGOTTEN
};

/* As many as a ledger is for, and some. Any beyond are not reported. */
#define WEIR_MEMBERSHIP_HOSTS 128

/* Zeroed it knows nobody. */
struct weir_membership {
	struct weir_membership_host {
		char name[WEIR_LEDGER_SHOWN_CHARS];
		uint32_t ledger;      /* in which it was live the last time, or else found */
		uint8_t silent_looks; /* in a row */
		bool is_live, is_silent;
		bool is_found; /* by the look that is under way */
	} hosts[WEIR_MEMBERSHIP_HOSTS];
	size_t count;
	bool has_looked; /* whoever is there at the first look has not just come */
};

/*
 * A look at a ledger, of which there may be several by number, has found this host. It is silent when two looks in a
 * row say so: a controller that was held up for a second is no news. It has left when the ledger says so in which it
 * was live the last time.
 */
enum weir_membership_change weir_membership_see(struct weir_membership *membership, uint32_t ledger,
						const struct weir_ledger_host *host);

/*
 * The look is over: what of the host in this place, below membership->count? One that its own ledger has no more is
 * forgotten; if it was live, when two looks in a row say so.
 */
enum weir_membership_change weir_membership_end_look(struct weir_membership *membership, uint32_t ledger, size_t place);

/* The first look is over. */
static inline void weir_membership_has_looked(struct weir_membership *membership)
{
	membership->has_looked = true;
}

uint32_t weir_membership_live(const struct weir_membership *membership);
uint32_t weir_membership_silent(const struct weir_membership *membership);

#endif
