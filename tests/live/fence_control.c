// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a fence is worth. One load, one program that stamps first and publishes later, one reader
 * of its rings, and four rules at once by which that reader could say "complete up to W". An
 * event that turns up behind a W is late. The two rules without a fence are the control: that
 * they are wrong now and then is what gives the zero of the fences its meaning.
 *
 * The reader is a small one of its own, so that nothing but rules and fences is tested.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fence_load.h"
#include "source/cpus.h"
#include "source/fence.h"

#define LOAD_SECONDS 10 /* unless the first argument says another number */
#define RING_BYTES   (16u << 20)
#define ROUND_US     250
#define GUARD_NS     1000 /* the two readers of the clock are no further apart than that */
#define SWITCH	     "/sys/kernel/rcu_expedited"

static unsigned int load_seconds = LOAD_SECONDS;

static uint64_t now_ns(void)
{
	return clock__kernel.now_ns(NULL);
}

/* ---- the rings ------------------------------------------------------------------------------ */

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t tail, head;
};

struct rings {
	struct ring ring[CPUS_MAX];
	unsigned int n;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void open_ring(struct ring *ring, int events_fd, unsigned int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.watermark = 1, /* nobody waits for it */
		.wakeup_watermark = RING_BYTES,
	};
	void *map;

	ring->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	assert_true(ring->fd >= 0);
	map = mmap(NULL, page_bytes() + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		   0);
	assert_true(map != MAP_FAILED);
	ring->page = map;
	ring->data = (const uint8_t *)map + page_bytes();
	assert_int_equal(bpf_map_update_elem(events_fd, &cpu, &ring->fd, BPF_ANY), 0);
}

static void open_rings(struct rings *rings, int events_fd)
{
	static struct cpus online;

	rings->n = 0;
	assert_int_equal(cpus__online(&online, NULL), 0);
	for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (cpus__has(&online, cpu))
			open_ring(&rings->ring[rings->n++], events_fd, cpu);
}

static void close_rings(struct rings *rings)
{
	for (unsigned int i = 0; i < rings->n; i++) {
		munmap(rings->ring[i].page, page_bytes() + RING_BYTES);
		close(rings->ring[i].fd);
	}
}

static void copy_out(const struct ring *ring, uint64_t at, void *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = ring->data[(at + i) % RING_BYTES];
}

/* The next sample before the head: its stamp. 0: none. */
static uint64_t next_stamp(struct ring *ring)
{
	while (ring->tail < ring->head) {
		struct perf_event_header header;
		uint64_t at = ring->tail, stamp_ns;

		copy_out(ring, at, &header, sizeof(header));
		assert_true(header.size >= sizeof(header));
		ring->tail += header.size;
		if (header.type != PERF_RECORD_SAMPLE)
			continue;
		/* Behind the header stands the size of what the program sent, and that. */
		copy_out(ring, at + sizeof(header) + sizeof(uint32_t), &stamp_ns, sizeof(stamp_ns));
		return stamp_ns;
	}
	return 0;
}

/* ---- the rules ------------------------------------------------------------------------------ */

enum rule_id { BY_CLOCK, BY_ROUNDS, BY_RCU, BY_MEMBARRIER, RULES };

struct rule {
	const char *name;
	uint64_t watermark_ns; /* announced: what is stamped at or before it should have come */
	uint64_t next_ns;      /* to be announced after this round */
	uint64_t judged, late, worst_ns;
};

static void judge(struct rule *rule, uint64_t stamp_ns)
{
	rule->judged += rule->watermark_ns != 0;
	if (stamp_ns > rule->watermark_ns)
		return;
	rule->late++;
	if (rule->watermark_ns - stamp_ns > rule->worst_ns)
		rule->worst_ns = rule->watermark_ns - stamp_ns;
}

static void announce(struct rule *rule)
{
	if (rule->next_ns > rule->watermark_ns)
		rule->watermark_ns = rule->next_ns;
}

/* ---- fences, each with its thread ----------------------------------------------------------- */

struct served {
	struct fence fence;
	pthread_t thread;
	bool open;
};

static void *serve(void *arg)
{
	return (void *)(intptr_t)weir_fence__run(fence__handle(arg));
}

static void open_served(struct served *served, enum fence_door door)
{
	int err = fence__open(&served->fence, door, &clock__kernel);

	served->open = !err;
	/* One CPU online, or nohz_full: no fence, and it says so. */
	if (door == FENCE_MEMBARRIER && err == -EOPNOTSUPP)
		return;
	assert_int_equal(err, 0);
	assert_int_equal(pthread_create(&served->thread, NULL, serve, &served->fence), 0);
}

static void stop_served(struct served *served)
{
	void *result;

	if (!served->open)
		return;
	weir_fence__stop(fence__handle(&served->fence));
	assert_int_equal(pthread_join(served->thread, &result), 0);
	assert_null(result);
}

static uint64_t ask(struct served *served)
{
	uint64_t t_ns;

	if (!served->open)
		return 0;
	fence__request(&served->fence);
	t_ns = fence__newest_ns(&served->fence);
	return t_ns ? t_ns - GUARD_NS : 0;
}

/* ---- one run -------------------------------------------------------------------------------- */

struct run {
	struct rule rules[RULES];
	struct served rcu, membarrier;
	struct rings rings;
	uint64_t records, max_ns;
};

static void load_heads(struct rings *rings)
{
	for (unsigned int i = 0; i < rings->n; i++)
		rings->ring[i].head = __atomic_load_n(&rings->ring[i].page->data_head,
						      __ATOMIC_ACQUIRE);
}

static void harvest(struct run *run, struct ring *ring)
{
	uint64_t stamp_ns;

	while ((stamp_ns = next_stamp(ring))) {
		run->records++;
		if (stamp_ns > run->max_ns)
			run->max_ns = stamp_ns;
		for (int i = 0; i < RULES; i++)
			judge(&run->rules[i], stamp_ns);
	}
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

static void do_round(struct run *run)
{
	run->rules[BY_RCU].next_ns = ask(&run->rcu);
	run->rules[BY_MEMBARRIER].next_ns = ask(&run->membarrier);
	/* The maximum of the rounds before this one. */
	run->rules[BY_ROUNDS].next_ns = run->max_ns ? run->max_ns - 1 : 0;
	run->rules[BY_CLOCK].next_ns = now_ns() - GUARD_NS;
	clock__fence();
	load_heads(&run->rings);
	for (unsigned int i = 0; i < run->rings.n; i++)
		harvest(run, &run->rings.ring[i]);
	for (int i = 0; i < RULES; i++)
		announce(&run->rules[i]);
}

static void print_fence(const struct served *served)
{
	struct fence_delay delay;

	if (!served->open)
		return;
	fence__delay(&served->fence, &delay);
	print_message("  %s: %llu tickets, %.3f ms on average, %.3f ms at most\n",
		      fence__door_name(&served->fence), (unsigned long long)delay.count,
		      (double)delay.sum_ns / 1e6 / (double)(delay.count ? delay.count : 1),
		      (double)delay.max_ns / 1e6);
}

static void print_run(const struct run *run, uint64_t failed, uint64_t skipped)
{
	print_message("%llu records, %llu lost, %llu skipped; late:\n",
		      (unsigned long long)run->records, (unsigned long long)failed,
		      (unsigned long long)skipped);
	for (int i = 0; i < RULES; i++)
		print_message("  %llu by %s, up to %.3f ms\n",
			      (unsigned long long)run->rules[i].late, run->rules[i].name,
			      (double)run->rules[i].worst_ns / 1e6);
	print_fence(&run->rcu);
	print_fence(&run->membarrier);
}

static struct run *new_run(int events_fd)
{
	static const char *const names[RULES] = {
		[BY_CLOCK] = "clock before harvest",
		[BY_ROUNDS] = "rounds",
		[BY_RCU] = "rcu",
		[BY_MEMBARRIER] = "membarrier",
	};
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	for (int i = 0; i < RULES; i++)
		run->rules[i].name = names[i];
	open_rings(&run->rings, events_fd);
	open_served(&run->rcu, FENCE_RCU);
	open_served(&run->membarrier, FENCE_MEMBARRIER);
	return run;
}

static void free_run(struct run *run)
{
	fence__close(&run->rcu.fence);
	if (run->membarrier.open)
		fence__close(&run->membarrier.fence);
	close_rings(&run->rings);
	free(run);
}

/* After the load: what runs is waited for once more, here, and then everything is there. */
static void finish(struct run *run, struct fence_control *control)
{
	fence_control__detach(control);
	stop_served(&run->rcu);
	stop_served(&run->membarrier);
	assert_int_equal(fence__run(&run->rcu.fence), 0);
	do_round(run);
}

/* A fence that had announced little would have had little to be wrong about. */
static void expect_fence(const struct run *run, enum rule_id id)
{
	assert_int_equal(run->rules[id].late, 0);
	assert_true(run->rules[id].judged > run->records / 2);
}

/* G2 */
static void late_by_rule(void **state)
{
	struct fence_control *control = fence_load__open(0);
	struct run *run = new_run(bpf_map__fd(control->maps.control_events));
	uint64_t end_ns, failed, skipped;

	fence_load__go();
	end_ns = now_ns() + load_seconds * 1000000000ull;
	while (now_ns() < end_ns) {
		do_round(run);
		usleep(ROUND_US);
	}
	fence_load__end();
	finish(run, control);
	failed = control->bss->control_failed;
	skipped = fence_load__skipped(control, run->records + failed);
	print_run(run, failed, skipped);

	expect_fence(run, BY_RCU);
	if (run->membarrier.open)
		expect_fence(run, BY_MEMBARRIER);
	/* On one CPU the reader never runs between stamp and output. */
	if (fence_load__loops() > 1)
		assert_true(run->rules[BY_CLOCK].late > 0);
	free_run(run);
	fence_load__close(control);
}

/* ---- the switch for expedited grace periods ------------------------------------------------- */

static long read_switch(void)
{
	FILE *file = fopen(SWITCH, "re");
	long value = -1;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld", &value), 1);
	fclose(file);
	return value;
}

static void open_expedited(struct fence *fence)
{
	assert_int_equal(fence__open(fence, FENCE_RCU, &clock__kernel), 0);
	assert_int_equal(fence__expedite(fence), 0);
}

static void expedited_until_close(void **state)
{
	struct fence fence;

	open_expedited(&fence);
	assert_int_equal(read_switch(), FENCE_EXPEDITED);
	assert_int_equal(fence__run(&fence), 0);
	assert_true(fence__newest_ns(&fence) > 0);
	fence__close(&fence);
	assert_int_equal(read_switch(), 0);
}

/* Who is killed leaves it on, and the next one puts it right. */
static void expedited_and_killed(void **state)
{
	struct fence fence;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		open_expedited(&fence);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read_switch(), FENCE_EXPEDITED);
	open_expedited(&fence);
	fence__close(&fence);
	assert_int_equal(read_switch(), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_by_rule),
		cmocka_unit_test(expedited_until_close),
		cmocka_unit_test(expedited_and_killed),
	};
	int r;

	if (argc > 1)
		load_seconds = (unsigned int)atoi(argv[1]);
	r = cmocka_run_group_tests_name("fence_control", tests, NULL, NULL);

	return r ? 1 : 0;
}
