/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence.c - tickets: when they are asked for, who waits for them, and by which door.
 *
 * Owns the descriptors of its door, one eventfd, and the state that the stream's thread and the
 * one that serves share. Promises that at most one ticket is in flight, that a request is
 * answered by a T taken after it or by the end of fence__is_served(), both with an edge on the
 * eventfd, and that no answer goes back in time. Must not know what T is used for.
 */
#include "source/fence.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "source/cpus.h"
#include "symbols.h"

#define EXPEDITED "/sys/kernel/rcu_expedited"

/* fence.word */
#define FENCE_WANTED (1u << 0) /* a request that no ticket has taken up */
#define FENCE_TICKET (1u << 1) /* a ticket is in flight: whoever set this, clears it */
#define FENCE_SERVED (1u << 2) /* a thread answers requests */
#define FENCE_INSIDE (1u << 3) /* it has not left: the struct is in use */
#define FENCE_STOP   (1u << 4) /* it is to leave */
#define FENCE_ASLEEP (1u << 5) /* it waits on the word: a change needs a wake-up */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void futex_wait(const uint32_t *word, uint32_t expected)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(const uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- the doors ------------------------------------------------------------------------------ */

/*
 * The update of a map of maps waits until no program can use the old element any more, which is a
 * grace period, whatever the new one is and however many CPUs there are. A batch of updates does
 * not on every kernel.
 */
int fence__update(int maps_fd, uint32_t key, int map_fd)
{
	return bpf_map_update_elem(maps_fd, &key, &map_fd, BPF_ANY);
}

static int wait_rcu(void *ctx)
{
	struct fence *f = ctx;

	return fence__update(f->maps_fd, 0, f->map_fd);
}

static int open_rcu(struct fence *f)
{
	DECLARE_LIBBPF_OPTS(bpf_map_create_opts, opts);

	f->map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_fence", sizeof(uint32_t),
				   sizeof(uint32_t), 1, NULL);
	if (f->map_fd < 0)
		return f->map_fd;
	opts.inner_map_fd = (uint32_t)f->map_fd;
	f->maps_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "weir_fences", sizeof(uint32_t),
				    sizeof(uint32_t), 1, &opts);
	if (f->maps_fd >= 0)
		return 0;
	close_fd(&f->map_fd);
	return f->maps_fd;
}

static int online_cpus(unsigned *count)
{
	struct cpus *online = malloc(sizeof(*online));
	int err = online ? cpus__online(online, NULL) : -ENOMEM;

	*count = err ? 0 : cpus__count(online);
	free(online);
	return err;
}

/*
 * With one CPU online the kernel returns at once: on a preemptible one that proves nothing. It
 * looks at some moment in between, so two have to be online on both sides. To slip through, a CPU
 * would have to go and come back within a call that then takes no time.
 */
static int wait_membarrier(void *ctx)
{
	unsigned before, after;
	int err = online_cpus(&before);

	if (err)
		return err;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return errno == EINVAL ? -EOPNOTSUPP : -errno;
	err = online_cpus(&after);
	if (err)
		return err;
	return before > 1 && after > 1 ? 0 : -EAGAIN;
}

static int open_membarrier(struct fence *f)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	unsigned online;
	int err;

	if (commands < 0)
		return -errno;
	/* Under nohz_full it is not among them. */
	if (!(commands & MEMBARRIER_CMD_GLOBAL))
		return -EOPNOTSUPP;
	err = online_cpus(&online);
	if (err)
		return err;
	return online > 1 ? 0 : -EOPNOTSUPP;
}

static int open_door(struct fence *f, enum fence_door door)
{
	int err;

	if (door != FENCE_MEMBARRIER) {
		f->door = FENCE_RCU;
		f->wait = wait_rcu;
		err = open_rcu(f);
		if (!err || door == FENCE_RCU)
			return err;
	}
	f->door = FENCE_MEMBARRIER;
	f->wait = wait_membarrier;
	if (door == FENCE_MEMBARRIER)
		return open_membarrier(f);
	return open_membarrier(f) ? err : 0;
}

/* ---- expedited grace periods ---------------------------------------------------------------- */

static int read_switch(int fd, long *value)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	*value = strtol(text, NULL, 10);
	return 0;
}

static int write_switch(int fd, long value)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%ld\n", value);

	return pwrite(fd, text, (size_t)n, 0) == n ? 0 : -errno;
}

/*
 * 1: it is on, and ours to turn off; 0: the administrator's. What is found of ours was left
 * behind, for we have the lock.
 */
static int turn_on(int fd)
{
	long value;
	int err = read_switch(fd, &value);

	if (err || (value && value != FENCE_EXPEDITED))
		return err;
	err = write_switch(fd, FENCE_EXPEDITED);
	if (!err)
		err = read_switch(fd, &value);
	if (err)
		return err;
	return value == FENCE_EXPEDITED ? 1 : -EOPNOTSUPP;
}

int fence__expedite(struct fence *f)
{
	int fd, ours;

	if (f->expedited_fd >= 0)
		return 0;
	fd = open(EXPEDITED, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ours = flock(fd, LOCK_EX | LOCK_NB) ? -errno : turn_on(fd);
	if (ours > 0)
		f->expedited_fd = fd;
	else
		close(fd);
	return ours == -EWOULDBLOCK ? -EBUSY : ours < 0 ? ours : 0;
}

/* Unless the administrator has set it meanwhile. */
static void restore_expedited(struct fence *f)
{
	long value;

	if (f->expedited_fd < 0)
		return;
	if (!read_switch(f->expedited_fd, &value) && value == FENCE_EXPEDITED)
		write_switch(f->expedited_fd, 0);
	close_fd(&f->expedited_fd);
}

/* ---- open and close ------------------------------------------------------------------------- */

static int open_state(struct fence *f, const struct weir_clock *clock)
{
	memset(f, 0, sizeof(*f));
	f->clock = clock;
	f->maps_fd = f->map_fd = f->expedited_fd = -1;
	f->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return f->event_fd < 0 ? -errno : 0;
}

int fence__open(struct fence *f, enum fence_door door, const struct weir_clock *clock)
{
	int err = open_state(f, clock);

	f->ctx = f;
	if (!err)
		err = open_door(f, door);
	if (err)
		fence__close(f);
	return err;
}

int fence__open_custom(struct fence *f, int (*wait)(void *ctx), void *ctx,
		       const struct weir_clock *clock)
{
	int err = open_state(f, clock);

	f->door = FENCE_CUSTOM;
	f->wait = wait;
	f->ctx = ctx;
	return err;
}

/* Until the thread that serves touches nothing of ours any more. */
static void send_away(struct fence *f)
{
	uint32_t word;

	weir_fence__stop(fence__handle(f));
	while ((word = __atomic_load_n(&f->word, __ATOMIC_ACQUIRE)) & FENCE_INSIDE)
		futex_wait(&f->word, word);
}

void fence__close(struct fence *f)
{
	send_away(f);
	restore_expedited(f);
	close_fd(&f->maps_fd);
	close_fd(&f->map_fd);
	close_fd(&f->event_fd);
}

const char *fence__door_name(const struct fence *f)
{
	static const char *const names[] = {
		[FENCE_AUTO] = "none",
		[FENCE_RCU] = "rcu",
		[FENCE_MEMBARRIER] = "membarrier",
		[FENCE_CUSTOM] = "custom",
	};

	return names[f->door];
}

/* ---- tickets -------------------------------------------------------------------------------- */

/* Only the holder of the ticket writes these; the stream's thread may read them at any time. */
static void set(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static uint64_t get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static uint64_t now_ns(const struct fence *f)
{
	return f->clock->now_ns(f->clock->ctx);
}

static void count_delay(struct fence_delay *delay, uint64_t ns)
{
	set(&delay->last_ns, ns);
	set(&delay->sum_ns, delay->sum_ns + ns);
	if (ns > delay->max_ns)
		set(&delay->max_ns, ns);
	set(&delay->count, delay->count + 1);
}

void fence__delay(const struct fence *f, struct fence_delay *out)
{
	out->count = get(&f->delay.count);
	out->last_ns = get(&f->delay.last_ns);
	out->max_ns = get(&f->delay.max_ns);
	out->sum_ns = get(&f->delay.sum_ns);
}

/*
 * With FENCE_TICKET held. The clock is read before the grace period begins, and what follows stays
 * behind it: a writer that this one does not wait for stamps later than t_ns.
 */
static int run_ticket(struct fence *f)
{
	uint64_t t_ns = now_ns(f);
	int err;

	clock__fence();
	err = f->wait(f->ctx);
	if (!err) {
		count_delay(&f->delay, now_ns(f) - t_ns);
		/* Pairs with fence__newest_ns(): heads that are loaded after it are those of now. */
		__atomic_store_n(&f->newest_ns, t_ns, __ATOMIC_RELEASE);
	}
	/* Release: the next holder continues from these counters and takes a later T. */
	if (__atomic_fetch_and(&f->word, ~FENCE_TICKET, __ATOMIC_RELEASE) & FENCE_ASLEEP)
		futex_wake(&f->word);
	return err;
}

/* From a word that allows it: what was asked for until now is answered by this ticket. */
static bool take_ticket(struct fence *f, uint32_t *word)
{
	return __atomic_compare_exchange_n(&f->word, word, (*word & ~FENCE_WANTED) | FENCE_TICKET,
					   false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

int fence__run(struct fence *f)
{
	uint32_t word = __atomic_load_n(&f->word, __ATOMIC_ACQUIRE);

	/* Its ticket may be in flight only while it serves. */
	while (!(word & FENCE_SERVED))
		if (take_ticket(f, &word))
			return run_ticket(f);
	fence__request(f);
	return 0;
}

uint64_t fence__newest_ns(const struct fence *f)
{
	return __atomic_load_n(&f->newest_ns, __ATOMIC_ACQUIRE);
}

bool fence__is_served(const struct fence *f)
{
	return __atomic_load_n(&f->word, __ATOMIC_ACQUIRE) & FENCE_SERVED;
}

void fence__request(struct fence *f)
{
	/*
	 * An exchange, also where the bit is set already: it comes before or after the one that
	 * takes the bit away, so that a T taken before this call never passes for an answer to
	 * it.
	 */
	uint32_t word = __atomic_fetch_or(&f->word, FENCE_WANTED, __ATOMIC_RELEASE);

	if ((word & FENCE_ASLEEP) && !(word & FENCE_WANTED))
		futex_wake(&f->word);
}

/* ---- the thread that serves ----------------------------------------------------------------- */

static bool enter(struct fence *f)
{
	uint32_t word = __atomic_load_n(&f->word, __ATOMIC_ACQUIRE);

	while (!(word & FENCE_INSIDE))
		if (__atomic_compare_exchange_n(&f->word, &word, word | FENCE_INSIDE | FENCE_SERVED,
						false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

/*
 * First let the stream see that nobody serves, then wake it: a request that it waits for may be
 * unanswered. Only then let go of the struct; a wake-up takes an address and looks at nothing
 * there.
 */
static void leave(struct fence *f)
{
	__atomic_fetch_and(&f->word, ~(FENCE_SERVED | FENCE_STOP), __ATOMIC_RELEASE);
	eventfd_write(f->event_fd, 1);
	__atomic_fetch_and(&f->word, ~FENCE_INSIDE, __ATOMIC_RELEASE);
	futex_wake(&f->word);
}

static void sleep_on(struct fence *f, uint32_t *word)
{
	/* The bit first: whoever changes the word before we sleep makes the wait return at once. */
	if (!__atomic_compare_exchange_n(&f->word, word, *word | FENCE_ASLEEP, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return;
	futex_wait(&f->word, *word | FENCE_ASLEEP);
	*word = __atomic_fetch_and(&f->word, ~FENCE_ASLEEP, __ATOMIC_ACQUIRE) & ~FENCE_ASLEEP;
}

/* Wait for a request and take a ticket for it. false: told to stop. */
static bool next_ticket(struct fence *f)
{
	uint32_t word = __atomic_load_n(&f->word, __ATOMIC_ACQUIRE);

	while (!(word & FENCE_STOP)) {
		/* The ticket can be away when this thread came while fence__run() had it. */
		bool ready = (word & (FENCE_WANTED | FENCE_TICKET)) == FENCE_WANTED;

		if (!ready)
			sleep_on(f, &word);
		else if (take_ticket(f, &word))
			return true;
	}
	return false;
}

WEIR_API int weir_fence__run(struct weir_fence *fence)
{
	struct fence *f = fence__of(fence);
	int err = 0;

	if (!enter(f))
		return -EBUSY;
	while (!err && next_ticket(f)) {
		err = run_ticket(f);
		if (!err)
			eventfd_write(f->event_fd, 1);
	}
	leave(f);
	return err;
}

WEIR_API void weir_fence__stop(struct weir_fence *fence)
{
	struct fence *f = fence__of(fence);
	int saved_errno = errno;

	if (__atomic_fetch_or(&f->word, FENCE_STOP, __ATOMIC_RELEASE) & FENCE_ASLEEP)
		futex_wake(&f->word);
	errno = saved_errno;
}
