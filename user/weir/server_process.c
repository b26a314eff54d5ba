// SPDX-License-Identifier: GPL-2.0-only
#include "weir/server_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/command.h"
#include "host/confine.h"
#include "host/host.h"

/* A server that dies within this time may die again. Each such death in a row doubles the time that the next one waits,
 * starting at one second, and after too many there is no further server. Chosen, not derived.
 */
#define LIFE_NS_MIN (10 * WEIR_NSEC_PER_SEC)
#define SHORT_LIVES_MAX 6

int weir_server_open(const struct weir_options *options, struct weir_server *ret_server, struct weir_diag *diag)
{
	struct weir_server *server = ret_server;

	*server = (struct weir_server){};
	if (!options->listen_count)
		return 0;
	if (!weir_server_in_use()->serve)
		return weir_diag_error(diag, NULL, NULL, "build it with libmicrohttpd, and without WITHOUT=metrics",
				       "cannot listen: this build of weir has no server");
	server->listeners = calloc(options->listen_count, sizeof(*server->listeners));
	if (!server->listeners)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot listen");
	server->notes = mmap(NULL, sizeof(*server->notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (server->notes == MAP_FAILED) {
		server->notes = NULL;
		return weir_diag_fail(diag, errno, NULL, "cannot listen");
	}
	for (size_t i = 0; i < options->listen_count; i++) {
		int err = weir_listen(options->listen[i], options->listens_anywhere, &server->listeners[i], diag);

		if (err)
			return err;
		server->count++;
	}
	return 0;
}

/* The child. The parent handles the terminal's signals and ends the child, which never outlives the parent. */
__attribute__((noreturn)) static void serve_and_exit(const struct weir_server *server, const char *instance,
						     pid_t parent)
{
	const struct weir_serve serve = {
		.instance = instance,
		.listeners = server->listeners,
		.count = server->count,
		.notes = server->notes,
	};
	struct weir_diag diag = {};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_NAME, "weir-serve");
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	weir_unbound_memory();
	weir_confine(WEIR_CONFINED_READER, &diag);
	weir_print_diag(&diag);
	sleep(server->pause_s); /* waits in the child, since the controller must not wait */
	weir_server_in_use()->serve(&serve, &diag);
	weir_print_diag(&diag);
	fflush(NULL);
	_exit(1);
}

/* No server will answer on these sockets any more, so clients must be refused at once. */
static void close_listeners(struct weir_server *server)
{
	for (size_t i = 0; i < server->count; i++)
		weir_listener_close(&server->listeners[i]);
	server->count = 0;
}

void weir_server_start(struct weir_server *server, const char *instance, struct weir_controller *controller)
{
	const pid_t parent = getpid();

	if (!server->count)
		return;
	weir_controller_hear(controller, &server->notes->drops_wanted);
	fflush(NULL); /* otherwise both processes would print the content of buffers */
	server->started_ns = weir_host_now_ns() + server->pause_s * WEIR_NSEC_PER_SEC;
	server->child = fork();
	if (server->child == 0) {
		weir_controller_leave(controller);
		serve_and_exit(server, instance, parent);
	}
	if (server->child < 0) {
		server->child = 0;
		perror("weir run: cannot start the server: cannot fork");
		close_listeners(server);
	}
}

/* The child is gone: start another, unless too many were short-lived. */
static void replace(struct weir_server *server, int status, const char *instance, struct weir_controller *controller)
{
	const bool was_killed = WIFSIGNALED(status);

	server->child = 0;
	if (weir_host_now_ns() >= server->started_ns + LIFE_NS_MIN)
		server->short_lives = 0;
	else
		server->short_lives++;
	server->pause_s = server->short_lives ? 1u << (server->short_lives - 1) : 0;
	fprintf(stderr, "weir run: the server has ended (%s %d): ", was_killed ? "signal" : "exit code",
		was_killed ? WTERMSIG(status) : WEXITSTATUS(status));
	if (server->short_lives >= SHORT_LIVES_MAX) {
		fprintf(stderr, "not restarted, as %d in a row ended at once; packets are still limited\n",
			SHORT_LIVES_MAX);
		close_listeners(server);
		return;
	}
	if (server->pause_s)
		fprintf(stderr, "restarting it in %u s\n", server->pause_s);
	else
		fputs("restarting it\n", stderr);
	weir_server_start(server, instance, controller);
}

void weir_server_look(struct weir_server *server, const char *instance, struct weir_controller *controller)
{
	int status = W_EXITCODE(WEIR_EXIT_FAILED, 0); /* in case the status cannot be found out */

	while (server->child && waitpid(server->child, &status, WNOHANG | WUNTRACED) != 0) {
		if (!WIFSTOPPED(status)) {
			replace(server, status, instance, controller);
			return;
		}
		fprintf(stderr, "weir run: the server was stopped (signal %d); ending it\n", WSTOPSIG(status));
		kill(server->child, SIGKILL);
	}
}

void weir_server_note_reload(struct weir_server *server, bool has_failed)
{
	if (!server->notes)
		return;
	if (has_failed)
		__atomic_fetch_add(&server->notes->reloads_failed, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&server->notes->last_failed, has_failed, __ATOMIC_RELAXED);
}

void weir_server_free(struct weir_server *server)
{
	if (server->child) {
		kill(server->child, SIGKILL); /* a stopped process reacts to nothing else */
		while (waitpid(server->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close_listeners(server);
	if (server->notes)
		munmap(server->notes, sizeof(*server->notes));
	free(server->listeners);
	*server = (struct weir_server){};
}
