// SPDX-License-Identifier: GPL-2.0-only
#include "instance/override_trie.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "program/maps.h"

int weir_overrides_open(const struct weir_instance *instance)
{
	const uint32_t program_id = weir_instance_program_id(instance);

	return program_id ? weir_program_map_open(program_id, "overrides") : -ENOENT;
}

int weir_overrides_find(int fd, const struct weir_rule_info *rule, const struct weir_flow_key *key, uint64_t *ret_units)
{
	struct weir_override_key wanted = {.place = rule->place, .family = key->family};
	struct weir_override_units found;

	wanted.prefix_bits = WEIR_OVERRIDE_FIXED_BITS + (key->family == 6 ? 128 : 32);
	memcpy(wanted.address, rule->overrides_destination ? key->destination : key->source, sizeof(wanted.address));
	if (bpf_map_lookup_elem(fd, &wanted, &found)) {
		if (errno != ENOENT)
			return -errno;
		found.units = rule->threshold_word & WEIR_THRESHOLD_MASK;
	}
	*ret_units = found.units;
	return 0;
}

/* Number of entries that one system call copies. Chosen, not derived. */
#define BATCH_ENTRIES 1024u

int weir_overrides_scan(int fd, weir_override_visit *visit, void *data)
{
	struct weir_override_key keys[BATCH_ENTRIES], place, *from = NULL;
	struct weir_override_units units[BATCH_ENTRIES];
	int err;

	do {
		uint32_t count = BATCH_ENTRIES;

		err = bpf_map_lookup_batch(fd, from, &place, keys, units, &count, NULL);
		if (err && err != -ENOENT) /* ENOENT: this was the last batch */
			return err;
		for (uint32_t i = 0; i < count; i++) {
			int stop = visit(&keys[i], &units[i], data);

			if (stop)
				return stop;
		}
		from = &place;
	} while (!err);
	return 0;
}
