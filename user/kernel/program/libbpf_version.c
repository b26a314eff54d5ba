// SPDX-License-Identifier: GPL-2.0-only
#include "program/libbpf_version.h"

#include <bpf/libbpf.h>

const char *weir_libbpf_version(void)
{
	const char *version = libbpf_version_string();

	/* It begins with a 'v'; the other libraries' do not. */
	return version[0] == 'v' ? version + 1 : version;
}
