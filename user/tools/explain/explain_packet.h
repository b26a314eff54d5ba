/* SPDX-License-Identifier: GPL-2.0-only */
/* The request of weir explain, and the printing of its answer. */
#ifndef WEIR_CMD_EXPLAIN_PACKET_H
#define WEIR_CMD_EXPLAIN_PACKET_H

#include <linux/ip.h>
#include <netdb.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>

#include "cli/print.h"
#include "explain/explain.h"
#include "frames/compose.h"
#include "orders/orders.h"
#include "rules/scalars.h"

struct explain_request {
	const char *instance; /* NULL: not given */
	const char *netns, *interface, *pcap;
	uint64_t packet_number;
	bool wants_json, sets_exit_code;
	int verdict_code; /* with --exit-code */
	const char **files;
	size_t file_count;
	struct weir_packet_words words;
	struct weir_prefix source;
	uint32_t known; /* enum weir_match_field, or-ed */
	uint8_t *frame;
	struct weir_question question;
	char text[512]; /* describes the packet */
	json_t *fields; /* likewise, as JSON */
};

/* ---- explain_packet.c ---- */

int weir_explain_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
int weir_explain_check_described(const struct explain_request *request);
void weir_explain_add_text(struct explain_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int weir_explain_compose(struct explain_request *request);
int weir_explain_read_capture(struct explain_request *request, struct weir_diag *diag);

/* ---- print_explain.c ----
 *
 * An explanation, for people and as JSON. `packet` describes the request: in words, and as fields, which this function
 * takes over. `entry` is the timed entry that decides, or NULL.
 */
void weir_print_explanation(const struct weir_explanation *explanation, const struct weir_timed_order *entry,
			    const char *packet);
json_t *weir_json_explanation(const struct weir_explanation *explanation, const struct weir_timed_order *entry,
			      json_t *packet);

/* The options that set these fields (enum weir_match_field, or-ed): "--dport, --flags". */
const char *weir_format_options(uint32_t fields, char words[WEIR_WORDS_BYTES]);

#endif
