/* SPDX-License-Identifier: GPL-2.0-only */
/* What a program in native mode on a veth must know of the veth's peer. Changes nothing. */
#ifndef WEIR_NETWORK_VETH_H
#define WEIR_NETWORK_VETH_H

#include <stdbool.h>
#include <stdint.h>

struct weir_veth_loss {
	bool is_known; /* false: the peer cannot be examined from here, so that they may be lost */
	char words[224];
	char advice[160];
};

/*
 * Whether what the program sends by XDP_TX is lost: a veth hands such frames over to its peer, but wakes it only if
 * that has an XDP program, too. If the peer has but GRO, they lie in its ring until another packet wakes it; otherwise
 * they are dropped (veth_xdp_flush() and veth_xdp_xmit() of the kernel's veth.c, up to 6.18 at least). Then *ret_loss
 * says so, and what to do. False for any other device.
 */
bool weir_veth_loses_answers(const char *name, uint32_t ifindex, struct weir_veth_loss *ret_loss);

#endif
