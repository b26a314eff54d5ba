// SPDX-License-Identifier: GPL-2.0-only
#include "peaks/peaks.h"

#define OUTLIER_FACTOR 10 /* times the 99th percentile */
#define OUTLIER_SHARE 100 /* fewer than one in this many */

uint64_t weir_nearest_rank(const uint64_t *sorted, size_t count, uint32_t percent_micro)
{
	const unsigned __int128 hundred = 100 * (unsigned __int128)WEIR_PERCENT_MICRO;
	const size_t rank = (count * (unsigned __int128)percent_micro + hundred - 1) / hundred;

	return sorted[rank ? rank - 1 : 0];
}

size_t weir_count_outliers(const uint64_t *sorted, size_t count)
{
	const uint64_t p99 = weir_nearest_rank(sorted, count, 99 * WEIR_PERCENT_MICRO);
	size_t outliers = 0;

	while (outliers < count && sorted[count - 1 - outliers] > OUTLIER_FACTOR * p99)
		outliers++;
	return outliers * OUTLIER_SHARE < count ? outliers : 0;
}

void weir_distribute(const uint64_t *sorted, size_t count, uint32_t percent_micro, struct weir_distribution *ret)
{
	const size_t outliers = weir_count_outliers(sorted, count), rest = count - outliers;

	*ret = (struct weir_distribution){
		.count = count,
		.outliers = outliers,
		.p50 = weir_nearest_rank(sorted, rest, 50 * WEIR_PERCENT_MICRO),
		.p90 = weir_nearest_rank(sorted, rest, 90 * WEIR_PERCENT_MICRO),
		.p99 = weir_nearest_rank(sorted, rest, 99 * WEIR_PERCENT_MICRO),
		.p99_9 = weir_nearest_rank(sorted, rest, 99 * WEIR_PERCENT_MICRO + 9 * WEIR_PERCENT_MICRO / 10),
		.max = sorted[rest - 1],
		.at_percentile = weir_nearest_rank(sorted, rest, percent_micro),
		.outlier_min = outliers ? sorted[rest] : UINT64_MAX,
	};
}

uint64_t weir_round_up_two_digits(uint64_t number)
{
	uint64_t unit = 1;

	while (number / unit >= 100)
		unit *= 10;
	/* Two digits, rounded up: 99.5 becomes 100, which has two significant digits as well. */
	return (number / unit + (number % unit != 0)) * unit;
}

uint64_t weir_threshold_with_margin(uint64_t number, uint64_t margin_micro)
{
	const unsigned __int128 micro = (unsigned __int128)number * margin_micro;

	return weir_round_up_two_digits((micro + 999999) / 1000000);
}
