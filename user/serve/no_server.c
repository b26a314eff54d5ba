// SPDX-License-Identifier: GPL-2.0-only
/* Replaces server.c in a build without libmicrohttpd: make WITHOUT=metrics. */
#include "serve/serve.h"

const char *weir_serve_version(void)
{
	return "without metrics";
}

const struct weir_server_row weir_serve_row;
