// SPDX-License-Identifier: GPL-2.0-only
#include "cluster/cluster_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "shares/level.h"
#include "words/json.h"
#include "words/words.h"

#define WORDS_BYTES 512

/* The facts about one rule. */
struct reasons {
	const struct weir_cluster_view *view;
	const struct weir_shared_view *rule;
	const struct weir_share_stages *stages;
	enum weir_share_stage stage; /* in force now, if was_pushed is set */
	bool was_pushed;
	uint64_t threshold;		     /* for all hosts together */
	uint64_t *due;			     /* by the ledger's hosts */
	const struct weir_ledger_host *mine; /* NULL: this host is not in the ledger */
	uint64_t my_due;
	struct weir_level level;
	uint64_t quiet_ms; /* for this long a new ledger gives no host more than a fallback */
	json_t *words;
};

/* ---- collecting the facts ---- */

static void find_stage(struct reasons *reasons)
{
	const uint64_t now_ns = reasons->view->now_ns;

	reasons->was_pushed = reasons->rule->shared.version > 0;
	reasons->stage = now_ns < reasons->stages->until_ns[WEIR_SHARE_LEASED]	? WEIR_SHARE_LEASED
			 : now_ns < reasons->stages->until_ns[WEIR_SHARE_ENDED] ? WEIR_SHARE_ENDED
										: WEIR_SHARE_FALLEN_BACK;
	/* A schedule that changes nothing is over, whatever its times are. */
	if (reasons->stage == WEIR_SHARE_ENDED && reasons->stages->until_ns[WEIR_SHARE_ENDED] == UINT64_MAX)
		reasons->stage = WEIR_SHARE_FALLEN_BACK;
}

/* As in ledger.lua: until then, leases of an earlier ledger may be in force. */
static void find_quiet(struct reasons *reasons)
{
	const uint64_t rest_ns = reasons->rule->rule->identity.interval_ns + WEIR_CLUSTER_SETTLE_NS;
	/* For a rule with a key, the shares of single flows may last one lease longer. */
	const uint64_t leases = reasons->rule->rule->identity.key_fields ? 2 : 1;
	const uint64_t quiet_us = (leases * WEIR_CLUSTER_LEASE_NS + rest_ns + rest_ns / WEIR_CLUSTER_DRIFT) / 1000;
	const int64_t left_us = (int64_t)quiet_us - reasons->rule->ledger_us;

	reasons->quiet_ms = reasons->rule->has_ledger && left_us > 0 ? (uint64_t)left_us / 1000 + 1 : 0;
}

static int find(struct reasons *reasons)
{
	const struct weir_shared_view *rule = reasons->rule;

	find_stage(reasons);
	find_quiet(reasons);
	reasons->threshold = rule->threshold;
	reasons->due = calloc(rule->host_count + 1, sizeof(*reasons->due));
	reasons->words = json_array();
	if (!reasons->due || !reasons->words)
		return -ENOMEM;
	weir_level_find(rule->hosts, rule->host_count, reasons->threshold, rule->owed, &reasons->level, reasons->due);
	for (size_t i = 0; i < rule->host_count; i++) {
		if (strcmp(rule->hosts[i].name, reasons->view->host) != 0)
			continue;
		reasons->mine = &rule->hosts[i];
		reasons->my_due = reasons->due[i];
	}
	return 0;
}

/* ---- words ---- */

__attribute__((format(printf, 3, 4))) static void say(struct reasons *reasons, const char *topic, const char *format,
						      ...)
{
	char text[WORDS_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	weir_json_append(&reasons->words, json_pack("{s:s, s:o}", "topic", topic, "text", weir_json_text(text)));
}

static double seconds_until(const struct reasons *reasons, uint64_t at_ns)
{
	return at_ns > reasons->view->now_ns ? (double)(at_ns - reasons->view->now_ns) / WEIR_NSEC_PER_SEC : 0;
}

static void say_now(struct reasons *reasons)
{
	const struct weir_rule_info *info = reasons->rule->rule;
	const unsigned long long units = reasons->rule->in_force, all = reasons->threshold;
	const uint64_t now_ns = reasons->view->now_ns, since_ns = weir_share_alone_since(reasons->rule, now_ns);
	const char *bytes = info->identity.counts_bytes ? " bytes" : "";
	char rate[WEIR_WORDS_BYTES], whose[WEIR_WORDS_BYTES];

	weir_format_rate(all * WEIR_MICRO, info->identity.interval_ns, info->identity.counts_bytes, rate);
	weir_format_whose_limit(info, reasons->view->instance->labels, whose);
	if (!reasons->was_pushed)
		say(reasons, "share", "nothing of %s %s: no controller has asked for a share yet", rate, whose);
	else if (reasons->stage == WEIR_SHARE_LEASED)
		say(reasons, "share", "%llu%s of %s %s, by a lease that ends in %.1f s and is renewed every 0.2 s",
		    units, bytes, rate, whose, seconds_until(reasons, reasons->stages->until_ns[WEIR_SHARE_LEASED]));
	else
		say(reasons, "share", "%llu%s of %s %s, without a lease for %.0f s: %s", units, bytes, rate, whose,
		    since_ns ? (double)(now_ns - since_ns) / WEIR_NSEC_PER_SEC : 0.0,
		    reasons->stage == WEIR_SHARE_ENDED ? "the last share, or its fallback if that is less"
						       : "its fallback");
}

static void say_why_alone(struct reasons *reasons)
{
	if (reasons->rule->shared.trouble == WEIR_SHARE_TAKEN)
		say(reasons, "why", "another process has this host's name, '%s': end it, or give it another name",
		    reasons->view->host);
	else if (!reasons->view->answers)
		say(reasons, "why", "the store cannot be reached: %s", reasons->view->trouble);
	else if (!reasons->rule->has_ledger)
		say(reasons, "why", "the store has no ledger for this rule: no host has asked for a share");
	else
		say(reasons, "why",
		    "the store answers now, but this host's controller has no lease: it is not running, has just "
		    "started, or gets answers only after more than 0.3 s");
}

static void say_hosts(struct reasons *reasons)
{
	size_t known = 0, silent = 0;

	for (size_t i = 0; i < reasons->rule->host_count; i++) {
		known += reasons->rule->hosts[i].wanted >= 0;
		silent += reasons->rule->hosts[i].wanted >= 0 && !reasons->rule->hosts[i].is_live;
	}
	say(reasons, "hosts", "%zu known: %u live, %zu silent", known, reasons->level.live, silent);
	if (reasons->rule->owed)
		say(reasons, "left alone",
		    "%llu of %llu: for hosts that are silent or have just left, including %llu for hosts of a lost "
		    "ledger ('weir cluster forget --lost' releases it)",
		    (unsigned long long)reasons->level.left_alone, (unsigned long long)reasons->threshold,
		    (unsigned long long)reasons->rule->owed);
	else if (reasons->level.left_alone)
		say(reasons, "left alone", "%llu of %llu: for hosts that are silent or have just left",
		    (unsigned long long)reasons->level.left_alone, (unsigned long long)reasons->threshold);
}

static void say_level(struct reasons *reasons)
{
	const struct weir_level *level = &reasons->level;
	const unsigned long long wanted = level->wanted, budget = level->budget;

	if (!level->live)
		say(reasons, "level", "no host is live: the store has heard from none for a second");
	else if (level->is_scarce)
		say(reasons, "level",
		    "live hosts want %llu, and %llu are available: a host that wants more than %llu gets %llu, the "
		    "others get what they want",
		    wanted, budget, (unsigned long long)level->units, (unsigned long long)level->units);
	else
		say(reasons, "level",
		    "live hosts want %llu, and %llu are available: each gets what it wants and %llu more", wanted,
		    budget, (unsigned long long)level->spare);
}

static void say_why_leased(struct reasons *reasons)
{
	const uint64_t share = reasons->rule->in_force, slack = reasons->threshold / 32 + 1;
	const unsigned long long due = reasons->my_due;
	unsigned long long wanted;

	if (!reasons->mine || reasons->mine->wanted < 0) {
		if (!reasons->view->answers)
			say(reasons, "why", "unknown: the store cannot be reached: %s", reasons->view->trouble);
		else
			say(reasons, "why", "the ledger is lost or does not list this host: the next round adds it");
		return;
	}
	wanted = (unsigned long long)reasons->mine->wanted;
	if (reasons->quiet_ms) {
		say(reasons, "why",
		    "this host wants %llu; the ledger is new: for another %.1f s no host gets more than its fallback",
		    wanted, (double)reasons->quiet_ms / 1e3);
		return;
	}
	if (!reasons->mine->is_live)
		say(reasons, "why", "this host wants %llu and has just come back: its share cannot grow yet", wanted);
	else if (share + slack < due)
		say(reasons, "why",
		    "this host wants %llu and is due %llu: it gets that when what others give up has been unused for "
		    "an interval",
		    wanted, due);
	else if (share > due + slack && reasons->level.is_scarce)
		say(reasons, "why", "this host wants %llu and is due %llu: it gives back the rest in the next rounds",
		    wanted, due);
	else if (share > due + slack)
		say(reasons, "why", "this host wants %llu, and no other host needs what it has beyond that", wanted);
	else
		say(reasons, "why", "this host wants %llu and has what it is due: %llu", wanted, due);
}

static void say_fallback(struct reasons *reasons)
{
	const struct weir_rule_info *info = reasons->rule->rule;
	const unsigned long long fallback = reasons->stages->units[WEIR_SHARE_FALLEN_BACK];
	const uint64_t hosts = reasons->rule->shared.hosts, part = hosts ? reasons->threshold / hosts : 0;

	if (!info->falls_back)
		say(reasons, "alone", "without the store it keeps nothing: fallbackToLocalWhenFail is false");
	else if (!reasons->rule->shared.hosts)
		say(reasons, "alone", "without the store it keeps nothing, as it has never had a lease");
	else if (fallback < part)
		say(reasons, "alone",
		    "without the store it keeps %llu, and %llu (an equal part) once the others keep less", fallback,
		    (unsigned long long)part);
	else
		say(reasons, "alone", "without the store it keeps %llu: an equal part, of %llu host%s", fallback,
		    (unsigned long long)hosts, weir_plural(hosts));
}

/* What happens by itself if the store stays silent. */
static void say_without_answer(struct reasons *reasons)
{
	const struct weir_share_stages *stages = reasons->stages;
	const unsigned long long ended = stages->units[WEIR_SHARE_ENDED];
	const unsigned long long fallback = stages->units[WEIR_SHARE_FALLEN_BACK];
	const double ends = seconds_until(reasons, stages->until_ns[WEIR_SHARE_LEASED]);

	if (stages->until_ns[WEIR_SHARE_ENDED] == UINT64_MAX || ended == fallback)
		say(reasons, "next", "an answer every 0.2 s; without one, %llu from %.1f s on", ended, ends);
	else
		say(reasons, "next", "an answer every 0.2 s; without one, %llu in %.1f s, and %llu in %.1f s", ended,
		    ends, fallback, seconds_until(reasons, stages->until_ns[WEIR_SHARE_ENDED]));
}

static void say_next(struct reasons *reasons)
{
	const struct weir_share_stages *stages = reasons->stages;
	const unsigned long long fallback = stages->units[WEIR_SHARE_FALLEN_BACK];

	if (!reasons->was_pushed)
		say(reasons, "next", "nothing, until 'weir run' or 'weir control' runs");
	else if (reasons->stage == WEIR_SHARE_LEASED)
		say_without_answer(reasons);
	else if (reasons->stage == WEIR_SHARE_ENDED)
		say(reasons, "next", "%llu in %.1f s, unless the store answers first", fallback,
		    seconds_until(reasons, stages->until_ns[WEIR_SHARE_ENDED]));
	else if (reasons->rule->shared.trouble == WEIR_SHARE_TAKEN)
		say(reasons, "next", "no change until the name is free, 2.0 s after the other process has ended");
	else
		say(reasons, "next",
		    "no change until the store answers; %.1f s after that, this host's share can grow again",
		    (double)WEIR_CLUSTER_SETTLED_NS / WEIR_NSEC_PER_SEC);
}

static void say_all(struct reasons *reasons)
{
	say_now(reasons);
	if (reasons->rule->has_ledger) {
		say_hosts(reasons);
		say_level(reasons);
	}
	if (reasons->was_pushed && reasons->stage != WEIR_SHARE_LEASED)
		say_why_alone(reasons);
	else if (reasons->was_pushed)
		say_why_leased(reasons);
	if (reasons->was_pushed)
		say_fallback(reasons);
	say_next(reasons);
}

/* ---- for programs ---- */

static json_t *describe_ledger(const struct reasons *reasons)
{
	json_t *hosts = json_array();

	for (size_t i = 0; i < reasons->rule->host_count; i++) {
		const struct weir_ledger_host *host = &reasons->rule->hosts[i];

		weir_json_append(&hosts,
				 json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "host", host->name, "state",
					   weir_ledger_state(host), "hold", (json_int_t)host->hold, "fallback",
					   (json_int_t)host->fallback, "wanted",
					   host->wanted < 0 ? json_null() : json_integer(host->wanted), "due",
					   host->is_live ? json_integer((json_int_t)reasons->due[i]) : json_null()));
	}
	return hosts;
}

/* What the program does without any further message. */
static json_t *describe_next(const struct reasons *reasons)
{
	const uint64_t now_ns = reasons->view->now_ns;
	json_t *next = json_array();

	for (int stage = 0; reasons->was_pushed && stage < WEIR_SHARE_STAGES - 1; stage++) {
		const uint64_t at_ns = reasons->stages->until_ns[stage];

		if (at_ns > now_ns && at_ns != UINT64_MAX)
			weir_json_append(&next,
					 json_pack("{s:I, s:I}", "inMs", (json_int_t)((at_ns - now_ns) / 1000000),
						   "share", (json_int_t)reasons->stages->units[stage + 1]));
	}
	return next;
}

static const char *stage_name(const struct reasons *reasons)
{
	static const char *const names[] = {
		[WEIR_SHARE_LEASED] = "leased",
		[WEIR_SHARE_ENDED] = "ended",
		[WEIR_SHARE_FALLEN_BACK] = "fallenBack",
	};

	return reasons->was_pushed ? names[reasons->stage] : "none";
}

static json_t *describe(struct reasons *reasons)
{
	const struct weir_rule_info *info = reasons->rule->rule;
	json_t *fields = weir_figures_describe(weir_describe_share, reasons->view, reasons->rule);
	json_t *more =
		json_pack("{s:I, s:I, s:s, s:b, s:s, s:o}", "threshold", (json_int_t)reasons->threshold, "intervalMs",
			  (json_int_t)(info->identity.interval_ns / 1000000), "unit",
			  info->identity.counts_bytes ? "bytes" : "packets", "isPerFlow",
			  info->identity.key_fields != 0, "stage", stage_name(reasons), "next", describe_next(reasons));

	json_object_update_missing(fields, more);
	json_decref(more);
	if (reasons->rule->has_ledger) {
		more = json_pack(
			"{s:o, s:I, s:I, s:o, s:o, s:o}", "ledger", describe_ledger(reasons), "budget",
			(json_int_t)reasons->level.budget, "leftAlone", (json_int_t)reasons->level.left_alone, "level",
			reasons->level.is_scarce ? json_integer((json_int_t)reasons->level.units) : json_null(), "due",
			reasons->mine ? json_integer((json_int_t)reasons->my_due) : json_null(), "quietMs",
			json_integer((json_int_t)reasons->quiet_ms));
		json_object_update(fields, more);
		json_decref(more);
	}
	if (fields)
		json_object_set(fields, "words", reasons->words);
	return fields;
}

json_t *weir_share_explain(const struct weir_cluster_view *view, const struct weir_shared_view *rule)
{
	struct reasons reasons = {
		.view = view,
		.rule = rule,
		.stages = &rule->shared.stages[rule->shared.version & 1],
	};
	json_t *fields = NULL;

	if (!find(&reasons)) {
		say_all(&reasons);
		fields = describe(&reasons);
	}
	free(reasons.due);
	json_decref(reasons.words);
	return fields;
}
