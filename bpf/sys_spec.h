/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sys_spec.h - what the system call probes do with one call: a line of the map `weir_sys_spec`.
 *
 * Filled in by user space before the probes are attached, so that the BPF program knows no call by
 * name. Element abi * WEIR_SYS_NR_MAX + nr.
 */
#ifndef WEIR_SYS_SPEC_H
#define WEIR_SYS_SPEC_H

#include <linux/types.h>

#include <weir/probes.h>

#define WEIR_SYS_ABIS	  3    /* enum weir_abi */
#define WEIR_SYS_NR_MAX	  1024 /* numbers are below this */
#define WEIR_SYS_SPECS	  (WEIR_SYS_ABIS * WEIR_SYS_NR_MAX)
#define WEIR_SYS_ARGS	  6
#define WEIR_SYS_BLOBS	  4   /* most arguments of one call that are read */
#define WEIR_SYS_NO_ARG	  255 /* weir_sys_blob.len_arg: none */
#define WEIR_STRING_MAX	  4096
#define WEIR_STRV_MAX	  4096
#define WEIR_SOCKADDR_MAX 128 /* sizeof(struct sockaddr_storage) */

/* An argument that points to bytes worth reading. */
struct weir_sys_blob {
	__u8 arg;
	__u8 kind; /* enum weir_blob_kind */
	__u8 len_arg; /* which argument has their length; WEIR_SYS_NO_ARG: NUL ends them, or the kind does */
	__u8 how; /* WEIR_SYS_* */
};

#define WEIR_SYS_WHEN	(1 << 0) /* read only if args[when_arg] & when_bits is one of when_values */
#define WEIR_SYS_NARROW (1 << 1) /* a timespec of two 32-bit numbers */
#define WEIR_SYS_ONCE	(1 << 2) /* the call writes there: at its exit it is another's value */

struct weir_sys_spec {
	__u8 selected;
	__u8 nblobs;
	__u8 when_arg;
	__u8 seldom; /* most of the calls have nothing to be read */
	__u32 when_bits;
	__u64 when_values; /* bit i: i */
	struct weir_sys_blob blobs[WEIR_SYS_BLOBS];
};

#endif /* WEIR_SYS_SPEC_H */
