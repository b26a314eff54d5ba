/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tells the program where the kernel keeps each CPU's timers, so that it need not read the clock (bpf/timer.h).
 */
#ifndef WEIR_TIMERS_H
#define WEIR_TIMERS_H

/*
 * Run weir_learn_timers(), of which this is a descriptor, on every CPU that there is. What cannot be learned is no
 * error: there the clock is read.
 */
void weir_timers_learn(int program_fd);

#endif
