// SPDX-License-Identifier: GPL-2.0-only
/*
 * The interfaces on which an instance is wanted (struct weir_wanted): the words given with `-i`, and the interfaces of
 * a network namespace that they select now. Nothing is attached here.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "network/device.h"
#include "network/stack.h"
#include "pace/pace.h"
#include "rules/scalars.h"

static size_t count_words(const struct weir_wanted *wanted)
{
	size_t count = 0;

	while (count < WEIR_WANTED_MAX && wanted[count].word[0])
		count++;
	return count;
}

bool weir_wanted_names(const struct weir_wanted *wanted, const char *name)
{
	return weir_words_have(&wanted->word, count_words(wanted), name);
}

/* A pattern never selects one of our own pacing devices. A user who wants one writes its name. */
bool weir_wanted_means(const struct weir_wanted *wanted, const char *name)
{
	if (weir_pace_is_device(name))
		return weir_wanted_names(wanted, name);
	return weir_words_mean(&wanted->word, count_words(wanted), name);
}

bool weir_wanted_has_patterns(const struct weir_wanted *wanted)
{
	for (size_t i = 0; i < count_words(wanted); i++)
		if (wanted[i].word[0] != WEIR_WORD_EXCEPTS && weir_word_is_pattern(wanted[i].word))
			return true;
	return false;
}

bool weir_instance_has_patterns(const struct weir_instance *instance)
{
	return weir_wanted_has_patterns(instance->info.wanted);
}

int weir_wanted_add(struct weir_wanted *wanted, const char *word, struct weir_diag *diag)
{
	const size_t count = count_words(wanted);

	if (weir_wanted_names(wanted, word))
		return 0;
	if (count == WEIR_WANTED_MAX) {
		weir_diag_error(diag, NULL, NULL, "one pattern can cover many: '-i \"veth*\"'",
				"'%s' is one interface too many: an instance has at most %d names, patterns and "
				"exceptions",
				word, WEIR_WANTED_MAX);
		return -ENOSPC;
	}
	wanted[count] = (struct weir_wanted){};
	strncpy(wanted[count].word, word, sizeof(wanted[count].word) - 1);
	return 0;
}

bool weir_wanted_remove(struct weir_wanted *wanted, const char *word)
{
	const size_t count = count_words(wanted);

	for (size_t i = 0; i < count; i++) {
		if (strncmp(wanted[i].word, word, sizeof(wanted[i].word)) != 0)
			continue;
		memmove(&wanted[i], &wanted[i + 1], (count - i - 1) * sizeof(*wanted));
		wanted[count - 1] = (struct weir_wanted){};
		return true;
	}
	return false;
}

/* Exceptions are not counted, since detaching one interface adds one. */
static size_t count_meanings(const struct weir_wanted *wanted)
{
	size_t meanings = 0;

	for (size_t i = 0; i < count_words(wanted); i++)
		meanings += wanted[i].word[0] != WEIR_WORD_EXCEPTS;
	return meanings;
}

bool weir_wanted_is(const struct weir_wanted *wanted, const char *const *words, size_t count)
{
	size_t meanings = 0;

	for (size_t i = 0; i < count; i++) {
		if (words[i][0] == WEIR_WORD_EXCEPTS)
			continue;
		if (!weir_wanted_names(wanted, words[i]))
			return false;
		meanings++;
	}
	return meanings == count_meanings(wanted);
}

/* ---- the interfaces of the present network namespace ---- */

static int add_target(struct weir_targets *targets, const struct weir_stacked *link, bool is_named)
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	struct weir_target *target =
		weir_array_add((void **)&targets->targets, targets->count, sizeof(*targets->targets));

	if (!target)
		return -ENOMEM;
	memcpy(target->name, link->name, sizeof(target->name));
	target->ifindex = link->ifindex;
	target->is_named = is_named;
	target->is_bare = weir_link_type_without_ethernet(link->type, buffer) != NULL;
	targets->count++;
	return 0;
}

static int leave_out(struct weir_targets *targets, const struct weir_stacked *link, const char *why)
{
	struct weir_left_out *left_out =
		weir_array_add((void **)&targets->left_out, targets->left_out_count, sizeof(*targets->left_out));

	if (!left_out)
		return -ENOMEM;
	memcpy(left_out->name, link->name, sizeof(left_out->name));
	left_out->ifindex = link->ifindex;
	snprintf(left_out->why, sizeof(left_out->why), "%s", why);
	targets->left_out_count++;
	return 0;
}

/* Which interfaces to limit, and in which mode. */
struct wish {
	const struct weir_wanted *wanted;
	enum weir_attach_mode mode;
};

/* NULL: XDP can handle the interface, or it is evaluated at tc, where no Ethernet header is needed. */
static const char *type_that_is_refused(const struct weir_stacked *link, enum weir_attach_mode mode,
					char buffer[WEIR_LINK_TYPE_BYTES])
{
	return mode == WEIR_MODE_TC ? NULL : weir_link_type_without_ethernet(link->type, buffer);
}

static bool is_limited(const struct weir_stacked *link, const void *data)
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	const struct wish *wish = data;

	return !type_that_is_refused(link, wish->mode, buffer) && weir_wanted_means(wish->wanted, link->name);
}

/* A user who names an interface wants it, and sees what is wrong with it; a pattern may match it by accident. If a
 * pattern matches both an interface and those below it, the lower ones are taken: all packets arrive there, and the
 * driver may support native mode. If one of the lower ones is not limited, the upper one stays, because otherwise
 * packets that arrive there would have no limit.
 */
static bool is_of_no_use(const struct weir_stack *stack, const struct wish *wish, const struct weir_stacked *link,
			 char ret_why[WEIR_LEFT_OUT_BYTES])
{
	char buffer[WEIR_LINK_TYPE_BYTES];
	const char *type = type_that_is_refused(link, wish->mode, buffer);
	const struct weir_stacked *first;

	if (type)
		snprintf(ret_why, WEIR_LEFT_OUT_BYTES,
			 "its packets have no Ethernet header (link/%s), which takes '--mode tc'", type);
	else if (weir_stack_is_covered(stack, link, is_limited, wish, &first))
		snprintf(ret_why, WEIR_LEFT_OUT_BYTES,
			 "its packets arrive through '%s' first and are limited there ('-i %s' would count them twice)",
			 first->name, link->name);
	else
		return false;
	return true;
}

static int sort_link(const struct weir_stack *stack, const struct wish *wish, const struct weir_stacked *link,
		     struct weir_targets *targets)
{
	char why[WEIR_LEFT_OUT_BYTES];

	if (!weir_wanted_means(wish->wanted, link->name))
		return 0;
	if (weir_wanted_names(wish->wanted, link->name))
		return add_target(targets, link, true);
	return is_of_no_use(stack, wish, link, why) ? leave_out(targets, link, why) : add_target(targets, link, false);
}

int weir_targets_find(const struct weir_wanted *wanted, enum weir_attach_mode mode, struct weir_targets *ret_targets)
{
	const struct wish wish = {.wanted = wanted, .mode = mode};
	_cleanup_(weir_stack_free) struct weir_stack stack = {};
	struct weir_targets targets = {};
	int err = weir_stack_read_links(&stack);

	for (size_t i = 0; !err && i < stack.count; i++)
		err = sort_link(&stack, &wish, &stack.links[i], &targets);
	if (err)
		weir_targets_free(&targets);
	else
		*ret_targets = targets;
	return err;
}

void weir_left_out_report(const struct weir_left_out *left_out, struct weir_diag *diag)
{
	weir_diag_note(diag, "interface '%s' is excluded from a pattern: %s", left_out->name, left_out->why);
}

bool weir_targets_leave_out(const struct weir_wanted *wanted, enum weir_attach_mode mode, const char *name)
{
	_cleanup_(weir_targets_free) struct weir_targets targets = {};

	if (weir_targets_find(wanted, mode, &targets))
		return false; /* the attach will report it */
	for (size_t i = 0; i < targets.left_out_count; i++)
		if (!strcmp(targets.left_out[i].name, name))
			return true;
	return false;
}

bool weir_targets_have_bare(const struct weir_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->targets[i].is_bare)
			return true;
	return false;
}

int weir_targets_expect(const struct weir_wanted *wanted, struct weir_diag *diag)
{
	int err = 0;

	for (size_t i = 0; i < count_words(wanted); i++) {
		int ifindex = weir_word_is_pattern(wanted[i].word) ? 0 : weir_host_ifindex(wanted[i].word, diag);

		if (ifindex < 0)
			err = ifindex;
	}
	return err;
}

void weir_targets_free(struct weir_targets *targets)
{
	free(targets->targets);
	free(targets->left_out);
	*targets = (struct weir_targets){};
}

bool weir_attach_means(const struct weir_attach_options *options, const char *interface)
{
	struct weir_wanted wanted[WEIR_WANTED_MAX] = {};
	struct weir_diag ignored = {}; /* too many words: the attach will report it */

	for (size_t i = 0; i < options->interface_count; i++)
		if (weir_wanted_add(wanted, options->interfaces[i], &ignored))
			break;
	weir_diag_free(&ignored);
	return weir_wanted_means(wanted, interface);
}
