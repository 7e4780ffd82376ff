/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/fencing.h"

#include "cli/priority.h"
#include "cli/privileges.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define POLL_MS 1

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

/* Rights and priority are a thread's, so it sees to its own. */
static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = (uint32_t)gettid();
	sem_post(&w->known);
	wait_for(&w->go);
	if (w->fn) {
		priority__raise();
		/* It fails where the reader's does, who says so. */
		privileges__drop();
		w->fn(w->arg);
	}
	__atomic_store_n(&w->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static int start(struct worker *w)
{
	sigset_t all, before;
	int err;

	if (sem_init(&w->known, 0, 0) || sem_init(&w->go, 0, 0))
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return err;
	w->is_there = true;
	wait_for(&w->known);
	return 0;
}

static void begin(struct worker *w, void (*fn)(void *arg), void *arg)
{
	w->fn = fn;
	w->arg = arg;
	w->has_begun = true;
	sem_post(&w->go);
}

static void end(struct worker *w)
{
	if (!w->is_there)
		return;
	if (!w->has_begun)
		begin(w, NULL, NULL);
	pthread_join(w->thread, NULL);
	w->is_there = false;
}

int fencing__start(struct fencing *f)
{
	int err = start(&f->fence);

	return err ? err : start(&f->other);
}

static void serve(void *fence)
{
	/* When it fails, the stream waits by itself. */
	weir_fence__run(fence);
}

void fencing__serve(struct fencing *f, struct weir_fence *fence)
{
	begin(&f->fence, serve, fence);
}

void fencing__read_while(struct fencing *f, struct weir_stream *stream, void (*fn)(void *arg),
			 void *arg)
{
	struct worker *w = &f->other;
	int err = 0;

	if (!w->is_there || w->has_begun) {
		fn(arg);
		return;
	}
	begin(w, fn, arg);
	/* Pairs with the release in work(): what fn has done is seen. An error comes again at the end. */
	while (!__atomic_load_n(&w->is_done, __ATOMIC_ACQUIRE) && (err >= 0 || err == -EINTR))
		err = weir_stream__poll(stream, POLL_MS);
	end(w);
}

void fencing__stop(struct fencing *f)
{
	if (f->fence.is_there && f->fence.has_begun)
		weir_fence__stop(f->fence.arg);
	end(&f->fence);
	end(&f->other);
}
