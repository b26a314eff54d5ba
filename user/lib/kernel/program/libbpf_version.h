/* SPDX-License-Identifier: GPL-2.0-only */
/* The version of the libbpf that this process runs with, which may differ from the one that it was built with. */
#ifndef WEIR_LIBBPF_VERSION_H
#define WEIR_LIBBPF_VERSION_H

const char *weir_libbpf_version(void);

#endif
