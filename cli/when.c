/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/when.h"

#include <string.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ll
#define DAY_NS	     (24 * 3600 * NSEC_PER_SEC)

/* A date, or the clock of a damaged capture, may be farther away than 64 bits reach: as far as they do. */
static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static int64_t whole_seconds(int64_t seconds)
{
	int64_t ns;

	if (__builtin_mul_overflow(seconds, NSEC_PER_SEC, &ns))
		return seconds < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

/* ".25" in ns, at most nine digits; what is not there is 0. */
static int64_t fraction(const char **text)
{
	int64_t ns = 0, place = NSEC_PER_SEC;

	if (**text != '.')
		return 0;
	for (++*text; **text >= '0' && **text <= '9'; ++*text) {
		place /= 10;
		ns += (**text - '0') * place;
	}
	return ns;
}

/* "8123.25", seconds. */
static bool seconds(const char *text, int64_t *ns)
{
	int64_t whole = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, *text - '0', &whole))
			return false;
	if (__builtin_mul_overflow(whole, NSEC_PER_SEC, &whole) ||
	    __builtin_add_overflow(whole, fraction(&text), ns))
		return false;
	return !*text;
}

static bool clock_time(const char *text, const char *format, struct tm *tm, int64_t *ns)
{
	const char *rest = strptime(text, format, tm);
	bool utc;
	time_t at;

	if (!rest)
		return false;
	*ns = fraction(&rest);
	utc = *rest == 'Z';
	if (rest[utc])
		return false;
	tm->tm_isdst = -1;
	at = utc ? timegm(tm) : mktime(tm);
	*ns = add(whole_seconds(at), *ns);
	return true;
}

/* The first such time of day that is not before the recording, if it is in it; else on its first day. */
static bool time_of_day(const char *text, const struct when_base *base, int64_t *wall_ns)
{
	int64_t start_ns = add((int64_t)base->start_ns, base->wall_offset_ns);
	int64_t end_ns = add((int64_t)base->end_ns, base->wall_offset_ns);
	time_t start = start_ns / NSEC_PER_SEC;
	struct tm tm;

	localtime_r(&start, &tm);
	tm.tm_sec = 0;
	if (!clock_time(text, "%H:%M:%S", &tm, wall_ns)) {
		localtime_r(&start, &tm);
		tm.tm_sec = 0;
		if (!clock_time(text, "%H:%M", &tm, wall_ns))
			return false;
	}
	while (*wall_ns < start_ns && add(*wall_ns, DAY_NS) <= end_ns)
		*wall_ns = add(*wall_ns, DAY_NS);
	return true;
}

static bool date(const char *text, int64_t *wall_ns)
{
	static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"};

	for (int i = 0; i < 2; i++) {
		struct tm tm = {0};

		if (clock_time(text, formats[i], &tm, wall_ns))
			return true;
	}
	return false;
}

bool when__parse(const char *text, const struct when_base *base, uint64_t *stamp_ns)
{
	int64_t ns;

	if (*text == '+' && seconds(text + 1, &ns)) {
		*stamp_ns = base->start_ns + (uint64_t)ns;
		return true;
	}
	if (seconds(text, &ns)) {
		*stamp_ns = (uint64_t)ns;
		return true;
	}
	if (!time_of_day(text, base, &ns) && !date(text, &ns))
		return false;
	*stamp_ns = ns > base->wall_offset_ns ? (uint64_t)ns - (uint64_t)base->wall_offset_ns : 0;
	return true;
}
