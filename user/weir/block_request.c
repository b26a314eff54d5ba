// SPDX-License-Identifier: GPL-2.0-only
/* The request of weir block and weir allow: options, and sources from arguments, files and feeds. */
#include <errno.h>
#include <string.h>

#include "base/text_file.h"
#include "base/util.h"
#include "weir/block_request.h"
#include "cli/command.h"
#include "host/host.h"
#include "cli/options.h"
#include "orders/orders.h"
#include "cli/print.h"
#include "files/output.h"
#include "rules/list_file.h"
#include "rules/quantity.h"
#include "rules/scalars.h"

void weir_block_free_request(struct request *request)
{
	free(request->orders);
	free(request->changes.orders);
}

static void complain(struct request *request, const struct weir_place *place, const struct weir_refusal *refusal)
{
	request->bad_lines += place != NULL;
	if (request->mistakes++ < MISTAKES_MAX)
		weir_diag_error(request->diag, place, NULL, refusal->hint[0] ? refusal->hint : NULL, "%s",
				refusal->message);
}

/* A network larger than any that a registry allocates is a typo. */
#define BITS_MIN_IPV4 8
#define BITS_MIN_IPV6 16

/* "16,777,216 addresses", for IPv4 */
static const char *format_addresses(const struct weir_prefix *prefix, char ret_text[32])
{
	const uint64_t count = 1ull << (32 - prefix->bits);
	const unsigned int millions = count / 1000000 % 1000, thousands = count / 1000 % 1000, ones = count % 1000;

	if (count >= 1000000000)
		snprintf(ret_text, 32, "%u,%03u,%03u,%03u addresses", (unsigned int)(count / 1000000000), millions,
			 thousands, ones);
	else if (count >= 1000000)
		snprintf(ret_text, 32, "%u,%03u,%03u addresses", millions, thousands, ones);
	else if (count >= 1000)
		snprintf(ret_text, 32, "%u,%03u addresses", thousands, ones);
	else
		snprintf(ret_text, 32, "%u address%s", ones, ones == 1 ? "" : "es");
	return ret_text;
}

static int check_width(const struct weir_prefix *prefix, struct weir_refusal *refusal)
{
	const bool is_ipv4 = prefix->family == 4;
	char text[WEIR_PREFIX_TEXT_BYTES], addresses[32];

	if (prefix->bits >= (is_ipv4 ? BITS_MIN_IPV4 : BITS_MIN_IPV6))
		return 0;
	weir_format_prefix(prefix, text);
	if (!prefix->bits)
		weir_refuse(refusal, "%s is every IPv%u address", text, prefix->family);
	else if (is_ipv4)
		weir_refuse(refusal, "%s is %s", text, format_addresses(prefix, addresses));
	else
		weir_refuse(refusal, "%s is %u networks of /%u", text, 1u << (BITS_MIN_IPV6 - prefix->bits),
			    BITS_MIN_IPV6);
	return weir_advise(refusal, "name a smaller network, or add '--force' if you mean all of them");
}

/* For a prefix with host bits: the network it stands for may be larger than intended. For an address as logged:
 * that the rest is cut off.
 */
static void note_network(const struct request *request, const char *source, const struct weir_prefix *network)
{
	char text[WEIR_PREFIX_TEXT_BYTES], addresses[32];
	struct weir_refusal ignored;
	struct weir_prefix same;

	if (request->options->removes || !weir_parse_prefix(source, &same, &ignored))
		return;
	if (network->bits == (network->family == 6 ? 128 : 32)) {
		weir_diag_note(request->diag, "%s: the address alone counts, %s", source,
			       weir_format_prefix(network, text));
		return;
	}
	weir_diag_note(request->diag, "%s is the network %s%s%s", source, weir_format_prefix(network, text),
		       network->family == 4 ? ", " : "",
		       network->family == 4 ? format_addresses(network, addresses) : "");
}

/* Apply --for, --by, --reason, --remove and --force to an order that was read. */
static int complete_order(const struct request *request, struct weir_timed_order *order, struct weir_refusal *refusal)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	if (request->options->removes) {
		order->lasts_ns = 0;
		return 0;
	}
	if (!order->lasts_ns)
		order->lasts_ns = request->lasts_ns;
	if (!order->by[0] && request->options->by)
		weir_order_set_by(order, request->options->by);
	if (!order->reason[0] && request->options->reason)
		weir_order_set_reason(order, request->options->reason);
	if (!order->lasts_ns) {
		weir_refuse(refusal, "no time given for '%s'", weir_format_prefix(&order->prefix, text));
		return weir_advise(refusal, request->input
						    ? "write '--for 1h', or a time after the source: '192.0.2.7 1h'"
						    : "write '--for 1h'");
	}
	/* A restored order passed these checks, or was forced, when it was first given. */
	if (request->options->forces || request->options->restores_from)
		return 0;
	return check_width(&order->prefix, refusal);
}

/* place: the line's position, or NULL. */
static int add_order(struct request *request, const struct weir_place *place, struct weir_timed_order *read)
{
	struct weir_timed_order *order;
	struct weir_refusal refusal = {};

	if (complete_order(request, read, &refusal)) {
		complain(request, place, &refusal);
		return 0;
	}
	order = weir_array_add((void **)&request->orders, request->count, sizeof(*order));
	if (!order)
		return weir_diag_fail(request->diag, ENOMEM, NULL, "cannot read the sources");
	*order = *read;
	request->count++;
	return 0;
}

static int read_argument(struct request *request, const char *source)
{
	struct weir_timed_order order = {};
	struct weir_refusal refusal = {};

	if (!weir_parse_network(source, &order.prefix, &refusal)) {
		note_network(request, source, &order.prefix);
		return add_order(request, NULL, &order);
	}
	complain(request, NULL, &refusal);
	return 0;
}

/* A line in a form that only feeds have (rules/list_file.h). Its label becomes the reason. */
static int read_feed_line(struct request *request, struct weir_line_reader *reader, const struct weir_place *place)
{
	_cleanup_(weir_freep) struct weir_list_entry *entry = calloc(1, sizeof(*entry));
	struct weir_refusal refusal = {};
	int err = 0;

	if (!entry)
		return weir_diag_fail(request->diag, ENOMEM, NULL, "cannot read the sources");
	switch (weir_list_entry_parse(reader->line, !request->has_lines, entry, &refusal)) {
	case WEIR_LIST_READ:
		request->has_lines = true;
		break;
	case WEIR_LIST_WRONG:
		complain(request, place, &refusal);
		break;
	case WEIR_LIST_NONE:
		break;
	}
	for (size_t i = 0; !err && i < entry->count; i++) {
		struct weir_timed_order order = {.prefix = entry->prefixes[i]};

		weir_order_set_reason(&order, entry->label);
		err = add_order(request, place, &order);
	}
	return err;
}

static int read_text(struct request *request, struct weir_line_reader *reader)
{
	const struct weir_place place = {.file = request->input, .line = reader->number, .column = 1};
	struct weir_timed_order order;
	struct weir_refusal refusal = {};

	if (weir_list_line_is_of_feed(reader->line))
		return read_feed_line(request, reader, &place);
	switch (weir_order_parse(reader->line, weir_host_wall_ns(weir_host_now_ns()), &order, &refusal)) {
	case WEIR_ORDER_READ:
		request->has_lines = true;
		/* The hit counts of other programs do not count here. */
		if (!request->options->restores_from)
			order.hits = 0;
		return add_order(request, &place, &order);
	case WEIR_ORDER_WRONG:
		complain(request, &place, &refusal);
		break;
	case WEIR_ORDER_OVER:
		request->has_lines = true;
		break;
	case WEIR_ORDER_NONE:
		break;
	}
	return 0;
}

static void complain_of_line(struct request *request, const struct weir_line_reader *reader, const char *why)
{
	const struct weir_place place = {.file = request->input, .line = reader->number, .column = 1};
	struct weir_refusal refusal = {.hint = LINE_FORM};

	snprintf(refusal.message, sizeof(refusal.message), "the line %s", why);
	complain(request, &place, &refusal);
}

/* Returns 1 to continue, 0 at the end, or -errno. */
static int read_line(struct request *request, struct weir_line_reader *reader)
{
	int err;

	/* A file that is not a list of sources could have a million mistakes. */
	if (request->mistakes > WEIR_MISTAKES_MAX)
		return 0;
	switch (weir_read_line(reader)) {
	case WEIR_LINE_TEXT:
		err = read_text(request, reader);
		return err ?: 1;
	case WEIR_LINE_TOO_LONG:
		complain_of_line(request, reader, "is longer than 1000 bytes");
		return 1;
	case WEIR_LINE_ZERO_BYTE:
		complain_of_line(request, reader, "contains a zero byte");
		return 1;
	case WEIR_LINE_TOO_MUCH:
		return weir_diag_error(request->diag, NULL, NULL, "split it into several commands",
				       "%s is more than %llu MB", request->input, INPUT_BYTES_MAX >> 20);
	case WEIR_LINE_END:
		break;
	}
	if (ferror(reader->stream))
		return weir_diag_fail(request->diag, errno, NULL, "cannot read %s", request->input);
	return 0;
}

static int read_stream(struct request *request, FILE *stream, const char *name)
{
	struct weir_line_reader reader = {.stream = stream, .bytes_max = INPUT_BYTES_MAX};
	int err;

	request->input = name;
	do
		err = read_line(request, &reader);
	while (err > 0);
	return err;
}

/* "-" is standard input. */
static int read_file(struct request *request, const char *path)
{
	_cleanup_(weir_fclosep) FILE *stream = NULL;
	int err;

	if (!strcmp(path, "-"))
		return read_stream(request, stdin, STANDARD_INPUT);
	err = weir_text_file_open(path, &stream);
	if (!err)
		return read_stream(request, stream, path);
	return weir_diag_error(request->diag, NULL, NULL, NULL, "cannot read '%s': %s", path,
			       weir_text_file_explain(err));
}

/* An invalid line in a feed does not affect the other lines. Other input is processed completely or not at all. */
static bool has_good_lines(const struct request *request)
{
	return request->count && request->bad_lines == request->mistakes && request->mistakes <= WEIR_MISTAKES_MAX;
}

int weir_block_read_sources(struct request *request)
{
	const struct weir_options *options = request->options;
	int err = 0;

	if (options->feed || options->restores_from)
		err = read_file(request, options->feed ?: options->restores_from);
	for (size_t i = 0; !err && i < options->argument_count; i++)
		err = strcmp(options->arguments[i], "-") ? read_argument(request, options->arguments[i])
							 : read_file(request, "-");
	if (request->mistakes > WEIR_MISTAKES_MAX)
		weir_diag_error(request->diag, NULL, NULL, NULL, "more than %d mistakes; the rest was not read",
				WEIR_MISTAKES_MAX);
	else if (request->mistakes > MISTAKES_MAX)
		weir_diag_error(request->diag, NULL, NULL, NULL, "... and %zu more", request->mistakes - MISTAKES_MAX);
	if (err)
		return err;
	request->count = weir_orders_sort(request->orders, request->count);
	if (request->mistakes)
		return has_good_lines(request) ? 0 : -EINVAL;
	/* The program that should have written the lines may have failed. Whether a feed may be empty is decided by
	 * --sync.
	 */
	if (options->argument_count && !options->removes && !request->count && !request->has_lines)
		return weir_diag_error(request->diag, NULL, NULL, "write a source on each line",
				       "%s contains no source", request->input);
	return 0;
}

/* The action requested instead of blocking SOURCE..., at most one; NULL: none. */
static const char *find_deed(const struct weir_options *options, size_t *ret_count)
{
	const struct {
		const char *name;
		bool is_given;
	} deeds[] = {
		{"--list", options->lists},
		{"--remove", options->removes},
		{"--sync", options->feed != NULL},
		{"--save", options->saves_to != NULL},
		{"--restore", options->restores_from != NULL},
	};
	const char *name = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
		if (deeds[i].is_given) {
			name = deeds[i].name;
			++*ret_count;
		}
	return name;
}

static int check_names(const struct weir_options *options, struct weir_diag *diag)
{
	struct weir_timed_order order = {};
	struct weir_refusal refusal = {};
	char by[WEIR_BY_BYTES], hint[96];

	if (options->by && weir_parse_by(options->by, by, &refusal))
		return weir_diag_error(diag, NULL, NULL, refusal.hint, "--by: %s", refusal.message);
	if (!options->reason)
		return 0;
	weir_order_set_by(&order, options->by ?: WEIR_BY_HAND);
	weir_order_set_reason(&order, options->reason);
	if (order.reason[0] && !strcmp(order.reason, options->reason))
		return 0;
	snprintf(hint, sizeof(hint), "write 1 to %zu bytes of text%s%s, without spaces around it",
		 weir_order_reason_bytes(order.by), order.by[0] ? " beside --by " : "", order.by);
	return weir_diag_error(diag, NULL, NULL, hint, "'%s' is not a valid reason", options->reason);
}

/* For 'weir block 192.0.2.7 10m': only a line of a file may have its time there. */
static int check_arguments(const struct weir_options *options, bool takes_time, struct weir_diag *diag)
{
	struct weir_refusal refusal;
	uint64_t ns;

	for (size_t i = 0; i < options->argument_count; i++) {
		if (weir_parse_duration(options->arguments[i], &ns, &refusal))
			continue;
		weir_advise(&refusal, takes_time && !options->lasts ? "write '--for %s'" : "leave it out",
			    options->arguments[i]);
		return weir_diag_error(diag, NULL, NULL, refusal.hint, "'%s' is a time, not a source",
				       options->arguments[i]);
	}
	return 0;
}

int weir_block_check_options(const struct weir_command *command, struct request *request)
{
	const struct weir_options *options = request->options;
	struct weir_diag *diag = request->diag;
	struct weir_refusal refusal;
	size_t deed_count;
	const char *deed = find_deed(options, &deed_count);
	const bool takes_time = !deed || options->feed || options->restores_from;
	const bool takes_reason = takes_time || options->removes;

	if (options->lasts && weir_parse_duration(options->lasts, &request->lasts_ns, &refusal))
		return weir_diag_error(diag, NULL, NULL, refusal.hint, "--for: %s", refusal.message);
	if (deed_count > 1)
		return weir_diag_error(diag, NULL, NULL, "leave one of them out",
				       "'%s' is an option of another command", deed);
	if ((options->lasts && !takes_time) || (options->reason && !takes_reason))
		return weir_diag_error(diag, NULL, NULL, "leave one of them out", "'%s' does not go with '%s'", deed,
				       options->reason && !takes_reason ? "--reason" : "--for");
	if (deed && options->extends)
		return weir_diag_error(diag, NULL, NULL, "leave one of them out", "'%s' does not go with '--extend'",
				       deed);
	if (options->means_all && (!options->removes || options->argument_count))
		return weir_diag_error(diag, NULL, NULL, NULL, "'--all' is for '--remove', without a source");
	if (deed && !options->removes && options->argument_count)
		return weir_diag_error(diag, NULL, NULL, "leave the rest out", "'%s' takes no source", deed);
	if ((!deed || options->removes) && !options->means_all && !options->argument_count)
		return options->removes ? weir_diag_error(diag, NULL, NULL, NULL,
							  "no source given: write 'weir %s --remove SOURCE', or 'weir "
							  "%s --remove --all'",
							  command->name, command->name)
					: weir_diag_error(diag, NULL, NULL, NULL,
							  "no source given: write 'weir %s SOURCE --for 1h'; '-' reads "
							  "sources from standard input",
							  command->name);
	return check_arguments(options, takes_time, diag) ?: check_names(options, diag);
}
