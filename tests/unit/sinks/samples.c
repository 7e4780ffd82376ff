// SPDX-License-Identifier: BSD-2-Clause
/*
 * samples.c - what the JSON sink writes, for the schema's test: `samples trace` a line of every form
 * that there is, `samples ledger` an account with everything in it.
 */
#include "sinks/out.h"
#include "sinks/sink.h"

#include <string.h>
#include <unistd.h>

static const char *const events[] = {"fork",	     "exec",	      "exit",  "sched_switch",
				     "sched_wakeup", "sched_migrate", "signal"};

/* One argument of every kind, with every flag that it can have. */
static const struct weir_arg arguments[] = {
	{.name = "uint", .kind = WEIR_ARG_UINT, .u = UINT64_MAX},
	{.name = "int", .kind = WEIR_ARG_INT, .i = INT64_MIN},
	{.name = "hex", .kind = WEIR_ARG_HEX, .u = UINT64_MAX},
	{.name = "bool", .kind = WEIR_ARG_BOOL, .u = 1},
	{.name = "timespec", .kind = WEIR_ARG_TIMESPEC, .i = INT64_MIN, .u = 1},
	{.name = "word", .kind = WEIR_ARG_WORD, .bytes = "SIGTERM", .len = 7},
	{.name = "str", .kind = WEIR_ARG_STR, .bytes = "\\x\xff\"\n\xc3\xa9\x80\0", .len = 9},
	{.name = "cut", .kind = WEIR_ARG_STR, .flags = WEIR_ARG_CUT, .bytes = "ab", .len = 2},
	{.name = "unread", .kind = WEIR_ARG_STR, .flags = WEIR_ARG_UNREAD, .u = 0x7ffe0000},
	{.name = "nowhere", .kind = WEIR_ARG_STRV, .flags = WEIR_ARG_UNREAD},
	{.name = "strv", .kind = WEIR_ARG_STRV, .bytes = "a\0\0b\\", .len = 6},
	{.name = "inet", .kind = WEIR_ARG_SOCKADDR, .bytes = "\2\0\0\x50\x7f\0\0\1", .len = 8},
	{.name = "inet6",
	 .kind = WEIR_ARG_SOCKADDR,
	 .bytes = "\x0a\0\0\x50\0\0\0\0\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\0\0\0",
	 .len = 28},
	{.name = "path", .kind = WEIR_ARG_SOCKADDR, .bytes = "\1\0/\xff", .len = 4},
	{.name = "abstract", .kind = WEIR_ARG_SOCKADDR, .bytes = "\1\0\0n\0", .len = 5},
	{.name = "unnamed", .kind = WEIR_ARG_SOCKADDR, .bytes = "\1\0", .len = 2},
	{.name = "netlink",
	 .kind = WEIR_ARG_SOCKADDR,
	 .bytes = "\x10\0\0\0\7\0\0\0\1\0\0\0",
	 .len = 12},
	{.name = "short", .kind = WEIR_ARG_SOCKADDR, .bytes = "\2\0\0", .len = 3},
	{.name = "other", .kind = WEIR_ARG_SOCKADDR, .bytes = "\x63\0\1", .len = 3},
	{.name = "none", .kind = WEIR_ARG_SOCKADDR, .bytes = "", .len = 0},
};

static const char comm[16] = "\xff\xfe\"\\\n";

static void put(struct out *out, struct weir_event event, const struct weir_decoded *decoded,
		bool known)
{
	struct sink_event se = {
		.event = &event, .decoded = decoded, .wall_ns = 1757412345123456789};

	if (event.source != WEIR_SOURCE_NONE)
		se.source = "cpu1";
	if (known) {
		se.comm = comm;
		se.container = "0123456789ab";
	}
	sink__find("json")->event(out, &se);
}

static void records(struct out *out)
{
	struct weir_decoded d = {.pid = UINT32_MAX, .tid = 1, .nr = -1};
	struct weir_event event = {.stamp_ns = UINT64_MAX, .seq = UINT64_MAX, .cpu = 8191};
	size_t i;

	memcpy(d.args, arguments, sizeof(arguments));
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		d.name = events[i];
		d.nargs = sizeof(arguments) / sizeof(arguments[0]);
		put(out, event, &d, true);
		d.nargs = 0;
		event.mark = i % 2 ? WEIR_MARK_LATE : WEIR_MARK_AHEAD;
		event.cpu = -1;
		put(out, event, &d, false);
		event.mark = 0;
		event.cpu = 0;
	}
}

static void syscalls(struct out *out)
{
	static const char *const abis[] = {NULL, "i386", "x32", "arm"};
	struct weir_decoded d = {.group = WEIR_GROUP_SYS, .nargs = 8};
	struct weir_event event = {0};
	size_t i;

	memcpy(d.args, arguments, sizeof(arguments));
	for (i = 0; i < 4; i++) {
		d.name = i % 2 ? "sys_enter" : "sys_exit";
		d.abi = abis[i];
		d.syscall = i < 2 ? "openat" : NULL;
		d.nr = i == 3 ? -1 : 257;
		put(out, event, &d, true);
	}
}

/* Each way in which a call can end, of a source and of the whole machine. */
static void whole_calls(struct out *out)
{
	struct weir_decoded d = {
		.name = "syscall", .group = WEIR_GROUP_SYS, .syscall = "openat", .nr = 257};
	struct sink_fds fds = {.arg = {[3] = "/\xff\\"}, .result = "tcp"};
	struct weir_event enter = {.stamp_ns = 5, .source = 1, .cpu = 1};
	struct weir_event exit = {.stamp_ns = UINT64_MAX, .seq = UINT64_MAX, .cpu = 0};
	int end, of_all;

	memcpy(d.args, arguments, sizeof(arguments));
	d.nargs = sizeof(arguments) / sizeof(arguments[0]);
	for (end = WEIR_CALL_RETURNED; end <= WEIR_CALL_OPEN; end++) {
		bool has_exit = end <= WEIR_CALL_NO_ENTER;
		bool has_enter = end == WEIR_CALL_RETURNED || !has_exit;
		struct weir_call call = {
			.end = end,
			.enter = has_enter ? &enter : NULL,
			.exit = has_exit ? &exit : NULL,
		};
		struct sink_event se = {.event = has_exit ? &exit : &enter, .decoded = &d};

		d.has_args = has_enter;
		d.has_ret = has_exit;
		d.ret = has_enter ? INT64_MIN : -2;
		for (of_all = 0; of_all <= !has_exit; of_all++) {
			se.source = of_all ? NULL : "cpu1";
			se.comm = of_all ? NULL : comm;
			se.fds = of_all ? NULL : &fds;
			sink__find("json")->call(out, &se, &call);
		}
	}
}

static void gaps(struct out *out)
{
	struct weir_gap gap = {.from_ns = 1, .to_ns = 2, .lost = UINT64_MAX};
	struct weir_event event = {
		.kind = WEIR_KIND_GAP, .stamp_ns = 2, .data = &gap, .len = sizeof(gap)};
	int cause, bound;

	for (cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		for (bound = WEIR_BOUND_EXACT; bound <= WEIR_BOUND_UNKNOWN; bound++) {
			gap.cause = cause;
			gap.bound = bound;
			event.source = 1;
			event.cpu = 0;
			event.mark = bound ? WEIR_MARK_LATE : 0;
			put(out, event, NULL, false);
			event.source = WEIR_SOURCE_NONE;
			event.cpu = -1;
			put(out, event, NULL, false);
		}
	}
}

static void others(struct out *out)
{
	struct weir_clock_step step = {.old_offset_ns = INT64_MIN, .new_offset_ns = INT64_MAX};
	struct weir_event event = {.kind = WEIR_KIND_CLOCK_STEP,
				   .source = WEIR_SOURCE_NONE,
				   .cpu = -1,
				   .data = &step,
				   .len = sizeof(step)};

	put(out, event, NULL, false);
	step = (struct weir_clock_step){.suspended_ns = UINT64_MAX};
	put(out, event, NULL, false);
	sink__find("json")->watermark(out, 0, 0, WEIR_ORDER_EXACT);
	sink__find("json")->watermark(out, 1, -1, WEIR_ORDER_ESTIMATED);
}

static void ledger(struct out *out)
{
	struct weir_ledger all = {
		.total = {.produced = UINT64_MAX, .late = 1, .ahead = 2, .self = 3},
		.order = WEIR_ORDER_ESTIMATED,
		.lag = {1, 2, 3}};
	struct weir_source_info sources[] = {
		{.name = "cpu0", .online = true, .busy_since_ns = 1, .account = {.produced = 1}},
		{.name = "life7", .cpu = -1, .watermark_ns = UINT64_MAX},
	};
	struct sink_ledger_extra extra = {.self_cpu_ns = 1, .sources = sources, .n = 2};
	int cause;

	for (cause = 0; cause < WEIR_LOST_CAUSES; cause++) {
		all.total.lost[cause] = 1;
		all.total.bound[cause] = (uint8_t)(cause % 3);
	}
	sources[0].account = all.total;
	sink__ledger_json(out, &all, &extra);
	out__char(out, '\n');
}

int main(int argc, char **argv)
{
	struct out *out = out__new(STDOUT_FILENO, 0, NULL, 0);
	int err;

	if (!out || argc != 2)
		return 2;
	if (!strcmp(argv[1], "ledger")) {
		ledger(out);
	} else {
		records(out);
		syscalls(out);
		whole_calls(out);
		gaps(out);
		others(out);
	}
	err = out__flush(out);
	out__free(out);
	return err ? 1 : 0;
}
