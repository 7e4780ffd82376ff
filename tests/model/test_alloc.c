// SPDX-License-Identifier: BSD-2-Clause
/*
 * test_alloc.c - the n-th allocation fails, for every n.
 *
 * A call that can't do without says -ENOMEM and nothing has changed by it: repeated, it succeeds, and
 * at the end the ledger closes as if nothing had happened. Where no memory ever comes again, the
 * stream can still be freed. Nothing leaks either way: no block, no descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "mix.h"
#include "model.h"

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* One run, with memory that is refused somewhere. */
struct run {
	struct model *m;
	int failed; /* calls that said so */
	int retired, asked;
};

static bool is_refusal(struct run *run, int rc)
{
	if (rc != -ENOMEM && rc != -EMFILE)
		return false;
	assert_true(alloc__has_refused());
	run->failed++;
	return true;
}

static void on_retire(void *arg, uint64_t stamp_ns)
{
	((struct run *)arg)->retired++;
}

static void try_retire(struct run *run, uint64_t stamp_ns)
{
	int rc = LIBRARY(weir_stream__retire(run->m->stream, stamp_ns, on_retire, run));

	if (is_refusal(run, rc))
		rc = LIBRARY(weir_stream__retire(run->m->stream, stamp_ns, on_retire, run));
	run->asked += rc == 0;
}

static void try_poll(struct run *run)
{
	model__pass(run->m, 100);
	is_refusal(run, model__poll(run->m));
}

static bool try_add_ring(struct run *run, int cpu)
{
	int rc = model__try_add_ring(run->m, cpu, 4096, 0, 0);

	if (is_refusal(run, rc))
		rc = model__try_add_ring(run->m, cpu, 4096, 0, 0);
	return rc >= 0;
}

static uint64_t no_misses(void *ctx)
{
	return 0;
}

static bool make(struct run *run)
{
	const struct model_opts opts = {.label = "refused memory"};
	int rc;

	run->m = model__try_new(&opts);
	if (!run->m && is_refusal(run, -errno))
		run->m = model__try_new(&opts);
	if (!run->m)
		return false;
	run->m->oracle.may_fail = true;
	rc = LIBRARY(weir_stream__watch_misses(run->m->stream, "probe", no_misses, NULL));
	if (is_refusal(run, rc))
		rc = LIBRARY(weir_stream__watch_misses(run->m->stream, "probe", no_misses, NULL));
	return rc == 0 && try_add_ring(run, 0) && try_add_ring(run, 1) && try_add_ring(run, 2);
}

/* All that takes memory: records, gaps, a held watermark, copies, a CPU that goes, retirements. */
static void drive(struct run *run)
{
	struct model *m = run->m;
	struct sim_emit busy;
	int i;

	sim_emit__begin(&busy, model__ring(m, 0), &(struct sim_what){.len = 8});
	sim_emit__run(&busy, SIM_STAMP);
	for (i = 0; i < 600; i++) {
		model__pass(m, 10);
		sim__put_now(model__ring(m, i % 3), i % 50);
		if (i % 40 == 7)
			sim__refuse(model__ring(m, 1 + i % 2), 2);
		if (i % 100 == 99)
			try_retire(run, m->sim.now_ns);
		if (i % 30 == 29)
			try_poll(run);
		if (i == 300)
			sim_emit__run(&busy, SIM_DONE);
		if (i == 350 || i == 450)
			model__cpu_changed(m, 2, i == 450);
	}
	try_poll(run);
}

/* Returns how often the library asked for memory; *to_make: of these, before the first poll. */
static uint64_t run_once(uint64_t nth, bool from_there, struct run *run, uint64_t *to_make)
{
	size_t blocks = alloc__live_blocks();
	int descriptors = open_descriptors(), rc = -ENOMEM;
	uint64_t attempts;
	bool made;

	*run = (struct run){0};
	alloc__refuse(nth, from_there);
	made = make(run);
	*to_make = alloc__attempts();
	if (made) {
		drive(run);
		rc = model__close(run->m);
		if (is_refusal(run, rc))
			rc = model__close(run->m);
	}
	attempts = alloc__attempts();
	alloc__refuse(0, false);
	if (!from_there) {
		assert_int_equal(rc, 0);
		assert_int_equal(run->retired, run->asked);
		assert_int_equal(run->asked, 6);
	}
	model__free(run->m);
	assert_int_equal(alloc__live_blocks(), blocks);
	assert_int_equal(open_descriptors(), descriptors);
	return attempts;
}

/* What opening needs it needs: it says so. A poll may go on without, and make up for it later. */
static void every_allocation_fails_once(void **state)
{
	uint64_t to_make, ignored, nth;
	struct run run;
	uint64_t n = run_once(0, false, &run, &to_make);

	assert_int_equal(run.failed, 0);
	assert_true(to_make > 3 && n > to_make);
	for (nth = 1; nth <= n; nth++) {
		run_once(nth, false, &run, &ignored);
		if (nth <= to_make)
			assert_int_equal(run.failed, 1);
		else
			assert_true(run.failed <= 1);
	}
}

/* A close that says 0 all the same has been checked by then: nothing may be missing. */
static void every_allocation_fails_from_there(void **state)
{
	uint64_t ignored, nth;
	struct run run;
	uint64_t n = run_once(0, false, &run, &ignored);

	for (nth = 1; nth <= n; nth++)
		run_once(nth, true, &run, &ignored);
}

/* --- The same of rings of others --- */

static int try_add_outside(struct mix *m, const struct mix_ring *how, int *failed)
{
	int rc = mix__try_add(m, how);

	if (rc != -ENOMEM)
		return rc;
	assert_true(alloc__has_refused());
	++*failed;
	return mix__try_add(m, how);
}

static struct mix *make_outside(int *failed)
{
	static const struct mix_opts opts = {.label = "refused memory"};
	struct mix *m = mix__try_new(&opts);
	int i;

	if (!m) {
		assert_true(errno == ENOMEM || errno == EMFILE);
		++*failed;
		m = mix__try_new(&opts);
	}
	for (i = 0; m && i < 4; i++) {
		const struct mix_ring how = {.kind = (enum mix_kind)(i % 3), .counted = true};

		if (try_add_outside(m, &how, failed) < 0) {
			mix__free(m);
			return NULL;
		}
	}
	return m;
}

/* Rings that fill while a ticket takes long, loss, broken records. What can't be copied out is held. */
static void drive_outside(struct mix *m)
{
	const uint64_t broken[3] = {99 | 24ull << 48};
	int i;

	for (i = 0; i < 900; i++) {
		struct mix_source *s = &m->sources[i % 4];

		m->grace.least_ns = i % 300 > 150 ? 3000 : 0;
		mix__pass(m, 10);
		if (s->numbered)
			sim__put_now(s->numbered, 8);
		else
			out__put_now(s->outside, 8 + (uint32_t)i % 50);
		if (i % 60 == 7)
			out__refuse(m->sources[1].outside, 2);
		if (i == 500)
			assert_true(out__put_raw(m->sources[1].outside, broken, 24));
		if (i % 20 == 19)
			mix__poll(m);
	}
}

static uint64_t run_outside(uint64_t nth, bool from_there, int *failed, uint64_t *to_make)
{
	size_t blocks = alloc__live_blocks();
	int descriptors = open_descriptors(), rc = -ENOMEM;
	uint64_t attempts;
	struct mix *m;

	*failed = 0;
	alloc__refuse(nth, from_there);
	m = make_outside(failed);
	*to_make = alloc__attempts();
	if (m) {
		/* The broken one stands in no log. */
		m->blind = true;
		drive_outside(m);
		rc = mix__close(m);
	}
	attempts = alloc__attempts();
	alloc__refuse(0, false);
	if (!from_there)
		assert_int_equal(rc, 0);
	mix__free(m);
	assert_int_equal(alloc__live_blocks(), blocks);
	assert_int_equal(open_descriptors(), descriptors);
	return attempts;
}

/* Adding says so and has changed nothing; all the rest goes on without, and the sum closes. */
static void outside_every_allocation_fails(void **state)
{
	uint64_t to_make, ignored, nth, n;
	int failed;

	n = run_outside(0, false, &failed, &to_make);
	assert_int_equal(failed, 0);
	assert_true(to_make > 10 && n > to_make);
	for (nth = 1; nth <= n; nth++) {
		run_outside(nth, false, &failed, &ignored);
		assert_int_equal(failed, nth <= to_make);
		run_outside(nth, true, &failed, &ignored);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_fails_once),
		cmocka_unit_test(every_allocation_fails_from_there),
		cmocka_unit_test(outside_every_allocation_fails),
	};
	int r = cmocka_run_group_tests_name("model: refused memory", tests, NULL, NULL);

	return r ? 1 : 0;
}
