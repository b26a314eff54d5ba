/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of one attempt to evaluate a capture (replay_run.c). `weir suggest`, which only measures, loads its rules
 * in the same way.
 */
#ifndef WEIR_HARNESS_ATTEMPT_H
#define WEIR_HARNESS_ATTEMPT_H

#include <linux/if_ether.h>
#include <sched.h>

#include "compile/compile.h"
#include "frames/link_type.h"
#include "kind/kind.h"
#include "program/object.h"
#include "program/signals.h"
#include "program/thresholds.h"
#include "harness/replay_run.h"
#include "harness/sizes.h"

/* Large enough for all headers: no IP packet claims more than 65,535 bytes after the longest IPv6 header, Ethernet and
 * two tags, and a longer packet (BIG TCP) has its headers within that range. So the program sees this many bytes, and
 * gets the length separately. The kernel accepts a first buffer and 17 more pages, about 73,000 bytes (6.1 to 6.18).
 */
#define REPLAY_FRAME_BYTES_MAX (ETH_HLEN + 2 * 4 + 40 + 65535)

/* Rows distinguish times until this long after the end of the capture: an interval of a day and a day's ring. */
#define REPLAY_MARGIN_NS (48ull * 3600 * WEIR_NSEC_PER_SEC)

struct weir_survey {
	enum weir_link_type link_type; /* of the first packet */
	bool is_mixed;		       /* others have another one, so no pcap can hold all of them as they are */
	uint64_t packets;
	uint64_t first_ns; /* of the first packet, which need not be the earliest */
	uint64_t earliest_ns, latest_ns;
	bool is_damaged;
};

struct interface_names {
	const char *ours;    /* OUR_IFINDEX: the interface that the capture is said to be from */
	const char **others; /* ifindexes 2, 3, ...: borrowed from the rule set */
	size_t other_count;
};

/* One attempt to replay the whole capture, with tables of given sizes. */
struct weir_attempt {
	const struct weir_ruleset *ruleset;
	const struct weir_replay_run *run;
	const struct weir_survey *survey;
	const struct weir_replay_sizes *sizes;
	bool is_retry;
	struct interface_names interfaces;
	struct weir_image *image;
	struct weir_object *object;
	struct weir_thresholds *thresholds;
	size_t past_readings; /* readings whose time has come */
	struct weir_signals_map *signals;
	size_t past_samples;	 /* samples, likewise */
	uint64_t next_second_ns; /* when the controller has work to do, apart from memory readings */
	uint8_t *frame;		 /* REPLAY_FRAME_BYTES_MAX bytes; the frame, padded to its wire length */
	uint8_t *answer;	 /* ... and what the program has made of it */
	struct weir_replay_report report;
};

/* ---- replay_counters.c ---- */

/* Read the program's totals and add them to those counted in userspace. */
int weir_attempt_read_totals(struct weir_attempt *attempt, struct weir_diag *diag);
int weir_attempt_read_rule_counters(struct weir_attempt *attempt, struct weir_replay_evictions *ret_evictions,
				    struct weir_diag *diag);

/* The state at the end of the capture: at its latest time, even if that is not the last packet's. */
int weir_attempt_read_connections(struct weir_attempt *attempt, struct weir_diag *diag);

/* Likewise. If requests shared a group, their timeouts were counted too late. */
int weir_attempt_read_breakers(struct weir_attempt *attempt, struct weir_replay_evictions *ret_evictions,
			       struct weir_diag *diag);
int weir_attempt_read_resource_counters(struct weir_attempt *attempt, struct weir_diag *diag);

/* Which flows were limited: the program's counts, by rules of the rule set. */
int weir_attempt_read_limited(struct weir_attempt *attempt, struct weir_diag *diag);

/* ---- attempt.c ---- */

void weir_attempt_clean(struct weir_attempt *attempt);

/* Advance to the time of the next packet: run the controller, and let the outputs note what they show of it, even in
 * times without packets.
 */
int weir_attempt_advance(struct weir_attempt *attempt, uint64_t now_ns, struct weir_diag *diag);

/* Rows are per CPU, so the thread must stay on the CPU whose rows it fills; sched_setaffinity() with *ret_before undoes
 * this.
 */
int weir_attempt_stay_on_cpu(cpu_set_t *ret_before, struct weir_diag *diag);
/* Load the rules. weir_attempt_clean() is needed afterwards, whatever this returns. */
int weir_attempt_begin(struct weir_attempt *attempt, struct weir_diag *diag);

/* Count a frame without a complete link header: it cannot be passed to a program, and could not arrive on an interface.
 */
void weir_attempt_evaluate_short_frame(struct weir_attempt *attempt, const struct weir_frame *frame,
				       enum weir_direction direction, struct weir_evaluation *evaluation);
int weir_attempt_evaluate_frame(struct weir_attempt *attempt, const struct weir_ethernet *ethernet, uint64_t time_ns,
				enum weir_direction direction, struct weir_evaluation *evaluation,
				struct weir_diag *diag);

#endif
