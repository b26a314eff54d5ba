// SPDX-License-Identifier: GPL-2.0-only
#include "version.h"

#include <jansson.h>
#include <libfyaml.h>
#include <pcap/pcap.h>
#include <stdio.h>

#include "commit.h"
#include "host/confine.h"
#include "program/libbpf_version.h"
#include "serve/serve.h"
#include "store/store.h"
#include "weir_abi.h"

void weir_print_version(void)
{
	/* Binaries with the same ABI can share pinned objects, even if they are from different commits. */
	printf("weir %s ABI %u\n", WEIR_RELEASE, WEIR_ABI_VERSION);
	/* libpcap's version string includes its name. */
	printf("libbpf %s, libfyaml %s, jansson %s, %s, %s, %s, %s\n", weir_libbpf_version(), fy_library_version(),
	       jansson_version_str(), weir_serve_version(), weir_confine_version(), weir_store_version(),
	       pcap_lib_version());
}
