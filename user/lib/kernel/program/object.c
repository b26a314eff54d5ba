// SPDX-License-Identifier: GPL-2.0-only
#include "program/object.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "program/maps.h"
#include "program/object_internal.h"
#include "program/penalty_map.h"
#include "program/top_drops.h"
#include "weir.skel.h"

/* ---- sizes and configuration, before loading ---- */

static struct bpf_map *table_map(const struct weir_object *object, enum weir_table_id map)
{
	return weir_map_find(object->skel->obj, weir_table_name(map));
}

static int set_sizes(const struct weir_object *object, const struct weir_image *image)
{
	const struct weir_bpf *skel = object->skel;
	const struct {
		struct bpf_map *map;
		__u32 entries;
	} sizes[] = {
		{skel->maps.vectors, image->vector_count},
		{skel->maps.prefix_nodes, image->prefix_node_count},
		{skel->maps.interfaces, weir_image_interface_entries(image)},
		{skel->maps.overrides, image->override_count},
		{skel->maps.notes, weir_image_note_sets(image)},
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(sizes); i++)
		err = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries ?: 1);
	for (int table = 0; !err && table < WEIR_TABLE_COUNT; table++)
		err = bpf_map__set_max_entries(table_map(object, table),
					       weir_table_entries(table, image->config.sizes[table]));
	return err;
}

static int reuse_maps(const struct weir_object *object, const struct weir_object_options *options)
{
	for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++) {
		int err = 0;

		if (options->reuse_fd[map] > 0)
			err = bpf_map__reuse_fd(table_map(object, map), options->reuse_fd[map]);
		if (err)
			return err;
	}
	return 0;
}

/* A request this small returns all bytes or fails (getrandom(2)). */
static int fill_random(void *ret_bytes, size_t bytes)
{
	while (getrandom(ret_bytes, bytes, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int make_seed(struct weir_object *object, const struct weir_object_options *options)
{
	int err;

	if (options->seed) {
		memcpy(object->seed, options->seed, sizeof(object->seed));
		return 0;
	}
	err = fill_random(object->seed, sizeof(object->seed));
	if (err)
		return err;
	/* The hash ends with multiplications by these two; an even factor would lose bits. */
	object->seed[14] |= 1;
	object->seed[15] |= 1;
	return 0;
}

/* The tables in the program's global data, which before loading are plain memory. */
static void set_tables(struct weir_generation *tables, const struct weir_image *image, const __u64 seed[])
{
	memcpy(&tables->classes, image->classes, sizeof(tables->classes));
	memcpy(tables->label_root, image->label_root, sizeof(tables->label_root));
	for (__u32 i = 0; i < image->vector_count && i < WEIR_ONLY_WORDS; i++)
		tables->only_word[i] = image->vectors[i].word[0];
	if (image->except)
		memcpy(tables->except, image->except, image->resource_count * sizeof(*image->except));
	if (image->resource_count)
		memcpy(tables->place, image->place, image->resource_count * sizeof(*image->place));
	if (image->resource_count)
		memcpy(tables->resources, image->resources, image->resource_count * sizeof(*image->resources));
	if (image->rule_count)
		memcpy(tables->rules, image->rules, (image->rule_count + image->shadow_count) * sizeof(*image->rules));
	for (__u32 i = 0; i < image->rule_count + image->shadow_count; i++) {
		tables->rules[i].source_hash[0] = weir_source_hash(&tables->rules[i], seed, 4);
		tables->rules[i].source_hash[1] = weir_source_hash(&tables->rules[i], seed, 6);
	}
}

/* In the harness a tick is a nanosecond of the virtual clock. */
static int set_tick(struct weir_object *object, const struct weir_object_options *options, struct weir_config *config,
		    struct weir_diag *diag)
{
	int err = 0;

	config->tick_ns = options->is_virtual ? 1 : weir_host_tick_ns();
	object->tick_origin_ns = options->tick_origin_ns;
	if (!options->is_virtual && !object->tick_origin_ns)
		err = weir_tick_find_origin(config->tick_ns, &object->tick_origin_ns, diag);
	config->tick_origin_ns = object->tick_origin_ns;
	return err;
}

static int configure(struct weir_object *object, const struct weir_image *image,
		     const struct weir_object_options *options, struct weir_diag *diag)
{
	struct weir_config config = image->config;
	int err;

	err = make_seed(object, options) ?: fill_random(&config.load, sizeof(config.load));
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot get random bytes for the hash seed");
	memcpy(config.seed, object->seed, sizeof(config.seed));
	config.load |= 1; /* never 0, the value in a new map */
	config.program = weir_object_identity();
	config.is_virtual = options->is_virtual;
	config.shortcuts = WEIR_SHORTCUTS_ALL & ~options->without_shortcuts;
	config.asked_fields |= weir_asks_beside_fields(&config);
	err = set_tick(object, options, &config, diag);
	if (err)
		return err;
	config.is_weakly_ordered = weir_host_is_weakly_ordered();
	config.has_only_words = image->config.vector_words == 1 && image->vector_count <= WEIR_ONLY_WORDS;
	/* The configuration is volatile because the program must not treat it as a constant; before loading it is plain
	 * memory.
	 */
	memcpy((void *)(uintptr_t)&object->skel->rodata->config, &config, sizeof(config));
	set_tables(&object->skel->bss->generation, image, object->seed);

	err = set_sizes(object, image);
	if (!err)
		err = weir_lists_size(object->skel->obj, &image->lists);
	if (!err)
		err = reuse_maps(object, options);
	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot set up the maps");
	return 0;
}

/* ---- contents of the maps, after loading ---- */

static int fill_array(const struct bpf_map *map, const void *values, __u32 count, struct weir_diag *diag)
{
	int err = weir_array_write(bpf_map__fd(map), values, count, bpf_map__value_size(map));

	return err ? weir_diag_fail(diag, -err, NULL, "cannot fill map '%s'", bpf_map__name(map)) : 0;
}

static int fill_entry(const struct bpf_map *map, const void *key, const void *value, struct weir_diag *diag)
{
	int err = bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY);

	return err ? weir_diag_fail(diag, -err, NULL, "cannot fill map '%s'", bpf_map__name(map)) : 0;
}

static int fill_overrides(const struct bpf_map *map, const struct weir_image *image, const uint64_t *hashes,
			  struct weir_diag *diag)
{
	int err = 0;

	for (__u32 i = 0; !err && i < image->override_count; i++) {
		const struct weir_image_override *override = &image->overrides[i];
		struct weir_override_key key = override->key;

		if (override->label)
			memcpy(key.address, &hashes[override->label - 1], sizeof(*hashes));
		err = fill_entry(map, &key, &override->units, diag);
	}
	return err;
}

/* Write the hashes of labels behind the nodes of tries (weir_prefixes.h), beside their weights. */
static int fill_labels(const struct bpf_map *map, const struct weir_image *image, const uint64_t *hashes,
		       struct weir_diag *diag)
{
	const uint32_t first = image->config.label_first, count = image->prefix_node_count - first;
	_cleanup_(weir_freep) struct weir_label_node *nodes = calloc(count, sizeof(*nodes));
	_cleanup_(weir_freep) uint32_t *keys = calloc(count, sizeof(*keys));
	int err = nodes && keys ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < count; i++)
		keys[i] = first + i;
	if (!err)
		memcpy(nodes, &image->prefix_nodes[first], count * sizeof(*nodes));
	for (uint64_t number = 1; !err && number <= image->labels->count; number++)
		nodes[number / WEIR_LABELS_PER_NODE].hash[number % WEIR_LABELS_PER_NODE] = hashes[number - 1];
	if (!err)
		err = weir_array_write_some(bpf_map__fd(map), keys, nodes, count, sizeof(*nodes));
	return err ? weir_diag_fail(diag, -err, NULL, "cannot fill map '%s'", bpf_map__name(map)) : 0;
}

static int fill_generation(struct weir_object *object, const struct weir_image *image,
			   const struct weir_object_options *options, struct weir_diag *diag)
{
	static const __u64 no_secret[16]; /* so that two virtual loads know a flow by the same key */
	_cleanup_(weir_freep) uint64_t *hashes =
		calloc((image->labels ? image->labels->count : 0) + 1, sizeof(*hashes));
	const struct weir_bpf *skel = object->skel;
	int err;

	if (!hashes || weir_labels_copy(image->labels, &object->labels))
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot fill the maps");
	if (object->labels)
		weir_labels_hash(object->labels, options->is_virtual ? no_secret : object->seed, hashes);
	err = fill_array(skel->maps.vectors, image->vectors, image->vector_count, diag);
	if (!err)
		err = fill_array(skel->maps.thresholds, image->pushed, image->rule_count, diag);
	if (!err)
		err = fill_overrides(skel->maps.overrides, image, hashes, diag);
	if (!err)
		err = fill_array(skel->maps.prefix_nodes, image->prefix_nodes, image->prefix_node_count, diag);
	if (!err && image->labels)
		err = fill_labels(skel->maps.prefix_nodes, image, hashes, diag);
	for (__u32 i = 0; !err && i < image->interface_count; i++)
		err = fill_entry(skel->maps.interfaces, &image->interfaces[i].ifindex, &image->interfaces[i].vector,
				 diag);
	if (!err)
		err = weir_lists_fill(skel->obj, &image->lists, diag);
	return err;
}

/* Clear, on all CPUs, what earlier rules left in the slots that this load assigns. */
static int clear_slots(const struct bpf_map *map, const bool *is_fresh, __u32 slots, struct weir_diag *diag)
{
	int cpus = weir_host_cpus();
	_cleanup_(weir_freep) void *zeros = NULL;

	if (cpus < 0)
		return weir_diag_fail(diag, -cpus, NULL, "cannot find out how many CPUs there are");
	/* The system call transfers values of per-CPU maps in multiples of eight bytes, one value for each CPU. */
	zeros = calloc(cpus, ((size_t)bpf_map__value_size(map) + 7) / 8 * 8);
	if (!zeros)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot clear map '%s'", bpf_map__name(map));
	for (__u32 slot = 0; slot < slots; slot++) {
		int err = is_fresh[slot] ? bpf_map_update_elem(bpf_map__fd(map), &slot, zeros, BPF_ANY) : 0;

		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot clear map '%s'", bpf_map__name(map));
	}
	return 0;
}

/* Clear single words, because a controller may be writing schedules for other rules' flows at the same time. */
static int forget_flow_shares(const struct weir_object *object, uint32_t slot)
{
	struct weir_flow_share_set *sets = weir_array_map(weir_object_map_fd(object, WEIR_TABLE_FLOW_SHARES),
							  WEIR_FLOW_SHARE_SETS, sizeof(*sets), true);

	if (!sets)
		return -errno;
	for (uint32_t place = 0; place < WEIR_FLOW_SHARES; place++) {
		struct weir_flow_share *share = &sets[place / WEIR_FLOW_SHARE_WAYS].way[place % WEIR_FLOW_SHARE_WAYS];

		if (share->owner && share->slot == slot)
			__atomic_store_n(&share->owner, 0, __ATOMIC_RELEASE);
	}
	weir_array_unmap(sets, WEIR_FLOW_SHARE_SETS, sizeof(*sets));
	return 0;
}

/* A share belongs to one rule. Forget what another rule left in the slot, and what this rule left when hosts shared it
 * at an earlier time.
 */
static int forget_shares(const struct weir_object *object, const struct weir_image *image,
			 const struct weir_rule_info *previous, struct weir_diag *diag)
{
	static const struct weir_shared_threshold none;
	int fd = weir_object_map_fd(object, WEIR_TABLE_SHARES), err;

	for (uint32_t slot = 0; slot < image->rule_slots; slot++) {
		if (image->rule_info[slot].state != WEIR_SLOT_USED || !image->rule_info[slot].cluster)
			continue;
		if (!image->fresh_rule_slots[slot] && previous && previous[slot].state == WEIR_SLOT_USED &&
		    previous[slot].cluster)
			continue;
		err = bpf_map_update_elem(fd, &slot, &none, BPF_ANY) ? -errno : forget_flow_shares(object, slot);
		if (err)
			return weir_diag_fail(diag, -err, NULL, "cannot begin to share");
	}
	return 0;
}

/* Shared sets are searched by slot and key, and would find flows of a slot's former owner. */
static int forget_penalties(const struct weir_object *object, const struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_tables tables = weir_object_tables(object, image);
	struct weir_penalties penalties = {};
	int err = weir_penalties_map(&penalties, &tables, true);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot clear map '%s'", "penalised_flows");
	weir_penalties_forget(&penalties, image->fresh_rule_slots);
	weir_penalties_unmap(&penalties);
	return 0;
}

static int forget_top_drops(const struct weir_object *object, const struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_bpf *skel = object->skel;
	const struct weir_top_drops_maps maps = {
		.sets_fd = bpf_map__fd(skel->maps.top_drops),
		.keys_fd = bpf_map__fd(skel->maps.top_drop_keys),
		.totals_fd = bpf_map__fd(skel->maps.totals),
	};
	struct weir_top_drops top_drops = {};
	int err = weir_top_drops_map(&top_drops, &maps, bpf_map__max_entries(skel->maps.top_drops), true);

	if (err)
		return weir_diag_fail(diag, -err, NULL, "cannot clear map '%s'", "top_drops");
	weir_top_drops_forget(&top_drops, image->fresh_rule_slots, image->rule_slots);
	weir_top_drops_unmap(&top_drops);
	return 0;
}

/* Clear everything that a slot's former owner has left. */
static int clear_fresh_slots(const struct weir_object *object, const struct weir_image *image,
			     const struct weir_object_options *options, struct weir_diag *diag)
{
	const struct weir_bpf *skel = object->skel;
	const struct {
		int id;
		const struct bpf_map *map;
		bool is_used;
	} tables[] = {
		{WEIR_TABLE_LONE_ROWS, skel->maps.lone_rows, true},
		{WEIR_TABLE_RULE_COUNTERS, skel->maps.rule_counters, true},
		{WEIR_TABLE_RULE_ANSWERS, skel->maps.rule_answers, image->config.answers > 0},
		{WEIR_TABLE_THROTTLED_RESOURCES, skel->maps.throttled_resources, true},
		{WEIR_TABLE_OCCUPY_RESOURCES, skel->maps.occupy_resources,
		 image->config.sizes[WEIR_TABLE_OCCUPY_RESOURCES] > 0},
		{WEIR_TABLE_TOKEN_RESOURCES, skel->maps.token_resources, true},
		{WEIR_TABLE_LONE_CONNECTIONS, skel->maps.lone_connections,
		 image->config.sizes[WEIR_TABLE_LONE_CONNECTIONS] > 0},
		{WEIR_TABLE_CONNECTION_TOTALS, skel->maps.connection_totals,
		 image->config.sizes[WEIR_TABLE_LONE_CONNECTIONS] > 0},
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(tables); i++)
		if (options->reuse_fd[tables[i].id] > 0 && tables[i].is_used)
			err = clear_slots(tables[i].map, image->fresh_rule_slots, image->rule_slots, diag);
	if (!err && options->reuse_fd[WEIR_TABLE_RESOURCE_COUNTERS] > 0)
		err = clear_slots(skel->maps.resource_counters, image->fresh_resource_slots, image->resource_slots,
				  diag);
	if (!err && options->reuse_fd[WEIR_TABLE_PENALISED_RULES] > 0)
		err = forget_penalties(object, image, diag);
	if (!err && options->reuse_fd[WEIR_TABLE_TOP_DROPS] > 0)
		err = forget_top_drops(object, image, diag);
	if (!err && options->reuse_fd[WEIR_TABLE_SHARES] > 0)
		err = forget_shares(object, image, options->previous_rules, diag);
	return err;
}

/*
 * Fill the maps of the instance. New maps are all zeros and get their descriptions. In reused maps, slots that had
 * another owner are cleared. Reused descriptions are the caller's business: they change when the program does.
 */
static int fill_instance(const struct weir_object *object, const struct weir_image *image,
			 const struct weir_object_options *options, struct weir_diag *diag)
{
	const struct weir_moving_fds moving = weir_object_moving_fds(object);
	const struct weir_bpf *skel = object->skel;
	int err;

	/* Published window specs never change, so this rewrites existing ones unchanged and adds the new ones. */
	err = fill_array(skel->maps.window_specs, image->specs, image->spec_count, diag);
	if (!err && options->reuse_fd[WEIR_TABLE_RULE_INFO] <= 0)
		err = fill_array(skel->maps.rule_info, image->rule_info, image->rule_slots, diag);
	if (!err && options->reuse_fd[WEIR_TABLE_RESOURCE_INFO] <= 0)
		err = fill_array(skel->maps.resource_info, image->resource_info, image->resource_slots, diag);
	if (!err)
		err = clear_fresh_slots(object, image, options, diag);
	if (!err)
		err = weir_thresholds_start(image, options->previous_rules, options->now_ns, &moving, diag);
	return err;
}

static size_t harness_bytes(void)
{
	size_t page_bytes = sysconf(_SC_PAGESIZE);

	return (sizeof(struct weir_harness) + page_bytes - 1) / page_bytes * page_bytes;
}

int weir_object_map_harness(struct weir_object *object, struct weir_diag *diag)
{
	void *harness = mmap(NULL, harness_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(object->skel->maps.harness), 0);

	if (harness == MAP_FAILED)
		return weir_diag_fail(diag, errno, NULL, "cannot map the virtual clock");
	object->harness = harness;
	return 0;
}

/* ---- the contract ---- */

struct weir_object *weir_object_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	_cleanup_(weir_object_freep) struct weir_object *object = calloc(1, sizeof(*object));

	pthread_once(&once, weir_object_register_handlers);
	weir_object_hear_libbpf(); /* otherwise libbpf would print to stderr */
	if (object)
		object->skel = weir_bpf__open();
	return object && object->skel ? TAKE_PTR(object) : NULL;
}

int weir_object_load_opened(struct weir_object *object, uint32_t hooks, struct weir_diag *diag)
{
	_cleanup_(weir_object_free_listener) struct listener listener = {};
	_cleanup_(weir_object_stop_preparing) struct preparation preparation = {
		.object = object->skel->obj,
		.constants = object->is_unfolded ? NULL : object->skel->maps.rodata,
	};
	int err;

	weir_object_start_listening(&listener);
	weir_object_start_preparing(&preparation);
	weir_object_skip_module_btfs(object->skel->progs.weir_ingress);
	bpf_program__set_autoload(object->skel->progs.weir_ingress, hooks >> WEIR_HOOK_XDP & 1);
	err = weir_bpf__load(object->skel);
	weir_object_stop_listening(&listener);
	if (err)
		return weir_object_explain_load_failure(err, &listener, diag);
	err = weir_object_load_tc(object, hooks, diag);
	for (enum weir_hook hook = 0; !err && hook < WEIR_HOOKS; hook++)
		if (hooks >> hook & 1 && weir_program_bind_shared(weir_object_hook_fd(object, hook), object->skel->obj))
			err = weir_diag_fail(diag, errno, NULL, "cannot set up the maps");
	return err;
}

int weir_object_try_load(const struct weir_image *image, const struct weir_object_options *options,
			 struct weir_object **ret_object, struct weir_diag *diag)
{
	_cleanup_(weir_object_freep) struct weir_object *object = weir_object_open();
	uint32_t hooks = options->hooks ?: 1u << WEIR_HOOK_XDP;
	int err;

	/* The harness has no interfaces whose hooks could be looked up. */
	if (options->is_virtual && image->config.limits_out)
		hooks |= 1u << WEIR_HOOK_TC_OUT;
	if (!object)
		return weir_diag_fail(diag, errno, NULL, "cannot open the BPF object");
	object->is_unfolded = options->is_unfolded;
	err = configure(object, image, options, diag);
	if (!err)
		err = weir_object_load_opened(object, hooks, diag);
	if (!err)
		err = fill_generation(object, image, options, diag);
	if (!err && !options->is_trial)
		err = fill_instance(object, image, options, diag);
	if (!err && options->is_virtual)
		err = weir_object_map_harness(object, diag);
	if (err)
		return err;
	*ret_object = TAKE_PTR(object);
	return 0;
}

void weir_object_free(struct weir_object *object)
{
	if (!object)
		return;
	if (object->harness)
		munmap(object->harness, harness_bytes());
	weir_object_free_tc(object);
	weir_bpf__destroy(object->skel);
	free(object->labels);
	free(object);
}

int weir_object_program_fd(const struct weir_object *object)
{
	const int fd = bpf_program__fd(object->skel->progs.weir_ingress);

	return fd < 0 ? -1 : fd;
}

int weir_object_hook_fd(const struct weir_object *object, enum weir_hook hook)
{
	return hook == WEIR_HOOK_XDP ? weir_object_program_fd(object) : weir_object_tc_fd(object, hook);
}

enum weir_hook weir_object_hook_in(const struct weir_object *object)
{
	return weir_object_program_fd(object) >= 0 ? WEIR_HOOK_XDP : WEIR_HOOK_TC_IN;
}

int weir_object_map_fd(const struct weir_object *object, enum weir_table_id map)
{
	return bpf_map__fd(table_map(object, map));
}

int weir_object_own_map_fd(const struct weir_object *object, const char *name)
{
	return bpf_map__fd(weir_map_find(object->skel->obj, name));
}

int weir_object_thresholds_fd(const struct weir_object *object)
{
	return bpf_map__fd(object->skel->maps.thresholds);
}

struct weir_moving_fds weir_object_moving_fds(const struct weir_object *object)
{
	return (struct weir_moving_fds){
		.thresholds = weir_object_thresholds_fd(object),
		.rule_seconds = weir_object_map_fd(object, WEIR_TABLE_RULE_SECONDS),
		.warm_states = weir_object_map_fd(object, WEIR_TABLE_WARM_STATES),
	};
}

const struct weir_key_labels *weir_object_labels(const struct weir_object *object)
{
	return object->labels;
}

const __u64 *weir_object_seed(const struct weir_object *object)
{
	return object->seed;
}

__u64 weir_object_tick_origin_ns(const struct weir_object *object)
{
	return object->tick_origin_ns;
}

volatile struct weir_harness *weir_object_harness(const struct weir_object *object)
{
	return object->harness;
}
