// SPDX-License-Identifier: BSD-2-Clause
/*
 * connect.c - a loaded BPF object's rings and programs, handed to a stream.
 */
#include "probes/loaded.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probes.skel.h"

static int add_rings(struct probes *probes, struct weir_stream *stream, size_t life_bytes,
		     size_t event_bytes)
{
	/* In the order of the BPF side's classes: CLASS_LIFE, CLASS_CPU. */
	const struct weir_ring_class classes[] = {{"life", life_bytes}, {"cpu", event_bytes}};
	const struct weir_rings_opts opts = {
		.sz = sizeof(opts),
		.rings_fd = bpf_map__fd(probes->skel->maps.weir_rings),
		.counters_fd = bpf_map__fd(probes->skel->maps.weir_counters),
		.nr_cpus = probes->nr_cpus,
		.classes = classes,
		.nr_classes = 2,
	};

	return weir_stream__add_rings(stream, &opts);
}

int probes__connect(struct probes *probes, struct weir_stream *stream, size_t life_bytes,
		    size_t event_bytes, char *err, size_t err_len)
{
	int error = add_rings(probes, stream, life_bytes, event_bytes);

	if (error == -ENOMEM) {
		snprintf(err, err_len,
			 "cannot make the rings: out of memory; ask for a smaller "
			 "--buffer, or raise the memory limit of this cgroup");
		return error;
	}
	if (error) {
		snprintf(err, err_len, "cannot make the rings: %s", strerror(-error));
		return error;
	}
	for (int i = 0; i < PROGRAMS; i++) {
		if (!probes->programs[i] || programs__table[i].phase == PHASE_NONE)
			continue;
		error = weir_stream__watch_prog(stream, bpf_program__fd(probes->programs[i]),
						programs__table[i].name);
		if (error) {
			snprintf(err, err_len, "cannot watch the program %s: %s",
				 programs__table[i].name, strerror(-error));
			return error;
		}
	}
	return 0;
}
