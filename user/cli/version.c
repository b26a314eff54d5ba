// SPDX-License-Identifier: GPL-2.0-only
#include "cli/command.h"

#include <jansson.h>
#include <libfyaml.h>
#include <pcap/pcap.h>
#include <stdio.h>

#include "commit.h"
#include "host/host.h"
#include "weir_abi.h"

static const weir_version_text none[] = {NULL};
static const weir_version_text *texts = none;

void weir_use_versions(const weir_version_text *list)
{
	texts = list;
}

void weir_print_version(void)
{
	/* Binaries with the same ABI can share pinned objects, even if they are from different commits. */
	printf("weir %s ABI %u\n", WEIR_RELEASE, WEIR_ABI_VERSION);
	printf("libbpf %s, libfyaml %s, jansson %s, ", weir_libbpf_version(), fy_library_version(),
	       jansson_version_str());
	for (const weir_version_text *text = texts; *text; text++)
		printf("%s, ", (*text)());
	/* libpcap's version string includes its name. */
	puts(pcap_lib_version());
}
