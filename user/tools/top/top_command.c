// SPDX-License-Identifier: GPL-2.0-only
/* weir top: rules and busiest flows, refreshed every second. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "cli/command.h"
#include "host/host.h"
#include "cli/options.h"
#include "cli/print.h"
#include "top/top_screen.h"
#include "top/top.h"

#define PERIOD_MS 1000

static const struct weir_command weir_top_command = {
	.name = "top",
	.options = "1nINjWCh",
	.means_attached = true,
	.about = "Show rules and the busiest flows on the whole terminal, updated every second. For each rule, it "
		 "shows what was offered, admitted and dropped, the limit in force, the share of it that the busiest "
		 "flow has used, and the last minute. Outgoing packets have a separate line if rules limit them. "
		 "Below the rules are the contended flows of rules with fairBy: the level, and how many share it. "
		 "'h' shows the keys. It follows reloads and ends at a detach. "
		 "--once and --json print one second, for scripts; --once lists the rule that drops most first.",
	.example = "  weir top\n  weir top --once",
};

/* ---- once ---- */

/* What drops most comes first; otherwise the order of evaluation stays. */
static int compare_drops(const void *left, const void *right)
{
	const struct weir_top_rule *a = *(const struct weir_top_rule *const *)left,
				   *b = *(const struct weir_top_rule *const *)right;

	if (a->rates.dropped != b->rates.dropped)
		return a->rates.dropped > b->rates.dropped ? -1 : 1;
	if (a->rates.would_drop != b->rates.would_drop)
		return a->rates.would_drop > b->rates.would_drop ? -1 : 1;
	return (a > b) - (a < b);
}

static void print_rules(const struct weir_top *top)
{
	_cleanup_(weir_freep) const struct weir_top_rule **rules = calloc(top->rule_count + 1, sizeof(*rules));
	_cleanup_(weir_table_free) struct weir_table table = {};

	if (!rules)
		return;
	for (size_t i = 0; i < top->rule_count; i++)
		rules[i] = &top->rules[i];
	qsort(rules, top->rule_count, sizeof(*rules), compare_drops);
	weir_table_head(&table, weir_describe_top_rule, top);
	for (size_t i = 0; i < top->rule_count; i++)
		weir_table_add(&table, weir_describe_top_rule, top, rules[i]);
	if (!top->limits_out)
		weir_table_leave_out(&table, "direction");
	weir_table_print(&table, stdout);
}

static void print_rates(const struct weir_top *top, const struct weir_top_rates *rates)
{
	printf("offered %.0f/s, admitted %.0f/s, dropped %.0f/s", rates->offered, rates->admitted, rates->dropped);
	if (weir_top_observes(top))
		printf(", would drop %.0f/s", rates->would_drop);
}

static void print_flows(const struct weir_top *top, size_t most)
{
	_cleanup_(weir_table_free) struct weir_table table = {};
	const struct weir_flows *flows = &top->flows.flows;

	weir_table_list(&table, weir_describe_flow_use, top->instance, flows->busiest,
			flows->count < most ? flows->count : most, sizeof(*flows->busiest));
	weir_table_leave_out(&table, ">occupied");
	weir_table_print(&table, stdout);
}

static int print_once(struct weir_top *top, const struct weir_options *options, struct weir_diag *diag)
{
	const struct timespec second = {.tv_sec = 1};
	char words[WEIR_CLUSTER_WORDS_BYTES];
	int err;

	nanosleep(&second, NULL);
	err = weir_top_read(top, diag);
	if (err)
		return err;
	weir_instance_warn_of_losses(top->instance, diag);
	if (options->wants_json)
		return weir_json_print(weir_top_describe(top), diag);
	printf("instance %s: ", top->instance->name);
	print_rates(top, &top->total);
	if (top->limits_out) {
		printf("; outgoing: ");
		print_rates(top, &top->out);
	}
	printf("; %llu active flow%s\n", (unsigned long long)top->flows.flows.active,
	       weir_plural(top->flows.flows.active));
	if (top->cluster.rule_count)
		printf("cluster %s\n", weir_cluster_words(&top->cluster, words));
	putchar('\n');
	print_rules(top);
	weir_print_fair(top->instance, &top->fair);
	if (top->flow_count) {
		putchar('\n');
		print_flows(top, options->most);
	}
	return weir_flush_results(diag);
}

/* ---- on the screen ---- */

/* The result is shown on the screen, since there is no other place for it. */
static void observe(struct weir_top_screen *screen, const struct weir_top *top)
{
	struct weir_diag diag = {};
	int err = weir_top_observe(top->instance->name, screen->asked, screen->would_observe, &diag);

	if (err)
		snprintf(screen->said, sizeof(screen->said), "not done: %s",
			 diag.count && diag.entries[0].message ? diag.entries[0].message : strerror(-err));
	else
		snprintf(screen->said, sizeof(screen->said), "rule '%s' %s now; 'weir rollback' undoes it",
			 screen->asked, screen->would_observe ? "only observes" : "enforces");
	weir_diag_free(&diag);
	screen->asked[0] = '\0';
}

/* Wait until the next reading. Returns true if it is time to end. */
static bool wait_for_keys(struct weir_top_screen *screen, const struct weir_top *top, int signal_fd)
{
	const uint64_t end_ns = weir_host_now_ns() + PERIOD_MS * 1000000ull;
	struct pollfd polled[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = signal_fd, .events = POLLIN},
	};

	for (;;) {
		const uint64_t now_ns = weir_host_now_ns();
		enum weir_top_key key;

		if (now_ns >= end_ns)
			return false;
		/* A change of the window's size interrupts poll(); ncurses has recorded it. */
		if (poll(polled, ARRAY_SIZE(polled), (end_ns - now_ns) / 1000000 + 1) < 0 && errno != EINTR)
			return true;
		if (polled[1].revents || polled[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return true;
		key = weir_top_screen_take_keys(screen, top);
		if (key == WEIR_TOP_END)
			return true;
		if (key == WEIR_TOP_OBSERVE) {
			observe(screen, top);
			return false; /* read the current figures */
		}
		weir_top_screen_draw(screen, top);
	}
}

static int show(struct weir_top *top, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int signal_fd = weir_open_end_signals(diag);
	struct weir_top_screen screen = {};
	int err = signal_fd < 0 ? signal_fd : weir_top_screen_begin(diag);

	if (err)
		return err;
	do {
		if (!screen.is_frozen)
			err = weir_top_read(top, diag);
		if (!err)
			weir_top_screen_draw(&screen, top);
	} while (!err && !wait_for_keys(&screen, top, signal_fd));
	weir_top_screen_end();
	return err;
}

static int open_and_show(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_top_close) struct weir_top top = {};
	int err = weir_top_open(options->instance, &top, diag);

	if (err)
		return err;
	if (options->once || options->wants_json)
		return print_once(&top, options, diag);
	err = show(&top, diag);
	if (err != -ENOENT)
		return err == -ENOTTY ? -EINVAL : err;
	fprintf(stderr, "weir top: instance '%s' was detached\n", options->instance);
	return 0;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_top_command, argc, argv, open_and_show);
}

const struct weir_command_entry weir_top_entry = {&weir_top_command, run_command,
						  "watch rules and the busiest flows, updated every second"};
