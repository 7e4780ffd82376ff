/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * record.h - the bytes that a BPF program and its reader share.
 *
 * Every record that is emitted with weir.bpf.h begins with struct weir_record; every ring has one
 * struct weir_counters in an mmapable array. Both are ABI between kernel and user space: little or
 * big endian as the machine is, 8-byte aligned, no hidden padding. Compiles as BPF C, C99 and C++.
 */
#ifndef WEIR_RECORD_H
#define WEIR_RECORD_H

#ifndef __VMLINUX_H__ /* a BPF program may bring the kernel's own types */
#include <linux/types.h>
#endif

/*
 * Head of every record. `seq` holds the low 32 bits of the ring's attempts counter; the reader
 * widens it. Types from WEIR_TYPE_USER up are free for other people's programs.
 */
struct weir_record {
	__u64 stamp; /* CLOCK_MONOTONIC in ns, taken after reserve and after the count */
	__u16 type;
	__u16 flags; /* meaning belongs to the type */
	__u32 seq;
	/* payload follows, at an offset that is a multiple of 8 */
};

#define WEIR_TYPE_USER 0x8000

/*
 * One cache line a ring. Producers add to it with atomics, so that an interrupt between a load and
 * its store can't lose a count; the reader only loads. Element 0 of the array is not a ring: it is
 * struct weir_control.
 */
struct weir_counters {
	__u64 attempts;	 /* records tried: the next record's seq */
	__u64 failed;	 /* of these, those that got no space (ring full, lock busy, no ring) */
	__u64 filtered;	 /* turned away by the user's selection, before reserve; no seq */
	__u64 self;	 /* caused by the reader itself and left out; no seq, outside every sum */
	__u64 unread;	 /* strings that could not be read, neither at entry nor at exit */
	__u64 discarded; /* reserved, counted and then given back: filtered, but with a seq */
	__u64 half_full; /* the producers' own note: the reader was woken because of a half full ring */
	__u64 reserved;
};

/* Element 0 of the counters array: how a sleeping reader asks to be woken. */
struct weir_control {
	__u32 wanted; /* reader: 1 before it sleeps; the first producer that sees it swaps in 0 */
	__u32 pad;
	__u64 reserved[7];
};

/*
 * The other sort of ring, a lane: written by one context that nothing of its kind interrupts
 * (weir_lane.bpf.h). Records are of one size, positions count records. Two cache lines, of which the
 * writer stores to the first and the reader to the second.
 */
struct weir_lane {
	__u64 attempts; /* records tried: the next record's seq */
	__u64 failed;	/* of these, those that got no place */
	__u64 head;	/* of these, those that are finished and can be read */
	__u64 away;	/* not 0: this CPU has gone offline, and nothing was tried since */
	__u64 note[4];	/* the writer's own */
	__u64 tail;	/* the reader's: records that it has done with */
	__u64 rung;	/* the writer's: 1 + the tail for which it has told that this fills up */
	__u64 reserved[6];
};

#endif /* WEIR_RECORD_H */
