/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_feed.c - a capture comes out as it went in: order (G1, G7), loss (G4), any bytes (G8).
 */
#include "../core/unit.h"

#include "build.h"
#include "replayed.h"

#include "capture/packet.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRODUCED (BUILD_RECORDS + BUILD_LOST + BUILD_FILTERED)

static void test_all_in_order(void **state)
{
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.records, BUILD_RECORDS);
	assert_int_equal(r.gaps, 1);
	assert_int_equal(r.late, 2);
	assert_int_equal(r.count, BUILD_RECORDS + 2);
	assert_string_equal(r.events[0].source, "life0");
	assert_string_equal(r.events[1].source, "life1");
	assert_string_equal(r.events[2].source, "cpu0");
	assert_int_equal(r.events[0].event.stamp_ns, 1010);
	assert_int_equal(r.events[3].event.stamp_ns, 2001);
	assert_int_equal(r.events[3].event.cpu, 1);
	assert_int_equal(r.events[3].pid, 61);
	assert_int_equal(r.watermark_ns, 5000);
	assert_true(r.end.closed);
	assert_int_equal(r.end.complete_ns, 4500);
	assert_int_equal(r.ledger.order, WEIR_ORDER_EXACT);
	replayed__free(&r);
	build__remove(&build);
}

static const struct replayed_event *find(const struct replayed *r, enum weir_kind kind,
					 uint8_t mark)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->events[i].event.kind == kind && r->events[i].event.mark == mark)
			return &r->events[i];
	fail();
	return NULL;
}

static void test_gap(void **state)
{
	const struct replayed_event *gap;
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	gap = find(&r, WEIR_KIND_GAP, 0);
	assert_int_equal(gap->event.stamp_ns, 2950);
	assert_int_equal(gap->event.seq, 5);
	assert_int_equal(gap->gap.from_ns, 2905);
	assert_int_equal(gap->gap.seq_end, 8);
	assert_int_equal(gap->gap.lost, 3);
	assert_int_equal(gap->gap.cause, WEIR_LOST_RESERVE_FAILED);
	assert_string_equal(gap->source, "cpu1");
	/* In its place: between the last call before and the first behind it. */
	assert_true(gap[-1].event.stamp_ns <= 2950 && gap[1].event.stamp_ns >= 2950);
	replayed__free(&r);
	build__remove(&build);
}

static void test_late_record(void **state)
{
	const struct replayed_event *late;
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	late = find(&r, WEIR_KIND_RECORD, WEIR_MARK_LATE);
	assert_int_equal(late->event.stamp_ns, 2500);
	assert_int_equal(late->event.type, WEIR_T_SYS_EXIT);
	assert_int_equal(late->event.len, sizeof(struct weir_sys_exit));
	assert_int_equal(late->pid, 50);
	/* It stands where it was delivered. */
	assert_int_equal(late[-1].event.stamp_ns, 4000);
	assert_int_equal(r.ledger.total.late, 2);
	replayed__free(&r);
	build__remove(&build);
}

static void test_wall_clock_steps(void **state)
{
	const struct replayed_event *step;
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	step = find(&r, WEIR_KIND_CLOCK_STEP, 0);
	assert_int_equal(step->event.stamp_ns, 3050);
	assert_int_equal(step->event.source, WEIR_SOURCE_NONE);
	for (size_t i = 0; i < r.count; i++) {
		uint64_t ns = r.events[i].event.stamp_ns;

		assert_int_equal(r.events[i].wall_ns, BUILD_WALL_OFFSET_NS + (int64_t)ns +
							      (ns >= 3050 ? 5000000000 : 0));
	}
	replayed__free(&r);
	build__remove(&build);
}

static void test_account(void **state)
{
	const struct weir_account *total;
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	total = &r.ledger.total;
	assert_int_equal(total->produced, PRODUCED);
	assert_int_equal(total->filtered, BUILD_FILTERED);
	assert_int_equal(total->lost[WEIR_LOST_RESERVE_FAILED], BUILD_LOST);
	assert_int_equal(total->lost[WEIR_LOST_BROKEN], 0);
	assert_int_equal(r.ledger.sources, 5);
	replayed__free(&r);
	build__remove(&build);
}

static void test_process_table(void **state)
{
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.tasks, 1);
	assert_string_equal(r.exe, "/sbin/init");
	assert_string_equal(r.cgroups, "/a");
	replayed__free(&r);
	build__remove(&build);
}

static void test_seqs_are_widened(void **state)
{
	static struct build_packet packet;
	struct replayed r;
	struct build build;

	build__init(&build);
	build__empty(&build, CAPTURE_CPU, 0, 1000);
	build__begin(&build, &packet, CAPTURE_CPU, 0);
	build__call(&packet, 2000, 0xfffffffe, 7);
	build__call(&packet, 2001, 0xffffffff, 7);
	build__call(&packet, 2002, 0, 7);
	packet.head.cpu_seq = 0x500000000;
	build__end(&build, &packet, 2002, 0);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.events[0].event.seq, 0x4fffffffe);
	assert_int_equal(r.events[2].event.seq, 0x500000000);
	replayed__free(&r);
	build__remove(&build);
}

/* Of one stamp: life rings before cpu rings, then the CPU, then as it stands (G7). */
static void test_ties(void **state)
{
	static const char *const order[] = {"life0", "life1", "life1", "cpu0", "cpu1"};
	static struct build_packet packet;
	struct replayed r;
	struct build build;

	build__init(&build);
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		build__empty(&build, CAPTURE_CPU, cpu, 1000);
		build__begin(&build, &packet, CAPTURE_CPU, cpu);
		build__fork(&packet, 2000, 0, 5);
		if (cpu)
			build__fork(&packet, 2000, 1, 6);
		build__call(&packet, 2000, 0, 7);
		build__end(&build, &packet, 2000, 0);
	}
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.count, ARRAY_SIZE(order));
	for (size_t i = 0; i < r.count; i++)
		assert_string_equal(r.events[i].source, order[i]);
	assert_int_equal(r.events[1].event.seq, 0);
	assert_int_equal(r.events[2].event.seq, 1);
	replayed__free(&r);
	build__remove(&build);
}

/* The last record of a packet and the first of the next may have one stamp. */
static void test_tie_over_packets(void **state)
{
	static struct build_packet packet;
	struct replayed r;
	struct build build;

	build__init(&build);
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		build__empty(&build, CAPTURE_CPU, cpu, 1000);
		for (uint32_t i = 0; i < 50; i++) {
			build__begin(&build, &packet, CAPTURE_CPU, cpu);
			build__call(&packet, 2000 + i, 2 * i, 7);
			build__call(&packet, 2000 + i + 1, 2 * i + 1, 7);
			build__end(&build, &packet, 2000 + i + 1, 0);
		}
	}
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.records, 200);
	assert_int_equal(r.late, 0);
	replayed__free(&r);
	build__remove(&build);
}

/* More records of one stamp than wait anywhere: nothing hangs, and all are there. */
static void test_endless_tie(void **state)
{
	static struct build_packet packet;
	struct replayed r;
	struct build build;
	uint32_t seq = 0;

	build__init(&build);
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		build__empty(&build, CAPTURE_CPU, cpu, 1000);
		for (uint32_t i = 0; i < 6; i++) {
			build__begin(&build, &packet, CAPTURE_CPU, cpu);
			for (uint32_t k = 0; k < 1000; k++)
				build__call(&packet, 2000, seq++, 7);
			build__end(&build, &packet, 2000, 0);
		}
	}
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.records, 12000);
	replayed__free(&r);
	build__remove(&build);
}

static void test_many_packets(void **state)
{
	static struct build_packet packet;
	struct replayed r;
	struct build build;
	uint64_t stamp_ns = 2000;

	build__init(&build);
	for (uint32_t cpu = 0; cpu < 3; cpu++)
		build__empty(&build, CAPTURE_CPU, cpu, 1000);
	for (uint32_t i = 0; i < 30; i++) {
		uint32_t cpu = i * 7 % 3;

		build__begin(&build, &packet, CAPTURE_CPU, cpu);
		for (uint32_t k = 0; k < 300 + 20 * i; k++)
			build__call(&packet, stamp_ns += 1 + k % 5, k, i);
		build__end(&build, &packet, stamp_ns, 0);
	}
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.records, 30 * 300 + 20 * 29 * 30 / 2);
	assert_int_equal(r.late, 0);
	replayed__free(&r);
	build__remove(&build);
}

static void test_range(void **state)
{
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 2101, 2301);
	/* Forks before it change the process table; then what is in it. */
	assert_int_equal(r.count, 2 + 5);
	assert_int_equal(r.events[2].event.stamp_ns, 2101);
	assert_int_equal(r.events[6].event.stamp_ns, 2301);
	assert_int_equal(r.ledger.total.produced, 7);
	replayed__free(&r);
	build__remove(&build);
}

static void test_range_without_loss(void **state)
{
	struct replayed r;
	struct build build;

	build__small(&build);
	replayed__take(&r, build.path, 2951, UINT64_MAX);
	assert_int_equal(r.gaps, 0);
	assert_int_equal(r.ledger.total.lost[WEIR_LOST_RESERVE_FAILED], 0);
	replayed__free(&r);
	replayed__take(&r, build.path, 6000, 7000);
	assert_int_equal(r.count, 2);
	replayed__free(&r);
	build__remove(&build);
}

static void test_cut_off(void **state)
{
	char path[128];
	struct replayed r;
	struct build build;

	build__small(&build);
	assert_int_equal(unlink(build__file(&build, "weir.000001", path)), 0);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_false(r.end.closed);
	assert_int_equal(r.records, BUILD_RECORDS);
	/* Nobody knows how much was not written. */
	assert_int_equal(r.ledger.total.bound[WEIR_LOST_OUTPUT], WEIR_BOUND_UNKNOWN);
	assert_int_equal(r.ledger.order, WEIR_ORDER_ESTIMATED);
	/* The wall clock is the metadata's. */
	assert_int_equal(r.events[0].wall_ns, BUILD_WALL_OFFSET_NS + 1010);
	replayed__free(&r);
	build__remove(&build);
}

static void test_packet_before_its_time(void **state)
{
	static struct build_packet packet;
	struct replayed r;
	struct build build;

	build__init(&build);
	build__empty(&build, CAPTURE_CPU, 0, 1000);
	build__begin(&build, &packet, CAPTURE_CPU, 0);
	build__call(&packet, 3000, 0, 7);
	build__end(&build, &packet, 3000, 0);
	build.stream[CAPTURE_CPU][0].end_ns = 2000;
	build__begin(&build, &packet, CAPTURE_CPU, 0);
	build__call(&packet, 2500, 1, 7);
	build__call(&packet, 3500, 2, 7);
	build__end(&build, &packet, 3500, 0);
	replayed__take(&r, build.path, 0, UINT64_MAX);
	assert_int_equal(r.records, 3);
	assert_int_equal(r.late, 1);
	assert_int_equal(r.events[1].event.stamp_ns, 2500);
	replayed__free(&r);
	build__remove(&build);
}

/*
 * What is lost of a whole capture is known to the record, wherever its file ends: the account of the end
 * says how many there were.
 */
static void test_truncated_at_every_byte(void **state)
{
	char path[128];
	struct build build;
	uint8_t *bytes;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "cpu1.000001", path), &bytes);
	for (size_t cut = 0; cut < len; cut++) {
		struct replayed r;
		uint64_t lost = 0;

		build__write(path, bytes, cut);
		replayed__take(&r, build.path, 0, UINT64_MAX);
		for (int cause = 0; cause < WEIR_LOST_CAUSES; cause++)
			lost += r.ledger.total.lost[cause];
		assert_true(r.records >= BUILD_RECORDS / 2);
		assert_int_equal(r.records + lost, BUILD_RECORDS + BUILD_LOST);
		assert_int_equal(r.ledger.total.produced, PRODUCED);
		assert_int_equal(r.ledger.total.bound[WEIR_LOST_BROKEN], WEIR_BOUND_EXACT);
		replayed__free(&r);
	}
	free(bytes);
	build__remove(&build);
}

static void flip_each(struct build *build, const char *name, uint8_t flip,
		      void (*check)(const struct replayed *replayed))
{
	char path[128];
	uint8_t *bytes;
	size_t len = build__read(build__file(build, name, path), &bytes);

	for (size_t i = 0; i < len; i++) {
		struct replayed r;

		bytes[i] ^= flip;
		build__write(path, bytes, len);
		replayed__take(&r, build->path, 0, UINT64_MAX);
		check(&r);
		replayed__free(&r);
		bytes[i] ^= flip;
	}
	build__write(path, bytes, len);
	free(bytes);
}

/* A flip costs the packet that it is in, and no other. */
static void check_events_flip(const struct replayed *r)
{
	uint64_t lost = r->ledger.total.lost[WEIR_LOST_BROKEN];

	assert_true(r->records >= BUILD_RECORDS - 7);
	assert_int_equal(r->records + lost, BUILD_RECORDS);
	assert_int_equal(r->ledger.total.bound[WEIR_LOST_BROKEN], WEIR_BOUND_EXACT);
	assert_int_equal(r->ledger.total.produced, PRODUCED);
}

static void test_flips_in_events(void **state)
{
	struct build build;

	build__small(&build);
	flip_each(&build, "cpu0.000001", 0xff, check_events_flip);
	flip_each(&build, "cpu0.000001", 0x01, check_events_flip);
	flip_each(&build, "cpu0.000001", 0x80, check_events_flip);
	build__remove(&build);
}

static void check_notes_flip(const struct replayed *r)
{
	assert_int_equal(r->records, BUILD_RECORDS);
	assert_int_equal(r->ledger.total.lost[WEIR_LOST_BROKEN], 0);
}

/* Three packets of ten calls and a fork, the second in the file that part 1 ends with. */
static void build_numbered(struct build *build)
{
	static struct build_packet packet;

	build__init(build);
	build__empty(build, CAPTURE_CPU, 0, 1000);
	for (uint32_t i = 0; i < 3; i++) {
		if (i == 2) {
			build->part = 2;
			build__empty(build, CAPTURE_CPU, 0, 2999);
		}
		build__begin(build, &packet, CAPTURE_CPU, 0);
		for (uint32_t k = 0; k < 10; k++)
			build__call(&packet, 1000 + 1000 * i + k, 10 * i + k, 7);
		build__fork(&packet, 1500 + 1000 * i, i, 5);
		build__end(build, &packet, 1500 + 1000 * i, 0);
	}
}

static void assert_second_is_gap(const struct build *build)
{
	const struct replayed_event *gap;
	struct replayed r;

	replayed__take(&r, build->path, 0, UINT64_MAX);
	assert_int_equal(r.records, 22);
	assert_int_equal(r.gaps, 2);
	/* What else the packet told is not known. */
	assert_int_equal(r.ledger.order, WEIR_ORDER_ESTIMATED);
	gap = find(&r, WEIR_KIND_GAP, 0);
	assert_string_equal(gap[0].source, "life0");
	assert_int_equal(gap[0].event.seq, 1);
	assert_int_equal(gap[0].gap.lost, 1);
	assert_int_equal(gap[0].gap.seq_end, 2);
	assert_string_equal(gap[1].source, "cpu0");
	assert_int_equal(gap[1].event.seq, 10);
	assert_int_equal(gap[1].gap.lost, 10);
	assert_int_equal(gap[1].gap.seq_end, 20);
	replayed__free(&r);
}

/* What is lost by damage has the numbers that are missing, and none that are there (G4). */
static void test_numbers_of_damage(void **state)
{
	struct build build;
	char path[128];
	uint8_t *bytes;
	size_t len;

	build_numbered(&build);
	len = build__read(build__file(&build, "cpu0.000001", path), &bytes);
	bytes[len - 1] ^= 1;
	build__write(path, bytes, len);
	assert_second_is_gap(&build);
	build__write(path, bytes, len - 8);
	assert_second_is_gap(&build);
	free(bytes);
	build__remove(&build);
}

static void test_flips_in_notes(void **state)
{
	struct build build;

	build__small(&build);
	flip_each(&build, "weir.000001", 0xff, check_notes_flip);
	flip_each(&build, "tasks.000001", 0xff, check_notes_flip);
	build__remove(&build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_in_order),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_late_record),
		cmocka_unit_test(test_wall_clock_steps),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_process_table),
		cmocka_unit_test(test_seqs_are_widened),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_tie_over_packets),
		cmocka_unit_test(test_endless_tie),
		cmocka_unit_test(test_many_packets),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_range_without_loss),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_packet_before_its_time),
		cmocka_unit_test(test_truncated_at_every_byte),
		cmocka_unit_test(test_flips_in_events),
		cmocka_unit_test(test_flips_in_notes),
		cmocka_unit_test(test_numbers_of_damage),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
