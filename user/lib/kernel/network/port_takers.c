// SPDX-License-Identifier: GPL-2.0-only
#include "network/port_takers.h"

#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "network/netlink.h"

static void add(char words[WEIR_PORT_TAKERS_BYTES], const char *what, const char *name)
{
	char taker[64];

	snprintf(taker, sizeof(taker), "%s '%.32s'", what, name);
	if (strstr(words, taker) || strlen(words) + strlen(taker) + 3 > WEIR_PORT_TAKERS_BYTES)
		return;
	strcat(words, words[0] ? ", " : "");
	strcat(words, taker);
}

/* ---- nft ---- */

static const struct nlattr *find_in(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr;

	if (nest)
		mnl_attr_for_each_nested(attr, nest)
			if (mnl_attr_get_type(attr) == type)
				return attr;
	return NULL;
}

static const char *text_of(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ? mnl_attr_get_str(attr) : "";
}

/* Expressions of nft's own, or a target of iptables. */
static bool takes(const struct nlattr *expression)
{
	static const char *const targets[] = {"DNAT", "REDIRECT", "TPROXY", "NETMAP"};
	const char *name = text_of(find_in(expression, NFTA_EXPR_NAME));
	const struct nlattr *data = find_in(expression, NFTA_EXPR_DATA), *type;

	if (!strcmp(name, "redir") || !strcmp(name, "tproxy"))
		return true;
	type = !strcmp(name, "nat") ? find_in(data, NFTA_NAT_TYPE) : NULL;
	if (type && mnl_attr_validate(type, MNL_TYPE_U32) >= 0)
		return ntohl(mnl_attr_get_u32(type)) == NFT_NAT_DNAT;
	for (size_t i = 0; !strcmp(name, "target") && i < ARRAY_SIZE(targets); i++)
		if (!strcmp(text_of(find_in(data, NFTA_TARGET_NAME)), targets[i]))
			return true;
	return false;
}

static void read_rule(const struct nlmsghdr *message, void *words)
{
	const size_t about_bytes = sizeof(struct nfgenmsg);
	const struct nlattr *expressions = weir_netlink_find(message, about_bytes, NFTA_RULE_EXPRESSIONS), *one;

	if (expressions)
		mnl_attr_for_each_nested(one, expressions)
			if (takes(one))
				add(words, "nft table",
				    text_of(weir_netlink_find(message, about_bytes, NFTA_RULE_TABLE)));
}

/* Without it there are no rules, and to ask for them would load it. A part of the kernel that is no module shows only
 * by its functions; a kernel that does not list those is asked.
 */
static bool has_nft(void)
{
	_cleanup_(weir_fclosep) FILE *functions = NULL;
	char line[256];

	if (!access("/sys/module/nf_tables", F_OK))
		return true;
	functions = fopen("/proc/kallsyms", "re");
	while (functions && fgets(line, sizeof(line), functions))
		if (strstr(line, " nft_register_expr"))
			return true;
	return !functions;
}

static void read_nft(char words[WEIR_PORT_TAKERS_BYTES])
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	const struct nfgenmsg about = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0};

	if (!has_nft() || weir_netlink_open(&netlink, NETLINK_NETFILTER))
		return;
	weir_netlink_begin(&netlink, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NLM_F_DUMP, &about, sizeof(about));
	weir_netlink_ask(&netlink, read_rule, words); /* what cannot be read is not reported, ignoring */
}

/* ---- others ---- */

/* Of the calling thread's namespace, unlike /proc/net. A service is a line as "TCP  0A010001:0050 rr". */
static void read_lines(const char *path, const char *const *beginnings, const char *what,
		       char words[WEIR_PORT_TAKERS_BYTES])
{
	_cleanup_(weir_fclosep) FILE *file = fopen(path, "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		for (const char *const *beginning = beginnings; *beginning; beginning++)
			if (!strncmp(line, *beginning, strlen(*beginning)))
				add(words, what, *beginning);
}

bool weir_port_takers_find(char ret_words[WEIR_PORT_TAKERS_BYTES])
{
	static const char *const tables[] = {"nat", "mangle", NULL}, *const services[] = {"TCP", "FWM", NULL};

	ret_words[0] = '\0';
	read_nft(ret_words);
	read_lines("/proc/thread-self/net/ip_tables_names", tables, "iptables-legacy table", ret_words);
	read_lines("/proc/thread-self/net/ip6_tables_names", tables, "ip6tables-legacy table", ret_words);
	read_lines("/proc/thread-self/net/ip_vs", services, "IPVS service", ret_words);
	return ret_words[0];
}
