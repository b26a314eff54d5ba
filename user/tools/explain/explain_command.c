// SPDX-License-Identifier: GPL-2.0-only
/* weir explain: what would happen to this packet now, and why? */
#include "explain/explain.h"

#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "explain/explain_packet.h"
#include "frames/compose.h"
#include "host/host.h"
#include "cli/options.h"
#include "cli/print.h"
#include "rules/scalars.h"
#include "timed/timed.h"

static const struct weir_option own_options[] = {
	{'S', false, "src", "ADDRESS", "source address"},
	{'D', false, "dst", "ADDRESS", "destination address"},
	{'p', false, "proto", "NAME", "protocol: tcp, udp, icmp, ..., or a number"},
	{'s', false, "sport", "PORT", "source port, by number or name"},
	{'d', false, "dport", "PORT", "destination port: 53, dns, https, ..."},
	{'F', false, "flags", "FLAGS", "TCP flags that are set: ack, or syn,ack, ... (default with --proto tcp: syn)"},
	{'t', false, "icmp-type", "N", "type of ICMP or ICMPv6"},
	{'v', false, "vlan", "N", "VLAN of the outer tag (default with --proto: no tag)"},
	{'q', false, "dscp", "N", "code point, by name or number (default with --proto: 0)"},
	{'T', false, "ttl", "N", "IPv4's time to live, IPv6's hop limit"},
	{'L', false, "length", "BYTES", "length of the frame (default: the shortest possible)"},
	{'l', false, "ip-length", "BYTES", "length that the IP header states; what follows in the frame is padding"},
	{'i', false, "interface", "IFACE", "the interface it arrives on, or leaves by"},
	{'w', false, "direction", "in|out", "the packet's direction, if a capture does not give it (default: in)"},
	{'c', false, "pcap", "FILE", "take the packet from a capture"},
	{'P', false, "packet", "N", "which packet of the capture, from 1 (default: the first)"},
	{'r', true, "rules", "FILE...", "ask these rule files instead of the attached rules"},
	{'E', false, "exit-code", NULL,
	 "exit with 1 if it would be dropped, and with 2 if that is not known, or on any error"},
	{},
};

static const struct weir_command weir_explain_command = {
	.name = "explain",
	.own_options = own_options,
	.options = "INjCh",
	.means_attached = true,
	.about = "Show what would happen to a packet now, and why: which resources and rules it matches, which flow it "
		 "belongs to under each rule, what that flow has used, what is left, when it is free again, and why "
		 "the threshold is what it is. It runs a copy of the attached program, with this packet's flow state "
		 "copied in: nothing is sent, and nothing changes.\n\n"
		 "Fields you leave out are not guessed: with only a source, you see all rules whose flows are keyed by "
		 "the source alone. A TCP packet opens a connection unless --flags says otherwise.",
	.example = "  weir explain --src 198.51.100.7 --dst 192.0.2.53 --proto udp --dport dns\n"
		   "  weir explain 198.51.100.7\n"
		   "  weir explain -r rules/dns-per-client.yaml --pcap traffic.pcap --packet 7",
	.exits = "0 done, whatever the verdict, 1 it failed, 2 the request or a file that it reads is wrong; with "
		 "--exit-code 0 it passes, 1 it would be dropped, 2 that is not known, or any error",
};

#define IS_DROPPED 1 /* with --exit-code */

static void free_request(struct explain_request *request)
{
	free(request->files);
	free(request->frame);
	json_decref(request->fields);
}

/* ---- options ---- */

static int refuse(const char *option, const struct weir_refusal *refusal)
{
	return weir_explain_wrong("--%s: %s%s%s", option, refusal->message, refusal->hint[0] ? ": " : "",
				  refusal->hint);
}

static int read_address(struct explain_request *request, const char *option, const char *text, uint8_t address[16])
{
	struct weir_refusal refusal;
	struct weir_prefix prefix;

	if (weir_parse_prefix(text, &prefix, &refusal))
		return weir_explain_wrong("--%s: '%s' is not an IP address: write it as 192.0.2.1 or 2001:db8::1",
					  option, text);
	if (prefix.bits != (prefix.family == 6 ? 128 : 32))
		return weir_explain_wrong("--%s: '%s' is a prefix: write one address", option, text);
	if (request->words.family && request->words.family != prefix.family)
		return weir_explain_wrong("--src and --dst are of different families");
	request->words.family = prefix.family;
	memcpy(address, prefix.address, 16);
	return 0;
}

static int read_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *ret_number)
{
	struct weir_refusal refusal;

	return weir_parse_number(text, least, most, ret_number, &refusal) ? refuse(option, &refusal) : 0;
}

/* -1: there is no such name. */
static int find_port(const char *name)
{
	const struct servent *service;

	for (const struct weir_number_name *port = weir_port_names; port->name; port++)
		if (!strcmp(port->name, name))
			return (int)port->number;
	service = getservbyname(name, NULL);
	return service ? ntohs(service->s_port) : -1;
}

static int read_port(struct explain_request *request, const char *option, const char *text, uint32_t field,
		     uint16_t *ret_port)
{
	const bool is_name = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
	const int named = is_name ? find_port(text) : -1;
	uint64_t number = named;
	int err = 0;

	if (is_name && named < 0)
		return weir_explain_wrong("--%s: no service is called '%s': write the port's number", option, text);
	if (!is_name)
		err = read_number(option, text, 0, UINT16_MAX, &number);
	if (err)
		return err;
	*ret_port = number;
	request->known |= field;
	return 0;
}

static int read_flags(struct explain_request *request, const char *text)
{
	struct weir_refusal refusal;
	struct weir_tcp_flags flags;

	if (weir_parse_tcp_flags(text, &flags, &refusal))
		return refuse("flags", &refusal);
	request->words.tcp_flags = flags.set;
	request->known |= WEIR_MATCH_TCP_FLAGS;
	return 0;
}

static int read_dscp(struct explain_request *request, const char *text)
{
	struct weir_refusal refusal;
	struct weir_range range;

	if (weir_parse_named_range(text, 63, weir_dscp_names, &range, &refusal))
		return refuse("dscp", &refusal);
	if (range.low != range.high)
		return weir_explain_wrong("--dscp: '%s' is a range: write one code point", text);
	request->words.dscp = range.low;
	request->known |= WEIR_MATCH_DSCP;
	return 0;
}

/* Replace a refusal in the words of rule files by one in the words of this command line. */
static int refuse_protocol(const char *text, const struct weir_refusal *refusal)
{
	const struct weir_service *service = weir_find_service(text);

	if (service)
		return weir_explain_wrong("--proto: '%s' is a service: write '--proto %s --dport %u'", text,
					  service->protocol, service->port);
	if ((*text >= '0' && *text <= '9') || !strncmp(refusal->hint, "did you mean", strlen("did you mean")))
		return refuse("proto", refusal);
	return weir_explain_wrong("--proto: '%s' is not a known protocol: write one of " WEIR_PROTOCOL_CHOICES
				  ", or a number, 0 to 255",
				  text);
}

static int read_protocol(struct explain_request *request, const char *text)
{
	struct weir_refusal refusal;

	if (weir_parse_protocol(text, &request->words.protocol, &refusal))
		return refuse_protocol(text, &refusal);
	request->known |= WEIR_MATCH_KIND;
	return 0;
}

static int take_file(struct explain_request *request, const char *path)
{
	const char **slot = weir_array_add((void **)&request->files, request->file_count, sizeof(*slot));

	if (!slot)
		return weir_explain_wrong("out of memory");
	*slot = path;
	request->file_count++;
	return 0;
}

static int take_packet_option(struct explain_request *request, int option, const char *argument)
{
	uint64_t number = 0;
	int err = 0;

	switch (option) {
	case 'S':
		request->known |= WEIR_MATCH_SOURCE;
		return read_address(request, "src", argument, request->words.source);
	case 'D':
		request->known |= WEIR_MATCH_DESTINATION;
		return read_address(request, "dst", argument, request->words.destination);
	case 'p':
		return read_protocol(request, argument);
	case 's':
		return read_port(request, "sport", argument, WEIR_MATCH_SOURCE_PORT, &request->words.source_port);
	case 'd':
		return read_port(request, "dport", argument, WEIR_MATCH_DESTINATION_PORT,
				 &request->words.destination_port);
	case 'F':
		return read_flags(request, argument);
	case 't':
		err = read_number("icmp-type", argument, 0, 255, &number);
		request->words.icmp_type = number;
		request->known |= WEIR_MATCH_ICMP_TYPE;
		return err;
	case 'v':
		err = read_number("vlan", argument, 0, 4095, &number);
		request->words.vlan = number;
		request->words.has_vlan = true;
		request->known |= WEIR_MATCH_VLAN;
		return err;
	case 'q':
		return read_dscp(request, argument);
	case 'T':
		err = read_number("ttl", argument, 0, 255, &number);
		request->words.ttl = number;
		request->known |= WEIR_MATCH_TTL;
		return err;
	case 'l':
		err = read_number("ip-length", argument, sizeof(struct iphdr), WEIR_COMPOSED_BYTES_MAX - ETH_HLEN,
				  &number);
		request->words.ip_bytes = number;
		request->known |= WEIR_MATCH_IP_LENGTH;
		return err;
	default:
		err = read_number("length", argument, ETH_HLEN, WEIR_COMPOSED_BYTES_MAX, &number);
		request->words.frame_bytes = number;
		request->known |= WEIR_MATCH_LENGTH;
		return err;
	}
}

static int take_option(void *data, int option, const char *argument)
{
	struct explain_request *request = data;

	switch (option) {
	case 'I':
		if (!weir_instance_name_is_valid(argument))
			return weir_explain_wrong("'%s' is not a valid instance name: use letters, digits, '_' and '-'",
						  argument);
		request->instance = argument;
		return 0;
	case 'N':
		request->netns = argument;
		return 0;
	case 'i':
		if (!weir_interface_name_is_valid(argument))
			return weir_explain_wrong("'%s' is not a valid interface name", argument);
		request->interface = argument;
		return 0;
	case 'w':
		return weir_options_take_direction(&weir_explain_command, argument, &request->question.direction);
	case 'c':
		request->pcap = argument;
		return 0;
	case 'P':
		return read_number("packet", argument, 1, UINT64_MAX, &request->packet_number);
	case 'r':
		return take_file(request, argument);
	case 'j':
		request->wants_json = true;
		return 0;
	case 'E':
		request->sets_exit_code = true;
		return 0;
	default:
		return take_packet_option(request, option, argument);
	}
}

/* ---- the command ---- */

static int find_interface(struct explain_request *request, struct weir_diag *diag)
{
	const bool is_out = request->question.direction != WEIR_DIRECTION_IN;
	int ifindex, err = 0;

	if (is_out)
		weir_explain_add_text(request, ", outgoing");
	json_object_set_new(request->fields, "direction", json_string(is_out ? "out" : "in"));
	if (!request->interface)
		return 0;
	ifindex = weir_host_ifindex(request->interface, diag);
	if (ifindex > 0 && !request->file_count)
		err = weir_instance_expect_on(request->instance, request->interface, diag);
	if (ifindex < 0 || err)
		return err ?: ifindex;
	request->question.ifindex = ifindex;
	request->known |= WEIR_MATCH_INTERFACE;
	if (request->question.direction == WEIR_DIRECTION_IN)
		weir_explain_add_text(request, ", at %s", request->interface);
	else
		weir_explain_add_text(request, " by %s", request->interface);
	json_object_set_new(request->fields, "interface", weir_json_text(request->interface));
	return 0;
}

static int ask(struct explain_request *request, struct weir_ruleset **ret_ruleset,
	       struct weir_explanation *ret_explanation, struct weir_diag *diag)
{
	int err;

	request->question.frame = request->frame;
	request->question.known = request->known;
	request->question.is_ipv6 = request->words.family == 6;
	if (!request->file_count)
		return weir_explain_instance(request->instance, &request->question, ret_explanation, diag);
	err = weir_ruleset_read(request->files, request->file_count, ret_ruleset, diag);
	return err ? err : weir_explain_ruleset(*ret_ruleset, &request->question, ret_explanation, diag);
}

/* The end of the frame that the lists look up, as a network of this single address; or false. */
static bool find_remote(const uint8_t *frame, size_t bytes, enum weir_direction direction,
			struct weir_prefix *ret_remote)
{
	const bool is_out = direction != WEIR_DIRECTION_IN;
	size_t at = offsetof(struct ethhdr, h_proto);
	unsigned int type;

	for (;;) {
		if (at + 2 + sizeof(struct ip6_hdr) > bytes)
			return false;
		type = frame[at] << 8 | frame[at + 1];
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		at += 4;
	}
	*ret_remote = (struct weir_prefix){.family = type == ETH_P_IPV6 ? 6 : 4, .bits = type == ETH_P_IPV6 ? 128 : 32};
	if (type == ETH_P_IPV6)
		at += is_out ? offsetof(struct ip6_hdr, ip6_dst) : offsetof(struct ip6_hdr, ip6_src);
	else
		at += is_out ? offsetof(struct iphdr, daddr) : offsetof(struct iphdr, saddr);
	memcpy(ret_remote->address, frame + at + 2, ret_remote->bits / 8);
	return true;
}

/* Find the timed entry that decides, in *ret_entry. Returns false if there is none, or if it has just ended. */
static bool find_entry(const struct explain_request *request, const struct weir_explanation *explanation,
		       struct weir_timed_order *ret_entry)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	const struct weir_timed_order *found;
	struct weir_timed_order remote = {};
	struct weir_diag ignored = {};
	size_t count = 0;

	if (!explanation->opened || explanation->unknown || explanation->list_ends_ns == WEIR_SANDBOX_RUN_NEVER ||
	    (explanation->verdict != WEIR_VERDICT_DENY && explanation->verdict != WEIR_VERDICT_ALLOW) ||
	    !find_remote(request->frame, WEIR_COMPOSED_BYTES_MAX, explanation->direction, &remote.prefix))
		return false;
	if (weir_timed_read(explanation->opened, explanation->verdict == WEIR_VERDICT_DENY, &orders, &count, &ignored))
		count = 0;
	weir_diag_free(&ignored);
	if (!count)
		return false;
	found = bsearch(&remote, orders, count, sizeof(*orders), weir_order_compare)
			?: weir_order_around(orders, count, &remote.prefix);
	if (found)
		*ret_entry = *found;
	return found;
}

static int explain(struct explain_request *request, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_explanation_free) struct weir_explanation explanation = {};
	struct weir_timed_order entry, *decides;
	int err;

	request->frame = calloc(1, WEIR_COMPOSED_BYTES_MAX);
	request->fields = json_object();
	if (!request->frame || !request->fields)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot build the packet");
	err = weir_host_check_privilege(diag);
	if (!err)
		err = request->pcap ? weir_explain_read_capture(request, diag) : weir_explain_compose(request);
	if (!err)
		err = weir_enter_netns(request->netns, request->file_count ? NULL : request->instance,
				       request->interface, diag);
	if (!err)
		err = find_interface(request, diag);
	if (!err)
		err = ask(request, &ruleset, &explanation, diag);
	if (err)
		return err;
	request->verdict_code = explanation.unknown ? WEIR_EXIT_WRONG : explanation.passes ? WEIR_EXIT_OK : IS_DROPPED;
	decides = find_entry(request, &explanation, &entry) ? &entry : NULL;
	if (request->wants_json)
		return weir_json_print(weir_json_explanation(&explanation, decides, json_incref(request->fields)),
				       diag);
	weir_print_explanation(&explanation, decides, request->text);
	return weir_flush_results(diag);
}

static int check_request(const struct explain_request *request)
{
	if (request->pcap && request->known)
		return weir_explain_wrong("--pcap already gives the whole packet: leave the other packet options out");
	return request->pcap ? 0 : weir_explain_check_described(request);
}

/* As for diff(1), exit code 1 is reserved for a result about the packet. */
static int finish(const struct explain_request *request, int err, struct weir_diag *diag)
{
	if (!request->sets_exit_code)
		return weir_exit_code(err, diag);
	return err ? weir_exit_code(-EINVAL, diag) : request->verdict_code;
}

static int run_command(int argc, char **argv)
{
	_cleanup_(free_request) struct explain_request request = {};
	_cleanup_(weir_options_free) struct weir_options named = {};
	struct weir_diag diag = {};
	int exit_code = weir_options_read(&weir_explain_command, argc, argv, false, take_option, &request);

	if (exit_code)
		return exit_code - 1;
	for (; optind < argc; optind++) {
		const char *argument = argv[optind];
		struct weir_refusal ignored;
		struct weir_prefix prefix;
		int err;

		/* An address is the source; after --rules everything else is a file. */
		if (!(request.known & WEIR_MATCH_SOURCE) && !weir_parse_prefix(argument, &prefix, &ignored))
			err = take_packet_option(&request, 'S', argument);
		else
			err = request.file_count ? take_file(&request, argument)
						 : weir_explain_wrong("what is '%s'?", argument);
		if (err)
			return WEIR_EXIT_WRONG;
	}
	if (check_request(&request))
		return WEIR_EXIT_WRONG;
	if (!request.instance) {
		if (weir_options_find_instance(&weir_explain_command, &named))
			return WEIR_EXIT_WRONG;
		request.instance = named.instance;
	}
	return finish(&request, explain(&request, &diag), &diag);
}

const struct weir_command_entry weir_explain_entry = {&weir_explain_command, run_command,
						      "show what would happen to a packet now, and why"};
