/* SPDX-License-Identifier: GPL-2.0-only */
/* One attempt to evaluate a capture (replay.c), in its parts; what only measures (suggest/) loads rules so, too. */
#ifndef WEIR_REPLAY_ATTEMPT_H
#define WEIR_REPLAY_ATTEMPT_H

#include <linux/if_ether.h>
#include <sched.h>

#include "compile/compile.h"
#include "kind/kind.h"
#include "program/object.h"
#include "program/signals.h"
#include "program/thresholds.h"
#include "replay/departures.h"
#include "replay/memory_csv.h"
#include "replay/output.h"
#include "replay/picture.h"
#include "replay/replay.h"
#include "replay/sizes.h"
#include "replay/system_csv.h"
#include "replay/verdict_csv.h"

/* Every header fits: no IP packet states more than 65,535 bytes after the longest IPv6 header, Ethernet and two tags,
 * and what is longer (BIG TCP) has its headers within that. So the program sees this much, and is given the length.
 * The kernel takes a first buffer and 17 more pages, about 73,000 bytes (6.1 to 6.18).
 */
#define REPLAY_FRAME_BYTES_MAX (ETH_HLEN + 2 * 4 + 40 + 65535)

/* Rows distinguish times for this long after the capture's end: an interval of a day and a day's ring. */
#define REPLAY_MARGIN_NS (48ull * 3600 * WEIR_NSEC_PER_SEC)

struct survey {
	enum weir_link_type link_type;
	uint64_t packets;
	uint64_t first_ns; /* of the first packet, which need not be the earliest */
	uint64_t earliest_ns, latest_ns;
	bool is_damaged;
};

struct interface_names {
	const char *ours;    /* OUR_IFINDEX: the one the capture is said to be of */
	const char **others; /* 2, 3, ...: borrowed from the rule set */
	size_t other_count;
};

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

/* ---- replay_counters.c ---- */

/* Added to what userspace has counted itself. */
int weir_attempt_read_totals(struct attempt *attempt, struct weir_diag *diag);
int weir_attempt_read_rule_counters(struct attempt *attempt, struct weir_replay_evictions *ret_evictions,
				    struct weir_diag *diag);

/* At the end of the capture: its latest time, whatever the last packet's was. */
int weir_attempt_read_connections(struct attempt *attempt, struct weir_diag *diag);

/* Likewise. Requests that shared a group were reported too late. */
int weir_attempt_read_breakers(struct attempt *attempt, struct weir_replay_evictions *ret_evictions,
			       struct weir_diag *diag);
int weir_attempt_read_resource_counters(struct attempt *attempt, struct weir_diag *diag);

/* ---- attempt.c ---- */

void weir_attempt_clean(struct attempt *attempt);

/* Before the packet of this time: the controller, and what the picture shows of its work, also where no packet came. */
int weir_attempt_advance(struct attempt *attempt, uint64_t now_ns, struct weir_diag *diag);

/* Rows are per CPU, and the program must stay on the CPU whose rows it fills: sched_setaffinity() undoes it. */
int weir_attempt_stay_on_cpu(cpu_set_t *ret_before, struct weir_diag *diag);
/* Load the rules; weir_attempt_clean() takes it away, whatever it returns. */
int weir_attempt_begin(struct attempt *attempt, struct weir_diag *diag);
int weir_attempt_open_outputs(struct attempt *attempt, struct weir_diag *diag);

/* A frame without a whole link header cannot be handed to a program, nor arrive on an interface. */
void weir_attempt_evaluate_short_frame(struct attempt *attempt, const struct weir_frame *frame,
				       enum weir_direction direction, struct weir_evaluation *evaluation);
int weir_attempt_evaluate_frame(struct attempt *attempt, const struct weir_ethernet *ethernet, uint64_t time_ns,
				enum weir_direction direction, struct weir_evaluation *evaluation,
				struct weir_diag *diag);

struct weir_verdict_columns weir_attempt_columns(const struct attempt *attempt);

#endif
