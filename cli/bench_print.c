/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_print.c - what `weir bench` found, as tables and as JSON. */
#include "cli/bench.h"

#include <json-c/json.h>
#include <inttypes.h>
#include <stdio.h>

const char *bench__state_name(enum bench_state state)
{
	static const char *const names[] = {
		[BENCH_UNASKED] = "not asked for",
		[BENCH_NO_RIGHTS] = "needs root",
		[BENCH_FAILED] = "could not be measured",
		[BENCH_STOPPED] = "stopped",
		[BENCH_DONE] = "done",
	};

	return names[state];
}

/* ---- text ------------------------------------------------------------------------------------- */

void bench__print_machine(const struct bench_machine *machine, unsigned seconds)
{
	printf("%ld CPUs, %s, Linux %s; load average %.2f%s\n"
	       "It takes some %u seconds.\n",
	       machine->cpus, machine->machine, machine->kernel, machine->load,
	       machine->load > 0.5 ? ": other work\nmakes the figures worse." : ".", seconds);
}

static void print_costs(const struct bench_cost *cost, int count)
{
	for (int i = 0; i < count; i++)
		printf("  %8.1f %8.1f  %s\n", cost[i].least_ns, cost[i].median_ns, cost[i].what);
}

static void print_probe(const struct bench_results *results)
{
	printf("\nprobe: a record, where it is sent, ns beyond an empty program\n"
	       "     least   median\n");
	print_costs(results->way, WAYS);
	printf("\nprobe: a switch of tasks, ns beyond an empty program\n     least   median\n");
	print_costs(results->switched, SWITCH_WAYS);
	printf("  %8.1f           the accounting probe's reader, a record\n",
	       results->switch_read_ns);
}

static void print_order(const struct bench_results *results)
{
	printf("\norder: a record, from the rings to a callback, ns\n"
	       "     rings  in order  unsorted\n");
	for (unsigned i = 0; i < results->nr_orders; i++)
		printf("  %8u  %8.1f  %8.1f\n", results->order[i].rings, results->order[i].weir_ns,
		       results->order[i].unsorted_ns);
}

static void print_latency(const struct bench_results *results)
{
	printf("\nlatency: from a record's stamp to the callback, us\n"
	       "  %-9s %-8s %9s %9s %9s %9s %6s\n",
	       "fence", "CPUs are", "p50", "p99", "max", "events", "lost");
	for (int i = 0; i < 2 * DELAY_FENCES; i++) {
		const struct bench_latency_row *row = &results->latency[i];

		printf("  %-9s %-8s %9.1f %9.1f %9.1f %9" PRIu64 " %6" PRIu64 "\n", row->fence,
		       row->loaded ? "busy" : "free", row->p50_us, row->p99_us, row->max_us,
		       row->events, row->lost);
	}
}

static void print_throughput(const struct bench_results *results)
{
	printf("\nthroughput: the most with nothing lost\n"
	       "  %.0f events/s from %u CPUs%s;\n  each takes %.1f ns of the reader's CPU\n",
	       results->most.delivered, results->flood_cpus,
	       results->flood_is_limit ? ", which could not make more" : "", results->most.cpu_ns);
}

void bench__print_part(enum bench_part part, const struct bench_results *results)
{
	static void (*const print[BENCH_PARTS])(const struct bench_results *) = {
		[BENCH_PROBE] = print_probe,
		[BENCH_ORDER] = print_order,
		[BENCH_LATENCY] = print_latency,
		[BENCH_THROUGHPUT] = print_throughput,
	};

	print[part](results);
	fflush(stdout);
}

/* ---- JSON ------------------------------------------------------------------------------------- */

/* json-c keeps what it is given, NULL for want of memory included: that shows at the end. */
static void put(struct json_object *to, const char *key, struct json_object *value)
{
	json_object_object_add(to, key, value);
}

static void put_number(struct json_object *to, const char *key, double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.1f", value);
	put(to, key, json_object_new_double_s(value, text));
}

static void put_count(struct json_object *to, const char *key, uint64_t value)
{
	put(to, key, json_object_new_int64((int64_t)value));
}

static struct json_object *costs(const struct bench_cost *cost, int count)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < count; i++) {
		struct json_object *row = json_object_new_object();

		put(row, "way", json_object_new_string(cost[i].name));
		put_number(row, "least_ns", cost[i].least_ns);
		put_number(row, "median_ns", cost[i].median_ns);
		json_object_array_add(array, row);
	}
	return array;
}

static struct json_object *probe_json(const struct bench_results *results)
{
	struct json_object *probe = json_object_new_object();

	put(probe, "record", costs(results->way, WAYS));
	put(probe, "switch", costs(results->switched, SWITCH_WAYS));
	put_number(probe, "switch_read_ns", results->switch_read_ns);
	return probe;
}

static struct json_object *order_json(const struct bench_results *results)
{
	struct json_object *array = json_object_new_array();

	for (unsigned i = 0; i < results->nr_orders; i++) {
		struct json_object *row = json_object_new_object();

		put_count(row, "rings", results->order[i].rings);
		put_number(row, "weir_ns", results->order[i].weir_ns);
		put_number(row, "unsorted_ns", results->order[i].unsorted_ns);
		json_object_array_add(array, row);
	}
	return array;
}

static struct json_object *latency_json(const struct bench_results *results)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < 2 * DELAY_FENCES; i++) {
		const struct bench_latency_row *from = &results->latency[i];
		struct json_object *row = json_object_new_object();

		put(row, "fence", json_object_new_string(from->fence));
		put(row, "cpus", json_object_new_string(from->loaded ? "busy" : "free"));
		put_count(row, "events", from->events);
		put_count(row, "lost", from->lost);
		put_number(row, "p50_us", from->p50_us);
		put_number(row, "p99_us", from->p99_us);
		put_number(row, "max_us", from->max_us);
		json_object_array_add(array, row);
	}
	return array;
}

static struct json_object *throughput_json(const struct bench_results *results)
{
	struct json_object *throughput = json_object_new_object();

	put_number(throughput, "events_per_s", results->most.delivered);
	put_number(throughput, "reader_ns", results->most.cpu_ns);
	put_count(throughput, "cpus", results->flood_cpus);
	put(throughput, "limited_by",
	    json_object_new_string(results->flood_is_limit ? "load" : "loss"));
	return throughput;
}

static struct json_object *machine_json(const struct bench_machine *machine)
{
	struct json_object *object = json_object_new_object();

	put_count(object, "cpus", (uint64_t)machine->cpus);
	put(object, "machine", json_object_new_string(machine->machine));
	put(object, "kernel", json_object_new_string(machine->kernel));
	put_number(object, "load_average", machine->load);
	return object;
}

bool bench__print_json(const struct bench_machine *machine, const struct bench_results *results,
		       bool quick)
{
	static struct json_object *(*const make[BENCH_PARTS])(const struct bench_results *) = {
		[BENCH_PROBE] = probe_json,
		[BENCH_ORDER] = order_json,
		[BENCH_LATENCY] = latency_json,
		[BENCH_THROUGHPUT] = throughput_json,
	};
	struct json_object *all = json_object_new_object();
	struct json_object *state = json_object_new_object();
	const char *text;

	put(all, "machine", machine_json(machine));
	put(all, "quick", json_object_new_boolean(quick));
	for (int part = 0; part < BENCH_PARTS; part++) {
		enum bench_state found = results->state[part];

		put(state, bench__parts[part].name,
		    json_object_new_string(bench__state_name(found)));
		put(all, bench__parts[part].name, found == BENCH_DONE ? make[part](results) : NULL);
	}
	put(all, "state", state);
	text = json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN);
	if (text)
		puts(text);
	json_object_put(all);
	return text != NULL;
}
