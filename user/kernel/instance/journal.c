// SPDX-License-Identifier: GPL-2.0-only
/* The journal of an instance (include/weir_events.h): what commands and its controller have done to it. */
#include "instance/instance.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "host/host.h"
#include "program/events.h"

void weir_instance_note(const char *instance, enum weir_journal_kind kind, const char *format, ...)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_instance_map_name(WEIR_MAP_EVENTS));
	char text[WEIR_JOURNAL_TEXT_BYTES];
	struct weir_events *events;
	va_list args;

	/* Another version of weir may have laid it out in another way. */
	if (fd < 0 || weir_state_table_is_shaped(WEIR_MAP_EVENTS, fd) <= 0)
		return;
	events = weir_events_map(fd, true);
	if (!events)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	weir_journal_write(events, kind, weir_host_now_ns(), text);
	weir_events_unmap(events);
}
