// SPDX-License-Identifier: GPL-2.0-only
/* weir block, weir allow: deny or allow sources for a limited time. */
#include <errno.h>
#include <string.h>

#include "base/text_file.h"
#include "base/util.h"
#include "weir/block_request.h"
#include "cli/command.h"
#include "sandbox/session.h"
#include "host/host.h"
#include "cli/options.h"
#include "orders/orders.h"
#include "cli/print.h"
#include "files/output.h"
#include "rules/scalars.h"
#include "timed/timed.h"
#include "weir/weir.h"

static const struct weir_command weir_block_command = {
	.name = "block",
	.options = "FBGtlRauvwXINjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "SOURCE...",
	.arguments_max = SIZE_MAX,
	.about =
		"Drop all packets of sources for a while: addresses, or prefixes, of which 4,096 fit, for all programs "
		"(--by) together. The kernel ends each block by itself, and a reload keeps it. Blocking a source "
		"again restarts its time.\n\n"
		"'-' reads lines from standard input. A line has a source, optionally a time of its own, and a "
		"comment, which becomes the reason. --list prints such lines, with the number of packets that each "
		"block has dropped. If some lines are bad, they are reported, the sources of the other lines are "
		"blocked, and the exit code is 1.\n\n"
		"--sync makes the blocks equal to a feed. With --reason or --by, it changes only blocks with this "
		"reason or of this program. "
		"It removes nothing if a line is bad, and refuses an empty feed without --force. --save and "
		"--restore keep blocks across a detach or a reboot; the service does both.\n\n"
		"If a source is in several of 'weir block', 'weir allow' and the lists 'allow' and 'deny' of the "
		"rule files, the longest prefix wins; on a tie, block and deny win. settings.timedEntries sets how "
		"many addresses fit, timedParts how many of them each program (--by) can have. Without --force, weir "
		"refuses to block the source of your own SSH session, or "
		"a prefix shorter than /8 (IPv4) or /16 (IPv6).",
	.example = "  weir block 192.0.2.7 2001:db8:1::/48 --for 1h --reason 'port scan'\n"
		   "  weir block - --for 10m <addresses\n"
		   "  weir block --sync feed.txt --reason feed --for 1d\n"
		   "  weir block --list\n"
		   "  weir block --remove 192.0.2.7",
};

static const struct weir_command weir_allow_command = {
	.name = "allow",
	.options = "FGlRauvwXINjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "SOURCE...",
	.arguments_max = SIZE_MAX,
	.about = "Let all packets of sources pass for a while, before any rule: addresses, or up to 4,096 prefixes. "
		 "The kernel ends each entry by itself, and a reload keeps it. A prefix shorter than /8 (IPv4) or "
		 "/16 (IPv6) needs --force. If 'weir block' or a file's 'deny' list has the same prefix, the source "
		 "stays blocked, and a note says so. 'weir block --help' has the details.",
	.example = "  weir allow 192.0.2.7 --for 1h30m\n"
		   "  weir allow --list\n"
		   "  weir allow --remove --all",
};

/* ---- messages ---- */

static json_t *describe_order(const struct weir_timed_order *order, bool denies)
{
	char text[WEIR_PREFIX_TEXT_BYTES];
	json_t *json = json_pack("{s:s, s:I}", "source", weir_format_prefix(&order->prefix, text), "leftMs",
				 (json_int_t)(order->lasts_ns / 1000000));

	json_object_set_new(json, "by", json_string(weir_order_by(order)));
	if (denies) {
		json_object_set_new(json, "hits", json_integer(order->hits));
		json_object_set_new(json, "reason", order->reason[0] ? json_string(order->reason) : json_null());
	}
	return json;
}

static struct weir_order_scope scope_of(const struct weir_options *options)
{
	return (struct weir_order_scope){.reason = options->reason, .by = options->by};
}

/* Keep the orders that --by and --reason name. */
static size_t keep_only(const struct weir_options *options, struct weir_timed_order *orders, size_t count)
{
	const struct weir_order_scope scope = scope_of(options);
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (weir_order_is_in(&orders[i], &scope))
			orders[kept++] = orders[i];
	return kept;
}

static int list(const struct weir_instance *instance, const struct weir_options *options, bool denies,
		struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	char text[WEIR_ORDER_TEXT_BYTES];
	json_t *entries;
	size_t count;
	int err = weir_timed_read(instance, denies, &orders, &count, diag);

	if (err)
		return err;
	count = keep_only(options, orders, count);
	if (!options->wants_json) {
		for (size_t i = 0; i < count; i++)
			puts(weir_order_format(&orders[i], NULL, text));
		return weir_flush_results(diag);
	}
	entries = json_array();
	for (size_t i = 0; i < count; i++)
		weir_json_append(&entries, describe_order(&orders[i], denies));
	return weir_json_print(
		json_pack("{s:s, s:o}", "instance", instance->name, denies ? "blocked" : "allowed", entries), diag);
}

/* Report an action and the number of sources, as a line or as a JSON document. */
static int print_count(const struct weir_instance *instance, const struct weir_options *options, const char *done,
		       size_t count, struct weir_diag *diag)
{
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:I}", "instance", instance->name, done, (json_int_t)count),
				       diag);
	printf("%zu source%s %s\n", count, weir_plural(count), done);
	return weir_flush_results(diag);
}

static int print_sync(const struct weir_instance *instance, const struct request *request, struct weir_diag *diag)
{
	const struct weir_order_changes *changes = &request->changes;

	if (request->options->wants_json)
		return weir_json_print(json_pack("{s:s, s:I, s:I, s:I}", "instance", instance->name, "added",
						 (json_int_t)changes->added, "renewed", (json_int_t)changes->renewed,
						 "removed", (json_int_t)changes->removed),
				       diag);
	printf("%zu added, %zu renewed, %zu removed\n", changes->added, changes->renewed, changes->removed);
	return weir_flush_results(diag);
}

/* Orders that existed are renewed even if others found no room; the numbers of the two are not known then. */
static int print_result(const struct weir_instance *instance, const struct request *request, bool denies,
			size_t changed, bool is_full, struct weir_diag *diag)
{
	const char *done = request->options->removes ? "removed" : denies ? "blocked" : "allowed";

	if (request->options->feed && !is_full)
		return print_sync(instance, request, diag);
	return print_count(instance, request->options, request->options->feed ? "changed" : done, changed, diag);
}

/* A source without an order is already in the wanted state, so this is not a mistake. */
static void note_missing(const struct weir_instance *instance, const struct request *request, bool denies,
			 size_t changed, struct weir_diag *diag)
{
	const char *done = denies ? "blocked" : "allowed";
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	char source[WEIR_PREFIX_TEXT_BYTES], around[WEIR_PREFIX_TEXT_BYTES];
	const struct weir_timed_order *shorter = NULL;
	struct weir_diag ignored = {};
	size_t count;

	if (request->count != 1) {
		weir_diag_note(diag, "%zu of %zu sources were not %s", request->count - changed, request->count, done);
		return;
	}
	if (!weir_timed_read(instance, denies, &orders, &count, &ignored))
		shorter = weir_order_around(orders, count, &request->orders[0].prefix);
	weir_diag_free(&ignored);
	weir_format_prefix(&request->orders[0].prefix, source);
	if (shorter)
		weir_diag_note(diag, "%s is not %s itself, but by %s", source, done,
			       weir_format_prefix(&shorter->prefix, around));
	else
		weir_diag_note(diag, "%s is not %s", source, done);
}

static int compare_with_listed(const void *prefix, const void *listed)
{
	return weir_compare_prefixes(prefix, &((const struct weir_listed *)listed)->prefix);
}

/*
 * If block and allow have the same prefix length, block wins: an allowed source may stay blocked, by an order or by a
 * list in the rule files. (A block with a longer prefix applies only to a part of the source.) This is not reported for
 * lines of a list, since the list is read only for single sources.
 */
static void note_still_blocked(const struct weir_instance *instance, const struct request *request)
{
	_cleanup_(weir_freep) struct weir_timed_order *blocked = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	const struct weir_listed *listed;
	char text[WEIR_PREFIX_TEXT_BYTES];
	struct weir_diag ignored = {};
	size_t count = 0;

	if (weir_timed_read(instance, true, &blocked, &count, &ignored))
		count = 0;
	weir_instance_history(instance, &history);
	if (history.sets[0] && weir_kept_set_read(history.sets[0], &ruleset, &ignored))
		ruleset = NULL;
	for (size_t i = 0; i < request->count; i++) {
		const struct weir_timed_order *order = &request->orders[i];

		weir_format_prefix(&order->prefix, text);
		if (count && bsearch(order, blocked, count, sizeof(*blocked), weir_order_compare))
			weir_diag_note(request->diag,
				       "%s stays blocked: 'weir block' wins over 'weir allow'; 'weir block --remove "
				       "%s' ends the block",
				       text, text);
		listed = ruleset && ruleset->listed_count
				 ? bsearch(&order->prefix, ruleset->listed, ruleset->listed_count,
					   sizeof(*ruleset->listed), compare_with_listed)
				 : NULL;
		if (listed && listed->denies)
			weir_diag_note(request->diag,
				       "%s stays blocked: a 'deny' list of the rule files wins over 'weir allow'",
				       text);
	}
	weir_diag_free(&ignored);
}

/* Record the change for `weir events`: the name if there is one source, otherwise the number of sources. */
static void note(const struct weir_instance *instance, const struct request *request, bool denies, size_t changed)
{
	const char *what = request->options->removes ? "no longer " : "", *done = denies ? "blocked" : "allowed";
	const enum weir_journal_kind kind = denies ? WEIR_JOURNAL_BLOCK : WEIR_JOURNAL_ALLOW;
	char source[WEIR_PREFIX_TEXT_BYTES], age[WEIR_WORDS_BYTES], lasts[WEIR_WORDS_BYTES + 8] = "";
	const struct weir_timed_order *order = request->orders;

	if (!changed)
		return;
	if (request->options->feed) {
		weir_instance_note(instance->name, kind, "%s by a feed: %zu added, %zu renewed, %zu removed", done,
				   request->changes.added, request->changes.renewed, request->changes.removed);
		return;
	}
	if (request->count != 1) {
		weir_instance_note(instance->name, kind, "%s%s: %zu source%s", what, done, changed,
				   weir_plural(changed));
		return;
	}
	if (!request->options->removes)
		snprintf(lasts, sizeof(lasts), ", for %s%s%s", weir_format_age(order->lasts_ns, age),
			 order->reason[0] ? ": " : "", order->reason);
	weir_instance_note(instance->name, kind, "%s%s: %s%s", what, done, weir_format_prefix(&order->prefix, source),
			   lasts);
}

/* Blocks that ended early are said here, and recorded for `weir events`. */
static void note_evicted(const struct weir_instance *instance, const struct weir_timed_given *given,
			 struct weir_diag *diag)
{
	char source[WEIR_PREFIX_TEXT_BYTES], others[48] = "", text[128];

	if (!given->evicted)
		return;
	if (given->evicted > 1)
		snprintf(others, sizeof(others), " and %zu other%s", given->evicted - 1,
			 weir_plural(given->evicted - 1));
	snprintf(text, sizeof(text), "%s (%s)%s", weir_format_prefix(&given->first_evicted.prefix, source),
		 weir_order_by(&given->first_evicted), others);
	weir_instance_note(instance->name, WEIR_JOURNAL_BLOCK, "no longer blocked, to make room: %s", text);
	weir_diag_note(diag, "to make room, the block of %s ended early", text);
}

/* ---- the command ---- */

static int write_orders(FILE *stream, const char *name, const struct weir_timed_order *orders, size_t count)
{
	const uint64_t wall_ns = weir_host_wall_ns(weir_host_now_ns());
	char text[WEIR_ORDER_TEXT_BYTES];

	fprintf(stream, "# put in force again by: weir %s --restore FILE\n", name);
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%s\n", weir_order_format(&orders[i], &wall_ns, text));
	return ferror(stream) ? -EIO : 0;
}

/* On failure the file is unchanged; otherwise it is complete. If the instance has no room for timed entries, an empty
 * list is saved.
 */
static int save(const struct weir_instance *instance, const struct weir_command *command,
		const struct weir_options *options, bool denies, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct weir_timed_order *orders = NULL;
	_cleanup_(weir_output_close) struct weir_output output = {};
	struct weir_output *outputs[] = {&output};
	size_t count = 0;
	int err = 0;

	if (instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size)
		err = weir_timed_read(instance, denies, &orders, &count, diag);
	count = keep_only(options, orders, count);
	if (!err)
		err = weir_output_open(&output, options->saves_to, diag);
	if (!err && write_orders(output.stream, command->name, orders, count))
		err = weir_output_check(&output, diag);
	if (!err)
		err = weir_outputs_commit(outputs, 1, diag);
	return err ? err : print_count(instance, options, "saved", count, diag);
}

/* Refuse an empty feed, since it often means that fetching it failed. If a line is invalid, remove nothing, since the
 * line may name a source that should stay.
 */
static int plan_sync(const struct weir_instance *instance, struct request *request, bool denies)
{
	const struct weir_options *options = request->options;
	const struct weir_order_scope scope = scope_of(options);
	_cleanup_(weir_freep) struct weir_timed_order *now = NULL;
	size_t count;
	int err;

	if (!request->count && !options->forces)
		return weir_diag_error(request->diag, NULL, NULL, "add '--force' if you want that",
				       "%s contains no source: syncing with it would remove all entries%s%s%s%s%s",
				       request->input, options->by ? " by " : "", options->by ?: "",
				       options->reason ? " with reason '" : "", options->reason ?: "",
				       options->reason ? "'" : "");
	err = weir_timed_read(instance, denies, &now, &count, request->diag);
	if (!err && weir_orders_sync(now, count, request->orders, request->count, &scope, request->mistakes > 0,
				     &request->changes))
		err = weir_diag_fail(request->diag, ENOMEM, NULL, "cannot compare the sources");
	if (!err && request->mistakes)
		weir_diag_note(request->diag, "nothing was removed: a bad line may name an entry that should stay");
	return err;
}

/* For --remove --all with --reason or --by: request all existing orders, to be filtered later. */
static int request_all(struct request *request, const struct weir_timed_order *now, size_t count)
{
	request->orders = calloc(count + 1, sizeof(*now));
	if (!request->orders)
		return weir_diag_fail(request->diag, ENOMEM, NULL, "cannot read the sources");
	for (size_t i = 0; i < count; i++)
		request->orders[i].prefix = now[i].prefix;
	request->count = count;
	return 0;
}

/* Should the order leave the existing one for its source unchanged? now: NULL if there is none. */
static bool leaves_alone(const struct weir_options *options, const struct weir_timed_order *order,
			 const struct weir_timed_order *now)
{
	const struct weir_order_scope scope = scope_of(options);

	if (!now)
		return false;
	return options->removes ? !weir_order_is_in(now, &scope) : now->lasts_ns > order->lasts_ns;
}

/* Remove the orders that --extend, or --remove with --reason or --by, must not change. */
static int leave_out(const struct weir_instance *instance, struct request *request, bool denies)
{
	_cleanup_(weir_freep) struct weir_timed_order *now = NULL;
	const struct weir_timed_order *order, *found;
	size_t now_count, kept = 0;
	int err = weir_timed_read(instance, denies, &now, &now_count, request->diag);

	if (!err && request->options->means_all)
		err = request_all(request, now, now_count);
	if (err)
		return err;
	for (size_t i = 0; i < request->count; i++) {
		order = &request->orders[i];
		found = bsearch(order, now, now_count, sizeof(*now), weir_order_compare);
		if (!leaves_alone(request->options, order, found))
			request->orders[kept++] = *order;
	}
	request->left_alone = request->count - kept;
	request->count = kept;
	return 0;
}

static bool begins_any(const struct weir_timed_order *orders, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (orders[i].lasts_ns)
			return true;
	return false;
}

static int change(const struct weir_instance *instance, struct request *request, bool denies,
		  struct weir_timed_given *ret_given)
{
	const struct weir_options *options = request->options;
	const struct weir_timed_order *orders = request->orders;
	const bool is_scoped = options->reason || options->by;
	/* No reload takes off the hook for incoming packets meanwhile, and no two commands take the last place. */
	_cleanup_(weir_closep) int lock_fd = -1;
	size_t count = request->count;
	int err = 0;

	*ret_given = (struct weir_timed_given){};
	if (denies && !options->removes && !options->forces)
		err = weir_session_check_block(instance, orders, count, request->diag);
	if (!err && begins_any(orders, count) && instance->info.tables[WEIR_TABLE_TIMED_ADDRESSES].size)
		err = weir_instance_hold_in(instance->name, &lock_fd, request->diag);
	if (!err && (options->extends || (options->removes && is_scoped))) {
		err = leave_out(instance, request, denies);
		orders = request->orders;
		count = request->count;
	}
	if (!err && options->feed) {
		err = plan_sync(instance, request, denies);
		orders = request->changes.orders;
		count = request->changes.count;
	}
	if (err)
		return err;
	if (options->means_all && !is_scoped)
		return weir_timed_end_all(instance, denies, ret_given, request->diag);
	/* Without sources, for example from an empty file, there is nothing to do, and no error even if there is no
	 * room.
	 */
	return count ? weir_timed_give(instance, denies, orders, count, ret_given, request->diag) : 0;
}

static int act(const struct weir_command *command, const struct weir_options *options, bool denies,
	       struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_block_free_request) struct request request = {.options = options, .diag = diag};
	struct weir_timed_given given;
	size_t changed;
	int err = weir_block_check_options(command, &request), printed;

	if (!err)
		err = weir_block_read_sources(&request);
	if (!err)
		err = weir_instance_open(options->instance, &instance, diag);
	if (err)
		return err;
	if (options->lists)
		return list(instance, options, denies, diag);
	if (options->saves_to)
		return save(instance, command, options, denies, diag);
	err = change(instance, &request, denies, &given);
	changed = given.changed;
	note_evicted(instance, &given, diag);
	if (err && err != -ENOSPC)
		return err;
	note(instance, &request, denies, changed);
	if (options->removes && !options->means_all && changed < request.count)
		note_missing(instance, &request, denies, changed, diag);
	if (!denies && !options->removes && !request.input)
		note_still_blocked(instance, &request);
	if (request.left_alone && !options->means_all)
		weir_diag_note(diag, "%zu source%s unchanged: %s for %s", request.left_alone,
			       weir_plural(request.left_alone), denies ? "blocked" : "allowed",
			       !options->removes  ? "longer"
			       : !options->by	  ? "another reason"
			       : !options->reason ? "another program"
						  : "another program or reason");
	printed = print_result(instance, &request, denies, changed, err == -ENOSPC, diag);
	/* The invalid lines have been reported; return 1, since the rest was done. */
	return err ?: printed ?: request.mistakes ? -EBADMSG : 0;
}

static int act_block(const struct weir_options *options, struct weir_diag *diag)
{
	return act(&weir_block_command, options, true, diag);
}

static int act_allow(const struct weir_options *options, struct weir_diag *diag)
{
	return act(&weir_allow_command, options, false, diag);
}

static int run_block(int argc, char **argv)
{
	return weir_command_run(&weir_block_command, argc, argv, act_block);
}

static int run_allow(int argc, char **argv)
{
	return weir_command_run(&weir_allow_command, argc, argv, act_allow);
}

const struct weir_command_entry weir_block_entry = {&weir_block_command, run_block,
						    "drop all packets of sources for a while"};

const struct weir_command_entry weir_allow_entry = {&weir_allow_command, run_allow,
						    "let all packets of sources pass for a while"};
