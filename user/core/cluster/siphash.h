/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SipHash-2-4, a keyed hash of 64 bits that nobody without the key can tell from chance (Aumasson and Bernstein,
 * "SipHash: a fast short-input PRF", 2012).
 */
#ifndef WEIR_CLUSTER_SIPHASH_H
#define WEIR_CLUSTER_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_SIPHASH_KEY_BYTES 16

uint64_t weir_siphash(const uint8_t key[WEIR_SIPHASH_KEY_BYTES], const void *data, size_t bytes);

#endif
