// SPDX-License-Identifier: GPL-2.0-only
#include "sandbox/session.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frames/compose.h"
#include "host/host.h"
#include "program/copy.h"
#include "rules/history.h"
#include "rules/scalars.h"
#include "sandbox/sandbox_program.h"

#define VARIABLE "SSH_CONNECTION"
#define ANCESTORS_MAX 32
#define ENVIRONMENT_BYTES_MAX (256 << 10)

/*
 * Somebody who types sends ten packets a second; nobody can work with a rule set that admits fewer. The packets are
 * offered for twice the longest interval of any rule, so that a window fills up, and for an hour at most. Chosen, not
 * derived.
 */
#define PACKETS_PER_SECOND 10
#define OFFERED_NS_MIN (10 * WEIR_NSEC_PER_SEC)
#define OFFERED_NS_MAX (3600 * WEIR_NSEC_PER_SEC)

/* ---- finding the session ---- */

static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024];
	const char *end;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (weir_host_read_text(path, text, sizeof(text)))
		return 0;
	end = strrchr(text, ')'); /* after the name, which may contain any characters */
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Reads the environment with which the process was started: sudo removes the variable, but the shell before it has it.
 */
static bool find_in(pid_t pid, struct weir_packet_words *ret_words)
{
	_cleanup_(weir_freep) char *environment = malloc(ENVIRONMENT_BYTES_MAX);
	_cleanup_(weir_fclosep) FILE *file = NULL;
	const char *value;
	char path[64];
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	if (!file || !environment)
		return false;
	bytes = fread(environment, 1, ENVIRONMENT_BYTES_MAX, file);
	value = weir_environment_find(environment, bytes, VARIABLE);
	return value && weir_ssh_session_parse(value, ret_words);
}

static bool find_session(struct weir_packet_words *ret_words)
{
	const char *value = getenv(VARIABLE);
	pid_t pid = getppid();

	if (value)
		return weir_ssh_session_parse(value, ret_words);
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid))
		if (find_in(pid, ret_words))
			return true;
	return false;
}

static bool has_address(const struct ifaddrs *at, const struct weir_packet_words *words)
{
	const struct sockaddr_in6 *ipv6 = (const void *)at->ifa_addr;
	const struct sockaddr_in *ipv4 = (const void *)at->ifa_addr;

	if (!at->ifa_addr)
		return false;
	if (words->family == 6)
		return at->ifa_addr->sa_family == AF_INET6 && !memcmp(&ipv6->sin6_addr, words->destination, 16);
	return at->ifa_addr->sa_family == AF_INET && !memcmp(&ipv4->sin_addr, words->destination, 4);
}

/* The interface of the present network namespace that has the server's address. */
static bool find_interface(const struct weir_packet_words *words, char ret_name[IF_NAMESIZE])
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
		found = has_address(at, words);
		if (found)
			snprintf(ret_name, IF_NAMESIZE, "%s", at->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* ---- evaluating its packets ---- */

struct packet {
	uint8_t frame[2048];
	uint32_t frame_bytes;
};

struct session {
	struct weir_packet_words words; /* of a packet from the client */
	char interface[IF_NAMESIZE];
	struct packet packets[2]; /* by enum weir_direction: a packet from the client, and the answer */
};

static const char *const whose_packets[] = {"its packets", "the outgoing answers"};

static const char *format_client(const struct session *session, char ret_text[WEIR_PREFIX_TEXT_BYTES])
{
	struct weir_prefix client = {
		.family = session->words.family,
		.bits = session->words.family == 6 ? 128 : 32,
	};

	memcpy(client.address, session->words.source, sizeof(client.address));
	return weir_format_prefix(&client, ret_text);
}

static int refuse_with(const struct session *session, const struct weir_place *place, const char *hint,
		       struct weir_diag *diag, const char *reason)
{
	char client[WEIR_PREFIX_TEXT_BYTES];

	return weir_diag_error(diag, place, NULL, hint,
			       "this would cut off your own SSH session, from %s port %u at '%s': %s",
			       format_client(session, client), session->words.source_port, session->interface, reason);
}

/* "write 'allow: [203.0.113.5]' in a rule file; or add '--force' ..." */
static int refuse(const struct session *session, const struct weir_place *place, struct weir_diag *diag,
		  const char *reason)
{
	char client[WEIR_PREFIX_TEXT_BYTES], hint[256];

	snprintf(hint, sizeof(hint), "write 'allow: [%s]' in a rule file; or add '--force' if you have another way in",
		 format_client(session, client));
	return refuse_with(session, place, hint, diag, reason);
}

static int refuse_by_rule(const struct session *session, const struct weir_ruleset *ruleset, uint32_t place,
			  enum weir_direction direction, uint64_t passed, struct weir_diag *diag)
{
	char reason[256];

	if (place >= ruleset->rule_count)
		return refuse(session, NULL, diag, "a rule blocks it");
	if (passed)
		snprintf(reason, sizeof(reason), "rule '%.128s' admits %llu of %s, then fewer than %d a second",
			 ruleset->rules[place].name, (unsigned long long)passed, whose_packets[direction],
			 PACKETS_PER_SECOND);
	else
		snprintf(reason, sizeof(reason), "rule '%.128s' admits none of %s", ruleset->rules[place].name,
			 whose_packets[direction]);
	return refuse(session, &ruleset->rules[place].place, diag, reason);
}

/* Evaluate the session's packet in this direction, after `passed` packets. */
static int evaluate_packet(const struct session *session, const struct weir_ruleset *ruleset,
			   const struct weir_object *object, enum weir_direction direction, uint64_t passed,
			   struct weir_diag *diag)
{
	const enum weir_hook hook = direction == WEIR_DIRECTION_IN ? WEIR_HOOK_XDP : WEIR_HOOK_TC_OUT;
	const struct packet *packet = &session->packets[direction];
	volatile struct weir_harness *harness = weir_object_harness(object);
	int action;

	harness->frame_bytes = packet->frame_bytes;
	action = weir_object_evaluate_at(object, hook, packet->frame, packet->frame_bytes, 1);
	if (action < 0)
		return weir_diag_fail(diag, -action, NULL, "cannot run the program on the SSH session's packets");
	if (action == XDP_PASS)
		return 0;
	if (harness->verdict == WEIR_VERDICT_DENY)
		return refuse(session, NULL, diag, "its source is in a 'deny' list");
	if (harness->verdict == WEIR_VERDICT_UNMATCHED_DROP)
		return refuse(session, NULL, diag, "no resource matches it, and 'unmatched: drop' drops it");
	return refuse_by_rule(session, ruleset, harness->rule, direction, passed, diag);
}

/* What is typed is echoed: a rule for both directions counts both packets. */
static int evaluate(const struct session *session, const struct weir_ruleset *ruleset,
		    const struct weir_sandbox_program *program, struct weir_diag *diag)
{
	volatile struct weir_harness *harness = weir_object_harness(program->object);
	uint64_t offered_ns = OFFERED_NS_MIN, packets;
	int err = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (2 * ruleset->rules[i].interval_ns > offered_ns)
			offered_ns = 2 * ruleset->rules[i].interval_ns;
	if (offered_ns > OFFERED_NS_MAX)
		offered_ns = OFFERED_NS_MAX;
	packets = offered_ns / WEIR_NSEC_PER_SEC * PACKETS_PER_SECOND;
	harness->ifindex = weir_host_find_ifindex(session->interface, NULL);
	for (uint64_t i = 0; !err && i < packets; i++) {
		harness->clock_ns = program->now_ns + i * (WEIR_NSEC_PER_SEC / PACKETS_PER_SECOND);
		err = evaluate_packet(session, ruleset, program->object, WEIR_DIRECTION_IN, i, diag);
		if (!err && program->image->config.limits_out)
			err = evaluate_packet(session, ruleset, program->object, WEIR_DIRECTION_OUT, i, diag);
	}
	return err;
}

static void compose(struct session *session)
{
	const struct weir_packet_words *words = &session->words;
	struct packet *packets = session->packets;
	struct weir_packet_words answer = *words;

	memcpy(answer.source, words->destination, sizeof(answer.source));
	memcpy(answer.destination, words->source, sizeof(answer.destination));
	answer.source_port = words->destination_port;
	answer.destination_port = words->source_port;
	packets[WEIR_DIRECTION_IN].frame_bytes = weir_compose_frame(words, packets[WEIR_DIRECTION_IN].frame);
	packets[WEIR_DIRECTION_OUT].frame_bytes = weir_compose_frame(&answer, packets[WEIR_DIRECTION_OUT].frame);
}

static int check(struct session *session, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	_cleanup_(weir_sandbox_program_close) struct weir_sandbox_program program = {};
	struct weir_diag ignored = {}; /* the attach itself prints the warnings */
	int err = weir_sandbox_program_open(ruleset, WEIR_MATCH_ALL, &program, &ignored);

	weir_diag_free(&ignored);
	if (err)
		weir_diag_warning(diag, NULL, NULL, "make sure you have another way in",
				  "cannot find out whether these rules would cut off your own SSH session: %s",
				  strerror(-err));
	if (err)
		return 0; /* the real load reports errors in the rules */
	compose(session);
	err = weir_sandbox_program_stay(&program);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot run the program on the SSH session's packets");
	err = evaluate(session, ruleset, &program, diag);
	weir_sandbox_program_leave(&program);
	if (err)
		weir_ruleset_quote(ruleset, diag);
	return err;
}

/* ---- the contract ---- */

static bool find(struct session *session)
{
	return find_session(&session->words) && find_interface(&session->words, session->interface);
}

int weir_session_check_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			      struct weir_diag *diag)
{
	struct session session = {};

	if (!find(&session) || !weir_attach_means(options, session.interface))
		return 0;
	return check(&session, ruleset, diag);
}

int weir_session_check_add(const struct weir_attach_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	struct weir_diag ignored = {}; /* the attach itself reports errors of the instance */
	struct session session = {};
	int err;

	if (!find(&session) || !weir_attach_means(options, session.interface))
		return 0;
	err = weir_instance_open_now(options->instance, &instance, &ignored);
	if (!err) {
		weir_instance_history(instance, &history);
		err = history.sets[0] ? weir_kept_set_read(history.sets[0], &ruleset, &ignored) : -ENOENT;
	}
	weir_diag_free(&ignored);
	return err ? 0 : check(&session, ruleset, diag);
}

/* Is the instance attached to that interface? If it cannot be read, which happens during another change, assume that it
 * is.
 */
static bool is_attached_to(const char *name, const char *interface)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	const uint32_t ifindex = weir_host_find_ifindex(interface, NULL);
	struct weir_diag ignored = {};
	bool is_attached = false;
	int err = weir_instance_open_now(name, &instance, &ignored);

	weir_diag_free(&ignored);
	if (err)
		return err != -ENOENT;
	if (instance->info.netns != weir_host_netns())
		return false;
	for (size_t i = 0; i < instance->link_count; i++)
		is_attached |= instance->links[i].ifindex == ifindex;
	return is_attached;
}

int weir_session_check_reload(const char *instance, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	struct session session = {};

	if (!find(&session) || !is_attached_to(instance, session.interface))
		return 0;
	return check(&session, ruleset, diag);
}

/* ---- sources that would be blocked ---- */

static bool has_client(const struct weir_prefix *prefix, const struct weir_packet_words *words)
{
	const unsigned int bytes = prefix->bits / 8, bits = prefix->bits % 8;

	return prefix->family == words->family && !memcmp(prefix->address, words->source, bytes) &&
	       (!bits || !((prefix->address[bytes] ^ words->source[bytes]) >> (8 - bits)));
}

/* The longest of these prefixes that contains the client; NULL: none does. */
static const struct weir_prefix *longest_order(const struct weir_timed_order *orders, size_t count,
					       const struct weir_packet_words *words)
{
	const struct weir_prefix *longest = NULL;

	for (size_t i = 0; i < count; i++)
		if (has_client(&orders[i].prefix, words) && (!longest || orders[i].prefix.bits > longest->bits))
			longest = &orders[i].prefix;
	return longest;
}

/*
 * Would the packets pass anyway, because of a longer prefix in an `allow` list of the rule set or of 'weir allow', or
 * because everything only observes? If the rule set was not kept, its lists are unknown: no.
 */
static bool passes_anyway(const struct weir_instance *instance, const struct weir_prefix *blocked,
			  const struct weir_packet_words *words)
{
	_cleanup_(weir_freep) struct weir_timed_order *allowed = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	const struct weir_prefix *longest;
	struct weir_diag ignored = {};
	bool passes = false;
	size_t count = 0;

	weir_instance_history(instance, &history);
	if (history.sets[0] && !weir_kept_set_read(history.sets[0], &ruleset, &ignored)) {
		passes = ruleset->settings.observes;
		for (size_t i = 0; i < ruleset->listed_count; i++)
			passes |= !ruleset->listed[i].denies && ruleset->listed[i].prefix.bits > blocked->bits &&
				  has_client(&ruleset->listed[i].prefix, words);
	}
	if (!passes && !weir_timed_read(instance, false, &allowed, &count, &ignored)) {
		longest = longest_order(allowed, count, words);
		passes = longest && longest->bits > blocked->bits;
	}
	weir_diag_free(&ignored);
	return passes;
}

int weir_session_check_block(const struct weir_instance *instance, const struct weir_timed_order *orders, size_t count,
			     struct weir_diag *diag)
{
	char source[WEIR_PREFIX_TEXT_BYTES], reason[128];
	const struct weir_prefix *blocked;
	struct session session = {};

	if (!find(&session) || !is_attached_to(instance->name, session.interface))
		return 0;
	blocked = longest_order(orders, count, &session.words);
	if (!blocked || passes_anyway(instance, blocked, &session.words))
		return 0;
	snprintf(reason, sizeof(reason), "'%s' would be blocked", weir_format_prefix(blocked, source));
	return refuse_with(&session, NULL, "leave it out; or add '--force' if you have another way in", diag, reason);
}
