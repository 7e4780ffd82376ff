/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fencing.h - a thread that waits for the kernel's grace periods, so that the reader never does.
 *
 * It is there before it has anything to wait for, so that its id is known to those who leave weir's own
 * threads out.
 */
#ifndef WEIR_CLI_FENCING_H
#define WEIR_CLI_FENCING_H

#include <weir/fence.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

struct fencing {
	pthread_t thread;
	sem_t known, go;
	uint32_t tid;
	struct weir_fence *fence; /* NULL: there is nothing to wait for */
	bool is_there;
};

/* A thread, blocked for all signals, that waits to be told. 0 or -errno. */
int fencing__start(struct fencing *fencing);

/* The fence that it is to serve, until fencing__stop(). */
void fencing__serve(struct fencing *fencing, struct weir_fence *fence);

/* Before the stream is let go of; nothing happens when there is no thread. */
void fencing__stop(struct fencing *fencing);

#endif /* WEIR_CLI_FENCING_H */
