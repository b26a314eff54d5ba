// SPDX-License-Identifier: GPL-2.0-only
#include "program/libbpf_version.h"

#include <bpf/libbpf.h>

const char *weir_libbpf_version(void)
{
	const char *version = libbpf_version_string();

	/* skip the 'v', which the versions of other libraries do not have */
	return version[0] == 'v' ? version + 1 : version;
}
