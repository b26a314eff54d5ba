/* SPDX-License-Identifier: GPL-2.0-only */
/* What takes TCP connections from the socket that listens at their port. Changes nothing, and loads no module. */
#ifndef WEIR_NETWORK_PORT_TAKERS_H
#define WEIR_NETWORK_PORT_TAKERS_H

#include <stdbool.h>

#define WEIR_PORT_TAKERS_BYTES 160

/*
 * What may do so in the present network namespace, in words, as "nft table 'nat', IPVS service 'TCP'": rules of nft,
 * and those of iptables that the kernel keeps as such, that change a destination, redirect, or hand over by TPROXY;
 * services of IPVS. Which ports they take is not asked. The old iptables show only whether a table nat or mangle is
 * loaded, with or without rules; BPF programs of others (sk_lookup, Cilium) show nothing. False: nothing was found.
 */
bool weir_port_takers_find(char ret_words[WEIR_PORT_TAKERS_BYTES]);

#endif
