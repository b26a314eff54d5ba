// SPDX-License-Identifier: GPL-2.0-only
#include "replay/limited.h"

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

/* A replay stays on one CPU, so that a flow has one place. */
static void add(const struct weir_offence *offence, void *data)
{
	struct scan *scan = data;

	if (scan->count == scan->room || offence->rule_slot >= scan->image->rule_slots)
		return;
	scan->limited[scan->count++] = (struct weir_replay_limited){
		.offence = *offence,
		.identity = scan->image->rule_info[offence->rule_slot].identity,
		.rule = scan->image->rule_info[offence->rule_slot].place,
	};
}

static int compare(const void *left, const void *right)
{
	const struct weir_replay_limited *a = left, *b = right;

	if (a->offence.packets != b->offence.packets)
		return a->offence.packets > b->offence.packets ? -1 : 1;
	if (a->offence.first_ns != b->offence.first_ns)
		return a->offence.first_ns < b->offence.first_ns ? -1 : 1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return memcmp(&a->offence.key, &b->offence.key, sizeof(a->offence.key));
}

int weir_replay_read_limited(const struct weir_object *object, const struct weir_image *image, uint64_t latest_ns,
			     struct weir_replay_limits *ret_limits, struct weir_diag *diag)
{
	struct weir_offenders offenders;
	struct weir_replay_limits limits = {};
	struct scan scan = {.image = image};
	int err = weir_offenders_map(&offenders, weir_object_map_fd(object, WEIR_TABLE_OFFENDERS),
				     weir_object_map_fd(object, WEIR_TABLE_OFFENDER_KEYS),
				     image->config.sizes[WEIR_TABLE_OFFENDERS], false);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the drops of flows");
	scan.room = (size_t)offenders.set_count * WEIR_OFFENDER_WAYS;
	scan.limited = calloc(scan.room + 1, sizeof(*scan.limited));
	if (scan.limited)
		weir_offenders_visit(&offenders, latest_ns, add, &scan);
	limits.missed = weir_offenders_missed(&offenders);
	weir_offenders_unmap(&offenders);
	if (!scan.limited)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read the drops of flows");
	if (scan.count)
		qsort(scan.limited, scan.count, sizeof(*scan.limited), compare);
	limits.most = scan.limited;
	limits.flows = scan.count;
	limits.count = scan.count < WEIR_REPLAY_LIMITED_MAX ? scan.count : WEIR_REPLAY_LIMITED_MAX;
	*ret_limits = limits;
	return 0;
}

void weir_replay_limits_free(struct weir_replay_limits *limits)
{
	free(limits->most);
	*limits = (struct weir_replay_limits){};
}
