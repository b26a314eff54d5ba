// SPDX-License-Identifier: GPL-2.0-only
/* Requests by netlink, to the kernel itself, in a network namespace of their own. */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "network/netlink.h"
#include "network/tc.h"

#define NO_SUCH_INTERFACE 99999
/* More than one piece of a dump, which has at most 32 KiB, at more than a KiB an interface. */
#define INTERFACES 64

static struct weir_netlink netlink;

static int begin(void **state)
{
	return weir_netlink_open(&netlink, NETLINK_ROUTE);
}

static int end(void **state)
{
	weir_netlink_close(&netlink);
	return 0;
}

static struct nlmsghdr *begin_link(uint16_t type, uint16_t flags, uint32_t ifindex)
{
	const struct ifinfomsg about = {.ifi_index = ifindex};

	return weir_netlink_begin(&netlink, type, flags, &about, sizeof(about));
}

static int add_veth(struct weir_netlink *by, const char *name)
{
	const struct ifinfomsg about = {};
	struct nlmsghdr *request =
		weir_netlink_begin(by, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &about, sizeof(about));
	struct nlattr *nest;

	mnl_attr_put_strz(request, IFLA_IFNAME, name);
	nest = mnl_attr_nest_start(request, IFLA_LINKINFO);
	mnl_attr_put_strz(request, IFLA_INFO_KIND, "veth");
	mnl_attr_nest_end(request, nest);
	return weir_netlink_ask(by, NULL, NULL);
}

CLAIM_WITHIN(refusal_comes_with_the_kernel_s_number_and_words, begin, end)
{
	struct nlmsghdr *request = begin_link(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0);
	struct nlattr *nest = mnl_attr_nest_start(request, IFLA_LINKINFO);

	mnl_attr_put_strz(request, IFLA_INFO_KIND, "no-such-kind");
	mnl_attr_nest_end(request, nest);
	assert_int_equal(weir_netlink_ask(&netlink, NULL, NULL), -EOPNOTSUPP);
	assert_string_equal(netlink.reason, "Unknown device type");
	/* They are of the last request only. */
	begin_link(RTM_GETLINK, 0, 1);
	assert_int_equal(weir_netlink_ask(&netlink, NULL, NULL), 0);
	assert_string_equal(netlink.reason, "");
	begin_link(RTM_GETLINK, 0, NO_SUCH_INTERFACE);
	assert_int_equal(weir_netlink_ask(&netlink, NULL, NULL), -ENODEV);
}

/* Sent by hand and never read, as when its time was over. */
CLAIM_WITHIN(answer_to_an_earlier_request_is_passed_over, begin, end)
{
	struct nlmsghdr *request = begin_link(RTM_GETLINK, 0, NO_SUCH_INTERFACE);

	assert_true(mnl_socket_sendto(netlink.socket, request, request->nlmsg_len) > 0);
	begin_link(RTM_GETLINK, 0, 1);
	assert_int_equal(weir_netlink_ask(&netlink, NULL, NULL), 0);
}

/* The kernel says nothing of what it did when it was not asked to acknowledge it. */
CLAIM_WITHIN(silence_is_a_time_out, begin, end)
{
	const struct timeval patience = {.tv_usec = 10000};
	struct nlmsghdr *request = begin_link(RTM_NEWLINK, 0, 1);

	request->nlmsg_flags &= ~NLM_F_ACK;
	assert_int_equal(
		setsockopt(mnl_socket_get_fd(netlink.socket), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(weir_netlink_ask(&netlink, NULL, NULL), -ETIMEDOUT);
}

struct dump {
	struct weir_netlink meddler;
	uint32_t read;
	uint32_t meddle_at; /* an interface is added when so many have been read; 0: never */
};

static void read_link(const struct nlmsghdr *message, void *data)
{
	struct dump *dump = data;

	assert_int_equal(message->nlmsg_type, RTM_NEWLINK);
	if (++dump->read == dump->meddle_at)
		assert_int_equal(add_veth(&dump->meddler, "meddler"), 0);
}

static int dump_links(struct dump *dump)
{
	dump->read = 0;
	begin_link(RTM_GETLINK, NLM_F_DUMP, 0);
	return weir_netlink_ask(&netlink, read_link, dump);
}

CLAIM_WITHIN(dump_that_changes_while_it_is_read_is_distinguished_from_a_whole_one, begin, end)
{
	struct dump dump = {};

	assert_int_equal(weir_netlink_open(&dump.meddler, NETLINK_ROUTE), 0);
	for (int i = 0; i < INTERFACES / 2; i++) {
		char name[IF_NAMESIZE];

		snprintf(name, sizeof(name), "v%d", i);
		if (add_veth(&netlink, name))
			skip();
	}
	assert_int_equal(dump_links(&dump), 0);
	assert_true(dump.read >= 1 + INTERFACES);
	dump.meddle_at = 1;
	assert_int_equal(dump_links(&dump), -EINTR);
	/* What was left of it does not get into the next. */
	dump.meddle_at = 0;
	assert_int_equal(dump_links(&dump), 0);
	assert_true(dump.read >= 1 + INTERFACES + 2);
	weir_netlink_close(&dump.meddler);
}

CLAIM_WITHIN(value_that_an_answer_lacks_is_no_data, begin, end)
{
	uint32_t mtu = 0;
	uint64_t longer;

	begin_link(RTM_GETLINK, 0, 1);
	assert_int_equal(weir_netlink_ask_value(&netlink, sizeof(struct ifinfomsg), IFLA_MTU, &mtu, sizeof(mtu)), 0);
	assert_int_equal(mtu, 65536);
	begin_link(RTM_GETLINK, 0, 1);
	assert_int_equal(weir_netlink_ask_value(&netlink, sizeof(struct ifinfomsg), IFLA_MTU, &longer, sizeof(longer)),
			 -ENODATA);
	begin_link(RTM_GETLINK, 0, 1);
	assert_int_equal(weir_netlink_ask_value(&netlink, sizeof(struct ifinfomsg), 4000, &mtu, sizeof(mtu)), -ENODATA);
}

/* A tc program that matches nothing. */
static int load_program(void)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "nothing", "GPL", code, sizeof(code) / sizeof(code[0]), NULL);
}

static void assert_filters(bool has_weir, size_t others)
{
	struct weir_tc_filters filters;

	assert_int_equal(weir_tc_read_filters(&netlink, 1, &filters), 0);
	assert_int_equal(filters.has_weir, has_weir);
	assert_int_equal(filters.others, others);
	assert_int_equal(filters.others_before, others);
}

/* The one without a program has weir's place, and not weir's name. */
CLAIM_WITHIN(weirs_filter_is_distinguished_from_another, begin, end)
{
	int program_fd = load_program();

	assert_true(program_fd >= 0);
	if (weir_tc_add_clsact(&netlink, 1) == -ENOENT)
		skip();
	assert_int_equal(weir_tc_add_clsact(&netlink, 1), -EEXIST);
	assert_string_equal(netlink.reason, "Exclusivity flag on, cannot modify");
	assert_filters(false, 0);
	assert_int_equal(weir_tc_set_filter(&netlink, 1, -1, 0), 0);
	assert_filters(false, 1);
	assert_int_equal(weir_tc_delete_filter(&netlink, 1), 0);
	assert_int_equal(weir_tc_set_filter(&netlink, 1, program_fd, 0), 0);
	assert_filters(true, 0);
	assert_int_equal(weir_tc_delete_filter(&netlink, 1), 0);
	assert_filters(false, 0);
	assert_int_equal(weir_tc_delete_clsact(&netlink, 1), 0);
	close(program_fd);
}

/* Of one preference and handle: the name says whose it is. Another program takes its place in one step. */
CLAIM_WITHIN(filter_that_limits_is_found_again_by_handle_and_name, begin, end)
{
	const struct weir_tc_limiter limiter = {.ifindex = 1, .handle = 7, .name = "weir:main"};
	const struct weir_tc_limiter other = {.ifindex = 1, .handle = 7, .name = "weir:other"};
	const struct weir_tc_limiter out = {.ifindex = 1, .is_egress = true, .handle = 7, .name = "weir:main"};
	int first_fd = load_program(), second_fd = load_program();
	struct weir_tc_filters filters;
	uint32_t first, second, again;

	if (weir_tc_add_clsact(&netlink, 1) == -ENOENT)
		skip();
	assert_int_equal(weir_tc_read_limiter(&netlink, &limiter, &first), -ENOENT);
	assert_int_equal(weir_tc_put_limiter(&netlink, &limiter, first_fd), 0);
	assert_int_equal(weir_tc_read_limiter(&netlink, &limiter, &first), 0);
	assert_int_equal(weir_tc_read_limiter(&netlink, &other, &again), -ENOENT);
	assert_int_equal(weir_tc_put_limiter(&netlink, &other, second_fd), -EEXIST);
	assert_int_equal(weir_tc_read_limiter(&netlink, &out, &again), -ENOENT);
	assert_int_equal(weir_tc_put_limiter(&netlink, &limiter, second_fd), 0);
	assert_int_equal(weir_tc_read_limiter(&netlink, &limiter, &second), 0);
	assert_true(first && second && first != second);
	assert_int_equal(weir_tc_put_limiter(&netlink, &out, second_fd), 0);
	assert_int_equal(weir_tc_read_filters(&netlink, 1, &filters), 0);
	assert_int_equal(filters.limiters, 2);
	assert_int_equal(filters.listed_count, 2);
	assert_string_equal(filters.listed[0].name, "weir:main");
	assert_int_equal(filters.listed[0].program_id, second);
	assert_true(!filters.listed[0].is_egress && filters.listed[1].is_egress);
	assert_int_equal(filters.others, 0);
	assert_int_equal(weir_tc_delete_limiter(&netlink, &limiter), 0);
	assert_int_equal(weir_tc_read_limiter(&netlink, &limiter, &again), -ENOENT);
	assert_int_equal(weir_tc_read_limiter(&netlink, &out, &again), 0);
	assert_int_equal(weir_tc_delete_clsact(&netlink, 1), 0);
	assert_int_equal(weir_tc_read_limiter(&netlink, &out, &again), -ENOENT);
	close(first_fd);
	close(second_fd);
}

static uint32_t program_id(int fd)
{
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &info_bytes), 0);
	return info.id;
}

CLAIM_WITHIN(tcx_link_is_put_beside_others_and_found_by_its_program, begin, end)
{
	const struct weir_tcx_place last = {};
	int first_fd = load_program(), second_fd = load_program(), first_link, second_link;

	if (!weir_tcx_is_there())
		skip();
	first_link = weir_tcx_attach(first_fd, 1, false, &last);
	second_link = weir_tcx_attach(second_fd, 1, false, &last);
	assert_true(first_link >= 0 && second_link >= 0);
	assert_int_equal(weir_tcx_count(1, false), 2);
	assert_int_equal(weir_tcx_count(1, true), 0);
	assert_int_equal(weir_tcx_has(program_id(first_fd), 1, false), 1);
	assert_int_equal(weir_tcx_has(program_id(second_fd), 1, true), 0);
	close(first_link);
	assert_int_equal(weir_tcx_has(program_id(first_fd), 1, false), 0);
	assert_int_equal(weir_tcx_has(program_id(second_fd), 1, false), 1);
	close(second_link);
	assert_int_equal(weir_tcx_attach(first_fd, NO_SUCH_INTERFACE, false, &last), -ENODEV);
	setenv("WEIR_WITHOUT_TCX", "1", true);
	assert_int_equal(weir_tcx_attach(first_fd, 1, false, &last), -EOPNOTSUPP);
	unsetenv("WEIR_WITHOUT_TCX");
	close(first_fd);
	close(second_fd);
}

CLAIM_WITHIN(ifb_is_distinguished_from_another_interface, begin, end)
{
	uint32_t ifindex;

	if (weir_tc_add_ifb(&netlink, "probe") == -EOPNOTSUPP)
		skip();
	ifindex = if_nametoindex("probe");
	assert_int_equal(weir_tc_set_up(&netlink, ifindex), 0);
	assert_true(weir_tc_is_ifb(&netlink, ifindex));
	assert_false(weir_tc_is_ifb(&netlink, 1));
	assert_int_equal(weir_tc_delete_link(&netlink, ifindex), 0);
	assert_false(weir_tc_is_ifb(&netlink, ifindex));
	assert_int_equal(weir_tc_delete_link(&netlink, ifindex), -ENODEV);
}

static int enter_own_network(void **state)
{
	return geteuid() == 0 ? unshare(CLONE_NEWNET) : 0;
}

RUN_CLAIMS(enter_own_network, NULL)
