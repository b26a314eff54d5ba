/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands: each file in user/cmd/ is one of them: its options, one call below, print, exit code.
 * Exit codes: 0 done, 1 it failed, 2 the request or a rule file is wrong. Results go to stdout, words
 * to stderr.
 */
#ifndef WEIR_CMD_H
#define WEIR_CMD_H

#define WEIR_EXIT_OK 0
#define WEIR_EXIT_FAILED 1
#define WEIR_EXIT_WRONG 2

/* argv[0] is "weir" and the command's name. */
int weir_cmd_check(int argc, char **argv);
int weir_cmd_run(int argc, char **argv);
int weir_cmd_attach(int argc, char **argv);
int weir_cmd_reload(int argc, char **argv);
int weir_cmd_detach(int argc, char **argv);
int weir_cmd_control(int argc, char **argv);
int weir_cmd_status(int argc, char **argv);
int weir_cmd_stats(int argc, char **argv);
int weir_cmd_flows(int argc, char **argv);
int weir_cmd_block(int argc, char **argv);
int weir_cmd_allow(int argc, char **argv);
int weir_cmd_release(int argc, char **argv);
int weir_cmd_replay(int argc, char **argv);
int weir_cmd_doctor(int argc, char **argv);

#endif
