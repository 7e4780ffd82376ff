// SPDX-License-Identifier: BSD-2-Clause
/*
 * sim_outside.c - grace periods, rings of perf's and of other people's programs, and their log.
 *
 * Owns the rings' memory. Promises the kernel's rules of what fits, of what is published when, and of
 * where loss shows (kernel/events/ring_buffer.c, kernel/bpf/ringbuf.c). Must not know the reader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "came.h"
#include "sim_outside.h"

#define PAGE 4096u

#define TYPE_LOST	  2u
#define TYPE_SAMPLE	  9u
#define TYPE_LOST_SAMPLES 13u

/* --- Grace periods --- */

uint64_t sim_grace__enter(struct sim_grace *g)
{
	uint64_t cap = g->inside_cap;

	g->inside = grow(g->inside, g->ninside, &cap, sizeof(*g->inside));
	g->inside_cap = (uint32_t)cap;
	g->inside[g->ninside++] = ++g->entered;
	return g->entered;
}

void sim_grace__leave(struct sim_grace *g, uint64_t entry)
{
	uint32_t i = 0;

	while (g->inside[i] != entry)
		i++;
	g->inside[i] = g->inside[--g->ninside];
}

static bool is_over(const struct sim_grace *g)
{
	uint32_t i;

	for (i = 0; i < g->ninside; i++)
		if (g->inside[i] <= g->last_inside)
			return false;
	return g->sim->now_ns >= g->ready_ns;
}

static void end_ticket(struct sim_grace *g)
{
	if (!g->in_flight || !is_over(g))
		return;
	g->in_flight = false;
	g->newest_ns = g->t_ns;
	g->tickets++;
}

uint64_t sim_grace__ticket(void *grace)
{
	struct sim_grace *g = grace;

	end_ticket(g);
	if (!g->in_flight) {
		g->in_flight = true;
		g->t_ns = sim__kernel_ns(g->sim) + g->sim->skew_ns;
		g->last_inside = g->entered;
		g->ready_ns = g->sim->now_ns + g->least_ns;
		end_ticket(g);
	}
	return g->newest_ns;
}

void sim_grace__destroy(struct sim_grace *g)
{
	free(g->inside);
	*g = (struct sim_grace){0};
}

/* --- Rings --- */

/* Mapped once, as perf's are; the page behind faults. */
static uint8_t *map_once(size_t size)
{
	size_t whole = (size + PAGE - 1) / PAGE * PAGE;
	uint8_t *base = mmap(NULL, whole + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED || mprotect(base, whole, PROT_READ | PROT_WRITE))
		return NULL;
	return base;
}

static bool is_perf(const struct out_ring *ring)
{
	return ring->kind != OUT_RINGBUF;
}

static bool map_perf(struct out_ring *ring)
{
	ring->data = map_once(ring->size);
	ring->shared = aligned_alloc(64, sizeof(*ring->shared));
	if (!ring->data || !ring->shared)
		return false;
	*ring->shared = (struct out_shared){0};
	return true;
}

static void unmap_perf(struct out_ring *ring)
{
	if (ring->data)
		munmap(ring->data, (ring->size + PAGE - 1) / PAGE * PAGE + PAGE);
	free(ring->shared);
}

struct out_ring *out_ring__new(struct sim *sim, struct sim_grace *grace, enum out_kind kind,
			       uint32_t index, int cpu, size_t size)
{
	struct out_ring *ring = calloc(1, sizeof(*ring));
	bool made;

	if (!ring)
		return NULL;
	ring->sim = sim;
	ring->grace = grace;
	ring->kind = kind;
	ring->index = index;
	ring->cpu = cpu;
	ring->size = size;
	snprintf(ring->name, sizeof(ring->name), "%s%d", is_perf(ring) ? "perf" : "other", cpu);
	if (is_perf(ring)) {
		made = map_perf(ring);
	} else {
		made = !sim_buffer__init(&ring->buffer, size, 0);
		ring->data = ring->buffer.data;
	}
	if (made)
		return ring;
	out_ring__free(ring);
	return NULL;
}

void out_ring__free(struct out_ring *ring)
{
	if (is_perf(ring))
		unmap_perf(ring);
	else
		sim_buffer__destroy(&ring->buffer);
	free(ring->log);
	free(ring->unpublished);
	free(ring);
}

void out_ring__renew(struct out_ring *ring)
{
	unmap_perf(ring);
	if (!map_perf(ring))
		abort();
	ring->head = ring->poisoned = 0;
	ring->lost_untold = 0;
}

uint64_t out_ring__lost(void *arg)
{
	const struct out_ring *ring = arg;

	return ring->loses_count ? UINT64_MAX : ring->lost;
}

const uint64_t *out_ring__producer(const struct out_ring *ring)
{
	return is_perf(ring) ? &ring->shared->producer : &ring->buffer.shared->producer;
}

uint64_t *out_ring__consumer(const struct out_ring *ring)
{
	return is_perf(ring) ? &ring->shared->consumer : &ring->buffer.shared->consumer;
}

void out_ring__poison(struct out_ring *ring)
{
	uint64_t tail = __atomic_load_n(out_ring__consumer(ring), __ATOMIC_ACQUIRE);

	if (ring->threads || tail - ring->poisoned > ring->size)
		return;
	if (ring->kind == OUT_RINGBUF)
		sim_buffer__poison(&ring->buffer, ring->poisoned, tail);
	else
		for (; ring->poisoned != tail; ring->poisoned++)
			ring->data[ring->poisoned & (ring->size - 1)] = 0xdd;
	ring->poisoned = tail;
}

/* --- Bytes of perf's --- */

struct perf_header {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
};

/* What stands before the payload of a sample, for OUT_SAMPLE_TYPE. */
struct sample_head {
	struct perf_header header;
	uint64_t identifier;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, zero;
	uint32_t raw_len;
} __attribute__((packed));

_Static_assert(sizeof(struct sample_head) == OUT_SAMPLE_HEAD, "as the kernel packs it");

/* What sample_id_all adds at the end of any other record. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, zero;
	uint64_t identifier;
};

struct lost_record {
	struct perf_header header;
	uint64_t id, lost;
	struct sample_id sample_id;
};

static uint32_t round_up_8(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

static uint32_t sample_bytes(uint32_t payload)
{
	return round_up_8(OUT_SAMPLE_HEAD + payload);
}

static uint64_t copy_in(struct out_ring *ring, uint64_t position, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	while (len--)
		ring->data[position++ & (ring->size - 1)] = *from++;
	return position;
}

static struct sample_id sample_id_of(const struct out_ring *ring, uint64_t stamp_ns)
{
	return (struct sample_id){.pid = 1,
				  .tid = 2,
				  .time_ns = stamp_ns,
				  .cpu = (uint32_t)ring->cpu,
				  .identifier = 7};
}

/* A record's stamp is taken from its sample: newer kernels give LOST the same. */
static uint64_t write_lost(struct out_ring *ring, uint64_t position, uint64_t stamp_ns)
{
	const struct lost_record record = {
		.header = {.type = TYPE_LOST, .size = sizeof(record)},
		.id = 7,
		.lost = ring->lost_untold,
		.sample_id = sample_id_of(ring, stamp_ns),
	};

	ring->told_by_record += ring->lost_untold;
	ring->lost_untold = 0;
	return copy_in(ring, position, &record, sizeof(record));
}

static uint64_t write_sample(struct out_ring *ring, uint64_t position, uint64_t number)
{
	const struct out_record *r = &ring->log[number];
	uint32_t size = sample_bytes(r->len);
	const struct sample_head head = {
		.header = {.type = TYPE_SAMPLE, .misc = 1, .size = (uint16_t)size},
		.identifier = 7,
		.pid = 1,
		.tid = 2,
		.time_ns = r->stamp_ns,
		.cpu = (uint32_t)ring->cpu,
		.raw_len = size - OUT_SAMPLE_HEAD,
	};
	uint8_t *payload = calloc(1, size - OUT_SAMPLE_HEAD);

	if (!payload)
		abort();
	sim__payload(payload, r->len, ring->index, number);
	position = copy_in(ring, position, &head, sizeof(head));
	position = copy_in(ring, position, payload, size - OUT_SAMPLE_HEAD);
	free(payload);
	return position;
}

/* Room is what the tail leaves, less one byte, so that a full ring is not an empty one. */
static bool perf_reserve(struct out_ring *ring, uint32_t size, uint64_t *position)
{
	/* Pairs with the reader's store-release of the tail. */
	uint64_t tail = __atomic_load_n(&ring->shared->consumer, __ATOMIC_ACQUIRE);

	if (ring->kind == OUT_BACKWARD) {
		*position = ring->head -= size;
		return true;
	}
	if (((tail - (ring->head + 1)) & (ring->size - 1)) < size || size >= ring->size)
		return false;
	*position = ring->head;
	ring->head += size;
	return true;
}

/* Only the outermost writer moves the head that the reader sees. */
static void perf_publish(struct out_ring *ring)
{
	uint64_t i;

	if (--ring->nest)
		return;
	for (i = 0; i < ring->nunpublished; i++) {
		struct out_record *r = &ring->log[ring->unpublished[i]];

		r->state = OUT_PUBLISHED;
		r->visible_ns = ring->sim->now_ns;
		ring->published++;
	}
	ring->nunpublished = 0;
	/* Pairs with the reader's load-acquire: what stands below is written. */
	__atomic_store_n(&ring->shared->producer, ring->head, __ATOMIC_RELEASE);
}

/* --- Emissions --- */

void out_emit__begin(struct out_emit *emit, struct out_ring *ring, const struct out_what *what)
{
	*emit = (struct out_emit){.ring = ring, .what = *what};
	if (emit->what.len < 8)
		emit->what.len = 8;
}

static struct out_record *record_of(const struct out_emit *emit)
{
	return &emit->ring->log[emit->number];
}

static void step_enter(struct out_emit *emit)
{
	emit->entry = sim_grace__enter(emit->ring->grace);
	emit->next = OUT_STAMP;
}

static void step_stamp(struct out_emit *emit)
{
	struct out_ring *ring = emit->ring;
	struct out_record *r;

	ring->log = grow(ring->log, ring->nlog, &ring->log_cap, sizeof(*ring->log));
	emit->number = ring->nlog++;
	r = record_of(emit);
	*r = (struct out_record){
		.stamp_ns = emit->what.stamped ? emit->what.stamp_ns : sim__kernel_ns(ring->sim),
		.made_up = emit->what.stamped,
		.len = emit->what.len,
	};
	emit->next = is_perf(ring) ? OUT_LOOK : OUT_RESERVE;
}

static void step_look(struct out_emit *emit)
{
	emit->tells_loss = emit->ring->lost_untold;
	emit->next = OUT_RESERVE;
}

static void refused(struct out_emit *emit)
{
	struct out_ring *ring = emit->ring;

	record_of(emit)->state = OUT_REFUSED;
	ring->refused++;
	ring->lost++;
	if (is_perf(ring))
		ring->lost_untold++;
	sim_grace__leave(ring->grace, emit->entry);
	emit->next = OUT_DONE;
}

static bool reserve_perf(struct out_emit *emit)
{
	struct out_ring *ring = emit->ring;
	uint32_t size = sample_bytes(emit->what.len);

	if (emit->tells_loss)
		size += sizeof(struct lost_record);
	if (emit->what.refuse || !perf_reserve(ring, size, &emit->position))
		return false;
	emit->size = size;
	ring->nest++;
	ring->unpublished = grow(ring->unpublished, ring->nunpublished, &ring->unpublished_cap,
				 sizeof(*ring->unpublished));
	ring->unpublished[ring->nunpublished++] = emit->number;
	return true;
}

static bool reserve_ringbuf(struct out_emit *emit)
{
	struct out_ring *ring = emit->ring;

	if (!emit->what.refuse)
		emit->record = sim_buffer__reserve(&ring->buffer,
						   ring->stamp_offset + 8 + emit->what.len);
	return emit->record;
}

static void step_reserve(struct out_emit *emit)
{
	bool got;

	/* Now, or it would overwrite the record that takes the place. */
	out_ring__poison(emit->ring);
	got = is_perf(emit->ring) ? reserve_perf(emit) : reserve_ringbuf(emit);
	if (!got) {
		refused(emit);
		return;
	}
	record_of(emit)->reserved = true;
	record_of(emit)->order = emit->ring->reserves++;
	emit->next = OUT_FILL;
}

static void step_fill(struct out_emit *emit)
{
	struct out_ring *ring = emit->ring;
	uint64_t at = emit->position, stamp_ns = record_of(emit)->stamp_ns;
	uint8_t *bytes = emit->record;

	if (is_perf(ring)) {
		if (emit->tells_loss)
			at = write_lost(ring, at, stamp_ns);
		write_sample(ring, at, emit->number);
	} else {
		memset(bytes, 0x5a, ring->stamp_offset);
		memcpy(bytes + ring->stamp_offset, &stamp_ns, 8);
		sim__payload(bytes + ring->stamp_offset + 8, record_of(emit)->len, ring->index,
			     emit->number);
	}
	emit->next = OUT_LEAVE;
}

static void step_leave(struct out_emit *emit)
{
	struct out_ring *ring = emit->ring;
	struct out_record *r = record_of(emit);

	if (is_perf(ring)) {
		perf_publish(ring);
	} else {
		sim_buffer__finish(emit->record, emit->what.discard);
		r->visible_ns = ring->sim->now_ns;
		r->state = emit->what.discard ? OUT_DISCARDED : OUT_PUBLISHED;
		ring->discarded += emit->what.discard;
		ring->published += !emit->what.discard;
	}
	sim_grace__leave(ring->grace, emit->entry);
	emit->next = OUT_DONE;
}

bool out_emit__step(struct out_emit *emit)
{
	static void (*const steps[])(struct out_emit *) = {
		[OUT_ENTER] = step_enter,     [OUT_STAMP] = step_stamp, [OUT_LOOK] = step_look,
		[OUT_RESERVE] = step_reserve, [OUT_FILL] = step_fill,	[OUT_LEAVE] = step_leave,
	};

	if (emit->next != OUT_DONE)
		steps[emit->next](emit);
	return emit->next != OUT_DONE;
}

bool out_emit__run(struct out_emit *emit, enum out_step until)
{
	while (emit->next != until && out_emit__step(emit))
		;
	return emit->next != OUT_DONE;
}

static void emit_whole(struct out_ring *ring, const struct out_what *what)
{
	struct out_emit emit;

	out_emit__begin(&emit, ring, what);
	out_emit__run(&emit, OUT_DONE);
}

void out__put(struct out_ring *ring, uint64_t stamp_ns)
{
	emit_whole(ring, &(struct out_what){.stamped = true, .stamp_ns = stamp_ns});
}

void out__put_now(struct out_ring *ring, uint32_t len)
{
	emit_whole(ring, &(struct out_what){.len = len});
}

void out__refuse(struct out_ring *ring, uint64_t count)
{
	while (count--)
		emit_whole(ring, &(struct out_what){.refuse = true});
}

bool out__put_raw(struct out_ring *ring, const void *record, uint32_t size)
{
	uint64_t position;

	out_ring__poison(ring);
	if (!perf_reserve(ring, size, &position))
		return false;
	copy_in(ring, position, record, size);
	ring->nest++;
	perf_publish(ring);
	return true;
}

void out__put_throttle(struct out_ring *ring, uint32_t type, uint64_t stamp_ns, uint64_t id)
{
	const struct {
		struct perf_header header;
		uint64_t time_ns, id, stream_id;
		struct sample_id sample_id;
	} record = {
		.header = {.type = type, .size = sizeof(record)},
		.time_ns = stamp_ns,
		.id = id,
		.stream_id = id,
		.sample_id = sample_id_of(ring, stamp_ns),
	};

	if (!out__put_raw(ring, &record, sizeof(record)))
		abort();
}

void out__put_lost_samples(struct out_ring *ring, uint64_t count, uint64_t stamp_ns)
{
	const struct {
		struct perf_header header;
		uint64_t lost;
		struct sample_id sample_id;
	} record = {
		.header = {.type = TYPE_LOST_SAMPLES, .size = sizeof(record)},
		.lost = count,
		.sample_id = sample_id_of(ring, stamp_ns),
	};

	if (!out__put_raw(ring, &record, sizeof(record)))
		abort();
}
