/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text that may be shown: names come from files, kernels and stores, and a terminal obeys what is in them. Everything
 * that weir prints for people and that it did not write itself goes through here. JSON has escapes of its own.
 */
#ifndef WEIR_BASE_PRINTABLE_H
#define WEIR_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Does a terminal obey it, or show what stands around it in another order? C0, DEL, C1, the ends of lines and
 * paragraphs, and what Unicode's bidirectional algorithm (UAX 9) takes as a command.
 */
bool weir_is_control(uint32_t code);

/* Put a '?' in place of each of them but those in `kept`, and of what is not UTF-8. NULL stays NULL. */
void weir_make_printable(char *text, const char *kept);

#endif
