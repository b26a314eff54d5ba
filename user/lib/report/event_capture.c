// SPDX-License-Identifier: GPL-2.0-only

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>

#include "base/util.h"
#include "frames/pcapng.h"
#include "host/host.h"
#include "report/event_lines.h"

void weir_event_capture_begin(FILE *stream, struct weir_event_capture *ret_capture)
{
	*ret_capture = (struct weir_event_capture){.stream = stream};
	weir_pcapng_begin(stream, "weir events");
}

void weir_event_capture_free(struct weir_event_capture *capture)
{
	free(capture->ifindexes);
	*capture = (struct weir_event_capture){};
}

/* An interface is described before its first packet. */
static int number_of(struct weir_event_capture *capture, const struct weir_instance *instance,
		     const struct weir_event *event, uint32_t *ret_number)
{
	const char *name = weir_instance_interface(instance, event->ifindex);
	char unnamed[IF_NAMESIZE];
	uint32_t *slot;

	for (size_t i = 0; i < capture->interface_count; i++)
		if (capture->ifindexes[i] == event->ifindex) {
			*ret_number = i;
			return 0;
		}
	slot = weir_array_add((void **)&capture->ifindexes, capture->interface_count, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = event->ifindex;
	*ret_number = capture->interface_count++;
	snprintf(unnamed, sizeof(unnamed), "if%u", event->ifindex);
	weir_pcapng_interface(capture->stream, name ? name : unnamed, WEIR_EVENT_FRAME_BYTES);
	return 0;
}

int weir_event_capture_add(struct weir_event_capture *capture, const struct weir_instance *instance,
			   const struct weir_reported *reported)
{
	const struct weir_event *event = &reported->event;
	_cleanup_(weir_freep) char *comment = NULL;
	struct weir_frame frame;
	uint32_t number;

	if (reported->kind != WEIR_REPORTED_DROP)
		return 0;
	comment = weir_reported_comment(instance, reported);
	if (!comment || number_of(capture, instance, event, &number))
		return -ENOMEM;
	frame = (struct weir_frame){
		.time_ns = weir_host_wall_ns(event->time_ns),
		.bytes = event->frame,
		.captured_bytes = event->kept_bytes,
		.wire_bytes = event->frame_bytes,
		.course = event->flags & WEIR_EVENT_OUT ? WEIR_COURSE_OUT : WEIR_COURSE_IN,
	};
	weir_pcapng_packet(capture->stream, number, &frame, comment);
	return 0;
}
