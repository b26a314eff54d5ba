// SPDX-License-Identifier: GPL-2.0-only
/*
 * Putting a program that is loaded on one interface, and why that may not be: another program is there, the driver
 * refuses, or packets are merged before skb mode sees them.
 */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <string.h>

#include "base/util.h"
#include "network/device.h"
#include "network/merging.h"
#include "network/super_frames.h"
#include "pace/pace.h"

int weir_instance_refuse_other_program(const char *interface, uint32_t ifindex, struct weir_diag *diag)
{
	char name[16], removal[WEIR_REMOVAL_BYTES], hint[224], owner[WEIR_INSTANCE_NAME_BYTES],
		option[WEIR_INSTANCE_OPTION_BYTES];
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
			 weir_instance_option(owner, option));
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
			"cannot attach to '%s': its packets have no Ethernet header (link/%s), and would bypass every "
			"limit as \"not IP\"",
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
		hint = "try '--mode skb' (slower), or another interface";
	} else if (is_native && (err == -EINVAL || err == -ERANGE || err == -E2BIG || err == -ENOSPC)) {
		why = "the driver refuses it with the interface's current settings (MTU, LRO or number of queues)";
		hint = "'weir doctor INTERFACE' shows more; '--mode skb' always works, but is slower";
	}
	weir_diag_error(diag, NULL, NULL, hint, "cannot attach to '%s' in %s mode: %s (%s)", interface, mode, why,
			strerrorname_np(-err));
	return err;
}

/* The driver's own no; anything else would fail in skb mode as well, or hide a mistake. */
static bool is_refused_by_driver(int err)
{
	return err == -EOPNOTSUPP || err == -EINVAL || err == -ERANGE || err == -E2BIG || err == -ENOSPC;
}

/* Returns the link, or -errno: -ENODEV of an interface that has gone, of which the kernel says EINVAL, as a driver does
 * that refuses.
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

/* What is merged before skb mode sees it is evaluated as one packet: other limits than those that were written. */
static int check_merging(const struct weir_link_terms *terms, const char *interface, uint32_t ifindex,
			 struct weir_diag *diag)
{
	struct weir_merging merging;
	char hint[224];

	if (!weir_merging_find(interface, ifindex, &merging))
		return 0;
	if (merging.is_fixed)
		snprintf(hint, sizeof(hint),
			 "the device cannot turn that off; '--allow-gro' counts each merged packet as one");
	else
		snprintf(hint, sizeof(hint),
			 "run 'ethtool -K %s %s off'; or add '--allow-gro': each merged packet then counts as one",
			 merging.interface, merging.offload);
	if (terms->allows_merging) {
		weir_diag_warning(
			diag, NULL, NULL, NULL,
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

/* As above, but of senders on this host: no reason to refuse, nor to say nothing. */
static void warn_of_super_frames(const char *interface, uint32_t ifindex, bool is_native, struct weir_diag *diag)
{
	struct weir_super_frames frames;

	if (weir_super_frames_find(interface, ifindex, &frames) && (!is_native || frames.evades_native))
		weir_diag_warning(diag, NULL, NULL, frames.advice, "%s: each counts as one packet%s", frames.text,
				  is_native ? "" : " in skb mode");
}

/* A link of before whose interface has gone has the same name. One that lives is on an interface that was renamed. */
static int clear_pin(const struct weir_link_terms *terms, const char *interface, const char *pin,
		     struct weir_diag *diag)
{
	struct weir_link link = {};

	if (weir_link_read(terms->instance, pin, &link))
		return 0;
	if (!link.ifindex) {
		weir_unpin(terms->instance, pin);
		return 0;
	}
	weir_diag_error(
		diag, NULL, NULL, "detach that first: 'weir status' shows its current name",
		"cannot attach to '%s': the interface that had this name before was renamed and is still limited",
		interface);
	return -EEXIST;
}

int weir_instance_put_link(const struct weir_link_terms *terms, const char *interface, uint32_t ifindex,
			   bool *ret_is_native, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int link_fd = -1;
	char pin[WEIR_LINK_PIN_BYTES];
	bool is_native = terms->mode != WEIR_MODE_SKB;
	int native_err = 0, err = weir_instance_expect_ethernet(interface, diag);

	if (err)
		return err;
	link_fd = create_link(terms->program_fd, ifindex, is_native);
	if (terms->mode == WEIR_MODE_AUTO && is_refused_by_driver(link_fd)) {
		native_err = link_fd;
		is_native = false;
		link_fd = create_link(terms->program_fd, ifindex, false);
	}
	if (link_fd < 0)
		return explain_link_failure(interface, ifindex, link_fd, is_native, diag);
	if (terms->paces && !is_native)
		return weir_pace_refuse_skb(interface, diag);
	err = is_native ? 0 : check_merging(terms, interface, ifindex, diag);
	if (err)
		return err;
	if (native_err)
		weir_diag_warning(diag, NULL, NULL, "'--mode native' refuses instead",
				  "'%s' is attached in skb mode, which is slower: native mode failed (%s)", interface,
				  strerrorname_np(-native_err));
	warn_of_super_frames(interface, ifindex, is_native, diag);
	weir_link_pin(interface, is_native, pin);
	err = clear_pin(terms, interface, pin, diag);
	if (!err)
		err = weir_pin(terms->instance, pin, link_fd, diag);
	if (!err && ret_is_native)
		*ret_is_native = is_native;
	return err;
}
