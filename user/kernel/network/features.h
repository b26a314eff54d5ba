/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ethtool(8) shows of an interface, by its ioctl: commands, and offloads by the names that 'ethtool -k' prints.
 * Reads only, sets nothing.
 */
#ifndef WEIR_NETWORK_FEATURES_H
#define WEIR_NETWORK_FEATURES_H

#include <stdbool.h>

/* Send a command, which begins with its number as every ethtool struct does, to an interface in the network namespace
 * of the socket fd. False: the driver does not answer the command.
 */
bool weir_ethtool_ask(int fd, const char *name, void *command);

/* Also false if the kernel does not know such a feature, or does not report it. */
bool weir_feature_is_on(int fd, const char *name, const char *feature);

/* Whether 'ethtool -K' can turn it on and off; false: the feature is "fixed". */
bool weir_feature_can_change(int fd, const char *name, const char *feature);

#endif
