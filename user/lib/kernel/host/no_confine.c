// SPDX-License-Identifier: GPL-2.0-only
/* Replaces confine.c in a build without libcap-ng and libseccomp (make WITHOUT=confine). */
#include "host/confine.h"

void weir_confine(enum weir_confinement confinement, struct weir_diag *diag)
{
}

const char *weir_confine_version(void)
{
	return "without confine";
}
