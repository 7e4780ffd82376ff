/* SPDX-License-Identifier: BSD-2-Clause */
/* source/perf_attr: what a perf event of a stream has to be like, and a tracefs made for the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/perf_attr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RING 65536

static char why[512], tracefs[64];
static const struct reason reason = {why, sizeof(why)};
static struct source_perf_event event;
static enum weir_clock_id by_clock; /* the stream's */

static void assert_says(const char *part)
{
	if (!strstr(why, part))
		fail_msg("\"%s\" is not in \"%s\"", part, why);
}

static const char *in_tracefs(const char *path)
{
	static char full[256];

	snprintf(full, sizeof(full), "%s/%s", tracefs, path);
	return full;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(in_tracefs(path), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_tracefs(void **state)
{
	snprintf(tracefs, sizeof(tracefs), "/tmp/weir-tracefs-XXXXXX");
	if (!mkdtemp(tracefs) || mkdir(in_tracefs("events"), 0700) ||
	    mkdir(in_tracefs("events/sched"), 0700) ||
	    mkdir(in_tracefs("events/sched/sched_switch"), 0700) ||
	    mkdir(in_tracefs("events/sched/empty"), 0700))
		return -1;
	write_file("id", "99\n");
	write_file("events/sched/sched_switch/id", "314\n");
	write_file("events/sched/empty/id", "");
	return 0;
}

static int remove_tracefs(void **state)
{
	unlink(in_tracefs("events/sched/sched_switch/id"));
	unlink(in_tracefs("events/sched/empty/id"));
	unlink(in_tracefs("id"));
	rmdir(in_tracefs("events/sched/sched_switch"));
	rmdir(in_tracefs("events/sched/empty"));
	rmdir(in_tracefs("events/sched"));
	rmdir(in_tracefs("events"));
	return rmdir(tracefs);
}

static int complete(const struct weir_perf_event *wanted, bool overwrite)
{
	why[0] = '\0';
	return perf_attr__complete(
		&event, wanted,
		&(struct perf_ring_shape){.bytes = RING, .overwrite = overwrite, .clock = by_clock},
		tracefs, &reason);
}

static int complete_tracepoint(const char *name)
{
	return complete(&(struct weir_perf_event){.tracepoint = name}, false);
}

static int complete_attr(const struct perf_event_attr *attr, bool overwrite)
{
	return complete(&(struct weir_perf_event){.attr = attr}, overwrite);
}

static struct perf_event_attr clock_attr(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
	};
}

static void test_tracepoint(void **state)
{
	const struct perf_event_attr *attr = &event.attr;

	assert_int_equal(complete_tracepoint("sched:sched_switch"), 0);
	assert_int_equal(attr->size, sizeof(*attr));
	assert_int_equal(attr->type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(attr->config, 314);
	assert_int_equal(attr->sample_period, 1);
	assert_int_equal(attr->sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
						    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						    PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW);
	assert_string_equal(event.name, "sched:sched_switch");
}

/* What every event has: its clock, its times in all records, no wake-up for each. */
static void test_always(void **state)
{
	struct perf_event_attr wanted = clock_attr();
	const struct perf_event_attr *attr = &event.attr;

	wanted.sample_type = PERF_SAMPLE_CALLCHAIN;
	wanted.wakeup_events = 1;
	assert_int_equal(complete_attr(&wanted, false), 0);
	assert_true(attr->use_clockid && attr->sample_id_all && attr->watermark && attr->disabled);
	assert_int_equal(attr->clockid, CLOCK_MONOTONIC);
	assert_int_equal(attr->wakeup_watermark, RING / 4);
	assert_false(attr->write_backward);
	assert_int_equal(attr->sample_period, 1000000);
	assert_true(attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	assert_false(attr->sample_type & PERF_SAMPLE_RAW);
	assert_true(attr->read_format & PERF_FORMAT_LOST);
}

/* Backward is what overwrites, and nothing else does: by construction. */
static void test_overwrite(void **state)
{
	struct perf_event_attr wanted = clock_attr();

	assert_int_equal(complete_attr(&wanted, true), 0);
	assert_true(event.attr.write_backward);
	assert_int_equal(event.attr.wakeup_watermark, RING);
	wanted.write_backward = 1;
	assert_int_equal(complete_attr(&wanted, true), 0);
	assert_int_equal(complete_attr(&wanted, false), -EINVAL);
	assert_says("writes backward");
}

static void test_bpf_output(void **state)
{
	struct perf_event_attr wanted = perf_attr__bpf_output();

	assert_int_equal(complete_attr(&wanted, false), 0);
	assert_int_equal(event.attr.sample_period, 1);
	assert_true(event.attr.sample_type & PERF_SAMPLE_RAW);
}

/* The stream's clock, whichever it is, and no other. */
static void test_clocks(void **state)
{
	struct perf_event_attr wanted = clock_attr();

	by_clock = WEIR_CLOCK_BOOTTIME;
	assert_int_equal(complete_attr(&wanted, false), 0);
	assert_true(event.attr.use_clockid);
	assert_int_equal(event.attr.clockid, CLOCK_BOOTTIME);
	wanted.use_clockid = 1;
	wanted.clockid = CLOCK_MONOTONIC;
	assert_int_equal(complete_attr(&wanted, false), -EINVAL);
	assert_says("'boottime'");
	by_clock = WEIR_CLOCK_PERF;
	assert_int_equal(complete_attr(&wanted, false), -EINVAL);
	wanted = clock_attr();
	assert_int_equal(complete_attr(&wanted, false), 0);
	assert_false(event.attr.use_clockid);
	by_clock = WEIR_CLOCK_MONOTONIC;
}

static void test_refused(void **state)
{
	struct perf_event_attr wanted = clock_attr();

	wanted.use_clockid = 1;
	wanted.clockid = CLOCK_BOOTTIME;
	assert_int_equal(complete_attr(&wanted, false), -EINVAL);
	assert_says("clock 7");
	wanted = clock_attr();
	wanted.sample_period = 0;
	assert_int_equal(complete_attr(&wanted, false), -EINVAL);
	assert_says("sample_period");
	wanted = clock_attr();
	wanted.read_format = PERF_FORMAT_GROUP;
	assert_int_equal(complete_attr(&wanted, false), -EINVAL);
	assert_int_equal(complete(&(struct weir_perf_event){0}, false), -EINVAL);
	wanted = clock_attr();
	assert_int_equal(
		complete(&(struct weir_perf_event){&wanted, "sched:sched_switch", NULL}, false),
		-EINVAL);
	assert_says("an attr or a tracepoint");
}

/* Of an older struct no byte too many is read, in a newer one nothing may be asked for. */
static void test_other_sizes(void **state)
{
	struct {
		struct perf_event_attr attr;
		uint8_t newer[16];
	} wanted = {.attr = clock_attr()};
	uint8_t *older = malloc(PERF_ATTR_SIZE_VER0);

	wanted.attr.size = PERF_ATTR_SIZE_VER0;
	memcpy(older, &wanted.attr, PERF_ATTR_SIZE_VER0);
	assert_int_equal(complete_attr((const struct perf_event_attr *)older, false), 0);
	assert_int_equal(event.attr.sample_period, 1000000);
	free(older);
	wanted.attr.size = sizeof(wanted);
	assert_int_equal(complete_attr(&wanted.attr, false), 0);
	wanted.newer[15] = 1;
	assert_int_equal(complete_attr(&wanted.attr, false), -E2BIG);
	wanted.attr.size = 0;
	assert_int_equal(complete_attr(&wanted.attr, false), -EINVAL);
	wanted.attr.size = PERF_ATTR_SIZE_VER0 - 1;
	assert_int_equal(complete_attr(&wanted.attr, false), -EINVAL);
	wanted.attr.size = UINT32_MAX;
	assert_int_equal(complete_attr(&wanted.attr, false), -EINVAL);
}

/* A name stays in its folder, whatever it is. */
static void test_names(void **state)
{
	static const char *const none[] = {
		"",	    "sched",	     ":",
		"sched:",   ":sched_switch", "..:id",
		"sched:..", ".:..",	     "/:id",
		"sched:/",  "a/b:c",	     "sched:sched_switch/../sched_switch",
	};
	char longest[5000];

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(complete_tracepoint(none[i]), -EINVAL);
		assert_says("GROUP:NAME");
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	longest[10] = ':';
	assert_int_equal(complete_tracepoint(longest), -EINVAL);
	assert_int_equal(complete_tracepoint("sched:no_such"), -ENOENT);
	assert_says("no tracepoint sched:no_such");
	assert_says("available_events");
	assert_int_equal(complete_tracepoint("no_such:sched_switch"), -ENOENT);
	assert_int_equal(complete_tracepoint("sched:empty"), -EIO);
}

static void test_why_not_opened(void **state)
{
	struct perf_event_attr wanted = clock_attr();

	assert_int_equal(complete_attr(&wanted, false), 0);
	assert_int_equal(perf_attr__explain_open(&event, 3, -EACCES, &reason), -EACCES);
	assert_says("event 1:0");
	assert_says("sysctl kernel.perf_event_paranoid=0");
	assert_says("CAP_PERFMON");
	assert_int_equal(perf_attr__explain_open(&event, 3, -ENOENT, &reason), -ENOENT);
	assert_says("this machine has no event 1:0");
	assert_int_equal(perf_attr__explain_open(&event, 3, -EIO, &reason), -EIO);
	assert_says("on CPU 3");
	assert_int_equal(complete_tracepoint("sched:sched_switch"), 0);
	assert_int_equal(perf_attr__explain_open(&event, 3, -EPERM, &reason), -EPERM);
	assert_says("sysctl kernel.perf_event_paranoid=-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clocks),	       cmocka_unit_test(test_tracepoint),
		cmocka_unit_test(test_always),	       cmocka_unit_test(test_overwrite),
		cmocka_unit_test(test_bpf_output),     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_other_sizes),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_why_not_opened),
	};
	int r = cmocka_run_group_tests(tests, make_tracefs, remove_tracefs);

	return r ? 1 : 0;
}
