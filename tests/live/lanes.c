// SPDX-License-Identifier: BSD-2-Clause
/* The rings of the accounting probe, by what their maps are like: what weir_lanes__new() refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "probes/lean.h"
#include "source/cpus.h"

static struct cpus online;

/* Nothing is ever written into these rings. */
static void on_records(void *ctx, int cpu, const struct weir_record *first, size_t stride,
		       size_t count)
{
	fail();
}

static void on_gap(void *ctx, int cpu, uint64_t from_ns, uint64_t to_ns, uint64_t lost)
{
	fail();
}

static void on_watermark(void *ctx, int cpu, uint64_t watermark_ns, bool away)
{
}

static const struct weir_lanes_reader nobody = {on_records, on_gap, on_watermark};

/* The last one that is online. */
static int find_cpus(void)
{
	int last = -1;

	assert_int_equal(cpus__online(&online, NULL), 0);
	for (int cpu = 0; cpu < (int)CPUS_MAX; cpu++)
		if (cpus__has(&online, (unsigned)cpu))
			last = cpu;
	return last;
}

static int make_ring(uint32_t record_bytes, uint32_t records)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "ring", sizeof(uint32_t), record_bytes, records,
			      &opts);
}

static int make_rings(int ring_fd, uint32_t cpus)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)ring_fd);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rings", sizeof(uint32_t),
			      sizeof(uint32_t), cpus, &opts);
}

static void refused(struct weir_lanes_opts opts)
{
	errno = 0;
	assert_null(weir_lanes__new(&opts));
	assert_int_equal(errno, EINVAL);
}

/* What is not as weir_lane.bpf.h declares it is refused, before anything is mapped. */
static void lanes_refuse_what_does_not_fit(void **state)
{
	const int last_cpu = find_cpus();
	const uint32_t cpus = (uint32_t)last_cpu + 1;
	int ring = make_ring(40, 64), rings = make_rings(ring, cpus);
	int lanes_fd = make_ring(sizeof(struct weir_lane), cpus), other = make_ring(40, cpus);
	const struct weir_lanes_opts good = {
		.sz = sizeof(good),
		.rings_fd = rings,
		.lanes_fd = lanes_fd,
		.nr_cpus = cpus,
		.records = 64,
		.record_bytes = 40,
	};
	struct weir_lane_account account;
	struct weir_lanes_opts bad;
	struct weir_lanes *lanes;

	assert_true(ring >= 0 && rings >= 0 && lanes_fd >= 0 && other >= 0);
#define WITH(member, value) (bad = good, bad.member = (value), bad)
	refused(WITH(sz, sizeof(good) - 1));
	refused(WITH(nr_cpus, 0));
	refused(WITH(nr_cpus, cpus + 1));
	refused(WITH(records, 0));
	refused(WITH(records, 63));
	refused(WITH(record_bytes, 8));
	refused(WITH(record_bytes, 41));
	refused(WITH(rings_fd, lanes_fd));
	refused(WITH(lanes_fd, other));
#undef WITH
	/* A ring that the program does not know, for it is of another size. */
	bad = good;
	bad.records = 128;
	lanes = weir_lanes__new(&bad);
	assert_non_null(lanes);
	assert_int_equal(weir_lanes__grow(lanes), -EINVAL);
	weir_lanes__free(lanes);

	lanes = weir_lanes__new(&good);
	assert_non_null(lanes);
	assert_int_equal(weir_lanes__account(lanes, last_cpu, &account), -ENOENT);
	assert_int_equal(weir_lanes__grow(lanes), cpus__count(&online));
	assert_int_equal(weir_lanes__grow(lanes), 0);
	assert_int_equal(weir_lanes__account(lanes, last_cpu, &account), 0);
	assert_int_equal(weir_lanes__account(lanes, -1, &account), -ENOENT);
	assert_int_equal(weir_lanes__account(lanes, (int)cpus, &account), -ENOENT);
	assert_int_equal(weir_lanes__close(lanes, &nobody, NULL), 0);
	weir_lanes__free(lanes);
	close(ring);
	close(rings);
	close(lanes_fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_refuse_what_does_not_fit),
	};
	int r = cmocka_run_group_tests_name("lanes", tests, NULL, NULL);

	return r ? 1 : 0;
}
