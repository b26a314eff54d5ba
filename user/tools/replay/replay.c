// SPDX-License-Identifier: GPL-2.0-only
#include "replay/replay.h"

#include <errno.h>

#include "base/util.h"
#include "files/capture.h"
#include "files/output.h"
#include "harness/attempt.h"
#include "host/host.h"
#include "replay/departures.h"
#include "replay/picture.h"
#include "replay/series_csv.h"
#include "replay/verdict_csv.h"

/* What one attempt writes. */
struct outputs {
	const struct weir_replay_options *options;
	struct weir_verdict_columns columns;
	struct weir_output verdicts;
	struct weir_departures *passed, *answers;
	struct weir_output picture;
	struct weir_replay_plot *plot; /* NULL: not asked for */
};

static int open_plot(struct outputs *outputs, const struct weir_attempt *attempt, struct weir_diag *diag)
{
	int err = weir_output_open(&outputs->picture, outputs->options->plot, diag);

	if (err)
		return err;
	outputs->plot = weir_replay_plot_new(attempt->ruleset, attempt->image, attempt->thresholds,
					     attempt->survey->earliest_ns, attempt->survey->latest_ns);
	return outputs->plot ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot draw '%s'", outputs->options->plot);
}

static int open_outputs(void *data, const struct weir_attempt *attempt, struct weir_diag *diag)
{
	struct outputs *outputs = data;
	int err;

	outputs->columns = (struct weir_verdict_columns){
		.is_wide = outputs->options->verdicts_are_wide,
		.has_direction = attempt->report.shows_direction,
		.has_answer = attempt->image->config.answers,
	};
	if (outputs->options->verdicts) {
		err = weir_output_open(&outputs->verdicts, outputs->options->verdicts, diag);
		if (err)
			return err;
		weir_verdict_csv_begin(outputs->verdicts.stream, outputs->columns);
	}
	if (outputs->options->passed) {
		err = weir_departures_open(outputs->options->passed,
					   attempt->survey->is_mixed ? WEIR_LINK_TYPE_ETHERNET
								     : attempt->survey->link_type,
					   &outputs->passed, diag);
		if (err)
			return err;
	}
	if (outputs->options->answers) {
		err = weir_departures_open(outputs->options->answers, WEIR_LINK_TYPE_ETHERNET, &outputs->answers, diag);
		if (err)
			return err;
	}
	return outputs->options->plot ? open_plot(outputs, attempt, diag) : 0;
}

static uint64_t next_ns(const void *data)
{
	const struct outputs *outputs = data;

	return outputs->plot ? weir_replay_plot_next_ns(outputs->plot) : UINT64_MAX;
}

static void note(void *data)
{
	struct outputs *outputs = data;

	weir_replay_plot_note(outputs->plot);
}

static int take(void *data, const struct weir_attempt *attempt, const struct weir_frame *frame, uint64_t number,
		uint32_t wire_bytes, const struct weir_evaluation *evaluation, struct weir_diag *diag)
{
	struct outputs *outputs = data;
	int err = 0;

	/* A frame that matches no resource, for example because it is too short, is not in the picture. */
	for (uint32_t i = 0; outputs->plot && i < evaluation->resource_count; i++)
		weir_replay_plot_count(outputs->plot, evaluation->resource[i], frame->time_ns, wire_bytes,
				       evaluation->passes);
	if (outputs->verdicts.stream) {
		weir_verdict_csv_write(outputs->verdicts.stream, attempt->ruleset, number, frame->time_ns, evaluation,
				       outputs->columns);
		err = weir_output_check(&outputs->verdicts, diag);
	}
	if (!err && outputs->passed && evaluation->passes)
		err = weir_departures_add(outputs->passed, frame, frame->time_ns + evaluation->wait_ns, diag);
	if (!err && outputs->answers && evaluation->answer) {
		const struct weir_frame answer = {
			.bytes = evaluation->answer_frame,
			.captured_bytes = evaluation->answer_bytes,
			.wire_bytes = evaluation->answer_bytes,
			.time_ns = frame->time_ns,
			.link_type = WEIR_LINK_TYPE_ETHERNET,
		};

		err = weir_departures_add(outputs->answers, &answer, frame->time_ns, diag);
	}
	return err;
}

static int commit(void *data, struct weir_diag *diag)
{
	struct outputs *outputs = data;
	struct weir_output *all[] = {&outputs->verdicts, &outputs->picture, NULL, NULL};
	int err = outputs->passed ? weir_departures_finish(outputs->passed, &all[2], diag) : 0;

	if (!err && outputs->answers)
		err = weir_departures_finish(outputs->answers, &all[3], diag);
	if (err)
		return err;
	if (outputs->plot)
		weir_replay_plot_write(outputs->plot, outputs->picture.stream);
	return weir_outputs_commit(all, ARRAY_SIZE(all), diag);
}

static void close_outputs(void *data)
{
	struct outputs *outputs = data;

	weir_replay_plot_free(outputs->plot);
	weir_output_close(&outputs->verdicts);
	weir_departures_free(outputs->passed);
	weir_departures_free(outputs->answers);
	weir_output_close(&outputs->picture);
	*outputs = (struct outputs){.options = outputs->options};
}

static const struct weir_replay_outputs calls = {open_outputs, next_ns, note, take, commit, close_outputs};

int weir_replay(const struct weir_ruleset *ruleset, const struct weir_replay_options *options,
		struct weir_replay_report *ret_report, struct weir_diag *diag)
{
	struct outputs outputs = {.options = options};
	_cleanup_(weir_freep) struct weir_memory_reading *readings = NULL;
	_cleanup_(weir_freep) struct weir_system_sample *samples = NULL;
	struct weir_replay_run run = options->run;
	int err = weir_host_check_privilege(diag); /* before anything is read */

	run.reads_addresses = options->verdicts_are_wide;
	run.outputs = &calls;
	run.outputs_data = &outputs;
	if (!err && options->memory)
		err = weir_memory_csv_read(options->memory, &readings, &run.reading_count, diag);
	if (!err && options->system)
		err = weir_system_csv_read(options->system, &samples, &run.sample_count, diag);
	if (err)
		return err;
	run.readings = readings;
	run.samples = samples;
	return weir_replay_run(ruleset, &run, ret_report, diag);
}
