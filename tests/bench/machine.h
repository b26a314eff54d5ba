/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kind of machine this is, as far as figures depend on it. No names of hosts, users or paths.
 */
#ifndef WEIR_BENCH_MACHINE_H
#define WEIR_BENCH_MACHINE_H

struct json_t;

/* An object of strings, for report_write_json() and report_write_page(). */
struct json_t *machine_describe(void);

#endif
