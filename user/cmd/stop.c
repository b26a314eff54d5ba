// SPDX-License-Identifier: GPL-2.0-only
#include "stop.h"

#include <stddef.h>

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = 1;
}

const volatile sig_atomic_t *weir_listen_for_stop(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL); /* its terminal is closed */
	return &stop;
}
