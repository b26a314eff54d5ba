// SPDX-License-Identifier: GPL-2.0-only
#include "replay/departures.h"

#include <errno.h>
#include <string.h>
#include <stdbool.h>

#include "base/util.h"
#include "files/output.h"
#include "weir_abi.h"

/* When a packet leaves, and its position in the file. */
struct departure {
	uint64_t leaves_ns;
	uint64_t offset;
	uint32_t bytes; /* including its header */
};

struct weir_departures {
	const char *path;
	struct weir_output output;
	struct weir_capture_writer *writer;
	struct departure *items;
	size_t count;
	uint64_t written_bytes;
	enum weir_link_type link_type;
	uint8_t *ethernet; /* a frame of another link type, as one of Ethernet */
	bool is_out_of_order;
};

int weir_departures_open(const char *path, enum weir_link_type link_type, struct weir_departures **ret_departures,
			 struct weir_diag *diag)
{
	_cleanup_(weir_departures_freep) struct weir_departures *departures = calloc(1, sizeof(*departures));
	int err;

	if (!departures)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write '%s'", path);
	departures->path = path;
	departures->link_type = link_type;
	departures->written_bytes = WEIR_CAPTURE_FILE_HEADER_BYTES;
	err = weir_output_open(&departures->output, path, diag);
	if (!err)
		err = weir_capture_writer_new(departures->output.stream, link_type, &departures->writer, diag);
	if (err)
		return err;
	*ret_departures = TAKE_PTR(departures);
	return 0;
}

void weir_departures_free(struct weir_departures *departures)
{
	if (!departures)
		return;
	weir_capture_writer_free(departures->writer);
	weir_output_close(&departures->output);
	free(departures->items);
	free(departures->ethernet);
	free(departures);
}

/* Where a capture has several link types, all become Ethernet. A frame without a whole link header stays as it is. */
static int make_ethernet(struct weir_departures *departures, struct weir_frame *frame)
{
	struct weir_ethernet ethernet;
	uint8_t *bytes;

	if (frame->link_type == departures->link_type || !weir_frame_to_ethernet(frame, &ethernet))
		return 0;
	bytes = realloc(departures->ethernet, ETH_HLEN + ethernet.payload_bytes);
	if (!bytes)
		return -ENOMEM;
	departures->ethernet = bytes;
	memcpy(bytes, &ethernet.header, ETH_HLEN);
	memcpy(bytes + ETH_HLEN, ethernet.payload, ethernet.payload_bytes);
	frame->bytes = bytes;
	frame->captured_bytes = ETH_HLEN + ethernet.payload_bytes;
	frame->wire_bytes = ethernet.wire_bytes;
	return 0;
}

int weir_departures_add(struct weir_departures *departures, const struct weir_frame *frame, uint64_t leaves_ns,
			struct weir_diag *diag)
{
	struct weir_frame leaving = *frame;
	struct departure *departure;

	/* pcapng, which is only read, can have later times. */
	if (leaves_ns / WEIR_NSEC_PER_SEC > WEIR_CAPTURE_SECONDS_MAX)
		return weir_diag_fail(
			diag, EOVERFLOW, "replay without --passed",
			"cannot write '%s': a packet leaves after February 2106, which pcap timestamps cannot hold",
			departures->path);
	departure = weir_array_add((void **)&departures->items, departures->count, sizeof(*departure));
	if (!departure || make_ethernet(departures, &leaving))
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write '%s'", departures->path);
	*departure = (struct departure){
		.leaves_ns = leaves_ns,
		.offset = departures->written_bytes,
		.bytes = WEIR_CAPTURE_FRAME_HEADER_BYTES + leaving.captured_bytes,
	};
	if (departures->count++ > 0 && departure[-1].leaves_ns > leaves_ns)
		departures->is_out_of_order = true;
	departures->written_bytes += departure->bytes;
	leaving.time_ns = leaves_ns;
	weir_capture_write(departures->writer, &leaving);
	return weir_output_check(&departures->output, diag);
}

static int compare(const void *a, const void *b)
{
	const struct departure *first = a, *second = b;

	if (first->leaves_ns != second->leaves_ns)
		return first->leaves_ns < second->leaves_ns ? -1 : 1;
	return first->offset < second->offset ? -1 : 1; /* if the times are equal, keep the order of arrival */
}

static int copy_bytes(FILE *from, FILE *to, uint64_t offset, size_t bytes)
{
	_cleanup_(weir_freep) char *buffer = malloc(bytes);

	if (!buffer)
		return -ENOMEM;
	errno = 0;
	if (fseeko(from, offset, SEEK_SET) < 0 || fread(buffer, 1, bytes, from) != bytes ||
	    fwrite(buffer, 1, bytes, to) != bytes)
		return errno ? -errno : -EIO;
	return 0;
}

/* Rewrite the file with the same frames in the right order. */
static int sort(struct weir_departures *departures, struct weir_diag *diag)
{
	struct weir_output sorted = {};
	FILE *from = departures->output.stream;
	int err;

	err = weir_output_open(&sorted, departures->path, diag);
	if (err)
		return err;
	qsort(departures->items, departures->count, sizeof(*departures->items), compare);
	err = copy_bytes(from, sorted.stream, 0, WEIR_CAPTURE_FILE_HEADER_BYTES);
	for (size_t i = 0; !err && i < departures->count; i++)
		err = copy_bytes(from, sorted.stream, departures->items[i].offset, departures->items[i].bytes);
	if (err) {
		weir_output_close(&sorted);
		return weir_diag_fail(diag, -err, NULL, "cannot put '%s' in order", departures->path);
	}
	weir_output_close(&departures->output);
	departures->output = sorted;
	return 0;
}

int weir_departures_finish(struct weir_departures *departures, struct weir_output **ret_output, struct weir_diag *diag)
{
	int err = departures->is_out_of_order ? sort(departures, diag) : 0;

	if (!err)
		*ret_output = &departures->output;
	return err;
}
