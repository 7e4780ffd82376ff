/* SPDX-License-Identifier: BSD-2-Clause */
/* commands.h - one function a command; argv[0] is the command's name. Each returns an exit status. */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

int cmd_bench(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_verify(int argc, char **argv);

#endif /* WEIR_CLI_COMMANDS_H */
