/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure/readers.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#define CHECKED_POLLS 2

struct run {
	const struct reader *const *reader; /* NULL: not that one */
	size_t count;
	struct synth synth;
};

static void read_once(const struct reader *reader, void *state, struct synth *synth,
		      struct sink *sink, struct sample *ns)
{
	uint64_t begin_ns, end_ns;

	synth__fill(synth);
	memset(sink, 0, sizeof(*sink));
	begin_ns = sample__now_ns();
	reader->read(state);
	end_ns = sample__now_ns();
	sample__add(ns, (double)(end_ns - begin_ns) / synth->shape.records);
	if (sink->records != synth->shape.records || sink->sum != synth->sum)
		errx(1, "%s: %lu records with sum %lu, not %u with %lu", reader->name,
		     sink->records, sink->sum, synth->shape.records, synth->sum);
	if (reader->sorted && sink->steps_back)
		errx(1, "%s: %lu records out of order", reader->name, sink->steps_back);
}

/* `polls` epochs through all readers; with each another one begins. */
static void read_epochs(struct run *run, unsigned polls, bool checking, struct sample *ns)
{
	struct sink *sink = calloc(run->count, sizeof(*sink));
	void **state = calloc(run->count, sizeof(*state));

	if (!sink || !state)
		err(1, "readers");
	for (size_t i = 0; i < run->count; i++)
		if (run->reader[i])
			state[i] = run->reader[i]->open(&run->synth, &sink[i], checking);
	for (unsigned poll = 0; poll < polls; poll++) {
		for (size_t k = 0; k < run->count; k++) {
			size_t i = (k + poll) % run->count;

			if (run->reader[i])
				read_once(run->reader[i], state[i], &run->synth, &sink[i], &ns[i]);
		}
		synth__advance(&run->synth);
	}
	for (size_t i = 0; i < run->count; i++)
		if (run->reader[i])
			run->reader[i]->close(state[i]);
	free(sink);
	free(state);
}

void readers__measure(const struct reader *const *reader, size_t count, const struct shape *shape,
		      unsigned polls, struct sample *ns)
{
	struct run run = {.reader = reader, .count = count};
	struct sample *checked = calloc(count, sizeof(*checked));

	if (!checked)
		err(1, "readers");
	synth__make(&run.synth, shape);
	read_epochs(&run, CHECKED_POLLS, true, checked);
	read_epochs(&run, polls, false, ns);
	synth__free(&run.synth);
	for (size_t i = 0; i < count; i++)
		sample__free(&checked[i]);
	free(checked);
}
