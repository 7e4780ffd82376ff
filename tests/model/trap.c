// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "sanitized.h"
#include "trap.h"

#define PAGE 4096u

static struct trap *traps;
static struct sigaction before;

/* Whose it is not goes on to whoever was asked before: cmocka. */
static void on_fault(int signum, siginfo_t *info, void *context)
{
	(void)context;
	for (struct trap *trap = traps; trap; trap = trap->next) {
		uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)trap->readers;

		if (at >= trap->size)
			continue;
		mprotect((char *)trap->readers + at / PAGE * PAGE, PAGE, PROT_READ);
		trap->hook(trap->ctx);
		return;
	}
	sigaction(signum, &before, NULL);
}

bool trap__works(void)
{
	return !SANITIZED_ADDRESS && !SANITIZED_THREAD;
}

void trap__init(struct trap *trap, void *writers, size_t size)
{
	int fd = memfd_create("model-trap", MFD_CLOEXEC);

	*trap = (struct trap){.size = size};
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	trap->writers = mmap(writers, size, PROT_READ | PROT_WRITE,
			     MAP_SHARED | (writers ? MAP_FIXED : 0), fd, 0);
	trap->readers = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(trap->writers != MAP_FAILED && trap->readers != MAP_FAILED);
	close(fd);
}

void trap__destroy(struct trap *trap)
{
	struct trap **at = &traps;

	while (*at && *at != trap)
		at = &(*at)->next;
	if (*at)
		*at = trap->next;
	if (!traps && before.sa_handler)
		sigaction(SIGSEGV, &before, NULL);
	munmap(trap->readers, trap->size);
}

static void listen(struct trap *trap)
{
	const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

	for (struct trap *other = traps; other; other = other->next)
		if (other == trap)
			return;
	if (!traps)
		assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	trap->next = traps;
	traps = trap;
}

void trap__set(struct trap *trap, void (*hook)(void *ctx), void *ctx)
{
	trap->hook = hook;
	trap->ctx = ctx;
	if (!trap__works()) {
		hook(ctx);
		return;
	}
	listen(trap);
	assert_int_equal(mprotect(trap->readers, trap->size, PROT_NONE), 0);
}
