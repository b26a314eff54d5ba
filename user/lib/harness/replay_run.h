/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room harness: runs the program on the frames of a capture instead of an interface, in the capture's own time, with
 * tables that forget nothing (sizes.h). Never touches an interface or a running weir.
 */
#ifndef WEIR_HARNESS_REPLAY_RUN_H
#define WEIR_HARNESS_REPLAY_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "compile/compile.h"
#include "program/top_drops.h"
#include "rules/ruleset.h"
#include "tables/connection_counts.h"
#include "tables/entry_state.h"
#include "tables/labels.h"
#include "weir_abi.h"
#include "weir_hook.h"

/* A reading is valid from time_ns on, inclusive. */
struct weir_memory_reading {
	uint64_t time_ns;
	uint64_t used_bytes;
};

/* A sample is valid from time_ns on, inclusive. Values are in millionths, rounded up: since a triggerCount has at most
 * six decimals, a sample then exceeds it if and only if the written value does.
 */
struct weir_system_sample {
	uint64_t time_ns;
	uint64_t load1_micro, cpu_micro;
};

/* The verdict on one frame. */
struct weir_evaluation {
	enum weir_direction direction;
	enum weir_verdict verdict;
	bool passes;
	uint64_t wait_ns;
	const char *rule;
	uint32_t resource_count;
	uint16_t resource[WEIR_PACKET_RESOURCES_MAX];
	bool has_packet; /* it is an IP packet, and `packet` is set */
	bool has_ports;	 /* and so are its ports */
	struct weir_flow_key packet;
	enum weir_on_block answer; /* to a packet that a rule blocked; and the Ethernet frame, while it is evaluated */
	const uint8_t *answer_frame;
	uint32_t answer_bytes;
};

struct weir_attempt;
struct weir_frame;

/* What is made of the packets, besides the report. A run may take several attempts, each from the start of the capture:
 * close() ends one, and removes what was not committed. Every function may be NULL.
 */
struct weir_replay_outputs {
	int (*open)(void *data, const struct weir_attempt *attempt, struct weir_diag *diag);
	/* note() is called at this time of the capture, once the controller has done its work up to it. UINT64_MAX:
	 * never again.
	 */
	uint64_t (*next_ns)(const void *data);
	void (*note)(void *data);
	/* The packet of this number, from 1. wire_bytes: of the Ethernet frame; 0: it has no complete link header. */
	int (*take)(void *data, const struct weir_attempt *attempt, const struct weir_frame *frame, uint64_t number,
		    uint32_t wire_bytes, const struct weir_evaluation *evaluation, struct weir_diag *diag);
	int (*commit)(void *data, struct weir_diag *diag);
	void (*close)(void *data);
};

struct weir_replay_run {
	const char *capture;			    /* pcap or pcapng file */
	const struct weir_memory_reading *readings; /* memory in use, over time; none: it is unknown */
	size_t reading_count;
	const struct weir_system_sample *samples; /* load and CPU usage, over time; none: they are unknown */
	size_t sample_count;
	/* The name that match.interface is compared with; NULL: no interface matches. */
	const char *interface;
	enum weir_direction direction;	   /* for packets whose direction the capture does not record */
	bool shows_direction;		   /* ... and report.shows_direction, even if no rule is for outgoing packets */
	bool reads_addresses;		   /* the program reads addresses and ports, even if no rule needs them */
	bool is_at_tc;			   /* incoming packets are evaluated at tc, not by XDP: the same verdicts */
	bool is_without_shortcuts;	   /* evaluate without shortcuts: the same verdicts, more slowly */
	const volatile sig_atomic_t *stop; /* set when the user asks to stop; NULL: never */
	/* Called from time to time, and at the end with done == total; NULL: never. */
	void (*progress)(uint64_t done, uint64_t total);
	const struct weir_replay_outputs *outputs; /* NULL: none */
	void *outputs_data;
};

struct weir_replay_rule {
	struct weir_tally blocked, would_drop;
	uint64_t penalties;			    /* penalties that began */
	uint64_t delayed, delay_ns;		    /* packets that throttling delayed, and the sum of their waits */
	struct weir_connection_figures connections; /* at latest_ns; zeros if the rule does not count them */
	struct weir_breaker_sum breaker;	    /* likewise, if the rule is a circuit breaker */
};

struct weir_replay_resource {
	struct weir_tally passed, blocked;
};

/* A flow that lost packets, or would have lost some under a rule that observes. */
struct weir_replay_limited {
	struct weir_dropped_flow dropped;
	struct weir_rule_identity identity; /* of its rule: defines the fields of the key */
	uint32_t rule;			    /* index in the rule set */
};

#define WEIR_REPLAY_LIMITED_MAX 10000u /* most flows that are reported; chosen, not derived */

struct weir_replay_limits {
	struct weir_replay_limited *most; /* those that lost the most packets first */
	size_t count;
	struct weir_key_labels *labels; /* of flow keys; NULL: none has a set */
	uint64_t flows;			/* number of flows that are known */
	uint64_t missed;		/* no flow that is not known lost more packets than this */
};

/* The result of a replay. Arrays are by index in the rule set. */
struct weir_replay_report {
	uint64_t earliest_ns, latest_ns; /* of the capture; 0 if it is empty */
	struct weir_totals totals;	 /* including frames too short for the program */
	struct weir_tally out;		 /* the outgoing part of these */
	struct weir_replay_rule *rules;
	struct weir_replay_resource *resources;
	struct weir_replay_limits limits;
	const char *interface; /* in flow keys: the name from the options, or "?" */
	uint64_t cut_frames;   /* truncated by the capture; evaluated with zeros in place of the rest */
	uint64_t zero_lengths; /* incoming packets whose IP length is 0, as a sender's segmentation offload leaves it */
	uint64_t without_direction; /* packets whose direction neither the capture nor the options say: incoming */
	uint64_t evaluating_ns;	    /* wall time of the pass that evaluates */
	uint32_t flows_per_cpu;	    /* rows of the flow table that was large enough */
	bool shows_direction;	    /* some rule is for outgoing packets, or the options ask for it */
	/* The capture is truncated or damaged; *diag says where. Everything before that was evaluated. */
	bool is_damaged;
};

/*
 * Run the program on run->capture. On success the caller owns *ret_report (weir_replay_report_free) and the outputs are
 * committed; a damaged capture is a success with is_damaged. -EINVAL: the rule set is wrong; -EINTR: the user stopped
 * it. While it runs, the thread is bound to one CPU.
 */
int weir_replay_run(const struct weir_ruleset *ruleset, const struct weir_replay_run *run,
		    struct weir_replay_report *ret_report, struct weir_diag *diag);
void weir_replay_report_free(struct weir_replay_report *report);

#endif
