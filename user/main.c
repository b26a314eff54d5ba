// SPDX-License-Identifier: GPL-2.0-only
/* weir: one command of the list in user/parts.c. */
#include "cli/command.h"
#include "parts.h"

int main(int argc, char **argv)
{
	weir_use_parts();
	return weir_run_command_line(argc, argv);
}
