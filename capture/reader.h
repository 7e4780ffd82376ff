/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - a capture's folder -> its streams, each an index of packets, and what is wrong with them.
 *
 * The index is made from the packets' heads alone: nothing else is read before it is asked for, and
 * memory goes by the number of packets (48 bytes for up to 1 MiB). Whatever the files hold, it opens
 * what it can: torn tails, zeros, flipped bits and files that are gone become flaws with a place, and
 * what stands behind them is read (G8). Prints nothing, starts no thread, changes nothing.
 */
#ifndef WEIR_CAPTURE_READER_H
#define WEIR_CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/layout.h"

struct reader;

/* What the metadata tells; without it, has_metadata is false, and what can be known otherwise is. */
struct reader_env {
	bool has_metadata;
	bool uuid_differs; /* the metadata has another one than the packets */
	uint8_t uuid[16];  /* the packets' */
	uint32_t layout;
	uint32_t nr_cpus;
	uint32_t selected_types; /* bit 1 << enum weir_type */
	int64_t wall_offset_ns;	 /* CLOCK_REALTIME - CLOCK_MONOTONIC at the start */
	char boot_id[40], hostname[72], sysname[72], release[72], version[40];
	const char *command;  /* NULL: not told */
	uint32_t command_pid; /* of the COMMAND that was recorded; 0: none */
};

struct reader_packet {
	uint64_t begin_ns, end_ns;
	uint64_t offset; /* in its file, of plain bytes */
	uint64_t number;
	uint32_t bytes;
	uint32_t file; /* of the stream's */
	uint32_t records;
	bool may_have_life; /* false: none of them drives the process table */
};

struct reader_file {
	uint32_t part;
	bool compressed;
	char name[32]; /* beside the metadata, or below .zstd */
	uint64_t size; /* of the plain bytes */
	uint64_t number,
		end; /* of its packets, [number, end), as the notes tell it; end 0: they don't */
};

struct reader_stream {
	enum capture_stream kind;
	uint32_t instance;
	struct reader_file *files; /* by part */
	size_t nr_files;
	struct reader_packet *packets; /* as they stand in the files */
	size_t nr_packets;
	uint64_t records, bytes; /* of these packets */
	uint64_t discarded;	 /* as the last one has it */
	uint64_t life_seq;	 /* likewise */
};

enum reader_flaw_kind {
	READER_TORN,	   /* the file ends inside a packet */
	READER_DAMAGED,	   /* bytes that are no packet */
	READER_MISSING,	   /* packets whose numbers are nowhere */
	READER_REPEATED,   /* a packet with a number that was there before: left out */
	READER_DISORDER,   /* a packet that begins before the one before it has ended */
	READER_UNREADABLE, /* the file, as a whole */
	READER_GONE,	   /* likewise: the notes tell of it, and it is not there */
};

/* Something wrong, just before the packet `before` of its stream (nr_packets: at its end). */
struct reader_flaw {
	enum reader_flaw_kind kind;
	uint32_t stream, file;
	size_t before;
	uint64_t offset, bytes;	 /* of plain bytes in the file */
	uint64_t packets;	 /* whose numbers are missing */
	uint64_t from_ns, to_ns; /* what is lost by it was in (from, to]; to_ns 0: nobody knows */
	uint64_t records;	 /* how many were lost; UINT64_MAX: unknown */
	/* Where they are known: what the last number was of each ring, and one more. */
	uint64_t life_end, cpu_end;
};

#define READER_UNKNOWN UINT64_MAX

/* NULL, and a sentence in err: it is no capture, can't be read, or there is no memory. */
struct reader *reader__open(const char *path, char *err, size_t err_len);
void reader__close(struct reader *reader);

const struct reader_env *reader__env(const struct reader *reader);
/* By kind, then instance. */
const struct reader_stream *reader__streams(const struct reader *reader, size_t *count);
/* From the first packet of all streams to the last; where there is none, from 0 to 0. */
void reader__span(const struct reader *reader, uint64_t *begin_ns, uint64_t *end_ns);
const struct reader_flaw *reader__flaws(const struct reader *reader, size_t *count);
int reader__dir(const struct reader *reader); /* the folder's descriptor */
/* Does a weir write it just now? */
bool reader__is_recording(const struct reader *reader);

/*
 * Read a packet into buf, which has room for CAPTURE_PACKET_BYTES and is aligned to 8. 0: it is whole
 * and what was written; -EBADMSG: it is not; else -errno of the file. Streams are read independently of
 * each other, each best in order.
 */
int reader__packet(struct reader *reader, size_t stream, size_t packet, void *buf);

/* Plain bytes of a file, whatever they are. 0 or -errno; -ENODATA: there are not so many. */
int reader__bytes(struct reader *reader, size_t stream, size_t file, uint64_t offset, void *buf,
		  size_t len);

#endif /* WEIR_CAPTURE_READER_H */
