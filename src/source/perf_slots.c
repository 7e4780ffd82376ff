/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_slots.c - a PERF_EVENT_ARRAY's slots, shared politely.
 *
 * Whose event is in a slot is told by its clock: once our event is disabled, the time for which it
 * was enabled stands still, to the nanosecond, and the program compares it with that of the event in
 * the slot.
 */
#include "source/perf_slots.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define INSN(op, d, s, o, i) \
	((struct bpf_insn){.code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})

enum look {
	LOOK_OTHER = 0,
	LOOK_OURS = 1,
};

/*
 * Returns -ENOENT for an empty slot, LOOK_OURS where an event is in it that was enabled for so long,
 * and anything else where another one is. args: slot, time enabled.
 */
static int load_look(int map_fd)
{
	/* struct bpf_perf_event_value at the frame's end: its `enabled` stands at -16. */
	const struct bpf_insn insns[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 2, 1, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 6, 1, 8, 0),
		INSN(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map_fd),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, -24),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 24),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_read_value),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 3, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 1, 10, -16, 0),
		INSN(BPF_JMP | BPF_JNE | BPF_X, 1, 6, 1, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, LOOK_OURS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "weir_slot", "Dual BSD/GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), NULL);
}

/* Only on its own CPU can an event be read: elsewhere another and ours look alike. */
static int look(const struct perf_slots *slots, uint32_t cpu, uint64_t enabled_ns, bool on_cpu)
{
	__u64 args[] = {cpu, enabled_ns};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = on_cpu ? BPF_F_TEST_RUN_ON_CPU : 0, .cpu = on_cpu ? cpu : 0);
	int err = bpf_prog_test_run_opts(slots->prog_fd, &opts);

	return err ? err : (int)opts.retval;
}

int perf_slots__open(struct perf_slots *slots, int map_fd, const struct reason *reason)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(map_fd, &info, &len);

	*slots = (struct perf_slots){.map_fd = -1, .prog_fd = -1};
	if (err)
		return reason__say(reason, err, "cannot read what map it is: %s", strerror(-err));
	if (info.type != BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		return reason__say(reason, -EINVAL, "map %u (%s) is no perf event array", info.id,
				   info.name);
	slots->count = info.max_entries;
	slots->map_id = info.id;
	slots->map_fd = fcntl(map_fd, F_DUPFD_CLOEXEC, 3);
	if (slots->map_fd < 0)
		return reason__say(reason, -errno, "cannot duplicate the map's descriptor: %s",
				   strerror(errno));
	slots->prog_fd = load_look(slots->map_fd);
	if (slots->prog_fd >= 0)
		return 0;
	err = slots->prog_fd;
	perf_slots__close(slots);
	return reason__say(reason, err,
			   "cannot see who reads map %u: %s; run as root, or with the "
			   "capabilities CAP_BPF and CAP_PERFMON",
			   info.id, strerror(-err));
}

void perf_slots__close(struct perf_slots *slots)
{
	if (slots->map_fd >= 0)
		close(slots->map_fd);
	if (slots->prog_fd >= 0)
		close(slots->prog_fd);
	slots->map_fd = slots->prog_fd = -1;
}

int perf_slots__put(const struct perf_slots *slots, uint32_t cpu, int event_fd,
		    const struct reason *reason)
{
	int err;

	if (cpu >= slots->count)
		return reason__say(reason, -EINVAL,
				   "map %u has %u slots, none for CPU %u: what its program sends "
				   "there is lost",
				   slots->map_id, slots->count, cpu);
	if (look(slots, cpu, UINT64_MAX, false) != -ENOENT)
		return reason__say(reason, -EBUSY,
				   "slot %u of map %u is read by somebody else, who would hear no "
				   "more; end that reader first",
				   cpu, slots->map_id);
	err = bpf_map_update_elem(slots->map_fd, &cpu, &event_fd, BPF_ANY);
	if (err)
		return reason__say(reason, err, "cannot write slot %u of map %u: %s", cpu,
				   slots->map_id, strerror(-err));
	return 0;
}

void perf_slots__take(const struct perf_slots *slots, uint32_t cpu, int event_fd)
{
	struct {
		uint64_t value, enabled_ns, lost;
	} read_out;
	int whose;

	if (ioctl(event_fd, PERF_EVENT_IOC_DISABLE, 0) ||
	    read(event_fd, &read_out, sizeof(read_out)) < (ssize_t)(2 * sizeof(uint64_t)))
		return;
	whose = look(slots, cpu, read_out.enabled_ns, true);
	/* While its CPU is offline, what is in a slot is dead, whosever it is. */
	if (whose == LOOK_OURS || whose == -ENXIO)
		bpf_map_delete_elem(slots->map_fd, &cpu);
}
