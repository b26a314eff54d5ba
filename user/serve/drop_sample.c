// SPDX-License-Identifier: GPL-2.0-only
#include "serve/drop_sample.h"

#include <errno.h>

#include "base/util.h"
#include "host/host.h"
#include "report/event_lines.h"
#include "words/json.h"

/* Both chosen, not derived. A page that gets slow answers sends a request every 10 s or less often. */
#define FLOWS_A_READING 5
#define FORGET_NS (60 * WEIR_NSEC_PER_SEC)

void weir_drop_sample_free(struct weir_drop_sample *sample)
{
	json_decref(sample->events);
	weir_event_watch_close(&sample->watch);
	*sample = (struct weir_drop_sample){};
}

/* The sample is of the present attachment, and was requested recently. */
static bool is_going_on(const struct weir_drop_sample *sample, const struct weir_instance *now, uint64_t now_ns)
{
	return sample->events && sample->watch.instance->info.attached_ns == now->info.attached_ns &&
	       now_ns - sample->asked_ns < FORGET_NS;
}

static int begin(struct weir_drop_sample *sample, const char *instance, struct weir_diag *diag)
{
	int err = weir_event_watch_open_sample(instance, FLOWS_A_READING, &sample->watch, diag);

	if (err)
		return err;
	sample->events = json_array();
	return sample->events ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot keep drops");
}

/* The instance itself keeps changes, so only drops are kept here. */
static bool is_about_drops(const struct weir_reported *reported)
{
	return reported->kind == WEIR_REPORTED_DROP ||
	       (reported->kind == WEIR_REPORTED_MISSED && reported->missed.of == WEIR_REPORTED_DROP);
}

static int add_new(struct weir_drop_sample *sample, struct weir_diag *diag)
{
	_cleanup_(weir_reported_events_free) struct weir_reported_events events = {};
	int err = weir_event_watch_read(&sample->watch, &events, diag);

	for (size_t i = 0; !err && i < events.count; i++)
		if (is_about_drops(&events.all[i]))
			weir_json_append(&sample->events,
					 weir_reported_describe(sample->watch.instance, &events.all[i]));
	if (!err && !sample->events)
		err = weir_diag_fail(diag, ENOMEM, NULL, "cannot keep drops");
	while (!err && json_array_size(sample->events) > WEIR_DROP_SAMPLE_EVENTS)
		json_array_remove(sample->events, 0);
	return err;
}

int weir_drop_sample_read(struct weir_drop_sample *sample, const struct weir_instance *now, struct weir_diag *diag)
{
	const uint64_t now_ns = weir_host_now_ns();
	int err = 0;

	if (!is_going_on(sample, now, now_ns)) {
		weir_drop_sample_free(sample);
		err = begin(sample, now->name, diag);
	}
	if (!err)
		err = add_new(sample, diag);
	if (err)
		weir_drop_sample_free(sample);
	else
		sample->asked_ns = now_ns;
	return err;
}
