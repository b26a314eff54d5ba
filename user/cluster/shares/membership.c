// SPDX-License-Identifier: GPL-2.0-only
#include "shares/membership.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SILENT_LOOKS 2

bool weir_ledger_read_head(const char *field, const char *text, struct weir_ledger_head *ret_head)
{
	struct weir_ledger_head head;
	uint64_t owed, missing;

	if (strcmp(field, "ledger") != 0 ||
	    sscanf(text, WEIR_LEDGER_VERSION " %*s %*s %" SCNd64 " %" SCNu64 " %" SCNd64 " %*s %*s %*s %" SCNu64,
		   &head.now_us, &owed, &head.owed_ends_us, &missing) != 4)
		return false;
	head.owed = owed > missing ? owed : missing;
	*ret_head = head;
	return true;
}

#define HOST_FIELD "host:"

/* A name is a single word (is_plain() in rules/cluster.c). Another writer to the store must not be able to control a
 * terminal, or to hide, through a name: other bytes, and the backslash, are shown as \xHH.
 */
static void show_name(const char *name, char shown[WEIR_LEDGER_SHOWN_CHARS])
{
	for (; *name; name++) {
		if (*name > ' ' && *name <= '~' && *name != '\\')
			*shown++ = *name;
		else
			shown += sprintf(shown, "\\x%02x", (unsigned char)*name);
	}
	*shown = '\0';
}

void weir_ledger_field(const char *shown, char field[WEIR_LEDGER_FIELD_CHARS])
{
	char *to = stpcpy(field, HOST_FIELD), *end = field + WEIR_LEDGER_FIELD_CHARS - 1;
	unsigned int byte;

	while (*shown && to < end) {
		if (sscanf(shown, "\\x%2x", &byte) == 1 && byte) {
			*to++ = (char)byte;
			shown += strlen("\\xHH");
		} else {
			*to++ = *shown++;
		}
	}
	*to = '\0';
}

/* "host:NAME" and "process turn hold fallback ask received_us ends_us rest_us silent_us stops quiet_us check" */
bool weir_ledger_read_host(const char *field, const char *text, int64_t now_us, struct weir_ledger_host *ret_host)
{
	struct weir_ledger_host host = {};
	int64_t received_us;
	int stops;

	if (strncmp(field, HOST_FIELD, strlen(HOST_FIELD)) != 0)
		return false;
	field += strlen(HOST_FIELD);
	if (!*field || strlen(field) >= WEIR_CLUSTER_NAME_CHARS ||
	    sscanf(text, "%*s %*s %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %*s %" SCNd64 " %d",
		   &host.hold, &host.fallback, &host.wanted, &received_us, &host.ends_us, &host.silent_us, &stops) != 7)
		return false;
	host.stops = stops;
	show_name(field, host.name);
	host.is_live =
		host.wanted >= 0 && received_us >= 0 && now_us < received_us + (int64_t)(WEIR_CLUSTER_LEASE_NS / 1000);
	*ret_host = host;
	return true;
}

uint64_t weir_ledger_reserved(const struct weir_ledger_host *host)
{
	if (host->is_live || host->wanted < 0)
		return 0;
	return host->hold > host->fallback ? host->hold : host->fallback;
}

/* A free place, or that of a host which is no longer there; NULL: none. */
static struct weir_membership_host *find_place(struct weir_membership *membership)
{
	if (membership->count < WEIR_MEMBERSHIP_HOSTS)
		return &membership->hosts[membership->count++];
	for (size_t i = 0; i < membership->count; i++)
		if (!membership->hosts[i].is_live)
			return &membership->hosts[i];
	return NULL;
}

static struct weir_membership_host *find(struct weir_membership *membership, uint32_t ledger, const char *name)
{
	struct weir_membership_host *place;

	for (size_t i = 0; i < membership->count; i++)
		if (!strcmp(membership->hosts[i].name, name))
			return &membership->hosts[i];
	place = find_place(membership);
	if (!place)
		return NULL;
	*place = (struct weir_membership_host){.ledger = ledger};
	strcpy(place->name, name);
	return place;
}

static enum weir_membership_change see_absent(struct weir_membership_host *known, uint32_t ledger, bool has_left)
{
	bool was_live = known->is_live, was_there = was_live || known->is_silent;

	if (has_left && was_live && known->ledger != ledger)
		return WEIR_MEMBERSHIP_NOTHING; /* the host has left this ledger, but is in others */
	if (!has_left && ++known->silent_looks < SILENT_LOOKS)
		return WEIR_MEMBERSHIP_NOTHING;
	known->silent_looks = 0;
	known->is_live = false;
	known->is_silent = !has_left;
	known->ledger = ledger;
	if (has_left)
		return was_there ? WEIR_MEMBERSHIP_LEFT : WEIR_MEMBERSHIP_NOTHING;
	return was_live ? WEIR_MEMBERSHIP_SILENT : WEIR_MEMBERSHIP_NOTHING;
}

enum weir_membership_change weir_membership_see(struct weir_membership *membership, uint32_t ledger,
						const struct weir_ledger_host *host)
{
	struct weir_membership_host *known = find(membership, ledger, host->name);
	bool was_live;

	if (!known)
		return WEIR_MEMBERSHIP_NOTHING;
	known->is_found = true;
	if (!host->is_live)
		return see_absent(known, ledger, host->wanted < 0);
	was_live = known->is_live;
	known->is_live = true;
	known->is_silent = false;
	known->silent_looks = 0;
	known->ledger = ledger;
	return was_live || !membership->has_looked ? WEIR_MEMBERSHIP_NOTHING : WEIR_MEMBERSHIP_CAME;
}

enum weir_membership_change weir_membership_end_look(struct weir_membership *membership, uint32_t ledger, size_t place)
{
	struct weir_membership_host *known = &membership->hosts[place];
	bool was_found = known->is_found;

	known->is_found = false;
	if (was_found || known->ledger != ledger || !(known->is_live || known->is_silent))
		return WEIR_MEMBERSHIP_NOTHING;
	if (known->is_live && ++known->silent_looks < SILENT_LOOKS)
		return WEIR_MEMBERSHIP_NOTHING;
	known->silent_looks = 0;
	known->is_live = known->is_silent = false;
	return WEIR_MEMBERSHIP_FORGOTTEN;
}

uint32_t weir_membership_live(const struct weir_membership *membership)
{
	uint32_t live = 0;

	for (size_t i = 0; i < membership->count; i++)
		live += membership->hosts[i].is_live;
	return live;
}

uint32_t weir_membership_silent(const struct weir_membership *membership)
{
	uint32_t silent = 0;

	for (size_t i = 0; i < membership->count; i++)
		silent += membership->hosts[i].is_silent;
	return silent;
}
