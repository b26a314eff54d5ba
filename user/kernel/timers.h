/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tells the program where the kernel keeps each CPU's timers, so that it need not read the clock (bpf/timer.h).
 */
#ifndef WEIR_TIMERS_H
#define WEIR_TIMERS_H

/*
 * Run weir_learn_timers(), of which this is a descriptor, on every CPU that there is. What cannot be learned is no
 * error: there the clock is read. A CPU that lets nothing of ours run is not waited for longer than a second; should it
 * do so later, it is still learned, if this process lives.
 */
void weir_timers_learn(int program_fd);

#endif
