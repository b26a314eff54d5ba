/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who else limits packets per source: nftables at netdev ingress (a dynamic set with `limit rate over`) and iptables'
 * hashlimit in the raw table, both at "in" of the wire. Each can be loaded, and then connected or not, without losing
 * what it remembers. Their state goes away with our network namespace.
 */
#ifndef WEIR_BENCH_PEERS_H
#define WEIR_BENCH_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;

#define PEERS_FLOWS (1u << 20) /* that each of them may remember */

/* For UDP to this port; both of them take "1000/second". Burst 0: their own default, five packets. */
struct peers_limit {
	uint16_t port;
	const char *rate;
	unsigned int burst;
};

enum peer { PEER_NFT, PEER_HASHLIMIT, PEER_COUNT };
extern const char *const peer_names[PEER_COUNT];

/* NULL, or what is missing. */
const char *peers_missing(void);

/* Add their versions to what is said of the machine. */
void peers_describe(struct json_t *machine);

/* Forget everything and load these limits, not connected. */
void peers_load(enum peer peer, const struct peers_limit *limits, size_t count);
void peers_connect(enum peer peer);
void peers_disconnect(enum peer peer);

/* A plain drop in the place of the peer: what harness and kernel cost until then. */
void peers_connect_drop(enum peer peer);
void peers_disconnect_drop(enum peer peer);

/*
 * Behind all limiters, in the raw table: packets that got so far are counted by source and dropped. `prefixes` are
 * counted apart; everything else comes last. Without it they reach the sockets.
 */
void peers_count_behind(const char *const *prefixes, size_t count);
/* Packets so far of prefix `i`; of the rest when `i` is how many prefixes there are. */
uint64_t peers_counted(size_t i);
void peers_stop_counting(void);

#endif
