// SPDX-License-Identifier: GPL-2.0-only
#include "thresholds/cost.h"

#include <string.h>

void weir_cost_make(uint64_t interval_ns, unsigned __int128 allowed_num, unsigned __int128 allowed_den,
		    struct weir_cost *ret_cost)
{
	unsigned __int128 dividend = interval_ns * allowed_den, remainder;
	int part, bit;

	memset(ret_cost, 0, sizeof(*ret_cost));
	if (allowed_num < allowed_den)
		return;
	ret_cost->whole = (uint64_t)(dividend / allowed_num);
	remainder = dividend % allowed_num;
	for (part = 0; part < 4; part++) {
		for (bit = 0; bit < 32; bit++) {
			remainder *= 2;
			ret_cost->fraction[part] = ret_cost->fraction[part] << 1 | (remainder >= allowed_num);
			if (remainder >= allowed_num)
				remainder -= allowed_num;
		}
	}
}
