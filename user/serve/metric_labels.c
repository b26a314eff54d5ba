// SPDX-License-Identifier: GPL-2.0-only
/* Labels and samples, for all tables of metrics. */
#include <stddef.h>
#include <string.h>

#include "host/host.h"
#include "serve/metrics_book.h"

uint64_t weir_metrics_count_at(const void *base, size_t offset)
{
	uint64_t count;

	memcpy(&count, (const char *)base + offset, sizeof(count));
	return count;
}

void weir_metrics_write_with(struct weir_exposition *out, struct weir_labels *labels, const char *name,
			     const char *value, uint64_t count)
{
	const size_t bytes = labels->bytes;

	weir_labels_add(labels, name, value);
	weir_exposition_count(out, labels, count);
	labels->bytes = bytes;
}

struct weir_labels weir_metrics_label(const char *name, const char *value)
{
	struct weir_labels labels;

	labels.bytes = 0; /* the text is long, and need not be zeroed */
	weir_labels_add(&labels, name, value);
	return labels;
}

uint64_t weir_metrics_unix_seconds(uint64_t monotonic_ns)
{
	return weir_host_wall_ns(monotonic_ns) / WEIR_NSEC_PER_SEC;
}
