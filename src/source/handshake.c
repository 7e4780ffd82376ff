/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/handshake.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PACKET_BYTES \
	14 /* the kernel runs a socket filter on nothing shorter than an Ethernet header */

static int32_t helper_of(enum weir_clock_id id)
{
	switch (id) {
	case WEIR_CLOCK_MONOTONIC:
		return BPF_FUNC_ktime_get_ns;
	case WEIR_CLOCK_BOOTTIME:
		return BPF_FUNC_ktime_get_boot_ns;
	case WEIR_CLOCK_TAI:
		return 208; /* BPF_FUNC_ktime_get_tai_ns: newer than the headers that we build with */
	default:
		return 0;
	}
}

static int make_map(struct handshake *h)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	void *at;

	h->map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_handshake", 4, 8, 1, &opts);
	if (h->map_fd < 0)
		return -errno;
	at = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, h->map_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	h->kernel_ns = at;
	return 0;
}

static int load(struct handshake *h, int32_t helper)
{
	const struct bpf_insn insns[] = {
		/* r6 = the map's only value */
		{.code = BPF_LD | BPF_DW | BPF_IMM,
		 .dst_reg = BPF_REG_6,
		 .src_reg = BPF_PSEUDO_MAP_VALUE,
		 .imm = h->map_fd},
		{.code = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = helper},
		{.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_0},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	h->prog_fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "weir_handshake", "Dual BSD/GPL",
				   insns, sizeof(insns) / sizeof(insns[0]), NULL);
	return h->prog_fd < 0 ? -errno : 0;
}

int handshake__open(struct handshake *h, enum weir_clock_id id)
{
	int32_t helper = helper_of(id);
	int err;

	*h = (struct handshake){.prog_fd = -1, .map_fd = -1};
	if (!helper)
		return -EOPNOTSUPP;
	err = make_map(h);
	if (!err)
		err = load(h, helper);
	if (err)
		handshake__close(h);
	/* What the verifier says of a helper that it does not know. */
	return err == -EINVAL ? -EOPNOTSUPP : err;
}

void handshake__close(struct handshake *h)
{
	if (h->kernel_ns)
		munmap((void *)h->kernel_ns, (size_t)sysconf(_SC_PAGESIZE));
	if (h->prog_fd >= 0)
		close(h->prog_fd);
	if (h->map_fd >= 0)
		close(h->map_fd);
	*h = (struct handshake){.prog_fd = -1, .map_fd = -1};
}

int handshake__shake(const struct handshake *h, const struct weir_clock *clock, uint64_t guard_ns,
		     int64_t *off_ns)
{
	uint8_t packet[PACKET_BYTES] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet, .data_size_in = sizeof(packet));
	uint64_t before_ns = clock->now_ns(clock->ctx), after_ns, kernel_ns;

	if (bpf_prog_test_run_opts(h->prog_fd, &run))
		return -errno;
	after_ns = clock->now_ns(clock->ctx);
	kernel_ns = __atomic_load_n(h->kernel_ns, __ATOMIC_ACQUIRE);
	*off_ns = 0;
	if ((int64_t)(kernel_ns + guard_ns - before_ns) < 0)
		*off_ns = (int64_t)(kernel_ns - before_ns);
	else if ((int64_t)(kernel_ns - guard_ns - after_ns) > 0)
		*off_ns = (int64_t)(kernel_ns - after_ns);
	return 0;
}
