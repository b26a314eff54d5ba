// SPDX-License-Identifier: GPL-2.0-only
#include "store/flow_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "shares/flow_name.h"
#include "store/sharing_state.h"
#include "tables/flow_hash.h"

/* ---- the instance ---- */

void weir_flow_places_init(struct weir_flow_places *places)
{
	*places = (struct weir_flow_places){.demands_fd = -1, .cpus = weir_host_cpus()};
}

static void unmap(struct weir_flow_places *places)
{
	weir_array_unmap(TAKE_PTR(places->sets), WEIR_FLOW_SHARE_SETS, sizeof(*places->sets));
	weir_closep(&places->demands_fd);
	places->demands_fd = -1;
}

void weir_flow_places_free(struct weir_flow_places *places)
{
	unmap(places);
	free(TAKE_PTR(places->rules));
}

static int copy_rules(struct weir_flow_places *places, const struct weir_instance *instance)
{
	size_t bytes = instance->info.rule_slots * sizeof(*places->rules);
	struct weir_rule_info *rules = malloc(bytes ?: 1);

	if (!rules)
		return -ENOMEM;
	memcpy(rules, instance->rules, bytes);
	free(places->rules);
	places->rules = rules;
	places->info = instance->info;
	return 0;
}

int weir_flow_places_follow(struct weir_flow_places *places, const struct weir_instance *instance)
{
	int err = copy_rules(places, instance);

	unmap(places);
	if (err)
		return err;
	if (instance->is_incompatible[WEIR_TABLE_FLOW_SHARES] || instance->is_incompatible[WEIR_TABLE_FLOW_DEMANDS])
		return 0;
	places->sets = weir_array_map(instance->map_fd[WEIR_TABLE_FLOW_SHARES], WEIR_FLOW_SHARE_SETS,
				      sizeof(*places->sets), true);
	if (!places->sets)
		return -errno;
	places->demands_fd = dup(instance->map_fd[WEIR_TABLE_FLOW_DEMANDS]);
	return places->demands_fd < 0 ? -errno : 0;
}

/* ---- places ---- */

static struct weir_flow_share *place_of(const struct weir_flow_places *places, uint32_t place)
{
	return &places->sets[place / WEIR_FLOW_SHARE_WAYS].way[place % WEIR_FLOW_SHARE_WAYS];
}

static uint64_t owner_of(const struct weir_flow_places *places, const struct weir_placed_flow *flow)
{
	return weir_flow_owner(&places->info, &places->rules[flow->slot], flow->slot, &flow->key);
}

static uint64_t half_of(const char *name)
{
	char half[WEIR_FLOW_NAME_CHARS / 2 + 1] = "";

	memcpy(half, name, sizeof(half) - 1);
	return strtoull(half, NULL, 16);
}

/* Finds a place for the flow. If the flow's place was assigned under another name, for example with another secret, the
 * flow gets no place until that schedule is over: its ledger does not know about that schedule, and would count twice
 * what was given up there.
 */
uint32_t weir_flow_places_find(const struct weir_flow_places *places, const struct weir_placed_flow *flow)
{
	uint64_t owner = owner_of(places, flow);
	uint32_t first = WEIR_FLOW_SHARE_SET((uint32_t)(owner >> 32), (uint32_t)owner) * WEIR_FLOW_SHARE_WAYS;
	uint32_t found = WEIR_FLOW_SHARES;

	for (uint32_t place = first; place < first + WEIR_FLOW_SHARE_WAYS; place++) {
		const struct weir_flow_share *share = place_of(places, place);

		if (share->owner == owner && share->slot == flow->slot)
			return share->name == half_of(flow->name) ? place : WEIR_FLOW_SHARES;
		if (!share->owner)
			found = place;
	}
	return found;
}

bool weir_flow_places_has(const struct weir_flow_places *places, uint32_t place, const struct weir_placed_flow *flow)
{
	return place_of(places, place)->owner == owner_of(places, flow);
}

void weir_flow_places_read(const struct weir_flow_places *places, uint32_t place,
			   struct weir_share_schedule *ret_schedule)
{
	weir_share_schedule_read(place_of(places, place)->version, place_of(places, place)->stages, ret_schedule);
}

void weir_flow_places_give(struct weir_flow_places *places, uint32_t place, const struct weir_placed_flow *flow,
			   const struct weir_share *share, uint64_t now_ns)
{
	struct weir_flow_share *given = place_of(places, place);

	given->slot = flow->slot;
	given->name = half_of(flow->name);
	weir_share_schedule_push(&given->version, given->stages, share, now_ns);
	__atomic_store_n(&given->owner, owner_of(places, flow), __ATOMIC_RELEASE);
}

void weir_flow_places_take(struct weir_flow_places *places, uint32_t place)
{
	__atomic_store_n(&place_of(places, place)->owner, 0, __ATOMIC_RELEASE);
}

uint64_t weir_flow_places_push(struct weir_flow_places *places, uint32_t place, const struct weir_share *share,
			       uint64_t now_ns)
{
	struct weir_flow_share *pushed = place_of(places, place);

	return weir_share_schedule_push(&pushed->version, pushed->stages, share, now_ns);
}

int weir_flow_places_offered(const struct weir_flow_places *places, uint32_t place, uint64_t *ret_units)
{
	_cleanup_(weir_freep) uint64_t *counts =
		places->cpus > 0 ? calloc((size_t)places->cpus, sizeof(*counts)) : NULL;

	if (!counts)
		return -ENOMEM;
	if (weir_map_look_up(places->demands_fd, &place, counts))
		return -errno;
	*ret_units = 0;
	for (int cpu = 0; cpu < places->cpus; cpu++)
		*ret_units += counts[cpu];
	return 0;
}

/* ---- all places ---- */

static bool is_over(const struct weir_flow_places *places, uint32_t place, uint64_t now_ns)
{
	struct weir_share_schedule schedule;

	weir_flow_places_read(places, place, &schedule);
	return (now_ns >= schedule.ends_ns || schedule.leased == WEIR_FLOW_BASE) &&
	       (now_ns >= schedule.rises_ns || schedule.ended == WEIR_FLOW_BASE) &&
	       schedule.fallen_back == WEIR_FLOW_BASE;
}

void weir_flow_places_tidy(struct weir_flow_places *places, const bool is_ours[WEIR_FLOW_SHARES],
			   struct weir_shared_threshold *shares, uint64_t now_ns)
{
	uint32_t slots = places->info.rule_slots;
	_cleanup_(weir_freep) uint16_t *counts = calloc(slots ?: 1, sizeof(*counts));

	if (!counts)
		return;
	for (uint32_t place = 0; place < WEIR_FLOW_SHARES; place++) {
		const struct weir_flow_share *share = place_of(places, place);

		if (!share->owner || share->slot >= slots)
			continue;
		if (!is_ours[place] && is_over(places, place, now_ns))
			weir_flow_places_take(places, place);
		else
			counts[share->slot]++;
	}
	for (uint32_t slot = 0; slot < slots; slot++)
		if (shares[slot].flows != counts[slot])
			__atomic_store_n(&shares[slot].flows, counts[slot], __ATOMIC_RELEASE);
}
