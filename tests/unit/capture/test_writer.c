// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events in, files out: the promises of docs/capture.md, on stamps and disks that the test makes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "capture/writer.h"
#include "walk.h"

#define START 1000000

static struct folder folder;
static struct writer *writer;
static uint64_t lost[4]; /* by source */

static void on_lost(void *ctx, uint32_t source, uint64_t records)
{
	assert_true(source < 4);
	lost[source] += records;
}

static void open_writer(uint32_t selected_types, uint64_t max_bytes)
{
	struct metadata metadata = plain_metadata;
	const struct writer_opts opts = {
		.dir_fd = folder.fd,
		.metadata = &metadata,
		.start_ns = START,
		.max_bytes = max_bytes,
		.lost = on_lost,
	};

	metadata.selected_types = selected_types;
	writer = writer__new(&opts);
	assert_non_null(writer);
	writer__begin_part(writer, 5);
}

static int set_up(void **state)
{
	folder__make(&folder);
	memset(lost, 0, sizeof(lost));
	return 0;
}

static int tear_down(void **state)
{
	writer__free(writer);
	writer = NULL;
	folder__remove(&folder);
	return 0;
}

/* Sources: 2 * cpu, and one more for the cpu ring. */
static struct weir_event rename_event(uint64_t stamp_ns, int cpu, uint64_t seq)
{
	static struct weir_rename payload;

	return (struct weir_event){
		.stamp_ns = stamp_ns,
		.seq = seq,
		.data = &payload,
		.len = sizeof(payload),
		.source = 2 * (uint32_t)cpu,
		.cpu = cpu,
		.type = WEIR_T_RENAME,
		.flags = 7,
	};
}

static struct weir_event switch_event(uint64_t stamp_ns, int cpu, uint64_t seq)
{
	static struct weir_switch payload;
	struct weir_event event = rename_event(stamp_ns, cpu, seq);

	event.data = &payload;
	event.len = sizeof(payload);
	event.type = WEIR_T_SWITCH;
	event.source++;
	return event;
}

static void record(const struct weir_event *event)
{
	assert_int_equal(writer__record(writer, event), 0);
}

static void gap(uint64_t stamp_ns, int cpu, uint64_t count, enum weir_bound bound)
{
	const struct weir_gap data = {
		.from_ns = stamp_ns - 10,
		.to_ns = stamp_ns,
		.lost = count,
		.cause = WEIR_LOST_RESERVE_FAILED,
		.bound = bound,
	};
	const struct weir_event event = {
		.stamp_ns = stamp_ns,
		.seq = 100,
		.data = &data,
		.len = sizeof(data),
		.cpu = cpu,
		.kind = WEIR_KIND_GAP,
	};

	writer__notice(writer, &event, cpu < 0 ? CAPTURE_RING_NONE : CAPTURE_RING_CPU);
}

static void end(uint64_t watermark_ns)
{
	writer__end_part(writer, watermark_ns, WEIR_ORDER_EXACT, true);
}

struct seen {
	struct weir_record head;
	char payload[256];
	struct capture_packet packet;
};

struct all_seen {
	struct seen at[32];
	int count;
};

static void see(void *ctx, const struct walk_record *r)
{
	struct all_seen *all = ctx;
	struct seen *seen = &all->at[all->count++];

	assert_true(all->count < 32 && r->len <= sizeof(seen->payload));
	seen->head = r->head;
	seen->packet = *r->packet;
	memcpy(seen->payload, r->payload, r->len);
}

static struct all_seen file(const char *name, struct capture_packet *last)
{
	struct all_seen all = {.count = 0};

	walk__file(&folder, name, see, &all, last);
	return all;
}

static void test_records(void **state)
{
	struct weir_event events[] = {
		rename_event(START + 5, 1, 0x500000001),
		switch_event(START + 5, 1, 9),
		switch_event(START + 6, 0, 3),
		rename_event(START + 7, 1, 0x500000002),
	};
	struct capture_packet last;
	struct all_seen all;

	open_writer(~0u, 0);
	for (int i = 0; i < 4; i++)
		record(&events[i]);
	end(START + 50);
	all = file("cpu1.000001", &last);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.at[0].head.stamp, START + 5);
	assert_int_equal(all.at[0].head.type, WEIR_T_RENAME);
	assert_int_equal(all.at[0].head.flags, 7);
	assert_int_equal(all.at[0].head.seq, 1);
	assert_int_equal(all.at[1].head.type, WEIR_T_SWITCH);
	assert_int_equal(all.at[2].head.stamp, START + 7);
	/* The numbers that widen seq, and where the packet lies. */
	assert_int_equal(all.at[0].packet.life_seq, 0x500000002);
	assert_int_equal(all.at[0].packet.cpu_seq, 9);
	assert_int_equal(all.at[0].packet.instance, 1);
	assert_int_equal(all.at[0].packet.end_ns, START + 50);
	assert_int_equal(last.records, 0);
	assert_int_equal(file("cpu0.000001", NULL).count, 1);
	assert_int_equal(walk__file(&folder, "cpu2.000001", NULL, NULL, NULL), -1);
	assert_int_equal(walk__count(&folder, "weir.000001", CAPTURE_T_MARK), 1);
}

/* Late, ahead, or just behind: in its place, under its own stamp. */
static void test_late(void **state)
{
	struct weir_event late = rename_event(START + 1, 0, 1);
	struct weir_event ahead = switch_event(UINT64_MAX, 0, 1);
	struct weir_event behind = switch_event(START + 2, 0, 2);
	struct weir_event plain = switch_event(START + 10, 1, 1);
	struct capture_late first, second;
	struct all_seen all;

	late.mark = WEIR_MARK_LATE;
	ahead.mark = WEIR_MARK_AHEAD;
	open_writer(~0u, 0);
	record(&plain);
	record(&late);
	record(&ahead);
	record(&behind);
	end(START + 20);
	all = file("cpu0.000001", NULL);
	assert_int_equal(all.count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(all.at[i].head.stamp, START + 10);
	assert_int_equal(all.at[0].head.type, WEIR_T_RENAME | CAPTURE_LATE);
	memcpy(&first, all.at[0].payload, sizeof(first));
	memcpy(&second, all.at[1].payload, sizeof(second));
	assert_int_equal(first.true_stamp, START + 1);
	assert_int_equal(first.mark, WEIR_MARK_LATE);
	assert_int_equal(second.true_stamp, UINT64_MAX);
	assert_int_equal(second.mark, WEIR_MARK_AHEAD);
	assert_int_equal(all.at[2].head.type, WEIR_T_SWITCH | CAPTURE_LATE);
}

static void test_broken(void **state)
{
	struct weir_event shorter = switch_event(START + 1, 0, 1);
	struct weir_event unknown = switch_event(START + 1, 0, 2);
	struct weir_event own = switch_event(START + 1, 0, 3);
	struct weir_event longer = rename_event(START + 2, 0, 4);

	shorter.len--;
	unknown.type = 99;
	own.type = CAPTURE_T_MARK;
	open_writer(~0u, 0);
	assert_int_equal(writer__record(writer, &shorter), -EBADMSG);
	assert_int_equal(writer__record(writer, &unknown), -EBADMSG);
	assert_int_equal(writer__record(writer, &own), -EBADMSG);
	/* What is behind the end has no meaning, and no place. */
	longer.data = &(struct {
		struct weir_rename r;
		char rest[64];
	}){0};
	longer.len = sizeof(struct weir_rename) + 64;
	record(&longer);
	end(START + 20);
	assert_int_equal(file("cpu0.000001", NULL).count, 1);
}

/* The count that readers know, and the exact place. */
static void test_gaps(void **state)
{
	struct weir_event one = switch_event(START + 30, 0, 1);
	struct capture_packet last;
	struct capture_gap told;
	struct all_seen all;

	open_writer(~0u, 0);
	gap(START + 20, 0, 17, WEIR_BOUND_EXACT);
	gap(START + 21, -1, 3, WEIR_BOUND_AT_MOST);
	gap(START + 22, 0, 0, WEIR_BOUND_UNKNOWN);
	record(&one);
	gap(START + 40, 0, 2, WEIR_BOUND_EXACT);
	end(START + 50);
	all = file("cpu0.000001", &last);
	assert_int_equal(all.count, 4);
	memcpy(&told, all.at[0].payload, sizeof(told));
	assert_int_equal(all.at[0].head.stamp, START + 20);
	assert_int_equal(told.from_ns, START + 10);
	assert_int_equal(told.to_ns, START + 20);
	assert_int_equal(told.lost, 17);
	assert_int_equal(told.seq, 100);
	assert_int_equal(told.ring, CAPTURE_RING_CPU);
	assert_int_equal(last.discarded, 19);
	all = file("weir.000001", &last);
	assert_int_equal(last.discarded, 3);
	assert_int_equal(walk__count(&folder, "weir.000001", CAPTURE_T_GAP), 1);
}

/* Packets are full, but no larger than they may be; nothing is between them. */
static void test_full_packets(void **state)
{
	const int count = 40000; /* of 88 bytes */
	int packets;

	open_writer(~0u, 0);
	for (int i = 0; i < count; i++) {
		struct weir_event event = switch_event(START + 1 + (uint64_t)i / 3, 0, (uint64_t)i);

		record(&event);
	}
	assert_true(writer__flush(writer, START + 20000, WEIR_ORDER_EXACT));
	assert_false(writer__flush(writer, START + 20000, WEIR_ORDER_EXACT));
	packets = walk__file(&folder, "cpu0.000001", NULL, NULL, NULL);
	assert_int_equal(packets,
			 1 + (count * 88 + CAPTURE_PACKET_BYTES - 1) / CAPTURE_PACKET_BYTES);
	assert_int_equal(walk__count(&folder, "cpu0.000001", WEIR_T_SWITCH), count);
}

/* What was flushed is there, whatever happens next; what was not, is lost with the process. */
static void test_killed(void **state)
{
	struct weir_event first = switch_event(START + 1, 0, 1),
			  second = switch_event(START + 9, 0, 2);

	open_writer(~0u, 0);
	record(&first);
	writer__flush(writer, START + 5, WEIR_ORDER_EXACT);
	record(&second);
	writer__free(writer);
	writer = NULL;
	assert_int_equal(file("cpu0.000001", NULL).count, 1);
	assert_int_equal(walk__count(&folder, "weir.000001", CAPTURE_T_MARK), 1);
}

static void test_parts(void **state)
{
	struct weir_seed seed = {.comm = "cat"};
	struct capture_packet before, after;
	struct weir_event first = switch_event(START + 1, 0, 1),
			  second = switch_event(START + 9, 0, 2);
	struct all_seen all;
	struct capture_part part;
	struct capture_file of;

	open_writer(~0u, 0);
	writer__task(writer, &seed, "/bin/cat", "0::/\n");
	record(&first);
	gap(START + 2, 0, 5, WEIR_BOUND_EXACT);
	writer__end_part(writer, START + 5, WEIR_ORDER_EXACT, false);
	writer__begin_part(writer, 77);
	writer__task(writer, &seed, NULL, NULL);
	record(&second);
	end(START + 20);
	file("cpu0.000001", &before);
	all = file("cpu0.000002", &after);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.at[0].head.stamp, START + 9);
	assert_int_equal(all.at[0].packet.discarded, 5);
	assert_true(after.number == before.number + 3);
	assert_int_equal(after.part, 2);
	assert_true(all.at[0].packet.begin_ns > before.end_ns);
	all = file("weir.000002", NULL);
	assert_int_equal(all.at[0].head.type, CAPTURE_T_PART);
	memcpy(&part, all.at[0].payload, sizeof(part));
	assert_int_equal(part.part, 2);
	assert_int_equal(part.wall_offset_ns, 77);
	assert_true(part.start_ns >= START + 5);
	/* The notes of each part tell which files there are. */
	assert_int_equal(walk__count(&folder, "weir.000001", CAPTURE_T_FILE), 2);
	all = file("weir.000002", NULL);
	memcpy(&of, all.at[1].payload, sizeof(of));
	assert_int_equal(all.at[1].head.type, CAPTURE_T_FILE);
	assert_int_equal(of.stream, CAPTURE_CPU);
	assert_int_equal(of.instance, 0);
	assert_int_equal(of.number, before.number + 1);
	assert_int_equal(of.end, after.number + 1);
	assert_int_equal(walk__count(&folder, "tasks.000001", CAPTURE_T_TASK), 1);
	assert_int_equal(walk__count(&folder, "tasks.000002", CAPTURE_T_TASK), 1);
	assert_int_equal(walk__file(&folder, "cpu0.000003", NULL, NULL, NULL), -1);
}

/* A table of more than a packet: readers that sort packets by their begin keep the order. */
static void test_many_tasks(void **state)
{
	struct weir_seed seed = {.comm = "many"};
	struct weir_event event = switch_event(START + 100, 0, 1);

	open_writer(~0u, 0);
	for (int i = 0; i < 30000; i++)
		writer__task(writer, &seed, "/usr/bin/many", "0::/user.slice/many\n");
	record(&event);
	end(START + 200);
	assert_int_equal(walk__count(&folder, "tasks.000001", CAPTURE_T_TASK), 30000);
	assert_true(walk__file(&folder, "tasks.000001", NULL, NULL, NULL) > 3);
	assert_int_equal(walk__count(&folder, "cpu0.000001", WEIR_T_SWITCH), 1);
}

/* As a full disk does: nothing more fits into any file. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void sum_gaps(void *ctx, const struct walk_record *r)
{
	uint64_t(*sums)[WEIR_LOST_CAUSES] = ctx;
	struct capture_gap told;

	if (r->head.type != CAPTURE_T_GAP)
		return;
	memcpy(&told, r->payload, sizeof(told));
	sums[told.ring][told.cause] += told.lost;
	if (told.cause == WEIR_LOST_OUTPUT) {
		assert_int_equal(told.from_ns, START + 5);
		assert_in_range(told.to_ns, START + 10, START + 400);
	}
}

/* What does not fit is lost, once; with room again, it and the gaps among it are told. */
static void test_no_room(void **state)
{
	uint64_t sums[3][WEIR_LOST_CAUSES] = {{0}};
	struct weir_event event = switch_event(START + 1, 0, 1);
	struct writer_stats stats;
	struct capture_packet last;

	/* Renames were not asked for: they are state, and no loss. */
	open_writer(1u << WEIR_T_SWITCH, 0);
	record(&event);
	writer__flush(writer, START + 5, WEIR_ORDER_EXACT);
	limit_files(0);
	for (uint64_t i = 0; i < 300; i++) {
		event = i % 3 ? switch_event(START + 10 + i, 0, 2 + i)
			      : rename_event(START + 10 + i, 0, 2 + i);
		record(&event);
		if (i == 150)
			gap(START + 10 + i, 0, 40, WEIR_BOUND_EXACT);
		if (i % 100 == 0)
			writer__flush(writer, START + 10 + i, WEIR_ORDER_EXACT);
	}
	writer__flush(writer, START + 350, WEIR_ORDER_EXACT);
	writer__stats(writer, &stats);
	assert_int_equal(stats.error, -EFBIG);
	assert_int_equal(lost[0], 0);
	assert_int_equal(lost[1], 200);
	assert_int_equal(file("cpu0.000001", NULL).count, 1);
	limit_files(RLIM_INFINITY);
	event = switch_event(START + 400, 0, 500);
	record(&event);
	end(START + 500);
	assert_int_equal(lost[1], 200);
	walk__file(&folder, "cpu0.000001", sum_gaps, sums, &last);
	assert_int_equal(sums[CAPTURE_RING_CPU][WEIR_LOST_OUTPUT], 200);
	assert_int_equal(sums[CAPTURE_RING_CPU][WEIR_LOST_RESERVE_FAILED], 40);
	assert_int_equal(last.discarded, 240);
	assert_int_equal(walk__count(&folder, "cpu0.000001", WEIR_T_SWITCH), 2);
}

/* A part that began without room: what it lost is told in the next, and no count steps back. */
static void test_no_room_across_parts(void **state)
{
	uint64_t sums[3][WEIR_LOST_CAUSES] = {{0}};
	struct weir_event event = switch_event(START + 1, 0, 1);
	struct capture_packet first, second;

	open_writer(~0u, 0);
	record(&event);
	writer__flush(writer, START + 5, WEIR_ORDER_EXACT);
	limit_files(0);
	event = switch_event(START + 10, 0, 2);
	record(&event);
	writer__end_part(writer, START + 20, WEIR_ORDER_EXACT, false);
	writer__begin_part(writer, 0);
	limit_files(RLIM_INFINITY);
	event = switch_event(START + 30, 0, 3);
	record(&event);
	end(START + 40);
	walk__file(&folder, "cpu0.000001", NULL, NULL, &first);
	walk__file(&folder, "cpu0.000002", sum_gaps, sums, &second);
	assert_int_equal(sums[CAPTURE_RING_CPU][WEIR_LOST_OUTPUT], 1);
	assert_true(second.discarded >= first.discarded);
	assert_int_equal(second.discarded, 1);
	assert_int_equal(walk__count(&folder, "weir.000002", CAPTURE_T_MARK), 1);
}

static void test_max_bytes(void **state)
{
	const uint64_t limit = 8 << 20;
	uint64_t stamp_ns = START + 1;
	struct writer_stats stats;

	open_writer(~0u, limit);
	for (int i = 0; i < 300000; i++, stamp_ns++) {
		struct weir_event event = switch_event(stamp_ns, i % 2, (uint64_t)i);

		record(&event);
		writer__stats(writer, &stats);
		assert_true(stats.bytes <= limit);
		if (i % 20000)
			continue;
		if (writer__part_is_full(writer, stamp_ns)) {
			writer__end_part(writer, stamp_ns, WEIR_ORDER_EXACT, false);
			writer__begin_part(writer, 0);
		} else {
			writer__flush(writer, stamp_ns, WEIR_ORDER_EXACT);
		}
	}
	end(stamp_ns);
	writer__stats(writer, &stats);
	assert_true(stats.bytes <= limit && stats.bytes > limit / 2);
	assert_true(stats.first_part > 1);
	assert_int_equal(walk__file(&folder, "cpu0.000001", NULL, NULL, NULL), -1);
	assert_int_equal(stats.error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gaps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_packets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_tasks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room_across_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_max_bytes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
