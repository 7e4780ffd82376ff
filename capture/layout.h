/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - the bytes of a capture: what its writer and its reader share.
 *
 * docs/capture.md says what they mean. Numbers are in the machine's order, which the metadata names;
 * every struct is naturally aligned, without hidden padding, and a multiple of 8 bytes, so that a
 * packet of a mapped file can be looked at in place. What follows a class's fixed part is told by
 * capture/classes.h, which also makes the metadata.
 */
#ifndef WEIR_CAPTURE_LAYOUT_H
#define WEIR_CAPTURE_LAYOUT_H

#include <assert.h>
#include <stdint.h>

#include <weir/probes.h>
#include <weir/record.h>

#define CAPTURE_LAYOUT	     1 /* env.layout */
#define CAPTURE_MAGIC	     0xC1FC1FC1u
#define CAPTURE_PACKET_BYTES (1u << 20) /* a packet is at most this long */
#define CAPTURE_PACKET_NS    1000000000ull

/* DIR/metadata; DIR/cpu3.000001: files of one stream of one part. */
#define CAPTURE_METADATA    "metadata"
#define CAPTURE_CPU_FILE    "cpu%u.%06u"
#define CAPTURE_TASKS_FILE  "tasks.%06u"
#define CAPTURE_NOTES_FILE  "weir.%06u"
#define CAPTURE_HIDDEN	    "."	    /* in front of a file that is not whole yet: to be ignored */
#define CAPTURE_ZSTD_FOLDER ".zstd" /* closed parts, compressed: the file's name and .zst */
#define CAPTURE_ZSTD_SUFFIX ".zst"

/* capture_packet.stream */
enum capture_stream {
	CAPTURE_CPU = 0,   /* instance: the CPU */
	CAPTURE_TASKS = 1, /* instance: 0 */
	CAPTURE_NOTES = 2, /* instance: 0; what belongs to no CPU */
	CAPTURE_STREAMS
};

#define CAPTURE_NO_CPU UINT32_MAX

/* A packet: this, its records, each at the next multiple of 8, and up to 7 bytes of padding. */
struct capture_packet {
	/* packet.header */
	uint32_t magic;
	uint8_t uuid[16]; /* as in the metadata */
	uint32_t stream;  /* enum capture_stream */
	uint64_t instance;
	/* packet.context */
	uint64_t begin_ns, end_ns;
	uint64_t content_bits, packet_bits; /* both with this head, the second with the padding */
	uint64_t discarded;		    /* records lost in this stream up to its end */
	uint64_t number; /* of the packet in its stream; goes on in the next part */
	uint32_t cpu;	 /* CAPTURE_NO_CPU: none */
	uint32_t part;	 /* as in the file's name */
	/* 64-bit numbers to widen the records' seq with: within 2^31 of each in here */
	uint64_t life_seq, cpu_seq;
	uint32_t records;  /* events in the packet, of all classes */
	uint32_t checksum; /* CRC-32C of the content, this field as 0 (capture/crc.h) */
};

static_assert(sizeof(struct capture_packet) == 112, "records begin at a multiple of 8");

/*
 * The id of an event class is weir_record.type, as it is for the probes' records. A late one bears
 * this bit too; beneath it are weir's own.
 */
#define CAPTURE_LATE 0x4000

enum capture_type {
	CAPTURE_T_GAP = 0x1001,
	CAPTURE_T_CLOCK_STEP = 0x1002,
	CAPTURE_T_MARK = 0x1003,
	CAPTURE_T_PART = 0x1004,
	CAPTURE_T_ACCOUNT = 0x1005,
	CAPTURE_T_TASK = 0x1006,
	CAPTURE_T_FILE = 0x1007,
};

/*
 * Between the head and the payload of a record that came late, or ahead of the clock: its head has
 * the stamp of the place at which it was delivered.
 */
struct capture_late {
	uint64_t true_stamp;
	uint32_t mark; /* WEIR_MARK_* */
	uint32_t pad;
};

/* Which of a CPU's rings: the sources life0, cpu0. */
enum capture_ring {
	CAPTURE_RING_LIFE = 0,
	CAPTURE_RING_CPU = 1,
	CAPTURE_RING_NONE = 2, /* the loss is the whole machine's */
};

/* Payloads of weir's own classes. In a CPU's stream: */
struct capture_gap {
	uint64_t from_ns, to_ns; /* (from, to] */
	uint64_t lost;
	uint64_t seq, seq_end; /* as struct weir_event and struct weir_gap have them */
	uint32_t cause;	       /* enum weir_cause */
	uint32_t bound;	       /* enum weir_bound */
	uint32_t ring;	       /* enum capture_ring */
	uint32_t mark;	       /* WEIR_MARK_* */
};

/* In the notes: */
struct capture_clock_step {
	int64_t old_offset_ns, new_offset_ns;
	uint64_t suspended_ns;
};

/* Everything stamped up to watermark_ns stands in the files, or in a gap. */
struct capture_mark {
	uint64_t watermark_ns;
	uint32_t order;	 /* enum weir_order */
	uint32_t closed; /* 1: the capture ended here, in order */
};

/* The first event of a part. */
struct capture_part {
	uint64_t start_ns;
	int64_t wall_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC in force at start_ns */
	uint32_t part;
	uint32_t nr_cpus; /* 1 + the highest possible id */
};

/* A file of the part that ends, other than the notes' own: one that is gone later is missed. */
struct capture_file {
	uint64_t number;   /* of its first packet */
	uint64_t end;	   /* one more than that of its last */
	uint32_t stream;   /* enum capture_stream */
	uint32_t instance; /* as in the packets */
};

#define CAPTURE_CAUSES 16

/* A source's ledger (struct weir_account), at the end of a part. */
struct capture_account {
	char name[16]; /* "cpu0"; "" for the whole machine's */
	int32_t cpu;
	uint32_t ring; /* enum capture_ring */
	uint64_t produced, delivered, filtered, pending, late, ahead, self, unread, failed, stray;
	uint64_t lost[CAPTURE_CAUSES]; /* by enum weir_cause */
	uint8_t bound[CAPTURE_CAUSES]; /* enum weir_bound of each */
};

/* In the task stream: a thread that there was when the part began. */
struct capture_task {
	struct weir_seed seed;
	uint16_t exe_len;
	uint16_t cgroups_len;
	uint32_t pad;
	/* exe[exe_len], then cgroups[cgroups_len]: its cgroup's path, or the lines of /proc/PID/cgroup */
};

#endif /* WEIR_CAPTURE_LAYOUT_H */
