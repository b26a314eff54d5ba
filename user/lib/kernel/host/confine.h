/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Confinement of a long-running process once it has started, so that a fault in it gives an attacker less. The process
 * gives up the capabilities that it does not need (capabilities(7), by libcap-ng) and the system calls that it never
 * makes (seccomp(2), by libseccomp). Neither can be regained, and children inherit both restrictions. docs/security.md
 * says what remains.
 */
#ifndef WEIR_HOST_CONFINE_H
#define WEIR_HOST_CONFINE_H

#include <stdbool.h>

#include "base/diag.h"

enum weir_confinement {
	/* A controller. It keeps CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (or CAP_SYS_ADMIN in a container that lacks one
	 * of them). It runs no other program, and opens files of other users for writing only if their permissions
	 * allow it.
	 */
	WEIR_CONFINED_CONTROLLER,
	/* A process that only reads, and talks to untrusted clients. It has no capability, opens files only for
	 * reading, reads maps but does not change them, and makes no process and no connection.
	 */
	WEIR_CONFINED_READER,
};

/* Confine this process, which must have one thread. If something could not be given up, `diag` has a warning. */
void weir_confine(enum weir_confinement confinement, struct weir_diag *diag);

/* "libcap-ng, libseccomp 2.5.4", or a text saying that this build does not confine (make WITHOUT=confine). */
const char *weir_confine_version(void);

#endif
