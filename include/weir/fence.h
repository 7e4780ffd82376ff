/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fence.h - a thread of the caller's that does the waiting for a stream.
 *
 * Some sources stamp their records first and publish them later: perf rings, and BPF programs
 * that do not write through weir.bpf.h. For these the watermark may move to a time T only when a
 * grace period of the kernel's RCU has passed after T, and to wait for one blocks its caller,
 * uninterruptibly, for milliseconds and in bad cases for seconds. One fence serves all sources of
 * a stream.
 *
 * Without a thread weir_stream__poll() does that waiting itself, and the rings have to hold what
 * is written meanwhile. With one it never waits: it asks, and uses the newest answer there is.
 *
 *
 *
 *
 *
 *
 *
 *
 */
#ifndef WEIR_FENCE_H
#define WEIR_FENCE_H

#ifdef __cplusplus
extern "C" {
#endif

struct weir_fence;
struct weir_stream;

/*
 * The fence of a stream, the same at each call; it lives as long as the stream. NULL and ENOENT:
 * no source that was added so far needs one.
 */
struct weir_fence *weir_stream__fence(struct weir_stream *stream);

/* What /sys/kernel/rcu_expedited holds while a stream has asked for it: "weir". */
#define WEIR_EXPEDITED 0x77656972

/*
 * Have the kernel hurry all its grace periods until weir_stream__free(): a fence then takes
 * microseconds to milliseconds, and each one interrupts every CPU of the machine. For the
 * administrator to decide. The switch is the whole machine's; it is put back by free(), and after a
 * process was killed it is left at WEIR_EXPEDITED until the next stream that asks for it ends, or
 * until somebody writes 0. Errors: ENOENT, no source needs a fence; EBUSY, another process has
 * expedited them already; EACCES and others of open(2) and write(2).
 */
int weir_stream__expedite(struct weir_stream *stream);

/*
 * Serve: wait for grace periods, one at a time and only while the stream asks for them, until
 * weir_fence__stop(). Returns 0 then. Errors: EBUSY, a thread serves already; EAGAIN, one CPU is
 * left online and this fence (membarrier) needs two; else bpf(2)'s or membarrier(2)'s. After an
 * error the stream waits by itself again.
 */
int weir_fence__run(struct weir_fence *fence);

/*
 * Make weir_fence__run() return, as soon as a grace period that it waits for has passed. If no
 * thread serves now, the next one that wants to returns at once: a stop is never lost, and each
 * ends one run. Thread-safe and async-signal-safe. weir_stream__free() does the same and waits
 * for the thread to have left; what must not happen is that run begins after free has.
 */
void weir_fence__stop(struct weir_fence *fence);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_FENCE_H */
