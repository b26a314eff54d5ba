// SPDX-License-Identifier: GPL-2.0-only
/* What on this host would distort the limits of a rule set: before it is loaded here, and where it is in force. */
#include <string.h>

#include "base/util.h"
#include "compile/compile.h"
#include "compile/tcp_room.h"
#include "host/host.h"
#include "host/memory.h"
#include "instance/instance.h"
#include "kind/kind.h"
#include "network/device.h"
#include "network/netns.h"
#include "network/stack.h"
#include "network/super_frames.h"
#include "pace/pace.h"
#include "rules/scalars.h"
#include "state/examine.h"
#include "state/examine_interface.h"
#include "tables/rule_kind.h"

/* ---- rules that could be loaded here ---- */

static void examine_rules_memory(const struct weir_image *image, struct weir_findings *findings)
{
	const uint64_t available_bytes = weir_host_memory_available_bytes();
	struct weir_image_memory memory;
	enum weir_finding_level level = WEIR_FINDING_OK;

	weir_image_memory(image, image->config.cpus, &memory);
	if (available_bytes && memory.total > available_bytes)
		level = WEIR_FINDING_PROBLEM;
	else if (available_bytes && memory.total > available_bytes / 2)
		level = WEIR_FINDING_NOTE;
	weir_find(findings, level, "rules", level == WEIR_FINDING_OK ? NULL : "lower settings.flowsPerCpu",
		  "the rules take %.1f MB, %.0f MB are available", memory.total / 1e6, available_bytes / 1e6);
}

/* A flow takes a place on each CPU that its packets reach: with RSS on one, without it on all. The number of flows is
 * unknown; those named in the rules give a lower bound.
 */
static void examine_rules_flows(uint64_t overrides, uint32_t flows, struct weir_findings *findings)
{
	if (overrides > flows / 2)
		weir_find(findings, WEIR_FINDING_NOTE, "flows",
			  "raise settings.flowsPerCpu to twice the flows you expect on a CPU",
			  "the overrides name %llu flows; a CPU has %u slots, and only half of that many flows are "
			  "sure to fit",
			  (unsigned long long)overrides, flows);
	else
		weir_find(findings, WEIR_FINDING_OK, "flows", NULL,
			  "room for %u flows per CPU: enough for %u that are active there within an interval", flows,
			  flows / 2);
}

/* Water marks that this machine can never reach. */
static void examine_rules_marks(const struct weir_ruleset *ruleset, struct weir_findings *findings)
{
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	weir_ruleset_check_memory(ruleset, weir_memory_total_bytes(ruleset->settings.memory_cgroup), &diag);
	for (size_t i = 0; i < diag.count; i++)
		weir_find(findings, WEIR_FINDING_PROBLEM, "marks", diag.entries[i].hint, "%s:%d: %s",
			  diag.entries[i].file ? diag.entries[i].file : "-", diag.entries[i].line,
			  diag.entries[i].message);
}

static void examine_rules_vlan(const char *interface, const struct weir_device *device, struct weir_findings *findings)
{
	char advice[96];

	snprintf(advice, sizeof(advice), "ethtool -K %s rxvlan off", interface);
	if (device->has_offloads && device->strips_vlan)
		weir_find(findings, WEIR_FINDING_PROBLEM, "fields", advice,
			  "the rules match 'vlan', and the device may remove tags before weir sees them");
	else
		weir_find(findings, WEIR_FINDING_OK, "fields", NULL,
			  "the rules match 'vlan', and nothing hides the tags");
}

/* Properties of single packets that offloads hide. A device that reports nothing about native XDP may support it. */
static void examine_rules_fields(const char *interface, uint32_t ifindex, const struct weir_device *device,
				 uint32_t fields, struct weir_findings *findings)
{
	struct weir_super_frames frames;
	struct weir_merging merging;
	char advice[96];
	bool is_merged;

	if (fields & WEIR_MATCH_VLAN)
		examine_rules_vlan(interface, device, findings);
	if (!(fields & (WEIR_MATCH_LENGTH | WEIR_MATCH_IP_LENGTH | WEIR_MATCH_TCP_FLAGS)) ||
	    (device->has_xdp_features && device->has_native_xdp))
		return;
	snprintf(advice, sizeof(advice), "it cannot be turned off here");
	is_merged = weir_merging_find(interface, ifindex, &merging);
	if (is_merged && !merging.is_fixed)
		snprintf(advice, sizeof(advice), "ethtool -K %s %s off", merging.interface, merging.offload);
	if (!is_merged && !weir_super_frames_find(interface, ifindex, &frames))
		return;
	weir_find(findings, WEIR_FINDING_NOTE, "fields", is_merged ? advice : frames.advice,
		  "the rules match 'length', 'ipLength' or 'tcpFlags', which merged packets share");
}

/* Reported only once, for the first rule. */
static void examine_rules_interface(const char *interface, const struct weir_ruleset *ruleset,
				    struct weir_findings *findings)
{
	const char *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < ruleset->resource_count; i++) {
		if (weir_match_means(&ruleset->resources[i].match, interface))
			continue;
		first = first ?: ruleset->resources[i].name;
		count++;
	}
	if (first)
		weir_find(findings, WEIR_FINDING_NOTE, "interface", NULL,
			  "%zu resource%s match%s nothing on '%s' because of 'interface': the first is '%.64s'", count,
			  count == 1 ? "" : "s", count == 1 ? "es" : "", interface, first);
}

/* `weir check` has noted rules that have no room for the default size. */
static void examine_rules_room(const char *interface, const struct weir_device *device,
			       const struct weir_ruleset *ruleset, struct weir_findings *findings)
{
	const struct weir_tcp_device sender = {interface, device->gso_bytes_max, device->gso_segments_max};
	struct weir_tcp_room room;

	if (device->gso_bytes_max > WEIR_SUPER_FRAME_BYTES && weir_tcp_room_is_short(ruleset, &sender, &room))
		weir_find(findings, WEIR_FINDING_NOTE, "gso", room.advice, "%s", room.text);
}

static void examine_rules_pace(const struct weir_image *image, struct weir_findings *findings)
{
	struct weir_pace_ability ability;

	if (!image->config.paces)
		return;
	weir_pace_probe(&ability);
	if (ability.answer == WEIR_PACE_YES)
		return; /* the finding about the host already says so */
	weir_find(findings, WEIR_FINDING_PROBLEM, "throttling", ability.advice,
		  "the rules use 'throttling: pace', which this host cannot do: %s", ability.text);
}

/* On a bond, these rules may need another mode than others do. */
static void examine_rules_mode(const char *interface, uint32_t ifindex, const struct weir_device *device,
			       const struct weir_image *image, struct weir_findings *findings)
{
	struct weir_findings mode = {};

	weir_examine_mode(interface, ifindex, device, image->config.asked_fields & WEIR_MATCH_INTERFACE, &mode);
	for (size_t i = 0; mode.count && i < findings->count; i++)
		if (!strcmp(findings->finding[i].topic, mode.finding[0].topic))
			findings->finding[i] = mode.finding[0];
}

/* Remove notes about the host that these rules do not depend on. A problem stays, since it affects any rules. */
static void leave_out(struct weir_findings *findings, const char *topic)
{
	size_t kept = 0;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->finding[i].level != WEIR_FINDING_NOTE || strcmp(findings->finding[i].topic, topic))
			findings->finding[kept++] = findings->finding[i];
	findings->count = kept;
}

static bool has_memory_rules(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
			return true;
	return false;
}

static void leave_out_what_rules_never_meet(const struct weir_ruleset *ruleset, const struct weir_image *image,
					    struct weir_findings *findings)
{
	if (!(image->config.match_fields & WEIR_MATCH_VLAN))
		leave_out(findings, "vlan");
	if (!image->config.paces)
		leave_out(findings, "pace");
	if (!has_memory_rules(ruleset))
		leave_out(findings, "pressure");
}

int weir_examine_rules(const char *interface, const struct weir_ruleset *ruleset, struct weir_findings *findings,
		       struct weir_diag *diag)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	const struct weir_compile_options options = {
		.cpus = weir_host_cpus(),
		.now_ns = weir_host_now_ns(),
		.ifindex = weir_host_find_ifindex,
	};
	struct weir_device device = {};
	uint32_t fields;
	int ifindex = weir_host_ifindex(interface, diag);
	int err = ifindex < 0 ? ifindex : weir_image_build(ruleset, &options, &image, diag);

	if (err)
		return err;
	err = weir_device_read(interface, ifindex, &device);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot look at '%s'", interface);
	fields = image->config.match_fields;
	if (weir_examine_is_for_tc(interface, ifindex, &device)) {
		device.strips_vlan = false;	 /* at tc the tag is still in the packet's metadata */
		fields &= ~WEIR_MATCH_IP_LENGTH; /* and of a super-frame, it is known of each segment */
	}
	leave_out_what_rules_never_meet(ruleset, image, findings);
	examine_rules_mode(interface, ifindex, &device, image, findings);
	examine_rules_memory(image, findings);
	examine_rules_flows(image->override_count, image->flows_per_cpu, findings);
	examine_rules_marks(ruleset, findings);
	examine_rules_fields(interface, ifindex, &device, fields, findings);
	examine_rules_room(interface, &device, ruleset, findings);
	examine_rules_interface(interface, ruleset, findings);
	examine_rules_pace(image, findings);
	weir_examine_cookies(image->config.answers, findings);
	weir_examine_answers(interface, ifindex, &device, image->config.answers,
			     device.has_xdp_features && device.has_native_xdp, findings);
	return 0;
}

/* ---- rules that are in force ---- */

/* The match fields that are examined here. */
static uint32_t fields_of(const struct weir_ruleset *ruleset)
{
	uint32_t fields = 0;

	for (size_t i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		fields |= (match->vlan_count ? WEIR_MATCH_VLAN : 0) | (match->length_count ? WEIR_MATCH_LENGTH : 0) |
			  (match->tcp_flags_count ? WEIR_MATCH_TCP_FLAGS : 0) |
			  (match->ip_length_count ? WEIR_MATCH_IP_LENGTH : 0);
	}
	return fields;
}

/* A finding that applies to many interfaces is reported once, for the first; "": it is about the host. */
struct collected {
	struct weir_findings findings;
	char first[WEIR_FINDINGS_MAX][IF_NAMESIZE];
	size_t others[WEIR_FINDINGS_MAX];
};

static void collect(const char *interface, const struct weir_findings *findings, struct collected *collected)
{
	struct weir_findings *all = &collected->findings;

	for (size_t i = 0; i < findings->count; i++) {
		const struct weir_finding *finding = &findings->finding[i];
		size_t place = 0;

		if (finding->level == WEIR_FINDING_OK)
			continue;
		while (place < all->count && strcmp(all->finding[place].text, finding->text) != 0)
			place++;
		if (place < all->count) {
			collected->others[place]++;
		} else if (all->count < WEIR_FINDINGS_MAX) {
			all->finding[all->count++] = *finding;
			snprintf(collected->first[place], IF_NAMESIZE, "%s", interface);
		}
	}
}

static void warn_of_findings(const struct collected *collected, struct weir_diag *diag)
{
	for (size_t i = 0; i < collected->findings.count; i++) {
		const struct weir_finding *finding = &collected->findings.finding[i];
		char others[32] = "", where[IF_NAMESIZE + 48] = "";

		if (collected->others[i])
			snprintf(others, sizeof(others), " and %zu more", collected->others[i]);
		if (collected->first[i][0])
			snprintf(where, sizeof(where), "on '%s'%s: ", collected->first[i], others);
		weir_diag_warning(diag, NULL, NULL, finding->advice, "%s%s", where, finding->text);
	}
}

/* The rule set that the instance keeps for a rollback; NULL: there is none. */
static struct weir_ruleset *read_rules(const struct weir_instance *instance)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* they are in force, whatever this version thinks */
	struct weir_ruleset *ruleset = NULL;

	weir_instance_history(instance, &history);
	if (history.sets[0] && weir_kept_set_read(history.sets[0], &ruleset, &ignored))
		return NULL;
	return ruleset;
}

/* The compiler has already warned about names that do not exist. */
static void warn_of_pattern(const struct weir_instance *instance, const struct weir_ruleset_resource *resource,
			    const char (*word)[WEIR_WANTED_BYTES], struct weir_diag *diag)
{
	if (!weir_word_is_pattern(*word) || (*word)[0] == WEIR_WORD_EXCEPTS)
		return;
	for (size_t i = 0; i < instance->link_count; i++)
		if (instance->links[i].ifindex && weir_words_mean(word, 1, instance->links[i].interface))
			return;
	weir_diag_warning(diag, &resource->place, NULL, "if such an interface appears and is limited, it matches there",
			  "resource '%s' matches nothing by '%s' now: no limited interface has such a name",
			  resource->name, *word);
}

static void warn_of_patterns(const struct weir_instance *instance, const struct weir_ruleset *ruleset,
			     struct weir_diag *diag)
{
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		const struct weir_match *match = &ruleset->resources[i].match;

		for (size_t word = 0; word < match->interface_count; word++)
			warn_of_pattern(instance, &ruleset->resources[i],
					(const char(*)[WEIR_WANTED_BYTES])match->interface + word, diag);
	}
}

void weir_examine_attached(const char *instance_name, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *kept = NULL;
	_cleanup_(weir_netns_leave) int back_fd = -1;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* what was attached or reloaded can be read */
	struct collected collected = {};
	struct weir_findings of_host = {};
	uint64_t overrides = 0;
	uint32_t fields, answers;

	if (weir_instance_open_now(instance_name, &instance, &ignored))
		return;
	if (instance->info.generation > 1) /* attach has reported which interfaces refused it */
		weir_instance_warn_of_losses(instance, diag);
	if (weir_netns_enter(instance->info.netns, &back_fd))
		return;
	if (!ruleset)
		ruleset = kept = read_rules(instance);
	if (!ruleset)
		return;
	fields = fields_of(ruleset);
	for (size_t i = 0; i < ruleset->rule_count; i++)
		overrides += ruleset->rules[i].override_count;
	answers = weir_answers_of(instance->rules, instance->info.rule_slots, instance->info.observes);
	weir_examine_cookies(answers, &of_host);
	collect("", &of_host, &collected);
	for (size_t i = 0; i < instance->link_count; i++) {
		const struct weir_link *link = &instance->links[i];
		struct weir_findings findings = {};
		struct weir_device device;

		if (!link->ifindex || !weir_link_stands(instance->links, instance->link_count, i) ||
		    weir_device_read(link->interface, link->ifindex, &device))
			continue;
		/* The link itself shows whether the driver has a native mode. */
		device.has_xdp_features = true;
		device.has_native_xdp = link->is_native;
		if (link->hook != WEIR_HOOK_XDP)
			device.strips_vlan = false; /* as above, and ipLength */
		examine_rules_flows(overrides, instance->info.flows_per_cpu, &findings);
		examine_rules_fields(link->interface, link->ifindex, &device,
				     link->hook == WEIR_HOOK_XDP ? fields : fields & ~WEIR_MATCH_IP_LENGTH, &findings);
		examine_rules_room(link->interface, &device, ruleset, &findings);
		weir_examine_answers(link->interface, link->ifindex, &device, answers,
				     link->hook == WEIR_HOOK_XDP && link->is_native, &findings);
		collect(link->interface, &findings, &collected);
	}
	warn_of_findings(&collected, diag);
	warn_of_patterns(instance, ruleset, diag);
}
