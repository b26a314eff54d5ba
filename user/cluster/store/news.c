// SPDX-License-Identifier: GPL-2.0-only
#include "store/news.h"

#include <stdio.h>
#include <string.h>

/* All hosts together look so often at most: what a store has to do for it does not grow with their number. A hundred
 * hosts look every ten seconds each. Chosen, not derived.
 */
#define LOOKS_A_SECOND 10

void weir_news_add(struct weir_news_rules *rules, const char *rule)
{
	if (!rules->count++)
		snprintf(rules->rule, sizeof(rules->rule), "%s", rule);
}

void weir_news_of_store(const struct weir_news *news, const char *address, const char *trouble)
{
	if (trouble)
		weir_instance_note(news->instance, WEIR_JOURNAL_CLUSTER, "the store '%.64s' is lost: %.100s", address,
				   trouble);
	else
		weir_instance_note(news->instance, WEIR_JOURNAL_CLUSTER, "the store '%.64s' answers again", address);
}

void weir_news_of_name(const struct weir_news *news, bool is_taken)
{
	weir_instance_note(news->instance, WEIR_JOURNAL_CLUSTER,
			   is_taken ? "another host is called '%.63s', too: this one has no share"
				    : "no other host is called '%.63s' any more",
			   news->host);
}

static void tell_of(const struct weir_news *news, struct weir_news_rules *rules, const char *what)
{
	char more[48] = "";

	if (rules->count > 1)
		snprintf(more, sizeof(more), " and %u more", rules->count - 1);
	if (rules->count)
		weir_instance_note(news->instance, WEIR_JOURNAL_CLUSTER, "rule '%s'%s: %s", rules->rule, more, what);
	*rules = (struct weir_news_rules){};
}

void weir_news_tell(struct weir_news *news)
{
	tell_of(news, &news->ledgers, "the ledger was lost, a new one has begun");
	tell_of(news, &news->alone, "no lease any more, at most what this host keeps without the store");
	tell_of(news, &news->leased, "has a lease again");
}

bool weir_news_is_due(const struct weir_news *news, uint64_t now_ns)
{
	uint64_t period_ns = WEIR_NSEC_PER_SEC * weir_roll_live(&news->roll) / LOOKS_A_SECOND;

	if (period_ns < WEIR_NSEC_PER_SEC)
		period_ns = WEIR_NSEC_PER_SEC;
	return !news->looked_ns || now_ns - news->looked_ns >= period_ns;
}

static void tell_change(const struct weir_news *news, const char *host, enum weir_roll_change change)
{
	static const char *const words[] = {
		[WEIR_ROLL_CAME] = "is there",
		[WEIR_ROLL_SILENT] = "is silent: what it may keep without the store stays reserved for it",
		[WEIR_ROLL_LEFT] = "has left, and given everything back",
		[WEIR_ROLL_FORGOTTEN] = "is not in the ledger any more",
	};

	if (change != WEIR_ROLL_NOTHING && strcmp(host, news->host) != 0)
		weir_instance_note(news->instance, WEIR_JOURNAL_CLUSTER, "host '%s' %s", host, words[change]);
}

/* The field and the text of an entry; false: the reply has none such. */
static bool entry_at(const struct weir_reply *reply, size_t i, const char **ret_field, const char **ret_text)
{
	*ret_field = weir_reply_text(weir_reply_at(reply, i));
	*ret_text = weir_reply_text(weir_reply_at(reply, i + 1));
	return *ret_field && *ret_text;
}

void weir_news_take_ledger(struct weir_news *news, uint32_t ledger, const struct weir_reply *reply)
{
	struct weir_ledger_head head = {};
	struct weir_ledger_host host;
	const char *field, *text;
	bool is_ledger = false;

	for (size_t i = 0; i + 1 < weir_reply_count(reply); i += 2)
		is_ledger |= entry_at(reply, i, &field, &text) && weir_ledger_read_head(field, text, &head);
	for (size_t i = 0; is_ledger && i + 1 < weir_reply_count(reply); i += 2)
		if (entry_at(reply, i, &field, &text) && weir_ledger_read_host(field, text, head.now_us, &host))
			tell_change(news, host.name, weir_roll_see(&news->roll, ledger, &host));
	for (size_t i = 0; is_ledger && i < news->roll.count; i++)
		tell_change(news, news->roll.hosts[i].name, weir_roll_end_look(&news->roll, ledger, i));
	if (is_ledger)
		weir_roll_has_looked(&news->roll);
}
