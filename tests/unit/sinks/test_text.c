// SPDX-License-Identifier: BSD-2-Clause
/* text.c: one event, one line, and nothing in it that a terminal obeys (G8). */
#include "capture.h"

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

static void test_records(void **state)
{
	struct weir_event event = {.cpu = 3};
	struct weir_decoded d = {.name = "exec", .pid = 9, .tid = 10, .nargs = 1};
	struct sink_event se = {.event = &event,
				.decoded = &d,
				.wall_ns = WALL,
				.source = "life3",
				.comm = "tmux: server",
				.container = "abc"};

	d.args[0] = (struct weir_arg){
		.name = "path", .kind = WEIR_ARG_STR, .bytes = "/bin/ls", .len = 7};
	assert_string_equal(line_of(&se), "10:05:45.123456789 3 tmux: server[10] exec "
					  "path=\"/bin/ls\" container=abc\n");
	d.nargs = 0;
	d.name = "sys_enter";
	d.group = WEIR_GROUP_SYS;
	d.syscall = "openat";
	d.nr = 257;
	se.container = NULL;
	se.comm = NULL;
	event.cpu = -1;
	event.mark = WEIR_MARK_LATE;
	assert_string_equal(line_of(&se), "10:05:45.123456789 ? ?[10] sys_enter openat late\n");
	d.syscall = NULL;
	d.abi = "i386";
	event.mark = WEIR_MARK_AHEAD;
	assert_string_equal(line_of(&se),
			    "10:05:45.123456789 ? ?[10] sys_enter sys_257/i386 ahead\n");
}

static void test_values(void **state)
{
#define VALUE(...) arg_text((struct weir_arg){__VA_ARGS__})
	assert_string_equal(VALUE(.kind = WEIR_ARG_UINT, .u = 5), "5");
	assert_string_equal(VALUE(.kind = WEIR_ARG_INT, .i = -5), "-5");
	assert_string_equal(VALUE(.kind = WEIR_ARG_HEX, .u = 255), "0xff");
	assert_string_equal(VALUE(.kind = WEIR_ARG_BOOL, .u = 1), "true");
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

static const char *gap_text(struct weir_gap gap, const char *source)
{
	struct weir_event event = {.kind = WEIR_KIND_GAP, .data = &gap, .len = sizeof(gap)};
	struct sink_event se = {.event = &event, .wall_ns = WALL, .source = source};

	return line_of(&se);
}

static void test_gaps(void **state)
{
	struct weir_gap gap = {.from_ns = 1000, .to_ns = 2000, .lost = 17};

	assert_string_equal(gap_text(gap, "cpu0"), "-- gap cpu0: 17 lost (reserve failed) in "
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
	uint64_t seed = 99;
	int run;

	for (run = 0; run < 3000; run++) {
		size_t len = rng(&seed) % (run % 100 ? 50 : 5000), i;
		char *bytes = malloc(len + 1), comm[17] = {0};
		struct weir_event event = {.cpu = 0};
		struct weir_decoded d = {.name = "x", .tid = 1, .nargs = 1};
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
		d.args[0] = (struct weir_arg){
			.name = "a", .kind = kinds[run % 3], .bytes = bytes, .len = (uint32_t)len};
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
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_clock_steps),
		cmocka_unit_test(test_watermarks),
		cmocka_unit_test(test_random_bytes_stay_off_the_terminal),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
