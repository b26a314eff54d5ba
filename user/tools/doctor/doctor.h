/* SPDX-License-Identifier: GPL-2.0-only */
/* House doctor: `weir doctor`, which shows what on this host would stop or bend limits (state/examine.h). */
#ifndef WEIR_DOCTOR_H
#define WEIR_DOCTOR_H

#include "cli/command.h"

extern const struct weir_command_entry weir_doctor_entry;

#endif
