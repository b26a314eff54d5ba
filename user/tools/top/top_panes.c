// SPDX-License-Identifier: GPL-2.0-only
/* The panes of the screen of weir top, line by line. */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/util.h"
#include "host/host.h"
#include "report/status.h"
#include "top/top_panes.h"

static bool has_utf8;

void weir_top_take_locale(void)
{
	setlocale(LC_CTYPE, "");
	has_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* ---- pieces of a line ---- */

static int name_columns(void)
{
	return COLS >= VERY_WIDE_COLUMNS ? 32 : 16;
}

/* Width for "20/s per source/24". */
static int limit_columns(void)
{
	return COLS >= WIDE_COLUMNS ? 24 : 18;
}

/* Put text into `columns` columns, cut with an ellipsis; returns the column after it. Text beyond the edge does not
 * continue in the next line, and a number that would lose digits there is left out.
 */
static int put(int y, int x, int columns, bool is_right, const char *text)
{
	wchar_t wide[TEXT_MAX];
	size_t length = mbstowcs(wide, text, TEXT_MAX - 1);
	const int after = x + (columns > 0 ? columns : 0);
	int used = 0;
	size_t kept = 0;

	if (after > COLS)
		columns = is_right ? 0 : COLS - x;
	if (columns <= 0 || length == (size_t)-1)
		return after;
	wide[length < TEXT_MAX - 1 ? length : TEXT_MAX - 1] = L'\0';
	while (wide[kept]) {
		int width = wcwidth(wide[kept]);

		if (width < 0) {
			wide[kept] = L'?';
			width = 1;
		}
		if (used + width > columns)
			break;
		used += width;
		kept++;
	}
	if (wide[kept] && kept)
		wide[kept - 1] = has_utf8 ? L'\u2026' : L'~';
	mvaddnwstr(y, is_right ? x + columns - used : x, wide, kept);
	return after;
}

static int put_number(int y, int x, int columns, double number)
{
	char text[16];

	return put(y, x, columns, true, weir_top_number(number, text));
}

static int put_share(int y, int x, double share)
{
	char text[16] = "-";
	const int pair = share >= 1 ? PAIR_DROPS : share >= 0.8 ? PAIR_NEAR : 0;

	if (share >= 0)
		snprintf(text, sizeof(text), "%.0f %%", 100 * share);
	attron(COLOR_PAIR(pair));
	x = put(y, x, SHARE_COLUMNS, true, text);
	attroff(COLOR_PAIR(pair));
	return x;
}

/* Draw the last complete seconds, the newest at the right: what was offered in each, relative to the highest. */
static void put_spark(int y, int x, int columns, const struct weir_top_rule *rule)
{
	static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const plain[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
	const int seconds = columns < WEIR_MINUTE - 1 ? columns : WEIR_MINUTE - 1;
	uint64_t most = 1;

	if (!rule->passed_by_second)
		return;
	for (int i = 0; i < WEIR_MINUTE - 1; i++) {
		uint64_t offered = rule->passed_by_second[i] + rule->blocked_by_second[i];

		most = offered > most ? offered : most;
	}
	for (int i = 0; i < seconds; i++) {
		const int second = WEIR_MINUTE - 1 - seconds + i;
		const uint64_t offered = rule->passed_by_second[second] + rule->blocked_by_second[second];
		const size_t level = offered ? 1 + offered * 7 / most : 0;

		if (rule->blocked_by_second[second])
			attron(COLOR_PAIR(PAIR_DROPS));
		mvaddstr(y, x + i, has_utf8 ? blocks[level] : plain[level]);
		attroff(COLOR_PAIR(PAIR_DROPS));
	}
}

/* ---- selection and order ---- */

static bool is_meant(const struct weir_top_screen *screen, const char *one, const char *two)
{
	return !screen->filter[0] || strcasestr(one, screen->filter) || strcasestr(two, screen->filter);
}

static enum weir_top_sort compare_sort; /* qsort(3) cannot pass on a context */

static double lost(const struct weir_top_rates *rates)
{
	return rates->dropped + rates->would_drop;
}

static int compare_rules(const void *left, const void *right)
{
	const struct weir_top_rule *a = *(const struct weir_top_rule *const *)left;
	const struct weir_top_rule *b = *(const struct weir_top_rule *const *)right;
	double difference = 0;

	if (compare_sort == WEIR_TOP_BY_NAME && strcmp(a->name, b->name))
		return strcmp(a->name, b->name);
	if (compare_sort == WEIR_TOP_BY_OFFERED)
		difference = b->rates.offered - a->rates.offered;
	if (compare_sort == WEIR_TOP_BY_DROPPED)
		difference = lost(&b->rates) - lost(&a->rates);
	if (compare_sort == WEIR_TOP_BY_SHARE)
		difference = b->share - a->share;
	if (difference)
		return difference < 0 ? -1 : 1;
	return a < b ? -1 : a > b;
}

const struct weir_top_rule **weir_top_choose_rules(const struct weir_top_screen *screen, const struct weir_top *top,
						   size_t *ret_count)
{
	const struct weir_top_rule **chosen = calloc(top->rule_count + 1, sizeof(*chosen));
	size_t count = 0;

	for (size_t i = 0; chosen && i < top->rule_count; i++)
		if (is_meant(screen, top->rules[i].name, top->rules[i].resource))
			chosen[count++] = &top->rules[i];
	compare_sort = screen->sort;
	if (chosen)
		qsort(chosen, count, sizeof(*chosen), compare_rules);
	*ret_count = count;
	return chosen;
}

/* ---- panes ---- */

static const char *const sort_words[WEIR_TOP_SORTS] = {"dropped", "rule files", "offered", "share", "name"};

/* "offered 120k/s  admitted 100k/s  dropped 20k/s". */
static const char *words_of_rates(const struct weir_top *top, const struct weir_top_rates *rates, char words[TEXT_MAX])
{
	const bool observes = top->instance->info.observes;
	char number[4][16];

	snprintf(words, TEXT_MAX, "offered %s/s  admitted %s/s  %s %s/s%s%s%s",
		 weir_top_number(rates->offered, number[0]), weir_top_number(rates->admitted, number[1]),
		 observes ? "would drop" : "dropped",
		 weir_top_number(observes ? rates->would_drop : rates->dropped, number[2]),
		 top->answers ? "  answered " : "", top->answers ? weir_top_number(rates->answered, number[3]) : "",
		 top->answers ? "/s" : "");
	return words;
}

/* Lines in the head: one more if there are rules for outgoing packets. */
static int head_lines(const struct weir_top *top)
{
	return top->limits_out ? 4 : 3;
}

/* Draw a line below the head if hosts share rules; otherwise the line is empty. */
static void draw_cluster(const struct weir_top *top)
{
	const bool is_bad = top->cluster.alone || !top->cluster.trip_us;
	char words[WEIR_CLUSTER_WORDS_BYTES], line[WEIR_CLUSTER_WORDS_BYTES + 16];

	if (!top->cluster.rule_count)
		return;
	snprintf(line, sizeof(line), "cluster %s", weir_cluster_words(&top->cluster, words));
	attron(COLOR_PAIR(is_bad ? PAIR_DROPS : 0));
	put(head_lines(top) - 1, 0, COLS, false, line);
	attroff(COLOR_PAIR(is_bad ? PAIR_DROPS : 0));
}

static void draw_head(const struct weir_top_screen *screen, const struct weir_top *top)
{
	const struct weir_instance *instance = top->instance;
	char line[TEXT_MAX], age[WEIR_WORDS_BYTES], clock[16], number[16], rates[TEXT_MAX];
	char penalised[40] = "";
	const time_t now = time(NULL);
	size_t used;

	strftime(clock, sizeof(clock), "%T", localtime(&now));
	used = snprintf(line, sizeof(line), "weir top: %s on", instance->name);
	for (size_t i = 0; i < instance->link_count && used < sizeof(line) - 64; i++)
		if (instance->links[i].ifindex && weir_link_stands(instance->links, instance->link_count, i))
			used += snprintf(line + used, sizeof(line) - used, " %s", instance->links[i].interface);
	used += snprintf(line + used, sizeof(line) - used, "%s, for %s", instance->info.observes ? " (observes)" : "",
			 weir_format_age(weir_host_now_ns() - instance->info.attached_ns, age));
	if (instance->unconfirmed.is_so && used < sizeof(line))
		used += snprintf(line + used, sizeof(line) - used,
				 "; not confirmed: the previous rules return in %llu s",
				 (unsigned long long)weir_unconfirmed_left_s(&instance->unconfirmed));
	if (top->lost[0] && used < sizeof(line))
		snprintf(line + used, sizeof(line) - used, "; program gone from %s: see 'weir status'", top->lost);
	weir_make_printable(line, "");
	attron(A_BOLD);
	put(0, 0, COLS - 10, false, line);
	put(0, COLS - 9, 9, true, screen->is_frozen ? "FROZEN" : clock);
	attroff(A_BOLD);
	if (top->flows.has_penalties)
		snprintf(penalised, sizeof(penalised), "  penalised %llu",
			 (unsigned long long)top->flows.penalties.active);
	snprintf(line, sizeof(line), "%s  flows %s%s  controller %s", words_of_rates(top, &top->total, rates),
		 weir_top_number(top->flows.flows.active, number), penalised,
		 top->controller.state == WEIR_CONTROLLER_NOT_NEEDED
			 ? "not needed"
			 : weir_controller_state_names[top->controller.state]);
	put(1, 0, COLS, false, line);
}

static int draw_rule_headings(int y)
{
	int x = 0;

	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	x = put(y, x, name_columns(), false, "RULE");
	if (COLS >= WIDE_COLUMNS)
		x = put(y, x + 1, name_columns(), false, "RESOURCE");
	x = put(y, x, RATE_COLUMNS, true, "OFFERED/s");
	x = put(y, x, RATE_COLUMNS + 1, true, "ADMITTED/s");
	x = put(y, x, RATE_COLUMNS, true, "DROPPED/s");
	x = put(y, x + 1, limit_columns(), false, "LIMIT NOW");
	x = put(y, x, SHARE_COLUMNS, true, "SHARE");
	put(y, x + 1, COLS - x - 1, false, "LAST MINUTE");
	attroff(A_REVERSE);
	return y + 1;
}

/* Incoming traffic needs no word. */
static const char *const direction_words[] = {
	[WEIR_MATCHES_OUT] = "out: ", [WEIR_MATCHES_BOTH] = "both: ", [0] = "", [WEIR_MATCHES_IN] = ""};

static void draw_rule(int y, const struct weir_top_rule *rule, bool is_chosen)
{
	const bool drops = rule->rates.dropped > 0;
	char name[WEIR_NAME_BYTES + 16], resource[WEIR_NAME_BYTES + 16], number[16], dropped[24];
	int x = 0;

	snprintf(resource, sizeof(resource), "%s%s", direction_words[rule->directions & WEIR_MATCHES_BOTH],
		 rule->resource);
	snprintf(name, sizeof(name), "%s%s", rule->name, rule->observes ? " (observes)" : "");
	attron(is_chosen ? A_BOLD | A_UNDERLINE : 0);
	x = put(y, x, name_columns(), false, name);
	attroff(A_BOLD | A_UNDERLINE);
	if (COLS >= WIDE_COLUMNS)
		x = put(y, x + 1, name_columns(), false, resource);
	x = put_number(y, x, RATE_COLUMNS, rule->rates.offered);
	x = put_number(y, x, RATE_COLUMNS + 1, rule->rates.admitted);
	attron(COLOR_PAIR(drops ? PAIR_DROPS : 0));
	snprintf(dropped, sizeof(dropped), rule->drops_nothing ? "(%s)" : "%s",
		 weir_top_number(rule->drops_nothing ? rule->rates.would_drop : rule->rates.dropped, number));
	x = put(y, x, RATE_COLUMNS, true, dropped);
	attroff(COLOR_PAIR(drops ? PAIR_DROPS : 0));
	x = put(y, x + 1, limit_columns(), false, rule->limit);
	x = put_share(y, x, rule->share);
	put_spark(y, x + 1, COLS - x - 1, rule);
}

static size_t scroll_to(size_t first, size_t count, size_t lines)
{
	return count <= lines ? 0 : first > count - lines ? count - lines : first;
}

/* Returns the line after the rules. */
static int draw_rules(struct weir_top_screen *screen, const struct weir_top *top, int y, int lines)
{
	size_t count = 0, shown;
	_cleanup_(weir_freep) const struct weir_top_rule **rules = weir_top_choose_rules(screen, top, &count);

	/* If not all rules fit, the last line says how many are missing, unless it is the only line. */
	shown = count > (size_t)lines && lines > 1 ? lines - 1 : lines;
	y = draw_rule_headings(y);
	if (screen->cursor >= count)
		screen->cursor = count ? count - 1 : 0;
	if (screen->cursor < screen->first_rule)
		screen->first_rule = screen->cursor;
	if (screen->cursor >= screen->first_rule + shown)
		screen->first_rule = screen->cursor - shown + 1;
	screen->first_rule = scroll_to(screen->first_rule, count, shown);
	if (count > shown && shown < (size_t)lines) {
		char line[80];

		snprintf(line, sizeof(line), "%zu more rule%s: arrows move, s sorts, / filters", count - shown,
			 weir_plural(count - shown));
		attron(A_DIM);
		put(y + shown, 0, COLS, false, line);
		attroff(A_DIM);
	}
	for (size_t i = 0; rules && i < shown && screen->first_rule + i < count; i++)
		draw_rule(y + (int)i, rules[screen->first_rule + i],
			  !screen->is_in_flows && screen->first_rule + i == screen->cursor);
	if (!screen->is_in_flows)
		mvchgat(y - 1, 0, -1, A_REVERSE | A_BOLD, 0, NULL);
	return y + lines;
}

/* Draw contended flows of rules with fairBy, below the rules, in at most `lines`. Returns the line after them. */
static int draw_fair(const struct weir_top_screen *screen, const struct weir_top *top, int y, int lines)
{
	char words[WEIR_WORDS_BYTES], line[WEIR_NAME_BYTES + WEIR_WORDS_BYTES + 16];
	size_t left_out = 0;
	int drawn = 0;

	attron(COLOR_PAIR(PAIR_NEAR));
	for (size_t i = 0; i < top->fair.count; i++) {
		const char *rule = top->instance->rules[top->fair.uses[i].rule_slot].name;

		weir_fair_words(top->instance, &top->fair.uses[i], words);
		snprintf(line, sizeof(line), "%s: contended: %s", rule, words);
		if (!is_meant(screen, rule, words))
			continue;
		if (drawn < lines)
			put(y + drawn++, 0, COLS, false, line);
		else
			left_out++;
	}
	if (left_out && drawn) {
		snprintf(line, sizeof(line), "%zu more contended flows: see 'weir status'", left_out + 1);
		move(y + drawn - 1, 0);
		clrtoeol();
		put(y + drawn - 1, 0, COLS, false, line);
	}
	attroff(COLOR_PAIR(PAIR_NEAR));
	return y + drawn;
}

/* A line in one of the lower panes: its text, which is filtered, and the function that draws it. */
struct flow_pane {
	size_t count;
	const char *(*text)(const struct weir_top *top, size_t i);
	const char *(*rule)(const struct weir_top *top, size_t i);
	void (*draw_headings)(int y, const char *age);
	void (*draw)(int y, const struct weir_top *top, size_t i);
};

static int flow_text_columns(void)
{
	const int columns = COLS - name_columns() - 2 * UNITS_COLUMNS - SHARE_COLUMNS - 2;

	/* The flow's name is more important than what is to its right. */
	return columns < FLOW_COLUMNS_MIN ? FLOW_COLUMNS_MIN : columns;
}

static const char *flow_text(const struct weir_top *top, size_t i)
{
	return top->flow_lines[i].text;
}

static const char *flow_rule(const struct weir_top *top, size_t i)
{
	return top->flow_lines[i].rule;
}

/* ", 12 s ago": reading a full table takes long, so it is done rarely. Otherwise "". */
static const char *age_of_flows(const struct weir_top *top, char age[WEIR_WORDS_BYTES + 8])
{
	const uint64_t now_ns = weir_host_now_ns();
	char words[WEIR_WORDS_BYTES];

	age[0] = '\0';
	if (top->flows_ns && now_ns > top->flows_ns + OLD_NS)
		snprintf(age, WEIR_WORDS_BYTES + 8, ", %s ago", weir_format_age(now_ns - top->flows_ns, words));
	return age;
}

static void draw_flow_headings(int y, const char *age)
{
	char title[WEIR_WORDS_BYTES + 32];
	int x;

	snprintf(title, sizeof(title), "BUSIEST FLOWS%s", age);
	x = put(y, 0, flow_text_columns(), false, title);

	x = put(y, x + 1, name_columns(), false, "RULE");
	x = put(y, x, UNITS_COLUMNS, true, "IN WINDOW");
	x = put(y, x, UNITS_COLUMNS, true, "THRESHOLD");
	put(y, x + 1, SHARE_COLUMNS, true, "SHARE");
}

static int put_amount(int y, int x, const struct weir_flow_use *use, uint64_t amount)
{
	char words[WEIR_AMOUNT_BYTES];

	return use->is_wait ? put(y, x, UNITS_COLUMNS, true, weir_flow_amount(use, amount, words))
			    : put_number(y, x, UNITS_COLUMNS, amount);
}

static void draw_flow(int y, const struct weir_top *top, size_t i)
{
	const struct weir_top_flow *flow = &top->flow_lines[i];
	int x = put(y, 0, flow_text_columns(), false, flow->text);

	x = put(y, x + 1, name_columns(), false, flow->rule);
	x = put_amount(y, x, flow->use, flow->use->units);
	x = flow->share < 0 ? put(y, x, UNITS_COLUMNS, true, "?") : put_amount(y, x, flow->use, flow->use->threshold);
	put_share(y, x + 1, flow->share);
}

static const char *drop_text(const struct weir_top *top, size_t i)
{
	return top->drop_lines[i].text;
}

static const char *drop_rule(const struct weir_top *top, size_t i)
{
	return top->drop_lines[i].rule;
}

static void draw_drop_headings(int y, const char *age)
{
	char title[WEIR_WORDS_BYTES + 32];
	int x;

	snprintf(title, sizeof(title), "DROPPED IN %s%s", age[0] ? "A MINUTE" : "THE LAST MINUTE", age);
	x = put(y, 0, flow_text_columns(), false, title);

	x = put(y, x + 1, name_columns(), false, "RULE");
	x = put(y, x, UNITS_COLUMNS, true, "IN ALL");
	put(y, x, UNITS_COLUMNS + SHARE_COLUMNS + 1, true, "LAST DROP");
}

static void draw_drop(int y, const struct weir_top *top, size_t i)
{
	const struct weir_top_drop *drop = &top->drop_lines[i];
	const uint64_t now_ns = weir_host_now_ns();
	char age[WEIR_WORDS_BYTES], words[WEIR_WORDS_BYTES + 8];
	int x = put(y, 0, flow_text_columns(), false, drop->text);

	x = put(y, x + 1, name_columns(), false, drop->rule);
	attron(COLOR_PAIR(PAIR_DROPS));
	x = put_number(y, x, UNITS_COLUMNS, drop->packets);
	attroff(COLOR_PAIR(PAIR_DROPS));
	snprintf(words, sizeof(words), "%s ago",
		 weir_format_age(now_ns > drop->last_ns ? now_ns - drop->last_ns : 0, age));
	put(y, x, UNITS_COLUMNS + SHARE_COLUMNS + 1, true, words);
}

static void draw_flows(struct weir_top_screen *screen, const struct weir_top *top, int y, int lines)
{
	const struct flow_pane pane =
		screen->shows_dropped
			? (struct flow_pane){top->drop_count, drop_text, drop_rule, draw_drop_headings, draw_drop}
			: (struct flow_pane){top->flow_count, flow_text, flow_rule, draw_flow_headings, draw_flow};
	size_t passed_by = 0, drawn = 0, count = 0;
	char age[WEIR_WORDS_BYTES + 8];

	attron(A_REVERSE | (screen->is_in_flows ? A_BOLD : 0));
	mvhline(y, 0, ' ', COLS);
	pane.draw_headings(y, age_of_flows(top, age));
	attroff(A_REVERSE | A_BOLD);
	for (size_t i = 0; i < pane.count; i++)
		count += is_meant(screen, pane.text(top, i), pane.rule(top, i));
	screen->first_flow = scroll_to(screen->first_flow, count, lines);
	for (size_t i = 0; i < pane.count && drawn < (size_t)lines; i++) {
		if (!is_meant(screen, pane.text(top, i), pane.rule(top, i)))
			continue;
		if (passed_by++ < screen->first_flow)
			continue;
		pane.draw(y + 1 + (int)drawn++, top, i);
	}
}

static void draw_foot(const struct weir_top_screen *screen)
{
	char line[TEXT_MAX];

	if (screen->asked[0])
		snprintf(line, sizeof(line), "%s rule '%s'? y: yes, any other key: no",
			 screen->would_observe ? "only observe" : "enforce", screen->asked);
	else if (screen->said[0])
		snprintf(line, sizeof(line), "%s", screen->said);
	else if (screen->is_filtering)
		snprintf(line, sizeof(line), "filter: %s_   (Enter keeps it, Esc clears it)", screen->filter);
	else
		snprintf(line, sizeof(line),
			 "q quit  s sort: %s  d dropped  / filter%s%s  space freeze  o observe  h help",
			 sort_words[screen->sort], screen->filter[0] ? ": " : "", screen->filter);
	attron(screen->asked[0] || screen->said[0] ? A_BOLD : A_DIM);
	put(LINES - 1, 0, COLS, false, line);
	attroff(A_DIM | A_BOLD);
}

static void draw_help(int y)
{
	static const char *const lines[] = {
		"q            quit",
		"s            sort by the next: dropped, rule files, offered, share, name",
		"/            show only rules and flows with this text; Esc shows all again",
		"space        freeze, or resume",
		"d            flows: the busiest, or those that lost packets in the last minute",
		"Tab          let the arrows move in rules or in flows",
		"arrows, j k  move by a line; PgUp, PgDn by ten; Home to the top",
		"o            make the underlined rule only observe, or enforce again;",
		"             asks first",
		"",
		"Rates are packets a second since the last reading. 'offered' and 'admitted'",
		"are of the rule's resource, 'dropped' of the rule alone; where it observes,",
		"what it would drop, in brackets. 'share' is of the rule's busiest flow. The",
		"last minute is what was offered each second; red are the seconds in which",
		"something was dropped.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines) && (int)i + y < LINES - 1; i++)
		put(y + (int)i, 1, COLS - 2, false, lines[i]); /* none is wider than 78, so all fit into 80 columns */
}

void weir_top_screen_draw(struct weir_top_screen *screen, const struct weir_top *top)
{
	const int head = head_lines(top), lines = LINES - 3 - head; /* for rules and flows together */
	int rules = (int)top->rule_count, y;
	char rates[TEXT_MAX], out[TEXT_MAX + 16];

	erase();
	draw_head(screen, top);
	if (top->limits_out) {
		snprintf(out, sizeof(out), "outgoing: %s", words_of_rates(top, &top->out, rates));
		put(2, 0, COLS, false, out);
	}
	draw_cluster(top);
	if (screen->shows_help) {
		draw_help(head);
	} else if (lines > 1) {
		if (rules > (lines + 1) / 2)
			rules = (lines + 1) / 2;
		y = draw_rules(screen, top, head, rules);
		y = draw_fair(screen, top, y, lines / 5);
		draw_flows(screen, top, y + (LINES > 12), lines - (y - head - 1));
	}
	draw_foot(screen);
	refresh();
}
