// SPDX-License-Identifier: GPL-2.0-only
#include "replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <sched.h>
#include <string.h>

#include "base/util.h"
#include "compile/compile.h"
#include "host/host.h"
#include "kind/kind.h"
#include "program/array.h"
#include "program/breaker_sums.h"
#include "program/connection_totals.h"
#include "program/object.h"
#include "program/signals.h"
#include "program/thresholds.h"
#include "replay/capture.h"
#include "replay/departures.h"
#include "replay/memory_csv.h"
#include "replay/output.h"
#include "replay/picture.h"
#include "replay/sizes.h"
#include "replay/system_csv.h"
#include "replay/verdict_csv.h"

/* Every header fits: no IP packet states more than 65,535 bytes after the longest IPv6 header, Ethernet and two tags,
 * and what is longer (BIG TCP) has its headers within that. So the program sees this much, and is told the length.
 * The kernel takes a first buffer and 17 more pages, about 73,000 bytes (6.1 to 6.18).
 */
#define REPLAY_FRAME_BYTES_MAX (ETH_HLEN + 2 * 4 + 40 + 65535)

/* Rows tell times apart for this long after the capture's end: an interval of a day and a day's ring. */
#define REPLAY_MARGIN_NS (48ull * 3600 * WEIR_NSEC_PER_SEC)

#define REPLAY_PROGRESS_PACKETS 65536

static int stopped(const struct weir_replay_options *options, struct weir_diag *diag)
{
	if (!options->stop || !*options->stop)
		return 0;
	weir_diag_fail(diag, EINTR, "no output was written", "replay stopped");
	return -EINTR;
}

/* ---- first pass: what is in the capture ---- */

struct survey {
	enum weir_link_type link_type;
	uint64_t packets;
	uint64_t first_ns; /* of the first packet, which need not be the earliest */
	uint64_t earliest_ns, latest_ns;
	bool is_damaged;
};

static int survey_capture(const struct weir_replay_options *options, struct survey *survey, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	struct weir_frame frame;
	int got, err;

	err = weir_capture_open(options->capture, &capture, diag);
	if (err)
		return err;
	*survey = (struct survey){.link_type = weir_capture_link_type(capture), .earliest_ns = UINT64_MAX};
	while ((got = weir_capture_next(capture, &frame, diag)) > 0) {
		if (survey->packets == 0)
			survey->first_ns = frame.time_ns;
		if (frame.time_ns < survey->earliest_ns)
			survey->earliest_ns = frame.time_ns;
		if (frame.time_ns > survey->latest_ns)
			survey->latest_ns = frame.time_ns;
		if (survey->packets++ % REPLAY_PROGRESS_PACKETS == 0 && (err = stopped(options, diag)))
			return err;
	}
	if (got < 0 && got != -EBADMSG)
		return got;
	if (survey->packets == 0)
		survey->earliest_ns = 0;
	survey->is_damaged = got < 0;
	return 0;
}

/* ---- the interface that match.interface means ---- */

#define OUR_IFINDEX 1

struct interface_names {
	const char *ours;    /* OUR_IFINDEX: the one the capture is said to be of */
	const char **others; /* 2, 3, ...: borrowed from the rule set */
	size_t other_count;
};

static void interface_names_free(struct interface_names *names)
{
	free(names->others);
}

/* Every name exists, so that a rule set made for another machine compiles without warnings. */
static uint32_t replay_ifindex(const char *name, void *data)
{
	struct interface_names *names = data;
	const char **added;
	size_t i;

	if (names->ours && strcmp(name, names->ours) == 0)
		return OUR_IFINDEX;
	for (i = 0; i < names->other_count; i++)
		if (strcmp(name, names->others[i]) == 0)
			return OUR_IFINDEX + 1 + i;
	added = weir_array_add((void **)&names->others, names->other_count, sizeof(*names->others));
	if (!added)
		return 0;
	*added = name;
	return OUR_IFINDEX + 1 + names->other_count++;
}

/* ---- the judging pass ---- */

/* Memory in use, as time goes by. */
struct readings {
	struct weir_memory_reading *list;
	size_t count;
};

/* Load and CPU usage, likewise. */
struct samples {
	struct weir_system_sample *list;
	size_t count;
};

/* One attempt to replay the whole capture, with tables of certain sizes. */
struct attempt {
	const struct weir_ruleset *ruleset;
	const struct weir_replay_options *options;
	const struct survey *survey;
	const struct readings *readings;
	const struct samples *samples;
	const struct weir_replay_sizes *sizes;
	bool is_retry;
	struct interface_names interfaces;
	struct weir_image *image;
	struct weir_object *object;
	struct weir_thresholds *thresholds;
	size_t past_readings; /* readings that hold, or held */
	struct weir_signals_map *signals;
	size_t past_samples;	 /* likewise */
	uint64_t next_second_ns; /* when the controller has something to do, whatever memory is in use */
	uint8_t *frame;		 /* REPLAY_FRAME_BYTES_MAX; a frame padded to its wire length */
	struct weir_output verdicts;
	struct weir_departures *passed;
	struct weir_output picture;
	struct weir_replay_plot *plot; /* NULL: not asked for */
	struct weir_replay_report report;
};

static void attempt_clean(struct attempt *attempt)
{
	interface_names_free(&attempt->interfaces);
	weir_replay_plot_free(attempt->plot);
	weir_thresholds_free(attempt->thresholds);
	weir_signals_close(attempt->signals);
	weir_object_free(attempt->object);
	weir_image_free(attempt->image);
	free(attempt->frame);
	weir_output_close(&attempt->verdicts);
	weir_departures_free(attempt->passed);
	weir_output_close(&attempt->picture);
	weir_replay_report_free(&attempt->report);
}

static int check_memory(const struct weir_image *image, uint32_t cpus, struct weir_diag *diag)
{
	struct weir_image_memory memory;
	uint64_t free_bytes;

	weir_image_memory(image, cpus, &memory);
	if (weir_host_has_memory(memory.total, &free_bytes))
		return 0;
	return weir_diag_fail(diag, ENOMEM, "replay a shorter part of the capture, or where there is more memory",
			      "tables that hold every flow of the capture need %" PRIu64 " MB, and %" PRIu64
			      " MB are free, of which a sixteenth must stay so",
			      (uint64_t)memory.total / 1000000, free_bytes / 1000000);
}

/* ---- the controller, in the capture's time ---- */

static int open_thresholds(struct attempt *attempt, struct weir_diag *diag)
{
	const struct weir_image *image = attempt->image;
	const struct weir_thresholds_maps maps = {
		.rules = image->rule_info,
		.rule_slots = image->rule_slots,
		.rule_count = image->rule_count,
		.fds = weir_object_moving_fds(attempt->object),
	};

	return weir_thresholds_open(&maps, &attempt->thresholds, diag);
}

/* The memory in use by the readings that are past. */
static struct weir_memory_use memory_use(const struct attempt *attempt)
{
	struct weir_memory_use memory = {.holds_until_ns = UINT64_MAX};

	if (attempt->past_readings) {
		memory.is_known = true;
		memory.used_bytes = attempt->readings->list[attempt->past_readings - 1].used_bytes;
	}
	return memory;
}

/* A reading holds from its own time on; for a packet whose clock went back, one from before may hold again. */
static int pass_readings(struct attempt *attempt, uint64_t now_ns, bool *ret_passes)
{
	const struct weir_memory_reading *list = attempt->readings->list;
	size_t before = attempt->past_readings;
	struct weir_memory_use memory;
	int err = 0;

	while (!err && attempt->past_readings < attempt->readings->count &&
	       list[attempt->past_readings].time_ns <= now_ns) {
		attempt->past_readings++;
		memory = memory_use(attempt);
		err = weir_thresholds_follow(attempt->thresholds, list[attempt->past_readings - 1].time_ns, &memory);
	}
	while (attempt->past_readings > 0 && list[attempt->past_readings - 1].time_ns > now_ns)
		attempt->past_readings--;
	*ret_passes = attempt->past_readings != before;
	return err;
}

/* What the controller would do at this time. Most packets come in the same second, with the same memory in use, as the
 * one before: then there is nothing to do.
 */
static int control(struct attempt *attempt, uint64_t now_ns, struct weir_diag *diag)
{
	struct weir_memory_use memory;
	bool passes_readings;
	int err;

	if (!weir_thresholds_count(attempt->thresholds))
		return 0;
	err = pass_readings(attempt, now_ns, &passes_readings);
	if (!err && !passes_readings && now_ns < attempt->next_second_ns)
		return 0;
	memory = memory_use(attempt);
	if (!err)
		err = weir_thresholds_follow(attempt->thresholds, now_ns, &memory);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot move the thresholds");
	if (now_ns >= attempt->next_second_ns)
		attempt->next_second_ns = (now_ns / WEIR_NSEC_PER_SEC + 1) * WEIR_NSEC_PER_SEC;
	return 0;
}

/* The same of samples. */
static void publish_sample(struct attempt *attempt, uint64_t now_ns)
{
	const struct samples *samples = attempt->samples;
	struct weir_signals signals = {};
	size_t before = attempt->past_samples;

	while (attempt->past_samples < samples->count && samples->list[attempt->past_samples].time_ns <= now_ns)
		attempt->past_samples++;
	while (attempt->past_samples > 0 && samples->list[attempt->past_samples - 1].time_ns > now_ns)
		attempt->past_samples--;
	if (attempt->past_samples == before)
		return;
	if (attempt->past_samples) {
		const struct weir_system_sample *sample = &samples->list[attempt->past_samples - 1];

		signals =
			(struct weir_signals){sample->time_ns, sample->load1_micro, sample->time_ns, sample->cpu_micro};
	}
	weir_signals_publish(attempt->signals, &signals);
}

/* Before the packet of this time: the controller, and what the picture shows of its work, also where no packet came. */
static int advance(struct attempt *attempt, uint64_t now_ns, struct weir_diag *diag)
{
	while (attempt->plot && weir_replay_plot_next_ns(attempt->plot) <= now_ns) {
		int err = control(attempt, weir_replay_plot_next_ns(attempt->plot), diag);

		if (err)
			return err;
		weir_replay_plot_note(attempt->plot);
	}
	publish_sample(attempt, now_ns);
	return control(attempt, now_ns, diag);
}

static int load_rules(struct attempt *attempt, struct weir_diag *diag)
{
	struct weir_object_options object_options = {
		.is_virtual = true,
		.now_ns = attempt->survey->first_ns,
		.without_shortcuts = attempt->options->is_without_shortcuts ? WEIR_SHORTCUTS_ALL : 0,
	};
	struct weir_ruleset roomy = *attempt->ruleset;
	struct weir_compile_options options = {
		.now_ns = attempt->survey->earliest_ns,
		.span_ns = attempt->survey->latest_ns - attempt->survey->earliest_ns + REPLAY_MARGIN_NS,
		.ifindex = replay_ifindex,
		.ifindex_data = &attempt->interfaces,
	};
	struct weir_diag again = {};
	int cpus, err;

	cpus = weir_host_cpus();
	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot tell how many CPUs there are");
	options.cpus = cpus;
	attempt->interfaces.ours = attempt->options->interface;
	roomy.settings.observes = false; /* what would have been dropped is what replay is for */
	roomy.settings.flows_per_cpu = attempt->sizes->rows;
	roomy.settings.connections = attempt->sizes->connections;
	roomy.settings.connection_flows = attempt->sizes->connection_flows;
	roomy.settings.ring_groups = attempt->sizes->ring_groups;
	/* Warnings were given by the first attempt; what changed since is only the tables. */
	err = weir_image_build(&roomy, &options, &attempt->image, attempt->is_retry ? &again : diag);
	weir_diag_free(&again);
	if (!err && attempt->interfaces.ours &&
	    weir_image_add_interface(attempt->image, attempt->interfaces.ours, OUR_IFINDEX))
		err = weir_diag_fail(diag, ENOMEM, NULL, "cannot compile the rules");
	if (!err)
		err = check_memory(attempt->image, cpus, diag);
	if (err)
		return err;
	/* What is told is read, whether a rule asks about it or not. */
	if (attempt->options->verdicts_are_wide)
		attempt->image->config.asked_fields |= WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION |
						       WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_DESTINATION_PORT;
	err = weir_object_load(attempt->image, &object_options, &attempt->object, diag);
	if (!err)
		err = open_thresholds(attempt, diag);
	if (!err)
		err = weir_signals_open(weir_object_map_fd(attempt->object, WEIR_TABLE_SIGNALS), &attempt->signals,
					diag);
	return err == -EINVAL ? -EIO : err; /* the kernel's opinion, not a mistake in the rules */
}

static int open_plot(struct attempt *attempt, struct weir_diag *diag)
{
	int err = weir_output_open(&attempt->picture, attempt->options->plot, diag);

	if (err)
		return err;
	attempt->plot = weir_replay_plot_new(attempt->ruleset, attempt->image, attempt->thresholds,
					     attempt->survey->earliest_ns, attempt->survey->latest_ns);
	return attempt->plot ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot draw '%s'", attempt->options->plot);
}

static int open_outputs(struct attempt *attempt, struct weir_diag *diag)
{
	int err;

	if (attempt->options->verdicts) {
		err = weir_output_open(&attempt->verdicts, attempt->options->verdicts, diag);
		if (err)
			return err;
		weir_verdict_csv_begin(attempt->verdicts.stream, attempt->options->verdicts_are_wide);
	}
	if (attempt->options->passed) {
		err = weir_departures_open(attempt->options->passed, attempt->survey->link_type, &attempt->passed,
					   diag);
		if (err)
			return err;
	}
	return attempt->options->plot ? open_plot(attempt, diag) : 0;
}

static const char *dropped_by(const struct weir_ruleset *ruleset, enum weir_verdict verdict, uint32_t rule)
{
	switch (verdict) {
	case WEIR_VERDICT_BLOCK:
		return rule < ruleset->rule_count ? ruleset->rules[rule].name : NULL;
	case WEIR_VERDICT_MALFORMED_DROP:
		return "malformed";
	case WEIR_VERDICT_UNSUPPORTED_DROP:
		return "unsupported";
	case WEIR_VERDICT_NON_IP_DROP:
		return "nonIp";
	case WEIR_VERDICT_UNMATCHED_DROP:
		return "unmatched";
	case WEIR_VERDICT_DENY:
		return "deny";
	default:
		return NULL;
	}
}

/* A frame without a whole link header cannot be handed to a program, nor arrive on an interface. */
static void judge_short_frame(struct attempt *attempt, const struct weir_frame *frame, struct weir_judgement *judgement)
{
	bool drops = attempt->ruleset->settings.drop_malformed;
	enum weir_verdict verdict = drops ? WEIR_VERDICT_MALFORMED_DROP : WEIR_VERDICT_MALFORMED_PASS;
	struct weir_totals *totals = &attempt->report.totals;

	totals->seen.packets++;
	totals->seen.bytes += frame->wire_bytes;
	totals->verdict[verdict].packets++;
	totals->verdict[verdict].bytes += frame->wire_bytes;
	*judgement = (struct weir_judgement){.verdict = verdict, .passes = !drops, .rule = drops ? "malformed" : ""};
}

/* The frame as it was on the wire: what was cut off is zeros. */
static uint32_t pad_frame(struct attempt *attempt, const struct weir_ethernet *ethernet)
{
	uint32_t bytes = ethernet->wire_bytes, captured = ethernet->payload_bytes;

	if (bytes > REPLAY_FRAME_BYTES_MAX)
		bytes = REPLAY_FRAME_BYTES_MAX;
	if (captured > bytes - ETH_HLEN)
		captured = bytes - ETH_HLEN;
	memcpy(attempt->frame, &ethernet->header, ETH_HLEN);
	memcpy(attempt->frame + ETH_HLEN, ethernet->payload, captured);
	memset(attempt->frame + ETH_HLEN + captured, 0, bytes - ETH_HLEN - captured);
	return bytes;
}

/* The program has parsed the packet, to the end of what it asks about. */
static bool is_of_packet(enum weir_verdict verdict)
{
	switch (verdict) {
	case WEIR_VERDICT_MALFORMED_PASS:
	case WEIR_VERDICT_MALFORMED_DROP:
	case WEIR_VERDICT_UNSUPPORTED_PASS:
	case WEIR_VERDICT_UNSUPPORTED_DROP:
	case WEIR_VERDICT_NON_IP_PASS:
	case WEIR_VERDICT_NON_IP_DROP:
		return false;
	default:
		return true;
	}
}

static int judge_frame(struct attempt *attempt, const struct weir_ethernet *ethernet, uint64_t time_ns,
		       struct weir_judgement *judgement, struct weir_diag *diag)
{
	volatile struct weir_lab *lab = weir_object_lab(attempt->object);
	uint32_t i;
	int action;

	lab->clock_ns = time_ns;
	lab->frame_bytes = ethernet->wire_bytes;
	lab->ifindex = attempt->options->interface ? 1 : 0;
	action = weir_object_judge(attempt->object, attempt->frame, pad_frame(attempt, ethernet));
	if (action < 0)
		return weir_diag_fail(diag, -action, NULL, "the kernel did not run the program");

	judgement->verdict = lab->verdict;
	judgement->passes = action == XDP_PASS;
	judgement->has_packet = is_of_packet(lab->verdict);
	judgement->packet = *(const struct weir_flow_key *)(uintptr_t)&lab->packet;
	judgement->wait_ns = lab->wait_ns;
	judgement->resource_count = lab->resource_count;
	for (i = 0; i < lab->resource_count && i < WEIR_PACKET_RESOURCES_MAX; i++)
		judgement->resource[i] = lab->resource[i];
	judgement->rule = judgement->passes ? "" : dropped_by(attempt->ruleset, lab->verdict, lab->rule);
	if (!judgement->rule)
		return weir_diag_fail(diag, EIO, "this is a mistake of weir's, please report it",
				      "the program dropped a packet without a reason (verdict %u)", lab->verdict);
	return 0;
}

/* ---- counters ---- */

/* All CPUs' copies of one element, added up word by word; every counter is made of __u64. */
static int sum_counters(const struct attempt *attempt, enum weir_table_id map, uint32_t slot, void *sum, size_t bytes,
			struct weir_diag *diag)
{
	size_t cpu, word, words = bytes / sizeof(__u64), cpus = attempt->image->config.cpus;
	_cleanup_(weir_freep) __u64 *copies = calloc(cpus, bytes);
	__u64 *total = sum;

	if (!copies)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot read counters");
	if (weir_map_look_up(weir_object_map_fd(attempt->object, map), &slot, copies) < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot read counters");
	for (cpu = 0; cpu < cpus; cpu++)
		for (word = 0; word < words; word++)
			total[word] += copies[cpu * words + word];
	return 0;
}

static int read_rule_counters(struct attempt *attempt, struct weir_replay_evictions *ret_evictions,
			      struct weir_diag *diag)
{
	uint32_t i;
	int err;

	/* Behind the rules are the meters: no rules of the user's, but what they forgot would be missing too. */
	for (i = 0; i < attempt->image->rule_count + attempt->image->meter_count; i++) {
		struct weir_rule_counters counters = {};

		err = sum_counters(attempt, WEIR_TABLE_RULE_COUNTERS, attempt->image->rules[i].slot, &counters,
				   sizeof(counters), diag);
		if (err)
			return err;
		if (weir_kinds[attempt->image->rules[i].kind]->counts_connections ||
		    weir_kinds[attempt->image->rules[i].kind]->is_breaker)
			ret_evictions->connections += counters.evicted;
		else
			ret_evictions->flows += counters.evicted;
		if (i >= attempt->image->rule_count)
			continue;
		attempt->report.rules[i].blocked = counters.blocked;
		attempt->report.rules[i].would_drop = counters.would_drop;
		attempt->report.rules[i].delayed = counters.delayed;
		attempt->report.rules[i].delay_ns = counters.delay_ns;
		attempt->report.rules[i].penalties = counters.changes;
	}
	return 0;
}

/* At the end of the capture: its latest time, whatever the last packet's was. */
static int read_connections(struct attempt *attempt, struct weir_diag *diag)
{
	const struct weir_image *image = attempt->image;
	struct weir_connection_clock clock =
		weir_connection_clock(image->config.connection_step_ns, attempt->survey->latest_ns);
	struct weir_connection_fds fds = weir_object_connection_fds(attempt->object);

	for (uint32_t i = 0; i < image->rule_count; i++) {
		int err = 0;

		if (weir_kinds[image->rules[i].kind]->counts_connections)
			err = weir_connections_read_rule(&fds, image->rules[i].slot, &clock,
							 &attempt->report.rules[i].connections);
		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot read the connections");
	}
	return 0;
}

/* Likewise. Requests that shared a group were told too late. */
static int read_breakers(struct attempt *attempt, struct weir_replay_evictions *ret_evictions, struct weir_diag *diag)
{
	const struct weir_image *image = attempt->image;
	_cleanup_(weir_freep) struct weir_breaker_sum *sums = calloc(image->rule_slots + 1, sizeof(*sums));
	const struct weir_breaker_maps maps = {
		.breakers = weir_object_map_fd(attempt->object, WEIR_TABLE_BREAKERS),
		.lone_breakers = weir_object_map_fd(attempt->object, WEIR_TABLE_LONE_BREAKERS),
		.breaker_sets = image->config.sizes[WEIR_TABLE_BREAKERS],
		.rules = image->rule_info,
		.rule_slots = image->rule_slots,
	};
	int err = sums ? weir_breakers_sum(&maps, attempt->survey->latest_ns, sums) : -ENOMEM;

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot read the circuit breakers");
	for (uint32_t i = 0; i < image->rule_count; i++) {
		attempt->report.rules[i].breaker = sums[image->rules[i].slot];
		ret_evictions->shared_groups += sums[image->rules[i].slot].shared;
	}
	return 0;
}

_Static_assert(sizeof(struct weir_resource_counters) % sizeof(__u64) == 0, "seconds are summed too, and not looked at");

static int read_resource_counters(struct attempt *attempt, struct weir_diag *diag)
{
	uint32_t i;
	int err;

	for (i = 0; i < attempt->image->resource_count; i++) {
		struct weir_resource_counters counters = {};

		err = sum_counters(attempt, WEIR_TABLE_RESOURCE_COUNTERS, attempt->image->resources[i].slot, &counters,
				   sizeof(counters), diag);
		if (err)
			return err;
		attempt->report.resources[i].passed = counters.passed;
		attempt->report.resources[i].blocked = counters.blocked;
	}
	return 0;
}

/* ---- putting it together ---- */

static int judge_and_write(struct attempt *attempt, struct weir_frame *frame, uint64_t number, struct weir_diag *diag)
{
	struct weir_judgement judgement = {};
	struct weir_ethernet ethernet;
	int err;

	err = advance(attempt, frame->time_ns, diag);
	if (err)
		return err;
	if (!weir_frame_to_ethernet(attempt->survey->link_type, frame, &ethernet)) {
		judge_short_frame(attempt, frame, &judgement);
	} else {
		err = judge_frame(attempt, &ethernet, frame->time_ns, &judgement, diag);
		if (err)
			return err;
	}
	/* A frame that names no resource, a short one among others, is in no picture. */
	for (uint32_t i = 0; attempt->plot && i < judgement.resource_count; i++)
		weir_replay_plot_count(attempt->plot, judgement.resource[i], frame->time_ns, ethernet.wire_bytes,
				       judgement.passes);
	attempt->report.cut_frames += frame->captured_bytes < frame->wire_bytes;
	if (attempt->verdicts.stream) {
		weir_verdict_csv_write(attempt->verdicts.stream, attempt->ruleset, number, frame->time_ns, &judgement,
				       attempt->options->verdicts_are_wide);
		err = weir_output_check(&attempt->verdicts, diag);
	}
	if (!err && attempt->passed && judgement.passes)
		err = weir_departures_add(attempt->passed, frame, frame->time_ns + judgement.wait_ns, diag);
	return err;
}

static int tell_change(const struct weir_replay_options *options, struct weir_diag *diag)
{
	return weir_diag_fail(diag, EIO, NULL, "capture '%s' changed while it was read", options->capture);
}

static int judge_capture(struct attempt *attempt, struct weir_diag *diag)
{
	const struct weir_replay_options *options = attempt->options;
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	uint64_t number, total = attempt->survey->packets, started_ns;
	struct weir_frame frame;
	int err;

	err = weir_capture_open(options->capture, &capture, diag);
	if (err)
		return err;
	if (weir_capture_link_type(capture) != attempt->survey->link_type)
		return tell_change(options, diag);
	started_ns = weir_host_now_ns();
	for (number = 1; number <= total; number++) {
		err = weir_capture_next(capture, &frame, diag);
		if (err < 0)
			return err;
		if (err == 0)
			return tell_change(options, diag);
		err = judge_and_write(attempt, &frame, number, diag);
		if (err)
			return err;
		if (number % REPLAY_PROGRESS_PACKETS != 0 && number != total)
			continue;
		err = stopped(options, diag);
		if (err)
			return err;
		if (options->progress)
			options->progress(number, total);
	}
	attempt->report.judging_ns = weir_host_now_ns() - started_ns;
	return 0;
}

static int new_attempt(struct attempt *attempt, struct weir_diag *diag)
{
	const struct weir_ruleset *ruleset = attempt->ruleset;

	attempt->frame = malloc(REPLAY_FRAME_BYTES_MAX);
	attempt->report.rules = calloc(ruleset->rule_count + 1, sizeof(*attempt->report.rules));
	attempt->report.resources = calloc(ruleset->resource_count + 1, sizeof(*attempt->report.resources));
	if (!attempt->frame || !attempt->report.rules || !attempt->report.resources)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot replay");
	attempt->report.earliest_ns = attempt->survey->earliest_ns;
	attempt->report.latest_ns = attempt->survey->latest_ns;
	attempt->report.is_damaged = attempt->survey->is_damaged;
	attempt->report.flows_per_cpu = attempt->sizes->rows;
	return load_rules(attempt, diag);
}

static int commit(struct attempt *attempt, struct weir_diag *diag)
{
	struct weir_output *outputs[] = {&attempt->verdicts, &attempt->picture, NULL};
	int err = attempt->passed ? weir_departures_finish(attempt->passed, &outputs[2], diag) : 0;

	if (err)
		return err;
	if (attempt->plot)
		weir_replay_plot_write(attempt->plot, attempt->picture.stream);
	return weir_outputs_commit(outputs, ARRAY_SIZE(outputs), diag);
}

/* Returns 0 with a report, -EAGAIN when something was evicted while it counted, or another -errno. */
static int run_attempt(struct attempt *attempt, struct weir_replay_evictions *ret_evictions,
		       struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	int err;

	err = new_attempt(attempt, diag);
	if (!err)
		err = open_outputs(attempt, diag);
	if (!err)
		err = judge_capture(attempt, diag);
	if (!err)
		err = read_rule_counters(attempt, ret_evictions, diag);
	if (!err)
		err = read_breakers(attempt, ret_evictions, diag);
	if (err)
		return err;
	if (ret_evictions->flows || ret_evictions->connections || ret_evictions->shared_groups)
		return -EAGAIN;
	err = read_resource_counters(attempt, diag);
	if (!err)
		err = read_connections(attempt, diag);
	if (!err)
		err = weir_replay_read_limited(attempt->object, attempt->image, attempt->survey->latest_ns,
					       &attempt->report.limits, diag);
	if (!err)
		err = sum_counters(attempt, WEIR_TABLE_TOTALS, 0, &attempt->report.totals,
				   sizeof(attempt->report.totals), diag);
	if (!err)
		err = commit(attempt, diag);
	if (err)
		return err;
	attempt->report.interface = attempt->options->interface ?: "?";
	*ret_report = attempt->report;
	attempt->report = (struct weir_replay_report){};
	return 0;
}

/* As many attempts as it takes for nothing to be evicted. */
static int replay_with_room(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
			    const struct survey *survey, const struct readings *readings, const struct samples *samples,
			    struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	struct weir_replay_sizes sizes = weir_replay_first_sizes(ruleset, survey->packets);
	bool is_retry = false;
	int err;

	for (;; is_retry = true) {
		_cleanup_(attempt_clean) struct attempt attempt = {
			.ruleset = ruleset,
			.options = options,
			.survey = survey,
			.readings = readings,
			.samples = samples,
			.sizes = &sizes,
			.is_retry = is_retry,
		};
		struct weir_replay_evictions evictions = {};

		err = run_attempt(&attempt, &evictions, ret_report, diag);
		if (err != -EAGAIN)
			return err;
		err = weir_replay_grow(&sizes, &evictions, diag);
		if (err)
			return err;
	}
}

/* Rows are per CPU, and the program must stay on the CPU whose rows it fills. */
static int pin_to_this_cpu(cpu_set_t *ret_before, struct weir_diag *diag)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	if (sched_getaffinity(0, sizeof(*ret_before), ret_before) < 0 || sched_setaffinity(0, sizeof(here), &here) < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot stay on one CPU");
	return 0;
}

static void free_readings(struct readings *readings)
{
	free(readings->list);
}

static void free_samples(struct samples *samples)
{
	free(samples->list);
}

int weir_replay(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
		struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	_cleanup_(free_readings) struct readings readings = {};
	_cleanup_(free_samples) struct samples samples = {};
	struct survey survey;
	cpu_set_t before;
	int err = weir_host_check_privilege(diag); /* before the capture is read through */

	if (err)
		return err;
	if (options->memory) {
		err = weir_memory_csv_read(options->memory, &readings.list, &readings.count, diag);
		if (err)
			return err;
	}
	if (options->system) {
		err = weir_system_csv_read(options->system, &samples.list, &samples.count, diag);
		if (err)
			return err;
	}
	err = survey_capture(options, &survey, diag);
	if (err)
		return err;
	err = pin_to_this_cpu(&before, diag);
	if (err)
		return err;
	err = replay_with_room(ruleset, options, &survey, &readings, &samples, ret_report, diag);
	sched_setaffinity(0, sizeof(before), &before);
	return err;
}

void weir_replay_report_free(struct weir_replay_report *report)
{
	free(report->rules);
	free(report->resources);
	weir_replay_limits_free(&report->limits);
	*report = (struct weir_replay_report){};
}
