/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lean.h - the accounting probe: who runs on each CPU, from when on.
 *
 * Owns its BPF object. Its records are struct weir_lean, with a seed first on each CPU; what they add
 * up to is state/'s to say.
 */
#ifndef WEIR_LEAN_USER_H
#define WEIR_LEAN_USER_H

#include <weir/lanes.h>
#include <weir/lean.h>

struct lean;

/* What perf_event_open(2) calls type and config. */
struct lean_event {
	uint32_t type;
	uint64_t config;
};

struct lean_opts {
	/*
	 * Of each CPU's ring: a power of two; 0: 131,072, of 40 bytes each. At 610,000 switches a second,
	 * which two processes at a pipe make, that is 214 ms, and 187 from the wake-up on.
	 */
	uint32_t ring_records;
	/* Records are struct weir_lean_counted: hardware counters, or these events in their place. */
	bool counters;
	const struct lean_event *events; /* WEIR_LEAN_COUNTERS of them; NULL: hardware's */
	bool raw; /* raw tracepoints at once: otherwise where the kernel refuses the others */
};

/*
 * Load. NULL and errno, with one sentence in err: cause and way out. ENODEV: counters were asked for,
 * and this machine has none.
 */
struct lean *lean__open(const struct lean_opts *opts, char *err, size_t err_len);

/* From now on each switch is recorded; each lane begins with its seed. */
int lean__attach(struct lean *lean, char *err, size_t err_len);

/*
 * Tell the reader all that there is. CPUs that have come online get their lane; then the counters begin
 * again at 0. Returns the number of records, or a negative errno. Never sleeps.
 */
int lean__poll(struct lean *lean, const struct weir_lanes_reader *reader, void *ctx);

/* Readable from when an eighth of a ring is full until the next poll. Owned by `lean`. */
int lean__wake_fd(const struct lean *lean);

/* No switch is recorded after this. Tells what was, to the last; waits for a grace period. */
int lean__detach(struct lean *lean, const struct weir_lanes_reader *reader, void *ctx);
void lean__free(struct lean *lean);

/* Of the CPU's lane, at the last poll. Error: ENOENT, it has none. */
int lean__account(const struct lean *lean, int cpu, struct weir_lane_account *out);

/* The program on sched_switch: what it costs, bpf_prog_info tells (its run_time_ns). */
int lean__prog_fd(const struct lean *lean);

#endif /* WEIR_LEAN_USER_H */
