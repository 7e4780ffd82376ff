/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loaded.h - what the files of the loader share.
 *
 *	open.c      a selection -> a loaded BPF object
 *	programs.c  the programs: on which tracepoint, when needed, in which order attached
 *	connect.c   its rings and programs -> a stream
 *	attach.c    attach and detach
 *	seed.c      what ran before
 *	refusal.c   why the kernel said no, in one sentence
 *	lean.c      the accounting probe, which has an object of its own
 */
#ifndef WEIR_LOADED_H
#define WEIR_LOADED_H

#include <bpf/libbpf.h>

#include "probes/probes.h"

struct probes_bpf;

enum phase {
	PHASE_LIFE,   /* attached before the seed is taken */
	PHASE_EVENTS, /* attached after it */
	PHASES,
	PHASE_NONE = PHASES /* run by hand */
};

/* Where there are two programs for one tracepoint, one of them is taken (programs__calls_way()). */
enum way { WAY_ANY, WAY_DIRECT, WAY_PERF };

/* Programs of one phase are attached in the table's order, and detached in the opposite one. */
struct program {
	const char *name;
	const char *tracepoint;
	uint32_t
		types; /* needed when any of these is selected (bit 1 << enum weir_type); 0: always */
	enum phase phase;
	bool may_lack; /* the kernel may be built without its tracepoint: then it just never fires */
	enum way way;
};

#define PROGRAMS 20
extern const struct program programs__table[PROGRAMS];

/* What this kernel's tracepoints look like. */
struct tracepoints {
	bool there[PROGRAMS];
	bool exit_tells_last;  /* sched_process_exit has a second argument */
	bool switch_has_state; /* sched_switch has a fourth */
};

/* 1 + the highest possible CPU id. Negative: -errno, and one sentence in err. */
int open__nr_cpus(char *err, size_t err_len);

/* From the kernel's BTF. -errno: that can't be read. */
int programs__look(struct tracepoints *tracepoints);

/* How to attach to the tracepoints of system calls: directly, or by way of perf. */
enum way programs__calls_way(void);

struct probes {
	struct probes_bpf *skel;
	uint32_t nr_cpus; /* 1 + the highest possible id */
	uint32_t *pids;	  /* as selected, without their descendants */
	uint32_t nr_pids;
	bool has_pids;
	bool children;	   /* as selected */
	bool foreign_pids; /* a pid namespace of our own: /proc has other numbers than the kernel */
	bool foreign_clock; /* a time namespace of our own: CLOCK_MONOTONIC is not what stamps are */
	struct bpf_program *programs[PROGRAMS]; /* NULL: not loaded */
	struct bpf_link *links[PROGRAMS];
};

/* Seed, and the set of selected processes brought up to date; needs PHASE_LIFE attached. */
typedef void (*probes_seed_fn)(void *ctx, const struct weir_seed *seed, const char *exe,
			       const char *cgroups);
int seed__take(struct probes *probes, probes_seed_fn fn, void *ctx);

/*
 * Between refusal__listen() and refusal__explain(), what libbpf has to say is kept instead of
 * printed. Explain writes one sentence - what was tried, why it failed, what helps - and ends it.
 */
struct refusal {
	libbpf_print_fn_t before;
	char program[64]; /* the last that the kernel refused */
	char words[256];  /* the verifier's last */
};
void refusal__listen(struct refusal *refusal);
void refusal__explain(struct refusal *refusal, const char *what, int error, char *err,
		      size_t err_len);
void refusal__end(struct refusal *refusal);

#endif /* WEIR_LOADED_H */
