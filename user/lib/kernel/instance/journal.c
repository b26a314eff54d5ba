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

__attribute__((format(printf, 4, 0))) static void note(const char *instance, uint64_t time_ns,
						       enum weir_journal_kind kind, const char *format, va_list args)
{
	struct weir_events *events = map_events(instance);
	char text[WEIR_JOURNAL_TEXT_BYTES];

	if (!events)
		return;
	vsnprintf(text, sizeof(text), format, args);
	weir_journal_write(events, kind, time_ns, text);
	weir_events_unmap(events);
}

void weir_instance_note(const char *instance, enum weir_journal_kind kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(instance, weir_host_now_ns(), kind, format, args);
	va_end(args);
}

void weir_instance_note_at(const char *instance, uint64_t time_ns, enum weir_journal_kind kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(instance, time_ns, kind, format, args);
	va_end(args);
}
