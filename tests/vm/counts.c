// SPDX-License-Identifier: GPL-2.0-only
/*
 * What packets cost, as numbers that no machine changes. tests/budgets holds them, tests/vm/budgets_test compares.
 *
 * counts: x86 instructions, in a machine whose clock counts them (tests/vm/run --steady): a TEST_RUN less that of
 * an empty program. And what the kernel makes of the program: instructions verified, bytes of each function. And its
 * stack. As counts-clang-19 the object of that compiler, and nothing of packets.
 *
 * counts --lines: BPF instructions, calls of helpers, and cache lines of the tables of flows and of what all CPUs
 * write: by an interpreter (tests/lib/interpreter.h), on any machine.
 *
 * Lines of output are "budget: NAME VALUE", and "part: NAME PART VALUE" for a function or a map that has part in it.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/interpreter.h"
#include "../lib/listener.h"
#include "../lib/packets.h"
#include "../lib/stack.h"
#include "base/util.h"
#include "compile/compile.h"
#include "host/host.h"
#include "program/object_internal.h"
#include "rule_sets.h"
#include "sentinel/sentinel.h"
#include "weir.skel.h"

#define START_NS (1000 * WEIR_NSEC_PER_SEC) /* of the interpreter's clock */
#define CLOCK_NS 2			    /* an instruction: -icount shift=1 */
#define CPUS 2
#define FLOWS 300
#define FILLING 30000 /* flows that fill the table, before EVICTING ones are counted */
#define EVICTING 3000
#define LIMIT 1000
#define BUCKET_NS                                                                                                      \
	1000000000ull /* of ten seconds: a TEST_RUN with repeat sleeps 14 ms, and 300 flows are to be over at once */
#define REPEAT 20000  /* so that a timer's interrupt does not show */

struct bench {
	struct weir_ruleset *ruleset;
	struct weir_image *image;
	struct weir_object *object;
	struct interpreter *interpreter; /* NULL: it is the machine that counts */
	int fd, empty_fd;
	uint32_t sources; /* so many were met */
	uint8_t frame[PACKET_BYTES_MAX];
};

static bool lines_only;
static const char *compiler = ""; /* "-clang-19": its object, of which only what the verifier looks at is asked */

/* ---- loading ---- */

static int load_empty(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_DROP},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "empty", "GPL", insns, ARRAY_SIZE(insns), NULL);

	assert_true(fd >= 0);
	return fd;
}

static void bench_begin(struct bench *bench, const char *yaml)
{
	/* As good as those that are drawn (SplitMix64, from 1): with small ones flows would share ghosts' names. */
	static const __u64 seed[16] = {
		0x910a2dec89025cc1, 0xbeeb8da1658eec67, 0xf893a2eefb32555e, 0x71c18690ee42c90b,
		0x71bb54d8d101b5b9, 0xc34d0bff90150280, 0xe099ec6cd7363ca5, 0x85e7bb0f12278575,
		0x491718de357e3da8, 0xcb435c8e74616796, 0x6775dc7701564f61, 0x9afcd44d14cf8bfe,
		0x7476cf8a4baa5dc0, 0x87b341d690d7a28a, 0x6f9b6dae6f4c57a9, 0x2ac2ce17a5794a3b,
	};
	uint64_t now_ns = lines_only ? START_NS : weir_host_now_ns();
	struct weir_object_options object_options = {.seed = seed, .now_ns = now_ns};
	struct weir_compile_options options = {.cpus = CPUS, .now_ns = now_ns};
	char path[] = "/tmp/weir-counts-XXXXXX";
	const char *const paths[] = {path};
	struct weir_diag diag = {};
	int fd = mkstemp(path), err;

	memset(bench, 0, sizeof(*bench));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, yaml, strlen(yaml)), strlen(yaml));
	close(fd);
	weir_use_foreign_reader(&weir_sentinel_reader);
	err = weir_ruleset_read(paths, 1, &bench->ruleset, &diag);
	unlink(path);
	if (!err)
		err = weir_image_build(bench->ruleset, &options, &bench->image, &diag);
	if (!err)
		err = weir_object_load(bench->image, &object_options, &bench->object, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
	bench->fd = weir_object_program_fd(bench->object);
	bench->empty_fd = load_empty();
	if (lines_only)
		bench->interpreter = interpreter_new(bench->object, START_NS);
}

static void bench_end(struct bench *bench)
{
	if (bench->interpreter)
		interpreter_free(bench->interpreter);
	close(bench->empty_fd);
	weir_object_free(bench->object);
	weir_image_free(bench->image);
	weir_ruleset_free(bench->ruleset);
}

/* ---- packets ---- */

static struct packet_spec udp(uint32_t source)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1024, "198.51.100.1", 53, 18);

	spec.source[1] = source >> 16;
	spec.source[2] = source >> 8;
	spec.source[3] = source;
	return spec;
}

static struct packet_spec tcp(uint32_t source, uint8_t flags)
{
	struct packet_spec spec = udp(source);

	spec.protocol = IPPROTO_TCP;
	spec.tcp_flags = flags;
	return spec;
}

static struct packet_spec tcp_syn(uint32_t source)
{
	return tcp(source, 0x02);
}

static double test_run(int fd, const uint8_t *frame, size_t frame_bytes, int repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = frame_bytes, .repeat = repeat);

	assert_int_equal(bpf_prog_test_run_opts(fd, &options), 0);
	return (double)options.duration / CLOCK_NS;
}

/* Instructions of such a packet, the mean of so many, one after the other. */
static double run(struct bench *bench, const struct packet_spec *spec, int repeat)
{
	size_t frame_bytes = packet_build(spec, bench->frame);

	if (!bench->interpreter)
		return test_run(bench->fd, bench->frame, frame_bytes, repeat);
	for (int i = 0; i < repeat; i++)
		interpreter_run(bench->interpreter, bench->frame, frame_bytes);
	return 0;
}

/* The beginning of the next bucket, so that the next one does not come amid what is counted. */
static void wait_for_bucket(struct bench *bench)
{
	uint64_t now_ns = weir_host_now_ns(), wait_ns = BUCKET_NS - now_ns % BUCKET_NS + BUCKET_NS / 10;
	struct timespec wait = {(time_t)(wait_ns / WEIR_NSEC_PER_SEC), (long)(wait_ns % WEIR_NSEC_PER_SEC)};

	if (bench->interpreter)
		interpreter_advance(bench->interpreter, BUCKET_NS);
	else
		nanosleep(&wait, NULL);
}

/* ---- figures ---- */

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

/* The mean but for the dearest fiftieth, which a timer has interrupted. */
static double mean(double *values, size_t count)
{
	size_t kept = count - count / 50;
	double sum = 0;

	qsort(values, count, sizeof(*values), compare);
	for (size_t i = 0; i < kept; i++)
		sum += values[i];
	return sum / kept;
}

/* Not the CPU's own small state, nor what is only read: the tables of flows, and what all CPUs write. */
static bool is_counted(const char *map)
{
	static const char *const counted[] = {
		"narrow_flows",	    "medium_flows", "wide_flows",    "sharers",	       "row_ghosts",
		"overflow_windows", "top_drops",    "top_drop_keys", "events",	       "throttled_flows",
		"penalised_flows",  "penalty_keys", "token_flows",   "warming_flows",  "connections",
		"connection_flows", "handshakes",   "signals",	     "control",	       "notes",
		"occupy_flows",	    "requests",	    "breakers",	     "request_groups",
	};

	for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
		if (!strncmp(map, counted[i], BPF_OBJ_NAME_LEN - 1))
			return true;
	return false;
}

/* What the interpreter saw of `count` packets. */
static void print_seen(struct bench *bench, const char *name, size_t count)
{
	const struct interpreter_function *functions;
	const struct interpreter_map *maps;
	uint64_t lines = 0, instructions = 0, calls = 0;

	for (size_t i = interpreter_maps(bench->interpreter, &maps); i-- > 0;) {
		if (!maps[i].lines || !is_counted(maps[i].name))
			continue;
		printf("part: lines.%s %s %.2f\n", name, maps[i].name, (double)maps[i].lines / count);
		lines += maps[i].lines;
	}
	printf("budget: lines.%s %.2f\n", name, (double)lines / count);
	for (size_t i = interpreter_functions(bench->interpreter, &functions); i-- > 0;) {
		if (!functions[i].instructions)
			continue;
		printf("part: bpf.%s %s %.1f\n", name, functions[i].name, (double)functions[i].instructions / count);
		instructions += functions[i].instructions;
		calls += functions[i].helper_calls;
		if (functions[i].helper_calls)
			printf("part: calls.%s %s %.2f\n", name, functions[i].name,
			       (double)functions[i].helper_calls / count);
	}
	printf("budget: calls.%s %.2f\n", name, (double)calls / count);
	printf("budget: bpf.%s %.1f\n", name, (double)instructions / count);
}

/* So many packets one by one, each from the source that follows: the mean. */
static double count_each(struct bench *bench, const char *name, uint32_t first, size_t count,
			 struct packet_spec (*make)(uint32_t source))
{
	double *values = calloc(count, sizeof(*values)), empty, result;

	assert_non_null(values);
	if (bench->interpreter)
		interpreter_reset(bench->interpreter);
	for (size_t i = 0; i < count; i++) {
		struct packet_spec spec = make(first + i);

		values[i] = run(bench, &spec, 1);
	}
	result = mean(values, count);
	for (size_t i = 0; i < count && !bench->interpreter; i++)
		values[i] = test_run(bench->empty_fd, bench->frame, 60, 1);
	empty = mean(values, count);
	free(values);
	if (bench->interpreter)
		print_seen(bench, name, count);
	else
		printf("budget: x86.%s %.0f\n", name, result - empty);
	return result - empty;
}

/* One packet again and again. */
static double count_repeated(struct bench *bench, const char *name, const struct packet_spec *spec, int repeat)
{
	double result;

	if (bench->interpreter) {
		interpreter_reset(bench->interpreter);
		repeat = repeat < 100 ? repeat : 100;
	}
	result = run(bench, spec, repeat);
	if (!bench->interpreter)
		result -= test_run(bench->empty_fd, bench->frame, 60, repeat);
	if (name && bench->interpreter)
		print_seen(bench, name, repeat);
	else if (name)
		printf("budget: x86.%s %.0f\n", name, result);
	return result;
}

/* ---- one limit ---- */

#define RULES(fields)                                                                                                  \
	"settings: {flowsPerCpu: 4096, timedEntries: 0}\n"                                                             \
	"resources:\n"                                                                                                 \
	"  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"                                 \
	"rules:\n"                                                                                                     \
	"  - {name: first, resource: dns, " fields "}\n"

/* Flow 0 uses up its limit: what its next packets cost. */
static double count_over(struct bench *bench, const char *name, int limit)
{
	struct packet_spec spec = udp(0);

	run(bench, &spec, limit + 100);
	wait_for_bucket(bench);
	run(bench, &spec, 300); /* as in a flood: beyond what is counted one by one */
	return count_repeated(bench, name, &spec, REPEAT);
}

/* New flows, each up to 600 of its 1,000: the middle one, as a timer interrupts some. */
static double count_admitted(struct bench *bench, const char *name)
{
	double value[21];

	wait_for_bucket(bench);
	for (int i = 0; i < 21; i++) {
		struct packet_spec spec = udp(1000 + i);

		run(bench, &spec, 2);
		value[i] = count_repeated(bench, bench->interpreter && i == 0 ? name : NULL, &spec, 400);
	}
	qsort(value, ARRAY_SIZE(value), sizeof(value[0]), compare);
	if (!bench->interpreter)
		printf("budget: x86.%s %.0f\n", name, value[10]);
	return value[10];
}

/* Each of some flows uses up its limit, and sends two packets more: what the second costs. */
static void count_other_over(struct bench *bench, const char *name, int flows, int limit)
{
	for (int i = 0; i < flows; i++) {
		struct packet_spec spec = udp(2000 + i);

		run(bench, &spec, limit + 1);
	}
	wait_for_bucket(bench);
	for (int i = 0; i < flows; i++) {
		struct packet_spec spec = udp(2000 + i);

		run(bench, &spec, 1);
	}
	count_each(bench, name, 2000, flows, udp);
}

static void count_evicting(struct bench *bench, const char *name, struct packet_spec (*make)(uint32_t source))
{
	for (int i = 0; i < FILLING; i++) {
		struct packet_spec spec = make(100000 + i);

		run(bench, &spec, 1);
	}
	wait_for_bucket(bench);
	count_each(bench, name, 200000, EVICTING, make);
}

/* ---- what the kernel makes of it ---- */

#define FUNCTIONS_MAX 256

/* Functions that a rule set switches off are verified and called as well, as far as Linux 6.1 can tell. */
static void print_stack(const struct bench *bench)
{
	const struct bpf_program *program = bench->object->skel->progs.weir_ingress;
	size_t functions;

	printf("budget: stack.program%s %u\n", compiler,
	       stack_deepest(bpf_program__insns(program), bpf_program__insn_cnt(program), &functions));
}

static void print_verified(const struct bench *bench, const char *where)
{
	struct bpf_func_info function[FUNCTIONS_MAX];
	__u32 jited_bytes[FUNCTIONS_MAX] = {};
	struct bpf_prog_info info = {
		.nr_func_info = FUNCTIONS_MAX,
		.func_info_rec_size = sizeof(function[0]),
		.func_info = (uintptr_t)function,
		.nr_jited_func_lens = FUNCTIONS_MAX,
		.jited_func_lens = (uintptr_t)jited_bytes,
	};
	__u32 info_bytes = sizeof(info);
	struct btf *btf;

	assert_int_equal(bpf_obj_get_info_by_fd(bench->fd, &info, &info_bytes), 0);
	printf("budget: verified.%s%s %u\n", where, compiler, info.verified_insns);
	assert_in_range(info.nr_func_info, 1, FUNCTIONS_MAX);
	assert_int_equal(info.nr_func_info, info.nr_jited_func_lens);
	btf = btf__load_from_kernel_by_id(info.btf_id);
	assert_non_null(btf);
	for (__u32 i = 0; i < info.nr_func_info; i++) {
		const struct btf_type *type = btf__type_by_id(btf, function[i].type_id);

		assert_non_null(type);
		printf("part: verified.%s%s %s %u\n", where, compiler, btf__name_by_offset(btf, type->name_off),
		       jited_bytes[i]);
	}
	btf__free(btf);
}

/* ---- claims ---- */

CLAIM(packets_of_a_leap_limit)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000"));
	wait_for_bucket(&bench);
	count_each(&bench, "i4.new", 10000, FLOWS, udp);
	count_each(&bench, "i5.second", 10000, FLOWS, udp);
	count_over(&bench, "i1.over", LIMIT);
	count_admitted(&bench, "i3.admitted");
	count_other_over(&bench, "i2.other_over", bench.interpreter ? FLOWS / 3 : FLOWS, LIMIT);
	count_evicting(&bench, "i6.new_evicting", udp);
	bench_end(&bench);
}

static struct packet_spec in_turn(uint32_t number)
{
	return udp(number % 2);
}

static struct packet_spec in_twos(uint32_t number)
{
	return udp(number / 2 % 2);
}

/* Of two flows, one is over its limit and one has a lease: no two packets, or no three, have the same counters. */
CLAIM(packets_of_alternating_verdicts)
{
	const struct packet_spec over = udp(0), admitted = udp(1);
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000"));
	run(&bench, &over, LIMIT + 1);
	wait_for_bucket(&bench);
	run(&bench, &over, 300);
	run(&bench, &admitted, 100);
	count_each(&bench, "i10.in_turn", 0, FLOWS, in_turn);
	count_each(&bench, "i10.in_twos", 0, FLOWS, in_twos);
	bench_end(&bench);
}

/* It is the last rule that blocks, at LIMIT, and the others must be asked all the same. I7 less I1 to I4 is what the
 * other rules add.
 */
static void count_several(const char *rules, const char *how_many)
{
	char name[4][64];
	struct bench bench;

	snprintf(name[0], sizeof(name[0]), "i7.new_%s", how_many);
	snprintf(name[1], sizeof(name[1]), "i7.over_%s", how_many);
	snprintf(name[2], sizeof(name[2]), "i7.admitted_%s", how_many);
	snprintf(name[3], sizeof(name[3]), "i7.other_over_%s", how_many);
	bench_begin(&bench, rules);
	wait_for_bucket(&bench);
	count_each(&bench, name[0], 10000, FLOWS, udp);
	count_over(&bench, name[1], LIMIT);
	count_admitted(&bench, name[2]);
	count_other_over(&bench, name[3], 4, LIMIT);
	bench_end(&bench);
}

#define RULE(name, resource, fields)                                                                                   \
	"  - {name: " name ", resource: " resource ", statIntervalInMs: 10000, threshold: " fields "}\n"

CLAIM(packets_under_two_rules)
{
	count_several(RULES("threshold: 2000, statIntervalInMs: 10000") RULE("second", "dns", "1000"), "two_rules");
}

CLAIM(packets_under_four_rules)
{
	count_several(RULES("threshold: 2000, statIntervalInMs: 10000") RULE("second", "dns", "1800")
			      RULE("third", "dns", "1600") RULE("fourth", "dns", "1000"),
		      "four_rules");
}

#define RESOURCE(name, fields) "  - {name: " name ", match: {protocol: udp, destinationPort: 53}" fields "}\n"

/* So many of each source, and so many in all. */
CLAIM(packets_under_each_and_all)
{
	count_several("settings: {flowsPerCpu: 4096, timedEntries: 0}\n"
		      "resources:\n" RESOURCE("all", "")
			      RESOURCE("each", ", flow: source") "rules:\n" RULE("in-all", "all", "1000000")
				      RULE("of-each", "each", "1000"),
		      "each_and_all");
}

CLAIM(packets_under_three_keys)
{
	count_several("settings: {flowsPerCpu: 4096, timedEntries: 0}\n"
		      "resources:\n" RESOURCE("services", ", flow: [destination, destinationPort]")
			      RESOURCE("networks", ", flow: source/24/56") RESOURCE(
				      "each", ", flow: source") "rules:\n" RULE("of-service", "services", "30000")
				      RULE("of-network", "networks", "30000") RULE("of-each", "each", "1000"),
		      "three_keys");
}

CLAIM(packets_under_a_limit_of_100000)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 100000, statIntervalInMs: 10000"));
	count_over(&bench, "i8.over_100000", 100000);
	count_other_over(&bench, "i8.other_over_100000", 4, 100000);
	bench_end(&bench);
}

CLAIM(packets_under_strict_and_smooth)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, window: strict"));
	count_admitted(&bench, "i9.strict_admitted");
	bench_end(&bench);
	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, window: smooth"));
	count_admitted(&bench, "i9.smooth_admitted");
	bench_end(&bench);
}

CLAIM(packets_of_connections)
{
	struct packet_spec syn = tcp(0, 0x02), data = tcp(0, 0x10);
	struct bench bench;

	bench_begin(&bench, "settings: {flowsPerCpu: 4096, connections: 4096, timedEntries: 0}\n"
			    "resources:\n"
			    "  - {name: dns, match: {protocol: tcp, destinationPort: 53}, flow: source}\n"
			    "rules:\n"
			    "  - {name: first, resource: dns, metricType: Concurrency, threshold: 10}\n");
	wait_for_bucket(&bench); /* START_NS is in the last tick of a step of connections */
	run(&bench, &syn, 1);
	run(&bench, &data, 2);
	count_repeated(&bench, "kind.established", &data, REPEAT);
	count_each(&bench, "kind.syn_new", 10000, FLOWS, tcp_syn);
	count_evicting(&bench, "kind.syn_evicting", tcp_syn);
	bench_end(&bench);
}

CLAIM(packets_under_tokens)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, window: tokens, burst: 1000"));
	count_over(&bench, "kind.tokens_over", LIMIT);
	count_admitted(&bench, "kind.tokens_admitted");
	bench_end(&bench);
}

CLAIM(packets_under_throttling)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, controlBehavior: Throttling, "
				  "maxQueueingTimeMs: 5000"));
	count_over(&bench, "kind.throttled_over", LIMIT);
	count_admitted(&bench, "kind.throttled_waits");
	bench_end(&bench);
}

CLAIM(packets_that_are_penalised)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, blockDurationInMs: 60000"));
	count_over(&bench, "kind.penalised", LIMIT);
	bench_end(&bench);
}

/* A whole resource's limit, which all of count_admitted()'s sources fit into, without and with fair shares; and with
 * them, while it is contended, by a child above its level.
 */
CLAIM(packets_that_share_fairly)
{
	struct bench bench;

	bench_begin(&bench, RULES("threshold: 1000000, statIntervalInMs: 10000, per: all"));
	count_admitted(&bench, "kind.whole_admitted");
	bench_end(&bench);
	bench_begin(&bench, RULES("threshold: 1000000, statIntervalInMs: 10000, per: all, fairBy: source"));
	count_admitted(&bench, "kind.fair_admitted");
	bench_end(&bench);
	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, per: all, fairBy: source"));
	count_over(&bench, "kind.fair_over", LIMIT);
	bench_end(&bench);
}

CLAIM(packets_of_lists)
{
	struct packet_spec allowed = udp(1 << 16), denied = udp(2 << 16);
	struct bench bench;

	bench_begin(&bench, "allow: [10.1.0.0/16]\n"
			    "deny: [10.2.0.0/16]\n" RULES("threshold: 1000, statIntervalInMs: 10000"));
	run(&bench, &allowed, 2);
	count_repeated(&bench, "kind.allowed", &allowed, REPEAT);
	run(&bench, &denied, 2);
	count_repeated(&bench, "kind.denied", &denied, REPEAT);
	bench_end(&bench);
}

/* As users have it who say nothing of timed entries, which are made room for. */
CLAIM(packets_by_default)
{
	struct bench bench;

	bench_begin(&bench, "resources:\n"
			    "  - {name: dns, match: {protocol: udp, destinationPort: 53}, flow: source}\n"
			    "rules:\n"
			    "  - {name: first, resource: dns, threshold: 1000, statIntervalInMs: 10000}\n");
	count_over(&bench, "default.over", LIMIT);
	count_admitted(&bench, "default.admitted");
	bench_end(&bench);
}

/* SYNs that are all blocked, and their senders answered. One by one, as the frame has become the answer then. Cookies
 * are for SYNs to this host.
 */
static void count_answers(const char *name, const char *on_block)
{
	const struct weir_own_address destination = {.address = {inet_addr("198.51.100.1")}};
	struct bench bench;
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 4096, timedEntries: 0, answers: {rate: 100M/s, cookieRate: 100M/s}}\n"
		 "resources: [{name: web, match: {protocol: tcp, destinationPort: 53}}]\n"
		 "rules: [{resource: web, threshold: 0, onBlock: %s}]\n",
		 on_block);
	bench_begin(&bench, text);
	bpf_map_update_elem(weir_object_map_fd(bench.object, WEIR_TABLE_OWN_ADDRESSES), &destination,
			    &(__u8){WEIR_OWN_ADDRESS}, BPF_ANY); /* fails where nothing is answered */
	count_each(&bench, name, 10000, FLOWS, tcp_syn);
	bench_end(&bench);
}

CLAIM(packets_where_senders_are_answered)
{
	struct bench bench;
	int fd;

	bench_begin(&bench, RULES("threshold: 1000, statIntervalInMs: 10000, onBlock: unreachable"));
	count_admitted(&bench, "answers.admitted");
	bench_end(&bench);
	if (lines_only)
		return; /* the interpreter sends nothing */
	count_answers("answers.drop", "drop");
	count_answers("answers.reset", "reset");
	count_answers("answers.unreachable", "unreachable");
	fd = listen_apart(53);
	count_answers("answers.cookie", "cookie");
	close(fd);
}

/* What follows is counted by the interpreter alone: in a machine each row takes seconds, and what gets dearer does so
 * by BPF instructions as well.
 */

/* The first failed request opens a source's breaker for a day: a SYN, and the RST behind it. */
CLAIM(packets_under_breakers)
{
	struct packet_spec syn = tcp(0, 0x02), reset = tcp(0, 0x04), other_syn = tcp(1, 0x02), data = tcp(1, 0x10);
	struct bench bench;

	if (!lines_only)
		skip();
	bench_begin(&bench, "settings: {connections: 4096, connectionFlows: 4096, timedEntries: 0}\n"
			    "resources:\n"
			    "  - {name: web, match: {protocol: tcp, destinationPort: 53}, flow: source}\n"
			    "circuitBreakers:\n"
			    "  - {resource: web, strategy: ErrorCount, threshold: 1, statIntervalMs: 86400000, "
			    "retryTimeoutMs: 86400000}\n");
	run(&bench, &syn, 1);
	run(&bench, &reset, 1);
	count_repeated(&bench, "breaker.open", &syn, REPEAT);
	run(&bench, &other_syn, 1);
	run(&bench, &data, 2);
	count_repeated(&bench, "breaker.opens_nothing", &data, REPEAT);
	count_each(&bench, "breaker.syn_new", 10000, FLOWS, tcp_syn);
	bench_end(&bench);
}

/* One packet of a prioritized resource again and again, after so many that use up the window of a day. */
static void count_prioritized(const char *name, const char *threshold, int before)
{
	struct packet_spec spec = udp(0);
	struct bench bench;
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 4096, occupyTimeoutInMs: 86400000, timedEntries: 0}\n"
		 "resources: [{name: dns, match: {protocol: udp}, flow: source, prioritized: true}]\n"
		 "rules: [{resource: dns, threshold: %s, statIntervalInMs: 86400000}]\n",
		 threshold);
	bench_begin(&bench, text);
	run(&bench, &spec, before);
	count_repeated(&bench, name, &spec, REPEAT);
	bench_end(&bench);
}

CLAIM(packets_that_occupy)
{
	if (!lines_only)
		skip();
	count_prioritized("occupy.fits", "1000000000", 1);
	count_prioritized("occupy.waits", "1000", 1000);
	count_prioritized("occupy.blocked", "1", 2);
}

CLAIM(packets_under_system_rules)
{
	static const char *const rules[][2] = {{"system.admitted", "InboundQPS, triggerCount: 1000000000"},
					       {"system.dropped", "InboundQPS, triggerCount: 1"},
					       {"system.cpu_usage", "CpuUsage, triggerCount: 1"}};
	struct packet_spec spec = udp(0);

	if (!lines_only)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct bench bench;
		char text[256];

		snprintf(text, sizeof(text),
			 "settings: {timedEntries: 0}\n"
			 "resources: [{name: all}]\n"
			 "systemRules: [{metricType: %s}]\n",
			 rules[i][1]);
		bench_begin(&bench, text);
		run(&bench, &spec, 2);
		count_repeated(&bench, rules[i][0], &spec, REPEAT);
		bench_end(&bench);
	}
}

#define RESOURCES 1024

/* Over its limit, and of one resource among many that differ by a value; or by customers with four services each. */
static void count_among_resources(const char *name, void (*match)(FILE *rules, int i))
{
	struct packet_spec spec = udp(0);
	struct bench bench;
	size_t bytes;
	char *text;
	FILE *rules = open_memstream(&text, &bytes);

	assert_non_null(rules);
	fprintf(rules, "settings: {flowsPerCpu: 4096, timedEntries: 0}\nresources:\n");
	for (int i = 0; i < RESOURCES; i++) {
		fprintf(rules, "  - {name: r%d, flow: source, match: {", i);
		match(rules, i);
		fprintf(rules, "}}\n");
	}
	fprintf(rules, "rules:\n");
	for (int i = 0; i < RESOURCES; i++)
		fprintf(rules, "  - {resource: r%d, threshold: 1, statIntervalInMs: 86400000}\n", i);
	fclose(rules);
	bench_begin(&bench, text);
	free(text);
	run(&bench, &spec, 300);
	count_repeated(&bench, name, &spec, REPEAT);
	bench_end(&bench);
}

static void match_port(FILE *rules, int i)
{
	fprintf(rules, "protocol: udp, destinationPort: %d", 53 + i);
}

static void match_service(FILE *rules, int i)
{
	static const char *const services[] = {"protocol: udp, destinationPort: 53",
					       "protocol: tcp, destinationPort: [80, 443]",
					       "protocol: tcp, destinationPort: 22, tcpFlags: 'syn,!ack'",
					       "protocol: udp, sourcePort: 123"};

	fprintf(rules, "%s, destination: 198.%d.100.0/24", services[i % 4], (51 + i / 4) % 256);
}

CLAIM(packets_among_resources)
{
	if (!lines_only)
		skip();
	count_among_resources("resources.port", match_port);
	count_among_resources("resources.service", match_service);
}

CLAIM(verifier_and_stack)
{
	struct bench bench;

	bench_begin(&bench, one_keyed_rule);
	print_stack(&bench);
	print_verified(&bench, "one_rule");
	bench_end(&bench);
	bench_begin(&bench, all_flow_control);
	print_verified(&bench, "everything");
	bench_end(&bench);
	if (*compiler)
		return; /* of this compiler's, two are enough */
	bench_begin(&bench, every_answer);
	print_verified(&bench, "answers");
	bench_end(&bench);
}

int main(int argc, char **argv)
{
	lines_only = argc > 1 && !strcmp(argv[1], "--lines");
	if (strstr(argv[0], "-clang-"))
		compiler = strstr(argv[0], "-clang-");
	setbuf(stdout, NULL);
	if (lines_only)
		setenv("WEIR_CLAIMS", "packets_*", false);
	return run_claims(NULL, NULL);
}
