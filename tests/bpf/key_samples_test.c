// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose row it is, for `weir flows`: of a flow that sends much, every rule's row is reported. By the real clock, as
 * under the virtual one every admission is noted.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sched.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define PORT 53
#define RULES 3
#define PACKETS 2000

/* Is there a key sample of this rule on this CPU? */
static bool has_key_sample(const struct rig *rig, uint32_t slot)
{
	_cleanup_(weir_freep) struct weir_key_sample_chunk *chunks = calloc(weir_host_cpus(), sizeof(*chunks));

	assert_non_null(chunks);
	for (__u32 index = 0; index < WEIR_KEY_SAMPLE_CHUNKS; index++) {
		const struct weir_key_sample_chunk *chunk = &chunks[sched_getcpu()];

		assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, WEIR_TABLE_KEY_SAMPLES), &index,
						     chunks),
				 0);
		for (size_t i = 0; i < WEIR_KEY_SAMPLES_PER_CHUNK; i++)
			if (chunk->sample[i].tag && chunk->sample[i].rule_slot == slot)
				return true;
	}
	return false;
}

/* The first rule has narrow rows, the others wide ones: by their limit, and as they count bytes. An hour each, so that
 * no bucket begins but the first; and in one run, so that jiffies hardly move on.
 */
CLAIM(flow_that_sends_much_is_reported_under_each_rule_of_its_packets)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", PORT, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(&spec, frame),
		    .repeat = PACKETS);
	struct rig rig = {};
	cpu_set_t before;
	size_t resource;

	rig_begin(&rig, 512);
	rig_stay(&before);
	resource = rig_resource(&rig, PORT, WEIR_KEY_SOURCE);
	rig_rule(&rig, resource, WEIR_WINDOW_LEAP, 30000, 3600 * SECOND, 1);
	rig_rule(&rig, resource, WEIR_WINDOW_LEAP, 1000000, 3600 * SECOND, 1);
	rig_rule(&rig, resource, WEIR_WINDOW_LEAP, 1000000000, 3600 * SECOND, 1)->counts_bytes = true;
	rig_load(&rig, false);
	assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig.object), &options), 0);
	assert_int_equal(rig_passed(&rig, 0), PACKETS);
	for (uint32_t rule = 0; rule < RULES; rule++)
		assert_true(has_key_sample(&rig, rig.image->rules[rule].slot));
	rig_end(&rig);
	rig_roam(&before);
}

RUN_CLAIMS(NULL, NULL)
