/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packets of an SSH session, from what sshd passes to the shell (SSH_CONNECTION in its environment, ssh(1)).
 */
#ifndef WEIR_FRAMES_SSH_SESSION_H
#define WEIR_FRAMES_SSH_SESSION_H

#include <stddef.h>

#include "frames/compose.h"

/*
 * "203.0.113.5 50022 198.51.100.1 22": who came, and to where. Fills in a packet from the client, of the session that
 * is under way: one key, encrypted. False when the text is none of this form.
 */
bool weir_ssh_session_parse(const char *text, struct weir_packet_words *ret_words);

/* The value of a variable in an environment as /proc/PID/environ has it; NULL when it is not there. */
const char *weir_environment_find(const char *environment, size_t bytes, const char *name);

#endif
