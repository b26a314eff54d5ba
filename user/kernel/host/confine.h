/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process that stays gives up once it is under way, so that a fault in it is worth less to who finds one: the
 * capabilities that it does not need (capabilities(7), by libcap-ng), and the system calls that it never makes
 * (seccomp(2), by libseccomp). Neither comes back, and children inherit both. docs/security.md says what is left.
 */
#ifndef WEIR_HOST_CONFINE_H
#define WEIR_HOST_CONFINE_H

#include <stdbool.h>

#include "base/diag.h"

enum weir_confinement {
	/* A controller: CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON (CAP_SYS_ADMIN in the place of what a container has not).
	 * It runs no other program, and opens no files of others for writing but by their owner's right.
	 */
	WEIR_CONFINED_CONTROLLER,
	/* Who only looks on, and talks to strangers: no capability; opens files for reading alone, reads maps and
	 * changes none, makes no process and no connection.
	 */
	WEIR_CONFINED_READER,
};

/* Confine this process, which has one thread. What could not be given up is a warning in `diag`. */
void weir_confine(enum weir_confinement confinement, struct weir_diag *diag);

/* "libcap-ng, libseccomp 2.5.4", or what says that this build does not confine (make WITHOUT=confine). */
const char *weir_confine_version(void);

#endif
