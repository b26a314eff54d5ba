// SPDX-License-Identifier: GPL-2.0-only
#include "replay/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "frames/pcapng.h"
#include "weir_abi.h"

/* Most bytes of a frame in a file that we write: libpcap's own MAXIMUM_SNAPLEN. */
#define SNAPSHOT_BYTES 262144

/* Our names for libpcap's link types. Type 101 in a file is libpcap's DLT_RAW, and so is 12, which old programs wrote.
 */
static const struct {
	int dlt;
	enum weir_link_type link_type;
} link_types[] = {
	{DLT_EN10MB, WEIR_LINK_TYPE_ETHERNET}, {DLT_LINUX_SLL, WEIR_LINK_TYPE_SLL},
	{DLT_LINUX_SLL2, WEIR_LINK_TYPE_SLL2}, {DLT_RAW, WEIR_LINK_TYPE_IP},
	{DLT_IPV4, WEIR_LINK_TYPE_IPV4},       {DLT_IPV6, WEIR_LINK_TYPE_IPV6},
	{DLT_NULL, WEIR_LINK_TYPE_NULL},       {DLT_LOOP, WEIR_LINK_TYPE_LOOP},
	{DLT_PPP, WEIR_LINK_TYPE_PPP},	       {DLT_PPP_SERIAL, WEIR_LINK_TYPE_PPP_SERIAL},
};

struct weir_capture {
	pcap_t *pcap;
	enum weir_link_type link_type;
	const char *path; /* or an interface */
	bool is_live;
	uint64_t frames;     /* read so far */
	uint64_t file_bytes; /* 0: a pipe, or an interface */
	FILE *blocks;	     /* for pcapng, the same file opened once more; otherwise NULL */
	struct weir_pcapng_reader reader;
};

bool weir_capture_is_stream(const char *path)
{
	struct stat status;

	return !strcmp(path, "-") || (!stat(path, &status) && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)));
}

static int check_path(const char *path, struct weir_diag *diag)
{
	struct stat status;

	if (stat(path, &status) < 0) {
		weir_diag_fail(diag, errno, NULL, "cannot open capture '%s'", path);
		return -EINVAL;
	}
	/* A regular file is required, since it is read twice: once for its times, and once to evaluate it. "-" is not a
	 * file.
	 */
	if (S_ISREG(status.st_mode))
		return 0;
	return weir_diag_fail(diag, 0, "write it to a file first: replay reads a capture twice",
			      "capture '%s' is not a regular file", path);
}

static int find_link_type(struct weir_capture *capture, struct weir_diag *diag)
{
	int dlt = pcap_datalink(capture->pcap);
	const char *name = pcap_datalink_val_to_name(dlt);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(link_types); i++) {
		if (link_types[i].dlt != dlt)
			continue;
		capture->link_type = link_types[i].link_type;
		return 0;
	}
	return weir_diag_fail(diag, 0,
			      "use a capture of Ethernet (EN10MB), 'any' (LINUX_SLL, LINUX_SLL2), IP (RAW, IPV4, "
			      "IPV6), BSD loopback (NULL, LOOP) or PPP (PPP, PPP_SERIAL)",
			      "capture '%s' is neither Ethernet nor IP: its link type is %s", capture->path,
			      name ? name : "unknown");
}

/* libpcap does not expose the options of packets, so the file is read in parallel. Without them no packet has a
 * direction.
 */
static void open_blocks(struct weir_capture *capture)
{
	capture->blocks = fopen(capture->path, "re");
	if (capture->blocks && !weir_pcapng_open(capture->blocks, &capture->reader)) {
		fclose(capture->blocks);
		capture->blocks = NULL;
	}
}

static int open_file(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = calloc(1, sizeof(*capture));
	char reason[PCAP_ERRBUF_SIZE] = "";
	struct stat status;
	int err;

	if (!capture)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot open capture '%s'", path);
	capture->path = path;
	capture->pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (!capture->pcap)
		return weir_diag_fail(diag, 0, "use a pcap or pcapng file", "cannot read capture '%s': %s", path,
				      reason);
	if (!fstat(fileno(pcap_file(capture->pcap)), &status) && S_ISREG(status.st_mode))
		capture->file_bytes = status.st_size;
	if (capture->file_bytes && !weir_capture_is_stream(path))
		open_blocks(capture);
	err = find_link_type(capture, diag);
	if (err)
		return err;
	*ret_capture = TAKE_PTR(capture);
	return 0;
}

int weir_capture_open(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag)
{
	int err = check_path(path, diag);

	return err ? err : open_file(path, ret_capture, diag);
}

int weir_capture_open_once(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag)
{
	return weir_capture_is_stream(path) ? open_file(path, ret_capture, diag)
					    : weir_capture_open(path, ret_capture, diag);
}

/* ---- interfaces ---- */

/* Enough for all headers, including extension headers. The program sees zeros for the rest. Chosen, not derived. */
#define LIVE_SNAPSHOT_BYTES 256
/* A ring for one second at a million small packets a second; chosen, not derived. */
#define LIVE_RING_BYTES (64 << 20)
#define LIVE_TIMEOUT_MS 100

static int activate(struct weir_capture *capture, struct weir_diag *diag)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = capture->pcap;
	int err;

	pcap_set_snaplen(pcap, LIVE_SNAPSHOT_BYTES);
	pcap_set_buffer_size(pcap, LIVE_RING_BYTES);
	pcap_set_timeout(pcap, LIVE_TIMEOUT_MS);
	pcap_set_tstamp_precision(pcap, PCAP_TSTAMP_PRECISION_NANO);
	err = pcap_activate(pcap);
	if (err < 0 || pcap_setdirection(pcap, PCAP_D_IN) < 0 || pcap_setnonblock(pcap, 1, reason) < 0)
		return weir_diag_fail(diag, 0, NULL, "cannot listen on '%s': %s", capture->path,
				      *pcap_geterr(pcap) ? pcap_geterr(pcap) : pcap_statustostr(err));
	return find_link_type(capture, diag);
}

int weir_capture_listen(const char *interface, struct weir_capture **ret_capture, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = calloc(1, sizeof(*capture));
	char reason[PCAP_ERRBUF_SIZE] = "";
	int err;

	if (!capture)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot listen on '%s'", interface);
	capture->path = interface;
	capture->is_live = true;
	capture->pcap = pcap_create(interface, reason);
	if (!capture->pcap)
		return weir_diag_fail(diag, 0, NULL, "cannot listen on '%s': %s", interface, reason);
	err = activate(capture, diag);
	if (err)
		return err;
	*ret_capture = TAKE_PTR(capture);
	return 0;
}

uint64_t weir_capture_missed(const struct weir_capture *capture)
{
	struct pcap_stat stat = {};

	return capture->is_live && !pcap_stats(capture->pcap, &stat) ? stat.ps_drop : 0;
}

void weir_capture_position(const struct weir_capture *capture, uint64_t *ret_bytes, uint64_t *ret_of_bytes)
{
	const long at = capture->file_bytes ? ftell(pcap_file(capture->pcap)) : 0;

	*ret_bytes = at > 0 ? at : 0;
	*ret_of_bytes = capture->file_bytes;
}

void weir_capture_close(struct weir_capture *capture)
{
	if (!capture)
		return;
	if (capture->pcap)
		pcap_close(capture->pcap);
	if (capture->blocks)
		fclose(capture->blocks);
	free(capture);
}

enum weir_link_type weir_capture_link_type(const struct weir_capture *capture)
{
	return capture->link_type;
}

/* Convert a time stamp, whose tv_usec counts nanoseconds here. Returns false if it is before 1970 or after 2554. */
static bool time_to_ns(const struct timeval *time, uint64_t *ret_ns)
{
	uint64_t seconds, ns;

	if (time->tv_sec >= 0)
		seconds = time->tv_sec;
	else if (time->tv_sec >= INT32_MIN)
		seconds = (uint32_t)time->tv_sec; /* libpcap reads pcap's unsigned 32 bits as signed */
	else
		return false;
	if (time->tv_usec < 0 || __builtin_mul_overflow(seconds, WEIR_NSEC_PER_SEC, &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)time->tv_usec, &ns))
		return false;
	*ret_ns = ns;
	return true;
}

/* A pcapng file may have interfaces that libpcap cannot read together, for example with different link types. Such a
 * file is not damaged. Only libpcap's message distinguishes the two; with an unknown message, the file counts as
 * damaged.
 */
static bool are_interfaces_unlike(const struct weir_capture *capture)
{
	return strstr(pcap_geterr(capture->pcap), "an interface has a ") != NULL;
}

/* libpcap's own waiting never ends if no packet arrives, and no signal ends it either, so wait here. */
static int wait_for_packets(const struct weir_capture *capture)
{
	struct pollfd packets = {.fd = pcap_get_selectable_fd(capture->pcap), .events = POLLIN};

	poll(&packets, 1, LIVE_TIMEOUT_MS);
	return -EAGAIN;
}

static enum weir_course find_course(struct weir_capture *capture, const struct weir_frame *frame)
{
	const enum weir_course course =
		capture->blocks ? weir_pcapng_next_course(&capture->reader) : WEIR_COURSE_UNKNOWN;

	return course ?: weir_frame_course(capture->link_type, frame);
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
	if (capture->is_live && got == 0)
		return wait_for_packets(capture);
	if (capture->is_live && got < 0)
		return weir_diag_fail(diag, EIO, NULL, "cannot listen on '%s' any more: %s", capture->path,
				      pcap_geterr(capture->pcap));
	if (got < 0 && are_interfaces_unlike(capture))
		return weir_diag_fail(diag, 0, "capture each interface by itself, or capture 'any'",
				      "capture '%s' has interfaces that cannot be read together: %s", capture->path,
				      pcap_geterr(capture->pcap));
	if (got != 1 || !time_to_ns(&header->ts, &time_ns)) {
		weir_diag_fail(diag, 0, NULL, "capture '%s' is damaged after packet %llu: %s", capture->path,
			       (unsigned long long)capture->frames,
			       got == 1 ? "the time of the next one cannot be read" : pcap_geterr(capture->pcap));
		return -EBADMSG;
	}
	capture->frames++;
	*ret_frame = (struct weir_frame){
		.time_ns = time_ns,
		.bytes = bytes,
		.captured_bytes = header->caplen,
		.wire_bytes = header->len > header->caplen ? header->len : header->caplen,
	};
	ret_frame->course = find_course(capture, ret_frame);
	return 1;
}

struct weir_capture_writer {
	pcap_t *pcap;
	FILE *stream;
};

static int to_dlt(enum weir_link_type link_type)
{
	size_t i = 0;

	while (link_types[i].link_type != link_type)
		i++;
	return link_types[i].dlt;
}

int weir_capture_writer_new(FILE *stream, enum weir_link_type link_type, struct weir_capture_writer **ret_writer,
			    struct weir_diag *diag)
{
	_cleanup_(weir_capture_writer_freep) struct weir_capture_writer *writer = NULL;

	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write a capture");
	writer->stream = stream;
	writer->pcap =
		pcap_open_dead_with_tstamp_precision(to_dlt(link_type), SNAPSHOT_BYTES, PCAP_TSTAMP_PRECISION_NANO);
	if (!writer->pcap)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write a capture");
	/* This writes the file header. The result is the same stream, so it is not freed separately. */
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
