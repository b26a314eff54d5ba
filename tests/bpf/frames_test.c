// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hostile frames: the shipped program and the reference model say the same of each, in the kernel, where headers are
 * read within the verifier's bounds and from later buffers. The same class; and of IP, the same addresses, ports,
 * protocol, VLAN and DSCP, and the same resources by everything else that a match can ask for.
 *
 * WEIR_FRAMES says how many (tests/README.md says what a long run found), WEIR_FRAMES_SEED which ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/harness.h"
#include "../lib/model_packet.h"
#include "../lib/shortcuts.h"
#include "base/util.h"
#include "host/host.h"
#include "tables/flow_hash.h"

#define FRAMES 100000
#define VARIANTS 8 /* of each packet that is built: the first as it is, the others damaged */
#define RESOURCES_MAX 24

/* ---- the rules ---- */

/* A resource for each thing that a match may ask of a packet; the first is for all packets, whose key has every field.
 */
struct questions {
	struct weir_ruleset ruleset;
	struct weir_ruleset_resource resource[RESOURCES_MAX];
	struct weir_range range[RESOURCES_MAX];
	struct weir_tcp_flags flags[8];
	char name[RESOURCES_MAX][8];
	struct weir_ruleset_rule rule;
};

static struct weir_ruleset_resource *ask(struct questions *questions)
{
	size_t place = questions->ruleset.resource_count++;

	assert_true(place < RESOURCES_MAX);
	snprintf(questions->name[place], sizeof(questions->name[place]), "r%zu", place);
	questions->resource[place].name = questions->name[place];
	return &questions->resource[place];
}

#define ASK_RANGE(questions, member, from, to)                                                                         \
	do {                                                                                                           \
		struct weir_ruleset_resource *_resource = ask(questions);                                              \
		struct weir_range *_range = &(questions)->range[_resource - (questions)->resource];                    \
                                                                                                                       \
		*_range = (struct weir_range){from, to};                                                               \
		_resource->match.member = _range;                                                                      \
		_resource->match.member##_count = 1;                                                                   \
	} while (0)

static void ask_everything(struct questions *questions)
{
	struct weir_flow *flow = &ask(questions)->flow;

	questions->ruleset.settings = (struct weir_settings){
		.flows_per_cpu = 512,
		.drop_malformed = true,
		.drop_unsupported = true,
		.drop_non_ip = true,
	};
	flow->fields = (1u << WEIR_KEY_FIELD_COUNT) - 1;
	flow->source_bits[0] = flow->destination_bits[0] = 32;
	flow->source_bits[1] = flow->destination_bits[1] = 128;
	for (int bit = 0; bit < 8; bit++) {
		struct weir_match *match = &ask(questions)->match;

		questions->flags[bit] = (struct weir_tcp_flags){.set = 1 << bit};
		match->tcp_flags = &questions->flags[bit];
		match->tcp_flags_count = 1;
	}
	for (int fragment = 0; fragment < WEIR_FRAGMENT_KINDS; fragment++)
		ask(questions)->match.fragments = 1 << fragment;
	ASK_RANGE(questions, source_port, 0, UINT16_MAX); /* that there are ports at all */
	ASK_RANGE(questions, vlan, 0, 0);		  /* a key without a tag has this number, too */
	ASK_RANGE(questions, icmp_type, 0, 127);
	ASK_RANGE(questions, icmp_type, 64, 191);
	ASK_RANGE(questions, icmp_type, 128, 255);
	ASK_RANGE(questions, length, 0, 79);
	ASK_RANGE(questions, length, 1500, 65535);
	ASK_RANGE(questions, ip_length, 0, 46);
	ASK_RANGE(questions, ip_length, 40, 68);
	ASK_RANGE(questions, ip_length, 1481, 65535);
	ASK_RANGE(questions, ttl, 0, 64);
	ASK_RANGE(questions, ttl, 64, 255);
	questions->rule = (struct weir_ruleset_rule){
		.name = "never",
		.threshold_micro = 1000000000ull * WEIR_MICRO,
		.interval_ns = SECOND,
		.samples = 10,
		.window = WEIR_WINDOW_LEAP,
	};
	questions->ruleset.resources = questions->resource;
	questions->ruleset.rules = &questions->rule;
	questions->ruleset.rule_count = 1;
}

/* ---- the frames ---- */

struct frames {
	struct questions questions;
	struct weir_image *image;
	struct weir_object *object;
	struct random random;
	size_t frame_bytes; /* on the wire */
	size_t given_bytes; /* to the program; as many, as a rule */
	uint8_t frame[PACKET_BYTES_MAX], built[PACKET_BYTES_MAX];
	uint64_t of_class[CLASS_NON_IP + 1];
};

/* Numbers that headers begin or end with, or count wrong by. */
static uint8_t odd_byte(struct random *random)
{
	static const uint8_t odd[] = {0,    1,	  4,	5,    6,    8,	  17,	43,   44,   50,	  51,
				      58,   59,	  60,	0x08, 0x1f, 0x20, 0x40, 0x44, 0x45, 0x4f, 0x60,
				      0x80, 0x81, 0x86, 0x88, 0xa8, 0xdd, 0xf0, 0xff, 132};

	return random_percent(random, 70) ? odd[random_below(random, sizeof(odd))] : random_u64(random);
}

/* A length of 16 bits that is wrong by little. */
static void lie(struct random *random, uint8_t *at)
{
	uint16_t number = at[0] << 8 | at[1];

	number += random_below(random, 33) - 16;
	at[0] = number >> 8;
	at[1] = number;
}

#define IPV4_LENGTH_OFFSET 16 /* of a frame without a tag */
#define IPV6_LENGTH_OFFSET 18

/* Up to eight bytes of the headers are others, one field of 16 bits is wrong, or the frame ends elsewhere. A length of
 * zero is a jumbogram's.
 */
static void damage(struct frames *frames)
{
	struct random *random = &frames->random;
	size_t headers = frames->frame_bytes < 120 ? frames->frame_bytes : 120;
	size_t count = random_below(random, random_percent(random, 80) ? 3 : 9);

	for (size_t i = 0; i < count; i++)
		frames->frame[random_between(random, 12, headers - 1)] = odd_byte(random);
	if (headers > 16 && random_percent(random, 40))
		lie(random, frames->frame + random_between(random, 12, headers - 2));
	if (headers > IPV6_LENGTH_OFFSET + 1 && random_percent(random, 5))
		memset(frames->frame + IPV6_LENGTH_OFFSET, 0, 2);
	if (random_percent(random, 25))
		frames->frame_bytes = random_between(random, 14, headers);
}

/* A frame so long that its header cannot say it (BIG TCP), or nearly; zeros follow the headers. The kernel takes no
 * whole one to try, so the program is given its length.
 */
#define LONG_GIVEN_BYTES 20000 /* eight extension headers of 2,048 bytes end before that */

static void stretch(struct frames *frames)
{
	struct random *random = &frames->random;
	size_t tag_bytes = 4 * random_below(random, 3);

	memset(frames->frame + frames->frame_bytes, 0, LONG_GIVEN_BYTES - frames->frame_bytes);
	frames->given_bytes = LONG_GIVEN_BYTES;
	frames->frame_bytes = random_percent(random, 50) ? random_between(random, 65500, 65600)
							 : random_between(random, LONG_GIVEN_BYTES, 300000);
	if (random_percent(random, 80))
		memset(frames->frame + IPV4_LENGTH_OFFSET + tag_bytes, 0, 2);
	if (random_percent(random, 80))
		memset(frames->frame + IPV6_LENGTH_OFFSET + tag_bytes, 0, 2);
}

/* Bytes by chance alone, behind an EtherType that is looked behind. */
static void make_noise(struct frames *frames)
{
	static const uint16_t types[] = {ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, ETHERTYPE_QINQ};
	struct random *random = &frames->random;
	uint16_t type = types[random_below(random, ARRAY_SIZE(types))];

	frames->frame_bytes = random_between(random, 14, 200);
	for (size_t i = 0; i < frames->frame_bytes; i++)
		frames->built[i] = random_percent(random, 50) ? odd_byte(random) : random_u64(random);
	frames->built[12] = type >> 8;
	frames->built[13] = type;
}

/* The next packet, whole. Returns its bytes. */
static size_t build_next(struct frames *frames)
{
	struct packet_spec spec = random_packet(&frames->random);

	if (random_percent(&frames->random, 10)) {
		make_noise(frames);
		return frames->frame_bytes;
	}
	/* Some are so long that their last headers are in a later buffer. Most are short, which saves time. */
	if (!random_percent(&frames->random, 2))
		spec.payload_bytes %= 256;
	return packet_build(&spec, frames->built);
}

/* ---- the comparison ---- */

static enum weir_verdict expected_verdict(enum model_class class)
{
	switch (class) {
	case CLASS_MALFORMED:
		return WEIR_VERDICT_MALFORMED_DROP;
	case CLASS_UNSUPPORTED:
		return WEIR_VERDICT_UNSUPPORTED_DROP;
	case CLASS_NON_IP:
		return WEIR_VERDICT_NON_IP_DROP;
	default:
		return WEIR_VERDICT_PASS;
	}
}

/* The resources that the packet belongs to, its key, and what the host makes of that. */
static bool is_same_packet(const struct frames *frames, const struct weir_harness *harness,
			   const struct model_packet *model)
{
	const struct questions *questions = &frames->questions;
	const struct weir_rule *rule = &frames->image->rules[0];
	struct model_key key = model_key_of(&questions->resource[0].flow, 0, model);
	size_t count = 0;

	for (size_t place = 0; place < questions->ruleset.resource_count; place++)
		if (model_matches(&questions->resource[place].match, model, random_ifindex) &&
		    (count >= harness->resource_count || harness->resource[count++] != place))
			return false;
	return count == harness->resource_count && harness->flow_count == 1 &&
	       !memcmp(&harness->flow[0].key, &key.flow, sizeof(key.flow)) &&
	       harness->flow[0].hash ==
		       weir_hash_flow(weir_object_seed(frames->object), rule->slot, rule->spec, &key.flow);
}

static void print_frame(const struct frames *frames, uint64_t number, const struct weir_harness *harness)
{
	print_error("frame %" PRIu64 ", of %zu bytes: verdict %u, %u resources\n", number, frames->frame_bytes,
		    harness->verdict, harness->resource_count);
	for (size_t i = 0; i < frames->given_bytes && i < 256; i++)
		print_error("%02x%s", frames->frame[i], i % 32 == 31 ? "\n" : " ");
	print_error("\n");
}

static void evaluate(struct frames *frames, uint64_t number)
{
	struct model_packet model = {.frame_bytes = frames->frame_bytes, .ifindex = RANDOM_IFINDEX};
	struct weir_harness *harness = (struct weir_harness *)weir_object_harness(frames->object);
	enum model_class class = model_parse(frames->frame, frames->frame_bytes, &model);
	int action;

	harness->frame_bytes = frames->frame_bytes;
	action = weir_object_evaluate(frames->object, frames->frame, frames->given_bytes);
	assert_true(action >= 0);
	frames->of_class[class]++;
	if (harness->verdict == expected_verdict(class) &&
	    (class != CLASS_IP || is_same_packet(frames, harness, &model)))
		return;
	print_frame(frames, number, harness);
	fail_msg("program and model differ");
}

static void load(struct frames *frames)
{
	const struct weir_object_options object_options = {
		.is_virtual = true,
		.without_shortcuts = shortcuts_left_out(),
		.is_unfolded = is_left_unfolded(),
	};
	const struct weir_compile_options options = {.cpus = weir_host_cpus(), .now_ns = SECOND, .span_ns = SECOND};
	struct weir_diag diag = {};
	volatile struct weir_harness *harness;
	int err;

	ask_everything(&frames->questions);
	err = weir_image_build(&frames->questions.ruleset, &options, &frames->image, &diag);
	if (!err)
		err = weir_object_load(frames->image, &object_options, &frames->object, &diag);
	weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
	harness = weir_object_harness(frames->object);
	harness->clock_ns = SECOND;
	harness->ifindex = RANDOM_IFINDEX;
	harness->wants_flows = true;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

CLAIM(program_and_model_say_the_same_of_hostile_frames)
{
	static struct frames frames;
	uint64_t count = setting("WEIR_FRAMES", FRAMES);
	size_t built_bytes = 0;

	frames.random.state = setting("WEIR_FRAMES_SEED", 1);
	load(&frames);
	for (uint64_t i = 0; i < count; i++) {
		if (i % VARIANTS == 0)
			built_bytes = build_next(&frames);
		frames.frame_bytes = built_bytes;
		memcpy(frames.frame, frames.built, built_bytes);
		if (i % VARIANTS)
			damage(&frames);
		frames.given_bytes = frames.frame_bytes;
		if (frames.frame_bytes <= LONG_GIVEN_BYTES && random_percent(&frames.random, 4))
			stretch(&frames);
		evaluate(&frames, i);
	}
	print_message("%" PRIu64 " frames: %" PRIu64 " IP, %" PRIu64 " malformed, %" PRIu64 " unsupported, %" PRIu64
		      " not IP\n",
		      count, frames.of_class[CLASS_IP], frames.of_class[CLASS_MALFORMED],
		      frames.of_class[CLASS_UNSUPPORTED], frames.of_class[CLASS_NON_IP]);
	/* Else a parser that calls all of them malformed would do. */
	for (size_t class = 0; class < ARRAY_SIZE(frames.of_class); class ++)
		assert_true(frames.of_class[class] >= count / 200);
	weir_object_free(frames.object);
	weir_image_free(frames.image);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
