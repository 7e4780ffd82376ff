// SPDX-License-Identifier: BSD-2-Clause
/* text_call.c: a system call as a line: arguments by what they are, results, times, and what is not there. */
#include "capture.h"
#include "sinks/text.h"

#include "sinks/style.h"

#include <errno.h>
#include <fcntl.h>

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

static struct weir_event enter = {.stamp_ns = 1000, .source = 1}, leave = {.stamp_ns = 1500};
static struct weir_decoded d;

static bool is_found;

/* What follows "TIME 0 sh[10] "; as a call that ended like this. */
static const char *ending(enum weir_call_end end)
{
	struct weir_call call = {
		.end = end,
		.enter = end == WEIR_CALL_BORN || end == WEIR_CALL_NO_ENTER ? NULL : &enter,
		.exit = end <= WEIR_CALL_NO_ENTER ? &leave : NULL,
		.found = is_found,
	};
	struct sink_event se = {.event = call.exit ? call.exit : call.enter,
				.decoded = &d,
				.wall_ns = WALL,
				.comm = COMM("sh")};
	const char *head = "10:05:45.123456789 0 sh[10] ";

	d.group = WEIR_GROUP_SYS;
	d.tid = 10;
	d.has_args = call.enter;
	d.has_ret = call.exit;
	assert_int_equal(sink__find("text")->call(c.out, &se, &call), 0);
	capture__take(&c);
	assert_int_equal(c.text[c.len - 1], '\n');
	c.text[c.len - 1] = '\0';
	assert_memory_equal(c.text, head, strlen(head));
	return c.text + strlen(head);
}

static void assert_call(const char *text)
{
	assert_string_equal(ending(WEIR_CALL_RETURNED), text);
}

static void begin(const char *name, int64_t ret)
{
	d = (struct weir_decoded){.name = "syscall", .syscall = name, .ret = ret};
}

static void raw(const char *name, enum weir_tag tag, const char *set, uint64_t u)
{
	d.args[d.nargs++] = (struct weir_arg){
		.name = name, .kind = WEIR_ARG_HEX, .tag = tag, .set = set, .u = u};
}

static void str(const char *name, const char *text)
{
	d.args[d.nargs++] = (struct weir_arg){.name = name,
					      .kind = WEIR_ARG_STR,
					      .tag = WEIR_TAG_PATH,
					      .bytes = text,
					      .len = (uint32_t)strlen(text)};
}

/* 32 bits of a register count, and what is above them is anything. */
#define JUNK (0xabcdull << 32)

static void open_with(uint64_t flags, uint64_t mode)
{
	begin("openat", 3);
	raw("dfd", WEIR_TAG_DIRFD, NULL, JUNK | (uint32_t)AT_FDCWD);
	str("filename", "/etc/\x1b\"\n");
	raw("flags", WEIR_TAG_FLAGS, "open", flags);
	raw("mode", WEIR_TAG_MODE, NULL, mode);
}

static void test_open(void **state)
{
#define OPEN "openat(dfd: AT_FDCWD, filename: \"/etc/\\x1b\\\"\\x0a\", flags: "
	open_with(O_RDONLY | O_CLOEXEC, 0xdead);
	assert_call(OPEN "O_RDONLY|O_CLOEXEC) = 3 <0.500us>");
	/* The mode means something only where a file is made. */
	open_with(O_WRONLY | O_CREAT, JUNK | 0644);
	assert_call(OPEN "O_WRONLY|O_CREAT, mode: 0644) = 3 <0.500us>");
	open_with(O_WRONLY | O_TMPFILE, 0);
	assert_call(OPEN "O_WRONLY|O_TMPFILE, mode: 0) = 3 <0.500us>");
	open_with(O_DIRECTORY, 0777);
	assert_call(OPEN "O_RDONLY|O_DIRECTORY) = 3 <0.500us>");
#undef OPEN
	begin("mkdirat", 0);
	raw("dfd", WEIR_TAG_DIRFD, NULL, 5);
	str("pathname", "d");
	raw("mode", WEIR_TAG_MODE, NULL, 01777);
	assert_call("mkdirat(dfd: 5, pathname: \"d\", mode: 01777) = 0 <0.500us>");
}

static const char *one(enum weir_tag tag, const char *set, uint64_t u)
{
	begin("x", 0);
	raw("a", tag, set, u);
	ending(WEIR_CALL_RETURNED);
	*strrchr(c.text, ')') = '\0';
	return strstr(c.text, "(a: ") + 4;
}

static void test_arguments(void **state)
{
	assert_string_equal(one(WEIR_TAG_INT, NULL, JUNK | 0xffffffff), "-1");
	assert_string_equal(one(WEIR_TAG_FD, NULL, JUNK | 7), "7");
	assert_string_equal(one(WEIR_TAG_PID, NULL, 0xffffffff), "-1");
	assert_string_equal(one(WEIR_TAG_UINT, NULL, JUNK | 0xffffffff), "4294967295");
	assert_string_equal(one(WEIR_TAG_UID, NULL, JUNK | 0xffffffff), "-1");
	assert_string_equal(one(WEIR_TAG_GID, NULL, 1000), "1000");
	assert_string_equal(one(WEIR_TAG_LONG, NULL, UINT64_MAX), "-1");
	assert_string_equal(one(WEIR_TAG_OFF, NULL, UINT64_MAX - 4), "-5");
	assert_string_equal(one(WEIR_TAG_SIZE, NULL, UINT64_MAX), "18446744073709551615");
	assert_string_equal(one(WEIR_TAG_SIG, NULL, JUNK | 15), "SIGTERM");
	assert_string_equal(one(WEIR_TAG_ENUM, "seek", JUNK | 1), "SEEK_CUR");
	assert_string_equal(one(WEIR_TAG_FLAGS, "prot", 5), "PROT_READ|PROT_EXEC");
	assert_string_equal(one(WEIR_TAG_HEX, NULL, 0), "0x0");
	assert_string_equal(one(WEIR_TAG_NONE, NULL, 16), "0x10");
	assert_string_equal(one(WEIR_TAG_DEV, NULL, 16), "0x10");
	assert_string_equal(one(WEIR_TAG_OUTBUF, NULL, 4096), "0x1000");
	assert_string_equal(one(WEIR_TAG_PTR, NULL, 0), "NULL");
	assert_string_equal(one(WEIR_TAGS, NULL, 0), "NULL");
	/* A register left out for alignment is no argument. */
	begin("x", 0);
	raw("fd", WEIR_TAG_FD, NULL, 1);
	raw("pad", WEIR_TAG_PAD, NULL, 99);
	raw("lo", WEIR_TAG_LO, NULL, 2);
	assert_call("x(fd: 1, lo: 2) = 0 <0.500us>");
	begin("x", 0);
	assert_call("x() = 0 <0.500us>");
}

static void test_strings_that_are_not_there(void **state)
{
	begin("x", 0);
	str("a", "cut");
	d.args[0].flags = WEIR_ARG_CUT;
	str("b", "");
	d.args[1].flags = WEIR_ARG_UNREAD;
	d.args[1].u = 0x1234;
	raw("c", WEIR_TAG_PATH, NULL, 0x99);
	d.args[2].flags = WEIR_ARG_UNREAD;
	assert_call("x(a: \"cut\"..., b: 0x1234?, c: 0x99?) = 0 <0.500us>");
}

static void test_results(void **state)
{
	begin("read", -ENOENT);
	assert_call("read() = -1 ENOENT (No such file or directory) <0.500us>");
	begin("read", -EINTR);
	assert_call("read() = -1 EINTR (Interrupted system call) <0.500us>");
	begin("read", -512);
	assert_call("read() = -1 ERESTARTSYS <0.500us>");
	begin("read", -4095);
	assert_call("read() = -1 errno 4095 <0.500us>");
	begin("read", -4096);
	assert_call("read() = -4096 <0.500us>");
	begin("read", INT64_MIN);
	assert_call("read() = -9223372036854775808 <0.500us>");
	begin("mmap", 0x7f0000001000);
	assert_call("mmap() = 0x7f0000001000 <0.500us>");
	begin("mmap", -ENOMEM);
	assert_call("mmap() = -1 ENOMEM (Cannot allocate memory) <0.500us>");
	begin(NULL, 5);
	d.nr = 999;
	d.abi = "x32";
	assert_call("sys_999/x32() = 5 <0.500us>");
}

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0.000us"},
		{7, "0.007us"},
		{999999, "999.999us"},
		{1000000, "1.000ms"},
		{1234567, "1.234ms"},
		{999999999, "999.999ms"},
		{1000000000, "1.000s"},
		{61002000000, "61.002s"},
		{UINT64_MAX - 1000, "18446744073.709s"},
	};

	begin("x", 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char want[100];

		snprintf(want, sizeof(want), "x() = 0 <%s>", cases[i].text);
		leave.stamp_ns = enter.stamp_ns + cases[i].ns;
		assert_call(want);
	}
	leave.stamp_ns = enter.stamp_ns + 500;
}

static void test_ends(void **state)
{
	begin("read", 5);
	raw("fd", WEIR_TAG_FD, NULL, 3);
	assert_string_equal(ending(WEIR_CALL_NO_ENTER), "read(?) = 5");
	assert_string_equal(ending(WEIR_CALL_BORN), "read(?) = 5");
	assert_string_equal(ending(WEIR_CALL_NO_RETURN), "read(fd: 3) = ?");
	assert_string_equal(ending(WEIR_CALL_BROKEN), "read(fd: 3) = ? <lost>");
	assert_string_equal(ending(WEIR_CALL_OPEN), "read(fd: 3) <unfinished>");
}

/* What a descriptor stands for may be any bytes, and is not always known. */
static void test_descriptors(void **state)
{
	struct sink_fds fds = {.arg = {"/etc/\x1b[2J", NULL, "/"}, .result = "tcp"};
	struct weir_call call = {.enter = &enter, .exit = &leave};
	struct sink_event se = {.event = &leave, .decoded = &d, .comm = COMM("sh"), .fds = &fds};

	begin("x", 5);
	raw("fd", WEIR_TAG_FD, NULL, 3);
	raw("to", WEIR_TAG_FD, NULL, 4);
	raw("dfd", WEIR_TAG_DIRFD, NULL, (uint32_t)AT_FDCWD);
	d.has_args = d.has_ret = true;
	sink__find("text")->call(c.out, &se, &call);
	assert_non_null(strstr(capture__take(&c),
			       " x(fd: 3</etc/\\x1b[2J>, to: 4, dfd: AT_FDCWD</>) "
			       "= 5<tcp> <0.500us>\n"));
	sink__find("json")->call(c.out, &se, &call);
	assert_non_null(strstr(capture__take(&c),
			       ",\"fds\":{\"fd\":\"/etc/\\u001b[2J\",\"dfd\":\"/\","
			       "\"result\":\"tcp\"}"));
	fds = (struct sink_fds){.result = "tcp"};
	sink__find("json")->call(c.out, &se, &call);
	assert_non_null(strstr(capture__take(&c), ",\"fds\":{\"result\":\"tcp\"}"));
	fds = (struct sink_fds){0};
	sink__find("json")->call(c.out, &se, &call);
	assert_null(strstr(capture__take(&c), "\"fds\""));
}

static void test_colors(void **state)
{
	struct style style = {.color = true, .time = STYLE_NO_TIME};
	struct weir_call call = {.enter = &enter, .exit = &leave};
	struct sink_event se = {.event = &leave, .decoded = &d, .comm = COMM("sh")};

	begin("access", -ENOENT);
	str("f", "/x");
	d.has_args = d.has_ret = true;
	out__set_style(c.out, &style);
	sink__find("text")->call(c.out, &se, &call);
	out__set_style(c.out, NULL);
	assert_string_equal(
		capture__take(&c),
		"\x1b[2m0 \x1b[0msh[0] \x1b[1maccess\x1b[0m(f: \x1b[32m\"/x\"\x1b[0m) = "
		"\x1b[31m-1 ENOENT (No such file or directory)\x1b[0m\x1b[2m "
		"<0.500us>\x1b[0m\n");
}

/* Two records, of two sources, get lost together. */
static void lost(void *ctx, uint32_t source, uint64_t events)
{
	*(uint64_t *)ctx += events << (8 * source);
}

static void test_a_line_is_two_events(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	struct out *full = out__new(fd, 0, NULL, 0);
	struct weir_call call = {.enter = &enter, .exit = &leave};
	struct sink_event se = {.event = &leave, .decoded = &d};
	uint64_t events = 0;

	begin("x", 0);
	sink__find("text")->call(full, &se, &call);
	call.end = WEIR_CALL_NO_RETURN;
	call.exit = NULL;
	sink__find("text")->call(full, &se, &call);
	assert_int_equal(out__flush(full), -ENOSPC);
	out__unwritten(full, lost, &events);
	assert_int_equal(events, 0x0201); /* one of source 0, two of 1 */
	out__free(full);
	close(fd);
}

/* Any bytes, tags, numbers and sets: a line of printable characters. */
static void test_random(void **state)
{
	static const char *const sets[] = {"open", "seek", "nothing", NULL, "prot"};
	static const char *const calls[] = {"mmap", "openat", NULL, "x"};
	uint64_t seed = 5;

	for (int run = 0; run < 20000; run++) {
		char bytes[64];

		begin(calls[rng(&seed) % 4], (int64_t)rng(&seed) >> rng(&seed) % 64);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)rng(&seed);
		for (uint64_t n = rng(&seed) % WEIR_ARGS_MAX; n; n--) {
			raw("a", (enum weir_tag)(rng(&seed) % WEIR_TAGS), sets[rng(&seed) % 5],
			    rng(&seed) >> rng(&seed) % 64);
			d.args[d.nargs - 1].flags = rng(&seed) & 3;
			if (rng(&seed) & 1)
				continue;
			d.args[d.nargs - 1].kind =
				(enum weir_arg_kind)(WEIR_ARG_STR + rng(&seed) % 3);
			d.args[d.nargs - 1].bytes = bytes;
			d.args[d.nargs - 1].len = rng(&seed) % sizeof(bytes);
		}
		ending((enum weir_call_end)(rng(&seed) % (WEIR_CALL_OPEN + 1)));
		for (size_t i = 0; i < c.len - 1; i++)
			assert_in_range((uint8_t)c.text[i], 0x20, 0x7e);
	}
}

/* It was there before the trace: nobody knows since when. */
static void test_found(void **state)
{
	is_found = true;
	begin("read", 3);
	raw("fd", WEIR_TAG_FD, NULL, 0);
	assert_call("read(fd: 0) = 3 <over 0.500us, from before the trace>");
	assert_string_equal(ending(WEIR_CALL_OPEN),
			    "read(fd: 0) <unfinished, from before the trace>");
	is_found = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),	  cmocka_unit_test(test_found),
		cmocka_unit_test(test_arguments), cmocka_unit_test(test_strings_that_are_not_there),
		cmocka_unit_test(test_results),	  cmocka_unit_test(test_durations),
		cmocka_unit_test(test_ends),	  cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_colors),	  cmocka_unit_test(test_a_line_is_two_events),
		cmocka_unit_test(test_random),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
