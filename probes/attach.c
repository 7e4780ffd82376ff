// SPDX-License-Identifier: BSD-2-Clause
/*
 * attach.c - from loaded to running, and back.
 *
 * Lifecycle probes come first and what already runs is read after that: a process that starts or
 * ends meanwhile is seen twice, never not at all. Everything else comes last, when it is known who
 * the events belong to.
 */
#include "probes/loaded.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int attach_phase(struct probes *probes, enum phase phase, const char **failed)
{
	for (int i = 0; i < PROGRAMS; i++) {
		if (!probes->programs[i] || programs__table[i].phase != phase)
			continue;
		probes->links[i] = bpf_program__attach(probes->programs[i]);
		if (!probes->links[i]) {
			*failed = programs__table[i].tracepoint;
			return -errno;
		}
	}
	return 0;
}

static int attach_all(struct probes *probes, probes_seed_fn seed, void *ctx, char *what,
		      size_t what_len)
{
	const char *tracepoint = NULL;
	int err = attach_phase(probes, PHASE_LIFE, &tracepoint);

	if (!err) {
		err = seed__take(probes, seed, ctx);
		if (err) {
			snprintf(what, what_len, "list the processes that run");
			return err;
		}
		err = attach_phase(probes, PHASE_EVENTS, &tracepoint);
	}
	if (err)
		snprintf(what, what_len, "attach to the tracepoint %s", tracepoint);
	return err;
}

int probes__attach(struct probes *probes, probes_seed_fn seed, void *ctx, char *err, size_t err_len)
{
	struct refusal refusal;
	char what[96];
	int error;

	refusal__listen(&refusal);
	error = attach_all(probes, seed, ctx, what, sizeof(what));
	if (error) {
		refusal__explain(&refusal, what, -error, err, err_len);
		probes__detach(probes);
	}
	refusal__end(&refusal);
	return error;
}

void probes__detach(struct probes *probes)
{
	for (int phase = PHASES - 1; phase >= 0; phase--) {
		for (int i = PROGRAMS - 1; i >= 0; i--) {
			if ((int)programs__table[i].phase != phase)
				continue;
			bpf_link__destroy(probes->links[i]);
			probes->links[i] = NULL;
		}
	}
}
