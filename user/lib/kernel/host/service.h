/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process reports to the service manager that started it, by the protocol of sd_notify(3): lines of text in a
 * datagram to the socket that NOTIFY_SOCKET names. The protocol is stable, and its manual page encourages programs to
 * implement it without libsystemd. Without a service manager nothing is reported and nothing fails. A report that
 * cannot be sent is no reason to stop limiting.
 */
#ifndef WEIR_HOST_SERVICE_H
#define WEIR_HOST_SERVICE_H

#include <stdbool.h>

/* The process has started, or a reload is complete. `systemctl status` shows the text. */
void weir_service_ready(const char *status);
/* A reload begins; weir_service_ready() ends it. */
void weir_service_reloading(void);
/* The process is about to end. */
void weir_service_stopping(void);

/*
 * The process is alive. Call this in every round of the main loop. It sends a keep-alive twice per watchdog time-out
 * and not more often, if the manager has a watchdog for this process.
 */
void weir_service_alive(void);

/* Whether a service manager started this process and listens to it. */
bool weir_service_is_one(void);

/* Whether standard error is the journal, which takes "<3>" at the start of a line as the line's priority. */
bool weir_service_logs_to_journal(void);

#endif
