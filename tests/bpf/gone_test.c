// SPDX-License-Identifier: GPL-2.0-only
/*
 * An interface that goes between the look for it and the link: as of a container that is replaced while weir starts. In
 * a network namespace of its own.
 */
#include <bpf/bpf.h>
#include <dlfcn.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "instance/instance_internal.h"
#include "network/netlink.h"
#include "network/tc.h"

#define NO_SUCH_INTERFACE 99999
#define GONE "interface 'gone0' disappeared while weir was attaching to it"

static struct weir_netlink netlink;
static struct rig rig;
static char instance_name[WEIR_INSTANCE_NAME_BYTES];
static char stored_in[32]; /* the directory in which an attach stores its rules */
static uint32_t goes;	   /* number of the interface that goes before the next link is made; 0: none */

/* In the place of libbpf's. */
int bpf_link_create(int program_fd, int target, enum bpf_attach_type type, const struct bpf_link_create_opts *options)
{
	static int (*real)(int, int, enum bpf_attach_type, const struct bpf_link_create_opts *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "bpf_link_create");
	if (goes && type == BPF_XDP) {
		assert_int_equal(weir_tc_delete_link(&netlink, goes), 0);
		goes = 0;
	}
	return real(program_fd, target, type, options);
}

static uint32_t add_interface(const char *name)
{
	const struct ifinfomsg about = {};
	struct nlmsghdr *request =
		weir_netlink_begin(&netlink, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &about, sizeof(about));
	struct nlattr *nest;

	mnl_attr_put_strz(request, IFLA_IFNAME, name);
	nest = mnl_attr_nest_start(request, IFLA_LINKINFO);
	mnl_attr_put_strz(request, IFLA_INFO_KIND, "veth");
	mnl_attr_nest_end(request, nest);
	if (weir_netlink_ask(&netlink, NULL, NULL))
		skip();
	return if_nametoindex(name);
}

static int begin(void **state)
{
	snprintf(instance_name, sizeof(instance_name), "gone%d", getpid());
	strcpy(stored_in, "/tmp/weir-gone-XXXXXX");
	if (!mkdtemp(stored_in) || setenv("STATE_DIRECTORY", stored_in, 1))
		return -1;
	return weir_netlink_open(&netlink, NETLINK_ROUTE);
}

static int end(void **state)
{
	struct weir_diag ignored = {}; /* mostly there is nothing any more to take off */
	char path[WEIR_LAST_GOOD_PATH_BYTES];
	uint32_t ifindex;

	weir_instance_detach(instance_name, NULL, 0, &ignored);
	weir_diag_free(&ignored);
	for (int i = 0; i < 2; i++) {
		ifindex = if_nametoindex(i ? "gone1" : "gone0");
		if (ifindex)
			weir_tc_delete_link(&netlink, ifindex);
	}
	goes = 0;
	rig_end(&rig);
	weir_netlink_close(&netlink);
	weir_last_good_path(instance_name, path);
	unlink(path);
	return rmdir(stored_in);
}

static void make_rules(void)
{
	rig_begin(&rig, 512);
	rig.ruleset->settings.controller_timeout_ms = 1000;
	rig_rule(&rig, rig_resource(&rig, 53, WEIR_KEY_SOURCE), WEIR_WINDOW_SMOOTH, 10, SECOND, 1);
}

static void assert_reported(struct weir_diag *diag, const char *message, bool is_mistake)
{
	assert_int_equal(diag->count, 1);
	assert_string_equal(diag->entries[0].message, message);
	assert_int_equal(diag->errors, is_mistake);
	weir_diag_free(diag);
}

static int attach(bool is_controlled, struct weir_diag *diag)
{
	const char *const pattern[] = {"gone*"};
	const struct weir_attach_options options = {
		.instance = instance_name,
		.interfaces = pattern,
		.interface_count = 1,
		.is_controlled = is_controlled,
	};

	return weir_instance_attach(&options, rig.ruleset, NULL, diag);
}

static size_t links(void)
{
	return weir_instance_count_live_links(instance_name);
}

/* ---- claims ---- */

/* The kernel says EINVAL, as a driver does that refuses; there is no other mode to try. */
CLAIM_WITHIN(interface_that_has_gone_is_said_to_have_gone, begin, end)
{
	struct weir_link_terms terms = {.instance = instance_name, .program_fd = WEIR_NO_PROGRAMS};
	struct weir_diag diag = {};

	make_rules();
	rig_load(&rig, false);
	terms.program_fd[WEIR_HOOK_XDP] = weir_object_program_fd(rig.object);
	for (enum weir_attach_mode mode = WEIR_MODE_AUTO; mode <= WEIR_MODE_SKB; mode++) {
		terms.mode = mode;
		assert_int_equal(weir_instance_put_link(&terms, "gone0", NO_SUCH_INTERFACE, NULL, &diag), -ENODEV);
		assert_reported(&diag, GONE, true);
	}
}

CLAIM_WITHIN(interface_of_a_pattern_that_goes_is_left_out, begin, end)
{
	struct weir_diag diag = {};

	make_rules();
	goes = add_interface("gone0");
	add_interface("gone1");
	assert_int_equal(attach(false, &diag), 0);
	assert_reported(&diag, GONE, false);
	assert_int_equal(links(), 1);
}

CLAIM_WITHIN(attach_fails_when_the_only_interface_of_its_pattern_goes, begin, end)
{
	struct weir_diag diag = {};

	make_rules();
	goes = add_interface("gone0");
	assert_int_equal(attach(false, &diag), -ENODEV);
	assert_reported(&diag, GONE, false);
	assert_false(weir_instance_exists(instance_name));
}

CLAIM_WITHIN(run_waits_for_what_comes_in_the_place_of_the_interface_that_goes, begin, end)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_follow_free) struct weir_follow follow = {};
	struct weir_diag diag = {};

	make_rules();
	goes = add_interface("gone0");
	assert_int_equal(attach(true, &diag), 0);
	assert_int_equal(diag.count, 0);
	assert_int_equal(links(), 0);
	assert_int_equal(weir_instance_open(instance_name, &instance, &diag), 0);

	goes = add_interface("gone0");
	assert_int_equal(weir_instance_follow(instance, &follow, &diag), 0);
	assert_int_equal(goes, 0);
	assert_int_equal(diag.count, 0);
	assert_int_equal(follow.refused_count, 0);

	add_interface("gone0");
	assert_int_equal(weir_instance_follow(instance, &follow, &diag), 0);
	assert_reported(&diag, "interface 'gone0' is limited now, in native mode, incoming packets", false);
	assert_int_equal(links(), 1);
}

static int enter_own_network(void **state)
{
	return geteuid() == 0 ? unshare(CLONE_NEWNET) : 0;
}

RUN_CLAIMS(enter_own_network, NULL)
