/* SPDX-License-Identifier: GPL-2.0-only */
/* Ctrl-C, SIGTERM and the end of the terminal, for commands that work through much and then clean up. */
#ifndef WEIR_CMD_STOP_H
#define WEIR_CMD_STOP_H

#include <signal.h>

/* From now on they set what is returned. The second Ctrl-C ends the process the hard way, should the first not be
 * heard.
 */
const volatile sig_atomic_t *weir_listen_for_stop(void);

#endif
