/* SPDX-License-Identifier: GPL-2.0-only */
/* The version of weir: the release, the commit, the ABI of its maps, and the libraries it runs with. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

/* "GnuTLS 3.7.9", or what says that it is left out. */
typedef const char *(*weir_version_text)(void);

/* Those of libraries that a build can leave out; NULL ends them. Called once, before the next. */
void weir_use_versions(const weir_version_text *list);
void weir_print_version(void);

#endif
