// SPDX-License-Identifier: GPL-2.0-only
/* Replaces server.c in a build without libmicrohttpd: make WITHOUT=metrics. */
#include <errno.h>

#include "serve/serve.h"

bool weir_serve_is_built(void)
{
	return false;
}

const char *weir_serve_version(void)
{
	return "without metrics";
}

int weir_serve(const struct weir_serve *serve, struct weir_diag *diag)
{
	return weir_diag_fail(diag, EOPNOTSUPP, NULL, "this build of weir has no server");
}
