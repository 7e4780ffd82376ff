// SPDX-License-Identifier: BSD-2-Clause
/*
 * mix_oracle.c - is what comes out of a stream over rings of all kinds what their writers put in?
 *
 * Owns the list of what came. Promises to see the first violation of G1, G2, G4, G5 and G7 in the call
 * in which it becomes visible, and at the end that all records are accounted for and came as a plain
 * sort has them (O19). Knows the writers' logs and the public interface, nothing of the reader.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"

void mix_oracle__fault(struct mix *m, const char *format, ...)
{
	va_list args;

	if (m->fault[0])
		return;
	va_start(args, format);
	vsnprintf(m->fault, sizeof(m->fault), format, args);
	va_end(args);
}

/* --- What is in the logs, the same for all kinds --- */

struct truth {
	uint64_t stamp_ns, order, visible_ns;
	uint32_t len;
	bool published, inside, may_be_late, may_be_ahead;
	uint8_t *fate, *mark;
};

static uint64_t nlog(const struct mix_source *s)
{
	return s->numbered ? s->numbered->nlog : s->outside->nlog;
}

static struct truth truth_numbered(const struct mix *m, const struct mix_source *s, uint64_t number)
{
	struct sim_record *r = &s->numbered->log[number];

	return (struct truth){
		.stamp_ns = r->stamp_ns,
		.order = r->seq,
		.visible_ns = r->finished_ns,
		.len = r->len,
		.published = r->state == SIM_STATE_SUBMITTED,
		.inside = r->state == SIM_STATE_RESERVED,
		.may_be_late = sim_record__is_behind(r, m->opts.guard_ns),
		.may_be_ahead = sim_record__is_ahead(r, 0),
		.fate = &r->fate,
		.mark = &r->mark,
	};
}

static bool is_uncovered(const struct mix *m, const struct mix_source *s,
			 const struct out_record *r)
{
	if (r->made_up)
		return true;
	return s->how.fence == WEIR_FENCE_GRACE && r->visible_ns > r->stamp_ns &&
	       r->visible_ns - r->stamp_ns > s->how.grace_ns + m->opts.guard_ns;
}

static struct truth truth_outside(const struct mix *m, const struct mix_source *s, uint64_t number)
{
	struct out_record *r = &s->outside->log[number];

	return (struct truth){
		.stamp_ns = r->stamp_ns,
		.order = r->order,
		.visible_ns = r->visible_ns,
		.len = r->len,
		.published = r->state == OUT_PUBLISHED,
		.inside = r->state == OUT_INSIDE,
		.may_be_late = is_uncovered(m, s, r),
		.may_be_ahead = r->made_up,
		.fate = &r->fate,
		.mark = &r->mark,
	};
}

static struct truth truth_of(const struct mix *m, const struct mix_source *s, uint64_t number)
{
	return s->numbered ? truth_numbered(m, s, number) : truth_outside(m, s, number);
}

/* --- Each event --- */

static struct came *keep(struct mix *m, const struct weir_event *e)
{
	m->out = grow(m->out, m->nout, &m->out_cap, sizeof(*m->out));
	m->out[m->nout] = (struct came){.stamp_ns = e->stamp_ns,
					.seq = e->seq,
					.source = e->source,
					.kind = e->kind,
					.mark = e->mark,
					.number = UINT64_MAX};
	return &m->out[m->nout++];
}

static void check_order(struct mix *m, const struct came *out)
{
	int step;

	if (out->mark)
		return;
	if (m->announced_ns && out->stamp_ns <= m->announced_ns)
		mix_oracle__fault(m, "G2: stamp %" PRIu64 " of source %u came after W %" PRIu64,
				  out->stamp_ns, out->source, m->announced_ns);
	step = m->ordered ? came__compare(out, &m->last) : 1;
	if (step < 0 ||
	    (!step && out->kind == WEIR_KIND_RECORD && m->last.kind == WEIR_KIND_RECORD))
		mix_oracle__fault(m,
				  "G1: (%" PRIu64 ", %u, %" PRIu64 ") kind %u after (%" PRIu64
				  ", %u, %" PRIu64 ")",
				  out->stamp_ns, out->source, out->seq, out->kind, m->last.stamp_ns,
				  m->last.source, m->last.seq);
	m->last = *out;
	m->ordered = true;
}

/* Where the payload stands in what is shown, and how much of it that is; NULL: it can't be. */
static const uint8_t *payload_of(const struct mix_source *s, const struct weir_event *e,
				 uint32_t *len)
{
	const uint8_t *data = e->data;
	uint32_t skip = 0;

	if (s->how.kind == MIX_RINGBUF)
		skip = s->how.stamp_offset + 8;
	else if (s->how.kind == MIX_PERF && !s->how.payload)
		skip = OUT_SAMPLE_HEAD;
	if (!data || e->len < skip + 8)
		return NULL;
	*len = e->len - skip;
	return data + skip;
}

/* Padding is part of what perf shows. */
static bool length_is_right(const struct mix_source *s, uint32_t len, uint32_t want)
{
	if (s->how.kind != MIX_PERF)
		return len == want;
	return len == ((OUT_SAMPLE_HEAD + want + 7) & ~7u) - OUT_SAMPLE_HEAD;
}

/* An outside record says by its payload which it is. */
static uint64_t identify(struct mix *m, const struct mix_source *s, const struct weir_event *e)
{
	const uint8_t *payload;
	uint64_t identity, number;
	uint32_t len = 0;
	uint8_t *want;

	if (s->numbered) {
		struct sim_record *r = sim_ring__by_seq(s->numbered, e->seq);

		return r ? (uint64_t)(r - s->numbered->log) : UINT64_MAX;
	}
	payload = payload_of(s, e, &len);
	if (!payload)
		return UINT64_MAX;
	memcpy(&identity, payload, sizeof(identity));
	number = identity & 0xffffffffffffull;
	if (identity >> 48 != e->source || number >= nlog(s))
		return UINT64_MAX;
	if (!length_is_right(s, len, s->outside->log[number].len))
		return UINT64_MAX;
	want = malloc(len);
	if (!want)
		abort();
	sim__payload(want, s->outside->log[number].len, e->source, number);
	if (memcmp(want, payload, s->outside->log[number].len))
		mix_oracle__fault(m, "F4: source %u number %" PRIu64 ": wrong bytes", e->source,
				  number);
	free(want);
	return number;
}

static void check_marks(struct mix *m, const struct truth *t, const struct came *out)
{
	if ((out->mark & WEIR_MARK_LATE) && !t->may_be_late)
		mix_oracle__fault(m,
				  "G2: source %u stamp %" PRIu64 " is late (W %" PRIu64
				  "), though its fence covers it",
				  out->source, out->stamp_ns, m->announced_ns);
	if ((out->mark & WEIR_MARK_AHEAD) && !t->may_be_ahead)
		mix_oracle__fault(m, "O15: source %u stamp %" PRIu64 " is not beyond the clock",
				  out->source, out->stamp_ns);
}

static void check_record(struct mix *m, struct mix_source *s, const struct weir_event *e,
			 struct came *out)
{
	struct truth t;

	out->number = identify(m, s, e);
	if (out->number == UINT64_MAX) {
		mix_oracle__fault(m, "G4: source %u seq %" PRIu64 " is no record of its log",
				  e->source, e->seq);
		return;
	}
	t = truth_of(m, s, out->number);
	if (!t.published || *t.fate != SIM_FATE_OPEN)
		mix_oracle__fault(m, "O21: source %u number %" PRIu64 " published %d fate %u",
				  e->source, out->number, t.published, *t.fate);
	if (t.stamp_ns != e->stamp_ns)
		mix_oracle__fault(m, "G7: source %u stamped %" PRIu64 ", delivered as %" PRIu64,
				  e->source, t.stamp_ns, e->stamp_ns);
	check_marks(m, &t, out);
	*t.fate = SIM_FATE_DELIVERED;
	*t.mark = e->mark;
}

static void check_gap(struct mix *m, const struct weir_event *e, struct came *out)
{
	struct mix_source *s;

	memcpy(&out->gap, e->data, sizeof(out->gap));
	if (e->source == WEIR_SOURCE_NONE)
		return;
	s = &m->sources[e->source];
	s->told[out->gap.cause] += out->gap.lost;
	s->told_unknown[out->gap.cause] |= out->gap.bound == WEIR_BOUND_UNKNOWN;
	if ((out->gap.to_ns && out->gap.from_ns >= out->gap.to_ns) ||
	    out->stamp_ns != out->gap.to_ns)
		mix_oracle__fault(m,
				  "G4: a gap of source %u, (%" PRIu64 ", %" PRIu64 "], at %" PRIu64,
				  e->source, out->gap.from_ns, out->gap.to_ns, out->stamp_ns);
	if (out->gap.bound == WEIR_BOUND_EXACT && !out->gap.lost &&
	    out->gap.cause != WEIR_LOST_OFFLINE)
		mix_oracle__fault(m, "G4: a gap of source %u of exactly none", e->source);
	if ((out->mark & WEIR_MARK_LATE) && out->gap.cause != WEIR_LOST_LATE && !m->dishonest &&
	    s->how.fence != WEIR_FENCE_GRACE)
		mix_oracle__fault(m, "G4: a gap of source %u, cause %d, is late", e->source,
				  out->gap.cause);
}

void mix_oracle__event(struct mix *m, const struct weir_event *e)
{
	struct came *out = keep(m, e);
	struct mix_source *s;

	m->calls++;
	if (e->source != WEIR_SOURCE_NONE && e->source >= m->nsources) {
		mix_oracle__fault(m, "G4: source %u, which there is not", e->source);
		return;
	}
	check_order(m, out);
	if (e->kind == WEIR_KIND_GAP)
		check_gap(m, e, out);
	if (e->kind != WEIR_KIND_RECORD)
		return;
	s = &m->sources[e->source];
	s->delivered++;
	s->late += !!(e->mark & WEIR_MARK_LATE);
	s->ahead += !!(e->mark & WEIR_MARK_AHEAD);
	m->records += !(e->mark & WEIR_MARK_AHEAD);
	if (!m->blind)
		check_record(m, s, e, out);
}

/* --- Each watermark --- */

void mix_oracle__watermark(struct mix *m, uint64_t watermark_ns, enum weir_order order)
{
	if (watermark_ns <= m->announced_ns)
		mix_oracle__fault(m, "G2: W %" PRIu64 " after %" PRIu64, watermark_ns,
				  m->announced_ns);
	if (m->announced_ns && watermark_ns - m->announced_ns < m->opts.watermark_interval_ns)
		mix_oracle__fault(m, "W %" PRIu64 " told %" PRIu64 " after the last", watermark_ns,
				  watermark_ns - m->announced_ns);
	if ((order == WEIR_ORDER_ESTIMATED) != m->estimated)
		mix_oracle__fault(m, "G2: W %" PRIu64 " is said to be %s", watermark_ns,
				  m->estimated ? "exact" : "estimated");
	m->announced_ns = watermark_ns;
}

/* The T that a source's fence proves, if all of it was drained in this poll. */
static uint64_t proved_ns(const struct mix *m, const struct mix_source *s)
{
	if (s->numbered)
		return m->first_t;
	if (s->how.fence == WEIR_FENCE_RCU)
		return m->ticket_ns < m->first_t ? m->ticket_ns : m->first_t;
	return m->first_t > s->how.grace_ns ? m->first_t - s->how.grace_ns : 0;
}

static bool is_busy(const struct mix_source *s)
{
	uint64_t i;

	if (s->numbered)
		return sim_ring__busy_position(s->numbered) != sim_ring__producer(s->numbered);
	for (i = s->open; s->how.kind == MIX_RINGBUF && i < nlog(s); i++)
		if (s->outside->log[i].state == OUT_INSIDE && s->outside->log[i].reserved)
			return true;
	return false;
}

/* G3: where nothing is unfinished, W is as far as the weakest of the fences allows. */
void mix_oracle__liveness(struct mix *m)
{
	uint64_t floor_ns = UINT64_MAX, w_ns = weir_stream__watermark(m->stream);
	uint32_t i;

	if (m->blind || !m->nsources || m->opts.poll_budget || m->on_clock)
		return;
	for (i = 0; i < m->nsources; i++) {
		uint64_t t_ns = proved_ns(m, &m->sources[i]);

		if (is_busy(&m->sources[i]))
			return;
		if (t_ns < floor_ns)
			floor_ns = t_ns;
	}
	if (floor_ns > m->opts.guard_ns + 1 && w_ns < floor_ns - 1 - m->opts.guard_ns)
		mix_oracle__fault(m, "G3: W stays at %" PRIu64 ", %" PRIu64 " is proved", w_ns,
				  floor_ns);
}

/* --- Accounts --- */

/* Published, stamped at or before W, and not delivered. */
static uint64_t count_missing(const struct mix *m, struct mix_source *s, uint64_t w_ns)
{
	uint64_t missing = 0, i;
	bool all_done = true;

	for (i = s->open; w_ns && i < nlog(s); i++) {
		struct truth t = truth_of(m, s, i);

		if (t.inside || (t.published && *t.fate == SIM_FATE_OPEN))
			all_done = false;
		if (all_done)
			s->open = i + 1;
		/* What a fence does not cover may have come behind W since this poll's snapshot. */
		if (t.published && *t.fate == SIM_FATE_OPEN && t.stamp_ns <= w_ns && !t.may_be_late)
			missing++;
	}
	return missing;
}

static void check_account(struct mix *m, uint32_t index, const struct weir_account *a,
			  bool complete)
{
	struct mix_source *s = &m->sources[index];
	uint64_t given_up = a->lost[WEIR_LOST_LATE];
	uint64_t missing;

	if (weir_account__difference(a))
		mix_oracle__fault(m, "G4: source %u: difference %" PRId64, index,
				  weir_account__difference(a));
	if (a->delivered != s->delivered || a->late != s->late || a->ahead != s->ahead)
		mix_oracle__fault(m,
				  "G4: source %u: delivered %" PRIu64 " late %" PRIu64
				  " ahead %" PRIu64 ", came %" PRIu64 " %" PRIu64 " %" PRIu64,
				  index, a->delivered, a->late, a->ahead, s->delivered, s->late,
				  s->ahead);
	if (m->blind || !complete)
		return;
	missing = count_missing(m, s, weir_stream__watermark(m->stream));
	if (missing > a->lost[WEIR_LOST_HELD] + given_up)
		mix_oracle__fault(m,
				  "G2: source %u: %" PRIu64 " up to W %" PRIu64
				  " did not come, %" PRIu64 " held, %" PRIu64 " dropped",
				  index, missing, weir_stream__watermark(m->stream),
				  a->lost[WEIR_LOST_HELD], given_up);
}

void mix_oracle__accounts(struct mix *m, bool complete)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	uint32_t i;

	for (i = 0; i < m->nsources; i++) {
		struct weir_source_info info;

		if (weir_stream__source(m->stream, i, &info)) {
			mix_oracle__fault(m, "G4: source %u is not known", i);
			return;
		}
		check_account(m, i, &info.account, complete);
	}
	if (weir_stream__ledger(m->stream, &ledger) || ledger.sources != m->nsources)
		mix_oracle__fault(m, "G4: no ledger, or of %u sources", ledger.sources);
	if (weir_account__difference(&ledger.total))
		mix_oracle__fault(m, "G4: in all: difference %" PRId64,
				  weir_account__difference(&ledger.total));
	if ((ledger.order == WEIR_ORDER_ESTIMATED) != m->estimated)
		mix_oracle__fault(m, "G2: the ledger has order %d", ledger.order);
	if (m->opts.memory_bytes && ledger.held_bytes > m->opts.memory_bytes)
		mix_oracle__fault(m, "G5: %" PRIu64 " bytes held, the bound is %zu",
				  ledger.held_bytes, m->opts.memory_bytes);
}

/* --- The end --- */

static bool in_gap(const struct mix *m, uint32_t source, uint64_t stamp_ns)
{
	uint64_t i;

	for (i = 0; i < m->nout; i++) {
		const struct came *out = &m->out[i];

		if (out->kind == WEIR_KIND_GAP && out->source == source &&
		    (out->gap.cause == WEIR_LOST_HELD || out->gap.cause == WEIR_LOST_LATE) &&
		    out->gap.from_ns < stamp_ns && stamp_ns <= out->gap.to_ns)
			return true;
	}
	/* A gap's lower end is before 0 where that is what was lost. */
	return !stamp_ns;
}

/* Each published record came, or a gap that reaches over it has told of it. */
static void check_fates(struct mix *m, uint32_t index, const struct weir_account *a)
{
	struct mix_source *s = &m->sources[index];
	uint64_t missing = 0, i;

	for (i = 0; i < nlog(s); i++) {
		struct truth t = truth_of(m, s, i);

		if (!t.published || *t.fate != SIM_FATE_OPEN)
			continue;
		missing++;
		if (!in_gap(m, index, t.stamp_ns))
			mix_oracle__fault(m, "G4: source %u number %" PRIu64 " vanished", index, i);
	}
	if (missing != a->lost[WEIR_LOST_HELD] + a->lost[WEIR_LOST_LATE])
		mix_oracle__fault(m, "G4: source %u: %" PRIu64 " missing, %" PRIu64 " told", index,
				  missing, a->lost[WEIR_LOST_HELD] + a->lost[WEIR_LOST_LATE]);
}

/* What the account says was lost is what the gaps said. */
static void check_told(struct mix *m, uint32_t index, const struct weir_account *a)
{
	const struct mix_source *s = &m->sources[index];
	int i;

	for (i = 0; i < WEIR_LOST_CAUSES; i++)
		if (a->lost[i] != s->told[i])
			mix_oracle__fault(m, "G4: source %u: %s %" PRIu64 ", told %" PRIu64, index,
					  weir_cause__name(i), a->lost[i], s->told[i]);
	/* Hostile bytes may say for ever that they are not finished. */
	if (a->pending && !m->blind)
		mix_oracle__fault(m, "G4: source %u: %" PRIu64 " pending at the end", index,
				  a->pending);
}

/* G4: the numbers of what its writers did. */
static void check_sum(struct mix *m, uint32_t index, const struct weir_account *a)
{
	const struct out_ring *ring = m->sources[index].outside;
	uint64_t known, refused = a->lost[WEIR_LOST_RESERVE_FAILED];

	if (!ring)
		return;
	/* Without a counter, what the LOST records say: nothing of what came after the last one. */
	known = m->sources[index].how.counted ? ring->lost : ring->told_by_record;
	if (refused != known)
		mix_oracle__fault(m, "G4: source %u: %" PRIu64 " refused, %" PRIu64 " known", index,
				  refused, known);
	if (a->filtered != ring->discarded ||
	    a->produced != ring->published + ring->discarded + refused + a->lost[WEIR_LOST_UNSEEN])
		mix_oracle__fault(m,
				  "G4: source %u: produced %" PRIu64 " filtered %" PRIu64
				  ", published %" PRIu64 " discarded %" PRIu64,
				  index, a->produced, a->filtered, ring->published,
				  ring->discarded);
}

static uint64_t collect(const struct mix *m, uint32_t index, struct came *keys)
{
	const struct mix_source *s = &m->sources[index];
	uint64_t n = 0, i;

	for (i = 0; i < nlog(s); i++) {
		struct truth t = truth_of(m, s, i);

		if (*t.fate != SIM_FATE_DELIVERED || *t.mark)
			continue;
		if (keys)
			keys[n] = (struct came){.stamp_ns = t.stamp_ns,
						.source = index,
						.seq = t.order,
						.number = i};
		n++;
	}
	return n;
}

/* O19: the records as they came, those that are flagged apart, equal a plain sort of the logs. */
static void check_sorted(struct mix *m)
{
	uint64_t total = 0, at = 0, i;
	struct came *keys;
	uint32_t source;

	for (source = 0; source < m->nsources; source++)
		total += collect(m, source, NULL);
	keys = malloc((total + 1) * sizeof(*keys));
	if (!keys)
		abort();
	for (source = 0; source < m->nsources; source++)
		at += collect(m, source, keys + at);
	qsort(keys, total, sizeof(*keys), came__compare);
	for (i = 0, at = 0; i < m->nout; i++) {
		const struct came *out = &m->out[i];

		if (out->kind != WEIR_KIND_RECORD || out->mark)
			continue;
		if (at == total || keys[at].source != out->source ||
		    keys[at].number != out->number) {
			mix_oracle__fault(m, "O19: delivery %" PRIu64 " differs from the sort", i);
			break;
		}
		at++;
	}
	if (at != total)
		mix_oracle__fault(m, "O19: %" PRIu64 " delivered, the sort has %" PRIu64, at,
				  total);
	free(keys);
}

void mix_oracle__end(struct mix *m)
{
	uint32_t i;

	for (i = 0; i < m->nsources; i++) {
		struct weir_source_info info;

		if (weir_stream__source(m->stream, i, &info))
			return;
		check_told(m, i, &info.account);
		if (m->blind)
			continue;
		check_fates(m, i, &info.account);
		check_sum(m, i, &info.account);
	}
	if (!m->blind)
		check_sorted(m);
}
