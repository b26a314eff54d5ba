/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the ledgers in the store say about the hosts that share limits. The store is queried as by any other client, so
 * the result is right even if the controller or the store is dead.
 */
#ifndef WEIR_CLUSTER_LEDGERS_H
#define WEIR_CLUSTER_LEDGERS_H

#include <jansson.h>

#include "report/shared_limits.h"
#include "shares/membership.h"
#include "words/figures.h"

/*
 * Ask the store for the ledger of one rule or, if `only` is NULL, of all. It is not an error if the store cannot be
 * asked. The caller frees *ret_view in any case.
 */
int weir_cluster_view_read(const struct weir_instance *instance, const char *only, struct weir_cluster_view *ret_view,
			   struct weir_diag *diag);

json_t *weir_cluster_describe(const struct weir_cluster_view *view);
/* One of the view's rules (struct weir_shared_view; the context is the view); a host of its ledger (weir_ledger_host;
 * the context is the rule); and what is owed to hosts of a lost ledger, as another host (the record is the rule).
 */
weir_describer weir_describe_share, weir_describe_ledger_host, weir_describe_owed;

/* How much longer the part of this silent host stays reserved; INT64_MAX: for ever. 0: nothing is reserved. */
int64_t weir_ledger_reserved_us(const struct weir_shared_view *view, const struct weir_ledger_host *host);

/* The same for what is owed to hosts that the ledger does not list. */
int64_t weir_ledger_owed_us(const struct weir_shared_view *view);

/* "live", "silent" or "left" */
const char *weir_ledger_state(const struct weir_ledger_host *host);

/* What determines this host's share: "its lease ends in 0.7 s", "alone for 12 s". */
#define WEIR_SHARE_WORDS_BYTES 64
const char *weir_share_words(const struct weir_shared_view *view, uint64_t now_ns, char words[WEIR_SHARE_WORDS_BYTES]);

/*
 * Remove a host from all ledgers of the instance's rules, so that others can use what was reserved for it. Refused
 * (-EBUSY) for a live host, which would join again; -ENOENT if no ledger has the host. NULL: what is owed to hosts that
 * the ledgers do not list; -ENOENT if nothing is.
 */
int weir_cluster_forget(const struct weir_instance *instance, const char *host, struct weir_diag *diag);

#endif
