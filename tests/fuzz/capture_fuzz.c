// SPDX-License-Identifier: GPL-2.0-only
/* Captures, pcap and pcapng: read to their end, or to where they are damaged, which is reported; each frame as
 * Ethernet.
 */
#include "fuzz.h"

#include <errno.h>
#include <unistd.h>

#include "files/capture.h"

static uint32_t sum_of(const uint8_t *bytes, size_t count)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += bytes[i];
	return sum;
}

static volatile uint32_t all_read; /* every byte that is said to be there is read */

static void read_frames(struct weir_capture *capture, struct weir_diag *diag)
{
	struct weir_ethernet ethernet;
	struct weir_frame frame;
	int got;

	while ((got = weir_capture_next(capture, &frame, diag)) == 1) {
		FUZZ_CHECK(frame.captured_bytes <= frame.wire_bytes);
		FUZZ_CHECK(frame.course <= WEIR_COURSE_OUT);
		all_read += sum_of(frame.bytes, frame.captured_bytes);
		if (!weir_frame_to_ethernet(&frame, &ethernet))
			continue;
		FUZZ_CHECK(ethernet.wire_bytes >= ETH_HLEN + ethernet.payload_bytes);
		all_read += sum_of(ethernet.payload, ethernet.payload_bytes);
	}
	FUZZ_CHECK(got == 0 || got == -EBADMSG || got == -EINVAL);
	FUZZ_CHECK(!got == !diag->errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct weir_capture *capture = NULL;
	struct weir_diag diag = {};
	char path[FUZZ_PATH_BYTES];
	int fd = fuzz_file(data, bytes);
	int err = weir_capture_open(fuzz_path(fd, path), &capture, &diag);

	FUZZ_CHECK(!err == !diag.errors);
	if (!err)
		read_frames(capture, &diag);
	weir_capture_close(capture);
	weir_diag_free(&diag);
	close(fd);
	return 0;
}
