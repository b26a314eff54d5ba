// SPDX-License-Identifier: GPL-2.0-only
#include "host/confine.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/util.h"

/* libseccomp's macros for system call arguments leave out a field if they compare with a single value; clang warns of
 * that.
 */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MMAP_SHARED_OR_PRIVATE 0xf /* the kernel's MAP_TYPE */
#define SOCK_TYPE 0xf		   /* the kernel's SOCK_TYPE_MASK */

const char *weir_confine_version(void)
{
	static char words[64];
	const struct scmp_version *version = seccomp_version();

	snprintf(words, sizeof(words), "libcap-ng, libseccomp %u.%u.%u", version->major, version->minor,
		 version->micro);
	return words;
}

/* ---- capabilities ---- */

/* The capabilities of a controller, as far as the process has them. If it has CAP_SYS_ADMIN instead of one of them, as
 * in old containers, it keeps CAP_SYS_ADMIN.
 */
static void select_controllers(void)
{
	static const unsigned int wanted[] = {CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON};
	bool has[ARRAY_SIZE(wanted)], has_all = true;
	bool is_admin = capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN);

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		has[i] = capng_have_capability(CAPNG_EFFECTIVE, wanted[i]);
		has_all &= has[i];
	}
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (has[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, wanted[i]);
	if (is_admin && !has_all)
		capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_ADMIN);
}

/* Empty the bounding set, which limits the capabilities of programs that the process runs: it runs none. This takes
 * CAP_SETPCAP, which a service may not have; but a service's bounding set is small already. Without the check, the
 * library would write an error to the system log.
 */
static int drop_capabilities(enum weir_confinement confinement)
{
	bool may_bound;

	if (capng_get_caps_process())
		return -1;
	may_bound = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
	if (confinement == WEIR_CONFINED_CONTROLLER)
		select_controllers();
	else
		capng_clear(CAPNG_SELECT_BOTH);
	if (may_bound && capng_apply(CAPNG_SELECT_BOUNDS))
		(void)errno; /* the bounding set was only a second measure: dropping the capabilities is what counts */
	return capng_apply(CAPNG_SELECT_CAPS);
}

/* ---- system calls ---- */

/* What both kinds of process may call, with any arguments. By name, because the numbers differ between machines. Names
 * that a machine does not know are skipped.
 */
static const char *const calls_of_both[] = {
	/* memory, time, the process itself */
	"alarm",
	"brk",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"exit",
	"exit_group",
	"futex",
	"get_robust_list",
	"getegid",
	"geteuid",
	"getgid",
	"getpgid",
	"getpid",
	"getppid",
	"getpriority",
	"getrandom",
	"getrlimit",
	"getrusage",
	"gettid",
	"gettimeofday",
	"getuid",
	"madvise",
	"membarrier",
	"mremap",
	"munmap",
	"nanosleep",
	"prctl",
	"prlimit64",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sched_getaffinity",
	"sched_yield",
	"set_robust_list",
	"setitimer", /* alarm(3) on machines without a system call alarm */
	"setpriority",
	"sigaltstack",
	"sysinfo",
	"tgkill",
	"time",
	"uname",
	/* open files, and the attributes of others */
	"access",
	"close",
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fcntl",
	"flock",
	"fstat",
	"fstatfs",
	"getcwd",
	"getdents64",
	"ioctl",
	"lseek",
	"lstat",
	"newfstatat",
	"pread64",
	"preadv",
	"read",
	"readlink",
	"readlinkat",
	"readv",
	"stat",
	"statfs",
	"statx",
	"write",
	"writev",
	/* existing sockets, and waiting */
	"accept",
	"accept4",
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd2",
	"getpeername",
	"getsockname",
	"getsockopt",
	"pipe2",
	"poll",
	"ppoll",
	"pselect6",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"select",
	"sendfile",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
};

static const char *const calls_of_controllers[] = {
	/* programs, maps, interfaces */
	"bind",
	"bpf",
	"connect",
	"mmap",
	"mprotect",
	"perf_event_open",
	"socket",
	"socketpair",
	/* pins, the lock, output; child processes (a server, reloads) */
	"chmod",
	"clone",
	"clone3",
	"fallocate",
	"fchmod",
	"fchmodat",
	"fdatasync",
	"fork",
	"fsync",
	"ftruncate",
	"inotify_add_watch",
	"inotify_init1",
	"inotify_rm_watch",
	"kill",
	"memfd_create",
	"mkdir",
	"mkdirat",
	"open",
	"openat",
	"pidfd_open",
	"pidfd_send_signal",
	"pwrite64",
	"pwritev",
	"rename",
	"renameat",
	"renameat2",
	"rmdir",
	"signalfd4",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	"umask",
	"unlink",
	"unlinkat",
	"vfork",
	"wait4",
	"waitid",
	/* giving up more privileges */
	"capget",
	"capset",
	"seccomp",
	/* libbpf pins a thread to a CPU, and raises the locked-memory limit on old kernels */
	"sched_setaffinity",
	"setrlimit",
	/* entering the network namespace that the rules are for, with CAP_SYS_ADMIN */
	"setns",
};

/* The bpf(2) commands that a reader may use. */
static const enum bpf_cmd reading_commands[] = {
	BPF_MAP_LOOKUP_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_OBJ_GET, BPF_OBJ_GET_INFO_BY_FD, BPF_MAP_LOOKUP_BATCH,
};

static int allow_calls(scmp_filter_ctx filter, const char *const *names, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		err = number < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
	}
	return err;
}

/* Opening files for reading; memory mappings that are private or read-only; no executable memory. */
static int allow_reading(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp reads = SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	const struct scmp_arg_cmp cannot_execute = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp is_private = SCMP_A3(SCMP_CMP_MASKED_EQ, MMAP_SHARED_OR_PRIVATE, MAP_PRIVATE);
	const struct scmp_arg_cmp is_read_only = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, 0);
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, reads);

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, cannot_execute, is_private);
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, is_read_only);
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, cannot_execute);
	/* Sockets to query interfaces and their names. Neither can reach anything else, as connect(2) is not allowed.
	 */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
				       SCMP_A1(SCMP_CMP_MASKED_EQ, SOCK_TYPE, SOCK_DGRAM));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
				       SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(bind), 0);
	for (size_t i = 0; !err && i < ARRAY_SIZE(reading_commands); i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
				       SCMP_A0(SCMP_CMP_EQ, reading_commands[i]));
	return err;
}

/* A call that is not allowed fails with EPERM. If a newer libc makes a call that we do not list, this gives an error
 * message instead of killing the process.
 */
static int filter_calls(enum weir_confinement confinement)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err;

	if (!filter)
		return -ENOMEM;
	err = allow_calls(filter, calls_of_both, ARRAY_SIZE(calls_of_both));
	if (!err && confinement == WEIR_CONFINED_CONTROLLER)
		err = allow_calls(filter, calls_of_controllers, ARRAY_SIZE(calls_of_controllers));
	else if (!err)
		err = allow_reading(filter);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

void weir_confine(enum weir_confinement confinement, struct weir_diag *diag)
{
	int err;

	if (drop_capabilities(confinement))
		weir_diag_warning(diag, NULL, NULL, NULL,
				  "keeps capabilities that it does not need: libcap-ng cannot drop them");
	err = filter_calls(confinement);
	if (err)
		weir_diag_warning(diag, NULL, NULL, NULL, "may make system calls that it does not need: %s",
				  strerror(-err));
}
