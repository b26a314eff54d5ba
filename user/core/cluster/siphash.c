// SPDX-License-Identifier: GPL-2.0-only
#include "cluster/siphash.h"

#include <string.h>

/* Words are little-endian, as are the machines that weir runs on (bpf/rows.h). */
static uint64_t read_word(const uint8_t *at, size_t bytes)
{
	uint64_t word = 0;

	memcpy(&word, at, bytes);
	return word;
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4], int rounds)
{
	while (rounds-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t weir_siphash(const uint8_t key[WEIR_SIPHASH_KEY_BYTES], const void *data, size_t bytes)
{
	const uint64_t k0 = read_word(key, 8), k1 = read_word(key + 8, 8);
	/* "somepseudorandomlygeneratedbytes" */
	uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
			 k1 ^ 0x7465646279746573};
	const uint8_t *at = data;
	uint64_t word;
	size_t left;

	for (left = bytes; left >= 8; left -= 8, at += 8) {
		word = read_word(at, 8);
		v[3] ^= word;
		mix(v, 2);
		v[0] ^= word;
	}
	word = read_word(at, left) | (uint64_t)bytes << 56;
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
