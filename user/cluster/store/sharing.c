// SPDX-License-Identifier: GPL-2.0-only
#include "store/sharing.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "report/shared_limits.h"
#include "shares/share.h"
#include "store/cluster_events.h"
#include "store/shared_flows.h"
#include "store/sharing_state.h"
#include "store/store.h"

/* The name of a process that has ended is free after two leases. If it takes longer than this, another host has the
 * same name. Chosen.
 */
#define NAMESAKE_NS 5000000000ull

/* ---- rounds ---- */

static const char *why_missed(const struct weir_sharing *sharing)
{
	const char *trouble = weir_store_trouble(sharing->store);

	return trouble[0] ? trouble : sharing->trouble[0] ? sharing->trouble : "it does not answer";
}

/* The first reason may be only that a name is still being looked up. If the reasons alternate, as for a store with
 * several addresses, the next one is reported only when the loss has lasted twice as long as at the last report.
 */
static bool has_new_reason(const struct weir_sharing *sharing, uint64_t now_ns)
{
	return now_ns - sharing->reported_ns >= sharing->reported_ns - sharing->missed_ns &&
	       strcmp(sharing->reported, why_missed(sharing)) != 0;
}

/* Report when all leases have ended, again when the reason changes, and once when the store answers again. */
static void watch_store(struct weir_sharing *sharing, uint64_t now_ns, struct weir_diag *diag)
{
	bool is_missed = now_ns - sharing->answered_ns >= WEIR_CLUSTER_LEASE_NS;

	if (is_missed && !sharing->misses_store)
		sharing->missed_ns = now_ns;
	if (is_missed && (!sharing->misses_store || has_new_reason(sharing, now_ns))) {
		snprintf(sharing->reported, sizeof(sharing->reported), "%s", why_missed(sharing));
		sharing->reported_ns = now_ns;
		weir_cluster_events_of_store(&sharing->events, sharing->cluster.redis, sharing->reported);
		weir_diag_warning(diag, NULL, NULL,
				  "shared rules fall back to this host's own share; 'weir cluster status' shows it",
				  "cannot reach the store '%s': %s", sharing->cluster.redis, sharing->reported);
	}
	if (!is_missed && sharing->misses_store) {
		weir_cluster_events_of_store(&sharing->events, sharing->cluster.redis, NULL);
		weir_diag_note(diag, "the store '%s' answers again: limits are shared", sharing->cluster.redis);
	}
	sharing->misses_store = is_missed;
}

/* Report once when it is clear that the name will not become free by itself, and once when it is free. */
static void report_namesake(struct weir_sharing *sharing, uint64_t now_ns, struct weir_diag *diag)
{
	bool has_namesake = sharing->taken_ns && now_ns - sharing->taken_ns >= NAMESAKE_NS;

	if (has_namesake == sharing->has_namesake)
		return;
	sharing->has_namesake = has_namesake;
	weir_cluster_events_of_name(&sharing->events, has_namesake);
	if (has_namesake)
		weir_diag_warning(diag, NULL, NULL, "give each host its own name: 'host' in settings.cluster",
				  "this host gets no share: another host of cluster '%s' is also called '%s'",
				  sharing->cluster.name, sharing->member.host);
	else
		weir_diag_note(diag, "no other host is called '%s' any more: limits are shared", sharing->member.host);
}

static bool is_script_there(const struct weir_sharing *sharing)
{
	return sharing->script[0] && sharing->connection == weir_store_connection(sharing->store);
}

/* If another command is under way, the round's message counts as lost, and the next one is sent when that command is
 * over.
 */
static void speak(struct weir_sharing *sharing, uint64_t now_ns)
{
	if (!weir_store_is_ready(sharing->store))
		return;
	if (!is_script_there(sharing))
		weir_sharing_load_script(sharing, now_ns);
	else if (weir_member_takes_turn(&sharing->member, now_ns))
		weir_sharing_ask(sharing, now_ns);
	else if (sharing->rule_count && !sharing->member.is_waiting &&
		 weir_cluster_events_is_due(&sharing->events, now_ns))
		weir_sharing_look(sharing, now_ns);
	else
		return;
	weir_store_step(sharing->store, now_ns);
}

void weir_sharing_step(void *state, struct weir_diag *diag)
{
	struct weir_sharing *sharing = state;
	struct weir_reply *reply;
	uint64_t now_ns = weir_host_now_ns();

	weir_store_step(sharing->store, now_ns);
	reply = weir_store_take_reply(sharing->store);
	if (reply) {
		weir_sharing_take_reply(sharing, reply, now_ns);
		weir_store_free_reply(reply);
	}
	weir_sharing_push_all(sharing, now_ns);
	speak(sharing, weir_host_now_ns());
	watch_store(sharing, now_ns, diag);
	report_namesake(sharing, now_ns, diag);
	weir_cluster_events_note_rules(&sharing->events);
}

struct pollfd weir_sharing_poll(const void *state)
{
	const struct weir_sharing *sharing = state;

	return weir_store_poll(sharing->store);
}

uint64_t weir_sharing_due_ns(const void *state)
{
	const struct weir_sharing *sharing = state;
	uint64_t due_ns, turn_ns, next_ns;

	due_ns = weir_store_due_ns(sharing->store);
	if (weir_store_is_ready(sharing->store)) {
		turn_ns = sharing->member.asked_ns +
			  (sharing->member.is_waiting ? WEIR_CLUSTER_TRIP_NS : WEIR_CLUSTER_ROUND_NS);
		if (!is_script_there(sharing))
			turn_ns = 0;
		due_ns = turn_ns < due_ns ? turn_ns : due_ns;
	}
	for (size_t i = 0; i < sharing->rule_count; i++) {
		next_ns = weir_share_next_ns(&sharing->rules[i].share);
		due_ns = next_ns < due_ns ? next_ns : due_ns;
	}
	next_ns = weir_sharing_flows_next_ns(sharing->flows);
	return next_ns < due_ns ? next_ns : due_ns;
}

void weir_sharing_leave(void *state)
{
	struct weir_sharing *sharing = state;
	uint64_t now_ns = weir_host_now_ns(), end_ns = now_ns + WEIR_SHARING_LEAVE_NS;
	struct weir_diag ignored = {}; /* nobody is left who needs these warnings */

	sharing->events.looked_ns = now_ns; /* there is no time to look at a ledger */
	for (size_t i = 0; i < sharing->rule_count; i++) {
		struct weir_share_terms nothing = sharing->rules[i].share.terms;

		nothing.threshold = 0;
		nothing.may_fall_back = false;
		weir_share_change(&sharing->rules[i].share, &nothing, now_ns);
		weir_sharing_push(sharing, &sharing->rules[i], now_ns);
		weir_sharing_end_rule(sharing, &sharing->rules[i]);
		sharing->rules[i].farewells = 1;
	}
	while (sharing->rule_count && now_ns < end_ns) {
		struct pollfd polled = weir_sharing_poll(sharing);
		uint64_t due_ns = weir_sharing_due_ns(sharing);

		due_ns = due_ns < end_ns ? due_ns : end_ns;
		if (due_ns > now_ns)
			(void)poll(&polled, 1, (int)((due_ns - now_ns) / 1000000 + 1)); /* the step handles errors */
		weir_sharing_step(sharing, &ignored);
		now_ns = weir_host_now_ns();
	}
	weir_diag_free(&ignored);
}

uint32_t weir_sharing_rule_count(const void *state)
{
	const struct weir_sharing *sharing = state;

	return sharing->rule_count;
}

/* ---- calls for the controller ---- */

void weir_sharing_free(void *state)
{
	struct weir_sharing *sharing = state;

	if (!sharing)
		return;
	weir_store_free(sharing->store);
	weir_sharing_flows_free(sharing->flows);
	weir_array_unmap(sharing->pushed, sharing->slots, sizeof(*sharing->pushed));
	weir_closep(&sharing->totals_fd);
	weir_closep(&sharing->rule_counters_fd);
	weir_closep(&sharing->resource_counters_fd);
	free(sharing->rules);
	free(sharing);
}

static int open_sharing(const struct weir_instance *instance, struct weir_sharing **ret_sharing, struct weir_diag *diag)
{
	struct weir_sharing *sharing = calloc(1, sizeof(*sharing));
	int err = sharing ? weir_store_open(&instance->info.cluster, &sharing->store, diag) : -ENOMEM;

	if (sharing)
		sharing->totals_fd = sharing->rule_counters_fd = sharing->resource_counters_fd = -1;
	if (!err)
		err = weir_sharing_name_process(sharing->member.process);
	if (!err)
		err = weir_sharing_flows_open(&instance->info.cluster, &sharing->flows, diag);
	if (err) {
		weir_sharing_free(sharing);
		return err;
	}
	sharing->cluster = instance->info.cluster;
	snprintf(sharing->events.instance, sizeof(sharing->events.instance), "%s", instance->name);
	weir_cluster_host(&sharing->cluster, sharing->events.host);
	sharing->answered_ns = weir_host_now_ns();
	weir_cluster_host(&sharing->cluster, sharing->member.host);
	*ret_sharing = sharing;
	return 0;
}

/* A share is valid only in its cluster: in another cluster, all begin with none. */
static void empty_shares(struct weir_sharing *sharing, uint64_t now_ns)
{
	for (size_t i = 0; i < sharing->rule_count; i++) {
		const struct weir_share_terms terms = weir_sharing_terms(&sharing->cluster, &sharing->rules[i].info, 0);

		weir_share_begin(&sharing->rules[i].share, &terms, now_ns);
	}
	weir_sharing_push_all(sharing, now_ns);
	weir_sharing_flows_drop(sharing->flows, WEIR_FLOWS_ANY);
}

int weir_sharing_follow(void **state, const struct weir_instance *instance, struct weir_diag *diag)
{
	struct weir_sharing *sharing = *state;
	/* Settings for silence may differ. */
	bool is_other = sharing && memcmp(&sharing->cluster, &instance->info.cluster,
					  offsetof(struct weir_cluster_info, silent_ns)) != 0;
	int err;

	if (sharing && (is_other || !weir_sharing_has_shared_rules(instance))) {
		weir_sharing_leave(sharing);
		weir_sharing_free(sharing);
		*state = sharing = NULL;
	}
	if (!weir_sharing_has_shared_rules(instance))
		return 0;
	err = weir_instance_expect_tables(instance, WEIR_SHARING_TABLES, "the shares", diag);
	if (!err && !sharing)
		err = open_sharing(instance, &sharing, diag);
	if (err)
		return err;
	*state = sharing;
	sharing->cluster = instance->info.cluster;
	err = weir_sharing_map_shares(sharing, instance);
	if (!err)
		err = weir_sharing_flows_follow(sharing->flows, instance);
	if (!err)
		err = weir_sharing_take_rules(sharing, instance, weir_host_now_ns());
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot share limits with other hosts");
	if (is_other)
		empty_shares(sharing, weir_host_now_ns());
	return 0;
}
