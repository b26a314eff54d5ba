/* SPDX-License-Identifier: GPL-2.0-only */
/* The version of weir: the release, the commit, the ABI of its maps, and the libraries it runs with. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

void weir_print_version(void);

#endif
