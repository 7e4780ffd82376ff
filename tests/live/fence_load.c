// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fence_load.h"
#include "source/misses.h"

#define LOOPS_MAX 64
#define BURST	  64 /* calls between two looks at what is told */

/* Between the test and the load. */
struct told {
	bool go, stop;
	unsigned int pause_us;
	uint64_t calls[LOOPS_MAX];
};

static struct told *told;
static pid_t load_pid;

static bool is_told(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void tell(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

/* To the n-th CPU that we may use; false: there are not so many. */
static bool pin(unsigned int n)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all))
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0)
			CPU_SET(cpu, &one);
	return CPU_COUNT(&one) && !sched_setaffinity(0, sizeof(one), &one);
}

static void *make_calls(void *arg)
{
	unsigned int loop = (unsigned int)(uintptr_t)arg;
	struct utsname name;

	if (!pin(loop))
		return NULL;
	while (!is_told(&told->stop)) {
		for (int i = 0; i < BURST; i++)
			syscall(SYS_uname, &name);
		told->calls[loop] += BURST;
		if (told->pause_us)
			usleep(told->pause_us);
	}
	return NULL;
}

static void run_load(void)
{
	pthread_t loops[LOOPS_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!is_told(&told->go))
		usleep(1000);
	for (uintptr_t i = 0; i < LOOPS_MAX; i++)
		if (pthread_create(&loops[i], NULL, make_calls, (void *)i))
			_exit(111);
	for (int i = 0; i < LOOPS_MAX; i++)
		pthread_join(loops[i], NULL);
	_exit(0);
}

static struct fence_control *open_control(uint32_t tgid)
{
	struct fence_control *control = fence_control__open();

	assert_non_null(control);
	control->rodata->control_nr = SYS_uname;
	assert_int_equal(fence_control__load(control), 0);
	control->bss->control_tgid = tgid;
	assert_int_equal(fence_control__attach(control), 0);
	return control;
}

struct fence_control *fence_load__open(unsigned int pause_us)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	told->pause_us = pause_us;
	load_pid = fork();
	assert_true(load_pid >= 0);
	if (!load_pid)
		run_load();
	return open_control((uint32_t)load_pid);
}

void fence_load__go(void)
{
	tell(&told->go);
}

void fence_load__end(void)
{
	int status;

	tell(&told->stop);
	assert_int_equal(waitpid(load_pid, &status, 0), load_pid);
	assert_int_equal(status, 0);
}

uint64_t fence_load__calls(void)
{
	uint64_t calls = 0;

	for (unsigned int i = 0; i < LOOPS_MAX; i++)
		calls += told->calls[i];
	return calls;
}

unsigned int fence_load__loops(void)
{
	unsigned int loops = 0;

	for (unsigned int i = 0; i < LOOPS_MAX; i++)
		loops += told->calls[i] > 0;
	return loops;
}

uint64_t fence_load__skipped(const struct fence_control *control, uint64_t accounted)
{
	struct misses misses;
	uint64_t at_most, calls = fence_load__calls();

	assert_int_equal(misses__open_prog(&misses, bpf_program__fd(control->progs.control_enter),
					   "control_enter"),
			 0);
	at_most = misses__total(&misses, 0);
	misses__close(&misses);
	assert_in_range(accounted, calls - at_most, calls);
	return calls - accounted;
}

void fence_load__close(struct fence_control *control)
{
	fence_control__destroy(control);
	munmap(told, sizeof(*told));
}
