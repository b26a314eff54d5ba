// SPDX-License-Identifier: GPL-2.0-only
#include "files/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "frames/pcapng.h"
#include "host/host.h"
#include "weir_abi.h"

/* Most bytes of a frame in a file that we write: libpcap's own MAXIMUM_SNAPLEN. */
#define SNAPSHOT_BYTES 262144

/* Our names for libpcap's link types, and for those of files, which libpcap has translated in what it reads. Only type
 * 101 is another one there: DLT_RAW, or 12, which old programs wrote.
 */
static const struct {
	int dlt;
	uint32_t number;
	enum weir_link_type link_type;
} link_types[] = {
	{DLT_EN10MB, 1, WEIR_LINK_TYPE_ETHERNET},
	{DLT_LINUX_SLL, 113, WEIR_LINK_TYPE_SLL},
	{DLT_LINUX_SLL2, 276, WEIR_LINK_TYPE_SLL2},
	{DLT_RAW, 101, WEIR_LINK_TYPE_IP},
	{DLT_RAW, 12, WEIR_LINK_TYPE_IP},
	{DLT_IPV4, 228, WEIR_LINK_TYPE_IPV4},
	{DLT_IPV6, 229, WEIR_LINK_TYPE_IPV6},
	{DLT_NULL, 0, WEIR_LINK_TYPE_NULL},
	{DLT_LOOP, 108, WEIR_LINK_TYPE_LOOP},
	{DLT_PPP, 9, WEIR_LINK_TYPE_PPP},
	{DLT_PPP_SERIAL, 50, WEIR_LINK_TYPE_PPP_SERIAL},
	{DLT_NFLOG, 239, WEIR_LINK_TYPE_NFLOG},
};

/* What is listened to on an interface in one direction: Ethernet has none in its header, so each has its own socket. */
struct live {
	pcap_t *pcap;
	enum weir_course course;
	struct weir_frame frame; /* the next one, if there is one: its bytes stay until the one behind it is read */
	bool has_frame;
};

struct weir_capture {
	pcap_t *pcap;		       /* NULL: the file is pcapng; on an interface, the first direction's */
	enum weir_link_type link_type; /* of pcap */
	const char *path;	       /* or an interface */
	bool is_live;
	struct live lives[2]; /* of an interface, one for each direction that is listened to; `pcap` is the first's */
	size_t live_count;
	uint64_t frames;		  /* read so far */
	uint64_t file_bytes;		  /* 0: a pipe, or an interface */
	struct weir_pcapng_reader blocks; /* of pcapng; its stream is owned here */
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

static int fail_link_type(const struct weir_capture *capture, const char *name, uint32_t number, struct weir_diag *diag)
{
	return weir_diag_fail(diag, 0,
			      "use a capture of Ethernet (EN10MB), 'any' (LINUX_SLL, LINUX_SLL2), IP (RAW, IPV4, "
			      "IPV6), BSD loopback (NULL, LOOP), PPP (PPP, PPP_SERIAL) or netfilter's log (NFLOG)",
			      "capture '%s' is neither Ethernet nor IP: its link type is %s (%" PRIu32 ")",
			      capture->path, name ? name : "unknown", number);
}

static int find_link_type(struct weir_capture *capture, struct weir_diag *diag)
{
	const int dlt = pcap_datalink(capture->pcap);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(link_types); i++) {
		if (link_types[i].dlt != dlt)
			continue;
		capture->link_type = link_types[i].link_type;
		return 0;
	}
	return fail_link_type(capture, pcap_datalink_val_to_name(dlt), dlt, diag);
}

static int fail_no_capture(const struct weir_capture *capture, const char *reason, struct weir_diag *diag)
{
	return weir_diag_fail(diag, 0, "use a pcap or pcapng file", "cannot read capture '%s': %s", capture->path,
			      reason);
}

/* Which of the two formats a file has is in its first byte; a pipe gives no more than that back. */
static int open_stream(struct weir_capture *capture, FILE *stream, struct weir_diag *diag)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	const int first = getc(stream);

	if (first != EOF)
		ungetc(first, stream);
	if (weir_pcapng_begins_with(first)) {
		capture->blocks.stream = stream;
		return 0;
	}
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (capture->pcap)
		return find_link_type(capture, diag);
	if (stream != stdin)
		fclose(stream);
	return fail_no_capture(capture, reason, diag);
}

static int open_file(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = calloc(1, sizeof(*capture));
	struct stat status;
	FILE *stream;
	int err;

	if (!capture)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot open capture '%s'", path);
	capture->path = path;
	stream = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!stream) {
		weir_diag_fail(diag, errno, NULL, "cannot open capture '%s'", path);
		return -EINVAL;
	}
	if (!fstat(fileno(stream), &status) && S_ISREG(status.st_mode))
		capture->file_bytes = status.st_size;
	err = open_stream(capture, stream, diag);
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
#define BAD_TIME (-1000) /* none of libpcap's results */

static int activate(const struct weir_capture *capture, pcap_t *pcap, enum weir_course course, struct weir_diag *diag)
{
	char reason[PCAP_ERRBUF_SIZE] = "";
	int err;

	pcap_set_snaplen(pcap, LIVE_SNAPSHOT_BYTES);
	pcap_set_buffer_size(pcap, LIVE_RING_BYTES);
	pcap_set_timeout(pcap, LIVE_TIMEOUT_MS);
	pcap_set_tstamp_precision(pcap, PCAP_TSTAMP_PRECISION_NANO);
	err = pcap_activate(pcap);
	if (err < 0 || pcap_setdirection(pcap, course == WEIR_COURSE_OUT ? PCAP_D_OUT : PCAP_D_IN) < 0 ||
	    pcap_setnonblock(pcap, 1, reason) < 0)
		return weir_diag_fail(diag, 0, NULL, "cannot listen on '%s': %s", capture->path,
				      *pcap_geterr(pcap) ? pcap_geterr(pcap) : pcap_statustostr(err));
	return 0;
}

int weir_capture_listen(const char *interface, uint8_t directions, struct weir_capture **ret_capture,
			struct weir_diag *diag)
{
	static const enum weir_course courses[] = {WEIR_COURSE_IN, WEIR_COURSE_OUT};
	_cleanup_(weir_capture_closep) struct weir_capture *capture = calloc(1, sizeof(*capture));
	char reason[PCAP_ERRBUF_SIZE] = "";
	int err = 0;

	if (!capture)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot listen on '%s'", interface);
	capture->path = interface;
	capture->is_live = true;
	for (size_t i = 0; !err && i < ARRAY_SIZE(courses); i++) {
		struct live *live = &capture->lives[capture->live_count];

		if (!(directions >> i & 1))
			continue;
		live->course = courses[i];
		live->pcap = pcap_create(interface, reason);
		if (!live->pcap)
			return weir_diag_fail(diag, 0, NULL, "cannot listen on '%s': %s", interface, reason);
		capture->live_count++;
		err = activate(capture, live->pcap, live->course, diag);
	}
	capture->pcap = capture->lives[0].pcap;
	if (!err)
		err = find_link_type(capture, diag);
	if (err)
		return err;
	*ret_capture = TAKE_PTR(capture);
	return 0;
}

uint64_t weir_capture_missed(const struct weir_capture *capture)
{
	struct pcap_stat stat = {};
	uint64_t missed = 0;

	for (size_t i = 0; i < capture->live_count; i++)
		missed += pcap_stats(capture->lives[i].pcap, &stat) ? 0 : stat.ps_drop;
	return missed;
}

void weir_capture_position(const struct weir_capture *capture, uint64_t *ret_bytes, uint64_t *ret_of_bytes)
{
	FILE *stream = capture->pcap ? pcap_file(capture->pcap) : capture->blocks.stream;
	const long at = capture->file_bytes ? ftell(stream) : 0;

	*ret_bytes = at > 0 ? at : 0;
	*ret_of_bytes = capture->file_bytes;
}

void weir_capture_close(struct weir_capture *capture)
{
	if (!capture)
		return;
	for (size_t i = 0; i < capture->live_count; i++)
		pcap_close(capture->lives[i].pcap);
	if (capture->pcap && !capture->is_live)
		pcap_close(capture->pcap);
	if (capture->blocks.stream && capture->blocks.stream != stdin)
		fclose(capture->blocks.stream);
	weir_pcapng_free(&capture->blocks);
	free(capture);
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

/* libpcap's own waiting never ends if no packet arrives, and no signal ends it either, so wait here. */
static int wait_for_packets(const struct weir_capture *capture)
{
	struct pollfd packets[ARRAY_SIZE(capture->lives)];
	size_t i;

	for (i = 0; i < capture->live_count; i++)
		packets[i] = (struct pollfd){.fd = pcap_get_selectable_fd(capture->lives[i].pcap),
					     .events = capture->lives[i].has_frame ? 0 : POLLIN};
	poll(packets, i, LIVE_TIMEOUT_MS);
	return -EAGAIN;
}

static int fail_damaged(const struct weir_capture *capture, const char *reason, struct weir_diag *diag)
{
	weir_diag_fail(diag, 0, NULL, "capture '%s' is damaged after packet %llu: %s", capture->path,
		       (unsigned long long)capture->frames, reason);
	return -EBADMSG;
}

/* Each packet is of its own interface. libpcap has names only for its own numbers, which are those of files but for
 * one.
 */
static int next_of_pcapng(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag)
{
	struct weir_pcapng_reader *blocks = &capture->blocks;
	const int got = weir_pcapng_next(blocks, ret_frame);
	size_t i = 0;

	if (got < 0)
		return blocks->has_section ? fail_damaged(capture, blocks->fault, diag)
					   : fail_no_capture(capture, blocks->fault, diag);
	if (!got)
		return 0;
	while (i < ARRAY_SIZE(link_types) && link_types[i].number != blocks->link_number)
		i++;
	if (i == ARRAY_SIZE(link_types))
		return fail_link_type(capture, pcap_datalink_val_to_name(blocks->link_number), blocks->link_number,
				      diag);
	ret_frame->link_type = link_types[i].link_type;
	ret_frame->is_swapped = blocks->is_swapped;
	return 1;
}

/* As pcap_next_ex(). */
static int read_pcap(const struct weir_capture *capture, pcap_t *pcap, struct weir_frame *ret_frame)
{
	struct pcap_pkthdr *header;
	const uint8_t *bytes;
	const int got = pcap_next_ex(pcap, &header, &bytes);
	uint64_t time_ns;

	if (got != 1)
		return got;
	if (!time_to_ns(&header->ts, &time_ns))
		return BAD_TIME;
	*ret_frame = (struct weir_frame){
		.time_ns = time_ns,
		.bytes = bytes,
		.captured_bytes = header->caplen,
		.wire_bytes = header->len > header->caplen ? header->len : header->caplen,
		.link_type = capture->link_type,
	};
	return 1;
}

static int next_of_pcap(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag)
{
	const int got = read_pcap(capture, capture->pcap, ret_frame);

	if (got == PCAP_ERROR_BREAK)
		return 0;
	if (got != 1)
		return fail_damaged(
			capture,
			got == BAD_TIME ? "the time of the next one cannot be read" : pcap_geterr(capture->pcap), diag);
	return 1;
}

/* Of two directions, the earlier frame comes first. A direction without one may still have an earlier one in its ring,
 * which the kernel hands over after LIVE_TIMEOUT_MS at the latest: until then, the other's waits.
 */
static int next_of_live(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag)
{
	const uint64_t handed_over_ns = weir_host_wall_ns(weir_host_now_ns()) - 2ull * LIVE_TIMEOUT_MS * 1000000;
	struct live *first = NULL;
	bool is_silent = false;

	for (size_t i = 0; i < capture->live_count; i++) {
		struct live *live = &capture->lives[i];
		const int got = live->has_frame ? 1 : read_pcap(capture, live->pcap, &live->frame);

		if (got < 0)
			return weir_diag_fail(diag, EIO, NULL, "cannot listen on '%s' any more: %s", capture->path,
					      got == BAD_TIME ? "a time cannot be read" : pcap_geterr(live->pcap));
		live->has_frame = got == 1;
		is_silent |= !live->has_frame;
		if (live->has_frame && (!first || live->frame.time_ns < first->frame.time_ns))
			first = live;
	}
	if (!first || (is_silent && first->frame.time_ns > handed_over_ns))
		return wait_for_packets(capture);
	first->has_frame = false;
	*ret_frame = first->frame;
	ret_frame->course = first->course;
	return 1;
}

int weir_capture_next(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag)
{
	const int got = capture->is_live ? next_of_live(capture, ret_frame, diag)
			: capture->pcap	 ? next_of_pcap(capture, ret_frame, diag)
					 : next_of_pcapng(capture, ret_frame, diag);

	if (got != 1)
		return got;
	capture->frames++;
	if (ret_frame->course == WEIR_COURSE_UNKNOWN)
		ret_frame->course = weir_frame_course(ret_frame);
	return 1;
}

struct weir_capture_writer {
	pcap_t *pcap;
	FILE *stream;
};

int weir_capture_writer_new(FILE *stream, enum weir_link_type link_type, struct weir_capture_writer **ret_writer,
			    struct weir_diag *diag)
{
	_cleanup_(weir_capture_writer_freep) struct weir_capture_writer *writer = NULL;
	size_t i = 0;

	while (link_types[i].link_type != link_type)
		i++;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot write a capture");
	writer->stream = stream;
	writer->pcap =
		pcap_open_dead_with_tstamp_precision(link_types[i].dlt, SNAPSHOT_BYTES, PCAP_TSTAMP_PRECISION_NANO);
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
