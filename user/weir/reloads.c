// SPDX-License-Identifier: GPL-2.0-only
#include "weir/reloads.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/command.h"
#include "host/host.h"
#include "instance/instance.h"
#include "weir/watch_sets.h"

/* Beside those of commands: rules are not confirmed yet, so that what has changed is still to be taken over. */
#define EXIT_UNCONFIRMED 3

uint64_t weir_file_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec * WEIR_NSEC_PER_SEC + now.tv_nsec;
}

int weir_reloads_open_signals(struct weir_diag *diag)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigaddset(&signals, SIGHUP); /* never arrives if it is ignored */
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd >= 0 ? fd : weir_diag_fail(diag, errno, NULL, "cannot receive signals");
}

/* Fork. The child ends with its parent, and does not act as a controller. */
static pid_t fork_child(const struct weir_reloads *reloads)
{
	const pid_t parent = getpid();
	pid_t child;

	fflush(NULL); /* otherwise both processes would print the content of buffers */
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	weir_controller_leave(reloads->controller);
	weir_unbound_memory();
	return 0;
}

static void end_child(pid_t *child, int signal)
{
	if (!*child)
		return;
	kill(*child, signal);
	while (waitpid(*child, NULL, 0) < 0 && errno == EINTR)
		;
	*child = 0;
}

void weir_reloads_let_signals_end(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

bool weir_reloads_begin(struct weir_reloads *reloads)
{
	int err;

	if (reloads->child) {
		reloads->is_wanted = true;
		return true;
	}
	reloads->is_wanted = false;
	reloads->before_ns = reloads->since_ns;
	reloads->since_ns = weir_file_time_ns();
	reloads->child = fork_child(reloads);
	if (reloads->child == 0) {
		err = reloads->load(reloads);
		fflush(NULL);
		_exit(err == -EBUSY ? EXIT_UNCONFIRMED : weir_exit_code_of(err));
	}
	if (reloads->child > 0)
		return true;
	reloads->child = 0;
	fprintf(stderr, "%s: not reloaded, the old rules stay: cannot fork: %s\n", reloads->command, strerror(errno));
	return false;
}

void weir_reloads_watch(struct weir_reloads *reloads)
{
	end_child(&reloads->watcher, SIGKILL); /* even if somebody has stopped it */
	if (reloads->child || !weir_instance_has_sets(reloads->options->instance))
		return;
	reloads->watcher = fork_child(reloads);
	if (reloads->watcher == 0) {
		weir_reloads_let_signals_end(); /* it ends when its parent does */
		_exit(weir_sets_wait(reloads) ? WEIR_EXIT_FAILED : WEIR_EXIT_OK);
	}
	if (reloads->watcher < 0) /* only a signal takes over what the files contain */
		reloads->watcher = 0;
}

int weir_reloads_look(struct weir_reloads *reloads)
{
	int status = W_EXITCODE(WEIR_EXIT_FAILED, 0); /* in case the status cannot be found out */
	int news = 0;

	if (reloads->child && waitpid(reloads->child, &status, WNOHANG) != 0) {
		reloads->child = 0;
		news |= WEIR_RELOADS_DONE;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != WEIR_EXIT_OK)
			news |= WEIR_RELOADS_FAILED;
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_UNCONFIRMED)
			reloads->since_ns = reloads->before_ns;
		if (WIFSIGNALED(status))
			fprintf(stderr, "%s: signal %d killed a reload\n", reloads->command, WTERMSIG(status));
	}
	if (reloads->watcher && waitpid(reloads->watcher, &status, WNOHANG) > 0) {
		reloads->watcher = 0;
		if (WIFEXITED(status) && WEXITSTATUS(status) == WEIR_EXIT_OK)
			news |= WEIR_RELOADS_CHANGED;
	}
	return news;
}

void weir_reloads_end(struct weir_reloads *reloads)
{
	end_child(&reloads->watcher, SIGKILL);
	end_child(&reloads->child, SIGTERM);
}

struct weir_ruleset *weir_reloads_in_force(const char *instance, bool with_prefixes)
{
	_cleanup_(weir_instance_freep) struct weir_instance *opened = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	struct weir_ruleset *ruleset = NULL;

	if (weir_instance_open(instance, &opened, &ignored))
		return NULL;
	weir_instance_history(opened, &history);
	if (history.sets[0] && history.sets[0]->sets_bytes)
		(with_prefixes ? weir_kept_set_read : weir_kept_set_read_text)(history.sets[0], &ruleset, &ignored);
	return ruleset;
}
