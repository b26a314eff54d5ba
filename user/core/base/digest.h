/* SPDX-License-Identifier: GPL-2.0-only */
/* A digest of bytes, to distinguish things where there is no attacker: FNV-1a, 64 bits (Fowler, Noll, Vo). */
#ifndef WEIR_BASE_DIGEST_H
#define WEIR_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* The initial value. */
#define WEIR_DIGEST_BASIS 0xcbf29ce484222325ull

static inline uint64_t weir_digest(uint64_t digest, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	while (count--)
		digest = (digest ^ *at++) * 0x100000001b3ull;
	return digest;
}

#endif
