// SPDX-License-Identifier: GPL-2.0-only
#include "cli/stop.h"

#include <stddef.h>
#include <stdint.h>

#include "host/host.h"

/* timeout(1) signals its child, and then the group that it is in: both are one request. Chosen, not derived. */
#define SAME_REQUEST_NS (500 * 1000000ull)

static volatile sig_atomic_t stop;
static volatile uint64_t stopped_ns;

static void on_signal(int number)
{
	const uint64_t now_ns = weir_host_now_ns();

	if (!stop) {
		stopped_ns = now_ns;
		stop = 1;
	} else if (now_ns - stopped_ns > SAME_REQUEST_NS) {
		signal(number, SIG_DFL);
		raise(number); /* it is blocked until this returns */
	}
}

const volatile sig_atomic_t *weir_listen_for_stop(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL); /* its terminal is closed */
	return &stop;
}
