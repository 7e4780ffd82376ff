// SPDX-License-Identifier: BSD-2-Clause
/*
 * judge.c - does a trace keep what weir promises?
 *
 * Owns: the rules. Promises: what it calls broken is broken; a trace that weir made honestly passes,
 * interrupts that nest and losses that were joined included. Must not know: files and JSON.
 *
 * The numbers of a source go by another order than its stamps: an interrupt between a record's count
 * and its stamp gives later numbers earlier stamps. So a number that steps back proves nothing. What
 * does: each number comes once, and those delivered and those lost are never more than there are.
 */
#include "cli/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 63
#define SOURCES_MAX  32768
#define WINDOW	     16384 /* numbers back to which one that comes twice is noticed */
#define WINDOW_WORDS (WINDOW / 64)
#define NOT_NUMBERED UINT64_MAX
#define TABLE_MIN    64

struct source {
	char name[NAME_MAX_LEN + 1];
	size_t letters;	 /* of the name, before its number */
	uint64_t number; /* NOT_NUMBERED: the name does not end with one */
	struct judge_count count;
	uint64_t least;	     /* numbers seen or lost lie in [least, end) */
	uint64_t end;	     /* never less than seen_end */
	uint64_t seen_end;   /* the highest number seen, and 1 */
	uint64_t lost;	     /* numbers that gaps have taken */
	uint64_t even_line;  /* up to here, every number from 0 on was delivered or in a gap */
	uint64_t first_line; /* of this source */
	uint64_t seen[WINDOW_WORDS]; /* a bit a number, of the last WINDOW below seen_end */
};

/* Where in the order a line stands. */
struct place {
	uint64_t stamp_ns;
	const struct source *source; /* NULL: the whole machine, after all others */
	bool has_seq;
	uint64_t seq, line;
};

struct judge {
	struct source **sources; /* in order of appearance */
	uint32_t nr_sources, sources_cap;
	uint32_t *table; /* hash of the name -> index + 1; 0: free */
	uint32_t table_len;
	struct source *recent;
	struct judge_count total;
	bool has_last, has_watermark;
	struct place last; /* of those that are not flagged */
	struct place
		late; /* the highest stamp flagged late since the last watermark; line 0: none */
	uint64_t watermark_ns, watermark_line;
};

struct judge *judge__new(void)
{
	return calloc(1, sizeof(struct judge));
}

void judge__free(struct judge *judge)
{
	uint32_t i;

	if (!judge)
		return;
	for (i = 0; i < judge->nr_sources; i++)
		free(judge->sources[i]);
	free(judge->sources);
	free(judge->table);
	free(judge);
}

__attribute__((format(printf, 4, 5))) static bool broken(struct judge_verdict *out,
							 const char *promise, uint64_t line,
							 const char *format, ...)
{
	va_list args;

	out->promise = promise;
	out->line = line;
	va_start(args, format);
	vsnprintf(out->text, sizeof(out->text), format, args);
	va_end(args);
	return false;
}

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

/* The place of a name in the table: its own, or the free one that it would take. */
static uint32_t *slot(const struct judge *judge, const char *name)
{
	uint32_t i = hash(name);

	for (;; i++) {
		uint32_t *at = &judge->table[i & (judge->table_len - 1)];

		if (!*at || !strcmp(judge->sources[*at - 1]->name, name))
			return at;
	}
}

static bool grow(struct judge *judge)
{
	uint32_t len = judge->table_len ? judge->table_len * 2 : TABLE_MIN, i;
	struct source **sources = realloc(judge->sources, len / 2 * sizeof(*sources));
	uint32_t *table;

	if (!sources)
		return false;
	judge->sources = sources;
	table = calloc(len, sizeof(*table));
	if (!table)
		return false;
	free(judge->table);
	judge->table = table;
	judge->table_len = len;
	judge->sources_cap = len / 2;
	for (i = 0; i < judge->nr_sources; i++)
		*slot(judge, judge->sources[i]->name) = i + 1;
	return true;
}

/* "life12" -> 4 letters, 12 */
static void take_apart(struct source *source)
{
	size_t len = strlen(source->name), letters = len;

	while (letters && source->name[letters - 1] >= '0' && source->name[letters - 1] <= '9')
		letters--;
	source->letters = letters;
	source->number = NOT_NUMBERED;
	if (len > letters && len - letters < 10)
		source->number = strtoull(source->name + letters, NULL, 10);
}

static struct source *add_source(struct judge *judge, const char *name)
{
	struct source *source;

	if (judge->nr_sources == SOURCES_MAX)
		return NULL;
	if (judge->nr_sources == judge->sources_cap && !grow(judge))
		return NULL;
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	snprintf(source->name, sizeof(source->name), "%s", name);
	take_apart(source);
	judge->sources[judge->nr_sources] = source;
	*slot(judge, name) = ++judge->nr_sources;
	return source;
}

static struct source *find(const struct judge *judge, const char *name)
{
	uint32_t index = judge->table_len ? *slot(judge, name) : 0;

	return index ? judge->sources[index - 1] : NULL;
}

static struct source *get_source(struct judge *judge, const char *name)
{
	struct source *source = judge->recent;

	if (source && !strcmp(source->name, name))
		return source;
	source = find(judge, name);
	if (!source)
		source = add_source(judge, name);
	judge->recent = source;
	return source;
}

static bool is_class(const struct source *s, const char *letters)
{
	return s->letters == strlen(letters) && !memcmp(s->name, letters, s->letters);
}

/* Which source goes first when stamps are equal: < 0, 0 (the same, or nothing is known), > 0. */
static int compare_sources(const struct source *a, const struct source *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? -1 : 1;
	if (is_class(a, "life") && is_class(b, "cpu"))
		return -1;
	if (is_class(a, "cpu") && is_class(b, "life"))
		return 1;
	if (a->letters != b->letters || memcmp(a->name, b->name, a->letters) ||
	    a->number == NOT_NUMBERED || b->number == NOT_NUMBERED)
		return 0;
	return a->number < b->number ? -1 : 1;
}

static int compare_places(const struct place *a, const struct place *b)
{
	int order;

	if (a->stamp_ns != b->stamp_ns)
		return a->stamp_ns < b->stamp_ns ? -1 : 1;
	order = compare_sources(a->source, b->source);
	if (order || a->source != b->source || !a->has_seq || !b->has_seq)
		return order;
	return (a->seq > b->seq) - (a->seq < b->seq);
}

/* "ts 12 of cpu0, seq 5" */
static const char *tell(const struct place *place, char *text, size_t len)
{
	const char *name = place->source ? place->source->name : "the whole machine";

	if (place->has_seq)
		snprintf(text, len, "ts %" PRIu64 " of %s, seq %" PRIu64, place->stamp_ns, name,
			 place->seq);
	else
		snprintf(text, len, "ts %" PRIu64 " of %s", place->stamp_ns, name);
	return text;
}

#define TELL_LEN 160

/* G1. Lines that are flagged do not count, neither as steps back nor as what comes after them. */
static bool judge_order(struct judge *judge, const struct judge_line *line,
			const struct place *place, struct judge_verdict *out)
{
	char this[TELL_LEN], last[TELL_LEN];

	if (line->late || line->ahead)
		return true;
	if (judge->has_last && compare_places(place, &judge->last) < 0)
		return broken(out, "G1 order", line->no,
			      "%s, comes after %s (line %" PRIu64 "), and is not flagged late",
			      tell(place, this, sizeof(this)),
			      tell(&judge->last, last, sizeof(last)), judge->last.line);
	judge->last = *place;
	judge->has_last = true;
	return true;
}

/* G2, for everything but watermarks. */
static bool judge_watermark(struct judge *judge, const struct judge_line *line,
			    const struct place *place, struct judge_verdict *out)
{
	char this[TELL_LEN];

	if (line->late) {
		if (!judge->late.line || line->stamp_ns > judge->late.stamp_ns)
			judge->late = *place;
		return true;
	}
	if (!judge->has_watermark || line->stamp_ns > judge->watermark_ns)
		return true;
	return broken(out, "G2 watermark", line->no,
		      "%s, is behind the watermark %" PRIu64 " (line %" PRIu64
		      "), and is not flagged late",
		      tell(place, this, sizeof(this)), judge->watermark_ns, judge->watermark_line);
}

/*
 * A trace need not print each watermark that there was. So what is flagged late is behind one that is
 * not there, or behind one before it: in any case not beyond the next.
 */
static bool judge_late(const struct judge *judge, const struct judge_line *line,
		       struct judge_verdict *out)
{
	char late[TELL_LEN];

	if (!judge->late.line || judge->late.stamp_ns <= line->stamp_ns)
		return true;
	return broken(out, "G2 watermark", judge->late.line,
		      "%s, is flagged late, and the next watermark is only %" PRIu64
		      " (line %" PRIu64 ")",
		      tell(&judge->late, late, sizeof(late)), line->stamp_ns, line->no);
}

static bool take_watermark(struct judge *judge, const struct judge_line *line,
			   struct judge_verdict *out)
{
	if (judge->has_watermark && line->stamp_ns < judge->watermark_ns)
		return broken(out, "G2 watermark", line->no,
			      "watermark %" PRIu64 " comes after watermark %" PRIu64
			      " (line %" PRIu64 ")",
			      line->stamp_ns, judge->watermark_ns, judge->watermark_line);
	if (!judge_late(judge, line, out))
		return false;
	judge->has_watermark = true;
	judge->watermark_ns = line->stamp_ns;
	judge->watermark_line = line->no;
	judge->total.watermarks++;
	return true;
}

static bool test_and_set(struct source *s, uint64_t seq)
{
	uint64_t *word = &s->seen[seq % WINDOW / 64], bit = 1ull << seq % 64;
	bool was_set = *word & bit;

	*word |= bit;
	return was_set;
}

/* Numbers from seen_end up to seq are in the window now, and were not seen. */
static void move_window(struct source *s, uint64_t seq)
{
	uint64_t at;

	if (seq - s->seen_end >= WINDOW) {
		memset(s->seen, 0, sizeof(s->seen));
		return;
	}
	for (at = s->seen_end; at <= seq; at++)
		s->seen[at % WINDOW / 64] &= ~(1ull << at % 64);
}

/* false: the number was seen before. */
static bool see(struct source *s, uint64_t seq)
{
	if (seq < s->seen_end) {
		/* What is behind the window can't be known: it counts as new. */
		return s->seen_end - seq > WINDOW || !test_and_set(s, seq);
	}
	move_window(s, seq);
	s->seen_end = seq + 1;
	test_and_set(s, seq);
	return true;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Numbers in [first, end) were delivered or lost. No two of either kind are the same, and all lie in
 * [least, end): so there are never more of them than that has room for.
 */
static bool take_numbers(struct source *s, uint64_t first, uint64_t end, uint64_t line,
			 struct judge_verdict *out)
{
	uint64_t have = add_up(s->count.events, s->lost);

	if (!s->first_line || first < s->least)
		s->least = first;
	if (!s->first_line)
		s->first_line = line;
	if (end > s->end)
		s->end = end;
	if (have == s->end)
		s->even_line = line;
	if (have <= s->end - s->least)
		return true;
	return broken(out, "G4 loss", line,
		      "of the numbers %" PRIu64 " to %" PRIu64 " of %s, %" PRIu64
		      " are delivered and %" PRIu64 " in gaps: more than there are",
		      s->least, s->end - 1, s->name, s->count.events, s->lost);
}

static bool take_record(struct judge *judge, struct source *s, const struct judge_line *line,
			struct judge_verdict *out)
{
	judge->total.enters += line->entered;
	if (!line->has_seq)
		return true;
	judge->total.events++;
	s->count.events++;
	if (!see(s, line->seq))
		return broken(out, "G4 loss", line->no,
			      "seq %" PRIu64 " of %s, ts %" PRIu64
			      ", comes twice: each record is delivered once",
			      line->seq, s->name, line->stamp_ns);
	return take_numbers(s, line->seq, line->seq + 1, line->no, out);
}

static void count_gap(struct judge_count *count, const struct weir_gap *gap)
{
	count->gaps++;
	if (gap->bound == WEIR_BOUND_UNKNOWN) {
		count->unknown[gap->cause] = true;
		return;
	}
	count->lost[gap->cause] = add_up(count->lost[gap->cause], gap->lost);
	if (gap->bound == WEIR_BOUND_AT_MOST)
		count->at_most[gap->cause] = true;
}

static bool take_gap(struct judge *judge, struct source *s, const struct judge_line *line,
		     struct judge_verdict *out)
{
	const struct weir_gap *gap = &line->gap;

	if (gap->from_ns > gap->to_ns || gap->to_ns != line->stamp_ns)
		return broken(out, "G4 loss", line->no,
			      "a gap in (%" PRIu64 ", %" PRIu64 "] with ts %" PRIu64
			      ": it has to end after it begins, and to stand where it ends",
			      gap->from_ns, gap->to_ns, line->stamp_ns);
	count_gap(&judge->total, gap);
	if (!s)
		return true;
	count_gap(&s->count, gap);
	if (!line->has_seq)
		return true;
	if (gap->seq_end < line->seq || gap->lost > gap->seq_end - line->seq)
		return broken(out, "G4 loss", line->no,
			      "a gap of %s has %" PRIu64 " lost from seq %" PRIu64
			      " to before %" PRIu64 ": so many there are not",
			      s->name, gap->lost, line->seq, gap->seq_end);
	s->lost = add_up(s->lost, gap->lost);
	return take_numbers(s, line->seq, gap->seq_end, line->no, out);
}

static void count_marks(struct judge_count *count, const struct judge_line *line)
{
	count->late += line->late;
	count->ahead += line->ahead;
}

bool judge__line(struct judge *judge, const struct judge_line *line, struct judge_verdict *out)
{
	struct place place = {line->stamp_ns, NULL, line->has_seq, line->seq, line->no};
	struct source *source = NULL;

	if (line->kind == JUDGE_WATERMARK)
		return take_watermark(judge, line, out);
	if (line->source) {
		if (strlen(line->source) > NAME_MAX_LEN)
			return broken(out, "format", line->no, "a source's name is too long");
		source = get_source(judge, line->source);
		if (!source)
			return broken(out, "format", line->no,
				      "more sources than memory, or than %d", SOURCES_MAX);
		place.source = source;
	}
	if (!judge_order(judge, line, &place, out) || !judge_watermark(judge, line, &place, out))
		return false;
	if (line->kind == JUDGE_RECORD) {
		count_marks(&judge->total, line);
		if (source)
			count_marks(&source->count, line);
		return take_record(judge, source, line, out);
	}
	return line->kind != JUDGE_GAP || take_gap(judge, source, line, out);
}

static uint64_t missing(const struct source *s)
{
	uint64_t have = s->count.events + s->lost;

	return s->end > have ? s->end - have : 0;
}

static bool end_source(const struct source *s, struct judge_verdict *out)
{
	if (!missing(s))
		return true;
	return broken(out, "G4 loss", s->even_line ? s->even_line : s->first_line,
		      "numbers of %s are missing after this line: it has 0 to %" PRIu64
		      ", of these %" PRIu64 " delivered, %" PRIu64 " lost, and %" PRIu64 " neither",
		      s->name, s->end - 1, s->count.events, s->lost, missing(s));
}

bool judge__complete(const struct judge *judge, struct judge_verdict *out)
{
	struct judge_verdict first = {.line = UINT64_MAX}, this;
	uint64_t holes = 0;
	uint32_t i;

	*out = (struct judge_verdict){0};
	for (i = 0; i < judge->nr_sources; i++)
		holes += missing(judge->sources[i]);
	if (holes <= judge->total.enters)
		return true;
	for (i = 0; i < judge->nr_sources; i++)
		if (!end_source(judge->sources[i], &this) && this.line < first.line)
			first = this;
	*out = first;
	return false;
}

const struct judge_count *judge__total(const struct judge *judge)
{
	return &judge->total;
}

const struct judge_count *judge__source(const struct judge *judge, uint32_t index,
					const char **name)
{
	if (index >= judge->nr_sources)
		return NULL;
	*name = judge->sources[index]->name;
	return &judge->sources[index]->count;
}

const struct judge_count *judge__find(const struct judge *judge, const char *name)
{
	const struct source *s = find(judge, name);

	return s ? &s->count : NULL;
}

uint64_t judge__missing(const struct judge *judge, const char *name)
{
	const struct source *s = find(judge, name);

	return s ? missing(s) : 0;
}
