/* SPDX-License-Identifier: GPL-2.0-only */
/* The proof: a replay of the captures with the suggested rules, with which anyone can check the promise. */
#ifndef WEIR_SUGGEST_PROOF_H
#define WEIR_SUGGEST_PROOF_H

#include "suggest/suggest.h"

/* Fill in the proofs of the report's suggestions. `text` is their rule file. */
int weir_suggest_prove(const struct weir_suggest_options *options, const char *text, struct weir_suggest_report *report,
		       struct weir_diag *diag);

#endif
