/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_attr.c - the attributes of perf events: what every event of a stream has to have, and why the
 * kernel refuses one.
 */
#include "source/perf_attr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Which event, whose, when and where: all that a stream needs to know. */
#define SAMPLE_ALWAYS \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

static const char *const tracefs_places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* A name is part of a path: it stays in its folder. */
static bool is_name(const char *name, size_t len)
{
	return len && name[0] != '.' && !memchr(name, '/', len);
}

static bool split(const char *tracepoint, char *folder, size_t size)
{
	const char *colon = strchr(tracepoint, ':');
	size_t len = strlen(tracepoint);

	if (!colon || len >= size || !is_name(tracepoint, (size_t)(colon - tracepoint)) ||
	    !is_name(colon + 1, strlen(colon + 1)))
		return false;
	memcpy(folder, tracepoint, len + 1);
	folder[colon - tracepoint] = '/';
	return true;
}

static int say_no_tracefs(int err, const struct reason *reason)
{
	if (err == -EACCES || err == -EPERM)
		return reason__say(reason, err,
				   "tracepoints are looked up in %s, which this user may not read; "
				   "run as root",
				   tracefs_places[0]);
	return reason__say(reason, -ENOENT, "tracefs is not mounted; mount -t tracefs tracefs %s",
			   tracefs_places[0]);
}

/* The folder itself may be closed to us, so that nothing in it can be asked for. */
static int find_tracefs(const char **tracefs, const struct reason *reason)
{
	char events[64];
	int err = -ENOENT;

	for (size_t i = 0; i < sizeof(tracefs_places) / sizeof(tracefs_places[0]); i++) {
		snprintf(events, sizeof(events), "%s/events", tracefs_places[i]);
		if (!access(events, X_OK)) {
			*tracefs = tracefs_places[i];
			return 0;
		}
		if (errno == EACCES || errno == EPERM)
			err = -errno;
	}
	return say_no_tracefs(err, reason);
}

static int read_id(const char *path, uint64_t *id)
{
	FILE *file = fopen(path, "re");
	unsigned long long value;
	int err = 0;

	if (!file)
		return -errno;
	if (fscanf(file, "%llu", &value) != 1)
		err = -EIO;
	fclose(file);
	*id = value;
	return err;
}

static int look_up(const char *tracepoint, const char *tracefs, uint64_t *id,
		   const struct reason *reason)
{
	char folder[PERF_EVENT_NAME_MAX], path[4096];
	int err;

	if (!split(tracepoint, folder, sizeof(folder)))
		return reason__say(reason, -EINVAL,
				   "'%s' is no tracepoint: GROUP:NAME, as in sched:sched_switch",
				   tracepoint);
	err = tracefs ? 0 : find_tracefs(&tracefs, reason);
	if (err)
		return err;
	if (snprintf(path, sizeof(path), "%s/events/%s/id", tracefs, folder) >= (int)sizeof(path))
		return reason__say(reason, -ENAMETOOLONG, "the path of tracefs is too long");
	err = read_id(path, id);
	if (err == -ENOENT || err == -ENOTDIR)
		return reason__say(reason, -ENOENT,
				   "this kernel has no tracepoint %s; %s/available_events has all",
				   tracepoint, tracefs);
	if (err)
		return reason__say(reason, err, "cannot read %s: %s", path, strerror(-err));
	return 0;
}

/* The caller may know an older or a newer struct than we do. */
static int copy_attr(struct perf_event_attr *attr, const struct perf_event_attr *wanted,
		     const struct reason *reason)
{
	size_t size = wanted->size, ours = sizeof(*attr);
	const uint8_t *bytes = (const uint8_t *)wanted;

	if (size < PERF_ATTR_SIZE_VER0 || size > 4096)
		return reason__say(reason, -EINVAL, "%zu is no size of a perf_event_attr", size);
	memset(attr, 0, ours);
	memcpy(attr, wanted, size < ours ? size : ours);
	for (size_t i = ours; i < size; i++)
		if (bytes[i])
			return reason__say(reason, -E2BIG,
					   "the perf_event_attr asks for what this library does "
					   "not know");
	return 0;
}

static bool is_bpf_output(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_BPF_OUTPUT;
}

/* A stream's clock as perf_event_open(2) knows it; perf's own is what it takes unless told. */
static const int32_t clockids[WEIR_CLOCKS] = {
	[WEIR_CLOCK_MONOTONIC] = CLOCK_MONOTONIC,
	[WEIR_CLOCK_BOOTTIME] = CLOCK_BOOTTIME,
	[WEIR_CLOCK_REALTIME] = CLOCK_REALTIME,
	[WEIR_CLOCK_TAI] = CLOCK_TAI,
};

static void set_clock(struct perf_event_attr *attr, enum weir_clock_id clock)
{
	attr->use_clockid = clock != WEIR_CLOCK_PERF;
	attr->clockid = attr->use_clockid ? clockids[clock] : 0;
}

/* What the caller has asked for himself and cannot have. */
static int judge(const struct source_perf_event *event, const struct perf_ring_shape *shape,
		 const struct reason *reason)
{
	const struct perf_event_attr *attr = &event->attr;

	if (attr->use_clockid &&
	    (shape->clock == WEIR_CLOCK_PERF || attr->clockid != clockids[shape->clock]))
		return reason__say(reason, -EINVAL,
				   "%s asks for clock %d, and this stream goes by '%s'",
				   event->name, attr->clockid, weir_clock__name(shape->clock));
	if (attr->write_backward && !shape->overwrite)
		return reason__say(
			reason, -EINVAL,
			"%s writes backward, which only an overwritable ring can be read of",
			event->name);
	if (attr->read_format & PERF_FORMAT_GROUP)
		return reason__say(reason, -EINVAL, "%s asks to be read as a group", event->name);
	if (!attr->sample_period)
		return reason__say(
			reason, -EINVAL,
			"%s has no sample_period and no sample_freq: it would only count",
			event->name);
	return 0;
}

int perf_attr__complete(struct source_perf_event *event, const struct weir_perf_event *wanted,
			const struct perf_ring_shape *shape, const char *tracefs,
			const struct reason *reason)
{
	struct perf_event_attr *attr = &event->attr;
	uint64_t id;
	int err;

	memset(event, 0, sizeof(*event));
	if (!wanted->attr == !wanted->tracepoint)
		return reason__say(reason, -EINVAL, "an event is an attr or a tracepoint");
	if (wanted->attr) {
		err = copy_attr(attr, wanted->attr, reason);
		snprintf(event->name, sizeof(event->name), "event %u:%llu", attr->type,
			 (unsigned long long)attr->config);
	} else {
		err = look_up(wanted->tracepoint, tracefs, &id, reason);
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = err ? 0 : id;
		snprintf(event->name, sizeof(event->name), "%s", wanted->tracepoint);
	}
	if (err)
		return err;
	if (attr->type == PERF_TYPE_TRACEPOINT || is_bpf_output(attr)) {
		attr->sample_type |= PERF_SAMPLE_RAW;
		if (!attr->sample_period)
			attr->sample_period = 1;
	}
	/*
	 * Some tracepoints count more than themselves: sched_stat_runtime the ns that a task ran. One
	 * that does not ask for the period gets a sample for each ns, until perf stops it.
	 */
	if (attr->type == PERF_TYPE_TRACEPOINT)
		attr->sample_type |= PERF_SAMPLE_PERIOD;
	err = judge(event, shape, reason);
	if (err)
		return err;
	attr->size = sizeof(*attr);
	attr->sample_type |= SAMPLE_ALWAYS;
	/* The time tells our event from another in a slot, see perf_slots.c. */
	attr->read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST;
	attr->sample_id_all = 1; /* else a LOST has no time, and its gap no bound */
	set_clock(attr, shape->clock);
	attr->write_backward = shape->overwrite;
	attr->disabled = 1;
	/*
	 * By bytes, never by events: a wake-up for each costs twenty times what the event does. The
	 * reader comes by itself; this is for when it does not come in time. Nobody waits for an
	 * overwritable ring.
	 */
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(shape->overwrite ? shape->bytes : shape->bytes / 4);
	return 0;
}

struct perf_event_attr perf_attr__bpf_output(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
	};
}

static int read_paranoid(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 2;

	if (!file)
		return level;
	if (fscanf(file, "%d", &level) != 1)
		level = 2;
	fclose(file);
	return level;
}

static int say_no_right(const struct source_perf_event *event, int err, const struct reason *reason)
{
	/* The raw bytes of tracepoints are for nobody's eyes at 0, all of a CPU's events not at 1. */
	int needed = event->attr.sample_type & PERF_SAMPLE_RAW ? -1 : 0;
	int paranoid = read_paranoid();

	/* Above 2, which only some distributions' kernels know, CAP_PERFMON is not enough. */
	return reason__say(
		reason, err,
		"no permission for %s on all of a CPU (kernel.perf_event_paranoid is %d); "
		"run as root or with %s, or allow it: sysctl kernel.perf_event_paranoid=%d",
		event->name, paranoid, paranoid > 2 ? "CAP_SYS_ADMIN" : "CAP_PERFMON", needed);
}

int perf_attr__explain_open(const struct source_perf_event *event, uint32_t cpu, int err,
			    const struct reason *reason)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return say_no_right(event, err, reason);
	case ENOENT:
	case EOPNOTSUPP:
		return reason__say(reason, err,
				   "this machine has no %s, or it cannot be sampled: %s",
				   event->name, strerror(-err));
	case ENOSYS:
		return reason__say(reason, err,
				   "this kernel has no perf events (CONFIG_PERF_EVENTS)");
	case EMFILE:
	case ENFILE:
		return reason__say(reason, err, "no descriptor is left for %s on CPU %u: %s",
				   event->name, cpu, strerror(-err));
	default:
		return reason__say(reason, err, "cannot open %s on CPU %u: %s", event->name, cpu,
				   strerror(-err));
	}
}
