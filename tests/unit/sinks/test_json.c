// SPDX-License-Identifier: BSD-2-Clause
/*
 * json.c and sockaddr.c: each line is valid JSON whatever the event holds (G8), every string can be
 * turned back into its bytes, and no digit is lost (M4).
 */
#include "parsed.h"

#include <weir/probes.h>

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define STAMP 123456789012345ull
#define WALL  1757412345123456789ll

static struct capture c;

static int setup(void **state)
{
	capture__open(&c);
	return 0;
}

static int teardown(void **state)
{
	capture__close(&c);
	return 0;
}

static struct weir_event an_event(void)
{
	return (struct weir_event){.stamp_ns = STAMP, .seq = 7, .source = 1, .cpu = 1};
}

static struct weir_decoded an_exec(void)
{
	return (struct weir_decoded){
		.name = "exec", .group = WEIR_GROUP_PROCESS, .pid = 10, .tid = 11, .nr = -1};
}

static const char *line_of(const struct weir_event *event, const struct weir_decoded *decoded)
{
	struct sink_event se = {
		.event = event, .decoded = decoded, .wall_ns = WALL, .source = "cpu1"};

	assert_int_equal(sink__find("json")->event(c.out, &se), 0);
	return capture__take(&c);
}

/* The value of one argument, as JSON text. */
static const char *value_of(struct weir_arg arg)
{
	static char text[4096];
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();
	const char *line, *from, *to;

	arg.name = "a";
	d.nargs = 1;
	d.args[0] = arg;
	line = line_of(&event, &d);
	json_object_put(parse_line(line, c.len));
	from = strstr(line, "\"args\":{\"a\":") + 12;
	/* The end of args: what follows it, or the end of the line. */
	to = strstr(from, "},\"unread\":");
	if (!to)
		to = strstr(from, "},\"cut\":");
	if (!to)
		to = line + c.len - 3;
	snprintf(text, sizeof(text), "%.*s", (int)(to - from), from);
	return text;
}

static const char *str_value(const void *bytes, size_t len)
{
	return value_of((struct weir_arg){.kind = WEIR_ARG_STR, .bytes = bytes, .len = len});
}

static const char *sockaddr_value(const void *bytes, size_t len)
{
	return value_of((struct weir_arg){.kind = WEIR_ARG_SOCKADDR, .bytes = bytes, .len = len});
}

static void test_a_record(void **state)
{
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();

	event.seq = UINT64_MAX;
	d.nargs = 2;
	d.args[0] = (struct weir_arg){
		.name = "path", .kind = WEIR_ARG_STR, .bytes = "/bin/ls", .len = 7};
	d.args[1] = (struct weir_arg){.name = "uid", .kind = WEIR_ARG_UINT, .u = 1000};
	struct sink_event se = {
		.event = &event,
		.decoded = &d,
		.wall_ns = WALL,
		.source = "life1",
		.comm = COMM("ls"),
		.container = "0123abcd",
	};
	assert_int_equal(sink__find("json")->event(c.out, &se), 0);
	assert_string_equal(
		capture__take(&c),
		"{\"ts\":\"123456789012345\",\"time\":\"2025-09-09T10:05:45.123456789Z\","
		"\"cpu\":1,\"pid\":10,\"tid\":11,\"comm\":\"ls\",\"event\":\"exec\","
		"\"source\":\"life1\",\"seq\":18446744073709551615,"
		"\"args\":{\"path\":\"/bin/ls\",\"uid\":1000},"
		"\"container\":\"0123abcd\"}\n");
}

/* No key without a value: what is unknown is not there. */
static void test_a_record_of_which_little_is_known(void **state)
{
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();

	event.cpu = -1;
	event.mark = WEIR_MARK_LATE;
	assert_string_equal(
		line_of(&event, &d),
		"{\"ts\":\"123456789012345\",\"time\":\"2025-09-09T10:05:45.123456789Z\","
		"\"pid\":10,\"tid\":11,\"event\":\"exec\",\"source\":\"cpu1\",\"seq\":7,"
		"\"args\":{},\"late\":true}\n");
	event.mark = WEIR_MARK_AHEAD;
	assert_non_null(strstr(line_of(&event, &d), "\"args\":{},\"ahead\":true}\n"));
}

static void test_a_syscall(void **state)
{
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();

	d.name = "sys_enter";
	d.group = WEIR_GROUP_SYS;
	d.nr = 257;
	d.syscall = "openat";
	assert_non_null(strstr(line_of(&event, &d),
			       "\"event\":\"sys_enter\",\"syscall\":\"openat\","
			       "\"nr\":257,\"source\":\"cpu1\""));
	d.syscall = NULL;
	d.abi = "i386";
	d.nr = 9999;
	assert_non_null(strstr(line_of(&event, &d), "\"syscall\":\"sys_9999\",\"nr\":9999,"
						    "\"abi\":\"i386\",\"source\":"));
	d.nr = -1; /* syscall(-1) */
	assert_non_null(strstr(line_of(&event, &d), "\"syscall\":\"sys_-1\",\"nr\":-1,"));
}

/* What a call returned has a name beside it where it is an error, of an exit and of a whole call. */
static void test_errors(void **state)
{
	static const struct {
		long long ret;
		const char *error;
	} results[] = {
		{-2, ",\"error\":\"ENOENT\""},
		{-512, ",\"error\":\"ERESTARTSYS\""},
		{-4095, ""}, /* has no name */
		{-4096, ""},
		{0, ""},
		{2, ""},
		{INT64_MIN, ""},
	};
	struct weir_event exit = an_event();
	const struct weir_call call = {.end = WEIR_CALL_NO_ENTER, .exit = &exit};
	struct weir_decoded d = an_exec();
	const struct sink_event se = {.event = &exit, .decoded = &d, .source = "cpu1"};
	char text[128];

	exit.type = WEIR_T_SYS_EXIT;
	d.group = WEIR_GROUP_SYS;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		d.has_ret = true;
		d.ret = results[i].ret;
		d.nargs = 0;
		sink__find("json")->call(c.out, &se, &call);
		snprintf(text, sizeof(text), "\"result\":%lld%s,\"args\":", results[i].ret,
			 results[i].error);
		assert_non_null(strstr(capture__take(&c), text));

		d.has_ret = false;
		d.nargs = 1;
		d.args[0] =
			(struct weir_arg){.name = "ret", .kind = WEIR_ARG_INT, .i = results[i].ret};
		snprintf(text, sizeof(text), "\"args\":{\"ret\":%lld}%s}\n", results[i].ret,
			 results[i].error);
		assert_non_null(strstr(line_of(&exit, &d), text));
	}
}

static void test_kinds_of_values(void **state)
{
#define VALUE(...) value_of((struct weir_arg){__VA_ARGS__})
	assert_string_equal(VALUE(.kind = WEIR_ARG_UINT, .u = UINT64_MAX), "18446744073709551615");
	assert_string_equal(VALUE(.kind = WEIR_ARG_INT, .i = INT64_MIN), "-9223372036854775808");
	assert_string_equal(VALUE(.kind = WEIR_ARG_HEX, .u = UINT64_MAX), "\"0xffffffffffffffff\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_HEX, .u = 0), "\"0x0\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_BOOL, .u = 1), "true");
	assert_string_equal(VALUE(.kind = WEIR_ARG_BOOL, .u = 0), "false");
	assert_string_equal(VALUE(.kind = WEIR_ARG_TIMESPEC, .i = INT64_MIN, .u = UINT64_MAX),
			    "{\"tv_sec\":-9223372036854775808,\"tv_nsec\":-1}");
	assert_string_equal(VALUE(.kind = WEIR_ARG_WORD, .bytes = "SIGTERM"), "\"SIGTERM\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STRV, .bytes = "", .len = 0), "[]");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STRV, .bytes = "ls\0\0-l", .len = 7),
			    "[\"ls\",\"\",\"-l\"]");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STRV, .bytes = "\0", .len = 2), "[\"\",\"\"]");
	/* Cut in the middle of a string. */
	assert_string_equal(VALUE(.kind = WEIR_ARG_STRV, .bytes = "ls\0-lon", .len = 7),
			    "[\"ls\",\"-lon\"]");
	/* Not read: the address, whatever it was to be. And nobody's address is 0. */
	assert_string_equal(VALUE(.kind = WEIR_ARG_STRV, .flags = WEIR_ARG_UNREAD, .u = 0x7f00),
			    "\"0x7f00\"");
	assert_string_equal(VALUE(.kind = WEIR_ARG_STR, .flags = WEIR_ARG_UNREAD), "null");
#undef VALUE
}

static void test_cut_and_unread_are_named(void **state)
{
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();
	uint32_t both = WEIR_ARG_CUT | WEIR_ARG_UNREAD;

	d.nargs = 4;
	d.args[0] = (struct weir_arg){.name = "a", .kind = WEIR_ARG_STR, .flags = WEIR_ARG_CUT};
	d.args[1] = (struct weir_arg){.name = "b", .kind = WEIR_ARG_UINT};
	d.args[2] = (struct weir_arg){.name = "c", .kind = WEIR_ARG_STR, .flags = both, .u = 1};
	d.args[3] = (struct weir_arg){.name = "d", .flags = WEIR_ARG_UNREAD, .u = 2};
	assert_non_null(strstr(line_of(&event, &d),
			       "\"args\":{\"a\":\"\",\"b\":0,\"c\":\"0x1\",\"d\":\"0x2\"},"
			       "\"unread\":[\"c\",\"d\"],\"cut\":[\"a\",\"c\"]}\n"));
}

/* M4 */
static void test_hostile_bytes(void **state)
{
	static const char comm[16] = "\xff\xfe\x22\x5c\x0a";
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();
	struct json_object *line;

	event.stamp_ns = 1757412345123456789ull;
	d.nargs = 1;
	d.args[0] = (struct weir_arg){
		.name = "path", .kind = WEIR_ARG_STR, .bytes = "/tmp/\x80x", .len = 7};
	struct sink_event se = {.event = &event,
				.decoded = &d,
				.wall_ns = WALL,
				.source = "life0",
				.comm = comm,
				.container = "\\x41"};
	assert_int_equal(sink__find("json")->event(c.out, &se), 0);
	capture__take(&c);
	assert_non_null(strstr(c.text, "\"comm\":\"\\\\xff\\\\xfe\\\"\\\\\\\\\\n\""));
	line = parse_line(c.text, c.len);
	assert_string_equal(text_of(line, "ts"), "1757412345123456789");
	assert_bytes(member(line, "comm"), comm, 5);
	assert_bytes(member(member(line, "args"), "path"), "/tmp/\x80x", 7);
	assert_bytes(member(line, "container"), "\\x41", 4);
	json_object_put(line);
}

static void test_utf8(void **state)
{
	/* Good ones stay, first and last of each length. */
	assert_string_equal(str_value("\xc2\xa0\xdf\xbf", 4), "\"\xc2\xa0\xdf\xbf\"");
	assert_string_equal(str_value("\xe0\xa0\x80\xed\x9f\xbf", 6),
			    "\"\xe0\xa0\x80\xed\x9f\xbf\"");
	assert_string_equal(str_value("\xee\x80\x80\xef\xbf\xbf", 6),
			    "\"\xee\x80\x80\xef\xbf\xbf\"");
	assert_string_equal(str_value("\xf0\x90\x80\x80", 4), "\"\xf0\x90\x80\x80\"");
	assert_string_equal(str_value("\xf4\x8f\xbf\xbf", 4), "\"\xf4\x8f\xbf\xbf\"");
	/* Overlong, surrogates, beyond U+10FFFF, cut, alone. */
	assert_string_equal(str_value("\xc0\x80", 2), "\"\\\\xc0\\\\x80\"");
	assert_string_equal(str_value("\xc1\xbf", 2), "\"\\\\xc1\\\\xbf\"");
	assert_string_equal(str_value("\xe0\x9f\xbf", 3), "\"\\\\xe0\\\\x9f\\\\xbf\"");
	assert_string_equal(str_value("\xed\xa0\x80", 3), "\"\\\\xed\\\\xa0\\\\x80\"");
	assert_string_equal(str_value("\xf0\x8f\xbf\xbf", 4), "\"\\\\xf0\\\\x8f\\\\xbf\\\\xbf\"");
	assert_string_equal(str_value("\xf4\x90\x80\x80", 4), "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");
	assert_string_equal(str_value("\xf5\x80\x80\x80", 4), "\"\\\\xf5\\\\x80\\\\x80\\\\x80\"");
	assert_string_equal(str_value("a\xe2\x82", 3), "\"a\\\\xe2\\\\x82\"");
	assert_string_equal(str_value("\xe2\x82z", 3), "\"\\\\xe2\\\\x82z\"");
	/* Nothing that a terminal obeys: C0, DEL, C1. */
	assert_string_equal(str_value("\x1b[2J\x7f\xc2\x9b\xc2\x80", 9),
			    "\"\\u001b[2J\\u007f\\u009b\\u0080\"");
	assert_string_equal(str_value("\0\b\f\t\r\n", 6), "\"\\u0000\\u0008\\u000c\\t\\r\\n\"");
}

/* What a byte becomes when it stands alone among others. */
static const char *alone(int byte)
{
	static char text[8];

	switch (byte) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\\\\\";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	}
	snprintf(text, sizeof(text),
		 byte < 0x20 || byte == 0x7f ? "\\u%04x"
		 : byte > 0x7f		     ? "\\\\x%02x"
					     : "%c",
		 byte);
	return text;
}

/* Every byte, at every place of an eight-byte word and beside it. */
static void test_every_byte_at_every_place(void **state)
{
	char bytes[17], expect[64];
	int byte, at;

	for (byte = 0; byte < 0x100; byte++) {
		for (at = 0; at < 17; at++) {
			memset(bytes, 'x', sizeof(bytes));
			bytes[at] = (char)byte;
			snprintf(expect, sizeof(expect), "\"%.*s%s%.*s\"", at, bytes, alone(byte),
				 16 - at, bytes + at + 1);
			assert_string_equal(str_value(bytes, sizeof(bytes)), expect);
		}
	}
}

/* Random bytes: as they are, or with some structure, so that all paths are met. */
static void random_bytes(uint64_t *seed, char *bytes, size_t len)
{
	static const char *const pieces[] = {
		"\\",	    "\\x",	    "\"", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
		"\xc3\xa9", "\xed\xa0\x80", "\n", "plain text",	  "\xf4\x90"};
	unsigned shape = rng(seed) % 3;
	size_t i = 0;

	while (i < len) {
		const char *piece = pieces[rng(seed) % 10];

		if (shape == 0)
			bytes[i++] = (char)rng(seed);
		else if (shape == 1)
			bytes[i++] = (char)(' ' + rng(seed) % 95);
		else
			while (*piece && i < len)
				bytes[i++] = *piece++;
	}
}

static void test_random_strings_come_back(void **state)
{
	uint64_t seed = 20250909;
	int run;

	for (run = 0; run < 4000; run++) {
		/* Now and then longer than one step, than a buffer. */
		size_t len = rng(&seed) % (run % 50 ? 40 : run % 500 ? 3000 : 60000);
		char *bytes = malloc(len + 1), comm[16];
		struct weir_event event = an_event();
		struct weir_decoded d = an_exec();
		struct json_object *line, *args;

		random_bytes(&seed, bytes, len);
		random_bytes(&seed, comm, sizeof(comm));
		d.nargs = 2;
		d.args[0] = (struct weir_arg){
			.name = "one", .kind = WEIR_ARG_STR, .bytes = bytes, .len = (uint32_t)len};
		d.args[1] = (struct weir_arg){.name = "more",
					      .kind = WEIR_ARG_STRV,
					      .bytes = bytes,
					      .len = (uint32_t)len};
		struct sink_event se = {.event = &event,
					.decoded = &d,
					.wall_ns = WALL,
					.source = "cpu0",
					.comm = comm};
		assert_int_equal(sink__find("json")->event(c.out, &se), 0);
		capture__take(&c);
		line = parse_line(c.text, c.len);
		args = member(line, "args");
		assert_bytes(member(args, "one"), bytes, len);
		assert_bytes(member(line, "comm"), comm, strnlen(comm, sizeof(comm)));
		for (size_t i = 0, at = 0; at < len; i++) {
			size_t one = strnlen(bytes + at, len - at);

			assert_bytes(json_object_array_get_idx(member(args, "more"), i), bytes + at,
				     one);
			at += one + 1;
		}
		json_object_put(line);
		free(bytes);
	}
}

static void test_sockaddr(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(443)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(53)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_nl nl = {.nl_family = AF_NETLINK, .nl_pid = 4000000000, .nl_groups = 0x11};

	inet_pton(AF_INET, "192.0.2.7", &in.sin_addr);
	assert_string_equal(sockaddr_value(&in, sizeof(in)),
			    "{\"family\":\"inet\",\"addr\":\"192.0.2.7\",\"port\":443}");
	assert_string_equal(sockaddr_value(&in, 8),
			    "{\"family\":\"inet\",\"addr\":\"192.0.2.7\",\"port\":443}");
	assert_string_equal(sockaddr_value(&in, 7),
			    "{\"family\":\"inet\",\"raw\":\"0x020001bbc00002\"}");
	inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr);
	assert_string_equal(sockaddr_value(&in6, sizeof(in6)),
			    "{\"family\":\"inet6\",\"addr\":\"2001:db8::1\",\"port\":53}");
	in6.sin6_scope_id = 2;
	assert_string_equal(
		sockaddr_value(&in6, sizeof(in6)),
		"{\"family\":\"inet6\",\"addr\":\"2001:db8::1\",\"port\":53,\"scope\":2}");
	assert_string_equal(sockaddr_value(&in6, 24),
			    "{\"family\":\"inet6\",\"addr\":\"2001:db8::1\",\"port\":53}");
	assert_string_equal(sockaddr_value(&in6, 4),
			    "{\"family\":\"inet6\",\"raw\":\"0x0a000035\"}");

	assert_string_equal(sockaddr_value(&un, 2), "{\"family\":\"unix\"}");
	strcpy(un.sun_path, "/run/s");
	assert_string_equal(sockaddr_value(&un, sizeof(un)),
			    "{\"family\":\"unix\",\"path\":\"/run/s\"}");
	assert_string_equal(sockaddr_value(&un, 6), "{\"family\":\"unix\",\"path\":\"/run\"}");
	memcpy(un.sun_path, "\0ab\0c", 5);
	assert_string_equal(sockaddr_value(&un, 7),
			    "{\"family\":\"unix\",\"abstract\":\"ab\\u0000c\"}");
	assert_string_equal(sockaddr_value(&un, 3), "{\"family\":\"unix\",\"abstract\":\"\"}");

	assert_string_equal(sockaddr_value(&nl, sizeof(nl)),
			    "{\"family\":\"netlink\",\"port\":4000000000,\"groups\":\"0x11\"}");
	assert_string_equal(sockaddr_value(&nl, 3),
			    "{\"family\":\"netlink\",\"raw\":\"0x100000\"}");
	assert_string_equal(sockaddr_value("\x28\x00\x01", 3),
			    "{\"family\":\"vsock\",\"raw\":\"0x280001\"}");
	assert_string_equal(sockaddr_value("\xff\xff", 2),
			    "{\"family\":\"af_65535\",\"raw\":\"0xffff\"}");
	assert_string_equal(sockaddr_value("\x02", 1), "{\"raw\":\"0x02\"}");
	assert_string_equal(sockaddr_value("", 0), "{\"raw\":\"0x\"}");
}

/* Every family, every length, any bytes; at the very end of what may be read. */
static void test_random_sockaddr(void **state)
{
	uint64_t seed = 7;
	size_t len;
	int run;

	for (run = 0; run < 60; run++) {
		for (len = 0; len < 40; len++) {
			char *bytes = malloc(len ? len : 1);

			random_bytes(&seed, bytes, len);
			if (len > 1) {
				bytes[0] = (char)(run % 20);
				bytes[1] = 0;
			}
			sockaddr_value(bytes, len);
			free(bytes);
		}
	}
}

static const char *gap_line(uint32_t source, struct weir_gap gap)
{
	struct weir_event event = {.kind = WEIR_KIND_GAP,
				   .stamp_ns = gap.to_ns,
				   .seq = 41,
				   .source = source,
				   .cpu = source == WEIR_SOURCE_NONE ? -1 : 0,
				   .data = &gap,
				   .len = sizeof(gap)};
	struct sink_event se = {.event = &event,
				.wall_ns = WALL,
				.source = source == WEIR_SOURCE_NONE ? NULL : "cpu0"};

	assert_int_equal(sink__find("json")->event(c.out, &se), 0);
	capture__take(&c);
	json_object_put(parse_line(c.text, c.len));
	return strstr(c.text, "Z\"") + 2; /* behind ts and time */
}

/* L1, and: what is unknown is null, never 0 (G4). */
static void test_gaps(void **state)
{
	struct weir_gap gap = {.from_ns = 1000, .to_ns = 2000, .lost = 17};

	assert_string_equal(gap_line(0, gap),
			    ",\"cpu\":0,\"event\":\"gap\",\"source\":\"cpu0\",\"seq\":41,"
			    "\"seq_end\":58,\"from\":\"1000\",\"to\":\"2000\",\"lost\":17,"
			    "\"cause\":\"reserve_failed\"}\n");
	assert_non_null(
		strstr(c.text, "{\"ts\":\"2000\",\"time\":\"2025-09-09T10:05:45.123456789Z\""));
	gap.cause = WEIR_LOST_SKIPPED;
	gap.bound = WEIR_BOUND_AT_MOST;
	assert_string_equal(gap_line(WEIR_SOURCE_NONE, gap),
			    ",\"event\":\"gap\",\"from\":\"1000\",\"to\":\"2000\",\"lost\":17,"
			    "\"bound\":\"at_most\",\"cause\":\"skipped\"}\n");
	gap.cause = WEIR_LOST_DEAD_EVENT;
	gap.bound = WEIR_BOUND_UNKNOWN;
	assert_string_equal(gap_line(0, gap),
			    ",\"cpu\":0,\"event\":\"gap\",\"source\":\"cpu0\",\"from\":\"1000\","
			    "\"to\":\"2000\",\"lost\":null,\"cause\":\"dead_event\"}\n");
	/* Time without a CPU has no numbers. */
	gap.cause = WEIR_LOST_OFFLINE;
	gap.bound = WEIR_BOUND_EXACT;
	assert_null(strstr(gap_line(0, gap), "\"seq\""));
	gap.cause = WEIR_LOST_HELD;
	gap.seq_end = 99;
	assert_non_null(strstr(gap_line(0, gap), "\"seq\":41,\"seq_end\":99,"));
}

static void test_clock_step(void **state)
{
	struct weir_clock_step step = {
		.old_offset_ns = INT64_MAX, .new_offset_ns = -5, .suspended_ns = 3};
	struct weir_event event = {.kind = WEIR_KIND_CLOCK_STEP,
				   .stamp_ns = 9,
				   .source = WEIR_SOURCE_NONE,
				   .cpu = -1,
				   .data = &step,
				   .len = sizeof(step)};
	struct sink_event se = {.event = &event, .wall_ns = -1};

	assert_int_equal(sink__find("json")->event(c.out, &se), 0);
	assert_string_equal(capture__take(&c),
			    "{\"ts\":\"9\",\"time\":\"1969-12-31T23:59:59.999999999Z\","
			    "\"event\":\"clock_step\",\"old_offset\":\"9223372036854775807\","
			    "\"new_offset\":\"-5\",\"suspended\":\"3\"}\n");
}

static void test_watermarks(void **state)
{
	const struct sink_ops *json = sink__find("json");

	assert_int_equal(json->watermark(c.out, STAMP, WALL, WEIR_ORDER_EXACT), 0);
	assert_string_equal(
		capture__take(&c),
		"{\"ts\":\"123456789012345\",\"time\":\"2025-09-09T10:05:45.123456789Z\","
		"\"event\":\"watermark\",\"order\":\"exact\"}\n");
	assert_int_equal(json->watermark(c.out, STAMP, WALL, WEIR_ORDER_ESTIMATED), 0);
	assert_non_null(strstr(capture__take(&c), "\"order\":\"estimated\"}\n"));
}

/* The date is kept from line to line: it changes when the second does, both ways. */
static void test_times(void **state)
{
	static const int64_t edges[] = {
		0,	    -1,	       999999999,	   1000000000,
		INT64_MIN,  INT64_MAX, 951782399999999999, 951782400000000000,
		-1000000000};
	const struct sink_ops *json = sink__find("json");
	uint64_t seed = 3;
	int i;

	for (i = 0; i < 5000; i++) {
		int64_t wall = i < 9 ? edges[i] : (int64_t)rng(&seed), sec = wall / 1000000000;
		int64_t ns = wall % 1000000000;
		char expect[64], day[32];
		struct tm tm;
		time_t when;

		if (ns < 0) {
			ns += 1000000000;
			sec--;
		}
		when = sec;
		gmtime_r(&when, &tm);
		strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(expect, sizeof(expect), "\"time\":\"%s.%09" PRId64 "Z\"", day, ns);
		assert_int_equal(json->watermark(c.out, 1, wall, WEIR_ORDER_EXACT), 0);
		assert_non_null(strstr(capture__take(&c), expect));
	}
}

/* The ledger needs to know which of a sink's lines were events, and whose. */
static void note(void *ctx, uint32_t source, uint64_t events)
{
	uint64_t *counts = ctx;

	counts[source == WEIR_SOURCE_NONE ? 3 : source] += events;
}

static void test_what_counts_as_an_event(void **state)
{
	struct weir_gap gap = {.from_ns = 1, .to_ns = 2, .lost = 1};
	struct weir_event event = an_event(), a_gap = an_event();
	struct weir_decoded d = an_exec();
	uint64_t counts[4] = {0};
	struct out *out = out__new(-1, 0, NULL, 0);
	struct sink_event se = {.event = &event, .decoded = &d, .wall_ns = WALL, .source = "cpu1"};
	const char *const names[] = {"json", "text"};

	for (size_t i = 0; i < 2; i++) {
		const struct sink_ops *ops = sink__find(names[i]);

		a_gap.kind = WEIR_KIND_GAP;
		a_gap.data = &gap;
		se.event = &event;
		ops->event(out, &se);
		se.event = &a_gap;
		ops->event(out, &se);
		ops->watermark(out, 1, 1, WEIR_ORDER_EXACT);
	}
	assert_true(out__flush(out) < 0);
	out__unwritten(out, note, counts);
	assert_int_equal(counts[1], 2);
	assert_int_equal(counts[0] + counts[2] + counts[3], 0);
	out__free(out);
}

static void test_sinks_by_name(void **state)
{
	struct weir_event event = an_event();
	struct weir_decoded d = an_exec();
	struct sink_event se = {.event = &event, .decoded = &d};

	assert_null(sink__find("xml"));
	assert_null(sink__find(""));
	assert_string_equal(sink__find("json")->name, "json");
	assert_string_equal(sink__find("text")->name, "text");
	assert_null(sink__find("none")->event);
	assert_null(sink__find("none")->watermark);
	event.kind = 77;
	assert_true(sink__find("json")->event(c.out, &se) < 0);
	assert_true(sink__find("text")->event(c.out, &se) < 0);
	assert_string_equal(capture__take(&c), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_record),
		cmocka_unit_test(test_a_record_of_which_little_is_known),
		cmocka_unit_test(test_a_syscall),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_kinds_of_values),
		cmocka_unit_test(test_cut_and_unread_are_named),
		cmocka_unit_test(test_hostile_bytes),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_every_byte_at_every_place),
		cmocka_unit_test(test_random_strings_come_back),
		cmocka_unit_test(test_sockaddr),
		cmocka_unit_test(test_random_sockaddr),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_clock_step),
		cmocka_unit_test(test_watermarks),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_what_counts_as_an_event),
		cmocka_unit_test(test_sinks_by_name),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
