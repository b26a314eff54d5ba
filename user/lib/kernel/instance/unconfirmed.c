// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules that have to be confirmed. Until this is decided, the program on the interfaces is a guard (program/guard.h).
 * The guard reads a time from a map: before that time packets go to the new rules, afterwards to the old ones. So the
 * kernel itself returns to the old rules, and needs no process for it. What is left to do then is to take the guard
 * off, and to describe the old rules as those in force. The first command that opens the instance does that (open.c).
 *
 * The guard's pins are valid as long as its program is on a link, or the rules behind it are the ones described (all
 * interfaces may be gone for a while). A killed reload may leave invalid ones.
 */
#include "instance/instance_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/guard.h"

/* The pins beside those of its programs (weir_pin_of_guard). */
static const char *const pins[] = {
	"guard_state",	   /* map `guard` */
	"guard_sets",	   /* the map with both programs, which the kernel empties if the map is not pinned */
	"guard_tc_sets",   /* the same, for tc */
	"guard_rule_info", /* the descriptions before the reload */
	"guard_resource_info",
};
enum { PIN_STATE, PIN_SETS, PIN_TC_SETS, PIN_RULES, PIN_RESOURCES };

void weir_guard_remove(const char *instance)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		weir_unpin(instance, weir_pin_of_guard(hook));
	for (size_t i = 0; i < ARRAY_SIZE(pins); i++)
		weir_unpin(instance, pins[i]);
}

/* ---- setting it up ---- */

static int pin_copy(const char *instance, const char *pin, const void *values, uint32_t count, size_t value_bytes,
		    struct weir_diag *diag)
{
	_cleanup_(weir_closep) int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_guard_info", sizeof(uint32_t), value_bytes, count, NULL);
	int err = fd < 0 ? fd : weir_array_write(fd, values, count, value_bytes);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot keep the descriptions of instance '%s'", instance);
	return weir_pin(instance, pin, fd, diag);
}

static int pin_if_there(const char *instance, const char *pin, int fd, struct weir_diag *diag)
{
	return fd < 0 ? 0 : weir_pin(instance, pin, fd, diag);
}

/* The programs' pins come last: once they exist, the guard is complete. */
static int pin_guard(const struct weir_instance *instance, const struct weir_rule_info *rules,
		     const struct weir_guard_object *guard, struct weir_diag *diag)
{
	int err = weir_pin(instance->name, pins[PIN_STATE], weir_guard_state_fd(guard), diag);

	if (!err)
		err = pin_if_there(instance->name, pins[PIN_SETS], weir_guard_sets_fd(guard), diag);
	if (!err)
		err = pin_if_there(instance->name, pins[PIN_TC_SETS], weir_guard_tc_sets_fd(guard), diag);
	if (!err)
		err = pin_copy(instance->name, pins[PIN_RULES], rules, instance->info.rule_slots, sizeof(*rules), diag);
	if (!err)
		err = pin_copy(instance->name, pins[PIN_RESOURCES], instance->resources, instance->info.resource_slots,
			       sizeof(*instance->resources), diag);
	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++)
		err = pin_if_there(instance->name, weir_pin_of_guard(hook), weir_guard_program_fd(guard, hook), diag);
	return err;
}

int weir_guard_set_up(const struct weir_instance *instance, const struct weir_rule_info *rules,
		      const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS], uint64_t returns_ns,
		      struct weir_guard_object **ret_guard, struct weir_diag *diag)
{
	const struct weir_guard state = {.returns_ns = returns_ns, .generation = instance->info.generation + 1};
	_cleanup_(weir_guard_object_freep) struct weir_guard_object *guard = NULL;
	int err = weir_guard_load(new_fd, old_fd, &state, NULL, &guard, diag);

	weir_guard_remove(instance->name); /* left by a reload that was killed */
	if (!err)
		err = pin_guard(instance, rules, guard, diag);
	if (err) {
		weir_guard_remove(instance->name);
		return err;
	}
	*ret_guard = TAKE_PTR(guard);
	return 0;
}

/* ---- reading ---- */

static uint32_t program_id(int fd)
{
	struct bpf_prog_info info = {};
	__u32 info_bytes = sizeof(info);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &info_bytes) ? 0 : info.id;
}

static bool is_on_a_link_of(const struct weir_instance *instance, enum weir_hook hook)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance->name, weir_pin_of_guard(hook));
	const uint32_t id = program_id(fd);

	for (size_t i = 0; id && i < instance->link_count; i++)
		if (instance->links[i].ifindex && instance->links[i].program_id == id)
			return true;
	return false;
}

static bool is_on_a_link(const struct weir_instance *instance)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		if (is_on_a_link_of(instance, hook))
			return true;
	return false;
}

static bool read_state(const char *instance, struct weir_guard *ret_state)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pins[PIN_STATE]);
	const uint32_t zero = 0;

	return fd >= 0 && !bpf_map_lookup_elem(fd, &zero, ret_state);
}

static bool is_of(const struct weir_instance *instance, const struct weir_guard *state)
{
	return state->generation == instance->info.generation || is_on_a_link(instance);
}

int weir_instance_open_program(const struct weir_instance *instance, enum weir_hook hook)
{
	struct weir_guard state;
	const bool has_guard = read_state(instance->name, &state) && is_of(instance, &state);

	return weir_pin_open(instance->name, has_guard ? weir_pin_of_guard(hook) : weir_pin_of_program(hook));
}

void weir_guard_look(struct weir_instance *instance)
{
	struct weir_guard state;

	instance->unconfirmed = (struct weir_unconfirmed){};
	if (read_state(instance->name, &state) && state.returns_ns != WEIR_GUARD_NEVER && is_of(instance, &state))
		instance->unconfirmed = (struct weir_unconfirmed){
			.is_so = true, .returns_ns = state.returns_ns, .generation = state.generation};
}

/* The first program that the load has: all of them have the same rules. */
uint32_t weir_instance_program_id(const struct weir_instance *instance)
{
	enum weir_hook hook = WEIR_HOOK_XDP;
	_cleanup_(weir_closep) int fd = -1;

	while (hook < WEIR_HOOKS - 1 && !weir_pin_is_there(instance->name, weir_pin_of_program(hook)))
		hook++;

	if (!is_on_a_link(instance))
		for (size_t i = 0; i < instance->link_count; i++)
			if (instance->links[i].ifindex && instance->links[i].hook == hook)
				return instance->links[i].program_id;
	fd = weir_pin_open(instance->name, weir_pin_of_program(hook));
	if (fd >= 0)
		return program_id(fd);
	return instance->link_count ? instance->links[0].program_id : 0;
}

bool weir_guard_is_left(const struct weir_instance *instance)
{
	struct weir_guard state;

	return read_state(instance->name, &state) && state.returns_ns == WEIR_GUARD_NEVER && is_of(instance, &state);
}

bool weir_unconfirmed_is_over(const struct weir_unconfirmed *unconfirmed)
{
	return unconfirmed->is_so && weir_host_boot_ns() >= unconfirmed->returns_ns;
}

uint64_t weir_unconfirmed_left_s(const struct weir_unconfirmed *unconfirmed)
{
	const uint64_t now_ns = weir_host_boot_ns();

	if (!unconfirmed->is_so || now_ns >= unconfirmed->returns_ns)
		return 0;
	return (unconfirmed->returns_ns - now_ns + WEIR_NSEC_PER_SEC - 1) / WEIR_NSEC_PER_SEC;
}

/* ---- deciding ---- */

int weir_guard_confirm(const char *instance)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pins[PIN_STATE]);
	volatile struct weir_guard *state = fd < 0 ? NULL : weir_guard_map(fd);
	uint64_t returns_ns;
	bool is_late;

	if (!state)
		return fd < 0 ? fd : -errno;
	returns_ns = state->returns_ns;
	__atomic_store_n(&state->returns_ns, WEIR_GUARD_NEVER, __ATOMIC_SEQ_CST);
	/* If the time had passed before that store, packets have already gone to the old rules, and must stay there. */
	is_late = weir_host_boot_ns() >= returns_ns;
	if (is_late)
		__atomic_store_n(&state->returns_ns, returns_ns, __ATOMIC_SEQ_CST);
	weir_guard_unmap(state);
	return is_late ? -ETIME : 0;
}

static void *read_copy(const char *instance, const char *pin, uint32_t count, size_t value_bytes)
{
	_cleanup_(weir_closep) int fd = weir_pin_open(instance, pin);
	_cleanup_(weir_freep) void *values = calloc(count + 1, value_bytes);
	struct bpf_map_info info = {};
	__u32 info_bytes = sizeof(info);

	if (fd < 0 || !values || bpf_obj_get_info_by_fd(fd, &info, &info_bytes) || info.value_size != value_bytes ||
	    info.max_entries != count || weir_array_read(fd, values, count, value_bytes))
		return NULL;
	return TAKE_PTR(values);
}

void weir_guard_take_back(const struct weir_instance *instance, struct weir_previous *previous)
{
	_cleanup_(weir_freep) struct weir_rule_info *rules =
		read_copy(instance->name, pins[PIN_RULES], instance->info.rule_slots, sizeof(*rules));
	_cleanup_(weir_freep) struct weir_resource_info *resources =
		read_copy(instance->name, pins[PIN_RESOURCES], instance->info.resource_slots, sizeof(*resources));

	if (rules && resources) /* otherwise another version kept them, and its rules start afresh */
		weir_previous_take_back(previous, rules, resources, weir_host_now_ns());
}

/* ---- more hooks, before the decision ---- */

struct weir_guard_maps weir_guard_open_maps(const char *instance)
{
	return (struct weir_guard_maps){weir_pin_open(instance, pins[PIN_STATE]),
					weir_pin_open(instance, pins[PIN_SETS]),
					weir_pin_open(instance, pins[PIN_TC_SETS])};
}

int weir_guard_pin_more(const char *instance, const struct weir_guard_object *guard, const struct weir_guard_maps *maps,
			struct weir_diag *diag)
{
	int err = maps->sets_fd >= 0 ? 0 : pin_if_there(instance, pins[PIN_SETS], weir_guard_sets_fd(guard), diag);

	if (!err && maps->tc_sets_fd < 0)
		err = pin_if_there(instance, pins[PIN_TC_SETS], weir_guard_tc_sets_fd(guard), diag);
	for (int hook = 0; !err && hook < WEIR_HOOKS; hook++)
		err = pin_if_there(instance, weir_pin_of_guard(hook), weir_guard_program_fd(guard, hook), diag);
	return err;
}

void weir_guard_unpin_more(const char *instance, const struct weir_guard_object *guard,
			   const struct weir_guard_maps *maps)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		if (weir_guard_program_fd(guard, hook) >= 0)
			weir_unpin(instance, weir_pin_of_guard(hook));
	if (maps->sets_fd < 0)
		weir_unpin(instance, pins[PIN_SETS]);
	if (maps->tc_sets_fd < 0)
		weir_unpin(instance, pins[PIN_TC_SETS]);
}

/* The unconfirmed rules have programs for incoming packets only behind the guard: those for timed entries. */
bool weir_guard_has_entries(const struct weir_instance *instance)
{
	for (int hook = 0; hook < WEIR_HOOKS; hook++)
		if (!weir_hook_is_out(hook) && weir_pin_is_there(instance->name, weir_pin_of_program(hook)))
			return false;
	return weir_pin_is_there(instance->name, weir_pin_of_guard(WEIR_HOOK_XDP)) ||
	       weir_pin_is_there(instance->name, weir_pin_of_guard(WEIR_HOOK_TC_IN));
}
