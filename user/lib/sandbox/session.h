/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An operator who limits a remote machine may lock himself out. So before rules are put in force, the program is run in
 * the sandbox on the packets of the SSH session in which the command was typed, and on the answers that go out.
 */
#ifndef WEIR_SANDBOX_SESSION_H
#define WEIR_SANDBOX_SESSION_H

#include "instance/instance.h"
#include "timed/timed.h"

/*
 * Returns 0, or -EINVAL and what would happen: the rule set would drop packets of the session, or let fewer than ten a
 * second pass. Also returns 0 if no session is found (by SSH_CONNECTION of this process or an ancestor), or if its
 * server address is on no interface that the options select.
 */
int weir_session_check_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			      struct weir_diag *diag);

/*
 * The same for the rules that an instance has in force, before they are put on the interfaces that the options select.
 * Also returns 0 if the instance is not attached, or its rules were not kept.
 */
int weir_session_check_add(const struct weir_attach_options *options, struct weir_diag *diag);

/* The same for the interfaces to which an instance is attached. */
int weir_session_check_reload(const char *instance, const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* Also -EINVAL if one of these orders would block the session's client, and no longer prefix allows the client. */
int weir_session_check_block(const struct weir_instance *instance, const struct weir_timed_order *orders, size_t count,
			     struct weir_diag *diag);

#endif
