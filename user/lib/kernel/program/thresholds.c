// SPDX-License-Identifier: GPL-2.0-only
#include "program/thresholds.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "tables/rule_kind.h"

/* Slots between two requested ones are read as well if there are at most this many: that is cheaper than another system
 * call. Chosen, not derived.
 */
#define RUN_GAP_MAX 4u

struct moving {
	struct weir_rule_info rule;
	uint32_t slot;
};

/* WarmUp rules whose slots are close together: moving[first] to moving[first + count - 1]. */
struct run {
	uint32_t first, count;
	uint32_t slots; /* from the first rule's slot to the last rule's */
};

struct weir_thresholds {
	struct weir_pushed *pushed; /* mapped, indexed by place */
	size_t pushed_bytes;
	/* WarmUp rules first, in the order of their slots; then those that depend on memory. */
	struct moving *moving;
	uint32_t count, warm_count;
	struct weir_warm_state *states; /* of the WarmUp rules */
	uint32_t *slots;		/* the slots of the same rules, as keys */
	struct run *runs;
	uint32_t run_count;
	struct weir_rule_seconds *seconds; /* room for one run */
	uint64_t synced_s;
	bool is_synced;	   /* synced_s is valid */
	bool warms_tokens; /* some rule with tokens has a rate that changes every second */
	bool saves_states;
	uint32_t cpus;
	struct weir_moving_fds fds;
};

/* ---- opening ---- */

static bool moves(const struct weir_rule_info *rule, uint32_t rule_count)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow && rule->moves && rule->place < rule_count;
}

static int list_moving(struct weir_thresholds *thresholds, const struct weir_thresholds_maps *maps)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < maps->rule_slots; slot++)
		count += moves(&maps->rules[slot], maps->rule_count);
	thresholds->moving = calloc(count + 1, sizeof(*thresholds->moving));
	if (!thresholds->moving)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t slot = 0; slot < maps->rule_slots; slot++) {
			const struct weir_rule_info *rule = &maps->rules[slot];

			if (!moves(rule, maps->rule_count) || weir_control_warms_up(rule) != (pass == 0))
				continue;
			thresholds->moving[thresholds->count++] = (struct moving){.rule = *rule, .slot = slot};
			thresholds->warms_tokens |= pass == 0 && weir_has_tokens(rule);
		}
		if (pass == 0)
			thresholds->warm_count = thresholds->count;
	}
	return 0;
}

static int list_runs(struct weir_thresholds *thresholds)
{
	uint32_t longest = 1;
	struct run *run = NULL;

	for (uint32_t i = 0; i < thresholds->warm_count; i++) {
		uint32_t slot = thresholds->moving[i].slot;

		if (!run || slot - thresholds->moving[i - 1].slot > RUN_GAP_MAX + 1) {
			run = weir_array_add((void **)&thresholds->runs, thresholds->run_count, sizeof(*run));
			if (!run)
				return -ENOMEM;
			thresholds->run_count++;
			run->first = i;
		}
		run->count++;
		run->slots = slot - thresholds->moving[run->first].slot + 1;
		if (run->slots > longest)
			longest = run->slots;
	}
	thresholds->seconds = calloc((size_t)longest * thresholds->cpus, sizeof(*thresholds->seconds));
	return thresholds->seconds ? 0 : -ENOMEM;
}

static int read_states(struct weir_thresholds *thresholds)
{
	thresholds->states = calloc(thresholds->warm_count + 1, sizeof(*thresholds->states));
	thresholds->slots = calloc(thresholds->warm_count + 1, sizeof(*thresholds->slots));
	if (!thresholds->states || !thresholds->slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < thresholds->warm_count; i++) {
		thresholds->slots[i] = thresholds->moving[i].slot;
		if (bpf_map_lookup_elem(thresholds->fds.warm_states, &thresholds->slots[i], &thresholds->states[i]))
			return -errno;
	}
	return 0;
}

static int map_pushed(struct weir_thresholds *thresholds, const struct weir_thresholds_maps *maps)
{
	size_t page_bytes = sysconf(_SC_PAGESIZE), bytes = maps->rule_count * sizeof(struct weir_pushed);
	void *pushed;

	bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
	pushed = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, maps->fds.thresholds, 0);
	if (pushed == MAP_FAILED)
		return -errno;
	thresholds->pushed = pushed;
	thresholds->pushed_bytes = bytes;
	return 0;
}

int weir_thresholds_open(const struct weir_thresholds_maps *maps, struct weir_thresholds **ret_thresholds,
			 struct weir_diag *diag)
{
	_cleanup_(weir_thresholds_freep) struct weir_thresholds *thresholds = calloc(1, sizeof(*thresholds));
	int err = thresholds ? weir_host_cpus() : -ENOMEM;

	if (err < 0)
		return weir_diag_fail(diag, -err, NULL, "cannot open the thresholds");
	thresholds->cpus = err;
	thresholds->fds = maps->fds;
	thresholds->saves_states = maps->saves_states;
	err = list_moving(thresholds, maps);
	if (!err)
		err = list_runs(thresholds);
	if (!err)
		err = read_states(thresholds);
	if (!err && thresholds->count)
		err = map_pushed(thresholds, maps);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot open the thresholds");
	*ret_thresholds = TAKE_PTR(thresholds);
	return 0;
}

void weir_thresholds_free(struct weir_thresholds *thresholds)
{
	if (!thresholds)
		return;
	if (thresholds->pushed)
		munmap(thresholds->pushed, thresholds->pushed_bytes);
	free(thresholds->moving);
	free(thresholds->states);
	free(thresholds->slots);
	free(thresholds->runs);
	free(thresholds->seconds);
	free(thresholds);
}

uint32_t weir_thresholds_count(const struct weir_thresholds *thresholds)
{
	return thresholds->count;
}

bool weir_thresholds_need_memory(const struct weir_thresholds *thresholds)
{
	return thresholds->count > thresholds->warm_count;
}

uint64_t weir_thresholds_units(const struct weir_thresholds *thresholds, uint32_t place)
{
	return thresholds->pushed[place].word & WEIR_THRESHOLD_MASK;
}

/* ---- steps ---- */

static void publish(struct weir_thresholds *thresholds, uint32_t index, const struct weir_memory_use *memory,
		    uint64_t now_ns)
{
	const struct weir_rule_info *rule = &thresholds->moving[index].rule;
	const struct weir_warm_state *state = index < thresholds->warm_count ? &thresholds->states[index] : NULL;
	struct weir_allowance allowance;

	weir_control_allow(rule, state, memory, now_ns, &allowance);
	if (weir_has_tokens(rule))
		weir_control_publish_rate(&thresholds->pushed[rule->place], &allowance, now_ns);
	else
		weir_control_publish(&thresholds->pushed[rule->place], &allowance);
}

static int sync_run(struct weir_thresholds *thresholds, const struct run *run, uint64_t now_ns)
{
	uint32_t first_slot = thresholds->slots[run->first];
	int err = weir_entries_read(thresholds->fds.rule_seconds, first_slot, run->slots,
				    thresholds->cpus * sizeof(*thresholds->seconds), thresholds->seconds);

	if (err)
		return err;
	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		const struct weir_rule_seconds *of_cpus =
			&thresholds->seconds[(size_t)(thresholds->slots[i] - first_slot) * thresholds->cpus];

		weir_control_sync(&thresholds->moving[i].rule, of_cpus, thresholds->cpus, now_ns,
				  &thresholds->states[i]);
	}
	return 0;
}

static int sync_warming(struct weir_thresholds *thresholds, uint64_t now_ns)
{
	static const struct weir_memory_use unknown;
	int err = 0;

	for (uint32_t i = 0; !err && i < thresholds->run_count; i++)
		err = sync_run(thresholds, &thresholds->runs[i], now_ns);
	if (err)
		return err;
	for (uint32_t i = 0; i < thresholds->warm_count; i++)
		publish(thresholds, i, &unknown, now_ns);
	thresholds->synced_s = now_ns / WEIR_NSEC_PER_SEC;
	thresholds->is_synced = true;
	/* Published first and saved afterwards: a controller that is killed in between, or its successor, computes the
	 * same values again.
	 */
	if (!thresholds->saves_states)
		return 0;
	return weir_array_write_some(thresholds->fds.warm_states, thresholds->slots, thresholds->states,
				     thresholds->warm_count, sizeof(*thresholds->states));
}

int weir_thresholds_step(struct weir_thresholds *thresholds, uint64_t now_ns, const struct weir_memory_use *memory)
{
	int err = 0;

	if (thresholds->warm_count && (!thresholds->is_synced || now_ns / WEIR_NSEC_PER_SEC > thresholds->synced_s))
		err = sync_warming(thresholds, now_ns);
	for (uint32_t i = thresholds->warm_count; i < thresholds->count; i++)
		publish(thresholds, i, memory, now_ns);
	return err;
}

/* The longest silence that is followed second by second: a capture may be silent for years. The rest of a silence is
 * one step. By then even a slow rule is cold.
 */
#define STEPS_MAX 100000u

int weir_thresholds_follow(struct weir_thresholds *thresholds, uint64_t now_ns, const struct weir_memory_use *memory)
{
	uint64_t now_s = now_ns / WEIR_NSEC_PER_SEC, second;
	uint32_t steps = 0;
	int err = 0;

	if (!thresholds->warms_tokens) /* unknown */
		return weir_thresholds_step(thresholds, now_ns, memory);
	if (!thresholds->is_synced) {
		err = sync_warming(thresholds, 0); /* cold for ever */
		thresholds->synced_s = now_s ? now_s - 1 : 0;
	}
	for (second = thresholds->synced_s + 1; !err && steps < STEPS_MAX && second <= now_s; second++, steps++)
		err = sync_warming(thresholds, second * WEIR_NSEC_PER_SEC);
	return err ?: weir_thresholds_step(thresholds, now_ns, memory);
}

void weir_thresholds_expire(struct weir_thresholds *thresholds, uint64_t expiry_ns, uint64_t now_ns)
{
	for (uint32_t i = 0; i < thresholds->count; i++) {
		const struct weir_rule_info *rule = &thresholds->moving[i].rule;

		if (weir_has_tokens(rule))
			weir_control_expire(&thresholds->pushed[rule->place], rule, expiry_ns, now_ns);
	}
}

/* ---- at a load ---- */

/* The slot's state belongs to another rule, or was never kept because the rule did not warm up. */
static bool begins_to_warm(const struct weir_image *image, const struct weir_rule_info *previous, uint32_t slot)
{
	const struct weir_rule_info *rule = &image->rule_info[slot];

	if (rule->state != WEIR_SLOT_USED || !weir_control_warms_up(rule))
		return false;
	return image->fresh_rule_slots[slot] || !previous || previous[slot].state != WEIR_SLOT_USED ||
	       !weir_control_warms_up(&previous[slot]);
}

int weir_thresholds_start(const struct weir_image *image, const struct weir_rule_info *previous, uint64_t now_ns,
			  const struct weir_moving_fds *fds, struct weir_diag *diag)
{
	int cpus = weir_host_cpus();
	_cleanup_(weir_freep) struct weir_rule_seconds *zeros = calloc(cpus < 0 ? 1 : cpus, sizeof(*zeros));
	struct weir_warm_state state;

	if (cpus < 0 || !zeros)
		return weir_diag_fail(diag, cpus < 0 ? -cpus : ENOMEM, NULL, "cannot begin to warm up");
	for (uint32_t slot = 0; slot < image->rule_slots; slot++) {
		if (!begins_to_warm(image, previous, slot))
			continue;
		weir_control_warm_start(&image->rule_info[slot], now_ns, &state);
		if (bpf_map_update_elem(fds->warm_states, &slot, &state, BPF_ANY) ||
		    bpf_map_update_elem(fds->rule_seconds, &slot, zeros, BPF_ANY))
			return weir_diag_fail(diag, errno, NULL, "cannot begin to warm up");
	}
	return 0;
}

int weir_thresholds_publish(const struct weir_image *image, const struct weir_moving_fds *fds, uint64_t now_ns,
			    const struct weir_memory_use *memory, struct weir_diag *diag)
{
	static const struct weir_memory_use unknown;
	_cleanup_(weir_thresholds_freep) struct weir_thresholds *thresholds = NULL;
	const struct weir_thresholds_maps maps = {
		.rules = image->rule_info,
		.rule_slots = image->rule_slots,
		.rule_count = image->rule_count,
		.fds = *fds,
	};
	int err = weir_thresholds_open(&maps, &thresholds, diag);

	if (err)
		return err;
	assert(thresholds);
	err = weir_thresholds_step(thresholds, now_ns, memory ? memory : &unknown);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot publish the first thresholds") : 0;
}
