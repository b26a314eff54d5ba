// SPDX-License-Identifier: GPL-2.0-only
/* One attempt at a capture: packet by packet, with the controller running in the capture's time. */
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <string.h>

#include "base/util.h"
#include "compile/compile.h"
#include "host/host.h"
#include "kind/kind.h"
#include "program/object.h"
#include "program/signals.h"
#include "program/thresholds.h"
#include "harness/attempt.h"

/* ---- the interface for match.interface ---- */

#define OUR_IFINDEX 1

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

/* ---- the pass that evaluates ---- */

void weir_attempt_clean(struct weir_attempt *attempt)
{
	free(attempt->interfaces.others);
	if (attempt->run->outputs)
		attempt->run->outputs->close(attempt->run->outputs_data);
	weir_thresholds_free(attempt->thresholds);
	weir_signals_close(attempt->signals);
	weir_object_free(attempt->object);
	weir_image_free(attempt->image);
	free(attempt->frame);
	free(attempt->answer);
	weir_replay_report_free(&attempt->report);
}

static int check_memory(const struct weir_image *image, uint32_t cpus, struct weir_diag *diag)
{
	struct weir_image_memory memory;
	uint64_t free_bytes;

	weir_image_memory(image, cpus, &memory);
	if (weir_host_has_memory(memory.total, &free_bytes))
		return 0;
	return weir_diag_fail(diag, ENOMEM, "replay a shorter part of the capture, or use a machine with more memory",
			      "tables for every flow of the capture need %" PRIu64 " MB, and %" PRIu64
			      " MB are free, of which a sixteenth must stay free",
			      (uint64_t)memory.total / 1000000, free_bytes / 1000000);
}

/* ---- the controller, in the capture's time ---- */

static int open_thresholds(struct weir_attempt *attempt, struct weir_diag *diag)
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

/* The memory in use, from the readings whose time has come. */
static struct weir_memory_use memory_use(const struct weir_attempt *attempt)
{
	struct weir_memory_use memory = {.holds_until_ns = UINT64_MAX};

	if (attempt->past_readings) {
		memory.is_known = true;
		memory.used_bytes = attempt->run->readings[attempt->past_readings - 1].used_bytes;
	}
	return memory;
}

/* A reading is valid from its own time on. If the clock of a packet went back, an earlier reading may be valid again.
 */
static int pass_readings(struct weir_attempt *attempt, uint64_t now_ns, bool *ret_passes)
{
	const struct weir_memory_reading *list = attempt->run->readings;
	size_t before = attempt->past_readings;
	struct weir_memory_use memory;
	int err = 0;

	while (!err && attempt->past_readings < attempt->run->reading_count &&
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

/* Do what the controller would do at this time. Most packets arrive in the same second as the one before, with the same
 * memory in use; then there is nothing to do.
 */
static int control(struct weir_attempt *attempt, uint64_t now_ns, struct weir_diag *diag)
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

/* The same for samples of load and CPU usage. */
static void publish_sample(struct weir_attempt *attempt, uint64_t now_ns)
{
	const struct weir_system_sample *samples = attempt->run->samples;
	const size_t count = attempt->run->sample_count;
	struct weir_signals signals = {};
	size_t before = attempt->past_samples;

	while (attempt->past_samples < count && samples[attempt->past_samples].time_ns <= now_ns)
		attempt->past_samples++;
	while (attempt->past_samples > 0 && samples[attempt->past_samples - 1].time_ns > now_ns)
		attempt->past_samples--;
	if (attempt->past_samples == before)
		return;
	if (attempt->past_samples) {
		const struct weir_system_sample *sample = &samples[attempt->past_samples - 1];

		signals =
			(struct weir_signals){sample->time_ns, sample->load1_micro, sample->time_ns, sample->cpu_micro};
	}
	weir_signals_publish(attempt->signals, &signals);
}

int weir_attempt_advance(struct weir_attempt *attempt, uint64_t now_ns, struct weir_diag *diag)
{
	const struct weir_replay_outputs *outputs = attempt->run->outputs;

	while (outputs && outputs->next_ns(attempt->run->outputs_data) <= now_ns) {
		int err = control(attempt, outputs->next_ns(attempt->run->outputs_data), diag);

		if (err)
			return err;
		outputs->note(attempt->run->outputs_data);
	}
	publish_sample(attempt, now_ns);
	return control(attempt, now_ns, diag);
}

static int load_rules(struct weir_attempt *attempt, struct weir_diag *diag)
{
	struct weir_object_options object_options = {
		.is_virtual = true,
		.now_ns = attempt->survey->first_ns,
		.hooks = attempt->run->is_at_tc ? 1u << WEIR_HOOK_TC_IN : 0,
		.without_shortcuts = attempt->run->is_without_shortcuts ? WEIR_SHORTCUTS_ALL : 0,
	};
	struct weir_ruleset roomy = *attempt->ruleset;
	struct weir_compile_options options = {
		.is_at_tc = attempt->run->is_at_tc,
		.now_ns = attempt->survey->earliest_ns,
		.span_ns = attempt->survey->latest_ns - attempt->survey->earliest_ns + REPLAY_MARGIN_NS,
		.ifindex = replay_ifindex,
		.ifindex_data = &attempt->interfaces,
	};
	struct weir_diag again = {};
	int cpus, err;

	cpus = weir_host_cpus();
	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot find out how many CPUs there are");
	options.cpus = cpus;
	attempt->interfaces.ours = attempt->run->interface;
	roomy.settings.observes = false; /* replay is meant to show what would be dropped */
	roomy.settings.flows_per_cpu = attempt->sizes->rows;
	roomy.settings.connections = attempt->sizes->connections;
	roomy.settings.connection_flows = attempt->sizes->connection_flows;
	roomy.settings.ring_groups = attempt->sizes->ring_groups;
	/* The first attempt has given the warnings; since then only the sizes of tables have changed. */
	err = weir_image_build(&roomy, &options, &attempt->image, attempt->is_retry ? &again : diag);
	weir_diag_free(&again);
	if (!err && attempt->interfaces.ours &&
	    weir_image_add_interface(attempt->image, attempt->interfaces.ours, OUR_IFINDEX))
		err = weir_diag_fail(diag, ENOMEM, NULL, "cannot compile the rules");
	if (!err)
		err = check_memory(attempt->image, cpus, diag);
	if (err)
		return err;
	/* Fields that are reported must be parsed, even if no rule needs them. */
	if (attempt->run->reads_addresses)
		attempt->image->config.asked_fields |= WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION |
						       WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_DESTINATION_PORT;
	attempt->report.shows_direction = attempt->run->shows_direction || attempt->image->config.limits_out;
	err = weir_object_load(attempt->image, &object_options, &attempt->object, diag);
	if (!err)
		err = open_thresholds(attempt, diag);
	if (!err)
		err = weir_signals_open(weir_object_map_fd(attempt->object, WEIR_TABLE_SIGNALS), &attempt->signals,
					diag);
	return err == -EINVAL ? -EIO : err; /* the kernel's verdict, not a mistake in the rules */
}

int weir_attempt_begin(struct weir_attempt *attempt, struct weir_diag *diag)
{
	const struct weir_ruleset *ruleset = attempt->ruleset;

	attempt->frame = malloc(REPLAY_FRAME_BYTES_MAX);
	attempt->answer = malloc(REPLAY_FRAME_BYTES_MAX);
	attempt->report.rules = calloc(ruleset->rule_count + 1, sizeof(*attempt->report.rules));
	attempt->report.resources = calloc(ruleset->resource_count + 1, sizeof(*attempt->report.resources));
	if (!attempt->frame || !attempt->answer || !attempt->report.rules || !attempt->report.resources)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot replay");
	attempt->report.earliest_ns = attempt->survey->earliest_ns;
	attempt->report.latest_ns = attempt->survey->latest_ns;
	attempt->report.is_damaged = attempt->survey->is_damaged;
	attempt->report.flows_per_cpu = attempt->sizes->rows;
	return load_rules(attempt, diag);
}

int weir_attempt_stay_on_cpu(cpu_set_t *ret_before, struct weir_diag *diag)
{
	cpu_set_t here;
	int cpu = sched_getcpu();

	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	if (sched_getaffinity(0, sizeof(*ret_before), ret_before) < 0 || sched_setaffinity(0, sizeof(here), &here) < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot stay on one CPU");
	return 0;
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

static void add_packet(struct weir_tally *tally, uint32_t bytes)
{
	tally->packets++;
	tally->bytes += bytes;
}

/* Count a packet that no program sees. */
static void count_unseen(struct weir_attempt *attempt, uint32_t bytes, const struct weir_evaluation *evaluation)
{
	add_packet(&attempt->report.totals.verdict[evaluation->verdict], bytes);
	if (evaluation->direction != WEIR_DIRECTION_IN)
		add_packet(&attempt->report.out, bytes);
}

void weir_attempt_evaluate_short_frame(struct weir_attempt *attempt, const struct weir_frame *frame,
				       enum weir_direction direction, struct weir_evaluation *evaluation)
{
	const bool drops = attempt->ruleset->settings.drop_malformed && direction == WEIR_DIRECTION_IN;

	*evaluation = (struct weir_evaluation){
		.direction = direction,
		.verdict = drops ? WEIR_VERDICT_MALFORMED_DROP : WEIR_VERDICT_MALFORMED_PASS,
		.passes = !drops,
		.rule = drops ? "malformed" : "",
	};
	count_unseen(attempt, frame->wire_bytes, evaluation);
}

/* Restore the frame's length on the wire; bytes that were cut off are zeros. */
static uint32_t pad_frame(struct weir_attempt *attempt, const struct weir_ethernet *ethernet)
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

/* A sender's own capture shows packets that its card will segment, whose IP length is 0: outgoing, they are evaluated
 * by the frame's length. To a receiver they are malformed, which the report says.
 */
static void complete_length(struct weir_attempt *attempt, const struct weir_ethernet *ethernet,
			    enum weir_direction direction)
{
	const uint32_t captured = ETH_HLEN + ethernet->payload_bytes;
	uint16_t length;

	if (direction == WEIR_DIRECTION_OUT)
		weir_complete_length(attempt->frame, captured, ethernet->wire_bytes);
	else if (weir_find_zero_length(attempt->frame, captured, ethernet->wire_bytes, &length))
		attempt->report.zero_lengths++;
}

/* Did the program parse the packet, as far as the rules need it? */
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

/* The hook whose program evaluates such a packet. WEIR_HOOKS: none, since no rule is for outgoing packets. */
static enum weir_hook hook_of(const struct weir_attempt *attempt, enum weir_direction direction)
{
	if (direction == WEIR_DIRECTION_IN)
		return attempt->run->is_at_tc ? WEIR_HOOK_TC_IN : WEIR_HOOK_XDP;
	return attempt->image->config.limits_out ? WEIR_HOOK_TC_OUT : WEIR_HOOKS;
}

int weir_attempt_evaluate_frame(struct weir_attempt *attempt, const struct weir_ethernet *ethernet, uint64_t time_ns,
				enum weir_direction direction, struct weir_evaluation *evaluation,
				struct weir_diag *diag)
{
	volatile struct weir_harness *harness = weir_object_harness(attempt->object);
	const enum weir_hook hook = hook_of(attempt, direction);
	uint32_t i, bytes;
	int action;

	*evaluation = (struct weir_evaluation){
		.direction = direction, .verdict = WEIR_VERDICT_UNMATCHED_PASS, .passes = true, .rule = ""};
	if (hook == WEIR_HOOKS) {
		harness->flow_count = 0;
		count_unseen(attempt, ethernet->wire_bytes, evaluation);
		return 0;
	}
	harness->clock_ns = time_ns;
	harness->frame_bytes = ethernet->wire_bytes;
	harness->known_bytes = ETH_HLEN + ethernet->payload_bytes;
	harness->ifindex = attempt->run->interface ? 1 : 0;
	bytes = pad_frame(attempt, ethernet);
	complete_length(attempt, ethernet, direction);
	harness->wants_answer = attempt->image->config.answers ? WEIR_WANTS_SUPPOSED_ANSWER : 0;
	evaluation->answer_bytes = REPLAY_FRAME_BYTES_MAX;
	action = harness->wants_answer ? weir_object_answer_at(attempt->object, hook, attempt->frame, bytes,
							       attempt->answer, &evaluation->answer_bytes)
				       : weir_object_evaluate_at(attempt->object, hook, attempt->frame, bytes, 1);
	if (action < 0)
		return weir_diag_fail(diag, -action, NULL, "the kernel did not run the program");

	if (action == XDP_TX) {
		evaluation->answer = harness->answer;
		evaluation->answer_frame = attempt->answer;
	}
	evaluation->verdict = harness->verdict;
	evaluation->passes = action == XDP_PASS;
	evaluation->has_packet = is_of_packet(harness->verdict);
	evaluation->has_ports = harness->has_ports;
	evaluation->packet = *(const struct weir_flow_key *)(uintptr_t)&harness->packet;
	evaluation->wait_ns = harness->wait_ns;
	evaluation->resource_count = harness->resource_count;
	for (i = 0; i < harness->resource_count && i < WEIR_PACKET_RESOURCES_MAX; i++)
		evaluation->resource[i] = harness->resource[i];
	evaluation->rule = evaluation->passes ? "" : dropped_by(attempt->ruleset, harness->verdict, harness->rule);
	if (!evaluation->rule)
		return weir_diag_fail(diag, EIO, "this is a bug in weir, please report it",
				      "the program dropped a packet without a reason (verdict %u)", harness->verdict);
	return 0;
}
