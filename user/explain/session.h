/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who limits a remote machine may shut himself out. Before rules are put in force the program is asked, in the sandbox,
 * what they would do to the SSH session that the command is typed in: to its packets, and to the answers that go out.
 */
#ifndef WEIR_EXPLAIN_SESSION_H
#define WEIR_EXPLAIN_SESSION_H

#include "instance/instance.h"
#include "timed/timed.h"

/*
 * 0, or -EINVAL and what would happen: the rule set would drop packets of the session, or let fewer than ten a second
 * through. 0 as well when there is no session to be seen (SSH_CONNECTION, of this process or of one that it comes
 * from), or its server address is on no interface that the options name.
 */
int weir_session_check_attach(const struct weir_attach_options *options, const struct weir_ruleset *ruleset,
			      struct weir_diag *diag);

/*
 * The same of the rules that an instance has in force, before they are put on the interfaces that the options name.
 * 0, too, when the instance is not attached, or its rules are not kept.
 */
int weir_session_check_add(const struct weir_attach_options *options, struct weir_diag *diag);

/* The same of the interfaces that an instance is attached to. */
int weir_session_check_reload(const char *instance, const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* -EINVAL as well when one of these orders to block is for the session's client, and no longer prefix allows that. */
int weir_session_check_block(const struct weir_instance *instance, const struct weir_timed_order *orders, size_t count,
			     struct weir_diag *diag);

#endif
