/* SPDX-License-Identifier: BSD-2-Clause */
#include "../core/unit.h"

#include "replayed.h"

#include <weir/probes.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_order(const struct replayed *r, const struct weir_event *event)
{
	for (size_t i = r->count; i--;) {
		const struct weir_event *before = &r->events[i].event;

		if (before->mark)
			continue;
		assert_true(event->stamp_ns >= before->stamp_ns);
		if (event->stamp_ns == before->stamp_ns)
			assert_true(event->source >= before->source);
		return;
	}
}

static struct replayed_event *next_event(struct replayed *r)
{
	if (r->count == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		r->events = realloc(r->events, r->room * sizeof(*r->events));
		assert_non_null(r->events);
	}
	memset(&r->events[r->count], 0, sizeof(*r->events));
	return &r->events[r->count];
}

static int on_event(void *ctx, const struct weir_event *event)
{
	struct replayed *r = ctx;
	struct replayed_event *kept = next_event(r);
	struct weir_source_info info;

	if (!event->mark)
		check_order(r, event);
	kept->event = *event;
	kept->wall_ns = weir_stream__wall_ns(r->stream, event->stamp_ns);
	if (event->source != WEIR_SOURCE_NONE) {
		assert_int_equal(weir_stream__source(r->stream, event->source, &info), 0);
		snprintf(kept->source, sizeof(kept->source), "%s", info.name);
	}
	if (event->kind == WEIR_KIND_RECORD && event->len >= sizeof(kept->pid))
		memcpy(&kept->pid, event->data, sizeof(kept->pid));
	if (event->kind == WEIR_KIND_GAP)
		kept->gap = *(const struct weir_gap *)event->data;
	r->records += event->kind == WEIR_KIND_RECORD;
	r->gaps += event->kind == WEIR_KIND_GAP;
	r->late += event->kind == WEIR_KIND_RECORD && event->mark & WEIR_MARK_LATE;
	r->count++;
	return 0;
}

static void on_watermark(void *ctx, uint64_t watermark_ns, enum weir_order order)
{
	struct replayed *r = ctx;

	assert_true(watermark_ns > r->watermark_ns);
	r->watermark_ns = watermark_ns;
}

static void on_task(void *ctx, const struct weir_seed *seed, const char *exe, const char *cgroups)
{
	struct replayed *r = ctx;

	r->tasks++;
	snprintf(r->exe, sizeof(r->exe), "%s", exe ? exe : "");
	snprintf(r->cgroups, sizeof(r->cgroups), "%s", cgroups ? cgroups : "");
}

void replayed__take(struct replayed *r, const char *path, uint64_t from_ns, uint64_t to_ns)
{
	const struct weir_stream_opts opts = {
		.sz = sizeof(opts), .on_event = on_event, .on_watermark = on_watermark, .ctx = r};
	const struct feed_opts range = {from_ns, to_ns};
	struct reader *reader;
	struct feed *feed;
	char err[256] = "";
	int more;

	memset(r, 0, sizeof(*r));
	reader = reader__open(path, err, sizeof(err));
	assert_string_equal(err, "");
	assert_non_null(reader);
	r->stream = weir_stream__new(&opts);
	feed = feed__new(reader, r->stream, &range);
	assert_non_null(feed);
	assert_int_equal(feed__tasks(feed, on_task, r), 0);
	while ((more = feed__step(feed)) > 0)
		;
	assert_int_equal(more, 0);
	r->end = feed__end(feed);
	r->ledger.sz = sizeof(r->ledger);
	assert_int_equal(weir_stream__ledger(r->stream, &r->ledger), 0);
	assert_int_equal(weir_account__difference(&r->ledger.total), 0);
	assert_int_equal(r->ledger.total.pending, 0);
	assert_int_equal(r->ledger.total.delivered, r->records);
	feed__free(feed);
	weir_stream__free(r->stream);
	reader__close(reader);
}

void replayed__free(struct replayed *r)
{
	free(r->events);
}
