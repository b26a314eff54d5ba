// SPDX-License-Identifier: GPL-2.0-only
#include "model.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- a packet, as far as rules ask ---- */

enum packet_class { CLASS_IP, CLASS_MALFORMED, CLASS_UNSUPPORTED, CLASS_NON_IP };

struct packet {
	enum packet_class class;
	uint64_t frame_bytes;
	uint32_t ifindex;
	bool has_vlan;
	unsigned int vlan;
	int family; /* 4 or 6 */
	uint8_t source[16], destination[16];
	uint8_t protocol;
	enum weir_fragment fragment;
	bool has_ports;
	unsigned int source_port, destination_port;
	bool has_tcp_flags;
	uint8_t tcp_flags;
	bool has_icmp_type;
	uint8_t icmp_type;
};

/* Bytes not yet read. */
struct rest {
	const uint8_t *at;
	size_t left;
};

static unsigned int be16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void skip(struct rest *rest, size_t bytes)
{
	assert(bytes <= rest->left);
	rest->at += bytes;
	rest->left -= bytes;
}

static enum packet_class parse_tcp(struct rest payload, struct packet *packet)
{
	unsigned int header_bytes;

	if (payload.left < 20)
		return CLASS_MALFORMED;
	header_bytes = (payload.at[12] >> 4) * 4;
	if (header_bytes < 20 || header_bytes > payload.left)
		return CLASS_MALFORMED;
	packet->has_tcp_flags = true;
	packet->tcp_flags = payload.at[13];
	return CLASS_IP;
}

static enum packet_class parse_udp(struct rest payload, const struct packet *packet)
{
	unsigned int udp_bytes;

	if (payload.left < 8)
		return CLASS_MALFORMED;
	udp_bytes = be16(payload.at + 4);
	if (udp_bytes < 8)
		return CLASS_MALFORMED;
	/* The length of a fragmented datagram is that of the whole, which no fragment can show. */
	if (packet->fragment == WEIR_FRAGMENT_NONE && udp_bytes > payload.left)
		return CLASS_MALFORMED;
	return CLASS_IP;
}

static enum packet_class parse_icmp(struct rest payload, struct packet *packet)
{
	if (payload.left < 8)
		return CLASS_MALFORMED;
	packet->has_icmp_type = true;
	packet->icmp_type = payload.at[0];
	return CLASS_IP;
}

static enum packet_class parse_transport(struct rest payload, struct packet *packet)
{
	enum packet_class class = CLASS_IP;
	bool has_ports = false;

	if (packet->fragment == WEIR_FRAGMENT_LATER)
		return CLASS_IP;
	switch (packet->protocol) {
	case 1:	 /* ICMP */
	case 58: /* ICMPv6 */
		class = parse_icmp(payload, packet);
		break;
	case 6:
		class = parse_tcp(payload, packet);
		has_ports = true;
		break;
	case 17:
		class = parse_udp(payload, packet);
		has_ports = true;
		break;
	case 132: /* SCTP: a common header of 12 bytes */
		class = payload.left < 12 ? CLASS_MALFORMED : CLASS_IP;
		has_ports = true;
		break;
	}
	if (class == CLASS_IP && has_ports) {
		packet->has_ports = true;
		packet->source_port = be16(payload.at);
		packet->destination_port = be16(payload.at + 2);
	}
	return class;
}

static enum packet_class parse_ipv4(struct rest rest, struct packet *packet)
{
	unsigned int header_bytes, total_bytes, fragment;

	if (rest.left < 20)
		return CLASS_MALFORMED;
	header_bytes = (rest.at[0] & 0x0f) * 4;
	total_bytes = be16(rest.at + 2);
	if (header_bytes < 20 || header_bytes > rest.left)
		return CLASS_MALFORMED;
	if (total_bytes < header_bytes || total_bytes > rest.left)
		return CLASS_MALFORMED;

	packet->family = 4;
	memcpy(packet->source, rest.at + 12, 4);
	memcpy(packet->destination, rest.at + 16, 4);
	packet->protocol = rest.at[9];
	fragment = be16(rest.at + 6);
	if (fragment & 0x1fff)
		packet->fragment = WEIR_FRAGMENT_LATER;
	else if (fragment & 0x2000)
		packet->fragment = WEIR_FRAGMENT_FIRST;

	rest.left = total_bytes; /* what follows is Ethernet padding */
	skip(&rest, header_bytes);
	return parse_transport(rest, packet);
}

static bool is_walked(uint8_t protocol)
{
	switch (protocol) {
	case 0:	 /* hop-by-hop options */
	case 43: /* routing */
	case 44: /* fragment */
	case 51: /* authentication */
	case 60: /* destination options */
		return true;
	}
	return false;
}

static enum packet_class walk_extension_headers(struct rest *rest, struct packet *packet)
{
	unsigned int headers = 0;
	size_t header_bytes;

	while (is_walked(packet->protocol)) {
		if (++headers > 8)
			return CLASS_UNSUPPORTED;
		if (rest->left < 8)
			return CLASS_MALFORMED;
		if (packet->protocol == 44)
			header_bytes = 8;
		else if (packet->protocol == 51)
			header_bytes = (rest->at[1] + 2) * 4;
		else
			header_bytes = (rest->at[1] + 1) * 8;
		if (header_bytes > rest->left)
			return CLASS_MALFORMED;
		if (packet->protocol == 44) {
			unsigned int fragment = be16(rest->at + 2);

			if (fragment & 0xfff8) {
				packet->fragment = WEIR_FRAGMENT_LATER;
				packet->protocol = rest->at[0];
				return CLASS_IP;
			}
			if (fragment & 1)
				packet->fragment = WEIR_FRAGMENT_FIRST;
		}
		packet->protocol = rest->at[0];
		skip(rest, header_bytes);
	}
	return CLASS_IP;
}

static enum packet_class parse_ipv6(struct rest rest, struct packet *packet)
{
	unsigned int payload_bytes;
	enum packet_class class;

	if (rest.left < 40)
		return CLASS_MALFORMED;
	payload_bytes = be16(rest.at + 4);
	if (payload_bytes > rest.left - 40)
		return CLASS_MALFORMED;
	packet->family = 6;
	packet->protocol = rest.at[6];
	if (payload_bytes == 0 && packet->protocol == 0)
		return CLASS_UNSUPPORTED; /* a jumbogram */
	memcpy(packet->source, rest.at + 8, 16);
	memcpy(packet->destination, rest.at + 24, 16);

	skip(&rest, 40);
	rest.left = payload_bytes;
	class = walk_extension_headers(&rest, packet);
	if (class != CLASS_IP)
		return class;
	return parse_transport(rest, packet);
}

static enum packet_class parse_frame(const uint8_t *frame, size_t frame_bytes, struct packet *packet)
{
	struct rest rest = {frame, frame_bytes};
	unsigned int ethertype, tags;

	if (rest.left < 14)
		return CLASS_MALFORMED;
	ethertype = be16(rest.at + 12);
	skip(&rest, 14);
	for (tags = 0; ethertype == 0x8100 || ethertype == 0x88a8; tags++) {
		if (tags == 2)
			return CLASS_UNSUPPORTED;
		if (rest.left < 4)
			return CLASS_MALFORMED;
		if (tags == 0) {
			packet->has_vlan = true;
			packet->vlan = be16(rest.at) & 0x0fff;
		}
		ethertype = be16(rest.at + 2);
		skip(&rest, 4);
	}
	if (ethertype == 0x0800)
		return parse_ipv4(rest, packet);
	if (ethertype == 0x86dd)
		return parse_ipv6(rest, packet);
	return CLASS_NON_IP;
}

/* ---- does a resource want the packet? ---- */

static bool in_ranges(const struct weir_range *ranges, size_t count, bool has_value, uint64_t value)
{
	size_t i;

	if (count == 0)
		return true;
	for (i = 0; has_value && i < count; i++)
		if (ranges[i].low <= value && value <= ranges[i].high)
			return true;
	return false;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int i;

	for (i = 0; i < bits; i++)
		if ((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static bool in_prefixes(const struct weir_prefix *prefixes, size_t count, int family, const uint8_t *address)
{
	size_t i;

	if (count == 0)
		return true;
	for (i = 0; i < count; i++)
		if (prefixes[i].family == family && same_bits(prefixes[i].address, address, prefixes[i].bits))
			return true;
	return false;
}

static bool flags_match(const struct weir_match *match, const struct packet *packet)
{
	size_t i;

	if (match->tcp_flags_count == 0)
		return true;
	for (i = 0; packet->has_tcp_flags && i < match->tcp_flags_count; i++) {
		const struct weir_tcp_flags *flags = &match->tcp_flags[i];

		if ((packet->tcp_flags & flags->set) == flags->set && (packet->tcp_flags & flags->clear) == 0)
			return true;
	}
	return false;
}

static bool interface_matches(const struct weir_match *match, const struct packet *packet, model_ifindex ifindex)
{
	size_t i;

	if (match->interface_count == 0)
		return true;
	for (i = 0; ifindex && i < match->interface_count; i++) {
		uint32_t number = ifindex(match->interface[i]);

		if (number != 0 && number == packet->ifindex)
			return true;
	}
	return false;
}

static bool matches(const struct weir_match *match, const struct packet *packet, model_ifindex ifindex)
{
	bool has_ports = packet->has_ports;

	if (match->families && !(match->families & (packet->family == 4 ? 1 : 2)))
		return false;
	if (match->has_protocol && !(match->protocol[packet->protocol / 8] >> packet->protocol % 8 & 1))
		return false;
	if (match->fragments && !(match->fragments >> packet->fragment & 1))
		return false;
	return in_prefixes(match->source, match->source_count, packet->family, packet->source) &&
	       in_prefixes(match->destination, match->destination_count, packet->family, packet->destination) &&
	       in_ranges(match->source_port, match->source_port_count, has_ports, packet->source_port) &&
	       in_ranges(match->destination_port, match->destination_port_count, has_ports, packet->destination_port) &&
	       in_ranges(match->vlan, match->vlan_count, packet->has_vlan, packet->vlan) &&
	       in_ranges(match->icmp_type, match->icmp_type_count, packet->has_icmp_type, packet->icmp_type) &&
	       in_ranges(match->length, match->length_count, true, packet->frame_bytes) && flags_match(match, packet) &&
	       interface_matches(match, packet, ifindex);
}

/* ---- flows and their windows ---- */

/* Compared byte by byte, so every one is set. */
struct flow_key {
	uint32_t rule;
	uint32_t ifindex;
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port, vlan;
	uint8_t protocol;
	uint8_t family; /* 0 when the resource has no key and is one flow */
};
_Static_assert(sizeof(struct flow_key) == 48, "a hole in the key would be compared");

struct bucket {
	uint64_t number;
	uint64_t units;
};

struct flow {
	struct flow_key key;
	struct flow *next;
	uint64_t newest;	/* newest bucket known: that any packet was judged in */
	struct bucket *buckets; /* what was admitted, in no order */
	size_t bucket_count;
};

#define MODEL_CHAINS 65536

struct model {
	const struct weir_ruleset *ruleset;
	model_ifindex ifindex;
	uint64_t *would_drop;
	struct flow *flows[MODEL_CHAINS];
};

struct model *model_new(const struct weir_ruleset *ruleset, model_ifindex ifindex)
{
	struct model *model = calloc(1, sizeof(*model));

	assert(model);
	model->ruleset = ruleset;
	model->ifindex = ifindex;
	model->would_drop = calloc(ruleset->rule_count + 1, sizeof(*model->would_drop));
	assert(model->would_drop);
	return model;
}

void model_free(struct model *model)
{
	size_t i;

	if (!model)
		return;
	for (i = 0; i < MODEL_CHAINS; i++) {
		while (model->flows[i]) {
			struct flow *flow = model->flows[i];

			model->flows[i] = flow->next;
			free(flow->buckets);
			free(flow);
		}
	}
	free(model->would_drop);
	free(model);
}

uint64_t model_would_drop(const struct model *model, size_t rule)
{
	return model->would_drop[rule];
}

static void copy_bits(uint8_t *to, const uint8_t *from, unsigned int bits)
{
	unsigned int i;

	for (i = 0; i < bits; i++)
		to[i / 8] |= from[i / 8] & 0x80 >> i % 8;
}

static struct flow_key key_of(const struct weir_flow *flow, uint32_t rule, const struct packet *packet)
{
	int family_index = packet->family == 4 ? 0 : 1;
	struct flow_key key;

	memset(&key, 0, sizeof(key));
	key.rule = rule;
	if (flow->fields == 0)
		return key;
	key.family = packet->family;
	if (flow->fields & WEIR_KEY_SOURCE)
		copy_bits(key.source, packet->source, flow->source_bits[family_index]);
	if (flow->fields & WEIR_KEY_DESTINATION)
		copy_bits(key.destination, packet->destination, flow->destination_bits[family_index]);
	if (flow->fields & WEIR_KEY_SOURCE_PORT && packet->has_ports)
		key.source_port = packet->source_port;
	if (flow->fields & WEIR_KEY_DESTINATION_PORT && packet->has_ports)
		key.destination_port = packet->destination_port;
	if (flow->fields & WEIR_KEY_PROTOCOL)
		key.protocol = packet->protocol;
	if (flow->fields & WEIR_KEY_VLAN && packet->has_vlan)
		key.vlan = packet->vlan;
	if (flow->fields & WEIR_KEY_INTERFACE)
		key.ifindex = packet->ifindex;
	return key;
}

static struct flow *flow_get(struct model *model, const struct flow_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	struct flow *flow;
	uint32_t hash = 0;
	size_t i;

	for (i = 0; i < sizeof(*key); i++)
		hash = hash * 31 + bytes[i];
	for (flow = model->flows[hash % MODEL_CHAINS]; flow; flow = flow->next)
		if (memcmp(&flow->key, key, sizeof(*key)) == 0)
			return flow;
	flow = calloc(1, sizeof(*flow));
	assert(flow);
	flow->key = *key;
	flow->next = model->flows[hash % MODEL_CHAINS];
	model->flows[hash % MODEL_CHAINS] = flow;
	return flow;
}

/* Where in its flow's window a packet stands. */
struct standing {
	struct flow *flow;
	uint64_t bucket; /* in which it is counted, should it be admitted */
	uint64_t units;
};

static uint64_t ring_of(const struct weir_ruleset_rule *rule)
{
	return rule->window == WEIR_WINDOW_LEAP ? rule->samples : rule->samples + 1;
}

/* ceil(units * part / whole) */
static uint64_t share_of(uint64_t units, uint64_t part, uint64_t whole)
{
	return ((unsigned __int128)units * part + whole - 1) / whole;
}

/*
 * Does the rule admit the packet? One that is larger than the threshold is never let in and never looked
 * at; all others are judged in a bucket, which is known from then on, whatever becomes of the packet.
 *
 * A clock that went back: a bucket that the ring of buckets up to the newest known still holds is judged
 * against all of that ring; an older time is taken for the start of the newest bucket.
 */
static bool admits(const struct weir_ruleset_rule *rule, struct flow *flow, uint64_t time_ns, uint64_t units,
		   struct standing *standing)
{
	uint64_t bucket_ns = rule->interval_ns / rule->samples;
	uint64_t allowed = rule->threshold_micro / WEIR_MICRO, ring = ring_of(rule), sum = 0;
	uint64_t bucket = time_ns / bucket_ns, into_ns = time_ns % bucket_ns;
	size_t i;

	if (units > allowed)
		return false;
	if (bucket > flow->newest)
		flow->newest = bucket;
	if (flow->newest - bucket >= ring) {
		bucket = flow->newest;
		into_ns = 0;
	}
	for (i = 0; i < flow->bucket_count; i++) {
		uint64_t age = flow->newest - flow->buckets[i].number, count = flow->buckets[i].units;

		if (age >= ring)
			continue;
		if (rule->window == WEIR_WINDOW_SMOOTH && age == rule->samples && bucket == flow->newest)
			count = share_of(count, bucket_ns - into_ns, bucket_ns);
		sum += count;
	}
	*standing = (struct standing){flow, bucket, units};
	return sum + units <= allowed;
}

static void count(const struct weir_ruleset_rule *rule, const struct standing *standing)
{
	struct flow *flow = standing->flow;
	size_t i, kept = 0;

	/* What has left the ring never comes back, since the newest bucket only grows. */
	for (i = 0; i < flow->bucket_count; i++)
		if (flow->newest - flow->buckets[i].number < ring_of(rule))
			flow->buckets[kept++] = flow->buckets[i];
	flow->bucket_count = kept;

	for (i = 0; i < flow->bucket_count; i++) {
		if (flow->buckets[i].number == standing->bucket) {
			flow->buckets[i].units += standing->units;
			return;
		}
	}
	flow->buckets = reallocarray(flow->buckets, flow->bucket_count + 1, sizeof(*flow->buckets));
	assert(flow->buckets);
	flow->buckets[flow->bucket_count++] = (struct bucket){standing->bucket, standing->units};
}

/* ---- the verdict ---- */

static struct model_decision class_decision(bool drops, enum weir_verdict pass, enum weir_verdict drop,
					    const char *word)
{
	return (struct model_decision){.verdict = drops ? drop : pass, .rule = drops ? word : ""};
}

/* Without neighbour discovery a host is soon alone, so `unmatched: drop` spares it (DESIGN: section 3). */
static bool is_neighbour_discovery(const struct packet *packet)
{
	return packet->family == 6 && packet->protocol == 58 && packet->has_icmp_type && packet->icmp_type >= 133 &&
	       packet->icmp_type <= 137;
}

/* Fills decision's verdict and rule; its resources are known. */
static void judge_rules(struct model *model, uint64_t time_ns, const struct packet *packet,
			struct model_decision *decision)
{
	const struct weir_ruleset *ruleset = model->ruleset;
	struct standing *admitted = calloc(ruleset->rule_count + 1, sizeof(*admitted));
	bool *is_admitted = calloc(ruleset->rule_count + 1, sizeof(*is_admitted));
	size_t i, j;

	assert(admitted && is_admitted);
	decision->verdict = WEIR_VERDICT_PASS;
	decision->rule = "";
	for (i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];
		struct flow_key key = key_of(&ruleset->resources[rule->resource].flow, i, packet);
		bool meets = false;

		for (j = 0; j < decision->resource_count; j++)
			meets |= decision->resource[j] == rule->resource;
		if (!meets)
			continue;
		is_admitted[i] = admits(rule, flow_get(model, &key), time_ns,
					rule->counts_bytes ? packet->frame_bytes : 1, &admitted[i]);
		if (is_admitted[i])
			continue;
		if (!rule->observes) {
			decision->verdict = WEIR_VERDICT_BLOCK;
			decision->rule = rule->name;
			break;
		}
		model->would_drop[i]++;
	}
	for (i = 0; decision->verdict == WEIR_VERDICT_PASS && i < ruleset->rule_count; i++)
		if (is_admitted[i])
			count(&ruleset->rules[i], &admitted[i]);
	free(admitted);
	free(is_admitted);
}

struct model_decision model_judge(struct model *model, uint64_t time_ns, const uint8_t *frame, size_t frame_bytes,
				  uint32_t ifindex)
{
	const struct weir_settings *settings = &model->ruleset->settings;
	struct packet packet = {.frame_bytes = frame_bytes, .ifindex = ifindex};
	struct model_decision decision = {0};
	size_t i;

	switch (parse_frame(frame, frame_bytes, &packet)) {
	case CLASS_MALFORMED:
		return class_decision(settings->drop_malformed, WEIR_VERDICT_MALFORMED_PASS,
				      WEIR_VERDICT_MALFORMED_DROP, "malformed");
	case CLASS_UNSUPPORTED:
		return class_decision(settings->drop_unsupported, WEIR_VERDICT_UNSUPPORTED_PASS,
				      WEIR_VERDICT_UNSUPPORTED_DROP, "unsupported");
	case CLASS_NON_IP:
		return class_decision(settings->drop_non_ip, WEIR_VERDICT_NON_IP_PASS, WEIR_VERDICT_NON_IP_DROP,
				      "nonIp");
	case CLASS_IP:
		break;
	}
	for (i = 0; i < model->ruleset->resource_count; i++) {
		if (!matches(&model->ruleset->resources[i].match, &packet, model->ifindex))
			continue;
		assert(decision.resource_count < WEIR_PACKET_RESOURCES_MAX);
		decision.resource[decision.resource_count++] = i;
	}
	if (decision.resource_count == 0)
		return class_decision(settings->drop_unmatched && !is_neighbour_discovery(&packet),
				      WEIR_VERDICT_UNMATCHED_PASS, WEIR_VERDICT_UNMATCHED_DROP, "unmatched");
	judge_rules(model, time_ns, &packet, &decision);
	return decision;
}
