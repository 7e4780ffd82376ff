/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/maps.h"

#include <weir/perf.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOURCE "map"

#define RECORD_MAX (1u << 16)

/* ---- the word --------------------------------------------------------------------------------- */

static bool parse_bytes(const char *value, uint32_t *bytes)
{
	unsigned long number;
	char *end;

	number = strtoul(value, &end, 0);
	*bytes = (uint32_t)number;
	return *value >= '0' && *value <= '9' && !*end && number <= RECORD_MAX;
}

static bool parse_stamp(const struct command_def *command, const char *value, struct map *map)
{
	uint32_t offset;

	if (!parse_bytes(value, &offset)) {
		say(command, "--map %s: stamp= takes an offset in bytes, not '%s'", map->word,
		    value);
		return false;
	}
	map->stamp = offset;
	return true;
}

static bool parse_len(const struct command_def *command, const char *value, struct map *map)
{
	if (parse_bytes(value, &map->len) && map->len)
		return true;
	say(command, "--map %s: len= takes the bytes of a record, not '%s'", map->word, value);
	return false;
}

static bool parse_clock(const struct command_def *command, const char *value, struct map *map)
{
	for (int clock = 0; clock < WEIR_CLOCKS; clock++) {
		if (strcmp(weir_clock__name(clock), value) != 0)
			continue;
		map->clock = (enum weir_clock_id)clock;
		return true;
	}
	say(command, "--map %s: there is no clock '%s': monotonic, boottime, realtime or tai",
	    map->word, value);
	return false;
}

/* A path may have colons of its own, so what is known is taken from the end. */
static bool parse(const struct command_def *command, const char *word, struct map *map)
{
	char *colon;

	*map = (struct map){.word = word, .fd = -1, .stamp = -1};
	if (snprintf(map->path, sizeof(map->path), "%s", word) >= (int)sizeof(map->path)) {
		say(command, "--map: that path is too long");
		return false;
	}
	while ((colon = strrchr(map->path, ':'))) {
		bool fine;

		if (!strncmp(colon, ":stamp=", 7))
			fine = parse_stamp(command, colon + 7, map);
		else if (!strncmp(colon, ":clock=", 7))
			fine = parse_clock(command, colon + 7, map);
		else if (!strncmp(colon, ":len=", 5))
			fine = parse_len(command, colon + 5, map);
		else
			break;
		if (!fine)
			return false;
		*colon = '\0';
	}
	return true;
}

/* ---- the map ---------------------------------------------------------------------------------- */

/* Programs and links are pinned as well, and would answer with what they know of themselves. */
static bool is_map(int fd)
{
	char path[64], target[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	return strstr(target, "bpf-map");
}

static bool say_refused(const struct command_def *command, const struct map *map, int err)
{
	if (err == -ENOENT)
		say(command, "--map: nothing is pinned at %s", map->path);
	else if (access(map->path, F_OK) == 0 && (err == -EINVAL || err == -EPERM) && !geteuid())
		say(command,
		    "--map: %s is no pin of a BPF object; pins are in a bpffs, such as "
		    "/sys/fs/bpf",
		    map->path);
	else
		say(command, "--map: cannot open %s: %s", map->path, strerror(-err));
	return false;
}

static bool take_kind(const struct command_def *command, const struct bpf_map_info *info,
		      struct map *map)
{
	map->is_array = info->type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	if (!map->is_array && info->type != BPF_MAP_TYPE_RINGBUF) {
		say(command,
		    "--map: %s is a map of type %u: only a PERF_EVENT_ARRAY (4) or a RINGBUF (27) "
		    "has records to show",
		    map->path, info->type);
		return false;
	}
	if (!map->is_array && map->len) {
		say(command,
		    "--map %s: a ring buffer's records have their length with them; len= is for a "
		    "perf event array",
		    map->word);
		return false;
	}
	if (map->is_array || map->stamp >= 0)
		return true;
	say(command,
	    "--map: the records of a ring buffer have no stamp but their programs': say where they "
	    "have it, --map %s:stamp=OFFSET",
	    map->path);
	return false;
}

static bool open_map(const struct command_def *command, struct map *map)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);

	map->fd = bpf_obj_get(map->path);
	if (map->fd < 0)
		return say_refused(command, map, -errno);
	if (!is_map(map->fd)) {
		say(command, "--map: what is pinned at %s is no map", map->path);
		return false;
	}
	if (bpf_obj_get_info_by_fd(map->fd, &info, &len)) {
		say(command, "--map: cannot look at %s: %s", map->path, strerror(errno));
		return false;
	}
	snprintf(map->name, sizeof(map->name), "map:%.*s", (int)sizeof(info.name),
		 info.name[0] ? info.name : "?");
	return take_kind(command, &info, map);
}

bool maps__open(const struct command_def *command, const struct option_list *words,
		struct maps *maps)
{
	if (words->count > MAPS_MAX) {
		say(command, "--map takes at most %d maps", MAPS_MAX);
		return false;
	}
	for (unsigned i = 0; i < words->count; i++) {
		struct map *map = &maps->at[maps->count++];

		if (!parse(command, words->at[i], map) || !open_map(command, map))
			return false;
	}
	return true;
}

void maps__close(struct maps *maps)
{
	while (maps->count) {
		int fd = maps->at[--maps->count].fd;

		if (fd >= 0)
			close(fd);
	}
}

/* ---- its records ------------------------------------------------------------------------------ */

static int add_array(const struct map *map, const char *name, struct weir_stream *stream,
		     size_t ring_bytes, char *err, size_t err_len)
{
	const struct weir_perf_array_opts opts = {
		.sz = sizeof(opts),
		.map_fd = map->fd,
		.name = name,
		.ring_bytes = ring_bytes,
		.payload_len = map->len,
		.stamp_offset = (int32_t)map->stamp,
		.clock = map->clock,
		.err = err,
		.err_len = err_len,
	};

	return weir_stream__add_perf_array(stream, &opts);
}

static int add_ring(const struct map *map, const char *name, struct weir_stream *stream, char *err,
		    size_t err_len)
{
	const struct weir_ringbuf_opts opts = {
		.sz = sizeof(opts),
		.map_fd = map->fd,
		.name = name,
		.stamp_offset = (uint32_t)map->stamp,
		.clock = map->clock,
		.lost_fd = -1,
		.err = err,
		.err_len = err_len,
	};

	return weir_stream__add_ringbuf(stream, &opts);
}

bool maps__connect(const struct command_def *command, const struct maps *maps,
		   struct weir_stream *stream, size_t ring_bytes)
{
	for (unsigned i = 0; i < maps->count; i++) {
		const struct map *map = &maps->at[i];
		char name[16], err[512] = "";
		int code;

		snprintf(name, sizeof(name), map->is_array ? SOURCE "%u." : SOURCE "%u", i);
		code = map->is_array ? add_array(map, name, stream, ring_bytes, err, sizeof(err))
				     : add_ring(map, name, stream, err, sizeof(err));
		if (code) {
			say(command, "--map %s: %s", map->word, err[0] ? err : strerror(-code));
			return false;
		}
	}
	return true;
}

int maps__find(const struct maps *maps, const char *source)
{
	size_t len = strlen(SOURCE);

	if (strncmp(source, SOURCE, len) != 0 || source[len] < '0' || source[len] > '9')
		return -1;
	len = strtoul(source + len, NULL, 10);
	return len < maps->count ? (int)len : -1;
}

void maps__decode(const struct maps *maps, int map, const struct weir_event *event,
		  struct weir_decoded *out)
{
	*out = (struct weir_decoded){
		.name = maps->at[map].name,
		.nr = -1,
		.is_raw = true,
		.raw = event->data,
		.raw_len = event->len,
	};
}
