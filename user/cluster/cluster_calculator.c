// SPDX-License-Identifier: GPL-2.0-only
/* The row of limits that hosts share, in the list of calculators; and what the store says, for it to examine. */
#include "cluster/cluster_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "shares/health.h"
#include "shares/membership.h"
#include "shares/share.h"
#include "state/examine.h"
#include "store/sharing.h"
#include "store/store.h"
#include "tables/entry_state.h"

/* Readings at each end, of which the quickest counts; and the time between the two ends. Chosen, not derived. */
#define READINGS 8
#define APART_NS 1000000000ull

/* An answer that takes more than half of the permitted time is close to being lost. Chosen, not derived. */
#define SLOW_NS (WEIR_CLUSTER_TRIP_NS / 2)

/* For all ledgers together. Chosen, not derived. */
#define LEDGERS_NS_MAX (3 * WEIR_NSEC_PER_SEC)

/* The tolerated error of a clock (docs/internals/cluster-protocol.md, [1]): half of the subtracted thousandth. */
#define CLOCK_PPM (1e6 / WEIR_CLUSTER_DRIFT / 2)

/* ---- asking ---- */

/* NULL: there was no answer, or an error; `trouble` says which. */
static struct weir_reply *ask(struct weir_store *store, const char *command, char trouble[WEIR_FINDING_CHARS])
{
	const size_t bytes = strlen(command);
	struct weir_reply *reply = weir_store_ask(store, 1, &command, &bytes);

	if (!reply) {
		snprintf(trouble, WEIR_FINDING_CHARS, "%s",
			 weir_store_trouble(store)[0] ? weir_store_trouble(store) : "it does not answer");
	} else if (weir_reply_error(reply)) {
		snprintf(trouble, WEIR_FINDING_CHARS, "it says '%.120s'", weir_reply_error(reply));
		weir_store_free_reply(reply);
		reply = NULL;
	}
	return reply;
}

/* The reply to TIME: seconds and microseconds. */
static bool read_clock(struct weir_store *store, struct weir_clock_reading *ret_reading,
		       char trouble[WEIR_FINDING_CHARS])
{
	struct weir_clock_reading reading = {.sent_ns = weir_host_now_ns()};
	struct weir_reply *reply = ask(store, "TIME", trouble);
	const char *seconds, *micros;

	reading.received_ns = weir_host_now_ns();
	if (!reply)
		return false;
	seconds = weir_reply_count(reply) == 2 ? weir_reply_text(weir_reply_at(reply, 0)) : NULL;
	micros = seconds ? weir_reply_text(weir_reply_at(reply, 1)) : NULL;
	if (micros)
		reading.store_us = strtoull(seconds, NULL, 10) * 1000000 + strtoull(micros, NULL, 10);
	else
		snprintf(trouble, WEIR_FINDING_CHARS, "it does not report its time");
	weir_store_free_reply(reply);
	*ret_reading = reading;
	return micros;
}

static bool read_best_clock(struct weir_store *store, struct weir_clock_reading *ret_reading,
			    char trouble[WEIR_FINDING_CHARS])
{
	struct weir_clock_reading readings[READINGS];

	for (size_t i = 0; i < READINGS; i++)
		if (!read_clock(store, &readings[i], trouble))
			return false;
	*ret_reading = *weir_clock_best(readings, READINGS);
	return true;
}

/* ---- findings ---- */

static void check_version(const char *info, const char *address, uint64_t took_ns, struct weir_findings *findings)
{
	struct weir_store_version version;
	const char *kind;

	if (!weir_store_read_version(info, &version)) {
		weir_find(findings, WEIR_FINDING_PROBLEM, "store", "use Redis 6 or later, or Valkey",
			  "'%s' answers, but names no version of Redis", address);
		return;
	}
	kind = version.is_valkey ? "Valkey" : "Redis";
	if (version.redis_major < WEIR_STORE_MAJOR_MIN)
		weir_find(findings, WEIR_FINDING_PROBLEM, "store", "use Redis 6 or later, or Valkey",
			  "'%s' is %s %s, which is too old", address, kind, version.text);
	else if (took_ns >= SLOW_NS)
		weir_find(findings, took_ns >= WEIR_CLUSTER_TRIP_NS ? WEIR_FINDING_PROBLEM : WEIR_FINDING_NOTE, "store",
			  "use a store that is nearer or less busy: after 300 ms an answer counts as lost",
			  "'%s' (%s %s) takes %.0f ms to answer", address, kind, version.text, (double)took_ns / 1e6);
	else
		weir_find(findings, WEIR_FINDING_OK, "store", NULL, "'%s' (%s %s) answers after %.1f ms", address, kind,
			  version.text, (double)took_ns / 1e6);
	if (weir_store_may_evict(info))
		weir_find(findings, WEIR_FINDING_NOTE, "store",
			  "set maxmemory-policy noeviction, or use a separate store",
			  "'%s' may evict ledgers when its memory is full; each costs some seconds of fallbacks",
			  address);
}

static void check_drift(const struct weir_clock_reading *first, const struct weir_clock_reading *second,
			struct weir_findings *findings)
{
	double error_ppm;
	const double drift_ppm = weir_clock_drift_ppm(first, second, &error_ppm);

	if (fabs(drift_ppm) - error_ppm > 2 * CLOCK_PPM)
		weir_find(findings, WEIR_FINDING_NOTE, "clocks",
			  "one is wrong: only this host's matters ('chronyc tracking')",
			  "this host's clock and the store's differ by %.0f ppm, give or take %.0f", fabs(drift_ppm),
			  error_ppm);
	else
		weir_find(findings, WEIR_FINDING_OK, "clocks", NULL,
			  "this host's clock and the store's differ by %.0f ppm, give or take %.0f; %.0f are tolerated",
			  fabs(drift_ppm), error_ppm, 2 * CLOCK_PPM);
}

/* ---- this host's own clock ---- */

struct own_clocks {
	uint64_t now_ns, raw_ns; /* CLOCK_MONOTONIC, which NTP adjusts, and the unadjusted hardware clock */
};

static struct own_clocks read_own_clocks(void)
{
	struct timespec raw;
	struct own_clocks clocks;

	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	clocks.now_ns = weir_host_now_ns();
	clocks.raw_ns = (uint64_t)raw.tv_sec * 1000000000 + (uint64_t)raw.tv_nsec;
	return clocks;
}

/*
 * NTP adjusts CLOCK_MONOTONIC by letting it run faster or slower: chronyd by up to 83,333 ppm (maxslewrate in
 * chrony.conf(5)); ntpd and systemd-timesyncd let the kernel remove a part of the offset each second.
 */
static void check_slew(const struct own_clocks *first, const struct own_clocks *second, struct weir_findings *findings)
{
	const double raw_ns = (double)(second->raw_ns - first->raw_ns);
	const double slew_ppm = ((double)(second->now_ns - first->now_ns) - raw_ns) / raw_ns * 1e6;

	if (fabs(slew_ppm) > CLOCK_PPM)
		weir_find(findings, WEIR_FINDING_PROBLEM, "clocks",
			  "write 'maxslewrate 500' in chrony.conf; set the clock before weir starts",
			  "this host's clock is being slewed by %.0f ppm: %.0f are tolerated", fabs(slew_ppm),
			  CLOCK_PPM);
}

/* ---- the examination ---- */

/* The first question also connects, so its time says nothing about the time of an answer. */
static bool find_latency(struct weir_store *store, uint64_t *ret_took_ns, char trouble[WEIR_FINDING_CHARS])
{
	uint64_t sent_ns = 0;

	for (int i = 0; i < 2; i++) {
		struct weir_reply *reply;

		sent_ns = weir_host_now_ns();
		reply = ask(store, "PING", trouble);
		if (!reply)
			return false;
		weir_store_free_reply(reply);
	}
	*ret_took_ns = weir_host_now_ns() - sent_ns;
	return true;
}

static void examine_store_itself(struct weir_store *store, const char *address, struct weir_findings *findings)
{
	char trouble[WEIR_FINDING_CHARS];
	struct weir_reply *info = NULL;
	uint64_t took_ns;

	if (find_latency(store, &took_ns, trouble))
		info = ask(store, "INFO", trouble);
	if (!info) {
		weir_find(findings, WEIR_FINDING_PROBLEM, "store",
			  "without it, each host gets at most its fallback, and a new host nothing",
			  "'%s' cannot be reached: %s", address, trouble);
		return;
	}
	check_version(weir_reply_text(info) ? weir_reply_text(info) : "", address, took_ns, findings);
	weir_store_free_reply(info);
}

/* ---- reserved for silent hosts ---- */

/* For one rule's ledger; 0 if there is none. */
static uint64_t add_up_reserved(const struct weir_reply *ledger, size_t *ret_hosts)
{
	struct weir_ledger_head head = {};
	struct weir_ledger_host host;
	uint64_t reserved = 0;
	size_t hosts = 0;

	for (int pass = 0; pass < 2; pass++) { /* the time must be read first */
		for (size_t i = 0; i + 1 < weir_reply_count(ledger); i += 2) {
			const char *field = weir_reply_text(weir_reply_at(ledger, i));
			const char *text = weir_reply_text(weir_reply_at(ledger, i + 1));

			if (!field || !text)
				continue;
			if (pass == 0) {
				weir_ledger_read_head(field, text, &head);
			} else if (weir_ledger_read_host(field, text, head.now_us, &host)) {
				hosts += host.wanted >= 0;
				reserved += weir_ledger_reserved(&host);
			}
		}
	}
	*ret_hosts = hosts;
	return reserved + head.owed;
}

static void examine_ledger(struct weir_store *store, const struct weir_cluster_info *cluster,
			   const struct weir_ruleset_rule *rule, struct weir_findings *findings)
{
	struct weir_rule_info info = {.identity.interval_ns = rule->interval_ns,
				      .identity.counts_bytes = rule->counts_bytes};
	char key[WEIR_LEDGER_KEY_CHARS];
	const char *words[] = {"HGETALL", key};
	uint64_t reserved, threshold = rule->threshold_micro / WEIR_MICRO;
	struct weir_reply *ledger;
	size_t bytes[2], hosts;

	snprintf(info.name, sizeof(info.name), "%s", rule->name);
	weir_sharing_key(cluster, &info, key);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		bytes[i] = strlen(words[i]);
	ledger = weir_store_ask(store, ARRAY_SIZE(words), words, bytes);
	if (!ledger)
		return; /* problems with the store have been reported */
	reserved = add_up_reserved(ledger, &hosts);
	weir_store_free_reply(ledger);
	if (rule->cluster == WEIR_CLUSTER_AVG_LOCAL && hosts > 1)
		threshold *= hosts;
	if (reserved)
		weir_find(findings, WEIR_FINDING_NOTE, "silent hosts",
			  "'weir cluster status' lists them; run 'weir cluster forget HOST' if one will not come back",
			  "%u %% of rule '%s' is reserved for them", weir_reserved_percent(reserved, threshold),
			  rule->name);
}

static void examine_clocks(struct weir_store *store, struct weir_findings *findings)
{
	const struct timespec pause = {.tv_sec = APART_NS / 1000000000};
	struct weir_clock_reading first, second;
	char trouble[WEIR_FINDING_CHARS];
	struct own_clocks began, ended;
	bool is_read;

	is_read = read_best_clock(store, &first, trouble);
	began = read_own_clocks();
	nanosleep(&pause, NULL); /* a shorter pause is only less exact */
	ended = read_own_clocks();
	check_slew(&began, &ended, findings);
	is_read = is_read && read_best_clock(store, &second, trouble);
	if (is_read)
		check_drift(&first, &second, findings);
	else
		weir_find(findings, WEIR_FINDING_NOTE, "clocks", NULL, "no clock to compare this host's with: %s",
			  trouble);
}

/*
 * The store of shared limits, as seen from this host. Asks the store, which takes a second or two; changes nothing.
 * Adds nothing if no rule is shared.
 */
static void examine_store(const struct weir_ruleset *ruleset, struct weir_findings *findings)
{
	char *const *settings = ruleset->settings.cluster;
	_cleanup_(weir_store_freep) struct weir_store *store = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	struct weir_cluster_info cluster = {};
	bool is_shared = false;
	uint64_t end_ns;

	for (size_t i = 0; i < ruleset->rule_count; i++)
		is_shared |= ruleset->rules[i].cluster != 0;
	if (!is_shared)
		return;
	snprintf(cluster.name, sizeof(cluster.name), "%s", settings[WEIR_CLUSTER_NAME]);
	snprintf(cluster.redis, sizeof(cluster.redis), "%s", settings[WEIR_CLUSTER_REDIS]);
	if (settings[WEIR_CLUSTER_PASSWORD_FILE])
		snprintf(cluster.password_file, sizeof(cluster.password_file), "%s",
			 settings[WEIR_CLUSTER_PASSWORD_FILE]);
	if (settings[WEIR_CLUSTER_CA_FILE])
		snprintf(cluster.ca_file, sizeof(cluster.ca_file), "%s", settings[WEIR_CLUSTER_CA_FILE]);
	if (weir_store_open(&cluster, &store, &diag)) {
		weir_find(findings, WEIR_FINDING_PROBLEM, "store", diag.entries[0].hint, "%s", diag.entries[0].message);
		return;
	}
	examine_store_itself(store, cluster.redis, findings);
	/* The store must answer for all ledgers within a limit, since people wait. */
	end_ns = weir_host_now_ns() + LEDGERS_NS_MAX;
	for (size_t i = 0; i < ruleset->rule_count && weir_host_now_ns() < end_ns; i++)
		if (ruleset->rules[i].cluster)
			examine_ledger(store, &cluster, &ruleset->rules[i], findings);
	examine_clocks(store, findings);
}

/* ---- the row ---- */

static int describe(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag)
{
	_cleanup_(weir_cluster_view_free) struct weir_cluster_view view = {};
	int err = weir_cluster_view_look(instance, &view, diag);

	if (!err)
		*ret_document = weir_cluster_describe(&view);
	return err;
}

const struct weir_calculator weir_cluster_calculator = {
	.name = "cluster",
	.follow = weir_sharing_follow,
	.free = weir_sharing_free,
	.poll = weir_sharing_poll,
	.due_ns = weir_sharing_due_ns,
	.step = weir_sharing_step,
	.leave = weir_sharing_leave,
	.rule_count = weir_sharing_rule_count,
	.examine = examine_store,
	.describe = describe,
	.prepare_farewell = weir_farewell_prepare,
	.say_farewell = weir_farewell_say,
	.free_farewell = weir_farewell_free,
};
