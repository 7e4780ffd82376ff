/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fencing.h - threads that wait for the kernel's grace periods, so that the reader never does: one for
 * those of the stream, and one for those that it takes to detach the probes.
 *
 * They are there before they have anything to do, so that their ids are known to those who leave weir's
 * own threads out.
 */
#ifndef WEIR_CLI_FENCING_H
#define WEIR_CLI_FENCING_H

#include <weir/fence.h>
#include <weir/stream.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

struct worker {
	pthread_t thread;
	sem_t known, go;
	uint32_t tid;
	void (*fn)(void *arg); /* NULL: there is nothing to do */
	void *arg;
	bool is_there, has_begun, is_done;
};

struct fencing {
	struct worker fence, other;
};

/* Two threads, blocked for all signals, that wait to be told. 0 or -errno. */
int fencing__start(struct fencing *fencing);

/* The fence that one of them is to serve, until fencing__stop(). */
void fencing__serve(struct fencing *fencing, struct weir_fence *fence);

/* Once: fn(arg), and the stream is read meanwhile, where there are threads. */
void fencing__read_while(struct fencing *fencing, struct weir_stream *stream, void (*fn)(void *arg),
			 void *arg);

/* Before the stream is let go of; nothing happens when there is no thread. */
void fencing__stop(struct fencing *fencing);

#endif /* WEIR_CLI_FENCING_H */
