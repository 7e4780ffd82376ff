// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/classes.h"
#include "capture/crc.h"
#include "walk.h"

const struct metadata plain_metadata = {
	.boot_id = "11111111-2222-3333-4444-555555555555",
	.hostname = "host",
	.sysname = "Linux",
	.release = "6.1",
	.version = "0.1.0",
	.command = "weir record -o capture",
	.nr_cpus = 2,
	.selected_types = ~0u,
};

void folder__make(struct folder *folder)
{
	snprintf(folder->path, sizeof(folder->path), "/tmp/weir-capture-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY);
	assert_true(folder->fd >= 0);
}

static void remove_all(int dir_fd)
{
	DIR *dir = fdopendir(dup(dir_fd));
	struct dirent *entry;

	assert_non_null(dir);
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		const char *name = entry->d_name;
		int fd;

		if (!strcmp(name, ".") || !strcmp(name, "..") || !unlinkat(dir_fd, name, 0))
			continue;
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY);
		assert_true(fd >= 0);
		remove_all(fd);
		close(fd);
		assert_int_equal(unlinkat(dir_fd, name, AT_REMOVEDIR), 0);
	}
	closedir(dir);
}

void folder__remove(struct folder *folder)
{
	remove_all(folder->fd);
	close(folder->fd);
	assert_int_equal(rmdir(folder->path), 0);
}

static char *read_file(const struct folder *folder, const char *name, size_t *len)
{
	int fd = openat(folder->fd, name, O_RDONLY);
	struct stat st;
	char *bytes;

	if (fd < 0)
		return NULL;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	*len = (size_t)st.st_size;
	bytes = malloc(*len + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, *len), *len);
	close(fd);
	return bytes;
}

static void check_checksum(const char *bytes, const struct capture_packet *packet)
{
	size_t len = packet->content_bits / 8;
	char *copy = malloc(len);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	memset(copy + offsetof(struct capture_packet, checksum), 0, sizeof(packet->checksum));
	assert_int_equal(crc__32c(0, copy, len), packet->checksum);
	free(copy);
}

static void walk_packet(const char *bytes, const struct capture_packet *packet, walk_fn fn,
			void *ctx)
{
	size_t end = packet->content_bits / 8, at = sizeof(*packet);
	uint64_t stamp = packet->begin_ns;
	uint32_t records = 0;

	while (at < end) {
		struct walk_record record = {.packet = packet};
		int64_t size;

		assert_int_equal(at % 8, 0);
		assert_true(at + sizeof(record.head) <= end);
		memcpy(&record.head, bytes + at, sizeof(record.head));
		assert_true(record.head.stamp >= stamp && record.head.stamp <= packet->end_ns);
		stamp = record.head.stamp;
		assert_true(capture_class__in_stream(record.head.type, packet->stream));
		record.payload = bytes + at + sizeof(record.head);
		size = capture_class__size(record.head.type, record.payload,
					   end - at - sizeof(record.head));
		assert_true(size >= 0);
		record.len = (size_t)size;
		if (fn)
			fn(ctx, &record);
		records++;
		at += sizeof(record.head) + record.len;
		if (at < end)
			at = (at + 7) & ~(size_t)7;
	}
	assert_int_equal(at, end);
	assert_int_equal(records, packet->records);
}

int walk__file(const struct folder *folder, const char *name, walk_fn fn, void *ctx,
	       struct capture_packet *last)
{
	struct capture_packet packet, before = {0};
	size_t len, at = 0;
	char *bytes = read_file(folder, name, &len);
	int count = 0;

	if (!bytes)
		return -1;
	for (; at < len; at += packet.packet_bits / 8, count++, before = packet) {
		assert_true(len - at >= sizeof(packet));
		memcpy(&packet, bytes + at, sizeof(packet));
		assert_int_equal(packet.magic, CAPTURE_MAGIC);
		assert_true(packet.packet_bits / 8 <= CAPTURE_PACKET_BYTES);
		assert_true(packet.packet_bits / 8 <= len - at);
		assert_int_equal((packet.content_bits / 8 + 7) / 8 * 8, packet.packet_bits / 8);
		assert_true(packet.end_ns >= packet.begin_ns);
		if (!count)
			assert_int_equal(packet.records, 0);
		else
			assert_true(packet.begin_ns >= before.end_ns &&
				    packet.begin_ns > before.begin_ns &&
				    packet.number == before.number + 1 &&
				    packet.discarded >= before.discarded);
		check_checksum(bytes + at, &packet);
		walk_packet(bytes + at, &packet, fn, ctx);
	}
	if (last)
		*last = before;
	free(bytes);
	return count;
}

struct counting {
	unsigned int id;
	int count;
};

static void count_one(void *ctx, const struct walk_record *record)
{
	struct counting *counting = ctx;

	counting->count += record->head.type == counting->id;
}

int walk__count(const struct folder *folder, const char *name, unsigned int id)
{
	struct counting counting = {.id = id};

	walk__file(folder, name, count_one, &counting, NULL);
	return counting.count;
}
