/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace_options.h"

#define AT(member) OPTION_AT(struct trace_options, member)

static const struct option_def trace_options[] = {
	{'e', "events", OPTION_LIST, AT(live.events), "GROUP[:NAME][,...]",
	 "what to trace: groups process, sched, signal, sys, classes of\n"
	 "calls %file %desc %network %process %memory %signal, or NAMEs\n"
	 "of one group (a colon claims the rest: -e sys:openat,close);\n"
	 "! in front takes away (-e 'sys:!futex,!%memory'); repeat -e to\n"
	 "mix; --list shows all. Default: process; with -p or COMMAND\n"
	 "process,signal,sys; with a filter of calls sys. tp:GROUP:NAME is a tracepoint of the kernel's,\n"
	 "* stands for anything: -e 'tp:block:*,tp:sched:sched_switch'"},
	{0, "filter", OPTION_STRING, AT(tracepoint_filter), "EXPR",
	 "of these tracepoints, only where EXPR holds for their fields, as\n"
	 "the kernel has it: 'nr_sector > 8 && rwbs ~ \"*W*\"'"},
	{0, "map", OPTION_LIST, AT(maps), "PIN[:stamp=OFFSET][:clock=NAME][:len=BYTES]",
	 "show the records of another program's pinned perf event array or\n"
	 "ring buffer, as bytes; a ring buffer's have their stamp at OFFSET"},
	OPTION_PART(live__process_options, AT(live)),
	{0, "all", OPTION_FLAG, AT(all), NULL,
	 "on a terminal, also the processes that weir descends from (shell,\n"
	 "terminal, sshd): they are left out, or showing a line would be\n"
	 "the next line"},
	{0, "list", OPTION_FLAG, AT(list), NULL,
	 "print every event with its arguments, and end; of tracepoints\n"
	 "those that are named: --list 'tp:sched:*'"},
	OPTION_PART(filter__options, AT(viewer.filter)),
	{'o', "output", OPTION_STRING, AT(viewer.output), "FILE",
	 "write there (mode 0600); default: standard output, and standard\n"
	 "error with COMMAND"},
	OPTION_PART(viewer__options, AT(viewer)),
	OPTION_PART(live__options, AT(live)),
	{0, "watermarks", OPTION_FLAG, AT(watermarks), NULL,
	 "also print up to which time the trace is complete"},
	{0},
};

/* Of strace's; its -f takes the next word here. */
static const struct option_hint hints[] = {
	{'s', "see --string-limit"},
	{'t', "times are always printed, see --time"},
	{'T', "how long calls took is always printed"},
	{0},
};

const struct command_def trace_command = {
	.name = "trace",
	.synopsis = "[OPTION]... [[--] COMMAND [ARG]...]",
	.about =
		"Prints the kernel's events of all CPUs as one stream in true time order. What was\n"
		"lost stands in it as a gap, with its place and count. With COMMAND, runs it and\n"
		"traces it and all that it starts. Needs root, or CAP_BPF and CAP_PERFMON.\n"
		"Ctrl-C ends the trace (while COMMAND runs, the first is COMMAND's); SIGUSR1 prints the account so far.",
	.after =
		"Examples:\n"
		"  weir trace                              every fork, exec and exit\n"
		"  weir trace ls /tmp                      what ls does, and how long it takes\n"
		"  weir trace -e sys:openat,unlink -p 123  files that 123 and its children touch\n"
		"  weir trace -e process,sched -e signal --format json -o trace.json -d 10\n"
		"  weir verify trace.json                  check it\n\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 something was lost (--strict).\n"
		"With COMMAND: its own, 128 + N when signal N ended it or weir, 125 when weir failed or was\n"
		"stopped before COMMAND began, 126 when it could not be run, 127 when there is none.",
	.runs_command = true,
	.hints = hints,
	.options = trace_options,
};

const char *trace_options__default_events(const struct trace_options *opts, const struct live *live)
{
	bool has_processes = live->has_command || opts->live.pids.count;

	if (opts->viewer.summary_only)
		return "sys";
	/* They say nothing of the life of processes. */
	if (filter__needs_calls(&opts->viewer.filter) && !has_processes)
		return "sys";
	if (opts->maps.count && !has_processes)
		return NULL;
	return opts->viewer.summary ? "process,signal,sys" : live__default_events(live);
}
