// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "base/util.h"
#include "host/host.h"
#include "network/device.h"
#include "replay/capture.h"
#include "suggest/loss_log.h"
#include "suggest/matcher.h"

#define PROGRESS_PACKETS 65536

/* Most intervals of one resource, at some 30 bytes each; chosen, not derived. */
#define INTERVALS_MAX 2000000u

struct measuring {
	const struct weir_suggest_options *options;
	const struct weir_suggest_plan *plan;
	struct weir_suggest_measured *measured;
	struct weir_suggest_report *report;
	struct weir_suggest_matcher *matcher; /* for captures, made at the time of the first packet */
	uint32_t capture;
	/* Of a live interface: a longer frame was several packets; 0: not known. */
	uint32_t mtu;
};

/* ---- services ---- */

static const uint8_t port_protocols[WEIR_SERVICE_PROTOCOLS] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};

uint32_t weir_service_protocol(uint32_t group)
{
	return group < WEIR_SERVICE_PROTOCOLS * 65536u ? port_protocols[group / 65536u]
						       : group - WEIR_SERVICE_PROTOCOLS * 65536u;
}

int weir_service_port(uint32_t group)
{
	return group < WEIR_SERVICE_PROTOCOLS * 65536u ? (int)(group % 65536u) : -1;
}

static uint32_t service_group(const struct weir_flow_key *key)
{
	for (uint32_t i = 0; i < WEIR_SERVICE_PROTOCOLS; i++)
		if (key->protocol == port_protocols[i])
			return i * 65536u + ntohs(key->destination_port);
	return WEIR_SERVICE_PROTOCOLS * 65536u + key->protocol;
}

#define SYSTEM_PORTS 1024 /* lower ports belong to services (RFC 6335) */

/* Is this a request to a service, and to which one? A capture of both directions also has answers, which come from a
 * service's port.
 */
static bool is_of_service(struct measuring *measuring, const volatile struct weir_harness *packet, uint32_t group)
{
	const int port = weir_service_port(group);
	const uint16_t source_port = ntohs(packet->packet.source_port);

	if (port == 0)
		measuring->report->portless++;
	else if (port >= SYSTEM_PORTS && source_port && source_port < SYSTEM_PORTS)
		measuring->report->answers++;
	else
		return true;
	return false;
}

/* ---- a packet ---- */

static int log_packet(struct measuring *measuring, uint64_t time_ns, const struct weir_tally *batch, uint32_t place,
		      bool is_lone)
{
	const struct weir_loss_entry entry = {
		.time_ns = time_ns,
		.packets = batch->packets,
		.bytes = batch->bytes,
		.place = place,
		.capture = measuring->capture,
		.is_lone = is_lone,
	};

	if (!measuring->measured->log)
		return 0;
	return fwrite(&entry, sizeof(entry), 1, measuring->measured->log) == 1 ? 0 : -EIO;
}

/* Windows start empty in each capture. */
static void enter_capture(struct weir_followed *flow, uint32_t capture)
{
	if (flow->capture == capture)
		return;
	flow->capture = capture;
	flow->peaks.sums = (struct weir_window_sums){};
}

static int end_interval(struct weir_suggest_lone *lone, uint64_t interval_ns)
{
	struct weir_flow_peaks *peaks = &lone->flow.peaks;
	struct weir_peak_sample *interval;

	if (!peaks->total.packets)
		return 0;
	if (lone->count == INTERVALS_MAX)
		return -E2BIG;
	interval = weir_array_add((void **)&lone->intervals, lone->count, sizeof(*lone->intervals));
	if (!interval)
		return -ENOMEM;
	*interval = (struct weir_peak_sample){peaks->peak, peaks->bucket_packets, lone->interval * interval_ns};
	lone->count++;
	*peaks = (struct weir_flow_peaks){.sums = peaks->sums};
	return 0;
}

static int count_lone(struct measuring *measuring, uint32_t series, uint64_t time_ns, const struct weir_tally *batch)
{
	const struct weir_suggest_series *of = &measuring->plan->series[series];
	struct weir_suggest_lone *lone = &measuring->measured->lone[series];
	int err = 0;

	if (time_ns / of->interval_ns != lone->interval || lone->flow.capture != measuring->capture)
		err = end_interval(lone, of->interval_ns);
	if (err)
		return err;
	lone->interval = time_ns / of->interval_ns;
	enter_capture(&lone->flow, measuring->capture);
	weir_peaks_add(&lone->flow.peaks, &of->window, time_ns, batch);
	return log_packet(measuring, time_ns, batch, series, true);
}

static int count_flow(struct measuring *measuring, const struct weir_suggest_series *series, uint32_t group,
		      const struct weir_harness_flow *reported, uint64_t time_ns, const struct weir_tally *batch)
{
	struct weir_flow_table *flows = measuring->measured->flows;
	struct weir_followed *flow;
	uint32_t place;
	int err = weir_flow_table_find(flows, group, &reported->key, reported->hash, &place);

	if (err)
		return err;
	if (measuring->measured->log && weir_flow_table_is_sampled(flows))
		return -ENFILE;
	if (place == WEIR_NOT_FOLLOWED)
		return 0;
	flow = weir_flow_table_at(flows, place);
	enter_capture(flow, measuring->capture);
	weir_peaks_add(&flow->peaks, &series->window, time_ns, batch);
	return log_packet(measuring, time_ns, batch, place, false);
}

static int count_for(struct measuring *measuring, const volatile struct weir_harness *packet, uint32_t nth,
		     uint64_t time_ns, const struct weir_tally *batch)
{
	const struct weir_harness_flow reported = *(const struct weir_harness_flow *)(uintptr_t)&packet->flow[nth];
	const struct weir_suggest_series *series = &measuring->plan->series[reported.place];
	uint32_t group = reported.place;
	struct weir_tally *total;

	if (measuring->plan->services) {
		group = service_group(&reported.key);
		if (!is_of_service(measuring, packet, group))
			return 0;
	}
	total = &measuring->measured->group_total[group];
	total->packets += batch->packets;
	total->bytes += batch->bytes;
	return series->flow.fields ? count_flow(measuring, series, group, &reported, time_ns, batch)
				   : count_lone(measuring, group, time_ns, batch);
}

/* A frame that the kernel merged, or that a sender on this host never segmented, counts as the number of packets that
 * its payload needs on the wire; bytes are those of their frames. Headers: Ethernet, IPv4 and TCP with time stamps.
 */
#define HEADER_BYTES (14 + 20 + 32)
static struct weir_tally batch_of(const struct measuring *measuring, uint32_t frame_bytes)
{
	const uint32_t whole = measuring->mtu + 14;
	uint64_t packets = 1;

	if (measuring->mtu > HEADER_BYTES && frame_bytes > whole + 8) /* room for two tags */
		packets = (frame_bytes - HEADER_BYTES + whole - HEADER_BYTES - 1) / (whole - HEADER_BYTES);
	return (struct weir_tally){packets, frame_bytes + (packets - 1) * HEADER_BYTES};
}

static int fail_to_count(int err, struct weir_diag *diag)
{
	if (err == -ENFILE)
		return weir_diag_fail(diag, 0, "leave --loss out, or take a shorter part of the traffic",
				      "there are more than %u flows, and --loss needs all packets of each",
				      WEIR_FOLLOWED_MAX);
	if (err == -E2BIG)
		return weir_diag_fail(diag, 0, "take a shorter part of the traffic, or a longer statInterval",
				      "more than %u intervals of a resource without a key", INTERVALS_MAX);
	return weir_diag_fail(diag, -err, NULL, "cannot count the packets");
}

static int count_packet(struct measuring *measuring, const struct weir_ethernet *ethernet, uint64_t time_ns,
			enum weir_direction direction, struct weir_diag *diag)
{
	const struct weir_tally batch = batch_of(measuring, ethernet->wire_bytes);
	const volatile struct weir_harness *packet;
	int err = 0;

	if (!measuring->matcher)
		err = weir_suggest_matcher_new(measuring->plan, measuring->options->interface, time_ns,
					       &measuring->matcher, diag);
	if (!err)
		err = weir_suggest_match(measuring->matcher, ethernet, time_ns, direction, &packet, diag);
	if (err)
		return err;
	measuring->report->matched += packet->flow_count > 0;
	for (uint32_t i = 0; !err && i < packet->flow_count && i < WEIR_PACKET_RULES_MAX; i++)
		err = count_for(measuring, packet, i, time_ns, &batch);
	return err ? fail_to_count(err, diag) : 0;
}

/* ---- a capture ---- */

static bool is_stopped(const struct weir_suggest_options *options)
{
	return options->stop && *options->stop;
}

static void report_progress(const struct measuring *measuring, const struct weir_capture *capture, uint64_t began_ns)
{
	const struct weir_suggest_options *options = measuring->options;
	uint64_t done, total;

	if (!options->measured)
		return;
	weir_capture_position(capture, &done, &total);
	if (measuring->report->is_live) {
		done = weir_host_now_ns() - began_ns;
		total = options->lasts_ns;
	}
	if (total && done < total)
		options->measured(done, total);
}

static int take_frame(struct measuring *measuring, enum weir_link_type link_type, const struct weir_frame *frame,
		      struct weir_diag *diag)
{
	struct weir_suggest_report *report = measuring->report;
	struct weir_ethernet ethernet;

	if (!report->seen.packets || frame->time_ns < report->earliest_ns)
		report->earliest_ns = frame->time_ns;
	if (frame->time_ns > report->latest_ns)
		report->latest_ns = frame->time_ns;
	report->seen.packets++;
	report->seen.bytes += frame->wire_bytes;
	if (!weir_frame_to_ethernet(link_type, frame, &ethernet))
		return 0; /* malformed: it belongs to no resource */
	return count_packet(measuring, &ethernet, frame->time_ns,
			    weir_frame_direction(frame, measuring->options->direction), diag);
}

/* For so long after the end of a live capture its ring may keep frames back that came before: twice the wait of
 * weir_capture_next().
 */
#define LAST_FRAMES_NS (200 * 1000000ull)

/* The time of a live capture is over, or the user has stopped it: 0 until then, then when, on the wall clock. */
static uint64_t live_end_ns(const struct measuring *measuring, uint64_t began_ns)
{
	uint64_t now_ns = weir_host_now_ns();

	if (!measuring->report->is_live)
		return 0;
	return is_stopped(measuring->options) || now_ns - began_ns >= measuring->options->lasts_ns
		       ? weir_host_wall_ns(now_ns)
		       : 0;
}

static bool is_all_read(int got, const struct weir_frame *frame, uint64_t end_ns)
{
	if (got == 1)
		return frame->time_ns > end_ns;
	return weir_host_wall_ns(weir_host_now_ns()) > end_ns + LAST_FRAMES_NS;
}

/* Read until the end of the capture, until the time is over, or until the user stops it, which is a success for a live
 * one. What had come by then and still waits to be read counts.
 */
static int read_capture(struct measuring *measuring, struct weir_capture *capture, struct weir_diag *diag)
{
	const struct weir_suggest_options *options = measuring->options;
	const uint64_t began_ns = weir_host_now_ns();
	struct weir_frame frame;
	uint64_t end_ns = 0;
	int got;

	for (uint64_t number = 0;; number++) {
		got = weir_capture_next(capture, &frame, diag);
		if (end_ns && is_all_read(got, &frame, end_ns))
			return 0;
		if (!end_ns)
			end_ns = live_end_ns(measuring, began_ns);
		if (got == -EBADMSG)
			measuring->report->is_damaged = true;
		if (got == 0 || got == -EBADMSG)
			return 0;
		if (got == 1)
			got = take_frame(measuring, weir_capture_link_type(capture), &frame, diag);
		if (got < 0 && got != -EAGAIN)
			return got;
		if (!measuring->report->is_live && is_stopped(options)) {
			weir_diag_fail(diag, EINTR, "nothing was written", "stopped");
			return -EINTR;
		}
		if (number % PROGRESS_PACKETS == 0 || got == -EAGAIN)
			report_progress(measuring, capture, began_ns);
	}
}

static int listen_live(struct measuring *measuring, struct weir_diag *diag)
{
	const char *interface = measuring->options->interface;
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	struct weir_device device = {};
	int ifindex = weir_host_ifindex(interface, diag), err;

	if (ifindex < 0)
		return ifindex;
	if (!weir_device_read(interface, ifindex, &device))
		measuring->mtu = device.mtu;
	measuring->report->is_live = true;
	/* Load first: it takes a while, in which the ring would fill up. */
	err = weir_suggest_matcher_new(measuring->plan, interface, weir_host_wall_ns(weir_host_now_ns()),
				       &measuring->matcher, diag);
	if (!err)
		err = weir_capture_listen(interface, &capture, diag);
	if (!err)
		err = read_capture(measuring, capture, diag);
	if (!err)
		measuring->report->missed = weir_capture_missed(capture);
	return err;
}

static int read_all(struct measuring *measuring, struct weir_diag *diag)
{
	const struct weir_suggest_options *options = measuring->options;
	int err = 0;

	measuring->capture = 1;
	if (!options->capture_count)
		return listen_live(measuring, diag);
	for (size_t i = 0; !err && i < options->capture_count; i++, measuring->capture++) {
		_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;

		err = weir_capture_open_once(options->captures[i], &capture, diag);
		if (!err)
			err = read_capture(measuring, capture, diag);
	}
	return err;
}

/* ---- the pass ---- */

static int make_room(const struct weir_suggest_options *options, const struct weir_suggest_plan *plan,
		     struct weir_suggest_measured *measured, struct weir_diag *diag)
{
	*measured = (struct weir_suggest_measured){.groups = plan->services ? WEIR_SERVICE_GROUPS : plan->count};
	measured->flows = weir_flow_table_new(measured->groups, WEIR_FOLLOWED_MAX);
	measured->lone = calloc(plan->count, sizeof(*measured->lone));
	measured->group_total = calloc(measured->groups, sizeof(*measured->group_total));
	if (!measured->flows || !measured->lone || !measured->group_total)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot measure");
	if (options->loss_micro) {
		measured->log = tmpfile();
		if (!measured->log)
			return weir_diag_fail(diag, errno, NULL, "cannot make a temporary file for --loss");
	}
	return 0;
}

int weir_suggest_measure(const struct weir_suggest_options *options, const struct weir_suggest_plan *plan,
			 struct weir_suggest_measured *ret_measured, struct weir_suggest_report *report,
			 struct weir_diag *diag)
{
	struct measuring measuring = {.options = options, .plan = plan, .measured = ret_measured, .report = report};
	const uint64_t began_ns = weir_host_now_ns(), cpu_ns = weir_host_cpu_ns();
	int err = make_room(options, plan, ret_measured, diag);

	if (!err)
		err = read_all(&measuring, diag);
	weir_suggest_matcher_free(measuring.matcher);
	for (size_t i = 0; !err && i < plan->count; i++) {
		err = end_interval(&ret_measured->lone[i], plan->series[i].interval_ns);
		if (err)
			return fail_to_count(err, diag);
	}
	report->measuring_ns = weir_host_now_ns() - began_ns;
	report->cpu_ns = weir_host_cpu_ns() - cpu_ns;
	return err;
}

void weir_suggest_measured_free(struct weir_suggest_measured *measured, const struct weir_suggest_plan *plan)
{
	weir_flow_table_free(measured->flows);
	for (size_t i = 0; measured->lone && i < plan->count; i++)
		free(measured->lone[i].intervals);
	free(measured->lone);
	free(measured->group_total);
	if (measured->log)
		fclose(measured->log);
	*measured = (struct weir_suggest_measured){};
}
