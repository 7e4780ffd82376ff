// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel objects that a stream reads, each by itself: perf events with their rings, the slots of
 * somebody's perf event array, somebody's ring buffer; and how their limits are told.
 *
 * The load is this thread's own: a number of uname() on a CPU, so that each record is expected.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "online.h"
#include "others.h"
#include "others.skel.h"
#include "ring/foreign_ringbuf.h"
#include "ring/perf_backward.h"
#include "ring/perf_forward.h"
#include "source/budget.h"
#include "source/foreign.h"
#include "source/perf.h"

#define NOBODY 54321 /* a user whom nobody is */

static char why[512];
static const struct reason reason = {why, sizeof(why)};
static struct cpus online;
static uint32_t first_cpu, last_cpu;
static uint8_t scratch[65536] __attribute__((aligned(8)));

static void assert_says(const char *part)
{
	if (!strstr(why, part))
		fail_msg("\"%s\" is not in \"%s\"", part, why);
}

/* ---- the load ----------------------------------------------------------------------------------- */

static void run_on(uint32_t cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void call(uint32_t cpu, unsigned times)
{
	struct utsname name;

	run_on(cpu);
	for (unsigned i = 0; i < times; i++)
		syscall(SYS_uname, &name);
}

/* ---- perf events and their rings ---------------------------------------------------------------- */

static char filter[64];

static struct weir_perf_event calls_of(const char *tracepoint)
{
	/* Of this thread alone, whatever else the machine does. */
	snprintf(filter, sizeof(filter), "id == %d && common_pid == %d", SYS_uname,
		 (int)syscall(SYS_gettid));
	return (struct weir_perf_event){.tracepoint = tracepoint, .filter = filter};
}

static void open_group(struct source_perf *group, const struct source_perf_opts *opts)
{
	if (source_perf__open(group, opts, &online, &reason))
		fail_msg("%s", why);
}

static void make(struct source_perf *group, uint32_t cpu)
{
	if (source_perf__make(group, cpu, &reason) || source_perf__start(group, cpu, &reason))
		fail_msg("%s", why);
}

static void layout_of(const struct source_perf *group, struct perf_layout *layout)
{
	const struct perf_event_attr *attr = &group->events[0].attr;

	assert_int_equal(perf_layout__init(layout, attr->sample_type, true, attr->read_format), 0);
}

struct found {
	uint64_t samples, lost;
	uint64_t by_event[4];
	uint64_t last_ns;
	struct others_event last; /* payload, where it is one */
};

static void take_sample(struct found *found, const struct source_perf *group, uint32_t cpu,
			const struct perf_layout *layout, const void *body, uint32_t len)
{
	struct weir_perf_sample sample;
	int64_t event;

	assert_int_equal(perf_record__parse(layout, body, len, &sample), 0);
	assert_int_equal(sample.cpu, cpu);
	assert_int_equal(sample.tid, syscall(SYS_gettid));
	assert_true(sample.time_ns >= found->last_ns);
	event = source_perf__event(group, cpu, sample.id);
	assert_in_range(event, 0, group->nr_events - 1);
	found->by_event[event]++;
	found->samples++;
	found->last_ns = sample.time_ns;
	if (sample.raw_len >= sizeof(found->last))
		memcpy(&found->last, sample.raw, sizeof(found->last));
}

/* All that is in a forward ring now. */
static struct found read_ring(const struct source_perf *group, uint32_t cpu)
{
	const struct source_perf_ring *ring = &group->rings[cpu];
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	struct perf_forward reader = {ring->data, group->ring_bytes - 1, ring->page->data_tail};
	struct found found = {0};
	struct perf_layout layout;
	struct perf_record record;
	struct perf_loss loss;
	enum perf_next next;
	uint32_t len;

	layout_of(group, &layout);
	while ((next = perf_forward__next(&reader, &layout, head, &record)) != PERF_NEXT_END) {
		const void *body = perf_forward__body(ring->data, group->ring_bytes - 1, record.pos,
						      &len, scratch);

		assert_int_equal(next, PERF_NEXT_RECORD);
		if (record.type == PERF_RECORD_SAMPLE)
			take_sample(&found, group, cpu, &layout, body, len);
		else if (perf_record__lost(&layout, body, len, &loss) == 1)
			found.lost += loss.lost;
	}
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
	return found;
}

/* Every call of the filter's, on each CPU, in that CPU's ring; and nothing behind them is lost. */
static void tracepoint_on_each_cpu(void **state)
{
	struct weir_perf_event event = calls_of("raw_syscalls:sys_enter");
	struct source_perf_opts opts = {.events = &event, .nr_events = 1, .map_fd = -1};
	struct source_perf group;
	uint64_t lost;

	open_group(&group, &opts);
	for (uint32_t cpu = 0; cpu < group.nr_cpus; cpu++)
		if (cpus__has(&online, cpu))
			make(&group, cpu);
	call(first_cpu, 300);
	call(last_cpu, 200);
	if (first_cpu != last_cpu)
		assert_int_equal(read_ring(&group, first_cpu).samples, 300);
	assert_int_equal(read_ring(&group, last_cpu).samples, first_cpu == last_cpu ? 500 : 200);
	assert_int_equal(source_perf__lost(&group, last_cpu, &lost), 0);
	assert_int_equal(lost, 0);
	/* Stopped is stopped, and started again it goes on. */
	source_perf__stop(&group, last_cpu);
	call(last_cpu, 10);
	assert_int_equal(read_ring(&group, last_cpu).samples, 0);
	assert_int_equal(source_perf__start(&group, last_cpu, &reason), 0);
	call(last_cpu, 10);
	assert_int_equal(read_ring(&group, last_cpu).samples, 10);
	source_perf__close(&group);
}

/* Two events of one CPU in one ring, told apart by their ids. */
static void events_share_a_ring(void **state)
{
	struct weir_perf_event events[] = {calls_of("raw_syscalls:sys_enter"),
					   calls_of("raw_syscalls:sys_exit")};
	struct source_perf_opts opts = {.events = events, .nr_events = 2, .map_fd = -1};
	struct source_perf group;
	struct found found;

	open_group(&group, &opts);
	make(&group, first_cpu);
	call(first_cpu, 100);
	found = read_ring(&group, first_cpu);
	assert_int_equal(found.by_event[0], 100);
	assert_int_equal(found.by_event[1], 100);
	source_perf__close(&group);
}

/* F6 as the kernel does it: no record comes behind the loss, so only read(2) tells. */
static void loss_at_the_tail(void **state)
{
	struct weir_perf_event event = calls_of("raw_syscalls:sys_enter");
	struct source_perf_opts opts = {
		.events = &event, .nr_events = 1, .ring_bytes = 4096, .map_fd = -1};
	struct source_perf group;
	struct found found;
	uint64_t lost;

	open_group(&group, &opts);
	make(&group, first_cpu);
	call(first_cpu, 1000);
	found = read_ring(&group, first_cpu);
	assert_int_equal(source_perf__lost(&group, first_cpu, &lost), 0);
	assert_true(lost > 0);
	assert_int_equal(found.lost, 0);
	assert_int_equal(found.samples + lost, 1000);
	/* The next one brings the record that tells of it; the count does not begin anew. */
	call(first_cpu, 1);
	found = read_ring(&group, first_cpu);
	assert_int_equal(found.lost, lost);
	assert_int_equal(found.samples, 1);
	assert_int_equal(source_perf__lost(&group, first_cpu, &lost), 0);
	assert_int_equal(lost, found.lost);
	source_perf__close(&group);
}

static void pause_counts_as_lost(void **state)
{
	struct weir_perf_event event = calls_of("raw_syscalls:sys_enter");
	struct source_perf_opts opts = {.events = &event, .nr_events = 1, .map_fd = -1};
	struct source_perf group;
	uint64_t lost;

	open_group(&group, &opts);
	make(&group, first_cpu);
	call(first_cpu, 5);
	assert_int_equal(source_perf__pause(&group, first_cpu, true), 0);
	call(first_cpu, 7);
	assert_int_equal(source_perf__pause(&group, first_cpu, false), 0);
	assert_int_equal(read_ring(&group, first_cpu).samples, 5);
	assert_int_equal(source_perf__lost(&group, first_cpu, &lost), 0);
	assert_int_equal(lost, 7);
	source_perf__close(&group);
}

/* The newest stay, in their order; the ring is mapped so that nobody could move a tail. */
static void overwritable_ring(void **state)
{
	struct weir_perf_event event = calls_of("raw_syscalls:sys_enter");
	struct source_perf_opts opts = {.events = &event,
					.nr_events = 1,
					.ring_bytes = 4096,
					.overwrite = true,
					.map_fd = -1};
	const struct source_perf_ring *ring;
	static uint64_t copy[512];
	uint32_t index[512], len;
	struct perf_snapshot snapshot = {.bytes = (const uint8_t *)copy, .size = 4096};
	struct perf_backward reader;
	struct found found = {0};
	struct perf_layout layout;
	struct perf_record record;
	struct source_perf group;
	uint64_t lost;

	open_group(&group, &opts);
	make(&group, first_cpu);
	ring = &group.rings[first_cpu];
	call(first_cpu, 1000);
	source_perf__stop(&group, first_cpu);
	layout_of(&group, &layout);
	snapshot.head = snapshot.limit = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	assert_true((int64_t)snapshot.head < -4096);
	memcpy(copy, ring->data, 4096);
	perf_backward__init(&reader, &layout, &snapshot, index);
	while (perf_backward__next(&reader, &layout, &record) == PERF_NEXT_RECORD) {
		const void *body = perf_forward__body(reader.base, reader.mask, record.pos, &len,
						      scratch);

		take_sample(&found, &group, first_cpu, &layout, body, len);
	}
	assert_int_equal(reader.broken, 0);
	assert_in_range(found.samples, 20, 4096 / 48);
	assert_int_equal(source_perf__lost(&group, first_cpu, &lost), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(mprotect((void *)ring->page, 4096, PROT_READ | PROT_WRITE), -1);
	source_perf__close(&group);
}

/* Software events need no tracefs and no BPF. */
static void software_event(void **state)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_MIGRATIONS,
		.sample_period = 1,
	};
	struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts opts = {.events = &event, .nr_events = 1, .map_fd = -1};
	struct source_perf group;
	const struct source_perf_ring *ring;

	if (first_cpu == last_cpu)
		skip();
	open_group(&group, &opts);
	run_on(first_cpu);
	make(&group, last_cpu);
	ring = &group.rings[last_cpu];
	assert_int_equal(ring->page->data_head, 0);
	run_on(last_cpu);
	assert_true(__atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) > 0);
	source_perf__close(&group);
}

/* ---- what is refused, and how it is said -------------------------------------------------------- */

static void refused_events(void **state)
{
	struct weir_perf_event event = {.tracepoint = "raw_syscalls:sys_enter",
					.filter = "no_such_field > 8"};
	struct source_perf_opts opts = {.events = &event, .nr_events = 1, .map_fd = -1};
	struct source_perf group;

	open_group(&group, &opts);
	assert_int_equal(source_perf__make(&group, first_cpu, &reason), -EINVAL);
	assert_says("no_such_field > 8");
	assert_says("raw_syscalls:sys_enter");
	assert_false(source_perf__is_made(&group, first_cpu));
	source_perf__close(&group);
	event = (struct weir_perf_event){.tracepoint = "raw_syscalls:no_such"};
	assert_int_equal(source_perf__open(&group, &opts, &online, &reason), -ENOENT);
	assert_says("raw_syscalls:no_such");
	opts.ring_bytes = 12288;
	assert_int_equal(source_perf__open(&group, &opts, &online, &reason), -EINVAL);
	assert_says("12288");
	opts = (struct source_perf_opts){.map_fd = -1};
	assert_int_equal(source_perf__open(&group, &opts, &online, &reason), -EINVAL);
}

static void different_samples_share_no_ring(void **state)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
	};
	struct weir_perf_event events[] = {calls_of("raw_syscalls:sys_enter"), {.attr = &attr}};
	struct source_perf_opts opts = {.events = events, .nr_events = 2, .map_fd = -1};
	struct source_perf group;

	assert_int_equal(source_perf__open(&group, &opts, &online, &reason), -EINVAL);
	assert_says("cannot share a ring");
}

/* A child, so that what it gives up is not given up for the others; its exit says how it went. */
static void in_a_child(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("line %d", WEXITSTATUS(status) << 2);
}

/* cmocka's asserts jump, which is not for a child: its exit status is the line, by fours. */
#define MUST(good)                                 \
	do {                                       \
		if (!(good))                       \
			_exit((__LINE__ + 3) / 4); \
	} while (0)

/* Somebody else, with these rights alone. */
static void become_nobody(uint64_t caps)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
		{.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)},
	};

	MUST(!prctl(PR_SET_KEEPCAPS, 1));
	MUST(!setresuid(NOBODY, NOBODY, NOBODY));
	MUST(!syscall(SYS_capset, &header, data));
}

static struct perf_event_attr clock_attr(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000,
	};
}

static void open_without_rights(void)
{
	struct perf_event_attr attr = clock_attr();
	struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts opts = {
		.events = &event, .nr_events = 1, .ring_bytes = 4096, .map_fd = -1};
	struct source_perf group;

	become_nobody(0);
	MUST(!source_perf__open(&group, &opts, &online, &reason));
	MUST(source_perf__make(&group, first_cpu, &reason) == -EACCES);
	MUST(strstr(why, "kernel.perf_event_paranoid") && strstr(why, "or with CAP_"));
	event = (struct weir_perf_event){.tracepoint = "raw_syscalls:sys_enter"};
	MUST(source_perf__open(&group, &opts, &online, &reason) == -EACCES);
	MUST(strstr(why, "run as root"));
}

static void rights_are_named(void **state)
{
	in_a_child(open_without_rights);
}

static void open_with_few_descriptors(void)
{
	struct perf_event_attr attr = clock_attr();
	struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts opts = {
		.events = &event, .nr_events = 1, .ring_bytes = 4096, .map_fd = -1};
	struct budget_limits limits;
	struct source_perf group;
	struct rlimit limit;

	budget__read_limits(&limits);
	limit = (struct rlimit){.rlim_cur = limits.fds_open + limits.cpus - 1,
				.rlim_max = limits.fds_open + limits.cpus};
	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	MUST(source_perf__open(&group, &opts, &online, &reason) == -EMFILE);
	MUST(strstr(why, "ulimit -n"));
}

static void descriptors_are_counted_before(void **state)
{
	in_a_child(open_with_few_descriptors);
}

/* As many bytes as fit on all CPUs, to the page: the largest ring, and twice that is too much. */
static void map_up_to_the_limit(void)
{
	const struct rlimit none = {0, 0};
	struct perf_event_attr attr = clock_attr();
	struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts opts = {.events = &event, .nr_events = 1, .map_fd = -1};
	struct source_perf group;
	size_t fits = 4096;

	MUST(!setrlimit(RLIMIT_MEMLOCK, &none));
	/* Debian's kernels want more than CAP_PERFMON; neither lets memory be locked. */
	become_nobody(1ull << CAP_PERFMON | 1ull << CAP_SYS_ADMIN);
	for (opts.ring_bytes = 8192; !source_perf__open(&group, &opts, &online, &reason);
	     opts.ring_bytes *= 2) {
		source_perf__close(&group);
		fits = opts.ring_bytes;
	}
	MUST(strstr(why, "kernel.perf_event_mlock_kb=") && strstr(why, "CAP_IPC_LOCK"));
	/* What is judged to fit the kernel takes, on every CPU. */
	opts.ring_bytes = fits;
	MUST(!source_perf__open(&group, &opts, &online, &reason));
	for (uint32_t cpu = 0; cpu < group.nr_cpus; cpu++)
		MUST(!cpus__has(&online, cpu) || !source_perf__make(&group, cpu, &reason));
	/* And now that the user has used it up, a second time it does not, and says why. */
	MUST(!source_perf__open(&group, &opts, &online, &reason));
	for (uint32_t cpu = 0; cpu < group.nr_cpus; cpu++)
		if (cpus__has(&online, cpu) && source_perf__make(&group, cpu, &reason)) {
			MUST(strstr(why, "others of this user"));
			return;
		}
	MUST(false);
}

static void locked_memory_is_counted_before(void **state)
{
	in_a_child(map_up_to_the_limit);
}

/* ---- somebody's perf event array ---------------------------------------------------------------- */

static struct others *open_others(bool into_ring)
{
	struct others *others = others__open();

	assert_non_null(others);
	others->rodata->others_nr = SYS_uname;
	assert_int_equal(others__load(others), 0);
	others->bss->others_into_ring = into_ring;
	others->bss->others_tgid = (uint32_t)getpid();
	assert_int_equal(others__attach(others), 0);
	return others;
}

static void open_array(struct source_perf *group, int map_fd)
{
	struct perf_event_attr attr = perf_attr__bpf_output();
	struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts opts = {.events = &event, .nr_events = 1, .map_fd = map_fd};

	open_group(group, &opts);
}

static void perf_event_array(void **state)
{
	struct others *others = open_others(false);
	struct source_perf group;
	struct found found;

	open_array(&group, bpf_map__fd(others->maps.others_events));
	make(&group, first_cpu);
	call(first_cpu, 250);
	found = read_ring(&group, first_cpu);
	assert_int_equal(found.samples, 250);
	assert_int_equal(found.last.magic, OTHERS_MAGIC);
	assert_int_equal(found.last.cpu, first_cpu);
	/* The kernel's stamp, of the same clock, comes behind the program's. */
	assert_true(found.last.stamp <= found.last_ns);
	assert_true(found.last_ns - found.last.stamp < 1000000000);
	source_perf__close(&group);
	others__destroy(others);
}

/* The slot of another reader stays his; ours is empty when we have left. */
static void slots_are_shared_politely(void **state)
{
	struct others *others = open_others(false);
	int map_fd = bpf_map__fd(others->maps.others_events);
	struct source_perf ours, his;

	open_array(&his, map_fd);
	make(&his, first_cpu);
	open_array(&ours, map_fd);
	assert_int_equal(source_perf__make(&ours, first_cpu, &reason), 0);
	assert_int_equal(source_perf__start(&ours, first_cpu, &reason), -EBUSY);
	assert_says("somebody else");
	source_perf__close(&ours);
	call(first_cpu, 20);
	assert_int_equal(read_ring(&his, first_cpu).samples, 20);
	/* He leaves, we come; and what he takes away at his end is not ours. */
	source_perf__stop(&his, first_cpu);
	open_array(&ours, map_fd);
	make(&ours, first_cpu);
	his.rings[first_cpu].in_slot = true;
	source_perf__close(&his);
	call(first_cpu, 30);
	assert_int_equal(read_ring(&ours, first_cpu).samples, 30);
	source_perf__close(&ours);
	open_array(&ours, map_fd);
	make(&ours, first_cpu);
	source_perf__close(&ours);
	others__destroy(others);
}

static void arrays_that_do_not_fit(void **state)
{
	struct perf_event_attr attr = perf_attr__bpf_output();
	struct weir_perf_event event = {.attr = &attr};
	struct source_perf_opts opts = {.events = &event, .nr_events = 1};
	struct source_perf group;

	opts.map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "no_events", 4, 4, 8, NULL);
	assert_int_equal(source_perf__open(&group, &opts, &online, &reason), -EINVAL);
	assert_says("no_events");
	close(opts.map_fd);
	opts.map_fd = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "short", 4, 4, 1, NULL);
	open_array(&group, opts.map_fd);
	if (last_cpu > 0) {
		assert_int_equal(source_perf__make(&group, last_cpu, &reason), 0);
		assert_int_equal(source_perf__start(&group, last_cpu, &reason), -EINVAL);
		assert_says("has 1 slots");
	}
	source_perf__close(&group);
	close(opts.map_fd);
	opts.map_fd = 12345;
	assert_int_equal(source_perf__open(&group, &opts, &online, &reason), -EBADFD);
}

/* ---- CPUs that come and go ---------------------------------------------------------------------- */

/* M2: the events of a CPU that was away are dead, in the map too; made anew they live. */
static void cpu_off_and_on_again(void **state)
{
	struct others *others;
	struct source_perf group;

	run_on(first_cpu);
	if (first_cpu == last_cpu || !set_online(last_cpu, false))
		skip();
	assert_true(set_online(last_cpu, true));
	others = open_others(false);
	open_array(&group, bpf_map__fd(others->maps.others_events));
	make(&group, last_cpu);
	call(last_cpu, 10);
	run_on(first_cpu);
	assert_true(set_online(last_cpu, false));
	assert_true(set_online(last_cpu, true));
	call(last_cpu, 10);
	/* What it wrote before is still there, what came after is nowhere. */
	assert_int_equal(read_ring(&group, last_cpu).samples, 10);
	source_perf__unmake(&group, last_cpu);
	make(&group, last_cpu);
	call(last_cpu, 10);
	assert_int_equal(read_ring(&group, last_cpu).samples, 10);
	run_on(first_cpu);
	assert_true(set_online(last_cpu, false));
	source_perf__unmake(&group, last_cpu);
	assert_int_equal(source_perf__make(&group, last_cpu, &reason), -ENODEV);
	assert_true(set_online(last_cpu, true));
	make(&group, last_cpu);
	call(last_cpu, 10);
	assert_int_equal(read_ring(&group, last_cpu).samples, 10);
	source_perf__close(&group);
	others__destroy(others);
}

/* ---- somebody's ring buffer --------------------------------------------------------------------- */

static uint64_t read_foreign(const struct source_foreign *foreign)
{
	const uint64_t *producer = foreign->producer_page;
	uint64_t head = __atomic_load_n(producer, __ATOMIC_ACQUIRE), count = 0;
	struct bpf_ringbuf rb = {.data = foreign->data, .mask = foreign->size - 1};
	struct foreign_record record;
	uint64_t last_ns = 0;

	while (foreign_ringbuf__next(&rb, offsetof(struct others_event, stamp), head, &record) ==
	       BPF_RINGBUF_RECORD) {
		struct others_event event;

		assert_int_equal(record.len, sizeof(event));
		memcpy(&event, record.data, sizeof(event));
		assert_int_equal(event.magic, OTHERS_MAGIC);
		assert_int_equal(event.stamp, record.stamp_ns);
		assert_true(record.stamp_ns > last_ns);
		last_ns = record.stamp_ns;
		count++;
	}
	assert_int_equal(rb.pos, head);
	return count;
}

/* L2: with a counter all is accounted for; without one nobody knows. */
static void ring_buffer_and_its_loss(void **state)
{
	struct others *others = open_others(true);
	int ring_fd = bpf_map__fd(others->maps.others_ring);
	int lost_fd = bpf_map__fd(others->maps.others_lost);
	struct source_foreign foreign;
	uint64_t lost;

	if (source_foreign__open(&foreign, ring_fd, lost_fd, 1, 8, &reason))
		fail_msg("%s", why);
	assert_int_equal(foreign.size, OTHERS_RING_BYTES);
	call(first_cpu, 2000);
	call(last_cpu, 3000);
	assert_int_equal(source_foreign__lost(&foreign, &lost), 0);
	assert_true(lost > 0);
	assert_int_equal(read_foreign(&foreign) + lost, 5000);
	source_foreign__close(&foreign);
	assert_int_equal(source_foreign__open(&foreign, ring_fd, -1, 0, 0, &reason), 0);
	assert_int_equal(source_foreign__lost(&foreign, &lost), -EOPNOTSUPP);
	source_foreign__close(&foreign);
	others__destroy(others);
}

static void counter_in_a_plain_array(void **state)
{
	int ring_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, 4096, NULL);
	int lost_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "lost", 4, 12, 3, NULL);
	struct source_foreign foreign;
	uint8_t value[12] = {0};
	uint32_t key = 2;
	uint64_t lost = 77;

	memcpy(value + 4, &lost, sizeof(lost));
	assert_int_equal(bpf_map_update_elem(lost_fd, &key, value, BPF_ANY), 0);
	assert_int_equal(source_foreign__open(&foreign, ring_fd, lost_fd, 2, 4, &reason), 0);
	assert_int_equal(source_foreign__lost(&foreign, &lost), 0);
	assert_int_equal(lost, 77);
	source_foreign__close(&foreign);
	assert_int_equal(source_foreign__open(&foreign, ring_fd, lost_fd, 2, 5, &reason), -EINVAL);
	assert_says("offset 5");
	assert_int_equal(source_foreign__open(&foreign, ring_fd, lost_fd, 2, UINT32_MAX, &reason),
			 -EINVAL);
	assert_int_equal(source_foreign__open(&foreign, ring_fd, lost_fd, 3, 4, &reason), -EINVAL);
	assert_says("no element 3");
	assert_int_equal(source_foreign__open(&foreign, ring_fd, ring_fd, 0, 0, &reason), -EINVAL);
	assert_says("is no array");
	assert_int_equal(source_foreign__open(&foreign, lost_fd, -1, 0, 0, &reason), -EINVAL);
	assert_says("is no ring buffer");
	assert_int_equal(source_foreign__open(&foreign, 12345, -1, 0, 0, &reason), -EBADFD);
	close(ring_fd);
	close(lost_fd);
}

static void frozen_ring_buffer(void **state)
{
	int ring_fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, 4096, NULL);
	struct source_foreign foreign;

	assert_int_equal(bpf_map_freeze(ring_fd), 0);
	assert_int_equal(source_foreign__open(&foreign, ring_fd, -1, 0, 0, &reason), -EPERM);
	assert_says("frozen");
	assert_int_equal(foreign.fd, -1);
	close(ring_fd);
}

static int find_cpus(void **state)
{
	if (cpus__online(&online, NULL))
		return -1;
	first_cpu = CPUS_MAX;
	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!cpus__has(&online, cpu))
			continue;
		if (first_cpu == CPUS_MAX)
			first_cpu = cpu;
		last_cpu = cpu;
	}
	return 0;
}

/* Whatever has failed. */
static int bring_back(void **state)
{
	if (first_cpu != last_cpu)
		set_online(last_cpu, true);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tracepoint_on_each_cpu),
		cmocka_unit_test(events_share_a_ring),
		cmocka_unit_test(loss_at_the_tail),
		cmocka_unit_test(pause_counts_as_lost),
		cmocka_unit_test(overwritable_ring),
		cmocka_unit_test(software_event),
		cmocka_unit_test(refused_events),
		cmocka_unit_test(different_samples_share_no_ring),
		cmocka_unit_test(rights_are_named),
		cmocka_unit_test(descriptors_are_counted_before),
		cmocka_unit_test(locked_memory_is_counted_before),
		cmocka_unit_test(perf_event_array),
		cmocka_unit_test(slots_are_shared_politely),
		cmocka_unit_test(arrays_that_do_not_fit),
		cmocka_unit_test(cpu_off_and_on_again),
		cmocka_unit_test(ring_buffer_and_its_loss),
		cmocka_unit_test(counter_in_a_plain_array),
		cmocka_unit_test(frozen_ring_buffer),
	};
	int r = cmocka_run_group_tests_name("perf_objects", tests, find_cpus, bring_back);

	return r ? 1 : 0;
}
