// SPDX-License-Identifier: BSD-2-Clause
/*
 * weir verify, from bytes to exit status: what the program's own sink writes passes, what breaks a
 * promise is named with file and line, and any bytes at all end in a verdict (G8).
 */
#include "capture.h"

#include "cli/commands.h"

#include <fcntl.h>
#include <inttypes.h>

static char dir[] = "/tmp/weir-verify-XXXXXX";
static char *said_out, *said_err;

static int setup(void **state)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : 1;
}

static int teardown(void **state)
{
	unlink("t.json");
	unlink("l.json");
	free(said_out);
	free(said_err);
	return chdir("/") || rmdir(dir);
}

/* A new one each time: some file systems write a file to the disk when it was cut to nothing. */
static int new_file(const char *name)
{
	int fd;

	unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	return fd;
}

static void put_file(const char *name, const void *bytes, size_t len)
{
	int fd = new_file(name);

	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

/* Run with standard output and error caught; returns the exit status. */
static int run(size_t argc, const char *const *argv)
{
	int out = memfd_create("out", 0), err = memfd_create("err", 0);
	int old_out = dup(STDOUT_FILENO), old_err = dup(STDERR_FILENO), status;
	size_t len;

	fflush(NULL);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	status = cmd_verify((int)argc, (char **)argv);
	fflush(NULL);
	dup2(old_out, STDOUT_FILENO);
	dup2(old_err, STDERR_FILENO);
	close(old_out);
	close(old_err);
	free(said_out);
	free(said_err);
	said_out = read_fd(out, &len);
	said_err = read_fd(err, &len);
	close(out);
	close(err);
	return status;
}

#define RUN(...) \
	run(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

static int verify_bytes(const void *bytes, size_t len)
{
	put_file("t.json", bytes, len);
	return RUN("verify", "t.json");
}

static int verify_text(const char *text)
{
	return verify_bytes(text, strlen(text));
}

static void assert_breaks(const char *text, const char *error)
{
	assert_int_equal(verify_text(text), 1);
	if (strncmp(said_err, error, strlen(error)))
		fail_msg("said: %s", said_err);
	assert_string_equal(said_out, "");
}

#define TIME "\"time\":\"2025-09-09T10:05:45.123456789Z\""
#define RECORD(ts, source, seq)                                             \
	"{\"ts\":\"" #ts "\"," TIME                                         \
	",\"cpu\":0,\"pid\":1,\"tid\":1,\"comm\":\"c\",\"event\":\"fork\"," \
	"\"source\":\"" source "\",\"seq\":" #seq ",\"args\":{}}\n"
#define WATERMARK(ts) "{\"ts\":\"" #ts "\"," TIME ",\"event\":\"watermark\",\"order\":\"exact\"}\n"
#define GAP(from, to, source, seq, end, lost)                                           \
	"{\"ts\":\"" #to "\"," TIME ",\"cpu\":0,\"event\":\"gap\",\"source\":\"" source \
	"\",\"seq\":" #seq ",\"seq_end\":" #end ",\"from\":\"" #from "\",\"to\":\"" #to \
	"\",\"lost\":" #lost ",\"cause\":\"reserve_failed\"}\n"
#define SKIPPED(from, to, lost)                                                               \
	"{\"ts\":\"" #to "\"," TIME ",\"event\":\"gap\",\"from\":\"" #from "\",\"to\":\"" #to \
	"\",\"lost\":" #lost ",\"bound\":\"at_most\",\"cause\":\"skipped\"}\n"
#define UNKNOWN(from, to, source)                                             \
	"{\"ts\":\"" #to "\"," TIME ",\"event\":\"gap\",\"source\":\"" source \
	"\",\"from\":\"" #from "\",\"to\":\"" #to "\",\"lost\":null,\"cause\":\"dead_event\"}\n"
#define STEP(ts)                    \
	"{\"ts\":\"" #ts "\"," TIME \
	",\"event\":\"clock_step\",\"old_offset\":\"-5\",\"new_offset\":\"9\",\"suspended\":\"0\"}\n"

static void test_good(void **state)
{
	assert_int_equal(verify_text(RECORD(10, "cpu0", 0) RECORD(10, "cpu1", 0) WATERMARK(10)
					     GAP(11, 20, "cpu0", 1, 4, 3) RECORD(20, "cpu0", 4)
						     SKIPPED(1, 20, 5) STEP(30)),
			 0);
	assert_string_equal(said_out,
			    "t.json: 3 events, 2 gaps, at most 8 lost, 0 late, 1 watermarks: "
			    "all promises kept\n");
	assert_string_equal(said_err, "");
	assert_int_equal(RUN("verify", "--complete", "-q", "t.json"), 0);
	assert_string_equal(said_out, "");
	assert_int_equal(verify_text(RECORD(10, "cpu0", 0) UNKNOWN(10, 20, "cpu0")), 0);
	assert_string_equal(said_out,
			    "t.json: 1 events, 1 gaps, 0 lost and an unknown number, 0 late, "
			    "0 watermarks: all promises kept\n");
	/* An account among the lines is none of them. */
	assert_int_equal(
		verify_text(RECORD(10, "cpu0", 0) "{\"event\":\"account\",\"produced\":1}\n" RECORD(
			11, "cpu0", 1)),
		0);
	assert_non_null(strstr(said_out, " 2 events, "));
	/* Without a newline at the end, but whole. */
	assert_int_equal(verify_bytes(RECORD(10, "cpu0", 0), strlen(RECORD(10, "cpu0", 0)) - 1), 0);
}

/* No promise is broken, and none is kept: most likely the trace was never made. */
static void test_empty(void **state)
{
	assert_int_equal(verify_text(""), 3);
	assert_string_equal(said_out, "");
	assert_string_equal(said_err, "weir verify: t.json is empty: there is nothing to check\n");
}

static void expect_call(const char *members, int status)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "{\"ts\":\"9\"," TIME
		 ",\"pid\":1,\"tid\":1,\"event\":\"syscall\",\"syscall\":\"read\","
		 "\"nr\":0,\"dur_ns\":null,%s}\n",
		 members);
	assert_int_equal(verify_text(line), status);
}

/* A call that was there before the trace has arguments, though it has no enter. */
static void test_found_calls(void **state)
{
	expect_call(
		"\"enter\":null,\"result\":null,\"unfinished\":true,\"before\":true,\"args\":{}",
		0);
	assert_non_null(strstr(said_out, " 0 events,"));
	expect_call("\"enter\":null,\"result\":1,\"source\":\"cpu0\",\"seq\":5,\"before\":true,"
		    "\"args\":{}",
		    0);
	assert_non_null(strstr(said_out, " 1 events,"));
	expect_call("\"enter\":null,\"result\":null,\"unfinished\":true,\"args\":{}", 1);
	expect_call("\"enter\":null,\"result\":null,\"unfinished\":true,\"before\":true,"
		    "\"args\":null",
		    1);
}

static void test_standard_input(void **state)
{
	int old = dup(STDIN_FILENO), fd;

	put_file("t.json", RECORD(10, "cpu0", 0), strlen(RECORD(10, "cpu0", 0)));
	fd = open("t.json", O_RDONLY);
	dup2(fd, STDIN_FILENO);
	assert_int_equal(RUN("verify"), 0);
	assert_non_null(strstr(said_out, "standard input: 1 events"));
	lseek(fd, 0, SEEK_SET);
	dup2(fd, STDIN_FILENO);
	assert_int_equal(RUN("verify", "-"), 0);
	assert_non_null(strstr(said_out, "standard input: 1 events"));
	dup2(old, STDIN_FILENO);
	close(old);
	close(fd);
}

static void test_broken_promises(void **state)
{
	assert_breaks(
		RECORD(10, "cpu0", 0) RECORD(9, "cpu1", 0),
		"t.json:2: G1 order: ts 9 of cpu1, seq 0, comes after ts 10 of cpu0, seq 0 (line "
		"1), and is not flagged late\n");
	assert_breaks(WATERMARK(10) RECORD(10, "cpu0", 0), "t.json:2: G2 watermark: ");
	assert_breaks(WATERMARK(10) WATERMARK(9), "t.json:2: G2 watermark: ");
	assert_breaks(RECORD(10, "cpu0", 0) RECORD(11, "cpu0", 0), "t.json:2: G4 loss: ");
	assert_breaks(GAP(1, 5, "cpu0", 0, 3, 3) RECORD(10, "cpu0", 2), "t.json:2: G4 loss: ");
	assert_breaks(GAP(5, 4, "cpu0", 0, 3, 3), "t.json:1: G4 loss: ");
}

static void test_holes(void **state)
{
	assert_int_equal(verify_text(RECORD(10, "cpu0", 0) RECORD(11, "cpu0", 2)), 0);
	assert_int_equal(RUN("verify", "--complete", "t.json"), 1);
	assert_string_equal(said_err,
			    "t.json:1: G4 loss: numbers of cpu0 are missing after this line: it "
			    "has 0 to 2, of these 2 delivered, 0 lost, and 1 neither\n");
}

/* One line of every kind, each time with one thing wrong. */
static void test_format(void **state)
{
	static const struct {
		const char *kind, *from, *to, *error;
	} cases[] = {
		{RECORD(10, "cpu0", 0), "\"ts\":\"10\"", "\"ts\":10", "\"ts\""},
		{RECORD(10, "cpu0", 0), "\"ts\":\"10\"", "\"ts\":\"010\"", "\"ts\""},
		{RECORD(10, "cpu0", 0), "\"ts\":\"10\"", "\"ts\":\"-1\"", "\"ts\""},
		{RECORD(10, "cpu0", 0), "\"ts\":\"10\"", "\"ts\":\"\"", "\"ts\""},
		{RECORD(10, "cpu0", 0), "\"ts\":\"10\"", "\"ts\":\"18446744073709551616\"",
		 "\"ts\""},
		{RECORD(10, "cpu0", 0), "\"ts\":\"10\"", "\"ts\":\"1\\u00000\"", "\"ts\""},
		{RECORD(10, "cpu0", 0), "\"ts\":", "\"tx\":", "\"ts\""},
		{RECORD(10, "cpu0", 0), "45.123456789Z", "45.12345678Z", "\"time\""},
		{RECORD(10, "cpu0", 0), "45.123456789Z", "45.123456789+", "\"time\""},
		{RECORD(10, "cpu0", 0), "\"time\":", "\"tome\":", "\"time\""},
		{RECORD(10, "cpu0", 0), "\"cpu\":0", "\"cpu\":-1", "\"cpu\""},
		{RECORD(10, "cpu0", 0), "\"cpu\":0", "\"cpu\":null", "\"cpu\""},
		{RECORD(10, "cpu0", 0), "\"pid\":1", "\"pid\":\"1\"", "\"pid\""},
		{RECORD(10, "cpu0", 0), "\"tid\":1", "\"tid\":1.5", "\"tid\""},
		{RECORD(10, "cpu0", 0), "\"comm\":\"c\"", "\"comm\":1", "\"comm\""},
		{RECORD(10, "cpu0", 0), "\"fork\"", "7", "\"event\""},
		{RECORD(10, "cpu0", 0), "\"fork\"", "\"gap\\u0000\"", "\"event\""},
		{RECORD(10, "cpu0", 0), "\"cpu0\"", "\"\"", "\"source\""},
		{RECORD(10, "cpu0", 0), "\"cpu0\"", "null", "\"source\""},
		{RECORD(10, "cpu0", 0), "\"source\"", "\"sourze\"", "\"source\""},
		{RECORD(10, "cpu0", 0), "\"seq\":0", "\"seq\":-1", "\"seq\""},
		{RECORD(10, "cpu0", 0), "\"seq\":0", "\"seq\":1e2", "\"seq\""},
		{RECORD(10, "cpu0", 0), "\"seq\":0", "\"seq\":18446744073709551615", "\"seq\""},
		{RECORD(10, "cpu0", 0), "\"seq\":0", "\"seq\":18446744073709551616", ""},
		{RECORD(10, "cpu0", 0), "\"seq\":0", "\"seq\":99999999999999999999999999", ""},
		{RECORD(10, "cpu0", 0), "\"seq\"", "\"sec\"", "\"seq\""},
		{RECORD(10, "cpu0", 0), "\"args\":{}", "\"args\":[]", "\"args\""},
		{RECORD(10, "cpu0", 0), "\"args\":{}", "\"args\":{},\"late\":false", "\"late\""},
		{RECORD(10, "cpu0", 0), "\"args\":{}", "\"args\":{},\"ahead\":1", "\"ahead\""},
		{RECORD(10, "cpu0", 0), "\"args\":{}", "\"args\":{},\"cut\":\"a\"", "\"cut\""},
		{RECORD(10, "cpu0", 0), "\"fork\"", "\"sys_exit\"", "\"syscall\""},
		{RECORD(10, "cpu0", 0), "\"fork\"", "\"sys_exit\",\"syscall\":\"read\"", "\"nr\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"from\":\"1\"", "\"from\":1", "\"from\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"to\":\"2\"", "\"to\":2", "\"to\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"lost\":1", "\"lost\":-1", "\"lost\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"lost\":1", "\"last\":1", "\"lost\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"lost\":1", "\"lost\":null", "\"seq\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"lost\":1", "\"lost\":1,\"bound\":\"at_most\"",
		 "\"seq\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "reserve_failed", "bad luck", "\"cause\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"seq_end\"", "\"seq_and\"", "\"seq_end\""},
		{GAP(1, 2, "cpu0", 0, 1, 1), "\"source\"", "\"sourze\"", "\"seq\""},
		{SKIPPED(1, 2, 1), "at_most", "about", "\"bound\""},
		{WATERMARK(1), "\"exact\"", "\"guessed\"", "\"order\""},
		{STEP(1), "\"-5\"", "\"five\"", "\"old_offset\""},
		{STEP(1), "\"9\"", "\"9223372036854775808\"", "\"new_offset\""},
		{STEP(1), "\"0\"", "\"-1\"", "\"suspended\""},
	};
	char line[1024], error[64];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *at = strstr(cases[i].kind, cases[i].from);

		assert_non_null(at);
		snprintf(line, sizeof(line), "%.*s%s%s", (int)(at - cases[i].kind), cases[i].kind,
			 cases[i].to, at + strlen(cases[i].from));
		snprintf(error, sizeof(error), "t.json:1: format: %s", cases[i].error);
		assert_int_equal(verify_text(cases[i].kind), 0);
		assert_breaks(line, error);
	}
}

static void test_not_json(void **state)
{
	static const char *const cases[] = {
		"\n",
		"{}\n",
		"[]\n",
		"null\n",
		"1\n",
		"\"a\"\n",
		"{\n",
		"{\"a\":1,}\n",
		"{'a':1}\n",
		"{\"a\":1} x\n",
		"nul\n",
		"{\"a\":\"\xff\"}\n",
		"{{{{\n",
		"{}{}\n",
		"\xef\xbb\xbf{}\n",
		"{\"a\":\"\xc0\x80\"}\n",
		"NaN\n",
		"[[[[[[[[[[[[[\n",
		"{\"ts\":\"1\n",
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_breaks(cases[i], "t.json:1: format: ");
	/* A file that was cut inside a line. */
	assert_breaks(RECORD(10, "cpu0", 0) "{\"ts\":\"11\",", "t.json:2: format: not JSON");
	/* A NUL is no end. */
	assert_int_equal(verify_bytes("\0", 1), 1);
}

/* Lines that would be good if JSON readers were not strict. */
static void test_nearly_json(void **state)
{
	static const struct {
		const char *from, *to;
		size_t len; /* of what `to` adds */
	} cases[] = {
		{"\"args\":{}}", "\"args\":{},}", 1},
		{"\"args\":{}}", "\"args\":{}}x", 1},
		{"\"args\":{}}", "\"args\":{}}{}", 2},
		{"\"args\":{}}", "\"args\":{}}\0", 1},
		{"\"c\"", "'c'", 0},
		{"\"c\"", "\"\xff\"", 0},
		{"\"c\"", "\"\xe9\"", 0},
	};
	const char *good = RECORD(10, "cpu0", 0);
	char line[1024];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *at = strstr(good, cases[i].from);
		size_t before = (size_t)(at - good), old = strlen(cases[i].from);

		memcpy(line, good, before);
		memcpy(line + before, cases[i].to, old + cases[i].len);
		strcpy(line + before + old + cases[i].len, at + old);
		assert_int_equal(verify_bytes(line, strlen(good) + cases[i].len), 1);
		assert_int_equal(strncmp(said_err, "t.json:1: format: not", 21), 0);
	}
}

/* What a trace says does not reach the terminal as it is. */
static void test_hostile_names(void **state)
{
	const char *c;

	assert_breaks(RECORD(10, "\\u001b[2J\xc2\x9b", 0) RECORD(9, "cpu0", 0),
		      "t.json:2: G1 order: ");
	for (c = said_err; *c; c++)
		assert_true((*c >= 0x20 && *c <= 0x7e) || *c == '\n');
}

static void test_long_lines(void **state)
{
	size_t len = (8u << 20) + 100, head;
	char *text = malloc(len + 1);

	memset(text, ' ', len);
	text[len] = '\0';
	head = strlen(RECORD(10, "cpu0", 0)) - 1;
	memcpy(text, RECORD(10, "cpu0", 0), head);
	text[1000000] = '\n';
	assert_int_equal(verify_bytes(text, 1000001), 0);
	text[1000000] = ' ';
	assert_int_equal(verify_bytes(text, len), 1);
	assert_string_equal(said_err, "t.json:1: format: longer than 8388608 bytes\n");
	free(text);
}

/* Bytes of a good trace, some of them changed: a verdict, and no more. */
static void test_random_damage(void **state)
{
	static const char good[] = RECORD(10, "cpu0", 0) RECORD(10, "cpu1", 0) WATERMARK(10)
		GAP(11, 20, "cpu0", 1, 4, 3) RECORD(20, "cpu0", 4) SKIPPED(1, 20, 5) STEP(30);
	uint64_t seed = 5;
	int run_no, broken = 0;

	for (run_no = 0; run_no < 3000; run_no++) {
		char bytes[sizeof(good)];
		size_t len = sizeof(good) - 1, i, n = 1 + rng(&seed) % 3;
		int status;

		memcpy(bytes, good, sizeof(good));
		for (i = 0; i < n; i++)
			bytes[rng(&seed) % len] =
				(char)(rng(&seed) % 4 ? " {}[]\":,0919ulx\n"[rng(&seed) % 16]
						      : (int)rng(&seed));
		status = verify_bytes(bytes, len);
		assert_in_range(status, 0, 1);
		broken += status;
	}
	assert_in_range(broken, 2000, 2999);
}

static void test_usage(void **state)
{
	assert_int_equal(RUN("verify", "--help"), 0);
	assert_non_null(strstr(said_out, "G1 order"));
	assert_string_equal(said_err, "");
	assert_int_equal(RUN("verify", "-h"), 0);
	assert_int_equal(RUN("verify", "--no-such-thing"), 2);
	assert_int_equal(RUN("verify", "a", "b"), 2);
	assert_non_null(strstr(said_err, "one file at a time"));
	assert_int_equal(RUN("verify", "no/such/file"), 2);
	assert_string_equal(said_err, "weir verify: no/such/file: No such file or directory\n");
	assert_int_equal(RUN("verify", "/"), 2);
	assert_non_null(strstr(said_err, "no capture"));
	put_file("t.json", "", 0);
	assert_int_equal(RUN("verify", "--ledger", "no/such/file", "t.json"), 2);
}

/* ---- against the ledger --------------------------------------------------------------------- */

struct books {
	struct weir_ledger ledger;
	struct weir_source_info sources[2];
};

/* The account of the trace in test_ledger(). */
static struct books honest_books(void)
{
	struct books b = {
		.ledger = {.sz = sizeof(b.ledger), .watermark_ns = 40, .sources = 2},
		.sources = {{.name = "cpu0", .online = true}, {.name = "cpu1", .cpu = 1}},
	};
	struct weir_account *zero = &b.sources[0].account, *one = &b.sources[1].account;

	zero->produced = 8;
	zero->delivered = 3;
	zero->filtered = 2;
	zero->lost[WEIR_LOST_RESERVE_FAILED] = 3;
	one->produced = one->delivered = 1;
	one->bound[WEIR_LOST_DEAD_EVENT] = WEIR_BOUND_UNKNOWN;
	b.ledger.total = *zero;
	b.ledger.total.produced = 14;
	b.ledger.total.delivered = 4;
	b.ledger.total.lost[WEIR_LOST_SKIPPED] = 5;
	b.ledger.total.bound[WEIR_LOST_SKIPPED] = WEIR_BOUND_AT_MOST;
	b.ledger.total.bound[WEIR_LOST_DEAD_EVENT] = WEIR_BOUND_UNKNOWN;
	return b;
}

static int against(const struct books *b, uint32_t n)
{
	struct sink_ledger_extra extra = {.sources = b->sources, .n = n};
	int fd = new_file("l.json");
	struct out *out = out__new(fd, 0, NULL, 0);

	sink__ledger_json(out, &b->ledger, &extra);
	out__char(out, '\n');
	assert_int_equal(out__flush(out), 0);
	out__free(out);
	close(fd);
	return RUN("verify", "--ledger", "l.json", "t.json");
}

static void assert_disagrees(const struct books *b, uint32_t n, const char *error)
{
	assert_int_equal(against(b, n), 1);
	if (strncmp(said_err, "l.json: ", 8) || !strstr(said_err, error))
		fail_msg("said: %s", said_err);
}

static void put_trace(void)
{
	/* Of cpu0, 1 to 3 are lost and 6 was turned away; 7 at its end is not seen. */
	static const char text[] = RECORD(10, "cpu0", 0) RECORD(10, "cpu1", 0)
		GAP(11, 20, "cpu0", 1, 4, 3) RECORD(20, "cpu0", 4) SKIPPED(1, 20, 5)
			UNKNOWN(20, 25, "cpu1") RECORD(30, "cpu0", 6);

	put_file("t.json", text, sizeof(text) - 1);
}

static void test_ledger(void **state)
{
	struct books b = honest_books();

	put_trace();
	assert_int_equal(against(&b, 2), 0);
	assert_non_null(strstr(said_out, "4 events"));
	assert_non_null(strstr(said_out, "the ledger agrees"));
}

static void test_ledger_that_disagrees(void **state)
{
	struct books b = honest_books();

	put_trace();
	b.ledger.total.produced++;
	assert_disagrees(&b, 2, "all: the account does not close: 15 produced, 14 delivered, ");

	b = honest_books();
	b.sources[1].account.pending++;
	assert_disagrees(&b, 2, "cpu1: the account does not close");

	b = honest_books();
	b.ledger.total.delivered++;
	b.ledger.total.filtered--;
	assert_disagrees(&b, 2, "all: 5 delivered, and t.json has 4 events");

	b = honest_books();
	b.sources[0].account.delivered--;
	b.sources[0].account.filtered++;
	assert_disagrees(&b, 2, "cpu0: 2 delivered, and t.json has 3 events");

	b = honest_books();
	b.sources[0].account.lost[WEIR_LOST_RESERVE_FAILED]--;
	b.sources[0].account.lost[WEIR_LOST_HELD]++;
	assert_disagrees(&b, 2, "cpu0: 2 lost by reserve_failed, and 3 by the gaps of t.json");

	b = honest_books();
	b.sources[0].account.bound[WEIR_LOST_DEAD_EVENT] = WEIR_BOUND_UNKNOWN;
	assert_disagrees(&b, 2, "cpu0: lost by dead_event is unknown, and t.json has no such gap");

	/* 5 is missing, and nothing was turned away. */
	b = honest_books();
	b.sources[0].account.filtered = 0;
	b.sources[0].account.produced = 6;
	assert_disagrees(&b, 2, "cpu0: 1 numbers are neither delivered nor in a gap of t.json");

	b = honest_books();
	assert_disagrees(&b, 1, "4 delivered, and 3 by its sources");

	b = honest_books();
	b.sources[1].name = "cpu0";
	b.sources[1].account = b.sources[0].account;
	assert_disagrees(&b, 2, "4 delivered, and 6 by its sources");

	b = honest_books();
	b.ledger.total.late = 0;
	put_file("t.json", "", 0);
	assert_disagrees(&b, 2, "all: 4 delivered, and t.json has 0 events");
}

/* The disk was full: what did not get out is lost by output, and gaps may be among it. */
static void test_ledger_of_a_full_disk(void **state)
{
	static const char text[] = RECORD(10, "cpu0", 0) RECORD(10, "cpu1", 0)
		UNKNOWN(20, 25, "cpu1");
	struct books b = honest_books();

	put_file("t.json", text, sizeof(text) - 1);
	b.sources[0].account.delivered = 1;
	b.sources[0].account.lost[WEIR_LOST_OUTPUT] = 2;
	b.ledger.total.delivered = 2;
	b.ledger.total.lost[WEIR_LOST_OUTPUT] = 2;
	assert_int_equal(against(&b, 2), 0);
	b.sources[0].account.lost[WEIR_LOST_OUTPUT] = 1;
	b.sources[0].account.delivered = 2;
	b.ledger.total.delivered = 3;
	b.ledger.total.lost[WEIR_LOST_OUTPUT] = 1;
	assert_disagrees(&b, 2, "3 delivered, and t.json has 2 events");
}

static void test_ledger_late(void **state)
{
	static const char text[] = "{\"ts\":\"1\"," TIME
				   ",\"pid\":1,\"tid\":1,\"event\":\"fork\",\"source\":\"cpu0\","
				   "\"seq\":0,\"args\":{},\"late\":true}\n";
	struct books b = {.ledger = {.sz = sizeof(b.ledger)}, .sources = {{.name = "cpu0"}}};

	put_file("t.json", text, sizeof(text) - 1);
	b.ledger.total.produced = b.ledger.total.delivered = 1;
	b.sources[0].account = b.ledger.total;
	assert_disagrees(&b, 1, "all: 0 late, and t.json has 1");
	b.ledger.total.late = b.sources[0].account.late = 1;
	assert_int_equal(against(&b, 1), 0);
	assert_non_null(strstr(said_out, " 1 late"));
}

static void test_broken_ledgers(void **state)
{
	static const char *const cases[] = {
		"",
		"[]",
		"{}",
		"{",
		"null",
		"7",
		"{\"sources\":[]}",
		"{\"sources\":[],\"lost\":{}}",
		"{\"sources\":{},\"produced\":0,\"delivered\":0,\"filtered\":0,\"pending\":0,\"late\":0,"
		"\"lost\":{}}",
		"{\"sources\":[7],\"produced\":0,\"delivered\":0,\"filtered\":0,\"pending\":0,\"late\":0,"
		"\"lost\":{}}",
		"{\"sources\":[],\"produced\":0,\"delivered\":0,\"filtered\":0,\"pending\":0,\"late\":0,"
		"\"lost\":{\"held\":\"x\"}}",
		"{\"sources\":[],\"produced\":-1,\"delivered\":0,\"filtered\":0,\"pending\":0,\"late\":0,"
		"\"lost\":{}}",
		"{\"sources\":[],\"produced\":0,\"delivered\":0,\"filtered\":0,\"pending\":0,\"late\":0,"
		"\"lost\":[]}",
	};
	size_t i;

	put_file("t.json", "", 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_file("l.json", cases[i], strlen(cases[i]));
		assert_int_equal(RUN("verify", "--ledger", "l.json", "t.json"), 1);
		assert_int_equal(strncmp(said_err, "l.json: ", 8), 0);
	}
}

/* ---- whole calls (--pair) ------------------------------------------------------------------- */

#define CALL_HEAD(ts)               \
	"{\"ts\":\"" #ts "\"," TIME \
	",\"cpu\":0,\"pid\":1,\"tid\":1,\"event\":\"syscall\",\"syscall\":\"read\",\"nr\":0"
#define CALL(ts, source, seq, enter, dur)                                                       \
	CALL_HEAD(ts)                                                                           \
	",\"source\":\"" source "\",\"seq\":" #seq ",\"enter\":\"" #enter "\",\"dur_ns\":" #dur \
	",\"result\":-2,\"args\":{}}\n"
#define NO_ENTER(ts, source, seq)                                                     \
	CALL_HEAD(ts)                                                                 \
	",\"source\":\"" source "\",\"seq\":" #seq ",\"enter\":null,\"dur_ns\":null," \
	"\"result\":5,\"args\":null}\n"
#define CUT_SHORT(ts, source, enter, why)                                                    \
	CALL_HEAD(ts)                                                                        \
	source ",\"enter\":\"" #enter "\",\"dur_ns\":null,\"result\":null,\"" why "\":true," \
	       "\"args\":{}}\n"
#define LIFE0 ",\"source\":\"life0\""

static void test_calls(void **state)
{
	/* Each half that a line stands for is an event. */
	assert_int_equal(verify_text(NO_ENTER(9, "cpu0", 0) CALL(10, "cpu0", 2, 9, 1) CUT_SHORT(
				 11, LIFE0, 10, "no_return") RECORD(11, "life0", 0)
					     CUT_SHORT(20, "", 12, "unfinished")),
			 0);
	assert_non_null(strstr(said_out, " 6 events,"));
	/* Three enters are somewhere: more holes than those are too many. */
	assert_int_equal(RUN("verify", "--complete", "t.json"), 0);
	assert_int_equal(verify_text(CALL(10, "cpu0", 2, 9, 1)), 0);
	assert_int_equal(RUN("verify", "--complete", "t.json"), 1);
	/* Without a number there is no order among equals of a source; with one there is. */
	assert_int_equal(verify_text(RECORD(9, "cpu0", 7) CUT_SHORT(9, ",\"source\":\"cpu0\"", 8,
								    "broken") RECORD(9, "cpu0", 8)),
			 0);
	assert_breaks(RECORD(9, "cpu0", 7) CUT_SHORT(9, LIFE0, 8, "broken"), "t.json:2: G1 order");
	assert_breaks(RECORD(9, "cpu0", 7) CUT_SHORT(8, "", 8, "broken"), "t.json:2: G1 order");
	assert_breaks(CALL(10, "cpu0", 2, 9, 1) CALL(11, "cpu0", 2, 9, 2), "t.json:2: G4 loss");
}

static void test_calls_have_a_form(void **state)
{
#define WRONG(text, key) assert_breaks(text, "t.json:1: format: \"" key "\"")
#define ENDS		 ",\"dur_ns\":null,\"result\":null,\"args\":{}"
	WRONG(CALL(10, "cpu0", 2, 9, 2), "dur_ns");
	WRONG(CALL(10, "cpu0", 2, 11, 1), "dur_ns");
	WRONG(CALL(10, "cpu0", 2, 9, null), "dur_ns");
	WRONG(CALL(10, "cpu0", 2, x, 1), "enter");
	WRONG(CALL(10, "", 2, 9, 1), "source");
	WRONG(CALL_HEAD(9) ",\"seq\":1,\"enter\":\"9\",\"dur_ns\":0,\"result\":0,\"args\":{}}\n",
	      "source");
	WRONG(CALL_HEAD(9) ",\"dur_ns\":null,\"result\":null,\"broken\":true,\"args\":{}}\n",
	      "enter");
	WRONG(CALL_HEAD(9) ",\"enter\":\"9\"" ENDS "}\n", "seq");
	WRONG(CALL_HEAD(9) ",\"enter\":\"9\"" ENDS ",\"broken\":true,\"unfinished\":true}\n",
	      "seq");
	WRONG(CALL_HEAD(9) ",\"enter\":\"9\"" ENDS ",\"broken\":false}\n", "broken");
	WRONG(CALL_HEAD(9) ",\"source\":\"cpu0\",\"seq\":1,\"enter\":null" ENDS "}\n", "result");
	WRONG(CALL_HEAD(9) ",\"enter\":\"9\",\"dur_ns\":null,\"result\":1,\"args\":{},"
			   "\"broken\":true}\n",
	      "result");
	WRONG(CALL_HEAD(9) ",\"enter\":\"9\",\"dur_ns\":null,\"result\":null,\"args\":null,"
			   "\"broken\":true}\n",
	      "args");
	WRONG(CALL_HEAD(9) ",\"enter\":null,\"dur_ns\":null,\"result\":null,\"args\":null,"
			   "\"broken\":true}\n",
	      "args");
	WRONG(CALL_HEAD(9) ",\"source\":\"cpu0\",\"seq\":1,\"enter\":null,\"dur_ns\":null,"
			   "\"result\":1,\"args\":{}}\n",
	      "args");
	WRONG("{\"ts\":\"9\"," TIME ",\"event\":\"syscall\",\"nr\":0}\n", "syscall");
#undef WRONG
#undef ENDS
}

/* The enters' sources are not in the trace: they are where the account has more than it shows. */
static void test_ledger_of_calls(void **state)
{
	static const char text[] = CALL(10, "cpu0", 1, 9, 1) CALL(11, "cpu0", 2, 9, 2)
		CUT_SHORT(20, "", 12, "unfinished");
	struct books b = {.ledger = {.sz = sizeof(b.ledger)},
			  .sources = {{.name = "cpu0"}, {.name = "cpu1"}}};

	put_file("t.json", text, sizeof(text) - 1);
	b.ledger.total.produced = b.ledger.total.delivered = 5;
	b.sources[0].account.produced = b.sources[0].account.delivered = 3;
	b.sources[1].account.produced = b.sources[1].account.delivered = 2;
	assert_int_equal(against(&b, 2), 0);
	assert_non_null(strstr(said_out, "5 events"));

	b.sources[0].account.produced = b.sources[0].account.delivered = 1;
	assert_disagrees(&b, 2, "cpu0: 1 delivered, and t.json has 2 events");
	b.sources[0].account.produced = b.sources[0].account.delivered = 3;
	b.sources[1].account.produced = b.sources[1].account.delivered = 3;
	assert_disagrees(&b, 2, "cpu1: 3 delivered, and t.json has 0 events");
	b.sources[1].account.produced = b.sources[1].account.delivered = 1;
	assert_disagrees(&b, 2, "5 delivered, and 4 by its sources");
	/* Number 0 of cpu0 is no enter of it, then. */
	b.sources[0].account.produced = b.sources[0].account.delivered = 2;
	b.sources[1].account.produced = b.sources[1].account.delivered = 3;
	assert_disagrees(&b, 2, "cpu0: 1 numbers are neither delivered nor in a gap");
	b.ledger.total.produced = b.ledger.total.delivered = 3;
	assert_disagrees(&b, 2, "all: 3 delivered, and t.json has 5 events");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_found_calls),
		cmocka_unit_test(test_standard_input),
		cmocka_unit_test(test_broken_promises),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_not_json),
		cmocka_unit_test(test_nearly_json),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_ledger_that_disagrees),
		cmocka_unit_test(test_ledger_of_a_full_disk),
		cmocka_unit_test(test_ledger_late),
		cmocka_unit_test(test_broken_ledgers),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_calls_have_a_form),
		cmocka_unit_test(test_ledger_of_calls),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
