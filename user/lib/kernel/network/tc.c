// SPDX-License-Identifier: GPL-2.0-only
#include "network/tc.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* After every other filter: a filter that asks for no priority gets 49152 or less from the kernel (tcf_auto_prio).
 * Delayed packets come back behind clsact, so a filter after this one would never see them.
 */
#define FILTER_PRIORITY 0xfff0u
#define FILTER_HANDLE 1

/* Also after other programs' filters, and before the pacing filter, which handles packets that have been evaluated. */
_Static_assert(WEIR_TC_LIMITER_PREFERENCE > 49152 && WEIR_TC_LIMITER_PREFERENCE < FILTER_PRIORITY,
	       "filters are asked in the order of their preferences");

#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define EGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)

/* The attribute of this type in `nest`, which may be NULL, with more than so many bytes; NULL: there is none. */
static const struct nlattr *find_nested(const struct nlattr *nest, uint16_t type, size_t bytes)
{
	const struct nlattr *attr;

	if (!nest)
		return NULL;
	mnl_attr_for_each_nested(attr, nest)
		if (mnl_attr_get_type(attr) == type && mnl_attr_get_payload_len(attr) > bytes)
			return attr;
	return NULL;
}

static bool has_text(const struct nlattr *nest, uint16_t type, const char *text)
{
	const struct nlattr *attr = find_nested(nest, type, strlen(text));

	return attr && !strcmp(mnl_attr_get_payload(attr), text);
}

/* ---- interfaces ---- */

static struct nlmsghdr *begin_link(struct weir_netlink *netlink, uint16_t type, uint16_t flags, uint32_t ifindex,
				   uint32_t interface_flags)
{
	const struct ifinfomsg about = {
		.ifi_index = ifindex, .ifi_flags = interface_flags, .ifi_change = interface_flags};

	return weir_netlink_begin(netlink, type, flags, &about, sizeof(about));
}

int weir_tc_add_ifb(struct weir_netlink *netlink, const char *name)
{
	struct nlmsghdr *request = begin_link(netlink, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0, 0);
	struct nlattr *nest;

	mnl_attr_put_strz(request, IFLA_IFNAME, name);
	nest = mnl_attr_nest_start(request, IFLA_LINKINFO);
	mnl_attr_put_strz(request, IFLA_INFO_KIND, "ifb");
	mnl_attr_nest_end(request, nest);
	return weir_netlink_ask(netlink, NULL, NULL);
}

int weir_tc_set_up(struct weir_netlink *netlink, uint32_t ifindex)
{
	begin_link(netlink, RTM_NEWLINK, 0, ifindex, IFF_UP);
	return weir_netlink_ask(netlink, NULL, NULL);
}

int weir_tc_delete_link(struct weir_netlink *netlink, uint32_t ifindex)
{
	begin_link(netlink, RTM_DELLINK, 0, ifindex, 0);
	return weir_netlink_ask(netlink, NULL, NULL);
}

static void read_kind(const struct nlmsghdr *message, void *data)
{
	bool *is_ifb = data;

	*is_ifb = has_text(weir_netlink_find(message, sizeof(struct ifinfomsg), IFLA_LINKINFO), IFLA_INFO_KIND, "ifb");
}

bool weir_tc_is_ifb(struct weir_netlink *netlink, uint32_t ifindex)
{
	bool is_ifb = false;

	begin_link(netlink, RTM_GETLINK, 0, ifindex, 0);
	return !weir_netlink_ask(netlink, read_kind, &is_ifb) && is_ifb;
}

/* ---- qdiscs ---- */

static struct nlmsghdr *begin_qdisc(struct weir_netlink *netlink, uint16_t type, uint16_t flags, uint32_t ifindex,
				    uint32_t parent)
{
	const struct tcmsg about = {
		.tcm_ifindex = ifindex,
		.tcm_parent = parent,
		.tcm_handle = parent == TC_H_CLSACT ? TC_H_MAKE(TC_H_CLSACT, 0) : 0,
	};

	return weir_netlink_begin(netlink, type, flags, &about, sizeof(about));
}

int weir_tc_add_fq(struct weir_netlink *netlink, uint32_t ifindex, uint32_t limit_packets)
{
	struct nlmsghdr *request = begin_qdisc(netlink, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_ROOT);
	struct nlattr *nest;

	mnl_attr_put_strz(request, TCA_KIND, "fq");
	nest = mnl_attr_nest_start(request, TCA_OPTIONS);
	mnl_attr_put_u32(request, TCA_FQ_PLIMIT, limit_packets);
	/* Packets without a socket on this host share 1,024 queues, by hash. */
	mnl_attr_put_u32(request, TCA_FQ_FLOW_PLIMIT, limit_packets);
	/* If the sender's socket is on this host, its rate is not for us to enforce. */
	mnl_attr_put_u32(request, TCA_FQ_RATE_ENABLE, 0);
	/* The farthest possible horizon (in us, 71 minutes). A packet with a later time leaves at the horizon, and is
	 * not dropped.
	 */
	mnl_attr_put_u32(request, TCA_FQ_HORIZON, UINT32_MAX);
	mnl_attr_put_u8(request, TCA_FQ_HORIZON_DROP, 0);
	mnl_attr_nest_end(request, nest);
	return weir_netlink_ask(netlink, NULL, NULL);
}

int weir_tc_read_queue(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_queue *ret_queue)
{
	struct tc_stats stats;
	int err;

	begin_qdisc(netlink, RTM_GETQDISC, NLM_F_ECHO, ifindex, TC_H_ROOT);
	err = weir_netlink_ask_value(netlink, sizeof(struct tcmsg), TCA_STATS, &stats,
				     offsetof(struct tc_stats, backlog));
	if (!err)
		*ret_queue = (struct weir_tc_queue){.waiting = stats.qlen, .dropped = stats.drops};
	return err;
}

struct senders_reading {
	uint32_t ifindex;
	uint32_t root; /* handle */
	struct weir_tc_senders *senders;
};

static uint32_t option_of_fq(const struct nlattr *options, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, options)
		if (mnl_attr_get_type(attr) == type && mnl_attr_get_payload_len(attr) >= sizeof(uint32_t))
			return mnl_attr_get_u32(attr);
	return UINT32_MAX;
}

static void lower(uint32_t *least, uint32_t number)
{
	if (number < *least)
		*least = number;
}

static void add_sender(const struct nlmsghdr *message, const char *kind, struct weir_tc_senders *senders)
{
	const struct nlattr *options = weir_netlink_find(message, sizeof(struct tcmsg), TCA_OPTIONS);

	senders->count++;
	if (strcmp(kind, "fq") != 0 || !options)
		return;
	senders->fq_count++;
	lower(&senders->limit, option_of_fq(options, TCA_FQ_PLIMIT));
	lower(&senders->flow_limit, option_of_fq(options, TCA_FQ_FLOW_PLIMIT));
	lower(&senders->horizon_us, option_of_fq(options, TCA_FQ_HORIZON));
}

/* The root comes before its children. */
static void read_sender(const struct nlmsghdr *message, void *data)
{
	struct senders_reading *reading = data;
	struct weir_tc_senders *senders = reading->senders;
	const struct nlattr *kind;
	struct tcmsg about;

	memcpy(&about, mnl_nlmsg_get_payload(message), sizeof(about));
	kind = weir_netlink_find(message, sizeof(about), TCA_KIND);
	if (message->nlmsg_type != RTM_NEWQDISC || (uint32_t)about.tcm_ifindex != reading->ifindex || !kind)
		return;
	if (about.tcm_parent == TC_H_ROOT) {
		snprintf(senders->root, sizeof(senders->root), "%s", mnl_attr_get_str(kind));
		senders->is_spread = !strcmp(senders->root, "mq");
		reading->root = about.tcm_handle;
	}
	if (about.tcm_parent == TC_H_ROOT ? !senders->is_spread
					  : senders->is_spread && TC_H_MAJ(about.tcm_parent) == reading->root)
		add_sender(message, mnl_attr_get_str(kind), senders);
}

int weir_tc_read_senders(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_senders *ret_senders)
{
	int err = -EINTR;

	for (int i = 0; err == -EINTR && i < WEIR_DUMPS_MAX; i++) {
		struct senders_reading reading = {.ifindex = ifindex, .senders = ret_senders};

		*ret_senders = (struct weir_tc_senders){
			.limit = UINT32_MAX, .flow_limit = UINT32_MAX, .horizon_us = UINT32_MAX};
		begin_qdisc(netlink, RTM_GETQDISC, NLM_F_DUMP, ifindex, 0);
		err = weir_netlink_ask(netlink, read_sender, &reading);
	}
	return err;
}

int weir_tc_add_clsact(struct weir_netlink *netlink, uint32_t ifindex)
{
	struct nlmsghdr *request = begin_qdisc(netlink, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_CLSACT);

	mnl_attr_put_strz(request, TCA_KIND, "clsact");
	return weir_netlink_ask(netlink, NULL, NULL);
}

int weir_tc_delete_clsact(struct weir_netlink *netlink, uint32_t ifindex)
{
	begin_qdisc(netlink, RTM_DELQDISC, 0, ifindex, TC_H_CLSACT);
	return weir_netlink_ask(netlink, NULL, NULL);
}

/* ---- filters ---- */

static struct nlmsghdr *begin_any_filter(struct weir_netlink *netlink, uint16_t type, uint16_t flags,
					 const struct tcmsg *about)
{
	struct nlmsghdr *request = weir_netlink_begin(netlink, type, flags, about, sizeof(*about));

	mnl_attr_put_strz(request, TCA_KIND, "bpf");
	return request;
}

static struct nlmsghdr *begin_filter(struct weir_netlink *netlink, uint16_t type, uint16_t flags, uint32_t ifindex)
{
	const struct tcmsg about = {
		.tcm_ifindex = ifindex,
		.tcm_parent = INGRESS,
		.tcm_handle = FILTER_HANDLE,
		.tcm_info = TC_H_MAKE(FILTER_PRIORITY << 16, htons(ETH_P_ALL)),
	};

	return begin_any_filter(netlink, type, flags, &about);
}

/* Uses the action mirred, not bpf_redirect: an ifb drops packets that arrive without the input device, which only
 * mirred records.
 */
static void put_redirect(struct nlmsghdr *request, uint32_t device)
{
	const struct tc_mirred redirect = {.action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = device};
	struct nlattr *actions = mnl_attr_nest_start(request, TCA_BPF_ACT);
	struct nlattr *first = mnl_attr_nest_start(request, 1);
	struct nlattr *options;

	mnl_attr_put_strz(request, TCA_ACT_KIND, "mirred");
	options = mnl_attr_nest_start(request, TCA_ACT_OPTIONS);
	mnl_attr_put(request, TCA_MIRRED_PARMS, sizeof(redirect), &redirect);
	mnl_attr_nest_end(request, options);
	mnl_attr_nest_end(request, first);
	mnl_attr_nest_end(request, actions);
}

int weir_tc_set_filter(struct weir_netlink *netlink, uint32_t ifindex, int program_fd, uint32_t device)
{
	const struct sock_filter match_nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct nlmsghdr *request = begin_filter(netlink, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, ifindex);
	struct nlattr *nest = mnl_attr_nest_start(request, TCA_OPTIONS);

	if (program_fd < 0) {
		mnl_attr_put_u16(request, TCA_BPF_OPS_LEN, 1);
		mnl_attr_put(request, TCA_BPF_OPS, sizeof(match_nothing), &match_nothing);
	} else {
		mnl_attr_put_u32(request, TCA_BPF_FD, program_fd);
		mnl_attr_put_strz(request, TCA_BPF_NAME, WEIR_TC_FILTER_NAME);
	}
	if (device)
		put_redirect(request, device);
	mnl_attr_nest_end(request, nest);
	return weir_netlink_ask(netlink, NULL, NULL);
}

int weir_tc_delete_filter(struct weir_netlink *netlink, uint32_t ifindex)
{
	begin_filter(netlink, RTM_DELTFILTER, 0, ifindex);
	return weir_netlink_ask(netlink, NULL, NULL);
}

static bool is_weirs(const struct nlmsghdr *message, const struct tcmsg *about)
{
	return TC_H_MAJ(about->tcm_info) >> 16 == FILTER_PRIORITY && about->tcm_handle == FILTER_HANDLE &&
	       has_text(weir_netlink_find(message, sizeof(*about), TCA_OPTIONS), TCA_BPF_NAME, WEIR_TC_FILTER_NAME);
}

/* ---- filters that limit ---- */

static struct nlmsghdr *begin_limiter(struct weir_netlink *netlink, uint16_t type, uint16_t flags,
				      const struct weir_tc_limiter *limiter)
{
	const struct tcmsg about = {
		.tcm_ifindex = limiter->ifindex,
		.tcm_parent = limiter->is_egress ? EGRESS : INGRESS,
		.tcm_handle = limiter->handle,
		.tcm_info = TC_H_MAKE(WEIR_TC_LIMITER_PREFERENCE << 16, htons(ETH_P_ALL)),
	};

	return begin_any_filter(netlink, type, flags, &about);
}

static uint32_t program_of(const struct nlattr *options)
{
	const struct nlattr *id = find_nested(options, TCA_BPF_ID, sizeof(uint32_t) - 1);

	return id ? mnl_attr_get_u32(id) : 0;
}

/* What weir_tc_read_limiter() looks for. */
struct found_limiter {
	const char *name;
	uint32_t program_id; /* 0: the filter belongs to somebody else */
};

static void read_limiter(const struct nlmsghdr *message, void *data)
{
	const struct nlattr *options = weir_netlink_find(message, sizeof(struct tcmsg), TCA_OPTIONS);
	struct found_limiter *found = data;

	if (message->nlmsg_type == RTM_NEWTFILTER && has_text(options, TCA_BPF_NAME, found->name))
		found->program_id = program_of(options);
}

int weir_tc_read_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter, uint32_t *ret_program_id)
{
	struct found_limiter found = {.name = limiter->name};
	int err;

	begin_limiter(netlink, RTM_GETTFILTER, 0, limiter);
	err = weir_netlink_ask(netlink, read_limiter, &found);
	/* Without the qdisc there is no filter either; the same holds for an interface that has gone. */
	if (err == -EINVAL || err == -ENODEV || (!err && !found.program_id))
		return -ENOENT;
	if (!err)
		*ret_program_id = found.program_id;
	return err;
}

int weir_tc_put_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter, int program_fd)
{
	uint32_t program_id;
	const bool is_there = !weir_tc_read_limiter(netlink, limiter, &program_id);
	struct nlmsghdr *request =
		begin_limiter(netlink, RTM_NEWTFILTER, NLM_F_CREATE | (is_there ? NLM_F_REPLACE : NLM_F_EXCL), limiter);
	struct nlattr *nest = mnl_attr_nest_start(request, TCA_OPTIONS);

	mnl_attr_put_u32(request, TCA_BPF_FD, program_fd);
	mnl_attr_put_strz(request, TCA_BPF_NAME, limiter->name);
	mnl_attr_put_u32(request, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	mnl_attr_nest_end(request, nest);
	return weir_netlink_ask(netlink, NULL, NULL);
}

int weir_tc_delete_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter)
{
	begin_limiter(netlink, RTM_DELTFILTER, 0, limiter);
	return weir_netlink_ask(netlink, NULL, NULL);
}

/* ---- existing filters ---- */

/* A filter that is no BPF program may have several entries (the hash tables of u32): it is listed once. */
static void list_filter(const struct nlmsghdr *message, bool is_egress, struct weir_tc_filters *filters)
{
	const struct nlattr *kind = weir_netlink_find(message, sizeof(struct tcmsg), TCA_KIND), *name = NULL;
	const struct nlattr *options = weir_netlink_find(message, sizeof(struct tcmsg), TCA_OPTIONS);
	struct weir_tc_filter filter = {.is_egress = is_egress}, *listed = &filters->listed[filters->listed_count];

	if (!kind || filters->listed_count == WEIR_TC_LISTED_MAX)
		return;
	if (!strcmp(mnl_attr_get_str(kind), "bpf")) {
		name = find_nested(options, TCA_BPF_NAME, 0);
		filter.program_id = program_of(options);
	}
	snprintf(filter.name, sizeof(filter.name), "%s", mnl_attr_get_str(name ?: kind));
	if (!filter.program_id && filters->listed_count && !listed[-1].program_id &&
	    listed[-1].is_egress == is_egress && !strcmp(filter.name, listed[-1].name))
		return;
	*listed = filter;
	filters->listed_count++;
}

static void read_filter(const struct nlmsghdr *message, void *data)
{
	struct weir_tc_filters *filters = data;
	struct tcmsg about;

	memcpy(&about, mnl_nlmsg_get_payload(message), sizeof(about));
	/* A dump begins each priority with an entry that is not a filter. */
	if (message->nlmsg_type != RTM_NEWTFILTER || !about.tcm_handle)
		return;
	list_filter(message, about.tcm_parent == EGRESS, filters);
	if (about.tcm_parent == INGRESS && is_weirs(message, &about)) {
		filters->has_weir = true;
		return;
	}
	if (TC_H_MAJ(about.tcm_info) >> 16 == WEIR_TC_LIMITER_PREFERENCE) {
		filters->limiters++;
		return;
	}
	filters->others++;
	if (about.tcm_parent == INGRESS)
		filters->others_before++;
}

static int read_filters_once(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_filters *filters)
{
	const uint32_t parents[] = {INGRESS, EGRESS};
	int err = 0;

	*filters = (struct weir_tc_filters){};
	for (size_t i = 0; !err && i < ARRAY_SIZE(parents); i++) {
		begin_qdisc(netlink, RTM_GETTFILTER, NLM_F_DUMP, ifindex, parents[i]);
		err = weir_netlink_ask(netlink, read_filter, filters);
	}
	return err;
}

int weir_tc_read_filters(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_filters *ret_filters)
{
	struct weir_tc_filters filters;
	int err = -EINTR;

	for (int i = 0; err == -EINTR && i < WEIR_DUMPS_MAX; i++)
		err = read_filters_once(netlink, ifindex, &filters);
	if (!err)
		*ret_filters = filters;
	return err;
}

/* ---- tcx ---- */

/* enum bpf_attach_type of Linux 6.6 (include/uapi/linux/bpf.h) */
#define TCX_INGRESS 46
#define TCX_EGRESS 47

/* BPF_F_BEFORE, BPF_F_AFTER and BPF_F_ID of the same header */
#define FLAG_BEFORE (1u << 3)
#define FLAG_AFTER (1u << 4)
#define FLAG_ID (1u << 5)

/* Lets tests use filters on a kernel that has tcx. */
#define WITHOUT_TCX "WEIR_WITHOUT_TCX"

static enum bpf_attach_type attach_type(bool is_egress)
{
	return (enum bpf_attach_type)(is_egress ? TCX_EGRESS : TCX_INGRESS);
}

int weir_tcx_attach(int program_fd, uint32_t ifindex, bool is_egress, const struct weir_tcx_place *place)
{
	/* link_create.tcx.relative_id is where link_create.target_btf_id is, which libbpf fills in. */
	LIBBPF_OPTS(bpf_link_create_opts, options, .target_btf_id = place->program_id,
		    .flags = (place->is_before	  ? FLAG_BEFORE
			      : place->program_id ? FLAG_AFTER
						  : 0) |
			     (place->program_id ? FLAG_ID : 0));
	char name[IF_NAMESIZE];
	int link_fd;

	if (secure_getenv(WITHOUT_TCX))
		return -EOPNOTSUPP;
	link_fd = bpf_link_create(program_fd, (int)ifindex, attach_type(is_egress), &options);
	if (link_fd == -EINVAL) /* the kernel does not know the attach type, or there is no such interface */
		return if_indextoname(ifindex, name) ? -EOPNOTSUPP : -ENODEV;
	return link_fd;
}

int weir_tcx_read(uint32_t ifindex, bool is_egress, uint32_t ret_ids[WEIR_TCX_PROGRAMS_MAX])
{
	__u32 count = WEIR_TCX_PROGRAMS_MAX;
	int err = bpf_prog_query((int)ifindex, attach_type(is_egress), 0, NULL, ret_ids, &count);

	return err ? err : (int)count;
}

int weir_tcx_has(uint32_t program_id, uint32_t ifindex, bool is_egress)
{
	uint32_t ids[WEIR_TCX_PROGRAMS_MAX] = {};
	int count = weir_tcx_read(ifindex, is_egress, ids);

	for (int i = 0; i < count; i++)
		if (ids[i] == program_id)
			return 1;
	return count < 0 ? count : 0;
}

uint32_t weir_tcx_count(uint32_t ifindex, bool is_egress)
{
	uint32_t ids[WEIR_TCX_PROGRAMS_MAX];
	int count = weir_tcx_read(ifindex, is_egress, ids);

	return count < 0 ? 0 : count;
}

/* For an unknown attach type the kernel returns EINVAL, and for an unknown interface ENODEV. */
bool weir_tcx_is_there(void)
{
	__u32 count = 0;

	return !secure_getenv(WITHOUT_TCX) && bpf_prog_query(0, attach_type(false), 0, NULL, NULL, &count) == -ENODEV;
}
