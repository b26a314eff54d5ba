// SPDX-License-Identifier: GPL-2.0-only
#include "harness/replay_run.h"

#include <errno.h>
#include <sched.h>

#include "base/util.h"
#include "host/host.h"
#include "kind/kind.h"
#include "harness/attempt.h"
#include "files/capture.h"
#include "harness/sizes.h"

#define REPLAY_PROGRESS_PACKETS 65536

static int stopped(const struct weir_replay_run *run, struct weir_diag *diag)
{
	if (!run->stop || !*run->stop)
		return 0;
	weir_diag_fail(diag, EINTR, "no output was written", "replay stopped");
	return -EINTR;
}

/* ---- first pass: the times and sizes in the capture ---- */

static int survey_capture(const struct weir_replay_run *run, struct weir_survey *survey, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	struct weir_frame frame;
	int got, err;

	err = weir_capture_open(run->capture, &capture, diag);
	if (err)
		return err;
	*survey = (struct weir_survey){.earliest_ns = UINT64_MAX};
	while ((got = weir_capture_next(capture, &frame, diag)) > 0) {
		if (survey->packets == 0) {
			survey->first_ns = frame.time_ns;
			survey->link_type = frame.link_type;
		}
		survey->is_mixed |= frame.link_type != survey->link_type ||
				    (frame.link_type == WEIR_LINK_TYPE_NFLOG && frame.is_swapped);
		if (frame.time_ns < survey->earliest_ns)
			survey->earliest_ns = frame.time_ns;
		if (frame.time_ns > survey->latest_ns)
			survey->latest_ns = frame.time_ns;
		if (survey->packets++ % REPLAY_PROGRESS_PACKETS == 0 && (err = stopped(run, diag)))
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

static int evaluate_and_write(struct weir_attempt *attempt, struct weir_frame *frame, uint64_t number,
			      struct weir_diag *diag)
{
	struct weir_evaluation evaluation = {};
	const enum weir_direction direction = weir_frame_direction(frame, attempt->run->direction);
	struct weir_ethernet ethernet;
	uint32_t wire_bytes = 0;
	int err;

	err = weir_attempt_advance(attempt, frame->time_ns, diag);
	if (err)
		return err;
	if (!weir_frame_to_ethernet(frame, &ethernet)) {
		weir_attempt_evaluate_short_frame(attempt, frame, direction, &evaluation);
	} else {
		err = weir_attempt_evaluate_frame(attempt, &ethernet, frame->time_ns, direction, &evaluation, diag);
		if (err)
			return err;
		wire_bytes = ethernet.wire_bytes;
	}
	attempt->report.without_direction += frame->course == WEIR_COURSE_UNKNOWN && !attempt->run->shows_direction;
	attempt->report.cut_frames += frame->captured_bytes < frame->wire_bytes;
	if (attempt->run->outputs)
		return attempt->run->outputs->take(attempt->run->outputs_data, attempt, frame, number, wire_bytes,
						   &evaluation, diag);
	return 0;
}

static int evaluate_capture(struct weir_attempt *attempt, struct weir_diag *diag)
{
	const struct weir_replay_run *run = attempt->run;
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	uint64_t number, total = attempt->survey->packets, started_ns;
	struct weir_frame frame;
	int err;

	err = weir_capture_open(run->capture, &capture, diag);
	if (err)
		return err;
	started_ns = weir_host_now_ns();
	for (number = 1; number <= total; number++) {
		err = weir_capture_next(capture, &frame, diag);
		if (err < 0)
			return err;
		if (err == 0 || (!attempt->survey->is_mixed && frame.link_type != attempt->survey->link_type))
			return weir_diag_fail(diag, EIO, NULL, "capture '%s' changed while it was read", run->capture);
		err = evaluate_and_write(attempt, &frame, number, diag);
		if (err)
			return err;
		if (number % REPLAY_PROGRESS_PACKETS != 0 && number != total)
			continue;
		err = stopped(run, diag);
		if (err)
			return err;
		if (run->progress)
			run->progress(number, total);
	}
	attempt->report.evaluating_ns = weir_host_now_ns() - started_ns;
	return 0;
}

/* Returns 0 with a report, -EAGAIN if an entry was evicted while it still counted, or another -errno. */
static int run_attempt(struct weir_attempt *attempt, struct weir_replay_evictions *ret_evictions,
		       struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	const struct weir_replay_outputs *outputs = attempt->run->outputs;
	int err;

	err = weir_attempt_begin(attempt, diag);
	if (!err && outputs)
		err = outputs->open(attempt->run->outputs_data, attempt, diag);
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
		err = weir_attempt_read_limited(attempt, diag);
	if (!err)
		err = weir_attempt_read_totals(attempt, diag);
	if (!err && outputs)
		err = outputs->commit(attempt->run->outputs_data, diag);
	if (err)
		return err;
	attempt->report.interface = attempt->run->interface ?: "?";
	*ret_report = attempt->report;
	attempt->report = (struct weir_replay_report){};
	return 0;
}

/* Repeat attempts until nothing is evicted. */
static int replay_with_room(const struct weir_ruleset *ruleset, const struct weir_replay_run *run,
			    const struct weir_survey *survey, struct weir_replay_report *ret_report,
			    struct weir_diag *diag)
{
	struct weir_replay_sizes sizes = weir_replay_first_sizes(ruleset, survey->packets);
	bool is_retry = false;
	int err;

	for (;; is_retry = true) {
		_cleanup_(weir_attempt_clean) struct weir_attempt attempt = {
			.ruleset = ruleset,
			.run = run,
			.survey = survey,
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

int weir_replay_run(const struct weir_ruleset *ruleset, const struct weir_replay_run *run,
		    struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	struct weir_survey survey;
	cpu_set_t before;
	int err = weir_host_check_privilege(diag); /* checked before the whole capture is read */

	if (!err)
		err = survey_capture(run, &survey, diag);
	if (!err)
		err = weir_attempt_stay_on_cpu(&before, diag);
	if (err)
		return err;
	err = replay_with_room(ruleset, run, &survey, ret_report, diag);
	sched_setaffinity(0, sizeof(before), &before);
	return err;
}
