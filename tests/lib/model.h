/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reference model: what must become of each packet, worked out the slow and obvious way from the
 * words of SEMANTICS and DESIGN (sections 3 to 5). It is what the BPF program is compared with, so it
 * shares nothing with it: no header of bpf/, no arithmetic of weir_window.h, no compiled image. Rules
 * are tried one by one, flows are found by their whole key, windows are sums over what was admitted.
 * One CPU, no table that could be full, no lease, no cache.
 */
#ifndef WEIR_TEST_MODEL_H
#define WEIR_TEST_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "ruleset.h"
#include "weir_abi.h"

struct model;

struct model_decision {
	enum weir_verdict verdict;
	const char *rule; /* as in replay's CSV: the rule that dropped it or the class's word; "" when it passed */
	uint64_t wait_ns; /* 0: no rule asks for a delay yet */
	size_t resource_count;
	size_t resource[WEIR_PACKET_RESOURCES_MAX]; /* places in the rule set, ascending */
};

/* Interface number for a name of match.interface; 0: no such interface, matches nothing. */
typedef uint32_t (*model_ifindex)(const char *name);

/* The rule set must outlive the model. `ifindex` NULL: no condition on an interface ever holds. */
struct model *model_new(const struct weir_ruleset *ruleset, model_ifindex ifindex);
void model_free(struct model *model);

/* Judge one frame of frame_bytes, all of them given, seen at time_ns on interface `ifindex`. */
struct model_decision model_judge(struct model *model, uint64_t time_ns, const uint8_t *frame, size_t frame_bytes,
				  uint32_t ifindex);

/* Packets so far that an observing rule (its place in the rule set) would have dropped. */
uint64_t model_would_drop(const struct model *model, size_t rule);

#endif
