// SPDX-License-Identifier: GPL-2.0-only
/*
 * refuse CALL COMMAND [ARGUMENT...]
 *
 * Run a command to which the kernel says EIO whenever it makes that system call (a seccomp filter): what fails once in
 * a blue moon fails now. Ends as the command does.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "tool.h"

/* Libraries make one of several that do the same. */
static const struct {
	const char *name;
	int calls[3];
} refusable[] = {
	{"timerfd_create", {SYS_timerfd_create, -1, -1}},
#ifdef SYS_rename
	{"rename", {SYS_rename, SYS_renameat, SYS_renameat2}},
#else
	{"rename", {SYS_renameat2, -1, -1}},
#endif
};

static void refuse(int call)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		wrong("cannot filter system calls", strerror(errno));
}

int main(int argc, char **argv)
{
	if (argc < 3)
		wrong("usage", "refuse CALL COMMAND [ARGUMENT...]");
	for (size_t i = 0; i < ARRAY_SIZE(refusable); i++) {
		if (strcmp(refusable[i].name, argv[1]))
			continue;
		for (size_t call = 0; call < ARRAY_SIZE(refusable[i].calls); call++)
			if (refusable[i].calls[call] >= 0)
				refuse(refusable[i].calls[call]);
		execvp(argv[2], argv + 2);
		wrong(strerror(errno), argv[2]);
	}
	wrong("no such call here", argv[1]);
}
