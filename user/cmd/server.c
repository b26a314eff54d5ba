// SPDX-License-Identifier: GPL-2.0-only
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/util.h"
#include "cmd.h"
#include "host/bound.h"
#include "host/confine.h"
#include "host/host.h"

/* One that died sooner would die again. Chosen, not derived. */
#define LIFE_NS_MIN (10 * WEIR_NSEC_PER_SEC)

int weir_server_open(const struct weir_options *options, struct weir_server *ret_server, struct weir_diag *diag)
{
	struct weir_server *server = ret_server;

	*server = (struct weir_server){};
	if (!options->listen_count)
		return 0;
	if (!weir_serve_is_built())
		return weir_diag_error(diag, NULL, NULL, "build it with libmicrohttpd, and without WITHOUT=metrics",
				       "cannot listen: this weir was built without a server");
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

/* The child. A terminal's signals are the parent's to answer, who ends it; and it never outlives the parent. */
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
	weir_tell(&diag);
	weir_serve(&serve, &diag);
	weir_tell(&diag);
	fflush(NULL);
	_exit(1);
}

void weir_server_start(struct weir_server *server, const char *instance, struct weir_controller *controller)
{
	const pid_t parent = getpid();

	if (!server->count)
		return;
	weir_controller_hear(controller, &server->notes->drops_wanted);
	fflush(NULL); /* what is in buffers would be printed by both */
	server->started_ns = weir_host_now_ns();
	server->child = fork();
	if (server->child == 0) {
		weir_controller_leave(controller);
		serve_and_exit(server, instance, parent);
	}
	if (server->child < 0) {
		server->child = 0;
		perror("weir run: does not serve: cannot fork");
	}
}

void weir_server_look(struct weir_server *server, const char *instance, struct weir_controller *controller)
{
	const bool has_lived = weir_host_now_ns() - server->started_ns >= LIFE_NS_MIN;
	int status = W_EXITCODE(WEIR_EXIT_FAILED, 0); /* if nobody can say */

	if (!server->child || waitpid(server->child, &status, WNOHANG) == 0)
		return;
	server->child = 0;
	fprintf(stderr, "weir run: the server has ended (%s %d): %s\n", WIFSIGNALED(status) ? "signal" : "exit code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		has_lived ? "it is started anew" : "it serves no more; packets are limited as before");
	if (has_lived)
		weir_server_start(server, instance, controller);
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
		kill(server->child, SIGTERM);
		while (waitpid(server->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (size_t i = 0; i < server->count; i++)
		weir_listener_close(&server->listeners[i]);
	if (server->notes)
		munmap(server->notes, sizeof(*server->notes));
	free(server->listeners);
	*server = (struct weir_server){};
}
