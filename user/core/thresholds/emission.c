// SPDX-License-Identifier: GPL-2.0-only
#include "thresholds/emission.h"

#include <string.h>

void weir_emission_make(uint64_t interval_ns, unsigned __int128 allowed_num, unsigned __int128 allowed_den,
			struct weir_emission *ret_emission)
{
	unsigned __int128 dividend = interval_ns * allowed_den, remainder;
	int part, bit;

	memset(ret_emission, 0, sizeof(*ret_emission));
	if (allowed_num < allowed_den)
		return;
	ret_emission->whole = (uint64_t)(dividend / allowed_num);
	remainder = dividend % allowed_num;
	for (part = 0; part < 4; part++) {
		for (bit = 0; bit < 32; bit++) {
			remainder *= 2;
			ret_emission->fraction[part] = ret_emission->fraction[part] << 1 | (remainder >= allowed_num);
			if (remainder >= allowed_num)
				remainder -= allowed_num;
		}
	}
}
