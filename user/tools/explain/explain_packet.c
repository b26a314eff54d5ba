// SPDX-License-Identifier: GPL-2.0-only
/* The packet that weir explain evaluates: described by options, or taken from a capture. */
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"
#include "explain/explain_packet.h"
#include "frames/compose.h"
#include "frames/link_type.h"
#include "cli/print.h"
#include "files/capture.h"
#include "rules/scalars.h"

int weir_explain_wrong(const char *format, ...)
{
	va_list args;

	fputs("weir explain: ", stderr);
	va_start(args, format);
	weir_print_clean(stderr, format, args);
	va_end(args);
	fputs("\n'weir explain --help' shows options and an example\n", stderr);
	return -EINVAL;
}

/* ---- a packet described by options ---- */

static bool has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_UDPLITE || protocol == IPPROTO_DCCP;
}

static bool has_icmp_type(uint8_t protocol)
{
	return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
}

/* A question about TCP usually means whether a connection can be opened: packets of an open connection pass most
 * limits, so 'admits' would be a useless answer.
 */
static void assume_opening(struct explain_request *request)
{
	if (!(request->known & WEIR_MATCH_KIND) || request->words.protocol != IPPROTO_TCP ||
	    request->known & WEIR_MATCH_TCP_FLAGS)
		return;
	request->words.tcp_flags = TH_SYN;
	request->known |= WEIR_MATCH_TCP_FLAGS;
	request->question.is_new = !(request->known & WEIR_MATCH_SOURCE_PORT);
}

/* The protocol determines which other fields the packet has. Unusual tags or code points would have been given. */
static void complete(struct explain_request *request)
{
	const uint8_t protocol = request->words.protocol;

	if (!(request->known & WEIR_MATCH_KIND)) {
		request->words.protocol = IPPROTO_UDP; /* this header has all the fields; the protocol is not printed */
		return;
	}
	request->known |= WEIR_MATCH_VLAN | WEIR_MATCH_DSCP;
	if (!has_ports(protocol))
		request->known |= WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_DESTINATION_PORT;
	if (protocol != IPPROTO_TCP)
		request->known |= WEIR_MATCH_TCP_FLAGS;
	if (!has_icmp_type(protocol))
		request->known |= WEIR_MATCH_ICMP_TYPE;
}

int weir_explain_check_described(const struct explain_request *request)
{
	const uint32_t known = request->known;
	const uint8_t protocol = request->words.protocol;

	if (request->packet_number)
		return weir_explain_wrong("--packet needs --pcap FILE");
	if (!(known & WEIR_MATCH_SOURCE) && request->question.direction == WEIR_DIRECTION_IN)
		return weir_explain_wrong("no packet given: write at least its source ADDRESS, or '--pcap FILE'");
	if (!(known & (WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION)))
		return weir_explain_wrong("no packet given: write at least --dst or --src, or '--pcap FILE'");
	if (!(known & WEIR_MATCH_KIND))
		return 0;
	if (known & (WEIR_MATCH_SOURCE_PORT | WEIR_MATCH_DESTINATION_PORT) && !has_ports(protocol))
		return weir_explain_wrong("--sport and --dport: this protocol has no ports");
	if (known & WEIR_MATCH_TCP_FLAGS && protocol != IPPROTO_TCP)
		return weir_explain_wrong("--flags needs '--proto tcp'");
	if (known & WEIR_MATCH_ICMP_TYPE && !has_icmp_type(protocol))
		return weir_explain_wrong("--icmp-type needs '--proto icmp' or '--proto icmpv6'");
	return 0;
}

static void describe_address(const struct explain_request *request, const char *name, const uint8_t address[16],
			     char text[WEIR_PREFIX_TEXT_BYTES])
{
	struct weir_prefix prefix = {.family = request->words.family, .bits = request->words.family == 6 ? 128 : 32};

	memcpy(prefix.address, address, sizeof(prefix.address));
	weir_format_prefix(&prefix, text);
	json_object_set_new(request->fields, name, json_string(text));
}

void weir_explain_add_text(struct explain_request *request, const char *format, ...)
{
	const size_t used = strlen(request->text);
	va_list args;

	va_start(args, format);
	vsnprintf(request->text + used, sizeof(request->text) - used, format, args);
	va_end(args);
	weir_make_printable(request->text + used, "");
}

static void add_number(struct explain_request *request, uint32_t said, uint32_t field, const char *name,
		       const char *before, unsigned int number)
{
	if (!(said & field))
		return;
	weir_explain_add_text(request, "%s%u", before, number);
	json_object_set_new(request->fields, name, json_integer(number));
}

static void describe_flags(struct explain_request *request)
{
	json_t *flags = json_array();

	for (int bit = 0; bit < WEIR_TCP_FLAG_COUNT; bit++) {
		if (!(request->words.tcp_flags >> bit & 1))
			continue;
		weir_explain_add_text(request, "%s%s", json_array_size(flags) ? "," : ", ", weir_tcp_flag_names[bit]);
		weir_json_append(&flags, json_string(weir_tcp_flag_names[bit]));
	}
	json_object_set_new(request->fields, "tcpFlags", flags);
}

/* Describe in words what was given, but not what was derived from it. */
static void describe(struct explain_request *request, uint32_t said)
{
	const char *protocol = weir_protocol_name(request->words.protocol);
	char text[WEIR_PREFIX_TEXT_BYTES];

	if (said & WEIR_MATCH_KIND && protocol) {
		weir_explain_add_text(request, "%s ", protocol);
		json_object_set_new(request->fields, "protocol", json_string(protocol));
	} else if (said & WEIR_MATCH_KIND) {
		weir_explain_add_text(request, "protocol %u ", request->words.protocol);
		json_object_set_new(request->fields, "protocol", json_integer(request->words.protocol));
	}
	if (said & WEIR_MATCH_SOURCE) {
		describe_address(request, "source", request->words.source, text);
		weir_explain_add_text(request, "from %s", text);
	}
	add_number(request, said, WEIR_MATCH_SOURCE_PORT, "sourcePort",
		   said & WEIR_MATCH_SOURCE ? " port " : "from port ", request->words.source_port);
	if (said & WEIR_MATCH_DESTINATION) {
		describe_address(request, "destination", request->words.destination, text);
		weir_explain_add_text(request, "%sto %s",
				      said & (WEIR_MATCH_SOURCE | WEIR_MATCH_SOURCE_PORT) ? " " : "", text);
	}
	add_number(request, said, WEIR_MATCH_DESTINATION_PORT, "destinationPort",
		   said & WEIR_MATCH_DESTINATION ? " port " : " to port ", request->words.destination_port);
	if (said & WEIR_MATCH_TCP_FLAGS)
		describe_flags(request);
	add_number(request, said, WEIR_MATCH_ICMP_TYPE, "icmpType", ", type ", request->words.icmp_type);
	add_number(request, said, WEIR_MATCH_VLAN, "vlan", ", VLAN ", request->words.vlan);
	add_number(request, said, WEIR_MATCH_DSCP, "dscp", ", DSCP ", request->words.dscp);
	add_number(request, said, WEIR_MATCH_TTL, "ttl", ", TTL ", request->words.ttl);
	add_number(request, ~0u, 1, "length", ", ", request->question.wire_bytes);
	weir_explain_add_text(request, " bytes");
	add_number(request, said, WEIR_MATCH_IP_LENGTH, "ipLength", ", IP length ", request->words.ip_bytes);
}

static int refuse_length(struct weir_packet_words words)
{
	const uint32_t ip_bytes = words.ip_bytes, frame_bytes = weir_shortest_frame(&words);
	uint32_t shortest;

	words.ip_bytes = 0;
	words.has_vlan = false;
	shortest = weir_shortest_frame(&words) - ETH_HLEN;
	if (ip_bytes && ip_bytes < shortest)
		return weir_explain_wrong("--ip-length: such a packet takes at least %u bytes", shortest);
	return weir_explain_wrong("--length: such a packet takes at least %u bytes", frame_bytes);
}

int weir_explain_compose(struct explain_request *request)
{
	uint32_t said, bytes;

	assume_opening(request);
	said = request->known;
	complete(request);
	bytes = weir_compose_frame(&request->words, request->frame);
	if (!bytes)
		return refuse_length(request->words);
	/* No card pads a longer frame. */
	if (bytes > ETH_ZLEN && request->known & (WEIR_MATCH_LENGTH | WEIR_MATCH_IP_LENGTH))
		request->known |= WEIR_MATCH_LENGTH | WEIR_MATCH_IP_LENGTH;
	request->question.frame_bytes = request->question.wire_bytes = bytes;
	describe(request, said);
	return 0;
}

/* ---- a packet from a capture ---- */

static int take_frame(struct explain_request *request, const struct weir_frame *frame, struct weir_diag *diag)
{
	struct weir_ethernet ethernet;
	uint32_t bytes;

	if (!weir_frame_to_ethernet(frame, &ethernet))
		return weir_diag_error(diag, NULL, NULL, NULL, "packet %llu of '%s' has an incomplete link header",
				       (unsigned long long)request->packet_number, request->pcap);
	/* As in replay, bytes that were cut off are zeros. */
	bytes = ethernet.wire_bytes < WEIR_COMPOSED_BYTES_MAX ? ethernet.wire_bytes : WEIR_COMPOSED_BYTES_MAX;
	memset(request->frame, 0, bytes);
	memcpy(request->frame, &ethernet.header, ETH_HLEN);
	memcpy(request->frame + ETH_HLEN, ethernet.payload,
	       ethernet.payload_bytes < bytes - ETH_HLEN ? ethernet.payload_bytes : bytes - ETH_HLEN);
	request->question.frame_bytes = bytes;
	request->question.wire_bytes = ethernet.wire_bytes;
	request->known = WEIR_MATCH_ALL & ~WEIR_MATCH_INTERFACE;
	request->question.direction = weir_frame_direction(frame, request->question.direction);
	if (request->question.direction == WEIR_DIRECTION_OUT)
		weir_complete_length(request->frame,
				     bytes < ETH_HLEN + ethernet.payload_bytes ? bytes
									       : ETH_HLEN + ethernet.payload_bytes,
				     ethernet.wire_bytes);
	weir_explain_add_text(request, "packet %llu of %s, %u bytes", (unsigned long long)request->packet_number,
			      request->pcap, ethernet.wire_bytes);
	json_object_set_new(request->fields, "pcap", weir_json_text(request->pcap));
	json_object_set_new(request->fields, "number", json_integer(request->packet_number));
	json_object_set_new(request->fields, "length", json_integer(ethernet.wire_bytes));
	return 0;
}

int weir_explain_read_capture(struct explain_request *request, struct weir_diag *diag)
{
	_cleanup_(weir_capture_closep) struct weir_capture *capture = NULL;
	struct weir_frame frame;
	int got = weir_capture_open(request->pcap, &capture, diag);

	if (got)
		return got;
	if (!request->packet_number)
		request->packet_number = 1;
	for (uint64_t number = 1; number <= request->packet_number; number++) {
		got = weir_capture_next(capture, &frame, diag);
		if (got < 0)
			return got;
		if (!got)
			return weir_diag_error(diag, NULL, NULL, NULL, "'%s' has %llu packet%s", request->pcap,
					       (unsigned long long)number - 1, weir_plural(number - 1));
	}
	return take_frame(request, &frame, diag);
}
