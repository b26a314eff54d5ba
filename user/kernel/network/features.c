// SPDX-License-Identifier: GPL-2.0-only
#include "network/features.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/util.h"

bool weir_ethtool_ask(int fd, const char *name, void *command)
{
	struct ifreq ifr = {.ifr_data = command};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	return !ioctl(fd, SIOCETHTOOL, &ifr);
}

/* The number of features, and the number of the feature with this name; false: there is none. */
static bool find_feature(int fd, const char *name, const char *feature, uint32_t *ret_count, uint32_t *ret_number)
{
	_cleanup_(weir_freep) struct ethtool_sset_info *sizes = calloc(1, sizeof(*sizes) + sizeof(sizes->data[0]));
	_cleanup_(weir_freep) struct ethtool_gstrings *strings = NULL;
	uint32_t count;

	if (!sizes)
		return false;
	sizes->cmd = ETHTOOL_GSSET_INFO;
	sizes->sset_mask = 1ull << ETH_SS_FEATURES;
	if (!weir_ethtool_ask(fd, name, sizes) || !sizes->sset_mask)
		return false;
	count = sizes->data[0];
	strings = calloc(1, sizeof(*strings) + (size_t)count * ETH_GSTRING_LEN);
	if (!strings)
		return false;
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_FEATURES;
	strings->len = count;
	if (!weir_ethtool_ask(fd, name, strings))
		return false;
	for (uint32_t i = 0; i < strings->len && i < count; i++) {
		if (strncmp((const char *)strings->data + (size_t)i * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN))
			continue;
		*ret_count = count;
		*ret_number = i;
		return true;
	}
	return false;
}

/* The block of 32 features that contains it, and its bit in the block; false: unknown. */
static bool read_block(int fd, const char *name, const char *feature, struct ethtool_get_features_block *ret_block,
		       uint32_t *ret_bit)
{
	_cleanup_(weir_freep) struct ethtool_gfeatures *features = NULL;
	uint32_t count, number;

	if (!find_feature(fd, name, feature, &count, &number))
		return false;
	features = calloc(1, sizeof(*features) + (count + 31) / 32 * sizeof(features->features[0]));
	if (!features)
		return false;
	features->cmd = ETHTOOL_GFEATURES;
	features->size = (count + 31) / 32;
	if (!weir_ethtool_ask(fd, name, features) || number / 32 >= features->size)
		return false;
	*ret_block = features->features[number / 32];
	*ret_bit = number % 32;
	return true;
}

bool weir_feature_is_on(int fd, const char *name, const char *feature)
{
	struct ethtool_get_features_block block;
	uint32_t bit;

	return read_block(fd, name, feature, &block, &bit) && block.active >> bit & 1;
}

bool weir_feature_can_change(int fd, const char *name, const char *feature)
{
	struct ethtool_get_features_block block;
	uint32_t bit;

	return read_block(fd, name, feature, &block, &bit) && block.available >> bit & 1;
}
