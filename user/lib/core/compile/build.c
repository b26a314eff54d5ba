// SPDX-License-Identifier: GPL-2.0-only
#include "compile/compile.h"

#include "base/util.h"
#include "compile/build_steps.h"

static int check_capacity(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
			  struct weir_diag *diag)
{
	size_t errors_before = diag->errors;

	if (ruleset->resource_count > WEIR_RESOURCES_MAX)
		weir_diag_error(diag, &ruleset->resources[WEIR_RESOURCES_MAX].place, NULL,
				"list several prefixes or ports in one resource",
				"%zu resources are too many: at most %d", ruleset->resource_count, WEIR_RESOURCES_MAX);
	if (ruleset->rule_count > WEIR_RULES_MAX)
		weir_diag_error(diag, &ruleset->rules[WEIR_RULES_MAX].place, NULL, NULL,
				"%zu rules are too many: at most %d", ruleset->rule_count, WEIR_RULES_MAX);
	if (options->cpus > WEIR_CPUS_MAX)
		weir_diag_error(diag, NULL, NULL, "boot with possible_cpus=1024 or fewer",
				"%u possible CPUs are too many: at most %d", options->cpus, WEIR_CPUS_MAX);
	return diag->errors > errors_before ? -EINVAL : 0;
}

/* List the rules of each resource, in ascending order. */
static int list_rules(const struct weir_ruleset *ruleset, struct weir_image *image, struct weir_diag *diag)
{
	struct weir_resource *resource;
	bool is_wrong = false;
	size_t i;

	image->resource_count = ruleset->resource_count;
	image->rule_count = ruleset->rule_count;
	image->resources = calloc(ruleset->resource_count + 1, sizeof(*image->resources));
	if (!image->resources)
		return weir_compile_no_memory(diag);
	for (i = weir_count_system_rules(ruleset); i < ruleset->rule_count; i++) {
		resource = &image->resources[ruleset->rules[i].resource];
		if (resource->rule_count < WEIR_PACKET_RULES_MAX) {
			resource->rule[resource->rule_count++] = i;
			continue;
		}
		weir_diag_error(diag, &ruleset->rules[i].place, NULL, NULL,
				"rule '%s' is one too many for resource '%s': at most %d rules may meet on one packet",
				ruleset->rules[i].name, ruleset->resources[ruleset->rules[i].resource].name,
				WEIR_PACKET_RULES_MAX);
		is_wrong = true;
	}
	return is_wrong ? -EINVAL : 0;
}

/* The packet fields that the program reads for this rule, and by which it knows the flows of the packet before, besides
 * those of matches. A key of the packet's own ends takes the other end of what goes out.
 */
static uint32_t fields_read_by(const struct weir_rule *rule)
{
#define READ_FOR_KEY(constant, name, member, part, form) WEIR_MATCH_##part,
	static const uint32_t read_for_key[] = {WEIR_KEY_FIELDS(READ_FOR_KEY)}; /* by bit of enum weir_key_field */
	const uint32_t turned = rule->key_fields / WEIR_KEY_TURNED(1) & WEIR_KEY_ENDS;
	const uint32_t key = rule->key_fields | WEIR_KEY_LABEL_ENDS(rule->key_fields) | WEIR_KEY_OTHER_END(turned);
	uint32_t fields = weir_kinds[rule->kind]->packet_fields;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(read_for_key); i++)
		if (key >> i & 1)
			fields |= read_for_key[i];
	if (rule->has_overrides)
		fields |= rule->overrides_destination ? WEIR_MATCH_DESTINATION : WEIR_MATCH_SOURCE;
	return fields;
}

/* A breaker of what goes out learns from what comes in. A resource of both directions sees the answers itself. */
static void configure_answers(const struct weir_ruleset *ruleset, const struct weir_image *image,
			      struct weir_config *config, struct weir_diag *diag)
{
	for (uint32_t i = 0; i < image->rule_count; i++) {
		if (!weir_breaks_what_goes_out(ruleset, &ruleset->rules[i]))
			continue;
		if (config->answered_count < WEIR_ANSWERED_MAX)
			config->answered[config->answered_count++] = i;
		else
			weir_diag_warning(diag, &ruleset->rules[i].place, NULL,
					  "use one circuit breaker with a flow key, or 'direction: both'",
					  "circuit breaker '%s' sees no incoming SYN,ACK or RST: at most %d of "
					  "'direction: out' do",
					  ruleset->rules[i].name, WEIR_ANSWERED_MAX);
	}
}

/* Collect what the rules need from the program. */
static void configure_rules(const struct weir_rule_list *list, const struct weir_image *image,
			    struct weir_config *config, struct weir_diag *diag)
{
	const struct weir_kind *kind;
	const struct weir_rule *rule;
	uint8_t delays = 0; /* directions */
	uint32_t i;

	for (i = 0; i < image->rule_count; i++) {
		rule = &image->rules[i];
		config->has_moving |= rule->threshold_moves == WEIR_MOVES_ALONE;
		config->has_shares |= rule->threshold_moves == WEIR_MOVES_SHARED;
		config->shares_flows |= rule->threshold_moves == WEIR_MOVES_SHARED && rule->key_fields;
		config->kinds |= 1u << rule->kind;
		config->has_fixed |= rule->is_fixed;
		config->warms_flows |= rule->warms_flows;
		config->has_overrides |= rule->has_overrides;
		config->penalises |= rule->penalty_ms > 0;
		config->has_observers |= rule->observes;
		config->shares_connections |= rule->shares_with != i;
		config->bars |= rule->bar > 0;
		config->kinds |= rule->bar == WEIR_BAR_LEVEL ? 1u << WEIR_KIND_FAIR : 0; /* of its hidden rule */
		config->asks_out_of_line |= rule->storage != WEIR_STORAGE_NARROW || rule->bar;
		kind = weir_kinds[rule->kind];
		if (kind->longest_wait_ns)
			delays |= weir_match_directions(
				&weir_resource_of(&list->ruleset, &list->ruleset.rules[i])->match);
		if (kind->configure)
			kind->configure(&list->ruleset.rules[i], config);
	}
	/* All system rules distinguish packets that open a TCP connection from its other packets. */
	config->system_rules = weir_count_system_rules(&list->ruleset);
	config->has_tracker = weir_tracks_connections(&list->ruleset);
	config->tracker = list->tracker;
	config->compared_fields = config->match_fields | (config->system_rules ? WEIR_COMPARE_WORK : 0);
	if (config->has_tracker)
		config->kinds |= 1u << list->terms[list->tracker].kind;
	configure_answers(&list->ruleset, image, config, diag);
	config->answers = weir_answers_of(image->rule_info, image->rule_slots, list->ruleset.settings.observes);
	config->asked_fields = config->match_fields | (config->system_rules ? WEIR_MATCH_TCP_FLAGS : 0);
	for (i = 0; i < image->rule_count + image->shadow_count; i++) {
		rule = &image->rules[i];
		config->asked_fields |= fields_read_by(rule);
		if (weir_kinds[rule->kind]->keeps_window)
			config->storages |= 1u << rule->storage;
	}
	config->packet_rules = image->packet_rules_max + config->has_tracker;
	config->packet_resources = image->packet_resources_max;
	if (config->has_excepts && config->packet_resources == 1)
		config->packet_resources = 2; /* before the program leaves one out */
	config->asks_out_of_line |= config->packet_rules > 1;
	for (i = 0; i < image->resource_count; i++)
		config->has_shadows |= image->resources[i].shadow_count > 0;
	/* A queue may overflow, so an instance that only observes delays nothing. */
	if (list->ruleset.settings.observes || !list->ruleset.settings.paces)
		delays = 0;
	config->paces = (delays & WEIR_MATCHES_IN) != 0;
	config->paces_out = (delays & WEIR_MATCHES_OUT) != 0;
	config->acts_after = config->paces || config->answered_count || config->answers;
}

/* A CPU takes a portion of a second's answers at once, so small that each CPU gets two within the slack, after which
 * what is left of one is lost. Some are taken ahead of their time by the slack, and others used after it
 * (bpf/answers.h): so a second may have answers of all portions of a second and two slacks, and of one more. These are
 * no more than the rate.
 */
static void configure_answer_rate(uint64_t rate, struct weir_config *config, unsigned int bucket)
{
	const uint64_t slacks = WEIR_NSEC_PER_SEC / WEIR_ANSWER_SLACK_NS,
		       portion = rate / (2 * slacks * config->cpus) ?: 1, others = rate - portion + 1;

	config->answer_portion[bucket] = portion;
	config->answer_portion_ns[bucket] =
		(portion * (WEIR_NSEC_PER_SEC + 2 * WEIR_ANSWER_SLACK_NS) + others - 1) / others;
}

static void configure(const struct weir_rule_list *list, const struct weir_compile_options *options,
		      struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_settings *settings = &list->ruleset.settings;
	struct weir_config *config = &image->config;
	uint32_t flows_min = WEIR_NARROW_SETS_PER_CHUNK * WEIR_WAYS;

	image->flows_per_cpu =
		weir_round_up_power_of_two(settings->flows_per_cpu > flows_min ? settings->flows_per_cpu : flows_min);
	config->cpus = options->cpus;
	config->counts_flow_drops = true;
	config->resource_count = image->resource_count;
	config->drop_malformed = settings->drop_malformed;
	config->drop_unsupported = settings->drop_unsupported;
	config->drop_non_ip = settings->drop_non_ip;
	config->non_ip_except_count = settings->non_ip_except_count;
	for (size_t i = 0; i < settings->non_ip_except_count; i++)
		config->non_ip_except[i] =
			(struct weir_ethertypes){settings->non_ip_except[i].low, settings->non_ip_except[i].high};
	config->drop_unmatched = settings->drop_unmatched;
	config->observes = settings->observes;
	configure_rules(list, image, config, diag);
	for (unsigned int i = 0; config->answers && i < WEIR_ANSWER_BUCKETS; i++)
		configure_answer_rate(weir_answer_rate(settings, i), config, i);
	weir_compile_tables(settings, options->previous, image, diag);
}

/* A capture may span more time than the kinds in use can distinguish. */
static int check_span(const struct weir_compile_options *options, const struct weir_image *image,
		      struct weir_diag *diag)
{
	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++) {
		const bool is_used = image->config.kinds >> id & 1;
		int err =
			is_used && weir_kinds[id]->check_span ? weir_kinds[id]->check_span(options->span_ns, diag) : 0;

		if (err)
			return err;
	}
	return image->config.penalises ? weir_penalties_check_span(options->span_ns, diag) : 0;
}

static int build(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		 struct weir_image **ret_image, struct weir_diag *diag)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	_cleanup_(weir_rule_list_free) struct weir_rule_list list = {};
	int err;
	size_t i;

	err = check_capacity(ruleset, options, diag);
	if (err)
		return err;
	image = calloc(1, sizeof(*image));
	if (!image)
		return weir_compile_no_memory(diag);
	err = list_rules(ruleset, image, diag);
	if (err)
		return err;
	err = weir_compile_match(ruleset, options, image, diag);
	if (err)
		return err;
	err = weir_compile_meet(ruleset, image, diag);
	if (err)
		return err;
	err = weir_compile_shadows(ruleset, image, &list, diag);
	if (err)
		return err;
	err = weir_compile_labels(&list.ruleset, image, diag);
	if (err)
		return err;
	err = weir_compile_slots(&list, options, image, diag);
	if (err)
		return err;
	err = weir_compile_overrides(ruleset, image, diag);
	if (err)
		return err;
	configure(&list, options, image, diag);
	err = check_span(options, image, diag);
	if (err)
		return err;
	err = weir_compile_lists(ruleset, &image->config, &image->lists, diag);
	if (err)
		return err;
	err = weir_compile_listed(ruleset, &image->config, &image->lists, diag);
	if (err)
		return err;
	for (i = 0; i < ruleset->listed_count; i++)
		image->deny_count += ruleset->listed[i].denies;
	image->allow_count = ruleset->listed_count - image->deny_count;
	image->hooks = weir_ruleset_hooks(ruleset);

	*ret_image = TAKE_PTR(image);
	return 0;
}

int weir_image_build(const struct weir_ruleset *ruleset, const struct weir_compile_options *options,
		     struct weir_image **ret_image, struct weir_diag *diag)
{
	int err = build(ruleset, options, ret_image, diag);

	weir_ruleset_quote(ruleset, diag);
	return err;
}

void weir_image_free(struct weir_image *image)
{
	if (!image)
		return;
	free(image->classes);
	free(image->place);
	free(image->except);
	free(image->bit);
	free(image->vectors);
	free(image->rules);
	free(image->why_empty);
	free(image->pushed);
	free(image->overrides);
	free(image->resources);
	free(image->source_prefixes);
	free(image->destination_prefixes);
	free(image->prefix_nodes);
	free(image->labels);
	free(image->interfaces);
	free(image->cases);
	weir_lists_free(&image->lists);
	free(image->rule_info);
	free(image->resource_info);
	free(image->specs);
	free(image->fresh_rule_slots);
	free(image->fresh_resource_slots);
	free(image);
}
