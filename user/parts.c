// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only file that knows all houses. A command, or a library whose version is shown, is a row here; everything else
 * gets these lists (`weir --help`, the nearest name, completion, the man page).
 */
#include "parts.h"

#include <stddef.h>

#include "base/util.h"
#include "cli/command.h"
#include "cluster/cluster_rows.h"
#include "doctor/doctor.h"
#include "explain/explain.h"
#include "host/confine.h"
#include "replay/replay.h"
#include "sentinel/sentinel.h"
#include "serve/serve.h"
#include "store/store.h"
#include "suggest/suggest.h"
#include "top/top.h"
#include "weir/weir.h"

/* In the order of `weir --help`. */
static const struct weir_command_entry *const commands[] = {
	&weir_check_entry,   &weir_run_entry,	   &weir_attach_entry,	&weir_reload_entry,  &weir_diff_entry,
	&weir_confirm_entry, &weir_rollback_entry, &weir_show_entry,	&weir_detach_entry,  &weir_control_entry,
	&weir_status_entry,  &weir_stats_entry,	   &weir_flows_entry,	&weir_top_entry,     &weir_events_entry,
	&weir_explain_entry, &weir_block_entry,	   &weir_allow_entry,	&weir_release_entry, &weir_sets_entry,
	&weir_cluster_entry, &weir_replay_entry,   &weir_suggest_entry, &weir_doctor_entry,  NULL,
};

/* What moves thresholds for reasons outside of a host's packets. */
static const struct weir_calculator *const calculators[] = {&weir_cluster_calculator, NULL};
_Static_assert(ARRAY_SIZE(calculators) <= WEIR_CALCULATORS_MAX + 1, "");

/* Of libraries that a build can leave out. */
static const weir_version_text versions[] = {weir_serve_version, weir_confine_version, weir_store_version, NULL};

void weir_use_parts(void)
{
	weir_use_commands(commands);
	weir_use_versions(versions);
	weir_use_calculators(calculators);
	weir_use_server(&weir_serve_row);
	weir_use_foreign_reader(&weir_sentinel_reader);
}
