// SPDX-License-Identifier: BSD-2-Clause
/*
 * fuzz_capture.c - any bytes as the files of a capture (G8).
 *
 * An input is a row of steps { u8 file; u8 how; u16 len; u8 bytes[len] }: the bytes are put at the end of
 * one of four files, as they are, or as the records of a packet whose head is good. Then all of it is
 * read: index, replay, survey.
 *
 * Promises checked: nothing steps back unless it is marked (G1), the watermark never goes back (G2), the
 * account closes (G4), every event's bytes can be read and decoded, and all of it ends.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/crc.h"
#include "capture/feed.h"
#include "capture/survey.h"
#include "fuzz.h"
#include "probes/probes.h"

#define FILES 4

static const struct {
	const char *name;
	enum capture_stream stream;
	uint32_t instance;
} files[FILES] = {
	{"cpu0.000001", CAPTURE_CPU, 0},
	{"cpu1.000001", CAPTURE_CPU, 1},
	{"tasks.000001", CAPTURE_TASKS, 0},
	{"weir.000001", CAPTURE_NOTES, 0},
};

static char folder[64];
static uint64_t last_ns, watermark_ns, end_ns[FILES], number[FILES];
static volatile uint8_t sum;

static void touch(const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		sum += bytes[i];
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct weir_decoded decoded;

	touch(event->data, event->len);
	if (event->kind == WEIR_KIND_RECORD)
		probes__decode(event, &decoded);
	if (event->mark)
		return 0;
	if (event->stamp_ns < last_ns || (watermark_ns && event->stamp_ns <= watermark_ns))
		abort();
	last_ns = event->stamp_ns;
	return 0;
}

static void on_watermark(void *ctx, uint64_t w_ns, enum weir_order order)
{
	if (w_ns < watermark_ns)
		abort();
	watermark_ns = w_ns;
}

static void on_task(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	touch(seed, sizeof(*seed));
	touch(exe, exe ? strlen(exe) : 0);
	touch(cgroups, cgroups ? strlen(cgroups) : 0);
}

/* A head that fits what was written before; its time is what the first record needs. */
static size_t make_packet(int file, uint8_t how, const uint8_t *bytes, size_t len, uint8_t *packet)
{
	struct capture_packet head = {
		.magic = CAPTURE_MAGIC,
		.stream = files[file].stream,
		.instance = files[file].instance,
		.begin_ns = end_ns[file],
		.end_ns = end_ns[file] + (uint64_t)how * 256,
		.content_bits = (sizeof(head) + len) * 8,
		.packet_bits = (sizeof(head) + (len + 7) / 8 * 8) * 8,
		.number = number[file]++,
		.part = 1,
		.records = how % 8,
	};

	memcpy(packet, &head, sizeof(head));
	memcpy(packet + sizeof(head), bytes, len);
	memset(packet + sizeof(head) + len, 0, 8);
	head.checksum = crc__32c(0, packet, sizeof(head) + len);
	memcpy(packet, &head, sizeof(head));
	end_ns[file] = head.end_ns;
	return head.packet_bits / 8;
}

static void append(int dir, int file, const uint8_t *bytes, size_t len)
{
	int fd = openat(dir, files[file].name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

static size_t step(int dir, const uint8_t *bytes, size_t size)
{
	static uint8_t packet[sizeof(struct capture_packet) + 65536 + 8];
	int file = bytes[0] % FILES;
	uint8_t how = bytes[1];
	uint16_t len;

	memcpy(&len, bytes + 2, 2);
	bytes += 4;
	size -= 4;
	if (len > size)
		len = (uint16_t)size;
	if (bytes[-4] & 0x80)
		append(dir, file, bytes, len);
	else
		append(dir, file, packet, make_packet(file, how, bytes, len, packet));
	return 4u + len;
}

static void replay(struct reader *reader)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .on_watermark = on_watermark};
	const struct feed_opts all = {0, UINT64_MAX};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	struct weir_stream *stream = weir_stream__new(&opts);
	struct feed *feed = stream ? feed__new(reader, stream, &all) : NULL;

	if (!feed)
		abort();
	feed__tasks(feed, on_task, NULL);
	while (feed__step(feed) > 0)
		;
	if (weir_stream__ledger(stream, &ledger) || weir_account__difference(&ledger.total))
		abort();
	feed__free(feed);
	weir_stream__free(stream);
}

static void read_all(void)
{
	struct survey survey;
	char err[256];
	struct reader *reader = reader__open(folder, err, sizeof(err));

	if (!reader)
		return;
	replay(reader);
	if (survey__take(reader, &survey, NULL, NULL))
		abort();
	survey__free(&survey);
	reader__close(reader);
}

static void remove_folder(void)
{
	rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int dir;

	if (!folder[0]) {
		strcpy(folder,
		       access("/dev/shm", W_OK) ? "/tmp/fuzz-XXXXXX" : "/dev/shm/fuzz-XXXXXX");
		if (!mkdtemp(folder) || atexit(remove_folder))
			abort();
	}
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	last_ns = watermark_ns = 0;
	memset(end_ns, 0, sizeof(end_ns));
	memset(number, 0, sizeof(number));
	while (size >= 4) {
		size_t taken = step(dir, bytes, size);

		bytes += taken;
		size -= taken;
	}
	read_all();
	for (int file = 0; file < FILES; file++)
		unlinkat(dir, files[file].name, 0);
	close(dir);
	return 0;
}
