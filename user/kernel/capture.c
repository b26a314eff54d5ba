// SPDX-License-Identifier: GPL-2.0-only
#include "capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "util.h"
#include "weir_abi.h"

/* Bytes of a frame that a file we write may hold: libpcap's own MAXIMUM_SNAPLEN. */
#define SNAPSHOT_BYTES 262144

struct weir_capture {
	pcap_t *pcap;
	const char *path;
	uint64_t frames; /* read so far */
};

static int check_path(const char *path, struct weir_diag *diag)
{
	struct stat status;

	if (stat(path, &status) < 0) {
		weir_diag_fail(diag, errno, NULL, "cannot open capture '%s'", path);
		return -EINVAL;
	}
	/* It is read twice, once for its times and once to judge; and "-" is no file at all. */
	if (S_ISREG(status.st_mode))
		return 0;
	return weir_diag_fail(diag, 0, "write it to a file first: replay reads a capture twice",
			      "capture '%s' is not a regular file", path);
}

int weir_capture_open(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	char reason[PCAP_ERRBUF_SIZE] = "";
	int err;

	err = check_path(path, diag);
	if (err)
		return err;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot open capture '%s'", path);
	capture->path = path;
	capture->pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (!capture->pcap)
		return weir_diag_fail(diag, 0, "give a pcap or pcapng file", "cannot read capture '%s': %s", path,
				      reason);
	if (pcap_datalink(capture->pcap) != DLT_EN10MB) {
		const char *name = pcap_datalink_val_to_name(pcap_datalink(capture->pcap));

		return weir_diag_fail(diag, 0, "capture on one Ethernet interface, not on 'any'",
				      "capture '%s' is not of Ethernet: its link type is %s", path,
				      name ? name : "unknown");
	}
	*ret_capture = TAKE_PTR(capture);
	return 0;
}

void weir_capture_close(struct weir_capture *capture)
{
	if (!capture)
		return;
	if (capture->pcap)
		pcap_close(capture->pcap);
	free(capture);
}

/* Nanoseconds of a time stamp, whose tv_usec counts nanoseconds here. False when it lies before 1970 or after 2554. */
static bool time_to_ns(const struct timeval *time, uint64_t *ret_ns)
{
	uint64_t seconds, ns;

	if (time->tv_sec >= 0)
		seconds = time->tv_sec;
	else if (time->tv_sec >= INT32_MIN)
		seconds = (uint32_t)time->tv_sec; /* libpcap takes pcap's unsigned 32 bits for signed ones */
	else
		return false;
	if (time->tv_usec < 0 || __builtin_mul_overflow(seconds, WEIR_NSEC_PER_SEC, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)time->tv_usec, &ns))
		return false;
	*ret_ns = ns;
	return true;
}

int weir_capture_next(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag)
{
	struct pcap_pkthdr *header;
	const uint8_t *bytes;
	uint64_t time_ns;
	int got;

	got = pcap_next_ex(capture->pcap, &header, &bytes);
	if (got == PCAP_ERROR_BREAK)
		return 0;
	if (got != 1 || !time_to_ns(&header->ts, &time_ns)) {
		weir_diag_fail(diag, 0, NULL, "capture '%s' is damaged after packet %llu: %s", capture->path,
			       (unsigned long long)capture->frames,
			       got == 1 ? "the next one's time is not to be had" : pcap_geterr(capture->pcap));
		return -EBADMSG;
	}
	capture->frames++;
	*ret_frame = (struct weir_frame){
		.time_ns = time_ns,
		.bytes = bytes,
		.captured_bytes = header->caplen,
		.wire_bytes = header->len > header->caplen ? header->len : header->caplen,
	};
	return 1;
}

struct weir_capture_writer {
	pcap_t *pcap;
	FILE *stream;
};

int weir_capture_writer_new(FILE *stream, struct weir_capture_writer **ret_writer, struct weir_diag *diag)
{
	_cleanup_(weir_capture_writer_freep) struct weir_capture_writer *writer = NULL;

	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write a capture");
	writer->stream = stream;
	writer->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAPSHOT_BYTES, PCAP_TSTAMP_PRECISION_NANO);
	if (!writer->pcap)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write a capture");
	/* Writes the file header. What it returns is the stream in disguise, and is not freed apart from it. */
	if (!pcap_dump_fopen(writer->pcap, stream))
		return weir_diag_fail(diag, 0, NULL, "cannot write a capture: %s", pcap_geterr(writer->pcap));
	*ret_writer = TAKE_PTR(writer);
	return 0;
}

void weir_capture_writer_free(struct weir_capture_writer *writer)
{
	if (!writer)
		return;
	if (writer->pcap)
		pcap_close(writer->pcap);
	free(writer);
}

void weir_capture_write(struct weir_capture_writer *writer, const struct weir_frame *frame)
{
	struct pcap_pkthdr header = {
		.ts.tv_sec = frame->time_ns / WEIR_NSEC_PER_SEC,
		.ts.tv_usec = frame->time_ns % WEIR_NSEC_PER_SEC,
		.caplen = frame->captured_bytes,
		.len = frame->wire_bytes,
	};

	pcap_dump((u_char *)writer->stream, &header, frame->bytes);
}
