// SPDX-License-Identifier: GPL-2.0-only
/* The list of findings. */
#include <stdarg.h>

#include "base/printable.h"
#include "instance/instance.h"
#include "state/examine.h"

void weir_find(struct weir_findings *findings, enum weir_finding_level level, const char *topic, const char *advice,
	       const char *format, ...)
{
	struct weir_finding *finding = &findings->finding[findings->count];
	va_list args;

	if (findings->count == WEIR_FINDINGS_MAX)
		return;
	findings->count++;
	finding->level = level;
	finding->topic = topic;
	snprintf(finding->advice, sizeof(finding->advice), "%s", advice ? advice : "");
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
	weir_make_printable(finding->text, "");
	weir_make_printable(finding->advice, "");
}
