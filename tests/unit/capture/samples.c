// SPDX-License-Identifier: BSD-2-Clause
/*
 * samples - a capture with every class of event, late ones too, in three parts.
 *
 *	samples DIR	an empty folder; prints how many records of the probes it wrote
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "../probes/records.h"
#include "capture/writer.h"

#define PARTS 3

static struct writer *writer;
static uint64_t stamp_ns = 1000000000000, seq, written;

static void on_lost(void *ctx, uint32_t source, uint64_t records)
{
	abort();
}

static void write_samples(int cpu, uint8_t mark)
{
	for (size_t i = 0; i < sample_count; i++) {
		struct record sample = sample__get(i);
		const struct weir_event event = {
			/* Every other stamp is that of the record before. */
			.stamp_ns = stamp_ns += i % 2 * 1000,
			.seq = seq++,
			.data = sample.bytes,
			.len = sample.len,
			.cpu = cpu,
			.type = sample.type,
			.mark = mark,
		};

		if (writer__record(writer, &event))
			abort();
		written++;
	}
}

static void write_notices(void)
{
	const struct weir_gap gap = {.from_ns = stamp_ns, .to_ns = stamp_ns + 5, .lost = 3};
	const struct weir_clock_step step = {.old_offset_ns = -5, .new_offset_ns = 1LL << 60};
	struct weir_event event = {
		.stamp_ns = stamp_ns += 5,
		.kind = WEIR_KIND_GAP,
		.data = &gap,
		.len = sizeof(gap),
	};

	writer__notice(writer, &event, CAPTURE_RING_LIFE);
	event.cpu = -1;
	writer__notice(writer, &event, CAPTURE_RING_NONE);
	event.kind = WEIR_KIND_CLOCK_STEP;
	event.data = &step;
	event.len = sizeof(step);
	writer__notice(writer, &event, CAPTURE_RING_NONE);
}

/* More than a packet of them. */
static void write_tasks(void)
{
	struct weir_seed seed = {.id = {1, 1}, .comm = "\xff\xfe\"\\\n"};

	for (int i = 0; i < 20000; i++)
		writer__task(writer, &seed, "/bin/\x80", "0::/a\n4:memory:/b\n");
}

static void write_part(bool last)
{
	const struct weir_source_info info = {
		.name = "life0",
		.account = {.produced = 3, .lost = {3}},
	};

	writer__begin_part(writer, 1700000000000000000);
	write_tasks();
	stamp_ns += 1000;
	write_samples(0, 0);
	write_notices();
	write_samples(70, WEIR_MARK_LATE);
	writer__flush(writer, stamp_ns, WEIR_ORDER_EXACT);
	stamp_ns += 1000;
	write_samples(0, 0);
	writer__account(writer, &info, CAPTURE_RING_LIFE);
	writer__end_part(writer, stamp_ns, WEIR_ORDER_EXACT, last);
	/* At the same time again, as when SIGHUP comes twice. */
	writer__begin_part(writer, 0);
	writer__end_part(writer, stamp_ns, WEIR_ORDER_EXACT, last);
}

int main(int argc, char **argv)
{
	const struct metadata metadata = {
		.boot_id = "11111111-2222-3333-4444-555555555555",
		.hostname = "host",
		.sysname = "Linux",
		.release = "6.1",
		.version = "0.1.0",
		.command = "weir record 'a \"b\" \\ \xff \n'",
		.nr_cpus = 71,
		.selected_types = ~0u,
		.wall_offset_ns = 1700000000000000001,
	};
	const struct writer_opts opts = {
		.dir_fd = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1,
		.metadata = &metadata,
		.start_ns = stamp_ns,
		.lost = on_lost,
	};

	writer = writer__new(&opts);
	if (!writer)
		return 1;
	for (int i = 0; i < PARTS; i++)
		write_part(i == PARTS - 1);
	writer__free(writer);
	printf("%llu\n", (unsigned long long)written);
	return 0;
}
