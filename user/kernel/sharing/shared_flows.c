// SPDX-License-Identifier: GPL-2.0-only
#include "sharing/shared_flows.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/offenders.h"
#include "sharing/course.h"
#include "tables/flow_hash.h"

/* A flow that was dropped so lately wants more. Chosen, not derived. */
#define DROPPED_NS WEIR_NSEC_PER_SEC
/* Of flows that were dropped lately so many are looked at. */
#define OFFENCES_MAX 1024

struct weir_sharing_flows {
	bool has_secret;
	uint8_t secret[WEIR_FLOW_SECRET_BYTES];
	/* of the instance */
	struct weir_instance_info info;
	struct weir_rule_info *rules; /* by slot */
	struct weir_flow_share_set *places;
	struct weir_offenders offenders;
	int demands_fd, cpus;
	struct weir_shared_flow *flow;
	size_t count;
	struct weir_wanted_flow *wanted;
	size_t wanted_count;
	struct weir_offence offences[OFFENCES_MAX]; /* while looking */
};

/* ---- the secret ---- */

static int read_secret(const char *path, uint8_t ret_secret[WEIR_FLOW_SECRET_BYTES])
{
	char line[2 * WEIR_FLOW_SECRET_BYTES + 2] = "";
	FILE *file = fopen(path, "re");
	int err = file ? 0 : -errno;

	if (file) {
		if (!fgets(line, sizeof(line), file))
			line[0] = '\0';
		fclose(file);
		line[strcspn(line, "\r\n")] = '\0';
		err = weir_flow_secret_read(line, ret_secret);
	}
	explicit_bzero(line, sizeof(line));
	return err;
}

int weir_sharing_flows_open(const struct weir_cluster_info *cluster, struct weir_sharing_flows **ret_flows,
			    struct weir_diag *diag)
{
	struct weir_sharing_flows *flows = calloc(1, sizeof(*flows));
	int err;

	if (!flows)
		return -ENOMEM;
	flows->demands_fd = -1;
	flows->cpus = weir_host_cpus();
	*ret_flows = flows;
	if (!cluster->key_file[0])
		return 0;
	err = read_secret(cluster->key_file, flows->secret);
	flows->has_secret = !err;
	if (err == -EINVAL)
		weir_diag_warning(diag, NULL, NULL, "make one by 'openssl rand -hex 32', the same for all hosts",
				  "no flow is shared: the first line of '%s' is no key of 64 digits, 0 to 9 and a to f",
				  cluster->key_file);
	else if (err)
		weir_diag_warning(diag, NULL, NULL, NULL, "no flow is shared: cannot read the key in '%s': %s",
				  cluster->key_file, strerror(-err));
	return 0;
}

/* ---- the instance ---- */

static void unmap(struct weir_sharing_flows *flows)
{
	weir_array_unmap(TAKE_PTR(flows->places), WEIR_FLOW_SHARE_SETS, sizeof(*flows->places));
	weir_offenders_unmap(&flows->offenders);
	weir_closep(&flows->demands_fd);
	flows->demands_fd = -1;
}

void weir_sharing_flows_free(struct weir_sharing_flows *flows)
{
	if (!flows)
		return;
	unmap(flows);
	explicit_bzero(flows->secret, sizeof(flows->secret));
	free(flows->rules);
	free(flows->flow);
	free(flows->wanted);
	free(flows);
}

static uint64_t owner_of(const struct weir_sharing_flows *flows, uint32_t slot, const struct weir_flow_key *key)
{
	return weir_flow_owner(&flows->info, &flows->rules[slot], slot, key);
}

static struct weir_flow_share *place_of(const struct weir_sharing_flows *flows, uint32_t place)
{
	return &flows->places[place / WEIR_FLOW_SHARE_WAYS].way[place % WEIR_FLOW_SHARE_WAYS];
}

static void free_place(struct weir_flow_share *share)
{
	__atomic_store_n(&share->owner, 0, __ATOMIC_RELEASE);
}

static uint64_t half_of(const char *name)
{
	char half[WEIR_FLOW_NAME_CHARS / 2 + 1] = "";

	memcpy(half, name, sizeof(half) - 1);
	return strtoull(half, NULL, 16);
}

/* The flow's place, which a controller before this one may have given it, or a free one. WEIR_FLOW_SHARES: none. One
 * that was given by another name, as with another secret, is none until its course is over: this flow's ledger does not
 * know of it, and would count twice what was given up there.
 */
static uint32_t find_place(const struct weir_sharing_flows *flows, uint32_t slot, uint64_t owner, const char *name)
{
	uint32_t first = WEIR_FLOW_SHARE_SET((uint32_t)(owner >> 32), (uint32_t)owner) * WEIR_FLOW_SHARE_WAYS;
	uint32_t found = WEIR_FLOW_SHARES;

	for (uint32_t place = first; place < first + WEIR_FLOW_SHARE_WAYS; place++) {
		const struct weir_flow_share *share = place_of(flows, place);

		if (share->owner == owner && share->slot == slot)
			return share->name == half_of(name) ? place : WEIR_FLOW_SHARES;
		if (!share->owner)
			found = place;
	}
	return found;
}

/* Answers come in the order of flows: those to a message that is under way would be taken for another's. */
static void drop_flow(struct weir_sharing_flows *flows, size_t index)
{
	for (size_t i = 0; i < flows->count; i++)
		flows->flow[i].asked_ns = 0;
	if (flows->flow[index].place < WEIR_FLOW_SHARES && flows->places)
		free_place(place_of(flows, flows->flow[index].place));
	flows->count--;
	memmove(&flows->flow[index], &flows->flow[index + 1], (flows->count - index) * sizeof(*flows->flow));
}

void weir_sharing_flows_drop(struct weir_sharing_flows *flows, uint32_t slot)
{
	for (size_t i = flows->count; i-- > 0;)
		if (slot == WEIR_FLOWS_ANY || flows->flow[i].slot == slot)
			drop_flow(flows, i);
}

static void take_place(struct weir_sharing_flows *flows, struct weir_shared_flow *flow, uint32_t place, uint64_t owner)
{
	struct weir_flow_share *share = place_of(flows, place);

	flow->place = place;
	if (share->owner == owner)
		return;
	share->slot = flow->slot;
	share->name = half_of(flow->name);
	weir_course_push(&share->version, share->stages, &flow->flow.share, weir_host_now_ns());
	__atomic_store_n(&share->owner, owner, __ATOMIC_RELEASE);
}

/* A reload may have given a rule other rows, and its flows another id. */
static void move_flow(struct weir_sharing_flows *flows, size_t index)
{
	struct weir_shared_flow *flow = &flows->flow[index];
	uint64_t owner = owner_of(flows, flow->slot, &flow->key);
	uint32_t place = find_place(flows, flow->slot, owner, flow->name);

	if (place == flow->place && place_of(flows, place)->owner == owner)
		return;
	free_place(place_of(flows, flow->place));
	flow->place = WEIR_FLOW_SHARES;
	if (place == WEIR_FLOW_SHARES)
		drop_flow(flows, index);
	else
		take_place(flows, flow, place, owner);
}

static int copy_rules(struct weir_sharing_flows *flows, const struct weir_instance *instance)
{
	size_t bytes = instance->info.rule_slots * sizeof(*flows->rules);
	struct weir_rule_info *rules = malloc(bytes ?: 1);

	if (!rules)
		return -ENOMEM;
	memcpy(rules, instance->rules, bytes);
	free(flows->rules);
	flows->rules = rules;
	flows->info = instance->info;
	return 0;
}

int weir_sharing_flows_follow(struct weir_sharing_flows *flows, const struct weir_instance *instance)
{
	int err = copy_rules(flows, instance);

	unmap(flows);
	if (err)
		return err;
	if (instance->is_foreign[WEIR_MAP_FLOW_SHARES] || instance->is_foreign[WEIR_MAP_FLOW_DEMANDS])
		return 0; /* the program knows of no flow that is shared */
	flows->places = weir_array_map(instance->map_fd[WEIR_MAP_FLOW_SHARES], WEIR_FLOW_SHARE_SETS,
				       sizeof(*flows->places), true);
	if (!flows->places)
		return -errno;
	flows->demands_fd = dup(instance->map_fd[WEIR_MAP_FLOW_DEMANDS]);
	if (flows->demands_fd < 0)
		return -errno;
	if (flows->info.rule_slots && !instance->is_foreign[WEIR_MAP_OFFENDERS] &&
	    !instance->is_foreign[WEIR_MAP_OFFENDER_KEYS] && flows->cpus > 0)
		err = weir_offenders_map(&flows->offenders, instance->map_fd[WEIR_MAP_OFFENDERS],
					 instance->map_fd[WEIR_MAP_OFFENDER_KEYS],
					 (uint32_t)flows->cpus * WEIR_OFFENDER_SETS, false);
	for (size_t i = flows->count; i-- > 0;)
		move_flow(flows, i);
	return err;
}

bool weir_sharing_flows_shares(const struct weir_sharing_flows *flows, const struct weir_rule_info *rule)
{
	/* What is number 3 on one host is another interface on another. */
	return flows->has_secret && flows->places && rule->identity.key_fields &&
	       !(rule->identity.key_fields & WEIR_KEY_INTERFACE);
}

/* ---- which flows ---- */

static struct weir_shared_flow *find_by_key(const struct weir_sharing_flows *flows, uint32_t slot,
					    const struct weir_flow_key *key)
{
	for (size_t i = 0; i < flows->count; i++)
		if (flows->flow[i].slot == slot && !memcmp(&flows->flow[i].key, key, sizeof(*key)))
			return &flows->flow[i];
	return NULL;
}

/* Without memory, or a place, the flow has what all others have. */
static void add_flow(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule, const char *name,
		     const char *sealed, const struct weir_flow_key *key, uint64_t now_ns)
{
	uint64_t owner = owner_of(flows, rule->slot, key);
	uint32_t place = find_place(flows, rule->slot, owner, name);
	struct weir_shared_flow *flow;
	struct weir_share_course course;

	if (place == WEIR_FLOW_SHARES)
		return;
	flow = weir_array_add((void **)&flows->flow, flows->count, sizeof(*flow));
	if (!flow)
		return;
	flows->count++;
	*flow = (struct weir_shared_flow){.slot = rule->slot, .key = *key, .is_listed = true};
	snprintf(flow->name, sizeof(flow->name), "%s", name);
	snprintf(flow->sealed, sizeof(flow->sealed), "%s", sealed);
	if (place_of(flows, place)->owner == owner) {
		weir_course_read(place_of(flows, place)->version, place_of(flows, place)->stages, &course);
		weir_flow_resume(&flow->flow, rule->share, &course, now_ns);
	} else {
		weir_flow_begin(&flow->flow, rule->share, now_ns);
	}
	take_place(flows, flow, place, owner);
}

static struct weir_shared_flow *find_by_name(const struct weir_sharing_flows *flows, uint32_t slot, const char *name)
{
	for (size_t i = 0; i < flows->count; i++)
		if (flows->flow[i].slot == slot && !strcmp(flows->flow[i].name, name))
			return &flows->flow[i];
	return NULL;
}

static size_t count_flows(const struct weir_sharing_flows *flows, uint32_t slot)
{
	size_t count = 0;

	for (size_t i = 0; i < flows->count; i++)
		count += flows->flow[i].slot == slot;
	return count;
}

static void take_listed(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule, const char *name,
			const char *sealed, uint64_t now_ns)
{
	struct weir_shared_flow *flow = find_by_name(flows, rule->slot, name);
	struct weir_flow_key key;

	if (flow)
		flow->is_listed = true;
	else if (count_flows(flows, rule->slot) < WEIR_SHARED_FLOWS_MAX &&
		 weir_flow_open(flows->secret, rule->ledger, name, sealed, (uint8_t *)&key))
		add_flow(flows, rule, name, sealed, &key, now_ns);
}

void weir_sharing_flows_take_list(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule,
				  const struct weir_reply *list, uint64_t now_ns)
{
	for (size_t i = 0; i < flows->count; i++)
		if (flows->flow[i].slot == rule->slot)
			flows->flow[i].is_listed = false;
	for (size_t i = 0; i + 1 < weir_reply_count(list); i += 2) {
		const char *name = weir_reply_text(weir_reply_at(list, i));
		const char *sealed = weir_reply_text(weir_reply_at(list, i + 1));

		if (name && sealed)
			take_listed(flows, rule, name, sealed, now_ns);
	}
	for (size_t i = 0; i < flows->count; i++)
		if (flows->flow[i].slot == rule->slot && !flows->flow[i].is_listed)
			weir_flow_end(&flows->flow[i].flow, now_ns);
}

/* ---- flows that are dropped ---- */

struct search {
	struct weir_sharing_flows *flows;
	const struct weir_flow_rule *rules;
	size_t rule_count;
	uint64_t now_ns;
	size_t count; /* of flows->offences */
};

static const struct weir_flow_rule *find_rule(const struct search *search, uint32_t slot)
{
	for (size_t i = 0; i < search->rule_count; i++)
		if (search->rules[i].slot == slot)
			return &search->rules[i];
	return NULL;
}

static void note_offence(const struct weir_offence *offence, void *data)
{
	struct search *search = data;
	struct weir_shared_flow *flow;

	if (offence->last_ns + DROPPED_NS < search->now_ns || !find_rule(search, offence->rule_slot))
		return;
	flow = find_by_key(search->flows, offence->rule_slot, &offence->key);
	if (flow)
		flow->dropped_ns = search->now_ns;
	else if (search->count < OFFENCES_MAX)
		search->flows->offences[search->count++] = *offence;
}

static int by_packets(const void *left, const void *right)
{
	const struct weir_offence *a = left, *b = right;

	return a->packets > b->packets ? -1 : a->packets < b->packets;
}

static size_t count_wanted(const struct weir_sharing_flows *flows, uint32_t slot)
{
	size_t count = 0;

	for (size_t i = 0; i < flows->wanted_count; i++)
		count += flows->wanted[i].slot == slot;
	return count;
}

static struct weir_wanted_flow *add_wanted(struct weir_sharing_flows *flows, uint32_t slot)
{
	struct weir_wanted_flow *wanted;

	if (count_wanted(flows, slot) >= WEIR_SHARED_FLOWS_MAX)
		return NULL;
	wanted = weir_array_add((void **)&flows->wanted, flows->wanted_count, sizeof(*wanted));
	if (!wanted)
		return NULL;
	flows->wanted_count++;
	wanted->slot = slot;
	return wanted;
}

/* Those that are shared come first. */
static void want_shared(struct weir_sharing_flows *flows, uint64_t now_ns)
{
	for (size_t i = 0; i < flows->count; i++) {
		const struct weir_shared_flow *flow = &flows->flow[i];
		struct weir_wanted_flow *wanted;

		if (!flow->flow.wants_more && flow->dropped_ns + DROPPED_NS < now_ns)
			continue;
		wanted = add_wanted(flows, flow->slot);
		if (!wanted)
			continue;
		memcpy(wanted->name, flow->name, sizeof(wanted->name));
		memcpy(wanted->sealed, flow->sealed, sizeof(wanted->sealed));
	}
}

static void want_dropped(struct search *search)
{
	struct weir_sharing_flows *flows = search->flows;

	qsort(flows->offences, search->count, sizeof(flows->offences[0]), by_packets);
	for (size_t i = 0; i < search->count; i++) {
		const struct weir_offence *offence = &flows->offences[i];
		const struct weir_flow_rule *rule = find_rule(search, offence->rule_slot);
		struct weir_wanted_flow *wanted = rule ? add_wanted(flows, rule->slot) : NULL;

		if (wanted)
			weir_flow_seal(flows->secret, rule->ledger, (const uint8_t *)&offence->key, wanted->name,
				       wanted->sealed);
	}
}

static void count_offered(const struct weir_sharing_flows *flows, struct weir_shared_flow *flow)
{
	_cleanup_(weir_freep) uint64_t *counts = calloc((size_t)flows->cpus, sizeof(*counts));

	if (!counts || bpf_map_lookup_elem(flows->demands_fd, &flow->place, counts))
		return; /* it then asks for nothing, and has what an idle host has */
	flow->offered = 0;
	for (int cpu = 0; cpu < flows->cpus; cpu++)
		flow->offered += counts[cpu];
}

void weir_sharing_flows_look(struct weir_sharing_flows *flows, const struct weir_flow_rule *rules, size_t count,
			     uint64_t now_ns)
{
	struct search search = {.flows = flows, .rules = rules, .rule_count = count, .now_ns = now_ns};

	flows->wanted_count = 0;
	for (size_t i = flows->count; i-- > 0;)
		if (!flows->flow[i].is_listed && weir_flow_is_over(&flows->flow[i].flow))
			drop_flow(flows, i);
	if (!flows->places || !count)
		return;
	if (flows->offenders.sets)
		weir_offenders_visit(&flows->offenders, now_ns, note_offence, &search);
	for (size_t i = 0; i < flows->count; i++)
		count_offered(flows, &flows->flow[i]);
	want_shared(flows, now_ns);
	want_dropped(&search);
}

/* ---- what sharing.c asks ---- */

struct weir_shared_flow *weir_sharing_flows_all(struct weir_sharing_flows *flows, size_t *ret_count)
{
	*ret_count = flows->count;
	return flows->flow;
}

const struct weir_wanted_flow *weir_sharing_flows_wanted(const struct weir_sharing_flows *flows, size_t *ret_count)
{
	*ret_count = flows->wanted_count;
	return flows->wanted;
}

uint64_t weir_sharing_flows_lent(const struct weir_sharing_flows *flows, uint32_t slot)
{
	uint64_t most = 0, lent;

	for (size_t i = 0; i < flows->count; i++) {
		lent = flows->flow[i].slot == slot ? weir_flow_lent(&flows->flow[i].flow) : 0;
		most = lent > most ? lent : most;
	}
	return most;
}

uint64_t weir_sharing_flows_next_ns(const struct weir_sharing_flows *flows)
{
	uint64_t first_ns = UINT64_MAX, next_ns;

	for (size_t i = 0; i < flows->count; i++) {
		next_ns = weir_share_next_ns(&flows->flow[i].flow.share);
		first_ns = next_ns < first_ns ? next_ns : first_ns;
	}
	return first_ns;
}

/* What a controller before this one has left behind ends by its course, and is then free. */
static bool is_left_over(const struct weir_flow_share *share, uint64_t now_ns)
{
	struct weir_share_course course;

	weir_course_read(share->version, share->stages, &course);
	return (now_ns >= course.ends_ns || course.leased == WEIR_FLOW_BASE) &&
	       (now_ns >= course.rises_ns || course.ended == WEIR_FLOW_BASE) && course.fallen_back == WEIR_FLOW_BASE;
}

static bool is_ours(const struct weir_sharing_flows *flows, uint32_t place)
{
	for (size_t i = 0; i < flows->count; i++)
		if (flows->flow[i].place == place)
			return true;
	return false;
}

void weir_sharing_flows_push(struct weir_sharing_flows *flows, struct weir_shared_threshold *shares, uint64_t now_ns)
{
	uint32_t slots = flows->info.rule_slots;
	_cleanup_(weir_freep) uint32_t *counts = calloc(slots ?: 1, sizeof(*counts));

	if (!flows->places || !counts)
		return;
	for (size_t i = 0; i < flows->count; i++) {
		struct weir_flow_share *share = place_of(flows, flows->flow[i].place);
		uint64_t before;

		weir_share_advance(&flows->flow[i].flow.share, now_ns);
		before = weir_course_push(&share->version, share->stages, &flows->flow[i].flow.share, now_ns);
		weir_share_was(&flows->flow[i].flow.share, before, weir_host_now_ns());
	}
	for (uint32_t place = 0; place < WEIR_FLOW_SHARES; place++) {
		struct weir_flow_share *share = place_of(flows, place);

		if (!share->owner || share->slot >= slots)
			continue;
		if (!is_ours(flows, place) && is_left_over(share, now_ns))
			free_place(share);
		else
			counts[share->slot]++;
	}
	for (uint32_t slot = 0; slot < slots; slot++)
		if (shares[slot].flows != counts[slot])
			__atomic_store_n(&shares[slot].flows, (__u16)counts[slot], __ATOMIC_RELEASE);
}
