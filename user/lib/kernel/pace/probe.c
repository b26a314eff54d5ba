// SPDX-License-Identifier: GPL-2.0-only
/* Can this host pace? See pace.h. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/util.h"
#include "network/netlink.h"
#include "network/tc.h"
#include "pace/pace.h"

#define PROBE_DEVICE "weir-probe" /* in a network namespace of the child's own */

/* The parts that pacing needs, in the order in which they are set up. */
enum part { PART_IFB, PART_FQ, PART_CLSACT, PART_FILTER, PART_REDIRECT, PART_COUNT };

static const struct {
	const char *module, *option, *what;
} parts[PART_COUNT] = {
	[PART_IFB] = {"ifb", "CONFIG_IFB", "the ifb device"},
	[PART_FQ] = {"sch_fq", "CONFIG_NET_SCH_FQ", "the fq packet scheduler"},
	[PART_CLSACT] = {"sch_ingress", "CONFIG_NET_SCH_INGRESS", "the clsact qdisc"},
	[PART_FILTER] = {"cls_bpf", "CONFIG_NET_CLS_BPF", "tc filters in BPF"},
	[PART_REDIRECT] = {"act_mirred", "CONFIG_NET_ACT_MIRRED", "the tc action mirred"},
};

/* What the child reports: the number of the part that is missing, or one of these. */
#define PROBE_ALL_THERE 100
#define PROBE_UNKNOWN 101

/* ---- from the list of modules ---- */

static bool is_listed(const char *list, const char *module)
{
	_cleanup_(weir_fclosep) FILE *file = NULL;
	char path[256], line[4096], wanted[64];
	struct utsname kernel;

	if (uname(&kernel))
		return false;
	snprintf(path, sizeof(path), "/lib/modules/%s/%s", kernel.release, list);
	snprintf(wanted, sizeof(wanted), "/%s.ko", module);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		/* After the colon come the modules that this one depends on. */
		line[strcspn(line, ":\n")] = '\0';
		if (strstr(line, wanted))
			return true;
	}
	return false;
}

static bool has_all_modules(void)
{
	for (int part = 0; part < PART_COUNT; part++) {
		const char *module = parts[part].module;
		char path[128];

		snprintf(path, sizeof(path), "/sys/module/%s", module);
		if (access(path, F_OK) && !is_listed("modules.builtin", module) && !is_listed("modules.dep", module))
			return false;
	}
	return true;
}

/* ---- by experiment ---- */

static int try_part(struct weir_netlink *netlink, uint32_t ifindex, enum part part)
{
	switch (part) {
	case PART_IFB:
		return weir_tc_add_ifb(netlink, PROBE_DEVICE);
	case PART_FQ:
		return weir_tc_add_fq(netlink, ifindex, 1);
	case PART_CLSACT:
		return weir_tc_add_clsact(netlink, ifindex);
	case PART_FILTER:
		return weir_tc_set_filter(netlink, ifindex, -1, 0);
	default:
		return weir_tc_set_filter(netlink, ifindex, -1, ifindex);
	}
}

/* Runs in a child, and the child's network namespace ends with it. An unprivileged user may be able to create one in a
 * user namespace.
 */
static int try_all(void)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return PROBE_UNKNOWN;
	if (weir_netlink_open(&netlink, NETLINK_ROUTE))
		return PROBE_UNKNOWN;
	for (int part = 0; part < PART_COUNT; part++) {
		int err = try_part(&netlink, if_nametoindex(PROBE_DEVICE), part);

		if (err)
			return err == -EOPNOTSUPP || err == -ENOENT ? part : PROBE_UNKNOWN;
	}
	return PROBE_ALL_THERE;
}

static int ask_child(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(try_all());
	if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
		return PROBE_UNKNOWN;
	return WEXITSTATUS(status);
}

/* ---- the contract ---- */

void weir_pace_probe(struct weir_pace_ability *ret_ability)
{
	struct weir_pace_ability ability = {.answer = WEIR_PACE_YES, .text = "this host can pace: ifb, fq, clsact"};
	int found = has_all_modules() ? PROBE_ALL_THERE : ask_child();

	if (found == PROBE_UNKNOWN) {
		ability.answer = WEIR_PACE_UNKNOWN;
		snprintf(ability.text, sizeof(ability.text), "cannot find out whether this host can pace");
		snprintf(ability.advice, sizeof(ability.advice), "run it as root");
	} else if (found < PART_COUNT) {
		ability.answer = WEIR_PACE_NO;
		snprintf(ability.text, sizeof(ability.text), "this kernel cannot pace: it lacks %s (%s)",
			 parts[found].what, parts[found].option);
		snprintf(ability.advice, sizeof(ability.advice),
			 "install its module %s or boot a kernel that has it; or write 'throttling: police': the same "
			 "decisions, without the delay",
			 parts[found].module);
	}
	*ret_ability = ability;
}

int weir_pace_check(struct weir_diag *diag)
{
	struct weir_pace_ability ability;

	weir_pace_probe(&ability);
	if (ability.answer != WEIR_PACE_NO)
		return 0;
	weir_diag_error(diag, NULL, NULL, ability.advice, "%s", ability.text);
	return -EOPNOTSUPP;
}
