// SPDX-License-Identifier: GPL-2.0-only
#include "program/signals.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/util.h"

struct weir_signals_map {
	struct weir_signals *signals;
};

static size_t map_bytes(void)
{
	size_t page_bytes = sysconf(_SC_PAGESIZE);

	return (sizeof(struct weir_signals) + page_bytes - 1) / page_bytes * page_bytes;
}

int weir_signals_open(int map_fd, struct weir_signals_map **ret_map, struct weir_diag *diag)
{
	struct weir_signals_map *map = calloc(1, sizeof(*map));
	void *signals;

	if (!map)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot map the signals of system rules");
	signals = mmap(NULL, map_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (signals == MAP_FAILED) {
		free(map);
		return weir_diag_fail(diag, errno, NULL, "cannot map the signals of system rules");
	}
	map->signals = signals;
	*ret_map = map;
	return 0;
}

void weir_signals_close(struct weir_signals_map *map)
{
	if (!map)
		return;
	munmap(map->signals, map_bytes());
	free(map);
}

void weir_signals_publish(struct weir_signals_map *map, const struct weir_signals *signals)
{
	__atomic_store_n(&map->signals->load1_micro, signals->load1_micro, __ATOMIC_RELAXED);
	__atomic_store_n(&map->signals->cpu_micro, signals->cpu_micro, __ATOMIC_RELAXED);
	/* For people, not for the program. */
	__atomic_store_n(&map->signals->load1_ns, signals->load1_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&map->signals->cpu_ns, signals->cpu_ns, __ATOMIC_RELAXED);
}
