// SPDX-License-Identifier: GPL-2.0-only
#include "control/server_row.h"

static const struct weir_server_row none;
static const struct weir_server_row *in_use = &none;

void weir_use_server(const struct weir_server_row *row)
{
	in_use = row;
}

const struct weir_server_row *weir_server_in_use(void)
{
	return in_use;
}
