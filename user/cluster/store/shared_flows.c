// SPDX-License-Identifier: GPL-2.0-only
#include "store/shared_flows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/top_drops.h"
#include "store/flow_places.h"

/* A flow that was dropped within this time wants more. Chosen, not derived. */
#define DROPPED_NS WEIR_NSEC_PER_SEC
/* How many of the recently dropped flows are considered. */
#define DROPPED_MAX 1024

struct weir_sharing_flows {
	bool has_secret;
	uint8_t secret[WEIR_FLOW_SECRET_BYTES];
	struct weir_flow_places places;
	struct weir_top_drops top_drops;
	struct weir_shared_flow *flow;
	size_t count;
	struct weir_wanted_flow *wanted;
	size_t wanted_count;
	struct weir_dropped_flow dropped[DROPPED_MAX];	    /* only used during a look */
	struct weir_dropped_flow drops_before[DROPPED_MAX]; /* at the previous look, at looked_ns; sorted by by_flow */
	size_t before_count;
	uint64_t looked_ns;
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
	weir_flow_places_init(&flows->places);
	*ret_flows = flows;
	if (!cluster->key_file[0])
		return 0;
	err = read_secret(cluster->key_file, flows->secret);
	flows->has_secret = !err;
	if (err == -EINVAL)
		weir_diag_warning(diag, NULL, NULL, "create one with 'openssl rand -hex 32', the same for all hosts",
				  "no flow is shared: the first line of '%s' is not a key of 64 hexadecimal digits, 0 "
				  "to 9 and a to f",
				  cluster->key_file);
	else if (err)
		weir_diag_warning(diag, NULL, NULL, NULL, "no flow is shared: cannot read the key in '%s': %s",
				  cluster->key_file, strerror(-err));
	return 0;
}

/* ---- the instance ---- */

void weir_sharing_flows_free(struct weir_sharing_flows *flows)
{
	if (!flows)
		return;
	weir_flow_places_free(&flows->places);
	weir_top_drops_unmap(&flows->top_drops);
	explicit_bzero(flows->secret, sizeof(flows->secret));
	free(flows->flow);
	free(flows->wanted);
	free(flows);
}

/* Answers are matched to flows by order. So an answer to the current message would be taken for that of another flow;
 * ignore them all.
 */
static void drop_flow(struct weir_sharing_flows *flows, size_t index)
{
	for (size_t i = 0; i < flows->count; i++)
		flows->flow[i].asked_ns = 0;
	if (flows->flow[index].place < WEIR_FLOW_SHARES && flows->places.sets)
		weir_flow_places_take(&flows->places, flows->flow[index].place);
	flows->count--;
	memmove(&flows->flow[index], &flows->flow[index + 1], (flows->count - index) * sizeof(*flows->flow));
}

void weir_sharing_flows_drop(struct weir_sharing_flows *flows, uint32_t slot)
{
	for (size_t i = flows->count; i-- > 0;)
		if (slot == WEIR_FLOWS_ANY || flows->flow[i].slot == slot)
			drop_flow(flows, i);
}

/* A reload may have given a rule other rows, and thereby its flows another owner id. */
static void move_flow(struct weir_sharing_flows *flows, size_t index)
{
	struct weir_shared_flow *flow = &flows->flow[index];
	const struct weir_placed_flow placed = {.slot = flow->slot, .key = flow->key, .name = flow->name};
	uint32_t place = weir_flow_places_find(&flows->places, &placed);

	if (place == flow->place && weir_flow_places_has(&flows->places, place, &placed))
		return;
	weir_flow_places_take(&flows->places, flow->place);
	flow->place = place;
	if (place == WEIR_FLOW_SHARES)
		drop_flow(flows, index);
	else
		weir_flow_places_give(&flows->places, place, &placed, &flow->flow.share, weir_host_now_ns());
}

int weir_sharing_flows_follow(struct weir_sharing_flows *flows, const struct weir_instance *instance)
{
	const struct weir_top_drops_maps maps = weir_top_drops_of(instance);
	int err = weir_flow_places_follow(&flows->places, instance), cpus = weir_host_cpus();

	weir_top_drops_unmap(&flows->top_drops);
	if (err || !flows->places.sets)
		return err;
	if (instance->info.rule_slots && !instance->is_incompatible[WEIR_TABLE_TOP_DROPS] &&
	    !instance->is_incompatible[WEIR_TABLE_TOP_DROP_KEYS] && cpus > 0)
		err = weir_top_drops_map(&flows->top_drops, &maps, (uint32_t)cpus * WEIR_TOP_DROPS_SETS, false);
	for (size_t i = flows->count; i-- > 0;)
		move_flow(flows, i);
	return err;
}

bool weir_sharing_flows_shares(const struct weir_sharing_flows *flows, const struct weir_rule_info *rule)
{
	/* An interface number means different interfaces on different hosts, and so does the hash of a label. */
	return flows->has_secret && flows->places.sets && rule->identity.key_fields &&
	       !(rule->identity.key_fields & (WEIR_KEY_INTERFACE | WEIR_KEY_LABELS));
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

/* If there is no memory or no place, the flow has the rule's share, like all other flows. */
static void add_flow(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule, const char *name,
		     const char *sealed, const struct weir_flow_key *key, uint64_t now_ns)
{
	const struct weir_placed_flow placed = {.slot = rule->slot, .key = *key, .name = name};
	uint32_t place = weir_flow_places_find(&flows->places, &placed);
	struct weir_shared_flow *flow;
	struct weir_share_schedule schedule;

	if (place == WEIR_FLOW_SHARES)
		return;
	flow = weir_array_add((void **)&flows->flow, flows->count, sizeof(*flow));
	if (!flow)
		return;
	flows->count++;
	*flow = (struct weir_shared_flow){.slot = rule->slot, .key = *key, .place = place, .is_listed = true};
	snprintf(flow->name, sizeof(flow->name), "%s", name);
	snprintf(flow->sealed, sizeof(flow->sealed), "%s", sealed);
	if (weir_flow_places_has(&flows->places, place, &placed)) {
		weir_flow_places_read(&flows->places, place, &schedule);
		weir_flow_resume(&flow->flow, rule->share, &schedule, now_ns);
	} else {
		weir_flow_begin(&flow->flow, rule->share, now_ns);
		weir_flow_places_give(&flows->places, place, &placed, &flow->flow.share, weir_host_now_ns());
	}
}

static struct weir_shared_flow *find_by_name(const struct weir_sharing_flows *flows, uint32_t slot, const char *name)
{
	for (size_t i = 0; i < flows->count; i++)
		if (flows->flow[i].slot == slot && !strcmp(flows->flow[i].name, name))
			return &flows->flow[i];
	return NULL;
}

static void take_listed(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule, const char *name,
			const char *sealed, uint64_t now_ns)
{
	struct weir_shared_flow *flow = find_by_name(flows, rule->slot, name);
	struct weir_flow_key key;
	size_t count = 0;

	for (size_t i = 0; i < flows->count; i++)
		count += flows->flow[i].slot == rule->slot;
	if (flow)
		flow->is_listed = true;
	else if (count / 2 < WEIR_SHARED_FLOWS_MAX && /* some may be unlisted by now */
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
	size_t count; /* in flows->dropped */
};

static const struct weir_flow_rule *find_rule(const struct search *search, uint32_t slot)
{
	for (size_t i = 0; i < search->rule_count; i++)
		if (search->rules[i].slot == slot)
			return &search->rules[i];
	return NULL;
}

static void note_dropped(const struct weir_dropped_flow *dropped, void *data)
{
	struct search *search = data;
	struct weir_shared_flow *flow;

	if (dropped->last_ns + DROPPED_NS < search->now_ns || !find_rule(search, dropped->rule_slot))
		return;
	flow = find_by_key(search->flows, dropped->rule_slot, &dropped->key);
	if (flow)
		flow->dropped_ns = search->now_ns;
	else if (search->count < DROPPED_MAX)
		search->flows->dropped[search->count++] = *dropped;
}

/* Sorts what different CPUs have counted for the same flow next to each other. */
static int by_flow(const void *left, const void *right)
{
	const struct weir_dropped_flow *a = left, *b = right;

	if (a->rule_slot != b->rule_slot)
		return a->rule_slot < b->rule_slot ? -1 : 1;
	return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static void merge_dropped(struct search *search)
{
	struct weir_dropped_flow *dropped = search->flows->dropped;
	size_t merged = 0;

	qsort(dropped, search->count, sizeof(*dropped), by_flow);
	for (size_t i = 0; i < search->count; i++) {
		if (merged && !by_flow(&dropped[merged - 1], &dropped[i])) {
			dropped[merged - 1].packets += dropped[i].packets;
			dropped[merged - 1].bytes += dropped[i].bytes;
		} else {
			dropped[merged++] = dropped[i];
		}
	}
	search->count = merged;
}

/* The units dropped since the previous round, converted to the rule's interval. A flow that was not dropped then is
 * evaluated in the next round.
 */
static uint64_t lack_of(const struct search *search, const struct weir_dropped_flow *dropped)
{
	const struct weir_sharing_flows *flows = search->flows;
	const struct weir_rule_identity *rule = &flows->places.rules[dropped->rule_slot].identity;
	const struct weir_dropped_flow *before =
		bsearch(dropped, flows->drops_before, flows->before_count, sizeof(*flows->drops_before), by_flow);
	const double rounds = (double)rule->interval_ns / (double)(search->now_ns - flows->looked_ns + 1);
	uint64_t units, units_before;

	if (!before)
		return 0;
	units = rule->counts_bytes ? dropped->bytes : dropped->packets;
	units_before = rule->counts_bytes ? before->bytes : before->packets;
	return units > units_before ? (uint64_t)((double)(units - units_before) * rounds) : 0;
}

/* The wanted flow of this rule with the lowest lack, if the rule already has the maximum number of them, which is
 * small.
 */
static struct weir_wanted_flow *find_least(struct weir_sharing_flows *flows, uint32_t slot)
{
	struct weir_wanted_flow *least = NULL;
	size_t count = 0;

	for (size_t i = 0; i < flows->wanted_count; i++) {
		if (flows->wanted[i].slot != slot)
			continue;
		count++;
		if (!least || flows->wanted[i].lack < least->lack)
			least = &flows->wanted[i];
	}
	return count < WEIR_SHARED_FLOWS_MAX ? NULL : least;
}

/* NULL: others lack more, or there is no memory. */
static struct weir_wanted_flow *add_wanted(struct weir_sharing_flows *flows, uint32_t slot, uint64_t lack)
{
	struct weir_wanted_flow *wanted = find_least(flows, slot);

	if (wanted && wanted->lack >= lack)
		return NULL;
	if (!wanted) {
		wanted = weir_array_add((void **)&flows->wanted, flows->wanted_count, sizeof(*wanted));
		if (!wanted)
			return NULL;
		flows->wanted_count++;
	}
	*wanted = (struct weir_wanted_flow){.slot = slot, .lack = lack};
	return wanted;
}

static void want_shared(struct weir_sharing_flows *flows, uint64_t now_ns)
{
	for (size_t i = 0; i < flows->count; i++) {
		const struct weir_shared_flow *flow = &flows->flow[i];
		struct weir_wanted_flow *wanted;

		if (!flow->flow.lack && flow->dropped_ns + DROPPED_NS < now_ns)
			continue;
		wanted = add_wanted(flows, flow->slot, flow->flow.lack ?: 1);
		if (!wanted)
			continue;
		memcpy(wanted->name, flow->name, sizeof(wanted->name));
		memcpy(wanted->sealed, flow->sealed, sizeof(wanted->sealed));
	}
}

static void want_dropped(struct search *search)
{
	struct weir_sharing_flows *flows = search->flows;

	merge_dropped(search);
	for (size_t i = 0; i < search->count; i++) {
		const struct weir_dropped_flow *dropped = &flows->dropped[i];
		const struct weir_flow_rule *rule = find_rule(search, dropped->rule_slot);
		const uint64_t lack = rule ? lack_of(search, dropped) : 0;
		struct weir_wanted_flow *wanted = lack ? add_wanted(flows, rule->slot, lack) : NULL;

		if (wanted)
			weir_flow_seal(flows->secret, rule->ledger, (const uint8_t *)&dropped->key, wanted->name,
				       wanted->sealed);
	}
	memcpy(flows->drops_before, flows->dropped, search->count * sizeof(*flows->dropped));
	flows->before_count = search->count;
	flows->looked_ns = search->now_ns;
}

void weir_sharing_flows_look(struct weir_sharing_flows *flows, const struct weir_flow_rule *rules, size_t count,
			     uint64_t now_ns)
{
	struct search search = {.flows = flows, .rules = rules, .rule_count = count, .now_ns = now_ns};

	flows->wanted_count = 0;
	for (size_t i = flows->count; i-- > 0;)
		if (!flows->flow[i].is_listed && weir_flow_is_over(&flows->flow[i].flow))
			drop_flow(flows, i);
	if (!flows->places.sets || !count)
		return;
	if (flows->top_drops.sets)
		weir_top_drops_visit(&flows->top_drops, now_ns, note_dropped, &search);
	/* A flow whose demand cannot be read asks for nothing, and has what an idle host has. */
	for (size_t i = 0; i < flows->count; i++)
		(void)weir_flow_places_offered(&flows->places, flows->flow[i].place, &flows->flow[i].offered);
	want_shared(flows, now_ns);
	want_dropped(&search);
}

/* ---- for sharing.c ---- */

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

void weir_sharing_flows_push(struct weir_sharing_flows *flows, struct weir_shared_threshold *shares, uint64_t now_ns)
{
	bool is_ours[WEIR_FLOW_SHARES] = {};

	if (!flows->places.sets)
		return;
	for (size_t i = 0; i < flows->count; i++) {
		struct weir_share *share = &flows->flow[i].flow.share;
		uint64_t before;

		is_ours[flows->flow[i].place] = true;
		weir_share_advance(share, now_ns);
		before = weir_flow_places_push(&flows->places, flows->flow[i].place, share, now_ns);
		weir_share_was(share, before, weir_host_now_ns());
	}
	weir_flow_places_tidy(&flows->places, is_ours, shares, now_ns);
}
