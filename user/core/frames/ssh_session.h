/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packets of an SSH session, from the SSH_CONNECTION variable that sshd passes to the shell (ssh(1)).
 */
#ifndef WEIR_FRAMES_SSH_SESSION_H
#define WEIR_FRAMES_SSH_SESSION_H

#include <stddef.h>

#include "frames/compose.h"

/*
 * Parse "203.0.113.5 50022 198.51.100.1 22": the client and its port, the server and its port. Fills in a packet from
 * the client in an established session: one encrypted keystroke. Returns false if the text does not have this form.
 */
bool weir_ssh_session_parse(const char *text, struct weir_packet_words *ret_words);

/* The value of a variable in an environment block such as /proc/PID/environ; NULL if it is not set. */
const char *weir_environment_find(const char *environment, size_t bytes, const char *name);

#endif
