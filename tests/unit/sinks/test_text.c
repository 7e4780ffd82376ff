// SPDX-License-Identifier: BSD-2-Clause
/* text.c: one event, one line, and nothing in it that a terminal obeys (G8). */
#include "capture.h"

#include "sinks/style.h"

#include <sys/socket.h>

#define WALL 1757412345123456789ll /* 10:05:45.123456789 UTC */

static struct capture c;

static int setup(void **state)
{
	setenv("TZ", "UTC", 1);
	capture__open(&c);
	return 0;
}

static int teardown(void **state)
{
	capture__close(&c);
	return 0;
}

static const char *line_of(const struct sink_event *se)
{
	assert_int_equal(sink__find("text")->event(c.out, se), 0);
	return capture__take(&c);
}

static const char *gap_text(struct weir_gap gap, const char *source)
{
	struct weir_event event = {.kind = WEIR_KIND_GAP, .data = &gap, .len = sizeof(gap)};
	struct sink_event se = {.event = &event, .wall_ns = WALL, .source = source};

	return line_of(&se);
}

static const char *arg_text(struct weir_arg arg)
{
	struct weir_event event = {.cpu = 0};
	struct weir_decoded d = {.name = "x", .tid = 1, .nargs = 1};
	struct sink_event se = {.event = &event, .decoded = &d, .wall_ns = WALL, .source = "cpu0"};

	arg.name = "a";
	d.args[0] = arg;
	line_of(&se);
	c.text[c.len - 1] = '\0';
	return strstr(c.text, " a=") + 3;
}

#define UINT(of, value)                                       \
	{                                                     \
		.name = of, .kind = WEIR_ARG_UINT, .u = value \
	}
#define INT(of, value)                                       \
	{                                                    \
		.name = of, .kind = WEIR_ARG_INT, .i = value \
	}
#define HEX(of, value)                                       \
	{                                                    \
		.name = of, .kind = WEIR_ARG_HEX, .u = value \
	}
#define BOOL(of, value)                                       \
	{                                                     \
		.name = of, .kind = WEIR_ARG_BOOL, .u = value \
	}
#define WORD(of, text)                                                                    \
	{                                                                                 \
		.name = of, .kind = WEIR_ARG_WORD, .bytes = text, .len = sizeof(text) - 1 \
	}
#define STR(of, text)                                                                    \
	{                                                                                \
		.name = of, .kind = WEIR_ARG_STR, .bytes = text, .len = sizeof(text) - 1 \
	}
#define STRV(of, text)                                                                \
	{                                                                             \
		.name = of, .kind = WEIR_ARG_STRV, .bytes = text, .len = sizeof(text) \
	}

/* A record of sh[10], of process 9, on CPU 3. */
static const char *record_text(const char *name, const struct weir_arg *args, uint32_t nargs)
{
	struct weir_event event = {.cpu = 3, .stamp_ns = 5000000001};
	struct weir_decoded d = {.name = name, .pid = 9, .tid = 10, .nargs = nargs};
	struct sink_event se = {.event = &event,
				.decoded = &d,
				.wall_ns = WALL,
				.source = "life3",
				.comm = COMM("sh")};

	if (nargs)
		memcpy(d.args, args, nargs * sizeof(*args));
	return line_of(&se);
}

#define READS(name, says, ...)                                                               \
	do {                                                                                 \
		struct weir_arg args[] = {__VA_ARGS__};                                      \
		assert_string_equal(record_text(name, args, sizeof(args) / sizeof(args[0])), \
				    "10:05:45.123456789 3 sh[10] " says "\n");               \
	} while (0)

static void test_processes(void **state)
{
	READS("fork", "fork -> 12", UINT("child_pid", 12), UINT("child_tid", 12),
	      BOOL("thread", 0));
	READS("fork", "new thread -> 13", UINT("child_pid", 9), UINT("child_tid", 13),
	      BOOL("thread", 1));
	READS("exec", "exec /bin/l\\x0as [\"ls\" \"-l\"] ppid=7 uid=0", STR("path", "/bin/l\ns"),
	      STRV("argv", "ls\0-l"), UINT("old_tid", 10), UINT("ppid", 7), UINT("uid", 0));
	READS("exec", "exec /bin/ls [\"ls\"] ppid=7 uid=0 old_tid=11", STR("path", "/bin/ls"),
	      STRV("argv", "ls"), UINT("old_tid", 11), UINT("ppid", 7), UINT("uid", 0));
	READS("exec", "exec /bi... ? ppid=7 uid=0",
	      {.name = "path",
	       .kind = WEIR_ARG_STR,
	       .bytes = "/bi",
	       .len = 3,
	       .flags = WEIR_ARG_CUT},
	      {.name = "argv", .kind = WEIR_ARG_STRV, .flags = WEIR_ARG_UNREAD},
	      UINT("old_tid", 10), UINT("ppid", 7), UINT("uid", 0));
	READS("exit", "exited 3", UINT("code", 3), BOOL("core", 0), BOOL("process", 1));
	READS("exit", "thread exited 0", UINT("code", 0), BOOL("core", 0), BOOL("process", 0));
	READS("exit", "killed by SIGSEGV (core dumped)", UINT("code", 0), WORD("signal", "SIGSEGV"),
	      UINT("signo", 11), BOOL("core", 1), BOOL("process", 1));
}

static void test_signals(void **state)
{
	READS("signal", "signal SIGTERM -> sleep[12] SI_USER", WORD("sig", "SIGTERM"),
	      UINT("signo", 15), INT("code", 0), UINT("target_tid", 12),
	      STR("target_comm", "sleep"), WORD("result", "delivered"));
	READS("signal", "signal SIGCHLD -> s\\x1b[12] CLD_DUMPED result=ignored",
	      WORD("sig", "SIGCHLD"), UINT("signo", 17), INT("code", 3), UINT("target_tid", 12),
	      STR("target_comm", "s\x1b"), WORD("result", "ignored"));
	READS("signal", "signal SIGUSR1 taken by default SI_TKILL", WORD("sig", "SIGUSR1"),
	      UINT("signo", 10), INT("code", -6), HEX("handler", 0));
	READS("signal", "signal SIGUSR1 ignored code=3", WORD("sig", "SIGUSR1"), UINT("signo", 10),
	      INT("code", 3), HEX("handler", 1));
	READS("signal", "signal SIGSEGV handled at 0x77 SEGV_MAPERR", WORD("sig", "SIGSEGV"),
	      UINT("signo", 11), INT("code", 1), HEX("handler", 0x77));
}

static void test_scheduling(void **state)
{
	READS("sched_switch", "switch R+ -> next[12]", WORD("prev_state", "R+"),
	      STR("next_comm", "next"), UINT("next_tid", 12));
	READS("sched_wakeup", "wakeup -> next[12] cpu=1", STR("target_comm", "next"),
	      UINT("target_tid", 12), UINT("target_cpu", 1), BOOL("new", 0));
	READS("sched_wakeup", "first wakeup -> next[12] cpu=1", STR("target_comm", "next"),
	      UINT("target_tid", 12), UINT("target_cpu", 1), BOOL("new", 1));
	READS("sched_migrate", "migrate next[12] cpu 0 -> 1", STR("target_comm", "next"),
	      UINT("target_tid", 12), UINT("orig_cpu", 0), UINT("dest_cpu", 1));
}

/* What has no sentence, and what a sentence misses, is there all the same. */
static void test_other_records(void **state)
{
	static const char *const names[] = {
		"fork", "exec", "exit", "signal", "sched_switch", "sched_wakeup", "sched_migrate"};

	READS("rename", "rename to=\"x\" nr=5", STR("to", "x"), UINT("nr", 5));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(strchr(record_text(names[i], NULL, 0), '?'));
}

static void test_heads(void **state)
{
	struct weir_event event = {.cpu = -1, .mark = WEIR_MARK_LATE};
	struct weir_decoded d = {.name = "sys_enter",
				 .group = WEIR_GROUP_SYS,
				 .syscall = "openat",
				 .nr = 257,
				 .tid = 10};
	struct sink_event se = {.event = &event, .decoded = &d, .wall_ns = WALL};

	assert_string_equal(line_of(&se), "10:05:45.123456789 ? ?[10] sys_enter openat late\n");
	d.syscall = NULL;
	d.abi = "i386";
	event.mark = WEIR_MARK_AHEAD;
	se.container = "abc";
	assert_string_equal(line_of(&se), "10:05:45.123456789 ? ?[10] sys_enter sys_257/i386 "
					  "container=abc ahead\n");
	/* Of an id of a container, as much as people call it by. */
	se.container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	assert_non_null(strstr(line_of(&se), " container=0123456789ab ahead\n"));
	se.container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg";
	assert_non_null(strstr(line_of(&se), "9abcdeg ahead\n"));
}

static const char *styled(struct style *style)
{
	out__set_style(c.out, style);
	record_text("exit", (struct weir_arg[]){UINT("code", 3), BOOL("process", 1)}, 2);
	out__set_style(c.out, NULL);
	return c.text;
}

static void test_times(void **state)
{
	struct style style = {.time = STYLE_MONO};
	struct weir_event event = {.cpu = 0, .stamp_ns = 9000000000};
	struct weir_decoded d = {.name = "x"};
	struct sink_event se = {.event = &event, .decoded = &d, .comm = COMM("c")};

	assert_string_equal(styled(&style), "      5.000000001 3 sh[10] exited 3\n");
	style.time = STYLE_NO_TIME;
	assert_string_equal(styled(&style), "3 sh[10] exited 3\n");
	style.time = STYLE_DELTA;
	assert_string_equal(styled(&style), "+0.000000000 3 sh[10] exited 3\n");
	out__set_style(c.out, &style);
	assert_string_equal(line_of(&se), "+3.999999999 0 c[0] x\n");
	/* A late one lies before the line before it. */
	assert_string_equal(styled(&style), "-3.999999999 3 sh[10] exited 3\n");
}

static void test_times_that_lines_speak_of(void **state)
{
	struct style style = {.time = STYLE_MONO};
	struct weir_gap gap = {.from_ns = 1000, .to_ns = 2000000002, .lost = 17};

	out__set_style(c.out, &style);
	assert_string_equal(gap_text(gap, "cpu0"),
			    "-- gap cpu0: 17 lost (buffer full) in (0.000001000, 2.000000002]\n");
	sink__find("text")->watermark(c.out, 3000000000, WALL, WEIR_ORDER_EXACT);
	assert_string_equal(capture__take(&c), "-- complete up to 3.000000000 (exact)\n");
	style.time = STYLE_NO_TIME; /* a gap without its place would be none */
	assert_non_null(strstr(gap_text(gap, "cpu0"), ", 10:05:45.123456789]\n"));
	out__set_style(c.out, NULL);
}

static void test_columns(void **state)
{
	struct style style = {.time = STYLE_NO_TIME, .cpu_width = 3, .task_width = 8};

	assert_string_equal(styled(&style), "  3 sh[10]   exited 3\n");
	style.task_width = 6;
	style.cpu_width = 1;
	assert_string_equal(styled(&style), "3 sh[10] exited 3\n");
	style.task_width = 2; /* what is wider pushes the rest */
	assert_string_equal(styled(&style), "3 sh[10] exited 3\n");
}

static void test_colors(void **state)
{
	struct style style = {.color = true};

	assert_string_equal(styled(&style), "\x1b[2m10:05:45.123456789 3 \x1b[0msh[10] "
					    "\x1b[31mexited 3\x1b[0m\n");
	out__set_style(c.out, &style);
	record_text("exec",
		    (struct weir_arg[]){STR("path", "/a"), STRV("argv", "a"), UINT("old_tid", 10)},
		    3);
	assert_non_null(strstr(c.text, " \x1b[1mexec \x1b[0m\x1b[32m/a\x1b[0m "
				       "\x1b[32m[\"a\"]\x1b[0m ppid=? uid=?\n"));
	assert_string_equal(gap_text((struct weir_gap){.from_ns = 1, .to_ns = 1}, "cpu0"),
			    "\x1b[1;33m-- gap cpu0: 0 lost (buffer full) in "
			    "(10:05:45.123456789, 10:05:45.123456789]\x1b[0m\n");
	out__set_style(c.out, NULL);
}

static void test_values(void **state)
{
#define VALUE(...) arg_text((struct weir_arg){__VA_ARGS__})
	assert_string_equal(VALUE(.kind = WEIR_ARG_UINT, .u = 5), "5");
	assert_string_equal(VALUE(.kind = WEIR_ARG_INT, .i = -5), "-5");
	assert_string_equal(VALUE(.kind = WEIR_ARG_HEX, .u = 255), "0xff");
	assert_string_equal(VALUE(.kind = WEIR_ARG_BOOL, .u = 1), "true");
	assert_string_equal(VALUE(.kind = WEIR_ARG_TIMESPEC, .i = -1, .u = 999999999),
			    "{tv_sec=-1, tv_nsec=999999999}");
	assert_string_equal(VALUE(.kind = WEIR_ARG_WORD, .bytes = "SIGTERM"), "SIGTERM");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STRV, .bytes = "ls\0-l", .len = 6),
			    "[\"ls\" \"-l\"]");
	assert_string_equal(
		VALUE(.kind = WEIR_ARG_STR, .bytes = "ab", .len = 2, .flags = WEIR_ARG_CUT),
		"\"ab\"...");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STR, .flags = WEIR_ARG_UNREAD, .u = 16),
			    "0x10?");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STR, .flags = WEIR_ARG_UNREAD), "?");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STR, .bytes = "\x1b[2J\"\\\xc3\xa9\n", .len = 9),
			    "\"\\x1b[2J\\\"\\\\\\xc3\\xa9\\x0a\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR,
				  .bytes = "\x02\x00\x00\x50\x7f\x00\x00\x01", .len = 8),
			    "127.0.0.1:80");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR,
				  .bytes = "\x0a\x00\x00\x50\0\0\0\0"
					   "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\0\0\0",
				  .len = 28),
			    "[fe80::1%2]:80");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR, .bytes = "\x01\x00/s", .len = 4),
			    "unix:\"/s\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR, .bytes = "\x01\x00\x00n", .len = 4),
			    "unix:@\"n\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR, .bytes = "\x01\x00", .len = 2),
			    "unix");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR,
				  .bytes = "\x10\x00\0\0\x07\0\0\0\x01\0\0\0", .len = 12),
			    "netlink:7/0x1");
	assert_string_equal(VALUE(.kind = WEIR_ARG_SOCKADDR, .bytes = "\x28\x00\x01", .len = 3),
			    "vsock:0x280001");
#undef VALUE
}

static void test_gaps(void **state)
{
	struct weir_gap gap = {.from_ns = 1000, .to_ns = 2000, .lost = 17};

	assert_string_equal(gap_text(gap, "cpu0"), "-- gap cpu0: 17 lost (buffer full) in "
						   "(10:05:45.123455789, 10:05:45.123456789]\n");
	gap.from_ns = 0;
	gap.to_ns = 2000000000;
	gap.bound = WEIR_BOUND_AT_MOST;
	gap.cause = WEIR_LOST_SKIPPED;
	assert_string_equal(gap_text(gap, NULL), "-- gap all: at most 17 lost (skipped) in "
						 "(10:05:43.123456789, 10:05:45.123456789]\n");
	gap.bound = WEIR_BOUND_UNKNOWN;
	gap.cause = WEIR_LOST_DEAD_EVENT;
	assert_non_null(
		strstr(gap_text(gap, "cpu1"), "-- gap cpu1: unknown lost (dead event) in ("));
}

/* Of two rings of a CPU it is told once; of another CPU, or of another time, again. */
static void test_offline(void **state)
{
	struct style style = {.time = STYLE_MONO};
	struct weir_gap gap = {.from_ns = 1000, .to_ns = 5000, .cause = WEIR_LOST_OFFLINE};
	struct weir_event event = {
		.kind = WEIR_KIND_GAP, .cpu = 1, .data = &gap, .len = sizeof(gap)};
	struct sink_event se = {.event = &event, .wall_ns = WALL, .source = "life1"};
	static const char first[] = "-- CPU 1 was offline from 0.000001000 to 0.000005000\n";

	out__set_style(c.out, &style);
	assert_string_equal(line_of(&se), first);
	gap.from_ns = 1100;
	gap.to_ns = 9000;
	assert_string_equal(line_of(&se), "");
	gap.from_ns = 10000;
	gap.to_ns = 11000;
	assert_string_equal(line_of(&se), "-- CPU 1 was offline from 0.000010000 to 0.000011000\n");
	event.cpu = 0;
	assert_string_equal(line_of(&se), "-- CPU 0 was offline from 0.000010000 to 0.000011000\n");
	out__set_style(c.out, NULL);
}

static const char *step_text(struct weir_clock_step step)
{
	struct weir_event event = {
		.kind = WEIR_KIND_CLOCK_STEP, .data = &step, .len = sizeof(step)};
	struct sink_event se = {.event = &event, .wall_ns = WALL};

	return line_of(&se);
}

/* M3 */
static void test_clock_steps(void **state)
{
	assert_string_equal(step_text((struct weir_clock_step){.old_offset_ns = 3600000000000}),
			    "-- clock step at 10:05:45.123456789: wall time moved by "
			    "-3600.000000000 s\n");
	assert_string_equal(step_text((struct weir_clock_step){.new_offset_ns = 10800000000001,
							       .suspended_ns = 10800000000000}),
			    "-- clock step at 10:05:45.123456789: wall time moved by "
			    "+10800.000000001 s, of it suspended 10800.000000000 s\n");
	assert_non_null(strstr(step_text((struct weir_clock_step){.old_offset_ns = INT64_MIN,
								  .new_offset_ns = INT64_MAX}),
			       "+18446744073.709551615 s"));
}

static void test_watermarks(void **state)
{
	const struct sink_ops *text = sink__find("text");

	assert_int_equal(text->watermark(c.out, 1, WALL, WEIR_ORDER_EXACT), 0);
	assert_string_equal(capture__take(&c), "-- complete up to 10:05:45.123456789 (exact)\n");
	assert_int_equal(text->watermark(c.out, 1, WALL, WEIR_ORDER_ESTIMATED), 0);
	assert_string_equal(capture__take(&c),
			    "-- complete up to 10:05:45.123456789 (estimated)\n");
}

static void test_random_bytes_stay_off_the_terminal(void **state)
{
	static const enum weir_arg_kind kinds[] = {WEIR_ARG_STR, WEIR_ARG_STRV, WEIR_ARG_SOCKADDR};
	static const char *const names[] = {
		"x",	  "fork",	  "exec",	  "exit",
		"signal", "sched_switch", "sched_wakeup", "sched_migrate"};
	static const char *const args[] = {"path", "argv", "target_comm", "next_comm", "signal"};
	uint64_t seed = 99;
	int run;

	for (run = 0; run < 3000; run++) {
		size_t len = rng(&seed) % (run % 100 ? 50 : 5000), i;
		char *bytes = malloc(len + 1), comm[17] = {0};
		struct weir_event event = {.cpu = 0};
		struct weir_decoded d = {.name = names[run % 8], .tid = 1, .nargs = 1};
		struct sink_event se = {.event = &event, .decoded = &d, .comm = comm};

		for (i = 0; i < len; i++)
			bytes[i] = (char)rng(&seed);
		bytes[len] = '\0';
		for (i = 0; i < 16; i++)
			comm[i] = (char)rng(&seed);
		if (len > 1 && run % 2) {
			bytes[0] = AF_UNIX;
			bytes[1] = 0;
		}
		se.container = bytes;
		se.source = bytes;
		d.args[0] = (struct weir_arg){.name = args[run % 5],
					      .kind = kinds[run % 3],
					      .bytes = bytes,
					      .len = (uint32_t)len};
		line_of(&se);
		assert_int_equal(c.text[c.len - 1], '\n');
		for (i = 0; i < c.len - 1; i++)
			assert_in_range((uint8_t)c.text[i], 0x20, 0x7e);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_scheduling),
		cmocka_unit_test(test_other_records),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_times_that_lines_speak_of),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_colors),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_offline),
		cmocka_unit_test(test_clock_steps),
		cmocka_unit_test(test_watermarks),
		cmocka_unit_test(test_random_bytes_stay_off_the_terminal),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
