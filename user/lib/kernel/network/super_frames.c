// SPDX-License-Identifier: GPL-2.0-only
#include "network/super_frames.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/util.h"
#include "network/netns.h"
#include "network/stack.h"

/* ---- features ---- */

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

/* Is it on, and can 'ethtool -K' change that (if not, the feature is "fixed")? All false if the kernel does not know
 * such a feature, or does not report it.
 */
struct feature {
	bool is_on, can_change;
};

static struct feature read_feature(int fd, const char *name, const char *feature)
{
	_cleanup_(weir_freep) struct ethtool_gfeatures *features = NULL;
	const struct ethtool_get_features_block *block;
	uint32_t count, number;

	if (!find_feature(fd, name, feature, &count, &number))
		return (struct feature){};
	features = calloc(1, sizeof(*features) + (count + 31) / 32 * sizeof(features->features[0]));
	if (!features)
		return (struct feature){};
	features->cmd = ETHTOOL_GFEATURES;
	features->size = (count + 31) / 32;
	if (!weir_ethtool_ask(fd, name, features) || number / 32 >= features->size)
		return (struct feature){};
	block = &features->features[number / 32]; /* of 32 features */
	return (struct feature){block->active >> number % 32 & 1, block->available >> number % 32 & 1};
}

/* ---- merging ---- */

static const char *offload_of(int fd, const char *name)
{
	struct ethtool_value gro = {.cmd = ETHTOOL_GGRO}, flags = {.cmd = ETHTOOL_GFLAGS};

	if (weir_ethtool_ask(fd, name, &flags) && flags.data & ETH_FLAG_LRO)
		return "lro";
	if (read_feature(fd, name, "rx-gro-hw").is_on)
		return "rx-gro-hw";
	return weir_ethtool_ask(fd, name, &gro) && gro.data ? "gro" : NULL;
}

/* Examines the interfaces at the bottom, where packets arrive. Nothing is merged on the way through the host itself. */
bool weir_merging_find(const char *name, uint32_t ifindex, struct weir_merging *ret_merging)
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	_cleanup_(weir_stack_free) struct weir_stack stack = {};

	if (fd < 0)
		return false;
	weir_stack_read(name, ifindex, &stack);
	for (size_t i = 0; i < stack.bottom_count; i++) {
		const struct weir_stacked *bottom = &stack.bottoms[i];
		const char *offload = bottom->kind == WEIR_LINK_LOOPBACK ? NULL : offload_of(fd, bottom->name);

		if (!offload)
			continue;
		ret_merging->offload = offload;
		ret_merging->is_fixed =
			!strcmp(offload, "rx-gro-hw") && !read_feature(fd, bottom->name, offload).can_change;
		memcpy(ret_merging->interface, bottom->name, sizeof(ret_merging->interface));
		return true;
	}
	return false;
}

/* With these features off, the kernel splits super-frames before they reach the device; 'gso' may stay on. */
static const struct {
	const char *feature, *option; /* the name in 'ethtool -k', and the option of 'ethtool -K' */
} senders[] = {
	{"tx-tcp-segmentation", "tso"},
	{"tx-tcp6-segmentation", "tso"},
	{"tx-udp-segmentation", "tx-udp-segmentation"},
	{"tx-sctp-segmentation", "tx-sctp-segmentation"},
};

/* The options for 'ethtool -K' that turn off those that are on: " tso off tx-udp-segmentation off". Empty: all are off.
 */
static void read_senders(const char *name, char ret_options[96])
{
	_cleanup_(weir_closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *last = "";
	size_t bytes = 0;

	ret_options[0] = '\0';
	for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(senders); i++) {
		if (!strcmp(senders[i].option, last) || !read_feature(fd, name, senders[i].feature).is_on)
			continue;
		last = senders[i].option;
		bytes += snprintf(ret_options + bytes, 96 - bytes, " %s off", last);
	}
}

static bool find_loopback(const struct weir_stacked *link, struct weir_super_frames *frames)
{
	char options[96];

	read_senders(link->name, options);
	if (!options[0])
		return false;
	snprintf(frames->text, sizeof(frames->text), "programs on this host send super-frames through '%s'",
		 link->name);
	snprintf(frames->advice, sizeof(frames->advice), "'ethtool -K %s%s'", link->name, options);
	return true;
}

/* Advises '--mode native' where that mode is available. */
static const char *native_words(const struct weir_stacked *link, const struct weir_super_frames *frames, char words[64])
{
	if (frames->is_below)
		snprintf(words, 64, "'--mode native' on '%s' sees every packet", link->name);
	else
		snprintf(words, 64, "'--mode native' sees every packet");
	return words;
}

/* Examines the peer in the thread's present namespace. `there` is how ethtool gets into that namespace ("": no prefix
 * needed).
 */
static bool find_peer(const struct weir_stacked *link, const char *there, struct weir_super_frames *frames)
{
	char name[IF_NAMESIZE], options[96], native[64];

	if (!if_indextoname(link->peer, name))
		return false; /* the peer is gone, and this link soon will be */
	read_senders(name, options);
	if (!options[0])
		return false;
	snprintf(frames->text, sizeof(frames->text), "'%s', the peer of '%s', sends super-frames", name, link->name);
	snprintf(frames->advice, sizeof(frames->advice), "%s; or '%sethtool -K %s%s'",
		 native_words(link, frames, native), there, name, options);
	return true;
}

static bool find_veth(const struct weir_stacked *link, struct weir_super_frames *frames)
{
	_cleanup_(weir_netns_leave) int back_fd = -1;
	char netns[NAME_MAX + 1] = "", there[NAME_MAX + 32], native[64];

	if (link->peer_netns < 0)
		return find_peer(link, "", frames);
	if (!weir_netns_enter_id(link->peer_netns, netns, &back_fd)) {
		snprintf(there, sizeof(there), "ip netns exec %s ", netns);
		return find_peer(link, netns[0] ? there : "nsenter --net=... ", frames);
	}
	snprintf(frames->text, sizeof(frames->text),
		 "the peer of '%s' may send super-frames: its network namespace cannot be examined", link->name);
	snprintf(frames->advice, sizeof(frames->advice),
		 "%s; or, there, 'ethtool -K PEER tso off tx-udp-segmentation off'",
		 native_words(link, frames, native));
	return true;
}

static bool find_tun(const struct weir_stacked *link, struct weir_super_frames *frames)
{
	if (!link->has_vnet_header)
		return false;
	frames->evades_native = true;
	snprintf(frames->text, sizeof(frames->text),
		 "the sender behind '%s', such as a virtual machine, may send super-frames", link->name);
	snprintf(frames->advice, sizeof(frames->advice),
		 "in the machine: 'ethtool -K IFACE tso off tx-udp-segmentation off'");
	return true;
}

static bool find_of(const struct weir_stacked *link, struct weir_super_frames *frames)
{
	switch (link->kind) {
	case WEIR_LINK_LOOPBACK:
		return find_loopback(link, frames);
	case WEIR_LINK_VETH:
		return find_veth(link, frames);
	case WEIR_LINK_TUN:
		return find_tun(link, frames);
	case WEIR_LINK_OTHER:
		break;
	}
	return false;
}

bool weir_super_frames_find(const char *name, uint32_t ifindex, struct weir_super_frames *ret_frames)
{
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	struct weir_super_frames frames = {};

	weir_stack_read(name, ifindex, &stack);
	for (size_t i = 0; i < stack.bottom_count; i++) {
		frames.is_below = stack.bottoms[i].ifindex != ifindex;
		if (!find_of(&stack.bottoms[i], &frames))
			continue;
		memcpy(frames.interface, stack.bottoms[i].name, sizeof(frames.interface));
		*ret_frames = frames;
		return true;
	}
	return false;
}
