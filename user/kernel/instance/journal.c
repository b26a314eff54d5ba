// SPDX-License-Identifier: GPL-2.0-only
/* What is written into the events of an instance (include/weir_events.h): its journal, which records what commands and
 * its controller have done to it, and the fact that somebody listens for drops.
 */
#include "instance/instance.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "host/host.h"
#include "program/events.h"

/* NULL: the instance has no events that this version knows. */
static struct weir_events *map_events(const char *instance)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, weir_table_name(WEIR_TABLE_EVENTS));

	/* Another version of weir may use another layout. */
	if (fd < 0 || weir_table_is_shaped(WEIR_TABLE_EVENTS, fd) <= 0)
		return NULL;
	return weir_events_map(fd, true);
}

void weir_instance_listen(const char *instance, uint64_t until_ns)
{
	struct weir_events *events = map_events(instance);

	if (!events)
		return;
	weir_events_listen(events, until_ns);
	weir_events_unmap(events);
}

void weir_instance_note(const char *instance, enum weir_journal_kind kind, const char *format, ...)
{
	struct weir_events *events = map_events(instance);
	char text[WEIR_JOURNAL_TEXT_BYTES];
	va_list args;

	if (!events)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	weir_journal_write(events, kind, weir_host_now_ns(), text);
	weir_events_unmap(events);
}
