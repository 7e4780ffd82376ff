/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace_options.h"

#include "cli/style.h"
#include "sinks/sink.h"

#include <string.h>

#define DEFAULT_STRING	 256u
#define STRING_LIMIT_MAX 4096u

#define AT(member) OPTION_AT(struct trace_options, member)

static const struct option_def trace_options[] = {
	{'e', "events", OPTION_LIST, AT(events), "GROUP[:NAME][,...]",
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
	{0, "map", OPTION_LIST, AT(maps), "PIN[:stamp=OFFSET][:clock=NAME]",
	 "show the records of another program's pinned perf event array or\n"
	 "ring buffer, as bytes; a ring buffer's have their stamp at OFFSET"},
	{'p', "pid", OPTION_LIST, AT(pids), "PID[,PID]...",
	 "only these processes, and those that they fork from now on;\n"
	 "ends when the last of them has"},
	{0, "children", OPTION_FLAG, AT(children), NULL,
	 "with -p: also what they have forked before"},
	{0, "no-follow", OPTION_FLAG, AT(no_follow), NULL,
	 "with -p or COMMAND: not what they fork"},
	{0, "all", OPTION_FLAG, AT(all), NULL,
	 "on a terminal, also the processes that weir descends from (shell,\n"
	 "terminal, sshd): they are left out, or showing a line would be\n"
	 "the next line"},
	{0, "list", OPTION_FLAG, AT(list), NULL,
	 "print every event with its arguments, and end; of tracepoints\n"
	 "those that are named: --list 'tp:sched:*'"},
	{0, "comm", OPTION_LIST, AT(filter.comms), "GLOB",
	 "only of threads whose name matches; repeat for more"},
	{0, "container", OPTION_STRING, AT(filter.container), "ID",
	 "only in this container: its id or name, or how that begins"},
	{0, "cgroup", OPTION_STRING, AT(filter.cgroup), "PATH",
	 "only in this cgroup and those below it"},
	{0, "uid", OPTION_STRING, AT(filter.user), "USER",
	 "only of processes that USER (name or number) ran"},
	{'P', "path", OPTION_LIST, AT(filter.paths), "PATH",
	 "of system calls, only those with this path as an argument;\n"
	 "repeat for more"},
	{0, "failed", OPTION_FLAG, AT(filter.failed), NULL,
	 "of system calls, only those that failed"},
	{0, "errno", OPTION_STRING, AT(filter.errno_name), "NAME",
	 "of system calls, only those that failed with NAME (ENOENT)"},
	{0, "min-duration", OPTION_DURATION, AT(filter.min_duration_ns), "TIME",
	 "of system calls, only those that took TIME or longer"},
	{'o', "output", OPTION_STRING, AT(output), "FILE",
	 "write there (mode 0600); default: standard output, and standard\n"
	 "error with COMMAND"},
	{'f', "format", OPTION_STRING, AT(format), "FORMAT",
	 "text (default), json (an object a line), or none (only count)"},
	{'y', "fds", OPTION_FLAG, AT(fds), NULL,
	 "print what descriptors stand for: paths, sockets, directories;\n"
	 "in JSON with --pair, which it implies"},
	{'c', "summary-only", OPTION_FLAG, AT(summary_only), NULL,
	 "count system calls instead of printing them: how many, how many\n"
	 "failed, how long they took (p50 and p99 may be up to 7 % more\n"
	 "than they were, never less). Each second on a terminal (but for\n"
	 "COMMAND's), and at the end. Default events: sys"},
	{'C', "summary", OPTION_FLAG, AT(summary), NULL,
	 "print the lines, and that table at the end"},
	{0, "time", OPTION_STRING, AT(time), "HOW",
	 "in text: wall (default), mono (since boot), delta (since the\n"
	 "line before) or none"},
	{0, "color", OPTION_STRING, AT(color), "WHEN",
	 "in text: auto (default: on a terminal, unless NO_COLOR is set),\n"
	 "always or never"},
	{0, "pair", OPTION_FLAG, AT(pair), NULL,
	 "in JSON: one object a system call, at its exit, as text has it"},
	{'d', "duration", OPTION_DURATION, AT(duration_ns), "TIME",
	 "stop after TIME: 10 (seconds), 1.5, 500ms, 2m"},
	{'n', "max-events", OPTION_COUNT, AT(max_events), "N", "stop after N events"},
	{0, "no-wait", OPTION_FLAG, AT(no_wait), NULL,
	 "end when COMMAND ends, and not only when all that it started has"},
	{0, "buffer", OPTION_SIZE, AT(buffer), "SIZE",
	 "kernel buffers for the whole machine: 1/8 or less for fork,\n"
	 "exec and exit, the rest for events; each CPU's are powers of two.\n"
	 "Default: 9M a CPU (8M and 1M), less on a small machine"},
	{0, "string-limit", OPTION_COUNT, AT(string_limit), "N",
	 "keep at most N bytes (up to 4096) of each string. Default: 256"},
	{0, "ledger", OPTION_STRING, AT(ledger), "FILE",
	 "write the account of all records there at the end (JSON)"},
	{0, "watermarks", OPTION_FLAG, AT(watermarks), NULL,
	 "also print up to which time the trace is complete"},
	{0, "strict", OPTION_FLAG, AT(strict), NULL, "exit with 3 if anything was lost"},
	{'v', "verbose", OPTION_FLAG, AT(verbose), NULL, "tell on standard error what is set up"},
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

#define SAY(...) say(&trace_command, __VA_ARGS__)

bool trace_options__is_json(const struct trace_options *opts)
{
	return !strcmp(opts->format, "json");
}

bool trace_options__counts(const struct trace_options *opts)
{
	return opts->summary || opts->summary_only;
}

const char *trace_options__default_events(const struct trace_options *opts, bool has_command)
{
	if (opts->summary_only)
		return "sys";
	/* They say nothing of the life of processes. */
	if (filter__needs_calls(&opts->filter) && !has_command && !opts->pids.count)
		return "sys";
	if (opts->maps.count && !has_command && !opts->pids.count)
		return NULL;
	return has_command || opts->pids.count || opts->summary ? "process,signal,sys" : "process";
}

static bool check_format(struct trace_options *opts)
{
	if (!opts->format)
		opts->format = "text";
	if (!sink__find(opts->format)) {
		SAY("there is no format '%s': text, json or none (children are always followed)",
		    opts->format);
		return false;
	}
	if (opts->summary && !opts->summary_only && trace_options__is_json(opts)) {
		SAY("-C prints lines for people; in JSON there is -c, one object");
		return false;
	}
	opts->pair |= opts->fds || opts->summary_only;
	if (filter__needs_calls(&opts->filter) && trace_options__is_json(opts) && !opts->pair) {
		SAY("-P, --failed, --errno and --min-duration ask for whole calls: add --pair");
		return false;
	}
	return style__words(&trace_command, opts->time, opts->color);
}

static bool check_string_limit(struct trace_options *opts)
{
	if (!opts->string_limit)
		opts->string_limit = DEFAULT_STRING;
	if (opts->string_limit <= STRING_LIMIT_MAX)
		return true;
	SAY("--string-limit is at most %u", STRING_LIMIT_MAX);
	return false;
}

bool trace_options__check(struct trace_options *opts)
{
	if (!check_format(opts) || !filter__check(&opts->filter, &trace_command))
		return false;
	if (opts->children && opts->no_follow) {
		SAY("--children and --no-follow exclude each other");
		return false;
	}
	return check_string_limit(opts);
}
