// SPDX-License-Identifier: GPL-2.0-only
/* One frame under the harness's clock, by BPF_PROG_TEST_RUN. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "program/object.h"
#include "program/object_internal.h"

static int compare_resources(const void *left, const void *right)
{
	const __u16 *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* A page, less the room for the kernel's own structures. The program finds the rest of the frame in the harness. */
#define TC_FRAME_BYTES_MAX 3584

/* Nor does the kernel accept a frame that ends within its IP header (6.18), or right after the Ethernet header (6.1).
 * Such a frame is padded with zeros. The harness has the true length, so the frame is still malformed, or not IP.
 */
#define TC_FRAME_BYTES_MIN (ETH_HLEN + sizeof(struct ipv6hdr))

static void keep(struct weir_harness *harness, const void *frame, __u32 bytes)
{
	harness->kept_bytes = bytes < sizeof(harness->kept) ? bytes : sizeof(harness->kept);
	memcpy(harness->kept, frame, harness->kept_bytes);
}

static void fit_to_tc(const struct weir_object *object, struct bpf_test_run_opts *options,
		      __u8 padded[TC_FRAME_BYTES_MIN])
{
	struct weir_harness *harness = object->harness;
	const struct ethhdr *ethernet = options->data_in;
	const bool is_ip = ethernet->h_proto == htons(ETH_P_IP) || ethernet->h_proto == htons(ETH_P_IPV6);
	const __u32 least = is_ip ? TC_FRAME_BYTES_MIN : ETH_HLEN + 1, bytes = options->data_size_in;

	if (harness)
		harness->kept_bytes = 0;
	if (bytes > TC_FRAME_BYTES_MAX) {
		if (harness)
			keep(harness, options->data_in, bytes);
		options->data_size_in = TC_FRAME_BYTES_MAX;
	} else if (bytes < least) {
		memset(padded, 0, TC_FRAME_BYTES_MIN);
		memcpy(padded, options->data_in, bytes);
		options->data_in = padded;
		options->data_size_in = least;
	}
}

static int run(const struct weir_object *object, enum weir_hook hook, const void *frame, __u32 frame_bytes, __u32 times,
	       void *ret_answer, __u32 *answer_bytes)
{
	const bool is_xdp = hook == WEIR_HOOK_XDP;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = frame_bytes, .repeat = (int)times,
		    .data_out = ret_answer, .data_size_out = ret_answer ? *answer_bytes : 0);
	__u8 padded[TC_FRAME_BYTES_MIN];
	int err;

	if (!is_xdp)
		fit_to_tc(object, &options, padded);
	err = bpf_prog_test_run_opts(weir_object_hook_fd(object, hook), &options);
	if (err)
		return err;
	/* The program lists the resources in no particular order. */
	if (object->harness)
		qsort(object->harness->resource, object->harness->resource_count, sizeof(object->harness->resource[0]),
		      compare_resources);
	if (ret_answer)
		*answer_bytes = options.data_size_out;
	if (is_xdp)
		return (int)options.retval;
	return options.retval == TC_ACT_SHOT ? XDP_DROP : options.retval == TC_ACT_REDIRECT ? XDP_TX : XDP_PASS;
}

int weir_object_evaluate_at(const struct weir_object *object, enum weir_hook hook, const void *frame, __u32 frame_bytes,
			    __u32 times)
{
	return run(object, hook, frame, frame_bytes, times, NULL, NULL);
}

int weir_object_answer_at(const struct weir_object *object, enum weir_hook hook, const void *frame, __u32 frame_bytes,
			  void *ret_answer, __u32 *answer_bytes)
{
	return run(object, hook, frame, frame_bytes, 1, ret_answer, answer_bytes);
}

int weir_object_evaluate(const struct weir_object *object, const void *frame, __u32 frame_bytes)
{
	return weir_object_evaluate_at(object, WEIR_HOOK_XDP, frame, frame_bytes, 1);
}
