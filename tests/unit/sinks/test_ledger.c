// SPDX-License-Identifier: BSD-2-Clause
/* ledger.c: the account as it is, closing or not, and the unknown as unknown (G4). */
#include "parsed.h"

static struct capture c;

static int setup(void **state)
{
	capture__open(&c);
	return 0;
}

static int teardown(void **state)
{
	capture__close(&c);
	return 0;
}

static struct weir_ledger a_ledger(void)
{
	struct weir_ledger ledger = {
		.sz = sizeof(ledger),
		.total = {.produced = 130,
			  .delivered = 100,
			  .filtered = 10,
			  .pending = 3,
			  .late = 2,
			  .ahead = 1,
			  .self = 55,
			  .unread = 4,
			  .failed = 17,
			  .stray = 6},
		.lag = {.p50_ns = 28000, .p99_ns = 1049999, .max_ns = 3000000000},
		.watermark_ns = UINT64_MAX,
		.polls = 9,
		.held_bytes = 10,
		.guard_ns = 1000,
		.sources = 1,
	};

	ledger.total.lost[WEIR_LOST_RESERVE_FAILED] = 17;
	return ledger;
}

static struct json_object *as_json(const struct weir_ledger *ledger,
				   const struct weir_source_info *sources, uint32_t n)
{
	struct sink_ledger_extra extra = {.self_cpu_ns = 812, .sources = sources, .n = n};

	assert_int_equal(sink__ledger_json(c.out, ledger, &extra), 0);
	out__char(c.out, '\n');
	capture__take(&c);
	return parse_line(c.text, c.len);
}

static const char *as_text(const struct weir_ledger *ledger)
{
	struct sink_ledger_extra extra = {.self_cpu_ns = 812};

	assert_int_equal(sink__ledger_text(c.out, ledger, &extra), 0);
	return capture__take(&c);
}

/* For a terminal it is broken where it makes sense: between the sum and the rest. */
static void test_two_lines(void **state)
{
	struct weir_ledger ledger = a_ledger();
	struct sink_ledger_extra extra = {.self_cpu_ns = 812, .two_lines = true};
	const char *one = as_text(&ledger), *order = strstr(one, "; order ");
	char sum[1024], rest[1024];

	assert_non_null(order);
	snprintf(sum, sizeof(sum), "%.*s", (int)(order - one), one);
	snprintf(rest, sizeof(rest), "%s", order + 2);
	assert_int_equal(sink__ledger_text(c.out, &ledger, &extra), 0);
	one = capture__take(&c);
	assert_memory_equal(one, sum, strlen(sum));
	assert_int_equal(one[strlen(sum)], '\n');
	assert_string_equal(one + strlen(sum) + 1, rest);
}

static void test_numbers(void **state)
{
	struct weir_ledger ledger = a_ledger();
	struct json_object *json = as_json(&ledger, NULL, 0), *lag = member(json, "lag_ns");

	assert_int_equal(number_of(json, "produced"), 130);
	assert_int_equal(number_of(json, "delivered"), 100);
	assert_int_equal(number_of(json, "filtered"), 10);
	assert_int_equal(number_of(json, "pending"), 3);
	assert_int_equal(number_of(json, "late"), 2);
	assert_int_equal(number_of(json, "ahead"), 1);
	assert_int_equal(number_of(json, "unread"), 4);
	assert_int_equal(number_of(json, "failed"), 17);
	assert_int_equal(number_of(json, "stray"), 6);
	assert_int_equal(number_of(member(json, "self"), "cpu_ns"), 812);
	assert_int_equal(number_of(member(json, "self"), "events_left_out"), 55);
	assert_int_equal(number_of(lag, "p50"), 28000);
	assert_int_equal(number_of(lag, "p99"), 1049999);
	assert_int_equal(number_of(lag, "max"), 3000000000);
	assert_string_equal(text_of(json, "order"), "exact");
	assert_string_equal(text_of(json, "watermark"), "18446744073709551615");
	assert_int_equal(number_of(json, "polls"), 9);
	assert_int_equal(number_of(json, "held_bytes"), 10);
	assert_int_equal(number_of(json, "guard_ns"), 1000);
	assert_int_equal(json_object_array_length(member(json, "sources")), 0);
	assert_int_equal(number_of(member(json, "lost"), "reserve_failed"), 17);
	assert_int_equal(json_object_object_length(member(json, "lost")), 1);
	assert_true(json_object_get_boolean(member(json, "closes")));
	json_object_put(json);
}

static void test_unknown_is_null(void **state)
{
	struct weir_ledger ledger = a_ledger();
	struct json_object *json, *lost, *value;

	ledger.total.bound[WEIR_LOST_DEAD_EVENT] = WEIR_BOUND_UNKNOWN;
	ledger.total.bound[WEIR_LOST_SKIPPED] = WEIR_BOUND_AT_MOST;
	ledger.total.lost[WEIR_LOST_SKIPPED] = 5;
	ledger.total.bound[WEIR_LOST_UNSEEN] = WEIR_BOUND_AT_MOST; /* of nothing */
	ledger.total.produced += 5;
	ledger.order = WEIR_ORDER_ESTIMATED;
	json = as_json(&ledger, NULL, 0);
	lost = member(json, "lost");
	assert_true(json_object_object_get_ex(lost, "dead_event", &value));
	assert_null(value);
	assert_int_equal(number_of(lost, "skipped"), 5);
	assert_int_equal(json_object_object_length(lost), 3);
	assert_int_equal(json_object_array_length(member(json, "at_most")), 1);
	assert_string_equal(
		json_object_get_string(json_object_array_get_idx(member(json, "at_most"), 0)),
		"skipped");
	assert_string_equal(text_of(json, "order"), "estimated");
	assert_true(json_object_get_boolean(member(json, "closes")));
	json_object_put(json);
	assert_string_equal(
		as_text(&ledger),
		"produced 135 = delivered 100 + filtered 10 + pending 3 + lost at least 22 "
		"(buffer full 17, skipped at most 5, dead event unknown); a larger --buffer "
		"loses less; late 2; "
		"ahead of the clock 1; stray 6; unread strings 4; order estimated; "
		"lag p99 1.05 ms; self 812 ns of CPU");
}

static void test_an_account_that_does_not_close(void **state)
{
	struct weir_ledger ledger = a_ledger();
	struct json_object *json;

	ledger.total.produced = 131;
	json = as_json(&ledger, NULL, 0);
	assert_false(json_object_get_boolean(member(json, "closes")));
	assert_int_equal(json_object_get_int64(member(json, "difference")), -1);
	json_object_put(json);
	assert_non_null(
		strstr(as_text(&ledger), "+ lost 17 (buffer full 17): DOES NOT CLOSE, by -1;"));
}

static void test_nothing_happened(void **state)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	assert_string_equal(
		as_text(&ledger),
		"produced 0 = delivered 0 + filtered 0 + pending 0 + lost 0; order exact; "
		"self 812 ns of CPU");
}

/* Of a capture that was cut off: 0 would be a lie. */
static void test_only_an_unknown_number(void **state)
{
	struct weir_ledger ledger = {.sz = sizeof(ledger)};

	ledger.total.bound[WEIR_LOST_OUTPUT] = WEIR_BOUND_UNKNOWN;
	assert_non_null(strstr(as_text(&ledger), " + lost none known (output unknown); "));
}

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{999, "lag p99 999 ns;"},	{1000, "lag p99 1 us;"},
		{28123, "lag p99 28.1 us;"},	{999499, "lag p99 999 us;"},
		{999501, "lag p99 1 ms;"},	{5230000000, "lag p99 5.23 s;"},
		{60000000000, "lag p99 60 s;"},
	};
	struct weir_ledger ledger = {.sz = sizeof(ledger)};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ledger.lag.p99_ns = ledger.lag.max_ns = cases[i].ns;
		assert_non_null(strstr(as_text(&ledger), cases[i].text));
	}
}

static void test_sources(void **state)
{
	struct weir_ledger ledger = a_ledger();
	struct weir_source_info infos[] = {
		{.name = "cpu0",
		 .cpu = 0,
		 .online = true,
		 .watermark_ns = 5,
		 .busy_since_ns = 4,
		 .size_bytes = 4096,
		 .max_fill_bytes = 100,
		 .account = {.produced = 7, .delivered = 6, .self = 3}},
		{.name = "odd \"\xff\\", .cpu = -1},
	};
	struct json_object *json = as_json(&ledger, infos, 2), *sources, *s;

	sources = member(json, "sources");
	assert_int_equal(json_object_array_length(sources), 2);
	s = json_object_array_get_idx(sources, 0);
	assert_string_equal(text_of(s, "name"), "cpu0");
	assert_int_equal(number_of(s, "cpu"), 0);
	assert_true(json_object_get_boolean(member(s, "online")));
	assert_int_equal(number_of(s, "produced"), 7);
	assert_int_equal(number_of(s, "delivered"), 6);
	assert_int_equal(number_of(s, "events_left_out"), 3);
	assert_int_equal(json_object_get_int64(member(s, "difference")), -1);
	assert_false(json_object_get_boolean(member(s, "closes")));
	assert_string_equal(text_of(s, "watermark"), "5");
	assert_string_equal(text_of(s, "busy_since"), "4");
	assert_int_equal(number_of(s, "size_bytes"), 4096);
	assert_int_equal(number_of(s, "max_fill_bytes"), 100);
	s = json_object_array_get_idx(sources, 1);
	assert_bytes(member(s, "name"), "odd \"\xff\\", 7);
	assert_false(json_object_object_get_ex(s, "cpu", NULL));
	assert_false(json_object_object_get_ex(s, "busy_since", NULL));
	assert_false(json_object_get_boolean(member(s, "online")));
	json_object_put(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_lines),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_unknown_is_null),
		cmocka_unit_test(test_an_account_that_does_not_close),
		cmocka_unit_test(test_nothing_happened),
		cmocka_unit_test(test_only_an_unknown_number),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sources),
	};
	int r = cmocka_run_group_tests(tests, setup, teardown);

	return r ? 1 : 0;
}
