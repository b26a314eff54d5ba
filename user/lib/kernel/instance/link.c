// SPDX-License-Identifier: GPL-2.0-only
/*
 * Putting loaded programs on one interface, and the reasons to refuse: another program is there, the driver refuses, or
 * packets are merged before skb mode sees them. Incoming packets are evaluated by XDP or at tc, outgoing packets at tc:
 * by a tcx link or, if the kernel has no tcx, by a clsact filter.
 */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <string.h>

#include "base/util.h"
#include "network/device.h"
#include "network/super_frames.h"
#include "network/tc.h"
#include "pace/pace.h"
#include "pins/links.h"

int weir_instance_refuse_other_program(const char *interface, uint32_t ifindex, struct weir_diag *diag)
{
	char name[16], removal[WEIR_REMOVAL_BYTES], hint[WEIR_INSTANCE_HINT_BYTES], owner[WEIR_INSTANCE_NAME_BYTES],
		option[WEIR_INSTANCE_OPTIONS_BYTES];
	struct weir_device device = {};
	uint32_t program_id;

	if (weir_device_read(interface, ifindex, &device))
		return 0;
	program_id = weir_device_program(&device);
	if (!program_id)
		return 0;
	weir_program_name(program_id, name);
	if (weir_instance_of_program(program_id, owner)) {
		snprintf(hint, sizeof(hint), "it is weir itself: 'weir detach%s' takes it off",
			 weir_instance_options(owner, option));
	} else {
		weir_device_removal(interface, ifindex, &device, removal);
		snprintf(hint, sizeof(hint), "take it off first: %s", removal);
	}
	weir_diag_error(diag, NULL, NULL, hint, "'%s' already has an XDP program: '%s' (id %u)", interface, name,
			program_id);
	return -EBUSY;
}

int weir_instance_expect_ethernet(const char *interface, struct weir_diag *diag)
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	const char *type = weir_link_type_without_ethernet(weir_device_type(interface), buffer);

	if (!type)
		return 0;
	weir_diag_error(diag, NULL, NULL, WEIR_NO_ETHERNET_ADVICE,
			"cannot attach to '%s' in native or skb mode: its packets have no Ethernet header (link/%s), "
			"and would bypass every limit as \"not IP\"",
			interface, type);
	return -EPROTONOSUPPORT;
}

static int explain_link_failure(const char *interface, uint32_t ifindex, int err, bool is_native,
				struct weir_diag *diag)
{
	const char *mode = is_native ? "native" : "skb", *why = strerror(-err);
	const char *hint = "'weir doctor INTERFACE' shows more";

	if (err == -EBUSY || err == -EEXIST) {
		int busy = weir_instance_refuse_other_program(interface, ifindex, diag);

		if (busy)
			return busy;
	}
	if (err == -ENODEV) {
		weir_diag_error(diag, NULL, NULL, "'ip link' shows the interfaces",
				"interface '%s' disappeared while weir was attaching to it", interface);
		return err;
	}
	if (is_native && (err == -EOPNOTSUPP || err == -ENOTSUP)) {
		why = "the driver has no XDP support";
		hint = "try '--mode tc' or '--mode skb' (slower), or another interface";
	} else if (is_native && (err == -EINVAL || err == -ERANGE || err == -E2BIG || err == -ENOSPC)) {
		why = "the driver refuses it with the interface's current settings (MTU, LRO or number of queues)";
		hint = "'weir doctor INTERFACE' shows more; '--mode tc' and '--mode skb' always work, but are slower";
	}
	weir_diag_error(diag, NULL, NULL, hint, "cannot attach to '%s' in %s mode: %s (%s)", interface, mode, why,
			strerrorname_np(-err));
	return err;
}

/* The driver itself refuses. Any other error would occur in skb mode as well, or hide a mistake. */
static bool is_refused_by_driver(int err)
{
	return err == -EOPNOTSUPP || err == -EINVAL || err == -ERANGE || err == -E2BIG || err == -ENOSPC;
}

/* Returns the link, or -errno. For an interface that has gone, the kernel returns EINVAL, as for a driver that refuses;
 * this function then returns -ENODEV.
 */
static int create_link(int program_fd, uint32_t ifindex, bool is_native)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int link_fd = bpf_link_create(program_fd, ifindex, BPF_XDP, &options);
	char name[IF_NAMESIZE];

	if (link_fd == -EINVAL && !if_indextoname(ifindex, name) && errno == ENXIO)
		return -ENODEV;
	return link_fd;
}

/* Packets that are merged before skb mode sees them are evaluated as one, so the limits would differ from the written
 * ones.
 */
static int check_merging(const struct weir_link_terms *terms, const char *interface, uint32_t ifindex,
			 struct weir_diag *diag)
{
	struct weir_merging merging;
	char hint[224];

	if (!weir_merging_find(interface, ifindex, &merging))
		return 0;
	if (merging.is_fixed)
		snprintf(hint, sizeof(hint),
			 "the device cannot turn that off; '--mode tc' counts the segments of each merged packet, "
			 "'--allow-gro' counts it as one");
	else
		snprintf(hint, sizeof(hint),
			 "'--mode tc' counts the segments of each merged packet; or run 'ethtool -K %s %s off'; or add "
			 "'--allow-gro': it then counts as one",
			 merging.interface, merging.offload);
	if (terms->allows_merging) {
		weir_diag_warning(
			diag, NULL, NULL, "'--mode tc' counts its segments",
			"%s of '%s' merges packets before skb mode sees them on '%s': each merged packet counts as one",
			merging.offload, merging.interface, interface);
		return 0;
	}
	weir_diag_error(diag, NULL, NULL, hint,
			"cannot attach to '%s' in skb mode: %s of '%s' merges packets before they are evaluated, and "
			"limits would admit many times as much",
			interface, merging.offload, merging.interface);
	return -EOPNOTSUPP;
}

/* As above, but for senders on this host: warn of it without refusing. */
static void warn_of_super_frames(const char *interface, uint32_t ifindex, bool is_native, struct weir_diag *diag)
{
	struct weir_super_frames frames;
	char hint[sizeof(frames.advice) + 64];

	if (!weir_super_frames_find(interface, ifindex, &frames) || (is_native && !frames.evades_native))
		return;
	snprintf(hint, sizeof(hint), "'--mode tc' counts its segments; or: %s", frames.advice);
	weir_diag_warning(diag, NULL, NULL, hint, "%s: each counts as one packet%s", frames.text,
			  is_native ? "" : " in skb mode");
}

/* The rules would not see the bond by its `interface`, but its ports: a limit would be open, and nobody would know. */
static bool hides_interface(const char *interface, bool asks_interface)
{
	return asks_interface && weir_device_runs_in_ports(interface);
}

int weir_instance_refuse_ports(const char *interface, bool asks_interface, struct weir_diag *diag)
{
	if (!hides_interface(interface, asks_interface))
		return 0;
	weir_diag_error(diag, NULL, NULL, "use '--mode tc' or '--mode skb', or attach to its ports",
			"cannot limit '%s' in native mode by rules with 'interface': a bond's ports evaluate incoming "
			"packets, and 'interface' is then the port",
			interface);
	return -EOPNOTSUPP;
}

/* Links of this name may be left from an earlier interface that has gone. One that is alive belongs to an interface
 * that was renamed.
 */
static int clear_pins(const char *instance, const char *interface, uint32_t ifindex, struct weir_diag *diag)
{
	_cleanup_(weir_names_free) struct weir_names pins = {};
	int err = weir_pins_read(instance, &pins);

	if (err && err != -ENOENT)
		return weir_diag_fail(diag, -err, NULL, "cannot read the pins of instance '%s'", instance);
	for (size_t i = 0; i < pins.count; i++) {
		struct weir_link link = {};

		if (!weir_link_pin_parse(pins.names[i], &link) || strcmp(link.attached_as, interface) != 0 ||
		    weir_link_read(instance, pins.names[i], &link))
			continue;
		if (!link.ifindex)
			weir_link_remove(instance, pins.names[i]);
		if (!link.ifindex || link.ifindex == ifindex)
			continue;
		weir_diag_error(diag, NULL, NULL, "detach that first: 'weir status' shows its current name",
				"cannot attach to '%s': the interface that had this name before was renamed and is "
				"still limited",
				interface);
		return -EEXIST;
	}
	return 0;
}

/* ---- at XDP ---- */

static int put_xdp(const struct weir_link_terms *terms, struct weir_link *link, struct weir_diag *diag)
{
	const int program_fd = terms->program_fd[WEIR_HOOK_XDP];
	const char *interface = link->interface[0] ? link->interface : link->attached_as;
	_cleanup_(weir_closep) int link_fd = -1;
	char pin[WEIR_LINK_PIN_BYTES];
	int native_err = 0, err = 0;

	link->is_native = terms->mode != WEIR_MODE_SKB;
	if (terms->mode == WEIR_MODE_NATIVE)
		err = weir_instance_refuse_ports(interface, terms->asks_interface, diag);
	if (err)
		return err;
	if (terms->mode == WEIR_MODE_AUTO && hides_interface(interface, terms->asks_interface)) {
		native_err = -EOPNOTSUPP;
		link->is_native = false;
	}
	link_fd = create_link(program_fd, link->ifindex, link->is_native);
	if (terms->mode == WEIR_MODE_AUTO && link->is_native && is_refused_by_driver(link_fd)) {
		native_err = link_fd;
		link->is_native = false;
		link_fd = create_link(program_fd, link->ifindex, false);
	}
	if (link_fd < 0)
		return explain_link_failure(interface, link->ifindex, link_fd, link->is_native, diag);
	if (terms->paces && !link->is_native)
		return weir_pace_refuse_skb(interface, diag);
	err = link->is_native ? 0 : check_merging(terms, interface, link->ifindex, diag);
	if (err)
		return err;
	if (native_err)
		weir_diag_warning(diag, NULL, NULL, "'--mode native' refuses instead; '--mode tc' is the other choice",
				  "'%s' is attached in skb mode, which is slower: native mode failed (%s)", interface,
				  strerrorname_np(-native_err));
	warn_of_super_frames(interface, link->ifindex, link->is_native, diag);
	weir_link_pin(link, pin);
	return weir_pin(terms->instance, pin, link_fd, diag);
}

/* ---- at tc ---- */

static const char *direction(const struct weir_link *link)
{
	return weir_hook_is_out(link->hook) ? "egress" : "ingress";
}

/* Existing programs may decide before weir does. Filters of clsact run after tcx links. */
static void warn_of_programs_before(const struct weir_link *link, uint32_t tcx_before, struct weir_diag *diag)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	struct weir_tc_filters filters = {};
	char hint[128];

	/* For a warning only, ignoring. */
	if (link->is_filter && !weir_netlink_open(&netlink, NETLINK_ROUTE))
		weir_tc_read_filters(&netlink, link->ifindex, &filters);
	if (!tcx_before &&
	    !(weir_hook_is_out(link->hook) ? filters.others - filters.others_before : filters.others_before))
		return;
	snprintf(hint, sizeof(hint), "'weir doctor %s' lists them%s", link->attached_as,
		 link->is_filter ? "" : "; '--before all' puts weir in front of them");
	weir_diag_warning(diag, NULL, NULL, hint, WEIR_TC_BEFORE_WORDS, direction(link), link->attached_as);
}

int weir_instance_check_place(const struct weir_tcx_place *place, bool is_at_tc, struct weir_diag *diag)
{
	if (weir_tcx_place_is_last(place) || is_at_tc)
		return 0;
	return weir_diag_error(diag, NULL, NULL, "leave it out, or add '--mode tc'",
			       "'--%s' is for programs at tc, and these rules are not attached there",
			       place->is_before ? "before" : "after");
}

/* The program of the place must be at a hook of the interface where weir attaches. */
static int find_place(const struct weir_link_terms *terms, const struct weir_link *link, struct weir_diag *diag)
{
	const uint32_t id = terms->place.program_id;
	const bool has_in = link->hook == WEIR_HOOK_TC_IN || link->hook == WEIR_HOOK_TC_BARE_IN;
	const bool has_out = terms->program_fd[WEIR_HOOK_TC_OUT] >= 0 || terms->program_fd[WEIR_HOOK_TC_BARE_OUT] >= 0;
	bool is_in, is_out;

	if (weir_tcx_place_is_last(&terms->place))
		return 0;
	if (!weir_tcx_is_there()) {
		weir_diag_error(diag, NULL, NULL, "leave it out: weir's clsact filter always has preference 65504",
				"'--%s' needs tcx, and this kernel has none (Linux 6.6)",
				terms->place.is_before ? "before" : "after");
		return -EOPNOTSUPP;
	}
	is_in = id && weir_tcx_has(id, link->ifindex, false) > 0;
	is_out = id && weir_tcx_has(id, link->ifindex, true) > 0;
	if (!id || (has_in && is_in) || (has_out && is_out))
		return 0;
	if (is_in || is_out)
		weir_diag_error(diag, NULL, NULL,
				is_in ? "leave it out, or add '--mode tc'"
				      : "leave it out, or add rules with 'direction: out'",
				"tcx program %u is at %s of '%s', where weir does not attach", id,
				is_in ? "ingress" : "egress", link->attached_as);
	else
		weir_diag_error(diag, NULL, NULL, "'weir doctor IFACE' lists them, with their numbers",
				"there is no tcx program %u on '%s'", id, link->attached_as);
	return -ENOENT;
}

static int explain_tc_failure(const struct weir_link *link, int err, struct weir_diag *diag)
{
	const char *why = strerror(-err), *hint = NULL;

	if (err == -ENODEV || (err == -EINVAL && !if_nametoindex(link->attached_as))) {
		weir_diag_error(diag, NULL, NULL, "'ip link' shows the interfaces",
				"interface '%s' disappeared while weir was attaching to it", link->attached_as);
		return -ENODEV;
	}
	if (err == -ENOENT || err == -EOPNOTSUPP) {
		why = "the kernel has neither tcx (Linux 6.6) nor the qdisc clsact with BPF filters";
		hint = "load its modules sch_ingress and cls_bpf (Debian: package linux-image-$(uname -r))";
	}
	weir_diag_error(diag, NULL, NULL, hint, "cannot attach to '%s' at tc %s: %s (%s)", link->attached_as,
			direction(link), why, strerrorname_np(-err));
	return err;
}

/* If this fails, nothing is left. */
static int put_tc(const struct weir_link_terms *terms, struct weir_link *link, struct weir_diag *diag)
{
	const bool is_out = weir_hook_is_out(link->hook);
	const int program_fd = terms->program_fd[link->hook];
	const uint32_t id = terms->place.program_id;
	/* A program is at one hook of an interface, and the place is given for both: at the other one, behind all. */
	const struct weir_tcx_place place =
		id && weir_tcx_has(id, link->ifindex, is_out) <= 0 ? (struct weir_tcx_place){} : terms->place;
	const uint32_t tcx_before = weir_tcx_place_is_first(&place) ? 0 : weir_tcx_count(link->ifindex, is_out);
	_cleanup_(weir_closep) int link_fd = weir_tcx_attach(program_fd, link->ifindex, is_out, &place);
	char pin[WEIR_LINK_PIN_BYTES];
	int err = link_fd < 0 ? link_fd : 0;

	link->is_filter = link_fd == -EOPNOTSUPP;
	if (link->is_filter)
		err = weir_filter_link_create(terms->instance, link, program_fd);
	if (err)
		return explain_tc_failure(link, err, diag);
	warn_of_programs_before(link, tcx_before, diag);
	if (link->is_filter)
		return 0;
	weir_link_pin(link, pin);
	return weir_pin(terms->instance, pin, link_fd, diag);
}

/* ---- the contract ---- */

static enum weir_hook hook_on(const struct weir_link_terms *terms, bool is_bare, bool is_out)
{
	return is_out || terms->mode == WEIR_MODE_TC ? weir_hook_at_tc(is_out, is_bare) : WEIR_HOOK_XDP;
}

/* An added interface must be evaluated at the same kind of hook as the others, because programs are loaded only for
 * that.
 */
static int expect_program(const struct weir_link_terms *terms, const char *interface, bool is_bare,
			  struct weir_diag *diag)
{
	const int *program_fd = terms->program_fd;
	const bool is_at_tc = terms->mode == WEIR_MODE_TC;
	const bool has_in = program_fd[WEIR_HOOK_XDP] >= 0 || program_fd[WEIR_HOOK_TC_IN] >= 0;

	if (program_fd[hook_on(terms, is_bare, !has_in)] >= 0)
		return 0;
	weir_diag_error(diag, NULL, NULL,
			"detach it, and attach all interfaces in the same way; or attach this one under another name: "
			"'--instance NAME'",
			"cannot attach to '%s' %s: instance '%s' limits %s", interface,
			is_at_tc ? "in tc mode" : "by XDP", terms->instance,
			program_fd[WEIR_HOOK_XDP] >= 0 ? "by XDP"
			: is_at_tc		       ? "only what has an Ethernet header"
						       : "in tc mode");
	return -EOPNOTSUPP;
}

/* Call this after clear_pins(), which leaves only pins of links that are alive. */
static bool has_pin(const char *instance, struct weir_link link)
{
	char pin[WEIR_LINK_PIN_BYTES];
	bool is_there = false;

	for (int way = 0; !is_there && way < 2; way++) {
		link.is_filter = way && link.hook != WEIR_HOOK_XDP;
		link.is_native = way && link.hook == WEIR_HOOK_XDP;
		weir_link_pin(&link, pin);
		is_there = weir_pin_is_there(instance, pin);
	}
	return is_there;
}

static int put(const struct weir_link_terms *terms, struct weir_link *link, struct weir_diag *diag)
{
	return link->hook == WEIR_HOOK_XDP ? put_xdp(terms, link, diag) : put_tc(terms, link, diag);
}

bool weir_link_terms_have(const struct weir_link_terms *terms, const struct weir_link *there, bool is_out)
{
	return terms->program_fd[hook_on(terms, weir_hook_is_bare(there->hook), is_out)] >= 0;
}

int weir_instance_put_other(const struct weir_link_terms *terms, const struct weir_link *there, bool is_out,
			    struct weir_diag *diag)
{
	struct weir_link link = *there;
	int err;

	if (!weir_link_terms_have(terms, there, is_out))
		return 0;
	link.hook = hook_on(terms, weir_hook_is_bare(there->hook), is_out);
	link.is_native = false;
	link.is_filter = false;
	err = clear_pins(terms->instance, link.attached_as, link.ifindex, diag);
	if (err || has_pin(terms->instance, link)) /* only the other link was gone: 'tc filter del dev IFACE ingress' */
		return err;
	if (link.hook == WEIR_HOOK_XDP)
		err = weir_instance_refuse_other_program(link.interface, link.ifindex, diag);
	return err ? err : put(terms, &link, diag);
}

int weir_instance_put_link(const struct weir_link_terms *terms, const char *interface, uint32_t ifindex,
			   struct weir_link *ret_link, struct weir_diag *diag)
{
	char link_type[WEIR_LINK_TYPE_BYTES];
	const bool is_bare = weir_link_type_without_ethernet(weir_device_type(interface), link_type) != NULL;
	struct weir_link link = {.ifindex = ifindex};
	int err = terms->mode == WEIR_MODE_TC ? 0 : weir_instance_expect_ethernet(interface, diag);
	bool is_out;

	if (!err)
		err = expect_program(terms, interface, is_bare, diag);
	if (err)
		return err;
	is_out = terms->program_fd[hook_on(terms, is_bare, false)] < 0;
	link.hook = hook_on(terms, is_bare, is_out);
	strncpy(link.attached_as, interface, sizeof(link.attached_as) - 1);
	err = find_place(terms, &link, diag);
	if (!err && terms->paces_out)
		err = weir_pace_check_out(interface, ifindex, terms->waits.packets, terms->waits.wait_ns, diag);
	if (!err)
		err = clear_pins(terms->instance, interface, ifindex, diag);
	if (!err)
		err = put(terms, &link, diag);
	if (err)
		return err;
	err = is_out ? 0 : weir_instance_put_other(terms, &link, true, diag);
	if (err)
		weir_instance_remove_links(terms->instance, interface);
	else if (ret_link)
		*ret_link = link;
	return err;
}
