// SPDX-License-Identifier: GPL-2.0-only
#include "explain/explain.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>

#include "base/util.h"
#include "explain/flow_state.h"
#include "sandbox/sandbox_program.h"
#include "explain/match_fields.h"
#include "host/host.h"
#include "kind/kind.h"
#include "program/array.h"
#include "program/copy.h"
#include "state/dropped_flows.h"
#include "tables/rule_kind.h"

/* The state of one explanation. It owns what the pointers refer to. */
struct work {
	struct weir_explanation *result;
	const struct weir_question *question;
	const struct weir_ruleset *ruleset; /* NULL: explaining an instance */
	const struct weir_rule_info *infos; /* by slot */
	uint32_t slots, rule_count;
	uint32_t asked_fields; /* enum weir_match_field, or-ed: the fields that any resource compares */
	struct weir_sandbox sandbox;
	struct weir_sandbox_run run;
	struct weir_harness_flow *flows; /* under the user's rules, in the order of evaluation */
	uint8_t *observes;		 /* `observes` of these rules, as written */
	uint32_t flow_count;
	/* The vectors as they were, if so little of the packet is given that it could match more resources than a real
	 * packet can. Then the resources are tried one after the other.
	 */
	__u64 *words;
	cpu_set_t before;
};

static void free_work(struct work *work)
{
	weir_sandbox_free(&work->sandbox);
	free(work->flows);
	free(work->observes);
	free(work->words);
}

static int fail(struct weir_diag *diag, int err)
{
	return weir_diag_fail(diag, -err, NULL, "cannot run the program on the packet");
}

/* ---- which CPU ---- */

/* Rows are per CPU, so the packet is evaluated on the CPU that saw the flow last, or, if that CPU may not be used, on
 * any.
 */
static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void go_to_flow(const struct work *work, const struct weir_harness_flow *flow)
{
	const int cpu = weir_find_cpu_of_flow(&work->sandbox, flow);

	if (cpu >= 0)
		go_to(cpu);
}

/* ---- what the packet meets ---- */

static const char *resource_name(const struct work *work, uint32_t place)
{
	const struct weir_instance *instance = work->result->opened;

	if (work->ruleset)
		return place < work->ruleset->resource_count ? work->ruleset->resources[place].name : "?";
	return place < instance->resource_count ? instance->resources[instance->resource_order[place]].name : "?";
}

/* If no protocol is given, the address still shows the family. */
static int may_match(const struct work *work, uint32_t place)
{
	const int bit = weir_resource_bit(work->result->object, place);

	if (work->question->known & WEIR_MATCH_KIND || bit < 0)
		return true;
	return weir_resource_takes_family(work->result->object, bit, work->question->direction,
					  work->question->is_ipv6);
}

/* Note the fields that the resource compares but that are not given: because of them it is uncertain whether it
 * matches.
 */
static int note_unknown(struct work *work, uint32_t place)
{
	const int bit = weir_resource_bit(work->result->object, place);
	const uint32_t unknown = work->asked_fields & ~work->question->known;
	int64_t asked = 0;

	if (unknown && bit >= 0)
		asked = weir_fields_asked(work->result->object, bit, work->question->direction, unknown);
	if (asked < 0)
		return (int)asked;
	work->result->unknown |= asked;
	return 0;
}

static int keep_resource(struct work *work, uint32_t place)
{
	const char **name;
	int may = may_match(work, place);

	if (may <= 0)
		return may;
	name = weir_array_add((void **)&work->result->resources, work->result->resource_count, sizeof(*name));
	if (!name)
		return -ENOMEM;
	*name = resource_name(work, place);
	work->result->resource_count++;
	return note_unknown(work, place);
}

static bool has_flow(const struct work *work, uint32_t place)
{
	for (uint32_t i = 0; i < work->flow_count; i++)
		if (work->flows[i].place == place)
			return true;
	return false;
}

/* Hidden rules, such as shadow windows and the rule that tracks connections, come after the user's rules. */
static int keep_flow(struct work *work, const struct weir_harness_flow *flow)
{
	const struct weir_rule *rule = &weir_object_generation(work->result->object)->rules[flow->place];
	struct weir_harness_flow *kept;
	int err;

	if (has_flow(work, flow->place))
		return 0;
	/* A system rule has no resource. */
	err = work->infos[rule->slot].system ? 1 : may_match(work, rule->resource);
	if (err <= 0)
		return err;
	err = weir_sandbox_add(&work->sandbox, flow);
	if (err || flow->place >= work->rule_count)
		return err;
	kept = weir_array_add((void **)&work->flows, work->flow_count, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	*kept = *flow;
	work->flow_count++;
	return 0;
}

/* Run the packet once on empty tables, only to find out which resources, rules and flows it meets. */
static int find_flows(struct work *work)
{
	volatile struct weir_harness *harness = weir_object_harness(work->result->object);
	int err;

	harness->wants_flows = 1;
	err = weir_sandbox_run_evaluate(&work->run, work->run.now_ns);
	harness->wants_flows = 0;
	if (err > 0)
		err = 0;
	for (uint32_t i = 0; !err && i < harness->resource_count && i < WEIR_PACKET_RESOURCES_MAX; i++)
		err = keep_resource(work, harness->resource[i]);
	for (uint32_t i = 0; !err && i < harness->flow_count && i < WEIR_PACKET_RULES_MAX; i++) {
		const struct weir_harness_flow flow = harness->flow[i];

		err = flow.place < WEIR_RULES_MAX ? keep_flow(work, &flow) : -EPROTO;
	}
	return err;
}

/* Let the packet match only one resource, or (bit < 0) all that it matches. */
static void mask_resources(const struct work *work, int bit)
{
	struct weir_generation *generation = weir_object_generation(work->result->object);

	for (int i = 0; work->words && i < WEIR_ONLY_WORDS; i++)
		generation->only_word[i] = work->words[i] & (bit < 0 ? UINT64_MAX : 1ull << bit);
}

static int find_flows_one_by_one(struct work *work)
{
	const struct weir_config *config = weir_object_config(work->result->object);
	const struct weir_generation *generation = weir_object_generation(work->result->object);
	int err = 0;

	if (!config->has_only_words)
		return -E2BIG;
	work->words = calloc(WEIR_ONLY_WORDS, sizeof(*work->words));
	if (!work->words)
		return -ENOMEM;
	memcpy(work->words, generation->only_word, sizeof(generation->only_word));
	for (uint32_t bit = 0; !err && bit < config->resource_count; bit++) {
		mask_resources(work, (int)bit);
		err = find_flows(work);
	}
	return err;
}

static int compare_flows(const void *left, const void *right)
{
	const struct weir_harness_flow *a = left, *b = right;

	return (a->place > b->place) - (a->place < b->place);
}

static int find_all_flows(struct work *work)
{
	const uint32_t unknown = work->asked_fields & ~work->question->known;
	int err = weir_settle_excepts(&work->run, work->question->direction, unknown) ?: find_flows(work);

	if (!err && unknown && weir_object_harness(work->result->object)->verdict == WEIR_VERDICT_ERROR)
		err = find_flows_one_by_one(work);
	if (work->flow_count)
		qsort(work->flows, work->flow_count, sizeof(*work->flows), compare_flows);
	return err;
}

/* ---- each rule ---- */

/* Fields that the rule's key needs, and those that tell its children apart. */
static uint32_t fields_of(const struct work *work, const struct weir_rule *rule)
{
	const struct weir_generation *generation = weir_object_generation(work->result->object);
	uint32_t fields = weir_fields_of_key(rule, work->question->direction);

	if (rule->bar == WEIR_BAR_LEVEL)
		fields |= weir_fields_of_key(&generation->rules[rule->shadow % WEIR_RULES_MAX],
					     work->question->direction);
	return fields;
}

/* Run the packet with this rule alone. */
static int try_rule(struct work *work, const struct weir_harness_flow *flow, struct weir_explained_rule *explained)
{
	const struct weir_rule *rule = &weir_object_generation(work->result->object)->rules[flow->place];
	volatile struct weir_harness *harness = weir_object_harness(work->result->object);
	int err;

	go_to_flow(work, flow);
	if (work->words && !explained->info->system)
		mask_resources(work, weir_resource_bit(work->result->object, rule->resource));
	weir_sandbox_run_isolate(&work->run, work->flows, work->flow_count, flow->place);
	err = weir_sandbox_run_evaluate(&work->run, work->run.now_ns);
	if (err >= 0) {
		explained->admits = harness->verdict == WEIR_VERDICT_PASS;
		explained->delay_ns = harness->wait_ns;
		err = weir_read_warm_up(&(struct weir_flow_reader){.sandbox = &work->sandbox}, flow, explained);
	}
	if (!err)
		err = weir_sandbox_run_wait(&work->run, WEIR_VERDICT_BLOCK, &explained->frees_ns);
	/* How many such packets pass cannot be determined if the rule depends on connections, outcomes or signals. */
	if (!err && !work->ruleset && weir_kind_has(weir_kinds[rule->kind % WEIR_KIND_COUNT], RULE_INTERVAL)) {
		explained->has_left = true;
		err = weir_sandbox_run_count(&work->run, WEIR_EXPLAINED_MOST, &explained->left);
	}
	weir_sandbox_run_restore(&work->run, work->flows, work->flow_count, work->observes);
	if (explained->left > WEIR_EXPLAINED_MOST)
		explained->left = WEIR_EXPLAINED_MOST;
	return err < 0 ? err : 0;
}

static int explain_rule(struct work *work, const struct weir_harness_flow *flow, struct weir_explained_rule *explained)
{
	const struct weir_rule *rule = &weir_object_generation(work->result->object)->rules[flow->place];
	const struct weir_flow_reader reader = {
		.sandbox = &work->sandbox,
		.controller = work->ruleset ? NULL : &work->result->controller,
		.now_ns = work->run.now_ns,
	};
	int err;

	if (rule->slot >= work->slots)
		return -EPROTO;
	explained->info = &work->infos[rule->slot];
	if (work->ruleset)
		explained->place = work->ruleset->rules[flow->place].place;
	explained->missing = fields_of(work, rule) & ~work->question->known;
	if (explained->missing)
		return 0;
	explained->key = flow->key;
	err = weir_read_flow_state(&reader, flow, explained);
	return err ? err : try_rule(work, flow, explained);
}

static int explain_rules(struct work *work)
{
	const struct weir_generation *generation = weir_object_generation(work->result->object);
	int err = 0;

	work->result->rules = calloc(work->flow_count + 1, sizeof(*work->result->rules));
	work->observes = malloc(work->flow_count + 1);
	if (!work->result->rules || !work->observes)
		return -ENOMEM;
	for (uint32_t i = 0; i < work->flow_count; i++)
		work->observes[i] = generation->rules[work->flows[i].place].observes;
	for (uint32_t i = 0; !err && i < work->flow_count; i++) {
		err = explain_rule(work, &work->flows[i], &work->result->rules[i]);
		work->result->rule_count += !err;
	}
	return err;
}

/* ---- all of them together ---- */

/* Note the missing fields that the packet's rules need, for their keys or because of their kinds. */
static void note_fields_of_rules(struct work *work)
{
	const struct weir_generation *generation = weir_object_generation(work->result->object);

	for (uint32_t i = 0; i < work->flow_count; i++) {
		const struct weir_rule *rule = &generation->rules[work->flows[i].place];

		uint32_t of_kind = rule->kind < WEIR_KIND_COUNT ? weir_kinds[rule->kind]->packet_fields : 0;

		/* For a connection that does not exist yet, the fields that distinguish connections do not matter. */
		if (work->question->is_new)
			of_kind &= ~(WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION | WEIR_MATCH_SOURCE_PORT |
				     WEIR_MATCH_DESTINATION_PORT);
		work->result->unknown |= (fields_of(work, rule) | of_kind) & ~work->question->known;
	}
}

static int find_verdict(struct work *work)
{
	volatile struct weir_harness *harness = weir_object_harness(work->result->object);
	struct weir_explanation *result = work->result;
	int action;

	if (work->flow_count)
		go_to_flow(work, &work->flows[0]);
	action = weir_sandbox_run_evaluate(&work->run, work->run.now_ns);
	if (action < 0)
		return action;
	result->verdict = harness->verdict;
	result->passes = action == XDP_PASS;
	result->delay_ns = harness->wait_ns;
	if (result->verdict == WEIR_VERDICT_DENY || result->verdict == WEIR_VERDICT_ALLOW)
		return weir_sandbox_run_wait(&work->run, result->verdict, &result->list_ends_ns);
	for (uint32_t i = 0; i < work->flow_count; i++)
		if (harness->rule == work->flows[i].place)
			result->blocked_by = result->rules[i].info;
	return weir_object_config(result->object)->answers ? weir_sandbox_run_answer(&work->run, &result->answer) : 0;
}

static int explain(struct work *work, struct weir_diag *diag)
{
	struct weir_explanation *result = work->result;
	const bool is_out = work->question->direction != WEIR_DIRECTION_IN;
	const struct weir_config *config = weir_object_config(result->object);
	const int cpu = sched_getcpu();
	int err;

	result->direction = work->question->direction;
	if (!(is_out ? config->limits_out : weir_instance_evaluates(result->opened, false))) {
		result->now_ns = weir_host_now_ns();
		result->verdict = WEIR_VERDICT_UNMATCHED_PASS;
		result->passes = true;
		return 0;
	}
	err = weir_sandbox_begin(&work->sandbox, result->object, result->opened);
	work->run = (struct weir_sandbox_run){
		.sandbox = &work->sandbox,
		.frame = work->question->frame,
		.frame_bytes = work->question->frame_bytes,
		.wire_bytes = work->question->wire_bytes,
		.ifindex = work->question->ifindex,
		.hook = is_out ? WEIR_HOOK_TC_OUT : weir_object_hook_in(result->object),
		.now_ns = weir_host_now_ns(),
	};
	if (!err && sched_getaffinity(0, sizeof(work->before), &work->before))
		err = -errno;
	if (err)
		return fail(diag, err);
	go_to(cpu < 0 ? 0 : cpu);
	err = find_all_flows(work);
	if (err == -E2BIG)
		return weir_diag_fail(diag, E2BIG, "describe the packet in more detail: --proto, --dport, ...",
				      "the packet could match too many resources");
	/* Take the time again after reading the tables, so that no row is newer than the time at which it is evaluated.
	 */
	work->run.now_ns = result->now_ns = weir_host_now_ns();
	if (!err)
		err = explain_rules(work);
	if (!err)
		err = find_verdict(work);
	note_fields_of_rules(work);
	/* Lists compare the remote end. A rule set from files has no timed entries. */
	if (config->has_lists || (config->has_timed && !work->ruleset))
		result->unknown |= (is_out ? WEIR_MATCH_DESTINATION : WEIR_MATCH_SOURCE) & ~work->question->known;
	sched_setaffinity(0, sizeof(work->before), &work->before);
	return err ? fail(diag, err) : 0;
}

/* ---- of an instance ---- */

/* A virtual time that moves gets its present value in the sandbox, with or without a controller. */
static int read_clocks(struct work *work)
{
	struct weir_generation *generation = weir_object_generation(work->result->object);
	const struct weir_instance *instance = work->result->opened;
	int err = 0;

	for (uint32_t i = 0; !err && i < instance->rule_count; i++) {
		const struct weir_rule_info *info = &instance->rules[instance->rule_order[i]];
		struct weir_rule *rule = &generation->rules[info->place % WEIR_RULES_MAX];

		if (!info->moves || !weir_has_tokens(info))
			continue;
		rule->threshold_moves = 0;
		err = weir_instance_read_clock(instance, info, &rule->tokens.clock);
	}
	return err;
}

/* There are no other hosts in the sandbox, so the rule's threshold is set to this host's share. */
static void take_shares(struct work *work)
{
	struct weir_generation *generation = weir_object_generation(work->result->object);
	const struct weir_instance *instance = work->result->opened;

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const struct weir_rule_info *info = &instance->rules[instance->rule_order[i]];
		struct weir_rule *rule = &generation->rules[info->place % WEIR_RULES_MAX];

		if (!info->cluster)
			continue;
		rule->threshold_moves = WEIR_MOVES_NOT;
		rule->threshold &= ~WEIR_THRESHOLD_MASK;
		rule->threshold |= work->result->controller.thresholds[i] & WEIR_THRESHOLD_MASK;
	}
}

/* What the controller publishes is valid only while it is alive; in the sandbox nothing goes stale by itself. */
static int follow_controller(struct work *work)
{
	struct weir_generation *generation = weir_object_generation(work->result->object);
	const struct weir_instance *instance = work->result->opened;
	uint32_t zero = 0;
	struct weir_signals signals = {};
	int err = read_clocks(work);

	if (err)
		return err;
	take_shares(work);
	if (work->result->controller.state != WEIR_CONTROLLER_RUNNING) {
		for (uint32_t place = 0; place < work->rule_count; place++)
			generation->rules[place].threshold_moves = 0;
	} else if (weir_map_look_up(instance->map_fd[WEIR_TABLE_SIGNALS], &zero, &signals)) {
		return -errno;
	}
	return weir_array_write(weir_object_map_fd(work->result->object, WEIR_TABLE_SIGNALS), &signals, 1,
				sizeof(signals));
}

/* Drops are counted by flow anyway. If a rule enforces now but only observed earlier, the later of the two counts is
 * taken.
 */
static void take_loss(const struct weir_instance *instance, const struct weir_dropped_flow *dropped,
		      struct weir_explained_rule *rule)
{
	const bool has_key = rule->info->identity.key_fields;

	if (rule->missing || &instance->rules[dropped->rule_slot] != rule->info ||
	    (has_key && memcmp(&dropped->key, &rule->key, sizeof(rule->key)) != 0))
		return;
	if (!rule->lost.packets || dropped->last_ns > rule->lost.last_ns)
		rule->lost = *dropped;
}

static int find_losses(struct weir_explanation *result, struct weir_diag *diag)
{
	_cleanup_(weir_drops_free) struct weir_drops drops = {};
	int err = weir_drops_read(result->opened, &(struct weir_drops_wanted){.most = SIZE_MAX}, &drops, diag);

	for (size_t i = 0; i < drops.count; i++)
		for (size_t each = 0; each < result->rule_count; each++)
			take_loss(result->opened, &drops.worst[i], &result->rules[each]);
	return err;
}

/* How many reloads one explanation tolerates. Chosen, not derived. */
#define REPLACED_MAX 5

/* A reload during the copying removes the program, and the maps that only it holds. */
static bool is_replaced(const struct weir_instance *instance)
{
	_cleanup_(weir_instance_freep) struct weir_instance *now = NULL;
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	int err = weir_instance_open(instance->name, &now, &ignored);

	return !err && weir_instance_program_id(now) != weir_instance_program_id(instance);
}

static int explain_attached(const char *name, const struct weir_question *question,
			    struct weir_explanation *ret_explanation, struct weir_diag *diag)
{
	_cleanup_(weir_explanation_free) struct weir_explanation result = {.is_live = true};
	_cleanup_(free_work) struct work work = {.result = &result, .question = question};
	int err = weir_instance_open(name, &result.opened, diag);

	if (!err)
		err = weir_controller_look(result.opened, &result.controller, diag);
	if (!err)
		err = weir_object_copy(weir_instance_program_id(result.opened), question->known, &result.object,
				       &work.asked_fields, diag);
	if (err)
		return result.opened && is_replaced(result.opened) ? -EAGAIN : err;
	result.instance = result.opened->name;
	work.infos = result.opened->rules;
	work.slots = result.opened->info.rule_slots;
	work.rule_count = result.opened->rule_count;
	err = follow_controller(&work);
	err = err ? fail(diag, err) : explain(&work, diag);
	if (!err)
		err = find_losses(&result, diag);
	if (err)
		return err;
	*ret_explanation = result;
	result = (struct weir_explanation){};
	return 0;
}

int weir_explain_instance(const char *name, const struct weir_question *question,
			  struct weir_explanation *ret_explanation, struct weir_diag *diag)
{
	struct weir_diag mistakes = {};
	int err = -EAGAIN;

	for (int tries = 0; err == -EAGAIN && tries < REPLACED_MAX; tries++) {
		weir_diag_free(&mistakes);
		err = explain_attached(name, question, ret_explanation, &mistakes);
	}
	weir_diag_move(diag, &mistakes, false);
	return err;
}

/* ---- of a rule set ---- */

int weir_explain_ruleset(const struct weir_ruleset *ruleset, const struct weir_question *question,
			 struct weir_explanation *ret_explanation, struct weir_diag *diag)
{
	_cleanup_(weir_explanation_free) struct weir_explanation result = {};
	_cleanup_(free_work) struct work work = {.result = &result, .question = question, .ruleset = ruleset};
	struct weir_sandbox_program program;
	int err = weir_sandbox_program_open(ruleset, question->known, &program, diag);

	if (err)
		return err;
	result.image = program.image;
	result.object = program.object;
	work.asked_fields = program.asked_fields;
	work.infos = result.image->rule_info;
	work.slots = result.image->rule_slots;
	work.rule_count = result.image->rule_count;
	err = explain(&work, diag);
	if (err)
		return err;
	*ret_explanation = result;
	result = (struct weir_explanation){};
	return 0;
}

void weir_explanation_free(struct weir_explanation *explanation)
{
	free(explanation->controller.thresholds);
	free(explanation->resources);
	free(explanation->rules);
	weir_object_free(explanation->object);
	weir_image_free(explanation->image);
	weir_instance_free(explanation->opened);
	*explanation = (struct weir_explanation){};
}
