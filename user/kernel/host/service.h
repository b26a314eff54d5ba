/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process reports to the service manager that started it, by the protocol of sd_notify(3): lines of text in a
 * datagram to the socket that NOTIFY_SOCKET names. The protocol is stable, and its manual page invites to speak it
 * without libsystemd. Where there is no service manager nothing is reported, and nothing fails: what it would not hear
 * is no reason to stop limiting.
 */
#ifndef WEIR_HOST_SERVICE_H
#define WEIR_HOST_SERVICE_H

#include <stdbool.h>

/* It has come up, or a reload is over. The text is what `systemctl status` shows. */
void weir_service_ready(const char *status);
/* A reload begins; weir_service_ready() ends it. */
void weir_service_reloading(void);
/* It is about to end. */
void weir_service_stopping(void);

/*
 * It is alive: to be called in every round of the main loop. Sent twice in the time that the manager's watchdog waits,
 * if it has one for this process, and not more often.
 */
void weir_service_alive(void);

/* Whether a service manager has started this process, and listens. */
bool weir_service_is_one(void);

/* Whether standard error is the journal, which reads "<3>" at the start of a line as its priority. */
bool weir_service_logs_to_journal(void);

#endif
