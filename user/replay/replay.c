// SPDX-License-Identifier: GPL-2.0-only
#include "replay/replay.h"

#include <errno.h>
#include <sched.h>

#include "base/util.h"
#include "host/host.h"
#include "kind/kind.h"
#include "replay/attempt.h"
#include "replay/capture.h"
#include "replay/departures.h"
#include "replay/memory_csv.h"
#include "replay/output.h"
#include "replay/picture.h"
#include "replay/sizes.h"
#include "replay/system_csv.h"
#include "replay/verdict_csv.h"

#define REPLAY_PROGRESS_PACKETS 65536

static int stopped(const struct weir_replay_options *options, struct weir_diag *diag)
{
	if (!options->stop || !*options->stop)
		return 0;
	weir_diag_fail(diag, EINTR, "no output was written", "replay stopped");
	return -EINTR;
}

/* ---- first pass: the times and sizes in the capture ---- */

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

/* ---- the second pass ---- */

static int evaluate_and_write(struct attempt *attempt, struct weir_frame *frame, uint64_t number,
			      struct weir_diag *diag)
{
	struct weir_evaluation evaluation = {};
	const enum weir_direction direction = weir_frame_direction(frame, attempt->options->direction);
	struct weir_ethernet ethernet;
	int err;

	err = weir_attempt_advance(attempt, frame->time_ns, diag);
	if (err)
		return err;
	if (!weir_frame_to_ethernet(attempt->survey->link_type, frame, &ethernet)) {
		weir_attempt_evaluate_short_frame(attempt, frame, direction, &evaluation);
	} else {
		err = weir_attempt_evaluate_frame(attempt, &ethernet, frame->time_ns, direction, &evaluation, diag);
		if (err)
			return err;
	}
	/* A frame that matches no resource, for example because it is too short, is not in the picture. */
	for (uint32_t i = 0; attempt->plot && i < evaluation.resource_count; i++)
		weir_replay_plot_count(attempt->plot, evaluation.resource[i], frame->time_ns, ethernet.wire_bytes,
				       evaluation.passes);
	attempt->report.cut_frames += frame->captured_bytes < frame->wire_bytes;
	if (attempt->verdicts.stream) {
		weir_verdict_csv_write(attempt->verdicts.stream, attempt->ruleset, number, frame->time_ns, &evaluation,
				       weir_attempt_columns(attempt));
		err = weir_output_check(&attempt->verdicts, diag);
	}
	if (!err && attempt->passed && evaluation.passes)
		err = weir_departures_add(attempt->passed, frame, frame->time_ns + evaluation.wait_ns, diag);
	return err;
}

static int fail_changed(const struct weir_replay_options *options, struct weir_diag *diag)
{
	return weir_diag_fail(diag, EIO, NULL, "capture '%s' changed while it was read", options->capture);
}

static int evaluate_capture(struct attempt *attempt, struct weir_diag *diag)
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
		return fail_changed(options, diag);
	started_ns = weir_host_now_ns();
	for (number = 1; number <= total; number++) {
		err = weir_capture_next(capture, &frame, diag);
		if (err < 0)
			return err;
		if (err == 0)
			return fail_changed(options, diag);
		err = evaluate_and_write(attempt, &frame, number, diag);
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
	attempt->report.evaluating_ns = weir_host_now_ns() - started_ns;
	return 0;
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

/* Returns 0 with a report, -EAGAIN if an entry was evicted while it still counted, or another -errno. */
static int run_attempt(struct attempt *attempt, struct weir_replay_evictions *ret_evictions,
		       struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	int err;

	err = weir_attempt_begin(attempt, diag);
	if (!err)
		err = weir_attempt_open_outputs(attempt, diag);
	if (!err)
		err = evaluate_capture(attempt, diag);
	if (!err)
		err = weir_attempt_read_rule_counters(attempt, ret_evictions, diag);
	if (!err)
		err = weir_attempt_read_breakers(attempt, ret_evictions, diag);
	if (err)
		return err;
	if (ret_evictions->flows || ret_evictions->connections || ret_evictions->shared_groups)
		return -EAGAIN;
	err = weir_attempt_read_resource_counters(attempt, diag);
	if (!err)
		err = weir_attempt_read_connections(attempt, diag);
	if (!err)
		err = weir_replay_read_limited(attempt->object, attempt->image, attempt->survey->latest_ns,
					       &attempt->report.limits, diag);
	if (!err)
		err = weir_attempt_read_totals(attempt, diag);
	if (!err)
		err = commit(attempt, diag);
	if (err)
		return err;
	attempt->report.interface = attempt->options->interface ?: "?";
	*ret_report = attempt->report;
	attempt->report = (struct weir_replay_report){};
	return 0;
}

/* Repeat attempts until nothing is evicted. */
static int replay_with_room(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
			    const struct survey *survey, const struct readings *readings, const struct samples *samples,
			    struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	struct weir_replay_sizes sizes = weir_replay_first_sizes(ruleset, survey->packets);
	bool is_retry = false;
	int err;

	for (;; is_retry = true) {
		_cleanup_(weir_attempt_clean) struct attempt attempt = {
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
	int err = weir_host_check_privilege(diag); /* checked before the whole capture is read */

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
	err = weir_attempt_stay_on_cpu(&before, diag);
	if (err)
		return err;
	err = replay_with_room(ruleset, options, &survey, &readings, &samples, ret_report, diag);
	sched_setaffinity(0, sizeof(before), &before);
	return err;
}
