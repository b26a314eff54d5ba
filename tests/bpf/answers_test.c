// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers to blocked packets (onBlock): each of them from the shipped BPF objects, read by a receiver that trusts
 * nothing (lengths, every checksum), and each thing to which none may be sent.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/listener.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"

#define ACK 0x10
#define PSH 0x08
#define RST 0x04
#define SYN 0x02
#define FIN 0x01

/* ---- a limiter that blocks everything ---- */

struct limiter {
	struct rig rig;
	enum weir_hook hook;
	uint64_t now_ns, pause_ns; /* between packets: so long that each may be answered, if not said otherwise */
};

/* A rule that blocks every packet; `rate` 0: as many answers as by default. */
static void prepare(struct limiter *limiter, enum weir_on_block on_block, uint64_t rate)
{
	struct weir_match *match;
	size_t resource;

	*limiter = (struct limiter){.hook = WEIR_HOOK_XDP, .now_ns = RIG_START_NS, .pause_ns = 10 * MS};
	rig_begin(&limiter->rig, 512);
	limiter->rig.hooks = 1u << WEIR_HOOK_TC_IN | 1u << WEIR_HOOK_TC_BARE_IN;
	limiter->rig.ruleset->settings.answer_rates[0] = rate;
	limiter->rig.ruleset->settings.answer_rates[1] = rate;
	resource = rig_resource(&limiter->rig, 53, 0);
	match = &limiter->rig.ruleset->resources[resource].match;
	match->has_protocol = false;
	match->destination_port_count = 0;
	rig_rule(&limiter->rig, resource, WEIR_WINDOW_LEAP, 0, WEIR_NSEC_PER_SEC, 10)->on_block = on_block;
}

static void add_own(struct limiter *limiter, int family, const char *text, __u8 what)
{
	struct weir_own_address address = {.is_ipv6 = family == AF_INET6};

	assert_int_equal(inet_pton(family, text, address.address), 1);
	assert_int_equal(bpf_map_update_elem(weir_object_map_fd(limiter->rig.object, WEIR_TABLE_OWN_ADDRESSES),
					     &address, &what, BPF_ANY),
			 0);
}

/* Packets are for this host, so that it may give them cookies. */
static void load(struct limiter *limiter)
{
	rig_load_here(&limiter->rig);
	weir_object_harness(limiter->rig.object)->wants_answer = WEIR_WANTS_ANSWER;
	if (!(limiter->rig.image->config.answers >> WEIR_ON_BLOCK_COOKIE & 1))
		return;
	add_own(limiter, AF_INET, "198.51.100.1", WEIR_OWN_ADDRESS);
	add_own(limiter, AF_INET6, "2001:db8::2", WEIR_OWN_ADDRESS);
}

static void begin_with(struct limiter *limiter, enum weir_on_block on_block, uint64_t rate)
{
	prepare(limiter, on_block, rate);
	load(limiter);
}

static void begin(struct limiter *limiter, enum weir_on_block on_block)
{
	begin_with(limiter, on_block, 0);
}

static void end(struct limiter *limiter)
{
	rig_end(&limiter->rig);
}

/* Counts of the first rule's answers, all CPUs together. */
static struct weir_rule_answers answers_of(const struct limiter *limiter)
{
	_cleanup_(weir_freep) struct weir_rule_answers *of_cpu = calloc(weir_host_cpus(), sizeof(*of_cpu));
	const __u32 slot = limiter->rig.image->rules[0].slot;
	struct weir_rule_answers sum = {};

	assert_non_null(of_cpu);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(limiter->rig.object, WEIR_TABLE_RULE_ANSWERS), &slot,
					     of_cpu),
			 0);
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++) {
		for (int kind = 0; kind < WEIR_ON_BLOCK_COUNT; kind++)
			sum.sent[kind] += of_cpu[cpu].sent[kind];
		sum.beyond_rate += of_cpu[cpu].beyond_rate;
		sum.impossible += of_cpu[cpu].impossible;
	}
	return sum;
}

/* All of them were of the rule's kind. */
static uint64_t sent_of(const struct limiter *limiter)
{
	const struct weir_rule_answers answers = answers_of(limiter);
	uint64_t sum = 0;

	for (int kind = 0; kind < WEIR_ON_BLOCK_COUNT; kind++)
		sum += answers.sent[kind];
	assert_int_equal(answers.sent[limiter->rig.ruleset->rules[0].on_block], sum);
	return sum;
}

/* Evaluate a frame; returns the bytes of the answer, or 0: it was dropped in silence. The kernel writes the answer. */
static uint32_t ask_by(struct limiter *limiter, int program_fd, const uint8_t *frame, uint32_t bytes,
		       uint8_t answer[PACKET_BYTES_MAX]) // NOLINT(readability-non-const-parameter)
{
	volatile struct weir_harness *harness = weir_object_harness(limiter->rig.object);
	const bool is_at_tc = limiter->hook != WEIR_HOOK_XDP;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes, .data_out = answer,
		    .data_size_out = PACKET_BYTES_MAX, .repeat = 1);

	limiter->now_ns += limiter->pause_ns;
	harness->clock_ns = limiter->now_ns;
	harness->frame_bytes = bytes;
	harness->answer = WEIR_ON_BLOCK_DROP;
	assert_int_equal(bpf_prog_test_run_opts(program_fd, &options), 0);
	if (!harness->answer || harness->verdict != WEIR_VERDICT_BLOCK) {
		assert_int_not_equal(options.retval, is_at_tc ? TC_ACT_REDIRECT : XDP_TX);
		return 0;
	}
	assert_int_equal(options.retval, is_at_tc ? TC_ACT_REDIRECT : XDP_TX);
	return options.data_size_out;
}

static uint32_t ask(struct limiter *limiter, const uint8_t *frame, uint32_t bytes, uint8_t answer[PACKET_BYTES_MAX])
{
	return ask_by(limiter, weir_object_hook_fd(limiter->rig.object, limiter->hook), frame, bytes, answer);
}

/* ---- a receiver ---- */

static uint16_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static uint32_t sum_of(const uint8_t *at, uint32_t bytes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < bytes; i++)
		sum += i % 2 ? at[i] : at[i] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Where things are in a frame, its headers read and its checksums verified. */
struct received {
	const uint8_t *ip, *transport;
	uint32_t bytes; /* from the transport header on */
	uint8_t protocol;
};

static struct received receive(const uint8_t *frame, uint32_t frame_bytes)
{
	struct received received = {};
	uint32_t at = 12, pseudo;

	while (get16(frame + at) == ETHERTYPE_VLAN || get16(frame + at) == ETHERTYPE_QINQ)
		at += 4;
	received.ip = frame + at + 2;
	if (get16(frame + at) == ETHERTYPE_IPV4) {
		assert_int_equal(received.ip[0], 0x45);
		assert_int_equal(fold(sum_of(received.ip, 20)), 0xffff);
		assert_int_equal(received.ip[8], 64);
		received.protocol = received.ip[9];
		received.transport = received.ip + 20;
		received.bytes = get16(received.ip + 2) - 20;
		pseudo = sum_of(received.ip + 12, 8);
	} else {
		assert_int_equal(get16(frame + at), ETHERTYPE_IPV6);
		assert_int_equal(received.ip[0], 0x60);
		assert_int_equal(received.ip[7], 64);
		received.protocol = received.ip[6];
		received.transport = received.ip + 40;
		received.bytes = get16(received.ip + 4);
		pseudo = sum_of(received.ip + 8, 32);
	}
	pseudo += received.protocol + received.bytes;
	if (received.protocol == IPPROTO_UDP)
		assert_int_not_equal(get16(received.transport + 6), 0);
	assert_true(received.transport + received.bytes <= frame + frame_bytes);
	if (received.protocol == IPPROTO_ICMP)
		pseudo = 0;
	assert_int_equal(fold(pseudo + sum_of(received.transport, received.bytes)), 0xffff);
	return received;
}

/* The answer goes back where the packet came from. */
static void assert_turned(const uint8_t *frame, const uint8_t *answer, const struct received *received)
{
	const uint8_t *ip = frame + (received->ip - answer);
	const bool is_ipv6 = ip[0] >> 4 == 6;
	const int at = is_ipv6 ? 8 : 12, bytes = is_ipv6 ? 16 : 4;

	assert_memory_equal(frame, answer + 6, 6);
	assert_memory_equal(frame + 6, answer, 6);
	assert_memory_equal(frame + 12, answer + 12, received->ip - answer - 12); /* tags */
	assert_memory_equal(ip + at, received->ip + at + bytes, bytes);
	assert_memory_equal(ip + at + bytes, received->ip + at, bytes);
}

/* ---- packets ---- */

static struct packet_spec packet_of(int family, uint8_t protocol)
{
	struct packet_spec spec = {.protocol = protocol, .source_port = 4000, .destination_port = 53};

	packet_source(&spec, family == 6 ? "2001:db8::1" : "192.0.2.1");
	packet_destination(&spec, family == 6 ? "2001:db8::2" : "198.51.100.1");
	return spec;
}

static struct packet_spec tcp_of(int family, uint8_t flags)
{
	struct packet_spec spec = packet_of(family, IPPROTO_TCP);

	spec.tcp_flags = flags;
	return spec;
}

/* Build it, with numbers in a TCP header, whose checksum is then right again. */
static uint32_t build(const struct packet_spec *spec, uint8_t *frame)
{
	struct packet_spec bare = *spec;
	uint32_t bytes, at;

	bare.padding_bytes = 0;
	bytes = packet_build(&bare, frame);
	at = bytes - spec->payload_bytes - 20 - spec->option_words * 4;
	if (spec->protocol == IPPROTO_TCP && !spec->fragment_units) {
		uint32_t sum;

		memcpy(frame + at + 4, (uint8_t[]){0x12, 0x34, 0x56, 0x78, 0xca, 0xfe, 0xba, 0xbe}, 8);
		sum = (uint16_t)~get16(frame + at + 16) + sum_of(frame + at + 4, 8);
		frame[at + 16] = (uint16_t)~fold(sum) >> 8;
		frame[at + 17] = (uint8_t)~fold(sum);
	}
	memset(frame + bytes, 0, spec->padding_bytes);
	return bytes + spec->padding_bytes;
}

static uint32_t ask_spec(struct limiter *limiter, const struct packet_spec *spec, uint8_t *frame, uint8_t *answer)
{
	return ask(limiter, frame, build(spec, frame), answer);
}

static uint8_t frame[PACKET_BYTES_MAX], answer[PACKET_BYTES_MAX];

/* ---- reset ---- */

/* RFC 9293, 3.10.7.1 */
static void check_reset(struct limiter *limiter, const struct packet_spec *spec)
{
	const uint32_t length = spec->payload_bytes + !!(spec->tcp_flags & SYN) + !!(spec->tcp_flags & FIN);
	const uint32_t bytes = ask_spec(limiter, spec, frame, answer);
	struct received received;

	assert_int_not_equal(bytes, 0);
	received = receive(answer, bytes);
	assert_turned(frame, answer, &received);
	assert_int_equal(received.protocol, IPPROTO_TCP);
	assert_int_equal(received.bytes, 20);
	assert_int_equal(get16(received.transport), spec->destination_port);
	assert_int_equal(get16(received.transport + 2), spec->source_port);
	if (spec->tcp_flags & ACK) {
		assert_int_equal(received.transport[13], RST);
		assert_int_equal(get32(received.transport + 4), 0xcafebabe);
	} else {
		assert_int_equal(received.transport[13], RST | ACK);
		assert_int_equal(get32(received.transport + 4), 0);
		assert_int_equal(get32(received.transport + 8), 0x12345678 + length);
	}
}

static void check_resets(enum weir_hook hook)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_RESET);
	limiter.hook = hook;
	for (int family = 4; family <= 6; family += 2) {
		struct packet_spec spec = tcp_of(family, SYN);

		check_reset(&limiter, &spec);
		spec.option_words = 5;
		check_reset(&limiter, &spec);
		spec = tcp_of(family, ACK | PSH);
		spec.payload_bytes = 1000;
		check_reset(&limiter, &spec);
		spec.tcp_flags = FIN;
		check_reset(&limiter, &spec);
		spec = tcp_of(family, SYN);
		if (hook == WEIR_HOOK_XDP) {
			spec.tag_count = 2;
			spec.tag[0] = (struct packet_tag){ETHERTYPE_QINQ, 7};
			spec.tag[1] = (struct packet_tag){ETHERTYPE_VLAN, 8};
			check_reset(&limiter, &spec);
		}
	}
	assert_int_equal(sent_of(&limiter), hook == WEIR_HOOK_XDP ? 10 : 8);
	end(&limiter);
}

CASE(a_segment_is_reset_as_the_standard_says, check_resets(WEIR_HOOK_XDP));
CASE(it_is_at_tc, check_resets(WEIR_HOOK_TC_IN));

LONG_CLAIM(a_padded_frame_stays_one_of_sixty_bytes)
{
	struct packet_spec spec = tcp_of(4, SYN);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_RESET);
	spec.padding_bytes = 6;
	assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 60);
	receive(answer, 60);
	end(&limiter);
}

/* ---- unreachable ---- */

static void check_unreachable(struct limiter *limiter, const struct packet_spec *spec)
{
	const uint32_t own = spec->family == 6 ? 48 : 28, frame_bytes = build(spec, frame);
	const uint32_t bytes = ask(limiter, frame, frame_bytes, answer);
	struct received received;
	const uint8_t *asked;

	assert_int_not_equal(bytes, 0);
	received = receive(answer, bytes);
	assert_turned(frame, answer, &received);
	assert_int_equal(received.transport[0], spec->family == 6 ? 1 : 3);
	assert_int_equal(received.transport[1], spec->family == 6 ? 1 : 13);
	assert_int_equal(get32(received.transport + 4), 0);
	asked = frame + (received.ip - answer);
	assert_memory_equal(received.transport + 8, asked, received.bytes - 8);
	assert_true(received.bytes - 8 >= own - 8 + 8);
	assert_true(bytes <= frame_bytes || bytes == 14 + own + own - 8 + 8);
}

static void check_unreachables(enum weir_hook hook)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, 132, 47};
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	limiter.hook = hook;
	for (int family = 4; family <= 6; family += 2)
		for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
			for (uint32_t payload = 8; payload < 1400; payload = payload * 2 + 1) {
				struct packet_spec spec = packet_of(family, protocols[i]);

				spec.payload_bytes = payload;
				spec.damage_count = protocols[i] == 132; /* has a checksum */
				spec.damage[0] = (struct packet_damage){14 + (family == 6 ? 40 : 20) + 8, 1};
				check_unreachable(&limiter, &spec);
			}
	end(&limiter);
}

LONG_CASE(an_unreachable_has_as_much_of_the_packet_as_fits, check_unreachables(WEIR_HOOK_XDP));
LONG_CASE(so_it_has_at_tc, check_unreachables(WEIR_HOOK_TC_IN));

CLAIM(an_echo_request_gets_an_unreachable)
{
	struct packet_spec spec = packet_of(4, IPPROTO_ICMP), spec6 = packet_of(6, IPPROTO_ICMPV6);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	spec.icmp_type = 8;
	spec6.icmp_type = 128;
	check_unreachable(&limiter, &spec);
	check_unreachable(&limiter, &spec6);
	end(&limiter);
}

/* With 20 bytes of options, the shortest error has 14 + 28 + 40 + 8 bytes; UDP's header is 8 of the packet's. */
LONG_CLAIM(options_make_no_unreachable_longer_than_its_packet)
{
	struct packet_spec spec = packet_of(4, IPPROTO_UDP), spec6 = packet_of(6, IPPROTO_UDP);
	struct limiter limiter;

	spec.option_words = 5;
	spec6.extension_count = 1;
	spec6.extension[0] = (struct packet_extension){60, 2}; /* 24 bytes */
	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	spec.payload_bytes = 27;
	spec6.payload_bytes = 47;
	assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
	assert_int_equal(ask_spec(&limiter, &spec6, frame, answer), 0);
	spec.payload_bytes++;
	spec6.payload_bytes++;
	assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 14 + 28 + 48);
	receive(answer, 14 + 28 + 48);
	assert_int_equal(ask_spec(&limiter, &spec6, frame, answer), 14 + 48 + 72);
	receive(answer, 14 + 48 + 72);
	assert_int_equal(answers_of(&limiter).impossible, 2);
	end(&limiter);
}

/* A local sender leaves SCTP's checksum to the device, too, which then writes a CRC into the answer. */
LONG_CLAIM(unfinished_sctp_gets_no_answer_at_tc)
{
	const struct packet_spec spec = packet_of(4, 132);
	const uint32_t bytes = packet_build(&spec, frame);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	limiter.hook = WEIR_HOOK_TC_IN;
	assert_int_equal(ask(&limiter, frame, bytes, answer), 0);
	frame[14 + 20 + 8] = 1;
	assert_int_not_equal(ask(&limiter, frame, bytes, answer), 0);
	end(&limiter);
}

/* ---- truncate ---- */

static const uint8_t query[] = {0xab,	      0xcd, 0x01, 0x20, 0,   1, 0,   0,	  0,   0, 0, 1, 7, 'e', 'x',
				'a',	      'm',  'p',  'l',	'e', 3, 'o', 'r', 'g', 0, 0, 1, 0, 1,
				/* EDNS */ 0, 0,    41,	  4,	208, 0, 0,   0,	  0,   0, 0};
#define QUESTION_END 29

static uint32_t build_query(int family, const uint8_t *dns, uint32_t dns_bytes)
{
	struct packet_spec spec = packet_of(family, IPPROTO_UDP);
	uint32_t bytes;

	spec.payload_bytes = dns_bytes;
	bytes = packet_build(&spec, frame);
	memcpy(frame + bytes - dns_bytes, dns, dns_bytes);
	return bytes;
}

static void check_truncated(enum weir_hook hook)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_TRUNCATE);
	limiter.hook = hook;
	for (int family = 4; family <= 6; family += 2) {
		const uint32_t bytes = ask(&limiter, frame, build_query(family, query, sizeof(query)), answer);
		struct received received;
		const uint8_t *dns;

		assert_int_not_equal(bytes, 0);
		received = receive(answer, bytes);
		dns = received.transport + 8;
		assert_turned(frame, answer, &received);
		assert_int_equal(get16(received.transport), 53);
		assert_int_equal(get16(received.transport + 2), 4000);
		assert_int_equal(received.bytes, 8 + QUESTION_END);
		assert_int_equal(get16(received.transport + 4), 8 + QUESTION_END);
		assert_memory_equal(dns, ((uint8_t[]){0xab, 0xcd, 0x83, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}), 12);
		assert_memory_equal(dns + 12, query + 12, QUESTION_END - 12);
	}
	end(&limiter);
}

CASE(a_query_comes_back_truncated, check_truncated(WEIR_HOOK_XDP));
LONG_CASE(so_it_does_at_tc, check_truncated(WEIR_HOOK_TC_IN));

/* The query with one byte changed, or cut. */
LONG_CLAIM(what_is_no_query_with_one_question_is_dropped)
{
	static const struct {
		uint32_t at;
		uint8_t value;
	} changes[] = {{2, 0x81}, {2, 0x11}, {5, 0}, {5, 2}, {4, 1}, {7, 1}, {9, 1}, {12, 0xc0}, {12, 64}};
	struct limiter limiter;
	uint8_t changed[sizeof(query)];

	begin(&limiter, WEIR_ON_BLOCK_TRUNCATE);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		memcpy(changed, query, sizeof(query));
		changed[changes[i].at] = changes[i].value;
		assert_int_equal(ask(&limiter, frame, build_query(4, changed, sizeof(changed)), answer), 0);
	}
	for (uint32_t bytes = 0; bytes < QUESTION_END; bytes++)
		assert_int_equal(ask(&limiter, frame, build_query(4, query, bytes), answer), 0);
	assert_int_not_equal(ask(&limiter, frame, build_query(4, query, QUESTION_END), answer), 0);
	assert_int_not_equal(answers_of(&limiter).impossible, 0);
	end(&limiter);
}

/* The query's id makes the answer's checksum what it has to be. */
LONG_CLAIM(a_checksum_that_would_be_zero_is_written_as_its_other_zero)
{
	struct limiter limiter;
	uint8_t asked[sizeof(query)];

	begin(&limiter, WEIR_ON_BLOCK_TRUNCATE);
	for (int family = 4; family <= 6; family += 2) {
		const uint32_t checksum_at = 14 + (family == 6 ? 40 : 20) + 6;
		uint16_t id;

		memcpy(asked, query, sizeof(query));
		assert_int_not_equal(ask(&limiter, frame, build_query(family, asked, sizeof(asked)), answer), 0);
		id = fold(get16(query) + get16(answer + checksum_at));
		asked[0] = id >> 8;
		asked[1] = id & 0xff;
		assert_int_not_equal(ask(&limiter, frame, build_query(family, asked, sizeof(asked)), answer), 0);
		assert_int_equal(get16(answer + checksum_at), 0xffff);
	}
	end(&limiter);
}

/* ... and elsewhere is zero, or tools call it wrong (RFC 1624, 3): the number that a RST begins with makes it so. */
LONG_CLAIM(only_that_of_udp_has_another_zero)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_RESET);
	for (int family = 4; family <= 6; family += 2) {
		const struct packet_spec spec = tcp_of(family, ACK);
		const uint32_t bytes = build(&spec, frame), tcp = bytes - 20;
		uint32_t answered;

		memset(frame + tcp + 10, 0, 2);
		assert_int_not_equal(ask(&limiter, frame, bytes, answer), 0);
		memcpy(frame + tcp + 10, answer + tcp + 16, 2);
		answered = ask(&limiter, frame, bytes, answer);
		assert_int_equal(receive(answer, answered).protocol, IPPROTO_TCP);
		assert_int_equal(get16(answer + tcp + 16), 0);
	}
	end(&limiter);
}

/* One label of one byte after another, and the last so long that the name has so many bytes, its end included. */
static uint32_t build_long_query(uint32_t name_bytes)
{
	uint8_t dns[512] = {0xab, 0xcd, 1, 0, 0, 1};
	uint32_t at = 12;

	while (at + 5 <= 12 + name_bytes) {
		dns[at] = 1;
		dns[at + 1] = 'a';
		at += 2;
	}
	dns[at] = 12 + name_bytes - at - 2;
	memset(dns + at + 1, 'a', dns[at]);
	at = 12 + name_bytes;
	memcpy(dns + at, ((uint8_t[]){0, 1, 0, 1}), 4);
	return build_query(4, dns, at + 4);
}

LONG_CLAIM(a_name_has_at_most_255_bytes)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_TRUNCATE);
	assert_int_not_equal(ask(&limiter, frame, build_long_query(254), answer), 0);
	assert_int_not_equal(ask(&limiter, frame, build_long_query(255), answer), 0);
	for (uint32_t bytes = 256; bytes < 264; bytes++)
		assert_int_equal(ask(&limiter, frame, build_long_query(bytes), answer), 0);
	end(&limiter);
}

LONG_CLAIM(what_lies_behind_a_datagram_is_no_part_of_the_question)
{
	const uint32_t bytes = build_query(4, query, QUESTION_END);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_TRUNCATE);
	assert_int_not_equal(ask(&limiter, frame, bytes, answer), 0);
	frame[14 + 20 + 5]--; /* its length */
	assert_int_equal(ask(&limiter, frame, bytes, answer), 0);
	end(&limiter);
}

/* ---- cookie ---- */

static void check_cookie(struct limiter *limiter, const struct packet_spec *spec)
{
	const uint32_t bytes = ask_spec(limiter, spec, frame, answer);
	struct received received;

	assert_int_not_equal(bytes, 0);
	received = receive(answer, bytes);
	assert_turned(frame, answer, &received);
	assert_int_equal(received.bytes, 24);
	assert_int_equal(get16(received.transport), spec->destination_port);
	assert_int_equal(get16(received.transport + 2), spec->source_port);
	assert_int_equal(received.transport[12] >> 4, 6);
	assert_int_equal(received.transport[13], SYN | ACK);
	assert_int_equal(get32(received.transport + 8), 0x12345679);
	assert_int_equal(get16(received.transport + 20), 0x0204);
	assert_true(get16(received.transport + 22) >= 536);
}

static void check_cookies(enum weir_hook hook)
{
	struct packet_spec spec;
	struct limiter limiter;
	int fd = listen_apart(53);

	begin(&limiter, WEIR_ON_BLOCK_COOKIE);
	limiter.hook = hook;
	for (int family = 4; family <= 6; family += 2) {
		spec = tcp_of(family, SYN);
		check_cookie(&limiter, &spec);
		spec.option_words = 5;
		if (family == 6)
			check_cookie(&limiter, &spec);
		else /* IP options would have to be sent back */
			assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
		spec.option_words = 0;
		assert_int_equal(answers_of(&limiter).impossible, family == 6 ? 2 : 1);
		spec.destination_port = 54; /* nobody listens */
		assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
		assert_int_equal(answers_of(&limiter).impossible, family == 6 ? 3 : 2);
		spec = tcp_of(family, SYN | ACK);
		assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
		spec = tcp_of(family, ACK);
		assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
	}
	close(fd);
	end(&limiter);
}

CASE(a_syn_for_a_listening_socket_gets_a_cookie, check_cookies(WEIR_HOOK_XDP));
LONG_CASE(so_it_gets_at_tc, check_cookies(WEIR_HOOK_TC_IN));

/* A gateway's own socket listens at all addresses, and is found for any. */
static void check_forwarded(enum weir_hook hook)
{
	struct limiter limiter;
	int fd = listen_apart(53);

	begin(&limiter, WEIR_ON_BLOCK_COOKIE);
	limiter.hook = hook;
	for (int family = 4; family <= 6; family += 2) {
		struct packet_spec spec = tcp_of(family, SYN);

		check_cookie(&limiter, &spec);
		packet_destination(&spec, family == 6 ? "2001:db8::3" : "198.51.100.2");
		assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
		assert_int_equal(answers_of(&limiter).impossible, family == 6 ? 2 : 1);
	}
	close(fd);
	end(&limiter);
}

CASE(a_syn_that_is_only_forwarded_gets_no_cookie, check_forwarded(WEIR_HOOK_XDP));
LONG_CASE(nor_does_it_at_tc, check_forwarded(WEIR_HOOK_TC_IN));

/* The SYN has no MSS, for which the kernel takes 536 (RFC 9293, 3.7.1). */
static void check_mss(enum weir_hook hook)
{
	static const int mtu[] = {500, 575, 576, 1500}, mss[] = {460, 535, 536, 536}; /* the last stays */
	const struct packet_spec spec = tcp_of(4, SYN);
	struct limiter limiter;
	int fd = listen_apart(53);

	begin(&limiter, WEIR_ON_BLOCK_COOKIE);
	limiter.hook = hook;
	for (size_t i = 0; i < ARRAY_SIZE(mtu); i++) {
		struct ifreq loopback = {.ifr_name = "lo", .ifr_mtu = mtu[i]};

		assert_int_equal(ioctl(fd, SIOCSIFMTU, &loopback), 0);
		assert_int_not_equal(ask_spec(&limiter, &spec, frame, answer), 0);
		assert_int_equal(get16(answer + 14 + 20 + 22), mss[i]);
	}
	close(fd);
	end(&limiter);
}

LONG_CASE(a_cookie_asks_for_no_longer_segments_than_the_interface_receives, check_mss(WEIR_HOOK_XDP));
LONG_CASE(nor_does_one_at_tc, check_mss(WEIR_HOOK_TC_IN));

LONG_CLAIM(in_a_replay_every_port_is_listened_at)
{
	struct packet_spec spec = tcp_of(4, SYN);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_COOKIE);
	assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
	weir_object_harness(limiter.rig.object)->wants_answer = WEIR_WANTS_SUPPOSED_ANSWER;
	check_cookie(&limiter, &spec);
	end(&limiter);
}

static void put32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = value >> (24 - 8 * i);
}

/* The client's packet with a number that it got, or made up. Does it pass? */
static bool acknowledge_by(struct limiter *limiter, struct packet_spec *spec, uint16_t port, uint32_t number)
{
	uint8_t *tcp = frame + 14 + (spec->family == 6 ? 40 : 20);
	uint32_t bytes;

	spec->source_port = port;
	bytes = packet_build(spec, frame);
	put32(tcp + 4, 0x12345679);
	put32(tcp + 8, number);
	assert_int_equal(ask(limiter, frame, bytes, answer), 0);
	return weir_object_harness(limiter->rig.object)->verdict == WEIR_VERDICT_PASS;
}

static bool acknowledge(struct limiter *limiter, int family, uint16_t port, uint32_t number)
{
	struct packet_spec spec = tcp_of(family, ACK);

	return acknowledge_by(limiter, &spec, port, number);
}
/* A SYN from this port gets a cookie; returns it. */
static uint32_t get_cookie(struct limiter *limiter, int family, uint16_t port)
{
	struct packet_spec spec = tcp_of(family, SYN);

	spec.source_port = port;
	assert_int_not_equal(ask_spec(limiter, &spec, frame, answer), 0);
	return get32(answer + 14 + (family == 6 ? 40 : 20) + 4);
}

/* Cookies for all SYNs, and so many connections for each key. */
static void prepare_connections(struct limiter *limiter, uint32_t key_fields, uint64_t connections)
{
	static const uint64_t timeouts_ms[WEIR_CONNECTION_CLASSES] = {10000, 600000, 120000, 10000}; /* by default */
	struct weir_ruleset_rule *rule;
	struct weir_match *match;

	prepare(limiter, WEIR_ON_BLOCK_COOKIE, 0);
	match = &limiter->rig.ruleset->resources[0].match;
	match->tcp_flags = calloc(1, sizeof(*match->tcp_flags));
	assert_non_null(match->tcp_flags);
	match->tcp_flags_count = 1;
	match->tcp_flags[0] = (struct weir_tcp_flags){.set = SYN, .clear = ACK};
	rule = rig_rule(&limiter->rig, rig_resource(&limiter->rig, 53, key_fields), WEIR_WINDOW_LEAP, connections, 0,
			0);
	rule->metric = WEIR_METRIC_CONCURRENCY;
	limiter->rig.ruleset->resources[1].match.has_protocol = false;
	memcpy(limiter->rig.ruleset->settings.connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
}

/* SYNs are blocked, so it is the ACK that opens a connection, of which two are allowed. Other packets of a connection
 * that is not known open none.
 */
static void check_returned_cookies(enum weir_hook hook, int family)
{
	struct limiter limiter;
	int fd = listen_apart(53);
	uint32_t cookie;

	prepare_connections(&limiter, WEIR_KEY_SOURCE, 2);
	load(&limiter);
	limiter.hook = hook;
	for (int i = 0; i < 3; i++)
		assert_true(acknowledge(&limiter, family, 100 + i, 0xcafebabe));
	for (int i = 0; i < 2; i++) {
		cookie = get_cookie(&limiter, family, 200 + i);
		assert_true(acknowledge(&limiter, family, 200 + i, cookie + 1));
		assert_true(acknowledge(&limiter, family, 200 + i, cookie + 1));
	}
	cookie = get_cookie(&limiter, family, 202);
	assert_false(acknowledge(&limiter, family, 202, cookie + 1));
	/* Nor is it let in by what comes before. */
	assert_true(acknowledge(&limiter, family, 203, 0xcafebabe));
	cookie = get_cookie(&limiter, family, 203);
	assert_false(acknowledge(&limiter, family, 203, cookie + 1));
	assert_true(acknowledge(&limiter, family, 204, 0xcafebabe));
	close(fd);
	end(&limiter);
}

CASE(an_ack_that_brings_a_cookie_opens_a_connection, check_returned_cookies(WEIR_HOOK_XDP, 4));
LONG_CASE(so_it_does_by_ipv6, check_returned_cookies(WEIR_HOOK_XDP, 6));
LONG_CASE(an_ack_that_brings_a_cookie_opens_one_at_tc, check_returned_cookies(WEIR_HOOK_TC_IN, 4));

/* The client has finished its handshake, so its connection is open, and not half-open: 12 s later, it still counts. */
static void check_silence(uint32_t key_fields)
{
	int fd = listen_apart(53);
	struct limiter limiter;

	prepare_connections(&limiter, key_fields, 2);
	load(&limiter);
	for (int i = 0; i < 2; i++)
		assert_true(acknowledge(&limiter, 4, 200 + i, get_cookie(&limiter, 4, 200 + i) + 1));
	limiter.now_ns += 12 * WEIR_NSEC_PER_SEC;
	assert_false(acknowledge(&limiter, 4, 202, get_cookie(&limiter, 4, 202) + 1));
	assert_true(acknowledge(&limiter, 4, 200, 0xcafebabe));
	close(fd);
	end(&limiter);
}

LONG_CASE(a_connection_by_cookie_counts_while_its_client_is_silent, check_silence(WEIR_KEY_SOURCE));
LONG_CASE(so_it_does_for_a_resource_without_a_key, check_silence(0));

/* Linux puts the fragments together, so the first one opens it. */
LONG_CLAIM(an_ack_in_fragments_brings_a_cookie)
{
	int fd = listen_apart(53);
	struct limiter limiter;

	prepare_connections(&limiter, WEIR_KEY_SOURCE, 1);
	load(&limiter);
	for (int i = 0; i < 2; i++) {
		struct packet_spec spec = tcp_of(4, ACK);
		const uint32_t cookie = get_cookie(&limiter, 4, 200 + i);

		spec.more_fragments = true;
		spec.payload_bytes = 20;
		assert_int_equal(acknowledge_by(&limiter, &spec, 200 + i, cookie + 1), i == 0);
	}
	close(fd);
	end(&limiter);
}

/* When its SYN came is not known. Neither the rule nor a system rule times it, by its ACK or by what comes next. */
LONG_CLAIM(no_handshake_by_cookie_is_timed)
{
	_cleanup_(weir_freep) struct weir_connection_total *of_cpu = calloc(weir_host_cpus(), sizeof(*of_cpu));
	int fd = listen_apart(53);
	struct weir_handshakes handshakes;
	struct weir_ruleset_rule *rule, first;
	struct limiter limiter;
	uint64_t opened = 0;
	__u32 slot = 0;

	prepare_connections(&limiter, WEIR_KEY_SOURCE, 2);
	rule = rig_rule(&limiter.rig, WEIR_NO_RESOURCE, WEIR_WINDOW_LEAP, 1000, WEIR_NSEC_PER_SEC, 2);
	rule->ref_resource = WEIR_NO_RESOURCE;
	rule->system = WEIR_SYSTEM_AVG_RT;
	rule->metric = WEIR_METRIC_SIGNAL;
	first = *rule; /* as the reader has it: before all others */
	rule = limiter.rig.ruleset->rules;
	memmove(rule + 1, rule, 2 * sizeof(*rule));
	*rule = first;
	load(&limiter);
	assert_true(acknowledge(&limiter, 4, 200, get_cookie(&limiter, 4, 200) + 1));
	assert_true(acknowledge(&limiter, 4, 200, 0xcafebabe));
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(limiter.rig.object, WEIR_TABLE_HANDSHAKES), &slot,
					     &handshakes),
			 0);
	for (int i = 0; i < WEIR_HANDSHAKE_BUCKETS; i++)
		assert_int_equal(handshakes.bucket[i].count, 0);
	for (uint32_t place = 0; place < limiter.rig.image->rule_count; place++)
		if (limiter.rig.image->rules[place].kind == WEIR_KIND_CONNECTIONS)
			slot = limiter.rig.image->rules[place].slot;
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(limiter.rig.object, WEIR_TABLE_CONNECTION_TOTALS),
					     &slot, of_cpu),
			 0);
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++) {
		opened += of_cpu[cpu].opened;
		assert_int_equal(of_cpu[cpu].counts.handshakes, 0);
	}
	assert_int_equal(opened, 1);
	close(fd);
	end(&limiter);
}

/* ---- never ---- */

static void assert_silent(struct limiter *limiter, const struct packet_spec *spec)
{
	assert_int_equal(ask_spec(limiter, spec, frame, answer), 0);
	assert_int_equal(weir_object_harness(limiter->rig.object)->verdict, WEIR_VERDICT_BLOCK);
}

static void assert_silent_between(struct limiter *limiter, const char *source, const char *destination)
{
	struct packet_spec spec = tcp_of(4, SYN);

	packet_source(&spec, source);
	packet_destination(&spec, destination);
	assert_silent(limiter, &spec);
}

static void check_silent_addresses(enum weir_on_block on_block)
{
	static const char *const single[2] = {"192.0.2.1", "2001:db8::1"};
	static const char *const wrong[2][5] = {{"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1"},
						{"::", "::1", "ff02::1", "ff0e::1:2", "ffff::"}};
	struct limiter limiter;

	begin(&limiter, on_block);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 5; j++) {
			assert_silent_between(&limiter, single[i], wrong[i][j]);
			assert_silent_between(&limiter, wrong[i][j], single[i]);
		}
	end(&limiter);
}

LONG_CASE(no_reset_has_an_end_that_is_no_single_host, check_silent_addresses(WEIR_ON_BLOCK_RESET));
LONG_CASE(no_unreachable_has_an_end_that_is_no_single_host, check_silent_addresses(WEIR_ON_BLOCK_UNREACHABLE));

CLAIM(an_address_of_this_host_gets_no_answer)
{
	struct packet_spec spec = tcp_of(4, SYN), spec6 = tcp_of(6, SYN);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_RESET);
	check_reset(&limiter, &spec);
	check_reset(&limiter, &spec6);
	/* As destination it is what a packet should have. */
	add_own(&limiter, AF_INET, "198.51.100.1", WEIR_OWN_ADDRESS);
	add_own(&limiter, AF_INET6, "2001:db8::2", WEIR_OWN_ADDRESS);
	check_reset(&limiter, &spec);
	check_reset(&limiter, &spec6);
	add_own(&limiter, AF_INET, "192.0.2.1", WEIR_OWN_ADDRESS);
	add_own(&limiter, AF_INET6, "2001:db8::1", WEIR_OWN_ADDRESS);
	assert_silent(&limiter, &spec);
	assert_silent(&limiter, &spec6);
	end(&limiter);
}

LONG_CLAIM(a_broadcast_address_gets_no_answer_and_none_is_sent_from_it)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	add_own(&limiter, AF_INET, "203.0.113.255", WEIR_OWN_BROADCAST);
	assert_silent_between(&limiter, "203.0.113.255", "198.51.100.1");
	assert_silent_between(&limiter, "192.0.2.1", "203.0.113.255");
	end(&limiter);
}

LONG_CLAIM(a_frame_for_many_gets_no_answer)
{
	struct packet_spec spec = tcp_of(4, SYN);
	struct limiter limiter;
	uint32_t bytes;

	begin(&limiter, WEIR_ON_BLOCK_RESET);
	for (int end = 0; end < 2; end++) {
		bytes = build(&spec, frame);
		assert_int_not_equal(ask(&limiter, frame, bytes, answer), 0);
		frame[6 * end] |= 1;
		assert_int_equal(ask(&limiter, frame, bytes, answer), 0);
	}
	end(&limiter);
}

/* As it comes to an interface that is promiscuous: loopback's address, where the test runs, is all zeros. */
LONG_CLAIM(a_frame_for_another_host_gets_no_answer_at_tc)
{
	const struct packet_spec spec = tcp_of(4, SYN);
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = build(&spec, frame), .repeat = 1);
	struct limiter limiter;

	prepare(&limiter, WEIR_ON_BLOCK_RESET, 0);
	rig_load(&limiter.rig, false);
	for (int byte = 0; byte < 2; byte++) {
		memset(frame, 0, 6);
		frame[1] = byte;
		assert_int_equal(
			bpf_prog_test_run_opts(weir_object_hook_fd(limiter.rig.object, WEIR_HOOK_TC_IN), &options), 0);
		assert_int_equal(options.retval, byte ? TC_ACT_SHOT : TC_ACT_REDIRECT);
	}
	end(&limiter);
}

LONG_CLAIM(a_reset_gets_no_answer)
{
	static const uint8_t flags[] = {RST, RST | ACK, RST | SYN, RST | FIN};
	struct limiter limiter;

	for (enum weir_on_block on_block = WEIR_ON_BLOCK_RESET; on_block < WEIR_ON_BLOCK_COUNT; on_block++) {
		begin(&limiter, on_block);
		for (int family = 4; family <= 6; family += 2)
			for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
				struct packet_spec spec = tcp_of(family, flags[i]);

				assert_silent(&limiter, &spec);
			}
		end(&limiter);
	}
}

LONG_CLAIM(an_icmp_message_that_is_no_request_gets_no_answer)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	for (int type = 0; type < 256; type++) {
		struct packet_spec spec = packet_of(4, IPPROTO_ICMP), spec6 = packet_of(6, IPPROTO_ICMPV6);

		spec.icmp_type = spec6.icmp_type = type;
		if (type != 8 && type != 13)
			assert_silent(&limiter, &spec);
		if (type != 128)
			assert_silent(&limiter, &spec6);
	}
	end(&limiter);
}

LONG_CLAIM(a_later_fragment_gets_no_answer)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		struct packet_spec spec = packet_of(4, protocols[i]), spec6 = packet_of(6, protocols[i]);

		spec6.extension_count = 1;
		spec6.extension[0].protocol = 44;
		spec.payload_bytes = spec6.payload_bytes = 64;
		spec.more_fragments = spec6.more_fragments = true;
		assert_int_not_equal(ask_spec(&limiter, &spec, frame, answer), 0);
		assert_int_not_equal(ask_spec(&limiter, &spec6, frame, answer), 0);
		spec.fragment_units = spec6.fragment_units = 100;
		assert_silent(&limiter, &spec);
		assert_silent(&limiter, &spec6);
	}
	end(&limiter);
}

/* Two rules block: the first observes, so the second's answer is given. */
CLAIM(a_rule_that_observes_answers_nothing)
{
	struct packet_spec spec = tcp_of(4, SYN);
	struct weir_ruleset_rule *rule;
	struct limiter limiter;
	uint32_t bytes;

	prepare(&limiter, WEIR_ON_BLOCK_RESET, 0);
	limiter.rig.ruleset->rules[0].observes = true;
	rule = rig_rule(&limiter.rig, 0, WEIR_WINDOW_LEAP, 3, WEIR_NSEC_PER_SEC, 10);
	rule->on_block = WEIR_ON_BLOCK_UNREACHABLE;
	load(&limiter);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask_spec(&limiter, &spec, frame, answer), 0);
	assert_int_equal(weir_object_harness(limiter.rig.object)->verdict, WEIR_VERDICT_PASS);
	bytes = ask_spec(&limiter, &spec, frame, answer);
	assert_int_equal(receive(answer, bytes).protocol, IPPROTO_ICMP);
	assert_int_equal(sent_of(&limiter), 0);
	end(&limiter);
}

LONG_CLAIM(of_another_protocol_there_is_no_answer)
{
	const struct packet_spec udp = packet_of(4, IPPROTO_UDP), tcp = tcp_of(4, SYN);
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_RESET);
	assert_silent(&limiter, &udp);
	end(&limiter);
	begin(&limiter, WEIR_ON_BLOCK_TRUNCATE);
	assert_silent(&limiter, &tcp);
	end(&limiter);
	begin(&limiter, WEIR_ON_BLOCK_COOKIE);
	assert_silent(&limiter, &udp);
	end(&limiter);
}

/* What one limiter answers comes to another that blocks everything and answers, too: each pair of kinds. */
LONG_CLAIM(two_limiters_do_not_answer_each_other_for_ever)
{
	/* Does the second kind answer the first kind's answer? */
	static const bool answers[WEIR_ON_BLOCK_COUNT][WEIR_ON_BLOCK_COUNT] = {
		[WEIR_ON_BLOCK_TRUNCATE] = {[WEIR_ON_BLOCK_UNREACHABLE] = true},
		[WEIR_ON_BLOCK_COOKIE] = {[WEIR_ON_BLOCK_RESET] = true, [WEIR_ON_BLOCK_UNREACHABLE] = true},
	};
	struct limiter limiter[WEIR_ON_BLOCK_COUNT];

	for (enum weir_on_block kind = WEIR_ON_BLOCK_RESET; kind < WEIR_ON_BLOCK_COUNT; kind++) {
		begin(&limiter[kind], kind);
		weir_object_harness(limiter[kind].rig.object)->wants_answer = WEIR_WANTS_SUPPOSED_ANSWER;
	}
	for (enum weir_on_block first = WEIR_ON_BLOCK_RESET; first < WEIR_ON_BLOCK_COUNT; first++)
		for (enum weir_on_block second = WEIR_ON_BLOCK_RESET; second < WEIR_ON_BLOCK_COUNT; second++)
			for (int family = 4; family <= 6; family += 2) {
				const struct packet_spec spec = tcp_of(family, SYN);
				uint32_t bytes = first == WEIR_ON_BLOCK_TRUNCATE
							 ? build_query(family, query, sizeof(query))
							 : build(&spec, frame);

				bytes = ask(&limiter[first], frame, bytes, answer);
				assert_int_not_equal(bytes, 0);
				bytes = ask(&limiter[second], answer, bytes, frame);
				assert_int_equal(bytes != 0, answers[first][second]);
				if (bytes)
					assert_int_equal(ask(&limiter[first], frame, bytes, answer), 0);
			}
	for (enum weir_on_block kind = WEIR_ON_BLOCK_COUNT - 1; kind >= WEIR_ON_BLOCK_RESET; kind--)
		end(&limiter[kind]);
}

/* ---- how often ---- */

/* For a second, packets at even times by CPUs in turns: how many are answered? */
static uint32_t answers_in_a_second(struct limiter *limiter, uint32_t packets, int cpus)
{
	const struct packet_spec spec = tcp_of(4, SYN);
	const uint32_t bytes = build(&spec, frame);
	uint32_t answered = 0;
	int cpu[2];

	rig_cpus(cpu, cpus);
	limiter->pause_ns = WEIR_NSEC_PER_SEC / packets;
	for (uint32_t i = 0; i < packets; i++) {
		if (i % 16 == 0)
			rig_pin(cpu[i / 16 % cpus]);
		answered += ask(limiter, frame, bytes, answer) > 0;
	}
	assert_int_equal(sent_of(limiter), answered);
	assert_int_equal(answers_of(limiter).beyond_rate, packets - answered);
	return answered;
}

static void check_rate(uint64_t rate, uint32_t packets, int cpus)
{
	struct limiter limiter;
	uint32_t answered;

	rig_require(cpus);
	begin_with(&limiter, WEIR_ON_BLOCK_RESET, rate);
	rig_roam(&limiter.rig.roams_to);
	answered = answers_in_a_second(&limiter, packets, cpus);
	if (packets < rate) /* none is lost to a portion that a CPU does not use up */
		assert_int_equal(answered, packets);
	else
		assert_in_range(answered, rate - rate / 8, rate);
	rig_roam(&limiter.rig.roams_to);
	end(&limiter);
}

LONG_CASE(all_answers_together_keep_a_low_rate, check_rate(50, 1000, 1));
CASE(all_answers_together_keep_a_high_rate, check_rate(10000, 15000, 1));
LONG_CASE(cpus_share_a_low_rate, check_rate(50, 1000, 2));
LONG_CASE(cpus_share_a_high_rate, check_rate(10000, 15000, 2));
LONG_CASE(below_the_rate_each_is_answered, check_rate(10000, 9000, 2));

/* The most answers that one second can have: portions are taken as early as can be, the first one so long before that
 * second that its answers just reach into it, and all of them are used.
 */
static uint64_t most_in_a_second(uint64_t portion, uint64_t portion_ns)
{
	const uint64_t end_ns = WEIR_ANSWER_SLACK_NS - 1 + WEIR_NSEC_PER_SEC;
	uint64_t now_ns = 0, tat_ns = 0, most = 0;

	while (now_ns < end_ns) {
		most += portion;
		tat_ns = (tat_ns > now_ns ? tat_ns : now_ns) + portion_ns;
		if (tat_ns > now_ns + WEIR_ANSWER_SLACK_NS)
			now_ns = tat_ns - WEIR_ANSWER_SLACK_NS;
	}
	return most;
}

/* A CPU may take two portions in the time for which one is good, and all keep the rate in any second, with little less.
 */
CLAIM(no_cpu_takes_what_others_need)
{
	static const uint64_t rates[] = {1,    2,     3,     50,    127,     128,      129,	 1000,
					 9999, 10000, 10001, 65535, 1000000, 99999999, 100000000};
	static const uint32_t cpus[] = {1, 2, 3, 128, 1024};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		for (size_t j = 0; j < ARRAY_SIZE(cpus); j++) {
			const struct weir_compile_options options = {.cpus = cpus[j], .now_ns = RIG_START_NS};
			struct weir_image *image;
			struct weir_diag diag = {};
			struct limiter limiter;
			uint64_t portion, portion_ns;

			prepare(&limiter, WEIR_ON_BLOCK_RESET, rates[i]);
			assert_int_equal(weir_image_build(limiter.rig.ruleset, &options, &image, &diag), 0);
			portion = image->config.answer_portion[0];
			assert_true(portion >= 1);
			assert_true(portion == 1 || portion * 2 * cpus[j] * 32 <= rates[i]);
			portion_ns = image->config.answer_portion_ns[0];
			assert_in_range(most_in_a_second(portion, portion_ns), 1, rates[i]);
			assert_true(12 * portion * WEIR_NSEC_PER_SEC >= 11 * rates[i] * portion_ns);
			weir_image_free(image);
			weir_ruleset_free(limiter.rig.ruleset);
		}
}

/* Two a second, of which a second's tolerance lets one more begin: junk takes none of them. */
LONG_CLAIM(what_cannot_be_answered_uses_up_no_rate)
{
	static const uint8_t junk[40];
	struct limiter limiter;

	begin_with(&limiter, WEIR_ON_BLOCK_TRUNCATE, 2);
	limiter.pause_ns = 0;
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&limiter, frame, build_query(4, junk, sizeof(junk)), answer), 0);
	assert_int_equal(answers_of(&limiter).impossible, 100);
	assert_int_not_equal(ask(&limiter, frame, build_query(4, query, sizeof(query)), answer), 0);
	end(&limiter);
}

/* ---- packets whose checksum is left to the device ---- */

/* Do what the device does: sum up from the transport header to the frame's end, and store that where the packet had its
 * checksum.
 */
static void finish_checksum(uint8_t *at, uint32_t bytes, uint32_t place)
{
	const uint16_t sum = (uint16_t)~fold(sum_of(at, bytes)) ?: 0xffff;

	at[place] = sum >> 8;
	at[place + 1] = sum & 0xff;
}

static void check_unfinished(enum weir_on_block on_block)
{
	struct limiter limiter;

	begin(&limiter, on_block);
	limiter.hook = WEIR_HOOK_TC_IN;
	weir_object_harness(limiter.rig.object)->wants_answer = WEIR_WANTS_SUPPOSED_ANSWER;
	for (int family = 4; family <= 6; family += 2) {
		struct packet_spec spec = tcp_of(family, on_block == WEIR_ON_BLOCK_COOKIE ? SYN : ACK);
		const uint32_t ip_bytes = family == 6 ? 40 : 20, header_bytes = 14 + ip_bytes;
		uint32_t bytes, place = 16;

		spec.payload_bytes = on_block == WEIR_ON_BLOCK_COOKIE ? 0 : 100;
		spec.padding_bytes = family == 6 ? 10 : 0;
		spec.checksum = PACKET_CHECKSUM_UNFINISHED;
		bytes = packet_build(&spec, frame);
		if (on_block == WEIR_ON_BLOCK_TRUNCATE || on_block == WEIR_ON_BLOCK_UNREACHABLE) {
			uint8_t *udp = frame + header_bytes;
			uint16_t pseudo;

			place = 6;
			bytes = build_query(family, query, sizeof(query));
			pseudo = fold(sum_of(frame + header_bytes - (family == 6 ? 32 : 8), family == 6 ? 32 : 8) +
				      IPPROTO_UDP + 8 + sizeof(query));
			udp[6] = pseudo >> 8;
			udp[7] = pseudo & 0xff;
		}
		bytes = ask(&limiter, frame, bytes, answer);
		assert_int_not_equal(bytes, 0);
		assert_int_equal(bytes, 14 + (family == 6 ? 40 + get16(answer + 18) : get16(answer + 16)));
		finish_checksum(answer + header_bytes, bytes - header_bytes, place);
		receive(answer, bytes);
		if (on_block == WEIR_ON_BLOCK_UNREACHABLE)
			assert_memory_equal(answer + header_bytes + 8, frame + 14, 30);
	}
	end(&limiter);
}

LONG_CASE(the_device_completes_a_reset, check_unfinished(WEIR_ON_BLOCK_RESET));
LONG_CASE(the_device_completes_an_unreachable, check_unfinished(WEIR_ON_BLOCK_UNREACHABLE));
LONG_CASE(the_device_completes_a_truncated_answer, check_unfinished(WEIR_ON_BLOCK_TRUNCATE));
LONG_CASE(the_device_completes_a_cookie, check_unfinished(WEIR_ON_BLOCK_COOKIE));

/* Where TCP has its checksum, an ICMP error has the header that it quotes. If nothing completes the checksum, as on the
 * way to a container, that would be damaged.
 */
LONG_CLAIM(no_unreachable_quotes_a_tcp_packet_without_checksum_at_tc)
{
	struct limiter limiter;

	begin(&limiter, WEIR_ON_BLOCK_UNREACHABLE);
	limiter.hook = WEIR_HOOK_TC_IN;
	for (int family = 4; family <= 6; family += 2) {
		struct packet_spec spec = tcp_of(family, SYN);

		spec.payload_bytes = 100;
		check_unreachable(&limiter, &spec);
		spec.checksum = PACKET_CHECKSUM_UNFINISHED;
		assert_int_equal(ask(&limiter, frame, packet_build(&spec, frame), answer), 0);
	}
	assert_int_equal(answers_of(&limiter).impossible, 2);
	end(&limiter);
}

/* ---- at tc, behind another program ---- */

/* The hook's program, behind instructions that change the packet (r6 is the context). */
struct behind {
	int program_fd, map_fd;
};

static struct behind put_behind(const struct limiter *limiter, enum weir_hook hook, const struct bpf_insn *first,
				size_t count)
{
	const int hook_fd = weir_object_hook_fd(limiter->rig.object, hook);
	struct behind behind = {.map_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "next", 4, 4, 1, NULL)};
	const struct bpf_insn last[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6},
		{.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 2, .src_reg = BPF_PSEUDO_MAP_FD, .imm = behind.map_fd},
		{},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 99},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_insn insns[32] = {{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1}};

	memcpy(insns + 1, first, count * sizeof(*first));
	memcpy(insns + 1 + count, last, sizeof(last));
	assert_true(behind.map_fd >= 0);
	behind.program_fd =
		bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "first", "GPL", insns, 1 + count + ARRAY_SIZE(last), NULL);
	assert_true(behind.program_fd >= 0);
	assert_int_equal(bpf_map_update_elem(behind.map_fd, &(__u32){0}, &hook_fd, BPF_ANY), 0);
	return behind;
}

static void close_behind(struct behind *behind)
{
	close(behind->program_fd);
	close(behind->map_fd);
}

#define CONTEXT(member) offsetof(struct __sk_buff, member)

/* The kernel keeps a VLAN tag outside the frame, where it stays. */
LONG_CLAIM(a_tag_beside_the_frame_is_no_part_of_the_answer)
{
	static const struct bpf_insn push[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 0x0081}, /* 802.1Q, in network order */
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 7},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_vlan_push},
	};
	struct limiter limiter;

	for (enum weir_on_block kind = WEIR_ON_BLOCK_RESET; kind <= WEIR_ON_BLOCK_UNREACHABLE; kind++) {
		struct behind behind;

		begin(&limiter, kind);
		limiter.hook = WEIR_HOOK_TC_IN;
		behind = put_behind(&limiter, WEIR_HOOK_TC_IN, push, ARRAY_SIZE(push));
		for (int family = 4; family <= 6; family += 2) {
			const struct packet_spec spec = tcp_of(family, SYN);
			const uint32_t bytes = ask_by(&limiter, behind.program_fd, frame, build(&spec, frame), answer);
			struct received received;

			assert_int_not_equal(bytes, 0);
			received = receive(answer, bytes);
			assert_turned(frame, answer, &received);
		}
		close_behind(&behind);
		end(&limiter);
	}
}

/* Does a packet on its way out pass uncounted, with this tc_index, and from this interface? */
static bool is_taken_for_an_answer(const struct behind *behind, uint32_t number, uint32_t ingress_ifindex)
{
	struct __sk_buff context = {.mark = number, .ingress_ifindex = ingress_ifindex};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = 60, .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(behind->program_fd, &options), 0);
	assert_int_not_equal(options.retval, 99);
	return (int)options.retval == TC_ACT_UNSPEC;
}

/* Interface 1 is where the test runs. */
LONG_CLAIM(only_an_answer_leaves_uncounted)
{
	static const struct bpf_insn mark[] = {
		{.code = BPF_LDX | BPF_W | BPF_MEM, .dst_reg = 2, .src_reg = 6, .off = CONTEXT(mark)},
		{.code = BPF_STX | BPF_W | BPF_MEM, .dst_reg = 6, .src_reg = 2, .off = CONTEXT(tc_index)},
	};
	const struct packet_spec spec = tcp_of(4, SYN);
	struct weir_match *out;
	struct limiter limiter;
	struct behind behind;
	uint32_t bytes, number = 0;

	prepare(&limiter, WEIR_ON_BLOCK_RESET, 0);
	limiter.rig.hooks |= 1u << WEIR_HOOK_TC_OUT;
	out = &limiter.rig.ruleset->resources[rig_resource(&limiter.rig, 53, 0)].match;
	out->has_protocol = false;
	out->destination_port_count = 0;
	out->directions = WEIR_MATCHES_OUT;
	rig_rule(&limiter.rig, 1, WEIR_WINDOW_LEAP, 0, WEIR_NSEC_PER_SEC, 10);
	load(&limiter);
	behind = put_behind(&limiter, WEIR_HOOK_TC_OUT, mark, ARRAY_SIZE(mark));
	limiter.hook = WEIR_HOOK_TC_IN;
	bytes = build(&spec, frame);
	for (int i = 0; i < 3; i++)
		assert_false(is_taken_for_an_answer(&behind, 0xa5a5, 1));
	assert_int_not_equal(ask(&limiter, frame, bytes, answer), 0);
	for (uint32_t i = 0; i < 0x10000; i += 3) /* forwarded */
		assert_false(is_taken_for_an_answer(&behind, i, 2));
	while (number < 0x10000 && !is_taken_for_an_answer(&behind, number, 1))
		number++;
	assert_in_range(number, 1, 0xffff);
	assert_false(is_taken_for_an_answer(&behind, number, 1)); /* once */
	close_behind(&behind);
	end(&limiter);
}

/* ---- any packet ---- */

static struct packet_spec random_packet(void)
{
	static const uint8_t protocols[] = {IPPROTO_TCP,  IPPROTO_TCP,	  IPPROTO_UDP, IPPROTO_UDP,
					    IPPROTO_ICMP, IPPROTO_ICMPV6, 132,	       47};
	struct packet_spec spec = packet_of(rand() % 2 ? 4 : 6, protocols[rand() % ARRAY_SIZE(protocols)]);

	spec.tcp_flags = rand() % 2 ? SYN : rand();
	spec.icmp_type = rand() % 2 ? (spec.family == 6 ? 128 : 8) : rand();
	spec.option_words = rand() % 4 ? 0 : rand() % 11;
	spec.tag_count = rand() % 3;
	spec.tag[0].ethertype = spec.tag[1].ethertype = ETHERTYPE_VLAN;
	spec.payload_bytes = rand() % 2 ? rand() % 1400 : rand() % 16;
	spec.padding_bytes = rand() % 10;
	if (spec.family == 6 && rand() % 3 == 0) {
		spec.extension_count = 1;
		spec.extension[0] = (struct packet_extension){rand() % 2 ? 60 : 44, rand() % 3};
	}
	if (rand() % 4 == 0) {
		spec.more_fragments = rand() % 2;
		spec.fragment_units = rand() % 2;
	}
	return spec;
}

/* What docs/answers.md says, of a packet that is as its specification says. */
static bool may_be_answered(const struct packet_spec *spec, bool is_query, enum weir_on_block on_block,
			    enum weir_hook hook, uint32_t frame_bytes)
{
	const bool is_tcp = spec->protocol == IPPROTO_TCP, is_ipv6 = spec->family == 6;
	const bool may_be_part = !is_ipv6 || (spec->extension_count && spec->extension[0].protocol == 44);
	const bool is_later = may_be_part && spec->fragment_units;
	const bool is_whole = !may_be_part || !(spec->fragment_units || spec->more_fragments);
	uint32_t options = is_ipv6 ? 0 : spec->option_words * 4, least;

	if (spec->extension_count)
		options = spec->extension[0].protocol == 44 ? 8 : 8 + spec->extension[0].units * 8;
	if (is_later || (is_tcp && spec->tcp_flags & RST))
		return false;
	if (spec->protocol == (is_ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP) && spec->icmp_type != (is_ipv6 ? 128 : 8) &&
	    (is_ipv6 || spec->icmp_type != 13))
		return false;
	switch (on_block) {
	case WEIR_ON_BLOCK_RESET:
		return is_tcp;
	case WEIR_ON_BLOCK_TRUNCATE:
		return is_query && is_whole && !options;
	case WEIR_ON_BLOCK_COOKIE:
		return is_tcp && is_whole && !options && (spec->tcp_flags & (SYN | ACK)) == SYN;
	default:
		if (spec->protocol == 132 && hook != WEIR_HOOK_XDP)
			return false; /* without a checksum, as these are */
		least = 14 + spec->tag_count * 4 + (is_ipv6 ? 48 + 40 : 28 + 20) + options + 8;
		return !options || frame_bytes >= least;
	}
}

/* No answer is longer than its packet, or 60 bytes; but a SYN,ACK has its MSS, an ICMP error the headers. */
static uint32_t longest_answer(const struct packet_spec *spec, enum weir_on_block on_block, uint32_t frame_bytes)
{
	const uint32_t link_bytes = 14 + spec->tag_count * 4, ip_bytes = spec->family == 6 ? 40 : 20;
	uint32_t most = frame_bytes < 60 ? 60 : frame_bytes, least = 0;

	if (on_block == WEIR_ON_BLOCK_UNREACHABLE)
		least = link_bytes + ip_bytes + 8 + ip_bytes + 8;
	else if (on_block == WEIR_ON_BLOCK_COOKIE)
		least = link_bytes + ip_bytes + 24;
	return most > least ? most : least;
}

/* Random packets, some of them damaged, at either hook. One that is not damaged is answered if it may be. What is
 * answered is well-formed, and not longer than it may be.
 */
LONG_CLAIM(whatever_comes_an_answer_is_due_and_well_formed_and_short)
{
	struct limiter limiter;
	uint32_t answered = 0;

	srand(50);
	for (enum weir_on_block on_block = WEIR_ON_BLOCK_RESET; on_block < WEIR_ON_BLOCK_COUNT; on_block++) {
		begin_with(&limiter, on_block, 100000000);
		weir_object_harness(limiter.rig.object)->wants_answer = WEIR_WANTS_SUPPOSED_ANSWER;
		for (int i = 0; i < 4000; i++) {
			struct packet_spec spec = random_packet();
			const bool is_query = spec.protocol == IPPROTO_UDP && rand() % 2;
			const bool is_damaged = rand() % 4 == 0;
			uint32_t bytes, answer_bytes;

			if (is_query)
				spec.payload_bytes = sizeof(query);
			bytes = packet_build(&spec, frame);
			if (is_query)
				memcpy(frame + bytes - spec.padding_bytes - sizeof(query), query, sizeof(query));
			if (is_damaged)
				frame[12 + rand() % 60] = rand();
			/* A test run at tc wants the whole IP header that the EtherType promises. */
			limiter.hook = bytes < 54 || rand() % 2 ? WEIR_HOOK_XDP : WEIR_HOOK_TC_IN;
			answer_bytes = ask(&limiter, frame, bytes, answer);
			if (!is_damaged)
				assert_int_equal(answer_bytes > 0,
						 may_be_answered(&spec, is_query, on_block, limiter.hook, bytes));
			if (!answer_bytes)
				continue;
			answered++;
			receive(answer, answer_bytes);
			assert_true(answer_bytes <= longest_answer(&spec, on_block, bytes));
		}
		end(&limiter);
	}
	assert_true(answered > 2000);
}

RUN_CLAIMS(NULL, NULL)
