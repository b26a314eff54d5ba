// SPDX-License-Identifier: GPL-2.0-only
/*
 * fault -o FILE NUMBER ERROR[+]|KILL COMMAND [ARGUMENT...]
 *
 * Run a command whose system call of this number fails (ENOMEM, ...), or before which it is killed. A call that
 * cannot fail so passes the fault on to the next that can: numbers shift a little from run to run. With a '+' all
 * later calls of the same name fail as well: memory stays short. With number 0 nothing fails. FILE gets a line for
 * each call: its number, its name, with a '!' where it was chosen, and the errors that are worth a trial. Calls are
 * counted from 1, over all processes of the command, without those of the dynamic loader and those that cannot fail.
 * A call that is repeated without end, as in reading a file, counts once. Ends as the command does: 128 and the
 * signal, when one ended it; SIGTERM and SIGHUP are handed on.
 *
 * The kernel asks us about each call (seccomp_unotify(2)), so that this works on every architecture.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "tool.h"

/* Calls of bpf(2) go by their command. */
#define ANY UINT64_MAX

/* What may be answered, by the manual pages, and would tell a careful caller from a careless one. */
static const struct known_call {
	int call;
	uint64_t first_argument;
	const char *name;
	const char *errors;
} calls[] = {
	{SYS_bpf, BPF_MAP_CREATE, "bpf:MAP_CREATE", "ENOMEM EPERM EMFILE ENOMEM+"},
	{SYS_bpf, BPF_MAP_LOOKUP_ELEM, "bpf:MAP_LOOKUP_ELEM", "ENOMEM EPERM"},
	{SYS_bpf, BPF_MAP_UPDATE_ELEM, "bpf:MAP_UPDATE_ELEM", "ENOMEM EBUSY EPERM ENOMEM+"},
	{SYS_bpf, BPF_MAP_DELETE_ELEM, "bpf:MAP_DELETE_ELEM", "ENOMEM EBUSY"},
	{SYS_bpf, BPF_MAP_LOOKUP_BATCH, "bpf:MAP_LOOKUP_BATCH", "ENOMEM EINTR"},
	{SYS_bpf, BPF_MAP_UPDATE_BATCH, "bpf:MAP_UPDATE_BATCH", "ENOMEM EBUSY"},
	{SYS_bpf, BPF_MAP_FREEZE, "bpf:MAP_FREEZE", "EBUSY EPERM"},
	{SYS_bpf, BPF_BTF_LOAD, "bpf:BTF_LOAD", "ENOMEM EPERM EMFILE ENOMEM+"},
	{SYS_bpf, BPF_PROG_LOAD, "bpf:PROG_LOAD", "ENOMEM EPERM EMFILE EINTR ENOMEM+"},
	{SYS_bpf, BPF_PROG_TEST_RUN, "bpf:PROG_TEST_RUN", "ENOMEM EINTR EPERM"},
	{SYS_bpf, BPF_OBJ_PIN, "bpf:OBJ_PIN", "ENOMEM EPERM ENOSPC ENOMEM+"},
	{SYS_bpf, BPF_OBJ_GET, "bpf:OBJ_GET", "ENOMEM EPERM EMFILE EMFILE+"},
	{SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, "bpf:OBJ_GET_INFO_BY_FD", "ENOMEM EPERM"},
	{SYS_bpf, BPF_LINK_CREATE, "bpf:LINK_CREATE", "ENOMEM EBUSY EPERM EMFILE"},
	{SYS_bpf, BPF_LINK_UPDATE, "bpf:LINK_UPDATE", "ENOMEM EBUSY EPERM"},
	{SYS_bpf, ANY, "bpf", "ENOMEM EPERM EMFILE"},
	{SYS_openat, ANY, "openat", "EMFILE ENOMEM EACCES EINTR EMFILE+"},
	{SYS_read, ANY, "read", "EIO EINTR"},
	{SYS_pread64, ANY, "pread64", "EIO"},
	{SYS_write, ANY, "write", "ENOSPC EIO"},
	{SYS_close, ANY, "close", ""},
	{SYS_mmap, ANY, "mmap", "ENOMEM ENOMEM+"},
	{SYS_mprotect, ANY, "mprotect", "ENOMEM"},
	{SYS_brk, ANY, "brk", ""},
	{SYS_newfstatat, ANY, "newfstatat", "EIO ENOMEM"},
	{SYS_fstat, ANY, "fstat", "EIO"},
	{SYS_statfs, ANY, "statfs", "EIO"},
	{SYS_fstatfs, ANY, "fstatfs", "EIO"},
	{SYS_getdents64, ANY, "getdents64", "EIO"},
	{SYS_mkdirat, ANY, "mkdirat", "ENOSPC EPERM"},
	{SYS_unlinkat, ANY, "unlinkat", "EBUSY EPERM"},
	{SYS_renameat2, ANY, "renameat2", "EIO EBUSY"},
#ifdef SYS_rename
	{SYS_poll, ANY, "poll", "EINTR ENOMEM"},
	{SYS_mkdir, ANY, "mkdir", "ENOSPC EPERM"},
	{SYS_unlink, ANY, "unlink", "EBUSY EPERM"},
	{SYS_rmdir, ANY, "rmdir", "EBUSY"},
	{SYS_rename, ANY, "rename", "EIO EBUSY"},
#endif
	{SYS_faccessat2, ANY, "faccessat2", "EACCES"},
	{SYS_flock, ANY, "flock", "ENOMEM EINTR"},
	{SYS_fcntl, ANY, "fcntl", "EMFILE"},
	{SYS_dup3, ANY, "dup3", "EMFILE"},
	{SYS_socket, ANY, "socket", "EMFILE ENOMEM EMFILE+"},
	{SYS_bind, ANY, "bind", "ENOMEM"},
	{SYS_listen, ANY, "listen", "EADDRINUSE"},
	{SYS_setsockopt, ANY, "setsockopt", "ENOMEM"},
	{SYS_getsockname, ANY, "getsockname", "ENOMEM"},
	{SYS_sendto, ANY, "sendto", "ENOMEM EINTR"},
	{SYS_sendmsg, ANY, "sendmsg", "ENOMEM EINTR"},
	{SYS_recvmsg, ANY, "recvmsg", "ENOMEM EINTR"},
	{SYS_recvfrom, ANY, "recvfrom", "ENOMEM EINTR"},
	{SYS_ioctl, ANY, "ioctl", "ENOMEM"},
	{SYS_setns, ANY, "setns", "EPERM ENOMEM"},
	{SYS_getrandom, ANY, "getrandom", "EINTR"},
	{SYS_timerfd_create, ANY, "timerfd_create", "EMFILE"},
	{SYS_timerfd_settime, ANY, "timerfd_settime", "ENOMEM"},
	{SYS_signalfd4, ANY, "signalfd4", "EMFILE"},
	{SYS_inotify_init1, ANY, "inotify_init1", "EMFILE"},
	{SYS_inotify_add_watch, ANY, "inotify_add_watch", "ENOSPC"},
	{SYS_epoll_create1, ANY, "epoll_create1", "EMFILE"},
	{SYS_epoll_ctl, ANY, "epoll_ctl", "ENOSPC"},
	{SYS_eventfd2, ANY, "eventfd2", "EMFILE"},
	{SYS_ppoll, ANY, "ppoll", "EINTR ENOMEM"},
	{SYS_prctl, PR_CAPBSET_DROP, "prctl", "EPERM"},
	{SYS_prctl, PR_SET_NO_NEW_PRIVS, "prctl", "EPERM"},
	{SYS_capget, ANY, "capget", "EPERM"},
	{SYS_capset, ANY, "capset", "EPERM"},
	{SYS_seccomp, SECCOMP_SET_MODE_FILTER, "seccomp", "ENOMEM EPERM"},
	{SYS_clone, ANY, "clone", "EAGAIN"},
	{SYS_pipe2, ANY, "pipe2", "EMFILE"},
	{SYS_wait4, ANY, "wait4", "EINTR"},
};

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"EACCES", EACCES}, {"EADDRINUSE", EADDRINUSE}, {"EAGAIN", EAGAIN}, {"EBUSY", EBUSY},	{"EINTR", EINTR},
	{"EIO", EIO},	    {"EMFILE", EMFILE},		{"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}, {"EPERM", EPERM},
};

struct trial {
	uint64_t number; /* of the call that fails */
	bool is_kill, lasts, has_begun;
	const struct known_call *chosen; /* what has failed; NULL: nothing yet */
	char error_name[16];
	int error;
	FILE *list;
	uint64_t loader_begin, loader_end; /* addresses of its code */
	uint64_t made;
	struct seccomp_data before;
};

static volatile sig_atomic_t command;

static void hand_on(int signal)
{
	kill(command, signal);
}

/* The lowest descriptor that is free: the listener's in the child, who has the same ones. */
static int next_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static void be_asked_about(void)
{
	struct sock_filter filter[ARRAY_SIZE(calls) + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};
	size_t count = ARRAY_SIZE(calls);

	for (size_t i = 0; i < count; i++)
		filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].call, count - i, 0);
	filter[1 + count] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[2 + count] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) < 0)
		wrong("cannot be asked about system calls", strerror(errno));
}

/* The child's first call that we are asked about waits until this has come. */
static int take_listener(int pidfd, int fd)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int listener = -1;

	for (int tries = 0; listener < 0 && tries < 10000; tries++) {
		listener = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
		if (listener < 0)
			nanosleep(&pause, NULL);
	}
	if (listener < 0)
		wrong("cannot take the listener", strerror(errno));
	return listener;
}

static void find_loader(struct trial *trial, uint32_t pid)
{
	char path[32], line[512];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long begin, end;

		if (!strstr(line, "/ld-") || sscanf(line, "%llx-%llx", &begin, &end) != 2)
			continue;
		if (!trial->loader_end)
			trial->loader_begin = begin;
		trial->loader_end = end;
	}
	if (maps)
		fclose(maps);
}

/* Reading on and on, and the test runs by which the kernel's tick is found. */
static bool goes_on_as_before(const struct trial *trial, const struct seccomp_data *call)
{
	bool is_same = call->nr == trial->before.nr && call->args[0] == trial->before.args[0];

	return is_same && (call->nr == SYS_read || call->nr == SYS_getdents64 ||
			   (call->nr == SYS_bpf && call->args[0] == BPF_PROG_TEST_RUN));
}

/* The row of the table that a call is, or NULL: not every prctl is worth a trial. */
static const struct known_call *find(const struct seccomp_data *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].call == call->nr &&
		    (calls[i].first_argument == ANY || calls[i].first_argument == call->args[0]))
			return &calls[i];
	return NULL;
}

static void list(struct trial *trial, const struct known_call *known, bool is_chosen)
{
	fprintf(trial->list, "%llu %s%s %s\n", (unsigned long long)trial->made, known->name, is_chosen ? "!" : "",
		known->errors);
	fflush(trial->list);
}

static bool is_chosen(const struct trial *trial, const struct known_call *known)
{
	if (trial->chosen)
		return trial->lasts && known == trial->chosen;
	return trial->number && trial->made >= trial->number &&
	       (trial->is_kill || strstr(known->errors, trial->error_name));
}

/* What the kernel is to do: 0 make the call, or minus the error. */
static int decide(struct trial *trial, const struct seccomp_notif *asked)
{
	const struct known_call *known = find(&asked->data);
	uint64_t ip = asked->data.instruction_pointer;
	bool is_same, is_it;

	if (!trial->has_begun) { /* the call of start() */
		trial->has_begun = true;
		return 0;
	}
	if (!trial->loader_end)
		find_loader(trial, asked->pid);
	if (ip >= trial->loader_begin && ip < trial->loader_end)
		return 0;
	is_same = goes_on_as_before(trial, &asked->data);
	trial->before = asked->data;
	if (is_same || !known)
		return 0;
	trial->made++;
	is_it = is_chosen(trial, known);
	list(trial, known, is_it);
	if (!is_it)
		return 0;
	trial->chosen = known;
	if (trial->is_kill)
		kill((pid_t)asked->pid, SIGKILL);
	return trial->is_kill ? -EINTR : -trial->error;
}

static void watch(struct trial *trial, int listener)
{
	struct pollfd poll_fd = {.fd = listener, .events = POLLIN};

	while (poll(&poll_fd, 1, -1) >= 0 || errno == EINTR) {
		struct seccomp_notif asked = {};
		struct seccomp_notif_resp answer = {};

		if (poll_fd.revents & POLLHUP)
			break;
		/* Who asked may have been ended meanwhile: ENOENT, here and below. */
		if (!(poll_fd.revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked))
			continue;
		answer.id = asked.id;
		answer.error = decide(trial, &asked);
		answer.flags = answer.error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static int start(char **arguments)
{
	int fd = next_descriptor(), pidfd;
	pid_t child = fork();

	if (child < 0)
		wrong("cannot fork", strerror(errno));
	if (!child) {
		be_asked_about();
		close(-1); /* waits until the listener, which execve closes, is in other hands */
		execvp(arguments[0], arguments);
		_exit(127);
	}
	command = child;
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	return take_listener(pidfd, fd);
}

static int error_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (!strcmp(errors[i].name, name))
			return errors[i].error;
	wrong("no such error here", name);
	return 0;
}

int main(int argc, char **argv)
{
	struct trial trial = {};
	int status;

	if (argc < 6 || strcmp(argv[1], "-o"))
		wrong("usage", "fault -o FILE NUMBER ERROR|KILL COMMAND [ARGUMENT...]");
	trial.number = number("not a number", argv[3]);
	trial.is_kill = !strcmp(argv[4], "KILL");
	snprintf(trial.error_name, sizeof(trial.error_name), "%s", argv[4]);
	trial.lasts = strchr(argv[4], '+');
	trial.error_name[strcspn(argv[4], "+")] = '\0';
	trial.error = trial.is_kill ? 0 : error_named(trial.error_name);
	trial.list = fopen(argv[2], "we");
	if (!trial.list)
		wrong("cannot write", argv[2]);
	signal(SIGTERM, hand_on);
	signal(SIGHUP, hand_on);
	watch(&trial, start(argv + 5));
	fclose(trial.list);
	while (waitpid(command, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
