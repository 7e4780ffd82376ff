/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_survey.c - counts and rules of a whole capture, and what --repair touches.
 */
#include "../core/unit.h"

#include "build.h"

#include "capture/packet.h"
#include "capture/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct told {
	unsigned int count;
	char first[256], last[256], file[32];
};

static void on_problem(void *ctx, const char *file, uint64_t offset, const char *text)
{
	struct told *told = ctx;

	if (!told->count++)
		snprintf(told->first, sizeof(told->first), "%s", text);
	snprintf(told->last, sizeof(told->last), "%s", text);
	snprintf(told->file, sizeof(told->file), "%s", file ? file : "");
}

static struct reader *open_capture(const struct build *build)
{
	char err[256];
	struct reader *reader = reader__open(build->path, err, sizeof(err));

	assert_non_null(reader);
	return reader;
}

static void survey(const struct build *build, struct survey *out, struct told *told)
{
	struct reader *reader = open_capture(build);

	memset(told, 0, sizeof(*told));
	assert_int_equal(survey__take(reader, out, on_problem, told), 0);
	reader__close(reader);
}

/* The last problem speaks of this; and there is one. */
static void assert_problem(const struct build *build, const char *words)
{
	struct survey s;
	struct told told;

	survey(build, &s, &told);
	survey__free(&s);
	assert_true(told.count > 0);
	if (!strstr(told.last, words))
		fail_msg("'%s' does not say '%s'", told.last, words);
}

static void test_counts(void **state)
{
	struct survey s;
	struct told told;
	struct build build;

	build__small(&build);
	survey(&build, &s, &told);
	assert_string_equal(told.last, "");
	assert_int_equal(s.types[WEIR_T_FORK], 2);
	assert_int_equal(s.types[WEIR_T_SYS_EXIT], 24);
	assert_int_equal(s.late, 2);
	assert_int_equal(s.gaps, 1);
	assert_int_equal(s.steps, 1);
	assert_int_equal(s.tasks, 1);
	assert_int_equal(s.lost[WEIR_LOST_RESERVE_FAILED], BUILD_LOST);
	assert_int_equal(s.nr_cpus, 2);
	assert_int_equal(s.cpus[1].ring[CAPTURE_RING_CPU].records, 12);
	assert_int_equal(s.cpus[1].ring[CAPTURE_RING_CPU].lost[WEIR_LOST_RESERVE_FAILED],
			 BUILD_LOST);
	assert_int_equal(s.begin_ns, 1000);
	assert_int_equal(s.end_ns, 5000);
	assert_true(s.closed);
	assert_int_equal(s.complete_ns, 4500);
	assert_int_equal(s.wall_offset_ns, BUILD_WALL_OFFSET_NS);
	survey__free(&s);
	build__remove(&build);
}

/* One packet more on CPU 0, of one call. */
static void with_packet(const char *words)
{
	static struct build_packet packet;
	struct build build;

	build__small(&build);
	build__begin(&build, &packet, CAPTURE_CPU, 0);
	build__call(&packet, 4600, 12, 60);
	build__end(&build, &packet, 4700, 0);
	assert_problem(&build, words);
	build__remove(&build);
}

static void other_cpu(struct build_packet *packet)
{
	packet->head.cpu = 1;
}

static void one_record_more(struct build_packet *packet)
{
	packet->head.records++;
}

static void step_back(struct build_packet *packet)
{
	build__call(packet, 4599, 13, 60);
}

static void beyond_the_end(struct build_packet *packet)
{
	build__call(packet, 4701, 13, 60);
}

static void unknown_type(struct build_packet *packet)
{
	build__record(packet, 4600, 0x0fff, 13, "12345678", 8);
}

static void note_of_the_capture(struct build_packet *packet)
{
	const struct capture_mark mark = {.watermark_ns = 1};

	build__record(packet, 4600, CAPTURE_T_MARK, 0, &mark, sizeof(mark));
}

static void gap_without_cause(struct build_packet *packet)
{
	const struct capture_gap gap = {.from_ns = 1, .to_ns = 2, .cause = 99};

	build__gap(packet, 4600, &gap);
}

/* What is there beyond what the account has. */
static void test_accounts(void **state)
{
	with_packet("12 records were delivered, and 13 are there");
}

/* A file that is gone leaves nothing behind but the account. */
static void test_files_that_are_gone(void **state)
{
	struct build build;
	struct survey s;
	struct told told;
	char path[128];

	build__small(&build);
	assert_int_equal(unlink(build__file(&build, "cpu1.000001", path)), 0);
	survey(&build, &s, &told);
	assert_string_equal(told.first, "cpu1.000001 is missing, with its 3 packets");
	assert_string_equal(told.last, "cpu1: 3 lost by reserve_failed, and 0 by its gaps");
	assert_int_equal(s.damaged, 13);
	assert_false(s.damaged_unknown);
	survey__free(&s);
	/* It holds no events: nothing else tells of it. */
	build__remove(&build);
	build__small(&build);
	assert_int_equal(unlink(build__file(&build, "tasks.000001", path)), 0);
	survey(&build, &s, &told);
	assert_int_equal(told.count, 1);
	assert_string_equal(told.last, "tasks.000001 is missing, with its 2 packets");
	survey__free(&s);
	build__remove(&build);
}

/* A packet of one call that `change` has changed, in a capture that was not closed: no accounts matter. */
static void with_open(void (*change)(struct build_packet *packet), uint64_t discarded,
		      const char *words)
{
	static struct build_packet packet;
	struct build build;

	build__init(&build);
	build__empty(&build, CAPTURE_CPU, 0, 4500);
	build__begin(&build, &packet, CAPTURE_CPU, 0);
	build__call(&packet, 4600, 12, 60);
	if (change)
		change(&packet);
	build__end(&build, &packet, 4700, discarded);
	assert_problem(&build, words);
	build__remove(&build);
}

static void lost_more_than_discarded(struct build_packet *packet)
{
	const struct capture_gap gap = {.from_ns = 1, .to_ns = 2, .lost = 5};

	build__gap(packet, 4600, &gap);
}

static void test_rules_of_packets(void **state)
{
	with_open(other_cpu, 0, "of another CPU, 1");
	with_open(one_record_more, 0, "cannot be told apart");
	with_open(step_back, 0, "has 1 records that cannot be told apart");
	with_open(beyond_the_end, 0, "has 1 records that cannot be told apart");
	with_open(unknown_type, 0, "has 1 records that cannot be told apart");
	with_open(note_of_the_capture, 0, "has 1 records that cannot be told apart");
	with_open(gap_without_cause, 0, "cause 99");
	with_open(lost_more_than_discarded, 4, "4 were discarded by its packets, and 5");
}

static void test_first_packet_is_empty(void **state)
{
	static struct build_packet packet;
	struct build build;

	build__init(&build);
	build__begin(&build, &packet, CAPTURE_CPU, 0);
	build__call(&packet, 4600, 0, 60);
	build__end(&build, &packet, 4700, 0);
	assert_problem(&build, "not empty");
	build__remove(&build);
}

static void test_damage_is_told(void **state)
{
	char path[128];
	struct survey s;
	struct told told;
	struct build build;
	uint8_t *bytes;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "cpu1.000001", path), &bytes);
	/* In a record of the packet in the middle. */
	bytes[112 + 112 + 40] ^= 1;
	build__write(path, bytes, len);
	survey(&build, &s, &told);
	assert_true(told.count >= 2);
	assert_int_equal(s.cpus[1].ring[CAPTURE_RING_LIFE].records, 0);
	survey__free(&s);
	free(bytes);
	build__remove(&build);
}

/* ---- repair ----------------------------------------------------------------------------------- */

static void on_cut(void *ctx, const struct survey_cut *cut)
{
	struct told *told = ctx;

	assert_int_equal(cut->error, 0);
	told->count++;
	snprintf(told->file, sizeof(told->file), "%s", cut->file);
}

static unsigned int repair(const struct build *build)
{
	struct reader *reader = open_capture(build);
	struct told told = {0};

	assert_int_equal(survey__repair(reader, on_cut, &told), 0);
	reader__close(reader);
	return told.count;
}

/* Wherever the file was torn: whole packets stay, byte for byte, and nothing else. */
static void test_repair_at_every_byte(void **state)
{
	char path[128];
	struct build build;
	uint8_t *bytes;
	size_t len, at[4] = {0};

	build__small(&build);
	len = build__read(build__file(&build, "cpu1.000001", path), &bytes);
	for (int i = 1; i < 4; i++)
		at[i] = at[i - 1] + packet__bytes((const void *)(bytes + at[i - 1]));
	for (size_t cut = 1; cut < len; cut++) {
		size_t whole = 0, left;
		uint8_t *after;

		while (whole < 3 && at[whole + 1] <= cut)
			whole++;
		build__write(path, bytes, cut);
		assert_int_equal(repair(&build), cut != at[whole]);
		if (!whole) {
			assert_int_equal(access(path, F_OK), -1);
			continue;
		}
		left = build__read(path, &after);
		assert_int_equal(left, at[whole]);
		assert_memory_equal(after, bytes, left);
		free(after);
		assert_int_equal(repair(&build), 0);
	}
	free(bytes);
	build__remove(&build);
}

static void test_repair_cuts_zeros(void **state)
{
	char path[128];
	struct build build;
	uint8_t *bytes, *after;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "weir.000001", path), &bytes);
	bytes = realloc(bytes, len + 4096);
	memset(bytes + len, 0, 4096);
	build__write(path, bytes, len + 4096);
	assert_int_equal(repair(&build), 1);
	assert_int_equal(build__read(path, &after), len);
	assert_memory_equal(after, bytes, len);
	free(after);
	/* A last packet whose head was written, and whose records were not. */
	memset(bytes + 112 + 56, 0, len - 112 - 56);
	build__write(path, bytes, len);
	assert_int_equal(repair(&build), 1);
	assert_int_equal(build__read(path, &after), 112);
	free(after);
	free(bytes);
	build__remove(&build);
}

/* What is no torn tail is none of its business. */
static void test_repair_leaves_the_rest(void **state)
{
	static const size_t flips[] = {112 + 112 + 24 /* a payload */, 112 + 3 /* a head */};
	char path[128];
	struct build build;
	uint8_t *bytes, *after;
	size_t len;

	build__small(&build);
	assert_int_equal(repair(&build), 0);
	len = build__read(build__file(&build, "cpu0.000001", path), &bytes);
	for (size_t i = 0; i < ARRAY_SIZE(flips) + 1; i++) {
		/* In the middle of the file, and in the last packet's last payload. */
		size_t at = i < ARRAY_SIZE(flips) ? flips[i] : len - 4;

		bytes[at] ^= 0x40;
		build__write(path, bytes, len);
		assert_int_equal(repair(&build), 0);
		assert_int_equal(build__read(path, &after), len);
		assert_memory_equal(after, bytes, len);
		free(after);
		bytes[at] ^= 0x40;
	}
	/* Packets of another capture, by their uuid. */
	for (size_t at = 0; at < len; at += packet__bytes((const void *)(bytes + at)))
		bytes[at + 4] ^= 0x40;
	build__write(path, bytes, len);
	assert_int_equal(repair(&build), 0);
	assert_int_equal(build__read(path, &after), len);
	free(after);
	free(bytes);
	build__remove(&build);
}

static void on_no_cut(void *ctx, const struct survey_cut *cut)
{
	*(int *)ctx = cut->error;
}

/* What has another name, or is only a name, may be anybody's; what is being written is not torn. */
static void test_repair_of_what_is_not_ours(void **state)
{
	char path[128], other[128];
	struct reader *reader;
	struct build build;
	uint8_t *bytes;
	size_t len;
	int dir, error = 0;

	build__small(&build);
	build__file(&build, "cpu1.000001", path);
	build__file(&build, "others", other);
	len = build__read(path, &bytes);
	build__write(path, bytes, len - 9);
	assert_int_equal(link(path, other), 0);
	reader = open_capture(&build);
	assert_int_equal(survey__repair(reader, on_no_cut, &error), 1);
	assert_int_equal(error, EMLINK);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(survey__repair(reader, on_no_cut, &error), 1);
	assert_int_equal(error, ELOOP);
	/* Longer than it was when it was looked at. */
	assert_int_equal(rename(other, path), 0);
	build__write(path, bytes, len);
	assert_int_equal(survey__repair(reader, on_no_cut, &error), 1);
	assert_int_equal(error, EBUSY);
	free(bytes);
	assert_int_equal(build__read(path, &bytes), len);
	dir = open(build.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(dir, LOCK_EX), 0);
	assert_true(reader__is_recording(reader));
	assert_int_equal(survey__repair(reader, on_no_cut, &error), -EBUSY);
	close(dir);
	assert_false(reader__is_recording(reader));
	reader__close(reader);
	free(bytes);
	build__remove(&build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_files_that_are_gone),
		cmocka_unit_test(test_rules_of_packets),
		cmocka_unit_test(test_first_packet_is_empty),
		cmocka_unit_test(test_damage_is_told),
		cmocka_unit_test(test_repair_at_every_byte),
		cmocka_unit_test(test_repair_cuts_zeros),
		cmocka_unit_test(test_repair_leaves_the_rest),
		cmocka_unit_test(test_repair_of_what_is_not_ours),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
