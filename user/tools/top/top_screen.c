// SPDX-License-Identifier: GPL-2.0-only
#include "top/top_screen.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/util.h"
#include "cli/terminal.h"
#include "top/top_panes.h"

/* ---- the terminal ---- */

/* After a crash of ours, the terminal must be usable for debugging. */
static void end_and_die(int number)
{
	endwin(); // NOLINT(bugprone-signal-handler): the process dies of it anyway, and nothing else knows the terminal
	signal(number, SIG_DFL);
	raise(number);
}

int weir_top_screen_begin(struct weir_diag *diag)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};

	weir_top_take_locale();
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !newterm(NULL, stdout, stdin)) {
		weir_diag_error(diag, NULL, NULL, "'weir top --once' prints once and needs no terminal",
				"'weir top' needs a terminal that it can draw on%s",
				getenv("TERM") ? "" : ": TERM is not set");
		return -ENOTTY;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		signal(fatal[i], end_and_die);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	if (has_colors() && weir_terminal_has_colours(stdout)) {
		start_color();
		use_default_colors();
		init_pair(PAIR_DROPS, COLOR_RED, -1);
		init_pair(PAIR_NEAR, COLOR_YELLOW, -1);
		init_pair(PAIR_GOOD, COLOR_GREEN, -1);
	}
	return 0;
}

void weir_top_screen_end(void)
{
	endwin();
}

/* ---- keys ---- */

static void type_filter(struct weir_top_screen *screen, int key)
{
	const size_t length = strlen(screen->filter);

	if (key == 27)
		screen->filter[0] = '\0';
	if (key == 27 || key == '\n' || key == KEY_ENTER)
		screen->is_filtering = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length)
		screen->filter[length - 1] = '\0';
	else if (key >= ' ' && key < 127 && length < sizeof(screen->filter) - 1)
		screen->filter[length] = key; /* the rest is already zeros */
	if (length && !screen->filter[length - 1])
		memset(screen->filter + length - 1, 0, sizeof(screen->filter) - length + 1);
	if (!screen->filter[0])
		memset(screen->filter, 0, sizeof(screen->filter));
}

static void move_by(struct weir_top_screen *screen, long lines)
{
	size_t *first = screen->is_in_flows ? &screen->first_flow : &screen->cursor;

	*first = lines < 0 && *first < (size_t)-lines ? 0 : *first + lines;
}

/* The rule under the cursor. */
static void ask_to_observe(struct weir_top_screen *screen, const struct weir_top *top)
{
	size_t count = 0;
	_cleanup_(weir_freep) const struct weir_top_rule **rules = weir_top_choose_rules(screen, top, &count);

	if (!rules || screen->cursor >= count)
		return;
	snprintf(screen->asked, sizeof(screen->asked), "%s", rules[screen->cursor]->name);
	screen->would_observe = !rules[screen->cursor]->observes;
}

/* Returns true if it is time to end. */
static bool take_key(struct weir_top_screen *screen, const struct weir_top *top, int key)
{
	switch (key) {
	case 'q':
		return true;
	case 's':
		screen->sort = (screen->sort + 1) % WEIR_TOP_SORTS;
		break;
	case '/':
		screen->is_filtering = true;
		break;
	case 27:
		memset(screen->filter, 0, sizeof(screen->filter));
		screen->shows_help = false;
		break;
	case ' ':
		screen->is_frozen = !screen->is_frozen;
		break;
	case 'd':
		screen->shows_dropped = !screen->shows_dropped;
		break;
	case 'o':
		ask_to_observe(screen, top);
		break;
	case '\t':
		screen->is_in_flows = !screen->is_in_flows;
		break;
	case 'h':
	case '?':
		screen->shows_help = !screen->shows_help;
		break;
	case KEY_DOWN:
	case 'j':
		move_by(screen, 1);
		break;
	case KEY_UP:
	case 'k':
		move_by(screen, -1);
		break;
	case KEY_NPAGE:
		move_by(screen, 10);
		break;
	case KEY_PPAGE:
		move_by(screen, -10);
		break;
	case KEY_HOME:
		screen->cursor = screen->first_flow = 0;
		break;
	}
	return false;
}

enum weir_top_key weir_top_screen_take_keys(struct weir_top_screen *screen, const struct weir_top *top)
{
	int key;

	while ((key = getch()) != ERR) {
		screen->said[0] = '\0';
		if (screen->asked[0]) {
			if (key == 'y')
				return WEIR_TOP_OBSERVE;
			screen->asked[0] = '\0';
		} else if (screen->is_filtering) {
			type_filter(screen, key);
		} else if (take_key(screen, top, key)) {
			return WEIR_TOP_END;
		}
	}
	return WEIR_TOP_NONE;
}
