// SPDX-License-Identifier: GPL-2.0-only
/* What runs at tc on an interface, in which order, and whether instances still have the hooks that they limit it at. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "instance/instance.h"
#include "network/tc.h"
#include "state/examine_interface.h"

/* The programs at one hook, in the order in which they run. */
struct order {
	char words[WEIR_FINDING_CHARS];
	size_t bytes;
	bool has_others;
	bool has_others_before_weir;
};

static void add_program(const char *name, uint32_t id, struct order *order)
{
	char owner[WEIR_INSTANCE_NAME_BYTES], whose[WEIR_INSTANCE_NAME_BYTES + 32] = "";

	if (id && weir_instance_of_program(id, owner)) {
		order->has_others_before_weir |= order->has_others;
		snprintf(whose, sizeof(whose), " (id %u, instance '%s')", id, owner);
	} else {
		order->has_others = true;
		if (id)
			snprintf(whose, sizeof(whose), " (id %u)", id);
	}
	if (order->bytes < sizeof(order->words))
		order->bytes += snprintf(order->words + order->bytes, sizeof(order->words) - order->bytes, "%s%s%s",
					 order->bytes ? ", " : "", name, whose);
}

/* All tcx programs run before the filters of clsact. Returns whether anything runs there. */
static bool examine_hook(const char *interface, uint32_t ifindex, bool is_egress, const struct weir_tc_filters *filters,
			 struct weir_findings *findings)
{
	const char *hook = is_egress ? "egress" : "ingress";
	uint32_t ids[WEIR_TCX_PROGRAMS_MAX];
	int count = weir_tcx_read(ifindex, is_egress, ids);
	struct order order = {};

	for (int i = 0; i < count; i++) {
		char name[16];

		weir_program_name(ids[i], name);
		add_program(name, ids[i], &order);
	}
	for (size_t i = 0; i < filters->listed_count; i++)
		if (filters->listed[i].is_egress == is_egress)
			add_program(filters->listed[i].name, filters->listed[i].program_id, &order);
	if (order.bytes)
		weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "at tc %s: %s", hook, order.words);
	if (order.has_others_before_weir)
		weir_find(findings, WEIR_FINDING_PROBLEM, "programs",
			  "remove them, or attach before them with '--before all', unless they let everything pass "
			  "that is to be limited",
			  WEIR_TC_BEFORE_WORDS, hook, interface);
	return order.bytes;
}

/* A link keeps a program whose pin somebody removed, but no command finds that program. */
static void examine_pins(const struct weir_instance *instance, uint32_t ifindex, struct weir_findings *findings)
{
	char advice[WEIR_INSTANCE_OPTIONS_BYTES + 64], option[WEIR_INSTANCE_OPTIONS_BYTES];

	snprintf(advice, sizeof(advice), "'weir reload%s FILE...' pins it again",
		 weir_instance_options(instance->name, option));
	for (size_t i = 0; i < instance->link_count; i++) {
		const char *pin = weir_pin_of_program(instance->links[i].hook);

		if (instance->links[i].ifindex == ifindex && !weir_pin_is_there(instance->name, pin))
			weir_find(findings, WEIR_FINDING_PROBLEM, "programs", advice,
				  "the pin '%s' of instance '%s' is gone: its program still limits here, but cannot be "
				  "put on other interfaces",
				  pin, instance->name);
	}
}

/* What an instance of this network namespace lacks here, by whoever removed it. */
static void examine_instance(const char *interface, uint32_t ifindex, const char *name, struct weir_findings *findings)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_freep) struct weir_loss *losses = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	struct weir_instance_info head = {};
	size_t count;
	int err;

	/* If even its description is missing, nobody knows whose interfaces it limits. */
	if (weir_instance_is_incompatible(name, &head) || (head.netns && head.netns != weir_host_netns()))
		return;
	err = weir_instance_open_now(name, &instance, &diag);
	if (err == -ENOENT && diag.count && weir_instance_exists(name))
		weir_find(findings, WEIR_FINDING_PROBLEM, "programs", diag.entries[0].hint, "%s",
			  diag.entries[0].message);
	if (err)
		return;
	examine_pins(instance, ifindex, findings);
	count = weir_instance_find_losses(instance, &losses);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(losses[i].interface, interface))
			weir_find(findings, WEIR_FINDING_PROBLEM, "programs", losses[i].cure, "%s", losses[i].words);
}

void weir_examine_tc(const char *interface, uint32_t ifindex, struct weir_findings *findings)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {}; /* reported by `weir status` */
	_cleanup_(weir_names_free) struct weir_names names = {};
	struct weir_tc_filters filters = {};
	uint32_t ids[WEIR_TCX_PROGRAMS_MAX];
	bool has_any;

	if (weir_tcx_read(ifindex, false, ids) == -EPERM)
		return; /* the finding about privilege says so */
	if (!weir_netlink_open(&netlink, NETLINK_ROUTE))
		weir_tc_read_filters(&netlink, ifindex, &filters); /* without them the list is shorter, ignoring */
	has_any = examine_hook(interface, ifindex, false, &filters, findings);
	has_any |= examine_hook(interface, ifindex, true, &filters, findings);
	if (!has_any)
		weir_find(findings, WEIR_FINDING_OK, "programs", NULL, "no tc program on it");
	if (weir_instance_list(&names, &ignored))
		return;
	for (size_t i = 0; i < names.count; i++)
		examine_instance(interface, ifindex, names.names[i], findings);
}
