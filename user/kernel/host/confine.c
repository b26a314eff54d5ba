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

/* libseccomp's macros for an argument of a call leave out what compares with one value: clang warns of that. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MMAP_SHARED_OR_PRIVATE 0xf /* MAP_TYPE of the kernel */
#define SOCK_TYPE 0xf		   /* SOCK_TYPE_MASK of the kernel */

const char *weir_confine_version(void)
{
	static char words[64];
	const struct scmp_version *version = seccomp_version();

	snprintf(words, sizeof(words), "libcap-ng, libseccomp %u.%u.%u", version->major, version->minor,
		 version->micro);
	return words;
}

/* ---- capabilities ---- */

/* A controller's, as far as it has them. Who has CAP_SYS_ADMIN instead of one, as in containers of old, keeps that. */
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

/* The bounding set, of what a program that it runs could have, becomes empty: it runs none. That takes CAP_SETPCAP,
 * which a service may not have; its own is small already. Without it the library would write an error to the system's
 * log.
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
		(void)errno; /* less than what the capabilities themselves hold is not lost */
	return capng_apply(CAPNG_SELECT_CAPS);
}

/* ---- system calls ---- */

/* What both may call, with any arguments. Names, as numbers differ between machines; those that a machine does not have
 * are passed over.
 */
static const char *const calls_of_both[] = {
	/* memory, time, itself */
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
	"setitimer", /* alarm(3), where that is no call */
	"setpriority",
	"sigaltstack",
	"sysinfo",
	"tgkill",
	"time",
	"uname",
	/* files that are open, and looking at others */
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
	/* sockets that are there, and waiting */
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
	/* pins, the lock, output; a server and reloads, which are children */
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
	/* to give up more */
	"capget",
	"capset",
	"seccomp",
	/* libbpf pins a thread to a CPU, and locks more memory on old kernels */
	"sched_setaffinity",
	"setrlimit",
	/* a network namespace that the rules are for, with CAP_SYS_ADMIN */
	"setns",
};

/* What bpf(2) may be asked by who only reads. */
static const enum bpf_cmd reading_commands[] = {
	BPF_MAP_LOOKUP_ELEM, BPF_MAP_GET_NEXT_KEY, BPF_OBJ_GET, BPF_OBJ_GET_INFO_BY_FD, BPF_MAP_LOOKUP_BATCH,
};

static int allow_by_name(scmp_filter_ctx filter, const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	return number < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

static int allow_calls(scmp_filter_ctx filter, const char *const *names, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++)
		err = allow_by_name(filter, names[i]);
	return err;
}

/* Files for reading; maps of memory that are private, or not written; nothing that could be executed. */
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
	/* To ask for interfaces and their names. Neither leads anywhere else, as connect(2) is not allowed. */
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

/* Whatever is not allowed fails with EPERM: a call that a newer libc makes is then an error that is reported, no death.
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
