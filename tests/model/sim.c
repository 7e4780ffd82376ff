// SPDX-License-Identifier: BSD-2-Clause
/*
 * sim.c - rings and producers of the model.
 *
 * Owns the rings' memory and the log of every attempt. Promises the kernel's rules (what fits, in
 * which order a word is written) and weir.bpf.h's order of steps. Must not know the reader, nor
 * what it has understood: the log is the truth that the oracle measures it by.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "came.h"
#include "rng.h"
#include "sim.h"

#define BUSY	 (1u << 31)
#define DISCARD	 (1u << 30)
#define HDR_SIZE 8
#define PAGE	 4096

struct header {
	uint32_t len;
	uint32_t pg_off;
};

static uint64_t round_up_8(uint64_t bytes)
{
	return (bytes + 7) & ~7ull;
}

/* Two views of the same pages in succession, then one that faults: no overrun goes unseen. */
static uint8_t *map_twice(size_t size)
{
	int fd = memfd_create("model-ring", MFD_CLOEXEC);
	uint8_t *base;

	if (fd < 0)
		return NULL;
	base = mmap(NULL, 2 * size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED || ftruncate(fd, size) ||
	    mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED) {
		if (base != MAP_FAILED)
			munmap(base, 2 * size + PAGE);
		base = NULL;
	}
	close(fd);
	return base;
}

int sim_buffer__init(struct sim_buffer *buffer, size_t size, uint64_t position)
{
	*buffer = (struct sim_buffer){.size = size, .pending = position};
	buffer->data = map_twice(size);
	buffer->shared = aligned_alloc(64, sizeof(*buffer->shared));
	if (!buffer->data || !buffer->shared) {
		sim_buffer__destroy(buffer);
		return -ENOMEM;
	}
	*buffer->shared = (struct sim_shared){.producer = position, .consumer = position};
	return 0;
}

void sim_buffer__destroy(struct sim_buffer *buffer)
{
	if (buffer->data)
		munmap(buffer->data, 2 * buffer->size + PAGE);
	free(buffer->shared);
	*buffer = (struct sim_buffer){0};
}

static struct header *header_at(struct sim_buffer *buffer, uint64_t position)
{
	return (struct header *)(buffer->data + (position & (buffer->size - 1)));
}

static void advance_pending(struct sim_buffer *buffer, uint64_t producer)
{
	while (!buffer->broken && buffer->pending != producer) {
		uint32_t len = __atomic_load_n(&header_at(buffer, buffer->pending)->len,
					       __ATOMIC_RELAXED);

		if (len & BUSY)
			break;
		buffer->pending += round_up_8((uint64_t)(len & ~DISCARD) + HDR_SIZE);
	}
}

void *sim_buffer__reserve(struct sim_buffer *buffer, uint32_t len)
{
	/* Pairs with the reader's store-release: it has read what this is about to overwrite. */
	uint64_t consumer = __atomic_load_n(&buffer->shared->consumer, __ATOMIC_ACQUIRE);
	uint64_t producer = __atomic_load_n(&buffer->shared->producer, __ATOMIC_RELAXED);
	uint64_t end = producer + round_up_8((uint64_t)len + HDR_SIZE);
	uint64_t mask = buffer->size - 1;
	struct header *header;

	advance_pending(buffer, producer);
	if (end - consumer > mask || (!buffer->broken && end - buffer->pending > mask))
		return NULL;
	header = header_at(buffer, producer);
	__atomic_store_n(&header->len, len | BUSY, __ATOMIC_RELAXED);
	header->pg_off = ((uint8_t *)header - buffer->data) / PAGE;
	/* Pairs with the reader's load-acquire: who sees the position sees the busy bit. */
	__atomic_store_n(&buffer->shared->producer, end, __ATOMIC_RELEASE);
	return header + 1;
}

void sim_buffer__finish(void *record, bool discard)
{
	struct header *header = (struct header *)record - 1;
	uint32_t len = __atomic_load_n(&header->len, __ATOMIC_RELAXED) ^ BUSY;

	/* The kernel's xchg. Pairs with the reader's load-acquire of the length. */
	__atomic_exchange_n(&header->len, discard ? len | DISCARD : len, __ATOMIC_SEQ_CST);
}

void sim_buffer__poison(struct sim_buffer *buffer, uint64_t from, uint64_t until)
{
	advance_pending(buffer, __atomic_load_n(&buffer->shared->producer, __ATOMIC_RELAXED));
	memset(header_at(buffer, from), 0xa5, until - from);
}

uint64_t sim__count(__u64 *counter)
{
	return __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
}

void sim__payload(uint8_t *out, uint32_t len, uint32_t ring, uint64_t number)
{
	uint64_t identity = (uint64_t)ring << 48 | number;
	uint64_t check = rng__mix(identity ^ (uint64_t)len << 32);
	uint32_t at;

	for (at = 0; at < len; at += 8) {
		uint64_t word = at == 0 ? identity : rng__mix(check + at);

		memcpy(out + at, &word, len - at < 8 ? len - at : 8);
	}
}

void sim__init(struct sim *sim)
{
	*sim = (struct sim){0};
	sim->trace = getenv("WEIR_TRACE") != NULL;
}

static void ring__free(struct sim_ring *ring)
{
	sim_buffer__destroy(&ring->buffer);
	free(ring->log);
	free(ring->by_seq);
	free(ring);
}

void sim__destroy(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->nrings; i++)
		ring__free(sim->rings[i]);
	free(sim->rings);
	*sim = (struct sim){0};
}

static uint64_t by_grain(const struct sim *sim, uint64_t ns)
{
	return sim->grain_ns > 1 ? ns - ns % sim->grain_ns : ns;
}

uint64_t sim__kernel_ns(const struct sim *sim)
{
	return by_grain(sim, sim->now_ns - sim->skew_ns);
}

static void run_hook(struct sim *sim)
{
	if (!sim->on_clock || sim->in_clock)
		return;
	sim->in_clock = true;
	sim->on_clock(sim->ctx);
	sim->in_clock = false;
}

void sim__interrupt(struct sim *sim)
{
	if (sim->early)
		run_hook(sim);
}

uint64_t sim__reader_clock(void *ctx)
{
	struct sim *sim = ctx;
	uint64_t t;

	sim__interrupt(sim);
	t = by_grain(sim, sim->now_ns);
	sim->reads++;
	sim->reader_ns = t;
	run_hook(sim);
	sim->now_ns += sim->tick_ns;
	return t;
}

struct sim_ring *sim__add_ring(struct sim *sim, int cpu, size_t size, uint64_t position,
			       uint64_t first_seq)
{
	struct sim_ring *ring = calloc(1, sizeof(*ring));
	uint64_t cap = sim->rings_cap;

	if (!ring || sim_buffer__init(&ring->buffer, size, position)) {
		free(ring);
		return NULL;
	}
	ring->sim = sim;
	ring->cpu = cpu;
	ring->index = sim->nrings;
	ring->first_seq = first_seq;
	ring->poisoned = position;
	snprintf(ring->name, sizeof(ring->name), "cpu%d", cpu);
	ring->buffer.shared->counters.attempts = first_seq;
	sim->rings = grow(sim->rings, sim->nrings, &cap, sizeof(*sim->rings));
	sim->rings_cap = cap;
	sim->rings[sim->nrings++] = ring;
	return ring;
}

void sim__drop_ring(struct sim *sim)
{
	ring__free(sim->rings[--sim->nrings]);
}

static struct sim_record *record_of(struct sim_emit *emit)
{
	return &emit->ring->log[emit->number];
}

static void trace_step(const struct sim_emit *emit, const char *what)
{
	const struct sim_record *r = &emit->ring->log[emit->number];

	if (emit->ring->sim->trace)
		fprintf(stderr,
			"%" PRIu64 " ring %u: number %" PRIu64 " %s (seq %" PRIu64 " stamp %" PRIu64
			")\n",
			emit->ring->sim->now_ns, emit->ring->index, emit->number, what, r->seq,
			r->stamp_ns);
}

void sim_emit__begin(struct sim_emit *emit, struct sim_ring *ring, const struct sim_what *what)
{
	*emit = (struct sim_emit){.ring = ring, .what = *what};
}

static void poison_ring(struct sim_ring *ring)
{
	uint64_t consumer = sim_ring__consumer(ring);
	uint64_t bytes = consumer - ring->poisoned;

	if (!bytes || bytes > ring->buffer.size)
		return;
	sim_buffer__poison(&ring->buffer, ring->poisoned, consumer);
	ring->poisoned = consumer;
}

static void step_reserve(struct sim_emit *emit)
{
	struct sim_ring *ring = emit->ring;
	uint32_t len = emit->what.len + (emit->what.bare ? 0 : sizeof(struct weir_record));
	struct sim_record *r;

	/* Now, or it would overwrite the record that takes the place. */
	poison_ring(ring);
	ring->log = grow(ring->log, ring->nlog, &ring->log_cap, sizeof(*ring->log));
	emit->number = ring->nlog++;
	r = record_of(emit);
	*r = (struct sim_record){.len = emit->what.len,
				 .type = emit->what.type,
				 .flags = emit->what.flags,
				 .seq = UINT64_MAX,
				 .position = sim_ring__producer(ring),
				 .reader_ns = ring->sim->reader_ns,
				 .state = SIM_STATE_REFUSED};
	if (!emit->what.refuse)
		emit->record = sim_buffer__reserve(&ring->buffer, len);
	if (emit->record)
		r->state = SIM_STATE_RESERVED;
	emit->next = SIM_COUNT;
	trace_step(emit, emit->record ? "reserved" : "refused");
}

static void step_count(struct sim_emit *emit)
{
	struct sim_ring *ring = emit->ring;
	struct sim_record *r = record_of(emit);

	r->seq = sim__count(&ring->buffer.shared->counters.attempts);
	r->counted_ns = sim__kernel_ns(ring->sim);
	ring->by_seq = grow(ring->by_seq, ring->nseq, &ring->seq_cap, sizeof(*ring->by_seq));
	ring->by_seq[ring->nseq++] = emit->number;
	emit->next = emit->record ? SIM_STAMP : SIM_COUNT_FAILED;
	if (!emit->record) {
		r->state = SIM_STATE_FAILED;
		ring->failed++;
	}
	trace_step(emit, "counted");
}

static void step_count_failed(struct sim_emit *emit)
{
	sim__count(&emit->ring->buffer.shared->counters.failed);
	emit->next = SIM_DONE;
}

static void step_stamp(struct sim_emit *emit)
{
	struct sim *sim = emit->ring->sim;
	struct sim_record *r = record_of(emit);

	r->stamp_ns = emit->what.stamped ? emit->what.stamp_ns : sim__kernel_ns(sim);
	if (!emit->what.bare)
		((struct weir_record *)emit->record)->stamp = r->stamp_ns;
	emit->next = SIM_FILL;
	trace_step(emit, "stamped");
}

static void step_fill(struct sim_emit *emit)
{
	struct weir_record *head = emit->record;
	struct sim_record *r = record_of(emit);

	if (emit->what.bare) {
		memset(emit->record, 0xee, r->len);
	} else {
		head->type = r->type;
		head->flags = r->flags;
		head->seq = (uint32_t)r->seq;
		sim__payload((uint8_t *)(head + 1), r->len, emit->ring->index, emit->number);
	}
	emit->next = emit->what.discard ? SIM_COUNT_DISCARDED : SIM_FINISH;
}

static void step_count_discarded(struct sim_emit *emit)
{
	sim__count(&emit->ring->buffer.shared->counters.discarded);
	emit->next = SIM_FINISH;
}

static void step_finish(struct sim_emit *emit)
{
	struct sim_ring *ring = emit->ring;
	struct sim_record *r = record_of(emit);

	sim_buffer__finish(emit->record, emit->what.discard);
	r->finished_ns = by_grain(ring->sim, ring->sim->now_ns);
	if (emit->what.discard) {
		r->state = SIM_STATE_DISCARDED;
		ring->discarded++;
	} else if (emit->what.bare && r->len < sizeof(struct weir_record)) {
		r->state = SIM_STATE_BROKEN;
		ring->broken++;
	} else {
		r->state = SIM_STATE_SUBMITTED;
		ring->submitted++;
	}
	if (emit->what.stamped && (sim_record__is_behind(r, 0) || sim_record__is_ahead(r, 0)))
		ring->sim->dishonest = true;
	emit->next = SIM_DONE;
	trace_step(emit, "finished");
}

bool sim_emit__step(struct sim_emit *emit)
{
	static void (*const steps[])(struct sim_emit *) = {
		[SIM_RESERVE] = step_reserve,
		[SIM_COUNT] = step_count,
		[SIM_COUNT_FAILED] = step_count_failed,
		[SIM_STAMP] = step_stamp,
		[SIM_FILL] = step_fill,
		[SIM_COUNT_DISCARDED] = step_count_discarded,
		[SIM_FINISH] = step_finish,
	};

	if (emit->next != SIM_DONE)
		steps[emit->next](emit);
	return emit->next != SIM_DONE;
}

bool sim_emit__run(struct sim_emit *emit, enum sim_step until)
{
	while (emit->next != until && sim_emit__step(emit))
		;
	return emit->next != SIM_DONE;
}

static void emit_whole(struct sim_ring *ring, const struct sim_what *what)
{
	struct sim_emit emit;

	sim_emit__begin(&emit, ring, what);
	sim_emit__run(&emit, SIM_DONE);
}

void sim__put(struct sim_ring *ring, uint64_t stamp_ns)
{
	emit_whole(ring, &(struct sim_what){.stamped = true, .stamp_ns = stamp_ns});
}

void sim__put_now(struct sim_ring *ring, uint32_t len)
{
	emit_whole(ring, &(struct sim_what){.len = len});
}

void sim__refuse(struct sim_ring *ring, uint64_t count)
{
	while (count--)
		emit_whole(ring, &(struct sim_what){.refuse = true});
}

void sim_ring__spoil(struct sim_ring *ring, uint64_t number, uint32_t len)
{
	ring->buffer.broken = true;
	__atomic_store_n(&header_at(&ring->buffer, ring->log[number].position)->len, len,
			 __ATOMIC_RELEASE);
	sim_ring__bury(ring, number);
}

void sim_ring__bury(struct sim_ring *ring, uint64_t number)
{
	struct sim_record *r = &ring->log[number];

	if (r->state != SIM_STATE_SUBMITTED)
		return;
	r->state = SIM_STATE_BROKEN;
	ring->submitted--;
	ring->broken++;
}

struct sim_record *sim_ring__by_seq(struct sim_ring *ring, uint64_t seq)
{
	if (seq < ring->first_seq || seq - ring->first_seq >= ring->nseq)
		return NULL;
	return &ring->log[ring->by_seq[seq - ring->first_seq]];
}

uint64_t sim_ring__busy_position(struct sim_ring *ring)
{
	while (ring->first_busy < ring->nlog &&
	       ring->log[ring->first_busy].state != SIM_STATE_RESERVED)
		ring->first_busy++;
	if (ring->first_busy < ring->nlog)
		return ring->log[ring->first_busy].position;
	return sim_ring__producer(ring);
}

uint64_t sim_ring__producer(const struct sim_ring *ring)
{
	return __atomic_load_n(&ring->buffer.shared->producer, __ATOMIC_ACQUIRE);
}

uint64_t sim_ring__consumer(const struct sim_ring *ring)
{
	return __atomic_load_n(&ring->buffer.shared->consumer, __ATOMIC_ACQUIRE);
}

void sim__poison(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < sim->nrings; i++)
		poison_ring(sim->rings[i]);
}

bool sim_record__is_behind(const struct sim_record *record, uint64_t guard_ns)
{
	return record->stamp_ns < record->reader_ns &&
	       record->reader_ns - record->stamp_ns > guard_ns;
}

bool sim_record__is_ahead(const struct sim_record *record, uint64_t guard_ns)
{
	return record->stamp_ns > record->finished_ns &&
	       record->stamp_ns - record->finished_ns > guard_ns;
}
