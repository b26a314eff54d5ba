// SPDX-License-Identifier: GPL-2.0-only
#include "tc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <string.h>

#include "rtnl.h"

/* Behind every other filter: the kernel gives those that ask for no priority 49152 and less (tcf_auto_prio), and what
 * has waited comes back behind clsact, so that a filter after this one would never see it.
 */
#define FILTER_PRIORITY 0xfff0
#define FILTER_HANDLE 1

#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define EGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)

/* ---- interfaces ---- */

int weir_tc_add_ifb(int fd, const char *name)
{
	const struct ifinfomsg about = {};
	struct weir_rtnl_request request;
	struct rtattr *nest;

	weir_rtnl_begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &about, sizeof(about));
	weir_rtnl_put_text(&request, IFLA_IFNAME, name);
	nest = weir_rtnl_begin_nest(&request, IFLA_LINKINFO);
	weir_rtnl_put_text(&request, IFLA_INFO_KIND, "ifb");
	weir_rtnl_end_nest(&request, nest);
	return weir_rtnl_ask(fd, &request);
}

int weir_tc_set_up(int fd, uint32_t ifindex)
{
	const struct ifinfomsg about = {.ifi_index = ifindex, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct weir_rtnl_request request;

	weir_rtnl_begin(&request, RTM_NEWLINK, 0, &about, sizeof(about));
	return weir_rtnl_ask(fd, &request);
}

int weir_tc_delete_link(int fd, uint32_t ifindex)
{
	const struct ifinfomsg about = {.ifi_index = ifindex};
	struct weir_rtnl_request request;

	weir_rtnl_begin(&request, RTM_DELLINK, 0, &about, sizeof(about));
	return weir_rtnl_ask(fd, &request);
}

static void read_kind(const struct nlmsghdr *message, void *data)
{
	const struct rtattr *attr = weir_rtnl_find(message, sizeof(struct ifinfomsg), IFLA_LINKINFO);
	bool *is_ifb = data;

	attr = attr ? weir_rtnl_find_nested(attr, IFLA_INFO_KIND) : NULL;
	if (attr)
		*is_ifb = !strncmp(RTA_DATA(attr), "ifb", RTA_PAYLOAD(attr));
}

bool weir_tc_is_ifb(int fd, uint32_t ifindex)
{
	const struct ifinfomsg about = {.ifi_index = ifindex};
	struct weir_rtnl_request request;
	bool is_ifb = false;

	weir_rtnl_begin(&request, RTM_GETLINK, 0, &about, sizeof(about));
	return !weir_rtnl_read(fd, &request, read_kind, &is_ifb) && is_ifb;
}

/* ---- qdiscs ---- */

static void begin_qdisc(struct weir_rtnl_request *request, uint16_t type, uint16_t flags, uint32_t ifindex,
			uint32_t parent, uint32_t handle)
{
	const struct tcmsg about = {.tcm_ifindex = ifindex, .tcm_parent = parent, .tcm_handle = handle};

	weir_rtnl_begin(request, type, flags, &about, sizeof(about));
}

int weir_tc_add_fq(int fd, uint32_t ifindex, uint32_t limit_packets)
{
	const uint8_t no = 0;
	struct weir_rtnl_request request;
	struct rtattr *nest;

	begin_qdisc(&request, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_ROOT, 0);
	weir_rtnl_put_text(&request, TCA_KIND, "fq");
	nest = weir_rtnl_begin_nest(&request, TCA_OPTIONS);
	weir_rtnl_put_u32(&request, TCA_FQ_PLIMIT, limit_packets);
	/* Packets without a socket of this host share 1,024 queues, by hash. */
	weir_rtnl_put_u32(&request, TCA_FQ_FLOW_PLIMIT, limit_packets);
	/* The rate of a sender's socket, when it is on this host, is not for us to enforce. */
	weir_rtnl_put_u32(&request, TCA_FQ_RATE_ENABLE, 0);
	/* As far ahead as it goes (in us, 71 minutes); what is planned later goes then, and is not dropped. */
	weir_rtnl_put_u32(&request, TCA_FQ_HORIZON, UINT32_MAX);
	weir_rtnl_put(&request, TCA_FQ_HORIZON_DROP, &no, sizeof(no));
	weir_rtnl_end_nest(&request, nest);
	return weir_rtnl_ask(fd, &request);
}

static void read_queue(const struct nlmsghdr *message, void *data)
{
	const struct rtattr *attr = weir_rtnl_find(message, sizeof(struct tcmsg), TCA_STATS);
	struct weir_tc_queue *queue = data;
	struct tc_stats stats;

	if (!attr || RTA_PAYLOAD(attr) < offsetof(struct tc_stats, backlog))
		return;
	memcpy(&stats, RTA_DATA(attr), offsetof(struct tc_stats, backlog));
	queue->waiting = stats.qlen;
	queue->dropped = stats.drops;
}

int weir_tc_read_queue(int fd, uint32_t ifindex, struct weir_tc_queue *ret_queue)
{
	struct weir_rtnl_request request;
	struct weir_tc_queue queue = {};
	int err;

	begin_qdisc(&request, RTM_GETQDISC, NLM_F_ECHO, ifindex, TC_H_ROOT, 0);
	err = weir_rtnl_read(fd, &request, read_queue, &queue);
	if (!err)
		*ret_queue = queue;
	return err;
}

int weir_tc_add_clsact(int fd, uint32_t ifindex)
{
	struct weir_rtnl_request request;

	begin_qdisc(&request, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_CLSACT, TC_H_MAKE(TC_H_CLSACT, 0));
	weir_rtnl_put_text(&request, TCA_KIND, "clsact");
	return weir_rtnl_ask(fd, &request);
}

int weir_tc_delete_clsact(int fd, uint32_t ifindex)
{
	struct weir_rtnl_request request;

	begin_qdisc(&request, RTM_DELQDISC, 0, ifindex, TC_H_CLSACT, TC_H_MAKE(TC_H_CLSACT, 0));
	return weir_rtnl_ask(fd, &request);
}

/* ---- filters ---- */

static void begin_filter(struct weir_rtnl_request *request, uint16_t type, uint16_t flags, uint32_t ifindex)
{
	const struct tcmsg about = {
		.tcm_ifindex = ifindex,
		.tcm_parent = INGRESS,
		.tcm_handle = FILTER_HANDLE,
		.tcm_info = TC_H_MAKE(FILTER_PRIORITY << 16, htons(ETH_P_ALL)),
	};

	weir_rtnl_begin(request, type, flags, &about, sizeof(about));
	weir_rtnl_put_text(request, TCA_KIND, "bpf");
}

/* The action mirred, and not bpf_redirect: an ifb drops what does not come by it, since only mirred says where from. */
static void put_redirect(struct weir_rtnl_request *request, uint32_t device)
{
	const struct tc_mirred redirect = {.action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = device};
	struct rtattr *actions = weir_rtnl_begin_nest(request, TCA_BPF_ACT);
	struct rtattr *first = weir_rtnl_begin_nest(request, 1);
	struct rtattr *options;

	weir_rtnl_put_text(request, TCA_ACT_KIND, "mirred");
	options = weir_rtnl_begin_nest(request, TCA_ACT_OPTIONS);
	weir_rtnl_put(request, TCA_MIRRED_PARMS, &redirect, sizeof(redirect));
	weir_rtnl_end_nest(request, options);
	weir_rtnl_end_nest(request, first);
	weir_rtnl_end_nest(request, actions);
}

int weir_tc_set_filter(int fd, uint32_t ifindex, int program_fd, uint32_t device)
{
	const struct sock_filter match_nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const uint16_t one = 1;
	struct weir_rtnl_request request;
	struct rtattr *nest;

	begin_filter(&request, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, ifindex);
	nest = weir_rtnl_begin_nest(&request, TCA_OPTIONS);
	if (program_fd < 0) {
		weir_rtnl_put(&request, TCA_BPF_OPS_LEN, &one, sizeof(one));
		weir_rtnl_put(&request, TCA_BPF_OPS, &match_nothing, sizeof(match_nothing));
	} else {
		weir_rtnl_put_u32(&request, TCA_BPF_FD, program_fd);
		weir_rtnl_put_text(&request, TCA_BPF_NAME, WEIR_TC_FILTER_NAME);
	}
	if (device)
		put_redirect(&request, device);
	weir_rtnl_end_nest(&request, nest);
	return weir_rtnl_ask(fd, &request);
}

int weir_tc_delete_filter(int fd, uint32_t ifindex)
{
	struct weir_rtnl_request request;

	begin_filter(&request, RTM_DELTFILTER, 0, ifindex);
	return weir_rtnl_ask(fd, &request);
}

static bool is_weirs(const struct nlmsghdr *message, const struct tcmsg *about)
{
	const struct rtattr *attr = weir_rtnl_find(message, sizeof(*about), TCA_OPTIONS);

	attr = attr ? weir_rtnl_find_nested(attr, TCA_BPF_NAME) : NULL;
	return attr && TC_H_MAJ(about->tcm_info) >> 16 == FILTER_PRIORITY && about->tcm_handle == FILTER_HANDLE &&
	       !strncmp(RTA_DATA(attr), WEIR_TC_FILTER_NAME, RTA_PAYLOAD(attr));
}

static void read_filter(const struct nlmsghdr *message, void *data)
{
	struct weir_tc_filters *filters = data;
	struct tcmsg about;

	memcpy(&about, NLMSG_DATA(message), sizeof(about));
	/* A dump begins each priority with an entry that is no filter. */
	if (message->nlmsg_type != RTM_NEWTFILTER || !about.tcm_handle)
		return;
	if (about.tcm_parent == INGRESS && is_weirs(message, &about)) {
		filters->has_weir = true;
		return;
	}
	filters->others++;
	if (about.tcm_parent == INGRESS)
		filters->others_before++;
}

int weir_tc_read_filters(int fd, uint32_t ifindex, struct weir_tc_filters *ret_filters)
{
	const uint32_t parents[] = {INGRESS, EGRESS};
	struct weir_tc_filters filters = {};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(parents) / sizeof(parents[0]); i++) {
		struct weir_rtnl_request request;

		begin_qdisc(&request, RTM_GETTFILTER, NLM_F_DUMP, ifindex, parents[i], 0);
		err = weir_rtnl_read(fd, &request, read_filter, &filters);
	}
	if (!err)
		*ret_filters = filters;
	return err;
}
