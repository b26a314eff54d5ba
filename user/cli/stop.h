/* SPDX-License-Identifier: GPL-2.0-only */
/* Ctrl-C, SIGTERM and the end of the terminal, for commands that run for long and then clean up. */
#ifndef WEIR_CMD_STOP_H
#define WEIR_CMD_STOP_H

#include <signal.h>

/* From now on these signals set the flag that is returned. A second Ctrl-C, half a second after the first or later,
 * kills the process, in case the first has no effect.
 */
const volatile sig_atomic_t *weir_listen_for_stop(void);

#endif
