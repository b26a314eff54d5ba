// SPDX-License-Identifier: GPL-2.0-only
/* For builds without `cluster`, and so without nettle: no flow is shared. */
#include "shares/flow_name.h"

#include <errno.h>

int weir_flow_secret_read(const char *line, uint8_t ret_secret[WEIR_FLOW_SECRET_BYTES])
{
	return -EINVAL;
}

void weir_flow_seal(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger,
		    const uint8_t flow[WEIR_FLOW_BYTES], char ret_name[WEIR_FLOW_NAME_CHARS],
		    char ret_sealed[WEIR_FLOW_SEALED_CHARS])
{
	ret_name[0] = ret_sealed[0] = '\0';
}

bool weir_flow_open(const uint8_t secret[WEIR_FLOW_SECRET_BYTES], const char *ledger, const char *name,
		    const char *sealed, uint8_t ret_flow[WEIR_FLOW_BYTES])
{
	return false;
}
