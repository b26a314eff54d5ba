// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notes say which flows are over their limit until their bucket ends (bpf/window/notes.h). A flow is dropped by its
 * note alone, by no other flow's, and never after its bucket. Under the virtual clock, on one CPU, with rows that are
 * taken away.
 */
#include <bpf/bpf.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "../lib/shortcuts.h"
#include "base/util.h"
#include "host/host.h"

#define PORT 53
#define LIMIT 3u
#define FLOWS_PER_CPU 16384u
#define NOTES (2 * WEIR_NOTE_PAIRS)

static unsigned int passed_of(struct rig *rig, uint64_t now_ns, uint8_t host, unsigned int count)
{
	struct packet_spec spec = packet_udp("192.0.2.0", 1024, "198.51.100.1", PORT, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	unsigned int passed = 0;
	size_t frame_bytes;

	spec.source[3] = host;
	frame_bytes = packet_build(&spec, frame);
	for (unsigned int i = 0; i < count; i++)
		passed += rig_passes(rig, now_ns, frame, frame_bytes);
	return passed;
}

/* Two flows over their limits, in turn, so that no packet is of the source that was blocked just before. */
static void begin(struct rig *rig)
{
	rig_require_shortcut(WEIR_SHORTCUT_NOTE);
	memset(rig, 0, sizeof(*rig));
	rig_begin(rig, FLOWS_PER_CPU);
	rig_rule(rig, rig_resource(rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, LIMIT, SECOND, 1);
	rig_load(rig, true);
	for (uint8_t host = 1; host <= 2; host++)
		assert_int_equal(passed_of(rig, RIG_START_NS, host, LIMIT + 1), LIMIT);
	for (int i = 0; i < 8; i++)
		assert_int_equal(passed_of(rig, RIG_START_NS, 1 + i % 2, 1), 0);
}

static void take_rows_away(const struct rig *rig)
{
	__u32 chunks = weir_table_entries(WEIR_TABLE_NARROW_FLOWS, rig->image->config.sizes[WEIR_TABLE_NARROW_FLOWS]);
	_cleanup_(weir_freep) struct weir_narrow_chunk *empty = calloc(weir_host_cpus(), sizeof(*empty));

	assert_non_null(empty);
	for (__u32 i = 0; i < chunks; i++)
		assert_int_equal(bpf_map_update_elem(weir_object_map_fd(rig->object, WEIR_TABLE_NARROW_FLOWS), &i,
						     empty, BPF_ANY),
				 0);
}

/* All of them: the flows' sets are the only ones with any. */
static void change_notes(const struct rig *rig, void (*change)(uint32_t *notes))
{
	int fd = weir_object_own_map_fd(rig->object, "notes");
	__u32 sets = weir_image_note_sets(rig->image);
	uint32_t notes[NOTES];
	unsigned int changed = 0;

	for (__u32 i = 0; i < sets; i++) {
		assert_int_equal(bpf_map_lookup_elem(fd, &i, notes), 0);
		if (!notes[0] && !notes[1] && !notes[2] && !notes[3])
			continue;
		change(notes);
		assert_int_equal(bpf_map_update_elem(fd, &i, notes, BPF_ANY), 0);
		changed++;
	}
	assert_in_range(changed, 1, 2);
}

static void turn(uint32_t *notes)
{
	uint32_t first = notes[0];

	memmove(notes, notes + 1, (NOTES - 1) * sizeof(*notes));
	notes[NOTES - 1] = first;
}

static void spoil(uint32_t *notes)
{
	for (int i = 0; i < NOTES; i++)
		notes[i] += notes[i] ? 1u << 31 : 0;
}

CLAIM(a_flow_is_dropped_by_its_note_alone_until_its_bucket_ends)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig);
	take_rows_away(&rig);
	for (int i = 0; i < 8; i++)
		assert_int_equal(passed_of(&rig, RIG_START_NS + SECOND - 1, 1 + i % 2, 1), 0);
	assert_int_equal(passed_of(&rig, RIG_START_NS + SECOND, 2, LIMIT + 3), LIMIT);
	/* After a packet that a shortcut has blocked, notes are read. */
	assert_int_equal(passed_of(&rig, RIG_START_NS + SECOND, 1, LIMIT + 1), LIMIT);
}

CLAIM(a_note_is_found_in_any_of_its_places)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig);
	take_rows_away(&rig);
	for (int place = 0; place < NOTES; place++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(passed_of(&rig, RIG_START_NS, 1 + i % 2, 1), 0);
		change_notes(&rig, turn);
	}
}

CLAIM(no_flow_is_dropped_by_another_ones_note)
{
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig);
	for (unsigned int host = 3; host < 250; host++) {
		assert_int_equal(passed_of(&rig, RIG_START_NS, 1, 1), 0); /* after which notes are read */
		assert_int_equal(passed_of(&rig, RIG_START_NS, host, 1), 1);
	}
	assert_int_equal(passed_of(&rig, RIG_START_NS, 1, 1), 0);
	take_rows_away(&rig);
	change_notes(&rig, spoil);
	assert_int_equal(passed_of(&rig, RIG_START_NS, 2, 1), 1);
}

RUN_CLAIMS(rig_stay_group, rig_roam_group)
