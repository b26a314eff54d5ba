// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the program makes of shares and of flows that hosts share one by one (docs/cluster.md): maps `shares`,
 * `flow_shares` and `flow_demands`, as a controller writes and reads them.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "tables/flow_hash.h"

#define PORT 53
#define SOURCE "192.0.2.1"
#define OTHER_SOURCE "192.0.2.2"
#define FRAME_BYTES 100
#define OFFERED 20
#define INTERVAL_NS (600 * SECOND) /* longer than any test: what was counted stays counted */

/* A rule by source. The flow has its place; its other rows are those of the rule's storage. */
struct fixture {
	struct rig rig;
	struct weir_instance_info info;
	uint64_t unit; /* what a packet counts */
	uint64_t owner;
	uint32_t place;
};

static const struct weir_rule_info *rule_of(const struct fixture *f)
{
	return &f->rig.image->rule_info[f->rig.image->rules[0].slot];
}

static void begin(struct fixture *f, bool counts_bytes)
{
	const struct weir_config *config;
	struct weir_flow_key key = {.family = 4};
	struct weir_ruleset_rule *rule;

	memset(f, 0, sizeof(*f));
	rig_begin(&f->rig, 512);
	rule = rig_rule(&f->rig, rig_resource(&f->rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
			counts_bytes ? 3000 * FRAME_BYTES : 3000, INTERVAL_NS, 10);
	rule->cluster = WEIR_CLUSTER_GLOBAL;
	rule->counts_bytes = counts_bytes;
	rig_load(&f->rig, false);
	config = &f->rig.image->config;
	memcpy(f->info.seed, weir_object_seed(f->rig.object), sizeof(f->info.seed));
	f->info.tables[WEIR_TABLE_MEDIUM_FLOWS].size = config->sizes[WEIR_TABLE_MEDIUM_FLOWS];
	f->info.tables[WEIR_TABLE_WIDE_FLOWS].size = config->sizes[WEIR_TABLE_WIDE_FLOWS];
	f->unit = counts_bytes ? FRAME_BYTES : 1;
	inet_pton(AF_INET, SOURCE, key.source);
	f->owner = weir_flow_owner(&f->info, rule_of(f), f->rig.image->rules[0].slot, &key);
	f->place = WEIR_FLOW_SHARE_SET((uint32_t)(f->owner >> 32), (uint32_t)f->owner) * WEIR_FLOW_SHARE_WAYS + 2;
}

static struct weir_share_stages always(uint64_t units)
{
	return (struct weir_share_stages){
		.units = {units, units, units},
		.until_ns = {UINT64_MAX, UINT64_MAX},
		.stops_ns = UINT64_MAX,
	};
}

static void push_schedule(const struct fixture *f, struct weir_share_stages stages, uint16_t flows)
{
	uint32_t slot = f->rig.image->rules[0].slot;
	struct weir_shared_threshold shared = {.stages = {stages}, .flows = flows};

	assert_int_equal(bpf_map_update_elem(weir_object_map_fd(f->rig.object, WEIR_TABLE_SHARES), &slot, &shared, 0),
			 0);
}

/* The rule's share, in packets, and whether the program is to look for single flows. */
static void push_share(const struct fixture *f, uint64_t packets, uint16_t flows)
{
	push_schedule(f, always(packets * f->unit), flows);
}

/* What the flow has more or less, in packets. */
static void push_flow(const struct fixture *f, uint32_t slot, struct weir_share_stages stages)
{
	int fd = weir_object_map_fd(f->rig.object, WEIR_TABLE_FLOW_SHARES);
	uint32_t number = f->place / WEIR_FLOW_SHARE_WAYS;
	struct weir_flow_share_set set = {};

	set.way[f->place % WEIR_FLOW_SHARE_WAYS] =
		(struct weir_flow_share){.owner = f->owner, .slot = slot, .stages = {stages}};
	assert_int_equal(bpf_map_update_elem(fd, &number, &set, 0), 0);
}

static struct weir_share_stages difference(const struct fixture *f, int64_t packets)
{
	return always(WEIR_FLOW_BASE + (uint64_t)(packets * (int64_t)f->unit));
}

/* Of OFFERED packets of this source. */
static uint32_t passed(const struct fixture *f, const char *source)
{
	struct packet_spec spec = packet_udp(source, 1024, "198.51.100.1", PORT, 0);
	uint8_t frame[PACKET_BYTES_MAX];
	uint32_t count = 0;

	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
	for (int i = 0; i < OFFERED; i++)
		count += weir_object_evaluate(f->rig.object, frame, FRAME_BYTES) == XDP_PASS;
	return count;
}

static uint64_t demand(const struct fixture *f)
{
	_cleanup_(weir_freep) uint64_t *counts = calloc(weir_host_cpus(), sizeof(*counts));
	uint64_t sum = 0;

	assert_non_null(counts);
	assert_int_equal(
		bpf_map_lookup_elem(weir_object_map_fd(f->rig.object, WEIR_TABLE_FLOW_DEMANDS), &f->place, counts), 0);
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++)
		sum += counts[cpu];
	return sum;
}

static void assert_passed_with(bool counts_bytes, int64_t packets, uint32_t expected)
{
	struct fixture f;

	begin(&f, counts_bytes);
	push_share(&f, 5, 1);
	push_flow(&f, f.rig.image->rules[0].slot, difference(&f, packets));
	assert_int_equal(passed(&f, SOURCE), expected);
	assert_int_equal(passed(&f, OTHER_SOURCE), 5);
	assert_int_equal(demand(&f), OFFERED * f.unit);
	rig_end(&f.rig);
}

CLAIM(a_flow_has_its_difference_and_others_have_the_share)
{
	for (int counts_bytes = 0; counts_bytes < 2; counts_bytes++) {
		assert_passed_with(counts_bytes, 3, 8);
		assert_passed_with(counts_bytes, -4, 1);
		assert_passed_with(counts_bytes, 0, 5);
		assert_passed_with(counts_bytes, -5, 0);
		assert_passed_with(counts_bytes, -9, 0); /* the share has shrunk under it */
	}
}

CLAIM(a_flow_of_another_rule_is_another)
{
	struct fixture f;

	begin(&f, false);
	push_share(&f, 5, 1);
	push_flow(&f, f.rig.image->rules[0].slot + 1, difference(&f, 3));
	assert_int_equal(passed(&f, SOURCE), 5);
	assert_int_equal(demand(&f), 0);
	rig_end(&f.rig);
}

/* What it would look up costs something: so it does not look where no flow is shared. */
CLAIM(without_flows_nothing_is_looked_for)
{
	struct fixture f;

	begin(&f, false);
	push_share(&f, 5, 0);
	push_flow(&f, f.rig.image->rules[0].slot, difference(&f, 3));
	assert_int_equal(passed(&f, SOURCE), 5);
	assert_int_equal(demand(&f), 0);
	rig_end(&f.rig);
}

/* No controller is there to say so. */
CLAIM(a_difference_ends_by_its_schedule)
{
	struct weir_share_stages stages;
	struct fixture f;

	begin(&f, false);
	push_share(&f, 5, 1);
	stages = difference(&f, 3);
	stages.until_ns[WEIR_SHARE_LEASED] = stages.until_ns[WEIR_SHARE_ENDED] = 1;
	stages.units[WEIR_SHARE_FALLEN_BACK] = WEIR_FLOW_BASE;
	push_flow(&f, f.rig.image->rules[0].slot, stages);
	assert_int_equal(passed(&f, SOURCE), 5);
	rig_end(&f.rig);
}

/* Nor that the host has been silent for too long (afterSilence: stop): no share then, and nothing of a flow either. */
CLAIM(a_share_stops_by_its_schedule)
{
	struct weir_share_stages stages;
	struct fixture f;

	begin(&f, false);
	stages = always(5);
	push_schedule(&f, stages, 0);
	assert_int_equal(passed(&f, SOURCE), 5);
	stages.stops_ns = 1;
	push_schedule(&f, stages, 1);
	push_flow(&f, f.rig.image->rules[0].slot, difference(&f, 0));
	assert_int_equal(passed(&f, SOURCE), 0);
	assert_int_equal(passed(&f, OTHER_SOURCE), 0);
	rig_end(&f.rig);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
