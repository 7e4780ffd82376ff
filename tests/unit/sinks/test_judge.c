// SPDX-License-Identifier: BSD-2-Clause
/*
 * judge.c: what breaks a promise is found and named by its line; what an honest trace may hold passes,
 * interrupts that nest (L8) and losses that were joined included.
 */
#include "capture.h"

#include "cli/judge.h"

static struct judge *judge;
static struct judge_verdict verdict;
static uint64_t line_no;

static int setup(void **state)
{
	judge = judge__new();
	line_no = 0;
	memset(&verdict, 0, sizeof(verdict));
	return judge ? 0 : 1;
}

static int teardown(void **state)
{
	judge__free(judge);
	return 0;
}

static bool take(struct judge_line line)
{
	line.no = ++line_no;
	return judge__line(judge, &line, &verdict);
}

static bool record(const char *source, uint64_t stamp_ns, uint64_t seq)
{
	return take((struct judge_line){
		.stamp_ns = stamp_ns, .source = source, .has_seq = true, .seq = seq});
}

static bool flagged(const char *source, uint64_t stamp_ns, uint64_t seq, bool late)
{
	return take((struct judge_line){.stamp_ns = stamp_ns,
					.source = source,
					.has_seq = true,
					.seq = seq,
					.late = late,
					.ahead = !late});
}

static bool joined_gap(const char *source, uint64_t to_ns, uint64_t seq, uint64_t seq_end,
		       uint64_t lost)
{
	return take((struct judge_line){
		.kind = JUDGE_GAP,
		.stamp_ns = to_ns,
		.source = source,
		.has_seq = true,
		.seq = seq,
		.gap = {.from_ns = 1, .to_ns = to_ns, .lost = lost, .seq_end = seq_end}});
}

static bool gap(const char *source, uint64_t to_ns, uint64_t seq, uint64_t lost)
{
	return joined_gap(source, to_ns, seq, seq + lost, lost);
}

static bool watermark(uint64_t stamp_ns)
{
	return take((struct judge_line){.kind = JUDGE_WATERMARK, .stamp_ns = stamp_ns});
}

#define GOOD(what)                                                         \
	do {                                                               \
		if (!(what))                                               \
			fail_msg("%s: %s", verdict.promise, verdict.text); \
	} while (0)

#define BREAKS(what, which, at, part)                                         \
	do {                                                                  \
		assert_false(what);                                           \
		assert_string_equal(verdict.promise, which);                  \
		assert_int_equal(verdict.line, at);                           \
		if (!strstr(verdict.text, part))                              \
			fail_msg("\"%s\" is not in: %s", part, verdict.text); \
	} while (0)

static bool complete(void)
{
	return judge__complete(judge, &verdict);
}

static void test_a_good_trace(void **state)
{
	const struct judge_count *total = judge__total(judge);
	const char *name;

	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu1", 11, 0));
	GOOD(watermark(11));
	GOOD(gap("cpu0", 20, 1, 3));
	GOOD(record("cpu0", 20, 4));
	GOOD(flagged("cpu1", 9, 1, true));
	GOOD(flagged("cpu1", 999, 2, false));
	GOOD(record("cpu1", 30, 3));
	GOOD(watermark(30));
	GOOD(watermark(30));
	GOOD(complete());
	assert_int_equal(total->events, 6);
	assert_int_equal(total->gaps, 1);
	assert_int_equal(total->lost[WEIR_LOST_RESERVE_FAILED], 3);
	assert_int_equal(total->late, 1);
	assert_int_equal(total->ahead, 1);
	assert_int_equal(total->watermarks, 3);
	assert_int_equal(judge__source(judge, 0, &name)->events, 2);
	assert_string_equal(name, "cpu0");
	assert_int_equal(judge__find(judge, "cpu1")->events, 4);
	assert_null(judge__find(judge, "cpu2"));
	assert_null(judge__source(judge, 2, &name));
	assert_int_equal(judge__missing(judge, "cpu0"), 0);
	assert_int_equal(judge__missing(judge, "cpu2"), 0);
}

static void test_nothing(void **state)
{
	GOOD(complete());
	assert_null(judge__find(judge, "cpu0"));
}

/* G1 */
static void test_a_step_back(void **state)
{
	GOOD(record("cpu0", 100, 0));
	GOOD(record("cpu1", 101, 0));
	BREAKS(record("cpu0", 100, 1), "G1 order", 3,
	       "ts 100 of cpu0, seq 1, comes after ts 101 of cpu1, seq 0 (line 2)");
}

static void test_flags_allow_steps_back(void **state)
{
	GOOD(record("cpu0", 100, 0));
	GOOD(flagged("cpu0", 1, 1, true));
	GOOD(record("cpu0", 100, 2));
	/* What is ahead does not make what follows a step back. */
	GOOD(flagged("cpu0", 5000, 3, false));
	GOOD(record("cpu0", 101, 4));
	/* Nor does what is late make it right. */
	GOOD(flagged("cpu0", 2, 5, true));
	BREAKS(record("cpu0", 99, 6), "G1 order", 7, "(line 5)");
}

static void test_gaps_and_steps_stand_in_order(void **state)
{
	GOOD(record("cpu0", 100, 5));
	BREAKS(gap("cpu1", 99, 0, 1), "G1 order", 2, "ts 99 of cpu1");
}

static void test_clock_steps_stand_in_order(void **state)
{
	GOOD(record("cpu0", 100, 5));
	BREAKS(take((struct judge_line){.kind = JUDGE_CLOCK_STEP, .stamp_ns = 99}), "G1 order", 2,
	       "ts 99 of the whole machine");
}

/* G7: life before cpu, then by number and not by letter, then the whole machine. */
static void test_ties(void **state)
{
	GOOD(record("life2", 5, 0));
	GOOD(record("life10", 5, 0));
	GOOD(record("cpu0", 5, 0));
	GOOD(record("cpu9", 5, 3));
	GOOD(record("cpu9", 5, 4));
	GOOD(record("cpu10", 5, 0));
	GOOD(take((struct judge_line){.kind = JUDGE_CLOCK_STEP, .stamp_ns = 5}));
	BREAKS(record("cpu11", 5, 0), "G1 order", 8, "comes after ts 5 of the whole machine");
}

static void test_ties_by_number(void **state)
{
	GOOD(record("cpu10", 5, 0));
	BREAKS(record("cpu9", 5, 0), "G1 order", 2, "cpu9");
}

static void test_ties_life_first(void **state)
{
	GOOD(record("cpu0", 5, 0));
	BREAKS(record("life0", 5, 0), "G1 order", 2, "life0");
}

static void test_ties_by_seq(void **state)
{
	GOOD(record("cpu0", 5, 8));
	BREAKS(record("cpu0", 5, 7), "G1 order", 2, "seq 7");
}

/* Names of other programs: their order is not known. */
static void test_ties_of_unknown_classes(void **state)
{
	GOOD(record("zeta", 5, 0));
	GOOD(record("alpha3", 5, 0));
	GOOD(record("beta1", 5, 0));
	GOOD(record("cpu1234567890123", 5, 0));
	GOOD(record("cpu0", 5, 0));
	GOOD(complete());
}

/* L8: an interrupt between count and stamp. */
static void test_numbers_may_step_back(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu0", 20, 2));
	GOOD(record("cpu0", 21, 3));
	GOOD(record("cpu0", 22, 1));
	GOOD(complete());
}

/* O21: exactly once. */
static void test_a_record_twice(void **state)
{
	uint64_t seq;

	for (seq = 0; seq < 20000; seq++)
		GOOD(record("cpu0", 10 + seq, seq));
	BREAKS(record("cpu0", 30000, 20000 - 16384), "G4 loss", 20001, "comes twice");
}

static void test_a_late_record_twice(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu0", 11, 1));
	BREAKS(flagged("cpu0", 10, 0, true), "G4 loss", 3, "seq 0 of cpu0, ts 10, comes twice");
}

/* The window forgets what it leaves: a number is not called double because of an older one. */
static void test_jumps(void **state)
{
	static const uint64_t jumps[] = {1,	63,    64,    65,	  1000,	     16383,
					 16384, 16385, 99999, 1ull << 32, 1ull << 62};
	uint64_t seq = 0, ts = 1;
	size_t i;

	for (i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		GOOD(record("cpu0", ts++, seq));
		GOOD(record("cpu0", ts++, seq + 1));
		seq += 1 + jumps[i];
	}
	GOOD(record("cpu0", ts++, UINT64_MAX - 1));
	BREAKS(complete(), "G4 loss", 4, "numbers of cpu0 are missing after this line");
}

/* What was jumped over was not seen, whatever stood in its place of the window before. */
static void test_what_was_jumped_over_may_come(void **state)
{
	static const uint64_t jumps[] = {2, 10, 100, 16382, 16383, 16384, 16385, 16400, 40000};
	uint64_t seq, top, i, back;

	for (i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		judge__free(judge);
		judge = judge__new();
		for (seq = 0; seq < 16500; seq++)
			GOOD(record("cpu0", seq, seq));
		top = 16499 + jumps[i];
		GOOD(record("cpu0", 20000, top));
		for (back = 1; back < jumps[i] && back < 16384; back++)
			GOOD(record("cpu0", 20000 + back, top - back));
		BREAKS(record("cpu0", 90000, top - 1), "G4 loss", line_no, "comes twice");
	}
}

/* Further back than the window: nothing is known, so nothing is said. */
static void test_behind_the_window(void **state)
{
	uint64_t seq;

	for (seq = 0; seq < 20000; seq++)
		if (seq != 7)
			GOOD(record("cpu0", seq, seq));
	GOOD(record("cpu0", 20001, 7));
	GOOD(complete());
}

static void test_each_source_has_its_numbers(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu1", 11, 0));
	GOOD(record("life0", 12, 0));
	GOOD(record("cpu0", 13, 1));
	GOOD(complete());
}

/* W2 */
static void test_behind_the_watermark(void **state)
{
	GOOD(record("cpu0", 110, 0));
	GOOD(watermark(120));
	GOOD(flagged("cpu0", 115, 1, true));
	BREAKS(record("cpu0", 120, 2), "G2 watermark", 4,
	       "ts 120 of cpu0, seq 2, is behind the watermark 120 (line 2)");
}

static void test_gap_behind_the_watermark(void **state)
{
	GOOD(watermark(120));
	BREAKS(gap("cpu0", 119, 0, 1), "G2 watermark", 2, "is not flagged late");
}

static void test_watermark_goes_back(void **state)
{
	GOOD(watermark(120));
	GOOD(watermark(120));
	BREAKS(watermark(119), "G2 watermark", 3,
	       "watermark 119 comes after watermark 120 (line 2)");
}

static void test_watermark_zero(void **state)
{
	GOOD(watermark(0));
	BREAKS(record("cpu0", 0, 0), "G2 watermark", 2, "behind the watermark 0");
}

/* Not each watermark is printed, so only the next one says whether a flag was right. */
static void test_late_without_a_watermark(void **state)
{
	GOOD(record("cpu0", 200, 0));
	GOOD(watermark(200));
	GOOD(flagged("cpu0", 250, 1, true));
	GOOD(watermark(250));
	GOOD(flagged("cpu0", 251, 2, true));
	GOOD(flagged("cpu0", 240, 3, true));
	BREAKS(watermark(250), "G2 watermark", 5,
	       "ts 251 of cpu0, seq 2, is flagged late, and the next watermark is only 250 (line 7)");
}

/* G4: L1 and L10. */
static void test_gaps_that_fit(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(gap("cpu0", 20, 1, 4));
	GOOD(record("cpu0", 20, 5));
	/* At the tail, with nothing after it (L4). */
	GOOD(gap("cpu0", 30, 6, 1000));
	GOOD(complete());
	assert_int_equal(judge__total(judge)->lost[WEIR_LOST_RESERVE_FAILED], 1004);
}

static void test_a_gap_that_takes_too_many(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(gap("cpu0", 20, 1, 5));
	BREAKS(record("cpu0", 20, 5), "G4 loss", 3,
	       "of the numbers 0 to 5 of cpu0, 2 are delivered and 5 in gaps: more than there are");
}

static void test_a_gap_where_nothing_is_missing(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu0", 11, 1));
	BREAKS(gap("cpu0", 11, 1, 1), "G4 loss", 3, "of the numbers 0 to 1 of cpu0");
}

static void test_gaps_that_overlap(void **state)
{
	GOOD(gap("cpu0", 11, 3, 3));
	BREAKS(gap("cpu0", 11, 5, 3), "G4 loss", 2, "0 are delivered and 6 in gaps");
}

/* The sum is right again later: numbers that came late. */
static void test_a_hole_that_is_filled(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu0", 11, 2));
	BREAKS(complete(), "G4 loss", 1, "numbers of cpu0 are missing after this line");
	GOOD(flagged("cpu0", 9, 1, true));
	GOOD(complete());
}

/*
 * Many losses were joined to one gap: every other number from 1 to 19. Records between them come
 * before and after it.
 */
static void test_a_joined_gap(void **state)
{
	uint64_t seq;

	GOOD(record("cpu0", 10, 0));
	for (seq = 2; seq < 10; seq += 2)
		GOOD(record("cpu0", 10 + seq, seq));
	GOOD(joined_gap("cpu0", 20, 1, 20, 10));
	for (; seq < 20; seq += 2)
		GOOD(record("cpu0", 20 + seq, seq));
	GOOD(complete());
	BREAKS(record("cpu0", 40, 3), "G4 loss", 12, "11 are delivered and 10 in gaps");
}

static void test_a_joined_gap_at_the_end(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu0", 11, 2));
	GOOD(record("cpu0", 12, 3));
	GOOD(record("cpu0", 13, 4));
	GOOD(joined_gap("cpu0", 20, 1, 6, 2));
	GOOD(complete());
}

static void test_gaps_without_numbers(void **state)
{
	struct judge_line line = {
		.kind = JUDGE_GAP,
		.stamp_ns = 20,
		.gap = {.from_ns = 10,
			.to_ns = 20,
			.lost = 5,
			.cause = WEIR_LOST_SKIPPED,
			.bound = WEIR_BOUND_AT_MOST},
	};

	GOOD(record("cpu0", 10, 0));
	GOOD(take(line));
	line.source = "cpu1";
	line.stamp_ns = line.gap.to_ns = 21;
	line.gap.bound = WEIR_BOUND_UNKNOWN;
	line.gap.cause = WEIR_LOST_DEAD_EVENT;
	GOOD(take(line));
	GOOD(record("cpu0", 22, 1));
	GOOD(complete());
	assert_int_equal(judge__total(judge)->lost[WEIR_LOST_SKIPPED], 5);
	assert_true(judge__total(judge)->at_most[WEIR_LOST_SKIPPED]);
	assert_int_equal(judge__total(judge)->lost[WEIR_LOST_DEAD_EVENT], 0);
	assert_true(judge__total(judge)->unknown[WEIR_LOST_DEAD_EVENT]);
	assert_int_equal(judge__find(judge, "cpu1")->gaps, 1);
}

static void test_bounds_of_a_gap(void **state)
{
	struct judge_line line = {
		.kind = JUDGE_GAP, .stamp_ns = 20, .gap = {.from_ns = 21, .to_ns = 20}};

	BREAKS(take(line), "G4 loss", 1, "a gap in (21, 20] with ts 20");
	line.gap.from_ns = 19;
	line.stamp_ns = 21;
	BREAKS(take(line), "G4 loss", 2, "a gap in (19, 20] with ts 21");
}

static void test_absurd_numbers(void **state)
{
	BREAKS(joined_gap("cpu0", 20, 2, 3, 2), "G4 loss", 1, "so many there are not");
	BREAKS(joined_gap("cpu0", 20, 2, 1, 0), "G4 loss", 2, "so many there are not");
	GOOD(gap("cpu1", 21, 2, UINT64_MAX - 2));
	GOOD(record("cpu1", 22, 1));
	BREAKS(gap("cpu1", 23, 2, UINT64_MAX - 2), "G4 loss", 5,
	       "1 are delivered and 18446744073709551615 in gaps");
	assert_int_equal(judge__total(judge)->lost[WEIR_LOST_RESERVE_FAILED], UINT64_MAX);
}

static void test_complete_from_zero(void **state)
{
	GOOD(record("cpu0", 10, 3));
	GOOD(record("cpu0", 11, 4));
	assert_int_equal(judge__missing(judge, "cpu0"), 3);
	BREAKS(complete(), "G4 loss", 1,
	       "it has 0 to 4, of these 2 delivered, 0 lost, and 3 neither");
}

/* Of several sources in the wrong, the one of the earliest line is named. */
static void test_the_first_line_is_named(void **state)
{
	GOOD(record("cpu0", 10, 0));
	GOOD(record("cpu1", 11, 0));
	GOOD(record("cpu1", 12, 2));
	GOOD(record("cpu0", 13, 2));
	BREAKS(complete(), "G4 loss", 1, "of cpu0 are missing");
}

static void test_many_sources(void **state)
{
	char name[80];
	uint32_t i;

	for (i = 0; i < 32768; i++) {
		snprintf(name, sizeof(name), "cpu%u", i);
		GOOD(record(name, 10, 0));
		if (i % 1000 == 0)
			GOOD(record(name, 10, 1));
	}
	assert_int_equal(judge__find(judge, "cpu31000")->events, 2);
	assert_int_equal(judge__find(judge, "cpu31001")->events, 1);
	BREAKS(record("one more", 11, 0), "format", 32802, "more sources");
	memset(name, 'n', sizeof(name));
	name[64] = '\0';
	BREAKS(record(name, 11, 0), "format", 32803, "too long");
}

/*
 * An honest trace, by seed: several sources, interrupts that nest, losses with their gaps, late and
 * ahead, watermarks. It passes; and with one line wrong, it does not.
 */
struct model {
	uint64_t seed, now;
	struct judge_line lines[2000];
	unsigned n;
};

static struct judge_line *add(struct model *m, struct judge_line line)
{
	assert_true(m->n < 2000);
	m->lines[m->n] = line;
	return &m->lines[m->n++];
}

static void model_burst(struct model *m, const char *source, uint64_t *seq)
{
	uint64_t nested = rng(&m->seed) % 4, first = *seq, i;
	struct judge_line line = {.source = source, .has_seq = true};

	/* The nested ones have later numbers and earlier stamps. */
	for (i = 1; i <= nested; i++) {
		line.seq = first + i;
		line.stamp_ns = m->now += 1 + rng(&m->seed) % 3;
		add(m, line);
	}
	line.seq = first;
	line.stamp_ns = m->now += 1 + rng(&m->seed) % 3;
	add(m, line);
	*seq = first + nested + 1;
}

static void model_gap(struct model *m, const char *source, uint64_t *seq)
{
	uint64_t lost = 1 + rng(&m->seed) % 1000;
	struct judge_line line = {.kind = JUDGE_GAP,
				  .source = source,
				  .has_seq = true,
				  .seq = *seq,
				  .stamp_ns = m->now += 2};

	line.gap = (struct weir_gap){
		.from_ns = m->now - 1,
		.to_ns = m->now,
		.lost = lost,
		.cause = rng(&m->seed) % 2 ? WEIR_LOST_HELD : WEIR_LOST_RESERVE_FAILED,
		.seq_end = *seq + lost,
	};
	add(m, line);
	*seq += lost;
}

static void model_flagged(struct model *m, const char *source, uint64_t *seq)
{
	bool late = rng(&m->seed) % 2 && m->now > 1000;
	uint64_t stamp = late ? m->now - 900 : m->now + 1000000;

	if (late)
		add(m, (struct judge_line){.kind = JUDGE_WATERMARK, .stamp_ns = m->now});
	add(m, (struct judge_line){.source = source,
				   .has_seq = true,
				   .seq = (*seq)++,
				   .stamp_ns = stamp,
				   .late = late,
				   .ahead = !late});
}

static void make_trace(struct model *m, uint64_t seed)
{
	static const char *const names[] = {"life0", "cpu0", "cpu1", "cpu17"};
	uint64_t seqs[4] = {0};

	*m = (struct model){.seed = seed, .now = 1};
	while (m->n < 1900) {
		unsigned s = rng(&m->seed) % 4, what = rng(&m->seed) % 40;

		if (what == 0)
			model_gap(m, names[s], &seqs[s]);
		else if (what == 1)
			model_flagged(m, names[s], &seqs[s]);
		else if (what == 2)
			add(m, (struct judge_line){.kind = JUDGE_WATERMARK, .stamp_ns = m->now});
		else
			model_burst(m, names[s], &seqs[s]);
	}
}

static bool judge_model(struct model *m)
{
	struct judge *own = judge__new();
	bool good = true;
	unsigned i;

	for (i = 0; i < m->n && good; i++) {
		m->lines[i].no = i + 1;
		good = judge__line(own, &m->lines[i], &verdict);
	}
	good = good && judge__complete(own, &verdict);
	judge__free(own);
	return good;
}

static void test_honest_traces_pass(void **state)
{
	static struct model m;
	uint64_t seed;

	for (seed = 1; seed <= 300; seed++) {
		make_trace(&m, seed);
		if (!judge_model(&m))
			fail_msg("seed %llu, line %llu: %s", (unsigned long long)seed,
				 (unsigned long long)verdict.line, verdict.text);
	}
}

static bool is_plain(const struct judge_line *line)
{
	return line->kind == JUDGE_RECORD && !line->late && !line->ahead;
}

/* One thing wrong: a record or gap is missing, comes twice, or stands elsewhere; a count is off. */
static void spoil(struct model *m, unsigned how)
{
	unsigned at = 100 + (unsigned)(rng(&m->seed) % 1500), i;
	enum judge_kind kind = how == 1 || how == 3 ? JUDGE_GAP : JUDGE_RECORD;

	while (m->lines[at].kind != kind || (how == 4 && !is_plain(&m->lines[at])))
		at = (at + 1) % (m->n - 20);
	switch (how) {
	case 0: /* a record is not there */
	case 1: /* a gap is not there */
		memmove(&m->lines[at], &m->lines[at + 1], (--m->n - at) * sizeof(m->lines[0]));
		break;
	case 2: /* a record comes twice, the second time under another stamp */
		i = at + 1;
		while (!is_plain(&m->lines[i]))
			i++;
		m->lines[i].source = m->lines[at].source;
		m->lines[i].seq = m->lines[at].seq;
		break;
	case 3: /* a gap says one more or less */
		i = rng(&m->seed) % 2;
		m->lines[at].gap.lost += i ? 1 : (uint64_t)-1;
		m->lines[at].gap.seq_end += i ? 1 : (uint64_t)-1;
		break;
	case 4: /* a record stands behind a younger one */
		m->lines[at].stamp_ns -= 20;
		break;
	}
}

static void test_spoilt_traces_do_not(void **state)
{
	static struct model m;
	uint64_t seed;
	unsigned how;

	for (seed = 1; seed <= 200; seed++) {
		for (how = 0; how < 5; how++) {
			make_trace(&m, seed);
			spoil(&m, how);
			if (judge_model(&m))
				fail_msg("seed %llu, how %u: passed", (unsigned long long)seed,
					 how);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_good_trace),
		TEST(test_nothing),
		TEST(test_a_step_back),
		TEST(test_flags_allow_steps_back),
		TEST(test_gaps_and_steps_stand_in_order),
		TEST(test_clock_steps_stand_in_order),
		TEST(test_ties),
		TEST(test_ties_by_number),
		TEST(test_ties_life_first),
		TEST(test_ties_by_seq),
		TEST(test_ties_of_unknown_classes),
		TEST(test_numbers_may_step_back),
		TEST(test_a_record_twice),
		TEST(test_a_late_record_twice),
		TEST(test_jumps),
		TEST(test_what_was_jumped_over_may_come),
		TEST(test_behind_the_window),
		TEST(test_each_source_has_its_numbers),
		TEST(test_behind_the_watermark),
		TEST(test_gap_behind_the_watermark),
		TEST(test_watermark_goes_back),
		TEST(test_watermark_zero),
		TEST(test_late_without_a_watermark),
		TEST(test_gaps_that_fit),
		TEST(test_a_gap_that_takes_too_many),
		TEST(test_a_gap_where_nothing_is_missing),
		TEST(test_gaps_that_overlap),
		TEST(test_a_hole_that_is_filled),
		TEST(test_a_joined_gap),
		TEST(test_a_joined_gap_at_the_end),
		TEST(test_gaps_without_numbers),
		TEST(test_bounds_of_a_gap),
		TEST(test_absurd_numbers),
		TEST(test_complete_from_zero),
		TEST(test_the_first_line_is_named),
		TEST(test_many_sources),
		cmocka_unit_test(test_honest_traces_pass),
		cmocka_unit_test(test_spoilt_traces_do_not),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	return r ? 1 : 0;
}
