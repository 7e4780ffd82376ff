/* SPDX-License-Identifier: BSD-2-Clause */
#include "../core/unit.h"

#include "build.h"

#include <weir/event.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t uuid[16] = {0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static const char metadata[] =
	"/* CTF 1.8 */\n"
	"trace {\n"
	"\tmajor = 1; minor = 8; uuid = \"a0010203-0405-0607-0809-0a0b0c0d0e0f\"; byte_order = le;\n"
	"};\n"
	"env {\n"
	"\thostname = \"a \\\"host\\\"\";\n"
	"\tdomain = \"kernel\";\n"
	"\tsysname = \"Linux\";\n"
	"\tkernel_release = \"6.1\";\n"
	"\tlayout = 1;\n"
	"\tweir_version = \"9.8\";\n"
	"\tcommand = \"weir record; -o \\\\x80\\\\\\\\x\";\n"
	"\tcommand_pid = 77;\n"
	"\tnr_cpus = 2;\n"
	"\tselected_types = 4294967295;\n"
	"};\n"
	"clock {\n"
	"\tname = \"monotonic\"; uuid = \"00000000-0000-0000-0000-0000000000ff\";\n"
	"\tfreq = 1000000000; offset_s = 1700000000; offset = 0; precision = 1; absolute = false;\n"
	"};\n";

const char *build__file(const struct build *build, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", build->path, name);
	return path;
}

void build__write(const char *path, const uint8_t *bytes, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

size_t build__read(const char *path, uint8_t **bytes)
{
	FILE *file = fopen(path, "r");
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	*bytes = malloc((size_t)st.st_size + 1);
	assert_int_equal(fread(*bytes, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	return (size_t)st.st_size;
}

void build__init(struct build *build)
{
	char path[128];

	memset(build, 0, sizeof(*build));
	strcpy(build->path, "/tmp/weir-capture-XXXXXX");
	assert_non_null(mkdtemp(build->path));
	build->part = 1;
	build__write(build__file(build, "metadata", path), (const uint8_t *)metadata,
		     strlen(metadata));
}

void build__remove(struct build *build)
{
	DIR *dir = opendir(build->path);
	struct dirent *item;
	char path[512];

	assert_non_null(dir);
	while ((item = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", build->path, item->d_name);
		if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
			assert_int_equal(remove(path), 0);
	}
	closedir(dir);
	assert_int_equal(rmdir(build->path), 0);
}

void build__begin(struct build *build, struct build_packet *packet, enum capture_stream stream,
		  uint32_t instance)
{
	packet->len = sizeof(packet->head);
	packet->head = (struct capture_packet){
		.magic = 0xC1FC1FC1,
		.stream = stream,
		.instance = instance,
		.begin_ns = build->stream[stream][instance].end_ns,
		.cpu = stream == CAPTURE_CPU ? instance : UINT32_MAX,
		.life_seq = build->stream[stream][instance].life_seq,
		.cpu_seq = build->stream[stream][instance].cpu_seq,
	};
	memcpy(packet->head.uuid, uuid, sizeof(uuid));
}

static void pad(struct build_packet *packet)
{
	while (packet->len % 8)
		packet->bytes[packet->len++] = 0;
}

void build__record(struct build_packet *packet, uint64_t stamp_ns, uint16_t type, uint32_t seq,
		   const void *payload, size_t len)
{
	const struct weir_record head = {.stamp = stamp_ns, .type = type, .seq = seq};

	pad(packet);
	assert_true(packet->len + sizeof(head) + len < sizeof(packet->bytes));
	memcpy(packet->bytes + packet->len, &head, sizeof(head));
	memcpy(packet->bytes + packet->len + sizeof(head), payload, len);
	packet->len += sizeof(head) + len;
	packet->head.records++;
	if ((type & 0x3fff) <= WEIR_T_LIFE_MAX)
		packet->head.life_seq = seq;
	else if (!(type & 0x1000))
		packet->head.cpu_seq = seq;
}

/* Bit by bit: slow, and nothing to get wrong. */
static uint32_t crc32c(const uint8_t *bytes, size_t len)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

static void append(const struct build *build, const struct build_packet *packet)
{
	static const char *const names[] = {"cpu", "tasks", "weir"};
	char path[128], number[16] = "";
	FILE *file;

	if (packet->head.stream == CAPTURE_CPU)
		snprintf(number, sizeof(number), "%u", (unsigned int)packet->head.instance);
	snprintf(path, sizeof(path), "%s/%s%s.%06u", build->path, names[packet->head.stream],
		 number, build->part);
	file = fopen(path, "a");
	assert_non_null(file);
	assert_int_equal(fwrite(packet->bytes, 1, packet->len, file), packet->len);
	assert_int_equal(fclose(file), 0);
}

void build__end(struct build *build, struct build_packet *packet, uint64_t end_ns,
		uint64_t discarded)
{
	uint32_t stream = packet->head.stream, instance = (uint32_t)packet->head.instance;
	size_t content = packet->len;

	pad(packet);
	build->stream[stream][instance].discarded += discarded;
	packet->head.end_ns = end_ns;
	packet->head.content_bits = 8 * content;
	packet->head.packet_bits = 8 * packet->len;
	packet->head.discarded = build->stream[stream][instance].discarded;
	packet->head.number = build->stream[stream][instance].number++;
	packet->head.part = build->part;
	packet->head.checksum = 0;
	memcpy(packet->bytes, &packet->head, sizeof(packet->head));
	packet->head.checksum = crc32c(packet->bytes, content);
	memcpy(packet->bytes, &packet->head, sizeof(packet->head));
	append(build, packet);
	build->stream[stream][instance].end_ns = end_ns;
	build->stream[stream][instance].life_seq = packet->head.life_seq;
	build->stream[stream][instance].cpu_seq = packet->head.cpu_seq;
}

void build__empty(struct build *build, enum capture_stream stream, uint32_t instance,
		  uint64_t at_ns)
{
	static struct build_packet packet;

	build->stream[stream][instance].end_ns = at_ns;
	build__begin(build, &packet, stream, instance);
	build__end(build, &packet, at_ns, 0);
}

void build__call(struct build_packet *packet, uint64_t stamp_ns, uint32_t seq, uint32_t pid)
{
	const struct weir_sys_exit call = {.id = {pid, pid}, .nr = 1, .ret = (int64_t)seq};

	build__record(packet, stamp_ns, WEIR_T_SYS_EXIT, seq, &call, sizeof(call));
}

void build__fork(struct build_packet *packet, uint64_t stamp_ns, uint32_t seq, uint32_t child)
{
	const struct weir_fork fork = {
		.parent = {1, 1},
		.child = {child, child},
		.child_start_ns = stamp_ns,
		.comm = "forked",
	};

	build__record(packet, stamp_ns, WEIR_T_FORK, seq, &fork, sizeof(fork));
}

void build__gap(struct build_packet *packet, uint64_t stamp_ns, const struct capture_gap *gap)
{
	build__record(packet, stamp_ns, CAPTURE_T_GAP, 0, gap, sizeof(*gap));
}

void build__told_file(struct build_packet *packet, uint64_t stamp_ns, enum capture_stream stream,
		      uint32_t instance, uint64_t number, uint64_t end)
{
	const struct capture_file file = {
		.number = number, .end = end, .stream = stream, .instance = instance};

	build__record(packet, stamp_ns, CAPTURE_T_FILE, 0, &file, sizeof(file));
}

/* ---- the small one ---------------------------------------------------------------------------- */

static void late_call(struct build_packet *packet, uint64_t place_ns, uint64_t true_ns,
		      uint32_t seq)
{
	struct {
		struct capture_late late;
		struct weir_sys_exit call;
	} both = {
		.late = {.true_stamp = true_ns, .mark = WEIR_MARK_LATE},
		.call = {.id = {50, 50}, .nr = 1},
	};

	build__record(packet, place_ns, WEIR_T_SYS_EXIT | CAPTURE_LATE, seq, &both, sizeof(both));
}

/* Calls at even times on CPU 0, at odd ones on CPU 1; a fork each; ten records in a packet. */
static void small_cpu(struct build *build, uint32_t cpu)
{
	static struct build_packet packet;
	uint32_t seq = 0;

	build__empty(build, CAPTURE_CPU, cpu, 1000);
	build__begin(build, &packet, CAPTURE_CPU, cpu);
	build__fork(&packet, 1010 + cpu, 0, 60 + cpu);
	for (int i = 0; i < 5; i++, seq++)
		build__call(&packet, 2000 + 100 * seq + cpu, seq, 60 + cpu);
	build__end(build, &packet, 2900, 0);
	build__begin(build, &packet, CAPTURE_CPU, cpu);
	if (cpu == 1) {
		const struct capture_gap gap = {
			.from_ns = 2905,
			.to_ns = 2950,
			.lost = 3,
			.seq = seq,
			.seq_end = seq + 3,
			.cause = WEIR_LOST_RESERVE_FAILED,
			.ring = CAPTURE_RING_CPU,
		};

		build__gap(&packet, 2950, &gap);
		seq += 3;
	}
	for (int i = 0; i < 6; i++, seq++)
		build__call(&packet, 3000 + 100 * seq + cpu, seq, 60 + cpu);
	late_call(&packet, 3000 + 100 * (seq - 1) + cpu, 2500, seq);
	build__end(build, &packet, 4500, cpu == 1 ? BUILD_LOST : 0);
}

static void small_account(struct build_packet *packet, uint32_t cpu, uint32_t ring)
{
	struct capture_account account = {
		.cpu = (int32_t)cpu,
		.ring = ring,
		.delivered = ring == CAPTURE_RING_LIFE ? 1 : 12,
		.late = ring == CAPTURE_RING_CPU,
	};

	snprintf(account.name, sizeof(account.name), "%s%u",
		 ring == CAPTURE_RING_LIFE ? "life" : "cpu", cpu);
	if (ring == CAPTURE_RING_CPU && cpu == 0)
		account.filtered = BUILD_FILTERED;
	if (ring == CAPTURE_RING_CPU && cpu == 1)
		account.lost[WEIR_LOST_RESERVE_FAILED] = BUILD_LOST;
	account.produced = account.delivered + account.filtered +
			   account.lost[WEIR_LOST_RESERVE_FAILED];
	build__record(packet, 5000, CAPTURE_T_ACCOUNT, 0, &account, sizeof(account));
}

static void small_notes(struct build *build)
{
	static struct build_packet packet;
	const struct capture_part part = {1000, BUILD_WALL_OFFSET_NS, 1, 2};
	const struct capture_clock_step step = {.old_offset_ns = BUILD_WALL_OFFSET_NS,
						.new_offset_ns = BUILD_WALL_OFFSET_NS + 5000000000};
	const struct capture_mark mark = {.watermark_ns = 2900}, last = {4500, 0, 1};

	build__empty(build, CAPTURE_NOTES, 0, 1000);
	build__begin(build, &packet, CAPTURE_NOTES, 0);
	build__record(&packet, 1000, CAPTURE_T_PART, 0, &part, sizeof(part));
	build__record(&packet, 2900, CAPTURE_T_MARK, 0, &mark, sizeof(mark));
	build__end(build, &packet, 2900, 0);
	build__begin(build, &packet, CAPTURE_NOTES, 0);
	build__record(&packet, 3050, CAPTURE_T_CLOCK_STEP, 0, &step, sizeof(step));
	for (uint32_t cpu = 0; cpu < 2; cpu++)
		for (uint32_t ring = 0; ring < 2; ring++)
			small_account(&packet, cpu, ring);
	build__told_file(&packet, 5000, CAPTURE_CPU, 0, 0, 3);
	build__told_file(&packet, 5000, CAPTURE_CPU, 1, 0, 3);
	build__told_file(&packet, 5000, CAPTURE_TASKS, 0, 0, 2);
	build__record(&packet, 5000, CAPTURE_T_MARK, 0, &last, sizeof(last));
	build__end(build, &packet, 5000, 0);
}

static void small_tasks(struct build *build)
{
	static struct build_packet packet;
	struct {
		struct capture_task task;
		char text[12];
	} one = {
		.task = {.seed = {.id = {1, 1}, .start_ns = 5, .comm = "init"},
			 .exe_len = 10,
			 .cgroups_len = 2},
		.text = "/sbin/init/a",
	};

	build__empty(build, CAPTURE_TASKS, 0, 1000);
	build__begin(build, &packet, CAPTURE_TASKS, 0);
	build__record(&packet, 1000, CAPTURE_T_TASK, 0, &one, sizeof(one.task) + 12);
	build__end(build, &packet, 1000, 0);
}

void build__small(struct build *build)
{
	build__init(build);
	small_cpu(build, 0);
	small_cpu(build, 1);
	small_notes(build);
	small_tasks(build);
}
