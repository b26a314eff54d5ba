// SPDX-License-Identifier: GPL-2.0-only
#include "harness/limited.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "program/object.h"

struct scan {
	const struct weir_image *image;
	struct weir_replay_limited *limited;
	size_t count, room;
};

/* A replay stays on one CPU, so each flow has only one entry. */
static void add(const struct weir_dropped_flow *dropped, void *data)
{
	struct scan *scan = data;

	if (scan->count == scan->room || dropped->rule_slot >= scan->image->rule_slots)
		return;
	scan->limited[scan->count++] = (struct weir_replay_limited){
		.dropped = *dropped,
		.identity = scan->image->rule_info[dropped->rule_slot].identity,
		.rule = scan->image->rule_info[dropped->rule_slot].place,
	};
}

static int compare(const void *left, const void *right)
{
	const struct weir_replay_limited *a = left, *b = right;

	if (a->dropped.packets != b->dropped.packets)
		return a->dropped.packets > b->dropped.packets ? -1 : 1;
	if (a->dropped.first_ns != b->dropped.first_ns)
		return a->dropped.first_ns < b->dropped.first_ns ? -1 : 1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return memcmp(&a->dropped.key, &b->dropped.key, sizeof(a->dropped.key));
}

int weir_replay_read_limited(const struct weir_object *object, const struct weir_image *image, uint64_t latest_ns,
			     struct weir_replay_limits *ret_limits, struct weir_diag *diag)
{
	const struct weir_top_drops_maps maps = {
		.sets_fd = weir_object_map_fd(object, WEIR_TABLE_TOP_DROPS),
		.keys_fd = weir_object_map_fd(object, WEIR_TABLE_TOP_DROP_KEYS),
		.totals_fd = weir_object_map_fd(object, WEIR_TABLE_TOTALS),
	};
	struct weir_top_drops top_drops;
	struct weir_replay_limits limits = {};
	struct scan scan = {.image = image};
	int err = weir_top_drops_map(&top_drops, &maps, image->config.sizes[WEIR_TABLE_TOP_DROPS], false);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the drops of flows");
	scan.room = (size_t)top_drops.set_count * WEIR_TOP_DROPS_WAYS;
	scan.limited = calloc(scan.room + 1, sizeof(*scan.limited));
	if (scan.limited)
		weir_top_drops_visit(&top_drops, latest_ns, add, &scan);
	limits.missed = weir_top_drops_missed(&top_drops);
	weir_top_drops_unmap(&top_drops);
	if (!scan.limited)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of flows");
	if (weir_labels_copy(weir_object_labels(object), &limits.labels)) {
		free(scan.limited);
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of flows");
	}
	limits.most = scan.limited;
	limits.flows = scan.count;
	limits.count =
		weir_keep_first(scan.limited, scan.count, WEIR_REPLAY_LIMITED_MAX, sizeof(*scan.limited), compare);
	*ret_limits = limits;
	return 0;
}

void weir_replay_limits_free(struct weir_replay_limits *limits)
{
	free(limits->most);
	free(limits->labels);
	*limits = (struct weir_replay_limits){};
}
