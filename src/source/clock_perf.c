/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/clock_perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)

#define NSEC_PER_SEC 1000000000ll

/* As perf_event.h has it: the TSC in two parts, so that the product can't overflow. */
static uint64_t now_ns(void *ctx)
{
	const volatile struct perf_event_mmap_page *page = ctx;
	uint64_t tsc, quotient, remainder, ns;
	uint32_t seq;

	do {
		/* The kernel makes `lock` odd while it changes the rest, and changes it back behind it. */
		seq = page->lock;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		tsc = __builtin_ia32_rdtsc();
		quotient = tsc >> page->time_shift;
		remainder = tsc & ((1ull << page->time_shift) - 1);
		ns = page->time_zero + quotient * page->time_mult +
		     ((remainder * page->time_mult) >> page->time_shift);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (page->lock != seq);
	return ns;
}

static int64_t offset_to(clockid_t id, void *ctx)
{
	uint64_t before = now_ns(ctx);
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec - (int64_t)((before + now_ns(ctx)) / 2);
}

static void offsets(void *ctx, int64_t *real_ns, int64_t *boot_ns)
{
	*real_ns = offset_to(CLOCK_REALTIME, ctx);
	*boot_ns = offset_to(CLOCK_BOOTTIME, ctx);
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int clock_perf__open(struct weir_clock *out)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct perf_event_mmap_page *page;
	int err;

	if (fd < 0)
		return -errno;
	/* The mapping keeps the event. */
	page = mmap(NULL, page_bytes(), PROT_READ, MAP_SHARED, fd, 0);
	err = page == MAP_FAILED ? -errno : 0;
	close(fd);
	if (err)
		return err;
	if (!page->cap_user_time_zero) {
		munmap(page, page_bytes());
		return -EOPNOTSUPP;
	}
	*out = (struct weir_clock){.now_ns = now_ns, .offsets = offsets, .ctx = page};
	return 0;
}

void clock_perf__close(struct weir_clock *clock)
{
	if (clock->now_ns == now_ns)
		munmap(clock->ctx, page_bytes());
}

#else

int clock_perf__open(struct weir_clock *out)
{
	return -EOPNOTSUPP;
}

void clock_perf__close(struct weir_clock *clock)
{
}

#endif
