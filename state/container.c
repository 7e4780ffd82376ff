// SPDX-License-Identifier: BSD-2-Clause
/*
 * container.c - owns the table of how container runtimes and systemd name their cgroups. Promises to
 * read nothing but the bytes of the path, and no further than its length.
 */
#include <stdbool.h>
#include <string.h>

#include "state/container.h"

#define ID_LEN 64

/* A piece of the path: what stands between two slashes. */
struct piece {
	const char *at;
	size_t len;
};

enum shape {
	SHAPE_ID,     /* 64 hex digits */
	SHAPE_NAME,   /* anything, in systemd's escapes */
	SHAPE_HELPER, /* anything: looks like a container, and is what watches over one */
};

/* One way to name a cgroup. NULL: does not matter. */
struct form {
	const char *parent; /* the directory above */
	const char *prefix; /* one that begins with a '*' is the end of a longer prefix */
	const char *suffix;
	const char *child; /* the directory below */
	enum shape shape;
};

/* The first form that fits a piece decides. */
static const struct form forms[] = {
	/* conmon and its like share the container's id, and run on the host. */
	{.prefix = "crio-conmon-", .shape = SHAPE_HELPER},
	{.prefix = "libpod-conmon-", .shape = SHAPE_HELPER},

	/*
	 * The cgroupfs drivers: docker/ID, kubepods/burstable/podUID/ID, ecs/TASK/ID, default/ID, and
	 * docker's --cgroup-parent with anything above.
	 */
	{.shape = SHAPE_ID},
	{.prefix = "crio-", .shape = SHAPE_ID},
	{.prefix = "libpod-", .shape = SHAPE_ID},	  /* libpod_parent/libpod-ID */
	{.prefix = "libpod-payload-", .shape = SHAPE_ID}, /* --cgroups=split, and quadlets */

	/*
	 * The systemd drivers. An OCI runtime is given "slice:prefix:id" and makes prefix-id.scope of
	 * it: docker-, cri-containerd-, crio-, libpod-, nerdctl- and whatever else somebody chooses.
	 * One that does not use systemd takes the three as they stand, for one directory's name.
	 */
	{.prefix = "*-", .suffix = ".scope", .shape = SHAPE_ID},
	{.prefix = "*:", .shape = SHAPE_ID},

	/* LXC before 4.0 and Proxmox: lxc/NAME; then lxc.payload/NAME, and lxc.payload.NAME. */
	{.parent = "lxc", .shape = SHAPE_NAME},
	{.parent = "lxc.payload", .shape = SHAPE_NAME},
	{.prefix = "lxc.payload.", .suffix = ".scope", .shape = SHAPE_NAME},
	{.prefix = "lxc.payload.", .shape = SHAPE_NAME},

	/* nspawn as a service, where it stays beside its payload, and from the command line. */
	{.prefix = "systemd-nspawn@",
	 .suffix = ".service",
	 .child = "supervisor",
	 .shape = SHAPE_HELPER},
	{.prefix = "systemd-nspawn@", .suffix = ".service", .shape = SHAPE_NAME},
	/* libvirt registers virtual machines in the same way. */
	{.prefix = "machine-qemu\\x2d", .suffix = ".scope", .shape = SHAPE_HELPER},
	{.prefix = "machine-", .suffix = ".scope", .shape = SHAPE_NAME},
	{.suffix = ".libvirt-lxc", .shape = SHAPE_NAME},
};

#define NR_FORMS (sizeof(forms) / sizeof(forms[0]))

static const char *const unit_suffixes[] = {".service", ".scope", ".mount", ".socket", ".swap"};

#define NR_UNIT_SUFFIXES (sizeof(unit_suffixes) / sizeof(unit_suffixes[0]))

static struct piece next_piece(const char **at, const char *end)
{
	struct piece piece;

	while (*at < end && **at == '/')
		(*at)++;
	piece.at = *at;
	while (*at < end && **at != '/')
		(*at)++;
	piece.len = (size_t)(*at - piece.at);
	return piece;
}

static bool is(struct piece piece, const char *text)
{
	return piece.len == strlen(text) && !memcmp(piece.at, text, piece.len);
}

static bool cut_suffix(struct piece *piece, const char *suffix)
{
	size_t len = strlen(suffix);

	if (piece->len < len || memcmp(piece->at + piece->len - len, suffix, len))
		return false;
	piece->len -= len;
	return true;
}

static bool cut_prefix(struct piece *piece, const char *prefix)
{
	size_t len = strlen(prefix);

	if (piece->len < len || memcmp(piece->at, prefix, len))
		return false;
	piece->at += len;
	piece->len -= len;
	return true;
}

/* "*-": what stands before the id is free, and has to end so. */
static bool cut_long_prefix(struct piece *piece, const char *end)
{
	struct piece before;

	if (piece->len <= ID_LEN)
		return false;
	before = (struct piece){piece->at, piece->len - ID_LEN};
	if (!cut_suffix(&before, end))
		return false;
	piece->at += piece->len - ID_LEN;
	piece->len = ID_LEN;
	return true;
}

static bool is_id(struct piece piece)
{
	if (piece.len != ID_LEN)
		return false;
	for (size_t i = 0; i < ID_LEN; i++) {
		char c = piece.at[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
	}
	return true;
}

/* Does `piece` have this form? Then what is left of it is the id or the name. */
static bool fits(const struct form *form, struct piece parent, struct piece *piece,
		 struct piece child)
{
	struct piece rest = *piece;

	if (form->parent && !is(parent, form->parent))
		return false;
	if (form->child && !is(child, form->child))
		return false;
	if (form->suffix && !cut_suffix(&rest, form->suffix))
		return false;
	if (form->prefix && form->prefix[0] == '*') {
		if (!cut_long_prefix(&rest, form->prefix + 1))
			return false;
	} else if (form->prefix && !cut_prefix(&rest, form->prefix)) {
		return false;
	}
	if (form->shape == SHAPE_ID ? !is_id(rest) : !rest.len)
		return false;
	*piece = rest;
	return true;
}

static const struct form *form_of(struct piece parent, struct piece *piece, struct piece child)
{
	for (size_t i = 0; i < NR_FORMS; i++) {
		if (fits(&forms[i], parent, piece, child))
			return &forms[i];
	}
	return NULL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* The byte of an escape \xHH, or -1. One for NUL is none: names are C strings. */
static int escaped(struct piece piece, size_t i)
{
	int high, low;

	if (piece.len - i < 4 || piece.at[i] != '\\' || piece.at[i + 1] != 'x')
		return -1;
	high = hex_digit(piece.at[i + 2]);
	low = hex_digit(piece.at[i + 3]);
	if (high < 0 || low < 0 || !(high | low))
		return -1;
	return high * 16 + low;
}

/* 0 when it does not fit: no name of a directory is as long. */
static size_t copy_name(struct piece piece, char out[CONTAINER_NAME_MAX])
{
	size_t len = 0;

	if (piece.len >= CONTAINER_NAME_MAX)
		return 0;
	for (size_t i = 0; i < piece.len; i++) {
		int byte = escaped(piece, i);

		if (byte >= 0) {
			out[len++] = (char)byte;
			i += 3;
		} else {
			out[len++] = piece.at[i];
		}
	}
	out[len] = '\0';
	return len;
}

size_t container__id(const char *path, size_t len, char out[CONTAINER_NAME_MAX])
{
	const char *end = path + len;
	struct piece parent = {path, 0};
	struct piece here = next_piece(&path, end);
	size_t found = 0;

	while (here.len) {
		struct piece below = next_piece(&path, end);
		struct piece rest = here;
		const struct form *form = form_of(parent, &rest, below);

		if (form && form->shape != SHAPE_HELPER) {
			size_t copied = copy_name(rest, out);

			found = copied ? copied : found;
		}
		parent = here;
		here = below;
	}
	return found;
}

static bool is_unit_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr(":-_.\\@", c));
}

static bool is_unit(struct piece piece)
{
	struct piece stem = piece;
	size_t i;

	if (piece.len >= CONTAINER_NAME_MAX)
		return false;
	for (i = 0; i < NR_UNIT_SUFFIXES; i++) {
		if (cut_suffix(&stem, unit_suffixes[i]))
			break;
	}
	if (i == NR_UNIT_SUFFIXES || !stem.len)
		return false;
	for (i = 0; i < stem.len; i++) {
		if (!is_unit_char(stem.at[i]))
			return false;
	}
	return true;
}

size_t container__unit(const char *path, size_t len, char out[CONTAINER_NAME_MAX])
{
	const char *end = path + len;
	struct piece unit = {path, 0};
	struct piece here;

	while ((here = next_piece(&path, end)).len) {
		/* systemd puts a '_' before names that the kernel could take for its own files. */
		if (here.at[0] == '_')
			cut_prefix(&here, "_");
		if (is_unit(here))
			unit = here;
	}
	memcpy(out, unit.at, unit.len);
	out[unit.len] = '\0';
	return unit.len;
}
