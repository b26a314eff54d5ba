// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the shipped object load on this kernel, and does it decide as it should? Runs inside the
 * virtual machines of tests/vm/run, and on any machine as root. Small next to tests/bpf, which proves
 * the decisions: here it is the verifier that is under test, and helpers that older kernels may do
 * differently, so each claim is made for the attached program (its own clock) and for the harness's.
 *
 * How many instructions the verifier looked at is printed; it gives up at a million. WEIR_CLAIMS=PATTERN
 * runs those tests alone.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "base/util.h"
#include "compile/compile.h"
#include "host/host.h"
#include "instance/instance.h"
#include "program/object.h"
#include "rule_sets.h"
#include "sentinel/sentinel.h"
#include "state/counters.h"

/* Four fifths of the million, so that there is room for the next kernel's verifier. What each of Debian's shows is in
 * tests/README.md. Chosen, not derived. On another kernel it must load.
 */
#define VERIFIER_INSTRUCTIONS_GOAL 800000u
#define VERIFIER_INSTRUCTIONS_MAX 1000000u

static uint32_t most_verified(void)
{
	struct utsname kernel;

	assert_int_equal(uname(&kernel), 0);
	return strstr(kernel.release, "-amd64") || strstr(kernel.release, "-arm64") ? VERIFIER_INSTRUCTIONS_GOAL
										    : VERIFIER_INSTRUCTIONS_MAX;
}

/* BPF_PROG_TEST_RUN hands an XDP program the loopback interface. */
#define TEST_RUN_INTERFACE "lo"

/* ---- rule sets ---- */

/* No field is matched, no flow is keyed: as much code as can be is dead. */
static const char one_lone_rule[] =
	SETTINGS "resources:\n"
		 "  - {name: all}\n"
		 "rules:\n"
		 "  - {name: all-together, resource: all, threshold: 5, window: strict, statIntervalInMs: 86400000}\n";

/*
 * Every match field, every key field, every kind of window and row, and (by write_crowd) vectors of
 * three words. Rules meet: all of them evaluate the packets of "web".
 */
#define CROWD 150
#define CROWD_FIRST_PORT 2000
#define KEY_FIELD(constant, name, member, part, form) name ", "
#define EVERY_KEY_FIELD WEIR_KEY_FIELDS(KEY_FIELD)
static const char every_field[] = SETTINGS
	"resources:\n"
	"  - {name: web, match: {family: ipv4, protocol: tcp, destination: 192.0.2.0/24, destinationPort: 80},\n"
	"     flow: [" EVERY_KEY_FIELD "]}\n"
	"  - {name: syn, match: {protocol: tcp, tcpFlags: 'syn,!ack', source: [10.0.0.0/8, 192.0.2.0/24], vlan: 7,\n"
	"     dscp: [cs0, ef], sourcePort: 1024-65535, fragment: none, length: 54-1514, ipLength: 40-1500, ttl: 1-64,\n"
	"     interface: " TEST_RUN_INTERFACE "},\n"
	"     flow: [source/24/56]}\n"
	"  - {name: ping, match: {protocol: [icmp, icmpv6], icmpType: [8, 128]}, flow: source/32/64}\n"
	"  - {name: all}\n";
static const char every_field_rules[] =
	"rules:\n"
	"  - {name: narrow-leap, resource: web, threshold: 5, statIntervalInMs: 86400000}\n"
	"  - {name: narrow-strict, resource: syn, threshold: 6, window: strict, statIntervalInMs: 86400000}\n"
	"  - {name: wide-smooth, resource: syn, threshold: 1000000, unit: bytes, window: smooth,\n"
	"     statIntervalInMs: 86400000}\n"
	"  - {name: watching, resource: web, threshold: 3, mode: observe, statIntervalInMs: 86400000}\n"
	"  - {name: ping-per-client, resource: ping, threshold: 5, window: smooth, statIntervalInMs: 86400000}\n"
	"  - {name: lone, resource: all, threshold: 1000, statIntervalInMs: 86400000}\n";

static void write_crowd(FILE *stream)
{
	fputs(every_field, stream);
	for (int i = 0; i < CROWD; i++)
		fprintf(stream, "  - {name: crowd-%d, match: {protocol: udp, destinationPort: %d}, flow: source}\n", i,
			CROWD_FIRST_PORT + i);
	fputs(every_field_rules, stream);
	for (int i = 0; i < CROWD; i++)
		fprintf(stream, "  - {resource: crowd-%d, threshold: 5, statIntervalInMs: 86400000}\n", i);
}

static struct weir_ruleset *read_rules(const char *yaml)
{
	char path[] = "/tmp/weir-load-XXXXXX";
	const char *const paths[] = {path};
	struct weir_ruleset *ruleset = NULL;
	struct weir_diag diag = {};
	FILE *stream;
	int fd;

	fd = mkstemp(path);
	assert_true(fd >= 0);
	stream = fdopen(fd, "w");
	assert_non_null(stream);
	if (yaml)
		fputs(yaml, stream);
	else
		write_crowd(stream);
	assert_int_equal(fclose(stream), 0);

	weir_use_foreign_reader(&weir_sentinel_reader);
	weir_ruleset_read(paths, 1, &ruleset, &diag);
	unlink(path);
	if (!ruleset)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_non_null(ruleset);
	return ruleset;
}

/* ---- one loaded object ---- */

struct loaded {
	enum weir_hook hook;
	struct weir_ruleset *ruleset;
	struct weir_image *image;
	struct weir_object *object;
	bool is_virtual;
	uint8_t frame[PACKET_BYTES_MAX];
};

static uint64_t thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * WEIR_NSEC_PER_SEC + used.tv_nsec;
}

static void print_verified(const struct weir_object *object, enum weir_hook hook, const char *what, bool is_virtual)
{
	static const char *const names[WEIR_HOOKS] = {"xdp", "tc in", "tc out", "tc bare in", "tc bare out"};
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(weir_object_hook_fd(object, hook), &info, &info_bytes), 0);
	printf("verified: %-14s %-8s %-11s %7u instructions\n", what, is_virtual ? "virtual" : "attached", names[hook],
	       info.verified_insns);
	assert_in_range(info.verified_insns, 1, most_verified());
}

/* Where the claims are made; beside XDP. */
static enum weir_hook hook_of_claims;

/* yaml NULL: the crowd. A refusal by the kernel is printed, verifier's last words included. */
static void load(struct loaded *loaded, const char *what, const char *yaml, bool is_virtual)
{
	/* Of those that nobody attaches here the verifier's opinion is asked, too. */
	const uint32_t all = (1u << WEIR_HOOKS) - 1, own = 1u << WEIR_HOOK_XDP | 1u << hook_of_claims;
	const uint32_t hooks = hook_of_claims && !is_virtual ? all : own;
	struct weir_object_options object_options = {.is_virtual = is_virtual, .hooks = hooks};
	struct weir_compile_options options = {
		.is_at_tc = hook_of_claims != WEIR_HOOK_XDP,
		.cpus = weir_host_cpus(),
		.now_ns = is_virtual ? 0 : weir_host_now_ns(),
		.ifindex = weir_host_find_ifindex,
	};
	struct weir_diag diag = {};
	uint64_t began_ns;
	int err;

	memset(loaded, 0, sizeof(*loaded));
	loaded->hook = hook_of_claims;
	loaded->is_virtual = is_virtual;
	loaded->ruleset = read_rules(yaml);
	err = weir_image_build(loaded->ruleset, &options, &loaded->image, &diag);
	began_ns = thread_ns();
	if (!err)
		err = weir_object_load(loaded->image, &object_options, &loaded->object, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);

	printf("loaded: %-14s in %llu ms\n", what, (unsigned long long)(thread_ns() - began_ns) / 1000000);
	for (enum weir_hook hook = WEIR_HOOK_XDP; hook < WEIR_HOOKS; hook++)
		if (hooks >> hook & 1)
			print_verified(loaded->object, hook, what, is_virtual);
}

static void unload(struct loaded *loaded)
{
	weir_object_free(loaded->object);
	weir_image_free(loaded->image);
	weir_ruleset_free(loaded->ruleset);
}

/* Evaluate once, and say what came of it. */
static enum xdp_action evaluate(struct loaded *loaded, const struct packet_spec *spec)
{
	size_t frame_bytes = packet_build(spec, loaded->frame);
	int action;

	if (loaded->is_virtual) {
		volatile struct weir_harness *harness = weir_object_harness(loaded->object);

		harness->clock_ns = spec->time_ns;
		harness->frame_bytes = frame_bytes;
		harness->ifindex = if_nametoindex(TEST_RUN_INTERFACE);
	}
	action = weir_object_evaluate_at(loaded->object, loaded->hook, loaded->frame, frame_bytes, 1);
	if (action != XDP_PASS && action != XDP_DROP && action != XDP_TX)
		fail_msg("BPF_PROG_TEST_RUN: %s", strerror(-action));
	return action;
}

/* How many of `count` such packets pass. */
static int passed_of(struct loaded *loaded, const struct packet_spec *spec, int count)
{
	int passed = 0;

	for (int i = 0; i < count; i++)
		passed += evaluate(loaded, spec) == XDP_PASS;
	return passed;
}

/* ---- claims ---- */

/* The first packet of most claims; everything in it can be changed. */
static struct packet_spec query(const char *source)
{
	struct packet_spec spec = packet_udp(source, 5353, source[0] == '2' ? "2001:db8::53" : "192.0.2.53", 53, 32);

	spec.time_ns = WEIR_NSEC_PER_SEC;
	return spec;
}

static void check_one_keyed_rule(bool is_virtual)
{
	struct packet_spec first = query("10.0.0.1"), second = query("10.0.0.2"), ipv6 = query("2001:db8::1");
	struct packet_spec other = packet_udp("10.0.0.1", 5353, "192.0.2.53", 54, 32);
	struct packet_spec arp = {.ethertype = ETHERTYPE_ARP, .payload_bytes = 46};
	struct packet_spec cut = query("10.0.0.3");
	struct loaded loaded;

	arp.family = 4;
	cut.cut_bytes = 14 + 20 + 4;
	load(&loaded, "one keyed rule", one_keyed_rule, is_virtual);
	assert_int_equal(passed_of(&loaded, &first, 5), 5);
	assert_int_equal(passed_of(&loaded, &first, 1), 0);
	assert_int_equal(passed_of(&loaded, &second, 50), 5);
	assert_int_equal(passed_of(&loaded, &ipv6, 50), 5);
	assert_int_equal(passed_of(&loaded, &first, 50), 0);
	assert_int_equal(passed_of(&loaded, &other, 50), 50);
	assert_int_equal(passed_of(&loaded, &arp, 1), 0);
	assert_int_equal(passed_of(&loaded, &cut, 1), 0);
	unload(&loaded);
}

CASE(five_of_each_source_pass_when_attached, check_one_keyed_rule(false));
CASE(five_of_each_source_pass_in_the_harness, check_one_keyed_rule(true));

/* A SYN that is both "web" and "syn". */
static struct packet_spec syn(const char *source)
{
	struct packet_spec spec = packet_udp(source, 40000, "192.0.2.80", 80, 0);

	spec.time_ns = WEIR_NSEC_PER_SEC;
	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = 0x02;
	spec.tag[0] = (struct packet_tag){ETHERTYPE_QINQ, 7};
	spec.tag[1] = (struct packet_tag){ETHERTYPE_VLAN, 8};
	spec.tag_count = 2;
	return spec;
}

static void check_every_field(bool is_virtual)
{
	struct packet_spec web = syn("10.0.0.1"), neighbour = syn("10.0.0.2"), ack = syn("10.0.0.1");
	struct packet_spec ping = query("2001:db8::1"), crowd = query("10.0.0.9");
	struct loaded loaded;

	neighbour.source_port++; /* the same /24, so the same "syn", but another "web" */
	ack.source_port += 2;
	ack.tcp_flags = 0x12;
	ping.protocol = IPPROTO_ICMPV6;
	ping.icmp_type = 128;
	ping.extension[0] = (struct packet_extension){IPPROTO_DSTOPTS, 255};
	ping.extension[1] = (struct packet_extension){IPPROTO_DSTOPTS, 255};
	/* With two headers of 2,048 bytes the type lies beyond the first buffer. At tc a test run has only a page. */
	ping.extension_count = hook_of_claims ? 1 : 2;
	ping.payload_bytes = hook_of_claims ? 1000 : 4000;

	load(&loaded, "every field", NULL, is_virtual);
	assert_int_equal(passed_of(&loaded, &web, 8), 5);
	assert_int_equal(passed_of(&loaded, &neighbour, 8), 1); /* the sixth SYN of the /24 */
	assert_int_equal(passed_of(&loaded, &ack, 8), 5);
	assert_int_equal(passed_of(&loaded, &ping, 8), 5);
	for (int i = 0; i < CROWD; i += 37) {
		crowd.destination_port = CROWD_FIRST_PORT + i;
		assert_int_equal(passed_of(&loaded, &crowd, 8), 5);
	}
	unload(&loaded);
}

CASE(every_field_and_window_works_when_attached, check_every_field(false));
CASE(every_field_and_window_works_in_the_harness, check_every_field(true));

/* Rules with labels for addresses, each of which has a label of its own: so they decide alike. */
static char *with_labels(const char *rules)
{
	static const char *const words[][2] = {
		{"flow: source", "flow: source@s"},
		{"{source: 10.0.0.2", "{label: two"},
		{"{source: 10.0.0.3", "{label: three"},
		{"{source: 10.0.0.9", "{label: nine"},
	};
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	fputs("sets:\n  s: {labels: true, prefixes: [{prefix: 10.0.0.1, label: one}, {prefix: 10.0.0.2, label: two},\n"
	      "    {prefix: 10.0.0.3, label: three}, {prefix: 10.0.0.9, label: nine}]}\n",
	      stream);
	while (*rules) {
		size_t i = 0;

		while (i < ARRAY_SIZE(words) && strncmp(rules, words[i][0], strlen(words[i][0])) != 0)
			i++;
		if (i < ARRAY_SIZE(words)) {
			fputs(words[i][1], stream);
			rules += strlen(words[i][0]);
		} else {
			fputc(*rules++, stream);
		}
	}
	fclose(stream);
	return text;
}

static void check_all_flow_control(bool is_virtual, bool by_label)
{
	_cleanup_(weir_freep) char *labelled = by_label ? with_labels(all_flow_control) : NULL;
	struct packet_spec plain = query("10.0.0.1"), more = query("10.0.0.2"), none = query("10.0.0.3");
	struct packet_spec watched = query("10.0.0.1"), mail = query("10.0.0.1"), all = query("10.0.0.1");
	struct packet_spec web = query("10.0.0.1"), allowed = query("100.64.0.7"), denied = query("100.64.0.8");
	struct packet_spec login = query("10.0.0.1"), voice = query("10.0.0.1"), service = query("10.0.0.1");
	struct packet_spec allowed6 = query("2001:db8:a::1");
	struct loaded loaded;

	watched.destination_port = 54;
	mail.destination_port = 25;
	web.destination_port = 80;
	all.destination_port = 81;
	load(&loaded, by_label ? "all by label" : "all of it", labelled ?: all_flow_control, is_virtual);
	assert_int_equal(passed_of(&loaded, &watched, 3), 3);
	assert_int_equal(passed_of(&loaded, &plain, 3), 3);
	assert_int_equal(passed_of(&loaded, &watched, 3), 3); /* three passed on dns, and its own do not count */
	assert_int_equal(passed_of(&loaded, &plain, 8), 2);
	assert_int_equal(passed_of(&loaded, &watched, 3), 0);
	assert_int_equal(passed_of(&loaded, &more, 20), 7);
	assert_int_equal(passed_of(&loaded, &none, 20), 0);
	assert_int_equal(passed_of(&loaded, &mail, 8), 2); /* at once, and a day later; the third waits too long */
	mail.source[3] = 3;
	assert_int_equal(passed_of(&loaded, &mail, 8), 0);
	login.destination_port = 22;
	for (int i = 0; i < 6; i++) {
		login.source_port = 1000 + i;
		assert_int_equal(passed_of(&loaded, &login, 4), i < 3 ? 4 : 0);
	}
	login.source[3] = 3;
	assert_int_equal(passed_of(&loaded, &login, 4), 0);
	voice.destination_port = 82;
	assert_int_equal(passed_of(&loaded, &voice, 8), 3); /* a bucket is far too long to wait for */
	voice.source[3] = 3;
	assert_int_equal(passed_of(&loaded, &voice, 8), 3);
	voice.destination_port = 83;
	assert_int_equal(passed_of(&loaded, &voice, 8), 2);
	assert_int_equal(passed_of(&loaded, &allowed, 20), 20);
	assert_int_equal(passed_of(&loaded, &allowed6, 20), 20);
	assert_int_equal(passed_of(&loaded, &denied, 20), 0);
	/* No controller has a share of it. The harness knows no other hosts. */
	service.destination_port = 84;
	assert_int_equal(passed_of(&loaded, &service, 8), is_virtual ? 5 : 0);
	/* No controller ran: the safe threshold, of the plain warm-up rule and of full memory. */
	assert_int_equal(passed_of(&loaded, &all, 20), 6);
	if (is_virtual)
		assert_int_equal(passed_of(&loaded, &web, 50), 10); /* a third, being cold */
	unload(&loaded);
}

CASE(all_flow_control_works_when_attached, check_all_flow_control(false, false));
CASE(all_flow_control_works_in_the_harness, check_all_flow_control(true, false));
CASE(all_flow_control_works_by_label, check_all_flow_control(false, true));

/* The harness answers nobody who does not ask for it, and at tc a test run's frames are for another host. */
static void check_answers(bool is_virtual)
{
	const bool is_answered = !is_virtual && hook_of_claims == WEIR_HOOK_XDP;
	struct packet_spec spec = query("10.0.0.1");
	struct loaded loaded;

	spec.destination_port = 54;
	load(&loaded, "every answer", every_answer, is_virtual);
	assert_int_equal(passed_of(&loaded, &spec, 8), 5);
	if (is_answered)
		assert_int_equal(evaluate(&loaded, &spec), XDP_TX);
	unload(&loaded);
}

CASE(who_is_blocked_is_answered_when_attached, check_answers(false));
CASE(who_is_blocked_is_answered_in_the_harness, check_answers(true));

/* ---- the same at tc ---- */

static int claim_at_tc(void **state)
{
	hook_of_claims = WEIR_HOOK_TC_IN;
	return 0;
}

static int claim_at_xdp(void **state)
{
	hook_of_claims = WEIR_HOOK_XDP;
	return 0;
}

CASE_WITHIN(five_of_each_source_pass_in_the_harness_at_tc, claim_at_tc, claim_at_xdp, check_one_keyed_rule(true));
CASE_WITHIN(every_field_and_window_works_when_attached_at_tc, claim_at_tc, claim_at_xdp, check_every_field(false));
CASE_WITHIN(every_field_and_window_works_in_the_harness_at_tc, claim_at_tc, claim_at_xdp, check_every_field(true));
CASE_WITHIN(all_flow_control_works_when_attached_at_tc, claim_at_tc, claim_at_xdp,
	    check_all_flow_control(false, false));
CASE_WITHIN(all_flow_control_works_in_the_harness_at_tc, claim_at_tc, claim_at_xdp,
	    check_all_flow_control(true, false));

CASE_WITHIN(who_is_blocked_is_answered_when_attached_at_tc, claim_at_tc, claim_at_xdp, check_answers(false));
CASE_WITHIN(who_is_blocked_is_answered_in_the_harness_at_tc, claim_at_tc, claim_at_xdp, check_answers(true));

/* Answers go out, each to who is their receiver; what comes in from there is of the same flow. */
CLAIM(what_goes_out_is_limited_with_what_comes_in)
{
	static const char both[] =
		SETTINGS "resources:\n"
			 "  - {name: answers, match: {direction: out, protocol: udp, sourcePort: 53}, flow: remote}\n"
			 "  - {name: all, match: {direction: both, protocol: udp}, flow: [remote, localPort]}\n"
			 "rules:\n"
			 "  - {resource: answers, threshold: 3, statIntervalInMs: 86400000}\n"
			 "  - {resource: all, threshold: 8, statIntervalInMs: 86400000}\n";
	struct packet_spec asked = query("10.0.0.1"), answer = packet_udp("192.0.2.53", 53, "10.0.0.1", 5353, 32);
	struct loaded loaded;

	answer.time_ns = asked.time_ns;
	hook_of_claims = WEIR_HOOK_TC_OUT;
	load(&loaded, "both ways", both, true);
	hook_of_claims = WEIR_HOOK_XDP;
	assert_int_equal(passed_of(&loaded, &answer, 5), 3);
	loaded.hook = WEIR_HOOK_XDP;
	assert_int_equal(passed_of(&loaded, &asked, 9), 5);
	unload(&loaded);
}

static bool stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return !sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* Rows of both kinds and the lone one: each CPU must see what the other counted. */
static void check_two_cpus(const char *what, const char *yaml, bool is_virtual)
{
	struct packet_spec spec = query("10.0.0.1");
	struct loaded loaded;
	int passed = 0;

	load(&loaded, what, yaml, is_virtual);
	for (int i = 0; i < 100; i++) {
		assert_true(stay_on(i % 2));
		passed += passed_of(&loaded, &spec, 1);
	}
	assert_int_equal(passed, 5);
	assert_true(stay_on(0));
	unload(&loaded);
}

CLAIM(two_cpus_share_one_limit)
{
	static const char medium[] = SETTINGS
		"resources:\n"
		"  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"
		"rules:\n" /* a frame of the query has 74 bytes */
		"  - {resource: dns, threshold: 370, unit: bytes, window: smooth, statIntervalInMs: 86400000}\n";
	static const char wide[] = SETTINGS /* for the sake of another flow */
		"resources:\n"
		"  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"
		"rules:\n"
		"  - {resource: dns, threshold: 370, unit: bytes, window: smooth, statIntervalInMs: 86400000,\n"
		"     overrides: [{source: 100.64.9.9, threshold: 3000000000}]}\n";

	if (!stay_on(1)) {
		print_message("only one CPU\n");
		skip();
	}
	check_two_cpus("narrow", one_keyed_rule, false);
	check_two_cpus("medium", medium, false);
	check_two_cpus("wide", wide, false);
	check_two_cpus("lone", one_lone_rule, false);
}

/* ---- on the wire ---- */

#define LIVE_NEAR "weir0"
#define LIVE_FAR "weir1"
#define LIVE_INSTANCE "vm-test"

static void live_send(const struct packet_spec *spec, int count)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(LIVE_FAR)};
	static uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = packet_build(spec, frame);
	_cleanup_(weir_closep) int fd = socket(AF_PACKET, SOCK_RAW, 0);

	assert_true(fd >= 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(sendto(fd, frame, frame_bytes, 0, (struct sockaddr *)&to, sizeof(to)), frame_bytes);
}

/* Counters of resource slot 0, once `matched` packets have arrived or a while is over. */
static struct weir_resource_sum live_count(uint64_t matched)
{
	struct weir_resource_sum sum = {};

	for (int tries = 0; tries < 100; tries++) {
		_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
		_cleanup_(weir_counters_free) struct weir_counters counters = {};
		struct weir_diag diag = {};

		assert_int_equal(weir_instance_open(LIVE_INSTANCE, &instance, &diag), 0);
		assert_int_equal(weir_counters_read(instance, &counters, &diag), 0);
		sum = counters.resources[0];
		if (sum.passed.packets + sum.blocked.packets >= matched)
			break;
		usleep(20000);
	}
	return sum;
}

static void live_attach(enum weir_attach_mode mode)
{
	static const char *const interfaces[] = {LIVE_NEAR};
	struct weir_ruleset *ruleset = read_rules(one_keyed_rule);
	struct weir_attach_options options = {
		.instance = LIVE_INSTANCE, .interfaces = interfaces, .interface_count = 1, .mode = mode};
	struct weir_diag diag = {};
	int err = weir_instance_attach(&options, ruleset, NULL, &diag);

	weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	weir_ruleset_free(ruleset);
	assert_int_equal(err, 0);
}

static void live_reload(void)
{
	struct weir_ruleset *ruleset = read_rules(one_keyed_rule);
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	struct weir_diag diag = {};
	int err;

	ruleset->rules[0].threshold_micro = 7 * WEIR_MICRO;
	err = weir_instance_reload(LIVE_INSTANCE, ruleset, &(struct weir_reload_options){}, &result, &diag);
	weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	weir_ruleset_free(ruleset);
	assert_int_equal(err, 0);
	assert_int_equal(result.kept_rules, 1);
}

static void live_detach(void)
{
	struct weir_diag diag = {};
	int err = weir_instance_detach(LIVE_INSTANCE, NULL, 0, &diag);

	weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
}

static void check_live(enum weir_attach_mode mode)
{
	struct packet_spec spec = query("10.0.0.1");
	struct weir_resource_sum sum;

	live_attach(mode);
	live_send(&spec, 100);
	sum = live_count(100);
	assert_int_equal(sum.passed.packets, 5);
	assert_int_equal(sum.blocked.packets, 95);

	/* Two more than before: the reload kept the window. */
	live_reload();
	live_send(&spec, 100);
	sum = live_count(200);
	assert_int_equal(sum.passed.packets, 7);
	assert_int_equal(sum.blocked.packets, 193);
	live_detach();
}

static int make_veth(void **state)
{
	if (unshare(CLONE_NEWNET))
		return -1;
	return system("ip link add " LIVE_NEAR " type veth peer name " LIVE_FAR " && ip link set " LIVE_NEAR
		      " up && ip link set " LIVE_FAR " up");
}

CASE(a_reload_on_veth_keeps_the_window_in_native_mode, check_live(WEIR_MODE_NATIVE));
CASE(a_reload_on_veth_keeps_the_window_in_skb_mode, check_live(WEIR_MODE_SKB));

int main(void)
{
	setbuf(stdout, NULL);
	return stay_on(0) ? run_claims(make_veth, NULL) : 1;
}
