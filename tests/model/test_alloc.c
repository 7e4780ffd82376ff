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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_fails_once),
		cmocka_unit_test(every_allocation_fails_from_there),
	};
	int r = cmocka_run_group_tests_name("model: refused memory", tests, NULL, NULL);

	return r ? 1 : 0;
}
