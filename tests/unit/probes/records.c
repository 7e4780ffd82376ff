// SPDX-License-Identifier: BSD-2-Clause
/*
 * records.c - builds records as the BPF side writes them, knowing only <weir/probes.h>.
 */
#include "records.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syscall.h>

#include "probes/probes.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

void record__add(struct record *record, const void *bytes, size_t len)
{
	assert(len <= sizeof(record->bytes) - record->len);
	if (len)
		memcpy(record->bytes + record->len, bytes, len);
	record->len += (uint32_t)len;
}

struct record record__new(uint16_t type, const void *fixed, size_t len)
{
	struct record record = {.type = type};

	record__add(&record, fixed, len);
	return record;
}

void record__add_blob(struct record *record, struct weir_blob blob, const void *bytes)
{
	static const char zeros[8];

	record__add(record, zeros, -record->len & 7);
	record__add(record, &blob, sizeof(blob));
	record__add(record, bytes, blob.len);
}

int record__decode(const struct record *record, struct weir_decoded *out)
{
	static char *copy;
	struct weir_event event = {
		.kind = WEIR_KIND_RECORD,
		.type = record->type,
		.len = record->len,
	};

	free(copy);
	copy = malloc(record->len);
	assert(copy || !record->len);
	if (record->len)
		memcpy(copy, record->bytes, record->len);
	event.data = copy;
	return probes__decode(&event, out);
}

struct text {
	char bytes[8192];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void print(struct text *text, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text->bytes + text->len, sizeof(text->bytes) - text->len, format, args);
	va_end(args);
	assert(len >= 0 && (size_t)len < sizeof(text->bytes) - text->len);
	text->len += (size_t)len;
}

static void print_strings(struct text *text, const char *bytes, size_t len)
{
	print(text, "[");
	for (size_t i = 0; i < len;) {
		size_t one = strnlen(bytes + i, len - i);

		print(text, "%s\"%.*s\"", i ? "," : "", (int)one, bytes + i);
		i += one + 1;
	}
	print(text, "]");
}

static void print_value(struct text *text, const struct weir_arg *arg)
{
	switch (arg->kind) {
	case WEIR_ARG_UINT:
		print(text, "%llu", (unsigned long long)arg->u);
		break;
	case WEIR_ARG_INT:
		print(text, "%lld", (long long)arg->i);
		break;
	case WEIR_ARG_HEX:
		print(text, "0x%llx", (unsigned long long)arg->u);
		break;
	case WEIR_ARG_BOOL:
		print(text, "%s", arg->u == 1 ? "true" : arg->u == 0 ? "false" : "neither");
		break;
	case WEIR_ARG_TIMESPEC:
		print(text, "%lld.%lld", (long long)arg->i, (long long)arg->u);
		break;
	case WEIR_ARG_WORD:
		print(text, "%s", strlen(arg->bytes) == arg->len ? arg->bytes : "bad length");
		break;
	case WEIR_ARG_STR:
		print(text, "\"%.*s\"", (int)arg->len, arg->bytes);
		break;
	case WEIR_ARG_STRV:
		print_strings(text, arg->bytes, arg->len);
		break;
	case WEIR_ARG_SOCKADDR:
		print(text, "sockaddr");
		for (uint32_t i = 0; i < arg->len; i++)
			print(text, ".%02x", (unsigned char)arg->bytes[i]);
		break;
	}
	if (arg->flags & WEIR_ARG_CUT)
		print(text, "~cut");
	if (arg->flags & WEIR_ARG_UNREAD)
		print(text, "~unread");
}

const char *record__text(const struct weir_decoded *decoded)
{
	static struct text text;

	text.len = 0;
	print(&text, "%s %u/%u", decoded->name, decoded->pid, decoded->tid);
	if (decoded->comm)
		print(&text, " '%.*s'", WEIR_COMM_LEN, decoded->comm);
	if (decoded->nr != -1)
		print(&text, " %s(%d)", decoded->syscall ? decoded->syscall : "sys", decoded->nr);
	if (decoded->abi)
		print(&text, "@%s", decoded->abi);
	for (uint32_t i = 0; i < decoded->nargs; i++) {
		print(&text, " %s=", decoded->args[i].name);
		print_value(&text, &decoded->args[i]);
	}
	return text.bytes;
}

static const struct weir_task_id id = {.pid = 100, .tid = 101};
static const struct weir_task_id other = {.pid = 200, .tid = 201};

static struct record sample_fork(void)
{
	struct weir_fork fork = {.parent = id, .child = other, .comm = "sh"};

	return RECORD(WEIR_T_FORK, fork);
}

static struct record sample_exec(void)
{
	struct weir_exec exec = {.id = id, .comm = "ls", .path_len = 7, .argv_len = 6};
	struct record record = RECORD(WEIR_T_EXEC, exec);

	record__add(&record, "/bin/ls", 7);
	record__add(&record, "ls\0-l", 6);
	return record;
}

static struct record sample_exec_empty(void)
{
	struct weir_exec exec = {.id = id, .flags = WEIR_EXEC_ARGV_UNREAD | WEIR_EXEC_PATH_CUT};

	return RECORD(WEIR_T_EXEC, exec);
}

static struct record sample_exit(void)
{
	struct weir_exit exit = {.id = id, .signal = 11, .flags = WEIR_EXIT_CORE, .comm = "sh"};

	return RECORD(WEIR_T_EXIT, exit);
}

static struct record sample_rename(void)
{
	struct weir_rename rename = {.id = id, .comm = "sixteen bytes..."};

	return RECORD(WEIR_T_RENAME, rename);
}

static struct record sample_cgroup_mkdir(void)
{
	struct weir_cgroup_mkdir mkdir = {.cgroup = 7, .is_v2 = 1, .path_len = 5};
	struct record record = RECORD(WEIR_T_CGROUP_MKDIR, mkdir);

	record__add(&record, "/a/bc", 5);
	return record;
}

static struct record sample_cgroup_attach(void)
{
	struct weir_cgroup_attach attach = {.id = id, .cgroup = 7, .process = 1, .path_len = 2};
	struct record record = RECORD(WEIR_T_CGROUP_ATTACH, attach);

	record__add(&record, "/a", 2);
	return record;
}

static struct record sample_openat(void)
{
	struct weir_sys_enter enter = {.id = id, .nr = SYS_openat, .blobs = 1, .args = {3, 0x1000}};
	struct record record = RECORD(WEIR_T_SYS_ENTER, enter);

	record__add_blob(&record, (struct weir_blob){.arg = 1, .kind = WEIR_BLOB_STR, .len = 4},
			 "/etc");
	return record;
}

static struct record sample_execve(void)
{
	struct weir_sys_enter enter = {.id = id, .nr = SYS_execve, .blobs = 2, .args = {1, 2, 3}};
	struct record record = RECORD(WEIR_T_SYS_ENTER, enter);

	record__add_blob(&record, (struct weir_blob){.arg = 0, .kind = WEIR_BLOB_STR, .len = 3},
			 "/ls");
	record__add_blob(&record, (struct weir_blob){.arg = 1, .kind = WEIR_BLOB_STRV, .len = 6},
			 "ls\0-l");
	return record;
}

static struct record sample_connect(void)
{
	struct weir_sys_enter enter = {
		.id = id, .nr = SYS_connect, .blobs = 1, .args = {4, 0x2000, 8}};
	struct record record = RECORD(WEIR_T_SYS_ENTER, enter);

	record__add_blob(&record,
			 (struct weir_blob){.arg = 1, .kind = WEIR_BLOB_SOCKADDR, .len = 8},
			 "\1\0/tmp/s");
	return record;
}

static struct record sample_unread(void)
{
	struct weir_sys_enter enter = {.id = id, .nr = SYS_chdir, .blobs = 1, .args = {0x3000}};
	struct record record = RECORD(WEIR_T_SYS_ENTER, enter);

	record__add_blob(&record,
			 (struct weir_blob){.kind = WEIR_BLOB_STR, .flags = WEIR_BLOB_UNREAD},
			 NULL);
	return record;
}

static struct record sample_unknown_call(void)
{
	struct weir_sys_enter enter = {.id = id, .nr = 999, .args = {1, 2, 3, 4, 5, 6}};

	return RECORD(WEIR_T_SYS_ENTER, enter);
}

static struct record sample_sys_exit(void)
{
	struct weir_sys_exit exit = {.id = id, .nr = SYS_openat, .blobs = 1, .ret = -2};
	struct record record = RECORD(WEIR_T_SYS_EXIT, exit);

	record__add_blob(&record, (struct weir_blob){.arg = 1, .kind = WEIR_BLOB_STR, .len = 4},
			 "/etc");
	return record;
}

static struct record sample_switch(void)
{
	struct weir_switch sw = {.prev = id, .next = other, .prev_comm = "a", .next_comm = "b"};

	return RECORD(WEIR_T_SWITCH, sw);
}

static struct record sample_wakeup(void)
{
	struct weir_wakeup wakeup = {.waker = id, .target = other, .target_comm = "b"};

	return RECORD(WEIR_T_WAKEUP, wakeup);
}

static struct record sample_migrate(void)
{
	struct weir_migrate migrate = {.current = id, .target = other, .target_comm = "b"};

	return RECORD(WEIR_T_MIGRATE, migrate);
}

static struct record sample_generate(void)
{
	struct weir_signal sig = {.id = id, .target = other, .sig = 15, .target_comm = "b"};

	return RECORD(WEIR_T_SIGNAL_GENERATE, sig);
}

static struct record sample_deliver(void)
{
	struct weir_signal sig = {.id = id, .target = id, .sig = 35, .target_comm = "a"};

	return RECORD(WEIR_T_SIGNAL_DELIVER, sig);
}

static struct record (*const samples[])(void) = {
	sample_fork,	     sample_exec,	   sample_exec_empty, sample_exit,   sample_rename,
	sample_cgroup_mkdir, sample_cgroup_attach, sample_openat,     sample_execve, sample_connect,
	sample_unread,	     sample_unknown_call,  sample_sys_exit,   sample_switch, sample_wakeup,
	sample_migrate,	     sample_generate,	   sample_deliver,
};

const size_t sample_count = ARRAY_SIZE(samples);

struct record sample__get(size_t index)
{
	return samples[index]();
}
