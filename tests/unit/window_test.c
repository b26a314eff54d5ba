// SPDX-License-Identifier: GPL-2.0-only
/* Window arithmetic that the program and the host share, against 128 bits. */
#include "../lib/claims.h"
#include "base/util.h"
#include "weir_window.h"

static uint64_t share(uint64_t count, uint64_t bucket_ns, uint64_t into_ns)
{
	return ((unsigned __int128)count * (bucket_ns - into_ns) + bucket_ns - 1) / bucket_ns;
}

/* Around the counts and lengths at which another way of computing it is taken. */
CLAIM(a_share_is_exact_for_every_count_and_length)
{
	static const uint64_t counts[] = {0,	      1,	  2,	      20,	  0xfffe,
					  0xffff,     0x10000,	  0x3ffff,    0x10001,	  0x7fffffff,
					  0x80000000, 0x80000001, 0xffffffff, 1ull << 40, (1ull << 62) - 1};
	static const uint64_t lengths[] = {1000000,	    0xffffffff,	      0x100000000,	 0x100000001,
					   600000000000ull, 8640000000000ull, 86400000000000ull, (1ull << 47) - 1};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(lengths); k++)
			for (uint64_t into = 0; into < 16; into++) {
				uint64_t into_ns = into < 8 ? into * (lengths[k] / 8) : lengths[k] - (16 - into);

				assert_true(weir_smooth_share(counts[i], lengths[k], into_ns) ==
					    share(counts[i], lengths[k], into_ns));
			}
}

RUN_CLAIMS(NULL, NULL)
