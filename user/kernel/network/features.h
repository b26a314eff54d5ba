/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ethtool(8) says of an interface, by its ioctl: commands, and offloads by the names that 'ethtool -k' prints.
 * Asks; sets nothing.
 */
#ifndef WEIR_NETWORK_FEATURES_H
#define WEIR_NETWORK_FEATURES_H

#include <stdbool.h>

/* A command, which begins with its number as every ethtool struct does, to an interface of the namespace that the
 * socket fd is of. False: the driver does not answer it.
 */
bool weir_ethtool_ask(int fd, const char *name, void *command);

/* False also when the kernel knows no such feature, or does not say. */
bool weir_feature_is_on(int fd, const char *name, const char *feature);

/* Whether 'ethtool -K' may turn it on and off; false: it is "fixed". */
bool weir_feature_can_change(int fd, const char *name, const char *feature);

#endif
