// SPDX-License-Identifier: BSD-2-Clause
/*
 * open.c - from what the user asked for to a BPF object in the kernel, not attached yet.
 *
 * Owns the object. Only what the selection needs is loaded. Must not know of streams.
 */
#include "probes/loaded.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf/sys_spec.h"
#include "probes/syscalls.h"
#include "probes.skel.h"

#define CLASSES		 2
#define PIDS_MAX_ENTRIES (1u << 20)
#define CLOCK_SLACK_NS	 1000000 /* two clocks that are one differ by microseconds at most */

/* One number out of a file whose last number matters: "0-3,8-11" has 11. Negative: -errno. */
static long read_last_number(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[4096], *last;
	long number = -EINVAL;

	if (!file)
		return -errno;
	if (fgets(line, sizeof(line), file)) {
		last = line + strlen(line);
		while (last > line && !strchr("-,", last[-1]))
			last--;
		number = strtol(last, NULL, 10);
	}
	fclose(file);
	return number;
}

/* All processes that the machine can have, so that a selected one always finds a place. */
static uint32_t pids_entries(const struct probes_selection *sel)
{
	long threads = read_last_number("/proc/sys/kernel/threads-max");

	if (!sel->nr_pids)
		return 1;
	if (threads < (long)sel->nr_pids || threads > (long)PIDS_MAX_ENTRIES)
		return PIDS_MAX_ENTRIES;
	return (uint32_t)threads;
}

static bool is_needed(const struct program *program, const struct probes_selection *sel,
		      enum way way)
{
	if (program->way != WAY_ANY && program->way != way)
		return false;
	return !program->types || (program->types & sel->types);
}

/* Leave out what is not needed. -ENOENT: the kernel lacks what is. */
static int choose_programs(struct probes *probes, const struct probes_selection *sel,
			   const struct tracepoints *tracepoints, char *err, size_t err_len)
{
	enum way way = programs__calls_way();

	for (int i = 0; i < PROGRAMS; i++) {
		const struct program *program = &programs__table[i];
		struct bpf_program *prog = bpf_object__find_program_by_name(probes->skel->obj,
									    program->name);
		bool lacks = program->tracepoint && !tracepoints->there[i];
		bool needed = is_needed(program, sel, way);

		if (needed && lacks && !program->may_lack) {
			snprintf(
				err, err_len,
				"cannot trace %s: this kernel has no such tracepoint; it has to be "
				"built with CONFIG_FTRACE_SYSCALLS=y and tracepoints",
				program->tracepoint);
			return -ENOENT;
		}
		if (needed && !lacks)
			probes->programs[i] = prog;
		else
			bpf_program__set_autoload(prog, false);
	}
	return 0;
}

static bool all_calls(const struct probes_selection *sel)
{
	for (size_t i = 0; i < sizeof(sel->syscalls[0]) / sizeof(sel->syscalls[0][0]); i++) {
		if (~sel->syscalls[WEIR_ABI_NATIVE][i])
			return false;
	}
	return true;
}

static void set_constants(struct probes *probes, const struct probes_selection *sel,
			  const struct tracepoints *tracepoints)
{
	struct probes_bpf__rodata *rodata = probes->skel->rodata;

	rodata->weir_nr_cpus = probes->nr_cpus;
	rodata->weir_has_pids = probes->has_pids;
	rodata->weir_follows = !sel->no_follow;
	rodata->weir_has_left_out = sel->nr_left_out > 0;
	rodata->weir_exit_tells_last = tracepoints->exit_tells_last;
	rodata->weir_switch_has_state = tracepoints->switch_has_state;
	rodata->weir_has_uid = sel->has_uid;
	rodata->weir_uid = sel->uid;
	rodata->weir_has_cgroup = sel->cgroup_fd > 0;
	rodata->weir_string_limit = sel->string_limit;
	rodata->weir_sys_others = all_calls(sel);
	rodata->weir_sys_exits = sel->types >> WEIR_T_SYS_EXIT & 1;
}

static int set_sizes(struct probes *probes, const struct probes_selection *sel)
{
	uint32_t slots = CLASSES * probes->nr_cpus;
	int err = bpf_map__set_max_entries(probes->skel->maps.weir_rings, slots);

	if (!err)
		err = bpf_map__set_max_entries(probes->skel->maps.weir_counters, 1 + slots);
	if (!err)
		err = bpf_map__set_max_entries(probes->skel->maps.weir_pids, pids_entries(sel));
	if (!err && sel->nr_left_out)
		err = bpf_map__set_max_entries(probes->skel->maps.weir_left_out, sel->nr_left_out);
	return err;
}

static void add_blob(struct weir_sys_spec *spec, int arg, enum weir_blob_kind kind, int len_arg,
		     uint8_t how)
{
	struct weir_sys_blob *blob = &spec->blobs[spec->nblobs];

	if (spec->nblobs == WEIR_SYS_BLOBS)
		return;
	blob->arg = (__u8)arg;
	blob->kind = kind;
	blob->len_arg = len_arg < 0 ? WEIR_SYS_NO_ARG : (__u8)len_arg;
	blob->how = how;
	spec->nblobs++;
}

/* Calls that are younger than the year 2038's problem have times of 64 bits in every ABI. */
#define FIRST_NR_WIDE 403

static bool is_narrow(unsigned int abi, unsigned int nr)
{
	return abi == WEIR_ABI_32 && nr < FIRST_NR_WIDE;
}

static void describe_call(struct weir_sys_spec *spec, const struct syscall_desc *desc, bool narrow)
{
	if (desc->when_arg >= 0) {
		spec->when_arg = (__u8)desc->when_arg;
		spec->when_bits = desc->when_bits;
		spec->when_values = desc->when_values;
	}
	for (int arg = 0; arg < desc->nargs; arg++) {
		uint8_t how = desc->when_mask >> arg & 1 ? WEIR_SYS_WHEN : 0;

		if (desc->string_args >> arg & 1)
			add_blob(spec, arg, WEIR_BLOB_STR, desc->str_len_arg, how);
		if (desc->strv_args >> arg & 1)
			add_blob(spec, arg, WEIR_BLOB_STRV, -1, 0);
		if (desc->sockaddr_arg == arg)
			add_blob(spec, arg, WEIR_BLOB_SOCKADDR, desc->sockaddr_len_arg, 0);
		if (desc->timespec_arg != arg)
			continue;
		if (desc->args[arg].tag == WEIR_TAG_INOUT)
			how |= WEIR_SYS_ONCE;
		if (narrow)
			how |= WEIR_SYS_NARROW;
		spec->seldom = !spec->nblobs;
		add_blob(spec, arg, WEIR_BLOB_TIMESPEC, -1, how);
	}
}

static int fill_calls(struct probes *probes, const struct probes_selection *sel)
{
	int fd = bpf_map__fd(probes->skel->maps.weir_sys_spec);

	for (__u32 element = 0; element < WEIR_SYS_SPECS; element++) {
		__u32 abi = element / WEIR_SYS_NR_MAX, nr = element % WEIR_SYS_NR_MAX;
		const struct syscall_desc *desc = syscalls__find(abi, nr);
		struct weir_sys_spec spec = {.selected = 1};
		int err;

		if (!(sel->syscalls[abi][nr / 64] >> (nr % 64) & 1))
			continue;
		if (desc)
			describe_call(&spec, desc, is_narrow(abi, nr));
		err = bpf_map_update_elem(fd, &element, &spec, BPF_ANY);
		if (err)
			return err;
	}
	return 0;
}

static int fill_pids(struct probes *probes)
{
	int fd = bpf_map__fd(probes->skel->maps.weir_pids);
	__u8 yes = 1;

	for (uint32_t i = 0; i < probes->nr_pids; i++) {
		int err = bpf_map_update_elem(fd, &probes->pids[i], &yes, BPF_NOEXIST);

		if (err && err != -EEXIST)
			return err;
		if (!err)
			probes->skel->bss->weir_alive++;
	}
	return 0;
}

/* In a pid namespace of our own the numbers are others, and then nobody is left out. */
static int fill_left_out(struct probes *probes, const struct probes_selection *sel)
{
	int fd = bpf_map__fd(probes->skel->maps.weir_left_out), err = 0;
	__u8 yes = 1;

	for (uint32_t i = 0; i < sel->nr_left_out && !probes->foreign_pids && !err; i++)
		err = bpf_map_update_elem(fd, &sel->left_out[i], &yes, BPF_ANY);
	return err;
}

static int fill_cgroup(struct probes *probes, const struct probes_selection *sel)
{
	int fd = bpf_map__fd(probes->skel->maps.weir_cgroup);
	__u32 zero = 0;

	if (sel->cgroup_fd <= 0)
		return 0;
	return bpf_map_update_elem(fd, &zero, &sel->cgroup_fd, BPF_ANY);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * The BPF side tells the reader by its tgid, whatever a pid namespace makes of it. Its stamp lies
 * between our two looks at the clock, unless a time namespace has moved ours.
 */
static int learn_self(struct probes *probes)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	uint64_t before_ns = now_ns(), stamp_ns;
	int err = bpf_prog_test_run_opts(bpf_program__fd(probes->skel->progs.learn_self), &opts);

	if (err)
		return err;
	stamp_ns = probes->skel->bss->weir_self_ns;
	probes->foreign_clock = stamp_ns + CLOCK_SLACK_NS < before_ns ||
				stamp_ns > now_ns() + CLOCK_SLACK_NS;
	probes->foreign_pids = probes->skel->data->weir_self_tgid != (__u32)getpid();
	return 0;
}

static int load(struct probes *probes, const struct probes_selection *sel)
{
	int err = set_sizes(probes, sel);

	if (!err)
		err = probes_bpf__load(probes->skel);
	if (!err)
		err = learn_self(probes);
	if (!err)
		err = fill_calls(probes, sel);
	if (!err)
		err = fill_pids(probes);
	if (!err)
		err = fill_left_out(probes, sel);
	if (!err)
		err = fill_cgroup(probes, sel);
	return err;
}

/* What load() can't find out by failing. */
static int check_selection(const struct probes *probes, const struct probes_selection *sel,
			   char *err, size_t err_len)
{
	if (probes->foreign_clock) {
		snprintf(err, err_len,
			 "cannot tell what is complete: weir runs in a time namespace of its own, "
			 "whose clock is not the kernel's; run it in the host's (nsenter --time "
			 "--target 1)");
		return -EINVAL;
	}
	if (!sel->nr_pids || !probes->foreign_pids)
		return 0;
	snprintf(
		err, err_len,
		"cannot select processes by number: weir runs in a pid namespace of its own, where "
		"they have other numbers; run it in the host's (docker run --pid=host)");
	return -EINVAL;
}

static int copy_pids(struct probes *probes, const struct probes_selection *sel)
{
	probes->has_pids = sel->nr_pids > 0;
	if (!probes->has_pids)
		return 0;
	probes->pids = calloc(sel->nr_pids, sizeof(*sel->pids));
	if (!probes->pids)
		return -ENOMEM;
	memcpy(probes->pids, sel->pids, sel->nr_pids * sizeof(*sel->pids));
	probes->nr_pids = sel->nr_pids;
	probes->children = sel->children;
	return 0;
}

int open__nr_cpus(char *err, size_t err_len)
{
	long highest = read_last_number("/sys/devices/system/cpu/possible");

	if (highest >= 0)
		return (int)highest + 1;
	snprintf(err, err_len,
		 "cannot count CPUs: /sys/devices/system/cpu/possible: %s; mount sysfs",
		 strerror((int)-highest));
	return (int)highest;
}

static int open_object(struct probes *probes, const struct probes_selection *sel,
		       struct refusal *refusal, char *err, size_t err_len)
{
	struct tracepoints tracepoints;
	int error = open__nr_cpus(err, err_len);

	if (error < 0)
		return error;
	probes->nr_cpus = (uint32_t)error;
	error = copy_pids(probes, sel);
	if (error) {
		snprintf(err, err_len, "cannot open the BPF programs: out of memory");
		return error;
	}
	probes->skel = probes_bpf__open();
	error = probes->skel ? programs__look(&tracepoints) : -errno;
	if (error) {
		refusal__explain(refusal, "open the BPF programs", -error, err, err_len);
		return error;
	}
	error = choose_programs(probes, sel, &tracepoints, err, err_len);
	if (error)
		return error;
	set_constants(probes, sel, &tracepoints);
	error = load(probes, sel);
	if (error) {
		refusal__explain(refusal, "load the BPF programs", -error, err, err_len);
		return error;
	}
	return check_selection(probes, sel, err, err_len);
}

struct probes *probes__open(const struct probes_selection *sel, char *err, size_t err_len)
{
	struct probes *probes = calloc(1, sizeof(*probes));
	struct refusal refusal;
	int error;

	if (!probes) {
		snprintf(err, err_len, "cannot open the BPF programs: out of memory");
		return NULL;
	}
	refusal__listen(&refusal);
	error = open_object(probes, sel, &refusal, err, err_len);
	refusal__end(&refusal);
	if (!error)
		return probes;
	probes__free(probes);
	errno = -error;
	return NULL;
}

void probes__free(struct probes *probes)
{
	if (!probes)
		return;
	probes__detach(probes);
	probes_bpf__destroy(probes->skel);
	free(probes->pids);
	free(probes);
}

uint64_t probes__alive(const struct probes *probes)
{
	/* Counted by the BPF side, at forks and exits. */
	return __atomic_load_n(&probes->skel->bss->weir_alive, __ATOMIC_RELAXED);
}
