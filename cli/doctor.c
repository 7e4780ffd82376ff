/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doctor.c - `weir doctor`: what this kernel and these rights allow, and the way out where they don't.
 *
 * One function a question. The one that counts is asked of the kernel itself: all of weir's probes
 * are loaded, attached and read from once; the others explain its answer, or tell what will be
 * missing in a trace that works.
 */
#include "cli/commands.h"
#include "cli/options.h"
#include "probes/probes.h"
#include "state/cgroupfs.h"

#include <weir/fence.h>
#include <weir/stream.h>

#include <errno.h>
#include <fcntl.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum verdict {
	FINE,
	LIMITED, /* weir works, but not all of it */
	MISSING, /* weir can't trace */
};

struct answer {
	enum verdict verdict;
	char found[512];
	char way_out[256]; /* empty: nothing is to be done */
};

struct doctor_options {
	bool json;
};

static const struct option_def doctor_options[] = {
	{0, "json", OPTION_FLAG, OPTION_AT(struct doctor_options, json), NULL,
	 "one JSON object instead of text"},
	{0},
};

static const struct command_def doctor_command = {
	.name = "doctor",
	.synopsis = "[OPTION]...",
	.about =
		"Tells what this kernel and your rights allow weir to do, what is missing, and what to\n"
		"do about it. Loads and attaches all probes for a moment; changes nothing.",
	.after = "Exit status: 0 weir can trace here, 1 it can't, 2 wrong usage.",
	.options = doctor_options,
};

__attribute__((format(printf, 2, 3))) static void found(struct answer *a, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(a->found, sizeof(a->found), format, args);
	va_end(args);
}

static void bad(struct answer *a, enum verdict verdict, const char *way_out)
{
	a->verdict = verdict;
	snprintf(a->way_out, sizeof(a->way_out), "%s", way_out);
}

/* The first line of a file, without its newline; false: it can't be read. */
static bool first_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* ---- the questions ---------------------------------------------------------------------------- */

static void ask_kernel(struct answer *a)
{
	struct utsname name;

	uname(&name);
	found(a, "%s %s, %s", name.sysname, name.release, name.machine);
#if !defined(__x86_64__) && !defined(__aarch64__)
	bad(a, LIMITED, "order is proved for x86-64 and arm64 only");
#endif
}

static void ask_btf(struct answer *a)
{
	if (!access("/sys/kernel/btf/vmlinux", R_OK)) {
		found(a, "the kernel describes its types");
		return;
	}
	found(a, "/sys/kernel/btf/vmlinux: %s", strerror(errno));
	bad(a, MISSING, "boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y");
}

static uint64_t effective_capabilities(void)
{
	unsigned long long caps = 0;
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (status)
		fclose(status);
	return caps;
}

static bool has(uint64_t caps, int cap)
{
	return caps >> cap & 1;
}

static void ask_rights(struct answer *a)
{
	uint64_t caps = effective_capabilities();
	bool admin = has(caps, CAP_SYS_ADMIN);

	if (!admin && !has(caps, CAP_BPF)) {
		found(a, "neither CAP_BPF nor CAP_SYS_ADMIN");
		bad(a, MISSING, "run as root, or with CAP_BPF and CAP_PERFMON");
	} else if (!admin && !has(caps, CAP_PERFMON)) {
		found(a, "CAP_BPF, but not CAP_PERFMON");
		bad(a, MISSING, "add CAP_PERFMON: tracing programs need it");
	} else if (!has(caps, CAP_SYS_PTRACE) && !admin) {
		found(a, "CAP_BPF and CAP_PERFMON");
		bad(a, LIMITED,
		    "add CAP_SYS_PTRACE to know the programs of other users' processes");
	} else {
		found(a, "%s", admin ? "CAP_SYS_ADMIN" : "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE");
	}
}

static void ask_lockdown(struct answer *a)
{
	char line[128];

	if (!first_line("/sys/kernel/security/lockdown", line, sizeof(line))) {
		found(a, "none");
	} else if (strstr(line, "[confidentiality]")) {
		found(a, "confidentiality: BPF may not read the kernel's memory");
		bad(a, MISSING, "boot with lockdown=integrity or without");
	} else {
		found(a, "%s", line);
	}
}

static void ask_pid_namespace(struct answer *a)
{
	const ino_t initial = 0xEFFFFFFCu; /* PROC_PID_INIT_INO: fixed in the kernel */
	struct stat st;

	if (stat("/proc/self/ns/pid", &st)) {
		found(a, "unknown: /proc is not mounted");
		bad(a, LIMITED, "mount /proc: -p and the names of running processes come from it");
	} else if (st.st_ino == initial) {
		found(a, "the initial one");
	} else {
		found(a, "one of our own: the trace shows the kernel's process ids, /proc others");
		bad(a, LIMITED, "run in the host's pid namespace (docker: --pid=host)");
	}
}

static void ask_tracefs(struct answer *a)
{
	if (!access("/sys/kernel/tracing/events", R_OK) ||
	    !access("/sys/kernel/debug/tracing/events", R_OK)) {
		found(a, "mounted");
		return;
	}
	found(a, "not mounted, or not readable; weir's own events need none");
	bad(a, LIMITED, "mount -t tracefs none /sys/kernel/tracing, as root: for -e tp:GROUP:NAME");
}

static void ask_memory(struct answer *a)
{
	char limit[64];

	/* Since 5.11 the kernel charges BPF memory to the cgroup, before to RLIMIT_MEMLOCK. */
	if (first_line("/sys/fs/cgroup/memory.max", limit, sizeof(limit)) && strcmp(limit, "max"))
		found(a, "this cgroup may use %s bytes; the rings take --buffer of it (9M a CPU)",
		      limit);
	else
		found(a, "no limit that the rings could meet");
}

static void ask_cgroups(struct answer *a)
{
	struct cgroupfs *cgroupfs = cgroupfs__open(NULL);

	if (cgroupfs) {
		found(a, "a version 2 hierarchy is mounted");
		cgroupfs__close(cgroupfs);
		return;
	}
	found(a, "no version 2 hierarchy is mounted");
	bad(a, LIMITED, "mount cgroup2: containers that start during a trace may stay unknown");
}

/* Somebody holds the lock for as long as grace periods are to be fast (fence.h). */
static bool is_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

static void ask_grace_periods(struct answer *a)
{
	const char *path = "/sys/kernel/rcu_expedited";
	char line[32];

	if (!first_line(path, line, sizeof(line)) || !strcmp(line, "0")) {
		found(a, "as the kernel has them");
		return;
	}
	found(a, "all are expedited, on this whole machine");
	if (strtol(line, NULL, 10) != WEIR_EXPEDITED || is_locked(path))
		return;
	found(a, "expedited by a process with libweir that was killed");
	bad(a, LIMITED, "echo 0 > /sys/kernel/rcu_expedited: each interrupts every CPU");
}

static void ask_calls(struct answer *a)
{
	if (!probes__calls_preempt()) {
		found(a, "nothing preempts a program at their tracepoints");
	} else if (probes__calls_by_perf()) {
		found(a, "programs at their tracepoints may be preempted, and skipped for others: "
			 "weir attaches by perf, where that can't be");
	} else {
		found(a, "programs at their tracepoints may be preempted, and are skipped for "
			 "others meanwhile; that is counted");
		bad(a, LIMITED,
		    "mount -t tracefs nodev /sys/kernel/tracing: weir can then attach by perf");
	}
}

static int ignore_event(void *ctx, const struct weir_event *event)
{
	return 0;
}

/* Load, attach, read and take back all there is. */
static int try_all(char *err, size_t err_len)
{
	static const char *const groups[] = {"process", "sched", "signal", "sys"};
	struct weir_stream_opts opts = {.sz = sizeof(opts), .on_event = ignore_event};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct probes_selection selection = {.string_limit = 256};
	struct weir_stream *stream = weir_stream__new(&opts);
	struct probes *probes = NULL;
	int result = -1;

	if (!stream) {
		snprintf(err, err_len, "cannot make a stream: %s", strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		probes__select(&selection, groups[i], NULL, err, err_len);
	probes = probes__open(&selection, err, err_len);
	if (probes && !probes__connect(probes, stream, page, 16 * page, err, err_len) &&
	    !probes__attach(probes, NULL, NULL, err, err_len)) {
		weir_stream__poll(stream, 0);
		probes__detach(probes);
		weir_stream__close(stream);
		result = 0;
	}
	probes__free(probes);
	weir_stream__free(stream);
	return result;
}

static void ask_probes(struct answer *a)
{
	char err[512];

	if (!try_all(err, sizeof(err))) {
		found(a, "all load, attach and can be read: order is exact");
		return;
	}
	found(a, "%s", err);
	bad(a, MISSING, "see the other answers");
}

static const struct question {
	const char *name;
	void (*ask)(struct answer *answer);
} questions[] = {
	{"kernel", ask_kernel},	    {"types", ask_btf},		 {"rights", ask_rights},
	{"lockdown", ask_lockdown}, {"pids", ask_pid_namespace}, {"tracefs", ask_tracefs},
	{"memory", ask_memory},	    {"cgroups", ask_cgroups},	 {"grace", ask_grace_periods},
	{"calls", ask_calls},	    {"probes", ask_probes},
};

#define N_QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* ---- the answers ------------------------------------------------------------------------------ */

static const char *const verdict_words[] = {"ok", "limited", "missing"};

static void print_text(const struct question *q, const struct answer *a)
{
	printf("%-9s %-8s %s\n", q->name, verdict_words[a->verdict], a->found);
	if (a->way_out[0])
		printf("%-9s %-8s -> %s\n", "", "", a->way_out);
}

/* What stands in the answers is ours or the kernel's: ASCII, but quotes may be in it. */
static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7f)
			putchar(*text);
	}
	putchar('"');
}

static void print_json(const struct question *q, const struct answer *a, bool last)
{
	printf("\"%s\":{\"verdict\":\"%s\",\"found\":", q->name, verdict_words[a->verdict]);
	print_json_string(a->found);
	if (a->way_out[0]) {
		printf(",\"way_out\":");
		print_json_string(a->way_out);
	}
	printf("}%s", last ? "" : ",");
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options opts = {0};
	enum verdict worst = FINE;
	int status, operand;

	operand = options__parse(&doctor_command, argc, argv, &opts, &status);
	if (operand < 0)
		return status;
	if (operand < argc) {
		say(&doctor_command, "'%s' is one word too many", argv[operand]);
		return EXIT_USAGE;
	}
	if (opts.json)
		putchar('{');
	for (size_t i = 0; i < N_QUESTIONS; i++) {
		struct answer answer = {.verdict = FINE};

		questions[i].ask(&answer);
		if (answer.verdict > worst)
			worst = answer.verdict;
		if (opts.json)
			print_json(&questions[i], &answer, i + 1 == N_QUESTIONS);
		else
			print_text(&questions[i], &answer);
	}
	if (opts.json)
		puts("}");
	else
		puts(worst == MISSING ? "weir can't trace here." : "weir can trace here.");
	return worst == MISSING ? EXIT_FAILED : EXIT_OK;
}
