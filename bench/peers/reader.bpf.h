/* SPDX-License-Identifier: BSD-2-Clause */
/* reader.bpf.h - the record of reader.bpf.c. */
#ifndef WEIR_BENCH_PEERS_READER_H
#define WEIR_BENCH_PEERS_READER_H

#include <linux/types.h>

enum peer_what { PEER_ENTER, PEER_EXIT, PEER_SWITCH };

struct peer_event {
	__u64 stamp, pid_tgid, what, a, b;
	__u32 cpu, unused;
	char comm[16];
};

#endif /* WEIR_BENCH_PEERS_READER_H */
