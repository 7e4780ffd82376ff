/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reader.c - a folder -> an index of packets, and what is wrong with it (G8).
 */
#include "../core/unit.h"

#include "build.h"

#include "capture/classes.h"
#include "capture/packet.h"
#include "capture/reader.h"
#include "capture/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD sizeof(struct capture_packet)

static struct reader *open_capture(const struct build *build)
{
	char err[256];
	struct reader *reader = reader__open(build->path, err, sizeof(err));

	assert_non_null(reader);
	return reader;
}

static const struct reader_stream *stream(const struct reader *reader, size_t i)
{
	size_t count;
	const struct reader_stream *streams = reader__streams(reader, &count);

	assert_true(i < count);
	return &streams[i];
}

static const struct reader_flaw *only_flaw(const struct reader *reader)
{
	size_t count;
	const struct reader_flaw *flaws = reader__flaws(reader, &count);

	assert_int_equal(count, 1);
	return flaws;
}

static size_t nr_flaws(const struct reader *reader)
{
	size_t count;

	reader__flaws(reader, &count);
	return count;
}

/* Where packet i of a file stands. */
static size_t packet_at(const uint8_t *bytes, size_t i)
{
	size_t at = 0;

	while (i--)
		at += packet__bytes((const void *)(bytes + at));
	return at;
}

static void test_finds_all(void **state)
{
	struct build build;
	struct reader *reader;
	const struct reader_env *env;
	size_t count;

	build__small(&build);
	reader = open_capture(&build);
	reader__streams(reader, &count);
	assert_int_equal(count, 4);
	assert_int_equal(nr_flaws(reader), 0);
	assert_int_equal(stream(reader, 0)->kind, CAPTURE_CPU);
	assert_int_equal(stream(reader, 1)->instance, 1);
	assert_int_equal(stream(reader, 1)->nr_packets, 3);
	assert_int_equal(stream(reader, 1)->records, 14);
	assert_int_equal(stream(reader, 1)->discarded, BUILD_LOST);
	assert_int_equal(stream(reader, 1)->packets[1].begin_ns, 1000);
	assert_int_equal(stream(reader, 1)->packets[2].end_ns, 4500);
	assert_int_equal(stream(reader, 2)->kind, CAPTURE_TASKS);
	assert_int_equal(stream(reader, 3)->kind, CAPTURE_NOTES);
	env = reader__env(reader);
	assert_true(env->has_metadata);
	assert_false(env->uuid_differs);
	assert_string_equal(env->hostname, "a \"host\"");
	assert_string_equal(env->release, "6.1");
	assert_string_equal(env->version, "9.8");
	assert_string_equal(env->command, "weir record; -o \x80\\x");
	assert_string_equal(env->boot_id, "00000000-0000-0000-0000-0000000000ff");
	assert_int_equal(env->command_pid, 77);
	assert_int_equal(env->nr_cpus, 2);
	assert_int_equal(env->wall_offset_ns, BUILD_WALL_OFFSET_NS);
	reader__close(reader);
	build__remove(&build);
}

static void test_reads_packets_back(void **state)
{
	static uint8_t buf[CAPTURE_PACKET_BYTES] __attribute__((aligned(8)));
	const struct weir_record *record;
	struct packet_walk walk;
	struct build build;
	struct reader *reader;
	unsigned int records = 0;

	build__small(&build);
	reader = open_capture(&build);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(reader__packet(reader, 0, i, buf), 0);
		walk = packet__walk(buf);
		while (packet__next(&walk, &record) == PACKET_RECORD)
			records++;
		assert_int_equal(walk.left, 0);
	}
	assert_int_equal(records, 13);
	reader__close(reader);
	build__remove(&build);
}

/* What the walk knows of the common types is what the classes' description says. */
static void test_sizes(void **state)
{
	static struct build_packet packet;
	static uint8_t payload[512] __attribute__((aligned(8)));
	const struct weir_record *record;
	struct build build;

	build__init(&build);
	for (uint16_t type = 0; type < 40; type++) {
		int64_t size = capture_class__size(type, payload, sizeof(payload));
		struct packet_walk walk;

		build__begin(&build, &packet, CAPTURE_CPU, 0);
		build__record(&packet, 5000, type, 0, payload, size < 0 ? 8 : (size_t)size);
		build__end(&build, &packet, 5000, 0);
		walk = packet__walk(packet.bytes);
		assert_int_equal(packet__next(&walk, &record),
				 size < 0 ? PACKET_BROKEN : PACKET_RECORD);
		if (size >= 0)
			assert_int_equal(walk.size, size);
	}
	build__remove(&build);
}

/* A file that ends anywhere: what is whole before that is there, and what is not is missed. */
static void test_torn_at_every_byte(void **state)
{
	char path[128];
	struct build build;
	uint8_t *bytes;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "cpu0.000001", path), &bytes);
	for (size_t cut = 0; cut < len; cut++) {
		size_t whole = 0;
		struct reader *reader;

		while (packet_at(bytes, whole + 1) <= cut)
			whole++;
		build__write(path, bytes, cut);
		reader = open_capture(&build);
		assert_int_equal(stream(reader, 0)->nr_packets, whole);
		if (cut == packet_at(bytes, whole)) {
			assert_int_equal(only_flaw(reader)->kind, READER_MISSING);
			assert_int_equal(only_flaw(reader)->packets, 3 - whole);
			assert_int_equal(only_flaw(reader)->before, whole);
		} else {
			const struct reader_flaw *flaw = only_flaw(reader);
			bool has_head = cut - packet_at(bytes, whole) >= HEAD;

			assert_int_equal(flaw->kind, has_head ? READER_TORN : READER_DAMAGED);
			assert_int_equal(flaw->offset, packet_at(bytes, whole));
			assert_int_equal(flaw->offset + flaw->bytes, cut);
			assert_int_equal(flaw->before, whole);
		}
		reader__close(reader);
	}
	free(bytes);
	build__remove(&build);
}

static void test_zeros_at_the_end(void **state)
{
	char path[128];
	struct build build;
	struct reader *reader;
	uint8_t *bytes, *longer;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "cpu0.000001", path), &bytes);
	longer = calloc(1, len + 200000);
	memcpy(longer, bytes, len);
	build__write(path, longer, len + 200000);
	reader = open_capture(&build);
	assert_int_equal(stream(reader, 0)->nr_packets, 3);
	assert_int_equal(only_flaw(reader)->kind, READER_DAMAGED);
	assert_int_equal(only_flaw(reader)->offset, len);
	assert_int_equal(only_flaw(reader)->bytes, 200000);
	reader__close(reader);
	free(longer);
	free(bytes);
	build__remove(&build);
}

/* Overwrites [from, from + count) of a file's bytes with a value. */
static void test_reads_behind_damage(void **state)
{
	static const struct {
		size_t packet, from, count;
	} damages[] = {
		{1, 0, 4},   /* magic */
		{1, 4, 16},  /* uuid */
		{1, 48, 8},  /* content_bits */
		{1, 56, 8},  /* packet_bits */
		{1, 40, 8},  /* end_ns */
		{1, 72, 8},  /* number */
		{1, 0, 300}, /* a head and more */
		{2, 32, 8},  /* begin_ns */
	};
	char path[128];
	struct build build;
	uint8_t *bytes, *broken;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "cpu0.000001", path), &bytes);
	broken = malloc(len);
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		struct reader *reader;
		const struct reader_flaw *flaw;

		memcpy(broken, bytes, len);
		memset(broken + packet_at(bytes, damages[i].packet) + damages[i].from, 0x7e,
		       damages[i].count);
		build__write(path, broken, len);
		reader = open_capture(&build);
		assert_int_equal(stream(reader, 0)->nr_packets, 2);
		flaw = only_flaw(reader);
		assert_int_equal(flaw->kind, READER_DAMAGED);
		assert_int_equal(flaw->offset, packet_at(bytes, damages[i].packet));
		assert_int_equal(flaw->bytes, packet_at(bytes, damages[i].packet + 1) -
						      packet_at(bytes, damages[i].packet));
		if (damages[i].packet == 1)
			assert_int_equal(flaw->packets, 1);
		reader__close(reader);
	}
	free(broken);
	free(bytes);
	build__remove(&build);
}

static void test_packets_that_are_gone(void **state)
{
	char path[128];
	struct build build;
	struct reader *reader;
	uint8_t *bytes;
	size_t len, first, second;

	build__small(&build);
	len = build__read(build__file(&build, "cpu1.000001", path), &bytes);
	first = packet_at(bytes, 1);
	second = packet_at(bytes, 2);
	memmove(bytes + first, bytes + second, len - second);
	build__write(path, bytes, len - (second - first));
	reader = open_capture(&build);
	assert_int_equal(stream(reader, 1)->nr_packets, 2);
	assert_int_equal(only_flaw(reader)->kind, READER_MISSING);
	assert_int_equal(only_flaw(reader)->packets, 1);
	assert_int_equal(only_flaw(reader)->from_ns, 1000);
	assert_int_equal(only_flaw(reader)->to_ns, 2900);
	assert_true(only_flaw(reader)->records == READER_UNKNOWN);
	reader__close(reader);
	free(bytes);
	build__remove(&build);
}

static void test_packet_that_comes_twice(void **state)
{
	char path[128];
	struct build build;
	struct reader *reader;
	uint8_t *bytes;
	size_t len, last;

	build__small(&build);
	len = build__read(build__file(&build, "cpu1.000001", path), &bytes);
	last = packet_at(bytes, 2);
	bytes = realloc(bytes, 2 * len);
	memcpy(bytes + len, bytes + last, len - last);
	build__write(path, bytes, len + (len - last));
	reader = open_capture(&build);
	assert_int_equal(stream(reader, 1)->nr_packets, 3);
	assert_int_equal(only_flaw(reader)->kind, READER_REPEATED);
	assert_int_equal(only_flaw(reader)->records, 0);
	reader__close(reader);
	free(bytes);
	build__remove(&build);
}

static void test_without_metadata(void **state)
{
	char path[128];
	struct build build;
	struct reader *reader;

	build__small(&build);
	assert_int_equal(unlink(build__file(&build, "metadata", path)), 0);
	reader = open_capture(&build);
	assert_false(reader__env(reader)->has_metadata);
	assert_int_equal(reader__env(reader)->nr_cpus, 2);
	assert_int_equal(reader__env(reader)->uuid[0], 0xa0);
	assert_int_equal(stream(reader, 1)->nr_packets, 3);
	assert_int_equal(nr_flaws(reader), 0);
	reader__close(reader);
	build__remove(&build);
}

static void test_metadata_of_another_capture(void **state)
{
	static const char other[] =
		"trace {\nuuid = \"ff010203-0405-0607-0809-0a0b0c0d0e0f\";\n};\n";
	char path[128];
	struct build build;
	struct reader *reader;

	build__small(&build);
	build__write(build__file(&build, "metadata", path), (const uint8_t *)other, strlen(other));
	reader = open_capture(&build);
	assert_true(reader__env(reader)->uuid_differs);
	assert_int_equal(stream(reader, 1)->nr_packets, 3);
	reader__close(reader);
	build__remove(&build);
}

/* Each byte of the metadata, by turns: it opens, and the packets are there. */
static void test_damaged_metadata(void **state)
{
	char path[128];
	struct build build;
	uint8_t *bytes;
	size_t len;

	build__small(&build);
	len = build__read(build__file(&build, "metadata", path), &bytes);
	for (size_t i = 0; i < len; i++) {
		uint8_t was = bytes[i];
		struct reader *reader;

		bytes[i] ^= 0x22;
		build__write(path, bytes, len);
		reader = open_capture(&build);
		assert_int_equal(stream(reader, 0)->nr_packets, 3);
		reader__close(reader);
		bytes[i] = was;
	}
	free(bytes);
	build__remove(&build);
}

static void test_no_capture(void **state)
{
	static const char *const others[] = {".cpu0.000001", "cpu00.000001",  "cpu0.1",
					     "cpu.000001",   "tasks.0000001", "weir.00000x"};
	char path[128], err[256] = "";
	struct build build;

	build__init(&build);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		build__write(build__file(&build, others[i], path), (const uint8_t *)"x", 1);
	assert_null(reader__open(build.path, err, sizeof(err)));
	assert_non_null(strstr(err, "no capture"));
	assert_null(reader__open("/nowhere", err, sizeof(err)));
	assert_non_null(strstr(err, "No such file"));
	assert_null(reader__open("/dev/null", err, sizeof(err)));
	build__remove(&build);
}

static void test_parts_follow_each_other(void **state)
{
	static struct build_packet packet;
	char path[128];
	struct build build;
	struct reader *reader;

	build__init(&build);
	for (build.part = 1; build.part <= 12; build.part++) {
		build__empty(&build, CAPTURE_CPU, 0, 1000 * build.part);
		build__begin(&build, &packet, CAPTURE_CPU, 0);
		build__call(&packet, 1000 * build.part + 5, build.part, 9);
		build__end(&build, &packet, 1000 * build.part + 10, 0);
	}
	reader = open_capture(&build);
	assert_int_equal(nr_flaws(reader), 0);
	assert_int_equal(stream(reader, 0)->nr_files, 12);
	assert_int_equal(stream(reader, 0)->nr_packets, 24);
	assert_int_equal(stream(reader, 0)->packets[23].number, 23);
	reader__close(reader);
	/* The oldest may be missing, and that is no flaw; another one is. */
	unlink(build__file(&build, "cpu0.000001", path));
	reader = open_capture(&build);
	assert_int_equal(nr_flaws(reader), 0);
	reader__close(reader);
	unlink(build__file(&build, "cpu0.000007", path));
	reader = open_capture(&build);
	assert_int_equal(only_flaw(reader)->kind, READER_MISSING);
	assert_int_equal(only_flaw(reader)->packets, 2);
	reader__close(reader);
	build__remove(&build);
}

/* The notes know which files there were. */
static void test_files_that_are_gone(void **state)
{
	static const struct {
		const char *name;
		enum capture_stream kind;
		uint64_t packets;
	} gone[] = {{"cpu0.000001", CAPTURE_CPU, 3},
		    {"cpu1.000001", CAPTURE_CPU, 3},
		    {"tasks.000001", CAPTURE_TASKS, 2}};
	char path[128];
	struct build build;

	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		const struct reader_flaw *flaw;
		struct reader *reader;

		build__small(&build);
		assert_int_equal(unlink(build__file(&build, gone[i].name, path)), 0);
		reader = open_capture(&build);
		flaw = only_flaw(reader);
		assert_int_equal(flaw->kind, READER_GONE);
		assert_int_equal(flaw->packets, gone[i].packets);
		assert_int_equal(stream(reader, flaw->stream)->kind, gone[i].kind);
		assert_int_equal(stream(reader, flaw->stream)->nr_packets, 0);
		assert_string_equal(stream(reader, flaw->stream)->files[0].name, gone[i].name);
		reader__close(reader);
		build__remove(&build);
	}
}

/* Part by part, each with its notes; CPU 0 has a packet in every part, CPU 1 in the third alone. */
static void build_parts(struct build *build, uint32_t parts)
{
	static struct build_packet packet;

	build__init(build);
	for (build->part = 1; build->part <= parts; build->part++) {
		uint64_t at_ns = 1000 * build->part, number = 2 * (build->part - 1);

		for (uint32_t cpu = 0; cpu < 2; cpu++) {
			if (cpu == 1 && build->part != 3)
				continue;
			build__empty(build, CAPTURE_CPU, cpu, at_ns);
			build__begin(build, &packet, CAPTURE_CPU, cpu);
			build__call(&packet, at_ns + 5, build->part, 9);
			build__end(build, &packet, at_ns + 10, 0);
		}
		build__empty(build, CAPTURE_NOTES, 0, at_ns);
		build__begin(build, &packet, CAPTURE_NOTES, 0);
		build__told_file(&packet, at_ns + 10, CAPTURE_CPU, 0, number, number + 2);
		if (build->part == 3)
			build__told_file(&packet, at_ns + 10, CAPTURE_CPU, 1, 0, 2);
		build__end(build, &packet, at_ns + 10, 0);
	}
}

/* Of several parts: each file that is gone is named, once, and what its packets cost lies between others. */
static void test_parts_that_miss_files(void **state)
{
	char path[128];
	struct build build;
	struct reader *reader;
	const struct reader_flaw *flaws;
	size_t count;

	build_parts(&build, 5);
	reader = open_capture(&build);
	assert_int_equal(nr_flaws(reader), 0);
	reader__close(reader);
	/* The oldest part was given up: nothing tells of it, and nothing is missed. */
	unlink(build__file(&build, "cpu0.000001", path));
	unlink(build__file(&build, "weir.000001", path));
	reader = open_capture(&build);
	assert_int_equal(nr_flaws(reader), 0);
	reader__close(reader);
	/* The first that is left, two behind each other, and all that a CPU had. */
	unlink(build__file(&build, "cpu0.000002", path));
	unlink(build__file(&build, "cpu0.000004", path));
	unlink(build__file(&build, "cpu0.000005", path));
	unlink(build__file(&build, "cpu1.000003", path));
	reader = open_capture(&build);
	flaws = reader__flaws(reader, &count);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++) {
		static const char *const names[] = {"cpu0.000002", "cpu0.000004", "cpu0.000005",
						    "cpu1.000003"};

		assert_int_equal(flaws[i].kind, READER_GONE);
		assert_int_equal(flaws[i].packets, 2);
		assert_string_equal(stream(reader, flaws[i].stream)->files[flaws[i].file].name,
				    names[i]);
	}
	assert_int_equal(flaws[0].to_ns, 3000);
	assert_int_equal(flaws[1].from_ns, 3010);
	assert_int_equal(flaws[1].to_ns, 0);
	reader__close(reader);
	build__remove(&build);
}

/* Files of parts that never were, by the thousand: what they cost goes by their number. */
static void test_notes_that_lie(void **state)
{
	static struct build_packet packet;
	struct build build;
	struct reader *reader;
	size_t count;

	build__init(&build);
	build__empty(&build, CAPTURE_NOTES, 0, 1000);
	for (uint32_t i = 0; i < 100; i++) {
		build__begin(&build, &packet, CAPTURE_NOTES, 0);
		for (uint32_t j = 0; j < 1000; j++)
			build__told_file(&packet, 1000 + i, (enum capture_stream)(j % 5),
					 (j * 7919 + i) % 20000, j, j % 3 ? UINT64_MAX : 1);
		build__end(&build, &packet, 1001 + i, 0);
	}
	reader = open_capture(&build);
	reader__streams(reader, &count);
	assert_true(count > 1000 && count < 20002);
	assert_int_equal(nr_flaws(reader), count - 1);
	reader__close(reader);
	build__remove(&build);
}

/* Each would have a MiB looked at that is no packet: what they cost is bounded, and they are one flaw. */
static void test_heads_that_lie(void **state)
{
	enum { HEADS = 100000 };
	struct capture_packet *heads = calloc(1 + HEADS, sizeof(*heads));
	struct reader *reader;
	struct build build;
	uint8_t *bytes;
	char path[128];

	build__init(&build);
	build__empty(&build, CAPTURE_CPU, 0, 1000);
	assert_int_equal(build__read(build__file(&build, "cpu0.000001", path), &bytes),
			 sizeof(*heads));
	assert_non_null(heads);
	for (size_t i = 0; i <= HEADS; i++) {
		memcpy(&heads[i], bytes, sizeof(heads[i]));
		if (i)
			heads[i].content_bits = heads[i].packet_bits = 8 * CAPTURE_PACKET_BYTES;
	}
	build__write(path, (const uint8_t *)heads, (1 + HEADS) * sizeof(*heads));
	reader = open_capture(&build);
	assert_int_equal(only_flaw(reader)->kind, READER_DAMAGED);
	assert_int_equal(only_flaw(reader)->bytes, HEADS * sizeof(*heads));
	reader__close(reader);
	free(heads);
	free(bytes);
	build__remove(&build);
}

/* A byte each, and no table that says where they are: the file is read once for it. */
static void test_short_frames(void **state)
{
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, 'x'};
	enum { FRAMES = 200000 };
	uint8_t *bytes = malloc(FRAMES * sizeof(frame)), last = 0;
	struct store store;
	struct build build;
	char path[128];

	build__init(&build);
	assert_non_null(bytes);
	for (size_t i = 0; i < FRAMES; i++)
		memcpy(bytes + i * sizeof(frame), frame, sizeof(frame));
	build__write(build__file(&build, "frames", path), bytes, FRAMES * sizeof(frame));
	assert_int_equal(store__open(&store, AT_FDCWD, path, true), 0);
	assert_int_equal(store.size, FRAMES);
	assert_int_equal(store__read(&store, &last, 1, FRAMES - 1), 1);
	assert_int_equal(last, 'x');
	store__close(&store);
	free(bytes);
	build__remove(&build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_all),
		cmocka_unit_test(test_reads_packets_back),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_torn_at_every_byte),
		cmocka_unit_test(test_zeros_at_the_end),
		cmocka_unit_test(test_reads_behind_damage),
		cmocka_unit_test(test_packets_that_are_gone),
		cmocka_unit_test(test_packet_that_comes_twice),
		cmocka_unit_test(test_without_metadata),
		cmocka_unit_test(test_metadata_of_another_capture),
		cmocka_unit_test(test_damaged_metadata),
		cmocka_unit_test(test_no_capture),
		cmocka_unit_test(test_parts_follow_each_other),
		cmocka_unit_test(test_files_that_are_gone),
		cmocka_unit_test(test_parts_that_miss_files),
		cmocka_unit_test(test_notes_that_lie),
		cmocka_unit_test(test_heads_that_lie),
		cmocka_unit_test(test_short_frames),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
