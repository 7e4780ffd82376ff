/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probes.h - weir's own probes: load, attach, decode.
 *
 * Owns the BPF objects. Knows record layouts and names; knows nothing of order, sinks or options.
 */
#ifndef WEIR_PROBES_USER_H
#define WEIR_PROBES_USER_H

#include <weir/decode.h>
#include <weir/probes.h>
#include <weir/stream.h>

struct probes;

/* What the user asked for. */
struct probes_selection {
	uint32_t groups;	  /* bit (1 << enum weir_group); lifecycle state is always traced */
	uint32_t types;		  /* bit (1 << enum weir_type) of the selected record types */
	uint64_t syscalls[3][16]; /* [abi][nr / 64]: selected call numbers, 0 to 1023 */
	const uint32_t *pids;	  /* these processes and what they fork only; NULL: all */
	uint32_t nr_pids;
	bool children;		  /* also what they have forked before */
	bool no_follow;		  /* not even what they fork from now on */
	const uint32_t *left_out; /* without pids: all but these processes; NULL: none */
	uint32_t nr_left_out;
	/* Of system calls, only those of this user, and from within this cgroup (v2) or below. */
	bool has_uid;
	uint32_t uid;	       /* effective */
	int cgroup_fd;	       /* its directory; 0: any. Borrowed until probes__open() returns */
	uint32_t string_limit; /* bytes kept of each string, up to 4096 */
};

/*
 * Select by name: a group ("sys", NULL), or one event of it ("sys", "openat"; "process", "exec").
 * Adds to what is selected already. Returns 0, or -ENOENT with one sentence in err that names what
 * is unknown, and what was probably meant.
 */
int probes__select(struct probes_selection *sel, const char *group, const char *name, char *err,
		   size_t err_len);

/*
 * The same, and its opposite: not `wanted`, and what the name means is taken out. A class of system
 * calls ("%file") stands where a group or a call can.
 */
int probes__choose(struct probes_selection *sel, const char *group, const char *name, bool wanted,
		   char *err, size_t err_len);

/* Something that can be selected. Borrowed: valid during the call only. */
struct probes_item {
	const char *group; /* "sched" */
	const char *event; /* "switch" */
	const char *also;  /* another name of it, "sched_switch"; NULL: none */
	const char *abi;   /* "i386": a call that the native ABI does not have; else NULL */
	uint32_t nargs;
	const char *const *args; /* names */
};

/* Call fn for all that can be selected, until it returns other than 0; returns that. */
typedef int (*probes_list_fn)(void *ctx, const struct probes_item *item);
int probes__list(probes_list_fn fn, void *ctx);

/* Load the BPF objects. NULL and errno on failure, with one sentence in err: cause and way out. */
struct probes *probes__open(const struct probes_selection *sel, char *err, size_t err_len);

/* Make the rings in `stream` (life_bytes and event_bytes each CPU), watch the programs. */
int probes__connect(struct probes *probes, struct weir_stream *stream, size_t life_bytes,
		    size_t event_bytes, char *err, size_t err_len);

/*
 * Lifecycle first, then `seed` for each thread that runs, then the rest. exe is the process's, cgroups
 * all lines of its /proc/PID/cgroup; NULL: unknown, and of kernel threads. seed may be NULL.
 */
int probes__attach(struct probes *probes,
		   void (*seed)(void *ctx, const struct weir_seed *seed, const char *exe,
				const char *cgroups),
		   void *ctx, char *err, size_t err_len);
void probes__detach(struct probes *probes);
void probes__free(struct probes *probes);

/* Processes of the selection that still run (with pids only); 0: all gone. */
uint64_t probes__alive(const struct probes *probes);

/*
 * For `weir doctor`. The kernel may preempt programs at the tracepoints of system calls, and skips
 * them for others meanwhile; by way of perf it can't, and that way is open. weir takes it then.
 */
bool probes__calls_preempt(void);
bool probes__calls_by_perf(void);

/*
 * Name and arguments of a record. Returns 0, or -EBADMSG when its bytes make no sense (G8): every
 * length is checked against event->len first.
 */
int probes__decode(const struct weir_event *event, struct weir_decoded *out);

/*
 * The same for a call that was put together from its halves: the enter's arguments by name, with the
 * strings that only the exit could read, and the result. name is "syscall".
 */
int probes__decode_call(const struct weir_call *call, struct weir_decoded *out);

#endif /* WEIR_PROBES_USER_H */
