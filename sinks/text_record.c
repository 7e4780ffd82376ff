/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_record.c - what is no system call, as a line that reads like a sentence: exec /usr/bin/ls
 * ["ls" "-l"], exited 0, signal SIGTERM -> sleep[12].
 *
 * Goes by the names of events and of their arguments, as the JSON has them. A record that has no
 * sentence here prints as its name and name=value.
 */
#include "sinks/out.h"
#include "sinks/text.h"

#include <signal.h>
#include <string.h>

static const struct weir_arg *arg(const struct weir_decoded *d, const char *name)
{
	for (uint32_t i = 0; i < d->nargs; i++)
		if (!strcmp(d->args[i].name, name))
			return &d->args[i];
	return NULL;
}

/* Zero where the argument is not there. */
static uint64_t number(const struct weir_decoded *d, const char *name)
{
	const struct weir_arg *found = arg(d, name);

	return found ? found->u : 0;
}

static void value(struct out *out, const struct weir_decoded *d, const char *name)
{
	const struct weir_arg *found = arg(d, name);

	if (found)
		text__value(out, found);
	else
		out__char(out, '?');
}

static void pair(struct out *out, const struct weir_decoded *d, const char *name)
{
	out__char(out, ' ');
	out__str(out, name);
	out__char(out, '=');
	value(out, d, name);
}

/* comm[tid] of another than the one whose line it is. */
static void other(struct out *out, const struct weir_decoded *d, const char *comm, const char *tid)
{
	const struct weir_arg *name = arg(d, comm);

	if (name)
		text__safe(out, name->bytes, name->len);
	out__char(out, '[');
	value(out, d, tid);
	out__char(out, ']');
}

static void title(struct out *out, const char *text)
{
	text__paint(out, TEXT_NAME);
	out__str(out, text);
	text__paint(out, TEXT_PLAIN);
}

/* fork -> 12 */
static void forked(struct out *out, const struct weir_decoded *d)
{
	title(out, number(d, "thread") ? "new thread" : "fork");
	out__str(out, " -> ");
	value(out, d, "child_tid");
}

/* exec /usr/bin/ls ["ls" "-l"] ppid=11 uid=0 */
static void execed(struct out *out, const struct weir_decoded *d)
{
	const struct weir_arg *path = arg(d, "path");

	title(out, "exec ");
	text__paint(out, TEXT_STR);
	if (path)
		text__safe(out, path->bytes, path->len);
	text__paint(out, TEXT_PLAIN);
	if (path && (path->flags & WEIR_ARG_CUT))
		out__str(out, "...");
	out__char(out, ' ');
	value(out, d, "argv");
	pair(out, d, "ppid");
	pair(out, d, "uid");
	if (number(d, "old_tid") != d->tid)
		pair(out, d, "old_tid");
}

/* exited 0; killed by SIGSEGV (core dumped) */
static void exited(struct out *out, const struct weir_decoded *d)
{
	bool killed = number(d, "signo");

	if (killed || number(d, "code"))
		text__paint(out, TEXT_BAD);
	if (!number(d, "process"))
		out__str(out, "thread ");
	out__str(out, killed ? "killed by " : "exited ");
	value(out, d, killed ? "signal" : "code");
	if (number(d, "core"))
		out__str(out, " (core dumped)");
	text__paint(out, TEXT_PLAIN);
}

/* si_code: what most signals can have, and what is told of a child and of a fault. */
static const char *code_name(uint64_t sig, int64_t code)
{
	static const struct {
		int sig, code; /* sig 0: any */
		const char *name;
	} codes[] = {
		{0, SI_USER, "SI_USER"},
		{0, SI_KERNEL, "SI_KERNEL"},
		{0, SI_QUEUE, "SI_QUEUE"},
		{0, SI_TIMER, "SI_TIMER"},
		{0, SI_MESGQ, "SI_MESGQ"},
		{0, SI_ASYNCIO, "SI_ASYNCIO"},
		{0, SI_SIGIO, "SI_SIGIO"},
		{0, SI_TKILL, "SI_TKILL"},
		{SIGCHLD, CLD_EXITED, "CLD_EXITED"},
		{SIGCHLD, CLD_KILLED, "CLD_KILLED"},
		{SIGCHLD, CLD_DUMPED, "CLD_DUMPED"},
		{SIGCHLD, CLD_TRAPPED, "CLD_TRAPPED"},
		{SIGCHLD, CLD_STOPPED, "CLD_STOPPED"},
		{SIGCHLD, CLD_CONTINUED, "CLD_CONTINUED"},
		{SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR"},
		{SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR"},
		{SIGFPE, FPE_INTDIV, "FPE_INTDIV"},
		{SIGBUS, BUS_ADRALN, "BUS_ADRALN"},
		{SIGBUS, BUS_ADRERR, "BUS_ADRERR"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code && (!codes[i].sig || (uint64_t)codes[i].sig == sig))
			return codes[i].name;
	return NULL;
}

static void signal_code(struct out *out, const struct weir_decoded *d)
{
	const struct weir_arg *code = arg(d, "code");
	const char *name = code ? code_name(number(d, "signo"), code->i) : NULL;

	if (!name) {
		pair(out, d, "code");
		return;
	}
	out__char(out, ' ');
	out__str(out, name);
}

static void signal_name(struct out *out, const struct weir_decoded *d)
{
	text__paint(out, TEXT_ALERT);
	out__str(out, "signal ");
	value(out, d, "sig");
	text__paint(out, TEXT_PLAIN);
}

/* signal SIGTERM -> sleep[12] SI_USER; what became of it unless it was simply queued */
static void signal_sent(struct out *out, const struct weir_decoded *d)
{
	const struct weir_arg *result = arg(d, "result");

	signal_name(out, d);
	out__str(out, " -> ");
	other(out, d, "target_comm", "target_tid");
	signal_code(out, d);
	if (!result || result->kind != WEIR_ARG_WORD || strcmp(result->bytes, "delivered"))
		pair(out, d, "result");
}

/* signal SIGTERM taken by default: the default may be to end, to stop, or nothing */
static void signal_taken(struct out *out, const struct weir_decoded *d)
{
	uint64_t handler = number(d, "handler");

	/* Whatever signal ends a process, the kernel says SIGKILL here: the exit names the true one. */
	if (!handler && number(d, "signo") == SIGKILL) {
		out__str(out, "signal taken: fatal");
		return;
	}
	signal_name(out, d);
	if (handler > 1) {
		out__str(out, " handled at ");
		out__hex(out, handler);
	} else {
		out__str(out, handler ? " ignored" : " taken by default");
	}
	signal_code(out, d);
}

static void signalled(struct out *out, const struct weir_decoded *d)
{
	if (arg(d, "target_tid"))
		signal_sent(out, d);
	else
		signal_taken(out, d);
}

/* switch S -> next[12] */
static void switched(struct out *out, const struct weir_decoded *d)
{
	title(out, "switch ");
	value(out, d, "prev_state");
	out__str(out, " -> ");
	other(out, d, "next_comm", "next_tid");
}

/* wakeup -> next[12] cpu=1 */
static void woken(struct out *out, const struct weir_decoded *d)
{
	title(out, number(d, "new") ? "first wakeup" : "wakeup");
	out__str(out, " -> ");
	other(out, d, "target_comm", "target_tid");
	out__str(out, " cpu=");
	value(out, d, "target_cpu");
}

/* migrate next[12] cpu 0 -> 1 */
static void migrated(struct out *out, const struct weir_decoded *d)
{
	title(out, "migrate ");
	other(out, d, "target_comm", "target_tid");
	out__str(out, " cpu ");
	value(out, d, "orig_cpu");
	out__str(out, " -> ");
	value(out, d, "dest_cpu");
}

/* map:events 20: 257e0000 00000000 ..., in groups of four bytes as they lie there. */
static void raw(struct out *out, const struct weir_decoded *d)
{
	const uint8_t *bytes = d->raw;

	text__paint(out, TEXT_NAME);
	text__word(out, d->name);
	text__paint(out, TEXT_PLAIN);
	out__char(out, ' ');
	out__u64(out, d->raw_len);
	out__char(out, ':');
	for (uint32_t i = 0; i < d->raw_len; i++) {
		if (i % 4 == 0)
			out__char(out, ' ');
		out__used(out, put_byte(out__room(out, 2), bytes[i]));
	}
}

static void anything(struct out *out, const struct weir_decoded *d)
{
	text__paint(out, TEXT_NAME);
	text__word(out, d->name);
	if (d->group == WEIR_GROUP_SYS) {
		out__char(out, ' ');
		text__syscall_name(out, d);
	}
	text__paint(out, TEXT_PLAIN);
	for (uint32_t i = 0; i < d->nargs; i++) {
		out__char(out, ' ');
		text__word(out, d->args[i].name);
		out__char(out, '=');
		text__value(out, &d->args[i]);
	}
}

void text__record(struct out *out, const struct sink_event *se)
{
	static const struct {
		const char *name;
		void (*sentence)(struct out *out, const struct weir_decoded *d);
	} kinds[] = {
		{"fork", forked},
		{"exec", execed},
		{"exit", exited},
		{"signal", signalled},
		{"sched_switch", switched},
		{"sched_wakeup", woken},
		{"sched_migrate", migrated},
	};
	const struct weir_decoded *d = se->decoded;
	void (*sentence)(struct out * out, const struct weir_decoded *d) = anything;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, d->name))
			sentence = kinds[i].sentence;
	if (d->is_raw)
		sentence = raw;
	out__used(out, text__put_head(text__begin(out), out__style(out), se));
	sentence(out, d);
	text__container(out, se);
}
