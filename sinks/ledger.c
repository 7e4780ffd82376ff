// SPDX-License-Identifier: BSD-2-Clause
/*
 * ledger.c - the account as JSON (docs/schema/weir-ledger.schema.json) and as one line for people.
 *
 * Promises: what is unknown is printed as null or `unknown`, never as 0; whether the account closes
 * is computed here from its own numbers, and said. Must not know: how it was counted.
 */
#include "sinks/json.h"
#include "sinks/out.h"
#include "sinks/sink.h"
#include "sinks/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Has this cause anything to say? */
static bool is_lost(const struct weir_account *a, int cause)
{
	return a->lost[cause] || a->bound[cause] == WEIR_BOUND_UNKNOWN;
}

static void number(struct out *out, const char *key, uint64_t value)
{
	out__str(out, key);
	out__u64(out, value);
}

static void stamp(struct out *out, const char *key, uint64_t stamp_ns)
{
	out__str(out, key);
	out__char(out, '"');
	out__u64(out, stamp_ns);
	out__char(out, '"');
}

/* {"reserve_failed":17,"skipped":null}: what was lost, and no line for what was not. */
static void lost(struct out *out, const struct weir_account *a)
{
	int i, n = 0;

	out__str(out, ",\"lost\":{");
	for (i = 0; i < WEIR_LOST_CAUSES; i++) {
		if (!is_lost(a, i))
			continue;
		out__str(out, n++ ? ",\"" : "\"");
		out__str(out, weir_cause__name(i));
		out__str(out, "\":");
		if (a->bound[i] == WEIR_BOUND_UNKNOWN)
			out__str(out, "null");
		else
			out__u64(out, a->lost[i]);
	}
	out__char(out, '}');
}

/* The causes whose count is an upper bound. */
static void at_most(struct out *out, const struct weir_account *a)
{
	int i, n = 0;

	out__str(out, ",\"at_most\":[");
	for (i = 0; i < WEIR_LOST_CAUSES; i++) {
		if (!a->lost[i] || a->bound[i] != WEIR_BOUND_AT_MOST)
			continue;
		out__str(out, n++ ? ",\"" : "\"");
		out__str(out, weir_cause__name(i));
		out__char(out, '"');
	}
	out__char(out, ']');
}

/* The members that the whole and each source have in common, without braces. */
static void account(struct out *out, const struct weir_account *a)
{
	int64_t difference = weir_account__difference(a);

	number(out, "\"produced\":", a->produced);
	number(out, ",\"delivered\":", a->delivered);
	number(out, ",\"filtered\":", a->filtered);
	number(out, ",\"pending\":", a->pending);
	lost(out, a);
	at_most(out, a);
	out__str(out, ",\"difference\":");
	out__i64(out, difference);
	out__str(out, difference ? ",\"closes\":false" : ",\"closes\":true");
	number(out, ",\"late\":", a->late);
	number(out, ",\"ahead\":", a->ahead);
	number(out, ",\"unread\":", a->unread);
	number(out, ",\"failed\":", a->failed);
	number(out, ",\"stray\":", a->stray);
}

/* A name is the caller's word for a class of rings, so it may hold anything. */
static void source_name(struct out *out, const char *name)
{
	out__str(out, "{\"name\":");
	json__string(out, name, strlen(name));
}

static void source(struct out *out, const struct weir_source_info *s)
{
	source_name(out, s->name);
	if (s->cpu >= 0)
		number(out, ",\"cpu\":", (uint64_t)s->cpu);
	out__str(out, s->online ? ",\"online\":true," : ",\"online\":false,");
	account(out, &s->account);
	number(out, ",\"events_left_out\":", s->account.self);
	stamp(out, ",\"watermark\":", s->watermark_ns);
	if (s->busy_since_ns)
		stamp(out, ",\"busy_since\":", s->busy_since_ns);
	number(out, ",\"size_bytes\":", s->size_bytes);
	number(out, ",\"max_fill_bytes\":", s->max_fill_bytes);
	out__char(out, '}');
}

static void machine(struct out *out, const struct weir_ledger *ledger,
		    const struct sink_ledger_extra *extra)
{
	number(out, ",\"self\":{\"cpu_ns\":", extra->self_cpu_ns);
	number(out, ",\"events_left_out\":", ledger->total.self);
	out__str(out, ledger->order == WEIR_ORDER_EXACT ? "},\"order\":\"exact\""
							: "},\"order\":\"estimated\"");
	number(out, ",\"lag_ns\":{\"p50\":", ledger->lag.p50_ns);
	number(out, ",\"p99\":", ledger->lag.p99_ns);
	number(out, ",\"max\":", ledger->lag.max_ns);
	stamp(out, "},\"watermark\":", ledger->watermark_ns);
	number(out, ",\"polls\":", ledger->polls);
	number(out, ",\"held_bytes\":", ledger->held_bytes);
	number(out, ",\"guard_ns\":", ledger->guard_ns);
}

int sink__ledger_json(struct out *out, const struct weir_ledger *ledger,
		      const struct sink_ledger_extra *extra)
{
	uint32_t i;

	out__str(out, extra->is_event ? "{\"event\":\"account\"," : "{");
	account(out, &ledger->total);
	machine(out, ledger, extra);
	out__str(out, ",\"sources\":[");
	for (i = 0; i < extra->n; i++) {
		if (i)
			out__char(out, ',');
		source(out, &extra->sources[i]);
	}
	out__str(out, "]}");
	return out__error(out);
}

/* "buffer full 17", "skipped at most 3", "dead event unknown" */
static void cause_text(struct out *out, const struct weir_account *a, int cause)
{
	text__cause(out, (enum weir_cause)cause);
	if (a->bound[cause] == WEIR_BOUND_UNKNOWN) {
		out__str(out, " unknown");
		return;
	}
	out__str(out, a->bound[cause] == WEIR_BOUND_AT_MOST ? " at most " : " ");
	out__u64(out, a->lost[cause]);
}

/* Beside an unknown number the known ones are not the sum. */
static void lost_text(struct out *out, const struct weir_account *a)
{
	bool unknown = false;
	uint64_t sum = 0;
	int i, n = 0;

	for (i = 0; i < WEIR_LOST_CAUSES; i++) {
		if (a->bound[i] != WEIR_BOUND_UNKNOWN)
			sum += a->lost[i];
		else
			unknown = true;
	}
	if (unknown && !sum)
		out__str(out, " + lost none known");
	else
		number(out, unknown ? " + lost at least " : " + lost ", sum);
	for (i = 0; i < WEIR_LOST_CAUSES; i++) {
		if (!is_lost(a, i))
			continue;
		out__str(out, n++ ? ", " : " (");
		cause_text(out, a, i);
	}
	if (n)
		out__char(out, ')');
}

/* Three digits are enough for people: 812 ns, 28.1 us, 1.05 ms. */
static void duration_text(struct out *out, uint64_t ns)
{
	static const char *const units[] = {"us", "ms", "s"};
	double value = (double)ns;
	char text[32];
	int unit = -1;

	while (value >= 999.5 && unit < 2) {
		value /= 1000;
		unit++;
	}
	if (unit < 0)
		snprintf(text, sizeof(text), "%" PRIu64 " ns", ns);
	else
		snprintf(text, sizeof(text), "%.3g %s", value, units[unit]);
	out__str(out, text);
}

int sink__ledger_text(struct out *out, const struct weir_ledger *ledger,
		      const struct sink_ledger_extra *extra)
{
	const struct weir_account *a = &ledger->total;
	int64_t difference = weir_account__difference(a);

	number(out, "produced ", a->produced);
	number(out, " = delivered ", a->delivered);
	number(out, " + filtered ", a->filtered);
	number(out, " + pending ", a->pending);
	lost_text(out, a);
	if (difference) {
		out__str(out, ": DOES NOT CLOSE, by ");
		out__i64(out, difference);
	}
	if (a->lost[WEIR_LOST_RESERVE_FAILED])
		out__str(out, "; a larger --buffer loses less");
	if (a->late)
		number(out, "; late ", a->late);
	if (a->ahead)
		number(out, "; ahead of the clock ", a->ahead);
	if (a->stray)
		number(out, "; stray ", a->stray);
	if (a->unread)
		number(out, "; unread strings ", a->unread);
	out__str(out, extra->two_lines ? "\n" : "; ");
	out__str(out, ledger->order == WEIR_ORDER_EXACT ? "order exact" : "order estimated");
	/* What comes out of a file has none. */
	if (ledger->lag.max_ns) {
		out__str(out, "; lag p99 ");
		duration_text(out, ledger->lag.p99_ns);
	}
	out__str(out, "; self ");
	duration_text(out, extra->self_cpu_ns);
	out__str(out, " of CPU");
	return out__error(out);
}
