// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "base/util.h"
#include "host/host.h"
#include "network/device.h"
#include "files/capture.h"
#include "suggest/matcher.h"

#define PROGRESS_PACKETS 65536

/* Most intervals of one resource, at some 30 bytes each; chosen, not derived. */
#define INTERVALS_MAX 2000000u

struct measuring {
	const struct weir_suggest_options *options;
	const struct weir_suggest_plan *plan;
	struct weir_suggest_measured *measured;
	struct weir_suggest_report *report;
	/* Made at the time of the first packet: of services, one for each direction, else a single one. */
	struct weir_suggest_matcher *matcher[2];
	uint32_t capture;
	uint8_t tcp_flags; /* of the packet, if it is TCP */
	/* Of a live interface: a longer frame was several packets; 0: not known. */
	uint32_t mtu;
};

/* ---- services ---- */

static const struct weir_served rows[WEIR_SERVICE_ROWS] = {
	{WEIR_SERVICE_REQUESTS, IPPROTO_TCP, -1},  {WEIR_SERVICE_ELSEWHERE, IPPROTO_TCP, -1},
	{WEIR_SERVICE_ANSWERS, IPPROTO_TCP, -1},   {WEIR_SERVICE_REQUESTS, IPPROTO_UDP, -1},
	{WEIR_SERVICE_ELSEWHERE, IPPROTO_UDP, -1}, {WEIR_SERVICE_ANSWERS, IPPROTO_UDP, -1},
	{WEIR_SERVICE_REQUESTS, IPPROTO_SCTP, -1}, {WEIR_SERVICE_ELSEWHERE, IPPROTO_SCTP, -1},
	{WEIR_SERVICE_ANSWERS, IPPROTO_SCTP, -1},
};

struct weir_served weir_service_of(uint32_t group)
{
	const uint32_t other = group - WEIR_SERVICE_ROWS * 65536u;

	if (group < WEIR_SERVICE_ROWS * 65536u)
		return (struct weir_served){rows[group / 65536u].side, rows[group / 65536u].protocol, group % 65536u};
	return (struct weir_served){other < 256 ? WEIR_SERVICE_REQUESTS : WEIR_SERVICE_ELSEWHERE, other % 256, -1};
}

static uint32_t service_group(enum weir_service_side side, uint8_t protocol, uint16_t port)
{
	for (uint32_t i = 0; i < WEIR_SERVICE_ROWS; i++)
		if (rows[i].protocol == protocol && rows[i].side == side)
			return i * 65536u + port;
	return WEIR_SERVICE_ROWS * 65536u + 256u * (side != WEIR_SERVICE_REQUESTS) + protocol;
}

#define SYSTEM_PORTS 1024 /* lower ports belong to services (RFC 6335) */

/* Which end of an outgoing packet is the service? If neither or both ports are low, this host's is one if it was sent
 * to by more than one client, which an ephemeral port seldom is; otherwise, the lower port.
 */
static bool is_answer(const struct measuring *measuring, uint8_t protocol, uint16_t local, uint16_t remote)
{
	const uint32_t requests = service_group(WEIR_SERVICE_REQUESTS, protocol, local);

	if ((local < SYSTEM_PORTS) != (remote < SYSTEM_PORTS))
		return local < SYSTEM_PORTS;
	return weir_flow_table_group_count(measuring->measured->flows, requests) > 1 || local <= remote;
}

/* Is this a packet of a service, and of which one? A capture also has answers that came in from a service's port: what
 * others send because they were asked to needs no limit.
 */
static bool find_service(struct measuring *measuring, const volatile struct weir_harness *packet, bool is_out,
			 uint32_t *ret_group)
{
	const uint8_t protocol = packet->packet.protocol;
	const uint16_t from = ntohs(packet->packet.source_port), to = ntohs(packet->packet.destination_port);
	enum weir_service_side side = WEIR_SERVICE_REQUESTS;

	if (is_out)
		side = is_answer(measuring, protocol, from, to) ? WEIR_SERVICE_ANSWERS : WEIR_SERVICE_ELSEWHERE;
	*ret_group = service_group(side, protocol, side == WEIR_SERVICE_ANSWERS ? from : to);
	if (weir_service_of(*ret_group).port == 0)
		measuring->report->portless++;
	else if (!is_out && weir_service_of(*ret_group).port >= SYSTEM_PORTS && from && from < SYSTEM_PORTS)
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

/* ---- connections ---- */

/* More connections than this are not followed, at some 300 bytes each; chosen, not derived. */
#define CONNECTIONS_MAX 400000u
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* The flags of a TCP packet that the program has parsed; 0: they are behind IPv6 extension headers, or were cut off. */
static uint8_t tcp_flags_of(const struct weir_ethernet *ethernet)
{
	const uint8_t *bytes = ethernet->payload;
	uint16_t type = ntohs(ethernet->header.h_proto);
	uint32_t at = 0;

	for (; (type == ETH_P_8021Q || type == ETH_P_8021AD) && at + 4 <= ethernet->payload_bytes; at += 4)
		type = bytes[at + 2] << 8 | bytes[at + 3];
	if (at + 40 > ethernet->payload_bytes)
		return 0;
	at += type == ETH_P_IPV6 ? 40 : (bytes[at] & 15) * 4;
	return at + 14 <= ethernet->payload_bytes ? bytes[at + 13] : 0;
}

/* A connection counts for its flow from the first packet after its SYN, so that scans and forged SYNs raise nothing, to
 * the client's FIN or RST. That can be too high, since idle times are not followed, and too low, since half-open
 * connections do not count, as the rule has them. In `connections`, peaks.total.packets is 1
 * after the opening and 2 while it counts; in `flows` it is how many count now.
 */
static int follow_connection(struct measuring *measuring, const struct weir_harness_flow *reported, uint32_t group,
			     const struct weir_flow_key *tuple, uint8_t flags)
{
	struct weir_suggest_measured *measured = measuring->measured;
	struct weir_followed *connection, *flow;
	const uint64_t digest = weir_digest(WEIR_DIGEST_BASIS, tuple, sizeof(*tuple));
	uint32_t place, now;
	int err = weir_flow_table_find(measured->connections, 0, tuple, digest ^ digest >> 32, &place);

	if (err || place == WEIR_NOT_FOLLOWED)
		return err;
	connection = weir_flow_table_at(measured->connections, place);
	if (connection->capture != measuring->capture)
		connection->peaks.total.packets = 0;
	connection->capture = measuring->capture;
	now = connection->peaks.total.packets;
	if (flags & (TCP_FIN | TCP_RST))
		connection->peaks.total.packets = 0;
	else if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		connection->peaks.total.packets = now ?: 1;
	else if (now == 1)
		connection->peaks.total.packets = 2;
	if ((now == 2) == (connection->peaks.total.packets == 2))
		return 0;
	err = weir_flow_table_find(measured->flows, group, &reported->key, reported->hash, &place);
	if (err || place == WEIR_NOT_FOLLOWED)
		return err;
	flow = weir_flow_table_at(measured->flows, place);
	if (flow->capture != measuring->capture)
		flow->peaks.total.packets = 0;
	flow->capture = measuring->capture;
	if (now == 2) {
		flow->peaks.total.packets -= flow->peaks.total.packets > 0;
		return 0;
	}
	flow->peaks.total.packets++;
	if (flow->peaks.total.packets > flow->peaks.peak.packets)
		flow->peaks.peak.packets = flow->peaks.total.packets;
	measured->group_total[group].packets++;
	return 0;
}

static int count_opening(struct measuring *measuring, const struct weir_harness_flow *reported, uint32_t group,
			 uint64_t time_ns, const struct weir_tally *batch)
{
	const struct weir_suggest_series usual = weir_suggest_default_series(0, &(struct weir_flow){});
	struct weir_tally *total = &measuring->measured->group_total[group];
	struct weir_followed *flow;
	uint32_t place;
	int err = weir_flow_table_find(measuring->measured->flows, group, &reported->key, reported->hash, &place);

	total->packets += batch->packets;
	total->bytes += batch->bytes;
	if (err || place == WEIR_NOT_FOLLOWED)
		return err;
	flow = weir_flow_table_at(measuring->measured->flows, place);
	enter_capture(flow, measuring->capture);
	weir_peaks_add(&flow->peaks, &usual.window, time_ns, batch);
	return 0;
}

static int count_tcp(struct measuring *measuring, const struct weir_harness_flow *reported, uint32_t group,
		     const volatile struct weir_harness *packet, uint64_t time_ns, const struct weir_tally *batch)
{
	const struct weir_suggest_measured *measured = measuring->measured;
	const struct weir_flow_key tuple = *(const struct weir_flow_key *)(uintptr_t)&packet->packet;
	const uint8_t flags = measuring->tcp_flags;
	int err = 0;

	if (!flags || tuple.protocol != IPPROTO_TCP)
		return 0;
	if ((flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == TCP_SYN)
		err = count_opening(measuring, reported, weir_measure_group(measured, group, WEIR_MEASURE_OPENINGS),
				    time_ns, batch);
	return err
		       ?: follow_connection(measuring, reported,
					    weir_measure_group(measured, group, WEIR_MEASURE_CONNECTIONS), &tuple,
					    flags);
}

static int count_for(struct measuring *measuring, const volatile struct weir_harness *packet, uint32_t nth, bool is_out,
		     uint64_t time_ns, const struct weir_tally *batch)
{
	struct weir_harness_flow reported = *(const struct weir_harness_flow *)(uintptr_t)&packet->flow[nth];
	const struct weir_suggest_series *series = &measuring->plan->series[reported.place + is_out];
	uint32_t group = reported.place;
	struct weir_tally *total;
	int err;

	if (measuring->plan->services && !find_service(measuring, packet, is_out, &group))
		return 0;
	/* As the rule's key has it (write_service()). */
	if (measuring->plan->services && weir_service_of(group).side == WEIR_SERVICE_ELSEWHERE)
		reported.key.source_port = htons(weir_service_of(group).port);
	total = &measuring->measured->group_total[group];
	total->packets += batch->packets;
	total->bytes += batch->bytes;
	if (!series->flow.fields)
		return count_lone(measuring, group, time_ns, batch);
	err = count_flow(measuring, series, group, &reported, time_ns, batch);
	if (!err && group < measuring->measured->tcp_groups)
		err = count_tcp(measuring, &reported, group, packet, time_ns, batch);
	return err;
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
	const bool is_out = measuring->plan->services && direction == WEIR_DIRECTION_OUT;
	const volatile struct weir_harness *packet;
	int err = 0;

	if (!measuring->matcher[is_out])
		err = weir_suggest_matcher_new(measuring->plan, direction, measuring->options->interface, time_ns,
					       &measuring->matcher[is_out], diag);
	if (!err)
		err = weir_suggest_match(measuring->matcher[is_out], ethernet, time_ns, direction, &packet, diag);
	if (err)
		return err;
	measuring->report->matched += packet->flow_count > 0;
	measuring->tcp_flags = tcp_flags_of(ethernet);
	for (uint32_t i = 0; !err && i < packet->flow_count && i < WEIR_PACKET_RULES_MAX; i++)
		err = count_for(measuring, packet, i, is_out, time_ns, &batch);
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

static int take_frame(struct measuring *measuring, const struct weir_frame *frame, struct weir_diag *diag)
{
	const enum weir_direction direction = weir_frame_direction(frame, measuring->options->direction);
	struct weir_suggest_report *report = measuring->report;
	struct weir_ethernet ethernet;

	if (!report->seen.packets || frame->time_ns < report->earliest_ns)
		report->earliest_ns = frame->time_ns;
	if (frame->time_ns > report->latest_ns)
		report->latest_ns = frame->time_ns;
	report->seen.packets++;
	report->seen.bytes += frame->wire_bytes;
	report->outgoing += direction == WEIR_DIRECTION_OUT;
	if (!weir_frame_to_ethernet(frame, &ethernet))
		return 0; /* malformed: it belongs to no resource */
	return count_packet(measuring, &ethernet, frame->time_ns, direction, diag);
}

/* For so long after the end of a live capture its ring may keep frames back that came before: four times the
 * wait of weir_capture_next().
 */
#define LAST_FRAMES_NS (400 * 1000000ull)

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

/* `asked_ns` is when it was asked for a frame: this process may have waited for a CPU since. */
static bool is_all_read(int got, const struct weir_frame *frame, uint64_t asked_ns, uint64_t end_ns)
{
	return got == 1 ? frame->time_ns > end_ns : asked_ns > end_ns + LAST_FRAMES_NS;
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
		const uint64_t asked_ns = end_ns ? weir_host_wall_ns(weir_host_now_ns()) : 0;

		got = weir_capture_next(capture, &frame, diag);
		if (end_ns && is_all_read(got, &frame, asked_ns, end_ns))
			return 0;
		if (!end_ns)
			end_ns = live_end_ns(measuring, began_ns);
		if (got == -EBADMSG)
			measuring->report->is_damaged = true;
		if (got == 0 || got == -EBADMSG)
			return 0;
		if (got == 1)
			got = take_frame(measuring, &frame, diag);
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
	const struct weir_ruleset *ruleset = &measuring->plan->ruleset;
	const uint64_t now_ns = weir_host_wall_ns(weir_host_now_ns());
	struct weir_device device = {};
	int ifindex = weir_host_ifindex(interface, diag), err = 0;
	uint8_t directions = 0;

	if (ifindex < 0)
		return ifindex;
	if (!weir_device_read(interface, ifindex, &device))
		measuring->mtu = device.mtu;
	measuring->report->is_live = true;
	for (size_t i = 0; i < ruleset->resource_count; i++)
		directions |= weir_match_directions(&ruleset->resources[i].match);
	/* Load first: it takes a while, in which the rings would fill up. */
	for (int i = 0; !err && i < (measuring->plan->services ? 2 : 1); i++)
		err = weir_suggest_matcher_new(measuring->plan, i, interface, now_ns, &measuring->matcher[i], diag);
	if (!err)
		err = weir_capture_listen(interface, directions, &capture, diag);
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
	*measured = (struct weir_suggest_measured){
		.own_groups = plan->services ? WEIR_SERVICE_GROUPS : plan->count,
		.tcp_groups = plan->services ? WEIR_SERVICE_ROWS_OPENING * 65536ul : plan->count,
	};
	measured->groups = measured->own_groups + (WEIR_MEASURES - 1) * measured->tcp_groups;
	measured->connections = weir_flow_table_new(1, CONNECTIONS_MAX);
	measured->flows = weir_flow_table_new(measured->groups, WEIR_FOLLOWED_MAX);
	measured->lone = calloc(plan->count, sizeof(*measured->lone));
	measured->group_total = calloc(measured->groups, sizeof(*measured->group_total));
	if (!measured->flows || !measured->connections || !measured->lone || !measured->group_total)
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
	for (size_t i = 0; !err && !report->labels && i < ARRAY_SIZE(measuring.matcher); i++)
		if (measuring.matcher[i] && weir_suggest_matcher_labels(measuring.matcher[i], &report->labels))
			err = fail_to_count(-ENOMEM, diag);
	weir_suggest_matcher_free(measuring.matcher[0]);
	weir_suggest_matcher_free(measuring.matcher[1]);
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
	weir_flow_table_free(measured->connections);
	for (size_t i = 0; measured->lone && i < plan->count; i++)
		free(measured->lone[i].intervals);
	free(measured->lone);
	free(measured->group_total);
	if (measured->log)
		fclose(measured->log);
	*measured = (struct weir_suggest_measured){};
}
