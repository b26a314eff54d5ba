/* SPDX-License-Identifier: GPL-2.0-only */
/* What a program in native mode on a veth must know of the veth's peer. Changes nothing. */
#ifndef WEIR_NETWORK_VETH_H
#define WEIR_NETWORK_VETH_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_VETH_LOSES_ANSWERS "answers (onBlock) cannot leave '%s' in native mode: they count as sent, and are lost"
#define WEIR_VETH_ADVICE_BYTES 160

/*
 * Whether what the program sends by XDP_TX is lost: a veth hands such frames over to its peer, but wakes it only if
 * that has an XDP program, too. If the peer has but GRO, they lie in its ring until another packet wakes it; otherwise
 * they are dropped (veth_xdp_flush() and veth_xdp_xmit() of the kernel's veth.c, up to 6.18 at least). Then the advice
 * says what to do. Also true if the peer's namespace cannot be examined. False for any other device.
 */
bool weir_veth_loses_answers(const char *name, uint32_t ifindex, char ret_advice[WEIR_VETH_ADVICE_BYTES]);

#endif
