// SPDX-License-Identifier: GPL-2.0-only
#include "store/cluster_events.h"

#include <stdio.h>
#include <string.h>

/* All hosts together look at most this often, so the load on the store does not grow with their number. Each of a
 * hundred hosts looks every ten seconds. Chosen, not derived.
 */
#define LOOKS_A_SECOND 10

void weir_cluster_events_add(struct weir_cluster_events_rules *rules, const char *rule)
{
	if (!rules->count++)
		snprintf(rules->rule, sizeof(rules->rule), "%s", rule);
}

void weir_cluster_events_of_store(const struct weir_cluster_events *events, const char *address, const char *trouble)
{
	if (trouble)
		weir_instance_note(events->instance, WEIR_JOURNAL_CLUSTER, "lost the store '%.64s': %.100s", address,
				   trouble);
	else
		weir_instance_note(events->instance, WEIR_JOURNAL_CLUSTER, "the store '%.64s' answers again", address);
}

void weir_cluster_events_of_name(const struct weir_cluster_events *events, bool is_taken)
{
	weir_instance_note(events->instance, WEIR_JOURNAL_CLUSTER,
			   is_taken ? "another host is also called '%.63s': this one gets no share"
				    : "no other host is called '%.63s' any more",
			   events->host);
}

static void note_rules(const struct weir_cluster_events *events, struct weir_cluster_events_rules *rules,
		       const char *what)
{
	char more[48] = "";

	if (rules->count > 1)
		snprintf(more, sizeof(more), " and %u more", rules->count - 1);
	if (rules->count)
		weir_instance_note(events->instance, WEIR_JOURNAL_CLUSTER, "rule '%s'%s: %s", rules->rule, more, what);
	*rules = (struct weir_cluster_events_rules){};
}

void weir_cluster_events_note_rules(struct weir_cluster_events *events)
{
	note_rules(events, &events->ledgers, "the ledger was lost; a new one has begun");
	note_rules(events, &events->alone, "lease lost: at most what this host keeps without the store");
	note_rules(events, &events->leased, "has a lease again");
}

bool weir_cluster_events_is_due(const struct weir_cluster_events *events, uint64_t now_ns)
{
	uint64_t period_ns = WEIR_NSEC_PER_SEC * weir_membership_live(&events->membership) / LOOKS_A_SECOND;

	if (period_ns < WEIR_NSEC_PER_SEC)
		period_ns = WEIR_NSEC_PER_SEC;
	return !events->looked_ns || now_ns - events->looked_ns >= period_ns;
}

static void note_change(const struct weir_cluster_events *events, const char *host, enum weir_membership_change change)
{
	static const char *const words[] = {
		[WEIR_MEMBERSHIP_CAME] = "is there",
		[WEIR_MEMBERSHIP_SILENT] = "is silent: what it may keep without the store stays reserved for it",
		[WEIR_MEMBERSHIP_LEFT] = "has left and given everything back",
		[WEIR_MEMBERSHIP_FORGOTTEN] = "is no longer in the ledger",
	};

	if (change != WEIR_MEMBERSHIP_NOTHING && strcmp(host, events->host) != 0)
		weir_instance_note(events->instance, WEIR_JOURNAL_CLUSTER, "host '%s' %s", host, words[change]);
}

/* The field and the text of an entry; false: the reply has no such entry. */
static bool entry_at(const struct weir_reply *reply, size_t i, const char **ret_field, const char **ret_text)
{
	*ret_field = weir_reply_text(weir_reply_at(reply, i));
	*ret_text = weir_reply_text(weir_reply_at(reply, i + 1));
	return *ret_field && *ret_text;
}

void weir_cluster_events_take_ledger(struct weir_cluster_events *events, uint32_t ledger,
				     const struct weir_reply *reply)
{
	struct weir_ledger_head head = {};
	struct weir_ledger_host host;
	const char *field, *text;
	bool is_ledger = false;

	for (size_t i = 0; i + 1 < weir_reply_count(reply); i += 2)
		is_ledger |= entry_at(reply, i, &field, &text) && weir_ledger_read_head(field, text, &head);
	for (size_t i = 0; is_ledger && i + 1 < weir_reply_count(reply); i += 2)
		if (entry_at(reply, i, &field, &text) && weir_ledger_read_host(field, text, head.now_us, &host))
			note_change(events, host.name, weir_membership_see(&events->membership, ledger, &host));
	for (size_t i = 0; is_ledger && i < events->membership.count; i++)
		note_change(events, events->membership.hosts[i].name,
			    weir_membership_end_look(&events->membership, ledger, i));
	if (is_ledger)
		events->membership.has_looked = true;
}
