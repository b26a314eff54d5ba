// SPDX-License-Identifier: GPL-2.0-only
#include "network/super_frames.h"

#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "network/features.h"
#include "network/netns.h"
#include "network/stack.h"

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
		if (!strcmp(senders[i].option, last) || !weir_feature_is_on(fd, name, senders[i].feature))
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
